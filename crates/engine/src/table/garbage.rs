//! How much a table has that purge is to remove, and whether the log lists all of it.

use crate::counter::SpreadCounter;
use base::sync::atomic::{AtomicBool, Ordering, fence};

/// Threads count without sharing a cache line.
#[derive(Default, Debug)]
pub(super) struct GarbageCount {
    come: SpreadCounter,
    gone: SpreadCounter,
    /// The log does not list all that is left.
    unlisted: AtomicBool,
}

impl GarbageCount {
    pub(super) fn come(&self, count: u64) {
        self.come.add(count as i64);
    }

    /// The caller is behind the call of [`GarbageCount::come`] that counted them.
    pub(super) fn go(&self, count: u64) {
        // ORDER: Release: whoever counts these as gone finds that they have come.
        self.gone.shard().fetch_add(count, Ordering::Release);
    }

    /// How much is left. Never less than there is: if it is nothing, all has gone that had come before the
    /// call.
    pub(super) fn left(&self) -> u64 {
        // First those that have gone: each of them is found to have come. What goes meanwhile still counts.
        // ORDER: Acquire: see `go`. The rest is a sum of numbers.
        let gone = self.gone.total(Ordering::Acquire);
        self.come.total(Ordering::Relaxed).wrapping_sub(gone)
    }

    /// The log does not list something that has come.
    pub(super) fn set_unlisted(&self) {
        // ORDER: with the fence in `settle`: that finds what has come, or its store comes before this one.
        fence(Ordering::SeqCst);
        self.unlisted.store(true, Ordering::Relaxed);
    }

    /// False only if the log lists all that has come before a fence of the caller's.
    #[inline]
    pub(super) fn is_unlisted(&self) -> bool {
        // ORDER: the caller's fence.
        self.unlisted.load(Ordering::Relaxed)
    }

    /// Without anything left, the log lists it all. Gives whether something is unlisted. One thread at a
    /// time.
    pub(super) fn settle(&self) -> bool {
        // ORDER: the fence: whoever leaves something unlisted counts it first. So it is counted in the second
        // look, or its flag comes after what is stored here.
        if self.is_unlisted() && self.left() == 0 {
            self.unlisted.store(false, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if self.left() > 0 {
                self.unlisted.store(true, Ordering::Relaxed);
            }
        }
        self.is_unlisted()
    }

    /// Nobody else uses it meanwhile.
    pub(super) fn set(&self, left: u64, is_unlisted: bool) {
        self.come.set(left);
        self.gone.set(0);
        // ORDER: nobody else uses it.
        self.unlisted.store(is_unlisted, Ordering::Relaxed);
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod models {
    use super::GarbageCount;
    use base::sync::{Arc, find_fault, shuttle, thread};

    const ITERATIONS: usize = 3_000;

    /// `settle` is that of the type, or one that must be found wrong.
    fn run(settle: fn(&GarbageCount) -> bool) {
        let count = Arc::new(GarbageCount::default());
        count.set(1, true);
        let settling = {
            let count = count.clone();
            thread::spawn(move || [settle(&count), settle(&count)])
        };
        let coming = {
            let count = count.clone();
            thread::spawn(move || {
                // Listed, and gone.
                count.come(1);
                count.go(1);
                count.come(1);
                count.set_unlisted();
            })
        };
        count.go(1);
        coming.join().unwrap();
        settling.join().unwrap();
        assert_eq!(count.left(), 1);
        assert!(count.is_unlisted() && settle(&count));
    }

    #[test]
    fn what_is_left_unlisted_stays_so() {
        shuttle::check_random(|| run(GarbageCount::settle), ITERATIONS);
        shuttle::check_pct(|| run(GarbageCount::settle), ITERATIONS, 3);
    }

    #[test]
    #[should_panic(expected = "is_unlisted")]
    fn canary_one_look_is_not_enough() {
        find_fault(|| {
            run(|count| {
                use base::sync::atomic::Ordering;
                if count.is_unlisted() && count.left() == 0 {
                    count.unlisted.store(false, Ordering::Relaxed);
                }
                count.is_unlisted()
            });
        });
    }

    #[test]
    fn something_is_left_as_long_as_something_stays() {
        shuttle::check_random(
            || {
                let count = Arc::new(GarbageCount::default());
                // This one stays.
                count.come(1);
                let others: Vec<_> = (0..2)
                    .map(|_| {
                        let count = count.clone();
                        thread::spawn(move || {
                            count.come(1);
                            let other = count.clone();
                            thread::spawn(move || other.go(1))
                        })
                    })
                    .collect();
                assert!(count.left() >= 1);
                others.into_iter().for_each(|thread| thread.join().unwrap().join().unwrap());
                assert_eq!(count.left(), 1);
            },
            ITERATIONS,
        );
    }
}
