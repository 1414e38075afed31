//! Functions of texts.

use super::MANY;
use super::arguments::{Arguments, Result, int};
use super::typing::{CHARS_MAX, int_of, like_first_text};
use super::widths::{end_chars, padded_type, part_chars, replaced_chars};
use crate::ErrorKind;
use crate::expr::Patience;
use types::collation::{char_count, first_chars};
use types::{Collation, ValueRef};

functions! {
    "Text Functions";

    CONCAT {
        name: "concat",
        arguments: "text, ...",
        arity: 1..=MANY,
        typing: |t| Ok(t.text(t.chars_sum(), t.nullable())),
        evaluate: concat,
        help: "Joins texts. Gives NULL if one of them is NULL.",
        example: "CONCAT('My', 'SQL')" => "MySQL",
    }
    CONCAT_WS {
        name: "concat_ws",
        arguments: "separator, text, ...",
        arity: 2..=MANY,
        typing: |t| {
            let separators = t.chars(0).saturating_mul(t.types.len() as u32 - 2);
            let texts = t.chars_sum().saturating_sub(t.chars(0));
            Ok(t.text(texts.saturating_add(separators), t.types[0].nullable()))
        },
        evaluate: concat_ws,
        help: "Joins the texts that are not NULL, with the separator between them.",
        example: "CONCAT_WS(',', 'a', NULL, 'b')" => "a,b",
    }
    SUBSTRING {
        name: "substring",
        aliases: ["substr", "mid"],
        arguments: "text, from[, length]",
        arity: 2..=3,
        typing: |t| Ok(t.text(part_chars(t), t.nullable())),
        evaluate: |a| {
            let (text, from) = (or_null!(a.text(0)?), or_null!(a.int(1)?));
            let length = if a.len() == 3 { or_null!(a.int(2)?) } else { i64::MAX };
            Ok(a.give_borrowed(substring(text, from, length, a.is_binary())))
        },
        help: "Gives the part of a text that starts at a character, counted from 1, or from the end if negative. \
               SUBSTRING(text FROM n FOR length) is the same.",
        example: "SUBSTRING('Latchwork', 6, 2)" => "wo",
    }
    SUBSTRING_INDEX {
        name: "substring_index",
        arguments: "text, delimiter, count",
        arity: 3..=3,
        typing: like_first_text,
        evaluate: |a| {
            let (text, delimiter) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            let count = or_null!(a.int(2)?);
            let mut patience = Patience::new(a.context.environment);
            Ok(a.give_borrowed(substring_index(text, delimiter, count, &mut patience)?))
        },
        help: "Gives what lies before so many occurrences of the delimiter, or behind so many from the end if the \
               count is negative.",
        example: "SUBSTRING_INDEX('a.b.c', '.', 2)" => "a.b",
    }
    LEFT {
        name: "left",
        arguments: "text, count",
        arity: 2..=2,
        typing: |t| Ok(t.text(end_chars(t), t.nullable())),
        evaluate: left,
        help: "Gives the first characters of a text.",
        example: "LEFT('Latchwork', 5)" => "Latch",
    }
    RIGHT {
        name: "right",
        arguments: "text, count",
        arity: 2..=2,
        typing: |t| Ok(t.text(end_chars(t), t.nullable())),
        evaluate: right,
        help: "Gives the last characters of a text.",
        example: "RIGHT('Latchwork', 4)" => "work",
    }
    LENGTH {
        name: "length",
        aliases: ["octet_length"],
        arguments: "text",
        arity: 1..=1,
        typing: int_of::<10>,
        evaluate: |a| int(or_null!(a.text(0)?).len() as i64),
        help: "Gives the length of a text in bytes.",
        example: "LENGTH('abc')" => "3",
    }
    CHAR_LENGTH {
        name: "char_length",
        aliases: ["character_length"],
        arguments: "text",
        arity: 1..=1,
        typing: int_of::<10>,
        evaluate: |a| int(length_of(or_null!(a.text(0)?), a.is_binary()) as i64),
        help: "Gives the length of a text in characters.",
        example: "CHAR_LENGTH('äöü')" => "3",
    }
    BIT_LENGTH {
        name: "bit_length",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.int(8).with_display(11)),
        evaluate: |a| int(or_null!(a.text(0)?).len() as i64 * 8),
        help: "Gives the length of a text in bits.",
        example: "BIT_LENGTH('ab')" => "16",
    }
    UPPER {
        name: "upper",
        aliases: ["ucase"],
        arguments: "text",
        arity: 1..=1,
        typing: like_first_text,
        evaluate: |a| in_case(a, true),
        help: "Gives a text in capital letters.",
        example: "UPPER('abc')" => "ABC",
    }
    LOWER {
        name: "lower",
        aliases: ["lcase"],
        arguments: "text",
        arity: 1..=1,
        typing: like_first_text,
        evaluate: |a| in_case(a, false),
        help: "Gives a text in small letters.",
        example: "LOWER('ABC')" => "abc",
    }
    TRIM {
        name: "trim",
        arguments: "text[, part]",
        arity: 1..=2,
        typing: like_first_text,
        evaluate: |a| trim(a, Ends::Both),
        help: "Removes spaces at both ends of a text. TRIM(BOTH part FROM text) removes another part; LEADING or \
               TRAILING in place of BOTH removes it at one end.",
        example: "TRIM('  a  ')" => "a",
    }
    LEFT_TRIM {
        name: "ltrim",
        arguments: "text[, part]",
        arity: 1..=2,
        typing: like_first_text,
        evaluate: |a| trim(a, Ends::Left),
        help: "Removes spaces, or another part, at the start of a text.",
        example: "LTRIM('  a')" => "a",
    }
    RIGHT_TRIM {
        name: "rtrim",
        arguments: "text[, part]",
        arity: 1..=2,
        typing: like_first_text,
        evaluate: |a| trim(a, Ends::Right),
        help: "Removes spaces, or another part, at the end of a text.",
        example: "RTRIM('a  ')" => "a",
    }
    REPLACE {
        name: "replace",
        arguments: "text, from, to",
        arity: 3..=3,
        typing: |t| Ok(t.text(replaced_chars(t), t.nullable())),
        evaluate: |a| {
            let (text, from) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            // Nothing is replaced then, not even by NULL.
            if from.is_empty() {
                return Ok(a.give_borrowed(text));
            }
            let to = or_null!(a.text(2)?);
            let mut patience = Patience::new(a.context.environment);
            Ok(match replace(text, from, to, a.bytes_max(), &mut patience)? {
                Replaced::Nothing => a.give_borrowed(text),
                Replaced::Text(replaced) => a.give(&replaced),
                Replaced::TooLong => too_long(a),
            })
        },
        help: "Replaces each occurrence of one text by another. Capital and small letters differ.",
        example: "REPLACE('abcabc', 'b', 'x')" => "axcaxc",
    }
    INSERT {
        name: "insert",
        arguments: "text, from, length, new",
        arity: 4..=4,
        typing: |t| Ok(t.text(t.chars(0).saturating_add(t.chars(3)), t.nullable())),
        evaluate: insert,
        help: "Replaces so many characters, starting at one counted from 1, by a new text.",
        example: "INSERT('Quadratic', 3, 4, 'What')" => "QuWhattic",
    }
    LEFT_PAD {
        name: "lpad",
        arguments: "text, length[, padding]",
        arity: 2..=3,
        typing: padded_type,
        evaluate: |a| pad(a, Side::Left),
        help: "Fills a text at its start with spaces, or with the padding, to a length. A longer text is cut.",
        example: "LPAD('7', 3, '0')" => "007",
    }
    RIGHT_PAD {
        name: "rpad",
        arguments: "text, length[, padding]",
        arity: 2..=3,
        typing: padded_type,
        evaluate: |a| pad(a, Side::Right),
        help: "Fills a text at its end with spaces, or with the padding, to a length. A longer text is cut.",
        example: "RPAD('7', 3, '0')" => "700",
    }
    REPEAT {
        name: "repeat",
        arguments: "text, count",
        arity: 2..=2,
        typing: |t| {
            let count = t.constant_count(1);
            let chars = count.map_or(CHARS_MAX, |count| t.chars(0).saturating_mul(count));
            Ok(t.text(chars, t.nullable()))
        },
        evaluate: |a| {
            let (text, count) = (or_null!(a.text(0)?), or_null!(a.int(1)?).max(0) as usize);
            Ok(match text.len().checked_mul(count) {
                Some(bytes) if !a.is_too_long(bytes) => a.give(&text.repeat(count)),
                Some(_) | None => too_long(a),
            })
        },
        help: "Gives a text so many times in a row.",
        example: "REPEAT('ab', 3)" => "ababab",
    }
    SPACE {
        name: "space",
        arguments: "count",
        arity: 1..=1,
        typing: |t| {
            let chars = t.constant_count(0).unwrap_or(CHARS_MAX);
            Ok(t.plain(chars.min(CHARS_MAX), t.nullable()))
        },
        evaluate: |a| {
            let count = or_null!(a.int(0)?).max(0) as usize;
            Ok(if a.is_too_long(count) { too_long(a) } else { a.give(&vec![b' '; count]) })
        },
        help: "Gives so many spaces.",
        example: "CONCAT('a', SPACE(2), 'b')" => "a  b",
    }
    REVERSE {
        name: "reverse",
        arguments: "text",
        arity: 1..=1,
        typing: like_first_text,
        evaluate: |a| Ok(a.give(&reverse(or_null!(a.text(0)?), a.is_binary()))),
        help: "Gives the characters of a text in the opposite order.",
        example: "REVERSE('abc')" => "cba",
    }
    INSTR {
        name: "instr",
        arguments: "text, part",
        arity: 2..=2,
        typing: int_of::<11>,
        evaluate: |a| {
            let (text, part) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            int(locate(part, text, 1, a)?)
        },
        help: "Gives the position of a part in a text, counted from 1, or 0 if it is not there.",
        example: "INSTR('Latchwork', 'work')" => "6",
    }
    LOCATE {
        name: "locate",
        aliases: ["position"],
        arguments: "part, text[, from]",
        arity: 2..=3,
        typing: int_of::<11>,
        evaluate: |a| {
            let (part, text) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            let from = if a.len() == 3 { or_null!(a.int(2)?) } else { 1 };
            // Behind the end not even an empty part is found.
            let behind = from > 1 && from as usize > length_of(text, a.is_binary());
            int(if behind { 0 } else { locate(part, text, from, a)? })
        },
        help: "Gives the position of a part in a text, counted from 1, or 0 if it is not there. The search starts at \
               `from`. POSITION(part IN text) is the same.",
        example: "LOCATE('o', 'footwork', 3)" => "3",
    }
    FIND_IN_SET {
        name: "find_in_set",
        arguments: "text, list",
        arity: 2..=2,
        typing: int_of::<3>,
        evaluate: |a| {
            let (wanted, set) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            if let Some(place) = a.place_in_set(wanted)? {
                return int(place);
            }
            if set.is_empty() {
                return int(0);
            }
            let mut parts = set.split(|byte| *byte == b',');
            // Spaces at the end count.
            let collation = a.call.collation;
            let found = parts.position(|part| collation.is_same(part, wanted));
            int(found.map_or(0, |position| position as i64 + 1))
        },
        help: "Gives the place of a text in a list with commas, counted from 1, or 0 if it is not there.",
        example: "FIND_IN_SET('b', 'a,b,c')" => "2",
    }
}

