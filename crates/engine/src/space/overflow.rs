//! Chains of overflow pages: written, read and freed. The pages and the reference to a chain are in
//! `format::overflow`.

use super::retry::{Interrupt, Mode, retry};
use super::tablespace::{Operation, Tablespace};
use crate::format::layout::HEADER_BYTES;
use crate::format::overflow::{Reference, parse_link, write_link};
use crate::format::row::chain_of;
use crate::{Error, Result};
use base::PageNo;

/// Writes `image` into a new chain. On an error no page stays behind. The operation ends when a leaf refers
/// to the chain, or the chain has been freed again.
pub(crate) fn store(space: &Tablespace, chain: u64, image: &[u8]) -> Result<(Reference, Operation)> {
    let operation = space.doubt()?;
    let mut pages = Vec::new();
    let mut written = 0;
    if let Err(error) = write_chain(space, chain, image, &mut pages, &mut written) {
        let (used, unused) = pages.split_at(written);
        unused.iter().for_each(|page| space.release(*page));
        // If this fails too, nothing can be logged any more, and recovery finds the pages.
        if space.free_pages(used).is_ok() {
            space.end_operation(operation);
        }
        return Err(error);
    }
    let first = *pages.first().ok_or(Error::Full)?;
    Ok((Reference { len: image.len() as u64, chain, first }, operation))
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

/// Appends a large row to `out`; false if the chain is gone, because the row was changed or deleted.
pub(crate) fn load(space: &Tablespace, reference: Reference, out: &mut Vec<u8>) -> Result<bool> {
    let start = out.len();
    let whole = start as u64 + reference.len;
    let mut page = reference.first;
    let mut position = 0;
    while (out.len() as u64) < whole {
        let from = out.len();
        let link = retry(space.file(), |mode| {
            out.truncate(from);
            let guard = match mode {
                Mode::Configured => space.pool().read(space.page_id(page))?,
                Mode::Latched => space.pool().read_shared(space.page_id(page))?,
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

/// To be called before the record that removes the last reference to the chain of `cell`, if it has one. Then
/// comes [`free_last`], or [`keep_last`] if the reference stays.
///
/// CRASH: between that record and the one that frees the pages they belong to nothing. The next start looks
/// for such pages in files that are in doubt, and in no others.
pub(crate) fn before_last_reference_goes(space: &Tablespace, cell: &[u8]) -> Result<Option<Operation>> {
    chain_of(cell).map(|_| space.doubt()).transpose()
}

/// Frees the chain of a cell that has left its leaf.
pub(crate) fn free_last(space: &Tablespace, cell: &[u8], operation: Option<Operation>) {
    if let Some(reference) = chain_of(cell)
        && free(space, reference).is_err()
    {
        // The file stays in doubt, so the next start gives the pages back. Until then `check` reports them.
        return;
    }
    keep_last(space, operation);
}

/// The cell has stayed where it was.
pub(crate) fn keep_last(space: &Tablespace, operation: Option<Operation>) {
    if let Some(operation) = operation {
        space.end_operation(operation);
    }
}

/// Frees a chain that no row refers to any more.
///
/// # Errors
/// Some of its pages may have been freed. If any are left that the caller cannot name again, it keeps the
/// file in doubt.
pub(crate) fn free(space: &Tablespace, reference: Reference) -> Result<()> {
    let mut pages = Vec::new();
    let mut page = reference.first;
    let mut left = reference.len;
    while left > 0 {
        let position = pages.len() as u32;
        let link = retry(space.file(), |_| {
            let guard = space.pool().read_shared(space.page_id(page))?;
            parse_link(guard.page(), reference.chain, position).ok_or_else(|| {
                let why = "a page of a chain that is being freed is something else";
                Interrupt::Failed(space.corrupt(page.0, why))
            })
        })?;
        pages.push(page);
        left = left.saturating_sub(link.bytes.max(1) as u64);
        page = link.next;
    }
    // CRASH: pages of several free maps take several records. With some of them freed the chain is none.
    let operation = space.doubt()?;
    space.free_pages(&pages)?;
    space.end_operation(operation);
    Ok(())
}
