//! `information_schema`: tables that are computed when they are read.

use crate::{Session, SqlError};
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

/// The virtual table of a name, if `database` has one.
pub fn find(database: &str, name: &str) -> Option<&'static VirtualTable> {
    if !database.eq_ignore_ascii_case(DATABASE) {
        return None;
    }
    all().iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

/// Every virtual table, sorted by name.
pub fn all() -> &'static [VirtualTable] {
    &[]
}
