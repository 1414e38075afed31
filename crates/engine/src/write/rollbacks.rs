//! Transactions that are taken back behind the client: those that a full disk keeps from it, and large ones
//! that a start found in the log.
//!
//! They are transactions under way as any other: their rows are locked by their stamps, snapshots see what
//! the rows were before, a checkpoint keeps what a start would need. If the process ends before, the next
//! start finds what is left of them.

use super::active::{Active, UNDONE_AT_ONCE};
use super::core::WriteCore;
use crate::Error;
use crate::table::Table;
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Arc, Condvar, Mutex};
use std::collections::VecDeque;
#[cfg(not(feature = "shuttle"))]
use std::time::Duration;

base::latch_class!(pub RollbacksLatch, "rollbacks");

#[derive(Default, Debug)]
pub(crate) struct Rollbacks {
    queue: Mutex<Queue, RollbacksLatch>,
    changed: Condvar,
    /// There are some, and no thread takes them back: statements that change rows do.
    needs_help: AtomicBool,
}

#[derive(Default, Debug)]
struct Queue {
    waiting: VecDeque<Active>,
    /// One is being taken back.
    is_busy: bool,
    is_served: bool,
    #[cfg(not(feature = "shuttle"))]
    stop: bool,
}

/// How far a part of the work has come.
#[derive(Debug)]
pub(crate) enum Progress {
    /// There is nothing to take back, or another thread is at it.
    Nothing,
    /// There may be more.
    Some,
    /// The disk is full.
    Full,
    /// This table has a damaged page.
    #[cfg_attr(feature = "shuttle", allow(dead_code, reason = "models have no thread that closes the table"))]
    Damaged(Arc<Table>, Error),
    /// The engine refuses writes.
    Failed,
}

impl Rollbacks {
    pub(crate) fn add(&self, active: Active) {
        let mut queue = self.queue.lock();
        queue.waiting.push_back(active);
        self.note(&queue);
        drop(queue);
        self.changed.notify_all();
    }

    fn note(&self, queue: &Queue) {
        let needs_help = !queue.is_served && !queue.waiting.is_empty();
        // ORDER: a hint: a thread that misses it helps the next time.
        self.needs_help.store(needs_help, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn needs_help(&self) -> bool {
        // ORDER: as above.
        self.needs_help.load(Ordering::Relaxed)
    }

    /// True if all have been taken back.
    pub(crate) fn is_empty(&self) -> bool {
        let queue = self.queue.lock();
        queue.waiting.is_empty() && !queue.is_busy
    }

    /// Takes some changes back. The caller has passed the gate of statements and holds no latch.
    pub(crate) fn go_on(&self, core: &WriteCore) -> Progress {
        let mut active = {
            let mut queue = self.queue.lock();
            if queue.is_busy {
                return Progress::Nothing;
            }
            let Some(active) = queue.waiting.pop_front() else { return Progress::Nothing };
            queue.is_busy = true;
            active
        };
        let (left, progress) = match active.roll_back_some(core, UNDONE_AT_ONCE / 4) {
            Ok(true) => (Some(active), Progress::Some),
            Ok(false) => {
                active.end_rolled_back(core);
                (None, Progress::Some)
            }
            Err(Error::Full) => (Some(active), Progress::Full),
            Err(error @ Error::Corrupt { .. }) => match active.last_table() {
                Some(table) => (Some(active), Progress::Damaged(table, error)),
                None => (Some(active), Progress::Failed),
            },
            Err(_) => (Some(active), Progress::Failed),
        };
        let mut queue = self.queue.lock();
        queue.is_busy = false;
        match left {
            // Others may have what they need.
            Some(active) if matches!(progress, Progress::Full) => queue.waiting.push_back(active),
            Some(active) => queue.waiting.push_front(active),
            None => {}
        }
        self.note(&queue);
        drop(queue);
        self.changed.notify_all();
        progress
    }

    /// Does what the thread would do, for a statement where there is none.
    #[cold]
    pub(crate) fn help(&self, core: &WriteCore) {
        loop {
            match self.go_on(core) {
                Progress::Some => {}
                Progress::Nothing | Progress::Full | Progress::Failed => return,
                Progress::Damaged(_, error) => {
                    core.refuse_writes(format!("a change could not be taken back: {error}"));
                    return;
                }
            }
        }
    }

    /// Forgets them: the next start finds them.
    pub(crate) fn clear(&self) {
        let waiting = std::mem::take(&mut self.queue.lock().waiting);
        drop(waiting);
    }
}

/// What the thread does, which models go without.
#[cfg(not(feature = "shuttle"))]
impl Rollbacks {
    pub(crate) fn set_served(&self, is_served: bool) {
        let mut queue = self.queue.lock();
        queue.is_served = is_served;
        self.note(&queue);
    }

    pub(crate) fn stop(&self) {
        self.queue.lock().stop = true;
        self.changed.notify_all();
    }

    /// Sleeps until there is something to do; false when it is time to end.
    pub(crate) fn wait(&self) -> bool {
        let mut queue = self.queue.lock();
        while !queue.stop && queue.waiting.is_empty() {
            queue = self.changed.wait(queue);
        }
        !queue.stop
    }

    /// Sleeps for a while; false when it is time to end.
    pub(crate) fn pause(&self, duration: Duration) -> bool {
        let queue = self.queue.lock();
        if queue.stop {
            return false;
        }
        let (queue, _) = self.changed.wait_timeout(queue, duration);
        !queue.stop
    }
}
