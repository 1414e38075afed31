//! Values made fit for a column.

use crate::SqlError;
use bumpalo::Bump;
use types::{Column, ValueRef};

/// A value as its column stores it, and what had to be done to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Coerced<'a> {
    /// What is stored if the issue is no error: clipped, cut, or zero.
    pub value: ValueRef<'a>,
    pub issue: Option<CoerceIssue>,
}

/// Why a value did not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CoerceIssue {
    /// 1048. The value is then the type's zero, which non-strict multi-row inserts store.
    Null,
    /// 1264.
    OutOfRange,
    /// 1406.
    DataTooLong,
    /// 1265: digits or characters were cut that nobody misses; only a note, in strict mode too.
    TruncatedNote,
    /// 1265.
    Truncated,
    /// 1366: no number, or characters that the character set lacks. What kind of value, and the value.
    Incorrect { kind: &'static str, value: String },
    /// 1292. What kind of value, and the value.
    IncorrectTime { kind: &'static str, value: String },
}

impl CoerceIssue {
    /// True if strict mode refuses the statement.
    pub fn is_error_when_strict(&self) -> bool {
        !matches!(self, CoerceIssue::TruncatedNote)
    }

    /// The error, or the warning's number and text. `row` counts from 1.
    pub fn to_error(&self, column: &str, row: u64) -> SqlError {
        match self {
            CoerceIssue::Null => SqlError::new(1048, b"23000", format!("Column '{column}' cannot be null")),
            CoerceIssue::OutOfRange => SqlError::new(
                1264,
                b"22003",
                format!("Out of range value for column '{column}' at row {row}"),
            ),
            CoerceIssue::DataTooLong => {
                SqlError::new(1406, b"22001", format!("Data too long for column '{column}' at row {row}"))
            }
            CoerceIssue::Truncated | CoerceIssue::TruncatedNote => {
                SqlError::new(1265, b"01000", format!("Data truncated for column '{column}' at row {row}"))
            }
            CoerceIssue::Incorrect { kind, value } => SqlError::new(
                1366,
                b"22007",
                format!("Incorrect {kind} value: '{value}' for column '{column}' at row {row}"),
            ),
            CoerceIssue::IncorrectTime { kind, value } => SqlError::new(
                1292,
                b"22007",
                format!("Incorrect {kind} value: '{value}' for column '{column}' at row {row}"),
            ),
        }
    }
}

/// Makes `value` fit `column`. New bytes go to `arena`.
pub fn coerce<'a>(value: ValueRef<'a>, _column: &Column, _arena: &'a Bump) -> Coerced<'a> {
    Coerced { value, issue: None }
}
