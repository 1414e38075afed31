//! Row locks and the end of transactions: which transaction waits for which.
//!
//! Explicit locks are in a table split into partitions by key. A request that cannot be met joins the key's
//! queue. A transaction that gives a lock back hands it to the first in the queue before it lets go of the
//! partition's latch, so that nobody overtakes (transactions R8). Waiting for a transaction to end goes by
//! the same waiters and the same graph.
//!
//! Latches: a partition (of locks or of ends), then the graph, then a waiter's mutex.

mod ends;
mod graph;
mod held;
mod queue;
mod table;
mod waiter;

use crate::DEFINITIONS;
use crate::error::LockError;
use base::hash::{HashMap, spread};
use base::sync::atomic::{AtomicU64, Ordering};
use base::sync::{Arc, CachePadded, Mutex};
use ends::Ends;
use graph::Graph;

base::latch_class!(pub RowLocksLatch, "row locks");
pub use graph::{Blocker, PendingLock, WaitTotals, Wanted};
pub use held::HeldLocks;
pub use queue::LockMode;
use queue::{Acquired, Queue};
use std::time::{Duration, Instant};
use table::TableLocks;
use waiter::Phase;
pub use waiter::{Holds, Waiter, Woken};

/// Partitions of the lock table: many more than threads that lock at the same moment; 128 bytes each.
#[cfg(not(feature = "shuttle"))]
pub const PARTITIONS: usize = 64;
#[cfg(feature = "shuttle")]
pub const PARTITIONS: usize = 2;

/// How long a request may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Not at all: NOWAIT and SKIP LOCKED.
    None,
    /// So long, from the moment it begins to wait. Under the model checker there is no time and no limit.
    Limit(Duration),
    Endless,
}

impl Patience {
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Patience::Limit(limit) => Instant::now().checked_add(limit),
            Patience::None | Patience::Endless => None,
        }
    }
}

/// A lock that a transaction holds.
#[derive(Debug)]
pub struct Held {
    table: u64,
    key: Arc<[u8]>,
    /// What it held before.
    before: Option<LockMode>,
}

type Partition = HashMap<u64, TableLocks>;

/// Locks are refused that would take more than this many times as much as they may.
const FULL_FACTOR: u64 = 4;

#[derive(Debug)]
pub struct Locks {
    partitions: Box<[CachePadded<Mutex<Partition, RowLocksLatch>>]>,
    ends: Ends,
    graph: Graph,
    /// About what explicit locks take, as far as transactions have told.
    bytes: AtomicU64,
    /// Beyond this, transactions with very many have wide ones.
    limit: AtomicU64,
}

impl Locks {
    /// `limit`: bytes that explicit locks may take.
    pub fn new(limit: u64) -> Locks {
        Locks {
            bytes: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            partitions: (0..PARTITIONS).map(|_| CachePadded::default()).collect(),
            ends: Ends::new(),
            graph: Graph::default(),
        }
    }

    fn partition_of(&self, table: u64, key: &[u8]) -> usize {
        spread(&(table, key)) as usize % self.partitions.len()
    }

    fn partition(&self, table: u64, key: &[u8]) -> &Mutex<Partition, RowLocksLatch> {
        &self.partitions[self.partition_of(table, key)]
    }

    /// Bytes that explicit locks may take; see [`crate::Config::lock_limit_bytes`].
    pub fn limit(&self) -> u64 {
        // ORDER: a number that stands alone.
        self.limit.load(Ordering::Relaxed)
    }

