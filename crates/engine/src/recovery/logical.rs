//! What recovery does besides pages: the transactions' part.
//!
//! While pages are redone the transactions' records are gathered. When the tables are open, the changes of
//! transactions that had not ended are taken back, newest first, as their sessions would have done. Undoing
//! what has been undone already, or was never done, changes nothing: so it may be cut short and begun anew.

use super::leftovers::{Leftover, Leftovers};
use crate::format::file_header::Counters;
use crate::format::overflow::Reference;
use crate::format::row::chain_of;
use crate::space::overflow;
use crate::table::Table;
use crate::write::active::Active;
use crate::write::changes::ChangeList;
use crate::write::core::WriteCore;
use crate::write::log::{self, Record};
use crate::write::scratch::Place;
use crate::write::undo::{Change, Enlistment, Restore, RowChange, What};
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, Lsn, PageNo, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The transactions that the log tells of.
#[derive(Debug)]
pub(crate) struct Logical {
    scratch: Place,
    /// Those that have not ended.
    under_way: BTreeMap<u64, Unfinished>,
    /// What transactions have left that committed. The former life may have purged it.
    garbage: Leftovers,
    /// Overflow pages that were to go, for their transactions have committed: by file and number.
    chains: BTreeMap<(FileId, u64), Reference>,
    counters: BTreeMap<FileId, Counters>,
    /// Files whose rows have been changed.
    touched: BTreeSet<FileId>,
    next_stamp: u64,
}

/// A transaction that has not ended.
#[derive(Debug)]
struct Unfinished {
    /// Where its first record is that was read.
    from: Lsn,
    /// The files that have been changed, by the enlistments in the changes.
    files: Vec<FileId>,
    changes: ChangeList,
}

impl Logical {
    /// `scratch`: where the changes of large transactions go. `is_listed`: the log has what is not purged, or
    /// headers say that it does not.
    pub(crate) fn new(scratch: Place, is_listed: bool) -> Logical {
        Logical {
            garbage: Leftovers::new(&scratch, is_listed),
            scratch,
            under_way: BTreeMap::new(),
            chains: BTreeMap::new(),
            counters: BTreeMap::new(),
            touched: BTreeSet::new(),
            next_stamp: 0,
        }
    }

    /// A record of kind `journal::kind::LOGICAL` or above, in the order of the log. Nothing is open yet.
    pub(crate) fn record(&mut self, kind: u8, place: Range<Lsn>, payload: &[u8]) -> Result<()> {
        let record = Record::read(kind, place.start, payload)?;
        self.next_stamp = self.next_stamp.max(record.stamp().0 + 1);
        match record {
            Record::Change { stamp, number, file, counters, change } => {
                self.touched.insert(file);
                self.counters.entry(file).or_default().raise(counters);
                let new =
                    || Unfinished { from: place.start, files: Vec::new(), changes: ChangeList::default() };
                let unfinished = self.under_way.entry(stamp.0).or_insert_with(new);
                unfinished.add(number as usize, file, change)?;
                unfinished.changes.spill(&self.scratch);
            }
            Record::Undone { stamp, number } => {
                if let Some(unfinished) = self.under_way.get_mut(&stamp.0) {
                    unfinished.undo(stamp, number as usize, &mut self.garbage)?;
                }
            }
            Record::Committed { stamp } => {
                if let Some(unfinished) = self.under_way.remove(&stamp.0) {
                    unfinished.commit(stamp, &mut self.garbage, &mut self.chains)?;
                }
            }
            Record::RolledBack { stamp } => {
                if let Some(mut unfinished) = self.under_way.remove(&stamp.0) {
                    unfinished.undo(stamp, 0, &mut self.garbage)?;
                }
            }
            Record::Chain { file, chain, .. } => {
                self.touched.insert(file);
                self.chains.insert((file, chain.chain), chain);
            }
            Record::Garbage { stamp, file, has_chain, key, old } => {
                self.touched.insert(file);
                if let Some(chain) = chain_of(&old).filter(|_| has_chain) {
                    self.chains.insert((file, chain.chain), chain);
                }
                self.garbage.push(Leftover { stamp, file, logged: place.start, key: &key, old: &old });
            }
        }
        Ok(())
    }

