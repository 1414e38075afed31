//! Locking reads: FOR UPDATE, LOCK IN SHARE MODE, and the reads that SERIALIZABLE and INSERT ... SELECT lock
//! without being told to.
//!
//! A row is found, locked, and then read again: only its newest image counts, and nobody else can change that
//! any more. For each table, the rows that meet the conditions of the table's access are locked. If the order
//! of an index matters, a row counts only by its newest entry in that index. If it was found by an older
//! entry, it is skipped there, because the scan finds it again by the newer one.
//!
//! Otherwise the keys of the rows that were found are kept, since a row may be found by two entries. When
//! they take more than a temporary table may, a row with another key is put off: the scan goes on, and at its
//! end these rows are locked and handed on, in the order in which they were found.

use super::Flow;
use super::access::{Find, Scratch, Wants, for_each_row, named_rows};
use super::join::passes;
use super::seen::{Novelty, Seen};
use crate::SqlError;
use crate::expr::{Part, Row};
use crate::plan::plan::{LockClause, LockPatience, SelectPlan};
use crate::spill::Workspace;
use base::IndexId;
use engine::{Error, LockMode, LockWait, LockedRow, Reader, Table, Writer};
use std::cell::RefCell;

/// Locks rows for a statement.
pub(crate) trait LockRows {
    /// Locks one row and gives its newest image. `None` if there is no such row, or if it is to be skipped
    /// because it is locked.
    ///
    /// # Errors
    /// 1020, 1205, 1213, 1317, and those of the engine.
    fn lock(
        &self,
        table: &Table,
        primary_key: &[u8],
        clause: LockClause,
    ) -> Result<Option<LockedRow>, SqlError>;

    /// The row is not meant after all.
    fn give_back(&self, row: LockedRow);
}

/// Locks rows through the statement's own writer, which may change other rows in between.
pub(crate) struct WriterLocks<'a, 'w>(pub &'a RefCell<Writer<'w>>);

impl LockRows for WriterLocks<'_, '_> {
    fn lock(
        &self,
        table: &Table,
        primary_key: &[u8],
        clause: LockClause,
    ) -> Result<Option<LockedRow>, SqlError> {
        let mode = if clause.exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let wait = match clause.wait {
            LockPatience::Default | LockPatience::Seconds(_) => LockWait::Wait,
            LockPatience::NoWait | LockPatience::SkipLocked => LockWait::NoWait,
        };
        match self.0.borrow_mut().lock(table, primary_key, mode, wait) {
            Err(Error::WouldBlock) if clause.wait == LockPatience::SkipLocked => Ok(None),
            result => Ok(result?),
        }
    }

    fn give_back(&self, row: LockedRow) {
        self.0.borrow_mut().give_back(row);
    }
}

/// How a statement locks the rows that it reads.
#[derive(Clone, Copy)]
pub(crate) struct RowLocks<'r> {
    /// The reader that finds rows which may have to be locked.
    pub candidates: Reader<'r>,
    pub rows: &'r dyn LockRows,
    /// The lock of SELECTs that name none themselves.
    pub unasked: Option<LockClause>,
}

impl RowLocks<'_> {
    pub(super) fn clause_of(&self, plan: &SelectPlan) -> Option<LockClause> {
        plan.lock.or(self.unasked)
    }
}

/// Takes the primary key and the newest image of a row.
pub(super) type EachLocked<'e> = dyn FnMut(&[u8], &[u8]) -> Result<Flow, SqlError> + 'e;

