//! The embeddable storage engine.

pub mod api;
pub mod node;
pub use api::*;
