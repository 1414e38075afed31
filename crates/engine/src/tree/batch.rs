//! Batched lookups: a group of keys goes down the tree in lockstep.
//!
//! One lookup in a tree larger than the processor's cache is a chain of cache misses, each waiting
//! for the one before: hash bucket, frame, page header, a few slots, the cell. A group takes each step for all its keys
//! before the next step of any, so that the misses of a step are under way at the same time.
//! (Interleaved execution: Kocberber et al., "Asynchronous memory access chaining", VLDB 2015;
//! Psaropoulos et al., "Interleaving with coroutines", VLDB 2017.)
//!
//! Only optimistic guards are held for a whole group: a group of latches would order itself
//! against writers. Whatever is unusual - a page that is not cached, a conflict, the hit path `locked` -
//! sends its key down alone.

use super::descend::Toward;
use super::{Mode, Tree, retry};
use crate::Result;
use crate::node::{Node, Search};
use base::PageNo;
use pagecache::ReadGuard;

/// Keys that go down together.
///
/// A core of today keeps 10 to 16 cache misses in flight (line fill buffers); more keys would only queue,
/// fewer would leave buffers idle.
pub(super) const GROUP: usize = 16;

/// Where a lookup ended: a leaf, and the first slot whose key is not below the one looked for.
/// The page is not validated yet: copy, and believe nothing.
#[derive(Clone, Copy, Debug)]
pub struct Found<'p> {
    pub leaf: Node<'p>,
    pub index: usize,
    pub exact: bool,
}

/// Copies what it wants out of leaves.
pub trait LeafVisitor {
    /// The lookup of key `position` ended in `found`. Positions come in order.
    fn visit(&mut self, position: usize, found: Found<'_>);
    /// What the last `visit` copied was torn: forget it. The position will be visited again.
    fn undo(&mut self, position: usize);
    /// Bytes of a cell that `visit` is going to read.
    fn cell_bytes(&self) -> usize;
}

impl Tree {
    /// Looks up `count` keys; `key(i)` gives the `i`th. Any order is right, sorted is fastest.
    pub fn lookup_many<'k>(
        &self,
        count: usize,
        key: impl Fn(usize) -> &'k [u8],
        visitor: &mut impl LeafVisitor,
    ) -> Result<()> {
        let mut done = 0;
        while done < count {
            let len = (count - done).min(GROUP);
            let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
            for (offset, slot) in keys[..len].iter_mut().enumerate() {
                *slot = key(done + offset);
            }
            self.lookup_group(&keys[..len], done, visitor)?;
            done += len;
        }
        Ok(())
    }

    fn lookup_group(&self, keys: &[&[u8]], first: usize, visitor: &mut impl LeafVisitor) -> Result<()> {
        let mut group = Group { tree: self, keys, guards: [const { None }; GROUP] };
        if keys.len() > 1 && self.cache().is_optimistic() {
            group.descend();
        }
        let searches = group.search(visitor.cell_bytes());
        for (offset, key) in keys.iter().enumerate() {
            if let (Some(guard), Some(search)) = (&group.guards[offset], &searches[offset]) {
                let (index, exact) = search.finish();
                visitor.visit(first + offset, Found { leaf: Node::new(guard.page()), index, exact });
                if guard.validate().is_ok() {
                    continue;
                }
                visitor.undo(first + offset);
            }
            self.lookup_alone(key, first + offset, visitor)?;
        }
        Ok(())
    }

    /// Brings the leaves of the next keys into the processor's cache, for one who is going to visit them one by one.
    pub(super) fn warm_up<'k>(&self, count: usize, key: impl Fn(usize) -> &'k [u8]) {
        if !self.cache().is_optimistic() {
            return;
        }
        let count = count.min(GROUP);
        let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
        for (offset, slot) in keys[..count].iter_mut().enumerate() {
            *slot = key(offset);
        }
        let mut group = Group { tree: self, keys: &keys[..count], guards: [const { None }; GROUP] };
        group.descend();
        std::hint::black_box(group.search(0));
    }

    fn lookup_alone(&self, key: &[u8], position: usize, visitor: &mut impl LeafVisitor) -> Result<()> {
        retry(self.file(), |mode: Mode| {
            let guard = self.find_leaf(Toward::Key(key), mode)?;
            let leaf = Node::new(guard.page());
            let (index, exact) = leaf.search(key);
            visitor.visit(position, Found { leaf, index, exact });
            if let Err(conflict) = guard.validate() {
                visitor.undo(position);
                return Err(conflict.into());
            }
            Ok(())
        })
    }
}

