//! Sorts for ORDER BY if no index gives the order.

use super::output::{Seen, evaluate};
use super::{Flow, RowConsumer, RowSink, recycle};
use crate::SqlError;
use crate::expr::{Context, Row};
use crate::plan::plan::{SelectPlan, SortOrder, SortValue};
use bumpalo::Bump;
use types::ValueRef;

/// A row with its sort key.
#[derive(Clone, Copy)]
struct Sorted<'a> {
    /// The first bytes of the key, as a number. Most comparisons need only this.
    head: u64,
    key: &'a [u8],
    /// The row's sequence number: equal rows keep the order in which they came.
    nth: u64,
    values: &'a [ValueRef<'a>],
}

impl Sorted<'_> {
    fn order(&self, other: &Sorted<'_>) -> std::cmp::Ordering {
        self.head
            .cmp(&other.head)
            .then_with(|| self.key.cmp(other.key))
            .then_with(|| self.nth.cmp(&other.nth))
    }
}

/// Collects rows and their keys in an arena.
pub(super) struct Sorter<'a, 'p> {
    arena: &'a Bump,
    order: &'p SortOrder,
    rows: Vec<Sorted<'a>>,
    /// How many rows the result needs at most.
    wanted: usize,
    /// A row with a key above this one cannot be part of the result.
    cut: Option<&'a [u8]>,
    nth: u64,
    key: Vec<u8>,
    keys: Vec<ValueRef<'static>>,
    values: Vec<ValueRef<'static>>,
}

/// With a LIMIT, rows beyond it are thrown away when there are this many times more, and [`SLACK_ROWS`] on
/// top.
const SLACK: usize = 2;
const SLACK_ROWS: usize = 1024;
/// For how many rows there is room at first.
const ROWS_FIRST: usize = 128;

