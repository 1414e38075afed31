//! Definitions: databases, tables and indexes.
//!
//! [`crate::definition`] reads a statement into plain structures. [`build`] checks them and makes the
//! engine's `TableDef`. The other modules run the statement. What the engine does not need (defaults,
//! comments, the name of the engine that was asked for) is stored by [`crate::definition::metadata`] in the
//! definition's opaque bytes.

mod alter;
mod build;
mod conditions;
mod copy;
mod database;
mod foreign_keys;
mod index;
mod select;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use alter::{alter_table, rebuild_table};
pub(crate) use database::{alter_database, create_database, drop_database};

pub(crate) use index::{create_index, drop_index};
pub(crate) use table::{create_table, drop_table, rename_table, truncate_table};
