//! What each thread keeps to itself: its counters, how many latches it holds, whether it has the permit.
//!
//! Read requests are counted at every hit. A counter that threads share would be the very shared write that the
//! optimistic path is there to avoid, so each thread counts in cells of its own, on cache lines of its own,
//! and whoever asks adds them up. Only the owner writes a cell, with a plain store, so that sums are exact.
//!
//! Cells are never freed, for the owner finds them by plain reference; they are given to another thread when
//! theirs ends, and to another cache when theirs is dropped. So there are as many as threads were ever
//! alive at once, for each cache.

use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use base::sync::{Mutex, thread_local};
use std::cell::Cell;

/// Models have fewer, because they make a cache thousands of times.
pub const SEGMENTS_MAX: usize = if cfg!(feature = "shuttle") { 4 } else { 64 };

/// One thread's counters for one cache, by segment.
#[derive(Debug)]
#[repr(align(128))]
pub struct Cells {
    read_requests: [AtomicU64; SEGMENTS_MAX],
    write_requests: [AtomicU64; SEGMENTS_MAX],
    /// The claim of the thread that owns the cells; 0 = up for adoption.
    claim: AtomicU64,
}

impl Cells {
    const fn new(claim: u64) -> Cells {
        Cells {
            read_requests: [const { AtomicU64::new(0) }; SEGMENTS_MAX],
            write_requests: [const { AtomicU64::new(0) }; SEGMENTS_MAX],
            claim: AtomicU64::new(claim),
        }
    }

    #[inline(always)]
    pub fn count_read(&self, segment: usize) {
        add_owned(&self.read_requests[segment % SEGMENTS_MAX]);
    }

    pub fn count_write(&self, segment: usize) {
        add_owned(&self.write_requests[segment % SEGMENTS_MAX]);
    }
}

#[inline(always)]
fn add_owned(cell: &AtomicU64) {
    // ORDER: only this thread writes the cell; readers want a number, not an order.
    cell.store_owned(cell.load(Relaxed) + 1, Relaxed);
}

/// Read and write requests of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    pub reads: u64,
    pub writes: u64,
}

/// So many caches' cells a thread finds without searching: more than there are pools in most databases, and they are numbered in turn.
const SLOTS: usize = 16;

/// What a slot points to before it is used; never counted in, since no cache has the id 0.
static NOBODYS: Cells = Cells::new(0);

struct Local {
    /// The cells of the caches used last, by cache id modulo [`SLOTS`].
    slots: [Cell<(u64, &'static Cells)>; SLOTS],
    latches_held: Cell<u32>,
    /// Pages that it has had read from devices, and opened from images.
    loads: Cell<u64>,
    opened: Cell<u64>,
    /// The cache whose frame permit this thread has; 0 = none.
    permit_of: Cell<u64>,
    /// This thread's claim to its cells, for all caches; 0 = none made yet.
    claim: Cell<u64>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            slots: [const { Cell::new((0, &NOBODYS)) }; SLOTS],
            latches_held: Cell::new(0),
            loads: Cell::new(0),
            opened: Cell::new(0),
            permit_of: Cell::new(0),
            claim: Cell::new(0),
        }
    };
}

pub fn latch_taken() {
    LOCAL.with(|local| local.latches_held.set(local.latches_held.get() + 1));
}

pub fn latch_dropped() {
    LOCAL.with(|local| local.latches_held.set(local.latches_held.get() - 1));
}

pub fn count_load() {
    LOCAL.with(|local| local.loads.set(local.loads.get() + 1));
}

#[inline]
pub fn loads() -> u64 {
    LOCAL.with(|local| local.loads.get())
}

pub fn count_opened() {
    LOCAL.with(|local| local.opened.set(local.opened.get() + 1));
}

#[inline]
pub fn opened() -> u64 {
    LOCAL.with(|local| local.opened.get())
}

/// True if the calling thread holds page latches of any cache.
pub fn holds_latches() -> bool {
    LOCAL.with(|local| local.latches_held.get() > 0)
}

pub fn set_permit(cache: u64) {
    LOCAL.with(|local| local.permit_of.set(cache));
}

pub fn has_permit(cache: u64) -> bool {
    LOCAL.with(|local| local.permit_of.get() == cache)
}

/// All threads' cells of one cache.
#[derive(Debug)]
pub struct Registry {
    /// Never reused, so that a thread's memory of a dropped cache matches no other.
    cache: u64,
    cells: Mutex<Vec<&'static Cells>>,
}

#[cfg(not(feature = "shuttle"))]
mod ids {
    //! Plain atomics: ids are drawn outside of what is modelled.
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static NEXT_CACHE: AtomicU64 = AtomicU64::new(1);
    static NEXT_CLAIM: AtomicU64 = AtomicU64::new(1);
    pub fn next_cache() -> u64 {
        NEXT_CACHE.fetch_add(1, Relaxed)
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
    pub fn next_cache() -> u64 {
        NEXT.replace(NEXT.get() + 1)
    }
    pub fn next_claim() -> u64 {
        next_cache()
    }
}

/// Cells of dropped caches, for new ones. Not under the model checker, whose atomics live for one execution.
#[cfg(not(feature = "shuttle"))]
static SPARE: Mutex<Vec<&'static Cells>> = Mutex::new(Vec::new());

impl Registry {
    pub fn new() -> Registry {
        Registry { cache: ids::next_cache(), cells: Mutex::new(Vec::new()) }
    }

