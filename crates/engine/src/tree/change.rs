//! Insert, replace, remove.

use super::Tree;
use super::batch::WARM_UP;
use crate::Result;
use crate::format::layout::{HEADER_BYTES, LEAF_CELL_HEADER, SLOT_BYTES};
use crate::format::node::{Node, NodeMut};
use crate::format::redo::Changes;
use crate::space::retry::{Attempt, Mode, retry};
use base::{PageNo, Stamp};
use pagecache::WriteGuard;

/// A leaf below this share of its bytes looks for a sibling to merge with.
///
/// A quarter: half of what a split leaves in each part, so that a key that comes and goes does not
/// split and merge a page over and over.
const UNDERFULL_DIVISOR: usize = 4;

/// True if a page is so empty that it should be merged.
pub(super) fn is_underfull(node: Node<'_>) -> bool {
    node.used_bytes() < (node.page().size() - HEADER_BYTES) / UNDERFULL_DIVISOR
}

/// How far a run of sorted inserts got in one leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunEnd {
    /// All of the run's keys are in.
    Done,
    /// The next key exists already, or has neighbours that begin alike; those before it are in.
    Duplicate,
}

/// What [`Tree::insert_beside`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beside {
    /// The key was not there before.
    pub is_new: bool,
    /// Other keys begin alike, or may do so in a neighbouring leaf.
    pub has_neighbours: bool,
}

/// What an attempt on a leaf came to.
enum Step<T> {
    Done(T),
    /// The leaf lacks this many bytes' room for the key.
    Full(usize),
}

impl Tree {
    /// Inserts a key; false if it exists already, and nothing is changed. `value` is its parts, one behind
    /// the other.
    pub(crate) fn insert(&self, key: &[u8], value: &[&[u8]], stamp: Stamp) -> Result<bool> {
        self.with_room(key, |mode| self.try_insert(key, value, stamp, mode))
    }

    /// Inserts a key without value unless it is there, and looks for other keys that begin with its first
    /// `own` bytes.
    pub(crate) fn insert_beside(&self, key: &[u8], own: usize, stamp: Stamp) -> Result<Beside> {
        self.with_room(key, |mode| {
            let mut leaf = self.leaf_for_write(key, mode)?;
            let node = Node::new(leaf.page());
            let (index, exact) = node.search(key);
            let has_neighbours = has_neighbours(node, index, exact, &key[..own]);
            if exact {
                return Ok(Step::Done(Beside { is_new: false, has_neighbours }));
            }
            let need = cell_bytes(key, &[]);
            if node.free_bytes() + node.prefix_len() < need {
                return Ok(Step::Full(need));
            }
            self.change_leaf(
                &mut leaf,
                std::iter::once(key),
                |changes, page, node| changes.insert(page, node, index, key, &[], stamp),
                |node| insert_at(node, index, key, &[], stamp),
            )?;
            Ok(Step::Done(Beside { is_new: true, has_neighbours }))
        })
    }

    fn try_insert(&self, key: &[u8], value: &[&[u8]], stamp: Stamp, mode: Mode) -> Attempt<Step<bool>> {
        let mut leaf = self.leaf_for_write(key, mode)?;
        let node = Node::new(leaf.page());
        let (index, exact) = node.search(key);
        if exact {
            return Ok(Step::Done(false));
        }
        let need = cell_bytes(key, value);
        if node.free_bytes() + node.prefix_len() < need {
            return Ok(Step::Full(need));
        }
        self.change_leaf(
            &mut leaf,
            std::iter::once(key),
            |changes, page, node| changes.insert(page, node, index, key, value, stamp),
            |node| insert_at(node, index, key, value, stamp),
        )?;
        Ok(Step::Done(true))
    }

