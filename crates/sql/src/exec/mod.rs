//! Runs plans.
//!
//! Rows are pushed: [`access`] finds the rows of a table, [`join`] does so for one table inside of the other, and what
//! comes behind takes each joined row as a [`RowConsumer`]: a projection, a grouping, a sort. Rows of the result go to a
//! [`RowSink`]. Nothing is allocated for a row that is only projected.

pub mod access;
mod change;
mod group;
mod hash;
mod join;
mod key_set;
pub mod key_value;
mod lock;
mod lookups;
mod merge;
mod output;
mod query;
mod sort;

pub use access::{Scratch, Wants, for_each_row};
pub use change::{Candidates, candidates, with_read_slots};
pub use lock::{LockRows, RowLocks, WriterLocks};
pub use query::{
    DerivedRows, Done, LiteralText, Runtime, collect_statement, limits, named_columns, number_behind,
    run_statement,
};

use crate::SqlError;
use crate::expr::{Context, Row};
use types::ValueRef;

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    Continue,
    Stop,
}

/// Takes joined rows.
pub trait RowConsumer {
    /// # Errors
    /// Of evaluating expressions, and of the sink.
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError>;
}

/// Takes rows of a result.
pub trait RowSink {
    /// # Errors
    /// The sink's own.
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError>;
}

/// An empty vector with the memory of `used`. The lifetimes of the values may differ; nothing is allocated, because the
/// iterator is collected in place.
#[inline]
pub fn recycle<'a, 'b>(mut used: Vec<ValueRef<'a>>) -> Vec<ValueRef<'b>> {
    used.clear();
    used.into_iter().map(|_| ValueRef::Null).collect()
}
