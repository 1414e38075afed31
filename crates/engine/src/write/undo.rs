//! What a transaction has changed, so that it can be taken back.
//!
//! Its session changes it, and a checkpoint reads it to log the transaction again at the log's end when its
//! records would hold the log. Under one hold of [`Undo`]'s lock each:
//!
//! - a change is logged and added,
//! - a change is taken back on the pages and removed,
//! - the commit is logged, the list emptied, and what it leaves handed to purge.
//!
//! So the list is at every moment what a crash would have to take back, and no change is logged behind the
//! commit. The lock comes before latches and the log; its holder waits for no other transaction.

use super::changes::ChangeList;
use super::core::WriteCore;
use super::log;
use crate::Result;
use crate::definition::KeyList;
use crate::format::row::{RowHeader, split_cell};
use crate::table::Table;
use base::sync::{Arc, Mutex, MutexGuard};
use base::{FileId, Lsn, Stamp};

base::latch_class!(pub UndoLatch, "undo of a transaction");

/// A transaction that is logged again has at most this share of what the log keeps for it.
const LOGGED_AGAIN_DIVISOR: u64 = 4;
/// About what a record of an entry that is removed has besides its key.
const UNDO_RECORD_BYTES: usize = 128;
/// About what a record has besides keys and cells, with its frame.
const RECORD_BYTES: u64 = 80;

/// The changes of a transaction.
#[derive(Debug)]
pub(crate) struct Undo {
    stamp: Stamp,
    changes: Mutex<Changes, UndoLatch>,
}

#[derive(Default, Debug)]
pub(crate) struct Changes {
    /// The tables that have been changed, with the files that they had at the time.
    pub tables: Vec<Enlisted>,
    pub list: ChangeList,
    /// The first record in the log, if there is one, has this place or a higher one.
    pub from: Option<Lsn>,
    /// About what the list takes in the log.
    bytes: u64,
    /// The most that taking it back may log.
    undo_bytes: u64,
    /// What of that is set aside.
    reserved: u64,
}

/// Which rows of a transaction get their old state back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Restore {
    /// Every row that it has stamped.
    Any,
    /// Only a row that it inserted where there was none.
    OnlyInserted,
}

/// A table that a transaction has changed, with the file that it had at the time.
#[derive(Clone, Debug)]
pub(crate) struct Enlisted {
    pub table: Arc<Table>,
    pub file: FileId,
}

/// See [`Changes::rows_since`].
type ChangedRow = (Enlisted, Box<[u8]>, Option<Arc<[u8]>>);

impl Undo {
    pub(crate) fn new(stamp: Stamp) -> Undo {
        Undo { stamp, changes: Mutex::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock()
    }

    /// Logs all changes again if the first is so far behind that it pays. Gives the place of the new first
    /// record, or nothing: also if the session is at work, which is asked again at the next checkpoint.
    pub(crate) fn log_again(&self, core: &WriteCore) -> Result<Option<Lsn>> {
        let Some(mut changes) = self.changes.try_lock() else { return Ok(None) };
        let position = core.journal.position();
        let Some(from) = changes.from else { return Ok(None) };
        let worth = (core.journal.capacity() / 2).max(LOGGED_AGAIN_DIVISOR * changes.bytes);
        if position.0 - from.0 < worth {
            return Ok(None);
        }
        changes.list.each_from(0, &mut |number, change| {
            core.journal.prepare_if_due()?;
            changes.log(core, self.stamp, number, change)
        })?;
        changes.from = Some(position);
        Ok(Some(position))
    }
}

impl Changes {
    /// Logs a change that is about to be made, and adds it.
    ///
    /// # Errors
    /// [`crate::Error::Full`] if no room can be set aside for taking it back.
    pub(crate) fn push(&mut self, core: &WriteCore, stamp: Stamp, change: Change) -> Result<()> {
        let piece = core.journal.undo_piece();
        let undo_bytes = self.undo_bytes + u64::from(change.undo_bytes);
        if undo_bytes >= self.reserved + piece {
            let bytes = (undo_bytes - self.reserved).next_multiple_of(piece);
            core.journal.reserve(bytes)?;
            self.reserved += bytes;
        }
        self.log(core, stamp, self.list.len(), &change)?;
        self.restore(change);
        Ok(())
    }

    fn log(&self, core: &WriteCore, stamp: Stamp, number: usize, change: &Change) -> Result<()> {
        let Change { table, what, .. } = change;
        let Enlisted { table, file } = &self.tables[table.index()];
        match what {
            What::Row(change) => log::row(core, stamp, number, *file, table, change),
            What::Inserted(keys) => log::inserted(core, stamp, number, *file, table, keys),
        }
    }