    /// Logs what `describe` says of a leaf and does it. `keys` are those whose cells change, come or go. True
    /// if the row tier had any of them.
    fn change_leaf<'k>(
        &self,
        leaf: &mut WriteGuard<'_>,
        keys: impl Iterator<Item = &'k [u8]>,
        describe: impl FnOnce(&mut Changes, PageNo, Node<'_>),
        change: impl FnOnce(&mut NodeMut<'_>),
    ) -> Result<bool> {
        let mut was_kept = false;
        for key in keys {
            was_kept |= self.forget_kept(key);
        }
        let page = leaf.page_id().page;
        // Dirty before it is logged: see `Journal`.
        let mut node = NodeMut::new(leaf.page_mut());
        let mut changes = Changes::new(self.space().file_id());
        describe(&mut changes, page, node.node());
        let lsn = changes.log(self.space().journal())?;
        change(&mut node);
        node.set_lsn(lsn);
        Ok(was_kept)
    }

    /// Inserts sorted keys, as many at a time as fall into one leaf: `entry(i)` gives key and value parts of
    /// the `i`th of `count`. Stops at the first key that exists, or beside which another key begins with the
    /// bytes that `own` gives, or that `is_barred` names: asked under the leaf's latch. `done` counts those
    /// that are in, also on an error.
    pub(crate) fn insert_run<'e, const PARTS: usize>(
        &self,
        count: usize,
        stamp: Stamp,
        done: &mut usize,
        entry: impl Fn(usize) -> (&'e [u8], [&'e [u8]; PARTS]),
        own: impl Fn(usize) -> Option<&'e [u8]>,
        is_barred: impl Fn(usize) -> bool,
    ) -> Result<RunEnd> {
        // Keys that fall into a leaf each: their leaves are fetched together, ahead of the inserts.
        let mut is_scattered = false;
        let mut warm_until = 0;
        while *done < count {
            let (key, _) = entry(*done);
            if is_scattered && *done >= warm_until {
                let first = *done;
                self.warm_up(count - first, |offset| entry(first + offset).0);
                warm_until = first + WARM_UP;
            }
            let (inserted, duplicate) = self.with_room(key, |mode| {
                self.try_insert_run(*done..count, stamp, &entry, &own, &is_barred, mode)
            })?;
            *done += inserted;
            is_scattered = inserted < WARM_UP / 2;
            if duplicate {
                return Ok(RunEnd::Duplicate);
            }
        }
        Ok(RunEnd::Done)
    }

    /// The number of keys inserted, and whether the next one exists.
    fn try_insert_run<'e, const PARTS: usize>(
        &self,
        run: std::ops::Range<usize>,
        stamp: Stamp,
        entry: &impl Fn(usize) -> (&'e [u8], [&'e [u8]; PARTS]),
        own: &impl Fn(usize) -> Option<&'e [u8]>,
        is_barred: &impl Fn(usize) -> bool,
        mode: Mode,
    ) -> Attempt<Step<(usize, bool)>> {
        let first = run.start;
        let mut leaf = self.leaf_for_write(entry(first).0, mode)?;
        let node = Node::new(leaf.page());
        // Where each key goes once those before it are in, which are smaller.
        let mut places = Vec::new();
        let mut room = node.free_bytes() + node.prefix_len();
        let mut duplicate = false;
        for position in run {
            let (key, value) = entry(position);
            if position > first && !node.is_below_upper_fence(key) {
                break;
            }
            let (index, exact) = node.search(key);
            let begins_alike = |own: &[u8]| {
                // The key before it in the run will be its left neighbour, if any is.
                has_neighbours(node, index, false, own)
                    || position > first && entry(position - 1).0.starts_with(own)
            };
            let is_there = exact || position > first && entry(position - 1).0 == key;
            if is_there || own(position).is_some_and(begins_alike) || is_barred(position) {
                duplicate = true;
                break;
            }
            let need = cell_bytes(key, &value);
            if room < need {
                if position > first {
                    // The keys that are in stay in. The rest begins with the key that found no room.
                    break;
                }
                return Ok(Step::Full(need));
            }
            room = room - need + node.prefix_len();
            places.push(index + places.len());
        }
        if !places.is_empty() {
            self.change_leaf(
                &mut leaf,
                (first..first + places.len()).map(|position| entry(position).0),
                |changes, page, node| {
                    for (offset, index) in places.iter().enumerate() {
                        let (key, value) = entry(first + offset);
                        changes.insert(page, node, *index, key, &value, stamp);
                    }
                },
                |node| {
                    for (offset, index) in places.iter().enumerate() {
                        let (key, value) = entry(first + offset);
                        insert_at(node, *index, key, &value, stamp);
                    }
                },
            )?;
        }
        Ok(Step::Done((places.len(), duplicate)))
    }

    /// Replaces the value of a key; false if there is no such key.
    pub(crate) fn replace(&self, key: &[u8], value: &[&[u8]], stamp: Stamp) -> Result<bool> {
        let (is_there, replacement) = self.with_room(key, |mode| {
            let mut leaf = self.leaf_for_write(key, mode)?;
            let (index, exact) = Node::new(leaf.page()).search(key);
            if !exact {
                return Ok(Step::Done((false, None)));
            }
            let value_len = value.iter().map(|part| part.len()).sum();
            if !Node::new(leaf.page()).has_room_to_replace(index, value_len) {
                return Ok(Step::Full(cell_bytes(key, value)));
            }
            let was_kept = self.change_leaf(
                &mut leaf,
                std::iter::once(key),
                |changes, page, node| changes.replace(page, node, index, value, stamp),
                |node| {
                    node.replace(index, value).expect("the room was measured");
                    node.raise_stamp(stamp.0);
                },
            )?;
            let replacement = if was_kept { self.begin_replacement(key) } else { None };
            Ok(Step::Done((true, replacement)))
        })?;
        // With the leaf given back: room for the row may have to be made.
        if let Some(replacement) = replacement {
            replacement.put(key, value);
        }
        Ok(is_there)
    }

    /// Removes a key; false if there is no such key.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool> {
        let (removed, underfull) = retry(self.file(), |mode| {
            let mut leaf = self.leaf_for_write(key, mode)?;
            let (index, exact) = Node::new(leaf.page()).search(key);
            if !exact {
                return Ok((false, false));
            }
            self.change_leaf(
                &mut leaf,
                std::iter::once(key),
                |changes, page, node| changes.remove(page, node, index),
                |node| node.remove(index),
            )?;
            Ok((true, is_underfull(Node::new(leaf.page()))))
        })?;
        if underfull {
            self.merge(key)?;
        }
        Ok(removed)
    }

    /// Repeats `attempt`, splitting the leaf that covers `key` whenever it is full.
    fn with_room<T>(&self, key: &[u8], mut attempt: impl FnMut(Mode) -> Attempt<Step<T>>) -> Result<T> {
        loop {
            match retry(self.file(), &mut attempt)? {
                Step::Done(result) => return Ok(result),
                Step::Full(need) => self.make_room(key, 0, need)?,
            }
        }
    }
}

/// True if keys beside slot `index` (the key's own, or where it would be) begin with `own`, or may do so in a
/// leaf beside this one.
fn has_neighbours(node: Node<'_>, index: usize, exact: bool, own: &[u8]) -> bool {
    let behind = index + usize::from(exact);
    let left = match index.checked_sub(1) {
        Some(left) => node.key_starts_with(left, own),
        // A fence between two keys that begin alike begins like them.
        None => node.lower_fence_starts_with(own),
    };
    let right = match behind < node.count() {
        true => node.key_starts_with(behind, own),
        false => node.upper_fence_starts_with(own),
    };
    left || right
}

/// Bytes that a new cell takes in a page without prefix.
fn cell_bytes(key: &[u8], value: &[&[u8]]) -> usize {
    let value: usize = value.iter().map(|part| part.len()).sum();
    SLOT_BYTES + LEAF_CELL_HEADER + key.len() + value
}

fn insert_at(node: &mut NodeMut<'_>, index: usize, key: &[u8], value: &[&[u8]], stamp: Stamp) {
    node.insert(index, key, value).expect("the room was measured");
    node.raise_stamp(stamp.0);
}
