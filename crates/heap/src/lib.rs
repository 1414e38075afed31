//! The process's allocator: the system's, or one heap behind one mutex, as InnoDB's own memory heap was.
//!
//! A binary installs [`Allocator`] and is served by the system until it calls [`share`], which is for the
//! first lines of `main`. From then on all memory comes out of one range of addresses, so that the address of
//! a block says where it came from when it is freed. When the range is full, the system serves requests.
//!
//! [`settle`] does both things that a program can be told about its memory: another allocator instead of the
//! system's, and this heap.
//!
//! The heap is here so that others can be compared with it: `use_sys_malloc=OFF`. What threads lose at its
//! mutex shows among the latches, as the class `memory heap`.

mod heap;
mod library;
mod range;

pub use library::{Missing, missing_library, settle};

use heap::Heap;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// The heap, once it is shared. Not an atomic of `base::sync`, because those may be a model's.
static SHARED: AtomicPtr<Heap> = AtomicPtr::new(std::ptr::null_mut());

/// For `#[global_allocator]`. While it is not shared, it costs a load and a comparison more than the system's
/// allocator.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

/// The contents of the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Bytes that were asked for and not given back.
    pub used: u64,
    /// Bytes that were taken from the operating system.
    pub mapped: u64,
}

/// Why there is no shared heap.
#[derive(Debug)]
#[non_exhaustive]
pub enum ShareError {
    /// The address space cannot be had.
    Reserve(std::io::Error),
    /// The program was built with another allocator.
    NotInstalled,
}

impl std::fmt::Display for ShareError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ShareError::Reserve(error) => {
                write!(f, "cannot reserve address space for the memory heap: {error}")
            }
            ShareError::NotInstalled => f.write_str("this program was built with an allocator of its own"),
        }
    }
}

impl std::error::Error for ShareError {}

/// Serves everything from one heap from now on, of at most as many bytes as the process may use. A second
/// call changes nothing.
///
/// # Errors
/// [`ShareError`]; the system goes on serving.
pub fn share() -> Result<(), ShareError> {
    if shared().is_some() {
        return Ok(());
    }
    let heap = Box::new(Heap::reserve(base::machine::room_bytes()).map_err(ShareError::Reserve)?);
    let heap: &'static Heap = Box::leak(heap);
    let place = std::ptr::from_ref(heap).cast_mut();
    // ORDER: Release with `shared`: a thread that finds the heap finds it whole. Relaxed on failure: the
    // thread that lost uses the other heap, which is as good.
    if SHARED.compare_exchange(std::ptr::null_mut(), place, Release, Relaxed).is_err() {
        return Ok(());
    }
    let probe = std::hint::black_box(Box::new(0u8));
    if !heap.contains(&*probe) {
        // ORDER: Relaxed: the number is not used to allocate.
        SHARED.store(std::ptr::null_mut(), Relaxed);
        return Err(ShareError::NotInstalled);
    }
    base::sync::add_class(|| shared().map(Heap::latch_figures));
    Ok(())
}

/// What the shared heap holds; nothing while there is none.
pub fn figures() -> Figures {
    shared().map(Heap::figures).unwrap_or_default()
}

/// Bytes of memory that the process takes up; 0 where it cannot be told.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

#[inline(always)]
fn shared() -> Option<&'static Heap> {
    // ORDER: Acquire with `share`; on x86-64 it is a plain load.
    let heap = SHARED.load(Acquire);
    // SAFETY: null, or a box that was leaked.
    unsafe { heap.as_ref() }
}

// SAFETY: blocks come from the system's allocator or from the heap, and go back to the one whose range of
// addresses they are in.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on, here and below.
        unsafe {
            match shared() {
                None => System.alloc(layout),
                Some(heap) => heap.alloc(layout),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe {
            match shared() {
                None => System.dealloc(block, layout),
                Some(heap) => heap.dealloc(block, layout),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            match shared() {
                None => System.alloc_zeroed(layout),
                Some(heap) => heap.alloc_zeroed(layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            match shared() {
                None => System.realloc(block, layout, size),
                Some(heap) => heap.realloc(block, layout, size),
            }
        }
    }
}
