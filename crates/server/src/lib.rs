//! Sockets, sessions, authentication: MySQL clients in front, [`sql::Session`] behind.
//!
//! A connection is a thread: it reads a packet, runs the statement, writes the answer, all without handing anything
//! to another thread, so that a statement that waits for a device, a latch or a lock keeps nobody else waiting.
//! README.md of this crate has the figures behind that choice.

mod accounts;
mod command_line;
mod connection;
mod init_file;
mod listeners;
mod log;
mod metrics;
mod options;
mod registry;
mod server;
mod shared;
mod signals;
mod slow_log;

pub use accounts::{AccountError, Accounts};
pub use command_line::{SERVE_HELP, serve};
pub use listeners::Address;
pub use log::Log;
pub use options::{OptionProblem, Options};
pub use server::{Server, StartError, StopHandle};