    pub fn set_limit(&self, bytes: u64) {
        // ORDER: as in `limit`.
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// About what explicit locks take.
    pub fn bytes(&self) -> u64 {
        // ORDER: a sum.
        self.bytes.load(Ordering::Relaxed)
    }

    /// A transaction has locks of so many bytes, of which so many were counted before.
    fn count_bytes(&self, bytes: u64, before: u64) {
        // ORDER: a sum.
        self.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.bytes() > self.limit().saturating_mul(FULL_FACTOR)
    }

    /// Replaces locks on keys of a table in one partition by a wide one. Gives those that stay, and whether
    /// the wide one is to be given back with [`Locks::release_wide`].
    fn widen(&self, owner: u64, table: u64, partition: usize, held: Vec<Held>) -> (Vec<Held>, bool) {
        let mut partition = self.partitions[partition].lock();
        match partition.get_mut(&table) {
            Some(locks) => locks.widen(owner, held),
            None => (held, false),
        }
    }

    fn release_wide(&self, owner: u64, table: u64, partition: usize) {
        let mut partition = self.partitions[partition].lock();
        if let Some(locks) = partition.get_mut(&table) {
            locks.release_wide(owner, |advance| self.graph.with(|graph| advance(graph)));
            if locks.is_empty() {
                partition.remove(&table);
            }
        }
    }

    /// Locks a key for `owner`. `None` if it had the lock already.
    pub fn lock(
        &self,
        owner: u64,
        waiter: &Arc<Waiter>,
        (table, key): (u64, &[u8]),
        mode: LockMode,
        patience: Patience,
    ) -> Result<Option<Held>, LockError> {
        let mut partition = self.partition(table, key).lock();
        let locks = partition.entry(table).or_default();
        if locks.covers(owner, mode) {
            return Ok(None);
        }
        let (stored, queue) = locks.queue(key);
        let before = match queue.acquire(owner, mode) {
            Acquired::Already => return Ok(None),
            Acquired::Now { before } => return Ok(Some(Held { table, key: stored, before })),
            Acquired::NotYet { before } => before,
        };
        if patience == Patience::None {
            locks.settle(key);
            return Err(LockError::WouldBlock);
        }
        waiter.begin();
        let place = queue.join(owner, mode, waiter.clone());
        self.graph.with(|graph| {
            graph.wait(owner, waiter.clone(), Wanted { table, key: stored.clone(), mode });
            queue.link(place, graph);
            graph.break_circles(owner);
        });
        drop(partition);

        let woken = waiter.sleep(patience.deadline());
        if woken != Woken::Granted {
            let mut partition = self.partition(table, key).lock();
            // The lock may have been granted since the sleep ended. Then it is held as if the sleep had ended
            // with it.
            let phase = self.graph.with(|graph| graph.give_up(owner, waiter));
            if phase != Phase::Granted {
                with_queue(&mut partition, table, key, |queue| {
                    self.graph.with(|graph| queue.leave(owner, graph));
                });
                return Err(why(phase, woken));
            }
        } else {
            waiter.finish();
        }
        Ok(Some(Held { table, key: stored, before }))
    }

    /// True if another transaction holds an explicit lock on the key.
    pub fn is_held_by_others(&self, owner: u64, table: u64, key: &[u8]) -> bool {
        let partition = self.partition(table, key).lock();
        partition.get(&table).is_some_and(|locks| locks.is_held_by_others(owner, key))
    }

    /// Gives a lock back: down to what was held before if `to_before`, altogether otherwise.
    pub fn unlock(&self, owner: u64, held: &Held, to_before: bool) {
        let mut partition = self.partition(held.table, &held.key).lock();
        with_queue(&mut partition, held.table, &held.key, |queue| {
            let to = held.before.filter(|_| to_before);
            queue.release(owner, to);
            if queue.has_waiters() {
                self.graph.with(|graph| queue.advance_after(owner, to, graph));
            }
        });
    }

    /// Waits until `blocker` has ended. Does not wait if `is_active` says that it has ended. `wanted` says
    /// what the wait is for.
    pub fn wait_for_end(
        &self,
        owner: u64,
        waiter: &Arc<Waiter>,
        blocker: u64,
        wanted: (u64, &[u8], LockMode),
        is_active: impl Fn() -> bool,
        patience: Patience,
    ) -> Result<(), LockError> {
        // Asked under the latch that the blocker takes after it has ended. So either this thread sees that
        // the blocker has ended, or the blocker sees the waiter.
        let mut ends = self.ends.partition(blocker).lock();
        if !is_active() {
            return Ok(());
        }
        if patience == Patience::None {
            return Err(LockError::WouldBlock);
        }
        waiter.begin();
        ends.entry(blocker).or_default().push((owner, waiter.clone()));
        self.graph.with(|graph| {
            let (table, key, mode) = wanted;
            graph.wait(owner, waiter.clone(), Wanted { table, key: Arc::from(key), mode });
            graph.set_edges(owner, || vec![Blocker { transaction: blocker, mode: LockMode::Exclusive }]);
            graph.break_circles(owner);
        });
        drop(ends);

        let woken = waiter.sleep(patience.deadline());
        if woken == Woken::Granted {
            waiter.finish();
            return Ok(());
        }
        let mut ends = self.ends.partition(blocker).lock();
        let phase = self.graph.with(|graph| graph.give_up(owner, waiter));
        if phase == Phase::Granted {
            return Ok(());
        }
        ends::leave(&mut ends, blocker, owner);
        Err(why(phase, woken))
    }

    /// Wakes all threads that wait for this transaction's end. Its status says already that it has ended.
    pub fn ended(&self, id: u64) {
        let mut ends = self.ends.partition(id).lock();
        if let Some(waiters) = ends.remove(&id) {
            self.graph.with(|graph| {
                for (owner, waiter) in waiters {
                    graph.forget(owner);
                    // A victim leaves by itself, with its own error.
                    let _granted = waiter.grant();
                }
            });
        }
    }

    /// The cost of all waits so far.
    pub fn wait_totals(&self) -> WaitTotals {
        self.graph.with(|graph| graph.totals())
    }

    /// All transactions that wait.
    pub fn waits(&self) -> Vec<PendingLock> {
        self.graph.with(|graph| graph.waits())
    }

    /// Keys with a holder or a waiter, transactions waited for, transactions that wait.
    pub fn usage(&self) -> LockUsage {
        let keys =
            self.partitions.iter().map(|p| p.lock().values().map(TableLocks::len).sum::<usize>()).sum();
        LockUsage { keys, awaited: self.ends.len(), waiting: self.graph.with(|graph| graph.len()) }
    }
}

/// The contents of the lock table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockUsage {
    /// Keys that are locked or waited for.
    pub keys: usize,
    /// Transactions whose end is waited for.
    pub awaited: usize,
    /// Transactions that wait.
    pub waiting: usize,
}

/// Runs `change` on the key's queue, if there is one, and forgets what is empty then.
fn with_queue(partition: &mut Partition, table: u64, key: &[u8], change: impl FnOnce(&mut Queue)) {
    let Some(locks) = partition.get_mut(&table) else { return };
    locks.with_queue(key, change);
    if locks.is_empty() {
        partition.remove(&table);
    }
}

fn why(phase: Phase, woken: Woken) -> LockError {
    match (phase, woken) {
        (Phase::Victim, _) | (_, Woken::Victim | Woken::Granted) => LockError::Deadlock,
        (_, Woken::Interrupted) => LockError::Interrupted,
        (_, Woken::TimedOut) => LockError::LockWaitTimeout,
    }
}
