//! Which transactions are finished, and when: ids, the clock, and the status of each id.
//!
//! Ids are grouped in chunks. A chunk is *expanded*, with a word an id, or *collapsed* into one word, the
//! largest number at which one of its ids finished; or it is *settled* and takes no room. Chunks hang in a
//! ring:
//!
//! ```text
//! ring slot: chunk | word           word = collapsed: number | expanded: buffer
//!                      |
//! buffer:    status of id 0, 1, 2, ...     0 = active, otherwise number and how it ended
//! ```
//!
//! Readers take no latch (transactions R1). Slots and buffers are used again without waiting for readers to
//! leave them. Instead a reader looks at the slot again after it has read: a chunk number never comes back,
//! so an unchanged slot means that what was read belongs to the chunk.

mod buffers;
mod ring;

use crate::error::IdsExhausted;
use crate::registry::{Live, Registry};
use base::Stamp;
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use base::sync::{CachePadded, Mutex, hint};
use buffers::Buffers;
use ring::{Ring, Word};
use std::collections::{BTreeMap, BTreeSet};

base::latch_class!(pub StatusLatch, "transaction status");

/// The largest id: rows carry 48 bits.
const ID_MAX: u64 = (1 << 48) - 1;

/// What is known of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Not given out yet: what a torn page may seem to hold.
    Unborn,
    Active,
    /// Committed at this number. For a chunk without words of its own: at a number that every live snapshot
    /// compares with as it would with the true one.
    Committed(u64),
    RolledBack,
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Committed,
    RolledBack,
}

const ACTIVE: u64 = 0;
const COMMITTED: u64 = 1;
const ROLLED_BACK: u64 = 2;

fn status_of(word: u64) -> Status {
    match word & 3 {
        ACTIVE => Status::Active,
        COMMITTED => Status::Committed(word >> 2),
        _ => Status::RolledBack,
    }
}

#[derive(Debug)]
pub struct StatusTable {
    chunk_bits: u32,
    ends: CachePadded<Ends>,
    /// All ids below are given out.
    next: CachePadded<AtomicU64>,
    /// All ids below are finished, and visible to every snapshot that is open or will be.
    settled_below: CachePadded<AtomicU64>,
    ring: Ring,
    buffers: Buffers,
    core: Mutex<Core, StatusLatch>,
}

/// Numbers that the end of each write transaction writes together, and each new snapshot reads together.
#[derive(Debug)]
struct Ends {
    /// How many transactions have ended: the number of the last.
    clock: AtomicU64,
    /// The lowest id that is not finished.
    low: AtomicU64,
}

#[derive(Debug)]
struct Core {
    next: u64,
    low: u64,
    clock: u64,
    /// The oldest chunk in the ring.
    first_chunk: u64,
    /// The chunk behind the newest in the ring.
    end_chunk: u64,
    expanded: BTreeMap<u64, Expanded>,
    free_buffers: Vec<usize>,
    buffers: usize,
}

#[derive(Debug)]
struct Expanded {
    buffer: usize,
    finished: u64,
    /// The numbers at which its ids finished, first and last.
    first_end: u64,
    last_end: u64,
}

/// How much the status table holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatusUsage {
    /// Chunks with a word an id.
    pub expanded: usize,
    /// Chunks in all, expanded and collapsed.
    pub chunks: u64,
    /// Buffers ever made; those not in use are kept for the next chunk.
    pub buffers: usize,
}

impl StatusTable {
    pub fn new(next_id: u64, chunk_ids: u64) -> StatusTable {
        // With one id a chunk, the chunk of a torn stamp could be the number that stands for no chunk.
        assert!(chunk_ids.is_power_of_two() && chunk_ids > 1, "chunks of {chunk_ids} ids");
        assert!((1..=ID_MAX).contains(&next_id), "ids begin at 1");
        let chunk_bits = chunk_ids.trailing_zeros();
        let first_chunk = next_id >> chunk_bits;
        StatusTable {
            chunk_bits,
            ends: CachePadded(Ends { clock: AtomicU64::new(0), low: AtomicU64::new(next_id) }),
            next: CachePadded(AtomicU64::new(next_id)),
            settled_below: CachePadded(AtomicU64::new(next_id)),
            ring: Ring::new(),
            buffers: Buffers::new(chunk_ids as usize),
            core: Mutex::of_class(Core {
                next: next_id,
                low: next_id,
                clock: 0,
                first_chunk,
                end_chunk: first_chunk,
                expanded: BTreeMap::new(),
                free_buffers: Vec::new(),
                buffers: 0,
            }),
        }
    }

