//! The frames: page memory, and beside each a header of one cache line.

use crate::arena::{Region, Zeroable};
use crate::page::Page;
use crate::state::FrameState;
use base::PageId;
use base::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::fmt;
use std::io;

/// The number of a frame, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

/// What is known of a frame. One cache line, read by every hit, written by none in the steady state.
///
/// | byte | field   | changed by                                            |
/// |------|---------|-------------------------------------------------------|
/// | 0    | state   | the transitions of `state`                            |
/// | 8    | page id | the loader, while the frame is loading                |
/// | 16   | flags   | latch holders (dirty), writers-out (writing)          |
/// | 20   | heat    | hits set it if it is not set; replacement clears it   |
/// | 21.. | unused  |                                                       |
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Header {
    pub state: FrameState,
    page_id: AtomicU64,
    flags: AtomicU32,
    heat: AtomicU8,
}

#[cfg(not(any(feature = "shuttle", feature = "counting")))]
const _: () = assert!(size_of::<Header>() == 64);

// SAFETY: atomics and padding; all zeroes is a free frame of version 0.
unsafe impl Zeroable for Header {}

impl Header {
    /// The page in the frame. To be trusted only under a latch or a segment mutex, or if the state word
    /// was loaded before and validates afterwards.
    #[inline(always)]
    pub fn page_word(&self) -> u64 {
        self.page_id.load(Relaxed)
    }

    pub fn page_id(&self) -> PageId {
        PageId::from_word(self.page_word())
    }

    /// For the loader, while the frame is loading.
    pub fn set_page_id(&self, id: PageId) {
        self.page_id.store(id.to_word(), Relaxed);
        self.heat.store(0, Relaxed);
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

    /// Marks the page as used. In the steady state the mark is there already and this is one load.
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

/// A frame's place in the lists of its segment's replacement policy. Apart from the header, so that the
/// lists may change beside frames that are being read. Changed under the segment's mutex only.
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

/// Headers and links: what the single-threaded cores work on. Tests make small ones without page memory.
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

    pub fn page(&self, frame: FrameNo) -> Page<'_> {
        Page::new(self.words(frame))
    }

    /// Asks for huge pages of memory under the first `frames` frames. Not beyond, or a small cache would use
    /// more than its budget.
    pub fn use_huge_pages(&self, frames: usize) {
        self.words.use_huge_pages(frames << self.words_log2);
    }

    /// Gives the memory of the frames from `frame` on back to the operating system.
    pub fn release_from(&self, frame: FrameNo) {
        self.words.release_from(frame.index() << self.words_log2);
    }
}

/// One bit a frame: the frames whose page is dirty. The flag in the header is the truth; this finds them.
#[derive(Debug)]
pub struct DirtyMap {
    words: Region<AtomicU64>,
}

impl DirtyMap {
    pub fn new(frames_max: usize) -> io::Result<DirtyMap> {
        Ok(DirtyMap { words: Region::new(frames_max.div_ceil(64))? })
    }

    pub fn insert(&self, frame: FrameNo) {
        self.words[frame.index() / 64].fetch_or(1 << (frame.0 % 64), AcqRel);
    }

    pub fn remove(&self, frame: FrameNo) {
        self.words[frame.index() / 64].fetch_and(!(1 << (frame.0 % 64)), AcqRel);
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
