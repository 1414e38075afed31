//! Waiting for a frame's state word to change.
//!
//! Few threads wait for few frames, so frames share [`STRIPES`] pairs of mutex and condition variable. If the
//! latches are made so, all threads wait in the process's wait array instead. No wake-up is lost: a waiter
//! sets the waiters bit while it holds the stripe's mutex, and gives up the mutex only inside the condition
//! variable. A thread that changes the word sees the bit in the old word, and takes the mutex before it
//! notifies. In the wait array the waiter has taken its cell before it sets the bit.

use crate::frames::FrameNo;
use crate::state::{FrameState, Word};
use base::sync::atomic::{AtomicBool, Ordering::SeqCst};
use base::sync::{CachePadded, CentralArray, Condvar, Contention, Implementation, Mutex, hint, thread};

#[cfg(not(feature = "shuttle"))]
const STRIPES: usize = 64;
#[cfg(feature = "shuttle")]
const STRIPES: usize = 2;

/// Looks at the word so often before parking: an exclusive latch is typically held for less than a
/// microsecond, and parking costs about five.
#[cfg(not(feature = "shuttle"))]
const SPINS: u64 = 100;
#[cfg(feature = "shuttle")]
const SPINS: u64 = 1;

#[derive(Debug)]
pub struct ParkingLot {
    /// The wait array, if latches are made so: threads wait there, and the states of latches change under its
    /// mutexes.
    array: Option<CentralArray>,
    stripes: [CachePadded<(Mutex<()>, Condvar)>; STRIPES],
}

/// What a look at the word says to a thread that may have to sleep.
enum Look {
    /// The waiters bit is set: the thread that changes the word wakes this one.
    Sleep,
    /// There is nothing to wait for any more.
    Open,
    /// Too many readers share the page. When one of them leaves nobody is woken.
    Full,
}

impl ParkingLot {
    pub fn new(latches: Implementation) -> ParkingLot {
        ParkingLot {
            array: (latches == Implementation::WaitArray).then(CentralArray::new),
            stripes: std::array::from_fn(|_| CachePadded((Mutex::new(()), Condvar::new()))),
        }
    }

    fn stripe(&self, frame: FrameNo) -> &(Mutex<()>, Condvar) {
        &self.stripes[frame.index() % STRIPES].0
    }

    /// Makes a transition of the word: under the internal mutex of its latch if it has one.
    #[inline(always)]
    pub fn change<R>(&self, state: &FrameState, transition: impl FnOnce(&FrameState) -> R) -> R {
        match &self.array {
            None => transition(state),
            Some(array) => {
                let _internal = array.internal(state.address());
                transition(state)
            }
        }
    }

    /// Returns when `blocked` no longer holds for the word, or some time earlier: callers look again.
    /// `cancelled` is asked before parking; [`ParkingLot::wake_all`] makes all parked threads ask it again.
    pub fn wait(
        &self,
        frame: FrameNo,
        state: &FrameState,
        blocked: impl Fn(Word) -> bool,
        cancelled: impl Fn() -> bool,
    ) -> Contention {
        let look = || loop {
            let word = state.load();
            if !blocked(word) || cancelled() {
                return Look::Open;
            }
            if word.is_readable() && word.is_full() {
                return Look::Full;
            }
            if self.change(state, |state| state.announce_waiter(word)) {
                return Look::Sleep;
            }
        };
        let (spins, look) = match &self.array {
            None => self.park(frame, || !blocked(state.load()), look),
            Some(array) => {
                let spins = array.spin(|| !blocked(state.load()));
                let mut result = Look::Open;
                array.wait(state.address(), || {
                    result = look();
                    matches!(result, Look::Sleep)
                });
                (spins, result)
            }
        };
        if let Look::Full = look {
            thread::yield_now();
        }
        Contention { spins, waits: u64::from(matches!(look, Look::Sleep)) }
    }

    /// Spins, then waits at the frame's stripe; how often it spun, and what it saw last.
    fn park(&self, frame: FrameNo, is_open: impl Fn() -> bool, look: impl Fn() -> Look) -> (u64, Look) {
        for spins in 0..SPINS {
            if is_open() {
                return (spins, Look::Open);
            }
            hint::spin_loop();
        }
        let (mutex, condvar) = self.stripe(frame);
        let guard = mutex.lock();
        let look = look();
        if let Look::Sleep = look {
            drop(condvar.wait(guard));
        }
        (SPINS, look)
    }

    /// Wakes all threads that wait for the frame.
    #[cold]
    pub fn wake(&self, frame: FrameNo, state: &FrameState) {
        if let Some(array) = &self.array {
            return array.signal(state.address());
        }
        let (mutex, condvar) = self.stripe(frame);
        drop(mutex.lock());
        condvar.notify_all();
    }

    /// Wakes everybody.
    pub fn wake_all(&self) {
        if let Some(array) = &self.array {
            return array.signal_all();
        }
        for stripe in &self.stripes {
            drop(stripe.0.0.lock());
            stripe.0.1.notify_all();
        }
    }
}

/// The one permit of a pool, and whether its holder finds no frame: see `permit`.
#[derive(Debug, Default)]
pub struct Permits {
    pub out: Mutex<bool>,
    pub returned: Condvar,
    starving: AtomicBool,
}

impl Permits {
    pub fn new() -> Permits {
        Permits::default()
    }

    /// True while the permit's holder finds no frame.
    pub fn is_starving(&self) -> bool {
        // ORDER: SeqCst against the waiters bit: see `set_starving`.
        self.starving.load(SeqCst)
    }

    /// Gives the old value. After setting it the caller wakes all parked threads. Each of them either asks
    /// `is_starving` under its stripe's mutex after this store, or is parked and is woken.
    pub fn set_starving(&self, starving: bool) -> bool {
        self.starving.swap(starving, SeqCst)
    }
}

/// Gives others time to unlatch or to finish writing.
pub(crate) fn pause(round: u32) {
    #[cfg(not(feature = "shuttle"))]
    if round > 4 {
        thread::sleep(std::time::Duration::from_micros(50 << (round.min(9) / 2)));
        return;
    }
    let _ = round;
    thread::yield_now();
}
