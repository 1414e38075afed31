//! The way down (engine R2, R3).
//!
//! ```text
//! guard root -> read child number -> guard child -> validate parent -> drop parent -> ...
//! ```
//! A parent that validates after its child was guarded held that child's number while the child had the
//! version that the guard will later be checked against: so the child covers the key. An error while the
//! child is fetched counts only if the parent validates: the number may have been torn.

use super::Tree;
use crate::Error;
use crate::format::layout::{FORMAT, PageType};
use crate::format::node::Node;
use crate::space::retry::{Attempt, Interrupt, Mode};
use base::PageNo;
use pagecache::page::Page;
use pagecache::{Hints, ReadGuard, WriteGuard};

/// Which child a descent takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Toward<'k> {
    /// The leaf that covers the key.
    Key(&'k [u8]),
    /// The leaf that covers what lies just below the key.
    Below(&'k [u8]),
    /// The last leaf.
    End,
}

impl Toward<'_> {
    /// The position of the child to take.
    #[inline(always)]
    fn child_index(self, node: Node<'_>, hints: &Hints) -> usize {
        match self {
            Toward::Key(key) => {
                let (index, exact) = node.search_near(key, hints);
                index + usize::from(exact)
            }
            Toward::Below(key) => node.search_near(key, hints).0,
            Toward::End => node.count(),
        }
    }
}

