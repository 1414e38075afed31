//! Functions of texts.

mod digits;

use super::super::Function;
use super::Result;
use super::calls::Arguments;
use super::convert;
use crate::ErrorKind;
use md5::{Digest, Md5};
use sha1::Sha1;
use types::collation::{char_count, first_chars};
use types::{Collation, ValueRef};

/// `@@max_allowed_packet`: no function makes a longer text.
const BYTES_MAX: usize = 16 << 20;

/// Takes an argument's text, or makes the result NULL.
macro_rules! text {
    ($arguments:expr, $index:expr) => {
        match $arguments.text($index)? {
            Some(text) => text,
            None => return Ok(ValueRef::Null),
        }
    };
}

/// Takes an argument's integer, or makes the result NULL.
macro_rules! int {
    ($arguments:expr, $index:expr) => {
        match $arguments.int($index)? {
            Some(number) => number,
            None => return Ok(ValueRef::Null),
        }
    };
}

pub(super) fn call<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    use Function as F;
    let collation = arguments.call.collation;
    Ok(match arguments.call.function {
        F::Concat => concat(arguments)?,
        F::ConcatWs => concat_ws(arguments)?,
        F::Substring => {
            let (text, from) = (text!(arguments, 0), int!(arguments, 1));
            let length = if arguments.len() == 3 { int!(arguments, 2) } else { i64::MAX };
            arguments.give_borrowed(substring(text, from, length, arguments.is_binary()))
        }
        F::SubstringIndex => {
            let (text, delimiter, count) = (text!(arguments, 0), text!(arguments, 1), int!(arguments, 2));
            arguments.give_borrowed(substring_index(text, delimiter, count))
        }
        F::Left => {
            let (text, count) = (text!(arguments, 0), int!(arguments, 1));
            arguments.give_borrowed(substring(text, 1, count, arguments.is_binary()))
        }
        F::Right => {
            let (text, count) = (text!(arguments, 0), int!(arguments, 1));
            let length = length_of(text, arguments.is_binary()) as i64;
            let skipped = (length - count.max(0)).max(0);
            arguments.give_borrowed(substring(text, skipped + 1, count, arguments.is_binary()))
        }
        F::Length => ValueRef::Int(text!(arguments, 0).len() as i64),
        F::BitLength => ValueRef::Int(text!(arguments, 0).len() as i64 * 8),
        F::CharLength => ValueRef::Int(length_of(text!(arguments, 0), arguments.is_binary()) as i64),
        F::Upper | F::Lower => {
            let text = text!(arguments, 0);
            if arguments.is_binary() {
                return Ok(arguments.give_borrowed(text));
            }
            let upper = arguments.call.function == F::Upper;
            arguments.give(&fold(text, upper))
        }
        F::Trim | F::LeftTrim | F::RightTrim => {
            let text = text!(arguments, 0);
            let part = if arguments.len() == 2 { text!(arguments, 1) } else { b" " };
            arguments.give_borrowed(trim(text, part, arguments.call.function))
        }
        F::Replace => {
            let (text, from, to) = (text!(arguments, 0), text!(arguments, 1), text!(arguments, 2));
            match replace(text, from, to) {
                Some(replaced) => arguments.give(&replaced),
                None => arguments.give_borrowed(text),
            }
        }
        F::Insert => {
            let (text, from) = (text!(arguments, 0), int!(arguments, 1));
            let (length, new) = (int!(arguments, 2), text!(arguments, 3));
            let binary = arguments.is_binary();
            let total = length_of(text, binary) as i64;
            if from < 1 || from > total {
                return Ok(arguments.give_borrowed(text));
            }
            let head = substring(text, 1, from - 1, binary);
            let length = if length < 0 { total } else { length };
            let tail = substring(text, from.saturating_add(length), i64::MAX, binary);
            arguments.give(&[head, new, tail].concat())
        }
        F::LeftPad | F::RightPad => {
            let (text, length) = (text!(arguments, 0), int!(arguments, 1));
            let padding = if arguments.len() == 3 { text!(arguments, 2) } else { b" " };
            pad(arguments, text, length, padding)
        }
        F::Repeat => {
            let (text, count) = (text!(arguments, 0), int!(arguments, 1).max(0) as usize);
            match text.len().checked_mul(count) {
                Some(bytes) if bytes <= BYTES_MAX => arguments.give(&text.repeat(count)),
                _ => too_long(arguments),
            }
        }
        F::Space => match int!(arguments, 0).max(0) as usize {
            count if count <= BYTES_MAX => arguments.give(&vec![b' '; count]),
            _ => too_long(arguments),
        },
        F::Reverse => {
            let text = text!(arguments, 0);
            arguments.give(&reverse(text, arguments.is_binary()))
        }
        F::Instr => {
            let (text, part) = (text!(arguments, 0), text!(arguments, 1));
            ValueRef::Int(locate(part, text, 1, collation))
        }
        F::Locate => {
            let (part, text) = (text!(arguments, 0), text!(arguments, 1));
            let from = if arguments.len() == 3 { int!(arguments, 2) } else { 1 };
            // Not even nothing is found behind the end.
            let behind = from > 1 && from as usize > length_of(text, arguments.is_binary());
            ValueRef::Int(if behind { 0 } else { locate(part, text, from, collation) })
        }
        F::FindInSet => {
            let (wanted, set) = (text!(arguments, 0), text!(arguments, 1));
            let found = if set.is_empty() {
                None
            } else {
                set.split(|byte| *byte == b',').position(|part| collation.compare(part, wanted).is_eq())
            };
            ValueRef::Int(found.map_or(0, |position| position as i64 + 1))
        }
        F::Hex => {
            let value = arguments.value(0)?;
            match value {
                ValueRef::Null => ValueRef::Null,
                ValueRef::Int(_)
                | ValueRef::UInt(_)
                | ValueRef::Decimal(_)
                | ValueRef::Float(_)
                | ValueRef::Double(_) => {
                    let number = convert::to_int(&value, arguments.context).unwrap_or(0);
                    arguments.give(format!("{:X}", number as u64).as_bytes())
                }
                _ => arguments.give(hex(text!(arguments, 0)).to_uppercase().as_bytes()),
            }
        }
        F::Unhex => match unhex(text!(arguments, 0)) {
            Some(bytes) => ValueRef::Binary(arguments.context.arena.alloc_slice_copy(&bytes)),
            None => ValueRef::Null,
        },
        F::Ascii => ValueRef::Int(text!(arguments, 0).first().map_or(0, |byte| *byte as i64)),
        F::Ord => {
            let first = first_chars(text!(arguments, 0), 1);
            let first = if first.len() > 4 { &first[..1] } else { first };
            ValueRef::Int(first.iter().fold(0, |sum, byte| sum << 8 | *byte as i64))
        }
        F::Char => {
            let mut bytes = Vec::new();
            for index in 0..arguments.len() {
                if let Some(number) = arguments.int(index)? {
                    let be = (number as u32).to_be_bytes();
                    let start = be.iter().position(|byte| *byte != 0).unwrap_or(3);
                    bytes.extend_from_slice(&be[start..]);
                }
            }
            ValueRef::Binary(arguments.context.arena.alloc_slice_copy(&bytes))
        }
        F::Bin | F::Oct | F::Conv => digits::conv(arguments)?,
        F::Format => digits::format(arguments)?,
        F::Quote => match arguments.text(0)? {
            Some(text) => arguments.give(&quote(text)),
            None => arguments.give(b"NULL"),
        },
        F::Md5 => arguments.give(hex(&Md5::digest(text!(arguments, 0))).as_bytes()),
        F::Sha1 => arguments.give(hex(&Sha1::digest(text!(arguments, 0))).as_bytes()),
        _ => ValueRef::UInt(base::checksum::crc32(text!(arguments, 0)) as u64),
    })
}

