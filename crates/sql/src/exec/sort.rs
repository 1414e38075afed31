//! Sorts for ORDER BY if no index gives the order.
//!
//! Rows are kept in an arena. When they take more than `sort_buffer_size`, they move on to a sorter that
//! writes them to a file, and so do all rows behind them.

use super::output::evaluate;
use super::query::Runtime;
use super::seen::{Novelty, Seen};
use super::{Flow, RowConsumer, RowSink, recycle};
use crate::SqlError;
use crate::expr::{Context, Part, Row, Slots};
use crate::memory::Charge;
use crate::plan::plan::{SelectPlan, SortOrder, SortValue};
use crate::spill::{self, Workspace, append_row, read_row};
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
    /// WITH TIES: behind so many rows follow those whose keys are equal to that of the last one.
    ties_behind: Option<u64>,
    /// A row with a key above this one cannot be part of the result.
    cut: Option<&'a [u8]>,
    nth: u64,
    key: Vec<u8>,
    keys: Vec<ValueRef<'static>>,
    values: Vec<ValueRef<'static>>,
    workspace: Workspace<'p>,
    /// Bytes of the rows, and of those that were thrown away, in the arena.
    bytes: usize,
    /// When they reach this many, more memory is asked for.
    bytes_next: usize,
    charge: Charge,
    /// Takes all rows once they do not fit into the buffer.
    beyond: Option<Box<spill::Sorter<'p>>>,
    row: Vec<u8>,
}

/// With a LIMIT, rows beyond it are thrown away when there are this many times more, and [`SLACK_ROWS`] on
/// top.
const SLACK: usize = 2;
const SLACK_ROWS: usize = 1024;
/// For how many rows there is room at first.
const ROWS_FIRST: usize = 128;
/// Rows in memory are sorted without looking whether the statement was killed, so there are never more than
/// these, however large `sort_buffer_size` is.
const SORT_BYTES_MAX: usize = 64 << 20;

impl<'a, 'p> Sorter<'a, 'p> {
    pub(super) fn new(
        order: &'p SortOrder,
        arena: &'a Bump,
        wanted: u64,
        ties: bool,
        workspace: Workspace<'p>,
    ) -> Sorter<'a, 'p> {
        let ties_behind = ties.then_some(wanted);
        let wanted = if ties { u64::MAX } else { wanted };
        let charge = Charge::default();
        Sorter {
            arena,
            order,
            rows: Vec::with_capacity(usize::try_from(wanted).unwrap_or(ROWS_FIRST).min(ROWS_FIRST)),
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            ties_behind,
            cut: None,
            nth: 0,
            key: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
            workspace,
            bytes: 0,
            bytes_next: charge.covered().min(workspace.limits.sort_bytes),
            charge,
            beyond: None,
            row: Vec::new(),
        }
    }

    /// Takes the row whose key is in `self.key`.
    fn push(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.nth += 1;
        if let Some(beyond) = &mut self.beyond {
            self.row.clear();
            append_row(values, &mut self.row);
            return beyond.push(&self.key, &self.row);
        }
        if self.cut.is_some_and(|cut| self.key.as_slice() > cut) {
            return Ok(());
        }
        let arena = self.arena;
        let texts: usize = values.iter().filter_map(ValueRef::as_bytes).map(<[u8]>::len).sum();
        self.bytes += size_of::<Sorted<'_>>() + self.key.len() + size_of_val(values) + texts;
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
        if self.bytes < self.bytes_next { Ok(()) } else { self.grow() }
    }

    /// Asks for more memory. If the buffer is full, the rows move on.
    #[cold]
    fn grow(&mut self) -> Result<(), SqlError> {
        let sort_bytes = self.workspace.limits.sort_bytes.min(SORT_BYTES_MAX);
        if self.bytes < sort_bytes {
            self.charge.cover(self.bytes + 1, self.workspace.account)?;
            self.bytes_next = self.charge.covered().min(sort_bytes);
            return Ok(());
        }
        self.workspace.interrupt.check()?;
        // In the order in which they came, if their keys are equal.
        self.rows.sort_unstable_by(Sorted::order);
        let mut beyond = Box::new(spill::Sorter::new(self.workspace, sort_bytes, self.wanted));
        for row in self.rows.drain(..) {
            self.row.clear();
            append_row(row.values, &mut self.row);
            beyond.push(row.key, &self.row)?;
        }
        self.beyond = Some(beyond);
        Ok(())
    }

