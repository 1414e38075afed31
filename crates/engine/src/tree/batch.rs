//! Batched lookups: a group of keys goes down the tree in lockstep.
//!
//! One lookup in a tree larger than the processor's cache is a chain of cache misses, each waiting for the
//! one before: shortcut, frame, page header, slots, the cell. A group takes each step for all its keys before
//! the next step of any, so that the misses of a step are under way at the same time. (Interleaved execution:
//! Kocberber et al., "Asynchronous memory access chaining", VLDB 2015; Psaropoulos et al., "Interleaving with
//! coroutines", VLDB 2017.)
//!
//! Only glances are held for a whole group, which are optimistic: a group of latches would order itself
//! against writers. Whatever is unusual - a page that is not cached, a conflict, the hit path `locked` -
//! sends its key down alone.

use super::Tree;
use super::descend::Toward;
use super::tier::{Fill, TierUse};
use crate::Result;
use crate::format::node::{Node, Search};
use crate::space::retry::{Attempt, Mode, retry};
use base::PageNo;
use pagecache::{Glance, Glances, ReadGuard, Whereabouts};
use rowtier::Probe;

/// Keys that go down together, at most.
///
/// A core of today keeps 10 to 16 cache misses in flight (line fill buffers), which 16 keys fill; but at the
/// end of each step the last of them are waited for with nothing else to do. So more are better as long as
/// what they have found stays in the processor's first cache: with 64, a row by a secondary key takes 0.92 of
/// what it takes with 16, with 100 as much as with 16.
const GROUP: usize = 64;
/// Leaves that are asked for ahead of visits one by one: as many as stay near the processor until they are
/// visited.
pub(super) const WARM_UP: usize = 16;
/// For few keys there is a group that is sooner made ready.
const SMALL_GROUP: usize = 16;

/// Where a lookup ended: a leaf, and the first slot whose key is not below the one looked for.
/// The page is not validated yet: copy, and believe nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'p> {
    pub leaf: Node<'p>,
    pub index: usize,
    pub exact: bool,
}

/// Copies what it wants out of leaves.
pub(crate) trait LeafVisitor {
    /// Whether what the leaf has of key `position` is all that the visitor wants to know: the value of a
    /// whole key, or the entries that begin with all of an index's own parts.
    fn tier_use(&self, _position: usize) -> TierUse {
        TierUse::None
    }
    /// The leaf's contents for key `position` may be known without the leaf. `append` appends them where the
    /// visitor wants them, or says that they are not known. Entries are as [`super::entry_ends`] takes them.
    /// Positions come in order. Not called where [`LeafVisitor::tier_use`] says `None`.
    fn take(&mut self, _position: usize, _append: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        false
    }
    /// The lookup of key `position` ended in `found`. Positions come in order.
    fn visit(&mut self, position: usize, found: Found<'_>);
    /// The last `visit` copied torn bytes: they are to be forgotten. The position will be visited again.
    fn undo(&mut self, position: usize);
    /// Bytes of a cell that `visit` is going to read.
    fn cell_bytes(&self) -> usize;
}

impl Tree {
    /// Looks up `count` keys; `key(i)` gives the `i`th. Any order is right, sorted is fastest.
    pub(crate) fn lookup_many<'k>(
        &self,
        count: usize,
        key: impl Fn(usize) -> &'k [u8],
        visitor: &mut impl LeafVisitor,
    ) -> Result<()> {
        let mut done = 0;
        while done < count {
            let (first, len) = (done, (count - done).min(GROUP));
            let key = |offset| key(first + offset);
            match len {
                ..=SMALL_GROUP => self.lookup_group::<SMALL_GROUP>(len, key, first, visitor)?,
                _ => self.lookup_group::<GROUP>(len, key, first, visitor)?,
            }
            done += len;
        }
        Ok(())
    }

