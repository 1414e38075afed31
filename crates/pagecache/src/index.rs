//! The index leads from a page to the frame that holds it.
//!
//! It has two parts. A *shortcut* is the frame number of a page, four bytes, beside those of its neighbours:
//! a line of the processor's cache has the shortcuts of sixteen pages, so the shortcuts that are read often
//! stay in that cache. A shortcut may name the frame of another page. Then the page is looked up in its
//! *bucket*.
//!
//! Each segment owns a slice of buckets, which are changed only under its mutex (pagecache R4). Readers look
//! without a latch. What they find may be stale or torn, so a found frame is believed only after its header
//! has named the page under a version that validates (pagecache R3). What they do not find is looked up again
//! under the mutex. So a reader may miss a page that is there, which costs time, but never takes another page
//! for it.
//!
//! A bucket is 64 bytes:
//!
//! | byte   | field                                                          |
//! |--------|----------------------------------------------------------------|
//! | 0..8   | eight tags of one byte, from 2 to 255; 0 = slot empty          |
//! | 8..40  | eight frame numbers of four bytes                              |
//! | 40..64 | unused                                                         |
//!
//! A page that finds its bucket full goes to the neighbouring bucket, which the processor fetches with it. If
//! that is full too the page goes to a map under the mutex, so a page can be cached whatever its hash is.
//!
//! A page's shortcut is set when the page gets its frame. It is never cleared: the next page with the same
//! shortcut overwrites it. A page that is looked up and has lost its shortcut takes it back, unless the other
//! page is used, too.

use crate::frames::FrameNo;
use crate::local::SEGMENTS_MAX;
use base::PageId;
use base::region::{Region, Zeroable};
use base::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::io;

pub const SLOTS: usize = 8;

/// The most frames a bucket has on average. With four of eight slots in use one bucket in fifty overflows.
const LOAD_MAX: usize = 4;
/// The least buckets of a segment: each needs a neighbour.
const BUCKETS_MIN: usize = 2;

/// A page's hash, a folded multiplication: the upper half chooses the bucket, the lowest byte is the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hash(u64);

impl Hash {
    #[inline(always)]
    pub fn of(id: PageId) -> Hash {
        let product = u128::from(id.to_word()) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        Hash(product as u64 ^ (product >> 64) as u64)
    }

    /// From 2 to 255: 0 is an empty slot, and see [`Bucket::matching`] for 1.
    #[inline(always)]
    fn tag(self) -> u8 {
        (self.0 as u8).max(2)
    }

    pub fn bits(self) -> u64 {
        self.0
    }
}

/// How pages are dealt to segments and buckets, in one word that is replaced as a whole.
///
/// | bits   | field                                                             |
/// |--------|-------------------------------------------------------------------|
/// | 0..32  | buckets of all segments together                                  |
/// | 32..40 | log2 of the buckets of one segment, which lie behind each other   |
/// | 40     | which of the two halves of the index is in use                    |
/// | 41..47 | log2 of the shortcuts in use                                      |
/// | 47..64 | generation, grows with every change                               |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry(pub u64);

impl Geometry {
    /// The geometry for so many segments and frames; follows `last` (generation and half).
    pub fn new(segments: usize, frames: usize, last: Option<Geometry>) -> Geometry {
        assert!((1..=SEGMENTS_MAX).contains(&segments));
        let buckets = frames.div_ceil(segments * LOAD_MAX).next_power_of_two().max(BUCKETS_MIN);
        let (half, generation) = last.map_or((0, 0), |last| (last.half() as u64 ^ 1, (last.0 >> 47) + 1));
        let log2 = u64::from(buckets.trailing_zeros());
        let buckets = segments * buckets;
        let shortcuts = (buckets * SHORTCUTS_A_BUCKET).next_power_of_two();
        let shortcuts_log2 = u64::from(shortcuts.trailing_zeros());
        Geometry(buckets as u64 | log2 << 32 | half << 40 | shortcuts_log2 << 41 | generation << 47)
    }

    #[inline(always)]
    pub fn segments(self) -> usize {
        self.buckets() >> self.buckets_log2()
    }

    #[inline(always)]
    fn buckets_log2(self) -> u32 {
        (self.0 >> 32 & 0x1f) as u32
    }

