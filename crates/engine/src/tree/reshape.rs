//! Splits and merges, under the parent's exclusive latch (engine R6, R7).
//!
//! Latch order (engine R4): parent, left child, right child, free maps. Each split or merge is one record of
//! the log. Pages are allocated before the first latch is taken and given back after the last is released.

use super::Tree;
use super::change::is_underfull;
use crate::Result;
use crate::format::layout::{HEADER_BYTES, INNER_CELL_HEADER, SLOT_BYTES};
use crate::format::node::{
    Node, NodeMut, Part, SplitPoint, build_merged, build_part, build_root, cut, merged_bytes, with_scratch,
};
use crate::format::redo::Changes;
use crate::space::retry::{Attempt, Interrupt, Mode, retry};
use crate::space::tablespace::{Maps, Tablespace};
use base::{Lsn, PageNo};
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
            let split = retry(self.file(), |mode| self.try_split(key, level, need, &mut spare, mode))?;
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
        let mut maps = self.space().latch_maps(&[right_id.page])?;
        let mut right = self.pool().create(right_id)?;
        build_part(Node::new(left.page()), Part::Right, &point, right_id, right.page_mut());
        let (left_id, parent_id) = (left.page_id(), parent.page_id());
        let mut left = NodeMut::new(left.page_mut());
        let mut parent = NodeMut::new(parent.page_mut());
        let mut changes = Changes::new(right_id.file);
        changes.node_image(right_id.page, right.page());
        changes.cut(left_id.page, left.node(), &point);
        changes.insert_child(parent_id.page, parent.node(), index, &point.separator, right_id.page);
        maps.describe(&mut changes, true, &[right_id.page]);
        let lsn = match changes.log(self.space().journal()) {
            Ok(lsn) => lsn,
            Err(error) => {
                right.free();
                return Err(error.into());
            }
        };
        NodeMut::new(right.page_mut()).set_lsn(lsn);
        cut(&mut left, left_id, &point);
        left.set_lsn(lsn);
        let inserted = parent.insert_child(index, &point.separator, right_id.page.0);
        assert!(inserted.is_ok(), "the parent's room was measured under its latch");
        parent.set_lsn(lsn);
        maps.change(true, &[right_id.page], lsn);
        spare.used(1);
        Ok(Split::Done)
    }

    fn try_split_root(&self, key: &[u8], level: u8, need: usize, spare: &mut Spare<'_>) -> Attempt<Split> {
        let mut root = self.pool().write(self.page_id(self.root()))?;
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
        let children = [spare.peek(0), spare.peek(1)];
        let mut maps = self.space().latch_maps(&children)?;
        let mut guards = Vec::with_capacity(2);
        let made = self.log_root_split(&mut root, &point, children, &mut maps, &mut guards);
        if made.is_err() {
            guards.into_iter().for_each(|guard| guard.free());
        } else {
            spare.used(2);
        }
        made.map(|()| Split::Done)
    }

    /// Moves the root's contents down into two new pages, whose guards are in `guards` afterwards, also on an
    /// error.
    fn log_root_split<'s>(
        &'s self,
        root: &mut WriteGuard<'_>,
        point: &SplitPoint,
        children: [PageNo; 2],
        maps: &mut Maps<'_>,
        guards: &mut Vec<WriteGuard<'s>>,
    ) -> Attempt<()> {
        let root_id = root.page_id();
        let mut changes = Changes::new(root_id.file);
        for (page, part) in children.into_iter().zip([Part::Left, Part::Right]) {
            let mut guard = self.pool().create(self.page_id(page))?;
            build_part(Node::new(root.page()), part, point, self.page_id(page), guard.page_mut());
            changes.node_image(page, guard.page());
            guards.push(guard);
        }
        let mut root = NodeMut::new(root.page_mut());
        maps.describe(&mut changes, true, &children);
        let [left, right] = children;
        let lsn = with_scratch(root.node().page().size(), |page| -> Result<Lsn> {
            build_root(root.node(), point, root_id, left, right, page.page_mut());
            changes.node_image(root_id.page, page.page());
            let lsn = changes.log(self.space().journal())?;
            root.replace_by(root_id, page);
            Ok(lsn)
        })?;
        root.set_lsn(lsn);
        guards.iter_mut().for_each(|guard| NodeMut::new(guard.page_mut()).set_lsn(lsn));
        maps.change(true, &children, lsn);
        Ok(())
    }

    /// Merges the underfull leaf that covers `key` with a sibling, and so on upward.
    pub(super) fn merge(&self, key: &[u8]) -> Result<()> {
        let mut level = 0;
        loop {
            let mut freed = Vec::new();
            let merged = retry(self.file(), |mode| self.try_merge(key, level, &mut freed, mode))?;
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
            if self.try_merge_pair(&mut parent, left_index, level, freed)? {
                let underfull = !is_root && is_underfull(Node::new(parent.page()));
                return Ok(if underfull { Merge::ParentUnderfull } else { Merge::Done });
            }
        }
        Ok(Merge::Done)
    }

    /// Merges the children at `left_index` and behind it, if one is underfull and both fit a page. A root
    /// that would be left with one child takes over that child's contents.
    fn try_merge_pair(
        &self,
        parent: &mut WriteGuard<'_>,
        left_index: usize,
        level: u8,
        freed: &mut Vec<PageNo>,
    ) -> Attempt<bool> {
        let node = Node::new(parent.page());
        let (left_child, right_child) = (node.child(left_index), node.child(left_index + 1));
        let pulls_up = parent.page_id().page == self.root() && node.count() == 1;
        let mut separator = Vec::new();
        node.append_key(left_index, &mut separator);
        let mut left = self.child_for_write(left_child, level)?;
        let right = self.child_for_write(right_child, level)?;
        let (left_node, right_node) = (Node::new(left.page()), Node::new(right.page()));
        if !is_underfull(left_node) && !is_underfull(right_node) {
            return Ok(false);
        }
        // An eighth stays free, so that the next insert does not split the page again.
        let room = (left.page().size() - HEADER_BYTES) / 8 * 7;
        if merged_bytes(left_node, right_node, &separator) > room {
            return Ok(false);
        }
        let gone = [right.page_id().page, left.page_id().page];
        let gone = if pulls_up { &gone[..] } else { &gone[..1] };
        let mut maps = self.space().latch_maps(gone)?;
        let (parent_id, target_id) =
            (parent.page_id(), if pulls_up { parent.page_id() } else { left.page_id() });
        let mut parent = NodeMut::new(parent.page_mut());
        let mut changes = Changes::new(parent_id.file);
        maps.describe(&mut changes, false, gone);
        let lsn = with_scratch(left.page().size(), |page| -> Result<Lsn> {
            build_merged(
                Node::new(left.page()),
                Node::new(right.page()),
                &separator,
                target_id,
                page.page_mut(),
            );
            changes.node_image(target_id.page, page.page());
            if pulls_up {
                let lsn = changes.log(self.space().journal())?;
                parent.replace_by(parent_id, page);
                return Ok(lsn);
            }
            let mut left = NodeMut::new(left.page_mut());
            changes.remove(parent_id.page, parent.node(), left_index);
            let lsn = changes.log(self.space().journal())?;
            left.replace_by(target_id, page);
            left.set_lsn(lsn);
            parent.remove(left_index);
            Ok(lsn)
        })?;
        parent.set_lsn(lsn);
        maps.change(false, gone, lsn);
        freed.extend_from_slice(gone);
        right.free();
        if pulls_up {
            left.free();
        }
        Ok(true)
    }
}
