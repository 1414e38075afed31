//! Statements that are neither queries nor changes of rows: SET, SHOW, DDL and administration.

use crate::parse::OtherStatement;
use crate::{ResultSink, Session, SqlError};

/// Runs a statement by its first word.
///
/// # Errors
/// 1064 for a statement that is none, 1235 for one that is not supported, and the statement's own.
pub(crate) fn run(
    _session: &mut Session,
    statement: &OtherStatement,
    _sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    match statement.word.as_str() {
        word => Err(SqlError::not_supported(word)),
    }
}
