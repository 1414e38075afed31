//! Random histories of a whole engine on a simulated device, with a model beside them.
//!
//! Everything happens on one thread and is drawn from a seed, so that a seed is the whole story.
//!
//! - [`model`]: what there should be.
//! - [`schema`]: random definitions, and rows as the engine has them.
//! - [`contents`]: what there is.
//! - [`world`]: the database, the clients and the promises of one history.
//! - [`rows`] and [`definitions`]: what clients do.
//! - [`history`]: the loop, the faults of the device, the restarts.

mod contents;
mod definitions;
mod history;
mod model;
mod rows;
mod schema;
mod world;

pub use history::{Fault, History, Tally};
