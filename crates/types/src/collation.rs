//! Collations: how characters compare.
//!
//! A collation turns each character into one *weight*, or, for those of [`uca`], into any number of them.
//! Strings compare by their weights. With PAD SPACE the shorter one goes on with spaces, with NO PAD it does
//! not; `binary` has NO PAD. [`Collation::compare`] and the keys that [`KeyCodec`](crate::KeyCodec) makes
//! agree.

mod bytes;
mod list;
mod tables;
pub(crate) mod uca;
mod weights;

pub use bytes::CharacterMap;
pub(crate) use bytes::{Ascii, ByteWeights};
use list::Order;
pub use list::{CHARSETS, Charset, Definition, Listed, definitions};
use std::cmp::Ordering;
pub use tables::{from_latin1, to_latin1};
use weights::Weights;

/// The byte after a space in a key: how the first character after the run of spaces compares with a space.
pub(crate) mod after_spaces {
    pub const LESS: u8 = 1;
    pub const END: u8 = 2;
    pub const GREATER: u8 = 3;
}

/// The collations that a column can have. Names as MySQL has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Collation {
    Utf8mb4GeneralCi,
    Utf8mb4Bin,
    Latin1SwedishCi,
    Latin1Bin,
    AsciiGeneralCi,
    AsciiBin,
    Binary,
    /// Another one of the list.
    Listed(Listed),
}

/// How a collation compares.
pub(crate) enum Kind {
    /// By one weight a character, those of one of the program's own collations; the flag is true for PAD
    /// SPACE.
    Single(Collation, bool),
    Uca(&'static uca::Uca),
}

impl Collation {
    /// Those that are variants of their own, in the order of their bytes on disk.
    pub const OWN: [Collation; 7] = [
        Collation::Utf8mb4GeneralCi,
        Collation::Utf8mb4Bin,
        Collation::Latin1SwedishCi,
        Collation::Latin1Bin,
        Collation::AsciiGeneralCi,
        Collation::AsciiBin,
        Collation::Binary,
    ];

    /// The name as MySQL has it.
    pub fn name(self) -> &'static str {
        match self {
            Collation::Utf8mb4GeneralCi => "utf8mb4_general_ci",
            Collation::Utf8mb4Bin => "utf8mb4_bin",
            Collation::Latin1SwedishCi => "latin1_swedish_ci",
            Collation::Latin1Bin => "latin1_bin",
            Collation::AsciiGeneralCi => "ascii_general_ci",
            Collation::AsciiBin => "ascii_bin",
            Collation::Binary => "binary",
            Collation::Listed(listed) => listed.definition().name,
        }
    }

