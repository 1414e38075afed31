//! Expressions made ready to run: types inferred, conversions and collations settled.

use super::{Context, Expr, Row};
use crate::SqlError;
use types::{Collation, ColumnType, ValueRef};

/// What an expression gives, as result sets describe it.
#[derive(Clone, PartialEq, Debug)]
pub struct ResultType {
    /// NULL alone is `Binary { bytes: 0 }`.
    pub column_type: ColumnType,
    pub nullable: bool,
    /// `Binary` for numbers and times.
    pub collation: Collation,
    /// Digits after the point; 31 for floating point without fixed digits.
    pub decimals: u8,
    /// The widest value, in characters.
    pub display_chars: u32,
}

/// An expression ready to run. Made once a plan, shared by all that run it.
#[derive(Debug)]
pub struct Compiled {
    result: ResultType,
}

impl Compiled {
    /// `connection` is the collation of literals.
    ///
    /// # Errors
    /// 1582 for a wrong number of arguments, 1267 for collations that do not mix, 1235 for what is not supported.
    pub fn new(_expr: &Expr, _connection: Collation) -> Result<Compiled, SqlError> {
        Err(SqlError::not_supported("expressions"))
    }

    pub fn result_type(&self) -> &ResultType {
        &self.result
    }

    /// The value over a row.
    ///
    /// # Errors
    /// 1690 for numbers out of range, and what the environment answers.
    pub fn evaluate<'a>(&'a self, _row: &Row<'a>, _context: &Context<'a>) -> Result<ValueRef<'a>, SqlError> {
        Err(SqlError::not_supported("expressions"))
    }

    /// True if the value is true: neither false nor NULL. What WHERE, ON and HAVING ask.
    ///
    /// # Errors
    /// As [`Compiled::evaluate`].
    pub fn is_true<'a>(&'a self, _row: &Row<'a>, _context: &Context<'a>) -> Result<bool, SqlError> {
        Err(SqlError::not_supported("expressions"))
    }
}
