//! What sessions did and saw: transactions that append unique elements to lists and read lists.
//!
//! Lists make every history decidable: the last list of a key says in which order its elements were written, and
//! every list read says which of them it saw (Kingsbury and Alvaro, "Elle", 2020).

use crate::isolation::Level;
use std::collections::BTreeMap;

pub type Key = u32;
pub type Element = u64;
/// Lists by key. An empty list is a row that is not there.
pub type Lists = BTreeMap<Key, Vec<Element>>;

/// When something was asked of the server and when it had answered, on a clock that all sessions share.
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
    /// One statement, with all lists it could have given.
    Read {
        lists: Lists,
        /// FOR UPDATE or LOCK IN SHARE MODE.
        locking: bool,
    },
    Savepoint,
    /// To the last savepoint, which stays.
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
    /// Those that were answered without an error.
    pub deeds: Vec<(Deed, Interval)>,
    pub outcome: Outcome,
    /// Of COMMIT, of ROLLBACK, or of the statement that failed.
    pub end: Interval,
}
