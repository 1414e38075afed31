//! Character sets of one byte a character, and the weights of their collations.
//!
//! `bytes.bin`: the character sets, each a byte with the length of its name, the name, the number of its
//! default collation in the protocol as `u16`, the characters of the bytes from 128 on as `u16` (0 for none),
//! and a byte that counts its collations; of each of these its number, `u16`, and a byte with the weight of
//! each of the 256 bytes. Little-endian. The bytes up to 127 are ASCII. `examples/byte_tables.rs` wrote the
//! file.

use super::CHARSETS;
use base::bytes::ByteReader;
use std::sync::LazyLock;

/// A character set of one byte a character.
#[derive(PartialEq, Eq, Debug)]
pub struct CharacterMap {
    pub name: &'static str,
    /// The number of its default collation.
    pub collation_id: u16,
    /// The characters of the bytes from 128 on.
    upper: [Option<char>; 128],
    /// The same by characters, in order.
    bytes: Vec<(char, u8)>,
    collations: Vec<(u16, [u8; 256])>,
}

static MAPS: LazyLock<Vec<CharacterMap>> = LazyLock::new(|| {
    let mut reader = ByteReader::new(include_bytes!("bytes.bin"));
    std::iter::from_fn(|| map(&mut reader)).collect()
});

fn map(reader: &mut ByteReader<'_>) -> Option<CharacterMap> {
    let length = reader.u8()?;
    let name: Vec<u8> = (0..length).map_while(|_| reader.u8()).collect();
    let charset = CHARSETS.iter().find(|charset| charset.name.as_bytes() == name)?;
    let collation_id = reader.u16()?;
    let mut upper = [None; 128];
    for character in &mut upper {
        *character = char::from_u32(reader.u16()?.into()).filter(|character| *character != '\0');
    }
    let known = upper.iter().zip(128..=255);
    let mut bytes: Vec<(char, u8)> =
        known.filter_map(|(character, byte)| character.map(|character| (character, byte))).collect();
    bytes.sort_unstable();
    let count = reader.u8()?;
    let collations = (0..count).map_while(|_| Some((reader.u16()?, reader.take()?))).collect();
    Some(CharacterMap { name: charset.name, collation_id, upper, bytes, collations })
}

impl CharacterMap {
    /// The character set with this name, if it is one of these.
    pub fn named(name: &str) -> Option<&'static CharacterMap> {
        MAPS.iter().find(|map| map.name == name)
    }

    /// The byte of a character, if it has one.
    pub fn to_byte(&self, character: char) -> Option<u8> {
        if character.is_ascii() {
            return Some(character as u8);
        }
        let found = self.bytes.binary_search_by_key(&character, |(known, _)| *known).ok()?;
        Some(self.bytes[found].1)
    }

    /// The character of a byte; `?` if it is none.
    pub fn of_byte(&self, byte: u8) -> char {
        match byte {
            0..128 => byte as char,
            _ => self.upper[usize::from(byte - 128)].unwrap_or('?'),
        }
    }

    /// A text in UTF-8.
    pub fn decode(&self, text: &[u8]) -> String {
        text.iter().map(|byte| self.of_byte(*byte)).collect()
    }
}

/// A collation that gives each byte a weight.
#[derive(Debug)]
pub(crate) struct ByteWeights {
    map: &'static CharacterMap,
    weights: &'static [u8; 256],
    /// How the weights of ASCII are had without the table.
    pub ascii: Ascii,
}

/// The weights of ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ascii {
    Codes,
    /// Those of capital letters.
    Capitals,
    Own,
}

impl ByteWeights {
    /// Those of the collation with a number, if its character set is one of these.
    pub(super) fn of(charset: &str, id: u16) -> Option<ByteWeights> {
        let map = CharacterMap::named(charset)?;
        let (_, weights) = map.collations.iter().find(|(one, _)| *one == id)?;
        let all = |weight: fn(u8) -> u8| (0..128).all(|byte| weights[usize::from(byte)] == weight(byte));
        let ascii = match () {
            () if all(|byte| byte) => Ascii::Codes,
            () if all(|byte| byte.to_ascii_uppercase()) => Ascii::Capitals,
            () => Ascii::Own,
        };
        Some(ByteWeights { map, weights, ascii })
    }

    pub(super) fn of_ascii(&self, byte: u8) -> u32 {
        self.weights[usize::from(byte)].into()
    }

    /// Characters that the set lacks, which no column holds, come last.
    pub(super) fn weight(&self, character: char) -> u32 {
        let byte = self.map.to_byte(character);
        byte.map_or(0x100 + character as u32, |byte| self.weights[usize::from(byte)].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collation;

    #[test]
    fn every_character_of_a_set_has_its_byte() {
        assert!(MAPS.len() > 15);
        for map in MAPS.iter() {
            for byte in 0..=255 {
                let character = map.of_byte(byte);
                if character != '?' {
                    assert_eq!(map.to_byte(character), Some(byte), "{} {byte:x}", map.name);
                }
            }
            for (id, weights) in &map.collations {
                let collation = Collation::by_id(*id).unwrap();
                assert_eq!(collation.character_set(), map.name);
                // Keys of other collations end with this weight, and it compares with them.
                assert_eq!(u32::from(weights[usize::from(b' ')]), Collation::SPACE, "{}", collation.name());
            }
        }
        let latin1 = CharacterMap::named("latin1").unwrap();
        assert!((0..=255).all(|byte| latin1.of_byte(byte) == super::super::from_latin1(byte)));
        assert_eq!(CharacterMap::named("koi8r").unwrap().to_byte('Ж'), Some(0xf6));
        assert_eq!(CharacterMap::named("koi8r").unwrap().decode(b"\xf6a"), "Жa");
    }
}
