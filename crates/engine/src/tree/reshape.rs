//! Splits and merges, under the parent's exclusive latch.
//!
//! Latch order: parent, left child, right child. Pages are allocated before the first latch is taken
//! and given back after the last is released.

use super::change::is_underfull;
use super::{Attempt, Interrupt, Mode, Tree, retry};
use crate::Result;
use crate::node::layout::{HEADER_BYTES, INNER_CELL_HEADER, SLOT_BYTES};
use crate::node::{Node, NodeMut, merge, merged_bytes, pull_up, split, split_root};
use crate::tablespace::Tablespace;
use base::PageNo;
use pagecache::WriteGuard;

/// Pages taken from the tablespace and not yet in a tree; what is left over goes back.
struct Spare<'s> {
    space: &'s Tablespace,
    pages: Vec<PageNo>,
}

impl Spare<'_> {
    fn fill(&mut self, count: usize) -> Result<()> {
        while self.pages.len() < count {
            self.pages.push(self.space.allocate()?);
        }
        Ok(())
    }

    /// The page that the next `used` takes.
    fn peek(&self, index: usize) -> PageNo {
        self.pages[index]
    }

    fn used(&mut self, count: usize) {
        self.pages.drain(..count);
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        for page in self.pages.drain(..) {
            self.space.release(page);
        }
    }
}

enum Split {
    Done,
    /// The parent has to be split first: it lacks these bytes.
    ParentFull(usize),
}

enum Merge {
    Done,
    /// The parent has become underfull itself.
    ParentUnderfull,
}

impl Tree {
    /// Splits the page of `level` that covers `key`, unless it has `need` bytes of room by now.
    pub(super) fn make_room(&self, key: &[u8], level: u8, need: usize) -> Result<()> {
        loop {
            let mut spare = Spare { space: self.space(), pages: Vec::new() };
            let split = retry(self.cache(), |mode| self.try_split(key, level, need, &mut spare, mode))?;
            drop(spare);
            match split {
                Split::Done => return Ok(()),
                Split::ParentFull(need) => self.make_room(key, level + 1, need)?,
            }
        }
    }

    fn try_split(
        &self,
        key: &[u8],
        level: u8,
        need: usize,
        spare: &mut Spare<'_>,
        mode: Mode,
    ) -> Attempt<Split> {
        // Before any latch: allocation may have to grow the file.
        spare.fill(1)?;
        let Some(mut parent) = self.find_for_write(key, level + 1, mode)? else {
            spare.fill(2)?;
            return self.try_split_root(key, level, need, spare);
        };
        let index = Node::new(parent.page()).child_index(key);
        let child = Node::new(parent.page()).child(index);
        let mut left = self.child_for_write(child, level)?;
        if Node::new(left.page()).free_bytes() >= need {
            return Ok(Split::Done);
        }
        let Some(point) = Node::new(left.page()).split_point(key) else {
            return Err(self.foreign_page(left.page_id().page, 0, "a full page with too few keys"));
        };
        let separator_bytes = SLOT_BYTES + INNER_CELL_HEADER + point.separator.len();
        if Node::new(parent.page()).free_bytes() < separator_bytes {
            return Ok(Split::ParentFull(separator_bytes));
        }
        let right_id = self.page_id(spare.peek(0));
        let mut right = self.cache().create(right_id)?;
        let left_id = left.page_id();
        split(&mut NodeMut::new(left.page_mut()), left_id, NodeMut::new(right.page_mut()), right_id, &point);
        let inserted = NodeMut::new(parent.page_mut()).insert_child(index, &point.separator, right_id.page.0);
        assert!(inserted.is_ok(), "the parent's room was measured under its latch");
        spare.used(1);
        Ok(Split::Done)
    }

