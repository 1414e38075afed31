//! Statements that change rows: all or nothing.

use crate::core::Core;
use crate::database::Database;
use crate::definition::KeyList;
use crate::latch::Passage;
use crate::table::Table;
use crate::table::row::chain_of;
use crate::table::state::TableState;
use crate::table::write::{Undo, Updated};
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, Stamp};

/// Changes of one statement. Dropped without [`WriteStatement::commit`], everything it did is undone.
///
/// Until there are row versions and locks, other statements see its changes at once, and a row that another
/// statement has changed in the meantime is left as that one made it.
#[derive(Debug)]
pub struct WriteStatement<'db> {
    core: &'db Arc<Core>,
    _passage: Passage<'db>,
    stamp: Stamp,
    /// Tables changed so far, with the file that they had at the time.
    tables: Vec<(Arc<Table>, FileId)>,
    undo: UndoLog,
}

/// What to take back, oldest first.
#[derive(Default, Debug)]
struct UndoLog {
    /// Primary keys, one behind the other.
    keys: Vec<u8>,
    items: Vec<UndoItem>,
}

#[derive(Debug)]
struct UndoItem {
    table: u32,
    key_end: usize,
    undo: Undo,
}

impl<'db> WriteStatement<'db> {
    pub(crate) fn new(database: &'db Database) -> WriteStatement<'db> {
        let core = database.core();
        WriteStatement {
            core,
            _passage: core.statements.pass(),
            stamp: core.take_stamp(),
            tables: Vec::new(),
            undo: UndoLog::default(),
        }
    }

    /// Inserts a row image; a table without primary key gets its hidden key here.
    pub fn insert(&mut self, table: &Table, row: &[u8]) -> Result<()> {
        self.core.touch()?;
        let _passage = table.gate.pass();
        let state = table.live_state()?;
        let table_number = self.enlist(table, state)?;
        let start = self.undo.keys.len();
        table.primary_key(state, row, &mut self.undo.keys);
        match table.insert_row(state, &self.undo.keys[start..], row, self.stamp) {
            Ok(()) => {
                self.undo.push_last_key(table_number, Undo::Inserted);
                Ok(())
            }
            Err(error) => {
                self.undo.keys.truncate(start);
                Err(error)
            }
        }
    }

    /// Inserts many rows, or none: on a duplicate, `Err` names the index and the position in `rows` of the first row
    /// that could not be inserted. Sorted where it pays, so that a thousand rows descend the trees far
    /// fewer than a thousand times.
    pub fn insert_many(&mut self, table: &Table, rows: &KeyList) -> Result<(), (usize, Error)> {
        self.core.touch().map_err(|error| (0, error))?;
        let mark = self.undo.items.len();
        let mut done = 0;
        while done < rows.len() {
            match self.insert_some(table, rows, done) {
                Ok(count) => done += count,
                Err(error) => {
                    self.take_back(mark);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Inserts the next rows of `rows`; how many, or which failed.
    fn insert_some(&mut self, table: &Table, rows: &KeyList, from: usize) -> Result<usize, (usize, Error)> {
        let bulk = {
            let _passage = table.gate.pass();
            let state = table.live_state().map_err(|error| (from, error))?;
            let table_number = self.enlist(table, state).map_err(|error| (from, error))?;
            let bulk = table.insert_bulk(state, rows, from, self.stamp);
            let bulk = bulk.map_err(|error| (from, error))?;
            if let Some(keys) = &bulk.inserted {
                for position in 0..keys.len() {
                    self.undo.keys.extend_from_slice(keys.get(position));
                    self.undo.push_last_key(table_number, Undo::Inserted);
                }
            }
            bulk
        };
        if bulk.inserted.is_none() {
            // Some row collides. One by one, it is the first in the caller's order that is reported.
            for position in from..from + bulk.rows {
                self.insert(table, rows.get(position)).map_err(|error| (position, error))?;
            }
        }
        Ok(bulk.rows)
    }

    /// Updates one row under its row latch: `change` sees the newest image and appends a new one to its second
    /// argument, returning true, or leaves the row alone with false. True if the row was changed; false also if there
    /// is no such row. If the primary key changes, `change` may be called again, when the row was changed in between.
    pub fn update(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<bool> {
        self.core.touch()?;
        let _passage = table.gate.pass();
        let state = table.live_state()?;
        let table_number = self.enlist(table, state)?;
        match table.update_row(state, primary_key, self.stamp, change)? {
            Updated::No => return Ok(false),
            Updated::InPlace(old) => self.undo.push(table_number, primary_key, Undo::Updated(old)),
            Updated::Moved(old, new_key) => {
                self.undo.push(table_number, primary_key, Undo::Deleted(old));
                self.undo.push(table_number, &new_key, Undo::Inserted);
            }
        }
        Ok(true)
    }

    /// Deletes one row if it is there and `condition` holds for its newest image.
    pub fn delete(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        condition: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        self.core.touch()?;
        let _passage = table.gate.pass();
        let state = table.live_state()?;
        let table_number = self.enlist(table, state)?;
        let Some(old) = table.delete_row(state, primary_key, condition)? else { return Ok(false) };
        self.undo.push(table_number, primary_key, Undo::Deleted(old));
        Ok(true)
    }

    /// Keeps what was done.
    pub fn commit(mut self) {
        let items = std::mem::take(&mut self.undo.items);
        for item in &items {
            if let Undo::Updated(old) | Undo::Deleted(old) = &item.undo
                && chain_of(old).is_some()
            {
                self.with_table(item.table, |table, state| {
                    table.free_chain(state, Some(old));
                    Ok(())
                });
            }
        }
    }

    /// The number of a table in this statement.
    fn enlist(&mut self, table: &Table, state: &TableState) -> Result<u32> {
        let file = state.space.file_id();
        let known = self.tables.iter().rposition(|(known, at)| known.id() == table.id() && *at == file);
        if let Some(known) = known {
            return Ok(known as u32);
        }
        self.tables.push((table.arc()?, file));
        Ok(self.tables.len() as u32 - 1)
    }

    /// Runs `work` on a table, unless it was dropped or truncated since the statement changed it.
    fn with_table(&self, table: u32, work: impl FnOnce(&Table, &TableState) -> Result<()>) {
        let (table, file) = &self.tables[table as usize];
        let _passage = table.gate.pass();
        let state = table.state();
        if state.dropped || state.space.file_id() != *file {
            return;
        }
        if let Err(error) = work(table, state) {
            self.core.refuse_writes(format!("a statement could not be undone: {error}"));
        }
    }

    /// Undoes the newest changes, down to `mark` of them.
    fn take_back(&mut self, mark: usize) {
        while self.undo.items.len() > mark {
            let Some(item) = self.undo.items.pop() else { return };
            let start = self.undo.items.last().map_or(0, |item| item.key_end);
            let key = &self.undo.keys[start..item.key_end];
            self.with_table(item.table, |table, state| table.undo_row(state, key, &item.undo, self.stamp));
            self.undo.keys.truncate(start);
        }
    }
}

impl UndoLog {
    fn push(&mut self, table: u32, key: &[u8], undo: Undo) {
        self.keys.extend_from_slice(key);
        self.push_last_key(table, undo);
    }

    /// The key has been appended to `keys` already.
    fn push_last_key(&mut self, table: u32, undo: Undo) {
        self.items.push(UndoItem { table, key_end: self.keys.len(), undo });
    }
}

impl Drop for WriteStatement<'_> {
    fn drop(&mut self) {
        self.take_back(0);
    }
}
