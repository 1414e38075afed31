//! What a tree asks the row tier, and tells it.
//!
//! A key's value is kept as it stands in its leaf. Whoever changes it there says so before, under the leaf's exclusive latch.

use super::Tree;
use crate::row_share::RowShare;
use crate::tablespace::RowCache;
use rowtier::{Kept, Lease, Probe};

/// Bits of an owner's number that say which tree of its file it is.
const TREE_BITS: u32 = 10;

/// Bytes of memory that a row takes in the tier besides key and value: see its README.
const ROW_OVERHEAD_BYTES: usize = 34;

/// What a lookup of one key has of the row tier.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TierUse {
    /// Nothing: the key is not a whole one, or its neighbours matter.
    None,
    /// What others have kept.
    Look,
    /// What was read from the device is kept.
    #[default]
    Fill,
}

/// The row tier as one tree sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeTier<'t> {
    share: &'t RowShare,
    kept: &'t Kept,
    owner: u64,
    /// It is asked before pages in memory are, and keeps whatever is looked up.
    pub is_first: bool,
}

/// A value that may be kept once it has been read from the device.
#[derive(Debug)]
pub(super) struct Fill<'t> {
    share: &'t RowShare,
    lease: Lease,
    /// What the thread had loaded from the device before; `None`: it does not matter.
    loads_before: Option<u64>,
}

impl Tree {
    /// The tree's number in the row tier. Files and trees beyond what it can tell apart, which count up and never come again, do without.
    fn tier_owner(&self) -> Option<u64> {
        let owner = u64::from(self.space.file_id().0) << TREE_BITS | u64::from(self.id);
        (self.id < 1 << TREE_BITS && owner <= rowtier::OWNER_MAX).then_some(owner)
    }

    /// The row tier, if there is one for this tree.
    #[inline(always)]
    fn any_tier(&self) -> Option<TreeTier<'_>> {
        let RowCache { share, is_first } = self.space.row_tier()?;
        Some(TreeTier { share, kept: self.space.kept(), owner: self.tier_owner()?, is_first: *is_first })
    }

    /// The row tier while it has memory.
    #[inline(always)]
    pub(super) fn tier(&self) -> Option<TreeTier<'_>> {
        self.any_tier().filter(|tier| tier.share.tier.is_on())
    }

    /// A key's cell is about to change, come or go. Its leaf is latched exclusively.
    #[inline]
    pub(super) fn forget_kept(&self, key: &[u8]) {
        if let Some(TreeTier { share, kept, owner, .. }) = self.any_tier() {
            share.tier.invalidate(owner, key, kept);
        }
    }
}

impl<'t> TreeTier<'t> {
    #[inline(always)]
    pub(super) fn probe(self, key: &[u8]) -> Probe {
        let probe = self.share.tier.probe(self.owner, key);
        self.share.tier.prefetch_bucket(probe);
        probe
    }

    #[inline(always)]
    pub(super) fn prefetch(self, probe: Probe) {
        self.share.tier.prefetch_entry(probe);
    }

    #[inline(always)]
    pub(super) fn get(self, probe: Probe, key: &[u8], out: &mut Vec<u8>) -> bool {
        self.share.tier.get(probe, key, out)
    }

    /// To be called before the key's leaf is read.
    pub(super) fn begin_fill(self, key: &[u8]) -> Option<Fill<'t>> {
        let lease = self.share.tier.lease(self.owner, key, self.kept)?;
        let loads_before = (!self.is_first).then(pagecache::loads_of_this_thread);
        Some(Fill { share: self.share, lease, loads_before })
    }
}

impl Fill<'_> {
    /// True if the leaf had to be read from the device: it is in nobody's way in memory.
    pub(super) fn is_due(&self) -> bool {
        self.loads_before.is_none_or(|before| pagecache::loads_of_this_thread() > before)
    }

    pub(super) fn put(self, key: &[u8], value: &[u8]) {
        self.share.note_fill(self.lease.hash(), key.len() + value.len() + ROW_OVERHEAD_BYTES);
        self.share.tier.put(self.lease, key, &[value]);
    }
}
