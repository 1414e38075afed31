//! The message of a duplicate key.

use crate::expr::shown;
use crate::text::push_text;
use crate::{ErrorKind, SqlError};
use bumpalo::Bump;
use engine::TableDef;
use types::{KeyPart, RowView, ValueRef};

/// Appends bytes as MariaDB's messages have them: `\x01` where they are no characters of ASCII, and without
/// the zeros that fill up a BINARY.
fn push_bytes(bytes: &[u8], out: &mut String) {
    use std::fmt::Write;
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    for byte in &bytes[..end] {
        // Writing into memory does not fail.
        let _ = match byte {
            0x20..0x7f => write!(out, "{}", char::from(*byte)),
            byte => write!(out, "\\x{byte:02X}"),
        };
    }
}

/// 1062: `Duplicate entry '1-abc' for key 'k'`.
pub(crate) fn duplicate_entry(row: &RowView<'_>, def: &TableDef, parts: &[KeyPart], key: &str) -> SqlError {
    let mut entry = String::new();
    let arena = Bump::new();
    for (position, part) in parts.iter().enumerate() {
        if position > 0 {
            entry.push('-');
        }
        let value = shown(row.get(part.column), &def.columns[part.column].column_type, &arena);
        let value = match (value, part.prefix_chars) {
            (ValueRef::Text(text), Some(chars)) => {
                ValueRef::Text(types::collation::first_chars(text, chars as usize))
            }
            (ValueRef::Binary(bytes), Some(length)) => {
                ValueRef::Binary(&bytes[..bytes.len().min(length as usize)])
            }
            (value, _) => value,
        };
        match value {
            ValueRef::Binary(bytes) => push_bytes(bytes, &mut entry),
            value => push_text(value, &mut entry),
        }
    }
    // An entry that is too long for the message is cut, as in MySQL.
    if entry.chars().count() > 64 {
        entry = entry.chars().take(61).collect::<String>() + "...";
    }
    debug_assert!(parts.iter().all(|part| part.column < def.columns.len()));
    SqlError::new(ErrorKind::DuplicateEntry, format!("Duplicate entry '{entry}' for key '{key}'"))
}