/// NULL with warning 1301: the result would not fit a packet.
pub(super) fn too_long<'a>(arguments: &Arguments<'a, '_>) -> ValueRef<'a> {
    let (function, bytes_max) = (arguments.name(), arguments.bytes_max());
    let message =
        format!("Result of {function}() was larger than max_allowed_packet ({bytes_max}) - truncated");
    arguments.context.environment.warn(ErrorKind::ResultLargerThanPacket, message);
    ValueRef::Null
}

fn concat<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let mut joined = Vec::new();
    for index in 0..arguments.len() {
        joined.extend_from_slice(or_null!(arguments.text(index)?));
        if arguments.is_too_long(joined.len()) {
            return Ok(too_long(arguments));
        }
    }
    Ok(arguments.give(&joined))
}

fn concat_ws<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let separator = or_null!(arguments.text(0)?);
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
        if arguments.is_too_long(joined.len()) {
            return Ok(too_long(arguments));
        }
    }
    Ok(arguments.give(&joined))
}

/// Characters, or bytes of a binary.
pub(super) fn length_of(text: &[u8], is_binary: bool) -> usize {
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

fn substring_index<'t>(
    text: &'t [u8],
    delimiter: &[u8],
    count: i64,
    patience: &mut Patience<'_>,
) -> Result<&'t [u8]> {
    if delimiter.is_empty() || count == 0 {
        return Ok(&[]);
    }
    // The place of occurrence `nth`, counted from 0, or how many there are.
    let mut place = |nth: usize| -> Result<std::result::Result<usize, usize>> {
        let (mut at, mut seen) = (0, 0);
        while let Some(found) = patience.find(&text[at..], delimiter)? {
            if seen == nth {
                return Ok(Ok(at + found));
            }
            seen += 1;
            at += found + delimiter.len();
        }
        Ok(Err(seen))
    };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count > 0 {
        return Ok(place(wanted - 1)?.map_or(text, |place| &text[..place]));
    }
    let all = place(usize::MAX)?.unwrap_or_else(|all| all);
    match all.checked_sub(wanted) {
        Some(nth) => Ok(place(nth)?.map_or(text, |place| &text[place + delimiter.len()..])),
        None => Ok(text),
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

fn left<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (text, count) = (or_null!(arguments.text(0)?), or_null!(arguments.int(1)?));
    Ok(arguments.give_borrowed(substring(text, 1, count, arguments.is_binary())))
}

