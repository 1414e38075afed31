//! Sessions: transactions as a client knows them, and the statements in them.
//!
//! - [`Session`]: begin, commit, roll back, savepoints.
//! - [`statement`]: statements that read, statements that change rows.

pub(crate) mod statement;

#[cfg(test)]
mod tests;

use crate::Result;
use crate::visibility::Reader;
use crate::write::active::Active;
use crate::write::core::WriteCore;
use crate::write::undo::Mark;
use base::Stamp;
use base::sync::Arc;
use statement::{ReadStatement, WriteStatement};
use std::time::Duration;
use transactions::{Interrupter, Patience, Snapshot};

/// How long a session waits for a lock unless it says otherwise: InnoDB's `innodb_lock_wait_timeout`.
const LOCK_WAIT: Duration = Duration::from_secs(50);

/// What a transaction's reads see of others' commits. Locking reads and changes always go by the newest.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Isolation {
    /// Changes that nobody has committed yet, too.
    ReadUncommitted,
    /// Each statement sees what had been committed when it began.
    ReadCommitted,
    /// All plain reads see what had been committed at the first of them.
    #[default]
    RepeatableRead,
    /// As `RepeatableRead`, and the ranges of keys that are read by [`crate::Readers::current`] are locked
    /// until the transaction ends: others do not change rows in them. A client locks the rows that it
    /// reads, too.
    Serializable,
}

/// A client's place in the database: its transaction, its snapshot. One a connection.
#[derive(Debug)]
pub struct Session {
    core: Arc<WriteCore>,
    state: State,
}

#[derive(Debug)]
pub(crate) struct State {
    /// The snapshot of plain reads.
    reads: transactions::Session,
    /// The view by which candidates for changes are found.
    current: transactions::Session,
    /// Of statements outside of a transaction.
    isolation: Isolation,
    /// Of the transaction that was begun.
    begun: Option<Isolation>,
    active: Option<Active>,
    patience: Patience,
    first_committer_wins: bool,
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Commit,
    RollBack,
}

/// A place in a transaction to go back to. `None`: it had neither changed nor locked anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint(Option<Mark>);

impl Session {
    pub(crate) fn new(core: Arc<WriteCore>) -> Session {
        let state = State::new(&core);
        Session { core, state }
    }

    /// Begins a transaction; one that is under way is rolled back first.
    ///
    /// # Errors
    /// As [`Session::roll_back`].
    pub fn begin(&mut self, isolation: Isolation) -> Result<()> {
        self.roll_back()?;
        self.state.begun = Some(isolation);
        Ok(())
    }

    /// Takes the transaction's snapshot now, not at its first read: START TRANSACTION WITH CONSISTENT
    /// SNAPSHOT.
    pub fn open_snapshot(&mut self) {
        if self.state.keeps_snapshot() {
            self.state.reads.open();
            self.state.reads.pause();
        }
    }

    /// Keeps what the transaction did, as durably as `flush_log_at_trx_commit` asks. Nothing happens outside
    /// of one.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`] if the log has failed: whether the transaction is kept shows at the next
    /// start. [`crate::Error::Full`] if a full disk still keeps a statement of it from being taken back: the
    /// transaction is rolled back.
    pub fn commit(&mut self) -> Result<()> {
        self.state.end(&self.core, Outcome::Commit)
    }

    /// Takes back what the transaction did. Nothing happens outside of one. What a full disk keeps from being
    /// taken back is taken back when there is room, and its rows stay locked until then.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`] if a change could not be taken back. The next start does it.
    pub fn roll_back(&mut self) -> Result<()> {
        self.state.end(&self.core, Outcome::RollBack)
    }

