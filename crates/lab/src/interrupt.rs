//! Ctrl-C and termination signals set a flag. The first signal only sets it: the run stops at the next check,
//! keeps what it measured and cleans up. A second one ends the process at once.

use crate::error::{Error, Result};
use base::sync::Arc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The exit status of a program that Ctrl-C ended.
pub(crate) const EXIT_STATUS: u8 = 130;

/// How often a wait checks the flag.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

// The flag is std's own atomic, because the crate for signal handlers takes that.
#[derive(Clone, Default, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that SIGINT, SIGTERM and SIGHUP set.
    pub(crate) fn install() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let what = || Error::io(format!("cannot handle signal {signal}"));
            // In this order: the second signal finds the flag set and ends the process.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(EXIT_STATUS),
                interrupt.0.clone(),
            )
            .map_err(what())?;
            signal_hook::flag::register(signal, interrupt.0.clone()).map_err(what())?;
        }
        Ok(interrupt)
    }

    #[cfg(test)]
    pub(crate) fn raise(&self) {
        // ORDER: a flag on its own; nothing is published through it.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_raised(&self) -> bool {
        // ORDER: see `raise`.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Sleeps until `deadline`, or fails as soon as the flag is set.
    pub(crate) fn sleep_until(&self, deadline: Instant) -> Result<()> {
        loop {
            self.check()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK_INTERVAL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_flag_ends_a_sleep() {
        let interrupt = Interrupt::default();
        assert!(interrupt.sleep_until(Instant::now()).is_ok());
        interrupt.raise();
        let ages = Instant::now() + Duration::from_secs(3_600);
        assert!(matches!(interrupt.sleep_until(ages), Err(Error::Interrupted)));
    }
}
