//! Reading a record's changes and making them again.

use super::{CUT, FREE_PAGES, IMAGE, INSERT, INSERT_CHILD, REMOVE, REPLACE, USE_PAGES};
use crate::format::file_header::format_in;
use crate::format::free_map::FreeMapPage;
use crate::format::layout::{FORMAT, FORMAT_AT, HEADER_BYTES, PageType, SLOT_BYTES, TYPE};
use crate::format::node::{NodeMut, SplitPoint, cut};
use base::{FileId, Lsn, PageId, PageNo};
use pagecache::FileFormat;
use pagecache::page::PageMut;

/// One page's part in a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change<'r> {
    pub page: PageNo,
    /// The LSN of the page that it was made for.
    pub base: Lsn,
    pub op: Op<'r>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op<'r> {
    Insert { index: usize, stamp: u64, suffix: &'r [u8], value: &'r [u8] },
    InsertChild { index: usize, child: u32, suffix: &'r [u8] },
    Replace { index: usize, stamp: u64, value: &'r [u8] },
    Remove { index: usize },
    Cut(SplitPoint),
    Image { low: &'r [u8], tail: &'r [u8] },
    Occupy { used: bool, pages: Vec<PageNo> },
}

/// Reads a record's payload; `None` if it is none of this build's.
pub(crate) fn changes_of(payload: &[u8]) -> Option<(FileId, Vec<Change<'_>>)> {
    let mut from = Bytes(payload);
    let file = FileId(from.u32()?);
    let mut changes = Vec::new();
    while !from.0.is_empty() {
        let code = from.u8()?;
        let page = PageNo(from.u32()?);
        let base = Lsn(from.u64()?);
        changes.push(Change { page, base, op: from.op(code)? });
    }
    Some((file, changes))
}

struct Bytes<'r>(&'r [u8]);

impl<'r> Bytes<'r> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<usize> {
        self.array().map(|bytes| usize::from(u16::from_le_bytes(bytes)))
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, len: usize) -> Option<&'r [u8]> {
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }

    fn op(&mut self, code: u8) -> Option<Op<'r>> {
        Some(match code {
            INSERT => {
                let (index, suffix, value) = (self.u16()?, self.u16()?, self.u16()?);
                let stamp = self.u64()?;
                Op::Insert { index, stamp, suffix: self.bytes(suffix)?, value: self.bytes(value)? }
            }
            INSERT_CHILD => {
                let (index, suffix, child) = (self.u16()?, self.u16()?, self.u32()?);
                Op::InsertChild { index, child, suffix: self.bytes(suffix)? }
            }
            REPLACE => {
                let (index, value, stamp) = (self.u16()?, self.u16()?, self.u64()?);
                Op::Replace { index, stamp, value: self.bytes(value)? }
            }
            REMOVE => Op::Remove { index: self.u16()? },
            CUT => {
                let (index, separator) = (self.u16()?, self.u16()?);
                Op::Cut(SplitPoint { index, separator: self.bytes(separator)?.to_vec() })
            }
            IMAGE => {
                let (low, tail) = (self.u32()? as usize, self.u32()? as usize);
                Op::Image { low: self.bytes(low)?, tail: self.bytes(tail)? }
            }
            USE_PAGES | FREE_PAGES => {
                let mut pages = Vec::new();
                for _ in 0..self.u32()? {
                    pages.push(PageNo(self.u32()?));
                }
                Op::Occupy { used: code == USE_PAGES, pages }
            }
            _ => return None,
        })
    }
}

