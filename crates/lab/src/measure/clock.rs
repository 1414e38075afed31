//! The phases of a sample: all workers warm up, are measured over the same window, and stop.

use crate::error::Result;
use crate::interrupt::Interrupt;
use base::sync::CachePadded;
use base::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How often the conductor checks whether a worker has failed.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Workers run and nothing counts: before the measured window, and shortly after it.
    Warming,
    /// A query counts if it ends in this phase.
    Measuring,
    /// Workers leave their loops.
    Stopped,
}

/// The phase that all workers of a sample look at. Read-mostly and alone on its cache lines.
#[derive(Debug, Default)]
pub(crate) struct Phases(CachePadded<AtomicU32>);

impl Phases {
    #[inline(always)]
    pub(crate) fn now(&self) -> Phase {
        // ORDER: workers only need to see the change soon; counts are read after joining them.
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Warming,
            1 => Phase::Measuring,
            _ => Phase::Stopped,
        }
    }

    /// Moves from one phase to another, unless a worker has stopped the sample meanwhile.
    fn turn(&self, from: Phase, to: Phase) {
        // ORDER: see `now`. A failure means that the phase is `Stopped`, which stays.
        let _ = self.0.compare_exchange(from as u32, to as u32, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Ends the sample for all workers: the others do not wait for one that failed.
    pub(crate) fn stop(&self) {
        // ORDER: see `now`.
        self.0.store(Phase::Stopped as u32, Ordering::Relaxed);
    }

    fn wait_until(&self, deadline: Instant, interrupt: &Interrupt) -> Result<()> {
        while Instant::now() < deadline && self.now() != Phase::Stopped {
            interrupt.sleep_until(deadline.min(Instant::now() + LOOK_INTERVAL))?;
        }
        Ok(())
    }

    /// Takes the workers through warm-up and measured window. `observe` runs at both ends of the window.
    /// Returns the length of the window and the two observations. In every case the workers are stopped at
    /// the end.
    pub(crate) fn conduct<T>(
        &self,
        warmup: Duration,
        measure: Duration,
        interrupt: &Interrupt,
        mut observe: impl FnMut() -> T,
    ) -> Result<(Duration, T, T)> {
        // Also on an early return or a panic of `observe`.
        struct Stop<'a>(&'a Phases);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        let stop = Stop(self);
        self.wait_until(Instant::now() + warmup, interrupt)?;
        let before = observe();
        self.turn(Phase::Warming, Phase::Measuring);
        let started = Instant::now();
        self.wait_until(started + measure, interrupt)?;
        // Workers go on, uncounted, while the processes are observed: a thread that ends takes its counters
        // in /proc with it.
        self.turn(Phase::Measuring, Phase::Warming);
        let window = started.elapsed();
        let after = observe();
        drop(stop);
        Ok((window, before, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_pass_through_all_phases_and_stop_on_an_interrupt() {
        let phases = Phases::default();
        assert_eq!(phases.now(), Phase::Warming);
        let mut seen = Vec::new();
        let short = Duration::from_millis(1);
        let (window, ..) =
            phases.conduct(short, short, &Interrupt::default(), || seen.push(phases.now())).unwrap();
        assert!(window >= short);
        assert_eq!(seen, [Phase::Warming, Phase::Warming]);
        assert_eq!(phases.now(), Phase::Stopped);

        let phases = Phases::default();
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert!(phases.conduct(short, short, &interrupt, || ()).is_err());
        assert_eq!(phases.now(), Phase::Stopped);
    }
}