fn right<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (text, count) = (or_null!(arguments.text(0)?), or_null!(arguments.int(1)?));
    let length = length_of(text, arguments.is_binary()) as i64;
    let skipped = (length - count.max(0)).max(0);
    Ok(arguments.give_borrowed(substring(text, skipped + 1, count, arguments.is_binary())))
}

fn in_case<'a>(arguments: &Arguments<'a, '_>, upper: bool) -> Result<ValueRef<'a>> {
    let text = or_null!(arguments.text(0)?);
    // Bytes have no case.
    if arguments.is_binary() {
        return Ok(arguments.give_borrowed(text));
    }
    Ok(arguments.give(&fold(text, upper)))
}

fn insert<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (text, from) = (or_null!(arguments.text(0)?), or_null!(arguments.int(1)?));
    let (length, new) = (or_null!(arguments.int(2)?), or_null!(arguments.text(3)?));
    let binary = arguments.is_binary();
    let total = length_of(text, binary) as i64;
    if from < 1 || from > total {
        return Ok(arguments.give_borrowed(text));
    }
    let head = substring(text, 1, from - 1, binary);
    let length = if length < 0 { total } else { length };
    let tail = substring(text, from.saturating_add(length), i64::MAX, binary);
    if arguments.is_too_long(head.len() + new.len() + tail.len()) {
        return Ok(too_long(arguments));
    }
    Ok(arguments.give(&[head, new, tail].concat()))
}