    #[inline(always)]
    fn buckets(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline(always)]
    fn half(self) -> usize {
        (self.0 >> 40 & 1) as usize
    }

    /// How many shortcuts are in use, a power of two.
    #[inline(always)]
    fn shortcuts(self) -> usize {
        1 << (self.0 >> 41 & 0x3f)
    }

    /// The page's shortcut. Two pages may have the same one.
    #[inline(always)]
    pub fn shortcut_of(self, id: PageId) -> usize {
        let shortcuts = self.shortcuts();
        let part = u64::from(id.file.0.wrapping_mul(SHORTCUTS_A_FILE));
        let first = (part * shortcuts as u64) >> 32;
        (first as usize + id.page.0 as usize) & (shortcuts - 1)
    }

    #[inline(always)]
    pub fn segment_of(self, hash: Hash) -> usize {
        self.bucket_of(hash) >> self.buckets_log2()
    }

    /// The bucket, counted inside the half in use: the upper half of the hash, scaled.
    #[inline(always)]
    fn bucket_of(self, hash: Hash) -> usize {
        (((hash.0 >> 32) * u64::from(self.0 as u32)) >> 32) as usize
    }
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Bucket {
    tags: AtomicU64,
    frames: [AtomicU64; SLOTS / 2],
}

// SAFETY: atomics and padding; all zeroes is an empty bucket.
unsafe impl Zeroable for Bucket {}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

impl Bucket {
    /// Bit 7 of byte i is set if slot i may have the tag. Subtraction borrows from the next byte, so a slot
    /// above one with the tag is named, too, if its own tag differs in the lowest bit alone. As no tag is 1
    /// that slot is not empty: it has another page, as its frame's header says. The number in an empty slot
    /// may be that of a free frame, whose header still names the page that was there.
    #[inline(always)]
    fn matching(&self, tag: u8) -> u64 {
        let differ = self.tags.load(Relaxed) ^ (u64::from(tag) * LOW_BITS);
        differ.wrapping_sub(LOW_BITS) & !differ & HIGH_BITS
    }

    #[inline(always)]
    fn frame(&self, slot: usize) -> FrameNo {
        FrameNo((self.frames[slot / 2].load(Relaxed) >> (slot % 2 * 32)) as u32)
    }

    /// Under the segment's mutex.
    fn insert(&self, tag: u8, frame: FrameNo) -> bool {
        let tags = self.tags.load(Relaxed);
        let Some(slot) = (0..SLOTS).find(|slot| tags >> (slot * 8) & 0xff == 0) else { return false };
        let shift = slot % 2 * 32;
        let word = &self.frames[slot / 2];
        word.store(word.load(Relaxed) & !(0xffff_ffff << shift) | u64::from(frame.0) << shift, Relaxed);
        self.tags.store(tags | u64::from(tag) << (slot * 8), Relaxed);
        true
    }

    /// Under the segment's mutex.
    fn remove(&self, tag: u8, frame: FrameNo) -> bool {
        let tags = self.tags.load(Relaxed);
        let slot =
            (0..SLOTS).find(|&slot| tags >> (slot * 8) & 0xff == u64::from(tag) && self.frame(slot) == frame);
        let Some(slot) = slot else { return false };
        self.tags.store(tags & !(0xff << (slot * 8)), Relaxed);
        true
    }
}

#[derive(Debug)]
pub struct Index {
    /// All buckets, twice: a change of geometry fills the half that is not in use (pagecache R4).
    buckets: Region<Bucket>,
    half: usize,
    /// Frame numbers, by page number. Each file begins at another shortcut. The geometry says how many are in
    /// use.
    shortcuts: Region<AtomicU32>,
}

/// The least shortcuts for each bucket. There is a bucket for every two to four frames.
const SHORTCUTS_A_BUCKET: usize = 8;
/// How far apart files begin among the shortcuts, as a part of them all in 2^32nds. With the golden ratio any
/// number of files begin far from each other.
const SHORTCUTS_A_FILE: u32 = 0x9e37_79b9;

impl Index {
    pub fn new(frames_max: usize) -> io::Result<Index> {
        // Rounding up to a power of two at most doubles the number; every segment has its minimum.
        let half = (frames_max.div_ceil(LOAD_MAX) * 2).next_power_of_two().max(SEGMENTS_MAX * BUCKETS_MIN)
            + SEGMENTS_MAX * BUCKETS_MIN;
        let shortcuts = (half * SHORTCUTS_A_BUCKET).next_power_of_two();
        Ok(Index { buckets: Region::new(half * 2)?, half, shortcuts: Region::new(shortcuts)? })
    }