    /// Where the transaction is now.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.state.active.as_ref().map(Active::mark))
    }

    /// Takes back what the transaction did since. Its locks stay, but for those of rows that it changed if it
    /// had neither changed nor locked anything at the savepoint.
    ///
    /// # Errors
    /// As [`Session::roll_back`]; [`crate::Error::Full`]: the next statement tries again.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        match (&mut self.state.active, savepoint.0) {
            (Some(active), Some(mark)) => active.roll_back_to(&self.core, mark),
            (Some(active), None) => active.take_back(&self.core, Mark::default()),
            (None, _) => Ok(()),
        }
    }

    /// Sets the isolation of statements outside of a transaction.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.state.isolation = isolation;
    }

    /// Sets how long a statement waits for a lock.
    pub fn set_lock_wait(&mut self, limit: Duration) {
        self.state.patience = Patience::Limit(limit);
        if let Some(active) = &mut self.state.active {
            active.patience = self.state.patience;
        }
    }

    /// From a transaction's snapshot on, it changes and locks no row that another transaction has changed
    /// since: [`crate::Error::RecordChanged`]. Only for levels at which the snapshot is the transaction's.
    /// The default is off.
    pub fn set_first_committer_wins(&mut self, on: bool) {
        self.state.first_committer_wins = on;
    }

    /// A handle by which another thread ends this session's waits: they fail with
    /// [`crate::Error::Interrupted`] until [`Session::clear_interrupt`].
    pub fn interrupter(&self) -> Interrupter {
        self.state.reads.interrupter()
    }

    pub fn clear_interrupt(&self) {
        self.state.reads.clear_interrupt();
    }

    /// Begins a statement that only reads, once it is its turn.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] and [`crate::Error::LockWaitTimeout`] while it waits for that;
    /// [`crate::Error::Full`] while a full disk keeps a statement of the transaction from being taken back.
    #[inline]
    pub fn read(&mut self) -> Result<ReadStatement<'_>> {
        self.state.settle(&self.core)?;
        self.state.reads.enter(self.state.patience)?;
        Ok(ReadStatement::new(&mut self.state))
    }

    /// Begins a statement that changes or locks rows, once it is its turn.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] and [`crate::Error::LockWaitTimeout`] while it waits for that;
    /// [`crate::Error::ReadOnly`], [`crate::Error::Closed`], [`crate::Error::Full`],
    /// [`crate::Error::IdsExhausted`]; [`crate::Error::SnapshotTooOld`] of a snapshot that binds.
    pub fn write(&mut self) -> Result<WriteStatement<'_>> {
        WriteStatement::new(&self.core, statement::Holder::Session(&mut self.state))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If a change cannot be taken back now, the engine refuses writes, and the next start takes it back.
        let _ = self.roll_back();
    }
}

impl State {
    fn new(core: &WriteCore) -> State {
        State {
            reads: core.transactions.session(),
            current: core.transactions.session_of_statements(),
            isolation: Isolation::default(),
            begun: None,
            active: None,
            patience: Patience::Limit(LOCK_WAIT),
            first_committer_wins: false,
        }
    }

    /// Takes back what a full disk has left of a statement.
    #[inline]
    fn settle(&mut self, core: &WriteCore) -> Result<()> {
        match &mut self.active {
            Some(active) => active.settle(core),
            None => Ok(()),
        }
    }

    fn isolation(&self) -> Isolation {
        self.begun.unwrap_or(self.isolation)
    }

    /// True if the snapshot outlives the statement that opened it.
    fn keeps_snapshot(&self) -> bool {
        matches!(self.begun, Some(Isolation::RepeatableRead | Isolation::Serializable))
    }

    /// The snapshot after which rows must not have been changed, if the session wants that.
    ///
    /// # Errors
    /// [`crate::Error::SnapshotTooOld`]: a snapshot that was given up does not know any more which rows were
    /// deleted after it.
    fn binding_snapshot(&self) -> Result<Option<Snapshot>> {
        match self.reads.view() {
            Some(view) if self.first_committer_wins && self.keeps_snapshot() => {
                view.check()?;
                Ok(Some(view.snapshot()))
            }
            _ => Ok(None),
        }
    }

    /// Opens the snapshot that the next statement reads by, or goes on with the transaction's.
    fn open_snapshot(&mut self) {
        if self.keeps_snapshot() && self.reads.view().is_some() {
            // If it was given up, what is read by it fails.
            let _ = self.reads.resume();
        } else if self.isolation() != Isolation::ReadUncommitted {
            self.reads.open();
        }
    }

    fn close_snapshot(&mut self) {
        if self.keeps_snapshot() {
            self.reads.pause();
        } else {
            self.reads.close();
        }
    }

    fn snapshot_reader(&self) -> Reader<'_> {
        match self.reads.view() {
            Some(view) if self.isolation() != Isolation::ReadUncommitted => Reader::snapshot(view),
            _ => Reader::newest(),
        }
    }

    /// Ends the transaction, begun or of one statement.
    fn end(&mut self, core: &WriteCore, outcome: Outcome) -> Result<()> {
        self.begun = None;
        self.reads.close();
        self.current.close();
        match self.active.take() {
            None => Ok(()),
            Some(active) if outcome == Outcome::Commit => active.commit(core),
            Some(active) => {
                let result = active.roll_back(core);
                // What a full disk keeps from being taken back now is not the session's any more.
                self.reads.set_own(Stamp(0));
                self.current.set_own(Stamp(0));
                result
            }
        }
    }
}
