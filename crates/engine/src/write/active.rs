//! A write transaction under way.

use super::backlog::Garbage;
use super::core::WriteCore;
use super::log;
use super::undo::{Change, Changes, Enlisted, Enlistment, Mark, RowChange, Undo, What};
use crate::definition::KeyList;
use crate::table::Table;
use crate::table::state::TableState;
use crate::{Error, Result};
use base::sync::Arc;
use base::{Lsn, Stamp};
use transactions::{DEFINITIONS, LockMode, Patience, Snapshot, Transaction};

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
}

impl Active {
    pub(crate) fn new(transaction: Transaction, patience: Patience, locks_absent: bool) -> Active {
        let undo = Arc::new(Undo::new(transaction.id()));
        let scratch = Vec::new();
        Active { transaction, patience, undo, scratch, locks_absent, has_absent: false, snapshot: None }
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

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.undo.lock().list.len())
    }

    /// The place of a table among those that the transaction has changed. From now on its definition stays as
    /// it is until the transaction has ended: the transaction holds a shared lock on the table's id, and a
    /// change of the definition needs the exclusive one.
    pub(crate) fn enlist(&mut self, table: &Table) -> Result<Enlistment> {
        if let Some(known) = self.undo.lock().tables.iter().rposition(|known| known.table.id() == table.id())
        {
            return Ok(Enlistment(known));
        }
        self.transaction.lock(DEFINITIONS, &table.id().0.to_be_bytes(), LockMode::Shared, self.patience)?;
        let file = table.live_state()?.space.file_id();
        let mut changes = self.undo.lock();
        changes.tables.push(Enlisted { table: table.arc()?, file });
        Ok(Enlistment(changes.tables.len() - 1))
    }

    /// Logs a change that is about to be made, and remembers how to take it back.
    fn push(&mut self, core: &WriteCore, change: Change) -> Result<()> {
        let mut changes = self.undo.lock();
        if changes.from.is_none() {
            // Before the first record: a checkpoint keeps what comes from here on.
            let from = core.journal.position();
            core.under_way.begin(self.transaction.id(), from, self.undo.clone());
            changes.from = Some(from);
        }
        let garbage_of = change.leaves_garbage().then_some(change.table);
        changes.push(core, self.transaction.id(), change)?;
        if let Some(table) = garbage_of {
            changes.tables[table.0].table.add_garbage(1);
        }
        self.transaction.count_row_changed();
        Ok(())
    }

    /// A row is about to be changed.
    pub(crate) fn push_row(&mut self, core: &WriteCore, table: Enlistment, change: RowChange) -> Result<()> {
        self.push(core, Change { table, what: What::Row(change) })
    }

    /// Rows are about to be inserted together.
    pub(crate) fn push_inserted(&mut self, core: &WriteCore, table: Enlistment, keys: KeyList) -> Result<()> {
        self.push(core, Change { table, what: What::Inserted(keys) })
    }

    /// The newest change turned out not to be necessary: nothing was changed.
    pub(crate) fn pop_unused(&mut self) {
        let mut changes = self.undo.lock();
        if let Some(Change { table, what: What::Row(change) }) = changes.pop() {
            let Enlisted { table, file } = &changes.tables[table.0];
            if change.leaves_garbage {
                table.add_garbage(-1);
            }
            if change.has_version {
                self.transaction.take_back_version(u64::from(file.0), &change.key);
            }
        }
    }

    /// The newest change moves index entries, which stay behind.
    pub(crate) fn note_garbage(&mut self) {
        let Changes { tables, list, .. } = &mut *self.undo.lock();
        if let Some(Change { table, what: What::Row(change) }) = list.last_mut()
            && !change.leaves_garbage
        {
            change.leaves_garbage = true;
            tables[table.0].table.add_garbage(1);
        }
    }

    /// Of the rows inserted together last, only these are in.
    pub(crate) fn set_inserted(&mut self, keys: KeyList) {
        if let Some(Change { what: What::Inserted(last), .. }) = self.undo.lock().list.last_mut() {
            *last = keys;
        }
    }

    /// Takes the newest changes back, down to `mark`. If that fails the engine refuses writes, and the next
    /// start takes them back.
    pub(crate) fn take_back(&mut self, core: &WriteCore, mark: Mark) -> Result<()> {
        if self.mark() <= mark {
            return Ok(());
        }
        while self.take_back_last(core, mark)? {}
        log::undone(core, self.stamp(), mark)
    }

    /// Takes the newest change back, if there is one above `mark`.
    fn take_back_last(&mut self, core: &WriteCore, mark: Mark) -> Result<bool> {
        let mut changes = self.undo.lock();
        if changes.list.len() <= mark.0 {
            return Ok(false);
        }
        let Some(change) = changes.pop() else { return Ok(false) };
        let Enlisted { table, file } = changes.tables[change.table.0].clone();
        let state = table.state();
        if state.dropped || state.space.file_id() != file {
            return Ok(true);
        }
        if let Err(error) = table.undo(state, &mut self.transaction, &change.what) {
            // Still to be taken back: by the next start.
            changes.restore(change);
            let why = format!("a change could not be taken back: {error}");
            core.refuse_writes(why.clone());
            return Err(Error::ReadOnly { why });
        }
        drop(changes);
        if let What::Row(change) = change.what
            && let Some((header, cell)) = change.deleted_before()
            && header.stamp() != self.transaction.id()
        {
            // Purge may have come by meanwhile and found the row there.
            table.add_garbage(1);
            core.purge.add(vec![Garbage {
                table: table.clone(),
                file,
                key: change.key,
                old: cell,
                stamp: header.stamp(),
                chain: None,
                is_counted: true,
            }]);
        }
        Ok(true)
    }

    /// Ends the transaction and keeps what it did.
    pub(crate) fn commit(self, core: &WriteCore) -> Result<()> {
        let has_absent = self.has_absent;
        let result = self.end_by_commit(core);
        if has_absent {
            core.end_absent_locks();
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
        let list = std::mem::take(&mut changes.list);
        let garbage = garbage(&changes.tables, list, stamp, from);
        self.transaction.commit();
        // A checkpoint asks for transactions under way first, then for what is to be purged.
        core.purge.add(garbage);
        core.under_way.end(stamp);
        drop(changes);
        core.purge.help(core);
        core.journal.commit(end)
    }

    /// Ends the transaction and takes back all it did.
    pub(crate) fn roll_back(self, core: &WriteCore) -> Result<()> {
        let has_absent = self.has_absent;
        let result = self.end_by_roll_back(core);
        if has_absent {
            core.end_absent_locks();
        }
        result
    }

    fn end_by_roll_back(mut self, core: &WriteCore) -> Result<()> {
        if self.undo.lock().from.is_none() {
            self.transaction.roll_back();
            return Ok(());
        }
        let stamp = self.stamp();
        self.take_back(core, Mark(0))?;
        log::rolled_back(core, stamp)?;
        self.transaction.roll_back();
        core.under_way.end(stamp);
        Ok(())
    }
}

/// What purge has to do when nobody sees the old rows any more.
fn garbage(tables: &[Enlisted], changes: Vec<Change>, stamp: Stamp, from: Lsn) -> Vec<Garbage> {
    let mut garbage = Vec::new();
    for Change { table, what } in changes {
        if let What::Row(RowChange { key, old: Some(old), leaves_garbage, leaves_chain, .. }) = what
            && (leaves_garbage || leaves_chain)
        {
            let Enlisted { table, file } = &tables[table.0];
            let (table, file) = (table.clone(), *file);
            let chain = leaves_chain.then_some(from);
            garbage.push(Garbage { table, file, key, old, stamp, chain, is_counted: leaves_garbage });
        }
    }
    garbage
}
