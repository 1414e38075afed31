//! The record of one worker: queries, rows, and an HDR histogram of latencies.

use crate::results::Latency;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Latencies are recorded to 1 % of their size, between a nanosecond and this.
const NANOSECONDS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub queries: u64,
    pub rows: u64,
    latencies: Histogram<u32>,
}

impl Default for Recorder {
    fn default() -> Recorder {
        let latencies = Histogram::new_with_bounds(1, NANOSECONDS_MAX, SIGNIFICANT_DIGITS);
        Recorder { queries: 0, rows: 0, latencies: latencies.expect("constant bounds are valid") }
    }
}

impl Recorder {
    pub(crate) fn query(&mut self, latency: Duration, rows: u64) {
        self.queries += 1;
        self.rows += rows;
        self.latencies.saturating_record(latency.as_nanos().min(u128::from(u64::MAX)) as u64);
    }

    pub(crate) fn merge(&mut self, other: &Recorder) {
        self.queries += other.queries;
        self.rows += other.rows;
        self.latencies.add(&other.latencies).expect("recorders have the same bounds");
    }

    /// Adds `count` queries of one latency, from the histogram of another driver.
    pub(crate) fn bucket(&mut self, latency: Duration, count: u32) {
        self.latencies.saturating_record_n(latency.as_nanos().min(u128::from(u64::MAX)) as u64, count);
    }

    pub(crate) fn latency(&self) -> Option<Latency> {
        if self.latencies.is_empty() {
            return None;
        }
        let at = |quantile| self.latencies.value_at_quantile(quantile) as f64 / 1_000.0;
        Some(Latency {
            mean: self.latencies.mean() / 1_000.0,
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.latencies.max() as f64 / 1_000.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_merged_workers_are_those_of_all_their_queries() {
        let mut all = Recorder::default();
        for worker in 0..4u64 {
            let mut recorder = Recorder::default();
            for step in 1..=250 {
                recorder.query(Duration::from_micros(worker * 250 + step), 10);
            }
            all.merge(&recorder);
        }
        assert_eq!((all.queries, all.rows), (1_000, 10_000));
        let latency = all.latency().unwrap();
        for (measured, truth) in [(latency.p50, 500.0), (latency.p99, 990.0), (latency.max, 1_000.0)] {
            assert!((measured / truth - 1.0f64).abs() < 0.01, "{measured} for {truth}");
        }
        assert_eq!(Recorder::default().latency(), None);
    }
}
