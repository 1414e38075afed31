//! Finds the rows that an UPDATE or DELETE may change.

use super::Flow;
use super::access::{Find, Scratch, Wants, for_each_row, named_rows};
use super::key_set::KeySet;
use super::lock::Done;
use super::query::{Runtime, limits};
use super::sort::KeySorter;
use crate::SqlError;
use crate::expr::{Context, Row, Slots};
use crate::memory::{Account, Charge};
use crate::plan::change::TableRead;
use base::sync::Arc;
use bumpalo::Bump;
use engine::{KeyList, Reader};

/// The rows that may have to be changed, in the order in which they are to be changed.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub keys: KeyList,
    /// How many rows LIMIT allows to be changed.
    pub wanted: u64,
    /// False if there may be more rows: the scan ended when it had found as many as it was asked for.
    pub complete: bool,
    charge: Charge,
}

impl Candidates {
    fn push(&mut self, key: &[u8], account: &Arc<Account>) -> Result<(), SqlError> {
        self.keys.push(key);
        self.charge.cover(self.keys.bytes.len() + size_of_val(self.keys.ends.as_slice()), account)
    }
}

/// Finds the primary keys of up to `limit` rows that, as `reader` sees them, may have to be changed. Each is
/// found once.
///
/// # Errors
/// Of the engine and of evaluating conditions.
pub(crate) fn candidates(
    reader: Reader<'_>,
    read: &TableRead,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    limit: u64,
) -> Result<Candidates, SqlError> {
    let (_, wanted) = limits(&read.limit, &slots, runtime.environment)?;
    let limit = limit.max(wanted);
    let mut found = Candidates { wanted, complete: true, ..Candidates::default() };
    if wanted == 0 {
        return Ok(found);
    }
    if scratch.is_empty() {
        scratch.push(Scratch::default());
    }
    let outer_arena = Bump::new();
    let mut arena = Bump::new();
    let outer_context =
        Context { slots, arena: &outer_arena, environment: runtime.environment, subqueries: Some(runtime) };
    if read.order.items.is_empty() && named_rows(&read.access, &Row::EMPTY, &outer_context, &mut scratch[0])?
    {
        let keys = scratch[0].sorted();
        (0..keys.len()).for_each(|position| found.keys.push(keys.get(position)));
        return Ok(found);
    }
    let workspace = runtime.workspace();
    let sort_arena = Bump::new();
    // If rows are sorted, all keys are needed: the first ones may turn out not to meet the condition.
    let mut sorter = KeySorter::new(&read.order, &sort_arena, workspace);
    let mut done = Done::new(&read.access);
    let find =
        Find { reader, table: &read.table, access: &read.access, outer: Row::EMPTY, context: &outer_context };
    for_each_row(&find, &mut scratch[0], Wants::Keys, &mut |primary_key, part, left| {
        runtime.interrupt.check()?;
        arena.reset();
        let context =
            Context { slots, arena: &arena, environment: runtime.environment, subqueries: Some(runtime) };
        let row = Row(std::slice::from_ref(part));
        let filter = left.of(&read.access);
        if let Some(filter) = filter
            && !filter.is_true(&row, &context)?
        {
            return Ok(Flow::Continue);
        }
        if !read.order.items.is_empty() {
            sorter.add(primary_key, &row, &context)?;
            return Ok(Flow::Continue);
        }
        if !done.is_first(primary_key) {
            return Ok(Flow::Continue);
        }
        found.push(primary_key, workspace.account)?;
        found.complete = (found.keys.len() as u64) < limit;
        Ok(if found.complete { Flow::Continue } else { Flow::Stop })
    })?;
    if !read.order.items.is_empty() {
        let mut seen = KeySet::default();
        sorter.finish(&mut |key| match seen.insert(key) {
            true => found.push(key, workspace.account),
            false => Ok(()),
        })?;
    }
    Ok(found)
}
