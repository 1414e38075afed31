//! Latches: how they are made, and how often threads meet at them.
//!
//! A latch has a class, a type that costs no memory: `Mutex<T, Rows>`. What happens at the latches of a class
//! is counted while [`metering`] is on. A latch without one (`Mutex<T>`) is of the class `other`.
//!
//! There are two [`Implementation`]s. Which one a latch has is decided when it is made, by what the process
//! says then, and does not change: so databases of both kinds can be open at once. Latches in statics, which
//! guard nothing that is measured, are always direct.
//!
//! Latches whose state is more than a word of ours (those of pages) keep it themselves, and have the wait
//! array ([`CentralArray`]) and the meters in common with the rest.

// Models have the scheduler's latches; ours are modelled below their guards.
#![cfg_attr(feature = "shuttle", allow(dead_code))]

mod condvar;
mod futex;
#[cfg(not(feature = "shuttle"))]
mod guard;
mod meter;
mod wait_array;
mod word;

#[cfg(all(test, feature = "shuttle"))]
mod model_tests;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

#[cfg(not(feature = "shuttle"))]
pub use guard::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use meter::{
    ClassFigures, Encounter, LatchClass, LatchCounts, Met, Meter, Other, Site, Spot, WAIT_TIMES, WaitFigures,
    add_class, metering, set_metering,
};
pub use wait_array::CentralArray;

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What latches do when threads meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Implementation {
    /// State changed by atomic instructions; a thread that waits sleeps on the latch's own word.
    #[default]
    Direct = 0,
    /// State changed under a mutex; a thread that waits spins, then takes a cell of one array for all
    /// latches. MySQL's servers worked so before 2008.
    WaitArray = 1,
}

/// A plain atomic of std: it is not a part of what is modelled.
static CHOSEN: AtomicU8 = AtomicU8::new(Implementation::Direct as u8);

impl Implementation {
    /// How latches are made from now on.
    pub fn choose(self) {
        // ORDER: each latch keeps what it was made with; nothing is published through this.
        CHOSEN.store(self as u8, Relaxed);
    }

    pub fn chosen() -> Implementation {
        if CHOSEN.load(Relaxed) == Implementation::WaitArray as u8 {
            Implementation::WaitArray
        } else {
            Implementation::Direct
        }
    }
}

/// What it took to get a latch that was not free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contention {
    /// Looks at the latch.
    pub spins: u64,
    /// Times asleep.
    pub waits: u64,
}
