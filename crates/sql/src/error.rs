//! Errors as a MySQL client sees them.

use std::fmt;

/// A MySQL error: its number, SQLSTATE and message, as `ERROR 1062 (23000): Duplicate entry ...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqlError {
    pub code: u16,
    pub sqlstate: [u8; 5],
    pub message: String,
}

impl SqlError {
    pub fn new(code: u16, sqlstate: &[u8; 5], message: impl Into<String>) -> SqlError {
        SqlError { code, sqlstate: *sqlstate, message: message.into() }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, String::from_utf8_lossy(&self.sqlstate), self.message)
    }
}

impl std::error::Error for SqlError {}
