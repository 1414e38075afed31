//! MySQL semantics: text in, rows out. Knows nothing of sockets or packets.
//!
//! The life of a statement: [`session`] takes the bytes, the statement cache finds its plan by the shape of the text,
//! or [`parse`] and the planner make one; the executor runs the plan and sends rows to a [`ResultSink`].

mod dispatch;
pub mod error;
mod error_kind;
pub mod exec;
pub mod expr;
pub mod host;
mod locks;
pub mod names;
pub mod plan;
pub mod result;
pub mod session;
mod statements;
pub mod status;
pub mod text;
pub mod variables;
pub mod warning;

pub use text::parse;

pub use error::{ErrorKind, SqlError};
pub use result::{ColumnMeta, Completion, FileParts, ResultSink};
pub use session::{Instance, Prepared, Session, StatementFigures, with_values};
pub use warning::{Level, Warning, Warnings};
