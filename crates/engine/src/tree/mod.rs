//! The B+tree: descents, changes, splits and merges over the page cache.
//!
//! - [`descend`]: from the root to a leaf, optimistic, latched after conflicts.
//! - [`change`]: insert, replace and remove one key; runs of keys in one leaf.
//! - [`reshape`]: splits and merges, eager, under the parent's latch.
//! - [`range`]: a leaf's part of a range, copied out.
//! - [`integers`]: columns of a leaf's part of a range.
//! - [`batch`]: many descents in lockstep.
//! - [`tier`]: rows that are kept without their pages.
//!
//! The rules of access are numbered in the crate's README.

mod batch;
pub(crate) mod build;
mod change;
mod descend;
mod integers;
mod range;
mod reshape;
mod tier;

#[cfg(test)]
mod tests;

pub(crate) use batch::{Found, LeafVisitor};
pub(crate) use change::RunEnd;
pub(crate) use integers::Source;
pub use integers::{IntegerValues, Integers};
pub(crate) use range::{Chunk, Remainder};
pub(crate) use tier::{TierUse, entry_ends};

use crate::format::layout;
use crate::format::node::{Node, NodeHeader, NodeMut};
use crate::space::retry::retry;
use crate::space::tablespace::Tablespace;
use crate::{Error, Result};
use base::sync::Arc;
use base::{PageId, PageNo};
use pagecache::{CachedFile, Pool};
use types::KeyCodec;

/// A tree of a tablespace. Its root never moves.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    space: Arc<Tablespace>,
    root: PageNo,
    /// Stands in every page of the tree; unique in the file, so that a page of a dropped tree is told.
    id: u32,
    /// The parts that lookups name, if keys have more behind them: see [`tier`].
    own: Option<Arc<KeyCodec>>,
}

/// A page, and one that named it a moment ago.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    parent: PageNo,
    page: PageNo,
}

impl Tree {
    /// The tree whose root is `root`. `own`: of a secondary index, the parts that its entries have before the
    /// primary key.
    pub(crate) fn new(space: Arc<Tablespace>, root: PageNo, id: u32, own: Option<Arc<KeyCodec>>) -> Tree {
        Tree { space, root, id, own }
    }

    /// Makes an empty tree with a root of its own; see [`Tree::new`] and [`NodeHeader::whole_keys`].
    pub(crate) fn create(
        space: Arc<Tablespace>,
        id: u32,
        own: Option<Arc<KeyCodec>>,
        whole_keys: bool,
    ) -> Result<Tree> {
        let root = space.allocate()?;
        let tree = Tree { space, root, id, own };
        let header = NodeHeader {
            level: 0,
            tree: id,
            lower: &[],
            upper: None,
            stamp_max: 0,
            first_child: 0,
            whole_keys,
        };
        let made = tree.space.create_node(root, |page, id| NodeMut::new(page).init(id, header));
        if let Err(error) = made {
            tree.space.release(root);
            return Err(error);
        }
        Ok(tree)
    }

    pub(crate) fn root(&self) -> PageNo {
        self.root
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn space(&self) -> &Arc<Tablespace> {
        &self.space
    }

    /// The pool that has the tree's pages: it may be another at the next attempt.
    #[inline(always)]
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.space.pool()
    }

    pub(crate) fn file(&self) -> &CachedFile {
        self.space.file()
    }

    #[inline(always)]
    pub(crate) fn page_id(&self, page: PageNo) -> PageId {
        PageId::new(self.space.file_id(), page)
    }

    /// Gives all pages back to the tablespace. Nobody changes the tree meanwhile, and nobody will find it
    /// afterwards; readers who are still in it notice.
    pub(crate) fn free_all(&self) -> Result<()> {
        let operation = self.space.doubt()?;
        let mut pages = vec![self.root];
        let mut parents = vec![self.root];
        // Level by level; leaves are named by their parents and need not be read.
        while !parents.is_empty() {
            let mut inner = Vec::new();
            for parent in parents {
                let (level, children) = self.children_of(parent)?;
                pages.extend_from_slice(&children);
                if level > 1 {
                    inner.extend(children);
                }
            }
            parents = inner;
        }
        self.space.free_pages(&pages)?;
        self.space.end_operation(operation);
        Ok(())
    }

    /// The level of a page and the children it names.
    fn children_of(&self, page: PageNo) -> Result<(u8, Vec<PageNo>)> {
        retry(self.file(), |_| {
            let guard = self.pool().read_shared(self.page_id(page))?;
            let Some(level) = self.level_of(guard.page()) else {
                return Err(self.foreign_page(page, 0, "not a page"));
            };
            let node = Node::new(guard.page());
            let children = match level {
                0 => Vec::new(),
                _ => (0..=node.count()).map(|index| PageNo(node.child(index))).collect(),
            };
            Ok((level, children))
        })
    }

    /// Reads the pages that lead to others; gives their number, and the leaves that they name, each with the
    /// page that names it. What is split or merged meanwhile may be missing.
    pub(crate) fn read_inner(&self) -> Result<(u64, Vec<Named>)> {
        let (mut level, children) = self.children_of(self.root)?;
        if level == 0 {
            return Ok((0, vec![Named { parent: self.root, page: self.root }]));
        }
        let mut inner = 1;
        let named = |parent: PageNo, children: Vec<PageNo>| {
            children.into_iter().map(move |page| Named { parent, page })
        };
        let mut pages: Vec<Named> = named(self.root, children).collect();
        while level > 1 {
            level -= 1;
            let mut below = Vec::new();
            for one in pages {
                match self.children_of(one.page) {
                    Ok((found, children)) if found == level => {
                        inner += 1;
                        below.extend(named(one.page, children));
                    }
                    // It has become another page since it was named.
                    Ok(_) => {}
                    Err(error) => self.excuse(one, error)?,
                }
            }
            pages = below;
        }
        Ok((inner, pages))
    }

    /// Reads leaves into the cache; gives their number.
    pub(crate) fn read_leaves(&self, leaves: &[Named]) -> Result<u64> {
        let mut read = 0;
        for one in leaves {
            let read_one = |_| {
                self.pool().read(self.page_id(one.page))?;
                Ok(())
            };
            match retry(self.file(), read_one) {
                Ok(()) => read += 1,
                Err(error) => self.excuse(*one, error)?,
            }
        }
        Ok(read)
    }

    /// The error of reading a page counts only if it is still a page of the tree.
    fn excuse(&self, one: Named, error: Error) -> Result<()> {
        let is_stale = error.may_be_stale() && !self.children_of(one.parent)?.1.contains(&one.page);
        if is_stale { Ok(()) } else { Err(error) }
    }

    /// The longest key, in bytes.
    pub(crate) fn key_bytes_max(&self) -> usize {
        layout::key_bytes_max(self.space.page_size())
    }

    /// The longest value that a leaf takes beside a key of `key_len` bytes.
    pub(crate) fn value_bytes_max(&self, key_len: usize) -> usize {
        let cell = layout::cell_bytes_max(self.space.page_size());
        cell.saturating_sub(key_len + layout::SLOT_BYTES + layout::LEAF_CELL_HEADER)
    }
}
