//! Medians and distribution-free confidence intervals.
//!
//! Throughput samples of a busy machine are neither normal nor many, so nothing here assumes a
//! distribution. The interval of a median comes from order statistics: of `n` independent samples, the
//! number below the true median is binomial(n, 1/2), hence the interval from the `k`-th smallest to the
//! `k`-th largest covers the median with probability `1 - 2 * P(B < k)`. With three samples the widest
//! such interval covers it with 75 %, with five 94 %, with six 97 %; the interval says which.

pub(crate) mod student;

/// The confidence of an interval, if there are enough samples.
pub(crate) const CONFIDENCE_GOAL: f64 = 0.95;

/// A value, with the interval that contains the true value with probability `confidence`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// The confidence of `low..=high`, 0 to 1. With few samples it is below [`CONFIDENCE_GOAL`].
    pub confidence: f64,
    pub samples: usize,
}

impl Estimate {
    /// The median of `values` and its narrowest symmetric order-statistic interval that reaches
    /// [`CONFIDENCE_GOAL`], or the whole range if none does. `None` without values or with a NaN.
    pub(crate) fn of(values: &[f64]) -> Option<Estimate> {
        let sorted = sorted(values)?;
        let count = sorted.len();
        let (rank, confidence) = interval_rank(count);
        Some(Estimate {
            median: median_of_sorted(&sorted),
            low: sorted[rank],
            high: sorted[count - 1 - rank],
            confidence,
            samples: count,
        })
    }

    /// The half-width of the interval relative to the median, as a fraction.
    pub(crate) fn relative_spread(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / 2.0 / self.median.abs() }
    }
}

/// The median; of an even number of values, the mean of the middle two. `None` without values or with a NaN.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    sorted(values).map(|sorted| median_of_sorted(&sorted))
}

/// How many times as large as `base` something is. The two values of a pair come from the same round, so a
/// disturbance of that round slowed down both. The result is the median of the rounds' ratios, with its
/// interval.
pub(crate) fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let ratios: Vec<f64> =
        pairs.iter().filter(|(_, base)| *base > 0.0).map(|(measured, base)| measured / base).collect();
    Estimate::of(&ratios)
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// How many values to leave out at each end, and the probability that the rest covers the median.
fn interval_rank(count: usize) -> (usize, f64) {
    // P(B <= rank) for B ~ binomial(count, 1/2), term by term from 2^-count; beyond a thousand samples
    // the first term underflows to 0, which only makes the interval wider than it need be.
    let mut term = 0.5f64.powi(count.min(1_000) as i32);
    let mut below = 0.0;
    let mut best = (0, (1.0 - 2.0 * term).max(0.0));
    for rank in 0..count.div_ceil(2) {
        below += term;
        let coverage = 1.0 - 2.0 * below;
        if coverage < CONFIDENCE_GOAL {
            break;
        }
        best = (rank, coverage);
        term *= (count - rank) as f64 / (rank + 1) as f64;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_samples_give_their_range_at_75_percent() {
        let estimate = Estimate::of(&[30.0, 10.0, 20.0]).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high), (20.0, 10.0, 30.0));
        assert_eq!(estimate.confidence, 0.75);
        assert_eq!(estimate.relative_spread(), 0.5);
    }

    #[test]
    fn one_sample_has_no_confidence_at_all() {
        let estimate = Estimate::of(&[7.0]).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high, estimate.confidence), (7.0, 7.0, 7.0, 0.0));
    }

    #[test]
    fn many_samples_leave_their_extremes_out() {
        // The textbook table: n = 10 takes the 2nd to the 9th at 97.9 %, n = 20 the 6th to the 15th at 95.9
        // %.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let estimate = Estimate::of(&values).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high), (5.5, 2.0, 9.0));
        assert!((estimate.confidence - 0.9785).abs() < 0.0001);
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let estimate = Estimate::of(&values).unwrap();
        assert_eq!((estimate.low, estimate.high), (6.0, 15.0));
        assert!((estimate.confidence - 0.9586).abs() < 0.0001);
    }

    #[test]
    fn the_interval_covers_a_skewed_distributions_median_as_often_as_it_says() {
        // Exponential samples from a fixed sequence; the true median is ln 2.
        let mut random = base::random::Random::new(303, 0);
        let mut covered = 0;
        for _ in 0..2_000 {
            let values: Vec<f64> = (0..9).map(|_| -(1.0 - random.unit()).ln()).collect();
            let estimate = Estimate::of(&values).unwrap();
            covered += u32::from((estimate.low..=estimate.high).contains(&std::f64::consts::LN_2));
        }
        // 96.1 % promised; the sequence is fixed, so this never flickers.
        assert!((1_890..=1_960).contains(&covered), "{covered}");
    }

    #[test]
    fn a_ratio_compares_within_a_round() {
        // The machine was twice as fast in the second round; the ratio is 1.5 all the same.
        let estimate = paired_ratio(&[(150.0, 100.0), (300.0, 200.0), (75.0, 50.0)]).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high), (1.5, 1.5, 1.5));
        assert!(paired_ratio(&[(1.0, 0.0)]).is_none());
    }

    #[test]
    fn nothing_and_nan_have_no_median() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }
}
