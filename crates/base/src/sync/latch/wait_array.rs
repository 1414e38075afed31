//! Latches as servers had them before processors' atomic instructions were used for them: the state of each changes under a mutex of its own,
//! who has to wait takes a cell of one array that all latches share, and who frees a latch looks through the array for those who wait for it.
//!
//! What the scheme costs is the point of it: it is here to be measured against ([`super::Implementation`]).
//!
//! Access rules. A word with bit 31 changes only while its internal mutex is held, so loads and stores will do; it is looked at without that
//! only to decide whether to try. No wake-up is lost: who waits takes a cell, resets its event, sets the waiters bit, tries once
//! more and only then waits for the event; who leaves finds the bit, or left before it was set, and then that last try was after it.

use super::Contention;
use super::futex::Futex;
use super::word::WAITERS;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, CachePadded, Condvar, Mutex, hint, thread, thread_local};

/// Internal mutexes; a latch has the one of its address.
#[cfg(not(feature = "shuttle"))]
const INTERNALS: usize = 256;
#[cfg(feature = "shuttle")]
const INTERNALS: usize = 2;

/// Rounds of spinning before a thread gives way, and the longest pause of a round: `innodb_sync_spin_loops` and a common `innodb_spin_wait_delay`.
#[cfg(not(feature = "shuttle"))]
const ROUNDS: u32 = 20;
#[cfg(feature = "shuttle")]
const ROUNDS: u32 = 1;
const PAUSES_MAX: u32 = 30;

/// The cells of all threads that wait, and the mutexes of all latches' states.
#[derive(Debug)]
pub struct WaitArray {
    internals: [CachePadded<Mutex<()>>; INTERNALS],
    cells: Mutex<Vec<Cell>>,
}

#[derive(Debug)]
struct Cell {
    /// Of the latch.
    address: usize,
    event: Arc<Event>,
}

#[derive(Debug, Default)]
struct Event {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Event {
    fn reset(&self) {
        *self.is_set.lock() = false;
    }

    fn set(&self) {
        *self.is_set.lock() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut is_set = self.is_set.lock();
        while !*is_set {
            is_set = self.changed.wait(is_set);
        }
    }
}

thread_local! {
    static EVENT: Arc<Event> = Arc::default();
}

impl WaitArray {
    #[cfg(not(feature = "shuttle"))]
    pub const fn new() -> WaitArray {
        WaitArray {
            internals: [const { CachePadded(Mutex::new(())) }; INTERNALS],
            cells: Mutex::new(Vec::new()),
        }
    }

    #[cfg(feature = "shuttle")]
    pub fn new() -> WaitArray {
        WaitArray {
            internals: std::array::from_fn(|_| CachePadded(Mutex::new(()))),
            cells: Mutex::new(Vec::new()),
        }
    }

    /// Changes the word if `change` allows it; what it was.
    fn change(&self, word: &Futex, change: impl FnOnce(u32) -> Option<u32>) -> Option<u32> {
        let address = std::ptr::from_ref(word) as usize;
        let _internal = self.internals[address / size_of::<u64>() % INTERNALS].lock();
        let from = word.load();
        let to = change(from)?;
        // ORDER: the internal mutex orders what holders do.
        let before = word.exchange(from, to, Relaxed);
        debug_assert_eq!(before, Ok(from), "changed without its mutex");
        Some(from)
    }

    pub fn try_enter(&self, word: &Futex, enter: fn(u32) -> Option<u32>) -> bool {
        self.change(word, enter).is_some()
    }

    pub fn enter(&self, word: &Futex, enter: fn(u32) -> Option<u32>) -> Contention {
        let mut contention = Contention::default();
        let mut pauses = 1;
        loop {
            for _ in 0..ROUNDS {
                if enter(word.load()).is_some() {
                    break;
                }
                contention.spins += 1;
                // Of a length that differs from thread to thread and from round to round.
                pauses = pauses * 5 % PAUSES_MAX + 1;
                (0..pauses).for_each(|_| hint::spin_loop());
            }
            if self.try_enter(word, enter) {
                return contention;
            }
            thread::yield_now();
            let event = EVENT.with(Arc::clone);
            let address = std::ptr::from_ref(word) as usize;
            event.reset();
            self.cells.lock().push(Cell { address, event: event.clone() });
            self.change(word, |word| Some(word | WAITERS));
            let has_entered = self.try_enter(word, enter);
            if !has_entered {
                contention.waits += 1;
                event.wait();
            }
            self.cells.lock().retain(|cell| !Arc::ptr_eq(&cell.event, &event));
            if has_entered {
                return contention;
            }
        }
    }

    pub fn leave(&self, word: &Futex, leave: fn(u32) -> u32) {
        let address = std::ptr::from_ref(word) as usize;
        let before = self.change(word, |word| Some(leave(word)));
        if before.is_some_and(|before| before & WAITERS != 0 && leave(before) & WAITERS == 0) {
            self.cells.lock().iter().filter(|cell| cell.address == address).for_each(|cell| cell.event.set());
        }
    }
}
