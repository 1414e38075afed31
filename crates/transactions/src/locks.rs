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
mod queue;
mod waiter;

use crate::DEFINITIONS;
use crate::error::LockError;
use base::hash::{HashMap, spread};
use base::sync::{Arc, CachePadded, Mutex};
use ends::Ends;
use graph::Graph;

base::latch_class!(pub RowLocksLatch, "row locks");
pub use graph::{Blocker, PendingLock, WaitTotals, Wanted};
pub use queue::LockMode;
use queue::{Acquired, Queue};
use std::time::{Duration, Instant};
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

impl Held {
    /// How many locks this adds to those that a transaction holds, as others count them.
    pub fn adds(&self) -> Holds {
        match (self.before, self.table) {
            (Some(_), _) => Holds::default(),
            (None, DEFINITIONS) => Holds { rows: 0, tables: 1 },
            (None, _) => Holds { rows: 1, tables: 0 },
        }
    }
}

type Partition = HashMap<u64, HashMap<Arc<[u8]>, Queue>>;

#[derive(Debug)]
pub struct Locks {
    partitions: Box<[CachePadded<Mutex<Partition, RowLocksLatch>>]>,
    ends: Ends,
    graph: Graph,
}

impl Locks {
    pub fn new() -> Locks {
        Locks {
            partitions: (0..PARTITIONS).map(|_| CachePadded::default()).collect(),
            ends: Ends::new(),
            graph: Graph::default(),
        }
    }

    fn partition(&self, table: u64, key: &[u8]) -> &Mutex<Partition, RowLocksLatch> {
        &self.partitions[spread(&(table, key)) as usize % self.partitions.len()]
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
        let keys = partition.entry(table).or_default();
        if !keys.contains_key(key) {
            keys.insert(Arc::from(key), Queue::default());
        }
        let (stored, queue) = keys
            .get_key_value(key)
            .map(|(stored, _)| stored.clone())
            .zip(keys.get_mut(key))
            .expect("just made");
        let before = match queue.acquire(owner, mode) {
            Acquired::Already => return Ok(None),
            Acquired::Now { before } => return Ok(Some(Held { table, key: stored, before })),
            Acquired::NotYet { before } => before,
        };
        if patience == Patience::None {
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
        let queue = partition.get(&table).and_then(|keys| keys.get(key));
        queue.is_some_and(|queue| queue.is_held_by_others(owner))
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
        let keys = self.partitions.iter().map(|p| p.lock().values().map(HashMap::len).sum::<usize>()).sum();
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

/// Runs `change` on the key's queue, if there is one, and forgets the queue if it is empty then.
fn with_queue(partition: &mut Partition, table: u64, key: &[u8], change: impl FnOnce(&mut Queue)) {
    let Some(keys) = partition.get_mut(&table) else { return };
    let Some(queue) = keys.get_mut(key) else { return };
    change(queue);
    if queue.is_empty() {
        keys.remove(key);
        if keys.is_empty() {
            partition.remove(&table);
        }
    }
}

fn why(phase: Phase, woken: Woken) -> LockError {
    match (phase, woken) {
        (Phase::Victim, _) | (_, Woken::Victim | Woken::Granted) => LockError::Deadlock,
        (_, Woken::Interrupted) => LockError::Interrupted,
        (_, Woken::TimedOut) => LockError::LockWaitTimeout,
    }
}
