//! Ranges, a leaf at a time: what lies in a leaf is copied out and validated before anyone looks at it.

use super::Tree;
use super::descend::Toward;
use crate::Result;
use crate::definition::key_behind_prefix;
use crate::format::node::Node;
use crate::space::retry::retry;
use base::PageNo;
use pagecache::loads_of_this_thread;

/// Entries of one leaf in private memory, in the order of the scan.
#[derive(Default, Debug)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    /// Where each entry's key and value end; the key starts where the entry before it ends.
    ends: Vec<(u32, u32)>,
    /// The newest stamp in the leaf.
    stamp_max: u64,
    /// What the leaf's keys begin with.
    prefix: Vec<u8>,
    /// Values are left out.
    pub keys_only: bool,
}

/// The processor is asked for the cells of a range so many entries ahead: copying that many takes about as
/// long as memory needs.
const CELLS_AHEAD: usize = 8;
/// No more than this of a cell is asked for ahead.
const CELL_BYTES_AHEAD_MAX: usize = 512;

#[allow(clippy::len_without_is_empty, reason = "an empty chunk means nothing: `Remainder::done` does")]
impl Chunk {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Bytes of memory that it has.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(u32, u32)>()
    }

    /// No entry is the work of a newer stamp.
    pub(crate) fn stamp_max(&self) -> u64 {
        self.stamp_max
    }

    /// Key and value of an entry.
    pub(crate) fn entry(&self, index: usize) -> (&[u8], &[u8]) {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1].1 as usize,
        };
        let (key_end, value_end) = self.ends[index];
        (&self.bytes[start..key_end as usize], &self.bytes[key_end as usize..value_end as usize])
    }

    /// The first entry whose key is not below `key`, in a chunk that ascends; quick if it lies near `near`.
    pub(crate) fn lower_bound(&self, key: &[u8], near: usize) -> usize {
        let is_below = |index: usize| self.entry(index).0 < key;
        let count = self.len();
        let (mut low, mut high) = (near.min(count), count);
        if low > 0 && !is_below(low - 1) {
            (low, high) = (0, low - 1);
        } else {
            // Steps that double.
            let mut step = 1;
            while low < count {
                let probe = (low + step - 1).min(count - 1);
                if !is_below(probe) {
                    high = probe;
                    break;
                }
                low = probe + 1;
                step *= 2;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if is_below(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Copies entries; ends early if they come to more bytes than a page has, which only a torn one says.
    fn fill(&mut self, node: Node<'_>, indexes: impl Iterator<Item = usize> + Clone) {
        self.stamp_max = node.stamp_max();
        self.prefix.clear();
        node.append_prefix(&mut self.prefix);
        if self.keys_only {
            return self.fill_keys(node, indexes);
        }
        let mut room = node.page().size();
        let mut cell_bytes = 0;
        let mut ahead = indexes.clone().skip(CELLS_AHEAD);
        for index in indexes {
            if let Some(next) = ahead.next() {
                node.prefetch_cell(next, cell_bytes);
            }
            let start = self.bytes.len();
            let key_end = node.append_entry(index, &self.prefix, &mut self.bytes);
            self.ends.push((key_end as u32, self.bytes.len() as u32));
            let bytes = self.bytes.len() - start - self.prefix.len();
            cell_bytes = bytes.min(CELL_BYTES_AHEAD_MAX);
            let Some(left) = room.checked_sub(bytes) else {
                return;
            };
            room = left;
        }
    }

    fn fill_keys(&mut self, node: Node<'_>, indexes: impl Iterator<Item = usize>) {
        let mut room = node.page().size();
        for index in indexes {
            self.bytes.extend_from_slice(&self.prefix);
            let start = self.bytes.len();
            node.append_suffix(index, &mut self.bytes);
            self.ends.push((self.bytes.len() as u32, self.bytes.len() as u32));
            let Some(left) = room.checked_sub(self.bytes.len() - start) else { return };
            room = left;
        }
    }
}

/// The part of a range that has not been read yet: keys from `start` (inclusive) to `end` (exclusive;
/// `None` = no bound).
#[derive(Clone, Default, Debug)]
pub(crate) struct Remainder {
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
    /// Nothing is left.
    pub done: bool,
    /// Leaves have been asked for ahead; when `start` has come so far it is time for the next ones.
    pub(crate) ahead: Option<Vec<u8>>,
}

/// A scan that takes so many entries at a time means to go on, so leaves are read ahead for it.
const AHEAD_FROM: usize = 256;

impl Remainder {
    pub(crate) fn new(start: Vec<u8>, end: Option<Vec<u8>>) -> Remainder {
        let done = end.as_ref().is_some_and(|end| *end <= start);
        Remainder { start, end, done, ahead: None }
    }
}

impl Tree {
    /// Fills `chunk` with the next entries from the front of `rest`, at most `limit` and at most a leaf's.
    /// An empty chunk does not mean the end: `rest.done` does.
    pub(crate) fn read_forward(&self, rest: &mut Remainder, chunk: &mut Chunk, limit: usize) -> Result<()> {
        let mut fence = Vec::new();
        let loads = loads_of_this_thread();
        let (cut, has_fence) = retry(self.file(), |mode| {
            chunk.clear();
            fence.clear();
            let leaf = self.find_leaf(Toward::Key(&rest.start), mode)?;
            let node = Node::new(leaf.page());
            let from = node.search(&rest.start).0;
            let to = node.end_index(rest.end.as_deref());
            let taken = to.saturating_sub(from).min(limit);
            chunk.fill(node, from..from + taken);
            let cut = from + taken < to;
            let has_fence = node.append_upper_fence(&mut fence);
            leaf.validate()?;
            Ok((cut, has_fence))
        })?;
        if cut {
            let (last, _) = chunk.entry(chunk.len() - 1);
            rest.start.clear();
            rest.start.extend_from_slice(last);
            rest.start.push(0);
        } else if has_fence && rest.end.as_ref().is_none_or(|end| fence < *end) {
            rest.start = fence;
            if limit >= AHEAD_FROM {
                self.read_ahead(rest, loads);
            }
        } else {
            rest.done = true;
        }
        Ok(())
    }

    /// Asks for the leaves that come next, if this thread has waited for the device since it had read `loads`
    /// pages, or has come to the middle of the leaves asked for last. A scan that finds its leaves in the
    /// cache pays for one comparison.
    pub(super) fn read_ahead(&self, rest: &mut Remainder, loads: u64) {
        let is_time = match &rest.ahead {
            Some(middle) => rest.start >= *middle,
            None => loads_of_this_thread() != loads,
        };
        if is_time {
            // An error here is not lost: the scan meets the same page.
            rest.ahead = self.ask_for_leaves(&rest.start, rest.end.as_deref()).unwrap_or_default();
        }
    }

    /// Asks for the leaf that covers `start` and for those behind it, as far as one parent names them and the
    /// range goes. Gives where to ask again; `None` if they are all there, or if these are the parent's last.
    fn ask_for_leaves(&self, start: &[u8], end: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let window = self.pool().read_ahead_window();
        if window < 2 {
            return Ok(None);
        }
        let mut leaves = Vec::with_capacity(window);
        let mut middle = Vec::new();
        retry(self.file(), |mode| {
            leaves.clear();
            middle.clear();
            let Some(parent) = self.find_parent(start, mode)? else { return Ok(()) };
            let node = Node::new(parent.page());
            let first = node.child_index(start);
            let last = end.map_or(node.count(), |end| node.child_index_below(end)).min(first + window - 1);
            leaves.extend((first..=last).map(|index| PageNo(node.child(index))));
            if last > first {
                node.append_key(first + (last - first).div_ceil(2) - 1, &mut middle);
            }
            parent.validate()?;
            Ok(())
        })?;
        let asked = self.pool().read_ahead(leaves.iter().map(|leaf| self.page_id(*leaf)));
        Ok((asked > 0 && !middle.is_empty()).then_some(middle))
    }

    /// As [`Tree::read_forward`], from the back of `rest`; the chunk's entries descend.
    pub(crate) fn read_backward(&self, rest: &mut Remainder, chunk: &mut Chunk, limit: usize) -> Result<()> {
        let mut fence = Vec::new();
        let cut = retry(self.file(), |mode| {
            chunk.clear();
            fence.clear();
            let toward = rest.end.as_deref().map_or(Toward::End, Toward::Below);
            let leaf = self.find_leaf(toward, mode)?;
            let node = Node::new(leaf.page());
            let to = node.end_index(rest.end.as_deref());
            node.append_lower_fence(&mut fence);
            let from = if fence <= rest.start { node.search(&rest.start).0 } else { 0 };
            let taken = to.saturating_sub(from).min(limit);
            chunk.fill(node, (to - taken..to).rev());
            let cut = from + taken < to;
            leaf.validate()?;
            Ok(cut)
        })?;
        if cut {
            let (last, _) = chunk.entry(chunk.len() - 1);
            rest.end = Some(last.to_vec());
        } else if fence > rest.start {
            rest.end = Some(fence);
        } else {
            rest.done = true;
        }
        Ok(())
    }

    /// Calls `each` for every key that starts with `prefix`, which no latch holds still.
    pub(crate) fn for_each_prefix(
        &self,
        prefix: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut rest = Remainder::new(prefix.to_vec(), key_behind_prefix(prefix));
        let mut chunk = Chunk::default();
        while !rest.done {
            self.read_forward(&mut rest, &mut chunk, usize::MAX)?;
            for i in 0..chunk.len() {
                each(chunk.entry(i).0)?;
            }
        }
        Ok(())
    }

    /// Reads at the place of `key`: `read` gets the leaf, the first slot not below the key, and whether it is
    /// the key's. What it returns counts only once the page has been validated; `read` is called again if
    /// not, so it begins by forgetting what it did before.
    #[inline]
    pub(crate) fn read_leaf<R>(
        &self,
        key: &[u8],
        mut read: impl FnMut(Node<'_>, usize, bool) -> R,
    ) -> Result<R> {
        retry(self.file(), |mode| {
            let leaf = self.find_leaf(Toward::Key(key), mode)?;
            let node = Node::new(leaf.page());
            let (index, exact) = node.search(key);
            let result = read(node, index, exact);
            leaf.validate()?;
            Ok(result)
        })
    }

    /// Appends the value of a key to `out`; false, and nothing appended, if there is none.
    pub(crate) fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let start = out.len();
        let found = self.read_leaf(key, |leaf, index, exact| {
            out.truncate(start);
            if exact {
                leaf.append_value(index, out);
            }
            exact
        });
        if found.is_err() {
            out.truncate(start);
        }
        found
    }

    /// A guess at the number of keys from `start` to `end`: exact within one leaf, else from the positions of
    /// the two bounds among the children on their ways down.
    pub(crate) fn estimate(&self, start: &[u8], end: Option<&[u8]>) -> Result<u64> {
        let lower = self.position(Toward::Key(start))?;
        let upper = self.position(end.map_or(Toward::End, Toward::Below))?;
        Ok(lower.distance_to(&upper))
    }

    /// A guess at the number of leaves, from the ways to the first and the last one.
    pub(crate) fn leaves(&self) -> Result<u64> {
        let mut first = self.position(Toward::Key(&[]))?;
        let mut last = self.position(Toward::End)?;
        first.steps.pop();
        last.steps.pop();
        Ok(first.distance_to(&last) + 1)
    }

    /// The steps of a descent: at each level, the position taken and the number of children (or keys).
    fn position(&self, toward: Toward<'_>) -> Result<Position> {
        retry(self.file(), |mode| {
            let mut steps = Vec::new();
            let leaf = self.find_leaf_noting(toward, mode, &mut |index, count| steps.push((index, count)))?;
            let node = Node::new(leaf.page());
            let index = match toward {
                Toward::Key(key) | Toward::Below(key) => node.search(key).0,
                Toward::End => node.count(),
            };
            steps.push((index, node.count()));
            leaf.validate()?;
            Ok(Position { steps })
        })
    }
}

/// Where a bound lies: from the root to the leaf, the child taken and how many there are.
#[derive(Debug)]
struct Position {
    steps: Vec<(usize, usize)>,
}

impl Position {
    fn distance_to(&self, upper: &Position) -> u64 {
        let levels = self.steps.len().min(upper.steps.len());
        let mut whole = 0.0f64;
        // Once the two ways part, the children between them are counted as full as those on the ways.
        for level in 0..levels {
            let (low, low_count) = self.steps[level];
            let (high, high_count) = upper.steps[level];
            let (low, low_count, high) = (low as f64, low_count as f64, high as f64);
            whole = if whole < 0.5 {
                (high - low).max(0.0)
            } else {
                // Behind the lower bound in its page, whole pages, before the upper bound in its page.
                let fan_out = low_count.max(high_count as f64);
                (low_count - low).max(0.0) + (whole - 1.0) * fan_out + high
            };
        }
        whole.round() as u64
    }
}
