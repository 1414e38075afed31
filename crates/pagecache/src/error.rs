//! The errors of the page cache.

use base::PageId;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the cache could not do what was asked.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// The device failed. `page` is `None` for a sync of the whole file.
    Io { path: PathBuf, page: Option<PageId>, source: io::Error },
    /// The page on the device is not what was written there.
    Corrupt { path: PathBuf, page: PageId, lsn: u64, why: String },
    /// The log cannot be made durable as far as a page needs it, so the page cannot be written.
    Log { why: String },
    /// No frame can be given up while the caller holds latches: drop them all, call
    /// [`crate::Pool::wait_for_frames`], and try again with the permit.
    Busy,
    /// The page's file is not (or no longer) attached.
    NotAttached { page: PageId },
    /// An earlier failure leaves it unknown what the device holds: nothing more is written.
    Poisoned { why: String },
    /// The settings cannot be met.
    Config { why: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, page: Some(page), source } => {
                write!(f, "{}, {page}: {source}", path.display())
            }
            Error::Io { path, page: None, source } => write!(f, "{}: {source}", path.display()),
            Error::Corrupt { path, page, lsn, why } => {
                write!(f, "{}, {page} (lsn {lsn}): {why}", path.display())
            }
            Error::Log { why } => write!(f, "pages that wait for the log cannot be written: {why}"),
            Error::Busy => write!(f, "every frame of the cache is in use"),
            Error::NotAttached { page } => write!(f, "{page}: the file is not open"),
            Error::Poisoned { why } => write!(f, "no more writes after an earlier failure: {why}"),
            Error::Config { why } => write!(f, "{why}"),
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

/// The page changed under an optimistic reader: what was read means nothing; read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict;

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the page changed while it was being read")
    }
}

impl std::error::Error for Conflict {}
