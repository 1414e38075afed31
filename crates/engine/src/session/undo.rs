//! What a transaction has changed, so that it can be taken back: in memory, oldest first.

use crate::definition::KeyList;
use crate::table::row::{RowHeader, split_cell};
use base::sync::Arc;

/// A position in a transaction's changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Mark(pub usize);

/// One change.
#[derive(Debug)]
pub(crate) struct Change {
    /// The position of its table among the transaction's.
    pub table: usize,
    pub what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Row(RowChange),
    /// Rows inserted together, where there were none.
    Inserted(KeyList),
}

/// A row, as it was.
#[derive(Debug)]
pub(crate) struct RowChange {
    pub key: Box<[u8]>,
    /// The cell that was in the leaf; `None`: there was none.
    pub old: Option<Arc<[u8]>>,
    /// The transaction's first change of the row has left a version.
    pub has_version: bool,
    /// The row as it is now has not `old`'s overflow pages: they go with `old`.
    pub leaves_chain: bool,
    /// Index entries, or the row itself, have to go when nobody sees `old` any more.
    pub leaves_garbage: bool,
}

impl RowChange {
    /// The cell before, if it was that of a deleted row.
    pub fn deleted_before(&self) -> Option<(RowHeader, Arc<[u8]>)> {
        let old = self.old.as_ref()?;
        let (header, _) = split_cell(old)?;
        header.is_deleted().then(|| (header, old.clone()))
    }
}
