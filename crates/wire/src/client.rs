//! The client's side: commands out, responses in.
//!
//! [`ResponseScanner`] goes over a response with the least work and only counts. It is for load drivers with
//! many connections a thread. [`Connection`] is a blocking client over anything that reads and writes, for
//! tests and tools.

mod connection;
mod encode;
mod encryption;
mod login;
mod scanner;

pub use connection::{
    ClientError, ConnectOptions, Connection, OwnedColumn, Prepared, QueryResult, Report, Value,
};
pub use encode::{close_statement, execute, execute_except, long_data, prepare, query, simple};
pub use encryption::{CertificateCheck, Encrypted, Encryption};
pub use scanner::{ResponseKind, ResponseScanner, ScanError, Summary};
