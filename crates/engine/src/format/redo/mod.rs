//! What the log says about pages, and how it is done again.
//!
//! A record of kind `PAGES` holds the changes of one file's pages that belong together: a row in its leaf; a
//! split, with both children, the parent and the free map. It is redone whole. Byte table of its payload,
//! little-endian:
//!
//! ```text
//! file id u32, then changes one behind the other, each:
//!  code u8 | page number u32 | LSN that the page had before u64, then by code
//!  1 insert        index u16 | suffix length u16 | value length u16 | stamp u64 | suffix | value
//!  2 insert child  index u16 | suffix length u16 | child u32 | suffix
//!  3 replace       index u16 | value length u16 | stamp u64 | value
//!  4 remove        index u16
//!  5 cut           index u16 | separator length u16 | separator
//!  6 image         low length u32 | tail length u32 | first bytes of the page | last bytes of the page
//!  7 use pages     count u32 | page numbers u32 ...
//!  8 free pages    count u32 | page numbers u32 ...
//! ```
//! The page's LSN becomes the *end* of the record: the log has to be durable up to there before the page is
//! written, and a change is redone iff the page's LSN is older. A change is made for one version of the page
//! only, which it names; an image for any. So a page that misses an earlier change (it was freed, so nobody
//! wrote it out) is recognised, and counts as broken until an image replaces it or the free map says that it
//! is free.
//!
//! The same functions change pages in use and pages redone (engine R17, R18): those of `NodeMut` and of
//! `FreeMapPage`.

mod apply;

pub(crate) use apply::{Change, changes_of};

use crate::Result;
use crate::format::layout::{HEADER_BYTES, LSN, SLOT_BYTES};
use crate::format::node::{Node, SplitPoint};
use crate::journal::{Journal, kind};
use base::{FileId, Lsn, PageNo, Stamp};
use pagecache::page::{Page, PageMut};
use std::cell::Cell;

pub(super) const INSERT: u8 = 1;
pub(super) const INSERT_CHILD: u8 = 2;
pub(super) const REPLACE: u8 = 3;
pub(super) const REMOVE: u8 = 4;
pub(super) const CUT: u8 = 5;
pub(super) const IMAGE: u8 = 6;
pub(super) const USE_PAGES: u8 = 7;
pub(super) const FREE_PAGES: u8 = 8;

/// What each change begins with, in bytes: its code, the page, the LSN that the page had.
const CHANGE_HEAD_BYTES: usize = 13;
const _: () = assert!(CHANGE_HEAD_BYTES == size_of::<u8>() + size_of::<PageNo>() + size_of::<Lsn>());

thread_local! {
    /// The last record's memory, for the next.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A large record's memory is not kept.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// A record in the making: changes of one file's pages.
#[derive(Debug)]
pub(crate) struct Changes {
    bytes: Vec<u8>,
}

impl Changes {
    pub(crate) fn new(file: FileId) -> Changes {
        let mut bytes = SPARE.take();
        bytes.clear();
        bytes.extend_from_slice(&file.0.to_le_bytes());
        Changes { bytes }
    }

    /// Appends the record. The pages that it names are latched exclusively and marked dirty; they are changed
    /// after it, and [`set_lsn`] is called with what this returns.
    pub(crate) fn log(self, journal: &Journal) -> Result<Lsn> {
        Ok(journal.append(kind::PAGES, &[&self.bytes])?.end)
    }

    fn start(&mut self, code: u8, number: PageNo, page: Page<'_>) {
        self.bytes.push(code);
        self.u32(number.0);
        self.bytes.extend_from_slice(&page.u64_at(LSN).to_le_bytes());
    }

    fn u16(&mut self, value: usize) {
        debug_assert!(value <= usize::from(u16::MAX));
        self.bytes.extend_from_slice(&(value as u16).to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn insert(
        &mut self,
        number: PageNo,
        node: Node<'_>,
        index: usize,
        key: &[u8],
        value: &[&[u8]],
        stamp: Stamp,
    ) {
        self.start(INSERT, number, node.page());
        let suffix = &key[node.prefix_len()..];
        self.u16(index);
        self.u16(suffix.len());
        self.u16(value.iter().map(|part| part.len()).sum());
        self.bytes.extend_from_slice(&stamp.0.to_le_bytes());
        self.bytes.extend_from_slice(suffix);
        value.iter().for_each(|part| self.bytes.extend_from_slice(part));
    }

    pub(crate) fn insert_child(
        &mut self,
        number: PageNo,
        node: Node<'_>,
        index: usize,
        separator: &[u8],
        child: PageNo,
    ) {
        self.start(INSERT_CHILD, number, node.page());
        let suffix = &separator[node.prefix_len()..];
        self.u16(index);
        self.u16(suffix.len());
        self.u32(child.0);
        self.bytes.extend_from_slice(suffix);
    }

    pub(crate) fn replace(
        &mut self,
        number: PageNo,
        node: Node<'_>,
        index: usize,
        value: &[&[u8]],
        stamp: Stamp,
    ) {
        self.start(REPLACE, number, node.page());
        self.u16(index);
        self.u16(value.iter().map(|part| part.len()).sum());
        self.bytes.extend_from_slice(&stamp.0.to_le_bytes());
        value.iter().for_each(|part| self.bytes.extend_from_slice(part));
    }

    pub(crate) fn remove(&mut self, number: PageNo, node: Node<'_>, index: usize) {
        self.start(REMOVE, number, node.page());
        self.u16(index);
    }

    pub(crate) fn cut(&mut self, number: PageNo, node: Node<'_>, point: &SplitPoint) {
        self.start(CUT, number, node.page());
        self.u16(point.index);
        self.u16(point.separator.len());
        self.bytes.extend_from_slice(&point.separator);
    }

    /// All of a tree page but the gap between slots and heap. `page` is what it will be; it need not be in
    /// its place yet.
    pub(crate) fn node_image(&mut self, number: PageNo, page: Page<'_>) {
        let node = Node::new(page);
        let heap = node.heap_start().min(page.size());
        self.image(number, page, HEADER_BYTES + node.count() * SLOT_BYTES, page.size() - heap);
    }

    /// The first `low` and the last `tail` bytes of a page; what is between counts as zero.
    pub(crate) fn image(&mut self, number: PageNo, page: Page<'_>, low: usize, tail: usize) {
        self.start(IMAGE, number, page);
        self.u32(low as u32);
        self.u32(tail as u32);
        page.append_to(0, low, &mut self.bytes);
        page.append_to(page.size() - tail, tail, &mut self.bytes);
    }

    /// Pages that a page of the free map calls used from here on, or free.
    pub(crate) fn occupy(&mut self, number: PageNo, page: Page<'_>, used: bool, pages: &[PageNo]) {
        self.start(if used { USE_PAGES } else { FREE_PAGES }, number, page);
        self.u32(pages.len() as u32);
        pages.iter().for_each(|page| self.u32(page.0));
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if self.bytes.capacity() <= SPARE_BYTES_MAX {
            SPARE.set(std::mem::take(&mut self.bytes));
        }
    }
}

/// Notes in a page that it has been changed as the record that ends at `lsn` says.
pub(crate) fn set_lsn(page: &mut PageMut<'_>, lsn: Lsn) {
    page.set_u64(LSN, lsn.0);
}