/// Which ends of a text TRIM looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Both,
    Left,
    Right,
}

fn trim<'a>(arguments: &Arguments<'a, '_>, ends: Ends) -> Result<ValueRef<'a>> {
    let mut text = or_null!(arguments.text(0)?);
    let part = if arguments.len() == 2 { or_null!(arguments.text(1)?) } else { b" " };
    if part.is_empty() {
        return Ok(arguments.give_borrowed(text));
    }
    if ends != Ends::Right {
        while let Some(rest) = text.strip_prefix(part) {
            text = rest;
        }
    }
    if ends != Ends::Left {
        while let Some(rest) = text.strip_suffix(part) {
            text = rest;
        }
    }
    Ok(arguments.give_borrowed(text))
}

fn replace(
    text: &[u8],
    from: &[u8],
    to: &[u8],
    bytes_max: usize,
    patience: &mut Patience<'_>,
) -> Result<Replaced> {
    let mut replaced = Vec::new();
    let mut rest = text;
    while let Some(found) = patience.find(rest, from)? {
        // Before it grows: a short text with many places for a long one would take all memory.
        if replaced.len() + found + to.len() > bytes_max {
            return Ok(Replaced::TooLong);
        }
        replaced.extend_from_slice(&rest[..found]);
        replaced.extend_from_slice(to);
        rest = &rest[found + from.len()..];
    }
    if rest.len() == text.len() {
        return Ok(Replaced::Nothing);
    }
    if replaced.len() + rest.len() > bytes_max {
        return Ok(Replaced::TooLong);
    }
    replaced.extend_from_slice(rest);
    Ok(Replaced::Text(replaced))
}

