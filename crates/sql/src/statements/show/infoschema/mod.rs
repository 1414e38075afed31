//! `information_schema`: tables that are computed when they are read.

mod columns;
mod empty;
mod keys;
mod latches;
mod schemata;
mod server;
mod tables;
mod transactions;

pub(crate) use columns::column_key;
pub(crate) use latches::latch_rows;
pub(crate) use server::{
    charset_rows, collation_rows, engine_rows, plugin_rows, process_rows, show_variables,
};
pub(crate) use tables::{status_of, table_status_row};

use crate::statements::ddl::virtual_columns;
use crate::{Session, SqlError};
use std::sync::OnceLock;
use types::{Column, Value};

/// The database that these tables are in.
pub const DATABASE: &str = "information_schema";

/// A table whose rows are computed for each statement that reads it.
#[derive(Debug)]
pub struct VirtualTable {
    /// As `information_schema.TABLES` lists it: in capitals. Found in any case.
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// All rows, one value a column.
    pub rows: fn(&Session) -> Result<Vec<Vec<Value>>, SqlError>,
}

/// Name, columns as CREATE TABLE writes them, and where the rows come from.
type Definition = (&'static str, &'static str, fn(&Session) -> Result<Vec<Vec<Value>>, SqlError>);

/// The virtual table of a name, if `database` has one.
pub fn find(database: &str, name: &str) -> Option<&'static VirtualTable> {
    if !database.eq_ignore_ascii_case(DATABASE) {
        return None;
    }
    all().iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

/// Every virtual table, sorted by name.
pub fn all() -> &'static [VirtualTable] {
    static TABLES: OnceLock<Vec<VirtualTable>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let groups = [
            columns::DEFINITIONS,
            empty::DEFINITIONS,
            keys::DEFINITIONS,
            latches::DEFINITIONS,
            schemata::DEFINITIONS,
            server::DEFINITIONS,
            tables::DEFINITIONS,
            transactions::DEFINITIONS,
        ];
        let mut all: Vec<VirtualTable> = groups
            .into_iter()
            .flatten()
            .map(|(name, columns, rows)| VirtualTable {
                name,
                columns: virtual_columns(columns),
                rows: *rows,
            })
            .collect();
        all.sort_by_key(|table| table.name);
        all
    })
}

/// The databases that a client sees, `information_schema` first.
pub(crate) fn database_names(session: &Session) -> Vec<String> {
    let mut names: Vec<String> =
        session.instance.database.databases().into_iter().map(|(name, _)| name).collect();
    names.push(DATABASE.to_owned());
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_its_columns_and_its_name_once() {
        for table in all() {
            assert!(!table.columns.is_empty(), "{}", table.name);
        }
        assert!(all().windows(2).all(|pair| pair[0].name < pair[1].name));
        let names: Vec<&str> = find("INFORMATION_SCHEMA", "key_caches")
            .expect("a table")
            .columns
            .iter()
            .map(|c| c.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "KEY_CACHE_NAME",
                "SEGMENTS",
                "SEGMENT_NUMBER",
                "FULL_SIZE",
                "BLOCK_SIZE",
                "USED_BLOCKS",
                "UNUSED_BLOCKS",
                "DIRTY_BLOCKS",
                "READ_REQUESTS",
                "READS",
                "WRITE_REQUESTS",
                "WRITES"
            ]
        );
        assert!(find("test", "key_caches").is_none());
    }
}
