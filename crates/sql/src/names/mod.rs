//! Names of databases, tables and columns, and of character sets and collations.

use crate::{ErrorKind, SqlError};

pub(crate) mod charsets;

/// The database of computed tables that describe the others.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

/// The databases that are wholly computed, beside `information_schema`.
pub(crate) const PERFORMANCE_SCHEMA: &str = "performance_schema";
pub(crate) const SYS: &str = "sys";

/// The name of a database whose tables are all computed, if `name` is one. As in MariaDB, the case of `sys`
/// matters.
pub(crate) fn virtual_database(name: &str) -> Option<&'static str> {
    let is =
        |database: &&str| if *database == SYS { name == SYS } else { name.eq_ignore_ascii_case(database) };
    [INFORMATION_SCHEMA, PERFORMANCE_SCHEMA, SYS].into_iter().find(is)
}

/// The database with the tables of accounts.
pub(crate) const MYSQL: &str = "mysql";

/// The maximum length of a name, in characters.
const CHARS_MAX: usize = 64;

fn is_good(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= CHARS_MAX && !name.ends_with(' ') && !name.contains('\0')
}

/// 1102 if this cannot be the name of a database.
pub(crate) fn check_database(name: &str) -> Result<(), SqlError> {
    let escapes = name == "." || name == ".." || name.contains(['/', '\\']);
    if is_good(name) && !escapes {
        return Ok(());
    }
    Err(SqlError::new(ErrorKind::WrongDatabaseName, format!("Incorrect database name '{name}'")))
}

/// 1103 if this cannot be the name of a table.
pub(crate) fn check_table(name: &str) -> Result<(), SqlError> {
    if is_good(name) {
        return Ok(());
    }
    Err(SqlError::new(ErrorKind::WrongTableName, format!("Incorrect table name '{name}'")))
}

/// 1059 or 1166 if this cannot be the name of a column.
pub(crate) fn check_column(name: &str) -> Result<(), SqlError> {
    check_length(name)?;
    if is_good(name) {
        return Ok(());
    }
    Err(SqlError::new(ErrorKind::WrongColumnName, format!("Incorrect column name '{name}'")))
}

/// 1059 or 1280 if this cannot be the name of an index.
pub(crate) fn check_index(name: &str) -> Result<(), SqlError> {
    check_length(name)?;
    if is_good(name) && !name.eq_ignore_ascii_case("PRIMARY") {
        return Ok(());
    }
    Err(SqlError::new(ErrorKind::WrongIndexName, format!("Incorrect index name '{name}'")))
}

fn check_length(name: &str) -> Result<(), SqlError> {
    if name.chars().count() <= CHARS_MAX {
        return Ok(());
    }
    Err(SqlError::new(ErrorKind::IdentifierTooLong, format!("Identifier name '{name}' is too long")))
}
