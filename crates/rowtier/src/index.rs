//! The index says where the entries are. It has buckets of slots, and as many buckets as the entries need.
//!
//! | byte   | a bucket, two cache lines, which the processor fetches together |
//! |--------|------------------------------------------------------------------|
//! | 0..8   | version: odd while it is being changed, never the same again; in   |
//! |        | the upper half, its epoch: grows when leases end                  |
//! | 8..128 | 15 slots (see `slot`)                                            |
//!
//! The number of buckets grows and shrinks by one at a time (linear hashing: W. Litwin, "Linear hashing: a
//! new tool for file and table addressing", VLDB 1980): bucket `n` takes its entries out of bucket `n - 2^k`,
//! the highest power of two not above `n`, and gives them back. So no thread waits for a whole table to be
//! built again, and nothing is allocated twice.
//!
//! Writers of a bucket hold its stripe's latch (rowtier R6). A bucket and the one that it was split from are
//! in one stripe.

use crate::hash::Hash;
use crate::slot::Slot;
use base::region::{Region, Zeroable, prefetch_line};
use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use base::sync::{CachePadded, Mutex, MutexGuard};
use std::io;

base::latch_class!(pub BucketLatch, "row tier bucket");

/// Slots of a bucket. Models have fewer, because they look at each one.
pub const SLOTS: usize = if cfg!(feature = "shuttle") { 3 } else { 15 };

/// The number of latches of buckets, a power of two. There are at least as many buckets.
pub const STRIPES: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };

/// With more entries a bucket, on average, a bucket is added. Buckets that wait to be split have up to twice
/// as many: with 5 of 15 slots at most one entry in a thousand finds no room and takes another's. (With 6 it
/// is one in three hundred, and then four look-ups in a thousand read the device, which take longer than all
/// others.)
const LOAD_MAX: usize = if cfg!(feature = "shuttle") { 2 } else { 5 };
/// With fewer entries a bucket, on average, a bucket is removed.
const LOAD_MIN: usize = if cfg!(feature = "shuttle") { 1 } else { 3 };

const EPOCH_SHIFT: u32 = 32;

/// The first version of a bucket in use. A bucket that has never been used, or was given back, reads as zero.
const FIRST_VERSION: u64 = 1 << EPOCH_SHIFT;

/// The epoch of a version. A lease is good in its own epoch only. An epoch comes again after four thousand
/// million changes of a bucket, which would all have to happen while one page is read.
#[inline(always)]
pub fn epoch_of(version: u64) -> u32 {
    (version >> EPOCH_SHIFT) as u32
}

/// The first version of the next epoch.
fn next_epoch(version: u64) -> u64 {
    ((version >> EPOCH_SHIFT) + 1) << EPOCH_SHIFT
}

pub const BUCKET_BYTES: usize = 128;
/// The model checker's atomics are larger.
#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<Bucket>() == BUCKET_BYTES);

#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Bucket {
    version: AtomicU64,
    slots: [AtomicU64; SLOTS],
}

// SAFETY: consists of atomics of `base::sync::atomic`.
unsafe impl Zeroable for Bucket {}

impl Bucket {
    /// The version, unless the bucket is being changed.
    #[inline(always)]
    pub fn version(&self) -> Option<u64> {
        // ORDER: pairs with the Release in `end`: the slots, and the entries that they lead to, are as of
        // this version or later.
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// True if nothing has changed since `version`.
    #[inline(always)]
    pub fn is_still(&self, version: u64) -> bool {
        // ORDER: what was read before is read before the version; see `begin`.
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }

    /// The number and the word of the slot that may lead to the key.
    #[inline(always)]
    pub fn find(&self, hash: Hash) -> Option<(usize, Slot)> {
        // ORDER: slots are believed only after `is_still` (rowtier R1).
        let slots = self.slots.iter().map(|slot| Slot(slot.load(Ordering::Relaxed)));
        slots.enumerate().find(|(_, slot)| slot.is_live_of(hash))
    }

    /// Notes that an entry was read, unless that is noted already, or the slot has changed (rowtier R2).
    #[inline(always)]
    pub fn mark_used(&self, index: usize, slot: Slot) {
        if !slot.is_used() {
            // ORDER: Relaxed: this is only a hint to the eviction.
            let (used, relaxed) = (slot.used().0, Ordering::Relaxed);
            let _ = self.slots[index].compare_exchange(slot.0, used, relaxed, relaxed);
        }
    }

    /// Makes the bucket unreadable. The caller holds its stripe.
    fn begin(&self) -> u64 {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version | 1, Ordering::Relaxed);
        // ORDER: a reader that reads anything stored from here on, and then fences, finds the version changed
        // (rowtier R6).
        fence(Ordering::Release);
        version
    }

