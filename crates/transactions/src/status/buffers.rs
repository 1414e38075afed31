//! Memory for the status words of expanded chunks: blocks of 1, 2, 4, ... buffers that never move and are
//! never given back, so that a reader may be in any of them at any time.

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU64, Ordering::Release};

/// 2^32 buffers: more than there can be transactions active at once.
const BLOCKS_MAX: usize = 32;

#[derive(Debug)]
pub struct Buffers {
    words: usize,
    blocks: [OnceLock<Box<[AtomicU64]>>; BLOCKS_MAX],
}

impl Buffers {
    /// Buffers of `words` words each, none made yet.
    pub fn new(words: usize) -> Buffers {
        Buffers { words, blocks: [const { OnceLock::new() }; BLOCKS_MAX] }
    }

    /// Block, and the buffer's first word in it.
    fn place(&self, buffer: usize) -> (usize, usize) {
        let block = (buffer + 1).ilog2() as usize;
        (block, (buffer + 1 - (1 << block)) * self.words)
    }

    /// A word of a buffer that has been cleared once.
    pub fn cell(&self, buffer: usize, word: u64) -> &AtomicU64 {
        let (block, first) = self.place(buffer);
        &self.blocks[block].get().expect("a buffer in use has been cleared")[first + word as usize]
    }

    /// Makes the buffer if need be, and all its words 0.
    pub fn clear(&self, buffer: usize) {
        let (block, first) = self.place(buffer);
        let cells =
            self.blocks[block].get_or_init(|| (0..self.words << block).map(|_| AtomicU64::new(0)).collect());
        for cell in &cells[first..first + self.words] {
            // ORDER: Release: a reader that took the buffer for another chunk's, and reads this 0, sees in
            // its second look that the chunk has collapsed.
            cell.store(0, Release);
        }
    }
}
