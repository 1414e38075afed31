//! Splitting a node in two and merging two into one. The new pages are built in private memory, logged, and
//! then copied over the old ones. So a failure leaves the pages as they were.

use super::read::Node;
use super::write::{NodeHeader, NodeMut, prefix_len_between, with_scratch};
use crate::format::layout::*;
use base::{PageId, PageNo};
use pagecache::page::PageMut;

/// Where a full node is cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitPoint {
    /// The first slot of the right part; for an inner page the slot that moves up.
    pub index: usize,
    /// Keys from here on belong to the right page.
    pub separator: Vec<u8>,
}

/// The shortest key above `left` that is not above `right`.
pub(crate) fn shortest_separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    right[..(common + 1).min(right.len())].to_vec()
}

impl Node<'_> {
    /// Both fences; an upper one of `None` is plus infinity.
    pub(crate) fn fences(self) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut lower = Vec::new();
        self.append_lower_fence(&mut lower);
        let mut upper = Vec::new();
        let upper = self.append_upper_fence(&mut upper).then_some(upper);
        (lower, upper)
    }

    /// The whole key of slot `index`.
    pub(crate) fn key(self, index: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.append_key(index, &mut key);
        key
    }

    /// Bytes that slots `from..to` and two fences take in a page whose keys share `prefix_len` bytes.
    fn bytes_of(self, from: usize, to: usize, fence_bytes: usize, prefix_len: usize) -> usize {
        let mine = self.prefix_len();
        let cells: usize = (from..to).map(|i| SLOT_BYTES + self.cell_bytes(i) + mine).sum();
        (cells + fence_bytes).saturating_sub((to - from) * prefix_len)
    }

    /// Where to cut this node so that `incoming`, which found it full, has room afterwards.
    ///
    /// A key above all others at the right edge of the tree cuts behind the last slot: ascending
    /// loads leave full pages behind. Anything else cuts near the middle of the bytes.
    /// `None` if the node has too few keys to be cut.
    pub fn split_point(self, incoming: &[u8]) -> Option<SplitPoint> {
        let count = self.count();
        if self.is_leaf() {
            if count == 0 {
                return None;
            }
            if !self.has_upper_fence() {
                let last = self.key(count - 1);
                if last.as_slice() < incoming {
                    let separator = shortest_separator(&last, incoming);
                    if self.left_part_fits(count, &separator) {
                        return Some(SplitPoint { index: count, separator });
                    }
                }
            }
            if count < 2 {
                return self.split_around_one(incoming);
            }
            let index = self.middle(incoming).clamp(1, count - 1);
            let separator = shortest_separator(&self.key(index - 1), &self.key(index));
            return Some(SplitPoint { index, separator });
        }
        if count == 0 {
            return None;
        }
        // Both parts keep a key if there are enough: two of the longest may already fill the smallest page.
        let (first, last) = if count >= 3 { (1, count - 2) } else { (0, count - 1) };
        let rightmost = !self.has_upper_fence() && self.search(incoming).0 == count;
        let index = if rightmost { last } else { self.middle(incoming).clamp(first, last) };
        Some(SplitPoint { index, separator: self.key(index) })
    }

    /// A leaf of one large cell is cut beside it, on the side where `incoming` does not go.
    fn split_around_one(self, incoming: &[u8]) -> Option<SplitPoint> {
        let only = self.key(0);
        match only.as_slice().cmp(incoming) {
            std::cmp::Ordering::Less => {
                Some(SplitPoint { index: 1, separator: shortest_separator(&only, incoming) })
            }
            std::cmp::Ordering::Greater => {
                Some(SplitPoint { index: 0, separator: shortest_separator(incoming, &only) })
            }
            std::cmp::Ordering::Equal => None,
        }
    }

    fn left_part_fits(self, index: usize, separator: &[u8]) -> bool {
        let (lower, _) = self.fences();
        let prefix_len = prefix_len_between(&lower, Some(separator), self.has_whole_keys());
        let need = self.bytes_of(0, index, lower.len() + separator.len(), prefix_len);
        need <= self.page().size() - HEADER_BYTES
    }

    /// The slot behind which half of the cells' bytes lie. `incoming` is not counted: a
    /// split that leaves it too little room is followed by another.
    fn middle(self, _incoming: &[u8]) -> usize {
        let count = self.count();
        let total: usize = (0..count).map(|i| self.cell_bytes(i) + SLOT_BYTES).sum();
        let mut sum = 0;
        for index in 0..count {
            let cell = self.cell_bytes(index) + SLOT_BYTES;
            // The cell that straddles the middle goes to the side that it overlaps more.
            if sum + cell / 2 >= total / 2 {
                return index;
            }
            sum += cell;
        }
        count
    }
}

