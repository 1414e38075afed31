//! A write transaction: its id, the locks it holds, the old versions it left.

use crate::error::LockError;
use crate::locks::{HeldLocks, Holds, LockMode, Patience, Waiter};
use crate::status::Outcome;
use crate::transactions::Transactions;
use crate::versions::{Left, Origin, Undecided, Version};
use base::Stamp;
use base::sync::Arc;

/// A write transaction, until [`Transaction::commit`] or [`Transaction::roll_back`].
///
/// If it is dropped before, as by a panic between its changes, it stays active forever (transactions R11):
/// nothing that it changed becomes visible, its rows stay locked, and the next start rolls it back.
#[must_use]
#[derive(Debug)]
pub struct Transaction {
    shared: Arc<Transactions>,
    id: u64,
    waiter: Arc<Waiter>,
    held: HeldLocks,
    /// The versions that it has left in memory, in the order of its changes.
    left: Vec<Left>,
    /// How many changes it has made that have not been taken back.
    changes: u64,
    /// Of the versions that went to files: which of them still hold. New ones belong to the last.
    undecided: Vec<Arc<Undecided>>,
    /// Those that hold belong to changes before this one.
    spilled_until: u64,
    /// The rows that have interim states, by table and key.
    interim: Vec<(u64, Box<[u8]>)>,
    /// Bytes of the versions it has left.
    left_bytes: u64,
    /// How many of them the version store knows to be of a transaction under way.
    counted_bytes: u64,
    /// It asks whether they are too much for memory when they are so many.
    asks_at: u64,
}

/// A transaction tells the version store about so many more bytes of versions at a time: seldom, because all
/// transactions write that sum.
const COUNT_BYTES: u64 = 64 << 10;

/// How many locks a transaction held at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LockMark(usize);

impl Transaction {
    pub(crate) fn new(shared: Arc<Transactions>, id: u64, waiter: Arc<Waiter>) -> Transaction {
        let asks_at = shared.versions.asks_after();
        Transaction {
            shared,
            id,
            waiter,
            held: HeldLocks::default(),
            left: Vec::new(),
            changes: 0,
            undecided: Vec::new(),
            spilled_until: 0,
            interim: Vec::new(),
            left_bytes: 0,
            counted_bytes: 0,
            asks_at,
        }
    }

    /// What the rows that it writes carry.
    pub fn id(&self) -> Stamp {
        Stamp(self.id)
    }

    /// Its session goes on without it, and may begin another one, before this one has been taken back.
    pub fn leave_session(&mut self) {
        let waiter = Arc::new(Waiter::new(self.shared.gate.clone()));
        waiter.set_transaction(self.id);
        waiter.set_rows_changed(self.waiter.rows_changed());
        waiter.set_holds(self.waiter.holds());
        self.waiter.set_transaction(0);
        self.waiter = waiter;
    }

    /// A change has been made. The versions left since the one before belong to it. Of transactions that wait
    /// in a circle the one that changed the fewest rows gives way.
    pub fn count_change(&mut self) {
        self.changes += 1;
        self.waiter.set_rows_changed(self.waiter.rows_changed() + 1);
    }

    /// So many changes are left: what came after them has been undone on the pages, or has never happened.
    /// Takes the versions back that belong to it (transactions R5, R16).
    pub fn take_back_versions(&mut self, changes: u64) {
        self.changes = changes;
        while let Some(left) = self.left.pop_if(|left| left.change >= changes) {
            // What is freed may exceed what was counted: purge may have left the row to this version alone.
            self.left_bytes = self.left_bytes.saturating_sub(self.shared.versions.take_back(&left.version));
        }
        if changes < self.spilled_until {
            self.spilled_until = changes;
            self.undecided.iter().for_each(|undecided| undecided.keep_until(changes));
        }
        if self.left_bytes + COUNT_BYTES <= self.counted_bytes {
            self.count_bytes(self.left_bytes);
        }
    }

