//! Tables that are computed when they are read: all of `information_schema`, `performance_schema` and `sys`,
//! and those of `mysql` that are not stored.

mod columns;
mod keys;
mod latches;
mod listed;
mod mysql;
mod performance;
mod privileges;
mod schemata;
mod server;
pub(crate) mod status;
mod storage;
mod sys;
mod tables;
mod transactions;
mod vocabulary;

pub(crate) use columns::column_key;
pub(crate) use latches::latch_rows;
pub(crate) use server::{
    charset_rows, collation_rows, engine_rows, plugin_rows, process_rows, show_variables,
};
pub(crate) use tables::{engine_of, kind_of, status_of, table_status_row};

use crate::definition::parse::virtual_columns;
use crate::names::{INFORMATION_SCHEMA, MYSQL, PERFORMANCE_SCHEMA, SYS, virtual_database};
use crate::plan::plan::VirtualTable;
use crate::{Session, SqlError};
use std::sync::OnceLock;
use types::Value;

/// Computes the rows of a table, with one value for each column.
type Rows = fn(&Session) -> Result<Vec<Vec<Value>>, SqlError>;

/// The name of a table, its columns as CREATE TABLE writes them, and the function that computes its rows.
type Definition = (&'static str, &'static str, Rows);

/// The virtual tables of a database, sorted by name, with the functions that compute their rows.
struct Tables {
    tables: Vec<VirtualTable>,
    rows: Vec<Rows>,
}

fn nothing(_session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    Ok(Vec::new())
}

/// The virtual table with this name, if `database` has one.
pub(crate) fn find(database: &str, name: &str) -> Option<&'static VirtualTable> {
    let tables = match virtual_database(database) {
        Some(database) => tables(database)?,
        None if database == MYSQL => tables(MYSQL)?,
        None => return None,
    };
    let ignores_case = database.len() == INFORMATION_SCHEMA.len();
    let is_meant =
        |table: &&VirtualTable| table.name == name || ignores_case && table.name.eq_ignore_ascii_case(name);
    tables.tables.iter().find(is_meant)
}

/// Every table of a virtual database, sorted by name. Lists of the tables of `mysql` leave out those that
/// are computed, because a dump would take them for tables.
pub(crate) fn all(database: &str) -> &'static [VirtualTable] {
    tables(database).map_or(&[], |tables| &tables.tables)
}

/// The current rows of a virtual table.
///
/// # Errors
/// Those of the table.
pub(crate) fn rows(session: &Session, table: &VirtualTable) -> Result<Vec<Vec<Value>>, SqlError> {
    match tables(table.database) {
        Some(tables) => (tables.rows[table.number])(session),
        None => Ok(Vec::new()),
    }
}

/// Builds the virtual tables of a database when one of them is first used.
fn tables(database: &str) -> Option<&'static Tables> {
    static OF_INFORMATION_SCHEMA: OnceLock<Tables> = OnceLock::new();
    static OF_PERFORMANCE_SCHEMA: OnceLock<Tables> = OnceLock::new();
    static OF_SYS: OnceLock<Tables> = OnceLock::new();
    static OF_MYSQL: OnceLock<Tables> = OnceLock::new();
    let information_schema = || {
        let groups = [
            columns::DEFINITIONS,
            keys::DEFINITIONS,
            latches::DEFINITIONS,
            privileges::DEFINITIONS,
            schemata::DEFINITIONS,
            server::DEFINITIONS,
            tables::DEFINITIONS,
            transactions::DEFINITIONS,
        ];
        build(INFORMATION_SCHEMA, groups.concat())
    };
    Some(match database {
        INFORMATION_SCHEMA => OF_INFORMATION_SCHEMA.get_or_init(information_schema),
        PERFORMANCE_SCHEMA => {
            OF_PERFORMANCE_SCHEMA.get_or_init(|| build(PERFORMANCE_SCHEMA, performance::DEFINITIONS.to_vec()))
        }
        SYS => OF_SYS.get_or_init(|| build(SYS, Vec::new())),
        MYSQL => OF_MYSQL.get_or_init(|| build(MYSQL, mysql::definitions())),
        _ => return None,
    })
}

/// The tables of `definitions`, and those of the list that have no definition there.
fn build(database: &'static str, definitions: Vec<Definition>) -> Tables {
    let mut all: Vec<(&'static str, Vec<types::Column>, Rows)> = listed::of(database)
        .filter(|(name, _)| definitions.iter().all(|(defined, ..)| defined != name))
        .map(|(name, columns)| (name, virtual_columns(&columns), listed::rows_of(database, name)))
        .collect();
    let own = definitions.into_iter().map(|(name, columns, rows)| (name, virtual_columns(columns), rows));
    all.extend(own);
    all.sort_by_key(|(name, ..)| *name);
    let mut tables = Tables { tables: Vec::new(), rows: Vec::new() };
    for (number, (name, columns, rows)) in all.into_iter().enumerate() {
        let query = if database == SYS { sys::query(name) } else { None };
        let readable_by_all =
            database == INFORMATION_SCHEMA || performance::is_readable_by_all(database, name);
        tables.tables.push(VirtualTable { database, name, columns, number, query, readable_by_all });
        tables.rows.push(rows);
    }
    tables
}

/// Visits the virtual tables that `information_schema` lists for a session.
fn each_virtual_table(session: &Session, mut each: impl FnMut(&'static VirtualTable)) {
    for database in [INFORMATION_SCHEMA, PERFORMANCE_SCHEMA, SYS] {
        for table in all(database) {
            if database == INFORMATION_SCHEMA || session.access.sees_table(database, table.name) {
                each(table);
            }
        }
    }
}

/// The databases that a client sees, sorted by name.
pub(crate) fn database_names(session: &Session) -> Vec<String> {
    let databases = session.instance.database.databases().into_iter().map(|(name, _)| name);
    let computed = [PERFORMANCE_SCHEMA, SYS].map(str::to_owned);
    let lists = |name: &String| session.access.lists_database(name);
    let mut names: Vec<String> = databases.chain(computed).filter(lists).collect();
    names.push(INFORMATION_SCHEMA.to_owned());
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_its_columns_and_its_name_once() {
        for database in [INFORMATION_SCHEMA, PERFORMANCE_SCHEMA, SYS, MYSQL] {
            let tables = all(database);
            assert!(tables.len() > 20, "{database}");
            for table in tables {
                assert!(!table.columns.is_empty(), "{database}.{}", table.name);
            }
            assert!(tables.windows(2).all(|pair| pair[0].name < pair[1].name), "{database}");
        }
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
