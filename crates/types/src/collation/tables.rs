//! Weights beyond ASCII.

/// `utf8mb4_general_ci`: what folds to what, readable.
const GENERAL_CI: &str = include_str!("general_ci.txt");

/// Weights of U+0000 to U+05FF and, behind them, of U+1E00 to U+1FFF.
static FOLDED: [u16; 0x800] = folded(GENERAL_CI.as_bytes());

const fn slot(character: u32) -> Option<usize> {
    match character {
        0..0x600 => Some(character as usize),
        0x1e00..0x2000 => Some(character as usize - 0x1e00 + 0x600),
        _ => None,
    }
}

/// The weight of a character in `utf8mb4_general_ci`: upper case without accents; U+FFFD for all characters
/// outside the basic plane.
#[inline]
pub(super) fn general_ci(character: char) -> u32 {
    let character = character as u32;
    match character {
        0x2170..=0x217f => character - 16,
        0x24d0..=0x24e9 => character - 26,
        0xff41..=0xff5a => character - 32,
        0x1_0000.. => 0xfffd,
        _ => slot(character).map_or(character, |slot| FOLDED[slot] as u32),
    }
}

/// Reads the table at compile time.
const fn folded(text: &[u8]) -> [u16; 0x800] {
    let mut table = [0; 0x800];
    let mut index = 0;
    while index < 0x800 {
        let character = if index < 0x600 { index } else { index - 0x600 + 0x1e00 };
        table[index] = (character as u8 as char).to_ascii_uppercase() as u16;
        if character >= 0x80 {
            table[index] = character as u16;
        }
        index += 1;
    }
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'#' {
            while text[at] != b'\n' {
                at += 1;
            }
            at += 1;
            continue;
        }
        let (weight, mut next) = decode(text, at);
        while text[next] == b' ' {
            let (character, end) = decode(text, next + 1);
            match slot(character) {
                Some(slot) => table[slot] = weight as u16,
                None => panic!("a character outside the table"),
            }
            next = end;
        }
        at = next + 1;
    }
    table
}

/// The character of at most three bytes at `at`, and where it ends.
const fn decode(text: &[u8], at: usize) -> (u32, usize) {
    let first = text[at] as u32;
    if first < 0x80 {
        (first, at + 1)
    } else if first < 0xe0 {
        ((first & 0x1f) << 6 | (text[at + 1] & 0x3f) as u32, at + 2)
    } else {
        let middle = (text[at + 1] & 0x3f) as u32;
        ((first & 0xf) << 12 | middle << 6 | (text[at + 2] & 0x3f) as u32, at + 3)
    }
}

/// MySQL's latin1 is cp1252, with the five bytes that cp1252 leaves out as control characters.
const CP1252_80_9F: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The byte of a character in latin1, if it has one.
pub fn to_latin1(character: char) -> Option<u8> {
    match character as u32 {
        code @ (0..0x80 | 0xa0..0x100) => Some(code as u8),
        _ => CP1252_80_9F.iter().position(|&other| other == character).map(|position| 0x80 + position as u8),
    }
}

/// The character of a latin1 byte.
pub fn from_latin1(byte: u8) -> char {
    match byte {
        0x80..=0x9f => CP1252_80_9F[byte as usize - 0x80],
        _ => byte as char,
    }
}

/// The weights of À to ß in `latin1_swedish_ci` where the letter is not its own; à to ÿ have the same.
const SWEDISH_C0_DF: [u8; 32] = *b"AAAA\\[\\CEEEEIIIIDNOOOO]\0\0UUUYY\0\0";

/// The weight in `latin1_swedish_ci`. Characters that latin1 lacks, which no such column holds, come last.
pub(super) fn swedish_ci(character: char) -> u32 {
    let Some(byte) = to_latin1(character) else { return 0x100 + character as u32 };
    match byte {
        0xc0.. => match (SWEDISH_C0_DF[(byte & 0x1f) as usize], byte) {
            (0, 0xf8 | 0xfe) => byte as u32 - 32,
            (0, _) => byte as u32,
            (weight, _) => weight as u32,
        },
        _ => byte.to_ascii_uppercase() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32 of the weights of U+0000 to U+FFFF without the surrogates, two bytes each, low byte first.
    fn crc(weight: impl Fn(char) -> u32) -> u32 {
        let weights: Vec<u8> =
            ('\0'..='\u{ffff}').flat_map(|character| (weight(character) as u16).to_le_bytes()).collect();
        // The checksum's own seed taken back out.
        base::checksum::checksum(0x4c57_4b31, &weights)
    }

    #[test]
    fn general_ci_weighs_every_character_as_mariadb_does() {
        // From MariaDB 10.11: `hex(weight_string(c collate utf8mb4_general_ci))` for every character.
        assert_eq!(crc(general_ci), GENERAL_CI_CRC);
        assert_eq!(general_ci('ß'), 'S' as u32);
        assert_eq!(general_ci('é'), 'E' as u32);
        assert_eq!(general_ci('😀'), 0xfffd);
    }

    #[test]
    fn latin1_converts_there_and_back() {
        for byte in 0..=255 {
            assert_eq!(to_latin1(from_latin1(byte)), Some(byte));
        }
        assert_eq!(to_latin1('€'), Some(0x80));
        assert_eq!(to_latin1('ł'), None);
    }

    #[test]
    fn swedish_ci_weighs_every_byte_as_mariadb_does() {
        let weights: String =
            (0x80..=0xff).map(|byte| format!("{:02X}", swedish_ci(from_latin1(byte)))).collect();
        assert_eq!(weights, SWEDISH_WEIGHTS);
        assert_eq!(swedish_ci('y'), 'Y' as u32);
    }
    const GENERAL_CI_CRC: u32 = 0xd444ed1d;
    const SWEDISH_WEIGHTS: &str = "808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9F\
         A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBF\
         414141415C5B5C434545454549494949444E4F4F4F4F5DD7D85555555959DEDF\
         414141415C5B5C434545454549494949444E4F4F4F4F5DF7D85555555959DEFF";
}
