//! MySQL semantics: text in, rows out. Knows nothing of sockets or packets.
//!
//! The life of a statement: `dispatch` takes the bytes, the statement cache finds its plan by the shape of
//! the text, or the parser and the planner make one; the executor runs the plan and sends rows to a
//! [`ResultSink`]. The README of this crate names the layers and the functions on that way.

#![warn(unreachable_pub)]

pub mod accounts;
pub mod audit;
mod deadline;
mod definition;
mod dispatch;
mod error;
mod error_kind;
mod exec;
mod expr;
pub mod host;
mod locales;
mod locks;
mod memory;
mod names;
mod plan;
mod progress;
mod result;
mod session;
mod spill;
mod statements;
mod status;
mod text;
pub mod variables;
mod warning;

pub use dispatch::Fields;
pub use error::{ErrorKind, SqlError};
pub use progress::Progress;
pub use result::{Change, ColumnMeta, ColumnTraits, Completion, FileParts, ResultSink, ToldAs};
pub use session::{
    BulkParam, Compression, Instance, KeptRows, ParameterRows, Prepared, RowKeeper, Session,
    StatementFigures, with_values,
};
pub use statements::admin::accounts::open_accounts;
/// For the fuzz targets, which feed it any bytes.
pub use text::parse;
pub use warning::{Level, Warning, Warnings};
