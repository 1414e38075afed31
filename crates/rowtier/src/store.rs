//! The entries themselves, and which of them are evicted: a log of blocks, which are swept in the order in
//! which they were filled.
//!
//! All of this happens under one latch. Nothing in a block changes before the block has been swept. The sweep
//! raises the versions of the buckets that led into the block, so a reader that was in it finds its read
//! invalid (rowtier R7).

use crate::entry;
use crate::hash::Hash;
use crate::index::Index;
use base::OwnedCounters;
use base::region::Region;
use base::sync::atomic::{AtomicU64, Ordering, fence};
use std::collections::VecDeque;

/// After so many sweeps for one block used entries are not spared any more. This bounds the cost of a put.
const SWEEPS_MAX: u32 = 4;

/// With fewer blocks the tier is off. It needs an open block for each of two queues, one that is swept, and
/// one that takes what the sweep spares.
pub const BLOCKS_MIN: usize = 4;

/// Entries from when they came to their first sweep.
pub const NEW: usize = 0;
/// Entries that a sweep has spared, or that were wanted again soon after they had gone.
pub const SPARED: usize = 1;

/// With each block that is filled earlier hits count for an eighth less. That is slow enough to see a
/// difference between the queues, and fast enough to notice when nobody reads the old rows any more.
const HITS_FADE: f64 = 7.0 / 8.0;

#[derive(Default, Debug)]
struct Queue {
    /// Filled blocks, the oldest first.
    full: VecDeque<u32>,
    /// The block that is being filled.
    open: Option<u32>,
}

impl Queue {
    fn len(&self) -> usize {
        self.full.len() + usize::from(self.open.is_some())
    }
}

/// What the holder of the store counts.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub fills: u64,
    pub fill_bytes: u64,
    pub refused: u64,
    pub evictions: u64,
    pub ghost_hits: u64,
}

/// How the entries to evict are chosen. An entry that was used since it came, or since a sweep last spared
/// it, is spared. Shares are in percent of the blocks. The README has the results on traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replacement {
    /// The oldest are evicted (CLOCK).
    SecondChance,
    /// New entries have a share of their own (S3-FIFO: J. Yang and others, "FIFO queues are all you need for
    /// cache eviction", SOSP 2023).
    NewShare(u8),
    /// As before, but the new entries grow beyond that share as long as their blocks have more hits than
    /// those of spared entries.
    ByHits(u8),
}

#[derive(Debug)]
pub struct Store {
    block_words: usize,
    replacement: Replacement,
    queues: [Queue; 2],
    /// Hits in each queue at the last look, and the recent ones.
    hits: [u64; 2],
    hits_lately: [f64; 2],
    /// Words in use, by block.
    filled: Vec<u32>,
    /// Blocks in no queue that have memory, and that have none.
    free: Vec<u32>,
    bare: Vec<u32>,
    blocks_max: usize,
    /// Bytes that blocks and index may take together.
    pub budget: usize,
    /// The time, in blocks that have been swept.
    pub now: u64,
    pub counts: Counts,
}

/// What the store works on.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'m> {
    pub words: &'m Region<AtomicU64>,
    pub index: &'m Index,
    pub requests: &'m OwnedCounters,
}

impl Memory<'_> {
    /// The words of the entry at `place`, and its hash. The store's latch is held.
    pub fn measure(&self, place: usize) -> (usize, Hash) {
        entry::measure(&self.words[place..])
    }

    fn hits(&self) -> [u64; 2] {
        [NEW, SPARED].map(|queue| self.requests.sum(queue))
    }
}

impl Store {
    pub fn new(blocks_max: usize, block_words: usize, replacement: Replacement) -> Store {
        Store {
            block_words,
            replacement,
            queues: Default::default(),
            hits: [0; 2],
            hits_lately: [0.0; 2],
            filled: Vec::new(),
            free: Vec::new(),
            bare: Vec::new(),
            blocks_max,
            budget: 0,
            now: 0,
            counts: Counts::default(),
        }
    }

    pub fn block_bytes(&self) -> usize {
        self.block_words * 8
    }

    /// The longest entry that is taken, in words. An entry that does not fit into the rest of a block leaves
    /// that rest unused.
    pub fn entry_words_max(&self) -> usize {
        self.block_words / 4
    }

    fn blocks_used(&self) -> usize {
        self.queues.iter().map(Queue::len).sum()
    }

    /// Blocks with memory.
    pub fn blocks_held(&self) -> usize {
        self.blocks_used() + self.free.len()
    }

    /// Blocks that there may be.
    fn blocks_allowed(&self, index: &Index) -> usize {
        self.budget.saturating_sub(index.bytes()) / self.block_bytes()
    }

    /// An entry evicted within this time, by [`Store::now`], would still be there with twice the blocks.
    pub fn is_recent(&self, age: u64) -> bool {
        age <= self.blocks_used() as u64
    }

    /// The place for an entry of so many words, behind all others of `queue`. Evicts entries if there is no
    /// room.
    pub fn make_room(&mut self, memory: Memory<'_>, queue: usize, words: usize) -> Option<usize> {
        for sweeps in 0.. {
            // One block less than allowed: the last one is for entries that a sweep spares.
            let limit = self.blocks_allowed(memory.index).checked_sub(1)?;
            if let Some(place) = self.append(queue, words, limit) {
                return Some(place);
            }
            if sweeps == 0 {
                self.look_at_hits(memory.hits());
            }
            if !self.sweep(memory, sweeps < SWEEPS_MAX) {
                return None;
            }
        }
        None
    }

    /// Gives back the place that `make_room` gave last.
    pub fn take_back(&mut self, place: usize, words: usize) {
        self.filled[place / self.block_words] -= words as u32;
    }

