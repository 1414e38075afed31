//! Changing a node. The thread holds the node's page exclusively, so what it reads here is never torn.

use super::read::{Node, Slot, head_of};
use crate::format::layout::*;
use base::{Lsn, PageId};
use pagecache::page::{PageBuf, PageMut};
use std::cell::RefCell;

/// A tree page held exclusively.
#[derive(Debug)]
pub struct NodeMut<'a> {
    page: PageMut<'a>,
}

/// The cell does not fit the page, not even after compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// What [`NodeMut::init`] writes into a header.
#[derive(Clone, Copy, Debug)]
pub struct NodeHeader<'k> {
    pub level: u8,
    pub tree: u32,
    /// Inclusive; empty = minus infinity.
    pub lower: &'k [u8],
    /// Exclusive; `None` = plus infinity.
    pub upper: Option<&'k [u8]>,
    pub stamp_max: u64,
    /// The leftmost child of an inner page.
    pub first_child: u32,
    /// Cells keep whole keys, and not only what is behind the bytes that all of them share.
    pub whole_keys: bool,
}

/// How many bytes that all keys between two fences share are left out of cells.
pub(crate) fn prefix_len_between(lower: &[u8], upper: Option<&[u8]>, whole_keys: bool) -> usize {
    match upper {
        Some(upper) if !whole_keys => lower.iter().zip(upper).take_while(|(a, b)| a == b).count(),
        _ => 0,
    }
}

