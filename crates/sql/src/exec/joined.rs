//! Joins whose rows a statement changes: UPDATE and DELETE of several tables.
//!
//! All rows are found, and locked, before the first one is changed. So the statement does not see what it
//! changes. A row may be found several times, since other tables may have several rows for it. Its first time
//! counts.

use super::access::Scratch;
use super::join::{Join, JoinToChange};
use super::query::{Runtime, limits, materialize};
use super::seen::{Novelty, Seen};
use super::sort::KeySorter;
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::{Context, Row, Slots};
use crate::plan::joined::JoinedRead;
use crate::spill::{Spool, Spooled, Workspace};
use bumpalo::Bump;
use std::cell::RefCell;

/// What is made of the joined rows.
pub(crate) trait Joining {
    /// Appends to `out` what is to be done for a joined row. `keys` has, by part, the primary keys of the
    /// rows to be changed. They are locked.
    ///
    /// # Errors
    /// Of evaluating expressions.
    fn make(
        &mut self,
        row: &Row<'_>,
        context: &Context<'_>,
        keys: &[Vec<u8>],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError>;

    /// Takes what [`Joining::make`] appended, in the order of the statement.
    ///
    /// # Errors
    /// Of keeping it.
    fn take(&mut self, made: &[u8]) -> Result<(), SqlError>;
}

/// Runs the join of a statement that changes rows.
///
/// # Errors
/// Of the engine, of evaluating expressions, and those of `joining`.
pub(crate) fn join_to_change(
    read: &JoinedRead,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    joining: &mut dyn Joining,
) -> Result<(), SqlError> {
    let plan = read.select()?;
    let (_, count) = limits(&plan.limit, &slots, runtime.environment)?;
    if count == 0 {
        return Ok(());
    }
    let materialized = materialize(plan, slots, runtime, scratch)?;
    if scratch.len() < plan.steps.len() {
        scratch.resize_with(plan.steps.len(), Scratch::default);
    }
    let keys = RefCell::new(vec![Vec::new(); plan.inputs.len()]);
    let unasked = runtime.locks.as_ref().and_then(|locks| locks.unasked);
    let change = Some(JoinToChange { parts: read.changed, unasked, keys: &keys });
    let join = Join { plan, slots, runtime, materialized: &materialized, lock: plan.lock, change };
    let arena = Bump::new();
    let sorter =
        (!plan.order.items.is_empty()).then(|| KeySorter::new(&plan.order, &arena, runtime.workspace()));
    let mut rows = ToChange { keys: &keys, joining, sorter, left: count, made: Vec::new() };
    join.run(scratch, &mut rows)?;
    let ToChange { joining, sorter, mut left, .. } = rows;
    let Some(sorter) = sorter else { return Ok(()) };
    sorter.finish(&mut |made| {
        if left == 0 {
            return Ok(());
        }
        left -= 1;
        joining.take(made)
    })
}

struct ToChange<'c, 's, 'p> {
    keys: &'c RefCell<Vec<Vec<u8>>>,
    joining: &'c mut dyn Joining,
    /// Set if there is an order.
    sorter: Option<KeySorter<'s, 'p>>,
    /// How many more rows LIMIT allows.
    left: u64,
    made: Vec<u8>,
}

impl RowConsumer for ToChange<'_, '_, '_> {
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        self.made.clear();
        self.joining.make(row, context, &self.keys.borrow(), &mut self.made)?;
        if let Some(sorter) = &mut self.sorter {
            sorter.add(&self.made, row, context)?;
            return Ok(Flow::Continue);
        }
        self.joining.take(&self.made)?;
        self.left -= 1;
        Ok(if self.left == 0 { Flow::Stop } else { Flow::Continue })
    }
}

/// Rows of one table by their primary keys, each as it was first told.
pub(crate) struct FirstRows<'w> {
    seen: Seen<'w>,
    rows: Spool,
    workspace: Workspace<'w>,
}

const LENGTH_BYTES: usize = size_of::<u32>();

impl<'w> FirstRows<'w> {
    pub(crate) fn new(workspace: Workspace<'w>) -> FirstRows<'w> {
        FirstRows { seen: Seen::of_keys(workspace), rows: Spool::default(), workspace }
    }

    /// Notes `row` for a key, unless there is one already.
    ///
    /// # Errors
    /// Of keeping rows.
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        match self.seen.note_key(key)? {
            Novelty::New => self.rows.push(key, row, self.workspace),
            Novelty::Known => Ok(()),
            Novelty::Unknown => self.seen.put_off_key(key, |out| {
                out.extend_from_slice(&(key.len() as u32).to_le_bytes());
                out.extend_from_slice(key);
                out.extend_from_slice(row);
            }),
        }
    }

    /// The rows with their keys, in the order in which they came.
    ///
    /// # Errors
    /// Of keeping rows.
    pub(crate) fn finish(self) -> Result<Spooled, SqlError> {
        let FirstRows { mut seen, mut rows, workspace } = self;
        seen.finish(&mut |stored| {
            let damaged = || SqlError::internal("a damaged scratch file");
            let (length, rest) = stored.split_first_chunk::<LENGTH_BYTES>().ok_or_else(damaged)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (key, row) = rest.split_at_checked(length).ok_or_else(damaged)?;
            rows.push(key, row, workspace).map(|()| Flow::Continue)
        })?;
        rows.finish()
    }
}