    /// The cache's id, unique in this process.
    pub fn cache(&self) -> u64 {
        self.cache
    }

    /// Runs `use_cells` on the calling thread's cells.
    #[inline(always)]
    pub fn with(&self, use_cells: impl FnOnce(&Cells)) {
        LOCAL.with(|local| {
            let slot = &local.slots[self.cache as usize % SLOTS];
            let (cache, cells) = slot.get();
            use_cells(if cache == self.cache { cells } else { self.find_cells(local) });
        });
    }

    /// Finds, adopts or makes the thread's cells.
    #[cold]
    fn find_cells(&self, local: &Local) -> &'static Cells {
        if local.claim.get() == 0 {
            local.claim.set(ids::next_claim());
            exit::release_at_exit(local.claim.get());
        }
        let claim = local.claim.get();
        if let Some(mine) = exit::recall(self.cache) {
            // Of a cache that shares its slot with another.
            local.slots[self.cache as usize % SLOTS].set((self.cache, mine));
            return mine;
        }
        let mut cells = self.cells.lock();
        let owned = cells.iter().copied().find(|cells| cells.claim.load(Relaxed) == claim);
        // ORDER: Acquire and Release hand over the counts of the thread that ended.
        let adopt = |cells: &&'static Cells| {
            use base::sync::atomic::Ordering::Acquire;
            cells.claim.compare_exchange(0, claim, Acquire, Relaxed).is_ok()
        };
        let mine = owned.or_else(|| cells.iter().copied().find(adopt)).unwrap_or_else(|| {
            let new = new_cells(claim);
            cells.push(new);
            new
        });
        exit::remember(self.cache, mine);
        local.slots[self.cache as usize % SLOTS].set((self.cache, mine));
        mine
    }

    /// The sums over all threads, exact for whatever happened before the call.
    pub fn requests(&self) -> [Requests; SEGMENTS_MAX] {
        let mut sums = [Requests::default(); SEGMENTS_MAX];
        for cells in self.cells.lock().iter() {
            for (segment, sum) in sums.iter_mut().enumerate() {
                sum.reads += cells.read_requests[segment].load(Relaxed);
                sum.writes += cells.write_requests[segment].load(Relaxed);
            }
        }
        sums
    }
}

fn new_cells(claim: u64) -> &'static Cells {
    #[cfg(not(feature = "shuttle"))]
    if let Some(cells) = SPARE.lock().pop() {
        for counter in cells.read_requests.iter().chain(&cells.write_requests) {
            counter.store_owned(0, Relaxed);
        }
        cells.claim.store_owned(claim, Relaxed);
        return cells;
    }
    Box::leak(Box::new(Cells::new(claim)))
}

#[cfg(not(feature = "shuttle"))]
impl Drop for Registry {
    fn drop(&mut self) {
        SPARE.lock().append(&mut self.cells.lock());
    }
}

#[cfg(not(feature = "shuttle"))]
mod exit {
    //! Gives up a thread's cells when it ends.
    use super::{Cells, Relaxed};
    use base::sync::atomic::Ordering::Release;
    use std::cell::RefCell;

    struct Owned {
        claim: u64,
        /// With the cache that they are for.
        cells: Vec<(u64, &'static Cells)>,
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            for (_, cells) in &self.cells {
                // ORDER: pairs with the Acquire of the adopting thread. Fails if the cells went to another
                // cache meanwhile: then they are no longer ours to give.
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

    pub fn remember(cache: u64, cells: &'static Cells) {
        let _ = OWNED.try_with(|owned| {
            let mut owned = owned.borrow_mut();
            // Those of a cache that has been dropped serve another.
            owned.cells.retain(|(_, known)| !std::ptr::eq(*known, cells));
            owned.cells.push((cache, cells));
        });
    }

    /// The thread's cells of a cache, if it has any; without a latch.
    pub fn recall(cache: u64) -> Option<&'static Cells> {
        let find = |owned: &RefCell<Owned>| {
            owned.borrow().cells.iter().find(|(known, _)| *known == cache).map(|(_, cells)| *cells)
        };
        OWNED.try_with(find).ok().flatten()
    }
}

#[cfg(feature = "shuttle")]
mod exit {
    //! Under the model checker threads end with the execution.
    pub fn release_at_exit(_claim: u64) {}
    pub fn remember(_cache: u64, _cells: &'static super::Cells) {}
    pub fn recall(_cache: u64) -> Option<&'static super::Cells> {
        None
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use base::sync::{Arc, thread};

    #[test]
    fn counts_of_ended_threads_stay_in_the_sum_and_their_cells_are_used_again() {
        let registry = Arc::new(Registry::new());
        for round in 1..=20 {
            let theirs = registry.clone();
            thread::spawn(move || theirs.with(|cells| cells.count_read(3))).join().unwrap();
            assert_eq!(registry.requests()[3].reads, round);
        }
        assert_eq!(registry.cells.lock().len(), 1);
    }

    #[test]
    fn caches_are_counted_apart_even_when_their_ids_share_a_slot() {
        let registries: Vec<Registry> = (0..SLOTS * 2).map(|_| Registry::new()).collect();
        for _ in 0..3 {
            for (n, registry) in registries.iter().enumerate() {
                registry.with(|cells| cells.count_write(n));
            }
        }
        for (n, registry) in registries.iter().enumerate() {
            assert_eq!(registry.requests()[n], Requests { reads: 0, writes: 3 });
            assert_eq!(registry.cells.lock().len(), 1);
        }
    }
}
