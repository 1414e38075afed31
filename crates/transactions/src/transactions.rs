//! The transactions of one database.

use crate::config::Config;
use crate::gate::{Gate, GateCounts};
use crate::interim::Interim;
use crate::locks::{LockUsage, Locks, PendingLock, WaitTotals, Waiter};
use crate::registry::{Hold, Live, Registry, Snapshot};
use crate::session::Session;
use crate::status::{Status, StatusTable, StatusUsage};
use crate::transaction::Transaction;
use crate::versions::{Enforcer, Runs, SpilledUsage, VersionStore};
use base::Stamp;
use base::sync::Arc;
use std::io;

/// The limit of versions is checked after so many commits, or after a transaction that left so many bytes of
/// versions. Not more often, because the sum reads every shard.
const LIMIT_EVERY_COMMITS: u64 = if cfg!(feature = "shuttle") { 1 } else { 64 };
const LIMIT_EVERY_BYTES: u64 = 64 << 10;

/// The transactions of one database.
#[derive(Debug)]
pub struct Transactions {
    pub(crate) status: StatusTable,
    pub(crate) registry: Registry,
    pub(crate) locks: Locks,
    pub(crate) gate: Arc<Gate>,
    pub(crate) versions: VersionStore,
    pub(crate) interim: Interim,
    enforcer: Enforcer,
}

/// A number that every snapshot has reached, open or to come (the horizon).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Horizon(u64);

/// What the transactions keep in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    pub status: StatusUsage,
    pub locks: LockUsage,
    /// See [`Transactions::version_bytes`].
    pub version_bytes: u64,
    /// What files have of old versions.
    pub spilled: SpilledUsage,
}

impl Transactions {
    pub fn new(config: &Config) -> Arc<Transactions> {
        Arc::new(Transactions {
            status: StatusTable::with_unfinished(config.next_id.0, config.chunk_ids, &config.unfinished),
            registry: Registry::new(),
            locks: Locks::new(config.lock_limit_bytes),
            gate: Arc::default(),
            versions: VersionStore::new(
                config.version_limit_bytes,
                Runs::new(config.version_files.clone(), config.version_file_limit_bytes),
            ),
            interim: Interim::new(),
            enforcer: Enforcer::default(),
        })
    }

    pub fn session(self: &Arc<Transactions>) -> Session {
        Session::new(self.clone(), Hold::UntilCancelled)
    }

    /// A transaction of [`crate::Config::unfinished`], to be taken back: no session's.
    pub fn resume(self: &Arc<Transactions>, stamp: Stamp) -> Transaction {
        debug_assert!(self.is_active(stamp), "it has not ended");
        let waiter = Arc::new(Waiter::new(self.gate.clone()));
        waiter.set_transaction(stamp.0);
        Transaction::new(self.clone(), stamp.0, waiter)
    }

    /// A session whose snapshots are never cancelled: for the views of statements that change rows, which
    /// last as long as the statement.
    pub fn session_of_statements(self: &Arc<Transactions>) -> Session {
        Session::new(self.clone(), Hold::UntilClosed)
    }

    /// True if a snapshot sees what the transaction with this stamp wrote. The transaction is another one
    /// than the snapshot's own.
    #[inline]
    pub fn saw(&self, snapshot: &Snapshot, stamp: Stamp) -> bool {
        stamp.0 < snapshot.all_before || self.saw_commit(snapshot, stamp.0)
    }

    pub(crate) fn saw_commit(&self, snapshot: &Snapshot, id: u64) -> bool {
        match self.status.status(id) {
            Status::Committed(number) => number <= snapshot.number,
            Status::Unborn | Status::Active | Status::RolledBack => false,
        }
    }

    /// True while the transaction with this stamp has not ended: rows that carry it are locked. Once this is
    /// false, every new snapshot sees what the transaction committed. Takes no latch.
    pub fn is_active(&self, stamp: Stamp) -> bool {
        match self.status.status(stamp.0) {
            Status::Active => true,
            // A status is stored before the clock. In between a new snapshot would not see it yet, so the
            // transaction still counts as active (transactions R2).
            Status::Committed(number) => number > self.status.clock(),
            Status::RolledBack | Status::Unborn => false,
        }
    }