    /// Hands the rows on in order.
    pub(super) fn finish(mut self, out: &mut dyn RowSink) -> Result<Flow, SqlError> {
        let mut ties = Ties { behind: self.ties_behind, last: Vec::new(), sent: 0 };
        if let Some(beyond) = self.beyond.take() {
            let mut rows = beyond.finish()?;
            while rows.advance()? {
                if ties.end_before(rows.key()) {
                    return Ok(Flow::Continue);
                }
                let mut values = recycle(std::mem::take(&mut self.values));
                read_row(rows.row(), &mut values)?;
                let flow = out.row(&values)?;
                self.values = recycle(values);
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            return Ok(Flow::Continue);
        }
        self.rows.sort_unstable_by(Sorted::order);
        for row in &self.rows {
            if ties.end_before(row.key) {
                break;
            }
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

/// Finds the end of a result WITH TIES.
struct Ties {
    /// `None` if the result does not end here.
    behind: Option<u64>,
    /// The key of the last row that belongs to the result in any case.
    last: Vec<u8>,
    sent: u64,
}

impl Ties {
    /// True if the next row, which has this key, is not wanted any more.
    fn end_before(&mut self, key: &[u8]) -> bool {
        let Some(behind) = self.behind else { return false };
        self.sent += 1;
        if self.sent == behind {
            self.last.extend_from_slice(key);
        }
        self.sent > behind && self.last != key
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

impl SortRows<'_, '_> {
    /// Hands the rows on in order.
    pub(super) fn finish(mut self, out: &mut dyn RowSink) -> Result<Flow, SqlError> {
        if let Some(mut seen) = self.distinct.take() {
            let sorter = &mut self.sorter;
            seen.finish(&mut |row| {
                let bad = || SqlError::internal("a row without its sort key");
                let (length, row) = row.split_first_chunk().ok_or_else(bad)?;
                let length = u32::from_le_bytes(*length) as usize;
                let (key, row) = row.split_at_checked(length).ok_or_else(bad)?;
                sorter.key.clear();
                sorter.key.extend_from_slice(key);
                let mut values = Vec::new();
                read_row(row, &mut values)?;
                sorter.push(&values)?;
                Ok(Flow::Continue)
            })?;
        }
        self.sorter.finish(out)
    }

    /// Takes a row whose sort key is in the sorter. `novelty` says whether DISTINCT knows it.
    fn take(&mut self, novelty: Novelty, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let key = &self.sorter.key;
        match (novelty, &mut self.distinct) {
            (Novelty::Unknown, Some(seen)) => {
                let append = |row: &mut Vec<u8>| {
                    row.extend_from_slice(&(key.len() as u32).to_le_bytes());
                    row.extend_from_slice(key);
                    append_row(values, row);
                };
                // If the order is that of the whole result, its key serves DISTINCT.
                if self.plan.order.is_result { seen.put_off_key(key, append) } else { seen.put_off(append) }
            }
            _ => self.sorter.push(values),
        }
    }
}

impl RowConsumer for SortRows<'_, '_> {
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        let mut values = recycle(std::mem::take(&mut self.sorter.values));
        evaluate(&self.plan.output, row, context, false, &mut values)?;
        if self.plan.order.is_result {
            // The same key serves DISTINCT.
            self.sorter.encode_key(&values);
            let novelty = match &mut self.distinct {
                Some(seen) => seen.note_key(&self.sorter.key)?,
                None => Novelty::New,
            };
            if novelty != Novelty::Known {
                self.take(novelty, &values)?;
            }
        } else {
            let novelty = match &mut self.distinct {
                Some(seen) => seen.note(&values)?,
                None => Novelty::New,
            };
            if novelty != Novelty::Known {
                let mut keys = recycle(std::mem::take(&mut self.sorter.keys));
                for item in &self.sorter.order.items {
                    keys.push(match item {
                        SortValue::Output(at) => values[*at],
                        SortValue::Value(value) => value.evaluate(row, context)?,
                    });
                }
                self.sorter.encode_key(&keys);
                self.sorter.keys = recycle(keys);
                self.take(novelty, &values)?;
            }
        }
        self.sorter.values = recycle(values);
        Ok(Flow::Continue)
    }
}

/// Sorts rows of a result by its own columns.
pub(super) struct SortResult<'a, 'p> {
    pub(super) sorter: Sorter<'a, 'p>,
    pub(super) slots: Slots<'p>,
    pub(super) runtime: &'p Runtime<'p>,
}

impl RowSink for SortResult<'_, '_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        let arena = Bump::new();
        let parts = [Part::Values(values)];
        let row = Row(&parts);
        let (slots, runtime) = (self.slots, self.runtime);
        let context =
            Context { slots, arena: &arena, environment: runtime.environment, subqueries: Some(runtime) };
        let mut keys = recycle(std::mem::take(&mut self.sorter.keys));
        for item in &self.sorter.order.items {
            keys.push(match item {
                SortValue::Output(at) => values[*at],
                SortValue::Value(value) => value.evaluate(&row, &context)?,
            });
        }
        self.sorter.encode_key(&keys);
        self.sorter.keys = recycle(keys);
        self.sorter.push(values)?;
        Ok(Flow::Continue)
    }
}

/// Sorts primary keys by ORDER BY.
pub(super) struct KeySorter<'a, 'p>(Sorter<'a, 'p>);

impl<'a, 'p> KeySorter<'a, 'p> {
    /// Sorts all keys.
    pub(super) fn new(order: &'p SortOrder, arena: &'a Bump, workspace: Workspace<'p>) -> KeySorter<'a, 'p> {
        KeySorter(Sorter::new(order, arena, u64::MAX, false, workspace))
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
        self.0.push(&[ValueRef::Binary(primary_key)])
    }

    /// Hands on the keys in order.
    pub(super) fn finish(self, each: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>) -> Result<(), SqlError> {
        self.0.finish(&mut EachKey(each)).map(|_| ())
    }
}

struct EachKey<'e>(&'e mut dyn FnMut(&[u8]) -> Result<(), SqlError>);

impl RowSink for EachKey<'_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        (self.0)(values[0].as_bytes().unwrap_or_default())?;
        Ok(Flow::Continue)
    }
}
