//! Reading a node: total on torn pages. Every length and offset may be garbage; the
//! loops are bounded by what fits a page, and `Page` keeps every access inside it.

use super::guess;
use crate::format::layout::*;
use base::sync::atomic::Ordering::Relaxed;
use pagecache::Hints;
use pagecache::page::Page;
use std::cmp::Ordering;

/// A tree page as a reader sees it that may have to throw away what it read.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    page: Page<'a>,
}

/// One slot, taken out of the page by a single load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u64);

impl Slot {
    pub(super) fn new(offset: usize, key_len: usize, head: u32) -> Slot {
        Slot(offset as u64 | (key_len as u64) << 16 | u64::from(head) << 32)
    }
    #[inline(always)]
    pub(super) fn offset(self) -> usize {
        self.0 as u16 as usize
    }
    #[inline(always)]
    pub(super) fn key_len(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }
    #[inline(always)]
    pub(super) fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }
    pub(super) fn word(self) -> u64 {
        self.0
    }
}

/// The first four bytes of a key suffix as a number that compares as they do.
#[inline(always)]
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            let mut padded = [0; 4];
            padded[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(padded)
        }
    }
}

/// Slots in a line of the processor's cache.
pub(super) const SLOTS_A_LINE: usize = 64 / SLOT_BYTES;
/// So many lines a search looks through one by one before it halves the rest.
const LINES_NEAR: usize = 3;

const _: () = assert!(HEADER_BYTES.is_multiple_of(64), "slots begin with a line");

impl<'a> Node<'a> {
    #[inline(always)]
    pub fn new(page: Page<'a>) -> Node<'a> {
        Node { page }
    }

    #[inline(always)]
    pub(crate) fn page(self) -> Page<'a> {
        self.page
    }

    pub fn page_type(self) -> Option<PageType> {
        PageType::from_u8(self.page.u8_at(TYPE))
    }

    /// The word of the header that holds byte `at`.
    #[inline(always)]
    fn header_word(self, at: usize) -> u64 {
        self.page.line_at(0)[at / 8].load(Relaxed)
    }

    /// Format, type, level and flags, from the lowest byte on.
    #[inline(always)]
    pub(crate) fn kind(self) -> u32 {
        const { assert!(FORMAT_AT == 4 && TYPE == 5 && LEVEL == 6 && FLAGS == 7) };
        (self.header_word(FORMAT_AT) >> 32) as u32
    }

    #[inline(always)]
    pub fn level(self) -> u8 {
        (self.kind() >> 16) as u8
    }

    #[inline(always)]
    pub fn is_leaf(self) -> bool {
        self.level() == 0
    }

    #[inline(always)]
    pub(crate) fn tree(self) -> u32 {
        self.header_word(TREE) as u32
    }

    pub(crate) fn stamp_max(self) -> u64 {
        self.page.word_at(STAMP_MAX)
    }

    pub(crate) fn lsn(self) -> u64 {
        self.page.word_at(LSN)
    }

    /// The number of slots, at most what fits the page.
    #[inline(always)]
    pub fn count(self) -> usize {
        let count = self.header_word(SLOT_COUNT) as u16 as usize;
        count.min((self.page.size() - HEADER_BYTES) / SLOT_BYTES)
    }

    #[inline(always)]
    pub fn prefix_len(self) -> usize {
        (self.header_word(SLOT_COUNT) >> 48) as usize
    }

    /// True if cells keep whole keys: the tree was made so.
    pub(crate) fn has_whole_keys(self) -> bool {
        self.page.u8_at(FLAGS) & WHOLE_KEYS != 0
    }

    pub(crate) fn heap_start(self) -> usize {
        match self.page.u16_at(HEAP_START) {
            0 => 1 << 16,
            start => usize::from(start),
        }
    }

    pub(super) fn dead_bytes(self) -> usize {
        usize::from(self.page.u16_at(DEAD_BYTES))
    }

    /// Bytes between the slots and the heap.
    pub(super) fn gap_bytes(self) -> usize {
        self.heap_start().saturating_sub(HEADER_BYTES + self.count() * SLOT_BYTES)
    }

    /// Bytes that new cells could take, after compaction.
    pub fn free_bytes(self) -> usize {
        self.gap_bytes() + self.dead_bytes()
    }

    /// True if the leaf's slot `index` could have a value of `value_len` bytes.
    pub(crate) fn has_room_to_replace(self, index: usize, value_len: usize) -> bool {
        let freed = self.cell_bytes(index) + SLOT_BYTES;
        let suffix_len = self.suffix_place(index).1;
        self.free_bytes() + freed >= LEAF_CELL_HEADER + suffix_len + value_len + SLOT_BYTES
    }

