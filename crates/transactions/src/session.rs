//! A session as the transactions know it: its snapshot, and where it sleeps.

use crate::error::{IdsExhausted, LockError, SnapshotTooOld};
use crate::gate::Standing;
use crate::locks::{Patience, Waiter};
use crate::registry::{EntryRef, Hold, Snapshot};
use crate::transaction::Transaction;
use crate::transactions::Transactions;
use crate::versions::{Found, Spilled};
use base::Stamp;
use base::sync::Arc;
use std::io;

/// One for each session, and for each thread of the engine that reads by snapshots or locks rows. It has at
/// most one snapshot open and waits for one lock at a time.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Transactions>,
    entry: EntryRef,
    snapshot: Option<Snapshot>,
    /// The session's last write transaction: what it wrote is visible to itself.
    own: u64,
    waiter: Arc<Waiter>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Transactions>, hold: Hold) -> Session {
        let entry = shared.registry.register(hold);
        let waiter = Arc::new(Waiter::new(shared.gate.clone()));
        Session { shared, entry, snapshot: None, own: 0, waiter }
    }

    /// Opens a snapshot of what is committed now, and closes the one that may be open. Writes the session's
    /// own entry and nothing that another core writes, and takes no latch (transactions R3).
    #[inline]
    pub fn open(&mut self) -> View<'_> {
        let status = &self.shared.status;
        // The lowest unfinished id before the clock: all ids below it have ended by that clock.
        let snapshot = self.shared.registry.open(&self.entry, || (status.low(), status.clock()));
        self.snapshot = Some(snapshot);
        View { session: self, snapshot }
    }

    /// The open snapshot.
    #[inline]
    pub fn view(&self) -> Option<View<'_>> {
        self.snapshot.map(|snapshot| View { session: self, snapshot })
    }

    /// Nothing is read by the open snapshot until [`Session::resume`]. If it is cancelled meanwhile, what it
    /// holds back is free at once (transactions R10).
    pub fn pause(&self) {
        if self.snapshot.is_some() {
            self.entry.pause();
        }
    }

    /// Something is about to be read by the open snapshot again, if there is one.
    ///
    /// # Errors
    /// [`SnapshotTooOld`]: it has been cancelled, and [`View::check`] says so from now on. Nothing may be
    /// read by it any more.
    pub fn resume(&self) -> Result<(), SnapshotTooOld> {
        match &self.snapshot {
            Some(snapshot) if !self.entry.resume(snapshot) => Err(SnapshotTooOld),
            _ => Ok(()),
        }
    }

    /// Closes the snapshot: what only it needed may be purged.
    pub fn close(&mut self) {
        if self.snapshot.take().is_some() {
            self.entry.close();
        }
    }

    /// Begins a write transaction. An open snapshot stays open, and sees what the transaction will write. A
    /// session has one transaction at a time.
    pub fn begin(&mut self) -> Result<Transaction, IdsExhausted> {
        let id = self.shared.status.begin(&self.shared.registry)?;
        self.own = id;
        self.waiter.set_transaction(id);
        Ok(Transaction::new(self.shared.clone(), id, self.waiter.clone()))
    }

    /// From now on snapshots of this session see what the transaction with this stamp writes: it belongs to
    /// the same client.
    pub fn set_own(&mut self, stamp: Stamp) {
        self.own = stamp.0;
    }

    /// A statement begins: waits until no more than [`Transactions::set_concurrency`] allows are under way.
    /// The session holds no latch. Without a limit this is a look at a word that nobody writes.
    pub fn enter(&self, patience: Patience) -> Result<(), LockError> {
        self.shared.gate.enter(&self.waiter, patience)
    }

    /// The statement has ended.
    pub fn exit(&self) {
        self.shared.gate.exit(&self.waiter);
    }

    /// Lets others run while `wait` waits for something outside of the database, and then comes back.
    ///
    /// # Errors
    /// Those of the wait to come back in. `wait` has been run then, and the statement must end.
    pub fn outside<T>(&self, patience: Patience, wait: impl FnOnce() -> T) -> Result<T, LockError> {
        self.interrupter().outside(patience, wait)
    }

    /// A handle by which another thread can interrupt this session's waits.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.waiter.clone())
    }

    /// True if an interrupt has come since the last was cleared.
    pub fn is_interrupted(&self) -> bool {
        self.waiter.is_interrupted()
    }

    /// Forgets an interrupt: the next statement may wait again.
    pub fn clear_interrupt(&self) {
        self.waiter.clear_interrupt();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.registry.unregister(self.entry.clone());
    }
}

