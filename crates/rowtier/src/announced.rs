//! Whether any value of an owner may be in the tier, so that writers of values that nobody reads through it
//! pay nothing.

use base::sync::atomic::{AtomicU64, Ordering, fence};

/// A bit for each owner, or for several: a reader that is about to read a value for the tier sets it, and a
/// writer that changes one looks at it. It is never cleared (rowtier R5).
///
/// The reader sets the bit, fences, and looks at the page. The writer has latched the page, fences, and looks
/// at the bit. One of the two sees the other: if the writer finds the bit not set, every reader that has set
/// it, or found it set, sees the writer's latch.
#[derive(Default, Debug)]
pub struct Announced(AtomicU64);

impl Announced {
    fn bit(owner: u64) -> u64 {
        1 << (owner % 64)
    }

    /// To be called before the value is read where it comes from, and before its bucket's version is read.
    pub(crate) fn announce(&self, owner: u64) {
        let bit = Announced::bit(owner);
        // ORDER: SeqCst, here and in `is_announced`. If the writer's load came before the bit was set, so did
        // its fence. Then the writer's latch is seen behind this fence, also by a reader that found the bit
        // set by another.
        if self.0.load(Ordering::SeqCst) & bit == 0 {
            self.0.fetch_or(bit, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
    }

    /// To be called while the page that the value is read from is latched. If it gives false, no value of the
    /// owner is in the tier, and none will be before a reader has seen the latch.
    #[inline(always)]
    pub(crate) fn is_announced(&self, owner: u64) -> bool {
        fence(Ordering::SeqCst);
        // ORDER: see `announce`.
        self.0.load(Ordering::SeqCst) & Announced::bit(owner) != 0
    }
}