    /// Locks a key until the transaction ends. The caller holds no latch. Having the lock already, or a
    /// stronger one, is fine.
    pub fn lock(
        &mut self,
        table: u64,
        key: &[u8],
        mode: LockMode,
        patience: Patience,
    ) -> Result<(), LockError> {
        let held = self.shared.locks.lock(self.id, &self.waiter, (table, key), mode, patience)?;
        if let Some(held) = held {
            let (now, adds) = (self.waiter.holds(), held.adds());
            self.waiter.set_holds(Holds { rows: now.rows + adds.rows, tables: now.tables + adds.tables });
            self.held.push(self.id, held, &self.shared.locks)?;
        }
        self.shared.gate.come_back(&self.waiter, patience)
    }

    /// True if another transaction holds an explicit lock on the key. To be asked under the exclusive latch
    /// of the row's page, just before the row gets this transaction's stamp: a transaction that takes an
    /// explicit lock later finds the stamp (transactions R7).
    pub fn is_locked_by_others(&self, table: u64, key: &[u8]) -> bool {
        self.shared.locks.is_held_by_others(self.id, table, key)
    }

    /// Waits until the transaction with this stamp has ended; returns at once if it has. The caller holds no
    /// latch, and reads the row again afterwards. `table`, `key` and `mode` tell others what it waits for.
    pub fn wait_for_end(
        &mut self,
        stamp: Stamp,
        table: u64,
        key: &[u8],
        mode: LockMode,
        patience: Patience,
    ) -> Result<(), LockError> {
        if stamp.0 == self.id {
            return Ok(());
        }
        let is_active = || self.shared.is_active(stamp);
        let wanted = (table, key, mode);
        self.shared.locks.wait_for_end(self.id, &self.waiter, stamp.0, wanted, is_active, patience)?;
        self.shared.gate.come_back(&self.waiter, patience)
    }

    /// How many locks it holds now.
    pub fn lock_mark(&self) -> LockMark {
        LockMark(self.held.len())
    }

    /// Gives back the explicit locks taken since the mark, because the change that they were taken for has
    /// not happened.
    pub fn give_back_locks(&mut self, mark: LockMark) {
        self.give_back_locks_between(mark, self.lock_mark());
    }

    /// Gives back the explicit locks taken between two marks. Marks behind the first are not to be used any
    /// more.
    pub fn give_back_locks_between(&mut self, from: LockMark, to: LockMark) {
        for held in self.held.take_between(from.0, to.0) {
            self.shared.locks.unlock(self.id, &held, true);
            let (now, adds) = (self.waiter.holds(), held.adds());
            self.waiter.set_holds(Holds { rows: now.rows - adds.rows, tables: now.tables - adds.tables });
        }
    }

    /// Stores what a row was (`None`: there was none) for snapshots that must not see this transaction's
    /// change. To be called before the page changes (transactions R5), with or without the page's latch.
    /// `written_by` is the stamp of the old row. Of several changes of a row only the first leaves a version:
    /// the caller knows the others by the row's stamp.
    pub fn add_version(&mut self, table: u64, key: &[u8], written_by: Stamp, old: Option<Arc<[u8]>>) {
        let origin = Origin::new(written_by, false);
        self.add(table, key, Version { superseded_by: self.id, origin, old });
    }

    /// The same of a row that `written_by` inserted where there was none, without leaving a version. Whoever
    /// does not see `written_by` must find that there was no row, and no version but this one says that.
    /// `None`: it has deleted the row again.
    pub fn add_first_version(&mut self, table: u64, key: &[u8], written_by: Stamp, old: Option<Arc<[u8]>>) {
        let origin = Origin::new(written_by, true);
        self.add(table, key, Version { superseded_by: self.id, origin, old });
    }

    /// Stores what a row was before the transaction with the stamp `superseded_by` changed it, this one or
    /// one that has committed, if there is no version of that. What it was is seen by everybody who does not
    /// see that change. To be called before the page changes, as [`Transaction::add_version`].
    pub fn add_version_before(&mut self, table: u64, key: &[u8], superseded_by: Stamp, old: Arc<[u8]>) {
        let origin = Origin::new(Stamp(0), false);
        self.add(table, key, Version { superseded_by: superseded_by.0, origin, old: Some(old) });
    }

