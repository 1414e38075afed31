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
mod rows;
mod sorter;

pub(crate) use rows::{append_row, read_row};
pub(crate) use sorter::Sorter;

use crate::SqlError;
use crate::host::Interrupt;
use crate::memory::Account;
use crate::status::SessionCounters;
use crate::variables::{Globals, MemoryLimits};
use base::sync::Arc;
use engine::{Database, ScratchFile};
use std::path::Path;

/// What a statement needs to keep rows: how much memory it may use, and where the rest goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workspace<'w> {
    pub(crate) limits: &'w MemoryLimits,
    pub(crate) account: &'w Arc<Account>,
    pub(crate) interrupt: &'w Interrupt,
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
}
