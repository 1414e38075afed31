//! Whether any value of an owner may be in the tier, so that changing values that are never read through the
//! tier costs nothing.

use base::sync::atomic::{AtomicU64, Ordering, fence};

/// A bit for each owner, or for several. A reader sets it before it reads a value that is to be kept; a
/// writer looks at it when it changes a value. It is never cleared.
///
/// The reader sets the bit, fences, and looks at the page. The writer has latched the page, fences, and looks
/// at the bit. One of the two sees the other: a writer that finds the bit not set has its latch in sight of
/// every reader that has found it set.
#[derive(Default, Debug)]
pub struct Kept(AtomicU64);

impl Kept {
    fn bit(owner: u64) -> u64 {
        1 << (owner % 64)
    }

    /// To be called before the value is read where it comes from, and before its bucket's version.
    pub(crate) fn announce(&self, owner: u64) {
        let bit = Kept::bit(owner);
        // ORDER: SeqCst, here and in `is_announced`. If the writer's load came before the bit was set, its
        // fence did, and so its latch is seen behind this fence, also by a reader that found the bit set by
        // another.
        if self.0.load(Ordering::SeqCst) & bit == 0 {
            self.0.fetch_or(bit, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
    }

    /// To be called with what the value is read from latched. False: nothing of it is in the tier, nor will
    /// be before a reader has seen the latch.
    #[inline(always)]
    pub(crate) fn is_announced(&self, owner: u64) -> bool {
        fence(Ordering::SeqCst);
        // ORDER: see `announce`.
        self.0.load(Ordering::SeqCst) & Kept::bit(owner) != 0
    }
}
