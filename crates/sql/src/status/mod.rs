//! Status counters: what SHOW STATUS counts.
//!
//! Each session counts in cells that only it writes, so that counting costs no shared write. SHOW GLOBAL
//! STATUS adds the cells of all sessions.

mod counters;

pub(crate) use counters::{Counter, SessionCounters, StatusRegistry};
