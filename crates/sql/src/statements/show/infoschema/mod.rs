//! `information_schema`: tables that are computed when they are read.

mod columns;
mod empty;
mod keys;
mod latches;
mod privileges;
mod schemata;
mod server;
pub(crate) mod status;
mod tables;
mod transactions;

pub(crate) use columns::column_key;
pub(crate) use latches::latch_rows;
pub(crate) use server::{
    charset_rows, collation_rows, engine_rows, plugin_rows, process_rows, show_variables,
};
pub(crate) use tables::{status_of, table_status_row};

use crate::definition::parse::virtual_columns;
use crate::names::{INFORMATION_SCHEMA, MYSQL};
use crate::plan::plan::VirtualTable;
use crate::{Session, SqlError};
use std::sync::OnceLock;
use types::Value;

/// Computes the rows of a table, with one value for each column.
type Rows = fn(&Session) -> Result<Vec<Vec<Value>>, SqlError>;

/// The name of a table, its columns as CREATE TABLE writes them, and the function that computes its rows.
type Definition = (&'static str, &'static str, Rows);

/// Every virtual table with the function that computes its rows: those of `information_schema`, sorted by
/// name, and `mysql.user`.
struct Tables {
    tables: Vec<VirtualTable>,
    rows: Vec<Rows>,
}

/// The virtual table with this name, if `database` has one.
pub(crate) fn find(database: &str, name: &str) -> Option<&'static VirtualTable> {
    if database == MYSQL {
        return Some(users()).filter(|table| table.name == name);
    }
    if !database.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
        return None;
    }
    all().iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

/// Every table of `information_schema`, sorted by name.
pub(crate) fn all() -> &'static [VirtualTable] {
    let tables = &tables().tables;
    &tables[..tables.len() - 1]
}

/// `mysql.user`. Lists of tables leave it out, because a dump would take it for a table.
fn users() -> &'static VirtualTable {
    let tables = &tables().tables;
    &tables[tables.len() - 1]
}

/// The current rows of a virtual table.
///
/// # Errors
/// Those of the table.
pub(crate) fn rows(session: &Session, table: &VirtualTable) -> Result<Vec<Vec<Value>>, SqlError> {
    (tables().rows[table.number])(session)
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let groups = [
            columns::DEFINITIONS,
            empty::DEFINITIONS,
            keys::DEFINITIONS,
            latches::DEFINITIONS,
            privileges::DEFINITIONS,
            schemata::DEFINITIONS,
            server::DEFINITIONS,
            tables::DEFINITIONS,
            transactions::DEFINITIONS,
        ];
        let mut definitions: Vec<&Definition> = groups.into_iter().flatten().collect();
        definitions.sort_by_key(|(name, ..)| *name);
        let table = |(number, (name, columns, _)): (usize, &&Definition)| VirtualTable {
            name,
            columns: virtual_columns(columns),
            number,
        };
        let mut tables: Vec<VirtualTable> = definitions.iter().enumerate().map(table).collect();
        let mut rows: Vec<Rows> = definitions.iter().map(|(_, _, rows)| *rows).collect();
        let (name, columns) = privileges::user_table();
        tables.push(VirtualTable { name, columns: virtual_columns(&columns), number: rows.len() });
        rows.push(privileges::users);
        Tables { tables, rows }
    })
}

/// The databases that a client sees, `information_schema` first.
pub(crate) fn database_names(session: &Session) -> Vec<String> {
    let databases = session.instance.database.databases().into_iter().map(|(name, _)| name);
    let mut names: Vec<String> = databases.filter(|name| session.access.lists_database(name)).collect();
    names.push(INFORMATION_SCHEMA.to_owned());
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
