//! Purge: removes what committed transactions have left behind once nobody sees it any more.
//!
//! A deleted row stays in its leaf, and the index entries of rows as they were stay in theirs, for the
//! snapshots that still see them. What a transaction leaves is queued when it commits. A thread looks at the
//! queue; a session that commits faster than the thread purges does some of the work itself.
//!
//! A table that is being redefined, which may take hours, holds nobody up: what is to be purged there is put
//! aside until its gate opens.

use super::core::WriteCore;
use super::log;
use crate::Result;
use crate::format::row::{chain_of, split_cell};
use crate::latch::Passage;
use crate::table::Table;
use crate::tree::{Chunk, Remainder};

base::latch_class!(pub PurgeQueueLatch, "purge queue");
#[cfg(not(feature = "shuttle"))]
use base::sync::Weak;
use base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use base::sync::{Arc, Condvar, Mutex, thread};
use base::{FileId, Lsn, Stamp, TableId};
use std::collections::{BTreeMap, VecDeque};
#[cfg(not(feature = "shuttle"))]
use std::time::Duration;
use transactions::Horizon;

/// How long the thread sleeps when snapshots are in its way, or nothing is to be done.
#[cfg(not(feature = "shuttle"))]
const PAUSE: Duration = Duration::from_millis(20);
#[cfg(not(feature = "shuttle"))]
const PAUSE_IDLE: Duration = Duration::from_millis(500);
/// How many items are purged between two looks at the horizon. A snapshot that closes meanwhile moves the
/// horizon on.
#[cfg(not(feature = "shuttle"))]
const BATCH: usize = 256;
/// Sessions whose commits make the queue longer than this purge a part of it.
const QUEUE_LONG: usize = 20_000;
/// How many items such a session purges at a commit: more than most commits leave.
const HELP: usize = 64;
/// For so many commits a session does not look whether the snapshot has gone that held the queue back: the
/// look asks every session's entry.
const HELD_BACK_COMMITS: u64 = 1_024;
/// Bytes that an item takes besides its key and its cell: itself, and the allocations' share.
const ITEM_OVERHEAD: u64 = 128;

/// What to do about a table that is being redefined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AtClosedGate {
    Wait,
    GoOn,
}

impl AtClosedGate {
    fn pass(self, table: &Table) -> Option<Passage<'_>> {
        match self {
            AtClosedGate::Wait => Some(table.gate.pass()),
            AtClosedGate::GoOn => table.gate.try_pass(),
        }
    }
}

/// A row that some transaction has changed, as it was before.
#[derive(Debug)]
pub(crate) struct Garbage {
    pub table: Arc<Table>,
    pub file: FileId,
    pub key: Box<[u8]>,
    pub old: Arc<[u8]>,
    /// The transaction that changed it.
    pub stamp: Stamp,
    /// The overflow pages of `old` go with it. After a crash the log says so, from here on at the earliest.
    pub chain: Option<Lsn>,
    /// It counts in [`Table::garbage`].
    pub is_counted: bool,
}

impl Garbage {
    fn bytes(&self) -> u64 {
        ITEM_OVERHEAD + (self.key.len() + self.old.len()) as u64
    }
}

/// What is to be purged, in about the order of the commits.
#[derive(Default, Debug)]
pub(crate) struct Purge {
    queue: Mutex<Queue, PurgeQueueLatch>,
    /// Held while a thread purges: one thread at a time. A session that commits does not wait for it.
    working: Mutex<()>,
    len: AtomicUsize,
    /// Bytes that the items take.
    bytes: AtomicU64,
    /// The first item was needed by a snapshot when it was looked at last, and sessions need not look again
    /// until the clock of transactions has come to this. 0: it was not.
    held_back_until: AtomicU64,
    sweeps: Mutex<VecDeque<Sweep>>,
    signal: Arc<Signal>,
}

#[derive(Default, Debug)]
struct Queue {
    waiting: VecDeque<Garbage>,
    /// Items of tables that are being redefined.
    aside: BTreeMap<TableId, Vec<Garbage>>,
    /// The items that are being purged need the log from here on.
    current: Option<Lsn>,
}

#[derive(Default, Debug)]
struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
    /// The thread sleeps and is to be woken.
    idle: AtomicBool,
}

#[derive(Default, Debug)]
struct SignalState {
    stop: bool,
    thread: Option<thread::JoinHandle<()>>,
}

impl Purge {
    /// Leaves work for later.
    pub(crate) fn add(&self, garbage: Vec<Garbage>) {
        if garbage.is_empty() {
            return;
        }
        // ORDER: numbers for reports and for the decision to help.
        self.len.fetch_add(garbage.len(), Ordering::Relaxed);
        self.bytes.fetch_add(garbage.iter().map(Garbage::bytes).sum(), Ordering::Relaxed);
        self.queue.lock().waiting.extend(garbage);
        // ORDER: if the flag is missed, the thread wakes when its pause runs out.
        if self.signal.idle.load(Ordering::Relaxed) && self.signal.idle.swap(false, Ordering::Relaxed) {
            drop(self.signal.state.lock());
            self.signal.changed.notify_one();
        }
    }