/// A handle by which another thread can interrupt a session and look at it. After an interrupt the session's
/// wait, or the next one, ends with [`crate::LockError::Interrupted`], until the session clears the
/// interrupt.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Waiter>);

/// A write transaction, as others see it. Its parts may be of different moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnderWay {
    pub id: Stamp,
    pub rows_changed: u64,
    /// Rows locked explicitly. Rows that it has changed are locked besides, by their stamps.
    pub rows_locked: u64,
    pub tables_locked: u64,
}

impl Interrupter {
    pub fn interrupt(&self) {
        self.0.interrupt();
    }

    /// True while the session waits for a lock.
    pub fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    /// How long the session has waited for rows, in microseconds.
    pub fn waited_micros(&self) -> u64 {
        self.0.waited_micros()
    }

    /// True while its statement waits for its turn.
    pub fn is_queued(&self) -> bool {
        self.0.visit.standing() == Standing::Queued
    }

    /// As [`Session::outside`], for the session's own thread while a statement has borrowed the session.
    ///
    /// # Errors
    /// As there.
    pub fn outside<T>(&self, patience: Patience, wait: impl FnOnce() -> T) -> Result<T, LockError> {
        let gate = self.0.gate();
        gate.leave(&self.0);
        let done = wait();
        gate.come_back(&self.0, patience)?;
        Ok(done)
    }

    /// The session's write transaction.
    pub fn transaction(&self) -> Option<UnderWay> {
        let id = self.0.transaction();
        let holds = self.0.holds();
        (id != 0).then(|| UnderWay {
            id: Stamp(id),
            rows_changed: self.0.rows_changed(),
            rows_locked: holds.rows,
            tables_locked: holds.tables,
        })
    }
}

/// A session's open snapshot.
#[derive(Clone, Copy, Debug)]
pub struct View<'s> {
    session: &'s Session,
    snapshot: Snapshot,
}

impl View<'_> {
    /// True if the snapshot sees what the transaction with this stamp wrote. For a stamp older than the
    /// oldest transaction that was active this is one comparison. Takes no latch and writes nothing. Right
    /// also for a cancelled snapshot.
    ///
    /// A stamp that no transaction has yet (read from a torn page) is not visible.
    #[inline(always)]
    pub fn sees(&self, stamp: Stamp) -> bool {
        stamp.0 < self.snapshot.all_before || self.looks_up(stamp.0)
    }

    /// True if the snapshot sees everything written by transactions up to this one.
    #[inline]
    pub fn sees_all_until(&self, stamp: Stamp) -> bool {
        stamp.0 < self.snapshot.all_before
    }

    fn looks_up(&self, id: u64) -> bool {
        id == self.session.own || self.session.shared.saw_commit(&self.snapshot, id)
    }

    /// What the snapshot sees, for [`Transactions::saw`](crate::Transactions::saw).
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// What the row was in this snapshot, which does not see the stamp that is on the page. If that may be in
    /// a file, it says so, and [`View::read_spilled`] goes on.
    ///
    /// # Errors
    /// [`SnapshotTooOld`].
    pub fn find_version(&self, table: u64, key: &[u8]) -> Result<Found, SnapshotTooOld> {
        let versions = &self.session.shared.versions;
        versions.find((table, key), self.number(), |id| self.sees(Stamp(id)), || self.check())
    }

    /// What the row was, from files: as [`View::find_version`], but never [`Found::Spilled`]. To be called
    /// without latches. Right also if the snapshot has been cancelled meanwhile.
    ///
    /// # Errors
    /// Those of the files, also if one does not give back what was written.
    pub fn read_spilled(&self, spilled: &Spilled) -> io::Result<Found> {
        spilled.read(|id| self.sees(Stamp(id)))
    }

    /// Fails if the snapshot has been cancelled. [`View::find_version`] checks this by itself.
    ///
    /// # Errors
    /// [`SnapshotTooOld`].
    #[inline]
    pub fn check(&self) -> Result<(), SnapshotTooOld> {
        if self.session.entry.is_cancelled(&self.snapshot) { Err(SnapshotTooOld) } else { Ok(()) }
    }

    /// The clock that the snapshot was taken at.
    pub fn number(&self) -> u64 {
        self.snapshot.number
    }
}
