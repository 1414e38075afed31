//! Numbers and bytes as texts in other forms, and digests.

use super::MANY;
use super::arguments::{Arguments, Result, int};
use super::secrets::{checksum, crc32};
use super::text::too_long;
use super::time::named_locale;
use super::typing::int_of;
use super::widths::{grouped_chars, hexadecimal_chars};
use crate::ErrorKind;
use crate::expr::evaluate::convert::{self, Number};
use crate::expr::result_type::Typed;
use crate::locales::Locale;
use md5::{Digest, Md5};
use sha1::Sha1;
use types::collation::first_chars;
use types::{Collation, ValueRef};

functions! {
    "Encodings and Digests";

    HEX {
        name: "hex",
        arguments: "value",
        arity: 1..=1,
        typing: |t| Ok(t.plain(hexadecimal_chars(t), t.nullable()).without_decimals()),
        evaluate: hex_of,
        help: "Gives a number in hexadecimal digits, or each byte of a text as two digits.",
        example: "HEX(255)" => "FF",
    }
    UNHEX {
        name: "unhex",
        arguments: "digits",
        arity: 1..=1,
        typing: |t| Ok(Typed::text(t.bytes(0).div_ceil(2), Collation::Binary, true).without_decimals()),
        evaluate: |a| Ok(a.give_binary(&or_null!(unhex(or_null!(a.text(0)?))))),
        help: "Gives the bytes that pairs of hexadecimal digits stand for, or NULL if there are other characters.",
        example: "UNHEX('4C61')" => "La",
    }
    ASCII {
        name: "ascii",
        arguments: "text",
        arity: 1..=1,
        typing: int_of::<3>,
        evaluate: |a| int(or_null!(a.text(0)?).first().map_or(0, |byte| *byte as i64)),
        help: "Gives the first byte of a text as a number, or 0 if the text is empty.",
        example: "ASCII('A')" => "65",
    }
    ORD {
        name: "ord",
        arguments: "text",
        arity: 1..=1,
        typing: int_of::<7>,
        evaluate: |a| {
            let first = first_chars(or_null!(a.text(0)?), 1);
            let first = if first.len() > 4 { &first[..1] } else { first };
            int(first.iter().fold(0, |sum, byte| sum << 8 | *byte as i64))
        },
        help: "Gives the bytes of the first character as one number.",
        example: "ORD('ä')" => "50084",
    }
    CHAR {
        name: "char",
        arguments: "number, ...",
        arity: 1..=MANY,
        typing: |t| Ok(Typed::text(t.types.len() as u32 * 4, Collation::Binary, true)),
        evaluate: |a| {
            let mut bytes = Vec::new();
            for index in 0..a.len() {
                if let Some(number) = a.int(index)? {
                    let be = (number as u32).to_be_bytes();
                    let start = be.iter().position(|byte| *byte != 0).unwrap_or(3);
                    bytes.extend_from_slice(&be[start..]);
                }
            }
            Ok(a.give_binary(&bytes))
        },
        help: "Gives the bytes that the numbers have. NULL is left out.",
        example: "CHAR(77, 121)" => "My",
    }
    BIN {
        name: "bin",
        arguments: "number",
        arity: 1..=1,
        typing: |t| Ok(t.plain(65, true)),
        evaluate: |a| in_base(a, 10, 2),
        help: "Gives a number in binary digits.",
        example: "BIN(12)" => "1100",
    }
    OCT {
        name: "oct",
        arguments: "number",
        arity: 1..=1,
        typing: |t| Ok(t.plain(65, true)),
        evaluate: |a| in_base(a, 10, 8),
        help: "Gives a number in octal digits.",
        example: "OCT(12)" => "14",
    }
    CONV {
        name: "conv",
        arguments: "number, from, to",
        arity: 3..=3,
        typing: |t| Ok(t.plain(65, true)),
        evaluate: |a| match (a.int(1)?, a.int(2)?) {
            (Some(from), Some(to)) => in_base(a, from, to),
            (None, _) | (_, None) => Ok(ValueRef::Null),
        },
        help: "Converts digits from one base to another, from 2 to 36. A negative base to convert to means that the \
               number has a sign.",
        example: "CONV('ff', 16, 10)" => "255",
    }
    QUOTE {
        name: "quote",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.text(t.chars(0).saturating_mul(2).saturating_add(2), t.nullable())),
        evaluate: |a| Ok(match a.text(0)? {
            Some(text) => {
                let quoted = quote(text);
                if a.is_too_long(quoted.len()) { too_long(a) } else { a.give(&quoted) }
            }
            None => a.give(b"NULL"),
        }),
        help: "Gives a text as a literal of SQL, and the word NULL for NULL.",
        example: "QUOTE('it''s')" => "'it\\'s'",
    }
    FORMAT {
        name: "format",
        arguments: "number, digits[, locale]",
        arity: 2..=3,
        typing: |t| Ok(t.plain(grouped_chars(t), t.nullable())),
        evaluate: format,
        help: "Gives a number with so many digits after the point, and with commas between thousands, or as people \
               of a locale write it: 'de_DE'.",
        example: "FORMAT(12345.678, 1)" => "12,345.7",
    }
    TO_BASE64 {
        name: "to_base64",
        arguments: "text",
        arity: 1..=1,
        typing: |t| {
            let digits = t.chars(0).saturating_mul(4).div_ceil(3).saturating_mul(4);
            Ok(t.plain(digits.saturating_add(digits / BASE64_LINE as u32), true))
        },
        evaluate: |a| {
            let bytes = or_null!(a.text(0)?);
            Ok(if a.is_too_long(bytes.len() * 2) { too_long(a) } else { a.give(&to_base64(bytes)) })
        },
        help: "Gives the bytes of a text in the base-64 digits of RFC 4648, in lines of 76 characters.",
        example: "TO_BASE64('abc')" => "YWJj",
    }
    FROM_BASE64 {
        name: "from_base64",
        arguments: "digits",
        arity: 1..=1,
        typing: |t| Ok(Typed::text(t.bytes(0).div_ceil(4).saturating_mul(3), Collation::Binary, true)),
        evaluate: |a| match from_base64(or_null!(a.text(0)?)) {
            Ok(bytes) => Ok(a.give_binary(&bytes)),
            Err(place) => {
                let message = format!("Bad base64 data as position {place}");
                a.context.environment.warn(ErrorKind::BadBase64, message);
                Ok(ValueRef::Null)
            }
        },
        help: "Gives the bytes that base-64 digits stand for. White space between digits does not count.",
        example: "FROM_BASE64('YWJj')" => "abc",
    }
    MD5 {
        name: "md5",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.plain(32, true)),
        evaluate: |a| Ok(a.give(hex(&Md5::digest(or_null!(a.text(0)?))).as_bytes())),
        help: "Gives the MD5 digest of a text in 32 hexadecimal digits.",
        example: "MD5('a')" => "0cc175b9c0f1b6a831c399e269772661",
    }
    SHA1 {
        name: "sha1",
        aliases: ["sha"],
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.plain(40, true)),
        evaluate: |a| Ok(a.give(hex(&Sha1::digest(or_null!(a.text(0)?))).as_bytes())),
        help: "Gives the SHA-1 digest of a text in 40 hexadecimal digits.",
        example: "SHA1('a')" => "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8",
    }
    CRC32 {
        name: "crc32",
        arguments: "[start, ]text",
        arity: 1..=2,
        typing: |t| Ok(Typed::int(4, true, t.nullable())),
        evaluate: |a| checksum(a, crc32),
        help: "Gives the CRC-32 checksum of a text. `start` is the checksum of what stands before it.",
        example: "CRC32('a')" => "3904355907",
    }
}

