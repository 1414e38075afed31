//! Columns of characters and bytes.

use super::{CoerceIssue, Coerced, text_of};
use bumpalo::Bump;
use types::collation::first_chars;
use types::row::trim_trailing_spaces;
use types::{Collation, ValueRef};

/// The bytes of a value as text.
fn bytes_of<'a>(value: ValueRef<'a>, arena: &'a Bump) -> &'a [u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Binary(bytes) => bytes,
        value => arena.alloc_slice_copy(text_of(&value).as_bytes()),
    }
}

/// `\xC5\x82`: the bytes that are at fault, six at most.
fn escaped(bytes: &[u8]) -> String {
    use std::fmt::Write;
    const SHOWN_MAX: usize = 6;
    let mut text = String::new();
    for byte in &bytes[..bytes.len().min(SHOWN_MAX)] {
        let _ = match byte {
            0x20..0x7f => write!(text, "{}", *byte as char),
            _ => write!(text, "\\x{byte:02X}"),
        };
    }
    if bytes.len() > SHOWN_MAX {
        text.push_str("...");
    }
    text
}

/// The text in the column's character set. Invalid UTF-8 and characters that the set lacks become `?`.
fn in_character_set<'a>(
    text: &'a [u8],
    collation: Collation,
    arena: &'a Bump,
) -> (&'a [u8], Option<CoerceIssue>) {
    let incorrect = |from: usize| {
        Some(CoerceIssue::Incorrect { kind: "string", value: escaped(&text[from.min(text.len())..]) })
    };
    let held = |character: char| collation.holds(character);
    match std::str::from_utf8(text) {
        Ok(characters) => match characters.char_indices().find(|(_, character)| !held(*character)) {
            None => (text, None),
            Some((at, _)) => {
                let replaced: String = characters
                    .chars()
                    .map(|character| if held(character) { character } else { '?' })
                    .collect();
                (arena.alloc_slice_copy(replaced.as_bytes()), incorrect(at))
            }
        },
        Err(error) => {
            let replaced: String = String::from_utf8_lossy(text)
                .chars()
                .map(|character| if character == char::REPLACEMENT_CHARACTER { '?' } else { character })
                .collect();
            (arena.alloc_slice_copy(replaced.as_bytes()), incorrect(error.valid_up_to()))
        }
    }
}

/// CHAR and VARCHAR. White space beyond the length is cut, of VARCHAR with a note. A CHAR has no spaces at
/// its end, for a later part of the statement that reads it as for a later statement.
pub(super) fn characters<'a>(
    value: ValueRef<'a>,
    chars: u32,
    is_char: bool,
    collation: Collation,
    arena: &'a Bump,
) -> Coerced<'a> {
    let (text, issue) = in_character_set(bytes_of(value, arena), collation, arena);
    let cut = first_chars(text, chars as usize);
    let kept = match is_char {
        true => trim_trailing_spaces(cut),
        false => cut,
    };
    if cut.len() == text.len() {
        return Coerced::maybe(ValueRef::Text(kept), issue);
    }
    let only_blanks = text[cut.len()..].iter().all(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
    let length_issue = match (only_blanks, is_char) {
        (true, true) => None,
        (true, false) => Some(CoerceIssue::TruncatedNote),
        (false, _) => Some(CoerceIssue::DataTooLong),
    };
    Coerced::maybe(ValueRef::Text(kept), issue.or(length_issue))
}

/// TINYTEXT to LONGTEXT.
pub(super) fn text<'a>(
    value: ValueRef<'a>,
    bytes_max: u32,
    collation: Collation,
    arena: &'a Bump,
) -> Coerced<'a> {
    let (text, issue) = in_character_set(bytes_of(value, arena), collation, arena);
    if text.len() <= bytes_max as usize {
        return Coerced::maybe(ValueRef::Text(text), issue);
    }
    // Cut between characters.
    let mut end = bytes_max as usize;
    while end > 0 && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    Coerced::maybe(ValueRef::Text(&text[..end]), issue.or(Some(CoerceIssue::DataTooLong)))
}

/// BINARY(n): filled up with zero bytes.
pub(super) fn fixed_binary<'a>(value: ValueRef<'a>, bytes: u32, arena: &'a Bump) -> Coerced<'a> {
    let coerced = binary(value, bytes, arena);
    match coerced.value {
        ValueRef::Binary(short) if short.len() < bytes as usize => {
            let padded = arena.alloc_slice_fill_copy(bytes as usize, 0);
            padded[..short.len()].copy_from_slice(short);
            Coerced { value: ValueRef::Binary(padded), ..coerced }
        }
        _ => coerced,
    }
}

/// VARBINARY and the BLOB types.
pub(super) fn binary<'a>(value: ValueRef<'a>, bytes_max: u32, arena: &'a Bump) -> Coerced<'a> {
    let bytes = bytes_of(value, arena);
    if bytes.len() <= bytes_max as usize {
        return Coerced::fits(ValueRef::Binary(bytes));
    }
    Coerced::with(ValueRef::Binary(&bytes[..bytes_max as usize]), CoerceIssue::DataTooLong)
}
