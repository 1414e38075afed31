//! Caches by name, and which table is in which.

use super::Database;
use crate::table::Table;
use crate::{Error, Result};
use base::sync::Arc;
use pagecache::{CacheChange, Caches, DEFAULT_CACHE};

/// What [`Database::preload`] found: pages of a table's trees.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Preloaded {
    /// Pages that lead to others.
    pub inner: u64,
    pub leaves: u64,
    /// How many of both were read from the device.
    pub loaded: u64,
}

impl Database {
    /// The key caches: their settings, status and counters. To change them, see [`Database::set_cache`].
    pub fn caches(&self) -> &Arc<Caches> {
        &self.core.caches
    }

    /// Changes settings of a cache while it is in use, and makes it if there is none of this name.
    ///
    /// A new cache has the default one's settings and no size. One without a size is disabled: it can be set
    /// up, and no table assigned to it. Size 0 drops a cache: its dirty pages are written, its tables go to
    /// the default one, and its other settings are kept. If that fails the cache stays, and some of its
    /// tables may have gone.
    ///
    /// # Errors
    /// [`Error::DefaultCache`] for size 0 of the default one; [`Error::BadOption`] for settings that cannot
    /// be met.
    pub fn set_cache(&self, name: &str, change: CacheChange) -> Result<()> {
        if name == DEFAULT_CACHE && change.size_bytes == Some(0) {
            return Err(Error::DefaultCache);
        }
        Ok(self.core.caches.set(name, change)?)
    }

    /// Moves a table with its indexes to another cache, while it is in use. It stays there until the database
    /// is closed, the cache dropped, or the table assigned to another; TRUNCATE and whatever else gives it a
    /// new file leave it there.
    ///
    /// # Errors
    /// [`Error::NoSuchCache`] if there is none of this name, or none with a size. If dirty pages cannot be
    /// written the table stays where it is.
    pub fn assign(&self, table: &Table, cache: &str) -> Result<()> {
        let cache = self.core.caches.get(cache).filter(|cache| cache.is_enabled());
        let cache = cache.ok_or(Error::NoSuchCache)?;
        // The file is the table's for as long.
        let _closure = table.gate.close();
        Ok(table.live_state()?.space.file().assign(&cache)?)
    }

    /// The name of the cache that a table is in.
    pub fn cache_of(&self, table: &Table) -> String {
        table.state().space.file().cache().name().to_owned()
    }

    /// Reads the pages of all indexes of a table into its cache: first those that lead to others, then,
    /// unless told otherwise, the leaves, as many as the cache has room for. Rows with pages of their own are
    /// left where they are.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] of a page that leads to others.
    pub fn preload(&self, table: &Table, ignore_leaves: bool) -> Result<Preloaded> {
        let mut sum = Preloaded::default();
        let _passage = table.gate.pass();
        let state = table.live_state()?;
        let before = pagecache::loads_of_this_thread();
        let room = state.space.file().cache().status().frames as usize;
        let mut leaves = Vec::new();
        for index in &state.indexes {
            let (inner, named) = index.tree.read_inner()?;
            sum.inner += inner;
            leaves.push((&index.tree, named));
        }
        for (tree, named) in leaves.iter().filter(|_| !ignore_leaves) {
            let room = room.saturating_sub((sum.inner + sum.leaves) as usize);
            sum.leaves += tree.read_leaves(&named[..room.min(named.len())])?;
        }
        sum.loaded = pagecache::loads_of_this_thread() - before;
        Ok(sum)
    }
}
