//! `latchwork torture`: tries to make the engine lose something.
//!
//! [`simulation`] runs random histories on a simulated device, with a model beside them. A history is cut at
//! many of its events; each cut is recovered, compared with the model, and examined. [`command`] runs
//! histories until it is enough, and says what was found.

#![warn(unreachable_pub)]

mod arguments;
mod report;
pub mod simulation;

mod command;

pub use command::main;
