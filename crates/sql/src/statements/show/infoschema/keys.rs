//! STATISTICS, KEY_COLUMN_USAGE, REFERENTIAL_CONSTRAINTS, CHECK_CONSTRAINTS, TABLE_CONSTRAINTS.

use super::Definition;
use crate::definition::check::CheckLevel;
use crate::definition::foreign_key::ForeignKey;
use crate::definition::metadata::TableMetadata;
use crate::session::relations::{column_positions, index_over};
use crate::statements::show::index_rows;
use crate::{Session, SqlError};
use base::IndexId;
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
        "REFERENTIAL_CONSTRAINTS",
        "CONSTRAINT_CATALOG varchar(512) NOT NULL, CONSTRAINT_SCHEMA varchar(64) NOT NULL, \
         CONSTRAINT_NAME varchar(64) NOT NULL, UNIQUE_CONSTRAINT_CATALOG varchar(512) NOT NULL, \
         UNIQUE_CONSTRAINT_SCHEMA varchar(64) NOT NULL, UNIQUE_CONSTRAINT_NAME varchar(64), \
         MATCH_OPTION varchar(64) NOT NULL, UPDATE_RULE varchar(64) NOT NULL, DELETE_RULE varchar(64) NOT NULL, \
         TABLE_NAME varchar(64) NOT NULL, REFERENCED_TABLE_NAME varchar(64)",
        referential_constraints,
    ),
    (
        "CHECK_CONSTRAINTS",
        "CONSTRAINT_CATALOG varchar(512) NOT NULL, CONSTRAINT_SCHEMA varchar(64) NOT NULL, \
         TABLE_NAME varchar(64) NOT NULL, CONSTRAINT_NAME varchar(64) NOT NULL, LEVEL varchar(6) NOT NULL, \
         CHECK_CLAUSE longtext NOT NULL",
        check_constraints,
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

/// A constraint of a table.
struct Constraint {
    name: String,
    columns: Vec<String>,
    kind: &'static str,
    /// What a FOREIGN KEY refers to.
    foreign: Option<ForeignKey>,
}

/// Calls with every constraint, and the database and name of its table.
fn each_constraint(
    session: &Session,
    mut each: impl FnMut(&str, &str, &Constraint) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    session.each_table(|database, table| {
        let def = table.def();
        let unique = |name: &str, kind, parts: &[types::KeyPart]| Constraint {
            name: name.to_owned(),
            columns: parts.iter().map(|part| def.columns[part.column].name.clone()).collect(),
            kind,
            foreign: None,
        };
        let primary = def.primary.iter().map(|parts| unique("PRIMARY", "PRIMARY KEY", parts));
        let indexes = def.indexes.iter().filter(|index| index.unique);
        let indexes = indexes.map(|index| unique(&index.name, "UNIQUE", &index.parts));
        let metadata = TableMetadata::of(&def)?;
        let foreign = metadata.foreign_keys.iter().map(|key| Constraint {
            name: key.name.clone(),
            columns: key.columns.clone(),
            kind: "FOREIGN KEY",
            foreign: Some(key.clone()),
        });
        let checks = metadata.conditions(&def).map(|(_, name, _)| Constraint {
            name: name.to_owned(),
            columns: Vec::new(),
            kind: "CHECK",
            foreign: None,
        });
        primary
            .chain(indexes)
            .chain(foreign)
            .chain(checks)
            .try_for_each(|constraint| each(database, &def.name, &constraint))
    })
}

fn key_column_usage(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    each_constraint(session, |database, table, constraint| {
        for (position, column) in constraint.columns.iter().enumerate() {
            let number = Value::Int(position as i64 + 1);
            let mut row = vec![
                Value::text("def"),
                Value::text(database),
                Value::text(constraint.name.as_str()),
                Value::text("def"),
                Value::text(database),
                Value::text(table),
                Value::text(column.as_str()),
                number.clone(),
            ];
            match &constraint.foreign {
                None => row.extend([Value::Null, Value::Null, Value::Null, Value::Null]),
                Some(key) => row.extend([
                    number,
                    Value::text(key.parent_database.as_str()),
                    Value::text(key.parent_table.as_str()),
                    Value::text(key.parent_columns[position].as_str()),
                ]),
            }
            rows.push(row);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn referential_constraints(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    each_constraint(session, |database, table, constraint| {
        let Some(key) = &constraint.foreign else { return Ok(()) };
        if !session.access.uses_table(database, table) {
            return Ok(());
        }
        let parent = session.table(&key.parent_database, &key.parent_table).ok();
        let index = parent.and_then(|parent| {
            let def = parent.def();
            let columns = column_positions(&def, &key.parent_columns)?;
            Some(match index_over(&def, &columns)? {
                IndexId(0) => "PRIMARY".to_owned(),
                IndexId(number) => def.indexes.get(usize::from(number) - 1)?.name.clone(),
            })
        });
        rows.push(vec![
            Value::text("def"),
            Value::text(database),
            Value::text(key.name.as_str()),
            Value::text("def"),
            Value::text(key.parent_database.as_str()),
            index.map_or(Value::Null, Value::text),
            Value::text("NONE"),
            Value::text(key.on_update.name()),
            Value::text(key.on_delete.name()),
            Value::text(table),
            Value::text(key.parent_table.as_str()),
        ]);
        Ok(())
    })?;
    Ok(rows)
}

fn check_constraints(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    session.each_table(|database, table| {
        let def = table.def();
        if !session.access.uses_table(database, &def.name) {
            return Ok(());
        }
        let metadata = TableMetadata::of(&def)?;
        for (level, name, condition) in metadata.conditions(&def) {
            rows.push(vec![
                Value::text("def"),
                Value::text(database),
                Value::text(def.name.as_str()),
                Value::text(name),
                Value::text(match level {
                    CheckLevel::Column => "Column",
                    CheckLevel::Table => "Table",
                }),
                Value::text(condition),
            ]);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn table_constraints(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    each_constraint(session, |database, table, constraint| {
        // As in MariaDB, who may only read a table does not see what it enforces.
        if !session.access.uses_table(database, table) {
            return Ok(());
        }
        rows.push(vec![
            Value::text("def"),
            Value::text(database),
            Value::text(constraint.name.as_str()),
            Value::text(database),
            Value::text(table),
            Value::text(constraint.kind),
        ]);
        Ok(())
    })?;
    Ok(rows)
}