impl Change<'_> {
    /// How it says that the file lies on the device, if it makes the file's header.
    pub(crate) fn format(&self) -> Option<FileFormat> {
        match self.op {
            Op::Image { low, .. } if self.page == PageNo(0) => format_in(low),
            _ => None,
        }
    }

    /// Makes the change in the page that it was made for. The error says why it cannot be; the page is then
    /// unchanged.
    pub(crate) fn apply(&self, id: PageId, page: PageMut<'_>) -> Result<(), String> {
        let mut page = page;
        match &self.op {
            Op::Image { low, tail } => {
                if low.len() + tail.len() > page.size() {
                    return Err("an image larger than the page".to_string());
                }
                page.clear();
                page.write(0, low);
                let tail_at = page.size() - tail.len();
                page.write(tail_at, tail);
                Ok(())
            }
            Op::Occupy { used, pages } => {
                let mut map = FreeMapPage::new(page);
                if !map.is_one() {
                    return Err("not a page of the free map".to_string());
                }
                if let Some(stranger) = pages.iter().find(|page| !map.covers(**page)) {
                    return Err(format!("a free map without page {stranger}"));
                }
                pages.iter().for_each(|page| map.set(*page, *used));
                Ok(())
            }
            _ => self.apply_to_node(id, &mut NodeMut::new(page)),
        }
    }

    fn apply_to_node(&self, id: PageId, node: &mut NodeMut<'_>) -> Result<(), String> {
        let (is_leaf, count) = (node.node().is_leaf(), node.node().count());
        let expected = if is_leaf { PageType::Leaf } else { PageType::Inner };
        let page = node.node().page();
        if page.u8_at(FORMAT_AT) != FORMAT || page.u8_at(TYPE) != expected as u8 {
            return Err("not a tree page".to_string());
        }
        if HEADER_BYTES + count * SLOT_BYTES > page.size() {
            return Err("more slots than fit the page".to_string());
        }
        let wrong = |what: &str| Err(format!("{what}, in a page of {count} slots"));
        match &self.op {
            Op::Insert { index, stamp, suffix, value } if is_leaf && *index <= count => {
                if node.insert_suffix(*index, suffix, &[value]).is_err() {
                    return wrong("no room for a row");
                }
                node.raise_stamp(*stamp);
            }
            Op::InsertChild { index, child, suffix } if !is_leaf && *index <= count => {
                if node.insert_child_suffix(*index, suffix, *child).is_err() {
                    return wrong("no room for a child");
                }
            }
            Op::Replace { index, stamp, value } if is_leaf && *index < count => {
                if node.replace(*index, &[value]).is_err() {
                    return wrong("no room for a row's new value");
                }
                node.raise_stamp(*stamp);
            }
            Op::Remove { index } if *index < count => node.remove(*index),
            Op::Cut(point) if point.index <= count => cut(node, id, point),
            other => return wrong(&format!("{other:?}")),
        }
        Ok(())
    }

    /// The page that a bit of the free map says is free from here on.
    pub(crate) fn freed(&self) -> &[PageNo] {
        match &self.op {
            Op::Occupy { used: false, pages } => pages,
            _ => &[],
        }
    }

    /// True if the page may have held anything before.
    pub(crate) fn is_image(&self) -> bool {
        matches!(self.op, Op::Image { .. })
    }

    /// The stamp of the row that was changed.
    pub(crate) fn stamp(&self) -> u64 {
        match self.op {
            Op::Insert { stamp, .. } | Op::Replace { stamp, .. } => stamp,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::node::Node;
    use crate::format::redo::Changes;
    use pagecache::page::PageBuf;

    #[test]
    fn a_record_that_was_cut_or_changed_is_refused_or_read_but_never_panics() {
        let mut page = PageBuf::new(1024);
        let id = PageId::new(FileId(3), PageNo(5));
        let header = crate::format::node::NodeHeader {
            level: 0,
            tree: 1,
            lower: b"",
            upper: None,
            stamp_max: 0,
            first_child: 0,
            whole_keys: false,
        };
        NodeMut::new(page.page_mut()).init(id, header);
        let mut changes = Changes::new(FileId(3));
        let node = Node::new(page.page());
        changes.insert(PageNo(5), node, 0, b"key", &[b"some", b"thing"], base::Stamp(9));
        changes.node_image(PageNo(6), page.page());
        changes.cut(PageNo(5), node, &SplitPoint { index: 1, separator: b"m".to_vec() });
        changes.occupy(PageNo(1), page.page(), true, &[PageNo(5), PageNo(6)]);
        let bytes = changes.bytes.clone();
        let (file, read) = changes_of(&bytes).unwrap();
        assert_eq!((file, read.len()), (FileId(3), 4));
        assert_eq!(
            read[0].op,
            Op::Insert { index: 0, stamp: 9, suffix: b"key".as_slice(), value: b"something".as_slice() }
        );
        assert_eq!(read[3].op, Op::Occupy { used: true, pages: vec![PageNo(5), PageNo(6)] });
        for len in 0..bytes.len() {
            let _ = changes_of(&bytes[..len]);
        }
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut broken = bytes.clone();
                broken[at] ^= change;
                if let Some((_, changes)) = changes_of(&broken) {
                    for change in changes {
                        let mut copy = PageBuf::new(1024);
                        copy.page_mut().copy_from(page.page());
                        let _ = change.apply(id, copy.page_mut());
                    }
                }
            }
        }
    }
}
