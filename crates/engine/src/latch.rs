//! Latches above pages: rows, tables, statements.

use crate::counter::thread_number;
use base::TableId;
use base::sync::{CachePadded, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

base::latch_class!(pub GateLatch, "gate");

base::latch_class!(pub RowStripe, "row");

/// Stripes of row latches. Two writers of different rows meet on one with probability 1/4,096; the array
/// takes 32 KiB.
const STRIPES: usize = 4_096;

/// Mutexes by (table, primary key), each held while a row is read and gets another stamp.
#[derive(Debug)]
pub(crate) struct RowLatches {
    stripes: Box<[Mutex<(), RowStripe>]>,
}

/// Holds the latch of a row.
#[derive(Debug)]
pub(crate) struct RowLatch<'l> {
    _stripe: MutexGuard<'l, ()>,
}

impl RowLatches {
    pub(crate) fn new() -> RowLatches {
        RowLatches { stripes: (0..STRIPES).map(|_| Mutex::of_class(())).collect() }
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

    pub(crate) fn latch(&self, table: TableId, primary_key: &[u8]) -> RowLatch<'_> {
        RowLatch { _stripe: self.stripes[Self::stripe(table, primary_key)].lock() }
    }
}

/// Shards of a gate: threads spread over these many cache lines.
const GATE_SHARDS: usize = 8;

/// A reader-writer latch that is cheap to pass and dear to close: each thread passes through a shard
/// of its own, the thread that closes it takes them all.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    shards: [CachePadded<RwLock<(), GateLatch>>; GATE_SHARDS],
}

#[derive(Debug)]
pub(crate) struct Passage<'g> {
    _shard: RwLockReadGuard<'g, ()>,
}

#[derive(Debug)]
pub(crate) struct Closure<'g> {
    _shards: Vec<RwLockWriteGuard<'g, ()>>,
}

impl Gate {
    pub(crate) fn pass(&self) -> Passage<'_> {
        Passage { _shard: self.shards[thread_number() % GATE_SHARDS].read() }
    }

    /// Passes unless the gate is closed, or about to be.
    pub(crate) fn try_pass(&self) -> Option<Passage<'_>> {
        let shard = self.shards[thread_number() % GATE_SHARDS].try_read()?;
        Some(Passage { _shard: shard })
    }

    /// Waits until everyone is through, and lets nobody in until dropped.
    pub(crate) fn close(&self) -> Closure<'_> {
        Closure { _shards: self.shards.iter().map(|shard| shard.write()).collect() }
    }
}
