//! Building a tree from sorted entries, page by page, bottom up.

use crate::Result;
use crate::format::layout::{HEADER_BYTES, INNER_CELL_HEADER, LEAF_CELL_HEADER, SLOT_BYTES};
use crate::format::node::{NodeHeader, NodeMut, prefix_len_between, shortest_separator};
use crate::space::tablespace::{Operation, Tablespace};
use crate::tree::Tree;
use base::sync::Arc;
use base::{PageNo, Stamp};
use types::KeyCodec;

/// Pages are filled to this share of their bytes: a sixteenth stays free, so that the first inserts
/// after the build do not split every page (InnoDB leaves as much).
const FILL_NUMERATOR: usize = 15;
const FILL_DENOMINATOR: usize = 16;

/// Makes a tree out of entries that come in key order.
#[derive(Debug)]
pub(crate) struct TreeBuilder {
    space: Arc<Tablespace>,
    root: PageNo,
    tree: u32,
    own: Option<Arc<KeyCodec>>,
    whole_keys: bool,
    stamp: Stamp,
    levels: Vec<Level>,
    /// The pages that have been written, without the root.
    pages: Vec<PageNo>,
    operation: Operation,
}

/// The page that is being filled on one level.
#[derive(Default, Debug)]
struct Level {
    /// Inclusive; empty = minus infinity.
    lower: Vec<u8>,
    first_child: u32,
    whole_keys: bool,
    /// Keys and values (children), one behind the other.
    bytes: Vec<u8>,
    /// Where the key and the value of each cell end.
    cells: Vec<(u32, u32)>,
}

impl Level {
    fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.cells[index - 1].1 as usize };
        &self.bytes[start..self.cells[index].0 as usize]
    }

    fn value(&self, index: usize) -> &[u8] {
        let (key_end, value_end) = self.cells[index];
        &self.bytes[key_end as usize..value_end as usize]
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.cells.push((key_end, self.bytes.len() as u32));
    }

    /// Bytes of a page of the first `count` cells (and one of `more` key and value bytes) that ends at
    /// `upper`.
    fn page_bytes(
        &self,
        count: usize,
        more: Option<usize>,
        upper: Option<&[u8]>,
        cell_header: usize,
    ) -> usize {
        let cells_end = if count == 0 { 0 } else { self.cells[count - 1].1 as usize };
        let upper = upper.unwrap_or(&[]);
        let shared = prefix_len_between(&self.lower, Some(upper), self.whole_keys);
        let cells = count + usize::from(more.is_some());
        let full = cells_end + more.unwrap_or(0) + cells * (SLOT_BYTES + cell_header);
        (full + self.lower.len() + upper.len()).saturating_sub(shared * cells)
    }

    /// Forgets the first `count` cells.
    fn keep_from(&mut self, count: usize) {
        let start = if count == 0 { 0 } else { self.cells[count - 1].1 };
        self.bytes.drain(..start as usize);
        self.cells.drain(..count);
        for (key_end, value_end) in &mut self.cells {
            *key_end -= start;
            *value_end -= start;
        }
    }
}

/// The value of a cell in its page: a child's number counts in the cell's header.
fn cell_header(level: usize) -> usize {
    // An inner level keeps the child as a value of four bytes.
    const { assert!(INNER_CELL_HEADER == 4) };
    if level == 0 { LEAF_CELL_HEADER } else { 0 }
}

impl TreeBuilder {
    /// See [`Tree::create`].
    pub(crate) fn new(
        space: Arc<Tablespace>,
        tree: u32,
        own: Option<Arc<KeyCodec>>,
        whole_keys: bool,
        stamp: Stamp,
    ) -> Result<TreeBuilder> {
        let operation = space.doubt()?;
        let root = match space.allocate() {
            Ok(root) => root,
            Err(error) => {
                space.end_operation(operation);
                return Err(error);
            }
        };
        let levels = vec![Level { whole_keys, ..Level::default() }];
        Ok(TreeBuilder { space, root, tree, own, whole_keys, stamp, levels, pages: Vec::new(), operation })
    }

    fn usable_bytes(&self) -> usize {
        self.space.page_size() - HEADER_BYTES
    }