impl Tree {
    #[inline(always)]
    pub(super) fn read(&self, page: PageNo, mode: Mode) -> Attempt<ReadGuard<'_>> {
        let id = self.page_id(page);
        Ok(match mode {
            Mode::Configured => self.pool().read(id)?,
            Mode::Latched => self.pool().read_shared(id)?,
        })
    }

    /// The level of a page that should belong to this tree; `None` if the page says otherwise.
    #[inline(always)]
    pub(super) fn level_of(&self, page: Page<'_>) -> Option<u8> {
        let level = Node::new(page).level();
        self.is_node(page, level).then_some(level)
    }

    /// True if the page belongs to this tree and to this level.
    #[inline(always)]
    pub(super) fn is_node(&self, page: Page<'_>, level: u8) -> bool {
        let page_type = if level == 0 { PageType::Leaf } else { PageType::Inner };
        let expected = u32::from(FORMAT) | (page_type as u32) << 8 | u32::from(level) << 16;
        let node = Node::new(page);
        node.kind() & 0xff_ffff == expected && node.tree() == self.id
    }

    /// Says what is wrong with a page that `level_of` refused, once the page has been validated.
    #[cold]
    pub(super) fn foreign_page(&self, page: PageNo, lsn: u64, what: &str) -> Interrupt {
        Interrupt::Failed(Error::Corrupt {
            path: self.space().path(),
            page: page.0,
            lsn,
            why: format!("{what} of tree {}", self.id),
        })
    }

    #[inline(always)]
    fn check_level(&self, guard: &ReadGuard<'_>, expected: Option<u8>) -> Attempt<u8> {
        match self.level_of(guard.page()) {
            Some(level) if expected.is_none_or(|expected| expected == level) => Ok(level),
            _ => {
                guard.validate()?;
                let lsn = Node::new(guard.page()).lsn();
                Err(self.foreign_page(guard.page_id().page, lsn, "not the page expected on the way down"))
            }
        }
    }

    /// The page of `level` on the way to a key; `note` hears of the child taken at each step, and of how many
    /// there were. With `level` above the root's: `Ok(None)`.
    #[inline(always)]
    fn find(
        &self,
        toward: Toward<'_>,
        level: u8,
        mode: Mode,
        note: &mut impl FnMut(usize, usize),
    ) -> Attempt<Option<ReadGuard<'_>>> {
        self.find_unless(toward, level, mode, note, None)
    }

    /// As [`Tree::find`]. `absent` is asked before the page itself is read from the device; if it says that
    /// it is not needed any more: `Ok(None)`.
    #[inline(always)]
    fn find_unless(
        &self,
        toward: Toward<'_>,
        level: u8,
        mode: Mode,
        note: &mut impl FnMut(usize, usize),
        mut absent: Option<&mut dyn FnMut() -> bool>,
    ) -> Attempt<Option<ReadGuard<'_>>> {
        let mut guard = self.read(self.root, mode)?;
        let mut at = self.check_level(&guard, None)?;
        if at < level {
            guard.validate()?;
            return Ok(None);
        }
        while at > level {
            let node = Node::new(guard.page());
            let index = toward.child_index(node, guard.hints());
            let child = node.child(index);
            note(index, node.count() + 1);
            // Before its number is used: a torn one could name a page far beyond the file.
            guard.validate()?;
            let mut cached = None;
            if at - 1 == level
                && let Some(absent) = &mut absent
            {
                cached = self.pool().try_read_cached(self.page_id(PageNo(child)));
                if cached.is_none() && absent() {
                    return Ok(None);
                }
            }
            let next = match cached.map_or_else(|| self.read(PageNo(child), mode), Ok) {
                Ok(next) => next,
                Err(error) => {
                    guard.validate()?;
                    return Err(error);
                }
            };
            at -= 1;
            guard.validate()?;
            guard = next;
            self.check_level(&guard, Some(at))?;
        }
        Ok(Some(guard))
    }

    /// As [`Tree::find_leaf`], of a key. `absent` is asked before the leaf is read from the device; `None` if
    /// it says that it is not needed any more.
    #[inline(always)]
    pub(super) fn find_leaf_unless(
        &self,
        key: &[u8],
        mode: Mode,
        absent: &mut dyn FnMut() -> bool,
    ) -> Attempt<Option<ReadGuard<'_>>> {
        self.find_unless(Toward::Key(key), 0, mode, &mut |_, _| (), Some(absent))
    }

    /// The leaf toward a key, to be validated by the caller.
    #[inline(always)]
    pub(super) fn find_leaf(&self, toward: Toward<'_>, mode: Mode) -> Attempt<ReadGuard<'_>> {
        self.find(toward, 0, mode, &mut |_, _| ())?.ok_or(Interrupt::Conflict)
    }

    /// As [`Tree::find_leaf`]; `note` hears of the position taken and the number of children at each inner
    /// page.
    pub(super) fn find_leaf_noting(
        &self,
        toward: Toward<'_>,
        mode: Mode,
        note: &mut impl FnMut(usize, usize),
    ) -> Attempt<ReadGuard<'_>> {
        self.find(toward, 0, mode, note)?.ok_or(Interrupt::Conflict)
    }

    /// The parent of the leaf that covers `key`, to be validated by the caller; `None` if the root is that
    /// leaf.
    pub(super) fn find_parent(&self, key: &[u8], mode: Mode) -> Attempt<Option<ReadGuard<'_>>> {
        self.find(Toward::Key(key), 1, mode, &mut |_, _| ())
    }

    /// The page of `level` that covers `key`, latched exclusively; `None` if the root lies lower.
    pub(super) fn find_for_write(
        &self,
        key: &[u8],
        level: u8,
        mode: Mode,
    ) -> Attempt<Option<WriteGuard<'_>>> {
        match mode {
            Mode::Configured => match self.find(Toward::Key(key), level, mode, &mut |_, _| ())? {
                Some(guard) => Ok(Some(guard.upgrade()?)),
                None => Ok(None),
            },
            Mode::Latched => self.find_latched_for_write(key, level),
        }
    }

    /// As [`Tree::find_for_write`] without optimism: the parent is held shared while the target is latched.
    fn find_latched_for_write(&self, key: &[u8], level: u8) -> Attempt<Option<WriteGuard<'_>>> {
        let root = self.read(self.root, Mode::Latched)?;
        let mut at = self.check_level(&root, None)?;
        if at < level {
            return Ok(None);
        }
        if at == level {
            drop(root);
            let root = self.pool().write(self.page_id(self.root))?;
            // The root may have grown in between.
            return match self.level_of(root.page()) {
                Some(at) if at == level => Ok(Some(root)),
                _ => Err(Interrupt::Again),
            };
        }
        let mut parent = root;
        loop {
            let node = Node::new(parent.page());
            let child = PageNo(node.child(node.child_index(key)));
            at -= 1;
            if at == level {
                let guard = self.pool().write(self.page_id(child))?;
                if self.level_of(guard.page()) != Some(level) {
                    let lsn = Node::new(guard.page()).lsn();
                    return Err(self.foreign_page(child, lsn, "not the page that its parent names"));
                }
                return Ok(Some(guard));
            }
            let next = self.read(child, Mode::Latched)?;
            self.check_level(&next, Some(at))?;
            parent = next;
        }
    }

    /// The leaf that covers `key`, latched exclusively.
    #[inline]
    pub(super) fn leaf_for_write(&self, key: &[u8], mode: Mode) -> Attempt<WriteGuard<'_>> {
        self.find_for_write(key, 0, mode)?.ok_or(Interrupt::Conflict)
    }

    /// The child of a parent that is held exclusively, latched exclusively as well.
    pub(super) fn child_for_write(&self, child: u32, level: u8) -> Attempt<WriteGuard<'_>> {
        let guard = self.pool().write(self.page_id(PageNo(child)))?;
        if self.level_of(guard.page()) != Some(level) {
            let lsn = Node::new(guard.page()).lsn();
            return Err(self.foreign_page(PageNo(child), lsn, "not the page that its parent names"));
        }
        Ok(guard)
    }
}
