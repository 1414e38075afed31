//! The message of a duplicate key.

use crate::expr::shown;
use crate::text::push_text;
use crate::{ErrorKind, SqlError};
use bumpalo::Bump;
use engine::TableDef;
use types::{KeyPart, RowView, ValueRef};

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
        push_text(value, &mut entry);
    }
    // An entry that is too long for the message is cut, as in MySQL.
    if entry.chars().count() > 64 {
        entry = entry.chars().take(61).collect::<String>() + "...";
    }
    debug_assert!(parts.iter().all(|part| part.column < def.columns.len()));
    SqlError::new(ErrorKind::DuplicateEntry, format!("Duplicate entry '{entry}' for key '{key}'"))
}
