//! Locks on whole tables and on everything, which the SQL layer keeps itself; rows are the engine's to lock.
//!
//! - [`MetadataLocks`]: who uses a table, so that nobody changes its definition under a transaction, and LOCK
//!   TABLES.
//! - [`ReadLock`]: FLUSH TABLES WITH READ LOCK.
//!
//! A SELECT outside of a transaction takes neither. It reads a snapshot of one moment: opened before another
//! session's LOCK TABLES ... WRITE was granted it sees nothing of what that session does under it, so it
//! looks once, after its snapshot is open, whether readers are kept out of anything at all
//! ([`MetadataLocks::keeps_readers_out`]: one load of a word that is hardly ever written).

mod metadata;
mod read_lock;

pub(crate) use metadata::{MetadataLocks, Mode, Request};
pub(crate) use read_lock::{ReadLock, WritingFlag};

use engine::Table;

/// A table that a statement uses, and by which name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used<'t> {
    pub table: &'t Table,
    pub alias: &'t str,
    pub mode: Mode,
}
