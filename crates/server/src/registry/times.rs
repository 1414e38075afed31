//! How long commands take: a histogram that only its connection writes.

use base::sync::atomic::{AtomicU64, Ordering::Relaxed};

const BOUNDS: usize = 22;

/// Counts of commands by the time that they took.
#[derive(Debug, Default)]
pub(crate) struct CommandTimes {
    /// For each bound, the number of commands that took no longer than it and longer than the bound before.
    /// The last count is of commands that took longer than all bounds.
    counts: [AtomicU64; BOUNDS + 1],
    sum_micros: AtomicU64,
}

impl CommandTimes {
    /// The bounds, in microseconds.
    pub(crate) const BOUNDS_MICROS: [u64; BOUNDS] = [
        5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
        1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
    ];

    /// Counts a command. Only the connection's own thread may call this.
    #[inline]
    pub(crate) fn add(&self, micros: u64) {
        let place = CommandTimes::BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        for (counter, more) in [(&self.counts[place], 1), (&self.sum_micros, micros)] {
            // ORDER: statistics; no other thread writes.
            counter.store_owned(counter.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }

    /// Adds what another histogram has counted. Several threads may call this at a time.
    pub(crate) fn add_all(&self, other: &CommandTimes) {
        for (counter, more) in self.counts.iter().zip(&other.counts) {
            // ORDER: statistics, here and below.
            counter.fetch_add(more.load(Relaxed), Relaxed);
        }
        self.sum_micros.fetch_add(other.sum_micros(), Relaxed);
    }

    /// The counts: one more than there are bounds.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Relaxed)).collect()
    }

    pub(crate) fn sum_micros(&self) -> u64 {
        self.sum_micros.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_what_took_no_longer_and_sums_are_those_of_all() {
        let (times, all) = (CommandTimes::default(), CommandTimes::default());
        [0, 5, 6, 1_000, 60_000_000].into_iter().for_each(|micros| times.add(micros));
        all.add_all(&times);
        all.add_all(&times);
        let counts = all.counts();
        assert_eq!((counts[0], counts[1], counts[7], counts[BOUNDS]), (4, 2, 2, 2));
        assert_eq!(all.sum_micros(), 2 * 60_001_011);
        assert!(CommandTimes::BOUNDS_MICROS.is_sorted());
    }
}
