//! Characters to weights.

use super::{Collation, tables};

/// Iterates over the weights of a text. Bytes that are not UTF-8 count as one character each, so
/// that damaged text still compares.
#[derive(Clone, Debug)]
pub(crate) struct Weights<'a> {
    collation: Collation,
    rest: &'a [u8],
}

impl<'a> Weights<'a> {
    pub(super) fn new(collation: Collation, text: &'a [u8]) -> Weights<'a> {
        Weights { collation, rest: text }
    }
}

impl Iterator for Weights<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let first = *self.rest.first()?;
        if first < 0x80 || self.collation == Collation::Binary {
            self.rest = &self.rest[1..];
            return Some(self.collation.weight_of_ascii(first));
        }
        let (character, length) = decode(self.rest);
        self.rest = &self.rest[length..];
        Some(match character {
            Some(character) => self.collation.weight_of(character),
            None => first as u32,
        })
    }
}

/// The first character of a non-empty text and its length in bytes; a byte that starts no
/// character is taken alone.
pub(crate) fn decode(text: &[u8]) -> (Option<char>, usize) {
    let length = match text[0] {
        0..=0x7f => return (Some(text[0] as char), 1),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (None, 1),
    };
    match text.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()) {
        Some(text) => (text.chars().next(), length),
        None => (None, 1),
    }
}

impl Collation {
    #[inline]
    pub(super) fn weight_of_ascii(self, byte: u8) -> u32 {
        match self {
            Collation::Utf8mb4GeneralCi | Collation::Latin1SwedishCi | Collation::AsciiGeneralCi => {
                byte.to_ascii_uppercase() as u32
            }
            Collation::Listed(_) => self.byte_weights().map_or(byte as u32, |weights| weights.of_ascii(byte)),
            _ => byte as u32,
        }
    }

    #[inline]
    pub(super) fn weight_of(self, character: char) -> u32 {
        match self {
            Collation::Utf8mb4GeneralCi => tables::general_ci(character),
            Collation::Latin1SwedishCi => tables::swedish_ci(character),
            Collation::Latin1Bin => {
                tables::to_latin1(character).map_or(0x100 + character as u32, |byte| byte as u32)
            }
            Collation::Listed(_) => {
                self.byte_weights().map_or(character as u32, |weights| weights.weight(character))
            }
            _ => character as u32,
        }
    }
}
