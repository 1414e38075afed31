//! A row in the clustered index: a header of one word, then the image, or where the image lies.
//!
//! ```text
//! 0 flags u16: 1 OVERFLOW, 2 DELETED, 4 FIRST
//! 2 stamp u48: the transaction that left the row so
//! 8 row image, or with OVERFLOW a reference (see `overflow`)
//! ```

use crate::overflow::{self, REFERENCE_BYTES, Reference};
use crate::tablespace::Tablespace;
use crate::{Error, Result};
use base::Stamp;

/// Bytes before the image.
pub const ROW_HEADER_BYTES: usize = 8;

/// The image lies in overflow pages.
const FLAG_OVERFLOW: u64 = 1;
/// The row has been deleted, by whoever the stamp names. It stays, with its index entries, for older snapshots.
const FLAG_DELETED: u64 = 2;
/// Whoever the stamp names has inserted the row where there was none: who does not see the stamp sees no row, and needs
/// no older version to know.
const FLAG_FIRST: u64 = 4;

const STAMP_SHIFT: u32 = 16;
/// The largest stamp that a row can carry.
pub const STAMP_MAX: u64 = (1 << 48) - 1;

/// The header of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowHeader(pub u64);

impl RowHeader {
    /// Of a row that is there.
    pub fn new(stamp: Stamp, is_first: bool) -> RowHeader {
        debug_assert!(stamp.0 <= STAMP_MAX);
        RowHeader(stamp.0 << STAMP_SHIFT | if is_first { FLAG_FIRST } else { 0 })
    }

    /// The same row, deleted by `stamp`.
    pub fn deleted(self, stamp: Stamp, is_first: bool) -> RowHeader {
        RowHeader(RowHeader::new(stamp, is_first).0 | FLAG_DELETED | self.0 & FLAG_OVERFLOW)
    }

    #[inline(always)]
    pub fn stamp(self) -> Stamp {
        Stamp(self.0 >> STAMP_SHIFT)
    }

    #[inline(always)]
    pub fn is_overflow(self) -> bool {
        self.0 & FLAG_OVERFLOW != 0
    }

    #[inline(always)]
    pub fn is_deleted(self) -> bool {
        self.0 & FLAG_DELETED != 0
    }

    pub fn is_first(self) -> bool {
        self.0 & FLAG_FIRST != 0
    }

    pub fn to_bytes(self) -> [u8; ROW_HEADER_BYTES] {
        self.0.to_le_bytes()
    }
}

/// Splits a cell into header and rest; `None` if it is too short to be a row.
pub fn split_cell(cell: &[u8]) -> Option<(RowHeader, &[u8])> {
    let (header, rest) = cell.split_first_chunk()?;
    Some((RowHeader(u64::from_le_bytes(*header)), rest))
}

/// The chain that a cell refers to, if it does.
pub fn chain_of(cell: &[u8]) -> Option<Reference> {
    let (header, rest) = split_cell(cell)?;
    if header.is_overflow() { Reference::from_bytes(rest) } else { None }
}

/// A row ready to be put into a leaf.
#[derive(Debug)]
pub struct Cell<'i> {
    header: [u8; ROW_HEADER_BYTES],
    body: Body<'i>,
}

#[derive(Debug)]
enum Body<'i> {
    Inline(&'i [u8]),
    Chain(Reference, [u8; REFERENCE_BYTES]),
}

impl<'i> Cell<'i> {
    /// Makes the cell of a row; an image longer than `inline_bytes_max` is written to overflow pages.
    pub fn new(
        space: &Tablespace,
        image: &'i [u8],
        inline_bytes_max: usize,
        header: RowHeader,
        chain: impl FnOnce() -> u64,
    ) -> Result<Cell<'i>> {
        if image.len() <= inline_bytes_max {
            return Ok(Cell { header: header.to_bytes(), body: Body::Inline(image) });
        }
        if image.len() > u32::MAX as usize {
            return Err(Error::RowTooLarge { bytes: image.len(), bytes_max: u32::MAX as usize });
        }
        let reference = overflow::store(space, chain(), image)?;
        let header = RowHeader(header.0 | FLAG_OVERFLOW).to_bytes();
        Ok(Cell { header, body: Body::Chain(reference, reference.to_bytes()) })
    }

    /// The cell's bytes, in two parts.
    pub fn parts(&self) -> [&[u8]; 2] {
        match &self.body {
            Body::Inline(image) => [&self.header, image],
            Body::Chain(_, reference) => [&self.header, reference],
        }
    }

    /// Gives the cell's pages back: it does not go into the tree after all.
    pub fn discard(self, space: &Tablespace) {
        if let Body::Chain(reference, _) = self.body {
            // A page that cannot be given back is lost until the table is rebuilt; `check` reports it.
            let _ = overflow::free(space, reference);
        }
    }
}
