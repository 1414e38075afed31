//! The tables whose columns stand in `columns.txt`. Most are about things that do not exist here, or that
//! nothing counts: they are empty. Tools query them anyway.
//!
//! The file has sections, `[database]`. A table is a line with its name and indented lines with its columns,
//! as CREATE TABLE writes them. The columns are those of MariaDB 10.11.

use super::{Rows, nothing, performance, storage, vocabulary};
use crate::names::{INFORMATION_SCHEMA, PERFORMANCE_SCHEMA};

static COLUMNS: &str = include_str!("columns.txt");

/// The tables of a database with their columns.
pub(super) fn of(database: &str) -> impl Iterator<Item = (&'static str, String)> {
    let heading = format!("[{database}]");
    let lines = COLUMNS.lines().skip_while(move |line| *line != heading).skip(1);
    let mut tables: Vec<(&'static str, String)> = Vec::new();
    for line in lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("    "), tables.last_mut()) {
            (Some(part), Some((_, columns))) => {
                columns.push(' ');
                columns.push_str(part);
            }
            _ => tables.push((line, String::new())),
        }
    }
    tables.into_iter()
}

/// What computes the rows of a table of the list.
pub(super) fn rows_of(database: &str, name: &str) -> Rows {
    let sources: &[&[(&str, Rows)]] = match database {
        INFORMATION_SCHEMA => &[storage::ROWS, vocabulary::ROWS],
        PERFORMANCE_SCHEMA => &[performance::ROWS],
        _ => &[],
    };
    sources.iter().copied().flatten().find(|(of, _)| *of == name).map_or(nothing as Rows, |(_, rows)| *rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_of_rows_belongs_to_a_table() {
        let in_schema =
            storage::ROWS.iter().chain(vocabulary::ROWS).map(|(name, _)| (INFORMATION_SCHEMA, *name));
        let performance = performance::ROWS.iter().map(|(name, _)| (PERFORMANCE_SCHEMA, *name));
        for (database, name) in in_schema.chain(performance) {
            assert!(of(database).any(|(listed, _)| listed == name), "{database}.{name}");
        }
    }
}