    /// The frame that probably holds the page, if it is cached. For readers without latch.
    #[inline(always)]
    pub fn shortcut(&self, geometry: Geometry, id: PageId) -> FrameNo {
        FrameNo(self.shortcuts[geometry.shortcut_of(id)].load(Relaxed))
    }

    /// The page is, or is going to be, in the frame.
    pub fn set_shortcut(&self, geometry: Geometry, id: PageId, frame: FrameNo) {
        self.shortcuts[geometry.shortcut_of(id)].store(frame.0, Relaxed);
    }

    /// Gives back the memory of shortcuts that `geometry` does not use.
    pub fn release_shortcuts(&self, geometry: Geometry) {
        self.shortcuts.release_from(geometry.shortcuts());
    }

    #[inline(always)]
    fn bucket(&self, geometry: Geometry, number: usize) -> &Bucket {
        &self.buckets[geometry.half() * self.half + number]
    }

    /// The frames that may hold the page, from its home bucket. For readers without latch.
    #[inline(always)]
    pub fn candidates(&self, geometry: Geometry, hash: Hash) -> Candidates<'_> {
        let bucket = self.bucket(geometry, geometry.bucket_of(hash));
        Candidates { bucket, matches: bucket.matching(hash.tag()) }
    }

    /// The frames that may hold the page, from the neighbour of its home bucket.
    pub fn neighbour_candidates(&self, geometry: Geometry, hash: Hash) -> Candidates<'_> {
        let bucket = self.bucket(geometry, geometry.bucket_of(hash) ^ 1);
        Candidates { bucket, matches: bucket.matching(hash.tag()) }
    }

    /// Under the segment's mutex. False if both buckets are full.
    pub fn insert(&self, geometry: Geometry, hash: Hash, frame: FrameNo) -> bool {
        let home = geometry.bucket_of(hash);
        [home, home ^ 1].iter().any(|&number| self.bucket(geometry, number).insert(hash.tag(), frame))
    }

    /// Under the segment's mutex. False if the frame was in neither bucket.
    pub fn remove(&self, geometry: Geometry, hash: Hash, frame: FrameNo) -> bool {
        let home = geometry.bucket_of(hash);
        [home, home ^ 1].iter().any(|&number| self.bucket(geometry, number).remove(hash.tag(), frame))
    }

    /// Empties the half that `geometry` uses, before it is put to use. Under all mutexes.
    pub fn clear(&self, geometry: Geometry) {
        for number in 0..geometry.buckets() {
            self.bucket(geometry, number).tags.store(0, Relaxed);
        }
    }
}

/// See [`Index::candidates`].
#[derive(Debug)]
pub struct Candidates<'a> {
    bucket: &'a Bucket,
    matches: u64,
}

