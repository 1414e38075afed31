//! The end of a query: projection, DISTINCT, LIMIT.

use super::KeySet;
use super::{Flow, RowConsumer, RowSink, recycle};
use crate::expr::{Context, Row};
use crate::plan::plan::{Output, SelectPlan};
use crate::{ResultSink, SqlError};
use types::{Column, KeyCodec, ValueRef};

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
        let flow = self.out.row(&values);
        self.buffer = recycle(values);
        flow
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
        values.push(match output {
            Output::Column { part, column } => row.get(*part, *column),
            Output::Value(value) => value.evaluate(row, context)?,
        });
    }
    Ok(())
}

/// Leaves out rows that were there before.
pub(super) struct Distinct<'p, 's> {
    pub(super) codec: &'p KeyCodec,
    pub(super) columns: Vec<Column>,
    pub(super) seen: KeySet,
    pub(super) key: Vec<u8>,
    pub(super) out: &'s mut dyn RowSink,
}

impl RowSink for Distinct<'_, '_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        self.key.clear();
        encode(self.codec, &self.columns, values, &mut self.key);
        if self.seen.contains(self.key.as_slice()) {
            return Ok(Flow::Continue);
        }
        self.seen.insert(Box::from(self.key.as_slice()));
        self.out.row(values)
    }
}

/// Appends the key of values that may not be quite of their columns' types.
pub(super) fn encode(codec: &KeyCodec, columns: &[Column], values: &[ValueRef<'_>], key: &mut Vec<u8>) {
    let fits = columns.iter().zip(values).all(|(column, value)| is_of_type(value, column));
    if fits {
        codec.encode_prefix(values, key);
        return;
    }
    let arena = bumpalo::Bump::new();
    let coerced: Vec<ValueRef<'_>> = columns
        .iter()
        .zip(values)
        .map(|(column, value)| match is_of_type(value, column) {
            true => *value,
            false => crate::expr::coerce(*value, column, &arena).value,
        })
        .collect();
    codec.encode_prefix(&coerced, key);
}

/// True if the codec takes the value as it is.
pub(super) fn is_of_type(value: &ValueRef<'_>, column: &Column) -> bool {
    use types::ColumnType as Type;
    match (value, &column.column_type) {
        (ValueRef::Null, _) => true,
        (ValueRef::Int(number), Type::Int { bytes, unsigned }) => !unsigned || (*bytes == 8 && *number >= 0),
        (ValueRef::UInt(number), Type::Int { bytes, unsigned }) => {
            *unsigned || (*bytes == 8 && i64::try_from(*number).is_ok())
        }
        (ValueRef::Decimal(number), Type::Decimal { scale, .. }) => number.scale() == *scale,
        (ValueRef::Float(_) | ValueRef::Double(_), Type::Float { .. } | Type::Double { .. }) => true,
        (ValueRef::Text(_), text) => text.is_text(),
        (ValueRef::Binary(_), binary) => binary.is_binary(),
        (ValueRef::Date(_), Type::Date) | (ValueRef::Time(_), Type::Time { .. }) => true,
        (ValueRef::DateTime(_), Type::DateTime { .. } | Type::Timestamp { .. }) => true,
        (ValueRef::UInt(_) | ValueRef::Int(_), Type::Year) => true,
        _ => false,
    }
}

/// Leaves out the first rows and stops behind the last.
pub(super) struct Limited<'s> {
    pub(super) offset: u64,
    pub(super) count: u64,
    /// Goes on counting behind the last row: SQL_CALC_FOUND_ROWS.
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
