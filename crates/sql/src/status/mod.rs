//! Status counters: what SHOW STATUS counts.
//!
//! Each session counts in cells that only it writes; SHOW GLOBAL STATUS sums them up. So counting costs no
//! shared write.

mod counters;
mod listing;

pub use counters::{Counter, SessionCounters, StatusRegistry};
pub(crate) use listing::{key_cache_shares, key_caches, reset_cache_counters, row_cache, rows};