    fn append(&mut self, queue: usize, words: usize, limit: usize) -> Option<usize> {
        let fits = |open: &u32| self.filled[*open as usize] as usize + words <= self.block_words;
        let open = self.queues[queue].open;
        let block = match open.filter(fits) {
            Some(open) => open,
            None => {
                let block = self.take_block(limit)?;
                let queue = &mut self.queues[queue];
                queue.full.extend(queue.open.replace(block));
                block
            }
        };
        let filled = &mut self.filled[block as usize];
        let place = block as usize * self.block_words + *filled as usize;
        *filled += words as u32;
        Some(place)
    }

    fn take_block(&mut self, limit: usize) -> Option<u32> {
        if self.blocks_used() >= limit {
            return None;
        }
        let block = self.free.pop().or_else(|| self.bare.pop()).or_else(|| {
            let fresh = self.filled.len();
            (fresh < self.blocks_max).then(|| {
                self.filled.push(0);
                fresh as u32
            })
        })?;
        self.filled[block as usize] = 0;
        Some(block)
    }

    /// The queue that a new entry goes to.
    pub fn queue_for(&self, was_here: bool) -> usize {
        if was_here || self.replacement == Replacement::SecondChance { SPARED } else { NEW }
    }

    fn look_at_hits(&mut self, hits: [u64; 2]) {
        for queue in [NEW, SPARED] {
            let fresh = hits[queue] - self.hits[queue];
            self.hits_lately[queue] = self.hits_lately[queue] * HITS_FADE + fresh as f64;
        }
        self.hits = hits;
    }

    /// The block to be swept next, taken out of its queue.
    fn oldest(&mut self) -> Option<u32> {
        let [new, spared] = [NEW, SPARED].map(|queue| self.queues[queue].len() as f64);
        let share = match self.replacement {
            Replacement::SecondChance => 0,
            Replacement::NewShare(percent) | Replacement::ByHits(percent) => percent,
        };
        let is_above = new * 100.0 > (new + spared) * f64::from(share);
        let sweeps_new = is_above
            && match self.replacement {
                // Compares hits a block, without a division.
                Replacement::ByHits(_) => self.hits_lately[NEW] * spared <= self.hits_lately[SPARED] * new,
                _ => true,
            };
        let order = if sweeps_new { [NEW, SPARED] } else { [SPARED, NEW] };
        let full = order.into_iter().find_map(|queue| self.queues[queue].full.pop_front());
        full.or_else(|| order.into_iter().find_map(|queue| self.queues[queue].open.take()))
    }

    /// Evicts the entries of the oldest block, or spares those that have been used. False if there is no
    /// block.
    fn sweep(&mut self, memory: Memory<'_>, spares: bool) -> bool {
        let Some(block) = self.oldest() else { return false };
        let first = block as usize * self.block_words;
        let end = first + self.filled[block as usize] as usize;
        // The block that is swept counts among those allowed, so there is room for what it spares.
        let limit = self.blocks_allowed(memory.index).saturating_sub(1);
        let mut place = first;
        while place < end {
            let (words, hash) = memory.measure(place);
            if let Some(mut bucket) = memory.index.latch(hash.low())
                && let Some((index, slot)) = bucket.slot_at(place)
            {
                let spared = if spares && slot.is_used() { self.append(SPARED, words, limit) } else { None };
                match spared {
                    Some(to) => {
                        copy(memory.words, place, to, words);
                        bucket.move_to(index, to);
                    }
                    None => {
                        bucket.evict(index, self.now);
                        self.counts.evictions += 1;
                    }
                }
            }
            place += words;
        }
        self.now += 1;
        self.free.push(block);
        true
    }

    /// True if blocks and index keep to the budget.
    pub fn fits(&self, index: &Index) -> bool {
        self.blocks_held() <= self.blocks_allowed(index)
    }

    /// Sweeps, and gives memory back, until blocks and index keep to the budget.
    pub fn fit(&mut self, memory: Memory<'_>) {
        let excess = (self.blocks_used() + 1).saturating_sub(self.blocks_allowed(memory.index));
        let mut sweeps = 0;
        while self.blocks_used() + 1 > self.blocks_allowed(memory.index)
            && self.sweep(memory, sweeps < SWEEPS_MAX as usize * excess)
        {
            sweeps += 1;
            // The index gives back what fewer entries do not need.
            self.counts.evictions += memory.index.shrink_if_sparse() as u64;
        }
        while !self.fits(memory.index)
            && let Some(block) = self.free.pop()
        {
            self.release(memory, block);
        }
    }

    /// Gives all blocks back. Their entries are in no bucket any more.
    pub fn clear(&mut self, memory: Memory<'_>) {
        for queue in std::mem::take(&mut self.queues) {
            self.free.extend(queue.full.into_iter().chain(queue.open));
        }
        while let Some(block) = self.free.pop() {
            self.release(memory, block);
        }
    }

    fn release(&mut self, memory: Memory<'_>, block: u32) {
        let first = block as usize * self.block_words;
        memory.words.release(first..first + self.block_words);
        self.bare.push(block);
    }
}

/// Stores an entry at a place that `make_room` gave.
pub fn write(words: &Region<AtomicU64>, place: usize, owner: u64, key: &[u8], value: &[&[u8]]) {
    // ORDER: a reader that reads any of what follows, and then fences, finds that the bucket that led it
    // there has changed: the bucket's version was raised before the block was given back, under the store's
    // latch (rowtier R7).
    fence(Ordering::Release);
    entry::write(&words[place..], owner, key, value);
}

fn copy(words: &Region<AtomicU64>, from: usize, to: usize, len: usize) {
    // ORDER: as in `write`.
    fence(Ordering::Release);
    for offset in 0..len {
        words[to + offset].store(words[from + offset].load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
