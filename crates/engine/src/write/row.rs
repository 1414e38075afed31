//! Changing rows, each with its entries in the secondary indexes (engine R10, R11, R14, R16).
//!
//! Nothing that an older snapshot may want is removed: a deleted row stays in its leaf, marked, and so do the
//! index entries of deleted and of changed rows, until purge finds that nobody sees them. A row appears first
//! in the clustered index and disappears last from it. A reader that comes through a secondary index checks
//! that the row it may see has the entry's parts.
//!
//! A row that carries the stamp of a transaction under way is that transaction's. To make a row its own, a
//! transaction holds the row's latch, finds that nobody else has it or has locked it, and writes its stamp;
//! from then on it needs no latch.

use super::active::Active;
use super::backlog::Garbage;
use super::core::WriteCore;
use super::undo::{Enlistment, Restore, RowChange, What};
use crate::format::row::{ROW_HEADER_BYTES, RowHeader, chain_of, split_cell};
use crate::latch::RowLatch;
use crate::space::cell::Cell;
use crate::space::overflow;
use crate::space::tablespace::Tablespace;
use crate::table::state::TableState;
use crate::table::{Entry, Table};
use crate::{Error, Result};
use base::phases::{self, Phase};
use base::sync::Arc;
use base::{IndexId, Stamp};
use transactions::{LockError, LockMark, LockMode, Patience, Transaction};

/// A row that the transaction may change while it holds the latch.
struct Claimed<'c> {
    _latch: RowLatch<'c>,
    /// Its cell, with a header that has been read.
    cell: Option<(RowHeader, Arc<[u8]>)>,
}

/// A row that is locked until the transaction ends, unless [`crate::Writer::give_back`] gives it back.
#[derive(Debug)]
pub struct LockedRow {
    /// Its newest image.
    pub image: Vec<u8>,
    /// The locks that were taken for it. None, if the transaction had it before.
    from: LockMark,
    to: LockMark,
}

impl LockedRow {
    pub(crate) fn give_back(self, transaction: &mut Transaction) {
        transaction.give_back_locks_between(self.from, self.to);
    }
}

/// A row that is about to be changed, as it is in its leaf.
struct OldRow<'r> {
    key: &'r [u8],
    header: RowHeader,
    cell: Arc<[u8]>,
}

/// Gets an entry of an index, and whether the row had it before and has it now.
pub(crate) type EntryVisitor<'v, T> = dyn FnMut(IndexId, &[u8], bool) -> Option<T> + 'v;

/// What an update makes of a row that it has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowUpdate {
    /// The row is not meant.
    Skip,
    /// The row is meant and stays as it is. It is locked until the transaction ends.
    Keep,
    /// It gets the new image.
    Change,
}

/// What becomes of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// It stays in its leaf with its image, marked.
    /// `in_place`: whoever does not see that sees the row where it lies.
    Deleted { in_place: bool },
    /// It gets another image, of so many bytes.
    Changed { bytes: usize },
}

/// A row that is there, and its latch.
type ClaimedRow<'c> = (RowLatch<'c>, RowHeader, Arc<[u8]>);

impl Table {
    /// The primary key of a row image; a hidden one is taken from the counter.
    pub(crate) fn primary_key(&self, state: &TableState, image: &[u8], out: &mut Vec<u8>) {
        if state.def.primary.is_some() {
            state.indexes[0].codec.encode_row(&self.row_codec().view(image), out);
        } else {
            out.extend_from_slice(&self.take_row_ids(1).to_be_bytes());
        }
    }

    pub(crate) fn check_key(&self, state: &TableState, key: &[u8]) -> Result<()> {
        let bytes_max = state.indexes[0].tree.key_bytes_max();
        if key.len() > bytes_max {
            return Err(Error::KeyTooLong { bytes: key.len(), bytes_max });
        }
        Ok(())
    }