    /// As `new`, with ids below `next_id` that are active. The others are committed, and everybody sees them.
    pub fn with_unfinished(next_id: u64, chunk_ids: u64, unfinished: &[Stamp]) -> StatusTable {
        let unfinished: BTreeSet<u64> = unfinished.iter().map(|stamp| stamp.0).collect();
        let lowest = unfinished.first().copied().unwrap_or(next_id).min(next_id);
        let table = StatusTable::new(lowest, chunk_ids);
        let mut guard = table.core.lock();
        let core = &mut *guard;
        while core.next < next_id {
            let (chunk, first) = (core.end_chunk, core.next);
            let end = next_id.min((chunk + 1) << table.chunk_bits);
            let is_whole = end.is_multiple_of(chunk_ids) && unfinished.range(first..end).next().is_none();
            if is_whole {
                let slots = table.ring.room_for(core.first_chunk, chunk);
                slots.slot(chunk).assign(chunk, Word::Collapsed(0));
                core.end_chunk = chunk + 1;
            } else {
                table.open_chunk(core);
                let Some(expanded) = core.expanded.get_mut(&chunk) else { continue };
                for id in (first..end).filter(|id| !unfinished.contains(id)) {
                    let cell = table.buffers.cell(expanded.buffer, id & table.chunk_mask());
                    // ORDER: nobody else has the table yet.
                    cell.store(COMMITTED, Relaxed);
                    expanded.finished += 1;
                    expanded.first_end = 0;
                }
            }
            core.next = end;
        }
        // ORDER: as above.
        table.next.store(next_id.max(lowest), Relaxed);
        drop(guard);
        table
    }

    /// The number of the last end.
    #[inline]
    pub fn clock(&self) -> u64 {
        // ORDER: Acquire pairs with the Release in `finish`: a thread that sees a number sees the status of
        // all numbers up to it (transactions R1).
        self.ends.clock.load(Acquire)
    }

    /// The lowest id that is not finished. Loaded before the clock, it bounds what a snapshot need not look
    /// up.
    #[inline]
    pub fn low(&self) -> u64 {
        // ORDER: Acquire pairs with the Release in `finish`, which stores the clock first: a clock loaded
        // after this is no less than the numbers of all ids below.
        self.ends.low.load(Acquire)
    }

    pub fn next(&self) -> u64 {
        // ORDER: Acquire: a thread that sees that an id was given out sees its chunk in the ring.
        self.next.load(Acquire)
    }

    /// Gives out an id.
    pub fn begin(&self, registry: &Registry) -> Result<u64, IdsExhausted> {
        let mut core = self.core.lock();
        let id = core.next;
        if id > ID_MAX {
            return Err(IdsExhausted);
        }
        if id >> self.chunk_bits == core.end_chunk {
            self.reclaim_in(&mut core, &registry.live(|| self.clock()));
            self.open_chunk(&mut core);
        }
        core.next = id + 1;
        // ORDER: Release: see `next`.
        self.next.store(id + 1, Release);
        Ok(id)
    }

    /// Ends a transaction: from the next clock on it is finished. Gives its number. A rollback takes a number
    /// too, so that its chunk is not settled while a snapshot is open that was taken when its rows were still
    /// on the pages.
    pub fn finish(&self, id: u64, outcome: Outcome) -> u64 {
        let mut core = self.core.lock();
        let number = core.clock + 1;
        let mask = self.chunk_mask();
        let chunk =
            core.expanded.get_mut(&(id >> self.chunk_bits)).expect("an active id's chunk is expanded");
        chunk.finished += 1;
        chunk.first_end = chunk.first_end.min(number);
        chunk.last_end = number;
        let kind = if outcome == Outcome::Committed { COMMITTED } else { ROLLED_BACK };
        let cell = self.buffers.cell(chunk.buffer, id & mask);
        assert_eq!(cell.load(Relaxed), ACTIVE, "a transaction ends once");
        // ORDER: Release: a thread that sees the outcome sees all that the transaction did to the table of
        // statuses.
        cell.store(number << 2 | kind, Release);
        core.clock = number;
        // ORDER: Release after the status: see `clock`.
        self.ends.clock.store(number, Release);
        if id == core.low {
            core.low = self.next_low(&core);
            // ORDER: Release after the clock: see `low`.
            self.ends.low.store(core.low, Release);
        }
        number
    }

