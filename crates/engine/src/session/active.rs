//! A write transaction under way.

use super::log;
use super::undo::{Change, Mark, RowChange, What};
use crate::core::Core;
use crate::purge::Garbage;
use crate::table::Table;
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, Lsn, Stamp};
use transactions::{DEFINITIONS, LockMode, Patience, Transaction};

/// A write transaction: its locks and what it has changed.
#[derive(Debug)]
pub(crate) struct Active {
    pub transaction: Transaction,
    /// How long it waits for a lock.
    pub patience: Patience,
    tables: Vec<Enlisted>,
    changes: Vec<Change>,
    /// Cells are read into it.
    pub scratch: Vec<u8>,
    /// Its first record in the log, if there is one, has this place or a higher one.
    from: Option<Lsn>,
}

/// A table that the transaction has changed, with the file that it had at the time.
#[derive(Debug)]
struct Enlisted {
    table: Arc<Table>,
    file: FileId,
}

impl Active {
    pub fn new(transaction: Transaction, patience: Patience) -> Active {
        Active {
            transaction,
            patience,
            tables: Vec::new(),
            changes: Vec::new(),
            scratch: Vec::new(),
            from: None,
        }
    }

    pub fn stamp(&self) -> Stamp {
        self.transaction.id()
    }

    pub fn mark(&self) -> Mark {
        Mark(self.changes.len())
    }

    /// The number of a table among those that the transaction has changed. From now on nobody redefines the table until the
    /// transaction has ended: its definition is locked by its id, shared, and exclusively by whoever redefines it.
    pub fn enlist(&mut self, table: &Table) -> Result<usize> {
        if let Some(known) = self.tables.iter().rposition(|known| known.table.id() == table.id()) {
            return Ok(known);
        }
        self.transaction.lock(DEFINITIONS, &table.id().0.to_be_bytes(), LockMode::Shared, self.patience)?;
        let file = table.live_state()?.space.file_id();
        self.tables.push(Enlisted { table: table.arc()?, file });
        Ok(self.tables.len() - 1)
    }

    /// The file that a change is about to be logged for.
    fn begin_to_log(&mut self, core: &Core, table: usize) -> FileId {
        if self.from.is_none() {
            // Before the first record: a checkpoint keeps what comes from here on.
            let from = core.journal.position();
            core.under_way.begin(self.stamp(), from);
            self.from = Some(from);
        }
        self.tables[table].file
    }

    /// Logs a change that is about to be made, and remembers how to take it back.
    pub fn push_row(&mut self, core: &Core, table: usize, change: RowChange) -> Result<()> {
        let file = self.begin_to_log(core, table);
        log::row(core, self.stamp(), self.changes.len(), file, &self.tables[table].table, &change)?;
        self.transaction.count_row_changed();
        if change.leaves_garbage {
            self.tables[table].table.add_garbage(1);
        }
        self.changes.push(Change { table, what: What::Row(change) });
        Ok(())
    }

    /// The same for rows that are about to be inserted together.
    pub fn push_inserted(&mut self, core: &Core, table: usize, keys: crate::KeyList) -> Result<()> {
        let file = self.begin_to_log(core, table);
        log::inserted(core, self.stamp(), self.changes.len(), file, &self.tables[table].table, &keys)?;
        self.transaction.count_row_changed();
        self.changes.push(Change { table, what: What::Inserted(keys) });
        Ok(())
    }

    /// The newest change turned out not to be necessary: nothing was changed.
    pub fn pop_unused(&mut self) {
        if let Some(Change { table, what: What::Row(change) }) = self.changes.pop() {
            let Enlisted { table, file } = &self.tables[table];
            if change.leaves_garbage {
                table.add_garbage(-1);
            }
            if change.has_version {
                self.transaction.take_back_version(u64::from(file.0), &change.key);
            }
        }
    }

    /// The newest change moves index entries, which stay behind.
    pub fn note_garbage(&mut self) {
        if let Some(Change { table, what: What::Row(change) }) = self.changes.last_mut()
            && !change.leaves_garbage
        {
            change.leaves_garbage = true;
            self.tables[*table].table.add_garbage(1);
        }
    }

    /// Of the rows inserted together last, only these are in.
    pub fn set_inserted(&mut self, keys: crate::KeyList) {
        if let Some(Change { what: What::Inserted(last), .. }) = self.changes.last_mut() {
            *last = keys;
        }
    }

    /// Takes the newest changes back, down to `mark`. If that fails the engine refuses writes, and the next start takes them back.
    pub fn take_back(&mut self, core: &Core, mark: Mark) -> Result<()> {
        if self.changes.len() <= mark.0 {
            return Ok(());
        }
        while self.changes.len() > mark.0 {
            let Some(change) = self.changes.pop() else { break };
            let Enlisted { table, file } = &self.tables[change.table];
            let state = table.state();
            if state.dropped || state.space.file_id() != *file {
                continue;
            }
            if let Err(error) = table.undo(state, &mut self.transaction, &change.what) {
                let why = format!("a change could not be taken back: {error}");
                core.refuse_writes(why.clone());
                return Err(Error::ReadOnly { why });
            }
            if let What::Row(change) = change.what
                && let Some((header, cell)) = change.deleted_before()
                && header.stamp() != self.transaction.id()
            {
                // Purge may have come by meanwhile and found the row there.
                table.add_garbage(1);
                core.purge.add(vec![Garbage {
                    table: table.clone(),
                    file: *file,
                    key: change.key,
                    old: cell,
                    stamp: header.stamp(),
                    chain: None,
                    is_counted: true,
                }]);
            }
        }
        log::undone(core, self.stamp(), mark)
    }

    /// Ends the transaction and keeps what it did.
    pub fn commit(mut self, core: &Core) -> Result<()> {
        let Some(from) = self.from else {
            self.transaction.commit();
            return Ok(());
        };
        let stamp = self.stamp();
        let end = match log::committed(core, stamp) {
            Ok(end) => end,
            Err(error) => {
                // The log takes nothing more: it cannot be taken back either. The next start will.
                core.refuse_writes(error.to_string());
                return Err(error);
            }
        };
        let garbage = garbage(&self.tables, std::mem::take(&mut self.changes), stamp, from);
        self.transaction.commit();
        // A checkpoint asks for transactions under way first, then for what is to be purged.
        core.purge.add(garbage);
        core.under_way.end(stamp);
        core.purge.help(core);
        core.journal.commit(end)
    }

    /// Ends the transaction and takes back all it did.
    pub fn roll_back(mut self, core: &Core) -> Result<()> {
        if self.from.is_none() {
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
            let Enlisted { table, file } = &tables[table];
            let (table, file) = (table.clone(), *file);
            let chain = leaves_chain.then_some(from);
            garbage.push(Garbage { table, file, key, old, stamp, chain, is_counted: leaves_garbage });
        }
    }
    garbage
}
