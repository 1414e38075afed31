//! Counters that many threads change.

use base::sync::CachePadded;
use base::sync::atomic::{AtomicU64, Ordering};

const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 8 };

/// A number of the calling thread, small and dense.
pub(crate) fn thread_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        // ORDER: the numbers only have to differ.
        static NUMBER: usize = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// A counter that threads change without sharing a cache line. Exact when they rest.
#[derive(Debug, Default)]
pub(crate) struct SpreadCounter {
    shards: [CachePadded<AtomicU64>; SHARDS],
}

impl SpreadCounter {
    /// The calling thread's.
    pub(crate) fn shard(&self) -> &AtomicU64 {
        &self.shards[thread_number() % SHARDS]
    }

    pub(crate) fn total(&self, order: Ordering) -> u64 {
        self.shards.iter().fold(0u64, |sum, shard| sum.wrapping_add(shard.load(order)))
    }

    pub(crate) fn add(&self, delta: i64) {
        // ORDER: a sum of numbers; nothing is published through it.
        self.shard().fetch_add(delta as u64, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> u64 {
        // ORDER: as in `add`.
        let sum = self.total(Ordering::Relaxed);
        // Shards read one after the other may miss the addition to a subtraction seen.
        if sum as i64 >= 0 { sum } else { 0 }
    }

    /// Nobody else uses the counter meanwhile.
    pub(crate) fn set(&self, value: u64) {
        for (index, shard) in self.shards.iter().enumerate() {
            // ORDER: as in `add`.
            shard.store(if index == 0 { value } else { 0 }, Ordering::Relaxed);
        }
    }
}
