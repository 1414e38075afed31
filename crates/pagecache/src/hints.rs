//! Hints: what the owner of a page wants to know about it before its bytes have reached the processor.
//!
//! A hit reads its frame's header anyway, to learn the page's version, and the header's cache line has room
//! left. A hint may be wrong: it is neither latched nor covered by the version, it may mix what two readers
//! have stored, and it outlives changes of the page. The hints are empty when a page comes into the frame. In
//! the steady state they are only read (pagecache R10).

use base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of hints that a page has.
pub const HINT_WORDS: usize = 3;

#[derive(Debug, Default)]
pub struct Hints([AtomicU64; HINT_WORDS]);

impl Hints {
    #[inline(always)]
    pub fn load(&self) -> [u64; HINT_WORDS] {
        // ORDER: Relaxed, here and below: a hint only says where to look first.
        [self.0[0].load(Relaxed), self.0[1].load(Relaxed), self.0[2].load(Relaxed)]
    }

    pub fn store(&self, words: [u64; HINT_WORDS]) {
        for (hint, word) in self.0.iter().zip(words) {
            hint.store(word, Relaxed);
        }
    }
}
