//! Clients that run a workload against a target and count the answers.

pub(crate) mod builtin;
mod exchange;
pub(crate) mod oltp;
pub(crate) mod socket;
pub(crate) mod sysbench;
pub(crate) mod together;
pub(crate) mod workers;

use crate::workload::Workload;
use std::time::Duration;

/// Which clients drive a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DriverKind {
    /// The lab's own.
    Builtin,
    /// The distribution's sysbench, unmodified.
    Sysbench,
}

impl DriverKind {
    /// The name for `--driver`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DriverKind::Builtin => "builtin",
            DriverKind::Sysbench => "sysbench",
        }
    }
}

/// When a sample counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub warmup: Duration,
    pub measure: Duration,
    /// The round that the sample belongs to.
    pub round: u32,
}

impl Load {
    pub(crate) fn window(&self) -> Window {
        Window { warmup: self.warmup, measure: self.measure, round: self.round }
    }
}

/// One sample's load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub workload: Workload,
    /// Number of clients. Each has one query under way at any time.
    pub clients: u32,
    pub warmup: Duration,
    pub measure: Duration,
    pub seed: u64,
    pub round: u32,
}
