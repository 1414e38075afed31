//! Purge: removes what committed transactions have left behind once nobody sees it any more.
//!
//! A deleted row stays in its leaf, and the index entries of rows as they were stay in theirs, for the
//! snapshots that still see them. What a transaction leaves is queued when it commits. A thread looks at the
//! queue; a session that commits faster than the thread purges does some of the work itself.
//!
//! A table that is being redefined, which may take hours, holds nobody up: what is to be purged there is
//! put aside until its gate opens. A snapshot that is kept for long fills the queue: beyond a bound what
//! waits is in scratch files.

use super::backlog::{Backlog, Block, BlockTable, Garbage, Next};
use super::core::WriteCore;
use super::log;
use super::scratch::Scratch;
use crate::format::row::{chain_of, split_cell};
use crate::latch::Passage;
use crate::table::Table;
use crate::tree::{Chunk, Remainder};
use crate::{Error, Result};

base::latch_class!(pub PurgeQueueLatch, "purge queue");
#[cfg(not(feature = "shuttle"))]
use base::sync::Weak;
use base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use base::sync::{Arc, Condvar, Mutex, thread};
use base::{FileId, Lsn};
use std::collections::{BTreeSet, VecDeque};
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
/// How many items, and entries of a sweep, are purged at a shutdown. Each may read a page.
const SHUTDOWN_ITEMS: usize = if cfg!(test) { 2_048 } else { 65_536 };
/// Bytes of items that stay in memory. What is more goes to scratch files.
const MEMORY_BYTES: u64 = if cfg!(test) { 16 << 10 } else { 32 << 20 };
/// The log lists what is to be purged as long as that takes no more than its capacity divided by this.
const LISTED_DIVISOR: u64 = 32;

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

/// What is to be purged, in about the order of the commits.
#[derive(Debug)]
pub(crate) struct Purge {
    queue: Mutex<Backlog, PurgeQueueLatch>,
    /// Where what takes too much memory goes.
    scratch: Scratch,
    /// Held while a thread purges: one thread at a time. A session that commits does not wait for it.
    working: Mutex<()>,
    len: AtomicUsize,
    /// Bytes that the items in memory take.
    bytes: AtomicU64,
    /// The first item was needed by a snapshot when it was looked at last, and sessions need not look again
    /// until the clock of transactions has come to this. 0: it was not.
    held_back_until: AtomicU64,
    /// Files could not be written, and sessions do not try again until the clock has come to this.
    full_until: AtomicU64,
    sweeps: Mutex<VecDeque<Sweep>>,
    /// Tables whose headers do not say yet that the log does not list all their garbage. Taken after `queue`
    /// and `failed`, before page latches.
    unsaved: Mutex<Vec<Arc<Table>>>,
    /// The files of tables that are swept because something could not be purged, or whose sweep has failed.
    /// Taken before `sweeps`.
    failed: Mutex<BTreeSet<FileId>>,
    signal: Arc<Signal>,
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
    /// `scratch`: where what takes too much memory goes.
    pub(crate) fn new(scratch: Scratch) -> Purge {
        Purge {
            queue: Mutex::default(),
            scratch,
            working: Mutex::default(),
            len: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            held_back_until: AtomicU64::new(0),
            full_until: AtomicU64::new(0),
            sweeps: Mutex::default(),
            unsaved: Mutex::default(),
            failed: Mutex::default(),
            signal: Arc::default(),
        }
    }

