//! Transactions: ids and the clock, snapshots, row locks, old versions of rows.
//!
//! Keys are bytes and tables are numbers. What they stand for only the engine knows. The README beside this
//! crate's manifest has the terms, the access rules, the latch order and the reasons.
//!
//! ```
//! use latchwork_transactions::{Config, Found, LockMode, Patience, Transactions};
//! # #[cfg(feature = "shuttle")]
//! # fn main() {}
//! # #[cfg(not(feature = "shuttle"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let transactions = Transactions::new(&Config::default());
//! let (mut reader, mut writer) = (transactions.session(), transactions.session());
//!
//! let mut first = writer.begin()?;
//! first.lock(1, b"key", LockMode::Exclusive, Patience::None)?;
//! let stamp = first.id();
//! assert!(!reader.open().sees(stamp));
//! first.commit();
//! assert!(!reader.view().expect("open").sees(stamp), "a snapshot does not change");
//! assert!(reader.open().sees(stamp));
//!
//! // Before the row on the page is replaced, what it was is kept for those who still need it.
//! let mut second = writer.begin()?;
//! second.add_version(1, b"key", stamp, Some(b"old cell"[..].into()));
//! let found = reader.open().find_version(1, b"key")?;
//! assert_eq!(found, Found::Row(b"old cell"[..].into()));
//! second.commit();
//!
//! reader.close();
//! transactions.purge();
//! assert_eq!(transactions.version_bytes(), 0);
//! # Ok(())
//! # }
//! ```

/// The table number under which definitions of tables are locked. They are not rows: waits for them are not
/// counted as waits for rows.
pub const DEFINITIONS: u64 = u64::MAX;

mod config;
mod error;
mod files;
mod gate;
mod interim;
mod locks;
mod registry;
mod session;
mod status;
mod transaction;
mod transactions;
mod versions;

pub use config::{CHUNK_IDS, Config};
pub use error::{IdsExhausted, LockError, SnapshotTooOld};
pub use files::{VersionFile, VersionFiles};
pub use gate::{GateCounts, TICKETS};
pub use locks::{Blocker, LockMode, LockUsage, Patience, PendingLock, WaitTotals, Wanted};
pub use registry::Snapshot;
pub use session::{Interrupter, Session, UnderWay, View};
pub use status::StatusUsage;
pub use transaction::{LockMark, Transaction};
pub use transactions::{Horizon, Transactions, Usage};
pub use versions::{Found, Spilled, SpilledUsage};
