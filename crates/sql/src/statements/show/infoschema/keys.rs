//! STATISTICS, KEY_COLUMN_USAGE, TABLE_CONSTRAINTS.

use super::Definition;
use crate::definition::metadata::TableMetadata;
use crate::statements::show::index_rows;
use crate::{Session, SqlError};
use types::Value;

pub(super) static DEFINITIONS: &[Definition] = &[
    (
        "STATISTICS",
        "TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, TABLE_NAME varchar(64) NOT NULL, \
         NON_UNIQUE bigint(1) NOT NULL, INDEX_SCHEMA varchar(64) NOT NULL, INDEX_NAME varchar(64) NOT NULL, \
         SEQ_IN_INDEX int(2) unsigned NOT NULL, COLUMN_NAME varchar(64) NOT NULL, COLLATION varchar(1), \
         CARDINALITY bigint(21), SUB_PART bigint(3), PACKED varchar(10), NULLABLE varchar(3) NOT NULL, \
         INDEX_TYPE varchar(16) NOT NULL, COMMENT varchar(16), INDEX_COMMENT varchar(1024) NOT NULL, \
         IGNORED varchar(3) NOT NULL",
        statistics,
    ),
    (
        "KEY_COLUMN_USAGE",
        "CONSTRAINT_CATALOG varchar(512) NOT NULL, CONSTRAINT_SCHEMA varchar(64) NOT NULL, \
         CONSTRAINT_NAME varchar(64) NOT NULL, TABLE_CATALOG varchar(512) NOT NULL, \
         TABLE_SCHEMA varchar(64) NOT NULL, TABLE_NAME varchar(64) NOT NULL, COLUMN_NAME varchar(64) NOT NULL, \
         ORDINAL_POSITION bigint(10) NOT NULL, POSITION_IN_UNIQUE_CONSTRAINT bigint(10), \
         REFERENCED_TABLE_SCHEMA varchar(64), REFERENCED_TABLE_NAME varchar(64), REFERENCED_COLUMN_NAME varchar(64)",
        key_column_usage,
    ),
    (
        "TABLE_CONSTRAINTS",
        "CONSTRAINT_CATALOG varchar(512) NOT NULL, CONSTRAINT_SCHEMA varchar(64) NOT NULL, \
         CONSTRAINT_NAME varchar(64) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, TABLE_NAME varchar(64) NOT NULL, \
         CONSTRAINT_TYPE varchar(64) NOT NULL",
        table_constraints,
    ),
];

fn statistics(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    session.each_table(|database, table| {
        let metadata = TableMetadata::of(&table.def())?;
        for mut shown in index_rows(&session.access, table, &metadata) {
            // SHOW INDEX: Table, Non_unique, Key_name, ...
            let rest = shown.split_off(2);
            let mut row = vec![Value::text("def"), Value::text(database)];
            row.append(&mut shown);
            row.push(Value::text(database));
            row.extend(rest);
            rows.push(row);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Calls with the name and the columns of every unique constraint.
fn each_constraint(
    session: &Session,
    mut each: impl FnMut(&str, &str, &str, &[&str]),
) -> Result<(), SqlError> {
    session.each_table(|database, table| {
        let def = table.def();
        let columns = |parts: &[types::KeyPart]| -> Vec<String> {
            parts.iter().map(|part| def.columns[part.column].name.clone()).collect()
        };
        let mut constraints = Vec::new();
        if let Some(primary) = &def.primary {
            constraints.push(("PRIMARY".to_owned(), columns(primary)));
        }
        for index in def.indexes.iter().filter(|index| index.unique) {
            constraints.push((index.name.clone(), columns(&index.parts)));
        }
        for (name, columns) in &constraints {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            each(database, &def.name, name, &columns);
        }
        Ok(())
    })
}

fn key_column_usage(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    each_constraint(session, |database, table, name, columns| {
        for (position, column) in columns.iter().enumerate() {
            rows.push(vec![
                Value::text("def"),
                Value::text(database),
                Value::text(name),
                Value::text("def"),
                Value::text(database),
                Value::text(table),
                Value::text(*column),
                Value::Int(position as i64 + 1),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
            ]);
        }
    })?;
    Ok(rows)
}

fn table_constraints(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    each_constraint(session, |database, table, name, _| {
        // As in MariaDB, who may only read a table does not see what it enforces.
        if !session.access.uses_table(database, table) {
            return;
        }
        let kind = if name == "PRIMARY" { "PRIMARY KEY" } else { "UNIQUE" };
        rows.push(vec![
            Value::text("def"),
            Value::text(database),
            Value::text(name),
            Value::text(database),
            Value::text(table),
            Value::text(kind),
        ]);
    })?;
    Ok(rows)
}