/// NULL with warning 1301: the result would not fit a packet.
fn too_long<'a>(arguments: &Arguments<'a, '_>) -> ValueRef<'a> {
    let function = arguments.call.function.name();
    let message =
        format!("Result of {function}() was larger than max_allowed_packet ({BYTES_MAX}) - truncated");
    arguments.context.environment.warn(ErrorKind::ResultLargerThanPacket, message);
    ValueRef::Null
}

fn concat<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let mut joined = Vec::new();
    for index in 0..arguments.len() {
        joined.extend_from_slice(text!(arguments, index));
        if joined.len() > BYTES_MAX {
            return Ok(too_long(arguments));
        }
    }
    Ok(arguments.give(&joined))
}

fn concat_ws<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let separator = text!(arguments, 0);
    let mut joined = Vec::new();
    let mut first = true;
    for index in 1..arguments.len() {
        if let Some(text) = arguments.text(index)? {
            if !first {
                joined.extend_from_slice(separator);
            }
            joined.extend_from_slice(text);
            first = false;
        }
        if joined.len() > BYTES_MAX {
            return Ok(too_long(arguments));
        }
    }
    Ok(arguments.give(&joined))
}

/// Characters, or bytes of a binary.
fn length_of(text: &[u8], is_binary: bool) -> usize {
    if is_binary { text.len() } else { char_count(text) }
}