    /// How many transactions had not ended, and how many changes they had made.
    pub(crate) fn unfinished(&self) -> (u64, u64) {
        let changes = self.under_way.values().map(|unfinished| unfinished.changes.len() as u64).sum();
        (self.under_way.len() as u64, changes)
    }

    /// Those that had not ended.
    pub(crate) fn unfinished_stamps(&self) -> Vec<Stamp> {
        self.under_way.keys().copied().map(Stamp).collect()
    }

    /// The lowest id for new transactions that the records leave.
    pub(crate) fn next_stamp(&self) -> u64 {
        self.next_stamp
    }

    /// All pages are as the log says, the tables are open and the log accepts appends; nobody else uses the
    /// database yet. May be cut short by a crash and is then begun anew, with what it has logged so far among
    /// the records.
    ///
    /// Transactions of more than `at_once_max` changes, and those for which the disk has no room, are left to
    /// be taken back behind the start (`write::rollbacks`).
    ///
    /// Gives the tables in which that could not be done, because they are damaged, each with what is wrong.
    pub(crate) fn finish(
        self,
        core: &WriteCore,
        tables: Vec<Arc<Table>>,
        at_once_max: usize,
    ) -> Result<Vec<(Arc<Table>, Error)>> {
        let mut damaged = Vec::new();
        let mut garbage = self.garbage;
        let mut tables: BTreeMap<FileId, Arc<Table>> =
            tables.into_iter().map(|table| (table.state().space.file_id(), table)).collect();
        for (file, counters) in &self.counters {
            if let Some(table) = tables.get(file) {
                table.raise_counters(*counters);
                table.skip_numbers();
                core.note_changed(table);
            }
        }
        for (stamp, mut unfinished) in self.under_way {
            let transaction = core.transactions.resume(Stamp(stamp));
            let is_small = unfinished.changes.len() <= at_once_max;
            if is_small
                && unfinished.take_back(core, Stamp(stamp), &mut tables, &mut damaged, &mut garbage)?
            {
                log::rolled_back(core, Stamp(stamp))?;
                transaction.roll_back();
                continue;
            }
            let Unfinished { from, files, changes } = unfinished;
            let of_files: Vec<_> = files.iter().map(|file| tables.get(file).cloned()).collect();
            core.rollbacks.add(Active::resume(core, transaction, from, &of_files, changes)?);
        }
        // Before the chains go: rows as they were may lie there.
        let is_listed = garbage.purge_or_queue(core, &tables)?;
        let mut free: BTreeMap<FileId, (u32, BTreeSet<PageNo>)> = BTreeMap::new();
        for ((file, _), chain) in &self.chains {
            if let Some(table) = tables.get(file) {
                let (pages, free) = free.entry(*file).or_insert_with(|| {
                    let (pages, free) = table.state().space.occupancy();
                    (pages, free.into_iter().collect())
                });
                free_chain(table, *chain, |page| page.0 < *pages && !free.contains(&page))?;
            }
        }
        for table in self.touched.iter().filter_map(|file| tables.get(file)) {
            if !is_listed {
                core.purge.sweep_unlisted(table);
            }
            table.correct_rows()?;
        }
        Ok(damaged)
    }
}

impl Unfinished {
    /// Adds the change of this number.
    ///
    /// Numbers count up. The last may come once more, with another change that took the place of one which
    /// was not made. All of them come once more, in their order, when a checkpoint has logged them again.
    /// Then the log may begin in the middle of the first ones, which are left out.
    fn add(&mut self, number: usize, file: FileId, change: Change) -> Result<()> {
        let len = self.changes.len();
        if number + 1 == len {
            self.changes.pop()?;
        } else if number != len {
            return Ok(());
        }
        let known = self.files.iter().rposition(|known| *known == file);
        let table = known.unwrap_or_else(|| {
            self.files.push(file);
            self.files.len() - 1
        });
        self.changes.push(Change { table: Enlistment(table as u32), ..change });
        Ok(())
    }

