//! A write transaction under way.

use super::backlog::{Block, Garbage, garbage_of};
use super::changes::ChangeList;
use super::core::WriteCore;
use super::log;
use super::undo::{Change, Changes, Enlisted, Enlistment, Mark, RowChange, Undo, What};
use crate::definition::KeyList;
use crate::format::row::{RowHeader, split_cell};
use crate::table::Table;
use crate::table::state::TableState;
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, Lsn, Stamp};
use transactions::{DEFINITIONS, Horizon, LockMode, Patience, Snapshot, Transaction};

/// After so many changes the log is told that they have been taken back, so that a start after a crash does
/// not take back all of a large transaction again.
pub(crate) const UNDONE_AT_ONCE: usize = 4_096;

/// A write transaction: its locks and what it has changed.
#[derive(Debug)]
pub(crate) struct Active {
    pub transaction: Transaction,
    /// How long it waits for a lock.
    pub patience: Patience,
    undo: Arc<Undo>,
    /// Cells are read into it.
    pub scratch: Vec<u8>,
    /// It locks primary keys that it looks for and does not find, so that no other transaction inserts them.
    locks_absent: bool,
    /// It has such locks.
    has_absent: bool,
    /// Rows that this snapshot does not see as they are may not be changed or locked: the first transaction
    /// that commits wins.
    pub snapshot: Option<Snapshot>,
    /// What lies above this mark was to be taken back, and could not be on a full disk.
    pending: Option<Mark>,
    /// A start found it in the log.
    is_resumed: bool,
    /// It locks the ranges of keys that it reads.
    pub locks_ranges: bool,
    /// How many rows it has deleted.
    deletions: u32,
    /// What was seen by everybody when it was asked last.
    horizon: Option<Horizon>,
}

/// A transaction leaves rows in place, if it can, from this deletion on. Few are not worth the look at all
/// sessions.
const FIRST_IN_PLACE: u32 = if cfg!(any(test, feature = "shuttle")) { 1 } else { 65 };
/// It looks again after so many.
const HORIZON_EVERY: u32 = 1 << 16;

impl Active {
    pub(crate) fn new(transaction: Transaction, patience: Patience, locks_absent: bool) -> Active {
        let undo = Arc::new(Undo::new(transaction.id()));
        let scratch = Vec::new();
        Active {
            transaction,
            patience,
            undo,
            scratch,
            locks_absent,
            has_absent: false,
            snapshot: None,
            pending: None,
            is_resumed: false,
            locks_ranges: false,
            deletions: 0,
            horizon: None,
        }
    }

