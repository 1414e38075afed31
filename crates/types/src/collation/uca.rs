//! Collations of the Unicode collation algorithm: several weights a character, on up to three levels.
//!
//! The first level tells letters apart, the second accents, the third capital letters. Each level of a text
//! is the weights of its characters one behind the other. Texts compare by the whole first level, then by the
//! whole second one, and so on. A character can have several weights on a level (`ß` sorts as `ss`), or none
//! (an accent on the first level). A *contraction* is a sequence of characters with weights of its own.
//!
//! The weights are those of MariaDB, and of MySQL for `_0900_`. `examples/collation_tables.rs` wrote the
//! files.

mod keys;
mod read;
mod scan;

use super::common_characters;
use base::sync::OnceLock;
use scan::Scanner;
use std::cmp::Ordering;

pub(crate) use keys::{key_bytes, write_key, write_start};

/// What a character has in a table, in one number: bits 0 to 15 a value; 16 and 17 what the value is; 18 set
/// if a contraction can begin with it; 19 set if a contraction can go on behind it; from 20 on its class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Entry(u32);

/// What an entry's value is.
mod kind {
    /// The number of a rule of [`super::IMPLICIT`].
    pub const IMPLICIT: u32 = 0;
    /// The only weight of the first level.
    pub const SINGLE: u32 = 1;
    /// The number of a sequence of weights.
    pub const SEQUENCE: u32 = 2;
}

impl Entry {
    const HEAD: u32 = 1 << 18;
    const GOES_ON: u32 = 1 << 19;
    /// One more than the largest class.
    const CLASSES: usize = 1 << 12;

    fn new(kind: u32, value: u16, class: usize) -> Entry {
        Entry(u32::from(value) | kind << 16 | (class as u32) << 20)
    }

    fn value(self) -> u16 {
        self.0 as u16
    }

    fn kind(self) -> u32 {
        self.0 >> 16 & 3
    }

    fn is_head(self) -> bool {
        self.0 & Entry::HEAD != 0
    }

    fn class(self) -> usize {
        (self.0 >> 20) as usize
    }
}

const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;

type Page = [Entry; PAGE];

/// A rule that makes two weights of a character that has none: the first is a base, plus the code point's
/// high bits if the rule counts from 0; the second has its low bits.
struct Rule {
    base: u16,
    first: u32,
}

static IMPLICIT: [Rule; 6] = [
    Rule { base: 0xfbc0, first: 0 },
    Rule { base: 0xfb80, first: 0 },
    Rule { base: 0xfb40, first: 0 },
    Rule { base: 0xfb00, first: 0x1_7000 },
    Rule { base: 0xfb01, first: 0x1_b170 },
    Rule { base: 0xfb02, first: 0x1_8b00 },
];

impl Rule {
    fn weights(&self, character: u32) -> [u16; 2] {
        let high = if self.first == 0 { (character >> 15) as u16 } else { 0 };
        [self.base + high, (character.wrapping_sub(self.first) & 0x7fff) as u16 | 0x8000]
    }
}

/// Several characters that weigh otherwise together.
struct Contraction {
    characters: Box<[char]>,
    primaries: Box<[u16]>,
    class: usize,
}

/// The weights of one version, in one language.
pub(crate) struct Table {
    pages: Box<[&'static Page]>,
    /// Where each sequence of the first level begins in `weights`; one more at the end.
    starts: Vec<u32>,
    weights: Vec<u16>,
    /// The second and the third level of a class of characters.
    classes: Vec<[Box<[u16]>; 2]>,
    /// By their characters in order.
    contractions: Vec<Contraction>,
    /// The first weights of the characters that contractions begin with, in order.
    head_weights: Vec<u16>,
    /// The weights of ASCII characters that have one, and begin no contraction; else 0.
    plain: [u16; 128],
    codes: keys::Codes,
}

impl Table {
    fn entry(&self, character: char) -> Entry {
        let character = character as usize;
        self.pages[character / PAGE][character % PAGE]
    }

    fn sequence(&self, number: u16) -> &[u16] {
        let [start, end] = [0, 1].map(|next| self.starts[usize::from(number) + next] as usize);
        &self.weights[start..end]
    }

    /// The longest contraction at the start of a text that is not empty, and its bytes.
    #[cold]
    fn contraction(&self, text: &[u8]) -> Option<(&Contraction, usize)> {
        let (first, length) = super::weights::decode(text);
        let first = first?;
        let start = self.contractions.partition_point(|one| one.characters[0] < first);
        let mut best: Option<(&Contraction, usize)> = None;
        for one in self.contractions[start..].iter().take_while(|one| one.characters[0] == first) {
            let mut at = length;
            let fits = one.characters[1..].iter().all(|wanted| {
                let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) else { return false };
                let (found, length) = super::weights::decode(rest);
                at += length;
                found == Some(*wanted)
            });
            if fits && best.is_none_or(|(_, bytes)| bytes < at) {
                best = Some((one, at));
            }
        }
        best
    }
}

