//! Statements: those that read, and those that change rows, all or nothing.

use super::{Isolation, Outcome, Savepoint, State};
use crate::definition::KeyList;
use crate::latch::Passage;
use crate::table::Table;
use crate::visibility::{Reader, Readers};
use crate::write::active::Active;
use crate::write::core::WriteCore;
use crate::write::row::{LockedRow, RowUpdate};
use crate::write::undo::{Enlistment, Mark};
use crate::{Error, Result};
use base::sync::Arc;
use transactions::{LockMode, Patience};

/// A statement that only reads.
#[derive(Debug)]
pub struct ReadStatement<'s> {
    state: &'s mut State,
}

impl<'s> ReadStatement<'s> {
    pub(super) fn new(state: &'s mut State) -> ReadStatement<'s> {
        state.open_snapshot();
        ReadStatement { state }
    }

    pub fn reader(&self) -> Reader<'_> {
        self.state.snapshot_reader()
    }
}

impl Drop for ReadStatement<'_> {
    fn drop(&mut self) {
        self.state.close_snapshot();
        self.state.reads.exit();
    }
}

/// Whose statement it is.
#[derive(Debug)]
pub(crate) enum Holder<'s> {
    Session(&'s mut State),
    /// Nobody's: it has a session of its own.
    Statement(Box<State>),
}

impl Holder<'_> {
    fn state(&mut self) -> &mut State {
        match self {
            Holder::Session(state) => state,
            Holder::Statement(state) => state,
        }
    }
}

/// A statement that changes or locks rows. Dropped without [`WriteStatement::commit`], everything it did is
/// undone.
#[derive(Debug)]
pub struct WriteStatement<'s> {
    core: &'s Arc<WriteCore>,
    _passage: Passage<'s>,
    holder: Holder<'s>,
    mark: Mark,
}

/// What changes and locks rows in a [`WriteStatement`].
#[derive(Debug)]
pub struct Writer<'w> {
    pub(crate) core: &'w Arc<WriteCore>,
    pub(crate) active: &'w mut Active,
}

/// Whether to wait for a row that another transaction has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// As long as the session's limit allows.
    Wait,
    /// NOWAIT, SKIP LOCKED: [`Error::WouldBlock`].
    NoWait,
}

impl<'s> WriteStatement<'s> {
    pub(crate) fn alone(core: &'s Arc<WriteCore>) -> Result<WriteStatement<'s>> {
        WriteStatement::new(core, Holder::Statement(Box::new(State::new(core))))
    }

    pub(super) fn new(core: &'s Arc<WriteCore>, mut holder: Holder<'s>) -> Result<WriteStatement<'s>> {
        let passage = core.statements.pass();
        core.touch()?;
        holder.state().settle(core)?;
        if let Holder::Session(state) = &holder {
            // Behind the passage: a thread that waits for all passages to be given back must not wait for
            // those that queue.
            state.reads.enter(state.patience)?;
        }
        let state = holder.state();
        let mark = state.begin_write(core).inspect_err(|_| {
            state.reads.pause();
            state.reads.exit();
        })?;
        Ok(WriteStatement { core, _passage: passage, holder, mark })
    }

    /// The statement's reads, and its changes: both at once, for a change may depend on what a subquery
    /// reads.
    pub fn split(&mut self) -> (Readers<'_>, Writer<'_>) {
        let core = self.core;
        let state = self.holder.state();
        let isolation = state.isolation();
        let State { reads, current, active, .. } = state;
        let active = active.as_mut().expect("begun with the statement");
        let current = current.view().expect("opened with the statement");
        // The transaction's snapshot is taken by its first plain read: until then a change reads what is
        // committed now.
        let snapshot = match reads.view() {
            _ if isolation == Isolation::ReadUncommitted => Reader::newest(),
            Some(view) => Reader::snapshot(view),
            None => Reader::snapshot(current),
        };
        // A row that was changed after a binding snapshot is a candidate by what it was and by what it is: so
        // the statement meets it, and fails.
        let current = match (active.snapshot, reads.view()) {
            (Some(_), Some(view)) => view,
            _ => current,
        };
        let locks_ranges = active.locks_ranges;
        let current = Reader::current(current, active.stamp(), locks_ranges);
        (Readers { snapshot, current }, Writer { core, active })
    }