    fn try_split_root(&self, key: &[u8], level: u8, need: usize, spare: &mut Spare<'_>) -> Attempt<Split> {
        let mut root = self.cache().write(self.page_id(self.root()))?;
        if self.level_of(root.page()) != Some(level) {
            // It grew or shrank in between.
            return Err(Interrupt::Again);
        }
        if Node::new(root.page()).free_bytes() >= need {
            return Ok(Split::Done);
        }
        let Some(point) = Node::new(root.page()).split_point(key) else {
            return Err(self.foreign_page(self.root(), 0, "a full root with too few keys"));
        };
        let left_id = self.page_id(spare.peek(0));
        let right_id = self.page_id(spare.peek(1));
        let mut left = self.cache().create(left_id)?;
        let mut right = match self.cache().create(right_id) {
            Ok(right) => right,
            Err(error) => {
                self.cache().free(left);
                return Err(error.into());
            }
        };
        let root_id = root.page_id();
        split_root(
            &mut NodeMut::new(root.page_mut()),
            root_id,
            (NodeMut::new(left.page_mut()), left_id),
            (NodeMut::new(right.page_mut()), right_id),
            &point,
        );
        spare.used(2);
        Ok(Split::Done)
    }

    /// Merges the underfull leaf that covers `key` with a sibling, and so on upward.
    pub(super) fn merge(&self, key: &[u8]) -> Result<()> {
        let mut level = 0;
        loop {
            let mut freed = Vec::new();
            let merged = retry(self.cache(), |mode| self.try_merge(key, level, &mut freed, mode))?;
            for page in freed {
                self.space().release(page);
            }
            match merged {
                Merge::Done => return Ok(()),
                Merge::ParentUnderfull => level += 1,
            }
        }
    }

    fn try_merge(&self, key: &[u8], level: u8, freed: &mut Vec<PageNo>, mode: Mode) -> Attempt<Merge> {
        let Some(mut parent) = self.find_for_write(key, level + 1, mode)? else {
            return Ok(Merge::Done);
        };
        let is_root = parent.page_id().page == self.root();
        let node = Node::new(parent.page());
        let (index, count) = (node.child_index(key), node.count());
        if count == 0 && !is_root {
            // An only child has no sibling; its parent may.
            return Ok(Merge::ParentUnderfull);
        }
        // The right sibling first; at the right edge, or if it is too full, the left one.
        let pairs = [(index < count).then_some(index), index.checked_sub(1)];
        for left_index in pairs.into_iter().flatten() {
            if let Some(left) = self.try_merge_pair(&mut parent, left_index, level, freed)? {
                let parent_node = Node::new(parent.page());
                if is_root && parent_node.count() == 0 {
                    let root_id = parent.page_id();
                    pull_up(&mut NodeMut::new(parent.page_mut()), root_id, left.page());
                    freed.push(left.page_id().page);
                    self.cache().free(left);
                    return Ok(Merge::Done);
                }
                let underfull = !is_root && is_underfull(parent_node);
                return Ok(if underfull { Merge::ParentUnderfull } else { Merge::Done });
            }
        }
        Ok(Merge::Done)
    }

    /// Merges the children at `left_index` and behind it, if one is underfull and both fit a page.
    fn try_merge_pair(
        &self,
        parent: &mut WriteGuard<'_>,
        left_index: usize,
        level: u8,
        freed: &mut Vec<PageNo>,
    ) -> Attempt<Option<WriteGuard<'_>>> {
        let node = Node::new(parent.page());
        let (left_child, right_child) = (node.child(left_index), node.child(left_index + 1));
        let mut separator = Vec::new();
        node.append_key(left_index, &mut separator);
        let mut left = self.child_for_write(left_child, level)?;
        let right = self.child_for_write(right_child, level)?;
        let (left_node, right_node) = (Node::new(left.page()), Node::new(right.page()));
        if !is_underfull(left_node) && !is_underfull(right_node) {
            return Ok(None);
        }
        // An eighth stays free, so that the next insert does not split the page again.
        let room = (left.page().size() - HEADER_BYTES) / 8 * 7;
        if merged_bytes(left_node, right_node, &separator) > room {
            return Ok(None);
        }
        let left_id = left.page_id();
        merge(&mut NodeMut::new(left.page_mut()), left_id, Node::new(right.page()), &separator);
        NodeMut::new(parent.page_mut()).remove(left_index);
        freed.push(right.page_id().page);
        self.cache().free(right);
        Ok(Some(left))
    }
}
