//! The frames: page memory, and for each frame a header of one cache line.

use crate::hints::{HINT_WORDS, Hints};
use crate::page::Page;
use crate::state::{FrameState, Word};
use base::region::{Region, Zeroable};
use base::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use base::{Lsn, PageId};
use std::fmt;
use std::io;

/// The number of a frame, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FrameNo(pub u32);

impl FrameNo {
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for FrameNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {}", self.0)
    }
}

/// The page differs from the device.
pub const DIRTY: u32 = 1;
/// A copy of the page is on its way to the device. The frame may be latched, changed and dirtied
/// again meanwhile, but not given up: a later read could overtake the write.
pub const WRITING: u32 = 2;

/// What is known of a frame: one cache line, which every hit reads and in the steady state none writes
/// (pagecache R10).
///
/// | byte | field   | changed by                                            |
/// |------|---------|-------------------------------------------------------|
/// | 0    | state   | the transitions of `state`                            |
/// | 8    | page id | the loader, while the frame is loading                |
/// | 16   | flags   | latch holders (dirty), writers-out (writing)          |
/// | 20   | heat    | hits set it if it is not set; replacement clears it   |
/// | 24   | first   | a thread that dirties the page or begins to write it  |
/// | 32   | sent    | the thread that writes the page                       |
/// | 40   | hints   | readers, seldom; the loader                           |
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Header {
    pub state: FrameState,
    page_id: AtomicU64,
    flags: AtomicU32,
    heat: AtomicU8,
    /// Where the log was before the first change whose write has not begun (pagecache R7), as the complement
    /// of the position. 0 = there is none.
    first: AtomicU64,
    /// The same for the changes that are being written, or were when a write failed.
    sent: AtomicU64,
    pub hints: Hints,
}

#[cfg(not(any(feature = "shuttle", feature = "counting")))]
const _: () = assert!(size_of::<Header>() == 64);

// SAFETY: atomics and padding; all zeroes is a free frame of version 0.
unsafe impl Zeroable for Header {}

impl Header {
    /// The page in the frame. To be believed only under a latch or the segment's mutex, or if the state word
    /// was loaded before and validates afterwards (pagecache R3).
    #[inline(always)]
    pub fn page_word(&self) -> u64 {
        self.page_id.load(Relaxed)
    }

    pub fn page_id(&self) -> PageId {
        PageId::from_word(self.page_word())
    }

    /// The frame's state, if the frame has the page and the page may be read without a latch. Then the page
    /// is marked as used.
    #[inline(always)]
    pub fn readable(&self, id: PageId) -> Option<Word> {
        let word = self.state.load();
        if self.page_word() != id.to_word() || !word.is_readable() {
            return None;
        }
        self.touch();
        Some(word)
    }

    /// For the loader, while the frame is loading.
    pub fn set_page_id(&self, id: PageId) {
        self.page_id.store(id.to_word(), Relaxed);
        self.heat.store(0, Relaxed);
        self.hints.store([0; HINT_WORDS]);
    }

    pub fn flags(&self) -> u32 {
        // ORDER: Acquire pairs with `clear_flags`: a frame seen clean has its page on the device.
        self.flags.load(Acquire)
    }

    /// Sets flags and gives the old ones.
    pub fn set_flags(&self, flags: u32) -> u32 {
        self.flags.fetch_or(flags, AcqRel)
    }

    /// Clears flags and gives the old ones.
    pub fn clear_flags(&self, flags: u32) -> u32 {
        self.flags.fetch_and(!flags, AcqRel)
    }

    /// The page becomes dirty; the log is at `position` or beyond.
    pub fn note_change(&self, position: Lsn) {
        // ORDER: Release by the mark in the dirty map, which comes after it.
        self.first.fetch_max(!position.0, Relaxed);
    }

    /// Under a latch: the changes so far are about to be written.
    pub fn send_changes(&self) {
        // In this order: a thread that looks for the oldest change reads `first` first, and so finds it in
        // one of the two (pagecache R7).
        self.sent.store(self.first.load(Relaxed), Release);
        self.first.store(0, Release);
    }

    /// The changes that were being written are not on the device after all.
    pub fn take_changes_back(&self) {
        self.first.fetch_max(self.sent.load(Relaxed), Release);
    }

    /// The changes that were being written have been written.
    pub fn forget_sent(&self) {
        self.sent.store(0, Release);
    }

    /// Under the exclusive latch, while nothing is being written: no change has to be written any more.
    pub fn forget_changes(&self) {
        self.first.store(0, Relaxed);
        self.sent.store(0, Relaxed);
    }

    /// Where the log was before the oldest change that the device may not have.
    pub fn oldest_change(&self) -> Option<Lsn> {
        let first = self.first.load(Acquire);
        let oldest = first.max(self.sent.load(Acquire));
        (oldest != 0).then_some(Lsn(!oldest))
    }

    /// Marks the page as used. In the steady state the mark is there already, and this is one load (pagecache
    /// R10).
    #[inline(always)]
    pub fn touch(&self) {
        // ORDER: heat is a hint; a lost update costs at most an early eviction.
        if self.heat.load(Relaxed) == 0 {
            self.heat.store(1, Relaxed);
        }
    }

