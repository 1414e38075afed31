//! Purge: removes what committed transactions have left behind once nobody sees it any more.
//!
//! A deleted row stays in its leaf, and the index entries of rows as they were stay in theirs, for the snapshots that still see
//! them. What a transaction leaves is queued when it commits. A thread looks at the queue; a session that
//! commits faster than the thread purges does some of the work itself.

use crate::core::Core;
use crate::table::Table;
use base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use base::sync::{Arc, Condvar, Mutex, Weak, thread};
use base::{FileId, Stamp};
use std::collections::VecDeque;
use std::time::Duration;
use transactions::Horizon;

/// How long the thread sleeps when snapshots are in its way, or nothing is to be done.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_IDLE: Duration = Duration::from_millis(500);
/// What is purged between two looks at the horizon: a snapshot that closes meanwhile lets the next ones go further.
const BATCH: usize = 256;
/// A queue longer than this is worked on by those who make it longer.
const QUEUE_LONG: usize = 20_000;
/// What a session purges at a commit then: more than most commits leave.
const HELP: usize = 64;

/// A row that some transaction has changed, as it was before.
#[derive(Debug)]
pub(crate) struct Garbage {
    pub table: Arc<Table>,
    pub file: FileId,
    pub key: Box<[u8]>,
    pub old: Arc<[u8]>,
    /// Who changed it.
    pub stamp: Stamp,
    /// The overflow pages of `old` go with it.
    pub leaves_chain: bool,
    /// It counts in [`Table::garbage`].
    pub is_counted: bool,
}

/// What is to be purged, in about the order of the commits.
#[derive(Default, Debug)]
pub(crate) struct Purge {
    queue: Mutex<VecDeque<Garbage>>,
    /// Held by who purges: one thread at a time, so that what is no longer queued has been purged.
    working: Mutex<()>,
    len: AtomicUsize,
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
    /// Leaves work for later.
    pub fn add(&self, garbage: Vec<Garbage>) {
        if garbage.is_empty() {
            return;
        }
        // ORDER: a number for reports and for the decision to help.
        self.len.fetch_add(garbage.len(), Ordering::Relaxed);
        self.queue.lock().extend(garbage);
        // ORDER: who misses the flag is made up for by the pause running out.
        if self.signal.idle.load(Ordering::Relaxed) && self.signal.idle.swap(false, Ordering::Relaxed) {
            drop(self.signal.state.lock());
            self.signal.changed.notify_one();
        }
    }

    /// How much waits.
    pub fn len(&self) -> usize {
        // ORDER: as in `add`.
        self.len.load(Ordering::Relaxed)
    }

    /// The next piece of work that the horizon allows.
    fn next(&self, core: &Core, horizon: Horizon) -> Option<Garbage> {
        let mut queue = self.queue.lock();
        let stamp = queue.front()?.stamp;
        if !core.transactions.is_seen_by_all(stamp, horizon) {
            return None;
        }
        // ORDER: as in `add`.
        self.len.fetch_sub(1, Ordering::Relaxed);
        queue.pop_front()
    }

    /// Purges up to `limit` rows; how many it came to.
    fn run(&self, core: &Core, limit: usize) -> usize {
        let _working = self.working.lock();
        // First the horizon, then the versions: what is purged below has no versions left that only older snapshots had.
        let horizon = core.transactions.horizon();
        core.transactions.purge();
        let mut done = 0;
        while done < limit
            && let Some(garbage) = self.next(core, horizon)
        {
            done += 1;
            let _passage = garbage.table.gate.pass();
            let state = garbage.table.state();
            if state.dropped || state.space.file_id() != garbage.file {
                continue;
            }
            // What cannot be removed stays: it is in nobody's way, and a later change of the row meets it.
            let purged = garbage.table.purge_row(state, &garbage);
            if purged.is_ok() && garbage.is_counted {
                garbage.table.add_garbage(-1);
            }
        }
        done
    }

    /// Called by who has committed: helps if the thread cannot keep up.
    pub fn help(&self, core: &Core) {
        if self.len() > QUEUE_LONG {
            self.run(core, HELP);
        }
    }

    /// Purges everything that nobody sees.
    pub fn drain(&self, core: &Core) {
        while self.run(core, usize::MAX) > 0 {}
    }

    /// Forgets everything: the next start will meet it.
    pub fn clear(&self) {
        self.queue.lock().clear();
    }

    /// Starts the thread.
    pub fn start(&self, core: &Arc<Core>) {
        let (signal, weak) = (self.signal.clone(), Arc::downgrade(core));
        let spawned = thread::Builder::new().name("purge".to_owned()).spawn(move || work(&weak, &signal));
        // Without the thread sessions do the work, later.
        self.signal.state.lock().thread = spawned.ok();
    }

    /// Ends the thread and waits for it.
    pub fn stop(&self) {
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

fn work(core: &Weak<Core>, signal: &Signal) {
    loop {
        let Some(core) = core.upgrade() else { return };
        let done = core.purge.run(&core, BATCH);
        let waits = core.purge.len();
        drop(core);
        if done > 0 && waits > 0 {
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
