//! Latches as servers had them before processors' atomic instructions were used for them: the state of each
//! changes under a mutex of its own, a thread that has to wait takes a cell of one array that all latches
//! share, and a thread that frees a latch looks through the array for those that wait for it.
//!
//! The scheme is here for its cost, so that others can be compared with it ([`super::Implementation`]).
//!
//! Access rules. A word with bit 31 changes only while its internal mutex is held, so loads and stores will
//! do; it is looked at without that only to decide whether to try. No wake-up is lost: a waiter takes a cell,
//! resets its event, sets the waiters bit, tries once more and only then waits for the event. A thread that
//! leaves finds the bit; or it left before the bit was set, and then the waiter's last try came after it
//! left.

use super::Contention;
use super::futex::Futex;
use super::word::WAITERS;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, CachePadded, Condvar, Mutex, MutexGuard, hint, thread, thread_local};
use std::ops::Deref;

/// Internal mutexes; a latch has the one of its address.
#[cfg(not(feature = "shuttle"))]
const INTERNALS: usize = 256;
#[cfg(feature = "shuttle")]
const INTERNALS: usize = 2;

/// Rounds of spinning before a thread gives way, and the longest pause of a round: `innodb_sync_spin_loops`
/// and a common `innodb_spin_wait_delay`.
#[cfg(not(feature = "shuttle"))]
const ROUNDS: u32 = 20;
#[cfg(feature = "shuttle")]
const ROUNDS: u32 = 1;
const PAUSES_MAX: u32 = 30;

#[cfg(not(feature = "shuttle"))]
pub(super) static WAIT_ARRAY: WaitArray = WaitArray::new();

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

#[derive(Debug)]
struct Event {
    is_set: Mutex<bool>,
    changed: Condvar,
}

/// The latches of this file are below those that are metered.
fn quietly<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock_quietly().0
}

impl Default for Event {
    fn default() -> Event {
        // Direct latches, whatever the process has chosen: an event is set while the cells are held, and a
        // thread that waits in the array needs the cells.
        Event { is_set: Mutex::new(false), changed: Condvar::new() }
    }
}

impl Event {
    fn reset(&self) {
        *quietly(&self.is_set) = false;
    }

    fn set(&self) {
        *quietly(&self.is_set) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut is_set = quietly(&self.is_set);
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

    /// The mutex of the state of the latch at an address: held for each change of it.
    pub fn internal(&self, address: usize) -> MutexGuard<'_, ()> {
        quietly(&self.internals[address / size_of::<u64>() % INTERNALS])
    }

    /// Looks until `is_open`, or until it has looked often enough. Gives how often.
    pub fn spin(&self, is_open: impl Fn() -> bool) -> u64 {
        let mut pauses = 1;
        for round in 0..ROUNDS {
            if is_open() {
                return round.into();
            }
            // The length of the pause differs from round to round.
            pauses = pauses * 5 % PAUSES_MAX + 1;
            (0..pauses).for_each(|_| hint::spin_loop());
        }
        ROUNDS.into()
    }

    /// Yields, takes a cell, and asks `must_wait`. If that says yes it waits until the latch at `address` is
    /// signalled. Gives the answer.
    pub fn wait(&self, address: usize, must_wait: impl FnOnce() -> bool) -> bool {
        thread::yield_now();
        let event = EVENT.with(Arc::clone);
        event.reset();
        quietly(&self.cells).push(Cell { address, event: event.clone() });
        let has_waited = must_wait();
        if has_waited {
            event.wait();
        }
        quietly(&self.cells).retain(|cell| !Arc::ptr_eq(&cell.event, &event));
        has_waited
    }

    /// Wakes the threads that wait for the latch at `address`.
    pub fn signal(&self, address: usize) {
        quietly(&self.cells).iter().filter(|cell| cell.address == address).for_each(|cell| cell.event.set());
    }

    /// Wakes all threads that wait, for any latch. Each looks again.
    pub fn signal_all(&self) {
        quietly(&self.cells).iter().for_each(|cell| cell.event.set());
    }

    /// Changes the word if `change` allows it. Gives what the word was.
    fn change(&self, word: &Futex, change: impl FnOnce(u32) -> Option<u32>) -> Option<u32> {
        let _internal = self.internal(address_of(word));
        let from = word.load();
        let to = change(from)?;
        // ORDER: the internal mutex orders what holders do.
        let before = word.exchange(from, to, Relaxed);
        debug_assert_eq!(before, Ok(from), "changed without its mutex");
        Some(from)
    }

    pub(super) fn try_enter(&self, word: &Futex, enter: fn(u32) -> Option<u32>) -> bool {
        self.change(word, enter).is_some()
    }

    pub(super) fn enter(&self, word: &Futex, enter: fn(u32) -> Option<u32>) -> Contention {
        let mut contention = Contention::default();
        loop {
            contention.spins += self.spin(|| enter(word.load()).is_some());
            if self.try_enter(word, enter) {
                return contention;
            }
            let has_waited = self.wait(address_of(word), || {
                self.change(word, |word| Some(word | WAITERS));
                !self.try_enter(word, enter)
            });
            if !has_waited {
                return contention;
            }
            contention.waits += 1;
        }
    }

    pub(super) fn leave(&self, word: &Futex, leave: fn(u32) -> u32) {
        let before = self.change(word, |word| Some(leave(word)));
        if before.is_some_and(|before| before & WAITERS != 0 && leave(before) & WAITERS == 0) {
            self.signal(address_of(word));
        }
    }
}

fn address_of(word: &Futex) -> usize {
    std::ptr::from_ref(word).addr()
}

#[cfg(feature = "shuttle")]
impl Default for WaitArray {
    fn default() -> WaitArray {
        WaitArray::new()
    }
}

/// The array that all latches of the process share. A model has an array of its own, because its threads
/// cannot meet at a static.
#[derive(Debug, Default)]
pub struct CentralArray {
    #[cfg(feature = "shuttle")]
    array: WaitArray,
}

impl CentralArray {
    pub fn new() -> CentralArray {
        CentralArray::default()
    }
}

impl Deref for CentralArray {
    type Target = WaitArray;
    #[inline(always)]
    fn deref(&self) -> &WaitArray {
        #[cfg(not(feature = "shuttle"))]
        return &WAIT_ARRAY;
        #[cfg(feature = "shuttle")]
        return &self.array;
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::super::tests::both;
    use super::*;

    #[test]
    fn whoever_signals_waits_for_an_event_without_the_array() {
        for event in both(|| Arc::new(Event::default())) {
            let array = WaitArray::new();
            quietly(&array.cells).push(Cell { address: 8, event: event.clone() });
            let held = quietly(&event.is_set);
            std::thread::scope(|scope| {
                let signalling = scope.spawn(|| array.signal(8));
                while !event.is_set.has_waiters() && !signalling.is_finished() {
                    thread::yield_now();
                }
                drop(held);
                signalling.join().unwrap();
            });
            event.wait();
        }
    }
}