/// Locks the rows of an access and hands each on, by its primary key and its newest image, that meets the
/// access's conditions. `part` is the position of the table in the row.
pub(super) fn lock_each_row(
    locks: &RowLocks<'_>,
    clause: LockClause,
    part: usize,
    find: &Find<'_>,
    scratch: &mut Scratch,
    workspace: Workspace<'_>,
    each: &mut EachLocked<'_>,
) -> Result<Flow, SqlError> {
    let reader = match clause.wait {
        LockPatience::SkipLocked => locks.candidates.without_ranges(),
        _ => locks.candidates,
    };
    let find = Find { reader, ..*find };
    let Find { table, access, outer: Row(outer), context, .. } = find;
    let mut newest_key = Vec::new();
    // `None` for a row that is no longer where it was found. Nothing of the statement's writer is held while
    // the conditions are tested: their subqueries lock rows, too.
    let mut lock = |primary_key: &[u8], entry: Option<&FoundEntry>| {
        let Some(row) = locks.rows.lock(table, primary_key, clause)? else {
            return Ok(Some(Flow::Continue));
        };
        let view = table.row_codec().view(&row.image);
        let moved = entry.is_some_and(|entry| {
            newest_key.clear();
            table.key_codec(entry.index).encode_row(&view, &mut newest_key);
            newest_key != entry.key
        });
        let mut parts = outer.to_vec();
        parts[part] = Part::Image(view);
        let met = if moved { Ok(false) } else { passes(&access.all, &Row(&parts), context) };
        match met {
            Ok(true) => each(primary_key, &row.image).map(Some),
            Ok(false) => {
                locks.rows.give_back(row);
                Ok((!moved).then_some(Flow::Continue))
            }
            Err(error) => {
                locks.rows.give_back(row);
                Err(error)
            }
        }
    };
    if named_rows(access, &find.outer, context, scratch)? {
        let keys = std::mem::take(scratch.sorted());
        let mut flow = Ok(Flow::Continue);
        for position in 0..keys.len() {
            flow = lock(keys.get(position), None).map(|flow| flow.unwrap_or(Flow::Continue));
            if !matches!(flow, Ok(Flow::Continue)) {
                break;
            }
        }
        *scratch.sorted() = keys;
        return flow;
    }
    let index = access.index();
    let mut entry = (access.in_order && index != IndexId(0)).then(|| FoundEntry { index, key: Vec::new() });
    let mut done = match index {
        IndexId(0) => Done::Last(None),
        _ if entry.is_some() => Done::Last(None),
        _ => Done::Any(Box::new(Seen::of_keys(workspace))),
    };
    let flow = for_each_row(&find, scratch, Wants::Keys, &mut |primary_key, found, left| {
        let filter = left.of(access);
        if let (Some(entry), Part::Image(view)) = (&mut entry, &found) {
            entry.key.clear();
            table.key_codec(entry.index).encode_row(view, &mut entry.key);
        }
        let mut parts = outer.to_vec();
        parts[part] = *found;
        if !passes(filter, &Row(&parts), context)? || !done.is_first(primary_key)? {
            return Ok(Flow::Continue);
        }
        match lock(primary_key, entry.as_ref())? {
            Some(flow) => Ok(flow),
            None => {
                done.forget();
                Ok(Flow::Continue)
            }
        }
    })?;
    match done {
        Done::Any(mut seen) if flow == Flow::Continue => {
            seen.finish(&mut |primary_key| Ok(lock(primary_key, None)?.unwrap_or(Flow::Continue)))
        }
        _ => Ok(flow),
    }
}

/// The index entry that led to a row.
struct FoundEntry {
    index: IndexId,
    key: Vec<u8>,
}

/// The rows that were there already: a candidate may be delivered by what it is and by what it was.
enum Done<'w> {
    /// If the row counts at one entry only: both images of a row come one after the other there.
    Last(Option<Vec<u8>>),
    Any(Box<Seen<'w>>),
}

impl Done<'_> {
    /// Forgets the row that came last, so that it counts if it is found again.
    fn forget(&mut self) {
        if let Done::Last(last) = self {
            *last = None;
        }
    }

    /// False if the row was there already, or is put off.
    fn is_first(&mut self, primary_key: &[u8]) -> Result<bool, SqlError> {
        match self {
            Done::Last(Some(last)) if last == primary_key => Ok(false),
            Done::Last(last) => {
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(primary_key);
                Ok(true)
            }
            Done::Any(seen) => match seen.note_key(primary_key)? {
                Novelty::New => Ok(true),
                Novelty::Known => Ok(false),
                Novelty::Unknown => {
                    seen.put_off_key(primary_key, |row| row.extend_from_slice(primary_key))?;
                    Ok(false)
                }
            },
        }
    }
}