    fn next_low(&self, core: &Core) -> u64 {
        let mut id = core.low;
        while id < core.next {
            match core.expanded.get(&(id >> self.chunk_bits)) {
                // ORDER: Relaxed: under the latch that all writers hold.
                Some(chunk) => match self.buffers.cell(chunk.buffer, id & self.chunk_mask()).load(Relaxed) {
                    ACTIVE => break,
                    _ => id += 1,
                },
                // Only a chunk that is finished to its last id is not expanded.
                None => id = ((id >> self.chunk_bits) + 1) << self.chunk_bits,
            }
        }
        id
    }

    /// What is known of an id. Takes no latch.
    pub fn status(&self, id: u64) -> Status {
        let chunk = id >> self.chunk_bits;
        loop {
            // ORDER: Acquire pairs with the Release in `reclaim_in`: the slot of a settled chunk is used
            // again only after this has been raised. So a reader that finds another chunk in the slot finds
            // on its next turn that the id is settled.
            if id < self.settled_below.load(Acquire) {
                return Status::Committed(0);
            }
            let slots = self.ring.current();
            let slot = slots.slot(chunk);
            // ORDER: Acquire on all of these keeps them in this order, and pairs with the Release stores that
            // change slot and buffer: a reader that saw a later use of either sees in the second look that
            // the slot has changed.
            if slot.chunk.load(Acquire) == chunk {
                let word = slot.word.load(Acquire);
                let status = match Word::decode(word) {
                    Word::Collapsed(number) => Status::Committed(number),
                    Word::Expanded(buffer) => {
                        status_of(self.buffers.cell(buffer, id & self.chunk_mask()).load(Acquire))
                    }
                };
                let unchanged = slot.word.load(Acquire) == word
                    && slot.chunk.load(Acquire) == chunk
                    && self.ring.is_current(&slots);
                // The unused part of the newest chunk reads as active.
                match status {
                    Status::Active if unchanged && id >= self.next() => return Status::Unborn,
                    status if unchanged => return status,
                    _ => {}
                }
            } else if id >= self.next() {
                return Status::Unborn;
            }
            hint::spin_loop();
        }
    }

    /// Collapses and settles the chunks whose single words no snapshot needs (transactions R4).
    pub fn reclaim(&self, registry: &Registry) {
        let mut core = self.core.lock();
        self.reclaim_in(&mut core, &registry.live(|| self.clock()));
    }

    fn reclaim_in(&self, core: &mut Core, live: &Live) {
        let slots = self.ring.current();
        let full = self.chunk_mask() + 1;
        let Core { expanded, free_buffers, .. } = core;
        expanded.retain(|number, chunk| {
            let needed = chunk.finished < full
                || chunk.last_end > live.announced
                || live.is_any_open_in(chunk.first_end, chunk.last_end);
            if !needed {
                // ORDER: Release, and before the buffer is used again: see `status`.
                slots.slot(*number).word.store(Word::Collapsed(chunk.last_end).encode(), Release);
                free_buffers.push(chunk.buffer);
            }
            needed
        });
        let horizon = live.horizon();
        while core.first_chunk < core.end_chunk {
            // ORDER: Relaxed: under the latch that all writers hold.
            match Word::decode(slots.slot(core.first_chunk).word.load(Relaxed)) {
                Word::Collapsed(number) if number <= horizon => core.first_chunk += 1,
                _ => break,
            }
            // ORDER: Release, and before the slot is used again: see `status`.
            self.settled_below.store(core.first_chunk << self.chunk_bits, Release);
        }
    }

    /// Makes room in the ring for the next chunk and hangs an expanded one there.
    fn open_chunk(&self, core: &mut Core) {
        let chunk = core.end_chunk;
        let slots = self.ring.room_for(core.first_chunk, chunk);
        let buffer = core.free_buffers.pop().unwrap_or_else(|| {
            core.buffers += 1;
            core.buffers - 1
        });
        self.buffers.clear(buffer);
        // A table that begins in the middle of a chunk never asks for the ids before: they are settled.
        let finished = core.next & self.chunk_mask();
        core.expanded.insert(chunk, Expanded { buffer, finished, first_end: u64::MAX, last_end: core.clock });
        slots.slot(chunk).assign(chunk, Word::Expanded(buffer));
        core.end_chunk = chunk + 1;
    }

