//! The row tier: a cache of rows whose pages are not worth their memory.
//!
//! It lies between the page cache and the device. It finds values by the number of an owner and a key, and
//! knows the meaning of neither. Terms, rules of access, memory and figures are in the crate's README.
//!
//! ```
//! use latchwork_rowtier::{Announced, RowTier};
//!
//! # fn main() -> std::io::Result<()> {
//! let tier = RowTier::new(1 << 20)?;
//! tier.resize(1 << 20);
//! let (owner, kept, mut found) = (7, Announced::default(), Vec::new());
//! assert!(!tier.get(tier.probe(owner, b"key"), b"key", &mut found));
//! // After a miss take the lease first, then read the value where it comes from.
//! let lease = tier.lease(owner, b"key", &kept).expect("the tier is on");
//! assert!(tier.put(lease, b"key", &[b"value"]));
//! assert!(tier.get(tier.probe(owner, b"key"), b"key", &mut found));
//! assert_eq!(found, b"value");
//! // A writer that changes the value elsewhere calls this first.
//! tier.invalidate(owner, || b"key", &kept);
//! assert!(!tier.get(tier.probe(owner, b"key"), b"key", &mut found));
//! # Ok(())
//! # }
//! ```

mod announced;
mod entry;
mod hash;
mod index;
mod slot;
mod store;

pub use announced::Announced;
pub use entry::OWNER_MAX;
pub use store::Replacement;

use base::OwnedCounters;
use base::region::{Region, prefetch_line};
use base::sync::Mutex;
use base::sync::atomic::AtomicU64;
use hash::Hash;
use index::{BUCKET_BYTES, Index, Met, STRIPES, epoch_of};
use std::io;
use store::{BLOCKS_MIN, Memory, NEW, SPARED, Store};

base::latch_class!(pub StoreLatch, "row tier store");

/// Words of a block: 64 KiB, so that what is left at its end is less than a byte for each row. Models have so
/// few that they evict soon.
const BLOCK_WORDS: usize = if cfg!(feature = "shuttle") { 32 } else { 8 << 10 };

/// How often a get looks at a bucket that is being changed. After that it is a miss, which is always right
/// (rowtier R1).
const LOOKS_MAX: usize = 4;

/// Cache lines of an entry that are asked for ahead: the longest part of a row of 200 bytes.
const LINES_AHEAD: usize = 4;

/// Counters: hits in each queue, by its number, and misses.
const MISSES: usize = 2;
const _: () = assert!(NEW < MISSES && SPARED < MISSES);

/// Percent of the blocks that new entries have at least.
const NEW_SHARE: u8 = 10;

/// How a tier is made.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// It cannot be made larger than this.
    pub bytes_max: usize,
    pub block_words: usize,
    pub replacement: Replacement,
}

impl Config {
    pub fn new(bytes_max: usize) -> Config {
        Config { bytes_max, block_words: BLOCK_WORDS, replacement: Replacement::ByHits(NEW_SHARE) }
    }
}

/// A cache of values by owner and key. Shared by all threads.
#[derive(Debug)]
pub struct RowTier {
    words: Region<AtomicU64>,
    index: Index,
    store: Mutex<Store, StoreLatch>,
    requests: OwnedCounters,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    owner: u64,
    hash: Hash,
}

/// The right to put a value that is read elsewhere from now on. It ends when a writer says that the value
/// changes (rowtier R3).
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    owner: u64,
    hash: Hash,
    bucket: usize,
    epoch: u32,
    /// The value replaces one that was in the tier and has changed.
    replaces: bool,
}

impl Lease {
    /// A number for the key and its owner, the same at each lease.
    pub fn hash(&self) -> u64 {
        self.hash.0
    }
}

/// The result of a look.
enum Look {
    /// In this queue.
    Hit(usize),
    Miss,
    /// The bucket was being changed.
    Torn,
}

/// See [`RowTier::status`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Status {
    /// Bytes that it may take, and bytes that it takes.
    pub size: usize,
    pub bytes: usize,
    pub entries: usize,
    pub hits: u64,
    pub misses: u64,
    pub fills: u64,
    /// Bytes of the values of all fills.
    pub fill_bytes: u64,
    /// Values that were not stored because their lease had ended.
    pub refused: u64,
    pub evictions: u64,
    /// Entries removed because their values were about to change.
    pub invalidations: u64,
    /// Fills of entries that had been evicted so recently that a tier of twice the size would still have had
    /// them.
    pub ghost_hits: u64,
}

