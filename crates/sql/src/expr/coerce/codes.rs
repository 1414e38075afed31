//! Columns of UUIDs and addresses.

use super::{CoerceIssue, Coerced, zero_of};
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
    let kind = code.name();
    let issue = match value {
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            CoerceIssue::IncorrectCode { kind, value: escaped(text) }
        }
        value => CoerceIssue::NoCode { from: name_of(&value), to: kind },
    };
    let zero = zero_of(&ColumnType::Code(code));
    Coerced::with(if nullable { ValueRef::Null } else { zero }, issue)
}

/// The name of a value's type in messages.
fn name_of(value: &ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Int(number) if i32::try_from(*number).is_ok() => "int",
        ValueRef::Int(_) | ValueRef::UInt(_) => "bigint",
        ValueRef::Float(_) => "float",
        ValueRef::Double(_) => "double",
        ValueRef::Decimal(_) => "decimal",
        ValueRef::Date(_) => "date",
        ValueRef::Time(_) => "time",
        ValueRef::DateTime(_) => "datetime",
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Binary(_) => "varchar",
    }
}

/// A text for a message: bytes that are no printable ASCII as `\\x01`.
fn escaped(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) if !text.contains(|letter: char| letter.is_ascii_control()) => text.to_owned(),
        _ => text
            .iter()
            .map(|byte| match byte {
                0x20..0x7f => char::from(*byte).to_string(),
                byte => format!("\\x{byte:02X}"),
            })
            .collect(),
    }
}