    fn cell<'i>(
        &self,
        state: &TableState,
        primary_key: &[u8],
        image: &'i [u8],
        header: RowHeader,
    ) -> Result<Cell<'i>> {
        let value_max = state.indexes[0].tree.value_bytes_max(primary_key.len());
        let inline_max = value_max.saturating_sub(ROW_HEADER_BYTES);
        Cell::new(&state.space, image, inline_max, header, || self.take_chain())
    }

    /// Reads the newest cell of a row; the caller holds its latch or does not mind that it changes.
    fn newest(
        &self,
        state: &TableState,
        key: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Option<(RowHeader, Arc<[u8]>)>> {
        scratch.clear();
        if !state.indexes[0].tree.get(key, scratch)? {
            return Ok(None);
        }
        match split_cell(scratch) {
            Some((header, _)) => Ok(Some((header, Arc::from(scratch.as_slice())))),
            None => Err(state.space.corrupt(0, "a row without a header")),
        }
    }

    /// Latches a row once no other transaction has changed or locked it.
    fn claim<'c>(
        &self,
        core: &'c WriteCore,
        state: &TableState,
        active: &mut Active,
        key: &[u8],
    ) -> Result<Claimed<'c>> {
        let file = u64::from(state.space.file_id().0);
        let mark = active.transaction.lock_mark();
        let mut is_locked = false;
        loop {
            let latch = core.rows.latch(self.id(), key);
            let cell = self.newest(state, key, &mut active.scratch)?;
            let stamp = cell.as_ref().map_or(Stamp(0), |(header, _)| header.stamp());
            if stamp == active.stamp() {
                return Ok(Claimed { _latch: latch, cell });
            }
            let is_taken = cell.is_some() && core.transactions.is_active(stamp);
            if !is_taken && (is_locked || !active.transaction.is_locked_by_others(file, key)) {
                active.check_unchanged(core, state, stamp)?;
                return Ok(Claimed { _latch: latch, cell });
            }
            drop(latch);
            // The explicit lock queues the transactions that want the same row. Only the first of them waits
            // for the other transaction's end.
            if !is_locked {
                active.transaction.lock(file, key, LockMode::Exclusive, active.patience)?;
                is_locked = true;
            }
            let (mode, patience) = (LockMode::Exclusive, active.patience);
            if is_taken && let Err(error) = active.transaction.wait_for_end(stamp, file, key, mode, patience)
            {
                // A transaction that gives up leaves the queue.
                active.transaction.give_back_locks(mark);
                return Err(error.into());
            }
        }
    }

    /// As `claim`, for a row that has to be there. Where it is not, its key is locked until the transaction
    /// ends, if the transaction is of an isolation that repeats reads.
    fn claim_row<'c>(
        &self,
        core: &'c WriteCore,
        state: &TableState,
        active: &mut Active,
        key: &[u8],
    ) -> Result<Option<ClaimedRow<'c>>> {
        let mut is_locked = false;
        loop {
            let Claimed { _latch: latch, cell } = self.claim(core, state, active, key)?;
            match cell.filter(|(header, _)| !header.is_deleted()) {
                Some((header, cell)) => return Ok(Some((latch, header, cell))),
                None if is_locked || !active.locks_absent() => return Ok(None),
                None => drop(latch),
            }
            active.begin_absent_locks(core);
            let file = u64::from(state.space.file_id().0);
            active.transaction.lock(file, key, LockMode::Exclusive, active.patience)?;
            is_locked = true;
        }
    }

    /// Locks a row until the transaction ends: see [`crate::Writer::lock`].
    pub(crate) fn lock_row(
        &self,
        core: &WriteCore,
        active: &mut Active,
        key: &[u8],
        mode: LockMode,
        patience: Patience,
    ) -> Result<Option<LockedRow>> {
        let _phase = phases::enter(Phase::Row);
        let state = self.live_state()?;
        let file = u64::from(state.space.file_id().0);
        let mark = active.transaction.lock_mark();
        let mut is_locked = false;
        loop {
            // Under the latch: a writer asks for locks under it before it stamps the row, and a rollback
            // restores the row under it before the transaction ends. So a stamp that is still there, and not
            // active, is that of a commit.
            let latch = core.rows.latch(self.id(), key);
            let cell = self.newest(state, key, &mut active.scratch)?;
            let stamp = cell.as_ref().map_or(Stamp(0), |(header, _)| header.stamp());
            let is_own = stamp == active.stamp();
            let is_taken = !is_own && cell.is_some() && core.transactions.is_active(stamp);
            drop(latch);
            if is_own || is_locked && !is_taken {
                if !is_own {
                    active.check_unchanged(core, state, stamp)?;
                }
                if let Some((_, cell)) = cell.filter(|(header, _)| !header.is_deleted()) {
                    let image = self.image_of(&state.space, &cell)?;
                    return Ok(Some(LockedRow { image, from: mark, to: active.transaction.lock_mark() }));
                }
                if is_locked && active.locks_absent() {
                    if active.begin_absent_locks(core) {
                        continue;
                    }
                    // The lock stays, so that nobody inserts the row.
                    return Ok(None);
                }
                active.transaction.give_back_locks(mark);
                return Ok(None);
            }
            if !is_locked {
                active.transaction.lock(file, key, mode, patience)?;
                is_locked = true;
            } else if let Err(error) = active.transaction.wait_for_end(stamp, file, key, mode, patience) {
                active.transaction.give_back_locks(mark);
                return Err(error.into());
            }
        }
    }

    /// The image in a cell.
    pub(crate) fn image_of(&self, space: &Tablespace, cell: &[u8]) -> Result<Vec<u8>> {
        let Some((header, rest)) = split_cell(cell) else {
            return Err(space.corrupt(0, "a row without a header"));
        };
        if !header.is_overflow() {
            return Ok(rest.to_vec());
        }
        let mut image = Vec::new();
        match chain_of(cell) {
            Some(reference) if overflow::load(space, reference, &mut image)? => Ok(image),
            _ => Err(space.corrupt(0, "an overflow chain is broken")),
        }
    }

    /// Inserts one row. On an error the caller takes back what it did.
    pub(crate) fn insert_row(
        &self,
        core: &WriteCore,
        active: &mut Active,
        table: Enlistment,
        key: &[u8],
        image: &[u8],
    ) -> Result<()> {
        let _phase = phases::enter(Phase::Row);
        let state = self.live_state()?;
        self.check_key(state, key)?;
        loop {
            let claimed = self.claim(core, state, active, key)?;
            let old = claimed.cell.clone();
            if old.as_ref().is_some_and(|(header, _)| !header.is_deleted()) {
                return Err(Error::DuplicateKey { index: IndexId(0) });
            }
            let is_own = old.as_ref().is_some_and(|(header, _)| header.stamp() == active.stamp());
            let is_first = old.as_ref().is_none_or(|(header, _)| is_own && header.is_first());
            let header = RowHeader::new(active.stamp(), is_first);
            let file = u64::from(state.space.file_id().0);
            if let Some((_, cell)) = &old {
                // It does not lie there any more.
                active.add_version_in_place(file, key, cell);
            }
            if let Some((old, _)) = &old
                && !is_own
            {
                // A snapshot that sees the deletion and not this insert must find that there was no row.
                active.add_version(file, key, *old, None);
            }
            let was_there = old.is_some();
            let leaves_chain = old.as_ref().is_some_and(|(header, _)| header.is_overflow());
            let change = RowChange {
                key: key.into(),
                old: old.map(|(_, cell)| cell),
                in_place: false,
                leaves_chain,
                leaves_garbage: was_there,
            };
            let own = change.old.clone().filter(|_| is_own);
            active.push_row(core, table, change, image.len())?;
            if let Some(cell) = own {
                let old_image = self.image_of(&state.space, &cell)?;
                self.keep_interim(state, active, key, cell, [&old_image, image]);
            }
            let cell = self.cell(state, key, image, header)?;
            let clustered = &state.indexes[0].tree;
            let done = match was_there {
                true => clustered.replace(key, &cell.parts(), active.stamp()),
                false => clustered.insert(key, &cell.parts(), active.stamp()),
            };
            match done {
                Ok(true) => cell.placed(&state.space),
                // A bulk insert, which takes no row latches, was faster.
                Ok(false) => {
                    cell.discard(&state.space);
                    active.pop_unused()?;
                    continue;
                }
                Err(error) => {
                    cell.discard(&state.space);
                    return Err(error);
                }
            }
            self.add_rows(1);
            drop(claimed);
            return self.insert_entries(core, state, active, key, image, None);
        }
    }

    /// Deletes one row if `condition` holds for its image. On an error the caller takes back what it did.
    pub(crate) fn delete_row(
        &self,
        core: &WriteCore,
        active: &mut Active,
        table: Enlistment,
        key: &[u8],
        condition: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        let _phase = phases::enter(Phase::Row);
        let state = self.live_state()?;
        let Some((_latch, header, cell)) = self.claim_row(core, state, active, key)? else {
            return Ok(false);
        };
        if !condition(&self.image_of(&state.space, &cell)?) {
            return Ok(false);
        }
        self.mark_deleted(core, state, active, table, OldRow { key, header, cell })?;
        Ok(true)
    }

    /// Marks a row deleted whose latch is held.
    fn mark_deleted(
        &self,
        core: &WriteCore,
        state: &TableState,
        active: &mut Active,
        table: Enlistment,
        old: OldRow<'_>,
    ) -> Result<()> {
        let OldRow { key, header, .. } = old;
        let is_own = header.stamp() == active.stamp();
        let in_place = !is_own && active.leaves_in_place(core, header.stamp());
        let mut deleted = header.deleted(active.stamp(), is_own && header.is_first());
        if in_place {
            deleted = deleted.in_place();
        }
        let body = old.cell.clone();
        self.keep_old(core, state, active, table, old, Next::Deleted { in_place })?;
        let value = [&deleted.to_bytes()[..], &body[ROW_HEADER_BYTES..]];
        if !state.indexes[0].tree.replace(key, &value, active.stamp())? {
            return Err(state.space.corrupt(0, "a latched row has vanished"));
        }
        self.add_rows(-1);
        Ok(())
    }

    /// Keeps a row as it is, for older snapshots and for undo.
    fn keep_old(
        &self,
        core: &WriteCore,
        state: &TableState,
        active: &mut Active,
        table: Enlistment,
        old: OldRow<'_>,
        next: Next,
    ) -> Result<()> {
        let OldRow { key, header, cell } = old;
        let is_deletion = matches!(next, Next::Deleted { .. });
        let in_place = next == Next::Deleted { in_place: true };
        if header.stamp() != active.stamp() && !in_place {
            let file = u64::from(state.space.file_id().0);
            active.add_version(file, key, header, Some(cell.clone()));
        }
        // A deleted row keeps its image.
        let leaves_chain = header.is_overflow() && !is_deletion;
        let leaves_garbage = is_deletion;
        let change = RowChange { key: key.into(), old: Some(cell), in_place, leaves_chain, leaves_garbage };
        let new_bytes = match next {
            Next::Deleted { .. } => 0,
            Next::Changed { bytes } => bytes,
        };
        active.push_row(core, table, change, new_bytes)
    }

    /// Changes one row. On an error the caller takes back what it did.
    pub(crate) fn update_row(
        &self,
        core: &WriteCore,
        active: &mut Active,
        table: Enlistment,
        key: &[u8],
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> RowUpdate,
    ) -> Result<bool> {
        let _phase = phases::enter(Phase::Row);
        let state = self.live_state()?;
        let mut new_image = Vec::new();
        let (latch, header, cell, old_image) = loop {
            let Some((latch, header, cell)) = self.claim_row(core, state, active, key)? else {
                return Ok(false);
            };
            let old_image = self.image_of(&state.space, &cell)?;
            new_image.clear();
            match change(&old_image, &mut new_image) {
                RowUpdate::Change => break (latch, header, cell, old_image),
                RowUpdate::Keep if header.stamp() != active.stamp() => {
                    let file = u64::from(state.space.file_id().0);
                    match active.transaction.lock(file, key, LockMode::Exclusive, Patience::None) {
                        // Somebody has locked it since it was claimed: it is judged again after that.
                        Err(LockError::WouldBlock) => {
                            drop(latch);
                            active.transaction.lock(file, key, LockMode::Exclusive, active.patience)?;
                        }
                        locked => return Ok(locked.map(|()| false)?),
                    }
                }
                RowUpdate::Keep | RowUpdate::Skip => return Ok(false),
            }
        };
        let mut new_key = Vec::new();
        if state.def.primary.is_some() {
            self.primary_key(state, &new_image, &mut new_key);
        }
        if !new_key.is_empty() && new_key != key {
            // Another primary key is another row.
            self.mark_deleted(core, state, active, table, OldRow { key, header, cell })?;
            drop(latch);
            self.insert_row(core, active, table, &new_key, &new_image)?;
            return Ok(true);
        }
        let is_own = header.stamp() == active.stamp();
        let new_header = RowHeader::new(active.stamp(), is_own && header.is_first());
        let changed = Next::Changed { bytes: new_image.len() };
        let own = is_own.then(|| cell.clone());
        self.keep_old(core, state, active, table, OldRow { key, header, cell }, changed)?;
        if let Some(cell) = own {
            self.keep_interim(state, active, key, cell, [&old_image, &new_image]);
        }
        let cell = self.cell(state, key, &new_image, new_header)?;
        match state.indexes[0].tree.replace(key, &cell.parts(), active.stamp()) {
            Ok(true) => cell.placed(&state.space),
            other => {
                cell.discard(&state.space);
                other?;
                return Err(state.space.corrupt(0, "a latched row has vanished"));
            }
        }
        drop(latch);
        self.insert_entries(core, state, active, key, &new_image, Some(&old_image))?;
        Ok(true)
    }

    /// Keeps a state of a row that the transaction itself has made and changes once more, if that changes
    /// index entries. The row's latch is held.
    fn keep_interim(
        &self,
        state: &TableState,
        active: &mut Active,
        key: &[u8],
        cell: Arc<[u8]>,
        [old, new]: [&[u8]; 2],
    ) {
        let (old, new) = (self.row_codec().view(old), self.row_codec().view(new));
        let (mut entry, mut old_entry) = (Entry::default(), Entry::default());
        let changes = state.indexes[1..].iter().any(|index| {
            index.entry(&old, key, &mut old_entry);
            index.entry(&new, key, &mut entry);
            old_entry != entry
        });
        if changes {
            let file = u64::from(state.space.file_id().0);
            active.transaction.add_interim(file, key, cell);
        }
    }

    /// Adds a row's entries to all secondary indexes, those left out that `old_image` had as well. The row
    /// carries the transaction's stamp.
    fn insert_entries(
        &self,
        core: &WriteCore,
        state: &TableState,
        active: &mut Active,
        key: &[u8],
        image: &[u8],
        old_image: Option<&[u8]>,
    ) -> Result<()> {
        let _phase = phases::enter(Phase::Index);
        let row = self.row_codec().view(image);
        let old_row = old_image.map(|image| self.row_codec().view(image));
        let (mut entry, mut old_entry) = (Entry::default(), Entry::default());
        for (position, index) in state.indexes.iter().enumerate().skip(1) {
            index.entry(&row, key, &mut entry);
            if let Some(old_row) = &old_row {
                index.entry(old_row, key, &mut old_entry);
                if old_entry == entry {
                    continue;
                }
                active.note_garbage();
            }
            self.check_key(state, &entry.key)?;
            let has_null = index.unique && index.codec.row_has_null(&row);
            if !index.unique || has_null {
                // It may still be there from an older version of the row.
                index.tree.insert(&entry.key, &[], active.stamp())?;
            } else {
                self.insert_unique(core, state, active, position, &entry, key)?;
            }
        }
        Ok(())
    }

    /// Adds an entry to a unique index, once no other row has its parts.
    pub(super) fn insert_unique(
        &self,
        core: &WriteCore,
        state: &TableState,
        active: &mut Active,
        position: usize,
        entry: &Entry,
        key: &[u8],
    ) -> Result<()> {
        let _phase = phases::enter(Phase::Index);
        let index = &state.indexes[position];
        let parts = &entry.key[..entry.own];
        let file = u64::from(state.space.file_id().0);
        loop {
            let inserted = index.tree.insert_beside(&entry.key, entry.own, active.stamp())?;
            if !inserted.has_neighbours {
                return Ok(());
            }
            // Entries of other rows with the same parts: of rows that are there, of those that have gone, and
            // of those that another transaction is about to change.
            let mut busy = None;
            let mut is_duplicate = false;
            index.tree.for_each_prefix(parts, |other| {
                let other = &other[entry.own..];
                if other == key || busy.is_some() || is_duplicate {
                    return Ok(());
                }
                // As in `lock_row`: what is there under the latch and not active is committed.
                let _latch = core.rows.latch(self.id(), other);
                let has_parts = |cell: &[u8]| -> Result<bool> {
                    let image = self.image_of(&state.space, cell)?;
                    Ok(self.row_has_key(index, &image, parts, &mut Vec::new()))
                };
                let mut seen = None;
                let (header, has_parts_now) = loop {
                    let Some((header, cell)) = self.newest(state, other, &mut active.scratch)? else {
                        return Ok(());
                    };
                    match has_parts(&cell) {
                        Ok(has_parts) => break (header, has_parts),
                        // A rollback has freed the row's overflow pages since: look again.
                        Err(Error::Corrupt { .. }) if seen.replace(cell.clone()) != Some(cell) => {}
                        Err(error) => return Err(error),
                    }
                };
                if header.stamp() != active.stamp() && core.transactions.is_active(header.stamp()) {
                    // Whatever its transaction does next, it may take back.
                    let mut may_be_like = has_parts_now;
                    may_be_like |= core.transactions.has_spilled(header.stamp());
                    for version in core.transactions.versions_in_memory_of(file, other) {
                        may_be_like |= has_parts(&version)?;
                    }
                    if may_be_like {
                        busy = Some((header.stamp(), other.to_vec()));
                    }
                } else {
                    is_duplicate = has_parts_now && !header.is_deleted();
                }
                Ok(())
            })?;
            if is_duplicate {
                return Err(Error::DuplicateKey { index: IndexId(position as u16) });
            }
            let Some((busy, other)) = busy else { return Ok(()) };
            // Nobody is to wait for an entry whose owner waits.
            if inserted.is_new {
                index.tree.remove(&entry.key)?;
            }
            active.transaction.wait_for_end(busy, file, &other, LockMode::Shared, active.patience)?;
        }
    }

    /// Calls `each` with every entry in every index that a row had by its cell `old`, and has now, until it
    /// gives something. The row is the caller's: nobody else changes it.
    pub(crate) fn entries_of<T>(
        &self,
        state: &TableState,
        key: &[u8],
        old: Option<&[u8]>,
        scratch: &mut Vec<u8>,
        each: &mut EntryVisitor<'_, T>,
    ) -> Result<Option<T>> {
        let newest = self.newest(state, key, scratch)?.map(|(_, cell)| cell);
        let image = |cell: Option<&[u8]>| cell.map(|cell| self.image_of(&state.space, cell)).transpose();
        let (old, newest) = (image(old)?, image(newest.as_deref())?);
        let stays = old.is_some() && newest.is_some();
        if let Some(found) = each(IndexId(0), key, stays) {
            return Ok(Some(found));
        }
        for (position, index) in state.indexes.iter().enumerate().skip(1) {
            let entry = |image: &Vec<u8>| {
                let mut entry = Entry::default();
                index.entry(&self.row_codec().view(image), key, &mut entry);
                entry
            };
            let (old, newest) = (old.as_ref().map(entry), newest.as_ref().map(entry));
            let stays = old == newest;
            for entry in [old, newest.filter(|_| !stays)].into_iter().flatten() {
                if let Some(found) = each(IndexId(position as u16), &entry.key, stays) {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Takes back one change of a transaction under way: done, half done, or taken back already.
    pub(crate) fn undo(&self, state: &TableState, transaction: &mut Transaction, what: &What) -> Result<()> {
        match what {
            What::Row(change) => {
                self.restore(state, transaction.id(), &change.key, change.old.as_ref(), Restore::Any)?;
                if let Some(old) = &change.old {
                    let file = u64::from(state.space.file_id().0);
                    transaction.take_back_interim(file, &change.key, old);
                }
                if change.leaves_garbage {
                    self.remove_garbage(1);
                }
            }
            What::Inserted(keys) => {
                for position in (0..keys.len()).rev() {
                    self.restore(state, transaction.id(), keys.get(position), None, Restore::OnlyInserted)?;
                }
            }
        }
        Ok(())
    }

    /// Gives a row its old state back, if it carries `stamp` and is one that `which` names.
    pub(crate) fn restore(
        &self,
        state: &TableState,
        stamp: Stamp,
        key: &[u8],
        old: Option<&Arc<[u8]>>,
        which: Restore,
    ) -> Result<()> {
        let _latch = self.core.rows.latch(self.id(), key);
        let mut scratch = Vec::new();
        let Some((header, cell)) = self.newest(state, key, &mut scratch)? else { return Ok(()) };
        if header.stamp() != stamp || which == Restore::OnlyInserted && !header.is_first() {
            return Ok(());
        }
        let image = self.image_of(&state.space, &cell)?;
        // Before anything is changed: what cannot be read may be readable when this is repeated.
        let mut wanted = self.versions(state, key)?;
        let clustered = &state.indexes[0].tree;
        let operation = overflow::before_last_reference_goes(&state.space, &cell)?;
        match old {
            None => {
                self.drop_entries(state, key, &image, &wanted)?;
                clustered.remove(key)?;
                self.add_rows(-i64::from(!header.is_deleted()));
            }
            Some(old) if **old != *cell => {
                // CRASH: the entries go before the row: without the row nobody would know them.
                wanted.push(self.image_of(&state.space, old)?);
                self.drop_entries(state, key, &image, &wanted)?;
                if !clustered.replace(key, &[old], Stamp(0))? {
                    return Err(state.space.corrupt(0, "a latched row has vanished"));
                }
                let was_there = split_cell(old).is_some_and(|(header, _)| !header.is_deleted());
                self.add_rows(i64::from(was_there) - i64::from(!header.is_deleted()));
            }
            // It has not been changed yet.
            Some(_) => {
                overflow::keep_last(&state.space, operation);
                return Ok(());
            }
        }
        if chain_of(&cell) == old.and_then(|old| chain_of(old)) {
            overflow::keep_last(&state.space, operation);
        } else {
            overflow::free_last(&state.space, &cell, operation);
        }
        Ok(())
    }

    /// Adds what a row lacks of index entries, if it is as `old` says. For recovery, which has no older
    /// versions: a row that was changed there and back loses entries that it had before, when the way back is
    /// undone, and gets them here, when the way there is.
    pub(crate) fn complete_entries(&self, state: &TableState, key: &[u8], old: &[u8]) -> Result<()> {
        let _latch = self.core.rows.latch(self.id(), key);
        let mut scratch = Vec::new();
        let is_back = self.newest(state, key, &mut scratch)?.is_some_and(|(_, cell)| *cell == *old);
        if !is_back || split_cell(old).is_none_or(|(header, _)| header.is_deleted()) {
            return Ok(());
        }
        let image = self.image_of(&state.space, old)?;
        let (row, mut entry) = (self.row_codec().view(&image), Entry::default());
        for index in &state.indexes[1..] {
            index.entry(&row, key, &mut entry);
            index.tree.insert(&entry.key, &[], Stamp(0))?;
        }
        Ok(())
    }

    /// The images of a row's older versions, if there are indexes that may have entries of them. May read
    /// files of old versions: the row's latch is held, but none of a page.
    fn versions(&self, state: &TableState, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        if state.indexes.len() == 1 {
            return Ok(Vec::new());
        }
        let versions = self.core.transactions.versions_of(u64::from(state.space.file_id().0), key)?;
        versions.iter().map(|version| self.image_of(&state.space, version)).collect()
    }

    /// Removes the index entries of `image` that none of the row's `wanted` images has. The row's latch is
    /// held.
    fn drop_entries(&self, state: &TableState, key: &[u8], image: &[u8], wanted: &[Vec<u8>]) -> Result<()> {
        let row = self.row_codec().view(image);
        let (mut entry, mut other) = (Entry::default(), Entry::default());
        for index in &state.indexes[1..] {
            index.entry(&row, key, &mut entry);
            let is_wanted = wanted.iter().any(|image| {
                index.entry(&self.row_codec().view(image), key, &mut other);
                other == entry
            });
            if !is_wanted {
                index.tree.remove(&entry.key)?;
            }
        }
        Ok(())
    }

    /// Removes what nobody sees any more of a row as it was before a transaction changed it: the row itself
    /// if it is still as that transaction deleted it, index entries that only the old one had, its overflow
    /// pages.
    pub(crate) fn purge_row(&self, state: &TableState, garbage: &Garbage) -> Result<()> {
        let purged = self.purge_latched(state, garbage);
        if purged.is_err() && garbage.has_chain {
            // The log does not name the chain for ever: the file stays in doubt, and the next start finds its
            // pages.
            let _stays = state.space.doubt();
        }
        purged
    }

    fn purge_latched(&self, state: &TableState, garbage: &Garbage) -> Result<()> {
        let Garbage { key, old, stamp, has_chain, .. } = garbage;
        let _latch = self.core.rows.latch(self.id(), key);
        let mut scratch = Vec::new();
        let mut newest = self.newest(state, key, &mut scratch)?;
        if let Some((_, cell)) = newest.take_if(|(header, _)| header.is_deleted() && header.stamp() == *stamp)
        {
            let image = self.image_of(&state.space, &cell)?;
            self.drop_entries(state, key, &image, &[])?;
            let operation = overflow::before_last_reference_goes(&state.space, &cell)?;
            state.indexes[0].tree.remove(key)?;
            overflow::free_last(&state.space, &cell, operation);
        }
        let mut wanted = self.versions(state, key)?;
        if let Some((_, cell)) = &newest {
            wanted.push(self.image_of(&state.space, cell)?);
        }
        match self.image_of(&state.space, old) {
            Ok(image) => self.drop_entries(state, key, &image, &wanted)?,
            // Its pages went with a deleted row that had the same image, after the image's entries.
            Err(Error::Corrupt { .. }) if !has_chain => {}
            Err(error) => return Err(error),
        }
        if *has_chain {
            // Until now the log has named the chain.
            let operation = overflow::before_last_reference_goes(&state.space, old)?;
            overflow::free_last(&state.space, old, operation);
        }
        Ok(())
    }

    /// Removes an entry of a secondary index if no version of the row that it leads to has it. True if it was
    /// removed.
    pub(crate) fn purge_entry(&self, state: &TableState, position: usize, entry: &[u8]) -> Result<bool> {
        let index = &state.indexes[position];
        let Some((own, key)) = index.split_entry(entry) else {
            return Err(state.space.corrupt(0, "an index entry without the index's parts"));
        };
        let _latch = self.core.rows.latch(self.id(), key);
        let mut scratch = Vec::new();
        let mut images = self.versions(state, key)?;
        if let Some((_, cell)) = self.newest(state, key, &mut scratch)? {
            images.push(self.image_of(&state.space, &cell)?);
        }
        if images.iter().any(|image| self.row_has_key(index, image, own, &mut scratch)) {
            return Ok(false);
        }
        index.tree.remove(entry)
    }
}
