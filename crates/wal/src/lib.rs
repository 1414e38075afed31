//! The write-ahead log: one endless sequence of records, in numbered files.
//!
//! Many threads append at once: each reserves its place by one atomic addition and copies into a ring buffer.
//! A thread that needs its records on the device calls [`Log::flush`], and one of these threads writes and
//! syncs for all. After a crash a [`Reader`] gives the records up to the first that is not whole, and
//! [`Log::open_at`] goes on from there. What the records mean is their owner's business.
//!
//! The README beside this crate's manifest has the terms, the access rules, the latch order and the reasons.
//!
//! ```
//! use base::sync::Arc;
//! use latchwork_wal::{Checkpoint, Durability, FIRST_LSN, Log, LogConfig, Reader};
//! use vfs::MemVfs;
//!
//! # #[cfg(feature = "shuttle")]
//! # fn main() {}
//! # #[cfg(not(feature = "shuttle"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let vfs = Arc::new(MemVfs::new());
//! let config = LogConfig { file_size: 1 << 20, buffer_size: 1 << 16, ..LogConfig::new("log") };
//! let log = Log::create(vfs.clone(), config.clone())?;
//!
//! // A record has a kind and a payload, given in as many parts as is convenient.
//! let first = log.append(1, &[b"debit ", b"alice"])?;
//! let second = log.append(1, &[b"credit bob"])?;
//! assert_eq!(first.end, second.start);
//! log.flush(second.end, Durability::Synced)?;
//!
//! // The process stops here. The next one starts reading where the checkpoint says.
//! drop(log);
//! let from = Checkpoint::read(&*vfs, &config.dir)?.map_or(FIRST_LSN, |checkpoint| checkpoint.needed);
//! let mut reader = Reader::open(&*vfs, &config.dir, from)?;
//! let mut payloads = Vec::new();
//! while let Some(record) = reader.read_next()? {
//!     payloads.push(record.payload.to_vec());
//! }
//! assert_eq!(payloads, [&b"debit alice"[..], b"credit bob"]);
//!
//! let log = Log::open_at(vfs, config, reader.position())?;
//! assert_eq!(log.next_lsn(), second.end);
//! # Ok(())
//! # }
//! ```

mod append;
mod checkpoint;
mod config;
mod error;
mod files;
mod flush;
pub mod format;
mod log;
mod reader;
mod reserve;
mod ring;
mod slots;

pub use checkpoint::{Checkpoint, OWNER_WORDS};
pub use config::LogConfig;
pub use error::{Error, Result};
pub use flush::Durability;
pub use format::{FIRST_LSN, PAYLOAD_MAX};
pub use log::{Log, LogStatus};
pub use reader::{End, Reader, Record};