    /// Bytes in use by slots, cells and fences.
    pub fn used_bytes(self) -> usize {
        (self.page.size() - HEADER_BYTES).saturating_sub(self.free_bytes())
    }

    fn fence(self, at: usize) -> (usize, usize) {
        let word = self.page.u32_at(at);
        (word as u16 as usize, (word >> 16) as usize)
    }

    /// Appends the lower fence (inclusive; empty = minus infinity).
    pub fn append_lower_fence(self, out: &mut Vec<u8>) {
        let (offset, len) = self.fence(LOWER_FENCE);
        self.page.append_to(offset, len, out);
    }

    /// Appends the upper fence (exclusive); false if there is none.
    pub fn append_upper_fence(self, out: &mut Vec<u8>) -> bool {
        let (offset, len) = self.fence(UPPER_FENCE);
        if offset == 0 {
            return false;
        }
        self.page.append_to(offset, len, out);
        true
    }

    #[inline]
    pub(crate) fn has_upper_fence(self) -> bool {
        self.fence(UPPER_FENCE).0 != 0
    }

    /// The lower fence compared with `key`.
    pub fn compare_lower_fence(self, key: &[u8]) -> Ordering {
        let (offset, len) = self.fence(LOWER_FENCE);
        self.page.compare(offset, len, key)
    }

    /// True if `key` lies below the upper fence.
    #[inline]
    pub(crate) fn is_below_upper_fence(self, key: &[u8]) -> bool {
        let (offset, len) = self.fence(UPPER_FENCE);
        offset == 0 || self.page.compare(offset, len, key) == Ordering::Greater
    }

    /// True if keys that start with `prefix`, as the last ones here do, may go on in the next leaf.
    #[inline]
    pub(crate) fn upper_fence_starts_with(self, prefix: &[u8]) -> bool {
        let (offset, len) = self.fence(UPPER_FENCE);
        offset != 0
            && len >= prefix.len()
            && self.page.compare(offset, prefix.len(), prefix) == Ordering::Equal
    }

    /// True if keys that start with `prefix`, as the first ones here do, may begin in the leaf before.
    pub(crate) fn lower_fence_starts_with(self, prefix: &[u8]) -> bool {
        let (offset, len) = self.fence(LOWER_FENCE);
        len >= prefix.len() && self.page.compare(offset, prefix.len(), prefix) == Ordering::Equal
    }

    /// True if `key` lies between the fences.
    pub fn covers(self, key: &[u8]) -> bool {
        self.compare_lower_fence(key) != Ordering::Greater && self.is_below_upper_fence(key)
    }

    #[inline(always)]
    pub(super) fn slot(self, index: usize) -> Slot {
        Slot(self.page.word_at(HEADER_BYTES + index * SLOT_BYTES))
    }

    #[inline(always)]
    fn cell_header(self) -> usize {
        if self.is_leaf() { LEAF_CELL_HEADER } else { INNER_CELL_HEADER }
    }

    /// Where the key suffix of slot `index` lies: offset and length.
    pub(super) fn suffix_place(self, index: usize) -> (usize, usize) {
        let slot = self.slot(index);
        (slot.offset() + self.cell_header(), slot.key_len())
    }

    /// Bytes that the cell of slot `index` takes in the heap.
    pub(super) fn cell_bytes(self, index: usize) -> usize {
        let slot = self.slot(index);
        if self.is_leaf() {
            LEAF_CELL_HEADER + slot.key_len() + self.value_len_at(slot)
        } else {
            INNER_CELL_HEADER + slot.key_len()
        }
    }

    #[inline(always)]
    fn value_len_at(self, slot: Slot) -> usize {
        usize::from(self.page.u16_at(slot.offset()))
    }

    /// Compares the key of `slot` with a search key whose `suffix` and `head` are given; the heads are equal.
    #[inline]
    fn compare_behind_head(self, slot: Slot, cell_header: usize, suffix: &[u8]) -> Ordering {
        let len = slot.key_len();
        if len <= 4 || suffix.len() <= 4 {
            // The bytes that both have are equal, since the heads are.
            return len.cmp(&suffix.len());
        }
        self.page.compare(slot.offset() + cell_header + 4, len - 4, &suffix[4..])
    }

    /// The first slot whose key is not below `key`, and whether it equals `key`.
    /// `key` lies between the fences, so that it starts with the page's prefix.
    #[inline]
    pub fn search(self, key: &[u8]) -> (usize, bool) {
        let count = self.count();
        let suffix = key.get(self.prefix_len()..).unwrap_or(&[]);
        let head = head_of(suffix);
        self.search_suffix(self.first_head_not_below(head, 0, count), count, head, suffix)
    }

