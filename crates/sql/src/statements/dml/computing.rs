//! Generated columns and computed defaults of rows that are written.

use super::inserter::copy_to;
use super::warn_of_issue;
use crate::definition::metadata::TableMetadata;
use crate::expr::{Context, Slots, coerce};
use crate::plan::computed::{Computed, ComputedColumn};
use crate::session::environment::SessionEnvironment;
use crate::session::quiet::Quiet;
use crate::{ErrorKind, Session, SqlError};
use bumpalo::Bump;
use engine::TableDef;
use types::ValueRef;

/// A table that rows are made for.
#[derive(Clone, Copy)]
pub(crate) struct Making<'t> {
    pub def: &'t TableDef,
    pub metadata: &'t TableMetadata,
    pub computed: &'t Computed,
    /// True if a value that does not fit is an error.
    pub strict: bool,
    /// The row's number in messages, from 1.
    pub number: u64,
}

impl Making<'_> {
    /// Computes what a row lacks. `values` are as the table stores them, and `is_given` says which of them a
    /// statement gave.
    ///
    /// # Errors
    /// Those of the expressions, and of values that do not fit.
    pub(crate) fn complete<'v>(
        &self,
        session: &mut Session,
        values: &mut [ValueRef<'v>],
        is_given: &dyn Fn(usize) -> bool,
        arena: &'v Bump,
    ) -> Result<(), SqlError> {
        for column in self.computed.columns() {
            if !(column.is_default && is_given(column.column)) {
                values[column.column] = self.value(session, column, values, arena)?;
            }
        }
        Ok(())
    }

    fn value<'v>(
        &self,
        session: &mut Session,
        computed: &ComputedColumn,
        values: &[ValueRef<'v>],
        arena: &'v Bump,
    ) -> Result<ValueRef<'v>, SqlError> {
        let environment = SessionEnvironment::new(session);
        let result = {
            let quiet = Quiet(&environment);
            let context = Context {
                slots: Slots::EMPTY,
                arena,
                environment: if computed.is_quiet { &quiet } else { &environment },
                subqueries: None,
            };
            computed.evaluate(values, &context).map(|value| copy_to(value, arena))
        };
        let leftovers = environment.into_leftovers();
        let result = leftovers.refuse_warnings(self.strict, result);
        leftovers.settle(session);
        let value = result?;
        let column = &self.def.columns[computed.column];
        let mode = session.variables.common.sql_mode.into();
        let digits = self.metadata.columns[computed.column].float_digits;
        let coerced = coerce(value, column, Some(session.variables.zone()), arena)
            .in_digits(digits)
            .in_mode(&value, column, mode);
        if let Some(issue) = coerced.issue.as_ref().filter(|_| !computed.is_quiet) {
            if self.strict && issue.is_error_when_strict() {
                return Err(issue.to_error_in(&self.def.database, &self.def.name, &column.name, self.number));
            }
            warn_of_issue(issue, self.def, &column.name, self.number, &mut session.state.warnings);
        }
        Ok(coerced.value)
    }
}

/// 1906.
pub(super) fn value_for_generated(def: &TableDef, column: usize) -> SqlError {
    let (column, table) = (&def.columns[column].name, &def.name);
    let text =
        format!("The value specified for generated column '{column}' in table '{table}' has been ignored");
    SqlError::new(ErrorKind::ValueForGenerated, text)
}