    /// Its changes from number `len` on have been taken back.
    fn undo(&mut self, stamp: Stamp, len: usize, garbage: &mut Leftovers) -> Result<()> {
        while self.changes.len() > len
            && let Some(change) = self.changes.pop()?
        {
            self.put_back_deleted(stamp, &change, garbage);
        }
        Ok(())
    }

    /// Before the change the row was one that another transaction had deleted. Purge may have come by
    /// meanwhile and left it.
    fn put_back_deleted(&self, stamp: Stamp, change: &Change, garbage: &mut Leftovers) {
        if let What::Row(row) = &change.what
            && let Some((header, old)) = row.deleted_before()
            && header.stamp() != stamp
        {
            let file = self.files[change.table.index()];
            let (stamp, logged) = (header.stamp(), self.from);
            garbage.push(Leftover { stamp, file, logged, key: &row.key, old: &old });
        }
    }

    /// It has committed.
    fn commit(
        self,
        stamp: Stamp,
        garbage: &mut Leftovers,
        chains: &mut BTreeMap<(FileId, u64), Reference>,
    ) -> Result<()> {
        let Unfinished { from, files, changes } = self;
        for batch in changes.into_batches() {
            for Change { table, what, .. } in batch? {
                let What::Row(RowChange { key, old: Some(old), leaves_chain, .. }) = what else { continue };
                let file = files[table.index()];
                if let Some(chain) = chain_of(&old).filter(|_| leaves_chain) {
                    chains.insert((file, chain.chain), chain);
                }
                garbage.push(Leftover { stamp, file, logged: from, key: &key, old: &old });
            }
        }
        Ok(())
    }

    /// Takes its changes back, as far as it can; false if the disk is too full for the rest.
    fn take_back(
        &mut self,
        core: &WriteCore,
        stamp: Stamp,
        tables: &mut BTreeMap<FileId, Arc<Table>>,
        damaged: &mut Vec<(Arc<Table>, Error)>,
        garbage: &mut Leftovers,
    ) -> Result<bool> {
        while let Some(change) = self.changes.pop()? {
            let file = self.files[change.table.index()];
            let Some(table) = tables.get(&file) else { continue };
            match core.journal.prepare_to_undo().and_then(|()| take_back(table, stamp, &change.what)) {
                Ok(()) => self.put_back_deleted(stamp, &change, garbage),
                Err(Error::Full) => {
                    self.changes.push(change);
                    return Ok(false);
                }
                Err(error @ Error::Corrupt { .. }) => {
                    damaged.extend(tables.remove(&file).map(|table| (table, error)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn take_back(table: &Table, stamp: Stamp, what: &What) -> Result<()> {
    let state = table.state();
    match what {
        What::Row(change) => {
            table.restore(state, stamp, &change.key, change.old.as_ref(), Restore::Any)?;
            match &change.old {
                Some(old) => table.complete_entries(state, &change.key, old),
                None => Ok(()),
            }
        }
        What::Inserted(keys) => (0..keys.len()).rev().try_for_each(|position| {
            table.restore(state, stamp, keys.get(position), None, Restore::OnlyInserted)
        }),
    }
}

/// Frees overflow pages, unless that has been done.
fn free_chain(table: &Table, chain: Reference, is_used: impl Fn(PageNo) -> bool) -> Result<()> {
    if !is_used(chain.first) {
        return Ok(());
    }
    match overflow::free(&table.state().space, chain) {
        // They have gone before, and have been used again.
        Ok(()) | Err(Error::Corrupt { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
