//! TABLES.

use super::{Definition, PERFORMANCE_SCHEMA, SYS, each_virtual_table};
use crate::definition::metadata::TableMetadata;
use crate::definition::options::{Meaning, create_options};
use crate::names::charsets::describe;
use crate::plan::plan::VirtualTable;
use crate::{Session, SqlError};
use engine::Table;
use types::Value;

pub(super) static DEFINITIONS: &[Definition] = &[(
    "TABLES",
    "TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, TABLE_NAME varchar(64) NOT NULL, \
     TABLE_TYPE varchar(64) NOT NULL, ENGINE varchar(64), VERSION bigint(21) unsigned, ROW_FORMAT varchar(10), \
     TABLE_ROWS bigint(21) unsigned, AVG_ROW_LENGTH bigint(21) unsigned, DATA_LENGTH bigint(21) unsigned, \
     MAX_DATA_LENGTH bigint(21) unsigned, INDEX_LENGTH bigint(21) unsigned, DATA_FREE bigint(21) unsigned, \
     AUTO_INCREMENT bigint(21) unsigned, CREATE_TIME datetime, UPDATE_TIME datetime, CHECK_TIME datetime, \
     TABLE_COLLATION varchar(64), CHECKSUM bigint(21) unsigned, CREATE_OPTIONS varchar(2048), \
     TABLE_COMMENT varchar(2048) NOT NULL, MAX_INDEX_LENGTH bigint(21) unsigned, TEMPORARY varchar(1)",
    rows,
)];

/// The values that SHOW TABLE STATUS and TABLES show for a table, from ENGINE to TABLE_COMMENT.
pub(crate) fn status_of(session: &Session, table: &Table) -> Result<Vec<Value>, SqlError> {
    let def = table.def();
    let metadata = TableMetadata::of(&def)?;
    let created = match i64::try_from(metadata.created) {
        Ok(seconds) if seconds > 0 => {
            Value::DateTime(session.variables.zone().shown(seconds.saturating_mul(1_000_000), 0))
        }
        _ => Value::Null,
    };
    let row_format = Meaning::of(&metadata.options).row_format(&metadata.engine);
    let next = match def.auto_increment {
        Some(_) => Value::UInt(table.next_auto_increment()),
        None => Value::Null,
    };
    let size = table.size()?;
    let (rows, data_bytes) = (table.row_count(), size.row_pages * size.page_size);
    Ok(vec![
        Value::text(metadata.shown_engine()),
        Value::UInt(10),
        Value::text(row_format),
        Value::UInt(rows),
        Value::UInt(data_bytes.checked_div(rows).unwrap_or(0)),
        Value::UInt(data_bytes),
        Value::UInt(0),
        Value::UInt(size.index_pages * size.page_size),
        Value::UInt(size.free_pages * size.page_size),
        next,
        created,
        Value::Null,
        Value::Null,
        Value::text(describe(metadata.collation).name),
        Value::Null,
        Value::text(create_options(&metadata.options)),
        Value::text(metadata.comment),
        Value::UInt(0),
        Value::text("N"),
    ])
}

/// The row of SHOW TABLE STATUS for a table that is computed.
pub(crate) fn table_status_row(table: &VirtualTable) -> Vec<Value> {
    let mut row = vec![Value::text(table.name)];
    if table.database == SYS {
        row.extend((0..15).map(|_| Value::Null));
        row.extend([Value::text("VIEW"), Value::Null, Value::Null]);
        row.insert(1, Value::Null);
        return row;
    }
    row.extend([Value::text(engine_of(table.database)), Value::UInt(11), Value::text("Fixed")]);
    row.extend((0..9).map(|_| Value::Null));
    row.push(Value::Null);
    row.push(Value::text("utf8mb4_general_ci"));
    row.extend([Value::Null, Value::text(""), Value::text(""), Value::UInt(0), Value::text("Y")]);
    row
}

/// The engine that is shown for the tables of a virtual database.
pub(crate) fn engine_of(database: &str) -> &'static str {
    if database == PERFORMANCE_SCHEMA { "PERFORMANCE_SCHEMA" } else { "MEMORY" }
}

/// The TABLE_TYPE of the tables of a virtual database.
pub(crate) fn kind_of(database: &str) -> &'static str {
    match database {
        PERFORMANCE_SCHEMA => "BASE TABLE",
        SYS => "VIEW",
        _ => "SYSTEM VIEW",
    }
}

fn rows(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    each_virtual_table(session, |table| {
        let mut row = vec![
            Value::text("def"),
            Value::text(table.database),
            Value::text(table.name),
            Value::text(kind_of(table.database)),
        ];
        row.extend(table_status_row(table).into_iter().skip(1));
        rows.push(row);
    });
    session.each_table(|database, table| {
        let mut row = vec![
            Value::text("def"),
            Value::text(database),
            Value::text(&table.def().name),
            Value::text("BASE TABLE"),
        ];
        row.extend(status_of(session, table)?);
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

impl Session {
    /// Visits the tables of all databases, in the order of their names.
    pub(crate) fn each_table(
        &self,
        mut each: impl FnMut(&str, &Table) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        for (database, _) in self.instance.database.databases() {
            if !self.access.sees_database(&database) {
                continue;
            }
            // A database that was dropped meanwhile has no tables.
            for table in self.instance.database.tables(&database).unwrap_or_default() {
                if self.access.sees_table(&database, &table.def().name) {
                    each(&database, &table)?;
                }
            }
        }
        Ok(())
    }
}
