//! Who asks: clients that run a workload against a target and count what comes back.

pub mod builtin;
pub mod socket;
pub mod sysbench;
pub mod workers;

use crate::workload::Workload;
use std::time::Duration;

/// One sample's load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub workload: Workload,
    /// Clients, each with one query under way at any time.
    pub clients: u32,
    pub warmup: Duration,
    pub measure: Duration,
    pub seed: u64,
    pub round: u32,
}
