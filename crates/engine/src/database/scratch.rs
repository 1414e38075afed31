//! Files for what a statement cannot keep in memory.

use super::Database;
use crate::Result;
use base::sync::Arc;
use std::path::Path;
use vfs::File;

/// A file without a name, which grows at its end. It is gone when it is dropped, and when the process ends.
#[derive(Debug)]
pub struct ScratchFile {
    file: Arc<dyn File>,
    len: u64,
}

impl Database {
    /// A new, empty file in the folder `dir`.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full) and [`Error::Io`](crate::Error::Io).
    pub fn scratch_file(&self, dir: &Path) -> Result<ScratchFile> {
        Ok(ScratchFile { file: self.files.vfs.open_unnamed(dir)?, len: 0 })
    }
}

impl ScratchFile {
    /// Writes `bytes` behind all others.
    ///
    /// # Errors
    /// As [`Database::scratch_file`]. The file is as long as it was.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), also if the file is shorter.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        Ok(self.file.read_at(buffer, offset)?)
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether it is empty")]
    pub fn len(&self) -> u64 {
        self.len
    }
}
