//! Changing rows: transactions that write, what they log and how it is taken back, and purge.
//!
//! - [`core`]: what all of it shares.
//! - [`active`], [`undo`], [`under_way`]: a write transaction and what it has changed. [`changes`]: the list
//!   of that. [`log`]: its records.
//! - [`row`], [`bulk`]: changes of rows and of their index entries, one by one and many at once.
//! - [`rollbacks`]: transactions that are taken back behind the client.
//! - [`purge`]: removes what nobody sees any more. [`backlog`]: what it has not come to.
//! - [`scratch`]: files for what of these lists is too much for memory.

pub(crate) mod active;
pub(crate) mod backlog;
pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod core;
pub(crate) mod log;
pub(crate) mod purge;
pub(crate) mod rollbacks;
pub(crate) mod row;
pub(crate) mod scratch;
pub(crate) mod under_way;
pub(crate) mod undo;