    /// Adds the next entry; its key is above the last one's.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let room = self.usable_bytes() / FILL_DENOMINATOR * FILL_NUMERATOR;
        let more = Some(key.len() + value.len());
        loop {
            let leaf = &self.levels[0];
            let count = leaf.cells.len();
            if count == 0 || leaf.page_bytes(count, more, Some(key), cell_header(0)) <= room {
                break;
            }
            self.close_page(0, Some(key))?;
        }
        self.levels[0].push(key, value);
        Ok(())
    }

    /// A page of the level below has been written up to `separator`; what follows begins there. The cell that
    /// names the following page waits for its number.
    fn push_child(&mut self, level: usize, separator: Vec<u8>, page: PageNo) -> Result<()> {
        if self.levels.len() == level {
            self.levels.push(Level { whole_keys: self.whole_keys, ..Level::default() });
        }
        self.set_last_child(level, page);
        let room = self.usable_bytes() / FILL_DENOMINATOR * FILL_NUMERATOR;
        let this = &self.levels[level];
        let count = this.cells.len();
        let more = Some(separator.len() + 4);
        if count >= 3 && this.page_bytes(count, more, Some(&separator), cell_header(level)) > room {
            self.close_page(level, Some(&separator))?;
            let this = &self.levels[level];
            if this.cells.is_empty() && this.lower == separator {
                // The separator has moved up.
                return Ok(());
            }
        }
        self.levels[level].push(&separator, &[0; 4]);
        Ok(())
    }

    /// Writes a page of as many cells as fit, before `next` (`None` = the end). The cells behind begin a new
    /// page.
    ///
    /// Fewer may fit than were let in: they were measured by the bytes that they share with one another, and
    /// the upper fence may share less.
    fn close_page(&mut self, level: usize, next: Option<&[u8]>) -> Result<()> {
        let this = &self.levels[level];
        let separator_at = |count: usize| -> Option<Vec<u8>> {
            let next = if count < this.cells.len() { Some(this.key(count)) } else { next };
            match next {
                Some(next) if level == 0 => Some(shortest_separator(this.key(count - 1), next)),
                next => next.map(<[u8]>::to_vec),
            }
        };
        let fits = |count: &usize| {
            let upper = separator_at(*count);
            this.page_bytes(*count, None, upper.as_deref(), cell_header(level)) <= self.usable_bytes()
        };
        let all = if next.is_some() { this.cells.len() } else { this.cells.len() - 1 };
        let count = (1..=all).rev().find(fits).unwrap_or(1);
        let separator = separator_at(count).unwrap_or_default();
        let page = self.write_page(level, count, Some(&separator), None)?;
        let this = &mut self.levels[level];
        this.keep_from(count);
        this.first_child = 0;
        if level > 0 && !this.cells.is_empty() {
            // This cell's key has become the separator; its child begins the new page.
            this.first_child = this.value(0).try_into().map_or(0, u32::from_le_bytes);
            this.keep_from(1);
        }
        this.lower.clone_from(&separator);
        self.push_child(level + 1, separator, page)
    }

    /// The page that the level's last cell (or its beginning) waits for.
    fn set_last_child(&mut self, level: usize, page: PageNo) {
        let level = &mut self.levels[level];
        if level.cells.is_empty() {
            level.first_child = page.0;
        } else {
            let at = level.bytes.len() - 4;
            level.bytes[at..].copy_from_slice(&page.0.to_le_bytes());
        }
    }

    /// Gives the pages back: there will be no tree. The root has not been written.
    pub(crate) fn discard(self) {
        self.space.release(self.root);
        // If this fails nothing can be logged any more, and recovery finds the pages.
        if self.space.free_pages(&self.pages).is_ok() {
            self.space.end_operation(self.operation);
        }
    }

    /// Writes what is left and gives the tree. Until something refers to the tree the caller has an operation
    /// of its own under way, unless the file itself belongs to nothing.
    pub(crate) fn finish(mut self) -> Result<Tree> {
        match self.write_rest() {
            Ok(()) => {
                self.space.end_operation(self.operation);
                Ok(Tree::new(self.space, self.root, self.tree, self.own))
            }
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    fn write_rest(&mut self) -> Result<()> {
        let mut level = 0;
        loop {
            let this = &self.levels[level];
            let count = this.cells.len();
            if this.page_bytes(count, None, None, cell_header(level)) > self.usable_bytes() {
                self.close_page(level, None)?;
            } else if level + 1 == self.levels.len() {
                // The only page of the highest level is the root.
                self.write_page(level, count, None, Some(self.root))?;
                return Ok(());
            } else {
                let page = self.write_page(level, count, None, None)?;
                self.set_last_child(level + 1, page);
                level += 1;
            }
        }
    }

    /// Writes a page of the level's first `count` cells and gives its number.
    fn write_page(
        &mut self,
        level: usize,
        count: usize,
        upper: Option<&[u8]>,
        page: Option<PageNo>,
    ) -> Result<PageNo> {
        // A full disk is found before anything depends on it.
        self.space.journal().prepare_if_due()?;
        let page = match page {
            Some(page) => page,
            None => self.space.allocate()?,
        };
        let this = &self.levels[level];
        let header = NodeHeader {
            level: level as u8,
            tree: self.tree,
            lower: &this.lower,
            upper,
            stamp_max: if level == 0 { self.stamp.0 } else { 0 },
            first_child: this.first_child,
            whole_keys: self.whole_keys,
        };
        let made = self.space.create_node(page, |target, id| {
            let mut node = NodeMut::new(target);
            node.init(id, header);
            for index in 0..count {
                let done = if level == 0 {
                    node.insert(index, this.key(index), &[this.value(index)])
                } else {
                    let child = this.value(index).try_into().map_or(0, u32::from_le_bytes);
                    node.insert_child(index, this.key(index), child)
                };
                assert!(done.is_ok(), "a page's cells were measured before it was written");
            }
        });
        if page != self.root {
            match made {
                Ok(()) => self.pages.push(page),
                Err(_) => self.space.release(page),
            }
        }
        made.map(|()| page)
    }
}
