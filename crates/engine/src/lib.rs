//! The embeddable storage engine: tables of rows in B+trees, over named page caches.
//!
//! ```
//! use latchwork_engine::{Database, Options, TableDef};
//! use types::{Column, ColumnType, KeyPart, ValueRef};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path().join("data");
//! let database = Database::open(&dir, Options { create: true, ..Options::default() })?;
//! database.create_database("town", b"")?;
//! let int = ColumnType::Int { bytes: 4, unsigned: false };
//! let table = database.create_table(TableDef {
//!     database: "town".into(),
//!     name: "numbers".into(),
//!     columns: vec![Column { name: "n".into(), column_type: int, nullable: false }],
//!     primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
//!     indexes: vec![],
//!     auto_increment: None,
//!     sql_metadata: vec![],
//!     ..TableDef::default()
//! })?;
//!
//! let mut row = Vec::new();
//! table.row_codec().encode(&[ValueRef::Int(42)], &mut row);
//! let mut session = database.session();
//! let mut statement = session.write()?;
//! statement.insert(&table, &row)?;
//! statement.commit()?;
//!
//! let mut key = Vec::new();
//! table.key_codec(base::IndexId(0)).encode_prefix(&[ValueRef::Int(42)], &mut key);
//! let mut found = Vec::new();
//! assert!(table.get(session.read()?.reader(), &key, &mut found)?);
//! assert_eq!(found, row);
//! drop(session);
//! database.close()?;
//! # Ok(())
//! # }
//! ```
//! A larger example: `examples/quick_start.rs`. Byte tables, access rules and latch order: the crate's
//! README.

#![warn(unreachable_pub)]

mod absent;
mod check;
mod counter;
mod database;
mod definition;
mod error;
mod examine;
mod format;
mod journal;
mod latch;
mod names;
mod preset;
mod ranges;
mod recovery;
mod session;
mod sort;
mod space;
mod table;
mod tree;
mod visibility;
mod work;
mod write;

/// A page of a tree, for the fuzzer, which feeds it arbitrary bytes.
pub mod node {
    pub use crate::format::node::{Node, NodeHeader, NodeMut};
}

#[cfg(test)]
#[cfg_attr(feature = "shuttle", expect(dead_code, reason = "the models use a part of it"))]
mod tests;

pub use check::check;
pub use database::{
    BuildStep, Building, DamagedTable, Database, Load, Loaded, LoadedRows, Preloaded, ScratchFile, Status,
};
pub use definition::{
    CacheOptions, Direction, FlushLog, FlushMethod, HitPath, IndexDef, IoOptions, KeyList, KeyRange,
    LatchImplementation, LogOptions, Options, PackKeys, RowVisitor, Statistics, TableDef,
};
pub use error::{Error, Result};
pub use examine::{CheckReport, Finding};
pub use format::layout::key_bytes_max;
pub use pagecache::{
    CacheChange, CacheSettings, CacheStatus, Caches, DEFAULT_CACHE, NamedCache, SegmentStatus, ShareStatus,
    WriteBack, cache_bytes_max,
};
pub use preset::{Preset, PresetSettings};
pub use recovery::Recovery;
pub use rowtier::Status as RowTierStatus;
pub use session::statement::{LockWait, ReadStatement, WriteStatement, Writer};
pub use session::{Isolation, Savepoint, Session};
pub use table::integers::IntegerColumns;
pub use table::lookup::Batch;
pub use table::scan::Scan;
pub use table::{Table, TableSize};
pub use transactions::{
    Blocker, GateCounts, Interrupter, LockMode, Patience, PendingLock, UnderWay, WaitTotals, Wanted,
};
pub use tree::{IntegerValues, Integers};
pub use visibility::{Reader, Readers};
pub use work::{Work, work};
pub use write::row::LockedRow;
pub use write::row::RowUpdate;