    /// Makes it readable again. `version` is even, and larger than what it was.
    fn end(&self, version: u64) {
        // ORDER: pairs with the acquire in `version`.
        self.version.store(version, Ordering::Release);
    }

    fn slot(&self, index: usize) -> Slot {
        // ORDER: only holders of the stripe change a slot, except for its used bit.
        Slot(self.slots[index].load(Ordering::Relaxed))
    }

    fn store(&self, index: usize, slot: Slot) {
        // ORDER: between `begin` and `end`.
        self.slots[index].store(slot.0, Ordering::Relaxed);
    }

    fn live(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..SLOTS).map(|index| self.slot(index)).filter(|slot| slot.is_live())
    }
}

/// What the holder of a stripe counts.
#[derive(Default, Debug)]
pub struct Counts {
    pub entries: usize,
    pub invalidations: u64,
}

#[derive(Debug)]
pub struct Index {
    buckets: Region<Bucket>,
    /// Buckets in use; 0 = the tier is off.
    count: CachePadded<AtomicUsize>,
    stripes: Box<[CachePadded<Mutex<Counts, BucketLatch>>]>,
}

/// The bucket with the hash's entries, if there are `count`.
#[inline(always)]
fn number_of(hash_low: u32, count: usize) -> usize {
    let mask = usize::MAX >> count.leading_zeros();
    let number = hash_low as usize & mask;
    if number < count { number } else { number & mask >> 1 }
}

/// The bucket that bucket `number` takes its entries from when it comes into use.
fn parent_of(number: usize) -> usize {
    number - (1 << number.ilog2())
}

impl Index {
    pub fn new(buckets_max: usize) -> io::Result<Index> {
        Ok(Index {
            buckets: Region::new(buckets_max.max(STRIPES))?,
            count: CachePadded::default(),
            stripes: (0..STRIPES).map(|_| CachePadded::default()).collect(),
        })
    }

    #[inline(always)]
    pub fn count(&self) -> usize {
        // ORDER: pairs with the stores in `grow`, `shrink` and `switch_on`. SeqCst, for a writer that finds
        // the tier off after its fence: see `Announced`.
        self.count.load(Ordering::SeqCst)
    }

    /// The bucket in which the key's entry is if it is in any, and the bucket's number. `None` if the tier is
    /// off.
    #[inline(always)]
    pub fn bucket_of(&self, hash: Hash) -> Option<(usize, &Bucket)> {
        let count = self.count();
        (count > 0).then(|| {
            let number = number_of(hash.low(), count);
            (number, &self.buckets[number])
        })
    }

    #[inline(always)]
    pub fn prefetch(&self, number: usize) {
        let bucket = &self.buckets[number];
        prefetch_line(&bucket.version);
        prefetch_line(&bucket.slots[SLOTS - 1]);
    }

