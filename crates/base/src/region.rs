//! Memory that readers look at without a latch: address space reserved once, touched as needed.
//!
//! A [`Region`] is an array of atomics (or of structures of atomics) that never moves, so that readers may
//! look at it while the cache that it belongs to is resized. Its length is the largest that the cache can
//! grow to. Only the part in use costs memory, and a cache that shrinks gives the rest back.
//!
//! Under the model checker and the interpreter there are no mappings: the array is an ordinary box.

#[cfg(not(any(feature = "shuttle", miri)))]
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
#[cfg(not(any(feature = "shuttle", miri)))]
use std::ffi::c_void;
use std::io;
use std::ops::{Deref, Range};

/// Huge pages are 2 MiB on x86-64 and on most Arm kernels.
#[cfg(not(any(feature = "shuttle", miri)))]
const HUGE_PAGE: usize = 2 << 20;

/// Types that are valid as all zeroes and that are shared through `&` only.
///
/// # Safety
/// The type consists of atomics of [`crate::sync::atomic`] (which are transparent over those of std) and
/// padding, so that zeroed memory is a valid value and needs no drop.
pub unsafe trait Zeroable: Default + Sync + Send {}

// SAFETY: an atomic integer is valid as zero.
unsafe impl Zeroable for crate::sync::atomic::AtomicU64 {}
// SAFETY: as above.
unsafe impl Zeroable for crate::sync::atomic::AtomicU32 {}

/// Address space of the process, of its own, zero where nothing has been stored.
#[cfg(not(any(feature = "shuttle", miri)))]
#[derive(Debug)]
struct Mapping {
    start: *mut c_void,
    /// Not rounded: the operating system maps up to the end of the last page.
    bytes: usize,
}

#[cfg(not(any(feature = "shuttle", miri)))]
impl Mapping {
    /// Nothing is committed: see [`Region::new`].
    fn new(bytes: usize) -> io::Result<Mapping> {
        let (rights, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: without an address asked for, no mapping that is there is replaced.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, rights, kind)? };
        Ok(Mapping { start, bytes })
    }
}

#[cfg(not(any(feature = "shuttle", miri)))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and whoever borrowed from it has gone.
        let unmapped = unsafe { munmap(self.start, self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// An array of `T` that stays where it is.
#[derive(Debug)]
pub struct Region<T> {
    #[cfg(not(any(feature = "shuttle", miri)))]
    map: Mapping,
    /// Bytes from the start of the mapping to the first element, to begin on a huge page.
    #[cfg(not(any(feature = "shuttle", miri)))]
    skip: usize,
    #[cfg(not(any(feature = "shuttle", miri)))]
    first: *const T,
    #[cfg(any(feature = "shuttle", miri))]
    items: Box<[T]>,
    #[cfg(not(any(feature = "shuttle", miri)))]
    len: usize,
}

// SAFETY: the pointer is into the mapping that the region owns, and `T: Zeroable` may be shared and sent.
#[cfg(not(any(feature = "shuttle", miri)))]
unsafe impl<T: Zeroable> Send for Region<T> {}
// SAFETY: as above; all access is through `&T`.
#[cfg(not(any(feature = "shuttle", miri)))]
unsafe impl<T: Zeroable> Sync for Region<T> {}

#[cfg(not(any(feature = "shuttle", miri)))]
impl<T: Zeroable> Region<T> {
    /// Reserves `len` elements, all zero. Nothing is committed: the memory of an element is taken
    /// when it is first stored to. Fails when the operating system refuses the address space.
    pub fn new(len: usize) -> io::Result<Region<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let huge = bytes >= HUGE_PAGE;
        let slack = if huge { HUGE_PAGE } else { 0 };
        let map = Mapping::new(bytes.max(1).checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?)?;
        let start = map.start.cast::<u8>();
        let skip = if huge { start.align_offset(HUGE_PAGE) } else { 0 };
        assert!(skip <= slack && align_of::<T>() <= 4096);
        // SAFETY: `skip <= slack` bytes lie inside the mapping, whose length is `bytes + slack`.
        let first = unsafe { start.add(skip) }.cast_const().cast::<T>();
        Ok(Region { map, skip, first, len })
    }

    /// Asks for huge pages under the first `count` elements, as far as these fill whole huge pages. It is a
    /// hint: without huge pages the processor's address translation misses more often, and nothing else
    /// changes.
    pub fn use_huge_pages(&self, count: usize) {
        let whole = count.min(self.len) * size_of::<T>() / HUGE_PAGE * HUGE_PAGE;
        if whole > 0 {
            // SAFETY: the bytes lie inside the mapping, since `whole` is at most what the elements take. The
            // advice changes nothing that can be read.
            let _ = unsafe { madvise(self.map.start.byte_add(self.skip), whole, Advice::LinuxHugepage) };
        }
    }

    /// Gives the memory of the elements from `from` on back to the operating system (as far as
    /// whole pages of memory lie there); they are zero afterwards.
    pub fn release_from(&self, from: usize) {
        self.release(from..self.len);
    }

    /// As [`Region::release_from`], of the elements in `range`. Panics if they are beyond the end.
    pub fn release(&self, range: Range<usize>) {
        assert!(range.end <= self.len);
        let page = rustix::param::page_size();
        let bytes = releasable(self.skip, range, self.len, size_of::<T>(), page);
        if !bytes.is_empty() {
            // SAFETY: whole pages inside the mapping, in which lie elements of the range and the rest of the
            // last page of all. The elements are atomics. The caller makes sure that no thread relies on the
            // values in the range, and a racing reader sees either the old value or zero.
            let _ =
                unsafe { madvise(self.map.start.byte_add(bytes.start), bytes.len(), Advice::LinuxDontNeed) };
        }
    }
}

/// The bytes of a mapping that can be given back without a byte outside of the elements in `range`: whole
/// pages of the operating system. The mapping begins on a page; `skip` bytes behind that lie `len` elements
/// of `item_bytes`, and behind them nothing.
#[cfg(not(feature = "shuttle"))]
#[cfg_attr(miri, allow(dead_code, reason = "there only its test calls it"))]
fn releasable(skip: usize, range: Range<usize>, len: usize, item_bytes: usize, page: usize) -> Range<usize> {
    let start = (skip + range.start * item_bytes).next_multiple_of(page);
    let end = skip + range.end * item_bytes;
    // The last piece of memory may be shared with what lies behind the range.
    let end = if range.end == len { end.next_multiple_of(page) } else { end / page * page };
    if range.is_empty() { 0..0 } else { start..end.max(start) }
}

#[cfg(not(any(feature = "shuttle", miri)))]
impl<T: Zeroable> Deref for Region<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `first` points to `len` elements inside the mapping, which lives as long as `self`; it is
        // aligned to a memory page or more; zeroed memory is a valid `T`; nobody makes a `&mut` to it.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

#[cfg(not(any(feature = "shuttle", miri)))]
impl<T: Zeroable> Region<T> {
    /// The `number`th block of `1 << len_log2` elements. Panics beyond the end.
    #[inline(always)]
    pub fn block(&self, number: u32, len_log2: u32) -> &[T] {
        // A number of 32 bits shifted by less than 32 does not overflow.
        let len_log2 = len_log2 % 32;
        let start = (number as usize) << len_log2;
        let len = 1 << len_log2;
        assert!(start + len <= self.len);
        // SAFETY: the block lies inside the region, as just asserted. For the rest see `deref`.
        unsafe { std::slice::from_raw_parts(self.first.add(start), len) }
    }
}

#[cfg(any(feature = "shuttle", miri))]
impl<T: Zeroable> Region<T> {
    pub fn block(&self, number: u32, len_log2: u32) -> &[T] {
        &self.items[(number as usize) << len_log2..(number as usize + 1) << len_log2]
    }

    pub fn new(len: usize) -> io::Result<Region<T>> {
        Ok(Region { items: (0..len).map(|_| T::default()).collect() })
    }

    pub fn use_huge_pages(&self, _count: usize) {}

    pub fn release_from(&self, _from: usize) {}

    pub fn release(&self, _range: Range<usize>) {}
}

#[cfg(any(feature = "shuttle", miri))]
impl<T: Zeroable> Deref for Region<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.items
    }
}

