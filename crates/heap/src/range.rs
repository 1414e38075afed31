//! A range of addresses that is reserved at once and taken into use in steps.

use std::cell::Cell;
use std::io;

/// The least number of bytes that are taken from the operating system at a time.
const STEP: usize = 1 << 20;

/// Where the heap's memory comes from. Nothing goes back to the system, because what is freed is used again.
#[derive(Debug)]
pub struct Range {
    start: *mut u8,
    len: usize,
    /// Bytes in use, from the start.
    mapped: Cell<usize>,
}

// SAFETY: the range belongs to this value alone, whichever thread has it.
unsafe impl Send for Range {}

impl Range {
    /// Reserves addresses, rounded up to whole steps; no memory yet.
    pub fn reserve(len: usize) -> io::Result<Range> {
        let len = len.checked_next_multiple_of(STEP).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Range { start: reserve(len)?, len, mapped: Cell::new(0) })
    }

    pub fn start(&self) -> usize {
        self.start.addr()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn mapped(&self) -> usize {
        self.mapped.get()
    }

    /// The next `size` bytes, rounded up to whole steps: where they begin and how many.
    fn grow(&self, size: usize) -> Option<(*mut u8, usize)> {
        let size = size.checked_next_multiple_of(STEP)?;
        if size > self.len - self.mapped.get() {
            return None;
        }
        let begin = self.start.wrapping_add(self.mapped.get());
        make_usable(begin, size)?;
        self.mapped.set(self.mapped.get() + size);
        Some((begin, size))
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        give_back(self.start, self.len);
    }
}

// SAFETY: each byte of the range is given out once, usable and zero; none is taken back, moved or shared.
unsafe impl dlmalloc::Allocator for Range {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        match self.grow(size) {
            Some((begin, size)) => (begin, size, 0),
            None => (std::ptr::null_mut(), 0, 0),
        }
    }

    fn remap(&self, _block: *mut u8, _from: usize, _to: usize, _can_move: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _block: *mut u8, _from: usize, _to: usize) -> bool {
        false
    }

    fn free(&self, _block: *mut u8, _size: usize) -> bool {
        false
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }
}

#[cfg(not(miri))]
fn reserve(len: usize) -> io::Result<*mut u8> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping, wherever the kernel has room, which overlays none.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::empty(), flags)? };
    Ok(start.cast())
}

#[cfg(not(miri))]
fn make_usable(begin: *mut u8, size: usize) -> Option<()> {
    use rustix::mm::{MprotectFlags, mprotect};
    // SAFETY: the bytes are inside the range's own mapping, and not in use yet.
    unsafe { mprotect(begin.cast(), size, MprotectFlags::READ | MprotectFlags::WRITE).ok() }
}

#[cfg(not(miri))]
fn give_back(start: *mut u8, len: usize) {
    // SAFETY: the range's own mapping, whose blocks are gone with the heap. Fails for nothing that could be
    // mended.
    let _ = unsafe { rustix::mm::munmap(start.cast(), len) };
}

/// The interpreter has no mappings without access. There all of the range is memory from the start.
#[cfg(miri)]
fn reserve(len: usize) -> io::Result<*mut u8> {
    use std::alloc::{GlobalAlloc, Layout, System};
    let layout = Layout::from_size_align(len, STEP).map_err(io::Error::other)?;
    // SAFETY: the length is not zero: a multiple of a step that holds at least one.
    Ok(unsafe { System.alloc_zeroed(layout) })
}

#[cfg(miri)]
fn make_usable(_begin: *mut u8, _size: usize) -> Option<()> {
    Some(())
}

#[cfg(miri)]
fn give_back(start: *mut u8, len: usize) {
    use std::alloc::{GlobalAlloc, Layout, System};
    // SAFETY: as it was allocated by `reserve`.
    unsafe { System.dealloc(start, Layout::from_size_align_unchecked(len, STEP)) }
}
