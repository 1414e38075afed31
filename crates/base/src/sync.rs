//! The one door to threads, latches and atomics.
//!
//! Everything concurrent in the workspace imports from here and never from `std::sync`, so that
//! - under the feature `shuttle` a randomised scheduler drives every interleaving in the models, and
//! - under the feature `counting` a test can read how many shared writes and latches an operation cost.
//!
//! Latches ignore poisoning: a panic in one session ends that session, and whoever holds a latch
//! over a structure keeps it valid at every step or repairs it in `Drop`.

#[cfg(not(feature = "shuttle"))]
mod imp {
    pub use std::sync::{
        Condvar as RawCondvar, Mutex as RawMutex, MutexGuard, RwLock as RawRwLock, RwLockReadGuard,
        RwLockWriteGuard, atomic as raw_atomic,
    };
    pub use std::{hint, thread, thread_local};
}

#[cfg(feature = "shuttle")]
mod imp {
    pub use shuttle::sync::{
        Condvar as RawCondvar, Mutex as RawMutex, MutexGuard, RwLock as RawRwLock, RwLockReadGuard,
        RwLockWriteGuard, atomic as raw_atomic,
    };
    pub use shuttle::{hint, thread, thread_local};
}

pub use imp::{MutexGuard, RwLockReadGuard, RwLockWriteGuard, hint, thread, thread_local};
/// The scheduler itself, for models.
#[cfg(feature = "shuttle")]
pub use shuttle;
pub use std::sync::{Arc, OnceLock, Weak};

mod counts;
pub use counts::{Counts, counts};
pub mod atomic;

/// A mutual-exclusion latch that ignores poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(imp::RawMutex<T>);

impl<T> Mutex<T> {
    #[cfg(not(feature = "shuttle"))]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(imp::RawMutex::new(value))
    }

    #[cfg(feature = "shuttle")]
    pub fn new(value: T) -> Mutex<T> {
        Mutex(imp::RawMutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        counts::latch();
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The latch if it is free now.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        counts::latch();
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(imp::RawCondvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar(imp::RawCondvar::new())
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for a notification or `timeout`; true if the time ran out.
    #[cfg(not(feature = "shuttle"))]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: std::time::Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, result) =
            self.0.wait_timeout(guard, timeout).unwrap_or_else(|poisoned| poisoned.into_inner());
        (guard, result.timed_out())
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A reader-writer latch that ignores poisoning. Not for hot paths: taking it shared writes.
#[derive(Debug, Default)]
pub struct RwLock<T>(imp::RawRwLock<T>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock(imp::RawRwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        counts::latch();
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        counts::latch();
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

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
