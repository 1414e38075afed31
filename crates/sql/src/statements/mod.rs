//! What statements do. Each takes the session, the statement's words or its plan, and the sink.
//!
//! - [`show`]: SHOW and DESCRIBE, and the tables of `information_schema`.
//! - [`query`]: SELECT and UNION.
//! - [`dml`]: INSERT, REPLACE, LOAD DATA, UPDATE, DELETE.
//! - [`ddl`]: CREATE, ALTER, DROP, RENAME, TRUNCATE.
//! - [`admin`]: FLUSH, KILL, maintenance of tables, key caches.
//! - [`set`], [`transaction`], [`locks`]: SET, BEGIN to SAVEPOINT, LOCK TABLES.

pub(crate) mod admin;
pub(crate) mod ddl;
pub(crate) mod dml;
pub(crate) mod locks;
pub(crate) mod query;
pub(crate) mod set;
pub(crate) mod show;
pub(crate) mod transaction;