    /// As [`Node::search`], from where the page's hints say.
    #[inline(always)]
    pub(crate) fn search_near(self, key: &[u8], hints: &Hints) -> (usize, bool) {
        let mut search = self.begin_search(key, hints);
        self.settle(&mut search);
        self.finish(&search, key)
    }

    /// As `search`; `first` is the first slot whose head is not below that of the key.
    #[inline(always)]
    fn search_suffix(self, first: usize, count: usize, head: u32, suffix: &[u8]) -> (usize, bool) {
        if first == count {
            return (first, false);
        }
        let slot = self.slot(first);
        if slot.head() != head {
            return (first, false);
        }
        if slot.key_len() == suffix.len() && suffix.len() <= 4 {
            return (first, true);
        }
        self.search_equal_heads(first, count, head, suffix)
    }

    /// Halves by conditional moves: what the processor cannot predict it should not have to.
    #[inline(always)]
    fn first_head_not_below(self, head: u32, from: usize, to: usize) -> usize {
        let mut base = from;
        let mut len = to - from;
        while len > 1 {
            let half = len / 2;
            let below = self.slot(base + half - 1).head() < head;
            base = std::hint::select_unpredictable(below, base + half, base);
            len -= half;
        }
        base + usize::from(len == 1 && self.slot(base).head() < head)
    }

    /// The same by lines of slots, from the one with slot `near` and then those beside it; in the end by
    /// halving.
    #[inline(always)]
    fn first_head_not_below_near(self, head: u32, count: usize, near: usize) -> usize {
        let mut line = near / SLOTS_A_LINE;
        let (mut from, mut to) = (0, count);
        for _ in 0..LINES_NEAR {
            let start = line * SLOTS_A_LINE;
            let end = (start + SLOTS_A_LINE).min(count);
            let below = self.below_in_line(line, end - start, head);
            if below == 0 {
                to = start;
                if start == from {
                    return start;
                }
                line -= 1;
            } else if start + below < end {
                return start + below;
            } else {
                from = end;
                if end == to {
                    return end;
                }
                line += 1;
            }
        }
        self.first_head_not_below(head, from, to)
    }

    /// How many of the first `count` slots of a line of slots have heads below `head`.
    #[inline(always)]
    fn below_in_line(self, line: usize, count: usize, head: u32) -> usize {
        // The head is the upper half of a slot, so that the whole slot compares as it does with this.
        let bound = u64::from(head) << 32;
        let slots = self.page.line_at(HEADER_BYTES + line * SLOTS_A_LINE * SLOT_BYTES);
        let is_below = |index: usize| slots[index].load(Relaxed) < bound;
        if count < SLOTS_A_LINE {
            return (0..count).map(|index| usize::from(is_below(index))).sum();
        }
        const { assert!(SLOTS_A_LINE == 8) };
        let mut below = std::hint::select_unpredictable(is_below(3), 4, 0);
        below = std::hint::select_unpredictable(is_below(below + 1), below + 2, below);
        below += usize::from(is_below(below));
        below + usize::from(below == 7 && is_below(7))
    }

    /// The same search, in three steps, so that many of them can advance in turn and their cache misses
    /// overlap. The first asks for the slots where the second is going to look.
    #[inline(always)]
    pub(crate) fn begin_search(self, key: &[u8], hints: &Hints) -> Search {
        let head = head_of(key.get(self.prefix_len()..).unwrap_or(&[]));
        let count = self.count();
        let place = guess::first_place(self, hints, head, count);
        self.page.prefetch(HEADER_BYTES + place * SLOT_BYTES);
        Search { head, place: place as u32, count: count as u32 }
    }

    /// Goes by the heads of the line of slots that was asked for. False if the place is not among them: then
    /// the line beside it has been asked for.
    #[inline(always)]
    pub(crate) fn settle_in_line(self, search: &mut Search) -> bool {
        let Search { head, place, count } = *search;
        let start = place as usize / SLOTS_A_LINE * SLOTS_A_LINE;
        let end = (start + SLOTS_A_LINE).min(count as usize);
        let below = self.below_in_line(start / SLOTS_A_LINE, end.saturating_sub(start), head);
        search.place = (start + below) as u32;
        if below == 0 && start > 0 {
            search.place -= 1;
        } else if end < count as usize && start + below == end {
        } else {
            return true;
        }
        self.page.prefetch(HEADER_BYTES + search.place as usize * SLOT_BYTES);
        false
    }

