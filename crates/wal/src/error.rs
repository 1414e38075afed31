//! The errors of the log.

use base::Lsn;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of the log's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the log could not do what was asked.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// The device failed, and the log is as it was: the call may be made again.
    Io { path: PathBuf, source: io::Error },
    /// An earlier write or sync failed. What the device holds beyond the last position reported as synced is
    /// unknown, so nothing more is accepted or reported durable until the log is opened anew.
    Poisoned { why: String },
    /// The payload is longer than [`crate::PAYLOAD_MAX`]. Nothing was appended.
    TooLong { bytes: usize },
    /// The position was never given out: a flush up to it would wait forever.
    Beyond { lsn: Lsn, next: Lsn },
    /// No file of the log holds the position.
    Missing { dir: PathBuf, lsn: Lsn },
    /// A file is not what this build writes.
    WrongFormat { path: PathBuf, why: String },
    /// The checkpoint contradicts the log or the checkpoint before it.
    Checkpoint { why: String },
    /// The settings cannot be met.
    Config { why: String },
}

impl Error {
    /// True if the device, or the user's share of it, has no room left.
    pub(crate) fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Error::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Poisoned { why } => {
                write!(f, "the log takes nothing more after an earlier failure: {why}")
            }
            Error::TooLong { bytes } => write!(f, "a log record of {bytes} bytes is too long"),
            Error::Beyond { lsn, next } => write!(f, "log position {lsn} is beyond the end {next}"),
            Error::Missing { dir, lsn } => {
                write!(f, "{}: no log file holds position {lsn}", dir.display())
            }
            Error::WrongFormat { path, why } => write!(f, "{}: {why}", path.display()),
            Error::Checkpoint { why } | Error::Config { why } => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
