//! Runs plans.
//!
//! Rows are pushed. [`access`] finds the rows of a table, and [`join`] does that for one table inside of
//! another. The stage behind takes each joined row as a [`RowConsumer`]: a projection, a grouping or a sort.
//! Rows of the result go to a [`RowSink`]. No memory is allocated for a row that is only projected.

pub(crate) mod access;
mod change;
mod group;
mod hash;
mod join;
mod joined;
mod key_set;
pub(crate) mod key_value;
mod lock;
mod lookups;
mod merge;
mod output;
mod partitions;
mod parts;
mod query;
mod recursive;
mod seen;
mod set_operations;
mod sort;
mod window;

pub(crate) use access::Scratch;
pub(crate) use change::candidates;
pub(crate) use joined::{FirstRows, Joining, join_to_change};
pub(crate) use lock::{RowLocks, WriterLocks};
pub(crate) use output::{result_row, send_rows};
pub(crate) use query::{
    DerivedRows, Done, Runtime, SessionServices, named_columns, number_behind, run_to_client, run_to_spool,
    with_subqueries,
};

use crate::SqlError;
use crate::expr::{Context, Row};
use types::ValueRef;

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// Takes joined rows.
pub(crate) trait RowConsumer {
    /// # Errors
    /// Of evaluating expressions, and of the sink.
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError>;
}

/// Takes rows of a result.
pub(crate) trait RowSink {
    /// # Errors
    /// The sink's own.
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError>;

    /// True if quotients are to keep the digits that only further arithmetic and columns need.
    fn wants_all_digits(&self) -> bool {
        false
    }
}

/// An empty vector that takes over the memory of `used`. The lifetimes of the values may differ. Nothing is
/// allocated, because the iterator is collected in place.
#[inline]
pub(crate) fn recycle<'a, 'b>(mut used: Vec<ValueRef<'a>>) -> Vec<ValueRef<'b>> {
    used.clear();
    used.into_iter().map(|_| ValueRef::Null).collect()
}
