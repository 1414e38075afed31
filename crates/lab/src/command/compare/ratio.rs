//! The ratio of two independent sets of samples, with its interval.

use crate::stats::student;

/// The confidence of every interval of a comparison.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// If a ratio is nearer to 1 than this, the verdict is no difference, however narrow the interval: runs
/// minutes apart on one machine differ by as much.
pub(crate) const INDIFFERENCE: f64 = 0.01;

/// How many times as good the second set is, and the interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ratio {
    pub ratio: f64,
    /// `None` if there is a single sample on either side.
    pub interval: Option<(f64, f64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Faster,
    Slower,
    NoDifference,
    /// One sample is no basis for any verdict.
    TooFew,
}

impl Verdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference to be told",
            Verdict::TooFew => "too few samples",
        }
    }
}

impl Ratio {
    /// Welch's interval on logarithms: the two runs are independent, their spreads may differ, and noise acts
    /// on throughput as a factor. The ratio is that of geometric means. `None` if a value is not positive.
    pub(crate) fn of(old: &[f64], new: &[f64]) -> Option<Ratio> {
        let (old, new) = (Logs::of(old)?, Logs::of(new)?);
        let difference = new.mean - old.mean;
        let interval = old.variance_of_mean.zip(new.variance_of_mean).map(|(old_variance, new_variance)| {
            let variance = old_variance + new_variance;
            // Welch and Satterthwaite. If there is no spread, the formula would divide by zero.
            let weights = old_variance.powi(2) / old.freedom + new_variance.powi(2) / new.freedom;
            let degrees = if weights > 0.0 { variance.powi(2) / weights } else { old.freedom + new.freedom };
            let reach = student::two_sided(CONFIDENCE, degrees) * variance.sqrt();
            ((difference - reach).exp(), (difference + reach).exp())
        });
        Some(Ratio { ratio: difference.exp(), interval })
    }

    /// The inverse: for seconds instead of throughput.
    pub(crate) fn inverse(self) -> Ratio {
        Ratio {
            ratio: self.ratio.recip(),
            interval: self.interval.map(|(low, high)| (high.recip(), low.recip())),
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self.interval {
            None => Verdict::TooFew,
            Some((low, _)) if low > 1.0 && self.ratio >= 1.0 + INDIFFERENCE => Verdict::Faster,
            Some((_, high)) if high < 1.0 && self.ratio <= 1.0 - INDIFFERENCE => Verdict::Slower,
            Some(_) => Verdict::NoDifference,
        }
    }

    /// `faster by 12 % (9 to 15)`.
    pub(crate) fn in_words(&self) -> String {
        let verdict = self.verdict();
        let percent = |ratio: f64| format!("{:.0}", (ratio - 1.0) * 100.0);
        match (verdict, self.interval) {
            (Verdict::Faster, Some((low, high))) => {
                format!("faster by {} % ({} to {})", percent(self.ratio), percent(low), percent(high))
            }
            (Verdict::Slower, Some((low, high))) => {
                let less = |ratio: f64| format!("{:.0}", (1.0 - ratio) * 100.0);
                format!("slower by {} % ({} to {})", less(self.ratio), less(high), less(low))
            }
            (_, Some((low, high))) => {
                format!("{} ({} to {} %)", verdict.name(), percent(low), percent(high))
            }
            (_, None) => verdict.name().to_string(),
        }
    }
}

struct Logs {
    mean: f64,
    /// `None` for a single sample.
    variance_of_mean: Option<f64>,
    freedom: f64,
}

impl Logs {
    fn of(values: &[f64]) -> Option<Logs> {
        if values.is_empty() || !values.iter().all(|value| *value > 0.0 && value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let variance_of_mean = (values.len() > 1).then(|| squares / (count - 1.0) / count);
        Some(Logs { mean, variance_of_mean, freedom: count - 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// Normal values from a fixed sequence, by Box and Muller.
    struct Normal(Random);

    impl Normal {
        /// Above 0: its logarithm is taken.
        fn uniform(&mut self) -> f64 {
            1.0 - self.0.unit()
        }

        fn next(&mut self) -> f64 {
            (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
        }

        fn samples(&mut self, count: usize, median: f64, spread: f64) -> Vec<f64> {
            (0..count).map(|_| median * (spread * self.next()).exp()).collect()
        }
    }

    /// How many of `rounds` intervals contain the true ratio, and how many verdicts claim a difference.
    fn simulated(rounds: u32, counts: (usize, usize), spreads: (f64, f64), truth: f64) -> (u32, u32) {
        let mut normal = Normal(Random::new(303, 0));
        let (mut covered, mut claimed) = (0, 0);
        for _ in 0..rounds {
            let old = normal.samples(counts.0, 10_000.0, spreads.0);
            let new = normal.samples(counts.1, 10_000.0 * truth, spreads.1);
            let ratio = Ratio::of(&old, &new).unwrap();
            let (low, high) = ratio.interval.unwrap();
            covered += u32::from((low..=high).contains(&truth));
            claimed += u32::from(ratio.verdict() != Verdict::NoDifference);
        }
        (covered, claimed)
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        // The sequences are fixed, so this never flickers. 95 % of 4,000 is 3,800, give or take 14 (one
        // deviation). If the smaller set is also much noisier, Welch's method covers two of a hundred fewer,
        // and the manual says so.
        for (counts, spreads) in
            [((3, 3), (0.05, 0.05)), ((5, 5), (0.02, 0.10)), ((3, 9), (0.10, 0.03)), ((20, 20), (0.2, 0.2))]
        {
            let (covered, _) = simulated(4_000, counts, spreads, 1.12);
            assert!((3_720..=3_960).contains(&covered), "{counts:?} {spreads:?}: {covered}");
        }
    }

    #[test]
    fn where_there_is_no_difference_one_is_seldom_claimed_and_a_large_one_is_nearly_always_found() {
        let (_, claimed) = simulated(4_000, (5, 5), (0.03, 0.03), 1.0);
        assert!(claimed <= 220, "{claimed} of 4,000 alarms, 200 are promised");
        let (_, claimed) = simulated(4_000, (5, 5), (0.03, 0.03), 1.2);
        assert!(claimed >= 3_960, "{claimed} of 4,000 found");
    }

    #[test]
    fn verdicts_are_words_with_figures() {
        let ratio = Ratio { ratio: 1.12, interval: Some((1.09, 1.15)) };
        assert_eq!(ratio.in_words(), "faster by 12 % (9 to 15)");
        assert_eq!(ratio.inverse().in_words(), "slower by 11 % (8 to 13)");
        let ratio = Ratio { ratio: 1.02, interval: Some((0.97, 1.07)) };
        assert_eq!(ratio.in_words(), "no difference to be told (-3 to 7 %)");
        let ratio = Ratio { ratio: 1.004, interval: Some((1.001, 1.007)) };
        assert_eq!(ratio.verdict(), Verdict::NoDifference, "a difference too small to matter");
        assert_eq!(Ratio::of(&[1.0], &[2.0, 2.1]).unwrap().in_words(), "too few samples");
    }

    #[test]
    fn values_without_logarithms_have_no_ratio_and_equal_ones_no_spread() {
        assert_eq!(Ratio::of(&[0.0, 1.0], &[1.0, 1.0]), None);
        assert_eq!(Ratio::of(&[], &[1.0]), None);
        let ratio = Ratio::of(&[2.0, 2.0], &[3.0, 3.0]).unwrap();
        assert!((ratio.ratio - 1.5).abs() < 1e-12);
        assert_eq!(ratio.verdict(), Verdict::Faster);
    }
}
