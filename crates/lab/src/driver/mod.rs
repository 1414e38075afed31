//! Who asks: clients that run a workload against a target and count what comes back.

pub mod builtin;
mod exchange;
pub mod oltp;
pub mod socket;
pub mod sysbench;
pub mod together;
pub mod workers;

use crate::workload::Workload;
use std::time::Duration;

/// When a sample counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    pub warmup: Duration,
    pub measure: Duration,
    /// Which pass over all cells the sample belongs to.
    pub round: u32,
}

impl Load {
    pub fn window(&self) -> Window {
        Window { warmup: self.warmup, measure: self.measure, round: self.round }
    }
}

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
