//! Histories: what sessions did and saw. Their transactions append unique elements to lists, and read lists.
//!
//! Lists make every history decidable: the last list of a key shows in which order its elements were written,
//! and every list that was read shows which of them the reader saw (Kingsbury and Alvaro, "Elle", 2020).

use crate::isolation::Level;
use std::collections::BTreeMap;

pub type Key = u32;
pub type Element = u64;
/// Lists by key. An empty list stands for a missing row.
pub type Lists = BTreeMap<Key, Vec<Element>>;

/// When a request was sent and when its answer had come, on a clock that all sessions share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    pub asked: u64,
    pub answered: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deed {
    /// START TRANSACTION WITH CONSISTENT SNAPSHOT.
    Snapshot,
    Append {
        key: Key,
        element: Element,
    },
    /// One statement that reads several lists.
    Read {
        lists: Lists,
        /// FOR UPDATE or LOCK IN SHARE MODE.
        locking: bool,
    },
    Savepoint,
    /// Back to the last savepoint, which stays.
    RollBackToSavepoint,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Committed,
    RolledBack,
    /// The connection was lost before COMMIT was answered.
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    pub name: String,
    pub level: Level,
    /// With `innodb_snapshot_isolation`.
    pub first_committer_wins: bool,
    /// The deeds that were answered without an error.
    pub deeds: Vec<(Deed, Interval)>,
    pub outcome: Outcome,
    /// The time of COMMIT, of ROLLBACK, or of the statement that failed.
    pub end: Interval,
}
