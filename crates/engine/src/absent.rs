//! Transactions that lock the keys of rows that are not there.

use base::sync::atomic::{
    AtomicU64,
    Ordering::{Release, SeqCst},
    fence,
};

/// How many transactions are about to lock the key of a row that is not there, and to look again whether it
/// is.
#[derive(Debug, Default)]
pub(crate) struct AbsentLockers(AtomicU64);

impl AbsentLockers {
    /// A transaction is about to lock, and then to look.
    pub(crate) fn begin(&self) {
        // ORDER: SeqCst, as is the other side's load: a writer that latches the row's leaf to insert it and
        // finds no locker has the latch before the locker looks into the leaf, which waits for it.
        self.0.fetch_add(1, SeqCst);
        fence(SeqCst);
    }

    pub(crate) fn end(&self) {
        // ORDER: its locks have been given back before.
        self.0.fetch_sub(1, Release);
    }

    /// True if a row that is inserted may have been locked while it was not there. Asked under its leaf's
    /// latch.
    pub(crate) fn is_any(&self) -> bool {
        fence(SeqCst);
        // ORDER: see `begin`.
        self.0.load(SeqCst) > 0
    }
}
