//! MySQL semantics: text in, rows out. Knows nothing of sockets or packets.

pub mod error;
pub mod result;
pub mod session;

pub use error::SqlError;
pub use result::{ColumnMeta, Completion, ResultSink};
pub use session::{Instance, Prepared, Session};
