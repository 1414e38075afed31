//! What can go wrong.

use base::IndexId;
use std::fmt;
use std::path::PathBuf;
use transactions::LockError;

#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    Io(std::io::Error),
    /// A page that is not what it should be, with where and why.
    Corrupt {
        path: PathBuf,
        page: u32,
        lsn: u64,
        why: String,
    },
    /// A unique index already has the key. The index's position: 0 = PRIMARY, n = `indexes[n - 1]`.
    DuplicateKey {
        index: IndexId,
    },
    TableExists,
    NoSuchTable,
    DatabaseExists,
    NoSuchDatabase,
    IndexExists,
    NoSuchIndex,
    /// The table was redefined while a scan was under way.
    TableChanged,
    RowTooLarge {
        bytes: usize,
        bytes_max: usize,
    },
    KeyTooLong {
        bytes: usize,
        bytes_max: usize,
    },
    /// The log does not hold what the data directory needs in order to start.
    Log {
        why: String,
    },
    AlreadyOpen {
        path: PathBuf,
    },
    WrongFormat {
        path: PathBuf,
        why: String,
    },
    /// The transaction waited in a circle with others and was chosen to give way: it has to be rolled back.
    Deadlock,
    /// The transaction means to change or lock a row that another has changed since its snapshot, and
    /// [`crate::Session::set_first_committer_wins`] forbids it: it has to be rolled back.
    RecordChanged {
        table: String,
    },
    /// A lock was not to be had within the session's limit.
    LockWaitTimeout,
    /// The row is locked, and the statement does not wait.
    WouldBlock,
    /// The session's wait was interrupted.
    Interrupted,
    /// Row locks take too much memory: the transaction has to be rolled back.
    TooManyLocks,
    /// The snapshot was given up because the old versions that it needed took too much memory.
    SnapshotTooOld,
    /// All transaction ids have been given out.
    IdsExhausted,
    /// The disk is full. Nothing that was acknowledged is lost.
    Full,
    /// AUTO_INCREMENT ran out of numbers.
    AutoIncrementExhausted,
    /// The engine refuses writes after a failed write or sync, and says which.
    ReadOnly {
        why: String,
    },
    /// An option has a value that it cannot have.
    BadOption {
        why: String,
    },
    /// There is no cache of the name, or it has no size.
    NoSuchCache,
    /// The default cache cannot be dropped.
    DefaultCache,
    /// The database has been closed.
    Closed,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(source) => write!(f, "input/output error: {source}"),
            Error::Corrupt { path, page, lsn, why } => {
                write!(f, "page {page} of '{}' is corrupt: {why} (LSN {lsn})", path.display())
            }
            Error::DuplicateKey { index } => write!(f, "duplicate key in index {index}"),
            Error::TableExists => write!(f, "the table exists already"),
            Error::NoSuchTable => write!(f, "no such table"),
            Error::DatabaseExists => write!(f, "the database exists already"),
            Error::NoSuchDatabase => write!(f, "no such database"),
            Error::IndexExists => write!(f, "the index exists already"),
            Error::NoSuchIndex => write!(f, "no such index"),
            Error::TableChanged => write!(f, "the table was redefined meanwhile"),
            Error::RowTooLarge { bytes, bytes_max } => {
                write!(f, "a row of {bytes} bytes, the largest has {bytes_max}")
            }
            Error::KeyTooLong { bytes, bytes_max } => {
                write!(f, "a key of {bytes} bytes, the longest has {bytes_max}")
            }
            Error::Log { why } => write!(f, "the log is damaged: {why}"),
            Error::AlreadyOpen { path } => {
                write!(f, "the data directory '{}' is in use by another process", path.display())
            }
            Error::WrongFormat { path, why } => {
                write!(f, "'{}' is not a data directory of this version: {why}", path.display())
            }
            Error::Deadlock => write!(f, "{}", LockError::Deadlock),
            Error::RecordChanged { table } => {
                write!(f, "a row of '{table}' was changed after the transaction's snapshot")
            }
            Error::LockWaitTimeout => write!(f, "{}", LockError::LockWaitTimeout),
            Error::WouldBlock => write!(f, "{}", LockError::WouldBlock),
            Error::Interrupted => write!(f, "{}", LockError::Interrupted),
            Error::TooManyLocks => write!(f, "{}", LockError::TableFull),
            Error::SnapshotTooOld => write!(f, "{}", transactions::SnapshotTooOld),
            Error::IdsExhausted => write!(f, "{}", transactions::IdsExhausted),
            Error::Full => write!(f, "the disk is full"),
            Error::AutoIncrementExhausted => write!(f, "AUTO_INCREMENT ran out of numbers"),
            Error::ReadOnly { why } => write!(f, "writes are refused: {why}"),
            Error::BadOption { why } => write!(f, "bad option: {why}"),
            Error::NoSuchCache => write!(f, "no such cache"),
            Error::DefaultCache => write!(f, "the default cache cannot be dropped"),
            Error::Closed => write!(f, "the database is closed"),
        }
    }
}

impl Error {
    /// True if the error may come of a table whose file was replaced (TRUNCATE, DROP INDEX) under the reader.
    pub(crate) fn may_be_stale(&self) -> bool {
        matches!(self, Error::NoSuchTable | Error::Corrupt { .. })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(source) => Some(source),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(source: std::io::Error) -> Error {
        if is_disk_full(&source) { Error::Full } else { Error::Io(source) }
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Error {
        match error {
            LockError::Deadlock => Error::Deadlock,
            LockError::LockWaitTimeout => Error::LockWaitTimeout,
            LockError::WouldBlock => Error::WouldBlock,
            LockError::Interrupted => Error::Interrupted,
            LockError::TableFull => Error::TooManyLocks,
        }
    }
}

impl From<wal::Error> for Error {
    fn from(error: wal::Error) -> Error {
        use wal::Error as Log;
        match error {
            Log::Io { path, source } => {
                let why = format!("'{}': {source}", path.display());
                Error::from(std::io::Error::new(source.kind(), why))
            }
            Log::Poisoned { why } => Error::ReadOnly { why },
            Log::WrongFormat { path, why } => Error::WrongFormat { path, why },
            Log::Config { why } => Error::BadOption { why },
            Log::Missing { .. } | Log::Checkpoint { .. } => Error::Log { why: error.to_string() },
            other => Error::Io(std::io::Error::other(other.to_string())),
        }
    }
}

impl From<transactions::SnapshotTooOld> for Error {
    fn from(_: transactions::SnapshotTooOld) -> Error {
        Error::SnapshotTooOld
    }
}

impl From<transactions::IdsExhausted> for Error {
    fn from(_: transactions::IdsExhausted) -> Error {
        Error::IdsExhausted
    }
}

impl From<pagecache::Error> for Error {
    fn from(error: pagecache::Error) -> Error {
        use pagecache::Error as Cache;
        match error {
            Cache::Io { path, page, source } => {
                let page = page.map(|page| format!(" page {}", page.page)).unwrap_or_default();
                let why = format!("'{}'{page}: {source}", path.display());
                Error::from(std::io::Error::new(source.kind(), why))
            }
            Cache::Corrupt { path, page, lsn, why } => Error::Corrupt { path, page: page.page.0, lsn, why },
            Cache::NotAttached { .. } => Error::NoSuchTable,
            Cache::Poisoned { why } => Error::ReadOnly { why },
            Cache::Config { why } => Error::BadOption { why },
            other => Error::Io(std::io::Error::other(format!("{other:?}"))),
        }
    }
}

/// True if the device, or the user's share of it, has no room left.
pub(crate) fn is_disk_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge | ErrorKind::WriteZero
    )
}
