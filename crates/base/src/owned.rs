//! Counters that each thread keeps to itself, for what happens too often to be counted in shared memory.
//!
//! Each thread counts in cells of its own, on cache lines of its own, and whoever asks adds them up. Only the owner writes
//! a cell, with a plain store, so that sums are exact.
//!
//! Cells are never freed, for the owner finds them by plain reference; they are given to another thread when
//! theirs ends, and to other counters when theirs are dropped. So there are as many as threads were ever alive at once,
//! for each set of counters.

use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Mutex, thread_local};
use std::cell::Cell;

/// Counters of one set: they and the claim fill two cache lines.
pub const OWNED_COUNTERS: usize = 15;

#[derive(Debug)]
#[repr(align(128))]
struct Cells {
    counters: [AtomicU64; OWNED_COUNTERS],
    /// The claim of the thread that owns the cells; 0 = up for adoption.
    claim: AtomicU64,
}

impl Cells {
    const fn new(claim: u64) -> Cells {
        Cells { counters: [const { AtomicU64::new(0) }; OWNED_COUNTERS], claim: AtomicU64::new(claim) }
    }
}

/// A thread remembers its cells of so many sets of counters without searching.
const SLOTS: usize = 4;

/// What a slot points to before it is used; never counted in, since no set has the id 0.
static NOBODYS: Cells = Cells::new(0);

struct Local {
    /// The cells of the sets used last, by id modulo [`SLOTS`].
    slots: [Cell<(u64, &'static Cells)>; SLOTS],
    /// This thread's claim to its cells, for all sets; 0 = none made yet.
    claim: Cell<u64>,
}

thread_local! {
    static LOCAL: Local = const {
        Local { slots: [const { Cell::new((0, &NOBODYS)) }; SLOTS], claim: Cell::new(0) }
    };
}

/// A set of counters that threads add to without sharing memory.
#[derive(Debug)]
pub struct OwnedCounters {
    /// Never reused, so that a thread's memory of a dropped set matches no other.
    id: u64,
    cells: Mutex<Vec<&'static Cells>>,
}

#[cfg(not(feature = "shuttle"))]
mod ids {
    //! Plain atomics: ids are drawn outside of what is modelled.
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    pub fn next() -> u64 {
        NEXT.fetch_add(1, Relaxed)
    }
}

#[cfg(feature = "shuttle")]
mod ids {
    //! The model checker's statics live for one execution, so the number comes from a plain cell.
    use std::cell::Cell;
    std::thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(1) };
    }
    pub fn next() -> u64 {
        NEXT.replace(NEXT.get() + 1)
    }
}

/// Cells of dropped sets, for new ones. Not under the model checker, whose atomics live for one execution.
#[cfg(not(feature = "shuttle"))]
static SPARE: Mutex<Vec<&'static Cells>> = Mutex::new(Vec::new());

impl OwnedCounters {
    pub fn new() -> OwnedCounters {
        OwnedCounters { id: ids::next(), cells: Mutex::new(Vec::new()) }
    }

    /// Adds one to a counter. Writes nothing that another thread writes.
    #[inline(always)]
    pub fn count(&self, counter: usize) {
        LOCAL.with(|local| {
            let (id, cells) = local.slots[self.id as usize % SLOTS].get();
            let cells = if id == self.id { cells } else { self.find_cells(local) };
            let cell = &cells.counters[counter];
            // ORDER: only this thread writes the cell; readers want a number, not an order.
            cell.store_owned(cell.load(Relaxed) + 1, Relaxed);
        });
    }

    /// The sum over all threads, exact for whatever happened before the call.
    pub fn sum(&self, counter: usize) -> u64 {
        self.cells.lock().iter().map(|cells| cells.counters[counter].load(Relaxed)).sum()
    }