    fn writer(&mut self) -> Writer<'_> {
        self.split().1
    }

    /// See [`Writer::insert`].
    ///
    /// # Errors
    /// As there.
    pub fn insert(&mut self, table: &Table, row: &[u8]) -> Result<()> {
        self.writer().insert(table, row)
    }

    /// See [`Writer::insert_many`].
    ///
    /// # Errors
    /// As there.
    pub fn insert_many(&mut self, table: &Table, rows: &KeyList) -> Result<(), (usize, Error)> {
        self.writer().insert_many(table, rows)
    }

    /// See [`Writer::update`].
    ///
    /// # Errors
    /// As there.
    pub fn update(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<bool> {
        self.writer().update(table, primary_key, change)
    }

    /// See [`Writer::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        condition: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        self.writer().delete(table, primary_key, condition)
    }

    /// Keeps what the statement did. Outside of a transaction this makes it durable, and visible to others.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] if the log cannot be written: whether the statement is kept shows at the next
    /// start.
    pub fn commit(mut self) -> Result<()> {
        self.mark = Mark(usize::MAX);
        let core = self.core;
        let state = self.holder.state();
        if state.begun.is_some() {
            return Ok(());
        }
        // The log is waited for outside.
        state.reads.exit();
        state.end(core, Outcome::Commit)
    }
}

impl Drop for WriteStatement<'_> {
    fn drop(&mut self) {
        let core = self.core;
        let mark = self.mark;
        let state = self.holder.state();
        // Errors have made the engine refuse writes; the next start takes back what could not be.
        if state.begun.is_none() {
            let _ = state.end(core, Outcome::RollBack);
        } else if let Some(active) = &mut state.active {
            let _ = active.take_back(core, mark);
        }
        state.current.close();
        state.reads.pause();
        state.reads.exit();
    }
}

impl State {
    /// A statement that changes rows begins. Gives what its transaction has done so far.
    fn begin_write(&mut self, core: &WriteCore) -> Result<Mark> {
        // A snapshot that was given up keeps no row from being changed. What is read by it fails.
        let _ = self.reads.resume();
        let binding = self.binding_snapshot()?;
        let mark = match &self.active {
            Some(active) => active.mark(),
            None => {
                let transaction = self.reads.begin()?;
                self.current.set_own(transaction.id());
                let locks_absent = self.keeps_snapshot();
                let mut active = Active::new(transaction, self.patience, locks_absent);
                active.locks_ranges = self.isolation() == Isolation::Serializable;
                self.active = Some(active);
                Mark::default()
            }
        };
        if let Some(active) = &mut self.active {
            active.snapshot = binding;
            if active.locks_ranges {
                core.ranges.begin_statement(active.stamp());
            }
        }
        self.current.open();
        Ok(mark)
    }
}

