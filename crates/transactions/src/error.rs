//! The errors of transactions.

use std::fmt;

/// Why a lock was not given, or the end of a transaction not awaited. The transaction goes on existing; after
/// [`LockError::Deadlock`] the caller rolls it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockError {
    /// The transaction waited in a circle with others and was chosen to give way (MySQL's 1213).
    Deadlock,
    /// The time limit ran out (1205).
    LockWaitTimeout,
    /// It would have had to wait and was told not to: NOWAIT fails the statement, SKIP LOCKED skips the row.
    WouldBlock,
    /// The session was killed, or its statement (1317).
    Interrupted,
    /// Locks take too much memory (1206).
    TableFull,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockError::Deadlock => "deadlock found when trying to get lock",
            LockError::LockWaitTimeout => "lock wait timeout exceeded",
            LockError::WouldBlock => "the row is locked",
            LockError::Interrupted => "the wait for a lock was interrupted",
            LockError::TableFull => "locks take too much memory",
        })
    }
}

impl std::error::Error for LockError {}

/// The snapshot was cancelled because the old versions it needed took too much memory. Close it; what was
/// read through it since cannot be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotTooOld;

impl fmt::Display for SnapshotTooOld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the snapshot is too old: its versions exceeded the memory for old versions")
    }
}

impl std::error::Error for SnapshotTooOld {}

/// All 2^48 ids have been given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdsExhausted;

impl fmt::Display for IdsExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no transaction ids are left")
    }
}

impl std::error::Error for IdsExhausted {}
