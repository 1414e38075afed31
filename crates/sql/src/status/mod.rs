//! Status counters: what SHOW STATUS counts.
//!
//! Each session counts in cells that only it writes; SHOW GLOBAL STATUS sums them up. So counting costs no
//! shared write.

mod counters;

pub(crate) use counters::{Counter, SessionCounters, StatusRegistry};
