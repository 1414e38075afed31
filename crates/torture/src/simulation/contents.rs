//! What there is: a whole database, read by a snapshot and by every index, and compared with the model.

use super::model::{Name, Row, State, TableState};
use super::schema::row_of;
use base::IndexId;
use base::sync::Arc;
use engine::{Database, Direction, Error, KeyRange, Reader, Table, TableDef};
use std::collections::{BTreeMap, BTreeSet};

/// Why something could not be read as expected.
#[derive(Debug)]
pub(super) enum Trouble {
    Engine(Error),
    Wrong(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Engine(error)
    }
}

impl From<String> for Trouble {
    fn from(what: String) -> Trouble {
        Trouble::Wrong(what)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Engine(error) => write!(f, "{error}"),
            Trouble::Wrong(what) => write!(f, "{what}"),
        }
    }
}

pub(super) type Found = BTreeMap<i32, Row>;

/// The rows that a reader sees by an index.
///
/// # Errors
/// The engine's, and what is wrong with the rows.
pub(super) fn rows_by(
    table: &Table,
    reader: Reader<'_>,
    index: usize,
    direction: Direction,
) -> Result<Found, Trouble> {
    let mut scan = table.scan(reader, IndexId(index as u16), KeyRange::all(), direction);
    let mut rows = Found::new();
    while let Some(image) = scan.next_row()? {
        let row = row_of(table, image)?;
        let id = row.id;
        if rows.insert(id, row).is_some() {
            return Err(format!("row {id} is there twice by index {index}").into());
        }
    }
    Ok(rows)
}

/// How many rows a reader counts by an index, without a look at them where that is not needed.
fn count_by(table: &Table, reader: Reader<'_>, index: usize) -> Result<usize, Trouble> {
    let mut scan = table.scan(reader, IndexId(index as u16), KeyRange::all(), Direction::Forward);
    let mut keys = 0;
    while scan.next_key()?.is_some() {
        keys += 1;
    }
    Ok(keys)
}

/// A whole database.
#[derive(Debug)]
pub(super) struct Contents {
    databases: BTreeSet<String>,
    tables: BTreeMap<Name, (Arc<TableDef>, Found)>,
}

impl Contents {
    /// # Errors
    /// As [`rows_by`], and if two indexes of a table tell of other rows.
    pub(super) fn read(database: &Database) -> Result<Contents, Trouble> {
        let mut contents = Contents { databases: BTreeSet::new(), tables: BTreeMap::new() };
        if let Some(damaged) = database.damaged_tables().first() {
            return Err(format!("a table is closed: {damaged:?}").into());
        }
        let mut session = database.session();
        for (name, _) in database.databases() {
            for table in database.tables(&name)? {
                let statement = session.read()?;
                let def = table.def();
                let rows = rows_by(&table, statement.reader(), 0, Direction::Forward)?;
                for index in 1..=def.indexes.len() {
                    if rows_by(&table, statement.reader(), index, Direction::Backward)? != rows {
                        let what = format!("index {} of {}.{}", index, def.database, def.name);
                        return Err(format!("{what} leads to other rows than the table has").into());
                    }
                }
                for index in 0..=def.indexes.len() {
                    let keys = count_by(&table, statement.reader(), index)?;
                    if keys != rows.len() {
                        let what = format!("index {} of {}.{}", index, def.database, def.name);
                        return Err(format!("{what} counts {keys} rows, the table has {}", rows.len()).into());
                    }
                }
                contents.tables.insert((def.database.clone(), def.name.clone()), (def, rows));
            }
            contents.databases.insert(name);
        }
        Ok(contents)
    }

    /// How it differs from what there should be; `None` if it does not.
    pub(super) fn difference(&self, state: &State) -> Option<String> {
        if self.databases != state.databases {
            return Some(format!("databases {:?} where {:?} were promised", self.databases, state.databases));
        }
        let (found, promised): (Vec<_>, Vec<_>) =
            (self.tables.keys().collect(), state.tables.keys().collect());
        if found != promised {
            return Some(format!("tables {found:?} where {promised:?} were promised"));
        }
        self.tables.iter().zip(state.tables.values()).find_map(|((name, (def, rows)), table)| {
            let (found, promised) = (shape(def), shape(&table.def));
            if found != promised {
                return Some(format!("table {name:?} is {found}, promised was {promised}"));
            }
            difference_of_rows(rows, table).map(|what| format!("table {name:?}: {what}"))
        })
    }
}

fn shape(def: &TableDef) -> String {
    let indexes: Vec<&str> = def.indexes.iter().map(|index| index.name.as_str()).collect();
    let (columns, pages) = (def.columns.len(), (def.page_size, def.compressed));
    format!("{columns} columns, {:?}, {indexes:?}, {pages:?}, {:?}", def.primary, def.pack_keys)
}

fn difference_of_rows(found: &Found, table: &TableState) -> Option<String> {
    difference(found, &table.rows)
}

/// How rows differ from those that should be there.
pub(super) fn difference(found: &Found, promised: &super::model::Rows) -> Option<String> {
    let describe =
        |row: &Row| format!("(k {}, u {:?}, {} bytes {:?})", row.k, row.u, row.c.len(), row.c.first());
    let lost = promised.iter().find_map(|(id, row)| match found.get(id) {
        None => Some(format!("row {id} {} is gone", describe(row))),
        Some(other) if other != &**row => {
            Some(format!("row {id} is {} where {} was promised", describe(other), describe(row)))
        }
        Some(_) => None,
    });
    let stranger = || found.values().find(|row| !promised.contains_key(&row.id));
    lost.or_else(|| stranger().map(|row| format!("row {} {} was never committed", row.id, describe(row))))
}