/// Asks the processor to fetch the cache line of `place` for reading.
#[inline(always)]
pub fn prefetch_line<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it neither faults nor changes anything, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn a_large_region_costs_nothing_until_touched_and_is_zero_again_when_released() {
        let region = Region::<AtomicU64>::new(if cfg!(miri) { 4096 } else { 1 << 32 }).unwrap();
        let last = region.len() - 1;
        assert_eq!(region[last].load(Relaxed), 0);
        region[last].store(7, Relaxed);
        region[1].store(8, Relaxed);
        region[1025].store(9, Relaxed);
        region.release_from(2 << 10);
        assert_eq!((region[1].load(Relaxed), region[1025].load(Relaxed)), (8, 9));
        assert!(cfg!(miri) || region[last].load(Relaxed) == 0);
        region.release(0..1 << 10);
        assert_eq!(region[1025].load(Relaxed), 9);
        assert!(cfg!(miri) || region[1].load(Relaxed) == 0);
    }
    #[test]
    fn what_is_released_lies_inside_what_was_asked_for_whatever_the_systems_page() {
        let mut random = crate::random::Random::new(1, 0);
        for page in [4 << 10, 16 << 10, 64 << 10] {
            for item_bytes in [4usize, 8, 64, 1 << 10, 16 << 10, 64 << 10] {
                for _ in 0..200 {
                    let len = 1 + random.below(1_000) as usize;
                    let start = random.below(len as u32 + 1) as usize;
                    let end = start + random.below((len - start) as u32 + 1) as usize;
                    // A mapping begins on a page, and the first element there or on a huge page.
                    let skip = page * random.below(4) as usize;
                    let asked = skip + start * item_bytes..skip + end * item_bytes;
                    let given = releasable(skip, start..end, len, item_bytes, page);
                    let what = format!("{given:?} of {asked:?}, of {len} in pages of {page}");
                    assert!(given.start.is_multiple_of(page) && given.end.is_multiple_of(page), "{what}");
                    if !given.is_empty() {
                        assert!(given.start >= asked.start, "{what}");
                        // Behind the last element there is nothing, up to the end of its page.
                        let allowed = if end == len { asked.end.next_multiple_of(page) } else { asked.end };
                        assert!(given.end <= allowed, "{what}");
                    }
                    assert!(asked.len() < given.len() + 2 * page, "{what}");
                }
            }
        }
    }
}
