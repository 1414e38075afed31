//! What a tree asks the row tier, and tells it (engine R20).
//!
//! A lookup names either a whole key, as in the clustered index, or all of a secondary index's own parts,
//! which the keys of its entries begin with. The tier keeps what the leaf has under that name:
//!
//! - for a whole key, its value;
//! - for own parts, the rest of each entry's key behind them, after its length (`u16`), if all of these
//!   entries lie in one leaf.
//!
//! The tier does not keep that there is nothing under a key: a key that is not there is seldom asked for
//! again.
//!
//! A writer that changes a key says so before, under the leaf's exclusive latch. Only the tree knows which
//! part of the key lookups name, so no caller can say less than is needed.

use super::{Found, Tree};
use crate::space::row_share::RowShare;
use crate::space::tablespace::RowCache;
use rowtier::{Announced, Lease, Probe};

/// Bits of an owner's number that say which tree of its file it is.
const TREE_BITS: u32 = 10;

/// Bytes of memory that a row takes in the tier besides key and value: see its README.
const ROW_OVERHEAD_BYTES: usize = 34;

/// Entries that begin alike are kept if they come to no more bytes: few rows, and a small part of a leaf.
const ENTRIES_BYTES_MAX: usize = 256;

/// What a lookup of one key has of the row tier.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum TierUse {
    /// Nothing: the key is no whole one, or its neighbours matter.
    None,
    /// Look for what others have kept.
    Look,
    /// And keep what is read from the device.
    #[default]
    Fill,
}

/// The row tier as one tree sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeTier<'t> {
    share: &'t RowShare,
    kept: &'t Announced,
    owner: u64,
    /// It is asked before pages in memory are, and keeps whatever is looked up.
    pub is_first: bool,
}

/// A value that may be kept once it has been read from the device.
#[derive(Debug)]
pub(super) struct Fill<'t> {
    share: &'t RowShare,
    lease: Lease,
    /// How many pages the thread had loaded from the device before. `None`: it does not matter.
    loads_before: Option<u64>,
}

/// A row that was kept, has changed, and may be kept again.
#[derive(Debug)]
pub(super) struct Replacement<'t> {
    share: &'t RowShare,
    lease: Lease,
}

impl Replacement<'_> {
    pub(super) fn put(self, key: &[u8], value: &[&[u8]]) {
        self.share.tier.put(self.lease, key, value);
    }
}

impl Tree {
    /// The tree's number in the row tier. Files and trees beyond what it can tell apart, which count up and
    /// never come again, do without.
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

    /// A key's cell is about to change, come or go. Its leaf is latched exclusively. True if something was
    /// kept.
    #[inline]
    pub(super) fn forget_kept(&self, key: &[u8]) -> bool {
        self.any_tier().is_some_and(|TreeTier { share, kept, owner, .. }| {
            share.tier.invalidate(owner, || self.named_part(key), kept)
        })
    }

    /// A row that was kept has changed, and its leaf is still latched exclusively: the row as it is now may
    /// be kept once the leaf is not.
    pub(super) fn begin_replacement(&self, key: &[u8]) -> Option<Replacement<'_>> {
        debug_assert!(self.own.is_none(), "what is kept of an index is more than one cell");
        let TreeTier { share, kept, owner, .. } = self.tier()?;
        Some(Replacement { share, lease: share.tier.lease_to_replace(owner, key, kept)? })
    }

    /// The part of a key that lookups name.
    fn named_part<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        // No lookup by own parts finds a key that does not have them.
        let own = self.own.as_ref().and_then(|own| own.len_in(key));
        own.map_or(key, |own| &key[..own])
    }

    /// Appends what a leaf has of `named` as the tier keeps it; false if that is nothing, may not be all, or
    /// is too much. The page is not validated yet.
    pub(super) fn append_kept(&self, found: Found<'_>, named: &[u8], out: &mut Vec<u8>) -> bool {
        let Found { leaf, mut index, exact } = found;
        if self.own.is_none() {
            if exact {
                leaf.append_value(index, out);
            }
            return exact;
        }
        let start = out.len();
        while index < leaf.count() && leaf.key_starts_with(index, named) {
            let at = out.len();
            leaf.append_key(index, out);
            out.drain(at..(at + named.len()).min(out.len()));
            let Ok(length) = u16::try_from(out.len() - at) else { return false };
            out.splice(at..at, length.to_le_bytes());
            if out.len() - start > ENTRIES_BYTES_MAX {
                return false;
            }
            index += 1;
        }
        out.len() > start && (index < leaf.count() || !leaf.upper_fence_starts_with(named))
    }
}

/// The rests of entries behind their own parts, from the bytes that [`Tree::append_kept`] made of them.
pub(crate) fn entry_ends(kept: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = kept;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk()?;
        let (end, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
        rest = behind;
        Some(end)
    })
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
    /// True if the leaf had to be read from the device: it is in nobody's way in memory. One that was opened
    /// from a compressed page in memory is not: what the tier is worth to others is counted in reads.
    pub(super) fn is_due(&self) -> bool {
        self.loads_before.is_none_or(|before| pagecache::loads_of_this_thread() > before)
    }

    pub(super) fn put(self, key: &[u8], value: &[u8]) {
        self.share.note_fill(self.lease.hash(), key.len() + value.len() + ROW_OVERHEAD_BYTES);
        self.share.tier.put(self.lease, key, &[value]);
    }
}