struct Group<'t, 'k> {
    tree: &'t Tree,
    keys: &'k [&'k [u8]],
    /// The page that each key has reached; `None` = the key goes alone.
    guards: [Option<ReadGuard<'t>>; GROUP],
}

impl<'t> Group<'t, '_> {
    /// Takes all keys to their leaves, as far as optimism carries.
    fn descend(&mut self) {
        let cache = self.tree.cache();
        let Some(root) = cache.try_read_cached(self.tree.page_id(self.tree.root)) else { return };
        if !root.is_optimistic() {
            return;
        }
        let Some(mut level) = self.tree.level_of(root.page()) else { return };
        if level == 0 {
            // One page holds everything: nothing to overlap.
            return;
        }
        let mut children = [0; GROUP];
        let node = Node::new(root.page());
        for (child, key) in children.iter_mut().zip(self.keys) {
            *child = node.child(node.child_index(key));
        }
        if root.validate().is_err() {
            return;
        }
        self.enter(&children, Some(&root));
        level -= 1;
        while level > 0 {
            self.retain_level(level);
            let found = self.search(0).map(|search| search.map(|search| search.finish()));
            for (offset, found) in found.into_iter().enumerate() {
                let (Some((index, exact)), Some(guard)) = (found, &self.guards[offset]) else { continue };
                children[offset] = Node::new(guard.page()).child(index + usize::from(exact));
                if guard.validate().is_err() {
                    self.guards[offset] = None;
                }
            }
            self.enter(&children, None);
            level -= 1;
        }
        self.retain_level(0);
    }

    /// Moves every key from its page (or from `root`, for all) to its child, if that is cached.
    fn enter(&mut self, children: &[u32; GROUP], root: Option<&ReadGuard<'t>>) {
        let (tree, cache) = (self.tree, self.tree.cache());
        let count = self.keys.len();
        for child in &children[..count] {
            cache.prefetch_index(tree.page_id(PageNo(*child)));
        }
        for child in &children[..count] {
            cache.prefetch_frame(tree.page_id(PageNo(*child)), 0);
        }
        for (guard, child) in self.guards[..count].iter_mut().zip(children) {
            if root.is_none() && guard.is_none() {
                continue;
            }
            let next = cache.try_read_cached(tree.page_id(PageNo(*child)));
            let parent_held = match root {
                Some(root) => root.validate().is_ok(),
                None => guard.as_ref().is_some_and(|parent| parent.validate().is_ok()),
            };
            *guard = next.filter(|next| parent_held && next.is_optimistic());
        }
    }

    /// Lets go of pages that are not what they should be; their keys find out alone.
    fn retain_level(&mut self, level: u8) {
        for guard in &mut self.guards[..self.keys.len()] {
            if guard.as_ref().is_some_and(|guard| self.tree.level_of(guard.page()) != Some(level)) {
                *guard = None;
            }
        }
    }

    /// Searches all pages in lockstep, one halving at a time.
    fn search(&self, cell_bytes: usize) -> [Option<Search<'_, '_>>; GROUP] {
        let mut searches: [Option<Search<'_, '_>>; GROUP] = [const { None }; GROUP];
        let mut steps = 0;
        for ((search, guard), key) in searches.iter_mut().zip(&self.guards).zip(self.keys) {
            if let Some(guard) = guard {
                let started = Node::new(guard.page()).begin_search(key);
                steps = steps.max(started.steps());
                *search = Some(started);
            }
        }
        for _ in 0..steps {
            for search in searches.iter_mut().flatten() {
                search.step();
            }
        }
        for search in searches.iter_mut().flatten() {
            search.prefetch_cell(cell_bytes);
        }
        searches
    }
}