impl Iterator for Candidates<'_> {
    type Item = FrameNo;

    #[inline(always)]
    fn next(&mut self) -> Option<FrameNo> {
        if self.matches == 0 {
            return None;
        }
        let slot = self.matches.trailing_zeros() as usize / 8;
        self.matches &= self.matches - 1;
        Some(self.bucket.frame(slot))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use base::{FileId, PageNo};

    fn id(page: u32) -> PageId {
        PageId::new(FileId(3), PageNo(page))
    }

    #[test]
    fn what_was_inserted_is_found_until_it_is_removed() {
        let index = Index::new(1000).unwrap();
        let geometry = Geometry::new(7, 1000, None);
        let mut overflowed = Vec::new();
        for page in 0..1000 {
            if !index.insert(geometry, Hash::of(id(page)), FrameNo(page)) {
                overflowed.push(page);
            }
        }
        assert!(overflowed.len() < 10, "{} pages overflowed", overflowed.len());
        for page in 0..1000 {
            let hash = Hash::of(id(page));
            let found = (index.candidates(geometry, hash))
                .chain(index.neighbour_candidates(geometry, hash))
                .any(|frame| frame == FrameNo(page));
            assert_eq!(found, !overflowed.contains(&page));
            assert_eq!(index.remove(geometry, hash, FrameNo(page)), found);
            assert!(!index.remove(geometry, hash, FrameNo(page)));
        }
    }

    /// Two pages of each tag in one bucket, the second of which leaves.
    #[test]
    fn a_page_that_has_left_is_not_found_beside_one_with_the_same_tag() {
        let index = Index::new(16).unwrap();
        let geometry = Geometry::new(1, 1, None);
        for low_byte in 0..=255 {
            let mut pages = (0..)
                .map(|page| Hash::of(id(page)))
                .filter(|hash| hash.bits() as u8 == low_byte && geometry.bucket_of(*hash) == 0);
            let [stays, leaves] = [(); 2].map(|()| pages.next().unwrap());
            assert!(index.insert(geometry, stays, FrameNo(1)) && index.insert(geometry, leaves, FrameNo(2)));
            assert!(index.remove(geometry, leaves, FrameNo(2)));
            let found: Vec<FrameNo> = index.candidates(geometry, leaves).collect();
            assert_eq!(found, [FrameNo(1)], "{low_byte}");
            assert!(index.remove(geometry, stays, FrameNo(1)));
        }
    }

    #[test]
    fn a_page_has_its_shortcut_until_another_takes_it() {
        let index = Index::new(100).unwrap();
        for segments in [1, 7] {
            let geometry = Geometry::new(segments, 100, None);
            let last = geometry.shortcuts() as u32 - 1;
            assert!((200..=1_024).contains(&last), "{last}");
            let all = |file: u32| (0..=last).map(move |page| PageId::new(FileId(file), PageNo(page)));
            for file in [3, 4] {
                all(file).zip(0..).for_each(|(id, frame)| index.set_shortcut(geometry, id, FrameNo(frame)));
                let found = all(file).map(|id| index.shortcut(geometry, id).0);
                assert!(found.eq(0..=last), "pages of a file do not meet");
            }
            let found = all(3).map(|id| index.shortcut(geometry, id).0);
            assert!(
                found.eq(all(3).map(|id| all(4)
                    .position(|other| { geometry.shortcut_of(other) == geometry.shortcut_of(id) })
                    .unwrap() as u32)),
                "they meet those of another"
            );
        }
    }

    #[test]
    fn files_begin_far_from_each_other_among_the_shortcuts() {
        let geometry = Geometry::new(8, 1 << 17, None);
        let mut starts: Vec<usize> =
            (1..=16).map(|file| geometry.shortcut_of(PageId::new(FileId(file), PageNo(0)))).collect();
        starts.sort_unstable();
        let least = starts.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
        assert!(least > geometry.shortcuts() / 32, "{least} of {}", geometry.shortcuts());
    }

    #[test]
    fn full_buckets_refuse_rather_than_lose() {
        let index = Index::new(16).unwrap();
        let geometry = Geometry::new(1, 1, None);
        let hash = Hash::of(id(1));
        assert!((0..16).all(|n| index.insert(geometry, hash, FrameNo(n))));
        assert!(!index.insert(geometry, hash, FrameNo(16)));
        assert!(index.remove(geometry, hash, FrameNo(3)));
        assert!(index.insert(geometry, hash, FrameNo(16)));
    }

    #[test]
    fn pages_are_dealt_evenly_to_any_number_of_segments() {
        for segments in 1..=64 {
            let geometry = Geometry::new(segments, 1 << 14, None);
            let mut counts = vec![0; segments];
            for page in 0..64_000 {
                counts[geometry.segment_of(Hash::of(id(page)))] += 1;
            }
            let fair = 64_000 / segments;
            assert!(counts.iter().all(|&n| n > fair / 2 && n < fair * 2), "{segments}: {counts:?}");
        }
    }

    #[test]
    fn every_geometry_fits_the_memory_reserved_for_it() {
        for frames_max in [16, 17, 100, 1000, 1 << 20] {
            let index = Index::new(frames_max).unwrap();
            for segments in 1..=64 {
                for frames in [16, frames_max / 3 + 1, frames_max] {
                    let geometry = Geometry::new(segments, frames, None);
                    assert!(geometry.buckets() <= index.half, "{frames_max} {segments} {frames}");
                    assert!(geometry.shortcuts() <= index.shortcuts.len());
                }
            }
        }
    }
}
