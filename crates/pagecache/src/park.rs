//! Waiting for a frame's state word to change.
//!
//! Few threads wait for few frames, so frames share [`STRIPES`] pairs of mutex and condition variable. No
//! wake-up is lost: a waiter sets the waiters bit while it holds the stripe's mutex and lets go of that only
//! inside the condition variable; whoever changes the word sees the bit in the old word, and
//! takes the mutex before it notifies.

use crate::frames::FrameNo;
use crate::state::{FrameState, Wake, Word};
use base::sync::{CachePadded, Condvar, Mutex, hint, thread};

#[cfg(not(feature = "shuttle"))]
const STRIPES: usize = 64;
#[cfg(feature = "shuttle")]
const STRIPES: usize = 2;

/// Looks at the word so often before parking: an exclusive latch is typically held for less than a
/// microsecond, and parking costs about five.
#[cfg(not(feature = "shuttle"))]
const SPINS: usize = 100;
#[cfg(feature = "shuttle")]
const SPINS: usize = 1;

#[derive(Debug)]
pub struct ParkingLot {
    stripes: [CachePadded<(Mutex<()>, Condvar)>; STRIPES],
}

impl ParkingLot {
    pub fn new() -> ParkingLot {
        ParkingLot { stripes: std::array::from_fn(|_| CachePadded((Mutex::new(()), Condvar::new()))) }
    }

    fn stripe(&self, frame: FrameNo) -> &(Mutex<()>, Condvar) {
        &self.stripes[frame.index() % STRIPES].0
    }

    /// Returns when `blocked` no longer holds for the word, or some time earlier: callers look again.
    /// `cancelled` is asked before parking; [`ParkingLot::wake_all`] makes all parked threads ask it again.
    pub fn wait(
        &self,
        frame: FrameNo,
        state: &FrameState,
        blocked: impl Fn(Word) -> bool,
        cancelled: impl Fn() -> bool,
    ) {
        for _ in 0..SPINS {
            if !blocked(state.load()) {
                return;
            }
            hint::spin_loop();
        }
        let (mutex, condvar) = self.stripe(frame);
        let guard = mutex.lock();
        loop {
            let word = state.load();
            if !blocked(word) || cancelled() {
                return;
            }
            if word.is_readable() && word.is_full() {
                // Too many readers share the page: nobody wakes for one of them leaving.
                drop(guard);
                thread::yield_now();
                return;
            }
            if state.announce_waiter(word) {
                break;
            }
        }
        drop(condvar.wait(guard));
    }

    /// Wakes whoever waits for the frame, if a transition said so.
    #[inline(always)]
    pub fn wake(&self, frame: FrameNo, wake: Wake) {
        if wake == Wake::Waiters {
            self.wake_waiters(frame);
        }
    }

    #[cold]
    fn wake_waiters(&self, frame: FrameNo) {
        let (mutex, condvar) = self.stripe(frame);
        drop(mutex.lock());
        condvar.notify_all();
    }

    /// Wakes everybody.
    pub fn wake_all(&self) {
        for stripe in &self.stripes {
            drop(stripe.0.0.lock());
            stripe.0.1.notify_all();
        }
    }
}