    /// How much waits.
    pub(crate) fn len(&self) -> usize {
        // ORDER: as in `add`.
        self.len.load(Ordering::Relaxed)
    }

    /// The next piece of work that the horizon allows.
    fn next(&self, core: &WriteCore, horizon: Horizon) -> Option<Garbage> {
        let mut queue = self.queue.lock();
        queue.current = None;
        let first = queue.waiting.front();
        let is_held_back = first.is_some_and(|first| !core.transactions.is_seen_by_all(first.stamp, horizon));
        let until = if is_held_back { core.transactions.clock() + HELD_BACK_COMMITS } else { 0 };
        // ORDER: a hint. A session that misses a change looks in vain, or leaves the work to the thread.
        self.held_back_until.store(until, Ordering::Relaxed);
        if is_held_back {
            return None;
        }
        let next = queue.waiting.pop_front()?;
        queue.current = next.chain;
        Some(next)
    }

    /// An item is done with.
    fn done(&self, bytes: u64) {
        // ORDER: as in `add`.
        self.len.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The item's table is being redefined.
    fn put_aside(&self, garbage: Garbage) {
        let mut queue = self.queue.lock();
        queue.current = None;
        queue.aside.entry(garbage.table.id()).or_default().push(garbage);
    }

    /// Queues again, in front, what was put aside of tables that can be passed now.
    fn take_back(&self, gates: AtClosedGate) {
        let tables: Vec<Arc<Table>> = {
            let queue = self.queue.lock();
            queue.aside.values().filter_map(|items| Some(items.first()?.table.clone())).collect()
        };
        for table in tables {
            if gates.pass(&table).is_some() {
                let mut queue = self.queue.lock();
                for garbage in queue.aside.remove(&table.id()).into_iter().flatten().rev() {
                    queue.waiting.push_front(garbage);
                }
            }
        }
    }

    /// Purges up to `limit` rows; how many it came to.
    fn run(&self, core: &WriteCore, limit: usize, gates: AtClosedGate) -> usize {
        let _working = self.working.lock();
        self.run_alone(core, limit, gates)
    }

    fn run_alone(&self, core: &WriteCore, limit: usize, gates: AtClosedGate) -> usize {
        // First the horizon, then the versions: what is purged below has no versions left that only older
        // snapshots had.
        let horizon = core.transactions.horizon();
        core.transactions.purge();
        self.take_back(gates);
        let mut done = 0;
        while done < limit
            && let Some(garbage) = self.next(core, horizon)
        {
            let table = garbage.table.clone();
            let Some(_passage) = gates.pass(&table) else {
                self.put_aside(garbage);
                continue;
            };
            done += 1;
            self.done(garbage.bytes());
            let state = table.state();
            if state.dropped || state.space.file_id() != garbage.file {
                continue;
            }
            // A row that cannot be removed stays. It does no harm, and a later change of the row meets it.
            let purged = table.purge_row(state, &garbage);
            if purged.is_ok() && garbage.is_counted {
                table.add_garbage(-1);
            }
        }
        self.queue.lock().current = None;
        done
    }

    /// The first record in the log that says what is still to be purged.
    pub(crate) fn oldest_needed(&self) -> Option<Lsn> {
        let queue = self.queue.lock();
        let aside = queue.aside.values().flatten();
        queue.waiting.iter().chain(aside).filter_map(|garbage| garbage.chain).chain(queue.current).min()
    }

    /// Logs again what is still to be purged and has its record at or below `below`.
    pub(crate) fn log_again(&self, core: &WriteCore, below: Lsn) -> Result<()> {
        let mut queue = self.queue.lock();
        let Queue { waiting, aside, .. } = &mut *queue;
        let position = core.journal.position();
        let all = waiting.iter_mut().chain(aside.values_mut().flatten());
        for garbage in all.filter(|garbage| garbage.chain.is_some_and(|from| from <= below)) {
            if let Some(chain) = chain_of(&garbage.old) {
                log::chain(core, garbage.stamp, garbage.file, chain)?;
            }
            garbage.chain = Some(position);
        }
        Ok(())
    }

    /// Has a whole table looked through, for what a crash has left: what nobody sees and nobody has a list
    /// of. It counts once in [`Table::garbage`] until that is done.
    pub(crate) fn sweep(&self, table: Arc<Table>) {
        self.sweeps.lock().push_back(Sweep::new(table));
    }

    /// Does a part of a sweep; false if there is nothing to sweep, or no table that can be passed.
    fn sweep_on(&self, core: &WriteCore, gates: AtClosedGate) -> bool {
        let _working = self.working.lock();
        let turns = self.sweeps.lock().len();
        for _ in 0..turns {
            let Some(mut sweep) = self.sweeps.lock().pop_front() else { return false };
            let table = sweep.table.clone();
            let Some(_passage) = gates.pass(&table) else {
                self.sweeps.lock().push_back(sweep);
                continue;
            };
            let horizon = core.transactions.horizon();
            // A sweep that meets a page it cannot read ends. The next start begins it again.
            if let Ok(false) = sweep.go_on(core, horizon) {
                self.sweeps.lock().push_front(sweep);
            }
            return true;
        }
        false
    }

    /// Called after a commit: purges a part of the queue if the thread cannot keep up. Waits for nobody: if
    /// another thread is at it, or snapshots are in the way, there is nothing to help with.
    pub(crate) fn help(&self, core: &WriteCore) {
        // ORDER: see `next`.
        if self.len() > QUEUE_LONG
            && core.transactions.clock() >= self.held_back_until.load(Ordering::Relaxed)
            && let Some(_working) = self.working.try_lock()
        {
            self.run_alone(core, HELP, AtClosedGate::GoOn);
        }
    }

    /// Purges everything that nobody sees. Waits for redefinitions.
    pub(crate) fn drain(&self, core: &WriteCore) {
        let gates = AtClosedGate::Wait;
        while self.run(core, usize::MAX, gates) > 0 || self.sweep_on(core, gates) {}
    }

    /// Forgets everything: the next start will meet it.
    pub(crate) fn clear(&self) {
        *self.queue.lock() = Queue::default();
        // ORDER: as in `add`.
        self.len.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.sweeps.lock().clear();
    }

    /// Starts the thread. Models have none.
    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn start(&self, core: &Arc<WriteCore>) {
        let (signal, weak) = (self.signal.clone(), Arc::downgrade(core));
        let spawned = thread::Builder::new().name("purge".to_owned()).spawn(move || work(&weak, &signal));
        // Without the thread sessions do the work, later.
        self.signal.state.lock().thread = spawned.ok();
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(&self) {
        let thread = {
            let mut state = self.signal.state.lock();
            state.stop = true;
            state.thread.take()
        };
        self.signal.changed.notify_one();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // A panic of the thread has been reported by the panic hook; there is nothing to add.
            let _ = thread.join();
        }
    }
}

#[cfg(not(feature = "shuttle"))]
fn work(core: &Weak<WriteCore>, signal: &Signal) {
    loop {
        let Some(core) = core.upgrade() else { return };
        let done = core.purge.run(&core, BATCH, AtClosedGate::GoOn);
        let waits = core.purge.len();
        let sweeps = core.purge.sweep_on(&core, AtClosedGate::GoOn);
        drop(core);
        if done > 0 && waits > 0 || sweeps {
            if signal.state.lock().stop {
                return;
            }
            continue;
        }
        let pause = if waits > 0 { PAUSE } else { PAUSE_IDLE };
        let state = signal.state.lock();
        if state.stop {
            return;
        }
        // ORDER: see `Purge::add`.
        signal.idle.store(waits == 0, Ordering::Relaxed);
        let (state, _) = signal.changed.wait_timeout(state, pause);
        if state.stop {
            return;
        }
    }
}

/// Entries that a sweep looks at before it lets others go on.
const SWEEP_ENTRIES: usize = 1_024;

/// A walk through a table's indexes for what nobody sees: first deleted rows, then entries without a row.
#[derive(Debug)]
struct Sweep {
    table: Arc<Table>,
    file: FileId,
    index: usize,
    rest: Remainder,
    rows: u64,
}

impl Sweep {
    fn new(table: Arc<Table>) -> Sweep {
        let file = table.state().space.file_id();
        Sweep { table, file, index: 0, rest: Remainder::new(Vec::new(), None), rows: 0 }
    }

