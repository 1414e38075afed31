//! Collations: how characters compare.
//!
//! A collation turns each character into one *weight*; strings compare by their weights, and all but
//! `binary` pad the shorter one with spaces. [`Collation::compare`] and the keys that
//! [`KeyCodec`](crate::KeyCodec) makes agree.

mod weights;

use std::cmp::Ordering;
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