    /// Goes by the heads from the guessed place to the right one.
    #[inline(always)]
    pub(crate) fn settle(self, search: &mut Search) {
        let Search { head, place, count } = *search;
        search.place = self.first_head_not_below_near(head, count as usize, place as usize) as u32;
    }

    /// Asks for the cell that the heads lead to, once settled; `bytes` is a guess of its length.
    #[inline(always)]
    pub(crate) fn prefetch_found(self, search: &Search, bytes: usize) {
        self.prefetch_cell(search.place as usize, bytes);
    }

    /// As [`Node::search`] gives it, once settled.
    #[inline(always)]
    pub(crate) fn finish(self, search: &Search, key: &[u8]) -> (usize, bool) {
        let suffix = key.get(self.prefix_len()..).unwrap_or(&[]);
        self.search_suffix(search.place as usize, search.count as usize, search.head, suffix)
    }

    fn search_equal_heads(self, first: usize, count: usize, head: u32, suffix: &[u8]) -> (usize, bool) {
        let cell_header = self.cell_header();
        let mut low = first;
        let mut high = count;
        let mut exact = false;
        while low < high {
            let middle = if low == first { low } else { low + (high - low) / 2 };
            let slot = self.slot(middle);
            let order = match slot.head().cmp(&head) {
                Ordering::Equal => self.compare_behind_head(slot, cell_header, suffix),
                order => order,
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => {
                    exact = true;
                    high = middle;
                    break;
                }
                Ordering::Greater => high = middle,
            }
        }
        (if exact { high } else { low }, exact)
    }

    /// The position among the children, `0..=count`, of the one that covers `key`.
    #[inline]
    pub fn child_index(self, key: &[u8]) -> usize {
        let (index, exact) = self.search(key);
        index + usize::from(exact)
    }

    /// The position of the child that covers the keys just below `key`.
    pub fn child_index_below(self, key: &[u8]) -> usize {
        self.search(key).0
    }

    /// The child at a position, `0..=count`.
    #[inline]
    pub fn child(self, index: usize) -> u32 {
        if index == 0 {
            return (self.page.word_at(FIRST_CHILD) >> 32) as u32;
        }
        self.page.u32_at(self.slot(index - 1).offset())
    }

