//! A row in the clustered index: a header of one word, then the image, or where the image lies.
//!
//! ```text
//! 0 flags u16: 1 OVERFLOW, 2 DELETED, 4 FIRST, 8 IN_PLACE
//! 2 stamp u48: the transaction that left the row so
//! 8 row image, or with OVERFLOW a reference (see `format::overflow`)
//! ```

use super::overflow::Reference;
use base::Stamp;

/// Bytes before the image.
pub(crate) const ROW_HEADER_BYTES: usize = 8;
const _: () = assert!(ROW_HEADER_BYTES == size_of::<RowHeader>());
const _: () = assert!(STAMP_MAX << STAMP_SHIFT >> STAMP_SHIFT == STAMP_MAX, "flags and stamp fill the word");

/// The image lies in overflow pages.
const FLAG_OVERFLOW: u64 = 1;
/// The stamp's transaction has deleted the row. It stays, with its index entries, for older snapshots.
const FLAG_DELETED: u64 = 2;
/// The stamp's transaction inserted the row where there was none. A reader that does not see the stamp sees
/// no row, and needs no older version to know.
const FLAG_FIRST: u64 = 4;
/// Of a deleted row: a reader that does not see the stamp sees the row as it lies here. There is no older
/// version. A start has no use for it: no reader is older than the start.
const FLAG_IN_PLACE: u64 = 8;

const STAMP_SHIFT: u32 = 16;
/// The largest stamp that a row can carry.
pub(crate) const STAMP_MAX: u64 = (1 << 48) - 1;

/// The header of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowHeader(pub u64);

impl RowHeader {
    /// Of a row that is there.
    pub(crate) fn new(stamp: Stamp, is_first: bool) -> RowHeader {
        debug_assert!(stamp.0 <= STAMP_MAX);
        RowHeader(stamp.0 << STAMP_SHIFT | if is_first { FLAG_FIRST } else { 0 })
    }

    /// The same row, deleted by `stamp`.
    pub(crate) fn deleted(self, stamp: Stamp, is_first: bool) -> RowHeader {
        RowHeader(RowHeader::new(stamp, is_first).0 | FLAG_DELETED | self.0 & FLAG_OVERFLOW)
    }

    /// The same deleted row, which is still seen as it lies here by those who do not see the deletion.
    pub(crate) fn in_place(self) -> RowHeader {
        debug_assert!(self.is_deleted() && !self.is_first());
        RowHeader(self.0 | FLAG_IN_PLACE)
    }

    /// The row before it was deleted in place, by a transaction that everybody sees.
    pub(crate) fn before_deletion(self) -> RowHeader {
        RowHeader(self.0 & FLAG_OVERFLOW)
    }

    /// The same row, with its image in overflow pages.
    pub(crate) fn with_chain(self) -> RowHeader {
        RowHeader(self.0 | FLAG_OVERFLOW)
    }

    #[inline(always)]
    pub(crate) fn stamp(self) -> Stamp {
        Stamp(self.0 >> STAMP_SHIFT)
    }

    #[inline(always)]
    pub(crate) fn is_overflow(self) -> bool {
        self.0 & FLAG_OVERFLOW != 0
    }

    #[inline(always)]
    pub(crate) fn is_deleted(self) -> bool {
        self.0 & FLAG_DELETED != 0
    }

    pub(crate) fn is_in_place(self) -> bool {
        self.0 & FLAG_IN_PLACE != 0
    }

    pub(crate) fn is_first(self) -> bool {
        self.0 & FLAG_FIRST != 0
    }

    pub(crate) fn to_bytes(self) -> [u8; ROW_HEADER_BYTES] {
        self.0.to_le_bytes()
    }
}

/// Splits a cell into header and rest; `None` if it is too short to be a row.
pub(crate) fn split_cell(cell: &[u8]) -> Option<(RowHeader, &[u8])> {
    let (header, rest) = cell.split_first_chunk()?;
    Some((RowHeader(u64::from_le_bytes(*header)), rest))
}

/// The chain that a cell refers to, if it does.
pub(crate) fn chain_of(cell: &[u8]) -> Option<Reference> {
    let (header, rest) = split_cell(cell)?;
    if header.is_overflow() { Reference::from_bytes(rest) } else { None }
}
