//! Counters of each thread's own, for what happens too often to be counted in shared memory.
//!
//! All threads write a counter that they share, and its cache line moves between cores. So each thread counts
//! in cells of its own, on cache lines of its own, and a reader adds the cells up. Only the owner writes a
//! cell, with a plain store, so that sums are exact.
//!
//! Cells are never freed, because their owner finds them by plain reference. When a thread ends, its cells go
//! to another thread; when a set of counters is dropped, its cells go to other counters. So each set has at
//! most as many cells as threads were ever alive at once.

use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Mutex, thread_local};
use std::cell::Cell;
use std::marker::PhantomData;

/// Counters in a line: two lines of the processor's cache, which fetches them in pairs.
const LINE: usize = 16;

#[derive(Debug)]
#[repr(align(128))]
struct Line([AtomicU64; LINE]);

/// One thread's counters of one set.
#[derive(Debug)]
struct Cells {
    /// The claim of the thread that owns the cells; 0 = up for adoption.
    claim: AtomicU64,
    lines: &'static [Line],
}

impl Cells {
    fn new(lines: usize) -> &'static Cells {
        let lines = (0..lines).map(|_| Line([const { AtomicU64::new(0) }; LINE])).collect();
        Box::leak(Box::new(Cells { claim: AtomicU64::new(0), lines: Vec::leak(lines) }))
    }

    fn counter(&self, counter: usize) -> &AtomicU64 {
        &self.lines[counter / LINE].0[counter % LINE]
    }
}

/// For this many sets of counters a thread finds its cells without searching. Most programs have fewer, and
/// sets are numbered in turn.
const SLOTS: usize = 16;

/// What an unused slot points to. Nothing is counted there, because no set has the id 0.
static NOBODYS: [Line; 0] = [];

struct Local {
    /// The cells of the sets used last, by id modulo [`SLOTS`].
    slots: [Cell<(u64, &'static [Line])>; SLOTS],
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
    /// Never used again, so that what a thread remembers of a dropped set matches no other set.
    id: u64,
    lines: usize,
    cells: Mutex<Vec<&'static Cells>>,
}

#[cfg(not(feature = "shuttle"))]
mod ids {
    //! Plain atomics: ids are drawn outside of what is modelled.
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static NEXT_SET: AtomicU64 = AtomicU64::new(1);
    static NEXT_CLAIM: AtomicU64 = AtomicU64::new(1);
    pub fn next_set() -> u64 {
        NEXT_SET.fetch_add(1, Relaxed)
    }
    pub fn next_claim() -> u64 {
        NEXT_CLAIM.fetch_add(1, Relaxed)
    }
}

#[cfg(feature = "shuttle")]
mod ids {
    //! The model checker's statics live for one execution, so the number comes from a plain cell.
    use std::cell::Cell;
    std::thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(1) };
    }
    pub fn next_set() -> u64 {
        NEXT.replace(NEXT.get() + 1)
    }
    pub fn next_claim() -> u64 {
        next_set()
    }
}

/// Cells of dropped sets, for new ones. Not under the model checker, whose atomics live for one execution.
#[cfg(not(feature = "shuttle"))]
static SPARE: Mutex<Vec<&'static Cells>> = Mutex::new(Vec::new());

impl OwnedCounters {
    /// So many counters, all zero.
    pub fn new(counters: usize) -> OwnedCounters {
        OwnedCounters { id: ids::next_set(), lines: counters.div_ceil(LINE), cells: Mutex::new(Vec::new()) }
    }

    /// A number that no other set in this process has, and that grows from set to set.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Adds one to a counter. Writes nothing that another thread writes.
    #[inline(always)]
    pub fn count(&self, counter: usize) {
        self.mine().count(counter);
    }

