//! Statements that change rows: INSERT, REPLACE, UPDATE, DELETE.

mod assign;
mod defaults;
mod duplicate;
mod fast;
mod insert;
mod inserter;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod update;

pub(crate) use defaults::{column_default, implicit_default};
pub(crate) use duplicate::duplicate_entry;

pub(crate) use defaults::Clock;
pub(crate) use duplicate::push_text;
pub(crate) use target::Targets;

use crate::expr::{CoerceIssue, Coerced};
use crate::{Session, SqlError};
use engine::{Error, Table};

/// How often a statement is tried again that met ALTER TABLE between its planning and its first change.
pub(crate) const DEFINITION_RETRIES: usize = 10;

/// True for the error of a statement that has changed nothing because its table is another one by now.
pub(crate) fn is_definition_changed(error: &SqlError) -> bool {
    error.code == 1412
}

impl Session {
    /// The clock of the statement that runs.
    pub(crate) fn clock(&self) -> Clock {
        Clock {
            unix_micros: (self.variables.timestamp() * 1e6) as i64,
            zone_seconds: self.variables.common.zone_seconds,
        }
    }
}

/// Turns what did not fit into the statement's error or a warning. `row` counts from 1.
pub(crate) fn note_issue(
    session: &mut Session,
    coerced: &Coerced<'_>,
    column: &str,
    row: u64,
) -> Result<(), SqlError> {
    let Some(issue) = &coerced.issue else { return Ok(()) };
    let strict = session.variables.common.sql_mode.is_strict();
    if strict && issue.is_error_when_strict() {
        return Err(issue.to_error(column, row));
    }
    warn_of_issue(issue, column, row, &mut session.state.warnings);
    Ok(())
}

/// The warning of a value that was made to fit.
pub(crate) fn warn_of_issue(issue: &CoerceIssue, column: &str, row: u64, warnings: &mut crate::Warnings) {
    // What is an error of its own in strict mode is only a cut value otherwise.
    let shown = match issue {
        CoerceIssue::DataTooLong => &CoerceIssue::Truncated,
        other => other,
    };
    let error = shown.to_error(column, row);
    let level = if issue.is_error_when_strict() { crate::Level::Warning } else { crate::Level::Note };
    warnings.push(level, error.code, error.message);
}

/// The client's error for an engine error while `image` was written.
pub(crate) fn write_error(error: Error, table: &Table, image: &[u8]) -> SqlError {
    let Error::DuplicateKey { index } = error else { return error.into() };
    let def = table.def();
    let row = table.row_codec().view(image);
    match index.0.checked_sub(1).and_then(|position| def.indexes.get(usize::from(position))) {
        Some(secondary) => duplicate_entry(&row, &def, &secondary.parts, &secondary.name),
        None => duplicate_entry(&row, &def, def.primary.as_deref().unwrap_or(&[]), "PRIMARY"),
    }
}

/// The primary key of the row that has the same key in a unique index as `image` has.
pub(crate) fn row_with_key_of(
    table: &Table,
    index: base::IndexId,
    image: &[u8],
) -> Result<Option<Vec<u8>>, SqlError> {
    let mut key = Vec::new();
    table.key_codec(index).encode_row(&table.row_codec().view(image), &mut key);
    if index.0 == 0 {
        return Ok(Some(key));
    }
    let range = engine::KeyRange {
        lower: std::ops::Bound::Included(key.clone()),
        upper: std::ops::Bound::Included(key),
    };
    let mut scan = table.scan(engine::Reader::newest(), index, range, engine::Direction::Forward);
    let found = scan.next_row()?.is_some();
    Ok(found.then(|| scan.primary_key().to_vec()))
}

/// Plans a parsed INSERT, REPLACE, UPDATE or DELETE.
///
/// # Errors
/// Those of names and types.
pub(crate) fn plan_change(
    session: &Session,
    planner: crate::plan::query::Planner<'_>,
    statement: &sqlparser::ast::Statement,
) -> Result<Box<dyn crate::cache::plans::ChangePlan>, SqlError> {
    use sqlparser::ast::Statement;
    match statement {
        Statement::Insert(insert) => insert::plan_insert(session, planner, insert),
        Statement::Update(update) => update::plan_update(planner, update),
        Statement::Delete(delete) => update::plan_delete(planner, delete),
        other => {
            let word = other.to_string();
            Err(SqlError::not_supported(word.split(' ').next().unwrap_or_default()))
        }
    }
}

/// CHECK TABLE: reads every row through the clustered index and checks its image.
pub(crate) fn check_table(table: &Table) -> Result<(), SqlError> {
    let range = engine::KeyRange { lower: std::ops::Bound::Unbounded, upper: std::ops::Bound::Unbounded };
    let mut scan = table.scan(engine::Reader::newest(), base::IndexId(0), range, engine::Direction::Forward);
    while let Some(image) = scan.next_row()? {
        table.row_codec().validate(image).map_err(|corrupt| {
            SqlError::internal(format!("a row of '{}' is damaged: {corrupt}", table.def().name))
        })?;
    }
    Ok(())
}