    fn add(&mut self, table: u64, key: &[u8], version: Version) {
        let shared = &self.shared;
        let added = shared.versions.add((table, key), version, &shared.status, || shared.live());
        if let Some((version, bytes)) = added {
            self.left.push(Left { version, change: self.changes });
            self.left_bytes += bytes;
            if self.left_bytes >= self.counted_bytes + COUNT_BYTES {
                self.count_bytes(self.left_bytes);
            }
        }
    }

    /// Moves the versions that it has left to a file, if they are too much for memory. To be called now and
    /// then, without latches. If that fails they stay, and it is tried again when they have grown by a
    /// quarter.
    #[inline]
    pub fn spill_versions(&mut self) {
        if self.left_bytes >= self.asks_at {
            self.spill_if_too_much();
        }
    }

    #[cold]
    fn spill_if_too_much(&mut self) {
        let uncounted = self.left_bytes.saturating_sub(self.counted_bytes);
        let step = self.shared.versions.asks_after();
        self.asks_at = self.left_bytes + step;
        if !self.shared.versions.is_too_much(self.left_bytes, uncounted) {
            return;
        }
        let holds = |undecided: &&Arc<Undecided>| undecided.kept() == u64::MAX;
        if self.undecided.last().filter(holds).is_none() {
            self.undecided.push(Arc::new(Undecided::new(self.id)));
        }
        let Some(undecided) = self.undecided.last() else { return };
        match self.shared.versions.spill_undecided(&mut self.left, undecided, &self.shared.status) {
            Ok(freed) => {
                self.spilled_until = self.changes + 1;
                self.left_bytes = self.left_bytes.saturating_sub(freed);
                self.asks_at = self.left_bytes + step;
                self.count_bytes(self.left_bytes);
            }
            Err(_) => self.asks_at = self.left_bytes + (self.left_bytes / 4).max(step),
        }
    }

    /// Keeps what the transaction has made of a row, and is about to change again, for as long as it may go
    /// back to that. For [`Transactions::versions_of`]; readers do not see it. The caller holds the row's
    /// latch.
    pub fn add_interim(&mut self, table: u64, key: &[u8], state: Arc<[u8]>) {
        if self.shared.interim.add((table, key), state) {
            self.interim.push((table, key.into()));
        }
    }

    /// The row is what it was, if it was changed in this state.
    pub fn take_back_interim(&self, table: u64, key: &[u8], state: &[u8]) {
        self.shared.interim.take_back((table, key), state);
    }

    /// Of its versions' bytes so many are of a transaction under way.
    fn count_bytes(&mut self, bytes: u64) {
        self.shared.versions.count_active(bytes, self.counted_bytes);
        self.counted_bytes = bytes;
    }

    /// Makes what it wrote visible to snapshots from now on, gives back its locks, and wakes the transactions
    /// that wait for it. Gives its number.
    pub fn commit(mut self) -> u64 {
        let number = self.shared.status.finish(self.id, Outcome::Committed);
        let has_left = !self.left.is_empty();
        self.shared.versions.commit(self.left.drain(..).map(|left| left.version));
        if self.counted_bytes > 0 {
            self.count_bytes(0);
        }
        self.release();
        if has_left {
            self.shared.look_at_limit(number, self.left_bytes);
        }
        number
    }

    /// Ends it after all its changes have been undone on their pages: takes back its versions and its locks,
    /// and wakes the transactions that wait for it.
    pub fn roll_back(mut self) {
        self.take_back_versions(0);
        self.shared.versions.runs().drop_taken_back(&self.undecided);
        if self.counted_bytes > 0 {
            self.count_bytes(0);
        }
        self.shared.status.finish(self.id, Outcome::RolledBack);
        self.release();
    }

    fn release(&mut self) {
        for row in self.interim.drain(..) {
            self.shared.interim.remove(row);
        }
        self.held.release(self.id, &self.shared.locks);
        self.waiter.set_transaction(0);
        self.shared.locks.ended(self.id);
    }
}
