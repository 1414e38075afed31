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
//! Chain numbers are never used twice in a file. A reader who finds on each page the number, the position and the
//! version he expects has read the chain that he was sent to; otherwise the row was changed under him.

use crate::node::layout::{FILE_ID, FIRST_CHILD, FORMAT, FORMAT_AT, HEADER_BYTES, PAGE_NO, PageType, TYPE};
use crate::tablespace::Tablespace;
use crate::tree::{Interrupt, retry};
use crate::{Error, Result};
use base::{PageId, PageNo};
use pagecache::page::{Page, PageMut};

const BYTES_AT: usize = 32;
const POSITION_AT: usize = 36;
const CHAIN_AT: usize = 40;
const NEXT_AT: usize = FIRST_CHILD;

/// The length of a reference, in bytes.
pub const REFERENCE_BYTES: usize = 20;

/// Where a large row lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    pub len: u64,
    pub chain: u64,
    pub first: PageNo,
}

impl Reference {
    pub fn to_bytes(self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.chain.to_le_bytes());
        bytes[16..].copy_from_slice(&self.first.0.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Reference> {
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
pub struct Link {
    pub bytes: usize,
    pub next: PageNo,
}

/// What page `position` of chain `chain` says; `None` if it is another page by now.
pub fn parse_link(page: Page<'_>, chain: u64, position: u32) -> Option<Link> {
    let is_link = page.u8_at(FORMAT_AT) == FORMAT
        && page.u8_at(TYPE) == PageType::Overflow as u8
        && page.u64_at(CHAIN_AT) == chain
        && page.u32_at(POSITION_AT) == position;
    let bytes = page.u32_at(BYTES_AT) as usize;
    (is_link && bytes <= page.size() - HEADER_BYTES)
        .then(|| Link { bytes, next: PageNo(page.u32_at(NEXT_AT)) })
}

/// Writes `image` into a new chain. On an error no page stays behind.
pub fn store(space: &Tablespace, chain: u64, image: &[u8]) -> Result<Reference> {
    space.doubt()?;
    let mut pages = Vec::new();
    let mut written = 0;
    if let Err(error) = write_chain(space, chain, image, &mut pages, &mut written) {
        let (used, unused) = pages.split_at(written);
        unused.iter().for_each(|page| space.release(*page));
        // If this fails too, nothing can be logged any more, and recovery finds the pages.
        let _ = space.free_pages(used);
        return Err(error);
    }
    let first = *pages.first().ok_or(Error::Full)?;
    Ok(Reference { len: image.len() as u64, chain, first })
}

fn write_chain(
    space: &Tablespace,
    chain: u64,
    image: &[u8],
    pages: &mut Vec<PageNo>,
    written: &mut usize,
) -> Result<()> {
    let per_page = space.page_size() - HEADER_BYTES;
    for _ in 0..image.len().div_ceil(per_page) {
        pages.push(space.allocate()?);
    }
    for (position, bytes) in image.chunks(per_page).enumerate() {
        let next = pages.get(position + 1).copied().unwrap_or(PageNo(0));
        space.create_page(
            pages[position],
            |mut page, id| write_link(&mut page, id, chain, position as u32, next, bytes),
            |changes, number, page| changes.image(number, page, HEADER_BYTES + bytes.len(), 0),
        )?;
        *written += 1;
    }
    Ok(())
}

fn write_link(page: &mut PageMut<'_>, id: PageId, chain: u64, position: u32, next: PageNo, bytes: &[u8]) {
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

/// Appends a large row to `out`; false if the chain is gone, because the row was changed or deleted.
pub fn load(space: &Tablespace, reference: Reference, out: &mut Vec<u8>) -> Result<bool> {
    let start = out.len();
    let whole = start as u64 + reference.len;
    let mut page = reference.first;
    let mut position = 0;
    while (out.len() as u64) < whole {
        let from = out.len();
        let link = retry(space.file(), |mode| {
            out.truncate(from);
            let guard = match mode {
                crate::tree::Mode::Configured => space.cache().read(space.page_id(page))?,
                crate::tree::Mode::Latched => space.cache().read_shared(space.page_id(page))?,
            };
            let link = parse_link(guard.page(), reference.chain, position);
            if let Some(link) = link {
                guard.page().append_to(HEADER_BYTES, link.bytes, out);
            }
            guard.validate()?;
            Ok(link)
        });
        match link {
            Ok(Some(link)) if link.bytes > 0 => page = link.next,
            Ok(_) => {
                out.truncate(start);
                return Ok(false);
            }
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        }
        position += 1;
    }
    out.truncate(whole as usize);
    Ok(true)
}

/// Frees a chain that no row refers to any more.
pub fn free(space: &Tablespace, reference: Reference) -> Result<()> {
    space.doubt()?;
    let mut pages = Vec::new();
    let mut page = reference.first;
    let mut left = reference.len;
    while left > 0 {
        let position = pages.len() as u32;
        let link = retry(space.file(), |_| {
            let guard = space.cache().read_shared(space.page_id(page))?;
            parse_link(guard.page(), reference.chain, position).ok_or_else(|| {
                let why = "a page of a chain that is being freed is something else";
                Interrupt::Failed(space.corrupt(page.0, why))
            })
        })?;
        pages.push(page);
        left = left.saturating_sub(link.bytes.max(1) as u64);
        page = link.next;
    }
    space.free_pages(&pages)
}
