//! One heap behind one mutex.
//!
//! The mutex is a direct latch, whatever `latch_implementation` says, and meters itself: the wait array and
//! the meters of other latches allocate.

use crate::Figures;
use crate::range::Range;
use base::sync::{ClassFigures, Met, Mutex, MutexGuard, WAIT_TIMES};
use dlmalloc::Dlmalloc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io;

/// Its name among the classes of latches.
const CLASS: &str = "memory heap";

#[derive(Debug)]
pub struct Heap {
    start: usize,
    len: usize,
    state: Mutex<State>,
}

struct State {
    blocks: Dlmalloc<Range>,
    used: u64,
    waits: Waits,
}

/// What happened at the mutex, counted by its holder.
#[derive(Clone, Copy)]
struct Waits {
    acquisitions: u64,
    contended: u64,
    spins: u64,
    waits: u64,
    waited_ns: u64,
    waited_ns_max: u64,
    times: [u64; WAIT_TIMES],
}

impl Waits {
    const NONE: Waits = Waits {
        acquisitions: 0,
        contended: 0,
        spins: 0,
        waits: 0,
        waited_ns: 0,
        waited_ns_max: 0,
        times: [0; WAIT_TIMES],
    };

    #[cold]
    fn count(&mut self, met: Met) {
        self.contended += 1;
        self.spins += met.spins;
        self.waits += met.waits;
        self.waited_ns += met.nanoseconds;
        self.waited_ns_max = self.waited_ns_max.max(met.nanoseconds);
        self.times[met.place()] += 1;
    }
}

impl Heap {
    /// A heap of at most `len` bytes.
    pub fn reserve(len: usize) -> io::Result<Heap> {
        let range = Range::reserve(len.max(1))?;
        let (start, len) = (range.start(), range.len());
        let blocks = Dlmalloc::new_with_allocator(range);
        Ok(Heap { start, len, state: Mutex::new(State { blocks, used: 0, waits: Waits::NONE }) })
    }

    /// True for a block of this heap.
    pub fn contains(&self, block: *const u8) -> bool {
        block.addr().wrapping_sub(self.start) < self.len
    }

    pub fn figures(&self) -> Figures {
        let state = self.state();
        Figures { used: state.used, mapped: state.blocks.allocator().mapped() as u64 }
    }

    pub fn latch_figures(&self) -> ClassFigures {
        // The latch is free again before anything is allocated.
        let waits = self.state().waits;
        ClassFigures {
            name: CLASS,
            segment: None,
            acquisitions: waits.acquisitions,
            contended: waits.contended,
            spins: waits.spins,
            waits: waits.waits,
            waited_ns: waits.waited_ns,
            waited_ns_max: waits.waited_ns_max,
            times: waits.times.to_vec(),
        }
    }

    /// The holder of this guard must not allocate.
    fn state(&self) -> MutexGuard<'_, State> {
        let (mut state, met) = self.state.lock_quietly();
        state.waits.acquisitions += 1;
        if let Some(met) = met {
            state.waits.count(met);
        }
        state
    }

    /// # Safety
    /// As of [`GlobalAlloc::alloc`].
    #[inline(never)]
    pub unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut state = self.state();
        // SAFETY: the caller asks for a layout with a size, here and below.
        let block = unsafe { state.blocks.malloc(layout.size(), layout.align()) };
        if block.is_null() {
            drop(state);
            // SAFETY: as above.
            return unsafe { System.alloc(layout) };
        }
        state.used += layout.size() as u64;
        block
    }

    /// # Safety
    /// As of [`GlobalAlloc::alloc_zeroed`].
    #[inline(never)]
    pub unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let mut state = self.state();
        // SAFETY: as in `alloc`.
        let block = unsafe { state.blocks.calloc(layout.size(), layout.align()) };
        if block.is_null() {
            drop(state);
            // SAFETY: as in `alloc`.
            return unsafe { System.alloc_zeroed(layout) };
        }
        state.used += layout.size() as u64;
        block
    }

    /// # Safety
    /// As of [`GlobalAlloc::dealloc`]; the block may be the system's.
    #[inline(never)]
    pub unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !self.contains(block) {
            // SAFETY: what is not in the heap's range came from the system.
            return unsafe { System.dealloc(block, layout) };
        }
        let mut state = self.state();
        state.used -= layout.size() as u64;
        // SAFETY: the block is the heap's, has this layout, and the caller is done with it.
        unsafe { state.blocks.free(block, layout.size(), layout.align()) }
    }

    /// # Safety
    /// As of [`GlobalAlloc::realloc`]; the block may be the system's.
    #[inline(never)]
    pub unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.contains(block) {
            // SAFETY: as in `dealloc`.
            return unsafe { System.realloc(block, layout, size) };
        }
        let mut state = self.state();
        // SAFETY: as in `dealloc`; the new size is not zero.
        let moved = unsafe { state.blocks.realloc(block, layout.size(), layout.align(), size) };
        if !moved.is_null() {
            state.used = state.used - layout.size() as u64 + size as u64;
            return moved;
        }
        drop(state);
        // SAFETY: the caller has made sure that the size fits the alignment.
        let moved = unsafe { System.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks hold what is copied, and are apart: one is the heap's, the other is not.
            unsafe { std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size)) };
            // SAFETY: as in `dealloc`.
            unsafe { self.dealloc(block, layout) };
        }
        moved
    }
}

#[cfg(test)]
mod tests;