impl<'a, 'p> Sorter<'a, 'p> {
    pub(super) fn new(order: &'p SortOrder, arena: &'a Bump, wanted: u64) -> Sorter<'a, 'p> {
        Sorter {
            arena,
            order,
            rows: Vec::with_capacity(usize::try_from(wanted).unwrap_or(ROWS_FIRST).min(ROWS_FIRST)),
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            cut: None,
            nth: 0,
            key: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Takes the row whose key is in `self.key`.
    fn push(&mut self, values: &[ValueRef<'_>]) {
        self.nth += 1;
        if self.cut.is_some_and(|cut| self.key.as_slice() > cut) {
            return;
        }
        let arena = self.arena;
        let key: &'a [u8] = arena.alloc_slice_copy(&self.key);
        let values = arena.alloc_slice_fill_iter(values.iter().map(|value| keep(value, arena)));
        let mut head = [0; 8];
        let length = key.len().min(8);
        head[..length].copy_from_slice(&key[..length]);
        self.rows.push(Sorted { head: u64::from_be_bytes(head), key, nth: self.nth, values });
        if self.rows.len() >= self.wanted.saturating_mul(SLACK).saturating_add(SLACK_ROWS) {
            self.rows.select_nth_unstable_by(self.wanted, Sorted::order);
            self.rows.truncate(self.wanted);
            self.cut = self.rows.iter().max_by(|left, right| left.order(right)).map(|row| row.key);
        }
    }

    /// Hands the rows on in order.
    pub(super) fn finish(mut self, out: &mut dyn RowSink) -> Result<Flow, SqlError> {
        self.rows.sort_unstable_by(Sorted::order);
        for row in &self.rows {
            if out.row(row.values)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    fn encode_key(&mut self, values: &[ValueRef<'_>]) {
        self.key.clear();
        self.order.keys.encode(values, &mut self.key);
    }
}

/// A copy of the value whose bytes are in the arena.
pub(super) fn keep<'a>(value: &ValueRef<'_>, arena: &'a Bump) -> ValueRef<'a> {
    match *value {
        ValueRef::Null => ValueRef::Null,
        ValueRef::Int(number) => ValueRef::Int(number),
        ValueRef::UInt(number) => ValueRef::UInt(number),
        ValueRef::Float(number) => ValueRef::Float(number),
        ValueRef::Double(number) => ValueRef::Double(number),
        ValueRef::Decimal(number) => ValueRef::Decimal(number),
        ValueRef::Date(date) => ValueRef::Date(date),
        ValueRef::Time(time) => ValueRef::Time(time),
        ValueRef::DateTime(moment) => ValueRef::DateTime(moment),
        ValueRef::Text(bytes) => ValueRef::Text(arena.alloc_slice_copy(bytes)),
        ValueRef::Binary(bytes) => ValueRef::Binary(arena.alloc_slice_copy(bytes)),
    }
}

/// Sorts joined rows. Keys may read columns that are not in the result.
pub(super) struct SortRows<'a, 'p> {
    pub(super) plan: &'p SelectPlan,
    pub(super) sorter: Sorter<'a, 'p>,
    /// With DISTINCT: a row of the result that was seen already is not sorted again.
    pub(super) distinct: Option<Seen<'p>>,
}

impl RowConsumer for SortRows<'_, '_> {
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        let mut values = recycle(std::mem::take(&mut self.sorter.values));
        evaluate(&self.plan.output, row, context, &mut values)?;
        if self.plan.order.is_result {
            // The same key serves DISTINCT.
            self.sorter.encode_key(&values);
            if self.distinct.as_mut().is_none_or(|seen| seen.is_new_key(&self.sorter.key)) {
                self.sorter.push(&values);
            }
        } else if self.distinct.as_mut().is_none_or(|seen| seen.is_new(&values)) {
            let mut keys = recycle(std::mem::take(&mut self.sorter.keys));
            for item in &self.sorter.order.items {
                keys.push(match item {
                    SortValue::Output(at) => values[*at],
                    SortValue::Value(value) => value.evaluate(row, context)?,
                });
            }
            self.sorter.encode_key(&keys);
            self.sorter.keys = recycle(keys);
            self.sorter.push(&values);
        }
        self.sorter.values = recycle(values);
        Ok(Flow::Continue)
    }
}

/// Sorts rows of a result by its own columns.
pub(super) struct SortResult<'a, 'p>(pub(super) Sorter<'a, 'p>);

impl RowSink for SortResult<'_, '_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        let mut keys = recycle(std::mem::take(&mut self.0.keys));
        for item in &self.0.order.items {
            match item {
                SortValue::Output(at) => keys.push(values[*at]),
                SortValue::Value(_) => return Err(SqlError::internal("a sort key outside of the result")),
            }
        }
        self.0.encode_key(&keys);
        self.0.keys = recycle(keys);
        self.0.push(values);
        Ok(Flow::Continue)
    }
}

/// Sorts primary keys by ORDER BY.
pub(super) struct KeySorter<'a, 'p>(Sorter<'a, 'p>);

impl<'a, 'p> KeySorter<'a, 'p> {
    pub(super) fn new(order: &'p SortOrder, arena: &'a Bump, wanted: u64) -> KeySorter<'a, 'p> {
        KeySorter(Sorter::new(order, arena, wanted))
    }

    pub(super) fn add(
        &mut self,
        primary_key: &[u8],
        row: &Row<'_>,
        context: &Context<'_>,
    ) -> Result<(), SqlError> {
        let mut keys = recycle(std::mem::take(&mut self.0.keys));
        for item in &self.0.order.items {
            match item {
                SortValue::Value(value) => keys.push(value.evaluate(row, context)?),
                SortValue::Output(_) => {
                    return Err(SqlError::internal("a sort key in a result that there is not"));
                }
            }
        }
        self.0.encode_key(&keys);
        self.0.keys = recycle(keys);
        self.0.push(&[ValueRef::Binary(primary_key)]);
        Ok(())
    }

    /// Appends the keys that are wanted, in order.
    pub(super) fn finish(mut self, keys: &mut engine::KeyList) {
        self.0.rows.sort_unstable_by(Sorted::order);
        for row in self.0.rows.iter().take(self.0.wanted) {
            keys.push(row.values[0].as_bytes().unwrap_or_default());
        }
    }
}