    /// Looks at some entries, once the table's gate is passed; true if there is nothing left.
    fn go_on(&mut self, core: &WriteCore, horizon: Horizon) -> Result<bool> {
        let state = self.table.state();
        if state.dropped || state.space.file_id() != self.file {
            return Ok(true);
        }
        let Some(index) = state.indexes.get(self.index) else {
            self.table.add_garbage(-1);
            return Ok(true);
        };
        let mut chunk = Chunk::default();
        index.tree.read_forward(&mut self.rest, &mut chunk, SWEEP_ENTRIES)?;
        for entry in 0..chunk.len() {
            let (key, cell) = chunk.entry(entry);
            if self.index > 0 {
                self.table.purge_entry(state, self.index, key)?;
                continue;
            }
            match split_cell(cell) {
                Some((header, _)) if header.is_deleted() => {
                    if core.transactions.is_seen_by_all(header.stamp(), horizon) {
                        let (table, file, stamp) = (self.table.clone(), self.file, header.stamp());
                        let (key, old) = (key.into(), cell.into());
                        let garbage =
                            Garbage { table, file, key, old, stamp, chain: None, is_counted: false };
                        self.table.purge_row(state, &garbage)?;
                    }
                }
                _ => self.rows += 1,
            }
        }
        if self.rest.done {
            if self.index == 0 {
                self.table.set_rows(self.rows);
            }
            self.index += 1;
            self.rest = Remainder::new(Vec::new(), None);
        }
        Ok(false)
    }
}
