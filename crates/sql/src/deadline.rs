//! The hand-over between statements with a limit of time and the thread that watches the time.
//!
//! ```text
//! statement:  deadline = end (latch);            does the thread wake by then?   if not: wakes it
//! thread:     expects nothing;  looks at all deadlines (latches);  expects the earliest;  sleeps
//! ```
//!
//! No wake-up is lost: a statement that sets its deadline after the thread has looked at it took the
//! deadline's latch behind the thread, and so sees that the thread expects nothing. The thread looks, and
//! falls asleep, under the latch under which it is woken.
//!
//! The thread never means the statement behind one that has ended: it ends a statement under the deadline's
//! latch, which a statement takes when it ends.

use base::sync::Mutex;
use base::sync::atomic::{AtomicU64, Ordering};

/// The moment that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// When a statement's time is over; 0 without a limit, and once the statement has been ended.
#[derive(Debug, Default)]
pub(crate) struct Deadline(Mutex<u64>);

impl Deadline {
    /// A statement begins, or ends (0).
    pub(crate) fn set(&self, end: u64) {
        *self.0.lock() = end;
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.0.lock() != 0
    }

    /// Calls `end` if the statement's time is over at `now`. Otherwise gives the moment when it will be. The
    /// latch is held meanwhile, so that the statement behind it is not meant.
    pub(crate) fn end_if_over(&self, now: u64, end: impl FnOnce()) -> Option<u64> {
        let mut deadline = self.0.lock();
        if *deadline == 0 || *deadline > now {
            return Some(*deadline).filter(|deadline| *deadline != 0);
        }
        *deadline = 0;
        end();
        None
    }
}

/// When the thread will wake.
#[derive(Debug)]
pub(crate) struct Alarm(AtomicU64);

impl Alarm {
    pub(crate) fn new() -> Alarm {
        Alarm(AtomicU64::new(NEVER))
    }

    /// True if the thread wakes by then without being woken. To be asked after the deadline has been set.
    pub(crate) fn rings_by(&self, end: u64) -> bool {
        // ORDER: the latch of the deadline orders this load behind the thread's store: see the module.
        self.0.load(Ordering::Relaxed) <= end
    }

    /// The thread is about to look at all deadlines, by `look`, which gives the earliest.
    pub(crate) fn set(&self, look: impl FnOnce() -> u64) -> u64 {
        // ORDER: statements see it through the latches of their deadlines, which `look` takes.
        self.0.store(NEVER, Ordering::Relaxed);
        let next = look();
        // ORDER: a statement that reads the value before this one wakes the thread once too often.
        self.0.store(next, Ordering::Relaxed);
        next
    }
}
