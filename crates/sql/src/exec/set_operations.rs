//! UNION, INTERSECT and EXCEPT.
//!
//! Branches run one after the other. UNION hands their rows on as they come. For INTERSECT and EXCEPT the
//! rows of both sides are sorted by their values, so that equal ones lie side by side, and what is left is
//! sorted again by when it came.

use super::output::{Limited, hand_on};
use super::query::{Done, Runtime, limits, run_query};
use super::seen::{Novelty, Seen};
use super::sort::{SortResult, Sorter};
use super::{Flow, RowSink, Scratch};
use crate::SqlError;
use crate::expr::Slots;
use crate::expr::value_keys::is_of_type;
use crate::plan::plan::{SetOperation, SetOperator, UnionPlan};
use crate::spill::{self, append_row};
use bumpalo::Bump;
use types::{Column, ColumnType, ValueRef};

pub(super) fn run_set_operations(
    plan: &UnionPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    out: &mut dyn RowSink,
) -> Result<Done, SqlError> {
    let (offset, count) = limits(&plan.limit, &slots, runtime.environment)?;
    let sent_max = if plan.limit.ties { u64::MAX } else { count };
    let mut limited = Limited { offset, count: sent_max, counts_on: false, seen: 0, sent: 0, out };
    if count == 0 {
        return Ok(Done::default());
    }
    let mut run = Run { plan, slots, runtime, scratch };
    let all = plan.branches.len();
    if plan.order.items.is_empty() {
        run.branches(all, &mut limited)?;
    } else {
        let arena = Bump::new();
        let wanted = offset.saturating_add(count);
        let sorter = Sorter::new(&plan.order, &arena, wanted, plan.limit.ties, runtime.workspace());
        let mut sort = SortResult { sorter, slots, runtime };
        run.branches(all, &mut sort)?;
        sort.sorter.finish(&mut limited)?;
    }
    Ok(Done { sent: limited.sent, found: limited.sent })
}

struct Run<'p, 's> {
    plan: &'p UnionPlan,
    slots: Slots<'p>,
    runtime: &'p Runtime<'p>,
    scratch: &'s mut Vec<Scratch>,
}

impl<'p> Run<'p, '_> {
    /// Hands on the result of the first `count` branches.
    fn branches(&mut self, count: usize, out: &mut dyn RowSink) -> Result<(), SqlError> {
        let plan = self.plan;
        // The branches up to this one come as one result.
        let combined = plan.last_combined(count);
        let distinct_until = plan.distinct_until(count);
        let seen = Seen::new(&plan.keys, self.runtime.workspace());
        let mut branches = Branches { plan, seen, distinct: false, stopped: false, out };
        for at in combined.unwrap_or(0)..count {
            branches.distinct = distinct_until.is_some_and(|last| at <= last);
            match combined == Some(at) {
                true => self.combine(at, plan.operations[at - 1], &mut branches)?,
                false => {
                    run_query(&plan.branches[at], self.slots, self.runtime, self.scratch, &mut branches)?;
                }
            }
            if !branches.stopped && distinct_until == Some(at) {
                branches.finish()?;
            }
            if branches.stopped {
                break;
            }
        }
        Ok(())
    }

    /// Joins branch `at` to those before it by INTERSECT or EXCEPT.
    fn combine(&mut self, at: usize, operation: SetOperation, out: &mut dyn RowSink) -> Result<(), SqlError> {
        let workspace = self.runtime.workspace();
        let limits = workspace.limits;
        let new = || spill::Sorter::new(workspace, limits.sort_bytes.max(limits.table_bytes), usize::MAX);
        let (sorter, row, key) = (new(), Vec::new(), Vec::new());
        let mut sides = Sides { plan: self.plan, sorter, count: 0, is_right: false, row, key };
        self.branches(at, &mut sides)?;
        sides.is_right = true;
        run_query(&self.plan.branches[at], self.slots, self.runtime, self.scratch, &mut sides)?;
        let mut rows = sides.sorter.finish()?;
        let mut result = new();
        let mut group = Group::default();
        while rows.advance()? {
            if rows.key() != group.key || group.left + group.right == 0 {
                group.end(operation, &mut result)?;
                group.key.extend_from_slice(rows.key());
            }
            group.add(rows.row())?;
        }
        group.end(operation, &mut result)?;
        drop(rows);
        let mut rows = result.finish()?;
        while rows.advance()? {
            if hand_on(rows.row(), out)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}

/// Takes the rows of both sides. Behind its side and its number lies each row.
struct Sides<'p> {
    plan: &'p UnionPlan,
    sorter: spill::Sorter<'p>,
    count: u64,
    is_right: bool,
    row: Vec<u8>,
    key: Vec<u8>,
}

