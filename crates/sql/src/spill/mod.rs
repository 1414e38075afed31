//! Rows that do not fit into memory: in scratch files of `tmpdir`, sorted or in the order in which they came.
//!
//! A file has entries one behind the other. A *run* is a part of a file: entries in the order of their keys.
//!
//! ```text
//! entry: key length u32 | row length u32 | key | row
//! ```
//!
//! Lengths are little endian. Only the statement that wrote a file reads it, so the format has no version and
//! no checksum. The files have no names: nothing is left of them when the statement or the process ends.

mod files;
mod gathered;
mod indexed;
mod rows;
mod sorter;
mod spool;

pub(crate) use files::{RunReader, RunWriter, Stored};
pub(crate) use gathered::{GatheredRows, RowCursor};
pub(crate) use indexed::IndexedRows;
pub(crate) use rows::{append_row, append_value, read_nth, read_row};
pub(crate) use sorter::{MergedRuns, SortedRows, Sorter};
pub(crate) use spool::{Spool, SpoolReader, Spooled};

use crate::SqlError;
use crate::host::Interrupt;
use crate::memory::Account;
use crate::status::{Counter, SessionCounters};
use crate::variables::{Globals, MemoryLimits};
use base::sync::Arc;
use engine::{Database, ScratchFile};
use std::path::Path;

/// What a statement needs to keep rows: how much memory it may use, and where the rest goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workspace<'w> {
    pub(crate) limits: &'w MemoryLimits,
    pub(crate) account: &'w Arc<Account>,
    pub(crate) interrupt: &'w Arc<Interrupt>,
    pub(crate) counters: &'w SessionCounters,
    pub(crate) database: &'w Database,
    pub(crate) globals: &'w Globals,
}

impl Workspace<'_> {
    /// A new file in `tmpdir`.
    ///
    /// # Errors
    /// 1021 if the disk is full, 1030 if there can be no file there.
    fn file(&self) -> Result<ScratchFile, SqlError> {
        let folder = self.globals.values().text("tmpdir");
        Ok(self.database.scratch_file(Path::new(&folder))?)
    }

    /// A table of a statement did not fit into memory.
    pub(crate) fn note_disk_table(&self) {
        self.counters.add(Counter::CreatedTmpDiskTables, 1);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::memory::ServerMemory;
    use engine::{CacheOptions, Options};
    use vfs::{MemVfs, Vfs};

    /// What a workspace borrows, on files in memory.
    pub(crate) struct Workplace {
        limits: MemoryLimits,
        account: Arc<Account>,
        interrupt: Arc<Interrupt>,
        counters: SessionCounters,
        database: std::sync::Arc<Database>,
        globals: Globals,
    }

    impl Workplace {
        /// One whose buffers have `bytes` each.
        pub(crate) fn with_buffers(bytes: usize) -> Workplace {
            let files = MemVfs::new();
            files.create_dir_all(Path::new("/tmp")).unwrap();
            let cache = CacheOptions { size_bytes: 4 << 20, ..CacheOptions::default() };
            let options = Options { vfs: Arc::new(files), create: true, cache, ..Options::default() };
            Workplace {
                limits: MemoryLimits {
                    sort_bytes: bytes,
                    table_bytes: bytes,
                    join_bytes: bytes,
                    concat_bytes: 1 << 20,
                    session_bytes: u64::MAX,
                },
                account: Arc::new(Account::new(Arc::new(ServerMemory::default()))),
                interrupt: Arc::default(),
                counters: SessionCounters::default(),
                database: Database::open(Path::new("/data"), options).unwrap(),
                globals: Globals::new(),
            }
        }

        pub(crate) fn workspace(&self) -> Workspace<'_> {
            Workspace {
                limits: &self.limits,
                account: &self.account,
                interrupt: &self.interrupt,
                counters: &self.counters,
                database: &self.database,
                globals: &self.globals,
            }
        }
    }
}