/// Appends cells in key order to a page that nobody else sees.
struct Builder<'b> {
    node: NodeMut<'b>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'b> Builder<'b> {
    fn new(page: PageMut<'b>, id: PageId, header: NodeHeader<'_>) -> Builder<'b> {
        let mut node = NodeMut::new(page);
        node.init(id, header);
        Builder { node, key: Vec::new(), value: Vec::new() }
    }

    fn copy(&mut self, source: Node<'_>, from: usize, to: usize) {
        for index in from..to {
            self.key.clear();
            source.append_key(index, &mut self.key);
            let at = self.node.node().count();
            let done = if source.is_leaf() {
                self.value.clear();
                source.append_value(index, &mut self.value);
                self.node.insert(at, &self.key, &[&self.value])
            } else {
                self.node.insert_child(at, &self.key, source.child(index + 1))
            };
            done.expect("the parts of a node fit the pages that were measured for them");
        }
    }
}

/// Which part of a node that is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Left,
    Right,
}

/// Makes `page` the left or right part of `old`, cut at `point`.
pub(crate) fn build_part(old: Node<'_>, part: Part, point: &SplitPoint, id: PageId, page: PageMut<'_>) {
    let (lower, upper) = old.fences();
    let separator = point.separator.as_slice();
    let (lower, upper) = match part {
        Part::Left => (lower.as_slice(), Some(separator)),
        Part::Right => (separator, upper.as_deref()),
    };
    // An inner page's slot at the cut moves up to the parent; its child becomes the right part's first.
    let inner = !old.is_leaf();
    let first_child = match part {
        Part::Left => old.child(0),
        Part::Right => old.child(point.index + 1),
    };
    let header = NodeHeader {
        level: old.level(),
        tree: old.tree(),
        lower,
        upper,
        stamp_max: old.stamp_max(),
        first_child: if inner { first_child } else { 0 },
        whole_keys: old.has_whole_keys(),
    };
    let mut builder = Builder::new(page, id, header);
    match part {
        Part::Left => builder.copy(old, 0, point.index),
        Part::Right => builder.copy(old, point.index + usize::from(inner), old.count()),
    }
}

/// Leaves the left part of a node in its page.
pub(crate) fn cut(node: &mut NodeMut<'_>, id: PageId, point: &SplitPoint) {
    with_scratch(node.node().page().size(), |page| {
        build_part(node.node(), Part::Left, point, id, page.page_mut());
        node.replace_by(id, page);
    });
}

/// Makes `page` the root over the two parts of `old`, which has been the root so far.
pub(crate) fn build_root(
    old: Node<'_>,
    point: &SplitPoint,
    id: PageId,
    left: PageNo,
    right: PageNo,
    page: PageMut<'_>,
) {
    let mut root = NodeMut::new(page);
    root.init(
        id,
        NodeHeader {
            level: old.level() + 1,
            tree: old.tree(),
            lower: &[],
            upper: None,
            stamp_max: 0,
            first_child: left.0,
            whole_keys: old.has_whole_keys(),
        },
    );
    root.insert_child(0, &point.separator, right.0).expect("one separator fits an empty page");
}

/// Bytes (of slots, cells and fences) that the merger of two siblings would take.
pub(crate) fn merged_bytes(left: Node<'_>, right: Node<'_>, separator: &[u8]) -> usize {
    let (lower, _) = left.fences();
    let (_, upper) = right.fences();
    let prefix_len = prefix_len_between(&lower, upper.as_deref(), left.has_whole_keys());
    let fences = lower.len() + upper.as_ref().map_or(0, Vec::len);
    let cells =
        left.bytes_of(0, left.count(), fences, prefix_len) + right.bytes_of(0, right.count(), 0, prefix_len);
    let moved_down =
        if left.is_leaf() { 0 } else { SLOT_BYTES + INNER_CELL_HEADER + separator.len() - prefix_len };
    cells + moved_down
}

/// Makes `page` a node of everything in two siblings. [`merged_bytes`] has said that it fits.
pub(crate) fn build_merged(left: Node<'_>, right: Node<'_>, separator: &[u8], id: PageId, page: PageMut<'_>) {
    let (lower, _) = left.fences();
    let (_, upper) = right.fences();
    let header = NodeHeader {
        level: left.level(),
        tree: left.tree(),
        lower: &lower,
        upper: upper.as_deref(),
        stamp_max: left.stamp_max().max(right.stamp_max()),
        first_child: if left.is_leaf() { 0 } else { left.child(0) },
        whole_keys: left.has_whole_keys(),
    };
    let mut builder = Builder::new(page, id, header);
    builder.copy(left, 0, left.count());
    if !left.is_leaf() {
        let at = builder.node.node().count();
        builder.node.insert_child(at, separator, right.child(0)).expect("measured before");
    }
    builder.copy(right, 0, right.count());
}
