//! Working memory that belongs to a core and not to a thread.
//!
//! If a thousand connections each keep the buffers of their last statement, they use a thousand sets of
//! buffers in turn, and each is cold in the processor's caches when it is used. Statements run to their end
//! on a core far more often than they are interrupted, so as many sets as there are cores are enough, and
//! they stay in the core's own caches.

use crate::sync::{CachePadded, Mutex};

/// How many values a core keeps: one for the statement that runs, and some for statements that were
/// interrupted.
const KEPT_A_CORE: usize = 4;

/// A few values a core; the one given back last is taken first.
///
/// No thread waits: if a value cannot be had at once, the caller makes a new one, and a value that cannot be
/// given back is dropped. Each core's mutexes are on cache lines of their own, so taking a value and giving
/// it back moves no line between cores, unless the thread moves.
#[derive(Debug)]
pub struct CoreLocal<T> {
    cores: Box<[CachePadded<Mutex<Vec<T>>>]>,
}

impl<T> CoreLocal<T> {
    pub fn new() -> CoreLocal<T> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        CoreLocal {
            cores: (0..cores).map(|_| CachePadded(Mutex::new(Vec::with_capacity(KEPT_A_CORE)))).collect(),
        }
    }

    /// What this core has used last, if it is there.
    #[inline]
    pub fn take(&self) -> Option<T> {
        self.mine().try_lock()?.pop()
    }

    /// Keeps a value for the next statement on this core.
    #[inline]
    pub fn put(&self, value: T) {
        if let Some(mut kept) = self.mine().try_lock()
            && kept.len() < KEPT_A_CORE
        {
            kept.push(value);
        }
    }

    #[inline]
    fn mine(&self) -> &Mutex<Vec<T>> {
        // The thread may be moved right after; then it uses another core's value once.
        &self.cores[this_core() % self.cores.len()]
    }
}

#[cfg(not(any(feature = "shuttle", miri)))]
#[inline]
fn this_core() -> usize {
    rustix::thread::sched_getcpu()
}

/// A model does not depend on where it runs.
#[cfg(any(feature = "shuttle", miri))]
fn this_core() -> usize {
    0
}

impl<T> Default for CoreLocal<T> {
    fn default() -> CoreLocal<T> {
        CoreLocal::new()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_last_comes_first_and_there_is_a_bound() {
        let values = CoreLocal { cores: vec![CachePadded(Mutex::new(Vec::new()))].into() };
        assert_eq!(values.take(), None);
        for value in 0..10 {
            values.put(value);
        }
        assert_eq!(values.take(), Some(KEPT_A_CORE - 1));
        assert_eq!(values.take(), Some(KEPT_A_CORE - 2));
    }

    #[test]
    fn threads_never_share_a_value() {
        let values = CoreLocal::<Box<u64>>::new();
        std::thread::scope(|scope| {
            for own in 0..8 {
                let values = &values;
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        let mut value = values.take().unwrap_or_default();
                        *value = own;
                        std::hint::black_box(&mut value);
                        assert_eq!(*value, own);
                        values.put(value);
                    }
                });
            }
        });
    }
}
