//! The end of a query: projection, DISTINCT, LIMIT.

use super::key_set::KeySet;
use super::{Flow, RowConsumer, RowSink, recycle};
use crate::expr::value_keys::ValueKeys;
use crate::expr::{Context, Row};
use crate::plan::plan::{Output, SelectPlan};
use crate::{ResultSink, SqlError};
use types::ValueRef;

/// Evaluates the columns of the result and hands them on.
pub(super) struct Project<'p, 's> {
    pub(super) plan: &'p SelectPlan,
    pub(super) out: &'s mut dyn RowSink,
    pub(super) buffer: Vec<ValueRef<'static>>,
}

impl RowConsumer for Project<'_, '_> {
    #[inline]
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        let mut values = recycle(std::mem::take(&mut self.buffer));
        evaluate(&self.plan.output, row, context, &mut values)?;
        let flow = self.out.row(&values)?;
        self.buffer = recycle(values);
        Ok(flow)
    }
}

/// Appends the columns of the result.
#[inline]
pub(super) fn evaluate<'a>(
    output: &'a [Output],
    row: &Row<'a>,
    context: &Context<'a>,
    values: &mut Vec<ValueRef<'a>>,
) -> Result<(), SqlError> {
    for output in output {
        match output {
            Output::Column { part, column } => row.0[*part].push_to(*column, values),
            Output::Value(value) => values.push(value.evaluate(row, context)?),
        }
    }
    Ok(())
}

/// The rows that have been seen already.
pub(super) struct Seen<'p> {
    keys: &'p ValueKeys,
    seen: KeySet,
    key: Vec<u8>,
}

impl<'p> Seen<'p> {
    pub(super) fn new(keys: &'p ValueKeys) -> Seen<'p> {
        Seen { keys, seen: KeySet::default(), key: Vec::new() }
    }

    pub(super) fn is_new(&mut self, values: &[ValueRef<'_>]) -> bool {
        self.key.clear();
        self.keys.encode(values, &mut self.key);
        self.seen.insert(&self.key)
    }

    /// As [`Seen::is_new`], for values whose key is known.
    pub(super) fn is_new_key(&mut self, key: &[u8]) -> bool {
        self.seen.insert(key)
    }
}

/// Leaves out rows that have been seen before.
pub(super) struct Distinct<'p, 's> {
    pub(super) seen: Seen<'p>,
    pub(super) out: &'s mut dyn RowSink,
}

impl RowSink for Distinct<'_, '_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        if self.seen.is_new(values) { self.out.row(values) } else { Ok(Flow::Continue) }
    }
}

/// Skips the first rows, and stops after the last.
pub(super) struct Limited<'s> {
    pub(super) offset: u64,
    pub(super) count: u64,
    /// Continues to count rows after the last one, for SQL_CALC_FOUND_ROWS.
    pub(super) counts_on: bool,
    pub(super) seen: u64,
    pub(super) sent: u64,
    pub(super) out: &'s mut dyn RowSink,
}

impl RowSink for Limited<'_> {
    #[inline]
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        if self.sent == self.count {
            self.seen += 1;
            return Ok(if self.counts_on { Flow::Continue } else { Flow::Stop });
        }
        self.seen += 1;
        if self.seen <= self.offset {
            return Ok(Flow::Continue);
        }
        self.sent += 1;
        let flow = self.out.row(values)?;
        if self.sent == self.count && !self.counts_on { Ok(Flow::Stop) } else { Ok(flow) }
    }
}

/// Hands rows to the client.
pub(super) struct ToClient<'s>(pub(super) &'s mut dyn ResultSink);

impl RowSink for ToClient<'_> {
    #[inline]
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        self.0.row(values)?;
        Ok(Flow::Continue)
    }
}

/// Keeps rows.
#[derive(Default)]
pub(super) struct Collect(pub(super) Vec<Vec<types::Value>>);

impl RowSink for Collect {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        self.0.push(values.iter().map(ValueRef::to_value).collect());
        Ok(Flow::Continue)
    }
}
