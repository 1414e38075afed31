//! Collations: how characters compare.
//!
//! A collation turns each character into one *weight*; strings compare by their weights, and all but
//! `binary` pad the shorter one with spaces. [`Collation::compare`] and the keys that
//! [`KeyCodec`](crate::KeyCodec) makes agree.

mod tables;
mod weights;

use std::cmp::Ordering;
pub use tables::{from_latin1, to_latin1};
pub use weights::Weights;

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
}

impl Collation {
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
        }
    }

    /// The character set that the collation belongs to.
    pub fn character_set(self) -> &'static str {
        match self {
            Collation::Utf8mb4GeneralCi | Collation::Utf8mb4Bin => "utf8mb4",
            Collation::Latin1SwedishCi | Collation::Latin1Bin => "latin1",
            Collation::AsciiGeneralCi | Collation::AsciiBin => "ascii",
            Collation::Binary => "binary",
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
        }
    }

    /// Finds a collation by its name in any case; the `utf8` and `utf8mb3` names mean utf8mb4.
    pub fn by_name(name: &str) -> Option<Collation> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "utf8mb4_general_ci" | "utf8_general_ci" | "utf8mb3_general_ci" => Collation::Utf8mb4GeneralCi,
            "utf8mb4_bin" | "utf8_bin" | "utf8mb3_bin" => Collation::Utf8mb4Bin,
            "latin1_swedish_ci" => Collation::Latin1SwedishCi,
            "latin1_bin" => Collation::Latin1Bin,
            "ascii_general_ci" => Collation::AsciiGeneralCi,
            "ascii_bin" => Collation::AsciiBin,
            "binary" => Collation::Binary,
            _ => return None,
        })
    }

    /// The default collation of a character set, named in any case.
    pub fn of_character_set(name: &str) -> Option<Collation> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "utf8mb4" | "utf8" | "utf8mb3" => Collation::Utf8mb4GeneralCi,
            "latin1" => Collation::Latin1SwedishCi,
            "ascii" => Collation::AsciiGeneralCi,
            "binary" => Collation::Binary,
            _ => return None,
        })
    }

    /// The most bytes a character takes in the collation's own character set.
    pub fn character_bytes_max(self) -> u32 {
        match self {
            Collation::Utf8mb4GeneralCi | Collation::Utf8mb4Bin => 4,
            _ => 1,
        }
    }

    /// True if case and accents count.
    pub fn is_bin(self) -> bool {
        matches!(self, Collation::Utf8mb4Bin | Collation::Latin1Bin | Collation::AsciiBin | Collation::Binary)
    }

    /// The weight of one character.
    #[inline]
    pub fn weight(self, character: char) -> u32 {
        if character.is_ascii() { self.weight_of_ascii(character as u8) } else { self.weight_of(character) }
    }

    /// The weight of a space, which PAD SPACE fills up with, in every collation that pads.
    pub const SPACE: u32 = 0x20;

    /// The weights of a text, one a character; trailing spaces included.
    pub fn weights<'a>(&self, text: &'a [u8]) -> Weights<'a> {
        Weights::new(*self, text)
    }

    /// Compares two texts as `ORDER BY` does.
    pub fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        if *self == Collation::Binary {
            return left.cmp(right);
        }
        // Bytes that are the same weigh the same.
        let common = common_characters(left, right);
        let (mut left, mut right) = (&left[common..], &right[common..]);
        let folds = self.folds_ascii();
        while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right)
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
                (Some(a), None) => return compare_to_spaces(a, left),
                (None, Some(b)) => return compare_to_spaces(b, right).reverse(),
            }
        }
    }

    /// True if the letters of ASCII weigh the same in either case.
    pub(crate) fn folds_ascii(self) -> bool {
        matches!(self, Collation::Utf8mb4GeneralCi | Collation::Latin1SwedishCi | Collation::AsciiGeneralCi)
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
