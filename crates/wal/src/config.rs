//! Settings of a log.

use crate::error::{Error, Result};
use crate::format::FILE_HEADER_BYTES;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of the smallest ring buffer: of use to tests and models.
const BUFFER_SIZE_MIN: usize = 64;
/// Bytes of the largest ring buffer.
const BUFFER_SIZE_MAX: usize = 1 << 32;
/// Files are whole blocks, so that a position has the same offset in its block in the log and in the file.
const BLOCK: u64 = 4096;

/// How a log is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// The folder of the log's files. The log is alone in it.
    pub dir: PathBuf,
    /// Bytes of a file, header included: a multiple of 4096, at least 8192. May differ from one start to the
    /// next; files that exist keep their size.
    pub file_size: u64,
    /// Bytes of the ring buffer: a power of two, from 64 bytes to 4 GiB.
    pub buffer_size: usize,
    /// How many files that are no longer needed stay, to be used again for later positions, instead of being
    /// removed.
    pub spare_files: usize,
    /// How long a thread that writes the log waits for room on a full disk, for the log's next file, before
    /// the log is poisoned.
    pub full_wait: Duration,
}

impl LogConfig {
    /// Files of 64 MiB, a buffer of 16 MiB, two spare files, a minute.
    pub fn new(dir: impl Into<PathBuf>) -> LogConfig {
        LogConfig {
            dir: dir.into(),
            file_size: 64 << 20,
            buffer_size: 16 << 20,
            spare_files: 2,
            full_wait: Duration::from_secs(60),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(Error::Config { why });
        if !self.file_size.is_multiple_of(BLOCK) || self.file_size < FILE_HEADER_BYTES + BLOCK {
            return wrong(format!(
                "a log file of {} bytes: not a multiple of 4096, or too small",
                self.file_size
            ));
        }
        if !self.buffer_size.is_power_of_two()
            || !(BUFFER_SIZE_MIN..=BUFFER_SIZE_MAX).contains(&self.buffer_size)
        {
            return wrong(format!(
                "a log buffer of {} bytes: not a power of two from 64 on",
                self.buffer_size
            ));
        }
        Ok(())
    }

    /// Bytes of log that a file holds.
    pub(crate) fn capacity(&self) -> u64 {
        self.file_size - FILE_HEADER_BYTES
    }
}
