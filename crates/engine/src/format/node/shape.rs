//! Whether a node is well formed: what `check` asks of every page.

use super::read::{Node, head_of};
use super::write::prefix_len_between;
use crate::format::layout::*;

impl Node<'_> {
    /// What is wrong with the page by itself, if anything: header, slots, heads, cells, order, prefix.
    pub(crate) fn shape_error(self) -> Option<String> {
        let page_size = self.page().size();
        let count = usize::from(self.page().u16_at(SLOT_COUNT));
        if count > (page_size - HEADER_BYTES) / SLOT_BYTES {
            return Some(format!("{count} slots, more than fit the page"));
        }
        let heap_start = self.heap_start();
        if heap_start > page_size || heap_start < HEADER_BYTES + count * SLOT_BYTES {
            return Some(format!(
                "the heap starts at byte {heap_start}, among {count} slots or behind the page"
            ));
        }
        if let Some(error) = self.fence_error() {
            return Some(error);
        }
        if let Some(error) = (0..count).find_map(|index| self.cell_error(index)) {
            return Some(error);
        }
        self.heap_error().or_else(|| self.order_error())
    }

    fn fence_error(self) -> Option<String> {
        let (lower, upper) = self.fences();
        let page_size = self.page().size();
        for (at, len) in [(LOWER_FENCE, lower.len()), (UPPER_FENCE, upper.as_ref().map_or(0, Vec::len))] {
            let offset = usize::from(self.page().u16_at(at));
            let said = usize::from(self.page().u16_at(at + 2));
            if said != len || (len > 0 && (offset < self.heap_start() || offset + len > page_size)) {
                return Some(format!("a fence of {said} bytes at byte {offset} lies outside the heap"));
            }
        }
        if upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return Some("the upper fence is not above the lower one".to_string());
        }
        let prefix_len = prefix_len_between(&lower, upper.as_deref(), self.has_whole_keys());
        (prefix_len != self.prefix_len()).then(|| {
            format!("a prefix of {} bytes between fences that share {prefix_len}", self.prefix_len())
        })
    }

    fn cell_error(self, index: usize) -> Option<String> {
        let (offset, bytes) = (self.slot(index).offset(), self.cell_bytes(index));
        if offset < self.heap_start() || offset + bytes > self.page().size() {
            return Some(format!(
                "slot {index}: a cell of {bytes} bytes at byte {offset} lies outside the heap"
            ));
        }
        let mut suffix = Vec::new();
        let (at, len) = self.suffix_place(index);
        self.page().append_to(at, len, &mut suffix);
        let (head, said) = (head_of(&suffix), self.slot(index).head());
        (head != said).then(|| format!("slot {index}: head {said:08x} of a key that begins {head:08x}"))
    }

    /// Cells and fences lie side by side, and what they leave over is counted as dead.
    fn heap_error(self) -> Option<String> {
        let (lower, upper) = self.fences();
        let mut places: Vec<(usize, usize)> =
            (0..self.count()).map(|index| (self.slot(index).offset(), self.cell_bytes(index))).collect();
        if !lower.is_empty() {
            places.push((usize::from(self.page().u16_at(LOWER_FENCE)), lower.len()));
        }
        if let Some(upper) = &upper {
            places.push((usize::from(self.page().u16_at(UPPER_FENCE)), upper.len()));
        }
        places.sort_unstable();
        if let Some(pair) = places.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            return Some(format!("the cells at bytes {} and {} overlap", pair[0].0, pair[1].0));
        }
        let used: usize = places.iter().map(|(_, len)| len).sum();
        let dead = (self.page().size() - self.heap_start()).wrapping_sub(used);
        (dead != self.dead_bytes())
            .then(|| format!("{} dead bytes are counted, there are {dead}", self.dead_bytes()))
    }

    fn order_error(self) -> Option<String> {
        let mut last: Option<Vec<u8>> = None;
        for index in 0..self.count() {
            let key = self.key(index);
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Some(format!("the key of slot {index} is not above the one before"));
            }
            if !self.covers(&key) {
                return Some(format!("the key of slot {index} lies outside the fences"));
            }
            last = Some(key);
        }
        None
    }
}
