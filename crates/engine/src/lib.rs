//! The embeddable storage engine: tables of rows in B+trees, over one page cache.

mod bulk;
mod catalogue;
mod check;
mod control;
mod core;
mod database;
mod definition;
mod error;
mod latch;
pub mod node;
mod overflow;
mod sort;
mod statement;
mod table;
mod tablespace;
mod tree;

#[cfg(test)]
mod testing;

pub use check::{CheckReport, Finding, check};
pub use database::Database;
pub use definition::{
    CacheOptions, Direction, HitPath, IndexDef, KeyList, KeyRange, Options, RowVisitor, TableDef,
};
pub use error::{Error, Result};
pub use pagecache::{PageCache, Reconfigure, WriteBack};
pub use statement::WriteStatement;
pub use table::Table;
pub use table::lookup::Batch;
pub use table::scan::Scan;
