//! The counting shim: what an operation cost, in writes to atomics and in latches taken.
//!
//! Without the feature `counting` every function here is empty and costs nothing.

/// What this thread has done through `base::sync` since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Stores and read-modify-writes on atomics declared shared (all but thread-owned counters).
    pub shared_writes: u64,
    /// Mutexes and reader-writer latches taken, or tried.
    pub latches: u64,
}

#[cfg(feature = "counting")]
mod imp {
    use super::Counts;
    use std::cell::Cell;

    thread_local! {
        static COUNTS: Cell<Counts> = const { Cell::new(Counts { shared_writes: 0, latches: 0 }) };
    }

    pub fn counts() -> Counts {
        COUNTS.get()
    }

    pub fn write() {
        COUNTS.with(|c| c.set(Counts { shared_writes: c.get().shared_writes + 1, ..c.get() }));
    }

    pub fn latch() {
        COUNTS.with(|c| c.set(Counts { latches: c.get().latches + 1, ..c.get() }));
    }
}

#[cfg(not(feature = "counting"))]
mod imp {
    use super::Counts;

    pub fn counts() -> Counts {
        Counts::default()
    }

    #[inline(always)]
    pub fn write() {}

    #[inline(always)]
    pub fn latch() {}
}

/// The counts of the calling thread; always zero without the feature `counting`.
pub fn counts() -> Counts {
    imp::counts()
}

pub(super) use imp::{latch, write};
