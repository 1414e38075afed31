//! The transactions of sessions: how they begin and end, and the statements inside of them.
//!
//! - [`crate::statements::transaction`]: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION.
//! - [`run`]: running a statement that reads or changes tables, with the locks on tables that it needs.

mod run;
#[cfg(test)]
mod tests;

pub(crate) use run::{StatementLocks, Writes};

use crate::locks::{Mode, Request};
use crate::plan::plan::{LockClause, LockPatience};
use crate::status::Counter;
use crate::{Session, SqlError};
use base::TableId;
use engine::{Isolation, Savepoint};
use std::time::{Duration, Instant};

/// What a session keeps of its transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// True between BEGIN and COMMIT, and if autocommit is off and a statement has used a table.
    pub open: bool,
    pub read_only: bool,
    /// True if it has used a table or taken its snapshot. Then other sessions see it.
    used: bool,
    /// Statements have changed or locked rows.
    pub wrote: bool,
    isolation: Isolation,
    pub savepoints: Vec<(String, Savepoint)>,
    /// The characteristics that SET TRANSACTION without a scope asked for, for the next transaction.
    pub next: Characteristics,
    /// What it was begun with. `None` if no statement has begun it, but the use of a table.
    pub begun_with: Option<Beginning>,
    pub did: Did,
    /// The tables that it has used. They are locked until it ends.
    tables: Vec<(TableId, Mode)>,
}

/// What SET TRANSACTION and START TRANSACTION say of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Characteristics {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
}

/// How SET TRANSACTION and START TRANSACTION asked for a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Beginning {
    pub asked: Characteristics,
    pub snapshot: bool,
}

/// What the statements of a transaction have done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Did {
    pub read: bool,
    /// Changed rows, or locked them.
    pub write: bool,
    pub send_rows: bool,
}

impl Session {
    /// The isolation that the next transaction has.
    pub(crate) fn isolation(&self) -> Isolation {
        match self.state.transaction.open {
            true => self.state.transaction.isolation,
            false => self.state.transaction.next.isolation.unwrap_or(self.variables.common.isolation),
        }
    }

    /// How a statement locks rows that it reads in order to change others: INSERT ... SELECT, and subqueries
    /// of UPDATE and DELETE.
    pub(crate) fn lock_of_reads(&self) -> Option<LockClause> {
        matches!(self.isolation(), Isolation::RepeatableRead | Isolation::Serializable)
            .then_some(LockClause { exclusive: false, wait: LockPatience::Default })
    }

    /// True if the transaction, or a statement outside of one, may only read.
    pub(crate) fn is_read_only(&self) -> bool {
        match self.state.transaction.open {
            true => self.state.transaction.read_only,
            false => self.state.transaction.next.read_only.unwrap_or(self.variables.common.tx_read_only),
        }
    }

    /// The owner that asks for locks on tables, and how long it can wait.
    pub(crate) fn request(&self) -> Request<'_> {
        let wait = Duration::from_secs(self.variables.common.lock_wait_seconds);
        Request { owner: self.client.id, interrupt: &self.interrupt, until: Instant::now() + wait }
    }

    /// The engine's half of the session. A statement takes it out while it runs.
    pub(crate) fn engine(&mut self) -> Result<&mut engine::Session, SqlError> {
        self.engine.as_deref_mut().ok_or_else(|| SqlError::internal("a statement inside of a statement"))
    }

    /// Begins a transaction. None may be open.
    pub(crate) fn begin_transaction(&mut self, read_only: Option<bool>) -> Result<(), SqlError> {
        let isolation = self.isolation();
        let read_only = read_only.unwrap_or(self.is_read_only());
        self.engine()?.begin(isolation)?;
        let transaction = &mut self.state.transaction;
        transaction.open = true;
        transaction.isolation = isolation;
        transaction.read_only = read_only;
        transaction.wrote = false;
        transaction.next = Characteristics::default();
        self.tracker.note_transaction();
        self.interrupt.note_characteristics(isolation, read_only);
        Ok(())
    }

    /// Shows other sessions the characteristics of the next transaction.
    pub(crate) fn note_characteristics(&self) {
        self.interrupt.note_characteristics(self.isolation(), self.is_read_only());
    }

    /// From now on other sessions see the transaction.
    pub(crate) fn note_use(&mut self) {
        if !self.state.transaction.used {
            self.state.transaction.used = true;
            self.interrupt.note_begin();
        }
    }

    /// Ends the transaction, if there is one, and unlocks its tables.
    ///
    /// # Errors
    /// 1205, 1317 and 1927 while another session keeps everything from being committed: the transaction
    /// continues. After an error of the engine the transaction has ended.
    pub(crate) fn end_transaction(&mut self, keep: bool) -> Result<(), SqlError> {
        if !self.state.transaction.open {
            self.state.transaction.next = Characteristics::default();
            self.state.transaction.savepoints.clear();
            return Ok(());
        }
        let instance = self.instance.clone();
        let commits = keep && self.state.transaction.wrote;
        let _writing = match commits && !self.locked.everything {
            true => Some(instance.read_lock.commit(&self.writing, &self.request())?),
            false => None,
        };
        let engine = self.engine()?;
        let result = if keep { engine.commit() } else { engine.roll_back() };
        if self.state.transaction.wrote {
            let counter = if keep { Counter::HandlerCommit } else { Counter::HandlerRollback };
            self.counters.add(counter, 1);
        }
        self.forget_transaction();
        Ok(result?)
    }

    /// The transaction has ended in the engine.
    fn forget_transaction(&mut self) {
        let transaction = &mut self.state.transaction;
        transaction.open = false;
        transaction.wrote = false;
        transaction.read_only = false;
        transaction.savepoints.clear();
        transaction.used = false;
        transaction.begun_with = None;
        transaction.did = Did::default();
        self.tracker.note_transaction();
        for (table, mode) in transaction.tables.drain(..) {
            self.instance.locks.unlock(table, mode, self.client.id);
        }
        self.interrupt.note_end();
        self.note_characteristics();
    }

    /// Ends the transaction before a statement that cannot be part of one.
    ///
    /// # Errors
    /// As [`Session::end_transaction`].
    pub(crate) fn implicit_commit(&mut self) -> Result<(), SqlError> {
        self.end_transaction(true)
    }

    /// Rolls back and releases everything that the session holds, because it ends or is reset.
    pub(crate) fn give_up(&mut self) {
        if self.engine.is_some() {
            // If the engine cannot undo something now, it does so at its next start. It refuses writes until
            // then.
            let _ = self.end_transaction(false);
        } else {
            self.forget_transaction();
        }
        self.unlock_tables();
        self.release_user_locks();
        if std::mem::take(&mut self.locked.everything) {
            self.instance.read_lock.unlock();
        }
    }

    /// What hangs on variables that were set: the limits of the warnings, and what the engine has to know.
    pub(crate) fn after_set(&mut self) {
        let common = self.variables.common;
        self.state.warnings.kept_max = common.max_error_count;
        self.state.warnings.notes = common.sql_notes;
        self.memory.set_max(common.memory.session_bytes);
        if let Some(engine) = &mut self.engine {
            engine.set_isolation(common.isolation);
            engine.set_lock_wait(Duration::from_secs(common.row_lock_wait_seconds));
            engine.set_first_committer_wins(common.first_committer_wins);
        }
        self.note_characteristics();
    }
}