    /// The character set that the collation belongs to.
    pub fn character_set(self) -> &'static str {
        match self {
            Collation::Utf8mb4GeneralCi | Collation::Utf8mb4Bin => "utf8mb4",
            Collation::Latin1SwedishCi | Collation::Latin1Bin => "latin1",
            Collation::AsciiGeneralCi | Collation::AsciiBin => "ascii",
            Collation::Binary => "binary",
            Collation::Listed(listed) => listed.definition().charset,
        }
    }

    /// The collation's number in the protocol.
    pub fn id(self) -> u16 {
        match self {
            Collation::Utf8mb4GeneralCi => 45,
            Collation::Utf8mb4Bin => 46,
            Collation::Latin1SwedishCi => 8,
            Collation::Latin1Bin => 47,
            Collation::AsciiGeneralCi => 11,
            Collation::AsciiBin => 65,
            Collation::Binary => 63,
            Collation::Listed(listed) => listed.definition().id,
        }
    }

    /// The collation with the protocol's number, if a column can have it.
    pub fn by_id(id: u16) -> Option<Collation> {
        definitions().iter().find(|one| one.id == id)?.column()
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Collation::Listed(listed) => match &listed.definition().order {
                Order::Uca(uca) => Kind::Uca(uca),
                Order::Same(same, pads) => Kind::Single(*same, *pads),
                Order::Own(own) => Kind::Single(*own, *own != Collation::Binary),
                Order::Bytes(_, pads) => Kind::Single(self, *pads),
                Order::None => Kind::Single(Collation::Utf8mb4Bin, true),
            },
            own => Kind::Single(own, own != Collation::Binary),
        }
    }

    /// The most bytes a character takes in the collation's own character set.
    pub fn character_bytes_max(self) -> u32 {
        match self {
            Collation::Utf8mb4GeneralCi | Collation::Utf8mb4Bin => 4,
            Collation::Listed(listed) => listed.definition().bytes_max.into(),
            _ => 1,
        }
    }

    /// True if the collation's character set has the character.
    pub fn holds(self, character: char) -> bool {
        match self.character_set() {
            "latin1" => to_latin1(character).is_some(),
            "ascii" => character.is_ascii(),
            "utf8mb3" => (character as u32) < 0x1_0000,
            "utf8mb4" | "binary" => true,
            name => CharacterMap::named(name).is_none_or(|map| map.to_byte(character).is_some()),
        }
    }

    /// True if characters compare by their codes.
    pub fn is_bin(self) -> bool {
        match self {
            Collation::Utf8mb4Bin | Collation::Latin1Bin | Collation::AsciiBin | Collation::Binary => true,
            Collation::Listed(listed) => listed.definition().name.ends_with("_bin"),
            _ => false,
        }
    }

    /// The collation of the same character set that compares by codes.
    pub fn binary_of_character_set(self) -> Option<Collation> {
        let set = self.character_set();
        let is_it = |one: &&Definition| one.charset == set && one.name.strip_prefix(set) == Some("_bin");
        definitions().iter().find(is_it)?.column()
    }

    /// True if REGEXP tells capital letters from small ones. As in MariaDB, collations of UCA 14.0.0 do not.
    pub fn is_case_sensitive(self) -> bool {
        self.is_bin() || matches!(self.kind(), Kind::Uca(uca) if uca.levels.third && uca.name == "900")
    }

    /// True if the starts of texts, of a number of characters, sort as the texts do, or are equal. Else a
    /// contraction or an accent can turn the order around.
    pub fn starts_keep_order(self) -> bool {
        match self.kind() {
            Kind::Single(..) => true,
            Kind::Uca(uca) => uca.starts_keep_order(),
        }
    }

    /// True if two characters are equal, as LIKE compares them. Not for [`Collation::Binary`].
    #[inline]
    pub fn same_character(self, a: char, b: char) -> bool {
        match self.kind() {
            Kind::Single(own, _) => own.weight(a) == own.weight(b),
            Kind::Uca(uca) => uca.same_character(a, b),
        }
    }

    /// True if two texts are equal when the spaces at their ends count.
    pub fn is_same(self, left: &[u8], right: &[u8]) -> bool {
        match self.kind() {
            Kind::Single(own, _) => own.weights(left).eq(own.weights(right)),
            Kind::Uca(uca) => uca.compare(left, right, false).is_eq(),
        }
    }

    /// True if the start of `text`, of some length, is the same as `start`, character by character.
    pub fn begins_with(self, text: &[u8], start: &[u8]) -> bool {
        match self.kind() {
            Kind::Single(own, _) => {
                let mut found = own.weights(text);
                own.weights(start).all(|weight| found.next() == Some(weight))
            }
            Kind::Uca(uca) => uca.compare(first_chars(text, char_count(start)), start, false).is_eq(),
        }
    }

    /// The weight of one character.
    #[inline]
    fn weight(self, character: char) -> u32 {
        if character.is_ascii() { self.weight_of_ascii(character as u8) } else { self.weight_of(character) }
    }

    /// The weight of a space, which PAD SPACE fills up with, in every collation that pads.
    pub const SPACE: u32 = 0x20;

    /// The weights of a text, one a character; trailing spaces included. For collations that are variants of
    /// their own.
    pub(crate) fn weights<'a>(&self, text: &'a [u8]) -> Weights<'a> {
        Weights::new(*self, text)
    }

    /// Compares two texts as `ORDER BY` does.
    pub fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        match self {
            Collation::Binary => left.cmp(right),
            Collation::Listed(_) => match self.kind() {
                Kind::Uca(uca) => uca.compare(left, right, uca.pads),
                Kind::Single(own, pads) => own.compare_single(left, right, pads),
            },
            _ => self.compare_single(left, right, true),
        }
    }

    #[inline]
    fn compare_single(self, left: &[u8], right: &[u8], pads: bool) -> Ordering {
        // Bytes that are the same weigh the same.
        let common = common_characters(left, right);
        let (mut left, mut right) = (&left[common..], &right[common..]);
        let ascii = self.ascii();
        let folds = ascii == Ascii::Capitals;
        while ascii != Ascii::Own
            && let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right)
            && a.is_ascii()
            && b.is_ascii()
        {
            let (a, b) = if folds { (a.to_ascii_uppercase(), b.to_ascii_uppercase()) } else { (*a, *b) };
            if a != b {
                return a.cmp(&b);
            }
            (left, right) = (left_rest, right_rest);
        }
        let mut left = self.weights(left);
        let mut right = self.weights(right);
        loop {
            match (left.next(), right.next()) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => return a.cmp(&b),
                (None, None) => return Ordering::Equal,
                (Some(_), None) if !pads => return Ordering::Greater,
                (None, Some(_)) if !pads => return Ordering::Less,
                (Some(a), None) => return compare_to_spaces(a, left),
                (None, Some(b)) => return compare_to_spaces(b, right).reverse(),
            }
        }
    }

    /// How the weights of ASCII characters are had.
    #[inline]
    pub(crate) fn ascii(self) -> Ascii {
        match self {
            Collation::Utf8mb4GeneralCi | Collation::Latin1SwedishCi | Collation::AsciiGeneralCi => {
                Ascii::Capitals
            }
            Collation::Listed(_) => self.byte_weights().map_or(Ascii::Codes, |weights| weights.ascii),
            _ => Ascii::Codes,
        }
    }

    /// The weights of a collation that gives each byte one, and is not one of the program's own.
    fn byte_weights(self) -> Option<&'static ByteWeights> {
        match self {
            Collation::Listed(listed) => match &listed.definition().order {
                Order::Bytes(weights, _) => Some(weights),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How many bytes two texts have in common at their start, cut back to the start of a character.
fn common_characters(left: &[u8], right: &[u8]) -> usize {
    const STEP: usize = 16;
    let same_steps =
        left.chunks_exact(STEP).zip(right.chunks_exact(STEP)).take_while(|(a, b)| a == b).count();
    let mut common = same_steps * STEP;
    common += left[common..].iter().zip(&right[common..]).take_while(|(a, b)| a == b).count();
    let inside = |text: &[u8]| text.get(common).is_some_and(|byte| byte & 0xc0 == 0x80);
    if !inside(left) && !inside(right) {
        return common;
    }
    // A character has at most three bytes behind its first. Where there are more, it is no UTF-8, and the
    // way back goes on to something that is.
    while common > 0 && left[common - 1] & 0xc0 == 0x80 {
        common -= 1;
    }
    common.saturating_sub(1)
}

/// Compares the rest of a text with endless spaces.
fn compare_to_spaces(first: u32, rest: Weights<'_>) -> Ordering {
    std::iter::once(first)
        .chain(rest)
        .map(|weight| weight.cmp(&Collation::SPACE))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The first `count` characters of a text.
pub fn first_chars(text: &[u8], count: usize) -> &[u8] {
    if text.len() <= count {
        return text;
    }
    let mut at = 0;
    for _ in 0..count {
        if at >= text.len() {
            break;
        }
        at += weights::decode(&text[at..]).1;
    }
    &text[..at]
}

/// The number of characters of a text; bytes that are not UTF-8 count as one each.
pub fn char_count(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let mut at = 0;
    let mut count = 0;
    while at < text.len() {
        at += weights::decode(&text[at..]).1;
        count += 1;
    }
    count
}
