//! What is stored, by the names of InnoDB's tables: INNODB_SYS_TABLES and its like.

use super::Rows;
use crate::accounts::Rights;
use crate::definition::foreign_key::{ForeignKey, ReferentialAction};
use crate::definition::metadata::TableMetadata;
use crate::{Session, SqlError};
use engine::{Table, TableDef};
use types::{KeyPart, Value};

/// The tables of the list that have rows.
pub(super) static ROWS: &[(&str, Rows)] = &[
    ("INNODB_SYS_FIELDS", fields),
    ("INNODB_SYS_FOREIGN", foreign_keys),
    ("INNODB_SYS_FOREIGN_COLS", foreign_key_columns),
    ("INNODB_SYS_INDEXES", indexes),
    ("INNODB_SYS_TABLES", tables),
    ("INNODB_SYS_TABLESTATS", table_statistics),
];

/// Rows of each table. As in MariaDB, only a session with PROCESS may read them.
fn of_tables(
    session: &Session,
    mut each: impl FnMut(&Table, &TableDef, &mut Vec<Vec<Value>>) -> Result<(), SqlError>,
) -> Result<Vec<Vec<Value>>, SqlError> {
    session.access.check_any_global(Rights::PROCESS)?;
    let mut rows = Vec::new();
    session.each_table(|_, table| each(table, &table.def(), &mut rows))?;
    Ok(rows)
}

fn full_name(def: &TableDef) -> Value {
    Value::text(format!("{}/{}", def.database, def.name))
}

fn tables(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    of_tables(session, |table, def, rows| {
        let id = u64::from(table.id().0);
        rows.push(vec![
            Value::UInt(id),
            full_name(def),
            Value::Int(33),
            Value::UInt(def.columns.len() as u64),
            Value::UInt(id),
            Value::text(if def.compressed { "Compressed" } else { "Dynamic" }),
            Value::UInt(0),
            Value::text("Single"),
        ]);
        Ok(())
    })
}

/// The indexes of a table, the clustered one first: number, name, unique, parts.
fn indexes_of(def: &TableDef) -> impl Iterator<Item = (u64, &str, bool, &[KeyPart])> {
    let clustered = match &def.primary {
        Some(parts) => (0, "PRIMARY", true, parts.as_slice()),
        None => (0, "GEN_CLUST_INDEX", false, &[][..]),
    };
    let others = def.indexes.iter().enumerate();
    std::iter::once(clustered)
        .chain(others.map(|(at, index)| (at as u64 + 1, index.name.as_str(), index.unique, &index.parts[..])))
}

/// A number that no other index has.
fn index_id(table: &Table, number: u64) -> Value {
    Value::UInt(u64::from(table.id().0) << 16 | number)
}

fn indexes(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    /// Bits of TYPE.
    const CLUSTERED: i64 = 1;
    const UNIQUE: i64 = 2;
    of_tables(session, |table, def, rows| {
        for (number, name, unique, parts) in indexes_of(def) {
            let kind = if number == 0 { CLUSTERED } else { 0 } + if unique { UNIQUE } else { 0 };
            let id = u64::from(table.id().0);
            rows.push(vec![
                index_id(table, number),
                Value::text(name),
                Value::UInt(id),
                Value::Int(kind),
                Value::Int(parts.len() as i64),
                Value::Null,
                Value::Int(id as i64),
                Value::Int(50),
            ]);
        }
        Ok(())
    })
}

fn fields(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    of_tables(session, |table, def, rows| {
        for (number, _, _, parts) in indexes_of(def) {
            for (position, part) in parts.iter().enumerate() {
                rows.push(vec![
                    index_id(table, number),
                    Value::text(&def.columns[part.column].name),
                    Value::UInt(position as u64),
                ]);
            }
        }
        Ok(())
    })
}

fn table_statistics(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    of_tables(session, |table, def, rows| {
        let size = table.size()?;
        rows.push(vec![
            Value::UInt(table.id().0.into()),
            full_name(def),
            Value::Int(1),
            Value::UInt(table.row_count()),
            Value::UInt(size.row_pages),
            Value::UInt(size.index_pages),
            Value::UInt(0),
            Value::UInt(if def.auto_increment.is_some() { table.next_auto_increment() } else { 0 }),
            Value::Int(1),
        ]);
        Ok(())
    })
}

fn of_foreign_keys(
    session: &Session,
    mut each: impl FnMut(&TableDef, &ForeignKey, &mut Vec<Vec<Value>>),
) -> Result<Vec<Vec<Value>>, SqlError> {
    of_tables(session, |_, def, rows| {
        for key in &TableMetadata::of(def)?.foreign_keys {
            each(def, key, rows);
        }
        Ok(())
    })
}

fn foreign_key_id(def: &TableDef, key: &ForeignKey) -> Value {
    Value::text(format!("{}/{}", def.database, key.name))
}

/// The bits of TYPE, as InnoDB has them.
fn action_bits(key: &ForeignKey) -> u64 {
    let bit = |action, cascade, set_null, no_action| match action {
        ReferentialAction::Restrict => 0,
        ReferentialAction::Cascade => cascade,
        ReferentialAction::SetNull => set_null,
        ReferentialAction::NoAction => no_action,
    };
    bit(key.on_delete, 1, 2, 16) + bit(key.on_update, 4, 8, 32)
}

fn foreign_keys(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    of_foreign_keys(session, |def, key, rows| {
        rows.push(vec![
            foreign_key_id(def, key),
            full_name(def),
            Value::text(format!("{}/{}", key.parent_database, key.parent_table)),
            Value::UInt(key.columns.len() as u64),
            Value::UInt(action_bits(key)),
        ]);
    })
}

fn foreign_key_columns(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    of_foreign_keys(session, |def, key, rows| {
        for (position, (own, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            rows.push(vec![
                foreign_key_id(def, key),
                Value::text(own),
                Value::text(parent),
                Value::UInt(position as u64),
            ]);
        }
    })
}
