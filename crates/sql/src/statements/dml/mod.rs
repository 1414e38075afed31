//! Statements that change rows: INSERT, REPLACE, LOAD DATA, UPDATE, DELETE.

mod assign;
mod computing;
mod duplicate;
mod fast;
mod foreign_keys;
mod insert;
mod inserter;
mod into;
mod joined;
mod load;
mod on_duplicate;
mod returning;
#[cfg(test)]
pub(crate) mod tests;
mod update;

pub(crate) use computing::Making;
pub(crate) use duplicate::duplicate_entry;
pub(crate) use foreign_keys::Search;

pub(crate) use into::plan_into;
pub(crate) use load::load_data;

use crate::expr::{CoerceIssue, Coerced};
use crate::{ErrorKind, Session, SqlError};
use base::IndexId;
use engine::{Direction, Error, KeyRange, Reader, Table, TableDef};
use std::ops::Bound;

/// Turns a value that did not fit into the statement's error or into a warning. `row` counts from 1.
pub(crate) fn note_issue(
    session: &mut Session,
    coerced: &Coerced<'_>,
    def: &TableDef,
    column: &str,
    row: u64,
) -> Result<(), SqlError> {
    let Some(issue) = &coerced.issue else { return Ok(()) };
    let strict = session.variables.common.sql_mode.is_strict();
    if strict && issue.is_error_when_strict() {
        return Err(issue.to_error_in(&def.database, &def.name, column, row));
    }
    warn_of_issue(issue, def, column, row, &mut session.state.warnings);
    Ok(())
}

/// Adds a warning about a value that was changed to fit.
pub(crate) fn warn_of_issue(
    issue: &CoerceIssue,
    def: &TableDef,
    column: &str,
    row: u64,
    warnings: &mut crate::Warnings,
) {
    let error = match issue.as_warning() {
        CoerceIssue::TimeLeftOut { .. } => SqlError::new(
            ErrorKind::InvalidTimestamp,
            format!("Invalid TIMESTAMP value in column '{column}' at row {row}"),
        ),
        shown => shown.to_error_in(&def.database, &def.name, column, row),
    };
    let level = if issue.is_error_when_strict() { crate::Level::Warning } else { crate::Level::Note };
    warnings.push(level, error.kind, error.message);
}

/// The error that a client gets for an engine's error while `image` was written.
pub(crate) fn write_error(error: Error, table: &Table, image: &[u8]) -> SqlError {
    let Error::DuplicateKey { index } = error else { return error.into() };
    let def = table.def();
    let row = table.row_codec().view(image);
    match index.0.checked_sub(1).and_then(|position| def.indexes.get(usize::from(position))) {
        Some(secondary) => duplicate_entry(&row, &def, &secondary.parts, &secondary.name),
        None => duplicate_entry(&row, &def, def.primary.as_deref().unwrap_or(&[]), "PRIMARY"),
    }
}

/// The key of a row in a unique index, or in the clustered one.
pub(crate) struct UniqueKey {
    index: IndexId,
    key: Vec<u8>,
}

impl UniqueKey {
    pub(crate) fn of(table: &Table, index: IndexId, image: &[u8]) -> UniqueKey {
        let mut key = Vec::new();
        table.key_codec(index).encode_row(&table.row_codec().view(image), &mut key);
        UniqueKey { index, key }
    }

    /// The primary keys of the rows that can have this key.
    pub(crate) fn rows(&self, reader: Reader<'_>, table: &Table) -> Result<Vec<Vec<u8>>, SqlError> {
        if self.index.0 == 0 {
            return Ok(vec![self.key.clone()]);
        }
        let bound = Bound::Included(self.key.clone());
        let range = KeyRange { lower: bound.clone(), upper: bound };
        let mut scan = table.scan(reader, self.index, range, Direction::Forward);
        let mut rows = Vec::new();
        while scan.next_row()?.is_some() {
            rows.push(scan.primary_key().to_vec());
        }
        Ok(rows)
    }

    /// True if the row has this key.
    pub(crate) fn is_in(&self, table: &Table, image: &[u8]) -> bool {
        UniqueKey::of(table, self.index, image).key == self.key
    }
}

/// Plans a parsed INSERT, REPLACE, UPDATE or DELETE.
///
/// # Errors
/// Errors about names and types.
pub(crate) fn plan_change(
    session: &Session,
    planner: crate::plan::query::Planner<'_>,
    statement: &sqlparser::ast::Statement,
) -> Result<Box<dyn crate::session::plans::ChangePlan>, SqlError> {
    use sqlparser::ast::Statement;
    match statement {
        Statement::Insert(insert) => insert::plan_insert(session, planner, insert),
        Statement::Update(update) if joined::is_joined_update(update) => {
            joined::plan_update(session, planner, update)
        }
        Statement::Update(update) => update::plan_update(session, planner, update),
        Statement::Delete(delete) if !delete.tables.is_empty() => {
            joined::plan_delete(session, planner, delete)
        }
        Statement::Delete(delete) => update::plan_delete(session, planner, delete),
        other => {
            let word = other.to_string();
            Err(SqlError::not_supported(word.split(' ').next().unwrap_or_default()))
        }
    }
}