    /// To be called with the stamp of a row that no other transaction under way has changed, before this one
    /// changes or locks it.
    ///
    /// # Errors
    /// [`Error::RecordChanged`].
    #[inline]
    pub(crate) fn check_unchanged(&self, core: &WriteCore, state: &TableState, stamp: Stamp) -> Result<()> {
        match &self.snapshot {
            Some(snapshot) if !core.transactions.saw(snapshot, stamp) => {
                Err(Error::RecordChanged { table: state.def.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// A row is about to be deleted that another transaction left so. True if no older version has to be
    /// kept: everybody sees the row as it is, and goes on to see it in the page (engine R24).
    pub(crate) fn leaves_in_place(&mut self, core: &WriteCore, stamp: Stamp) -> bool {
        self.deletions = self.deletions.wrapping_add(1);
        if self.deletions < FIRST_IN_PLACE && self.horizon.is_none() {
            return false;
        }
        if self.horizon.is_none() || self.deletions.is_multiple_of(HORIZON_EVERY) {
            self.horizon = Some(core.transactions.horizon());
        }
        self.horizon.is_some_and(|horizon| core.transactions.is_seen_by_all(stamp, horizon))
    }

    /// Keeps what a row was (`None`: there was none) as a version. `header`: what lies on its page.
    pub(crate) fn add_version(&mut self, file: u64, key: &[u8], header: RowHeader, old: Option<Arc<[u8]>>) {
        add_version(&mut self.transaction, file, key, header, old);
    }

    /// A row that was deleted in place is about to be replaced: what lies there becomes a version.
    pub(crate) fn add_version_in_place(&mut self, file: u64, key: &[u8], cell: &[u8]) {
        add_version_in_place(&mut self.transaction, file, key, cell);
    }

    pub(crate) fn locks_absent(&self) -> bool {
        self.locks_absent
    }

    /// To be called before a key is locked whose row is not there, and before it is looked for once more.
    /// False if it was called before.
    pub(crate) fn begin_absent_locks(&mut self, core: &WriteCore) -> bool {
        if !self.has_absent {
            core.begin_absent_locks();
        }
        !std::mem::replace(&mut self.has_absent, true)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        self.transaction.id()
    }

    /// Bytes of memory that its changes take.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn undo_memory(&self) -> u64 {
        self.undo.lock().list.memory()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.undo.lock().list.len())
    }

    /// The place of a table among those that the transaction has changed. From now on its definition stays as
    /// it is until the transaction has ended: the transaction holds a shared lock on the table's id, and a
    /// change of the definition needs the exclusive one.
    ///
    /// What takes too much memory of its changes, and of what the rows were, goes to files here, while no
    /// latch is held.
    pub(crate) fn enlist(&mut self, core: &WriteCore, table: &Table) -> Result<Enlistment> {
        self.transaction.spill_versions();
        let mut changes = self.undo.lock();
        changes.list.spill(&core.scratch);
        if let Some(known) = changes.tables.iter().rposition(|known| known.table.id() == table.id()) {
            return Ok(Enlistment(known as u32));
        }
        drop(changes);
        self.transaction.lock(DEFINITIONS, &table.id().0.to_be_bytes(), LockMode::Shared, self.patience)?;
        let file = table.live_state()?.space.file_id();
        core.note_changed(table);
        let mut changes = self.undo.lock();
        changes.tables.push(Enlisted { table: table.arc()?, file });
        Ok(Enlistment(changes.tables.len() as u32 - 1))
    }

    /// Waits if a row that was changed since `mark` was or is in a range that another transaction has read at
    /// SERIALIZABLE. False if there is no such row. The changes are taken back before the wait, and are to be
    /// made again: nobody is to wait for a row whose owner waits.
    ///
    /// # Errors
    /// Those of the wait, and of reading rows.
    #[inline]
    pub(crate) fn meets_range(&mut self, core: &WriteCore, mark: Mark) -> Result<bool> {
        if core.ranges.is_any() { self.wait_for_ranges(core, mark) } else { Ok(false) }
    }

    #[cold]
    fn wait_for_ranges(&mut self, core: &WriteCore, mark: Mark) -> Result<bool> {
        let Some(MetRange { holder, file, key }) = self.met_range(core, mark)? else { return Ok(false) };
        self.take_back(core, mark)?;
        self.transaction.wait_for_end(holder, u64::from(file.0), &key, LockMode::Exclusive, self.patience)?;
        Ok(true)
    }

    /// A transaction that has locked a range which a change since `mark` touches, and the row.
    fn met_range(&mut self, core: &WriteCore, mark: Mark) -> Result<Option<MetRange>> {
        let own = self.stamp();
        let rows = self.undo.lock().rows_since(mark)?;
        for (Enlisted { table, file }, key, old) in rows {
            let state = table.live_state()?;
            let met = |index, entry: &[u8], stays: bool| {
                let holders = core.ranges.holders(own, table.id(), index, entry);
                let met = holders.into_iter().find(|holder| {
                    // A reader that waits for this very row has not read it yet, and will read it where it
                    // is.
                    let is_to_come =
                        || stays && holder.is_new && waits_for_row(core, holder.transaction, file, &key);
                    core.transactions.is_active(holder.transaction) && !is_to_come()
                });
                met.map(|holder| holder.transaction)
            };
            if let Some(holder) =
                table.entries_of(state, &key, old.as_deref(), &mut self.scratch, &mut { met })?
            {
                return Ok(Some(MetRange { holder, file, key }));
            }
        }
        Ok(None)
    }

    /// Logs a change that is about to be made, and remembers how to take it back.
    fn push(&mut self, core: &WriteCore, table: Enlistment, what: What, new_bytes: usize) -> Result<()> {
        if self.pending.is_some() {
            return Err(Error::Full);
        }
        let mut changes = self.undo.lock();
        let state = changes.tables[table.index()].table.state();
        let (indexes, page_bytes) = (state.indexes.len(), state.space.page_size());
        let new_bytes = if matches!(what, What::Row(_)) { new_bytes.min(page_bytes) } else { new_bytes };
        let change = Change::new(table, what, new_bytes, indexes);
        if changes.from.is_none() {
            // Before the first record: a checkpoint keeps what comes from here on.
            let from = core.journal.position();
            core.under_way.begin(self.transaction.id(), from, self.undo.clone());
            changes.from = Some(from);
        }
        let garbage_of = change.leaves_garbage().then_some(change.table);
        changes.push(core, self.transaction.id(), change)?;
        if let Some(table) = garbage_of {
            changes.tables[table.index()].table.add_garbage(1);
        }
        self.transaction.count_change();
        Ok(())
    }

    /// A row is about to be changed: `new_bytes` are those of its new image.
    pub(crate) fn push_row(
        &mut self,
        core: &WriteCore,
        table: Enlistment,
        change: RowChange,
        new_bytes: usize,
    ) -> Result<()> {
        self.push(core, table, What::Row(change), new_bytes)
    }

    /// Rows are about to be inserted together, images of `new_bytes` in all.
    pub(crate) fn push_inserted(
        &mut self,
        core: &WriteCore,
        table: Enlistment,
        keys: KeyList,
        new_bytes: usize,
    ) -> Result<()> {
        self.push(core, table, What::Inserted(keys), new_bytes)
    }

    /// The newest change turned out not to be necessary: nothing was changed.
    ///
    /// # Errors
    /// None: the newest change is in memory.
    pub(crate) fn pop_unused(&mut self) -> Result<()> {
        let mut changes = self.undo.lock();
        if let Some(Change { table, what: What::Row(change), .. }) = changes.pop()? {
            let Enlisted { table, file } = &changes.tables[table.index()];
            if change.leaves_garbage {
                table.remove_garbage(1);
            }
            self.transaction.take_back_versions(changes.list.len() as u64);
            if let Some(old) = &change.old {
                self.transaction.take_back_interim(u64::from(file.0), &change.key, old);
            }
        }
        Ok(())
    }

    /// The newest change moves index entries, which stay behind.
    pub(crate) fn note_garbage(&mut self) {
        let Changes { tables, list, .. } = &mut *self.undo.lock();
        list.change_last(|Change { table, what, .. }| {
            if let What::Row(change) = what
                && !change.leaves_garbage
            {
                change.leaves_garbage = true;
                tables[table.index()].table.add_garbage(1);
            }
        });
    }

    /// Of the rows inserted together last, only these are in.
    pub(crate) fn set_inserted(&mut self, keys: KeyList) {
        self.undo.lock().list.change_last(|Change { what, .. }| {
            if let What::Inserted(last) = what {
                *last = keys;
            }
        });
    }

    /// Takes the newest changes back, down to `mark`. If that fails but for a full disk the engine refuses
    /// writes, and the next start takes them back.
    ///
    /// # Errors
    /// [`Error::Full`] of a full disk: what is left to be taken back stays as it is, and locked. The
    /// transaction changes nothing more until [`Active::settle`] has taken it back.
    pub(crate) fn take_back(&mut self, core: &WriteCore, mark: Mark) -> Result<()> {
        let mark = self.pending.map_or(mark, |pending| pending.min(mark));
        let reached = self.mark();
        if reached <= mark {
            self.pending = None;
            // What a change that could not be logged has left.
            self.transaction.take_back_versions(reached.0 as u64);
            return Ok(());
        }
        while self.take_back_some(core, mark, UNDONE_AT_ONCE)? {}
        Ok(())
    }

    /// Takes back what has been changed since a savepoint. The rows stay locked.
    ///
    /// # Errors
    /// As [`Active::take_back`].
    pub(crate) fn roll_back_to(&mut self, core: &WriteCore, mark: Mark) -> Result<()> {
        let Active { transaction, undo, .. } = self;
        let changes = undo.lock();
        changes.list.each_from(mark.0, &mut |_, Change { table, what, .. }| {
            if let What::Row(RowChange { key, old: Some(old), .. }) = what
                && split_cell(old).is_some_and(|(header, _)| header.stamp() != transaction.id())
            {
                let file = u64::from(changes.tables[table.index()].file.0);
                // If another transaction has the lock, it waits for this one's end. Nobody else comes first.
                let _ = transaction.lock(file, key, LockMode::Exclusive, Patience::None);
            }
            Ok(())
        })?;
        drop(changes);
        self.take_back(core, mark)
    }

    /// Takes back what could not be taken back before.
    ///
    /// # Errors
    /// As [`Active::take_back`].
    #[inline]
    pub(crate) fn settle(&mut self, core: &WriteCore) -> Result<()> {
        match self.pending {
            None => Ok(()),
            Some(mark) => self.take_back(core, mark),
        }
    }

    /// Takes back up to `count` of the newest changes above `mark`, and says so in the log: true if there are
    /// more.
    fn take_back_some(&mut self, core: &WriteCore, mark: Mark, count: usize) -> Result<bool> {
        self.take_back_up_to(core, mark, count).map_err(|error| {
            // A commit tries again, and fails if it cannot.
            self.pending = Some(mark);
            match error {
                Error::Full => error,
                Error::Corrupt { .. } if self.is_resumed => error,
                error => give_up_undo(core, &error),
            }
        })
    }

    fn take_back_up_to(&mut self, core: &WriteCore, mark: Mark, count: usize) -> Result<bool> {
        for _ in 0..count {
            if !self.take_back_last(core, mark)? {
                break;
            }
        }
        let reached = self.mark().max(mark);
        log::undone(core, self.stamp(), reached)?;
        self.undo.lock().unreserve(core);
        if reached > mark {
            return Ok(true);
        }
        self.pending = None;
        Ok(false)
    }

    /// Takes the newest change back, if there is one above `mark`. On a full disk this takes from the
    /// reserve.
    fn take_back_last(&mut self, core: &WriteCore, mark: Mark) -> Result<bool> {
        core.journal.prepare_to_undo()?;
        let mut changes = self.undo.lock();
        if changes.list.len() <= mark.0 {
            return Ok(false);
        }
        let Some(change) = changes.pop()? else { return Ok(false) };
        // One whose file is gone may have no table.
        let Some(Enlisted { table, file }) = changes.tables.get(change.table.index()).cloned() else {
            return Ok(true);
        };
        let state = table.state();
        if state.dropped || state.space.file_id() != file {
            return Ok(true);
        }
        let mut undone = undo_change(&mut self.transaction, &table, &change.what, self.is_resumed);
        while matches!(undone, Err(Error::Full)) && core.journal.give_reserve() {
            undone = undo_change(&mut self.transaction, &table, &change.what, self.is_resumed);
        }
        if let Err(error) = undone {
            changes.restore(change);
            return Err(error);
        }
        self.transaction.take_back_versions(changes.list.len() as u64);
        let from = changes.from;
        drop(changes);
        if let What::Row(change) = change.what
            && let Some((header, cell)) = change.deleted_before()
            && header.stamp() != self.transaction.id()
        {
            // Purge may have come by meanwhile and found the row there. A start finds it in this
            // transaction's record.
            table.add_garbage(1);
            let garbage = Garbage {
                table: table.clone(),
                file,
                key: change.key,
                old: cell,
                stamp: header.stamp(),
                has_chain: false,
                logged: from.unwrap_or_default(),
                is_counted: true,
            };
            core.purge.add(Vec::new(), vec![garbage]);
        }
        Ok(true)
    }

    /// Ends the transaction and keeps what it did.
    ///
    /// # Errors
    /// [`Error::Full`] if it has a statement that is still to be taken back: all of it is, behind the caller.
    pub(crate) fn commit(mut self, core: &WriteCore) -> Result<()> {
        match self.settle(core) {
            Ok(()) => {}
            Err(Error::Full) => {
                self.roll_back_later(core);
                return Err(Error::Full);
            }
            Err(error) => return Err(error),
        }
        let (stamp, has_absent, locks_ranges) = (self.stamp(), self.has_absent, self.locks_ranges);
        let result = self.end_by_commit(core);
        if has_absent {
            core.end_absent_locks();
        }
        if locks_ranges {
            core.ranges.release(stamp);
        }
        result
    }

    fn end_by_commit(self, core: &WriteCore) -> Result<()> {
        let stamp = self.stamp();
        let mut changes = self.undo.lock();
        let Some(from) = changes.from else {
            drop(changes);
            self.transaction.commit();
            return Ok(());
        };
        let end = match log::committed(core, stamp) {
            Ok(end) => end,
            Err(error) => {
                // The log takes nothing more: it cannot be taken back either. The next start will.
                core.refuse_writes(error.to_string());
                return Err(error);
            }
        };
        let (spilled, list) = changes.take(core).into_parts();
        let tables = &changes.tables;
        let garbage = list.into_iter().filter_map(|change| garbage_of(tables, change, stamp, from)).collect();
        let blocks = match spilled.is_empty() {
            true => Vec::new(),
            false => Block::of_changes(spilled, &Arc::from(tables.as_slice()), stamp, from),
        };
        self.transaction.commit();
        // A checkpoint asks for transactions under way first, then for what is to be purged.
        core.purge.add(blocks, garbage);
        core.under_way.end(stamp);
        drop(changes);
        core.purge.help(core);
        core.journal.commit(end)
    }

    /// Ends the transaction and takes back all it did. What a full disk keeps from being taken back now is
    /// taken back behind the caller, and its rows stay locked until then.
    pub(crate) fn roll_back(mut self, core: &WriteCore) -> Result<()> {
        loop {
            match self.roll_back_some(core, UNDONE_AT_ONCE) {
                Ok(true) => continue,
                Ok(false) => self.end_rolled_back(core),
                Err(Error::Full) => self.roll_back_later(core),
                Err(error) => {
                    self.end_locks_without_rows(core);
                    return Err(error);
                }
            }
            return Ok(());
        }
    }

    /// Takes back up to `count` changes; true if there are more.
    ///
    /// # Errors
    /// As [`Active::take_back`]; [`Error::Corrupt`] if a start found the transaction, and a page of
    /// [`Active::last_table`] is damaged.
    pub(crate) fn roll_back_some(&mut self, core: &WriteCore, count: usize) -> Result<bool> {
        if self.undo.lock().from.is_none() {
            return Ok(false);
        }
        let is_more = self.take_back_some(core, Mark(0), count)?;
        if !is_more {
            log::rolled_back(core, self.stamp()).map_err(|error| give_up_undo(core, &error))?;
        }
        Ok(is_more)
    }

    /// Everything has been taken back.
    pub(crate) fn end_rolled_back(mut self, core: &WriteCore) {
        let stamp = self.stamp();
        self.end_locks_without_rows(core);
        self.undo.lock().unreserve(core);
        self.transaction.roll_back();
        core.under_way.end(stamp);
    }

    fn roll_back_later(mut self, core: &WriteCore) {
        self.pending = Some(Mark(0));
        self.transaction.leave_session();
        core.rollbacks.add(self);
    }

    /// The table of the newest change.
    pub(crate) fn last_table(&self) -> Option<Arc<Table>> {
        let changes = self.undo.lock();
        let change = changes.list.last()?;
        changes.tables.get(change.table.index()).map(|enlisted| enlisted.table.clone())
    }

    /// Gives up locks on keys without rows and on ranges.
    fn end_locks_without_rows(&mut self, core: &WriteCore) {
        if std::mem::take(&mut self.has_absent) {
            core.end_absent_locks();
        }
        if std::mem::take(&mut self.locks_ranges) {
            core.ranges.release(self.stamp());
        }
    }

    /// A transaction that a start found unfinished, whose first record in the log is at `from` or behind. It
    /// has its rows by their stamps, and the definitions of its tables. What its rows were is kept for
    /// snapshots. `tables` are those of its changes, by their enlistments; `None` if the file is gone.
    pub(crate) fn resume(
        core: &WriteCore,
        transaction: Transaction,
        from: Lsn,
        tables: &[Option<Arc<Table>>],
        changes: ChangeList,
    ) -> Result<Active> {
        let mut active = Active::new(transaction, Patience::None, false);
        active.is_resumed = true;
        let stamp = active.stamp();
        for batch in changes.into_batches() {
            batch?.into_iter().try_for_each(|change| active.resume_change(core, tables, change))?;
        }
        let mut changes = active.undo.lock();
        changes.from = Some(from);
        core.under_way.begin(stamp, from, active.undo.clone());
        drop(changes);
        Ok(active)
    }

    fn resume_change(
        &mut self,
        core: &WriteCore,
        tables: &[Option<Arc<Table>>],
        change: Change,
    ) -> Result<()> {
        let (table, what) = match &tables[change.table.index()] {
            Some(table) => (self.enlist(core, table)?, change.what),
            // The log counts those that are gone, too.
            None => (Enlistment(0), What::Inserted(KeyList::default())),
        };
        let stamp = self.stamp();
        let mut changes = self.undo.lock();
        if let What::Row(change) = &what
            && let Some(old) = &change.old
            && let Some((header, _)) = split_cell(old)
            && !change.in_place
        {
            let file = u64::from(changes.tables[table.index()].file.0);
            if header.stamp() != stamp {
                let version = (!header.is_deleted()).then(|| old.clone());
                add_version(&mut self.transaction, file, &change.key, header, version);
            } else if header.is_in_place() {
                add_version_in_place(&mut self.transaction, file, &change.key, old);
            }
        }
        let change = Change { table, ..Change::logged(what) };
        if change.leaves_garbage() {
            changes.tables[table.index()].table.add_garbage(1);
        }
        changes.restore(change);
        drop(changes);
        self.transaction.count_change();
        self.transaction.spill_versions();
        Ok(())
    }
}

/// Keeps what a row was (`None`: there was none) as a version. `header`: what lies on its page.
fn add_version(
    transaction: &mut Transaction,
    file: u64,
    key: &[u8],
    header: RowHeader,
    old: Option<Arc<[u8]>>,
) {
    match header.is_first() {
        true => transaction.add_first_version(file, key, header.stamp(), old),
        false => transaction.add_version(file, key, header.stamp(), old),
    }
}

fn add_version_in_place(transaction: &mut Transaction, file: u64, key: &[u8], cell: &[u8]) {
    if let Some((header, body)) = split_cell(cell)
        && header.is_in_place()
    {
        let old = [&header.before_deletion().to_bytes(), body].concat();
        transaction.add_version_before(file, key, header.stamp(), old.into());
    }
}

/// Takes back one change; may be repeated.
fn undo_change(transaction: &mut Transaction, table: &Table, what: &What, is_resumed: bool) -> Result<()> {
    let state = table.state();
    table.undo(state, transaction, what)?;
    match what {
        What::Row(RowChange { key, old: Some(old), .. }) if is_resumed => {
            table.complete_entries(state, key, old)
        }
        _ => Ok(()),
    }
}

/// A row that was changed, and a transaction that has read a range that it was or is in.
struct MetRange {
    holder: Stamp,
    file: FileId,
    key: Box<[u8]>,
}

fn waits_for_row(core: &WriteCore, transaction: Stamp, file: FileId, key: &[u8]) -> bool {
    core.transactions.lock_waits().iter().any(|wait| {
        wait.transaction == transaction.0
            && wait.wanted.table == u64::from(file.0)
            && *wait.wanted.key == *key
    })
}

/// Changes are still to be taken back: by the next start.
fn give_up_undo(core: &WriteCore, error: &Error) -> Error {
    let why = format!("a change could not be taken back: {error}");
    core.refuse_writes(why.clone());
    Error::ReadOnly { why }
}
