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
use super::tier::{Fill, TierUse};
use super::{Attempt, Mode, Tree, retry};
use crate::Result;
use crate::node::{Node, Search};
use base::PageNo;
use pagecache::ReadGuard;
use rowtier::Probe;

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
    /// Whether what the leaf has of key `position` is all that the visitor wants to know: the value of a whole key, or the entries that
    /// begin with all of an index's own parts.
    fn tier_use(&self, _position: usize) -> TierUse {
        TierUse::None
    }
    /// What the leaf has of key `position` may be known without it: `append` appends it to where the visitor wants it, or says that it is not
    /// known. Entries are as [`super::entry_ends`] takes them. Positions come in order. Not called where [`LeafVisitor::tier_use`] says `None`.
    fn take(&mut self, _position: usize, _append: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        false
    }
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
        let is_tier_first = self.tier().is_some_and(|tier| tier.is_first);
        if keys.len() > 1 && self.cache().is_optimistic() && !is_tier_first {
            group.descend();
        }
        let searches = group.search(visitor.cell_bytes());
        let is_wanted = |offset: usize| visitor.tier_use(first + offset) != TierUse::None;
        let probes = if keys.len() > 1 { group.probe_tier(is_wanted) } else { [None; GROUP] };
        for (offset, key) in keys.iter().enumerate() {
            let position = first + offset;
            if let (Some(guard), Some(search)) = (&group.guards[offset], &searches[offset]) {
                let (index, exact) = search.finish();
                visitor.visit(position, Found { leaf: Node::new(guard.page()), index, exact });
                if guard.validate().is_ok() {
                    continue;
                }
                visitor.undo(position);
            }
            let mut asks_tier = true;
            if let (Some(tier), Some(probe)) = (self.tier(), probes[offset]) {
                if visitor.take(position, |out| tier.get(probe, key, out)) {
                    continue;
                }
                asks_tier = false;
            }
            self.lookup_alone(key, position, visitor, asks_tier)?;
        }
        Ok(())
    }

    /// Looks up one key.
    pub fn lookup(&self, key: &[u8], visitor: &mut impl LeafVisitor) -> Result<()> {
        self.lookup_alone(key, 0, visitor, true)
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

    /// Looks up a key on its own. Without `asks_tier`, the row tier does not have it.
    fn lookup_alone(
        &self,
        key: &[u8],
        position: usize,
        visitor: &mut impl LeafVisitor,
        mut asks_tier: bool,
    ) -> Result<()> {
        let tier = self.tier();
        let tier_use = tier.map_or(TierUse::None, |_| visitor.tier_use(position));
        let tier = tier.filter(|_| tier_use != TierUse::None);
        retry(self.file(), |mode: Mode| {
            let Some(tier) = tier.filter(|_| mode == Mode::Configured) else {
                return self.visit_leaf(
                    self.find_leaf(Toward::Key(key), mode)?,
                    key,
                    position,
                    visitor,
                    None,
                );
            };
            let mut fill = None;
            let mut absent = || {
                let is_here = std::mem::take(&mut asks_tier)
                    && visitor.take(position, |out| tier.get(tier.probe(key), key, out));
                if !is_here && tier_use == TierUse::Fill {
                    fill = tier.begin_fill(key);
                }
                is_here
            };
            if tier.is_first && absent() {
                return Ok(());
            }
            match self.find_leaf_unless(key, mode, &mut absent)? {
                Some(leaf) => self.visit_leaf(leaf, key, position, visitor, fill),
                None => Ok(()),
            }
        })
    }

    /// Shows a key's leaf to the visitor, and keeps what it has of the key if that is due.
    #[inline(always)]
    fn visit_leaf(
        &self,
        guard: ReadGuard<'_>,
        key: &[u8],
        position: usize,
        visitor: &mut impl LeafVisitor,
        fill: Option<Fill<'_>>,
    ) -> Attempt<()> {
        let leaf = Node::new(guard.page());
        let (index, exact) = leaf.search_near(key, guard.hints());
        let found = Found { leaf, index, exact };
        visitor.visit(position, found);
        let mut value = Vec::new();
        let fill = fill.filter(|fill| fill.is_due() && self.append_kept(found, key, &mut value));
        if let Err(conflict) = guard.validate() {
            visitor.undo(position);
            return Err(conflict.into());
        }
        drop(guard);
        if let Some(fill) = fill {
            fill.put(key, &value);
        }
        Ok(())
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
            let (index, exact) = node.search_near(key, root.hints());
            *child = node.child(index + usize::from(exact));
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

    /// Asks for the memory that the row tier has for keys whose leaves were not reached, all together.
    fn probe_tier(&self, is_wanted: impl Fn(usize) -> bool) -> [Option<Probe>; GROUP] {
        let mut probes = [None; GROUP];
        let Some(tier) = self.tree.tier() else { return probes };
        for (offset, key) in self.keys.iter().enumerate() {
            if self.guards[offset].is_none() && is_wanted(offset) {
                probes[offset] = Some(tier.probe(key));
            }
        }
        probes.iter().flatten().for_each(|probe| tier.prefetch(*probe));
        probes
    }

    /// Searches all pages, each step for all of them.
    fn search(&self, cell_bytes: usize) -> [Option<Search<'_, '_>>; GROUP] {
        let mut searches: [Option<Search<'_, '_>>; GROUP] = [const { None }; GROUP];
        for ((search, guard), key) in searches.iter_mut().zip(&self.guards).zip(self.keys) {
            if let Some(guard) = guard {
                *search = Some(Node::new(guard.page()).begin_search(key, guard.hints()));
            }
        }
        for search in searches.iter_mut().flatten() {
            search.settle();
            search.prefetch_cell(cell_bytes);
        }
        searches
    }
}