    fn chunk_mask(&self) -> u64 {
        (1 << self.chunk_bits) - 1
    }

    pub fn usage(&self) -> StatusUsage {
        let core = self.core.lock();
        StatusUsage {
            expanded: core.expanded.len(),
            chunks: core.end_chunk - core.first_chunk,
            buffers: core.buffers,
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_former_life_are_settled_even_in_the_middle_of_a_chunk() {
        let (table, registry) = (StatusTable::new(6, 4), Registry::new());
        assert_eq!(table.status(5), Status::Committed(0));
        assert_eq!(table.status(6), Status::Unborn);
        assert_eq!(table.begin(&registry), Ok(6));
        assert_eq!(table.status(6), Status::Active);
        assert_eq!(table.status(7), Status::Unborn);
        assert_eq!(table.status(u64::MAX), Status::Unborn);
        assert_eq!(table.finish(6, Outcome::Committed), 1);
        assert_eq!(table.status(6), Status::Committed(1));
        assert_eq!((table.low(), table.clock()), (7, 1));
    }

    #[test]
    fn transactions_that_a_start_found_unfinished_are_active_and_all_others_are_settled() {
        for (unfinished, next) in [(vec![5], 6), (vec![5, 17], 40), (vec![3, 4], 4_099), (vec![8], 16)] {
            let stamps: Vec<Stamp> = unfinished.iter().copied().map(Stamp).collect();
            let (table, registry) = (StatusTable::with_unfinished(next, 4, &stamps), Registry::new());
            let status = |id| match unfinished.contains(&id) {
                true => Status::Active,
                false if id < next => Status::Committed(0),
                false => Status::Unborn,
            };
            (0..next + 9).for_each(|id| assert_eq!(table.status(id), status(id), "{id} of {unfinished:?}"));
            assert_eq!((table.low(), table.next(), table.clock()), (unfinished[0], next, 0));
            // A snapshot from before they end goes on seeing what was committed.
            let entry = registry.register(crate::registry::Hold::UntilClosed);
            let snapshot = registry.open(&entry, || (table.low(), table.clock()));
            let begun: Vec<u64> = (0..9).map(|_| table.begin(&registry).unwrap()).collect();
            for id in &begun {
                table.finish(*id, Outcome::Committed);
            }
            for id in &unfinished {
                table.finish(*id, Outcome::RolledBack);
            }
            table.reclaim(&registry);
            for id in (0..next).filter(|id| !unfinished.contains(id)) {
                let Status::Committed(number) = table.status(id) else { panic!("{id}") };
                assert!(number <= snapshot.number, "{id} is seen");
            }
            for id in &begun {
                let Status::Committed(number) = table.status(*id) else { panic!("{id}") };
                assert!(number > snapshot.number, "{id} is not");
            }
            entry.close();
            table.reclaim(&registry);
            assert_eq!(table.low(), table.next());
        }
    }

    #[test]
    fn an_old_transaction_costs_a_chunk_and_not_all_that_came_later() {
        let (table, registry) = (StatusTable::new(1, 4), Registry::new());
        let old = table.begin(&registry).unwrap();
        for _ in 0..4000 {
            let id = table.begin(&registry).unwrap();
            table.finish(id, Outcome::Committed);
        }
        let usage = table.usage();
        assert!(usage.expanded <= 3 && usage.buffers <= 4, "{usage:?}");
        assert_eq!(table.status(old), Status::Active);
        assert_eq!(table.low(), old);
        table.finish(old, Outcome::RolledBack);
        assert_eq!(table.low(), table.next());
        table.reclaim(&registry);
        assert!(table.usage().chunks <= 1);
    }

    #[test]
    fn ids_end_with_the_forty_eighth_bit() {
        let (table, registry) = (StatusTable::new(ID_MAX, 4096), Registry::new());
        assert_eq!(table.begin(&registry), Ok(ID_MAX));
        assert_eq!(table.begin(&registry), Err(IdsExhausted));
    }

    #[test]
    #[should_panic(expected = "ends once")]
    fn a_transaction_does_not_end_twice() {
        let (table, registry) = (StatusTable::new(1, 4), Registry::new());
        let id = table.begin(&registry).unwrap();
        table.finish(id, Outcome::Committed);
        table.finish(id, Outcome::RolledBack);
    }
}