    /// Leaves work for later: what is in files, and what came after that.
    pub(crate) fn add(&self, blocks: Vec<Block>, garbage: Vec<Garbage>) {
        let items = garbage.len() + blocks.iter().map(|block| block.items).sum::<usize>();
        if items == 0 {
            return;
        }
        // ORDER: numbers for reports and for the decision to help.
        self.len.fetch_add(items, Ordering::Relaxed);
        self.bytes.fetch_add(garbage.iter().map(Garbage::bytes).sum(), Ordering::Relaxed);
        self.queue.lock().add(blocks, garbage);
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

    /// Bytes of memory that what waits takes.
    pub(crate) fn bytes(&self) -> u64 {
        // ORDER: as in `add`.
        self.bytes.load(Ordering::Relaxed)
    }

    /// The next piece of work that the horizon allows.
    fn next(&self, core: &WriteCore, horizon: Horizon) -> Next {
        let mut queue = self.queue.lock();
        let first = queue.first();
        let is_held_back = first.is_some_and(|first| !core.transactions.is_seen_by_all(first, horizon));
        let until = if is_held_back { core.transactions.clock() + HELD_BACK_COMMITS } else { 0 };
        // ORDER: a hint. A session that misses a change looks in vain, or leaves the work to the thread.
        self.held_back_until.store(until, Ordering::Relaxed);
        if is_held_back {
            queue.done();
            return Next::Nothing;
        }
        queue.next()
    }

    /// An item is done with.
    fn done(&self, bytes: u64) {
        // ORDER: as in `add`.
        self.len.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Queues again, in front, what was put aside of tables that can be passed now.
    fn take_back(&self, gates: AtClosedGate) {
        let tables = self.queue.lock().tables_aside();
        for table in tables {
            if gates.pass(&table).is_some() {
                self.queue.lock().take_back(table.id());
            }
        }
    }

    /// Reads what was spilled. If it cannot be read, its tables are swept for it. Its chains stay in their
    /// files then, as lost pages that the next start finds.
    fn read_back(&self, block: &Block) {
        match block.read() {
            Ok(items) => {
                // ORDER: as in `add`.
                self.bytes.fetch_add(items.iter().map(Garbage::bytes).sum(), Ordering::Relaxed);
                self.queue.lock().put_in_front(items.into_iter());
            }
            Err(_) => {
                // ORDER: as in `add`.
                self.len.fetch_sub(block.items, Ordering::Relaxed);
                for BlockTable { table, file, counted } in &block.tables {
                    // A truncation waits for the table's gate, and counts from nought.
                    let _passage = table.gate.pass();
                    let state = table.state();
                    if state.dropped || state.space.file_id() != *file {
                        continue;
                    }
                    if block.has_chains() {
                        // The log does not name them for ever: the file stays in doubt.
                        let _stays = state.space.doubt();
                    }
                    // The sweep counts once, instead of all items.
                    self.sweep_unlisted(table);
                    table.remove_garbage(*counted);
                }
                self.queue.lock().done();
            }
        }
        if !self.queue.lock().has_spilled() {
            self.scratch.clear();
        }
    }

    /// Writes what takes too much memory to files. If that fails, the snapshot that holds the queue back is
    /// given up as soon as the queue takes more memory than versions may.
    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn spill(&self, core: &WriteCore, memory_bytes: u64) {
        let _working = self.working.lock();
        self.spill_alone(core, memory_bytes);
    }

    /// As [`Purge::spill`] at its usual bound, for a start.
    pub(crate) fn spill_some(&self, core: &WriteCore) {
        let _working = self.working.lock();
        self.spill_alone(core, MEMORY_BYTES);
    }

    fn spill_alone(&self, core: &WriteCore, memory_bytes: u64) {
        while self.bytes() > memory_bytes {
            let items = self.queue.lock().take_block();
            if items.is_empty() {
                return;
            }
            match Block::write(&items, &self.scratch) {
                Ok(block) => {
                    // ORDER: as in `add`.
                    self.bytes.fetch_sub(items.iter().map(Garbage::bytes).sum(), Ordering::Relaxed);
                    self.queue.lock().put_block(block);
                }
                Err(_) => {
                    self.queue.lock().put_back(items);
                    // ORDER: see `next`.
                    self.full_until.store(core.transactions.clock() + HELD_BACK_COMMITS, Ordering::Relaxed);
                    let is_held_back = self.held_back_until.load(Ordering::Relaxed) != 0;
                    if is_held_back && self.bytes() > core.transactions.version_limit() {
                        core.transactions.give_up_oldest_snapshot();
                    }
                    return;
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
        while done < limit {
            let garbage = match self.next(core, horizon) {
                Next::Item(garbage) => garbage,
                Next::Read(block) => {
                    self.read_back(&block);
                    continue;
                }
                Next::Nothing => break,
            };
            let table = garbage.table.clone();
            let Some(_passage) = gates.pass(&table) else {
                self.queue.lock().put_aside(garbage);
                continue;
            };
            done += 1;
            self.done(garbage.bytes());
            let state = table.state();
            if state.dropped || state.space.file_id() != garbage.file {
                continue;
            }
            // A row that cannot be removed stays. It does no harm, and a sweep meets it.
            if table.purge_row(state, &garbage).is_err() {
                self.sweep_failed(&table, garbage.file);
            }
            if garbage.is_counted {
                table.remove_garbage(1);
            }
        }
        self.queue.lock().done();
        done
    }

    /// The first record in the log that says what is still to be purged. A checkpoint that gives up what is
    /// below must have the headers say which tables the log does not list ([`Purge::save_unlisted`]) before
    /// it does, and after this.
    pub(crate) fn oldest_needed(&self) -> Option<Lsn> {
        let mut queue = self.queue.lock();
        // ORDER: the items in the queue are counted. So `Table::save_numbers` finds the count and leaves a
        // flag set, or what it cleared is found clear behind this.
        fence(Ordering::SeqCst);
        queue.oldest_needed()
    }

    /// Has the headers of tables say that the log does not list all their garbage.
    ///
    /// # Errors
    /// [`Error::Io`] and others of a change of pages: the next call tries again.
    pub(crate) fn save_unlisted(&self, core: &WriteCore) -> Result<()> {
        let mut unsaved = std::mem::take(&mut *self.unsaved.lock());
        while let Some(table) = unsaved.last() {
            let mut saved = table.save_numbers();
            while matches!(saved, Err(Error::Full)) && core.journal.give_reserve() {
                saved = table.save_numbers();
            }
            match saved {
                // Dropped meanwhile; or its header is damaged, and a start does not open it.
                Ok(()) | Err(Error::NoSuchTable | Error::Corrupt { .. }) => drop(unsaved.pop()),
                Err(error) => {
                    self.unsaved.lock().append(&mut unsaved);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Something counts as garbage of the table that the log does not list, or will not.
    fn leave_unlisted(&self, table: &Arc<Table>) {
        table.set_unlisted();
        self.unsaved.lock().push(table.clone());
    }

    /// Logs again what is still to be purged and has its record at or below `below`, if what the log has for
    /// it is much more than that. If it is too much for the log, a start is to sweep the tables, and the log
    /// need not list them.
    pub(crate) fn log_again(&self, core: &WriteCore, below: Lsn) -> Result<()> {
        {
            let mut queue = self.queue.lock();
            // ORDER: as in `oldest_needed`.
            fence(Ordering::SeqCst);
            if queue.log_bytes() > core.journal.capacity() / LISTED_DIVISOR {
                queue.listed(below).iter().for_each(|table| self.leave_unlisted(table));
            }
            let Some(oldest) = queue.oldest_needed() else { return Ok(()) };
            if core.journal.position().0.saturating_sub(oldest.0) < queue.log_bytes() {
                return Ok(());
            }
        }
        self.log_blocks_again(core, below)?;
        let mut queue = self.queue.lock();
        let position = core.journal.position();
        for garbage in queue.logged(below) {
            log_item_again(core, garbage)?;
            garbage.logged = position;
        }
        Ok(())
    }

    /// The same of what is in files. A thread that purges must not free a chain between the look at a block
    /// and its records: so nothing is done while one is at it. The next checkpoint asks again.
    fn log_blocks_again(&self, core: &WriteCore, below: Lsn) -> Result<()> {
        let Some(_working) = self.working.try_lock() else { return Ok(()) };
        let blocks = self.queue.lock().blocks_logged(below);
        for block in blocks {
            let position = core.journal.position();
            // One that cannot be read is met again by the thread that purges.
            let Ok(items) = block.read() else { continue };
            for garbage in items {
                core.journal.prepare_if_due()?;
                log_item_again(core, &garbage)?;
            }
            self.queue.lock().logged_again(&block, position);
        }
        Ok(())
    }

    /// Has a whole table looked through, for what a crash has left: what nobody sees and nobody has a list
    /// of. It counts once in [`Table::garbage`] until that is done.
    pub(crate) fn sweep(&self, table: Arc<Table>) {
        self.sweeps.lock().push_back(Sweep::new(table, RowCount::Unknown));
    }

    /// The same for something that the log will not list any more. To be called before it leaves the queue.
    pub(crate) fn sweep_unlisted(&self, table: &Arc<Table>) {
        table.add_garbage(1);
        self.leave_unlisted(table);
        self.sweeps.lock().push_back(Sweep::new(table.clone(), RowCount::Known));
    }

    /// Whether tables wait to be swept.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn has_sweeps(&self) -> bool {
        !self.sweeps.lock().is_empty()
    }

    /// Something of a table could not be purged. The table is swept once for all of that, unless such a sweep
    /// has failed as well: then a page of it cannot be read, and the next start tries again.
    #[cold]
    fn sweep_failed(&self, table: &Arc<Table>, file: FileId) {
        let mut failed = self.failed.lock();
        if failed.insert(file) {
            self.sweep_unlisted(table);
        }
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
            match sweep.go_on(core, horizon) {
                Ok(false) => self.sweeps.lock().push_front(sweep),
                Ok(true) => drop(self.failed.lock().remove(&sweep.file)),
                // A sweep that meets a page it cannot read ends. The next start begins it again.
                Err(_) => drop(self.failed.lock().insert(sweep.file)),
            }
            return true;
        }
        false
    }

    /// Called after a commit: does a part of the work if the thread cannot keep up. Waits for nobody: if
    /// another thread is at it, or snapshots are in the way, there is nothing to help with.
    pub(crate) fn help(&self, core: &WriteCore) {
        let has_come = |until: &AtomicU64| core.transactions.clock() >= until.load(Ordering::Relaxed);
        // ORDER: see `next`.
        let is_large = self.bytes() > 2 * MEMORY_BYTES && has_come(&self.full_until);
        let is_long = self.len() > QUEUE_LONG && has_come(&self.held_back_until);
        if (is_large || is_long)
            && let Some(_working) = self.working.try_lock()
        {
            if is_long {
                self.run_alone(core, HELP, AtClosedGate::GoOn);
            }
            self.spill_alone(core, 2 * MEMORY_BYTES);
        }
    }

    /// Purges everything that nobody sees. Waits for redefinitions.
    pub(crate) fn drain(&self, core: &WriteCore) {
        let gates = AtClosedGate::Wait;
        while self.run(core, usize::MAX, gates) > 0 || self.sweep_on(core, gates) {}
    }

    /// Purges what nobody sees before a shutdown, but no more than takes a moment. The next start finds the
    /// rest in the log, or sweeps the tables.
    pub(crate) fn drain_some(&self, core: &WriteCore) {
        let gates = AtClosedGate::Wait;
        let mut left = SHUTDOWN_ITEMS;
        while left > 0 {
            let purged = self.run(core, left, gates);
            if purged == 0 && !self.sweep_on(core, gates) {
                return;
            }
            left = left.saturating_sub(purged.max(SWEEP_ENTRIES));
        }
    }

    /// Forgets everything: the next start will meet it.
    pub(crate) fn clear(&self) {
        self.queue.lock().forget();
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

fn log_item_again(core: &WriteCore, garbage: &Garbage) -> Result<()> {
    let Garbage { file, key, old, stamp, has_chain, .. } = garbage;
    if garbage.is_listed() {
        return log::garbage(core, *stamp, *file, *has_chain, key, old);
    }
    match chain_of(old) {
        Some(chain) if *has_chain => log::chain(core, *stamp, *file, chain),
        _ => Ok(()),
    }
}

#[cfg(not(feature = "shuttle"))]
fn work(core: &Weak<WriteCore>, signal: &Signal) {
    loop {
        let Some(core) = core.upgrade() else { return };
        let done = core.purge.run(&core, BATCH, AtClosedGate::GoOn);
        core.purge.spill(&core, MEMORY_BYTES);
        let waits = core.purge.len();
        let sweeps = core.purge.sweep_on(&core, AtClosedGate::GoOn);
        core.transactions.merge_version_files(|| !signal.state.lock().stop);
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
    count: RowCount,
    rows: u64,
}

/// Whether a sweep is to count the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RowCount {
    /// A crash has lost it.
    Unknown,
    Known,
}

impl Sweep {
    fn new(table: Arc<Table>, count: RowCount) -> Sweep {
        let file = table.state().space.file_id();
        Sweep { table, file, index: 0, rest: Remainder::new(Vec::new(), None), count, rows: 0 }
    }

    /// Looks at some entries, once the table's gate is passed; true if there is nothing left.
    fn go_on(&mut self, core: &WriteCore, horizon: Horizon) -> Result<bool> {
        let state = self.table.state();
        if state.dropped || state.space.file_id() != self.file {
            return Ok(true);
        }
        let Some(index) = state.indexes.get(self.index) else {
            self.table.remove_garbage(1);
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
                        let logged = Lsn::default();
                        let (has_chain, is_counted) = (false, false);
                        let garbage = Garbage { table, file, key, old, stamp, has_chain, logged, is_counted };
                        self.table.purge_row(state, &garbage)?;
                    }
                }
                _ => self.rows += 1,
            }
        }
        if self.rest.done {
            if self.index == 0 && self.count == RowCount::Unknown {
                self.table.set_rows(self.rows);
            }
            self.index += 1;
            self.rest = Remainder::new(Vec::new(), None);
        }
        Ok(false)
    }
}
