//! Latches above pages: rows, tables, statements.

use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use base::sync::{CachePadded, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, thread};
use base::{Stamp, TableId};

/// Stripes of row latches. Two writers of different rows meet on one with probability 1/4,096; the array takes
/// 32 KiB.
const STRIPES: usize = 4_096;

/// Mutexes by (table, primary key), each held for one row's read, change and index entries.
#[derive(Debug)]
pub struct RowLatches {
    stripes: Box<[Mutex<()>]>,
}

/// Holds the latches of one row, or of the two rows that a changed primary key names.
#[derive(Debug)]
pub struct RowLatch<'l> {
    _first: MutexGuard<'l, ()>,
    _second: Option<MutexGuard<'l, ()>>,
}

impl RowLatches {
    pub fn new() -> RowLatches {
        RowLatches { stripes: (0..STRIPES).map(|_| Mutex::new(())).collect() }
    }

    fn stripe(table: TableId, primary_key: &[u8]) -> usize {
        // Multiplication spreads, the fold brings the high bits down (Fibonacci hashing).
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut hash = u64::from(table.0).wrapping_mul(ODD);
        for chunk in primary_key.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(ODD);
            hash ^= hash >> 32;
        }
        hash as usize % STRIPES
    }

    pub fn latch(&self, table: TableId, primary_key: &[u8]) -> RowLatch<'_> {
        RowLatch { _first: self.stripes[Self::stripe(table, primary_key)].lock(), _second: None }
    }

    /// Latches two rows, the lower stripe first.
    pub fn latch_two(&self, table: TableId, one: &[u8], other: &[u8]) -> RowLatch<'_> {
        let (one, other) = (Self::stripe(table, one), Self::stripe(table, other));
        let first = self.stripes[one.min(other)].lock();
        let second = (one != other).then(|| self.stripes[one.max(other)].lock());
        RowLatch { _first: first, _second: second }
    }
}

/// How many bulk inserts can be under way at once; more wait.
const BULKS_MAX: usize = 64;

/// The stamps of bulk inserts that are under way.
///
/// A bulk insert does not latch its rows one by one. It puts the rows into the clustered index first, and while its stamp
/// stands here nobody else changes a row that carries it: the stamp in the row is the latch.
#[derive(Debug)]
pub struct ActiveBulks {
    count: AtomicUsize,
    slots: Box<[AtomicU64]>,
}

/// Takes the stamp back when dropped.
#[derive(Debug)]
pub struct ActiveBulk<'b> {
    bulks: &'b ActiveBulks,
    slot: usize,
}

impl ActiveBulks {
    pub fn new() -> ActiveBulks {
        ActiveBulks { count: AtomicUsize::new(0), slots: (0..BULKS_MAX).map(|_| AtomicU64::new(0)).collect() }
    }

    pub fn enter(&self, stamp: Stamp) -> ActiveBulk<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        loop {
            for (slot, word) in self.slots.iter().enumerate() {
                // The stamp is in its slot before a row with it is in a page: page latches order the rest.
                if word.compare_exchange(0, stamp.0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                    return ActiveBulk { bulks: self, slot };
                }
            }
            pause();
        }
    }

    /// True if a row with this stamp belongs to a bulk insert that has not ended.
    pub fn owns(&self, stamp: Stamp) -> bool {
        self.count.load(Ordering::SeqCst) != 0
            && self.slots.iter().any(|slot| slot.load(Ordering::SeqCst) == stamp.0)
    }

    /// Returns once no bulk insert with this stamp is under way. The caller holds no latch.
    pub fn wait_for(&self, stamp: Stamp) {
        while self.owns(stamp) {
            pause();
        }
    }
}

fn pause() {
    #[cfg(not(feature = "shuttle"))]
    thread::sleep(std::time::Duration::from_micros(50));
    #[cfg(feature = "shuttle")]
    thread::yield_now();
}

impl Drop for ActiveBulk<'_> {
    fn drop(&mut self) {
        self.bulks.slots[self.slot].store(0, Ordering::SeqCst);
        self.bulks.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Shards of a gate: threads spread over these many cache lines.
const GATE_SHARDS: usize = 8;

/// A reader-writer latch that is cheap to pass and dear to close: each thread passes through a shard
/// of its own, who closes it takes them all.
#[derive(Debug, Default)]
pub struct Gate {
    shards: [CachePadded<RwLock<()>>; GATE_SHARDS],
}

#[derive(Debug)]
pub struct Passage<'g> {
    _shard: RwLockReadGuard<'g, ()>,
}

#[derive(Debug)]
pub struct Closure<'g> {
    _shards: Vec<RwLockWriteGuard<'g, ()>>,
}

impl Gate {
    pub fn pass(&self) -> Passage<'_> {
        Passage { _shard: self.shards[thread_number() % GATE_SHARDS].read() }
    }

    /// Waits until everyone is through, and lets nobody in until dropped.
    pub fn close(&self) -> Closure<'_> {
        Closure { _shards: self.shards.iter().map(|shard| shard.write()).collect() }
    }
}

/// A number of the calling thread, small and dense.
pub fn thread_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        // ORDER: the numbers only have to differ.
        static NUMBER: usize = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// A counter that threads change without sharing a cache line. Exact when they rest.
#[derive(Debug, Default)]
pub struct SpreadCounter {
    shards: [CachePadded<AtomicU64>; GATE_SHARDS],
}

impl SpreadCounter {
    pub fn add(&self, delta: i64) {
        // ORDER: a sum of numbers; nothing is published through it.
        self.shards[thread_number() % GATE_SHARDS].fetch_add(delta as u64, Ordering::Relaxed);
    }

    pub fn sum(&self) -> u64 {
        // ORDER: as in `add`.
        let sum = self.shards.iter().fold(0u64, |sum, s| sum.wrapping_add(s.load(Ordering::Relaxed)));
        // Shards read one after the other may miss the addition to a subtraction seen.
        if sum as i64 >= 0 { sum } else { 0 }
    }

    /// Nobody else uses the counter meanwhile.
    pub fn set(&self, value: u64) {
        for (index, shard) in self.shards.iter().enumerate() {
            // ORDER: as in `add`.
            shard.store(if index == 0 { value } else { 0 }, Ordering::Relaxed);
        }
    }
}
