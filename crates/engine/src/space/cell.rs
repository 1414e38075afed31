//! A row's cell before it goes into a leaf: with its image, or with a reference to the chain that has been
//! written for it.

use super::overflow;
use super::tablespace::{Operation, Tablespace};
use crate::format::overflow::{REFERENCE_BYTES, Reference};
use crate::format::row::{ROW_HEADER_BYTES, RowHeader};
use crate::{Error, Result};

/// A row ready to be put into a leaf.
#[derive(Debug)]
pub(crate) struct Cell<'i> {
    header: [u8; ROW_HEADER_BYTES],
    body: Body<'i>,
}

#[derive(Debug)]
enum Body<'i> {
    Inline(&'i [u8]),
    /// Until a leaf refers to the chain, its writing is under way.
    Chain(Reference, [u8; REFERENCE_BYTES], Operation),
}

impl<'i> Cell<'i> {
    /// Makes the cell of a row; an image longer than `inline_bytes_max` is written to overflow pages.
    pub(crate) fn new(
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
        let (reference, operation) = overflow::store(space, chain(), image)?;
        let header = header.with_chain().to_bytes();
        Ok(Cell { header, body: Body::Chain(reference, reference.to_bytes(), operation) })
    }

    /// The cell's bytes, in two parts.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        match &self.body {
            Body::Inline(image) => [&self.header, image],
            Body::Chain(_, reference, _) => [&self.header, reference],
        }
    }

    /// The cell is in its leaf.
    pub(crate) fn placed(self, space: &Tablespace) {
        if let Body::Chain(_, _, operation) = self.body {
            space.end_operation(operation);
        }
    }

    /// Gives the cell's pages back: it does not go into the tree after all.
    pub(crate) fn discard(self, space: &Tablespace) {
        // Pages that cannot be given back are found by the next start, because the operation does not end.
        if let Body::Chain(reference, _, operation) = self.body
            && overflow::free(space, reference).is_ok()
        {
            space.end_operation(operation);
        }
    }
}