    /// Looks up a group of `len` keys, the first of which is the visitor's `first`.
    fn lookup_group<'k, const N: usize>(
        &self,
        len: usize,
        key: impl Fn(usize) -> &'k [u8],
        first: usize,
        visitor: &mut impl LeafVisitor,
    ) -> Result<()> {
        let keys = collect::<N>(len, key);
        let keys = &keys[..len];
        let is_tier_first = self.tier().is_some_and(|tier| tier.is_first);
        let mut group = None;
        if keys.len() > 1
            && !is_tier_first
            && let Some(glances) = self.pool().glances()
        {
            let group = group.insert(Group::<N>::new(self, glances, keys));
            group.descend();
            settle(&mut group.lookups, visitor.cell_bytes());
        }
        let is_wanted = |offset: usize| visitor.tier_use(first + offset) != TierUse::None;
        let probes = self.probe_tier::<N>(keys, |offset| {
            keys.len() > 1
                && group.as_ref().is_none_or(|group| group.lookups[offset].at.is_none())
                && is_wanted(offset)
        });
        for (offset, key) in keys.iter().enumerate() {
            let position = first + offset;
            if let Some(group) = &group
                && let Lookup { at: Some(at), search, .. } = &group.lookups[offset]
            {
                let leaf = Node::new(at.page());
                let (index, exact) = leaf.finish(search, key);
                visitor.visit(position, Found { leaf, index, exact });
                if group.glances.validate(at) {
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

    /// Asks for the memory that the row tier has for the keys that are wanted of it, all together.
    fn probe_tier<const N: usize>(
        &self,
        keys: &[&[u8]],
        is_wanted: impl Fn(usize) -> bool,
    ) -> [Option<Probe>; N] {
        let mut probes = [None; N];
        let Some(tier) = self.tier() else { return probes };
        for (offset, key) in keys.iter().enumerate() {
            if is_wanted(offset) {
                probes[offset] = Some(tier.probe(key));
            }
        }
        probes.iter().flatten().for_each(|probe| tier.prefetch(*probe));
        probes
    }

    /// Looks up one key.
    pub(crate) fn lookup(&self, key: &[u8], visitor: &mut impl LeafVisitor) -> Result<()> {
        self.lookup_alone(key, 0, visitor, true)
    }

    /// Brings the leaves of the next keys into the processor's cache, for a caller that is going to visit
    /// them one by one.
    pub(super) fn warm_up<'k>(&self, count: usize, key: impl Fn(usize) -> &'k [u8]) {
        let Some(glances) = self.pool().glances() else { return };
        let count = count.min(WARM_UP);
        let keys = collect::<WARM_UP>(count, key);
        let mut group = Group::<WARM_UP>::new(self, glances, &keys[..count]);
        group.descend();
        settle(&mut group.lookups, 0);
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

fn collect<'k, const N: usize>(len: usize, key: impl Fn(usize) -> &'k [u8]) -> [&'k [u8]; N] {
    let mut keys: [&[u8]; N] = [&[]; N];
    keys[..len].iter_mut().enumerate().for_each(|(offset, slot)| *slot = key(offset));
    keys
}

struct Group<'t, 'k, const N: usize> {
    tree: &'t Tree,
    glances: Glances<'t>,
    keys: &'k [&'k [u8]],
    /// One a key.
    lookups: [Lookup<'t>; N],
}

/// A key on its way down.
#[derive(Clone, Copy, Debug)]
struct Lookup<'t> {
    /// The page that it has reached; `None` = the key goes alone.
    at: Option<Glance<'t>>,
    /// The search in that page.
    search: Search,
    /// The page that it goes to next, and where that probably is.
    next: u32,
    whereabouts: Option<Whereabouts<'t>>,
}

impl<'t, 'k, const N: usize> Group<'t, 'k, N> {
    #[inline(always)]
    fn new(tree: &'t Tree, glances: Glances<'t>, keys: &'k [&'k [u8]]) -> Group<'t, 'k, N> {
        let lookup = Lookup { at: None, search: Search::default(), next: 0, whereabouts: None };
        Group { tree, glances, keys, lookups: [lookup; N] }
    }

    /// Takes all keys to their leaves, as far as optimism carries, and begins to search there.
    fn descend(&mut self) {
        let (tree, glances, keys) = (self.tree, self.glances, self.keys);
        let lookups = &mut self.lookups[..keys.len()];
        // The next page may be torn until its parent has been validated: no harm is done by looking where it
        // would be.
        let set_out = |lookup: &mut Lookup<'t>, next: u32| {
            lookup.next = next;
            lookup.whereabouts = Some(glances.whereabouts(tree.page_id(PageNo(next))));
        };
        let root = tree.page_id(tree.root);
        let Some(root) = glances.look(root, glances.whereabouts(root)) else { return };
        let Some(mut level) = tree.level_of(root.page()) else { return };
        if level == 0 {
            // One page holds everything: nothing to overlap.
            return;
        }
        let mut children = Node::new(root.page()).children();
        for (lookup, key) in lookups.iter_mut().zip(keys) {
            lookup.at = Some(root);
            set_out(lookup, children.of(key));
        }
        loop {
            level -= 1;
            for (lookup, key) in lookups.iter_mut().zip(keys) {
                let (Some(parent), Some(whereabouts)) = (lookup.at, lookup.whereabouts) else { continue };
                let page = tree.page_id(PageNo(lookup.next));
                let next = glances.look(page, whereabouts);
                // After the look: so the parent named the page while it was what it is checked against later.
                lookup.at = next.filter(|next| glances.validate(&parent) && tree.is_node(next.page(), level));
                if let Some(at) = &lookup.at {
                    lookup.search = Node::new(at.page()).begin_search(key, at.hints());
                }
            }
            if level == 0 {
                return;
            }
            settle(lookups, 0);
            for (lookup, key) in lookups.iter_mut().zip(keys) {
                if let Some(at) = &lookup.at {
                    let node = Node::new(at.page());
                    let (index, exact) = node.finish(&lookup.search, key);
                    set_out(lookup, node.child(index + usize::from(exact)));
                }
            }
        }
    }
}

/// Finds the place of each key in its page, as far as its slots' heads tell, and asks for the cells there.
fn settle(lookups: &mut [Lookup<'_>], cell_bytes: usize) {
    const { assert!(GROUP <= u64::BITS as usize) };
    let mut late = 0_u64;
    for (offset, lookup) in lookups.iter_mut().enumerate() {
        let Some(at) = &lookup.at else { continue };
        let node = Node::new(at.page());
        if node.settle_in_line(&mut lookup.search) {
            node.prefetch_found(&lookup.search, cell_bytes);
        } else {
            late |= 1 << offset;
        }
    }
    while late != 0 {
        let lookup = &mut lookups[late.trailing_zeros() as usize];
        late &= late - 1;
        if let Some(at) = &lookup.at {
            let node = Node::new(at.page());
            node.settle(&mut lookup.search);
            node.prefetch_found(&lookup.search, cell_bytes);
        }
    }
}
