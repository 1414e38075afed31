//! The one door to threads, latches and atomics.
//!
//! Everything concurrent in the workspace imports from here and never from `std::sync`, so that
//! - under the feature `shuttle` a randomised scheduler drives every interleaving in the models, and
//! - under the feature `counting` a test can read how many shared writes and latches an operation cost.
//!
//! Latches are not poisoned: a panic in one session ends that session. Code that holds a latch keeps the
//! structure behind it valid at every step, or repairs it in `Drop`.

#[cfg(not(feature = "shuttle"))]
mod imp {
    pub use super::latch::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use std::sync::atomic as raw_atomic;
    pub use std::{hint, thread, thread_local};
}

#[cfg(feature = "shuttle")]
mod imp {
    pub use super::modelled::{Condvar, Mutex, RwLock};
    pub use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard, atomic as raw_atomic};
    pub use shuttle::{hint, thread, thread_local};
}

pub use imp::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, hint, thread, thread_local,
};
/// The scheduler itself, for models.
#[cfg(feature = "shuttle")]
pub use shuttle;

/// Runs a model with a known fault until an assertion fails, for tests that must panic: they show that the
/// models can fail. Random choices find some faults, priorities others. The limit only ends the run of a
/// model that no longer has its fault.
#[cfg(feature = "shuttle")]
pub fn find_fault(model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    for _ in 0..1_000 {
        let random = model.clone();
        shuttle::check_random(move || random(), 1_000);
        for depth in [3, 5] {
            let priorities = model.clone();
            shuttle::check_pct(move || priorities(), 1_000, depth);
        }
    }
}

pub use std::sync::{Arc, OnceLock, Weak};

mod counts;
pub use counts::{Counts, counts};
pub mod atomic;
mod latch;
#[cfg(feature = "shuttle")]
mod modelled;
pub use latch::{
    CentralArray, ClassFigures, Contention, Encounter, Implementation, LatchClass, LatchCounts, Met, Meter,
    Other, Site, Spot, WAIT_TIMES, WaitFigures, add_class, metering, set_metering,
};

/// Keeps a value alone on its cache lines: 128 bytes, because processors prefetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