/// What REPLACE has done.
enum Replaced {
    Nothing,
    Text(Vec<u8>),
    TooLong,
}

/// Where LPAD and RPAD put the padding.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

fn pad<'a>(arguments: &Arguments<'a, '_>, side: Side) -> Result<ValueRef<'a>> {
    let (text, length) = (or_null!(arguments.text(0)?), or_null!(arguments.int(1)?));
    let padding = if arguments.len() == 3 { or_null!(arguments.text(2)?) } else { b" " };
    let binary = arguments.is_binary();
    let length = or_null!(usize::try_from(length).ok());
    let own = length_of(text, binary);
    if own >= length {
        return Ok(arguments.give_borrowed(substring(text, 1, length as i64, binary)));
    }
    if arguments.is_too_long(length.saturating_mul(4)) {
        return Ok(too_long(arguments));
    }
    let unit = length_of(padding, binary);
    if unit == 0 {
        return Ok(ValueRef::Null);
    }
    let missing = length - own;
    let mut filler = padding.repeat(missing / unit);
    filler.extend_from_slice(substring(padding, 1, (missing % unit) as i64, binary));
    Ok(match side {
        Side::Left => arguments.give(&[&filler, text].concat()),
        Side::Right => arguments.give(&[text, &filler].concat()),
    })
}

fn reverse(text: &[u8], is_binary: bool) -> Vec<u8> {
    if is_binary || text.is_ascii() {
        return text.iter().rev().copied().collect();
    }
    String::from_utf8_lossy(text).chars().rev().collect::<String>().into_bytes()
}

/// The position of `part`, counted in characters from 1; 0 if it is not there.
fn locate(part: &[u8], text: &[u8], from: i64, arguments: &Arguments<'_, '_>) -> Result<i64> {
    if from < 1 {
        return Ok(0);
    }
    let collation = arguments.call.collation;
    let mut patience = Patience::new(arguments.context.environment);
    let binary = collation == Collation::Binary;
    let skipped = (from - 1) as usize;
    if skipped > length_of(text, binary) {
        return Ok(0);
    }
    let mut rest = substring(text, from, i64::MAX, binary);
    // In MariaDB a text of other bytes than the part's is equal only if it has as many: in UTF-8 'e' is not
    // found in 'é'.
    let by_bytes = collation.character_bytes_max() > 1;
    let begins = |rest: &[u8]| {
        if !by_bytes {
            return collation.begins_with(rest, part);
        }
        let ends_in_character = |end: &u8| *end & 0xc0 == 0x80;
        rest.split_at_checked(part.len()).is_some_and(|(same, behind)| {
            !behind.first().is_some_and(ends_in_character) && collation.is_same(same, part)
        })
    };
    let mut position = from;
    loop {
        if begins(rest) {
            return Ok(position);
        }
        if rest.is_empty() {
            return Ok(0);
        }
        patience.spend(part.len() + 1)?;
        rest = &rest[if binary { 1 } else { first_chars(rest, 1).len().max(1) }.min(rest.len())..];
        position += 1;
    }
}