    /// The number that all snapshots have reached, including cancelled ones that are still read by. What is
    /// removed from pages goes by this (transactions R10).
    pub fn horizon(&self) -> Horizon {
        Horizon(self.live().horizon())
    }

    /// True if every snapshot, open or to come, sees what the transaction with this stamp wrote: a deleted
    /// row that carries it can be removed.
    pub fn is_seen_by_all(&self, stamp: Stamp, horizon: Horizon) -> bool {
        matches!(self.status.status(stamp.0), Status::Committed(number) if number <= horizon.0)
    }

    /// How many transactions have ended: the number that the next snapshot gets.
    pub fn clock(&self) -> u64 {
        self.status.clock()
    }

    /// The oldest transaction that has not ended, or the next to begin.
    pub fn oldest_active(&self) -> Stamp {
        Stamp(self.status.low())
    }

    /// The id that the next write transaction gets.
    pub fn next_id(&self) -> Stamp {
        Stamp(self.status.next())
    }

    /// Removes the versions and statuses that no snapshot needs. To be called now and then by a thread that
    /// holds no latch.
    pub fn purge(&self) {
        self.status.reclaim(&self.registry);
        self.versions.purge(&self.status, || self.live());
    }

    /// What a row was, in the versions that some snapshot may ask for, those in files after them, and what a
    /// transaction under way may make of it again. The caller keeps the row's writers away by the row's
    /// latch. May read files: to be called without page latches.
    ///
    /// # Errors
    /// Those of the files.
    pub fn versions_of(&self, table: u64, key: &[u8]) -> io::Result<Vec<Arc<[u8]>>> {
        let mut versions = self.versions.of((table, key));
        let interim = self.interim.of((table, key));
        if versions.is_empty() && !self.versions.runs().is_any() {
            return Ok(interim);
        }
        let horizon = self.horizon();
        versions.extend(self.versions.spilled_of((table, key), horizon.0)?);
        Ok(self.needed_rows(versions, horizon, interim))
    }

    /// True if what this transaction has changed is, as it was, in files: then memory does not say what the
    /// transaction may take back.
    pub fn has_spilled(&self, stamp: Stamp) -> bool {
        self.versions.runs().has_undecided(stamp.0)
    }

    /// The same of those in memory. Reads no file.
    pub fn versions_in_memory_of(&self, table: u64, key: &[u8]) -> Vec<Arc<[u8]>> {
        let versions = self.versions.of((table, key));
        let interim = self.interim.of((table, key));
        if versions.is_empty() {
            return interim;
        }
        self.needed_rows(versions, self.horizon(), interim)
    }

    fn needed_rows(
        &self,
        versions: Vec<(u64, Arc<[u8]>)>,
        horizon: Horizon,
        interim: Vec<Arc<[u8]>>,
    ) -> Vec<Arc<[u8]>> {
        let is_needed = |superseded_by: u64| !self.is_seen_by_all(Stamp(superseded_by), horizon);
        let needed = versions.into_iter().filter(|(by, _)| is_needed(*by)).map(|(_, row)| row);
        needed.chain(interim).collect()
    }

    /// Makes few files of old versions of many, and leaves out what no snapshot needs. To be called now and
    /// then by a thread that has time and holds no latch. Does nothing while another thread is at it, and
    /// leaves everything as it was when `goes_on` says no.
    pub fn merge_version_files(&self, goes_on: impl Fn() -> bool) {
        self.versions.runs().merge(&self.status, || self.live(), goes_on);
    }

    /// Bytes of memory that old versions take: keys, cells, and an estimate of the memory around them; and of
    /// what finds those in files.
    pub fn version_bytes(&self) -> u64 {
        self.versions.bytes() + self.versions.runs().usage().memory_bytes
    }

