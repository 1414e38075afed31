//! The B+tree: descents, changes, splits and merges over the page cache.
//!
//! - [`descend`]: from the root to a leaf, optimistic, latched after conflicts.
//! - [`change`]: insert, replace and remove one key; runs of keys in one leaf.
//! - [`reshape`]: splits and merges, eager, under the parent's latch.
//! - [`range`]: a leaf's part of a range, copied out.
//! - [`batch`]: many descents in lockstep.
//!
//! The rules of access are numbered in the crate's README.

mod batch;
mod change;
mod descend;
mod range;
mod reshape;
mod retry;

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

#[cfg(all(test, feature = "shuttle"))]
mod models;

pub use batch::{Found, LeafVisitor};
pub use change::RunEnd;
pub use range::{Chunk, Remainder};
pub(crate) use retry::{Attempt, Interrupt, Mode, retry};

use crate::Result;
use crate::node::layout;
use crate::node::{Node, NodeHeader, NodeMut};
use crate::tablespace::Tablespace;
use base::sync::Arc;
use base::{PageId, PageNo};
use pagecache::PageCache;

/// A tree of a tablespace. Its root never moves.
#[derive(Clone, Debug)]
pub struct Tree {
    space: Arc<Tablespace>,
    root: PageNo,
    /// Stands in every page of the tree; unique in the file, so that a page of a dropped tree is told.
    id: u32,
}

impl Tree {
    /// The tree whose root is `root`.
    pub fn new(space: Arc<Tablespace>, root: PageNo, id: u32) -> Tree {
        Tree { space, root, id }
    }

    /// Makes an empty tree with a root of its own.
    pub fn create(space: Arc<Tablespace>, id: u32) -> Result<Tree> {
        let root = space.allocate()?;
        let tree = Tree { space, root, id };
        let header = NodeHeader { level: 0, tree: id, lower: &[], upper: None, stamp_max: 0, first_child: 0 };
        let made = tree.space.create_node(root, |page, id| NodeMut::new(page).init(id, header));
        if let Err(error) = made {
            tree.space.release(root);
            return Err(error);
        }
        Ok(tree)
    }

    pub fn root(&self) -> PageNo {
        self.root
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn space(&self) -> &Arc<Tablespace> {
        &self.space
    }

    pub(crate) fn cache(&self) -> &PageCache {
        self.space.cache()
    }

    #[inline(always)]
    pub(crate) fn page_id(&self, page: PageNo) -> PageId {
        PageId::new(self.space.file_id(), page)
    }

    /// Gives all pages back to the tablespace. Nobody changes the tree meanwhile, and nobody will find it
    /// afterwards; readers who are still in it notice.
    pub fn free_all(&self) -> Result<()> {
        self.space.doubt()?;
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
        self.space.free_pages(&pages)
    }

    /// The level of a page and the children it names.
    fn children_of(&self, page: PageNo) -> Result<(u8, Vec<PageNo>)> {
        retry(self.cache(), |_| {
            let guard = self.cache().read_shared(self.page_id(page))?;
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

    /// The longest key, in bytes.
    pub fn key_bytes_max(&self) -> usize {
        layout::key_bytes_max(self.space.page_size())
    }

    /// The longest value that a leaf takes beside a key of `key_len` bytes.
    pub fn value_bytes_max(&self, key_len: usize) -> usize {
        let cell = layout::cell_bytes_max(self.space.page_size());
        cell.saturating_sub(key_len + layout::SLOT_BYTES + layout::LEAF_CELL_HEADER)
    }
}
