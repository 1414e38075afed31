//! How fast pages are written while nobody waits for that.

use std::time::Duration;

/// Pages that could have been written within this time and were not may be written at once.
const BURST: Duration = Duration::from_secs(1);
/// The rate that means "no limit".
#[cfg(not(feature = "shuttle"))]
const NO_LIMIT: u32 = u32::MAX;

/// Keeps to a rate in pages a second. It notes the time at which all pages written so far are paid for.
#[derive(Debug, Default)]
pub struct Pace {
    paid_until: Duration,
}

impl Pace {
    /// How many pages may be written at `now`.
    #[cfg(not(feature = "shuttle"))]
    pub fn allowed(&self, now: Duration, rate: u32) -> usize {
        if rate == NO_LIMIT {
            return usize::MAX;
        }
        let saved = now.saturating_sub(self.paid_until).min(BURST);
        (saved.as_nanos() * u128::from(rate) / 1_000_000_000) as usize
    }

    /// Notes that pages were written.
    pub fn spend(&mut self, now: Duration, pages: usize, rate: u32) {
        let cost =
            Duration::from_nanos((pages as u64).saturating_mul(1_000_000_000) / u64::from(rate.max(1)));
        self.paid_until = self.paid_until.max(now.saturating_sub(BURST)) + cost;
    }

    /// How long it takes until so many pages may be written.
    pub fn wait(&self, now: Duration, pages: usize, rate: u32) -> Duration {
        let cost =
            Duration::from_nanos((pages as u64).saturating_mul(1_000_000_000) / u64::from(rate.max(1)));
        (self.paid_until.max(now.saturating_sub(BURST)) + cost).saturating_sub(now)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn pages_are_allowed_as_time_goes_by_and_no_more() {
        let mut pace = Pace::default();
        let mut written = 0;
        for tick in 0..=600 {
            let now = ms(tick * 7);
            let allowed = pace.allowed(now, 200);
            pace.spend(now, allowed, 200);
            written += allowed;
        }
        assert_eq!(written, 200 * 4_200 / 1_000);
    }

    #[test]
    fn a_second_is_saved_up_and_not_more() {
        let mut pace = Pace::default();
        assert_eq!(pace.allowed(ms(0), 100), 0);
        assert_eq!(pace.allowed(ms(500), 100), 50);
        assert_eq!(pace.allowed(ms(60_000), 100), 100);
        pace.spend(ms(60_000), 100, 100);
        assert_eq!(pace.allowed(ms(60_000), 100), 0);
        // A faster rate counts from where the slower one was paid for.
        assert_eq!(pace.allowed(ms(60_100), 1_000), 100);
    }

    #[test]
    fn what_was_written_too_soon_is_waited_for() {
        let mut pace = Pace::default();
        pace.spend(ms(1_000), 250, 100);
        assert_eq!(pace.allowed(ms(1_000), 100), 0);
        assert_eq!(pace.wait(ms(1_000), 0, 100), ms(1_500));
        assert_eq!(pace.wait(ms(1_000), 10, 100), ms(1_600));
        assert_eq!(pace.wait(ms(9_000), 10, 100), ms(0));
    }

    #[test]
    fn the_largest_rate_is_none() {
        let mut pace = Pace::default();
        pace.spend(ms(0), 1_000_000, u32::MAX);
        assert_eq!(pace.allowed(ms(0), u32::MAX), usize::MAX);
        assert!(pace.wait(ms(0), 0, u32::MAX) < ms(1));
    }
}
