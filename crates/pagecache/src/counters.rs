//! The counters of a pool, by segment.

use crate::local::SEGMENTS_MAX;
use base::sync::atomic::AtomicU64;

/// Counters that all threads share. Each counts something that costs far more than the count: a device
/// access, a wait for a latch, a failed attempt.
#[derive(Debug, Default)]
pub(crate) struct SegmentCounters {
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub latch_waits: AtomicU64,
    pub conflicts: AtomicU64,
    pub fallbacks: AtomicU64,
}

/// Values of counters. Pages are called blocks where MyISAM's variables do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Pages asked for: every `read`, `read_shared`, `write`, and successful `try_read_cached` and
    /// `Glances::look`.
    pub read_requests: u64,
    /// Pages read from the device.
    pub reads: u64,
    /// Times a page was changed: exclusive guards that were written through.
    pub write_requests: u64,
    /// Pages written to the device.
    pub writes: u64,
    /// Times a thread had to wait for a segment's mutex.
    pub latch_waits: u64,
    /// Optimistic reads and upgrades that met a change.
    pub conflicts: u64,
    /// Optimistic reads that took a latch in the end.
    pub fallbacks: u64,
}

impl Counters {
    pub(crate) fn minus(self, base: Counters) -> Counters {
        Counters {
            read_requests: self.read_requests - base.read_requests,
            reads: self.reads - base.reads,
            write_requests: self.write_requests - base.write_requests,
            writes: self.writes - base.writes,
            latch_waits: self.latch_waits - base.latch_waits,
            conflicts: self.conflicts - base.conflicts,
            fallbacks: self.fallbacks - base.fallbacks,
        }
    }

    pub(crate) fn plus(self, other: Counters) -> Counters {
        Counters {
            read_requests: self.read_requests + other.read_requests,
            reads: self.reads + other.reads,
            write_requests: self.write_requests + other.write_requests,
            writes: self.writes + other.writes,
            latch_waits: self.latch_waits + other.latch_waits,
            conflicts: self.conflicts + other.conflicts,
            fallbacks: self.fallbacks + other.fallbacks,
        }
    }
}

/// The values of the counters when they were last reset.
#[derive(Debug)]
pub(crate) struct Baseline(pub [Counters; SEGMENTS_MAX]);

impl Default for Baseline {
    fn default() -> Baseline {
        Baseline([Counters::default(); SEGMENTS_MAX])
    }
}