    /// Finds, adopts or makes the thread's cells.
    #[cold]
    fn find_cells(&self, local: &Local) -> &'static Cells {
        if local.claim.get() == 0 {
            local.claim.set(ids::next());
            exit::release_at_exit(local.claim.get());
        }
        let claim = local.claim.get();
        let mut cells = self.cells.lock();
        let owned = cells.iter().copied().find(|cells| cells.claim.load(Relaxed) == claim);
        // ORDER: Acquire and Release hand over the counts of the thread that ended.
        let adopt = |cells: &&'static Cells| {
            use crate::sync::atomic::Ordering::Acquire;
            cells.claim.compare_exchange(0, claim, Acquire, Relaxed).is_ok()
        };
        let mine = owned.or_else(|| cells.iter().copied().find(adopt)).unwrap_or_else(|| {
            let new = new_cells(claim);
            cells.push(new);
            new
        });
        exit::remember(mine);
        local.slots[self.id as usize % SLOTS].set((self.id, mine));
        mine
    }
}

impl Default for OwnedCounters {
    fn default() -> OwnedCounters {
        OwnedCounters::new()
    }
}

fn new_cells(claim: u64) -> &'static Cells {
    #[cfg(not(feature = "shuttle"))]
    if let Some(cells) = SPARE.lock().pop() {
        for counter in &cells.counters {
            counter.store_owned(0, Relaxed);
        }
        cells.claim.store_owned(claim, Relaxed);
        return cells;
    }
    Box::leak(Box::new(Cells::new(claim)))
}

#[cfg(not(feature = "shuttle"))]
impl Drop for OwnedCounters {
    fn drop(&mut self) {
        SPARE.lock().append(&mut self.cells.lock());
    }
}

#[cfg(not(feature = "shuttle"))]
mod exit {
    //! Gives up a thread's cells when it ends.
    use super::{Cells, Relaxed};
    use crate::sync::atomic::Ordering::Release;
    use std::cell::RefCell;

    struct Owned {
        claim: u64,
        cells: Vec<&'static Cells>,
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            for cells in &self.cells {
                // ORDER: pairs with the Acquire of the adopting thread. Fails if the cells went to another
                // set meanwhile: then they are no longer ours to give.
                let _ = cells.claim.compare_exchange(self.claim, 0, Release, Relaxed);
            }
        }
    }

    std::thread_local! {
        static OWNED: RefCell<Owned> = const { RefCell::new(Owned { claim: 0, cells: Vec::new() }) };
    }

    pub fn release_at_exit(claim: u64) {
        let _ = OWNED.try_with(|owned| owned.borrow_mut().claim = claim);
    }

    pub fn remember(cells: &'static Cells) {
        let _ = OWNED.try_with(|owned| {
            let mut owned = owned.borrow_mut();
            if !owned.cells.iter().any(|known| std::ptr::eq(*known, cells)) {
                owned.cells.push(cells);
            }
        });
    }
}

#[cfg(feature = "shuttle")]
mod exit {
    //! Under the model checker threads end with the execution.
    pub fn release_at_exit(_claim: u64) {}
    pub fn remember(_cells: &'static super::Cells) {}
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::sync::{Arc, thread};

    #[test]
    fn counts_of_ended_threads_stay_in_the_sum_and_their_cells_are_used_again() {
        let counters = Arc::new(OwnedCounters::new());
        for round in 1..=20 {
            let theirs = counters.clone();
            thread::spawn(move || theirs.count(3)).join().unwrap();
            assert_eq!(counters.sum(3), round);
        }
        assert_eq!(counters.cells.lock().len(), 1);
    }

    #[test]
    fn sets_are_counted_apart_even_when_their_ids_share_a_slot() {
        let sets: Vec<OwnedCounters> = (0..SLOTS * 2).map(|_| OwnedCounters::new()).collect();
        for _ in 0..3 {
            for (n, set) in sets.iter().enumerate() {
                set.count(n);
            }
        }
        for (n, set) in sets.iter().enumerate() {
            assert_eq!((set.sum(n), set.sum(14)), (3, 0));
            assert_eq!(set.cells.lock().len(), 1);
        }
    }
}