    /// The bucket of a hash, to be changed; `None` if the tier is off.
    pub fn latch(&self, hash_low: u32) -> Option<Latched<'_>> {
        let counts = self.stripes[hash_low as usize % STRIPES].lock();
        // Under the latch, this bucket is neither being split nor merged.
        let count = self.count();
        (count > 0).then(|| {
            let number = number_of(hash_low, count);
            Latched { bucket: &self.buckets[number], number, counts }
        })
    }

    /// Sums over all stripes.
    pub fn totals(&self) -> Counts {
        let mut sum = Counts::default();
        for stripe in &self.stripes {
            let counts = stripe.lock();
            sum.entries += counts.entries;
            sum.invalidations += counts.invalidations;
        }
        sum
    }

    pub fn bytes(&self) -> usize {
        self.count() * BUCKET_BYTES
    }

    /// Begins with the fewest buckets, all empty. The caller of this and of all that follow holds the store's
    /// latch.
    pub fn switch_on(&self) {
        assert_eq!(self.count(), 0);
        for number in 0..STRIPES {
            let bucket = &self.buckets[number];
            // The version that `switch_off` left is larger than all before it.
            bucket.end(bucket.version.load(Ordering::Relaxed).max(FIRST_VERSION));
        }
        // ORDER: see `count`.
        self.count.store(STRIPES, Ordering::SeqCst);
    }

    /// Empties everything. Leases from before are refused afterwards.
    pub fn switch_off(&self) {
        while self.shrink().is_some() {}
        // ORDER: see `count`.
        self.count.store(0, Ordering::SeqCst);
        for (number, stripe) in self.stripes.iter().enumerate() {
            let mut counts = stripe.lock();
            let bucket = &self.buckets[number];
            let version = bucket.begin();
            (0..SLOTS).for_each(|index| bucket.store(index, Slot::EMPTY));
            bucket.end(next_epoch(version));
            counts.entries = 0;
        }
        self.buckets.release_from(STRIPES);
    }

    /// True if there are so many entries in the stripe that there should be one bucket more. One stripe is as
    /// good as another to tell.
    fn is_crowded(&self, counts: &Counts) -> bool {
        counts.entries * STRIPES > self.count() * LOAD_MAX && self.count() < self.buckets.len()
    }

    /// Adds a bucket if the stripe of `hash_low` has too many entries. `hash_low_at` gives the lower half of
    /// the hash of the entry at a place.
    pub fn grow_if_crowded(&self, hash_low: u32, hash_low_at: impl Fn(usize) -> u32) {
        if self.is_crowded(&self.stripes[hash_low as usize % STRIPES].lock()) {
            self.grow(hash_low_at);
        }
    }

    fn grow(&self, hash_low_at: impl Fn(usize) -> u32) {
        let count = self.count();
        let parent = parent_of(count);
        let _counts = self.stripes[parent % STRIPES].lock();
        let (from, to) = (&self.buckets[parent], &self.buckets[count]);
        let version = from.begin();
        to.begin();
        let mut moved = 0;
        for index in 0..SLOTS {
            let slot = from.slot(index);
            let moves = slot.is_live() && number_of(hash_low_at(slot.place()), count + 1) == count;
            if moves {
                to.store(moved, slot);
                moved += 1;
            }
            // A ghost's whole hash is not known, so it cannot be moved to the right bucket.
            if moves || slot.is_ghost() {
                from.store(index, Slot::EMPTY);
            }
        }
        (moved..SLOTS).for_each(|index| to.store(index, Slot::EMPTY));
        // ORDER: stored while both are unreadable, so that a reader that comes with the old number finds the
        // parent changed (rowtier R8).
        self.count.store(count + 1, Ordering::SeqCst);
        // Larger than any version that the new bucket had before, because `shrink` raised the parent's above
        // them (rowtier R6).
        to.end(next_epoch(version));
        from.end(next_epoch(version));
    }

    /// Removes buckets while there are far too many, and gives how many entries found no room.
    pub fn shrink_if_sparse(&self) -> usize {
        let (entries, count) = (self.totals().entries, self.count());
        let mut dropped = 0;
        while entries < self.count() * LOAD_MIN
            && let Some(more) = self.shrink()
        {
            dropped += more;
        }
        if self.count() < count {
            self.buckets.release_from(self.count());
        }
        dropped
    }

    /// Gives the last bucket's entries back to its parent, and says how many found no room there. `None` if
    /// there are already as few as there can be.
    fn shrink(&self) -> Option<usize> {
        let count = self.count();
        if count <= STRIPES {
            return None;
        }
        let last = count - 1;
        let parent = parent_of(last);
        let mut counts = self.stripes[parent % STRIPES].lock();
        let (from, to) = (&self.buckets[last], &self.buckets[parent]);
        let version = from.begin().max(to.begin());
        let mut moving = from.live();
        for index in 0..SLOTS {
            if !to.slot(index).is_live() {
                to.store(index, moving.next().unwrap_or(Slot::EMPTY));
            }
        }
        let dropped = moving.count();
        counts.entries -= dropped;
        (0..SLOTS).for_each(|index| from.store(index, Slot::EMPTY));
        // ORDER: as in `grow`.
        self.count.store(last, Ordering::SeqCst);
        from.end(next_epoch(version));
        to.end(next_epoch(version));
        Some(dropped)
    }
}

