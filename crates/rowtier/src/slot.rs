//! A slot: a word that says where an entry lies, or that there was one.
//!
//! ```text
//! 0..34  place of the entry, in words; of a ghost: when it was evicted, in blocks
//! 34     USED: read since it came, or since an eviction has passed it over
//! 35     GHOST: there is no entry any more
//! 36     LIVE: there is one
//! 37     SPARED: it lies in the queue of spared entries
//! 38..64 tag: 26 bits of the key's hash
//! ```
//! Zero is an empty slot. Two keys with the same tag in one bucket replace each other, about once in five
//! million entries.

use crate::hash::Hash;

const PLACE_BITS: u32 = 34;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const USED: u64 = 1 << PLACE_BITS;
const GHOST: u64 = 1 << (PLACE_BITS + 1);
const LIVE: u64 = 1 << (PLACE_BITS + 2);
const SPARED: u64 = 1 << (PLACE_BITS + 3);
const TAG_SHIFT: u32 = PLACE_BITS + 4;

/// Words that slots can tell apart: 128 GiB.
pub const PLACES_MAX: usize = 1 << PLACE_BITS;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(pub u64);

impl Slot {
    pub const EMPTY: Slot = Slot(0);

    pub fn live(hash: Hash, place: usize, is_spared: bool) -> Slot {
        debug_assert!(place < PLACES_MAX);
        let spared = if is_spared { SPARED } else { 0 };
        Slot(hash.0 >> TAG_SHIFT << TAG_SHIFT | spared | LIVE | place as u64)
    }

    /// The same entry, spared: at another place, and not used there yet.
    pub fn moved(self, place: usize) -> Slot {
        Slot(self.0 & !(USED | PLACE_MASK) | SPARED | place as u64)
    }

    /// The entry has gone at time `now`.
    pub fn ghost(self, now: u64) -> Slot {
        Slot(self.0 >> TAG_SHIFT << TAG_SHIFT | GHOST | now & PLACE_MASK)
    }

    #[inline(always)]
    pub fn is_live_of(self, hash: Hash) -> bool {
        (self.0 ^ hash.0) >> TAG_SHIFT == 0 && self.is_live()
    }

    pub fn is_ghost_of(self, hash: Hash) -> bool {
        (self.0 ^ hash.0) >> TAG_SHIFT == 0 && self.is_ghost()
    }

    #[inline(always)]
    pub fn is_live(self) -> bool {
        self.0 & LIVE != 0
    }

    pub fn is_ghost(self) -> bool {
        self.0 & GHOST != 0
    }

    #[inline(always)]
    pub fn is_spared(self) -> bool {
        self.0 & SPARED != 0
    }

    #[inline(always)]
    pub fn is_used(self) -> bool {
        self.0 & USED != 0
    }

    #[inline(always)]
    pub fn used(self) -> Slot {
        Slot(self.0 | USED)
    }

    #[inline(always)]
    pub fn place(self) -> usize {
        (self.0 & PLACE_MASK) as usize
    }

    /// How long ago a ghost was evicted.
    pub fn age(self, now: u64) -> u64 {
        now.wrapping_sub(self.0) & PLACE_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_tag_and_place_through_its_life() {
        let hash = Hash(0xffff_ffff_0123_4567);
        let slot = Slot::live(hash, PLACES_MAX - 1, false);
        assert!(slot.is_live_of(hash) && !slot.is_used() && !slot.is_ghost());
        assert!(!slot.is_live_of(Hash(hash.0 ^ 1 << 63)) && !slot.is_live_of(Hash(hash.0 ^ 1 << 38)));
        assert_eq!(slot.used().place(), PLACES_MAX - 1);
        let moved = slot.used().moved(5);
        assert!(moved.is_live_of(hash) && !moved.is_used());
        assert_eq!((moved.place(), slot.is_spared(), moved.is_spared()), (5, false, true));
        let ghost = moved.ghost(u64::MAX);
        assert!(ghost.is_ghost_of(hash) && !ghost.is_live() && !ghost.is_used());
        assert_eq!(ghost.age(2), 3);
        assert!(!Slot::EMPTY.is_live() && !Slot::EMPTY.is_ghost());
    }
}