/// `from` counts from 1, or from the end if negative.
fn substring(text: &[u8], from: i64, length: i64, is_binary: bool) -> &[u8] {
    if from == 0 || length <= 0 {
        return &[];
    }
    let skipped = if from > 0 { from - 1 } else { length_of(text, is_binary) as i64 + from };
    if skipped < 0 {
        return &[];
    }
    let (skipped, length) = (skipped as usize, usize::try_from(length).unwrap_or(usize::MAX));
    if is_binary {
        let start = skipped.min(text.len());
        return &text[start..start.saturating_add(length).min(text.len())];
    }
    let rest = &text[first_chars(text, skipped).len()..];
    first_chars(rest, length)
}

/// Where `part` begins in `text`, byte by byte.
fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len().max(1)).position(|window| window == part)
}

fn substring_index<'t>(text: &'t [u8], delimiter: &[u8], count: i64) -> &'t [u8] {
    if delimiter.is_empty() || count == 0 {
        return &[];
    }
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(found) = find(&text[at..], delimiter) {
        places.push(at + found);
        at += found + delimiter.len();
    }
    let wanted = count.unsigned_abs() as usize;
    if wanted > places.len() {
        return text;
    }
    if count > 0 {
        &text[..places[wanted - 1]]
    } else {
        &text[places[places.len() - wanted] + delimiter.len()..]
    }
}

/// Upper or lower case, character by character: what becomes several characters stays.
fn fold(text: &[u8], upper: bool) -> Vec<u8> {
    if text.is_ascii() {
        return if upper { text.to_ascii_uppercase() } else { text.to_ascii_lowercase() };
    }
    let Ok(text) = std::str::from_utf8(text) else { return text.to_vec() };
    let single =
        |character: char, mut folded: Box<dyn Iterator<Item = char>>| match (folded.next(), folded.next()) {
            (Some(folded), None) => folded,
            _ => character,
        };
    let folded: String = text
        .chars()
        .map(|character| match upper {
            true => single(character, Box::new(character.to_uppercase())),
            false => single(character, Box::new(character.to_lowercase())),
        })
        .collect();
    folded.into_bytes()
}

fn trim<'t>(mut text: &'t [u8], part: &[u8], function: Function) -> &'t [u8] {
    if part.is_empty() {
        return text;
    }
    if function != Function::RightTrim {
        while let Some(rest) = text.strip_prefix(part) {
            text = rest;
        }
    }
    if function != Function::LeftTrim {
        while let Some(rest) = text.strip_suffix(part) {
            text = rest;
        }
    }
    text
}

/// `None` if nothing is to be replaced.
fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    if from.is_empty() {
        return None;
    }
    let mut replaced = Vec::new();
    let mut rest = text;
    while let Some(found) = find(rest, from) {
        replaced.extend_from_slice(&rest[..found]);
        replaced.extend_from_slice(to);
        rest = &rest[found + from.len()..];
    }
    if rest.len() == text.len() {
        return None;
    }
    replaced.extend_from_slice(rest);
    Some(replaced)
}

fn pad<'a>(arguments: &Arguments<'a, '_>, text: &'a [u8], length: i64, padding: &[u8]) -> ValueRef<'a> {
    let binary = arguments.is_binary();
    let Ok(length) = usize::try_from(length) else { return ValueRef::Null };
    let own = length_of(text, binary);
    if own >= length {
        return arguments.give_borrowed(substring(text, 1, length as i64, binary));
    }
    if length > BYTES_MAX / 4 {
        return too_long(arguments);
    }
    let unit = length_of(padding, binary);
    if unit == 0 {
        return ValueRef::Null;
    }
    let missing = length - own;
    let mut filler = padding.repeat(missing / unit);
    filler.extend_from_slice(substring(padding, 1, (missing % unit) as i64, binary));
    match arguments.call.function {
        Function::LeftPad => arguments.give(&[&filler, text].concat()),
        _ => arguments.give(&[text, &filler].concat()),
    }
}

fn reverse(text: &[u8], is_binary: bool) -> Vec<u8> {
    if is_binary || text.is_ascii() {
        return text.iter().rev().copied().collect();
    }
    String::from_utf8_lossy(text).chars().rev().collect::<String>().into_bytes()
}

/// The position of `part`, counted in characters from 1; 0 if it is not there.
fn locate(part: &[u8], text: &[u8], from: i64, collation: Collation) -> i64 {
    if from < 1 {
        return 0;
    }
    let binary = collation == Collation::Binary;
    let skipped = (from - 1) as usize;
    if skipped > length_of(text, binary) {
        return 0;
    }
    let mut rest = substring(text, from, i64::MAX, binary);
    let part: Vec<u32> = collation.weights(part).collect();
    let mut position = from;
    loop {
        let mut weights = collation.weights(rest);
        if part.iter().all(|weight| weights.next() == Some(*weight)) {
            return position;
        }
        if rest.is_empty() {
            return 0;
        }
        rest = &rest[if binary { 1 } else { first_chars(rest, 1).len().max(1) }.min(rest.len())..];
        position += 1;
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
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
