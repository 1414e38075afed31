//! Waiting for a notification with a mutex given back meanwhile.

use super::futex::Futex;
use super::wait_array::WaitArray;
use super::word::RawMutex;
use crate::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Counts notifications: a thread that waits, waits for the next one. It reads the count while it holds the
/// mutex. A thread that makes a change under the mutex and then notifies raises the count later, and so the
/// wait ends at once.
#[derive(Debug)]
pub struct RawCondvar(Futex);

impl RawCondvar {
    #[cfg(not(feature = "shuttle"))]
    pub const fn new() -> RawCondvar {
        RawCondvar(Futex::new(0))
    }

    #[cfg(feature = "shuttle")]
    pub fn new() -> RawCondvar {
        RawCondvar(Futex::new(0))
    }

    /// The caller holds the mutex, and does again afterwards. False if the time ran out.
    pub fn sleep(&self, mutex: &RawMutex, array: &WaitArray, timeout: Option<Duration>) -> bool {
        let before = self.0.load();
        mutex.unlock(array);
        let in_time = self.0.wait(before, timeout);
        if !mutex.try_fast() {
            mutex.lock(array);
        }
        in_time
    }

    pub fn notify_one(&self) {
        // ORDER: what is waited for is published by the mutex.
        self.0.add(1, Relaxed);
        self.0.wake(1);
    }

    pub fn notify_all(&self) {
        // ORDER: as above.
        self.0.add(1, Relaxed);
        self.0.wake(u32::MAX >> 1);
    }
}