    /// For children of many keys.
    #[inline(always)]
    pub(crate) fn children(self) -> Children<'a> {
        Children {
            node: self,
            prefix_len: self.prefix_len(),
            count: self.count(),
            above: 0,
            below: 0,
            last: 0,
        }
    }

    /// Appends the whole key of slot `index`.
    pub fn append_key(self, index: usize, out: &mut Vec<u8>) {
        self.append_prefix(out);
        self.append_suffix(index, out);
    }

    /// Appends what the key of slot `index` has behind the page's prefix.
    #[inline]
    pub(crate) fn append_suffix(self, index: usize, out: &mut Vec<u8>) {
        let (offset, len) = self.suffix_place(index);
        self.page.append_to(offset, len, out);
    }

    /// Appends the value of a leaf's slot `index`.
    pub fn append_value(self, index: usize, out: &mut Vec<u8>) {
        let (offset, len) = self.value_place(index);
        self.page.append_to(offset, len, out);
    }

    /// Appends what all keys of the page begin with.
    #[inline]
    pub(crate) fn append_prefix(self, out: &mut Vec<u8>) {
        let prefix_len = self.prefix_len();
        if prefix_len > 0 {
            self.page.append_to(self.fence(LOWER_FENCE).0, prefix_len, out);
        }
    }

    /// Appends key and value of a leaf's slot `index`, whose key starts with the page's `prefix`. Gives where
    /// the key ends in `out`.
    #[inline]
    pub(crate) fn append_entry(self, index: usize, prefix: &[u8], out: &mut Vec<u8>) -> usize {
        let slot = self.slot(index);
        out.extend_from_slice(prefix);
        let key_end = out.len() + slot.key_len();
        // The value lies behind the key.
        let len = slot.key_len() + self.value_len_at(slot);
        self.page.append_to(slot.offset() + LEAF_CELL_HEADER, len, out);
        // A key that is said to be longer than the page was cut.
        key_end.min(out.len())
    }

    /// Where the value of a leaf's slot `index` lies: offset and length in the page.
    #[inline(always)]
    pub(crate) fn value_place(self, index: usize) -> (usize, usize) {
        let slot = self.slot(index);
        let len = self.value_len_at(slot);
        (slot.offset() + LEAF_CELL_HEADER + slot.key_len(), len)
    }

    /// Where the value of a leaf's slot `index` starts in the page.
    #[inline(always)]
    pub(crate) fn value_start(self, index: usize) -> usize {
        let slot = self.slot(index);
        slot.offset() + LEAF_CELL_HEADER + slot.key_len()
    }

    /// The first `bytes` bytes of the keys of slots `from..to`, at most eight, as numbers whose highest byte
    /// is the first. Those behind are arbitrary. The cells are not touched if the page's prefix and the
    /// slots' heads have enough.
    #[inline(always)]
    pub(crate) fn first_words(self, from: usize, to: usize, bytes: usize) -> impl Iterator<Item = u64> {
        let prefix_len = self.prefix_len().min(8);
        let mut prefix = [0; 8];
        self.page.copy_to(self.fence(LOWER_FENCE).0, &mut prefix[..prefix_len]);
        let prefix = u64::from_be_bytes(prefix);
        let shift = 8 * prefix_len as u32;
        let in_heads = prefix_len + 4 >= bytes;
        (from..to).map(move |index| {
            let slot = self.slot(index);
            let suffix = match in_heads {
                true => u64::from(slot.head()) << 32,
                false => self.page.u64_at(slot.offset() + LEAF_CELL_HEADER).swap_bytes(),
            };
            prefix | suffix.checked_shr(shift).unwrap_or(0)
        })
    }

    /// Asks for the beginning of the cell of slot `index`.
    #[inline(always)]
    pub(crate) fn prefetch_cell_start(self, index: usize) {
        self.page.prefetch(self.slot(index).offset());
    }

    /// True if the key of slot `index` starts with `prefix`, which lies between the fences or starts so.
    #[inline]
    pub fn key_starts_with(self, index: usize, prefix: &[u8]) -> bool {
        let Some(rest) = prefix.get(self.prefix_len()..) else {
            // The page's prefix is longer than the one asked for: compare with what all keys share.
            let (offset, len) = self.fence(LOWER_FENCE);
            return self.page.compare(offset, len.min(prefix.len()), prefix) == Ordering::Equal;
        };
        let slot = self.slot(index);
        if slot.key_len() < rest.len() {
            return false;
        }
        if rest.len() <= 4 {
            let mask = u32::MAX.checked_shl(32 - 8 * rest.len() as u32).unwrap_or(0);
            return slot.head() & mask == head_of(rest);
        }
        let offset = slot.offset() + self.cell_header();
        self.page.compare(offset, rest.len(), rest) == Ordering::Equal
    }

    /// The first slot of a leaf whose key is at least `end`; `None` = no bound.
    pub fn end_index(self, end: Option<&[u8]>) -> usize {
        match end {
            Some(end) if !self.is_above_all(end) => self.search(end).0,
            _ => self.count(),
        }
    }

    /// True if `key` is at or above the upper fence.
    fn is_above_all(self, key: &[u8]) -> bool {
        !self.is_below_upper_fence(key)
    }

    /// Asks for the cell of slot `index`; `bytes` is a guess of its length.
    #[inline(always)]
    pub fn prefetch_cell(self, index: usize, bytes: usize) {
        let offset = self.slot(index).offset();
        let mut at = offset;
        while at < offset + bytes {
            self.page.prefetch(at);
            at += 64;
        }
        self.page.prefetch(offset + bytes);
    }
}

/// The children of an inner node that cover one key after another. Sorted keys have the same child many times
/// over, which their heads tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Children<'a> {
    node: Node<'a>,
    prefix_len: usize,
    count: usize,
    /// Keys whose heads lie between these have the last child.
    above: i64,
    below: i64,
    last: u32,
}

impl Children<'_> {
    /// The child that covers `key`, which lies between the node's fences.
    #[inline(always)]
    pub(crate) fn of(&mut self, key: &[u8]) -> u32 {
        let suffix = key.get(self.prefix_len..).unwrap_or(&[]);
        let head = head_of(suffix);
        if self.above >= i64::from(head) || i64::from(head) >= self.below {
            self.find(head, suffix);
        }
        self.last
    }

    #[inline(always)]
    fn find(&mut self, head: u32, suffix: &[u8]) {
        let Children { node, count, .. } = *self;
        let first = node.first_head_not_below(head, 0, count);
        let (index, exact) = node.search_suffix(first, count, head, suffix);
        let position = index + usize::from(exact);
        let head_at = |index: usize| i64::from(node.slot(index).head());
        self.above = if position == 0 { -1 } else { head_at(position - 1) };
        self.below = if position == count { i64::MAX } else { head_at(position) };
        self.last = node.child(position);
    }
}

/// A search in progress: see [`Node::begin_search`].
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Search {
    head: u32,
    place: u32,
    count: u32,
}