    /// The calling thread's counters of this set, for code that counts often.
    #[inline(always)]
    pub fn mine(&self) -> ThreadCounters<'_> {
        LOCAL.with(|local| {
            let (id, lines) = local.slots[self.id as usize % SLOTS].get();
            let lines = if id == self.id { lines } else { self.find_cells(local) };
            ThreadCounters { lines, set: PhantomData, not_send: PhantomData }
        })
    }

    /// The sum over all threads, exact for whatever happened before the call.
    pub fn sum(&self, counter: usize) -> u64 {
        self.cells.lock().iter().map(|cells| cells.counter(counter).load(Relaxed)).sum()
    }

    /// Finds, adopts or makes the thread's cells.
    #[cold]
    fn find_cells(&self, local: &Local) -> &'static [Line] {
        if local.claim.get() == 0 {
            local.claim.set(ids::next_claim());
            exit::release_at_exit(local.claim.get());
        }
        let mine = exit::recall(self.id).unwrap_or_else(|| self.adopt_cells(local.claim.get()));
        // Another set's may have been in the slot.
        local.slots[self.id as usize % SLOTS].set((self.id, mine.lines));
        mine.lines
    }

    fn adopt_cells(&self, claim: u64) -> &'static Cells {
        let mut cells = self.cells.lock();
        let owned = cells.iter().copied().find(|cells| cells.claim.load(Relaxed) == claim);
        // ORDER: Acquire and Release hand over the counts of the thread that ended.
        let adopt = |cells: &&'static Cells| {
            use crate::sync::atomic::Ordering::Acquire;
            cells.claim.compare_exchange(0, claim, Acquire, Relaxed).is_ok()
        };
        let mine = owned.or_else(|| cells.iter().copied().find(adopt)).unwrap_or_else(|| {
            let new = self.new_cells();
            new.claim.store_owned(claim, Relaxed);
            cells.push(new);
            new
        });
        exit::remember(self.id, mine);
        mine
    }

    fn new_cells(&self) -> &'static Cells {
        #[cfg(not(feature = "shuttle"))]
        {
            let mut spare = SPARE.lock();
            if let Some(place) = spare.iter().position(|cells| cells.lines.len() == self.lines) {
                let cells = spare.swap_remove(place);
                let counters = cells.lines.iter().flat_map(|line| &line.0);
                counters.for_each(|counter| counter.store_owned(0, Relaxed));
                return cells;
            }
        }
        Cells::new(self.lines)
    }
}

/// See [`OwnedCounters::mine`].
#[derive(Clone, Copy, Debug)]
pub struct ThreadCounters<'s> {
    lines: &'static [Line],
    /// When the set is dropped the cells go to another.
    set: PhantomData<&'s OwnedCounters>,
    /// Only their thread writes the cells.
    not_send: PhantomData<*const ()>,
}

impl ThreadCounters<'_> {
    /// As [`OwnedCounters::count`].
    #[inline(always)]
    pub fn count(&self, counter: usize) {
        let cell = &self.lines[counter / LINE].0[counter % LINE];
        // ORDER: only this thread writes the cell; readers need the number and no order.
        cell.store_owned(cell.load(Relaxed) + 1, Relaxed);
    }
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
        /// With the set that they are of.
        cells: Vec<(u64, &'static Cells)>,
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            for (_, cells) in &self.cells {
                // ORDER: pairs with the Acquire of the adopting thread. Fails if the cells went to another
                // set meanwhile. Then this thread no longer owns them.
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

    pub fn remember(set: u64, cells: &'static Cells) {
        let _ = OWNED.try_with(|owned| {
            let mut owned = owned.borrow_mut();
            // Those of a set that has been dropped serve another.
            owned.cells.retain(|(_, known)| !std::ptr::eq(*known, cells));
            owned.cells.push((set, cells));
        });
    }

    /// The thread's cells of a set, if it has any; without a latch.
    pub fn recall(set: u64) -> Option<&'static Cells> {
        let find = |owned: &RefCell<Owned>| {
            owned.borrow().cells.iter().find(|(known, _)| *known == set).map(|(_, cells)| *cells)
        };
        OWNED.try_with(find).ok().flatten()
    }
}

#[cfg(feature = "shuttle")]
mod exit {
    //! Under the model checker threads end with the execution.
    pub fn release_at_exit(_claim: u64) {}
    pub fn remember(_set: u64, _cells: &'static super::Cells) {}
    pub fn recall(_set: u64) -> Option<&'static super::Cells> {
        None
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::sync::{Arc, thread};

    #[test]
    fn counts_of_ended_threads_stay_in_the_sum_and_their_cells_are_used_again() {
        let counters = Arc::new(OwnedCounters::new(20));
        for round in 1..=20 {
            let theirs = counters.clone();
            thread::spawn(move || theirs.count(19)).join().unwrap();
            assert_eq!(counters.sum(19), round);
        }
        assert_eq!(counters.cells.lock().len(), 1);
    }

    #[test]
    fn sets_are_counted_apart_even_when_their_ids_share_a_slot() {
        for counters in [1, 2 * LINE] {
            // The second time with the cells of the first, as far as their lengths are the same.
            for _ in 0..2 {
                let sets: Vec<OwnedCounters> = (0..SLOTS * 2).map(|_| OwnedCounters::new(counters)).collect();
                for _ in 0..3 {
                    sets.iter().for_each(|set| set.count(counters - 1));
                }
                for set in &sets {
                    assert_eq!(
                        (set.sum(counters - 1), set.sum((counters - 1) / 2)),
                        (3, if counters == 1 { 3 } else { 0 })
                    );
                    assert_eq!(set.cells.lock().len(), 1);
                }
            }
        }
    }
}
