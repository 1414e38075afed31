//! Texts that are chosen by bits, and keys of texts: how they sound, and how people sort them.

use super::MANY;
use super::arguments::{Arguments, Result};
use super::text::too_long;
use crate::ErrorKind;
use types::ValueRef;

functions! {
    "Bits as Texts, and Keys of Texts";

    MAKE_SET {
        name: "make_set",
        arguments: "bits, text, ...",
        arity: 2..=MANY,
        collation: MergedAfterFirst,
        typing: |t| {
            let commas = t.types.len() as u32 - 2;
            let texts = t.chars_sum().saturating_sub(t.chars(0));
            Ok(t.text(texts.saturating_add(commas), true))
        },
        evaluate: |a| {
            let bits = or_null!(a.int(0)?) as u64;
            let mut set = Vec::new();
            let mut is_first = true;
            for index in (1..a.len().min(65)).filter(|index| bits >> (index - 1) & 1 == 1) {
                let Some(text) = a.text(index)? else { continue };
                if !is_first {
                    set.push(b',');
                }
                is_first = false;
                set.extend_from_slice(text);
                if a.is_too_long(set.len()) {
                    return Ok(too_long(a));
                }
            }
            Ok(a.give(&set))
        },
        help: "Joins with commas the texts whose bit is set: the first is bit 0. Texts that are NULL are left out.",
        example: "MAKE_SET(5, 'a', 'b', 'c')" => "a,c",
    }
    EXPORT_SET {
        name: "export_set",
        arguments: "bits, on, off[, separator[, count]]",
        arity: 3..=5,
        collation: MergedAfterFirst,
        typing: |t| {
            let separator = if t.types.len() > 3 { t.chars(3) } else { 1 };
            let chars = t.chars(1).max(t.chars(2)).saturating_mul(64).saturating_add(separator.saturating_mul(63));
            Ok(t.text(chars, true))
        },
        evaluate: export_set,
        help: "Gives `on` for each bit that is set and `off` for each that is not, from bit 0 on, with the separator \
               (a comma) between them. There are `count` bits, 64 at most.",
        example: "EXPORT_SET(5, 'Y', 'N', ',', 4)" => "Y,N,Y,N",
    }
    SOUNDEX {
        name: "soundex",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.text(t.chars(0).max(SOUNDEX_CHARS as u32), true)),
        evaluate: |a| Ok(a.give(&soundex(or_null!(a.text(0)?), a.is_binary()))),
        help: "Gives a letter and digits that are equal for English words that sound alike.",
        example: "SOUNDEX('Hello')" => "H400",
    }
    NATURAL_SORT_KEY {
        name: "natural_sort_key",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.text(t.chars(0).saturating_mul(2), true)),
        evaluate: |a| {
            let key = natural_key(or_null!(a.text(0)?));
            Ok(if a.is_too_long(key.len()) { too_long(a) } else { a.give(&key) })
        },
        help: "Gives a key by which texts sort as people sort them: numbers in them by their value.",
        example: "NATURAL_SORT_KEY('a10') > NATURAL_SORT_KEY('a2')" => "1",
    }
    CHR {
        name: "chr",
        arguments: "number",
        arity: 1..=1,
        typing: |t| Ok(t.plain(1, true)),
        evaluate: |a| {
            let number = or_null!(a.int(0)?) as u32;
            let bytes = number.to_be_bytes();
            let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
            let bytes = &bytes[start..];
            if let Err(error) = std::str::from_utf8(bytes) {
                // As many bytes as MariaDB shows.
                let wrong = bytes[error.valid_up_to()..].iter().take(3);
                let wrong: String = wrong.map(|byte| format!("{byte:02X}")).collect();
                let message = format!("Invalid utf8mb4 character string: '{wrong}'");
                a.context.environment.warn(ErrorKind::InvalidCharacterString, message);
                return Ok(ValueRef::Null);
            }
            Ok(a.give(bytes))
        },
        help: "Gives the character whose bytes are the number.",
        example: "CHR(65)" => "A",
    }
}

fn export_set<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let bits = or_null!(arguments.int(0)?) as u64;
    let (on, off) = (or_null!(arguments.text(1)?), or_null!(arguments.text(2)?));
    let separator = if arguments.len() > 3 { or_null!(arguments.text(3)?) } else { b"," };
    let count = if arguments.len() > 4 { or_null!(arguments.int(4)?) } else { 64 };
    let count = if (0..=64).contains(&count) { count } else { 64 };
    let longest = on.len().max(off.len()) + separator.len();
    if arguments.is_too_long(longest.saturating_mul(count as usize)) {
        return Ok(too_long(arguments));
    }
    let mut set = Vec::new();
    for bit in 0..count {
        if bit > 0 {
            set.extend_from_slice(separator);
        }
        set.extend_from_slice(if bits >> bit & 1 == 1 { on } else { off });
    }
    Ok(arguments.give(&set))
}

/// The fewest characters of a SOUNDEX.
const SOUNDEX_CHARS: usize = 4;

/// The first letter, then a digit for each group of consonants that sound alike.
fn soundex(text: &[u8], is_binary: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let is_letter =
        |letter: &char| if is_binary { letter.is_ascii_alphabetic() } else { letter.is_alphabetic() };
    let mut letters = text.chars().filter(is_letter);
    let Some(first) = letters.next() else { return Vec::new() };
    // What is no letter of ASCII sounds like a vowel.
    let digit = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    };
    let mut key = String::from(first.to_ascii_uppercase());
    let mut last = digit(first);
    let mut chars = 1;
    for next in letters.map(digit).filter(|digit| *digit != '0') {
        if next != last {
            key.push(next);
            chars += 1;
            last = next;
        }
    }
    key.extend(std::iter::repeat_n('0', SOUNDEX_CHARS.saturating_sub(chars)));
    key.into_bytes()
}

/// The text with the length of each number before it. Zeros before a number do not count.
fn natural_key(text: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(byte) = rest.first() {
        if !byte.is_ascii_digit() {
            key.push(*byte);
            rest = &rest[1..];
            continue;
        }
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, behind) = rest.split_at(length);
        let zeros = number.iter().take_while(|digit| **digit == b'0').count().min(length - 1);
        push_length(length - zeros, &mut key);
        key.extend_from_slice(&number[zeros..]);
        rest = behind;
    }
    key
}

/// A length as digits that sort by it: 1 to 9 is one digit, each nine more is a 9 before it, up to 27.
fn push_length(length: usize, key: &mut Vec<u8>) {
    let longer = length - 1;
    if longer < 27 {
        key.extend(std::iter::repeat_n(b'9', longer / 9));
        key.push(b'0' + (longer % 9) as u8);
        return;
    }
    let digits = longer.to_string();
    key.extend_from_slice(format!("9990{}{digits}", digits.len() - 1).as_bytes());
}
