//! The embeddable storage engine.

pub mod api;
pub use api::*;