impl Status {
    /// Bytes that an entry takes beside its value, its key included, if the values are as long as those of
    /// all fills on average; 0 without entries.
    pub fn overhead(&self) -> f64 {
        if self.entries == 0 || self.fills == 0 {
            return 0.0;
        }
        self.bytes as f64 / self.entries as f64 - self.fill_bytes as f64 / self.fills as f64
    }
}

impl RowTier {
    /// A tier without memory, which can be given up to `bytes_max`.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses the address space.
    pub fn new(bytes_max: usize) -> io::Result<RowTier> {
        RowTier::with_config(Config::new(bytes_max))
    }

    pub fn with_config(config: Config) -> io::Result<RowTier> {
        let Config { bytes_max, block_words, replacement } = config;
        let blocks_max = (bytes_max / 8).min(slot::PLACES_MAX) / block_words;
        // Even the smallest entries need no more buckets than half of the memory holds.
        let buckets_max = bytes_max / 2 / BUCKET_BYTES;
        Ok(RowTier {
            words: Region::new(blocks_max * block_words)?,
            index: Index::new(buckets_max)?,
            store: Mutex::of_class(Store::new(blocks_max, block_words, replacement)),
            requests: OwnedCounters::new(MISSES + 1),
        })
    }

    fn memory(&self) -> Memory<'_> {
        Memory { words: &self.words, index: &self.index, requests: &self.requests }
    }

    /// False while it has no memory, and nothing is found or kept. Costs one load.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.index.count() > 0
    }

    #[inline(always)]
    pub fn probe(&self, owner: u64, key: &[u8]) -> Probe {
        Probe { owner, hash: Hash::of(owner, key) }
    }

    /// Asks the processor for the memory that [`RowTier::prefetch_entry`] is going to read.
    #[inline(always)]
    pub fn prefetch_bucket(&self, probe: Probe) {
        if let Some((number, _)) = self.index.bucket_of(probe.hash) {
            self.index.prefetch(number);
        }
    }

    /// Asks the processor for the memory that [`RowTier::get`] is going to read.
    #[inline(always)]
    pub fn prefetch_entry(&self, probe: Probe) {
        if let Some((_, bucket)) = self.index.bucket_of(probe.hash)
            && let Some((_, slot)) = bucket.find(probe.hash)
        {
            let lines = self.words.iter().skip(slot.place()).step_by(8);
            lines.take(LINES_AHEAD).for_each(prefetch_line);
        }
    }

    /// Appends the value of `key`, which `probe` was made of, to `out`; false if it is not here.
    #[inline]
    pub fn get(&self, probe: Probe, key: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        for _ in 0..LOOKS_MAX {
            match self.look(probe, key, out) {
                Look::Hit(queue) => {
                    self.requests.count(queue);
                    return true;
                }
                Look::Miss => break,
                Look::Torn => out.truncate(start),
            }
        }
        self.requests.count(MISSES);
        false
    }

    #[inline(always)]
    fn look(&self, probe: Probe, key: &[u8], out: &mut Vec<u8>) -> Look {
        let Some((_, bucket)) = self.index.bucket_of(probe.hash) else { return Look::Miss };
        let Some(version) = bucket.version() else { return Look::Torn };
        let found = bucket.find(probe.hash).filter(|(_, slot)| {
            // What it appends counts if the bucket is still the same.
            entry::read(&self.words, slot.place(), probe.owner, key, out)
        });
        match found {
            _ if !bucket.is_still(version) => Look::Torn,
            Some((index, slot)) => {
                bucket.mark_used(index, slot);
                Look::Hit(if slot.is_spared() { SPARED } else { NEW })
            }
            None => Look::Miss,
        }
    }

    /// To be called before the value is read where it comes from (rowtier R3). `announced` belongs to the
    /// owner, and writers of the owner's values look at the same one. `None` if the tier is off, or busy.
    pub fn lease(&self, owner: u64, key: &[u8], announced: &Announced) -> Option<Lease> {
        let hash = Hash::of(owner, key);
        let (bucket, place) = self.index.bucket_of(hash)?;
        announced.announce(owner);
        let epoch = epoch_of(place.version()?);
        // The tier may have been switched off before the version was read. Writers say nothing while it is
        // off, so this epoch would outlive their changes.
        self.is_on().then_some(Lease { owner, hash, bucket, epoch, replaces: false })
    }

    /// As [`RowTier::lease`], for a writer that has just invalidated an entry and is about to put the changed
    /// value. To be called while nobody else can change the value.
    pub fn lease_to_replace(&self, owner: u64, key: &[u8], announced: &Announced) -> Option<Lease> {
        Some(Lease { replaces: true, ..self.lease(owner, key, announced)? })
    }

    /// Stores a value that was read under a lease. `value` is its parts, one behind the other. False if it
    /// was not stored: the value may have changed, or is too long, or the tier is too small.
    pub fn put(&self, lease: Lease, key: &[u8], value: &[&[u8]]) -> bool {
        let Lease { owner, hash, bucket, epoch, replaces } = lease;
        debug_assert_eq!(hash, Hash::of(owner, key));
        let value_len = value.iter().map(|part| part.len()).sum();
        let Some(words) = entry::words_of(key.len(), value_len) else { return false };
        let mut store = self.store.lock();
        if words > store.entry_words_max() {
            return false;
        }
        let now = store.now;
        let leased = || self.index.latch(hash.low()).filter(|latched| latched.honours(bucket, epoch));
        let Some(ghost_age) = leased().map(|latched| latched.ghost_age(hash, now)) else {
            store.counts.refused += 1;
            return false;
        };
        let was_here = ghost_age.is_some_and(|age| store.is_recent(age));
        let queue = store.queue_for(was_here || replaces);
        let Some(place) = store.make_room(self.memory(), queue, words) else { return false };
        store::write(&self.words, place, owner, key, value);
        let Some(met) = leased().map(|mut latched| latched.insert(hash, place, queue == SPARED, now)) else {
            store.take_back(place, words);
            store.counts.refused += 1;
            return false;
        };
        if !replaces {
            store.counts.fills += 1;
            store.counts.fill_bytes += value_len as u64;
        }
        store.counts.ghost_hits += u64::from(was_here);
        store.counts.evictions += u64::from(met == Met::Full);
        self.index.grow_if_crowded(hash.low(), |place| self.memory().measure(place).1.low());
        if store.now != now || !store.fits(&self.index) {
            store.fit(self.memory());
        }
        true
    }

    /// To be called when the value of a key is about to change where it comes from (rowtier R4). A reader
    /// that reads it there from now on sees the change, or waits for it, or finds that its lease has ended.
    /// `key` is called only if anything of the owner may be here. True if an entry was removed.
    #[inline]
    pub fn invalidate<K: AsRef<[u8]>>(
        &self,
        owner: u64,
        key: impl FnOnce() -> K,
        announced: &Announced,
    ) -> bool {
        if !announced.is_announced(owner) || !self.is_on() {
            return false;
        }
        let hash = Hash::of(owner, key().as_ref());
        self.index.latch(hash.low()).is_some_and(|mut latched| latched.invalidate(hash))
    }

    /// Gives the tier so many bytes, index included; what is too little for anything turns it off. Everything
    /// keeps running, and what does not fit any more goes.
    pub fn resize(&self, bytes: usize) {
        let mut store = self.store.lock();
        store.budget = bytes;
        if bytes < BLOCKS_MIN * store.block_bytes() + STRIPES * BUCKET_BYTES {
            if self.is_on() {
                self.index.switch_off();
                store.clear(self.memory());
            }
        } else if self.is_on() {
            store.fit(self.memory());
        } else {
            self.index.switch_on();
        }
    }

    /// What it takes of memory, in bytes.
    pub fn bytes(&self) -> usize {
        let store = self.store.lock();
        store.blocks_held() * store.block_bytes() + self.index.bytes()
    }

    /// See [`Status::ghost_hits`].
    pub fn ghost_hits(&self) -> u64 {
        self.store.lock().counts.ghost_hits
    }

    pub fn status(&self) -> Status {
        let bytes = self.bytes();
        let totals = self.index.totals();
        let store = self.store.lock();
        let counts = store.counts;
        Status {
            size: store.budget,
            bytes,
            entries: totals.entries,
            hits: self.requests.sum(NEW) + self.requests.sum(SPARED),
            misses: self.requests.sum(MISSES),
            fills: counts.fills,
            fill_bytes: counts.fill_bytes,
            refused: counts.refused,
            evictions: counts.evictions,
            invalidations: totals.invalidations,
            ghost_hits: counts.ghost_hits,
        }
    }
}
