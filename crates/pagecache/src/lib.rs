//! The page cache: segments, frames, two hit paths, replacement, write-back.
//!
//! The README beside this crate's manifest has the terms, the access rules, the latch order and the reasons.
//!
//! ```
//! use base::{FileId, PageId, PageNo};
//! use latchwork_pagecache::{CacheConfig, Pool};
//! use vfs::{Create, MemVfs, Vfs};
//!
//! # #[cfg(feature = "shuttle")]
//! # fn main() {}
//! # #[cfg(not(feature = "shuttle"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cache = Pool::new(CacheConfig::new(1 << 20, 4096))?;
//! let file = MemVfs::new().open("table".as_ref(), Create::New)?;
//! cache.attach(FileId(1), "table".into(), file)?;
//! let id = PageId::new(FileId(1), PageNo(0));
//!
//! let mut guard = cache.create(id)?;
//! guard.page_mut().set_u64(64, 4711);
//! drop(guard);
//!
//! // A reader copies out, validates, and only then believes. After some conflicts it takes a latch.
//! let value = loop {
//!     let guard = cache.read(id)?;
//!     let value = guard.page().u64_at(64);
//!     if guard.validate().is_ok() {
//!         break value;
//!     }
//! };
//! assert_eq!(value, 4711);
//! cache.flush_file(FileId(1))?;
//! # Ok(())
//! # }
//! ```

mod backend;
mod budget;
mod caches;
mod cold_pages;
mod compressed;
mod config;
mod counters;
mod crew;
mod doublewrite;
mod error;
mod evict;
mod files;
mod find;
pub mod frames;
mod free_frames;
mod ghosts;
mod glance;
mod guard;
mod hints;
mod hit;
mod index;
mod latch;
mod local;
mod outgoing;
mod pace;
pub mod page;
mod page_header;
mod park;
mod permit;
mod pool;
mod read_ahead;
mod reconfigure;
pub mod replacement;
mod segment;
mod side_by_side;
mod signal;
mod sizing;
mod state;
mod status;
mod write_back;

pub use budget::{Budget, Share, ShareStatus};
pub use caches::{CacheChange, CachedFile, Caches, DEFAULT_CACHE, NamedCache, cache_bytes_max};
pub use config::{
    CacheConfig, CacheSettings, Detach, HitPath, IoConfig, Limits, Reconfigure, WriteAhead, WriteBack,
    default_segments,
};
pub use counters::Counters;
pub use doublewrite::{BLOCK as DOUBLEWRITE_BLOCK, newest_lsn, repair};
pub use error::{Conflict, Error};
pub use files::{FileFormat, unseal};
pub use glance::{Glance, Glances, Whereabouts};
pub use guard::{ReadGuard, WriteGuard};
pub use hints::{HINT_WORDS, Hints};
pub use page_header::header;
pub use permit::FramePermit;
pub use pool::Pool;
pub use read_ahead::loads_of_this_thread;
pub use sizing::{FRAMES_MIN, size_for_frames};
pub use status::{Blocks, CacheStatus, SegmentStatus};
