//! Memory for cold pages: blocks of one size, so that pieces of many lengths leave no gaps that are too small
//! to use.
//!
//! A piece takes as many blocks as it needs, anywhere; each block names the next. The latch of the cold pages
//! protects all of them. Address space is reserved once, and memory is taken as it is used. Memory behind the
//! last block that is still wanted is given back.

use base::machine::room_bytes;
use base::region::Region;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a block. On average a piece wastes half a block, and each block costs a number beside it.
pub const BLOCK: usize = 256;
const WORDS: usize = BLOCK / 8;

/// A piece in its blocks.
#[derive(Debug)]
pub struct Stored {
    first: u32,
    len: u32,
}

impl Stored {
    /// Bytes that a piece of `len` bytes takes.
    pub fn bytes_for(len: usize) -> usize {
        len.div_ceil(BLOCK) * (BLOCK + size_of::<u32>())
    }

    pub fn bytes(&self) -> usize {
        Stored::bytes_for(self.len as usize)
    }

    fn block_count(&self) -> usize {
        (self.len as usize).div_ceil(BLOCK)
    }
}

#[derive(Debug, Default)]
pub struct Blocks {
    /// Reserved when the first piece comes. Also `None` if the system refuses that.
    words: Option<Region<AtomicU64>>,
    /// For each block, the next block of its piece.
    next: Vec<u32>,
    /// Blocks of no piece.
    free: Vec<u32>,
}

impl Blocks {
    /// Stores a piece. `None` if there is no memory for it.
    pub fn store(&mut self, compressed: &[u8]) -> Option<Stored> {
        let stored = Stored { first: 0, len: u32::try_from(compressed.len()).ok()? };
        if !self.have_free(stored.block_count()) {
            return None;
        }
        let words = self.words.as_ref()?;
        let mut next = 0;
        // From the last to the first, since each names the one behind it.
        for piece in compressed.chunks(BLOCK).rev() {
            let block = self.free.pop()?;
            let place = &words[block as usize * WORDS..][..WORDS];
            for (word, bytes) in place.iter().zip(piece.chunks(8)) {
                let mut padded = [0; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                // ORDER: the latch of the cold pages orders all of this.
                word.store(u64::from_le_bytes(padded), Relaxed);
            }
            self.next[block as usize] = next;
            next = block;
        }
        Some(Stored { first: next, ..stored })
    }

    /// Takes a piece out.
    pub fn take(&mut self, stored: Stored) -> Vec<u8> {
        let mut compressed = vec![0; stored.len as usize];
        let Blocks { words: Some(words), next, free } = self else { return compressed };
        let mut block = stored.first;
        for piece in compressed.chunks_mut(BLOCK) {
            let place = &words[block as usize * WORDS..][..WORDS];
            for (word, bytes) in place.iter().zip(piece.chunks_mut(8)) {
                // ORDER: as above.
                bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes()[..bytes.len()]);
            }
            free.push(block);
            block = next[block as usize];
        }
        compressed
    }

    /// Gives up a piece.
    pub fn remove(&mut self, stored: Stored) {
        let mut block = stored.first;
        for _ in 0..stored.block_count() {
            self.free.push(block);
            block = self.next[block as usize];
        }
    }

    /// Makes `count` blocks free, unless the system refuses memory.
    fn have_free(&mut self, count: usize) -> bool {
        let missing = count.saturating_sub(self.free.len());
        if missing > 0 {
            if self.words.is_none() {
                self.words = Region::new((room_bytes() / BLOCK).max(1024) * WORDS).ok();
            }
            let blocks_max =
                self.words.as_ref().map_or(0, |words| words.len() / WORDS).min(u32::MAX as usize);
            let made = self.next.len();
            if made + missing > blocks_max {
                return false;
            }
            self.next.resize(made + missing, 0);
            // The first of them is taken first.
            self.free.extend((made as u32..(made + missing) as u32).rev());
        }
        true
    }

    /// Gives memory back to the system if more than `bytes` have been taken: blocks in use beyond that move
    /// to the front. `all` has every stored piece.
    pub fn shrink_to<'s>(&mut self, bytes: usize, all: impl Iterator<Item = &'s mut Stored>) {
        let used = self.next.len() - self.free.len();
        let kept = (bytes / (BLOCK + size_of::<u32>())).max(used);
        let Blocks { words: Some(words), next, free } = self else { return };
        if kept >= next.len() {
            return;
        }
        let is_behind = |block: u32| block as usize >= kept;
        free.retain(|block| !is_behind(*block));
        // At least as many blocks are free in front as are in use behind.
        let mut moved = |block: u32| -> Option<u32> {
            let to = is_behind(block).then(|| free.pop()).flatten()?;
            for word in 0..WORDS {
                // ORDER: as above.
                let value = words[block as usize * WORDS + word].load(Relaxed);
                words[to as usize * WORDS + word].store(value, Relaxed);
            }
            Some(to)
        };
        for stored in all {
            let count = stored.block_count();
            let mut before = None;
            let mut block = stored.first;
            for _ in 0..count {
                let behind = next[block as usize];
                if let Some(to) = moved(block) {
                    next[to as usize] = behind;
                    match before {
                        None => stored.first = to,
                        Some(before) => next[before as usize] = to,
                    }
                    block = to;
                }
                before = Some(block);
                block = behind;
            }
        }
        next.truncate(kept);
        next.shrink_to_fit();
        free.shrink_to_fit();
        words.release_from(kept * WORDS);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn piece(seed: usize, len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 + seed * 13) as u8).collect()
    }

    #[test]
    fn pieces_of_all_lengths_come_back_and_their_blocks_are_used_again() {
        let mut blocks = Blocks::default();
        let lengths = [1, 7, 8, 9, 255, 256, 257, 3_000, 511];
        for round in 0..3 {
            let stored: Vec<Stored> =
                lengths.iter().map(|len| blocks.store(&piece(*len + round, *len)).unwrap()).collect();
            for (stored, len) in stored.into_iter().zip(lengths).rev() {
                assert_eq!(blocks.take(stored), piece(len + round, len));
            }
        }
        let made: usize = lengths.iter().map(|len| len.div_ceil(BLOCK)).sum();
        assert_eq!((blocks.next.len(), blocks.free.len()), (made, made));
    }

    #[test]
    fn what_is_left_moves_to_the_front_when_there_is_less_room() {
        let mut blocks = Blocks::default();
        let mut stored: Vec<Option<Stored>> =
            (0..100).map(|seed| blocks.store(&piece(seed, 100 + seed * 10))).collect();
        for (seed, stored) in stored.iter_mut().enumerate().filter(|(seed, _)| seed % 3 != 1) {
            match seed % 2 {
                0 => blocks.remove(stored.take().unwrap()),
                _ => drop(blocks.take(stored.take().unwrap())),
            }
        }
        let used: usize = stored.iter().flatten().map(Stored::block_count).sum();
        blocks.shrink_to(0, stored.iter_mut().flatten());
        assert_eq!((blocks.next.len(), blocks.free.len()), (used, 0));
        let another = blocks.store(&piece(1, 1_000)).unwrap();
        for (seed, stored) in stored.into_iter().enumerate() {
            if let Some(stored) = stored {
                assert_eq!(blocks.take(stored), piece(seed, 100 + seed * 10));
            }
        }
        assert_eq!(blocks.take(another), piece(1, 1_000));
    }
}
