//! One fsync for all threads that wait for one.
//!
//! Threads append to a file, each under a latch of its own choice, and want their bytes to be durable before
//! they go on. The first one syncs; those that come meanwhile wait, and one of them syncs for all of them.
//!
//! The rules of access: [`SharedSync::written`] is called after the bytes are in the file, so that a sync
//! that begins later covers them. [`SharedSync::wait`] is called without a latch on the file. After a sync
//! that failed nobody knows which bytes are durable, so all later waits fail, too: the file has to be
//! replaced, with a new `SharedSync`.

use crate::sync::{Condvar, Mutex};
use std::io;

/// See the [module's description](self).
#[derive(Debug, Default)]
pub struct SharedSync {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many writes have ended.
    written: u64,
    /// So many of them are durable.
    durable: u64,
    /// A thread is syncing.
    is_running: bool,
    failed: Option<io::ErrorKind>,
}

/// The number of a write, to wait for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Written(u64);

impl SharedSync {
    /// Counts a write whose bytes are in the file.
    pub fn written(&self) -> Written {
        let mut state = self.state.lock();
        state.written += 1;
        Written(state.written)
    }

    /// Returns once the write is durable. `sync` makes durable what was written before it is called.
    ///
    /// # Errors
    /// That of `sync`, if it failed now or earlier.
    pub fn wait(&self, write: Written, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state.lock();
        while state.durable < write.0 {
            if let Some(kind) = state.failed {
                return Err(kind.into());
            }
            if state.is_running {
                state = self.ended.wait(state);
                continue;
            }
            state.is_running = true;
            let covered = state.written;
            drop(state);
            let result = sync();
            state = self.state.lock();
            state.is_running = false;
            match &result {
                Ok(()) => state.durable = covered,
                Err(error) => state.failed = Some(error.kind()),
            }
            self.ended.notify_all();
            return result;
        }
        Ok(())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_was_written_before_it_and_an_error_stays() {
        let shared = SharedSync::default();
        let (first, second) = (shared.written(), shared.written());
        shared.wait(second, || Ok(())).unwrap();
        shared.wait(first, || panic!("it is durable")).unwrap();
        let third = shared.written();
        let full = io::ErrorKind::StorageFull;
        assert_eq!(shared.wait(third, || Err(full.into())).unwrap_err().kind(), full);
        assert_eq!(shared.wait(third, || panic!("not a second time")).unwrap_err().kind(), full);
        shared.wait(second, || panic!("it was durable before")).unwrap();
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod models {
    use super::*;
    use crate::sync::{Arc, find_fault, shuttle, thread};

    /// A file: how many entries it has, and how many survive a power failure.
    #[derive(Default)]
    struct Disk {
        entries: Mutex<u64>,
        durable: Mutex<u64>,
        syncs: Mutex<u64>,
        fails_at: Option<u64>,
    }

    impl Disk {
        fn append(&self) -> u64 {
            let mut entries = self.entries.lock();
            *entries += 1;
            *entries
        }

        fn sync(&self) -> io::Result<()> {
            let mut syncs = self.syncs.lock();
            *syncs += 1;
            if Some(*syncs) == self.fails_at {
                return Err(io::ErrorKind::Other.into());
            }
            drop(syncs);
            let entries = *self.entries.lock();
            thread::yield_now();
            let mut durable = self.durable.lock();
            *durable = entries.max(*durable);
            Ok(())
        }
    }

    /// Threads append twice each. `is_early` counts a write before its bytes are there, which is wrong.
    fn append_and_wait(fails_at: Option<u64>, is_early: bool) {
        let disk = Arc::new(Disk { fails_at, ..Disk::default() });
        let shared = Arc::new(SharedSync::default());
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (disk, shared) = (disk.clone(), shared.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        let early = is_early.then(|| shared.written());
                        let entry = disk.append();
                        let write = early.unwrap_or_else(|| shared.written());
                        match shared.wait(write, || disk.sync()) {
                            Ok(()) => assert!(*disk.durable.lock() >= entry, "an entry is not durable"),
                            Err(_) => assert!(*disk.syncs.lock() >= fails_at.unwrap_or(u64::MAX)),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // Nobody syncs for nothing, and none after one has failed.
        assert!(*disk.syncs.lock() <= fails_at.unwrap_or(6));
    }

    #[test]
    fn what_was_waited_for_is_durable() {
        shuttle::check_random(|| append_and_wait(None, false), 20_000);
        shuttle::check_pct(|| append_and_wait(None, false), 20_000, 3);
    }

    #[test]
    fn nobody_believes_in_a_sync_that_failed() {
        shuttle::check_random(|| append_and_wait(Some(2), false), 20_000);
        shuttle::check_pct(|| append_and_wait(Some(2), false), 20_000, 3);
    }

    #[test]
    #[should_panic = "an entry is not durable"]
    fn a_write_that_is_counted_early_is_found() {
        find_fault(|| append_and_wait(None, true));
    }
}