const NUMBER_BYTES: usize = size_of::<u64>();

impl RowSink for Sides<'_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        let arena = Bump::new();
        let alike = alike(&self.plan.columns, values, &arena);
        self.key.clear();
        self.plan.keys.encode(&alike, &mut self.key);
        self.row.clear();
        self.row.push(u8::from(self.is_right));
        if !self.is_right {
            self.row.extend_from_slice(&self.count.to_be_bytes());
            append_row(&alike, &mut self.row);
        }
        self.count += 1;
        self.sorter.push(&self.key, &self.row)?;
        Ok(Flow::Continue)
    }

    fn wants_all_digits(&self) -> bool {
        true
    }
}

/// The rows of equal values.
#[derive(Default)]
struct Group {
    key: Vec<u8>,
    left: u64,
    right: u64,
    /// The left side's first one, and its number.
    first: Vec<u8>,
    number: [u8; NUMBER_BYTES],
}

impl Group {
    fn add(&mut self, row: &[u8]) -> Result<(), SqlError> {
        match row.split_first() {
            Some((0, row)) => {
                let bad = || SqlError::internal("a row without its number");
                let (number, row) = row.split_first_chunk().ok_or_else(bad)?;
                if self.left == 0 || *number < self.number {
                    self.number = *number;
                    self.first.clear();
                    self.first.extend_from_slice(row);
                }
                self.left += 1;
            }
            _ => self.right += 1,
        }
        Ok(())
    }

    /// Hands on as many rows as the operation leaves, and forgets all of them.
    fn end(&mut self, operation: SetOperation, result: &mut spill::Sorter<'_>) -> Result<(), SqlError> {
        let count = match (operation.operator, operation.all) {
            (SetOperator::Intersect, true) => self.left.min(self.right),
            (SetOperator::Intersect, false) => self.left.min(self.right).min(1),
            (SetOperator::Except, true) => self.left.saturating_sub(self.right),
            (SetOperator::Except, false) => u64::from(self.left > 0 && self.right == 0),
            (SetOperator::Union, _) => return Err(SqlError::internal("a UNION that sorts")),
        };
        for _ in 0..count {
            result.push(&self.number, &self.first)?;
        }
        self.key.clear();
        (self.left, self.right) = (0, 0);
        Ok(())
    }
}

/// The values as the columns have them.
fn alike<'a>(columns: &[Column], values: &[ValueRef<'a>], arena: &'a Bump) -> Vec<ValueRef<'a>> {
    let convert = |(column, value): (&Column, &ValueRef<'a>)| match is_of_type(value, column)
        && shows_digits_of(value, column)
    {
        true => *value,
        false => crate::expr::coerce(*value, column, None, arena).value,
    };
    columns.iter().zip(values).map(convert).collect()
}

/// Converts the rows of a union's branches to the same types.
struct Branches<'p, 's> {
    plan: &'p UnionPlan,
    seen: Seen<'p>,
    distinct: bool,
    stopped: bool,
    out: &'s mut dyn RowSink,
}

impl Branches<'_, '_> {
    /// Hands on the rows that were put off.
    fn finish(&mut self) -> Result<(), SqlError> {
        let Branches { seen, out, .. } = self;
        let flow = seen.finish(&mut |row| hand_on(row, &mut **out))?;
        self.stopped |= flow == Flow::Stop;
        Ok(())
    }
}

/// False for a time that shows another number of digits of its seconds' fraction than the column does.
fn shows_digits_of(value: &ValueRef<'_>, column: &Column) -> bool {
    match (value, &column.column_type) {
        // Six is what a text may have, and its value has fewer.
        (ValueRef::Time(time), ColumnType::Time { fsp }) => time.fsp == *fsp || *fsp == 6,
        (ValueRef::DateTime(moment), ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp }) => {
            moment.fsp == *fsp || *fsp == 6
        }
        _ => true,
    }
}

impl RowSink for Branches<'_, '_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        debug_assert_eq!(values.len(), self.plan.columns.len());
        let arena = Bump::new();
        let alike = alike(&self.plan.columns, values, &arena);
        if self.distinct {
            match self.seen.note(&alike)? {
                Novelty::New => {}
                Novelty::Known => return Ok(Flow::Continue),
                Novelty::Unknown => {
                    self.seen.put_off(|row| append_row(&alike, row))?;
                    return Ok(Flow::Continue);
                }
            }
        }
        let flow = self.out.row(&alike)?;
        self.stopped |= flow == Flow::Stop;
        Ok(flow)
    }

    // The columns of the union round them.
    fn wants_all_digits(&self) -> bool {
        true
    }
}
