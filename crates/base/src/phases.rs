//! Where a thread's time goes: a clock for each thread that is always in one phase.
//!
//! Off by default: entering a phase then only reads a flag, which no running statement writes. If it is on,
//! entering a phase reads the clock, and the time since the last reading belongs to the phase that ends. So
//! the phases of a statement add up to its time, however they are nested. Nothing shared is written; the
//! thread that runs the statement takes the figures when it ends.
//!
//! Like the latch meter this is not modelled: it has a switch that orders nothing, and cells of one thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The phases of a thread that serves a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Waiting for the client.
    Idle,
    /// In the system calls that receive and send.
    Network,
    /// From text to a tree or to a shape.
    Parse,
    /// Finding a plan or making one.
    Plan,
    /// In secondary indexes.
    Index,
    /// In the tree that holds the rows.
    Row,
    /// Appending to the log and waiting for it to be durable.
    Log,
    /// Waiting for a latch. Counted only while latches are metered.
    LatchWait,
    /// Waiting for a row that another transaction holds.
    LockWait,
    /// All else: reading parameters, evaluating, writing the answer.
    Rest,
}

pub const PHASES: usize = 10;

/// Nanoseconds by phase, and how often the clock was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    pub nanoseconds: [u64; PHASES],
    pub readings: u64,
}

/// How often the accounts were switched: odd while they are on. An account from before the last switch is not
/// continued.
static SWITCHED: AtomicU64 = AtomicU64::new(0);

struct Clock {
    phase: Cell<Phase>,
    /// When the phase began. `None` on threads that serve no client.
    since: Cell<Option<Instant>>,
    /// The value of `SWITCHED` that the account belongs to.
    switched: Cell<u64>,
    spent: Cell<Spent>,
}

thread_local! {
    static CLOCK: Clock = const {
        let spent = Spent { nanoseconds: [0; PHASES], readings: 0 };
        let (phase, since) = (Cell::new(Phase::Rest), Cell::new(None));
        Clock { phase, since, switched: Cell::new(0), spent: Cell::new(spent) }
    };
}

impl Clock {
    fn is_kept(&self) -> bool {
        self.since.get().is_some() && self.switched.get() == SWITCHED.load(Relaxed)
    }
}

/// Goes back to the phase before when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct InPhase(Option<Phase>);

impl Drop for InPhase {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            change(before);
        }
    }
}

/// True while threads keep account of their phases.
#[inline(always)]
pub fn is_on() -> bool {
    // ORDER: Relaxed: accounts may begin and end a little late.
    SWITCHED.load(Relaxed) % 2 == 1
}

/// Switches the accounts on or off.
pub fn set_on(on: bool) {
    // If two threads switch to the same at once, one of them does it.
    let switch = |now: u64| ((now % 2 == 1) != on).then_some(now + 1);
    // ORDER: as in `is_on`. There is nothing to do where it is so already.
    let _ = SWITCHED.fetch_update(Relaxed, Relaxed, switch);
}

/// Enters a phase until the guard is dropped.
#[inline(always)]
pub fn enter(phase: Phase) -> InPhase {
    InPhase(if is_on() { change(phase) } else { None })
}

/// Begins an account on this thread, in [`Phase::Rest`]; false if it keeps one.
pub fn begin() -> bool {
    CLOCK.with(|clock| {
        if clock.is_kept() {
            return false;
        }
        clock.phase.set(Phase::Rest);
        clock.spent.set(Spent::default());
        clock.since.set(Some(Instant::now()));
        clock.switched.set(SWITCHED.load(Relaxed));
        true
    })
}

/// What this thread has spent since it was last asked. `None` if it keeps no account.
pub fn take() -> Option<Spent> {
    CLOCK.with(|clock| {
        change(clock.phase.get())?;
        Some(clock.spent.take())
    })
}

/// Reads the clock and changes the phase; the one before, if the thread keeps an account.
#[cold]
#[inline(never)]
fn change(phase: Phase) -> Option<Phase> {
    CLOCK
        .try_with(|clock| {
            let since = clock.since.get().filter(|_| clock.is_kept())?;
            let now = Instant::now();
            let before = clock.phase.replace(phase);
            let mut spent = clock.spent.get();
            spent.nanoseconds[before as usize] += (now - since).as_nanos() as u64;
            spent.readings += 1;
            clock.spent.set(spent);
            clock.since.set(Some(now));
            Some(before)
        })
        // A thread that is ending has no account.
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    /// One test, since the switch is the process's.
    #[test]
    fn phases_nest_and_add_up_to_the_time_that_went_by() {
        drop(enter(Phase::Parse));
        assert_eq!(take(), None, "off, nothing is kept");
        set_on(true);
        let start = Instant::now();
        assert!(begin() && !begin());
        {
            let _row = enter(Phase::Row);
            thread::sleep(Duration::from_millis(2));
            let _wait = enter(Phase::LockWait);
            thread::sleep(Duration::from_millis(3));
        }
        let spent = take().unwrap();
        let wall = start.elapsed().as_nanos() as u64;
        let of = |phase: Phase| spent.nanoseconds[phase as usize];
        assert!(of(Phase::Row) >= 2_000_000 && of(Phase::LockWait) >= 3_000_000);
        assert_eq!(of(Phase::Parse) + of(Phase::Index), 0);
        let sum: u64 = spent.nanoseconds.iter().sum();
        assert!(sum <= wall, "{sum} of {wall}");
        assert_eq!(spent.readings, 5, "in, in, out, out, asked");
        // A thread that runs no statement keeps no account, and neither does one that has ended its account.
        thread::spawn(|| {
            drop(enter(Phase::Log));
            assert_eq!(take(), None);
        })
        .join()
        .unwrap();
        let _across = enter(Phase::Log);
        set_on(false);
        set_on(true);
        assert_eq!(take(), None, "what went by in between is nobody's");
        assert!(begin());
        assert_eq!(take().unwrap().nanoseconds[Phase::Log as usize], 0);
        set_on(false);
    }
}