impl Writer<'_> {
    /// Inserts a row image; a table without primary key gets its hidden key here. Waits for transactions that
    /// have a row with the same primary or unique key.
    ///
    /// # Errors
    /// As [`Writer::update`].
    pub fn insert(&mut self, table: &Table, row: &[u8]) -> Result<()> {
        let place = self.enlist(table)?;
        let mut key = Vec::new();
        table.primary_key(table.live_state()?, row, &mut key);
        self.all_or_nothing(|core, active| table.insert_row(core, active, place, &key, row))
    }

    /// Inserts many rows, or none: on a duplicate, `Err` names the index and the position in `rows` of the
    /// first row that could not be inserted. Sorted where it pays, so that a thousand rows descend the trees
    /// far fewer than a thousand times.
    ///
    /// # Errors
    /// As [`Writer::update`].
    pub fn insert_many(&mut self, table: &Table, rows: &KeyList) -> Result<(), (usize, Error)> {
        let mark = self.active.mark();
        let mut done = 0;
        while done < rows.len() {
            match self.insert_some(table, rows, done) {
                Ok(count) => done += count,
                Err((position, error)) => {
                    self.active.take_back(self.core, mark).map_err(|error| (position, error))?;
                    return Err((position, error));
                }
            }
        }
        Ok(())
    }

    /// Inserts those of many rows that collide with no other one, in their order; the others are told to
    /// `skipped`, each with its position and [`Error::DuplicateKey`].
    ///
    /// # Errors
    /// As [`Writer::update`].
    pub fn insert_or_skip(
        &mut self,
        table: &Table,
        rows: &KeyList,
        skipped: &mut dyn FnMut(usize, Error),
    ) -> Result<()> {
        let mut done = 0;
        while done < rows.len() {
            let place = self.enlist(table)?;
            let bulk =
                self.all_or_nothing(|core, active| table.insert_bulk(core, active, place, rows, done))?;
            if !bulk.inserted {
                for position in done..done + bulk.rows {
                    match self.insert(table, rows.get(position)) {
                        Ok(()) => {}
                        Err(error @ Error::DuplicateKey { .. }) => skipped(position, error),
                        Err(error) => return Err(error),
                    }
                }
            }
            done += bulk.rows;
        }
        Ok(())
    }

    /// Inserts the next rows of `rows`; how many, or which failed.
    fn insert_some(&mut self, table: &Table, rows: &KeyList, from: usize) -> Result<usize, (usize, Error)> {
        let place = self.enlist(table).map_err(|error| (from, error))?;
        let bulk = self.all_or_nothing(|core, active| table.insert_bulk(core, active, place, rows, from));
        let bulk = bulk.map_err(|error| (from, error))?;
        if !bulk.inserted {
            // Some row collides. One by one, it is the first in the caller's order that is reported.
            for position in from..from + bulk.rows {
                self.insert(table, rows.get(position)).map_err(|error| (position, error))?;
            }
        }
        Ok(bulk.rows)
    }

    /// Updates one row, after waiting for other transactions that have changed or locked it: `change` sees
    /// the newest image and appends a new one to its second argument, returning true, or leaves the row alone
    /// with false. True if the row was changed; false also if there is no such row.
    ///
    /// # Errors
    /// [`Error::LockWaitTimeout`], [`Error::Deadlock`], [`Error::Interrupted`] and [`Error::RecordChanged`]
    /// while it waits for rows; [`Error::ReadOnly`], [`Error::Closed`], [`Error::Full`], [`Error::Io`] and
    /// [`Error::Corrupt`]. [`Error::DuplicateKey`], [`Error::KeyTooLong`] and [`Error::RowTooLarge`] of the
    /// new image. What the call did is taken back.
    pub fn update(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<bool> {
        self.update_or_keep(table, primary_key, &mut |image, out| match change(image, out) {
            true => RowUpdate::Change,
            false => RowUpdate::Skip,
        })
    }

    /// As [`Writer::update`], for a caller who tells a row that is meant and stays as it is from one that is
    /// not meant. `change` may be called more than once.
    ///
    /// # Errors
    /// As [`Writer::update`].
    pub fn update_or_keep(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> RowUpdate,
    ) -> Result<bool> {
        let place = self.enlist(table)?;
        self.all_or_nothing(|core, active| table.update_row(core, active, place, primary_key, change))
    }

    /// Deletes one row if it is there and `condition` holds for its newest image, after waiting as
    /// [`Writer::update`] does.
    ///
    /// # Errors
    /// As [`Writer::update`].
    pub fn delete(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        condition: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        let place = self.enlist(table)?;
        self.all_or_nothing(|core, active| table.delete_row(core, active, place, primary_key, condition))
    }

    /// Locks a row until the transaction ends, and gives its newest image. `None` if it is not there.
    ///
    /// # Errors
    /// As [`Writer::update`]; [`Error::WouldBlock`] with [`LockWait::NoWait`].
    pub fn lock(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Option<LockedRow>> {
        self.active.enlist(self.core, table)?;
        let patience = if wait == LockWait::NoWait { Patience::None } else { self.active.patience };
        table.lock_row(self.core, self.active, primary_key, mode, patience)
    }

    /// The row is not meant: it is as if it had not been locked. Rows that were locked since stay locked,
    /// unless they were given back before this one.
    pub fn give_back(&mut self, row: LockedRow) {
        row.give_back(&mut self.active.transaction);
    }

    /// What the transaction has done so far.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(Some(self.active.mark()))
    }

    /// Takes back what was changed since `savepoint`, which this writer has given. Locks stay.
    ///
    /// # Errors
    /// [`Error::Full`] and others of writing the log.
    pub fn take_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.active.take_back(self.core, savepoint.0.unwrap_or_default())
    }

    /// To be called before a row is changed: gives the table's place among those of the transaction, once the
    /// log has room.
    fn enlist(&mut self, table: &Table) -> Result<Enlistment> {
        self.core.touch()?;
        self.active.enlist(self.core, table)
    }

    /// Runs the change of a row; if it fails half-way, what it did is taken back. It is run again after a
    /// wait for a transaction that has read the row's range.
    fn all_or_nothing<T>(
        &mut self,
        mut change: impl FnMut(&WriteCore, &mut Active) -> Result<T>,
    ) -> Result<T> {
        let mark = self.active.mark();
        loop {
            let result = change(self.core, self.active);
            if result.is_err() {
                self.active.take_back(self.core, mark)?;
                return result;
            }
            match self.active.meets_range(self.core, mark) {
                Ok(true) => {}
                Ok(false) => return result,
                Err(error) => {
                    self.active.take_back(self.core, mark)?;
                    return Err(error);
                }
            }
        }
    }
}