thread_local! {
    /// Pages to rebuild a node in, reused from call to call.
    static SCRATCH: RefCell<Vec<PageBuf>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with a private page of `size` bytes, whose contents are arbitrary.
pub(crate) fn with_scratch<R>(size: usize, work: impl FnOnce(&mut PageBuf) -> R) -> R {
    let reused = SCRATCH.with_borrow_mut(|pages| {
        let found = pages.iter().position(|page| page.page().size() == size);
        found.map(|index| pages.swap_remove(index))
    });
    let mut page = reused.unwrap_or_else(|| PageBuf::new(size));
    let result = work(&mut page);
    SCRATCH.with_borrow_mut(|pages| pages.push(page));
    result
}

impl<'a> NodeMut<'a> {
    pub fn new(page: PageMut<'a>) -> NodeMut<'a> {
        NodeMut { page }
    }

    #[inline(always)]
    pub(crate) fn node(&self) -> Node<'_> {
        Node::new(self.page.as_page())
    }

    /// Makes the page an empty node. The caller knows that the fences fit.
    pub fn init(&mut self, id: PageId, header: NodeHeader<'_>) {
        let NodeHeader { level, tree, lower, upper, stamp_max, first_child, whole_keys } = header;
        let page_type = if level == 0 { PageType::Leaf } else { PageType::Inner };
        self.page.set_u64(0, 0);
        self.page.set_u8(FORMAT_AT, FORMAT);
        self.page.set_u8(TYPE, page_type as u8);
        self.page.set_u8(LEVEL, level);
        self.page.set_u8(FLAGS, if whole_keys { WHOLE_KEYS } else { 0 });
        self.page.set_u64(LSN, 0);
        self.page.set_u32(PAGE_NO, id.page.0);
        self.page.set_u32(FILE_ID, id.file.0);
        self.page.set_u64(STAMP_MAX, stamp_max);
        self.page.set_u16(SLOT_COUNT, 0);
        self.page.set_u16(DEAD_BYTES, 0);
        self.page.set_u64(RESERVED, 0);
        self.page.set_u32(TREE, tree);
        self.page.set_u32(FIRST_CHILD, first_child);
        let prefix_len = prefix_len_between(lower, upper, whole_keys);
        self.page.set_u16(PREFIX_LEN, prefix_len as u16);
        let lower_at = self.page.size() - lower.len();
        self.page.write(lower_at, lower);
        // An empty lower fence may sit at 65,536, which its offset cannot say and nobody reads.
        self.page.set_u16(LOWER_FENCE, lower_at as u16);
        self.page.set_u16(LOWER_FENCE + 2, lower.len() as u16);
        let mut heap_start = lower_at;
        match upper {
            Some(upper) => {
                heap_start -= upper.len();
                self.page.write(heap_start, upper);
                self.page.set_u16(UPPER_FENCE, heap_start as u16);
                self.page.set_u16(UPPER_FENCE + 2, upper.len() as u16);
            }
            None => self.page.set_u32(UPPER_FENCE, 0),
        }
        self.set_heap_start(heap_start);
    }

    fn set_heap_start(&mut self, at: usize) {
        self.page.set_u16(HEAP_START, at as u16);
    }

    fn set_dead_bytes(&mut self, bytes: usize) {
        self.page.set_u16(DEAD_BYTES, bytes as u16);
    }

    fn set_count(&mut self, count: usize) {
        self.page.set_u16(SLOT_COUNT, count as u16);
    }

    fn set_slot(&mut self, index: usize, slot: Slot) {
        self.page.set_u64(HEADER_BYTES + index * SLOT_BYTES, slot.word());
    }

    /// The newest stamp in the page is at least `stamp`.
    pub(crate) fn raise_stamp(&mut self, stamp: u64) {
        if stamp > self.node().stamp_max() {
            self.page.set_u64(STAMP_MAX, stamp);
        }
    }

    /// Inserts into a leaf, before slot `index` (from [`Node::search`]).
    pub fn insert(&mut self, index: usize, key: &[u8], value: &[&[u8]]) -> Result<(), Full> {
        self.insert_suffix(index, &key[self.node().prefix_len()..], value)
    }

    /// As [`NodeMut::insert`], with what the page keeps of the key.
    pub(crate) fn insert_suffix(&mut self, index: usize, suffix: &[u8], value: &[&[u8]]) -> Result<(), Full> {
        let value_len: usize = value.iter().map(|part| part.len()).sum();
        let at = self.open_slot(index, suffix, LEAF_CELL_HEADER + suffix.len() + value_len)?;
        self.page.set_u16(at, value_len as u16);
        self.page.write(at + LEAF_CELL_HEADER, suffix);
        let mut to = at + LEAF_CELL_HEADER + suffix.len();
        for part in value {
            self.page.write(to, part);
            to += part.len();
        }
        Ok(())
    }

    /// Inserts a separator and the child right of it into an inner page.
    pub(crate) fn insert_child(&mut self, index: usize, separator: &[u8], child: u32) -> Result<(), Full> {
        self.insert_child_suffix(index, &separator[self.node().prefix_len()..], child)
    }

    /// As [`NodeMut::insert_child`], with what the page keeps of the separator.
    pub(crate) fn insert_child_suffix(
        &mut self,
        index: usize,
        suffix: &[u8],
        child: u32,
    ) -> Result<(), Full> {
        let at = self.open_slot(index, suffix, INNER_CELL_HEADER + suffix.len())?;
        self.page.set_u32(at, child);
        self.page.write(at + INNER_CELL_HEADER, suffix);
        Ok(())
    }

    /// Makes room for a cell, shifts the slots and fills in the new one. Gives the cell's offset.
    fn open_slot(&mut self, index: usize, suffix: &[u8], cell_bytes: usize) -> Result<usize, Full> {
        let need = cell_bytes + SLOT_BYTES;
        if self.node().gap_bytes() < need {
            if self.node().free_bytes() < need {
                return Err(Full);
            }
            self.compact();
        }
        let count = self.node().count();
        debug_assert!(index <= count);
        let at = self.node().heap_start() - cell_bytes;
        let from = HEADER_BYTES + index * SLOT_BYTES;
        self.page.copy_within(from, from + SLOT_BYTES, (count - index) * SLOT_BYTES);
        self.set_heap_start(at);
        self.set_count(count + 1);
        self.set_slot(index, Slot::new(at, suffix.len(), head_of(suffix)));
        Ok(at)
    }

    /// Removes slot `index`; in an inner page, with the child right of it.
    pub(crate) fn remove(&mut self, index: usize) {
        let count = self.node().count();
        assert!(index < count, "no such slot");
        let cell_bytes = self.node().cell_bytes(index);
        let offset = self.node().slot(index).offset();
        if offset == self.node().heap_start() {
            self.set_heap_start(offset + cell_bytes);
        } else {
            self.set_dead_bytes(self.node().dead_bytes() + cell_bytes);
        }
        let to = HEADER_BYTES + index * SLOT_BYTES;
        self.page.copy_within(to + SLOT_BYTES, to, (count - index - 1) * SLOT_BYTES);
        self.set_count(count - 1);
    }

    /// Replaces the value of a leaf's slot, in place if the length stays. On `Full` the node is unchanged.
    pub(crate) fn replace(&mut self, index: usize, value: &[&[u8]]) -> Result<(), Full> {
        let (offset, old_len) = self.node().value_place(index);
        let value_len: usize = value.iter().map(|part| part.len()).sum();
        if value_len == old_len {
            let mut to = offset;
            for part in value {
                self.page.write(to, part);
                to += part.len();
            }
            return Ok(());
        }
        if !self.node().has_room_to_replace(index, value_len) {
            return Err(Full);
        }
        let mut key = Vec::new();
        self.node().append_key(index, &mut key);
        self.remove(index);
        self.insert(index, &key, value)
    }

    /// Squeezes the dead bytes out of the heap.
    pub(super) fn compact(&mut self) {
        let size = self.page.size();
        with_scratch(size, |scratch| {
            scratch.page_mut().copy_from(self.page.as_page());
            let old = Node::new(scratch.page());
            let mut lower = Vec::new();
            let mut upper = Vec::new();
            old.append_lower_fence(&mut lower);
            let has_upper = old.append_upper_fence(&mut upper);
            let mut at = size - lower.len() - if has_upper { upper.len() } else { 0 };
            // The fences keep their places: `init` put them at the end of the page.
            let mut cell = Vec::new();
            for index in 0..old.count() {
                let slot = old.slot(index);
                cell.clear();
                old.page().append_to(slot.offset(), old.cell_bytes(index), &mut cell);
                at -= cell.len();
                self.page.write(at, &cell);
                self.set_slot(index, Slot::new(at, slot.key_len(), slot.head()));
            }
            self.set_heap_start(at);
            self.set_dead_bytes(0);
        });
    }

    /// The log's position behind the record of the last change.
    pub(crate) fn set_lsn(&mut self, lsn: Lsn) {
        self.page.set_u64(LSN, lsn.0);
    }

    /// Takes over everything of `source` but the page's own identity.
    pub(crate) fn replace_by(&mut self, id: PageId, source: &PageBuf) {
        self.page.copy_from(source.page());
        self.page.set_u32(PAGE_NO, id.page.0);
        self.page.set_u32(FILE_ID, id.file.0);
    }
}
