//! Where the transactions of a database start, and their limits.

use crate::files::VersionFiles;
use base::Stamp;
use base::sync::Arc;

/// Ids a chunk of the status table covers by default: 32 KiB of status words.
pub const CHUNK_IDS: u64 = 4096;

/// The settings of [`crate::Transactions`].
#[derive(Clone, Debug)]
pub struct Config {
    /// The id of the first write transaction, 1 or more. All ids below are finished and visible to everyone.
    pub next_id: Stamp,
    /// Ids below it of transactions that have not ended: those that a start found unfinished. Each is to be
    /// taken over by [`crate::Transactions::resume`].
    pub unfinished: Vec<Stamp>,
    /// Ids a chunk of the status table covers: a power of two, 2 or more.
    pub chunk_ids: u64,
    /// Old versions may take so many bytes of memory. What is more goes to files.
    pub version_limit_bytes: u64,
    /// Explicit locks may take so many bytes. Beyond that a transaction with very many of them gets locks on
    /// large parts of its tables instead; beyond four times that it is refused more.
    pub lock_limit_bytes: u64,
    /// Where the files come from. `None`: there are none, and the oldest snapshots are cancelled.
    pub version_files: Option<Arc<dyn VersionFiles>>,
    /// The files may have so many bytes. Beyond that the oldest snapshots are cancelled.
    pub version_file_limit_bytes: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            next_id: Stamp(1),
            unfinished: Vec::new(),
            chunk_ids: CHUNK_IDS,
            version_limit_bytes: 256 << 20,
            lock_limit_bytes: 64 << 20,
            version_files: None,
            version_file_limit_bytes: 16 << 30,
        }
    }
}
