//! Rows too large for a leaf: a chain of pages that is written once and never changed.
//!
//! ```text
//! overflow page (after the 24 bytes that all pages share)
//! 24 zero u64 | 32 bytes in this page u32 | 36 position in the chain u32 | 40 chain number u64
//! 48 zero u32 | 52 next page u32 (0 = last) | 56 zero u64 | 64 bytes ...
//!
//! reference, in the leaf in place of the row image
//!  0 length u64 | 8 chain number u64 | 16 first page u32
//! ```
//! Chain numbers are never used twice in a file. A reader that finds the expected number and position on each
//! page has read the chain that it was sent to. Otherwise the row was changed meanwhile.

use super::layout::{FILE_ID, FIRST_CHILD, FORMAT, FORMAT_AT, HEADER_BYTES, PAGE_NO, PageType, TYPE};
use base::{PageId, PageNo};
use pagecache::page::{Page, PageMut};

const BYTES_AT: usize = 32;
const POSITION_AT: usize = 36;
const CHAIN_AT: usize = 40;
const NEXT_AT: usize = FIRST_CHILD;

/// The length of a reference, in bytes.
pub(crate) const REFERENCE_BYTES: usize = 20;
const _: () = assert!(REFERENCE_BYTES == size_of::<u64>() + size_of::<u64>() + size_of::<PageNo>());
const _: () = assert!(CHAIN_AT + 8 <= NEXT_AT && NEXT_AT + 4 <= HEADER_BYTES);

/// Where a large row lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    pub len: u64,
    pub chain: u64,
    pub first: PageNo,
}

impl Reference {
    pub(crate) fn to_bytes(self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.chain.to_le_bytes());
        bytes[16..].copy_from_slice(&self.first.0.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Reference> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (chain, rest) = rest.split_first_chunk()?;
        let first: &[u8; 4] = rest.try_into().ok()?;
        Some(Reference {
            len: u64::from_le_bytes(*len),
            chain: u64::from_le_bytes(*chain),
            first: PageNo(u32::from_le_bytes(*first)),
        })
    }
}

/// A page of a chain, read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub bytes: usize,
    pub next: PageNo,
}

/// What page `position` of chain `chain` says; `None` if it is another page by now.
pub(crate) fn parse_link(page: Page<'_>, chain: u64, position: u32) -> Option<Link> {
    let is_link = page.u8_at(FORMAT_AT) == FORMAT
        && page.u8_at(TYPE) == PageType::Overflow as u8
        && page.u64_at(CHAIN_AT) == chain
        && page.u32_at(POSITION_AT) == position;
    let bytes = page.u32_at(BYTES_AT) as usize;
    (is_link && bytes <= page.size() - HEADER_BYTES)
        .then(|| Link { bytes, next: PageNo(page.u32_at(NEXT_AT)) })
}

/// Makes a page of a chain.
pub(crate) fn write_link(
    page: &mut PageMut<'_>,
    id: PageId,
    chain: u64,
    position: u32,
    next: PageNo,
    bytes: &[u8],
) {
    for word in 0..HEADER_BYTES / 8 {
        page.set_u64(word * 8, 0);
    }
    page.set_u8(FORMAT_AT, FORMAT);
    page.set_u8(TYPE, PageType::Overflow as u8);
    page.set_u32(PAGE_NO, id.page.0);
    page.set_u32(FILE_ID, id.file.0);
    page.set_u32(BYTES_AT, bytes.len() as u32);
    page.set_u32(POSITION_AT, position);
    page.set_u64(CHAIN_AT, chain);
    page.set_u32(NEXT_AT, next.0);
    page.write(HEADER_BYTES, bytes);
}