    pub fn is_hot(&self) -> bool {
        self.heat.load(Relaxed) != 0
    }

    pub fn cool(&self) {
        self.heat.store(0, Relaxed);
    }
}

/// Where a frame stands in the lists of its segment's replacement policy. Apart from the header, so that
/// changes of the lists do not disturb readers of the frame. Changed under the segment's mutex only
/// (pagecache R4).
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub struct Link {
    pub prev: AtomicU32,
    pub next: AtomicU32,
    /// Which list, as the policy numbers them.
    pub list: AtomicU32,
    /// Hits until a new page may become hot (midpoint insertion).
    pub hits_left: AtomicU32,
    /// The policy's clock when the page was last hit (midpoint insertion).
    pub last_hit: AtomicU64,
}

// SAFETY: atomics and padding; the policy initialises a link when it inserts the frame.
unsafe impl Zeroable for Link {}

/// Headers and links: what the single-threaded cores work on. Tests make small ones, without page memory.
#[derive(Debug)]
pub struct Frames {
    headers: Region<Header>,
    links: Region<Link>,
}

impl Frames {
    pub fn new(frames_max: usize) -> io::Result<Frames> {
        Ok(Frames { headers: Region::new(frames_max)?, links: Region::new(frames_max)? })
    }

    pub fn frames_max(&self) -> usize {
        self.headers.len()
    }

    /// See [`PageMemory::use_huge_pages`].
    pub fn use_huge_pages(&self, frames: usize) {
        self.headers.use_huge_pages(frames);
        self.links.use_huge_pages(frames);
    }

    #[inline(always)]
    pub fn header(&self, frame: FrameNo) -> &Header {
        &self.headers[frame.index()]
    }

    #[inline(always)]
    pub fn link(&self, frame: FrameNo) -> &Link {
        &self.links[frame.index()]
    }
}

/// The memory of the pages.
#[derive(Debug)]
pub struct PageMemory {
    words: Region<AtomicU64>,
    words_log2: u32,
}

impl PageMemory {
    /// Room for `frames_max` pages of `page_size` bytes, a power of two.
    pub fn new(frames_max: usize, page_size: usize) -> io::Result<PageMemory> {
        assert!(page_size.is_power_of_two() && page_size >= 64);
        let words_log2 = (page_size / 8).trailing_zeros();
        Ok(PageMemory { words: Region::new(frames_max << words_log2)?, words_log2 })
    }

    /// The words of one page; their number is a power of two.
    #[inline(always)]
    pub fn words(&self, frame: FrameNo) -> &[AtomicU64] {
        self.words.block(frame.0, self.words_log2)
    }

    #[inline(always)]
    pub fn page(&self, frame: FrameNo) -> Page<'_> {
        Page::new(self.words(frame))
    }

    /// Asks for huge pages of memory under the first `frames` frames. Beyond them a small pool would use more
    /// memory than its budget.
    pub fn use_huge_pages(&self, frames: usize) {
        self.words.use_huge_pages(frames << self.words_log2);
    }

    /// Gives the memory of the frames from `frame` on back to the operating system.
    pub fn release_from(&self, frame: FrameNo) {
        self.words.release_from(frame.index() << self.words_log2);
    }
}

/// One bit for each frame: the frames whose page is dirty, or being written. Set and cleared with the flag in
/// the header, under the same latch, so that a look here misses no dirty page (pagecache R7).
#[derive(Debug)]
pub struct DirtyMap {
    words: Region<AtomicU64>,
}

impl DirtyMap {
    pub fn new(frames_max: usize) -> io::Result<DirtyMap> {
        Ok(DirtyMap { words: Region::new(frames_max.div_ceil(64))? })
    }

    pub fn insert(&self, frame: FrameNo) {
        // ORDER: Release, so that a thread that finds the frame here sees what was noted in its header.
        // Acquire is for symmetry with `iter`.
        self.words[frame.index() / 64].fetch_or(1 << (frame.0 % 64), AcqRel);
    }

    pub fn remove(&self, frame: FrameNo) {
        self.words[frame.index() / 64].fetch_and(!(1 << (frame.0 % 64)), AcqRel);
    }

    /// The marked frames below `frames`: first those from about `frame` on, then those before it.
    pub fn iter_from(&self, frame: FrameNo, frames: usize) -> impl Iterator<Item = FrameNo> + '_ {
        let first = frame.index() / 64 * 64;
        let is_behind = move |other: &FrameNo| other.index() >= first;
        self.iter(frames).filter(is_behind).chain(self.iter(first))
    }

    /// The marked frames below `frames`, ascending.
    pub fn iter(&self, frames: usize) -> impl Iterator<Item = FrameNo> + '_ {
        (0..frames.div_ceil(64)).flat_map(move |index| {
            let mut bits = self.words[index].load(Acquire);
            std::iter::from_fn(move || {
                if bits == 0 {
                    return None;
                }
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                Some(FrameNo(index as u32 * 64 + bit))
            })
        })
    }
}