/// Characters of a line of base-64 digits.
const BASE64_LINE: usize = 76;

fn to_base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for (index, chunk) in bytes.chunks(3).enumerate() {
        if index > 0 && (index * 4).is_multiple_of(BASE64_LINE) {
            digits.push(b'\n');
        }
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | *byte as u32) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            // Digits that no byte reaches are padding.
            digits.push(if place <= chunk.len() { digit } else { b'=' });
        }
    }
    digits
}

/// The bytes of base-64 digits, or the place of the first that is wrong.
fn from_base64(text: &[u8]) -> std::result::Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    // Four digits make three bytes.
    let (mut bits, mut digits, mut padding) = (0u32, 0, 0);
    for (place, byte) in text.iter().enumerate().filter(|(_, byte)| !is_space(byte)) {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if digits >= 2 => 0,
            _ => return Err(place),
        };
        let is_complete = padding > 0 && digits == 0;
        if is_complete || padding > 0 && *byte != b'=' {
            return Err(place);
        }
        padding += usize::from(*byte == b'=');
        bits = bits << 6 | u32::from(digit);
        digits += 1;
        if digits == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (bits, digits) = (0, 0);
        }
    }
    if digits == 0 { Ok(bytes) } else { Err(text.len()) }
}

fn hex_of<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let value = arguments.value(0)?;
    let number = match value {
        ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Decimal(_) => {
            Some(convert::to_int(&value, arguments.context).unwrap_or(0) as u64)
        }
        ValueRef::Float(number) => Some(nearest_bits(number.into())),
        ValueRef::Double(number) => Some(nearest_bits(number)),
        _ => None,
    };
    if let Some(number) = number {
        return Ok(arguments.give(format!("{number:X}").as_bytes()));
    }
    let bytes = or_null!(convert::to_text(&value, arguments.context));
    if arguments.is_too_long(bytes.len() * 2) {
        return Ok(too_long(arguments));
    }
    Ok(arguments.give(hex(bytes).to_uppercase().as_bytes()))
}