    /// Sets how many bytes of memory old versions may take; see [`Config::version_limit_bytes`]. What is more
    /// goes at once. To be called without latches.
    pub fn set_version_limit(&self, bytes: u64) {
        self.versions.set_limit(bytes);
        self.enforce_limit();
    }

    /// Sets how many bytes the files of old versions may have; see [`Config::version_file_limit_bytes`].
    pub fn set_version_file_limit(&self, bytes: u64) {
        self.versions.runs().set_limit(bytes);
    }

    /// What [`Transactions::set_version_limit`] has set.
    pub fn version_limit(&self) -> u64 {
        self.versions.limit()
    }

    /// Sets how many bytes explicit locks may take; see [`Config::lock_limit_bytes`].
    pub fn set_lock_limit(&self, bytes: u64) {
        self.locks.set_limit(bytes);
    }

    /// Bytes that explicit locks take, to some 64 KiB a transaction.
    pub fn lock_bytes(&self) -> u64 {
        self.locks.bytes()
    }

    pub fn usage(&self) -> Usage {
        let spilled = self.versions.runs().usage();
        Usage {
            status: self.status.usage(),
            locks: self.locks.usage(),
            version_bytes: self.versions.bytes() + spilled.memory_bytes,
            spilled,
        }
    }

    /// How many statements may run at a time, of those that [`Session::enter`]; 0 = any number.
    pub fn set_concurrency(&self, limit: u32) {
        self.gate.set_limit(limit);
    }

    /// How often a statement that has left the gate may come back before statements that come for the first
    /// time.
    pub fn set_concurrency_tickets(&self, tickets: u32) {
        self.gate.set_tickets(tickets);
    }

    /// How many statements run and queue, by the limit of [`Transactions::set_concurrency`].
    pub fn gate_counts(&self) -> GateCounts {
        self.gate.counts()
    }

    /// The cost of all waits for rows so far.
    pub fn wait_totals(&self) -> WaitTotals {
        self.locks.wait_totals()
    }

    /// All transactions that wait for a lock, and for which transactions.
    pub fn lock_waits(&self) -> Vec<PendingLock> {
        self.locks.waits()
    }

    pub(crate) fn live(&self) -> Live {
        self.registry.live(|| self.status.clock())
    }

    /// Called now and then after a commit that left versions. If those that purge could remove take too much
    /// memory, it purges, and moves what snapshots need to a file.
    pub(crate) fn look_at_limit(&self, number: u64, left_bytes: u64) {
        let is_due = number.is_multiple_of(LIMIT_EVERY_COMMITS) || left_bytes >= LIMIT_EVERY_BYTES;
        if is_due {
            self.enforce_limit();
        }
    }

    fn enforce_limit(&self) {
        if !self.versions.is_over_limit() {
            return;
        }
        self.enforcer.run(|| {
            self.purge();
            if self.versions.is_over_limit() && !self.spill() {
                self.give_up_snapshots();
            }
        });
    }

    fn spill(&self) -> bool {
        self.versions.spill(&self.status, self.clock())
    }

    /// Nothing can be written to files: gives up the snapshots that versions are kept for, the oldest first,
    /// until that is enough, or files have room again.
    fn give_up_snapshots(&self) {
        for newest in self.versions.snapshots_with_versions(&self.status, &self.live()) {
            if self.registry.cancel_until(newest) {
                self.purge();
                if !self.versions.is_over_limit() || self.spill() {
                    return;
                }
            }
        }
    }

    /// Gives up the oldest snapshot, for what is kept until all snapshots have reached a number takes too
    /// much memory. Does nothing if the oldest may not be given up, or has been and is still read by: another
    /// one would be given up for nothing.
    pub fn give_up_oldest_snapshot(&self) {
        let live = self.live();
        if let Some(oldest) = live.oldest_needed()
            && oldest == live.horizon()
            && oldest < self.clock()
        {
            self.registry.cancel_until(oldest);
        }
    }
}