    /// The rows that were changed since `mark`: table, primary key, and the cell that was in the leaf.
    ///
    /// # Errors
    /// As [`ChangeList::each_from`].
    pub(crate) fn rows_since(&self, mark: Mark) -> Result<Vec<ChangedRow>> {
        let mut rows = Vec::new();
        self.list.each_from(mark.0, &mut |_, Change { table, what, .. }| {
            let table = &self.tables[table.index()];
            match what {
                What::Row(change) => rows.push((table.clone(), change.key.clone(), change.old.clone())),
                What::Inserted(keys) => {
                    rows.extend((0..keys.len()).map(|row| (table.clone(), Box::from(keys.get(row)), None)))
                }
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Adds a change that was popped and stays.
    pub(crate) fn restore(&mut self, change: Change) {
        self.bytes += change.bytes();
        self.undo_bytes += u64::from(change.undo_bytes);
        self.list.push(change);
    }

    /// What is set aside for more than the changes there are is given back.
    pub(crate) fn unreserve(&mut self, core: &WriteCore) {
        let more = self.reserved.saturating_sub(self.undo_bytes);
        if more > 0 {
            core.journal.unreserve(more);
            self.reserved -= more;
        }
    }

    /// All changes, for a transaction that keeps them.
    pub(crate) fn take(&mut self, core: &WriteCore) -> ChangeList {
        let list = std::mem::take(&mut self.list);
        (self.bytes, self.undo_bytes) = (0, 0);
        self.unreserve(core);
        list
    }

    /// Takes the newest.
    ///
    /// # Errors
    /// As [`ChangeList::pop`].
    pub(crate) fn pop(&mut self) -> Result<Option<Change>> {
        let Some(change) = self.list.pop()? else { return Ok(None) };
        self.bytes = self.bytes.saturating_sub(change.bytes());
        self.undo_bytes = self.undo_bytes.saturating_sub(u64::from(change.undo_bytes));
        Ok(Some(change))
    }
}

/// A position in a transaction's changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Mark(pub usize);

/// The position of a table among those that a transaction has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Enlistment(pub u32);

impl Enlistment {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One change.
#[derive(Debug)]
pub(crate) struct Change {
    pub table: Enlistment,
    /// The most that taking it back may log.
    pub undo_bytes: u32,
    pub what: What,
}

impl Change {
    /// `new_bytes`: what it brings into the table's leaves, and nothing of pages of their own. `indexes`: how
    /// many the table has.
    pub(crate) fn new(table: Enlistment, what: What, new_bytes: usize, indexes: usize) -> Change {
        // A record for each entry. A row restored is logged as it was, and once more when it splits a leaf.
        // What is removed empties leaves, whose neighbours are logged when they merge: their bytes are those
        // that were put there, and at most half as many again that were there before.
        let entries = |key_bytes: usize| indexes * (UNDO_RECORD_BYTES + 2 * key_bytes);
        let bytes = match &what {
            What::Row(change) => {
                let old = change.old.as_ref().map_or(0, |old| old.len());
                2 * old + 2 * new_bytes + entries(change.key.len())
            }
            What::Inserted(keys) => 2 * new_bytes + entries(0) * keys.len() + 2 * indexes * keys.bytes.len(),
        };
        Change { table, undo_bytes: u32::try_from(bytes).unwrap_or(u32::MAX), what }
    }

    /// As the log has it.
    pub(crate) fn logged(what: What) -> Change {
        Change { table: Enlistment(0), undo_bytes: 0, what }
    }

    pub(crate) fn leaves_garbage(&self) -> bool {
        matches!(&self.what, What::Row(change) if change.leaves_garbage)
    }

    /// Purge has something to do when it is committed and nobody sees the old row any more.
    pub(crate) fn leaves_work(&self) -> bool {
        matches!(&self.what,
            What::Row(RowChange { old: Some(_), leaves_chain, leaves_garbage, .. })
                if *leaves_chain || *leaves_garbage)
    }

    /// About what it takes in the log.
    fn bytes(&self) -> u64 {
        let bytes = match &self.what {
            What::Row(change) => change.key.len() + change.old.as_ref().map_or(0, |old| old.len()),
            What::Inserted(keys) => keys.bytes.len() + 4 * keys.ends.len(),
        };
        RECORD_BYTES + bytes as u64
    }
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Row(RowChange),
    /// Rows inserted together, where there were none.
    Inserted(KeyList),
}

/// A row, as it was.
#[derive(Clone, Debug)]
pub(crate) struct RowChange {
    pub key: Box<[u8]>,
    /// The cell that was in the leaf; `None`: there was none.
    pub old: Option<Arc<[u8]>>,
    /// It is a deletion that left none, because the row is seen where it lies.
    pub in_place: bool,
    /// The row as it is now has not `old`'s overflow pages: they go with `old`.
    pub leaves_chain: bool,
    /// Index entries, or the row itself, have to go when nobody sees `old` any more.
    pub leaves_garbage: bool,
}

impl RowChange {
    /// The cell before, if it was that of a deleted row.
    pub(crate) fn deleted_before(&self) -> Option<(RowHeader, Arc<[u8]>)> {
        let old = self.old.as_ref()?;
        let (header, _) = split_cell(old)?;
        header.is_deleted().then(|| (header, old.clone()))
    }
}