/// The bits of the nearest whole number; halves go away from nought. All bits if it has more than 64.
fn nearest_bits(number: f64) -> u64 {
    if number <= i64::MIN as f64 || number >= u64::MAX as f64 {
        u64::MAX
    } else if number > 0.0 {
        (number + 0.5) as u64
    } else {
        (number - 0.5) as i64 as u64
    }
}

/// The digits of the first argument in another base.
fn in_base<'a>(arguments: &Arguments<'a, '_>, from: i64, to: i64) -> Result<ValueRef<'a>> {
    let valid = |base: i64| (2..=36).contains(&base.unsigned_abs());
    // The bits of a BIT column are a number here.
    let text = or_null!(convert::to_text(&arguments.value(0)?, arguments.context));
    if text.is_empty() || !valid(from) || !valid(to) {
        return Ok(ValueRef::Null);
    }
    let text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let base = from.unsigned_abs() as u32;
    let magnitude = digits
        .iter()
        .map_while(|byte| (*byte as char).to_digit(base))
        .fold(0u64, |sum, digit| sum.saturating_mul(base as u64).saturating_add(digit as u64));
    let number = if negative { magnitude.wrapping_neg() } else { magnitude };
    let (sign, mut rest) = match to < 0 && (number as i64) < 0 {
        true => ("-", (number as i64).unsigned_abs()),
        false => ("", number),
    };
    let base = to.unsigned_abs();
    let mut reversed = Vec::new();
    loop {
        let digit = char::from_digit((rest % base) as u32, base as u32).unwrap_or('0');
        reversed.push(digit.to_ascii_uppercase());
        rest /= base;
        if rest == 0 {
            break;
        }
    }
    let digits: String = reversed.into_iter().rev().collect();
    Ok(arguments.give(format!("{sign}{digits}").as_bytes()))
}

fn format<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    const DIGITS_MAX: i64 = 38;
    let locale = if arguments.len() > 2 { named_locale(arguments, 2)? } else { Locale::at(0) };
    let digits = or_null!(arguments.int(1)?).clamp(0, DIGITS_MAX) as u8;
    let text = match or_null!(arguments.number(0)?) {
        Number::Double(number) => format!("{number:.*}", digits as usize),
        number => {
            let number = number.to_decimal();
            let scale = digits.min(types::decimal::SCALE_MAX);
            match number.with_scale(scale) {
                Some(scaled) => format!("{scaled}{}", "0".repeat(usize::from(digits - scale))),
                None => number.to_string(),
            }
        }
    };
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        // The last group has three digits.
        let behind = whole.len() - index;
        let begins_group = behind == 3 || behind > 3 && (behind - 3).is_multiple_of(locale.group.max(1));
        if let Some(separator) = locale.separator
            && index > 0
            && begins_group
        {
            grouped.push(separator);
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push(locale.point);
        grouped.push_str(fraction);
    }
    Ok(arguments.give(grouped.as_bytes()))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| (*byte as char).to_digit(16).map(|digit| digit as u8);
    let (odd, pairs) = text.split_at(text.len() % 2);
    let mut bytes = Vec::with_capacity(text.len().div_ceil(2));
    if let Some(first) = odd.first() {
        bytes.push(digit(first)?);
    }
    for pair in pairs.chunks(2) {
        bytes.push(digit(&pair[0])? << 4 | digit(&pair[1])?);
    }
    Some(bytes)
}

fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' | b'\\' => quoted.extend([b'\\', *byte]),
            0 => quoted.extend(b"\\0"),
            26 => quoted.extend(b"\\Z"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}
