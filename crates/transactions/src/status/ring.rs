//! The ring of chunk slots. A full ring is followed by one of twice its size. The old ones stay, for readers
//! that are still in them. All old ones together take as much memory as the newest.

use base::sync::OnceLock;
use base::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Slots of the first ring: a quarter of a million ids, 1 KiB.
#[cfg(not(feature = "shuttle"))]
const SLOTS_FIRST: usize = 64;
#[cfg(feature = "shuttle")]
const SLOTS_FIRST: usize = 1;

/// Enough to double until every chunk of one id has a slot.
const RINGS_MAX: usize = 48;

/// No chunk has this number.
const NO_CHUNK: u64 = u64::MAX;

/// What a slot's word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Collapsed(u64),
    Expanded(usize),
}

impl Word {
    pub fn encode(self) -> u64 {
        match self {
            Word::Collapsed(number) => number << 1,
            Word::Expanded(buffer) => (buffer as u64) << 1 | 1,
        }
    }

    pub fn decode(word: u64) -> Word {
        if word & 1 == 0 { Word::Collapsed(word >> 1) } else { Word::Expanded((word >> 1) as usize) }
    }
}

#[derive(Debug)]
pub struct Slot {
    pub chunk: AtomicU64,
    pub word: AtomicU64,
}

impl Slot {
    fn new() -> Slot {
        Slot { chunk: AtomicU64::new(NO_CHUNK), word: AtomicU64::new(0) }
    }

    /// Gives the slot to a chunk. The caller holds the table's latch.
    pub fn assign(&self, chunk: u64, word: Word) {
        // ORDER: Release, in this order: a reader that reads the new word under the old chunk's number finds
        // in its second look that the number has gone. A reader that reads the new number reads the new word
        // (transactions R1).
        self.chunk.store(NO_CHUNK, Release);
        self.word.store(word.encode(), Release);
        self.chunk.store(chunk, Release);
    }
}

#[derive(Debug)]
pub struct Ring {
    current: AtomicUsize,
    rings: [OnceLock<Box<[Slot]>>; RINGS_MAX],
}

/// A ring as a reader found it.
#[derive(Clone, Copy, Debug)]
pub struct Slots<'r> {
    ring: usize,
    slots: &'r [Slot],
}

impl<'r> Slots<'r> {
    pub fn slot(&self, chunk: u64) -> &'r Slot {
        &self.slots[chunk as usize & (self.slots.len() - 1)]
    }
}

impl Ring {
    pub fn new() -> Ring {
        let ring = Ring { current: AtomicUsize::new(0), rings: [const { OnceLock::new() }; RINGS_MAX] };
        ring.make(0);
        ring
    }

    fn make(&self, ring: usize) -> Slots<'_> {
        let slots = self.rings[ring].get_or_init(|| (0..SLOTS_FIRST << ring).map(|_| Slot::new()).collect());
        Slots { ring, slots }
    }

    pub fn current(&self) -> Slots<'_> {
        // ORDER: Acquire pairs with the Release in `room_for`: a ring is filled before it is found.
        let ring = self.current.load(Acquire);
        Slots { ring, slots: self.rings[ring].get().expect("a current ring has been made") }
    }

    /// True if no larger ring has taken over. Slots of a former ring stay as they were when it was followed.
    pub fn is_current(&self, slots: &Slots<'_>) -> bool {
        // ORDER: Acquire: after the reads that it confirms, all of which are Acquire.
        self.current.load(Acquire) == slots.ring
    }

    /// The ring, in which the slot for `chunk` is not used by any chunk from `first` on. The caller holds the
    /// table's latch.
    pub fn room_for(&self, first: u64, chunk: u64) -> Slots<'_> {
        let old = self.current();
        if chunk - first < old.slots.len() as u64 {
            return old;
        }
        let new = self.make(old.ring + 1);
        for number in first..chunk {
            // ORDER: Relaxed: under the latch that all writers hold.
            new.slot(number).assign(number, Word::decode(old.slot(number).word.load(Relaxed)));
        }
        // ORDER: Release: see `current`.
        self.current.store(new.ring, Release);
        new
    }
}
