//! The page cache: segments, frames, two hit paths, replacement, write-back.
//!
//! The README beside this crate's manifest has the terms, the access rules and the latch order.

mod arena;
mod cache;
mod config;
mod error;
mod evict;
mod files;
pub mod frames;
mod guard;
mod index;
mod local;
pub mod page;
mod park;
mod permit;
mod pool;
mod reconfigure;
pub mod replacement;
mod segment;
mod state;
mod status;
mod write_back;

pub use cache::{FRAMES_MIN, PageCache};
pub use config::{CacheConfig, Detach, HitPath, Limits, Reconfigure, WriteBack, default_segments};
pub use error::{Conflict, Error};
pub use files::header;
pub use guard::{ReadGuard, WriteGuard};
pub use permit::FramePermit;
pub use status::{Blocks, CacheStatus, Counters, SegmentStatus};