/// A bucket whose stripe is held.
#[derive(Debug)]
pub struct Latched<'i> {
    bucket: &'i Bucket,
    number: usize,
    pub counts: MutexGuard<'i, Counts>,
}

/// What an insertion met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Met {
    /// An entry of the same key, which it replaced.
    Same,
    /// Room.
    Room,
    /// A full bucket: another entry had to go.
    Full,
}

impl Latched<'_> {
    /// True if this is the bucket of that number, and leases of that epoch are good (rowtier R3).
    pub fn honours(&self, number: usize, epoch: u32) -> bool {
        // ORDER: epochs change under the latch.
        self.number == number && epoch_of(self.bucket.version.load(Ordering::Relaxed)) == epoch
    }

    /// When the key's entry was evicted, if that is still known.
    pub fn ghost_age(&self, hash: Hash, now: u64) -> Option<u64> {
        let mut slots = (0..SLOTS).map(|index| self.bucket.slot(index));
        slots.find(|slot| slot.is_ghost_of(hash)).map(|slot| slot.age(now))
    }

    fn change(&self, index: usize, slot: Slot) {
        let version = self.bucket.begin();
        self.bucket.store(index, slot);
        self.bucket.end(version + 2);
    }

    pub fn insert(&mut self, hash: Hash, place: usize, is_spared: bool, now: u64) -> Met {
        let slot = |index: &usize| self.bucket.slot(*index);
        let find = |wanted: &dyn Fn(Slot) -> bool| (0..SLOTS).find(|index| wanted(slot(index)));
        let oldest_ghost = || (0..SLOTS).filter(|i| slot(i).is_ghost()).max_by_key(|i| slot(i).age(now));
        let room = || {
            find(&|slot| slot.is_ghost_of(hash))
                .or_else(|| find(&|slot| slot == Slot::EMPTY))
                .or_else(oldest_ghost)
        };
        let (index, met) = if let Some(same) = find(&|slot| slot.is_live_of(hash)) {
            (same, Met::Same)
        } else if let Some(room) = room() {
            (room, Met::Room)
        } else {
            // Any slot will do. The place serves as a random number.
            (find(&|slot| !slot.is_used()).unwrap_or(place % SLOTS), Met::Full)
        };
        self.change(index, Slot::live(hash, place, is_spared));
        self.counts.entries += usize::from(met == Met::Room);
        met
    }

    /// Ends the leases of the bucket and removes the key's entry (rowtier R4). False if there is none.
    pub fn invalidate(&mut self, hash: Hash) -> bool {
        let version = self.bucket.begin();
        let before = self.counts.entries;
        while let Some((index, _)) = self.bucket.find(hash) {
            self.bucket.store(index, Slot::EMPTY);
            self.counts.entries -= 1;
            self.counts.invalidations += 1;
        }
        self.bucket.end(next_epoch(version));
        self.counts.entries < before
    }

    /// The slot of the entry at `place`, if it is still the entry.
    pub fn slot_at(&self, place: usize) -> Option<(usize, Slot)> {
        let mut slots = (0..SLOTS).map(|index| (index, self.bucket.slot(index)));
        slots.find(|(_, slot)| slot.is_live() && slot.place() == place)
    }

    /// The entry has been copied to another place.
    pub fn move_to(&mut self, index: usize, place: usize) {
        self.change(index, self.bucket.slot(index).moved(place));
    }

    /// The entry goes.
    pub fn evict(&mut self, index: usize, now: u64) {
        self.change(index, self.bucket.slot(index).ghost(now));
        self.counts.entries -= 1;
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    #[cfg_attr(miri, ignore = "nothing but arithmetic")]
    fn buckets_split_and_merge_one_by_one_and_every_hash_has_one() {
        for count in STRIPES..STRIPES * 9 {
            let parent = parent_of(count);
            assert_eq!(parent % STRIPES, count % STRIPES);
            for hash in (0..1 << 20).step_by(77) {
                let (before, after) = (number_of(hash, count), number_of(hash, count + 1));
                assert!(before < count && (after == before || before == parent && after == count));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of entries")]
    fn entries_stay_found_while_the_index_grows_and_shrinks() {
        let index = Index::new(4_096).unwrap();
        index.switch_on();
        let mut hashes: HashMap<usize, Hash> = HashMap::new();
        for place in 0..9_000_usize {
            let hash = Hash::of(1, &place.to_le_bytes());
            hashes.insert(place, hash);
            assert_ne!(index.latch(hash.low()).unwrap().insert(hash, place, false, 0), Met::Same);
            index.grow_if_crowded(hash.low(), |place| hashes[&place].low());
        }
        let kept = index.totals().entries;
        assert!(kept > 8_900, "{kept}");
        assert!((1_700..2_000).contains(&index.count()), "{}", index.count());
        let found = |hash: &Hash| index.bucket_of(*hash).unwrap().1.find(*hash).is_some();
        assert_eq!(hashes.values().filter(|hash| found(hash)).count(), kept);
        for (_, hash) in hashes.iter().filter(|(place, _)| *place % 4 > 0) {
            index.latch(hash.low()).unwrap().invalidate(*hash);
        }
        let dropped = index.shrink_if_sparse();
        let left = index.totals().entries;
        assert!(index.count() < 800 && left > 2_100, "{} {left}", index.count());
        assert_eq!(hashes.values().filter(|hash| found(hash)).count(), left);
        assert_eq!(left + dropped + index.totals().invalidations as usize, kept);
        index.switch_off();
        assert_eq!((index.totals().entries, index.bytes()), (0, 0));
        assert!(index.bucket_of(hashes[&0]).is_none() && index.latch(hashes[&0].low()).is_none());
    }

    #[test]
    fn no_version_comes_twice() {
        let index = Index::new(1_024).unwrap();
        let mut seen = 0;
        for _ in 0..5 {
            index.switch_on();
            let version = index.buckets[0].version().unwrap();
            assert!(version > seen);
            // The bucket comes and goes with the splits.
            for _ in 0..3 {
                index.grow(|_| 0);
                let split = index.buckets[STRIPES].version().unwrap();
                assert!(split > seen);
                let hash = Hash(STRIPES as u64);
                index.latch(hash.low()).unwrap().invalidate(hash);
                seen = index.buckets[STRIPES].version().unwrap();
                assert!(seen > split && index.shrink() == Some(0));
            }
            index.switch_off();
        }
    }

    #[test]
    fn a_full_bucket_gives_up_a_ghost_then_what_is_unused() {
        let index = Index::new(64).unwrap();
        index.switch_on();
        // One bucket, tags that differ.
        let hash = |number: usize| Hash((number as u64) << 40);
        let mut bucket = index.latch(0).unwrap();
        for number in 0..SLOTS {
            assert_eq!(bucket.insert(hash(number), number, false, 0), Met::Room);
            let (at, slot) = bucket.bucket.find(hash(number)).unwrap();
            bucket.bucket.mark_used(at, slot);
        }
        let (at, _) = bucket.slot_at(3).unwrap();
        bucket.evict(at, 10);
        assert_eq!(bucket.ghost_age(hash(3), 14), Some(4));
        assert_eq!(bucket.insert(hash(100), 100, false, 14), Met::Room);
        assert_eq!(bucket.ghost_age(hash(3), 14), None);
        // Now the new one is the only one that nobody has used.
        assert_eq!(bucket.insert(hash(101), 101, false, 14), Met::Full);
        assert!(bucket.slot_at(100).is_none() && bucket.slot_at(101).is_some());
        assert_eq!(bucket.insert(hash(101), 102, false, 14), Met::Same);
        assert_eq!(bucket.counts.entries, SLOTS);
    }
}
