//! The rows that an UPDATE or DELETE means.

use super::Flow;
use super::access::{Left, Scratch, Wants, for_each_row};
use super::query::{Inner, Runtime, limits, run_subqueries};
use super::sort::KeySorter;
use crate::SqlError;
use crate::expr::{Context, Row, Slots};
use crate::plan::change::TableRead;
use bumpalo::Bump;
use engine::KeyList;

/// Calls `body` with the statement's slots, those of its subqueries' results included.
///
/// # Errors
/// Those of the subqueries and of `body`.
pub fn with_read_slots<T>(
    read: &TableRead,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    body: &mut Inner<'_, T>,
) -> Result<T, SqlError> {
    run_subqueries(&read.subqueries, slots, runtime, scratch, body)
}

/// Appends the primary keys of the rows that are meant now, in the order in which they are to be changed.
///
/// # Errors
/// Of the engine and of evaluating conditions.
pub fn matching_keys(
    read: &TableRead,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    keys: &mut KeyList,
) -> Result<(), SqlError> {
    let (_, count) = limits(&read.limit, &slots)?;
    if scratch.is_empty() {
        scratch.push(Scratch::default());
    }
    let outer_arena = Bump::new();
    let mut arena = Bump::new();
    let outer_context = Context { slots, arena: &outer_arena, environment: runtime.environment };
    let sort_arena = Bump::new();
    let mut sorter = KeySorter::new(&read.order, &sort_arena, count);
    let mut found = 0;
    for_each_row(
        &read.table,
        &read.access,
        &Row::EMPTY,
        &outer_context,
        &mut scratch[0],
        Wants::Keys,
        &mut |primary_key, part, left| {
            runtime.interrupt.check()?;
            arena.reset();
            let context = Context { slots, arena: &arena, environment: runtime.environment };
            let parts = [part];
            let row = Row(&parts);
            let filter = match left {
                Left::Residual => &read.access.residual,
                Left::All => &read.access.all,
            };
            if let Some(filter) = filter
                && !filter.is_true(&row, &context)?
            {
                return Ok(Flow::Continue);
            }
            if !read.order.is_empty() {
                sorter.add(primary_key, &row, &context)?;
                return Ok(Flow::Continue);
            }
            if found == count {
                return Ok(Flow::Stop);
            }
            found += 1;
            keys.push(primary_key);
            Ok(if found == count { Flow::Stop } else { Flow::Continue })
        },
    )?;
    if !read.order.is_empty() {
        sorter.finish(keys);
    }
    Ok(())
}
