//! Definitions: databases, tables and indexes.
//!
//! [`parse`] reads a statement into [`definition`]'s plain structures, [`build`] checks those and makes the
//! engine's `TableDef` of them, the others run it. What the engine does not need (defaults, comments, the engine's name
//! that was asked for) is kept by [`metadata`] in the definition's opaque bytes.

mod alter;
mod build;
mod copy;
mod database;
pub mod definition;
mod index;
pub mod metadata;
pub mod options;
mod parse;
mod select;
mod table;
#[cfg(test)]
mod tests;
mod types;

pub(crate) use alter::{alter_table, rebuild_table};
pub use build::literal;
pub(crate) use build::rank;
pub(crate) use database::{create_database, drop_database};
pub use types::type_text;

pub(crate) use index::{create_index, drop_index};
pub(crate) use parse::virtual_columns;
pub(crate) use table::{create_table, drop_table, rename_table, truncate_table};
