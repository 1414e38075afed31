//! `SELECT ... INTO @a, @b`: the row of a query becomes the values of variables.

use crate::accounts::access::Needs;
use crate::expr::Slots;
use crate::plan::names::LiteralText;
use crate::plan::plan::StatementPlan;
use crate::session::plans::ChangePlan;
use crate::statements::query::Query;
use crate::status::Counter;
use crate::text::parse::Destination;
use crate::{ColumnMeta, Completion, ErrorKind, ResultSink, Session, SqlError};
use types::{Value, ValueRef};

/// A query whose row goes into variables.
#[derive(Debug)]
struct IntoPlan {
    query: StatementPlan,
    destination: Destination,
}

/// # Errors
/// 1222 if the query does not have as many columns as there are variables.
pub(crate) fn plan_into(
    query: StatementPlan,
    destination: Destination,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    if query.query.columns.len() != destination.variables.len() {
        return Err(SqlError::column_counts_differ());
    }
    Ok(Box::new(IntoPlan { query, destination }))
}

/// Keeps the one row that there may be.
#[derive(Default)]
struct OneRow {
    row: Option<Vec<Value>>,
}

impl ResultSink for OneRow {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if self.row.is_some() {
            let text = "Result consisted of more than one row";
            return Err(SqlError::new(ErrorKind::TooManyRows, text));
        }
        self.row = Some(row.iter().map(ValueRef::to_value).collect());
        Ok(())
    }

    fn end(&mut self, _completion: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

impl ChangePlan for IntoPlan {
    fn needs(&self) -> &Needs {
        &self.query.needs
    }

    fn is_current(&self) -> bool {
        self.query.is_current()
    }

    fn reads_by(&self) -> Option<&StatementPlan> {
        Some(&self.query)
    }

    fn run(
        &self,
        session: &mut Session,
        slots: Slots<'_>,
        literal_text: &LiteralText<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        session.counters.add(Counter::ComSelect, 1);
        session.state.warnings.forget_old();
        if self.destination.is_last {
            let text = "'<select expression> INTO <destination>;' is deprecated and will be removed in a future release. Please use 'SELECT <select list> INTO <destination> FROM...' instead";
            session.state.warnings.warn(ErrorKind::Deprecated, text);
        }
        let mut one = OneRow::default();
        let query = Query { plan: &self.query, slots, literal_text };
        let done = session.answer_query(&query, &mut Vec::new(), &mut one);
        // As in MariaDB, the variables have the first row even if there is another one.
        let found = u64::from(one.row.is_some());
        for (name, value) in self.destination.variables.iter().zip(one.row.into_iter().flatten()) {
            session.state.user_variables.insert(name.to_lowercase(), value, &session.memory)?;
        }
        done?;
        if found == 0 {
            let text = "No data - zero rows fetched, selected, or processed";
            session.state.warnings.warn(ErrorKind::NoData, text);
        }
        session.note_state();
        session.state.row_count = found as i64;
        let warnings = session.state.warnings.count_u16();
        sink.end(&Completion { affected_rows: found, warnings, ..Completion::default() })
    }
}
