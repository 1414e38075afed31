//! Finds the rows that an UPDATE or DELETE may change.

use super::Flow;
use super::access::{Find, Scratch, Wants, for_each_row, named_rows};
use super::query::{Runtime, limits};
use super::seen::{Novelty, Seen};
use super::sort::KeySorter;
use crate::SqlError;
use crate::expr::{Context, Row, Slots};
use crate::plan::change::TableRead;
use crate::spill::{Spool, Spooled, Workspace};
use base::IndexId;
use bumpalo::Bump;
use engine::Reader;

/// The rows that may have to be changed.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Their primary keys, in the order in which they are to be changed. The entries have no rows.
    pub keys: Spooled,
    /// How many rows LIMIT allows to be changed.
    pub wanted: u64,
    /// False if there may be more rows: the scan ended when it had found as many as it was asked for.
    pub complete: bool,
}

/// The keys found so far, each of them once: a row may be found by what it is and by what it was.
enum Found<'p> {
    /// Both images of a row come one after the other.
    Clustered {
        last: Vec<u8>,
        any: bool,
        keys: Spool,
        workspace: Workspace<'p>,
    },
    Any {
        seen: Seen<'p>,
        keys: Spool,
        workspace: Workspace<'p>,
    },
}

impl Found<'_> {
    fn push(&mut self, key: &[u8]) -> Result<(), SqlError> {
        match self {
            Found::Clustered { last, any: true, .. } if last == key => Ok(()),
            Found::Clustered { last, any, keys, workspace } => {
                *any = true;
                last.clear();
                last.extend_from_slice(key);
                keys.push(key, &[], *workspace)
            }
            Found::Any { seen, keys, workspace } => match seen.note_key(key)? {
                Novelty::New => keys.push(key, &[], *workspace),
                Novelty::Known => Ok(()),
                Novelty::Unknown => seen.put_off_key(key, |row| row.extend_from_slice(key)),
            },
        }
    }

    /// How many keys are known to be new.
    fn len(&self) -> usize {
        match self {
            Found::Clustered { keys, .. } | Found::Any { keys, .. } => keys.len(),
        }
    }

    fn finish(self) -> Result<Spooled, SqlError> {
        match self {
            Found::Clustered { keys, .. } => keys.finish(),
            Found::Any { mut seen, mut keys, workspace } => {
                seen.finish(&mut |key| keys.push(key, &[], workspace).map(|()| Flow::Continue))?;
                keys.finish()
            }
        }
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
    if scratch.is_empty() {
        scratch.push(Scratch::default());
    }
    let outer_arena = Bump::new();
    let mut arena = Bump::new();
    let outer_context =
        Context { slots, arena: &outer_arena, environment: runtime.environment, subqueries: Some(runtime) };
    let is_ordered = !read.order.items.is_empty();
    if wanted == 0 || !is_ordered && named_rows(&read.access, &Row::EMPTY, &outer_context, &mut scratch[0])? {
        let mut keys = Spool::default();
        if wanted > 0 {
            let named = scratch[0].sorted();
            (0..named.len()).try_for_each(|position| keys.keep(named.get(position), &[]))?;
        }
        return Ok(Candidates { keys: keys.finish()?, wanted, complete: true });
    }
    let workspace = runtime.workspace();
    let sort_arena = Bump::new();
    // If rows are sorted, all keys are needed: the first ones may turn out not to meet the condition.
    let mut sorter = KeySorter::new(&read.order, &sort_arena, workspace);
    let keys = Spool::default();
    let mut found = match read.access.index() {
        IndexId(0) if !is_ordered => Found::Clustered { last: Vec::new(), any: false, keys, workspace },
        _ => Found::Any { seen: Seen::of_keys(workspace), keys, workspace },
    };
    let mut complete = true;
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
        if is_ordered {
            sorter.add(primary_key, &row, &context)?;
            return Ok(Flow::Continue);
        }
        found.push(primary_key)?;
        complete = (found.len() as u64) < limit;
        Ok(if complete { Flow::Continue } else { Flow::Stop })
    })?;
    if is_ordered {
        sorter.finish(&mut |key| found.push(key))?;
    }
    Ok(Candidates { keys: found.finish()?, wanted, complete })
}
