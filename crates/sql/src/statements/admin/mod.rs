//! Statements that maintain the server and its tables.
//!
//! - [`accounts`]: CREATE USER, GRANT and their like.
//! - [`server`]: FLUSH and KILL.
//! - [`maintenance`]: ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.
//! - [`key_caches`]: CACHE INDEX and LOAD INDEX.
//! - [`plugins`]: INSTALL and UNINSTALL.

pub(crate) mod accounts;
pub(crate) mod key_caches;
pub(crate) mod maintenance;
pub(crate) mod plugins;
pub(crate) mod server;