/// Which levels count: the first one always.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Levels {
    pub second: bool,
    pub third: bool,
}

impl Levels {
    fn iter(self) -> impl Iterator<Item = Level> {
        let second = self.second.then_some(Level::Second);
        let third = self.third.then_some(Level::Third);
        [Some(Level::First), second, third].into_iter().flatten()
    }

    /// True if the first level alone decides.
    pub(crate) fn is_one(self) -> bool {
        !self.second && !self.third
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    First,
    Second,
    Third,
}

/// A collation of this kind.
pub(crate) struct Uca {
    /// The version, and the language with a plus before it, if there is one.
    pub name: &'static str,
    pub levels: Levels,
    /// PAD SPACE: the shorter text goes on with spaces.
    pub pads: bool,
    pub table: OnceLock<&'static Table>,
}

impl Uca {
    /// The table, which is read when it is first asked for.
    fn table(&self) -> &'static Table {
        self.table.get_or_init(|| read::table(self.name))
    }

    /// The weight of a space on a level.
    fn space(&self, level: Level) -> u16 {
        match level {
            Level::First => self.table().plain[usize::from(b' ')],
            Level::Second => 0x20,
            Level::Third => 2,
        }
    }

    pub(crate) fn compare(&self, left: &[u8], right: &[u8], pads: bool) -> Ordering {
        let table = self.table();
        let common = table.apart(left, common_characters(left, right));
        let (left, right) = (&left[common..], &right[common..]);
        if left.is_empty() && right.is_empty() {
            return Ordering::Equal;
        }
        self.levels
            .iter()
            .map(|level| self.compare_level(level, left, right, pads))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    fn compare_level(&self, level: Level, left: &[u8], right: &[u8], pads: bool) -> Ordering {
        let table = self.table();
        let (mut left, mut right) = (left, right);
        if level == Level::First {
            while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right)
                && a.is_ascii()
                && b.is_ascii()
            {
                let (a, b) = (table.plain[usize::from(*a)], table.plain[usize::from(*b)]);
                if a == 0 || b == 0 {
                    break;
                }
                if a != b {
                    return a.cmp(&b);
                }
                (left, right) = (left_rest, right_rest);
            }
        }
        let mut left = Scanner::new(table, level, left);
        let mut right = Scanner::new(table, level, right);
        loop {
            let (first, rest, order) = match (left.next(), right.next()) {
                (Some(a), Some(b)) if a == b => continue,
                (Some(a), Some(b)) => return a.cmp(&b),
                (None, None) => return Ordering::Equal,
                (Some(a), None) => (a, left, Ordering::Greater),
                (None, Some(b)) => (b, right, Ordering::Less),
            };
            if !pads {
                return order;
            }
            let space = self.space(level);
            let found = std::iter::once(first).chain(rest).find(|weight| *weight != space);
            return match found {
                None => Ordering::Equal,
                Some(weight) if weight > space => order,
                Some(_) => order.reverse(),
            };
        }
    }

    /// True if two characters weigh the same by themselves.
    pub(crate) fn same_character(&self, a: char, b: char) -> bool {
        let table = self.table();
        let (left, right) = (table.entry(a), table.entry(b));
        if left.kind() != right.kind() || left.value() != right.value() {
            return false;
        }
        if left.kind() == kind::IMPLICIT && a != b {
            return false;
        }
        let ([second, third], [other_second, other_third]) =
            (&table.classes[left.class()], &table.classes[right.class()]);
        (!self.levels.second || second == other_second) && (!self.levels.third || third == other_third)
    }

    /// True if of two texts the one that sorts first has the first start too, however long the starts are.
    pub(crate) fn starts_keep_order(&self) -> bool {
        self.levels.is_one() && self.table().contractions.is_empty()
    }
}

impl Table {
    /// The last place at or before `at` in a text where no contraction lies across.
    fn apart(&self, text: &[u8], at: usize) -> usize {
        let mut at = at;
        if self.contractions.is_empty() {
            return at;
        }
        while at > 0 {
            let mut start = at - 1;
            while start > 0 && text[start] & 0xc0 == 0x80 {
                start -= 1;
            }
            match super::weights::decode(&text[start..]) {
                (Some(character), _) if self.entry(character).0 & Entry::GOES_ON == 0 => break,
                _ => at = start,
            }
        }
        at
    }
}

#[cfg(test)]
mod tests;
