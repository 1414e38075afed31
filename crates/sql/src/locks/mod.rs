//! Locks on whole tables and on everything. The SQL layer keeps them; the engine locks rows.
//!
//! - [`MetadataLocks`]: which session uses which table. No session can change a table's definition under a
//!   transaction that uses it. LOCK TABLES uses these locks too.
//! - [`ReadLock`]: FLUSH TABLES WITH READ LOCK.
//! - [`UserLocks`]: the names of GET_LOCK.
//!
//! A SELECT outside of a transaction takes none of the first two. It reads a snapshot of one moment. If the
//! snapshot was opened before another session's LOCK TABLES ... WRITE was granted, it contains nothing that
//! the session changes under that lock. So after opening its snapshot, the SELECT checks once whether readers
//! are kept out of any table ([`MetadataLocks::keeps_readers_out`]). That is one load of a word that is
//! rarely written.

mod metadata;
mod read_lock;
mod user_locks;

pub(crate) use metadata::{MetadataLocks, Mode, Request};
pub(crate) use read_lock::{ReadLock, WritingFlag};
pub(crate) use user_locks::{Attempt, UserLocks};

use engine::Table;

/// A table that a statement uses, with the name that the statement gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used<'t> {
    pub table: &'t Table,
    pub alias: &'t str,
    pub mode: Mode,
}
