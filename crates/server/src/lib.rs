//! Sockets, sessions, authentication: MySQL clients in front, [`sql::Session`] behind.
//!
//! A connection is a thread: it reads a packet, runs the statement and writes the answer, and hands nothing
//! to another thread. So a statement that waits for a device, a latch or a lock does not delay other
//! connections. README.md of this crate has the figures behind that choice.

mod accounts;
mod command_line;
mod connection;
mod descriptors;
mod init_file;
mod key_pair;
mod listeners;
mod log;
mod metrics;
mod options;
mod pid_file;
mod random;
mod registry;
mod server;
mod shared;
mod signals;
mod slow_log;
mod stream;
mod tls;

pub use command_line::serve;
pub use listeners::Address;
pub use log::Log;
pub use options::{OptionProblem, Options};
pub use server::{Server, StartError, StopHandle};
