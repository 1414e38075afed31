//! CHECK: conditions that the rows of a table meet.

use super::expression::{ExpressionSpec, in_parentheses};
use super::quoted;
use crate::SqlError;
use crate::text::LexicalMode;
use crate::text::parse::Words;

/// A condition of a table, besides those of its columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Check {
    pub name: String,
    /// As [`normal_text`](super::expression::normal_text) gives it.
    pub condition: String,
}

/// Where a CHECK is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckLevel {
    Column,
    Table,
}

/// A CHECK as a statement wrote it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CheckSpec {
    pub name: Option<String>,
    pub condition: ExpressionSpec,
}

impl CheckSpec {
    /// The condition of a JSON column.
    pub(crate) fn of_json(column: &str) -> CheckSpec {
        let text = format!("json_valid({})", quoted(column, LexicalMode::NONE));
        CheckSpec { name: None, condition: ExpressionSpec { text, mode: LexicalMode::NONE } }
    }
}

/// `(condition)`, behind CHECK.
///
/// # Errors
/// 1064.
pub(crate) fn check_clause(words: &mut Words<'_>, name: Option<String>) -> Result<CheckSpec, SqlError> {
    Ok(CheckSpec { name, condition: in_parentheses(words)? })
}
