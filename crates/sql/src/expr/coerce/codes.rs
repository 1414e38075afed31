//! Columns of UUIDs and addresses.

use super::{CoerceIssue, Coerced, text_of, zero_of};
use bumpalo::Bump;
use types::{Code, ColumnType, ValueRef};

/// The bytes that the column stores. A text that is none of its kind becomes NULL, or zero where there can
/// be no NULL.
pub(super) fn code<'a>(value: ValueRef<'a>, code: Code, nullable: bool, arena: &'a Bump) -> Coerced<'a> {
    let read = match value {
        ValueRef::Binary(bytes) if bytes.len() == code.bytes() => code.of_bytes(bytes),
        ValueRef::Text(text) | ValueRef::Binary(text) => code.read(text),
        _ => None,
    };
    if let Some(bytes) = read {
        return Coerced::fits(ValueRef::Binary(arena.alloc_slice_copy(&bytes[..code.bytes()])));
    }
    let shown = match value {
        ValueRef::Text(text) | ValueRef::Binary(text) => String::from_utf8_lossy(text).into_owned(),
        value => text_of(&value),
    };
    let issue = CoerceIssue::IncorrectTime { kind: code.name(), value: shown };
    let zero = zero_of(&ColumnType::Code(code));
    Coerced::with(if nullable { ValueRef::Null } else { zero }, issue)
}
