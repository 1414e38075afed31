//! The latch of a page: the one door to the transitions of a frame's state word, and to those who wait for
//! it.
//!
//! The transitions are in `state`; how threads wait is in `park`. This module joins the two: a thread that
//! gives up a page wakes the threads that wait for it, and what happens is counted. Optimistic readers do not
//! come here: they look at the word and change nothing.

use crate::error::Error;
use crate::frames::FrameNo;
use crate::local::{self, SEGMENTS_MAX};
use crate::pool::Pool;
use crate::state::{Changed, FrameState, Keep, Mode, Snapshot, Wake, Word};
use base::PageId;
use base::sync::{Contention, Encounter, LatchClass, Spot, hint, metering, thread};
use std::panic::Location;

base::latch_class!(pub PageClass, "page", SEGMENTS_MAX);

base::latch_class!(
    /// Waits for a page that another thread is reading from the device. They are counted apart, for the wait
    /// is for the device.
    pub LoadClass, "page load"
);

/// Attempts of an upgrade while others hold the page shared. Most hold it only while they copy the page. The
/// others are latched readers, and the caller should not wait for them while it holds latches itself.
const UPGRADE_SPINS: u64 = 64;

/// The latch of the page in a frame.
#[derive(Clone, Copy)]
pub(crate) struct PageLatch<'c> {
    pool: &'c Pool,
    frame: FrameNo,
}

impl Pool {
    #[inline(always)]
    pub(crate) fn latch(&self, frame: FrameNo) -> PageLatch<'_> {
        PageLatch { pool: self, frame }
    }
}

/// The methods are named after the transitions of [`FrameState`].
impl<'c> PageLatch<'c> {
    #[inline(always)]
    fn state(self) -> &'c FrameState {
        &self.pool.header(self.frame).state
    }

    #[inline(always)]
    fn change<R>(self, transition: impl FnOnce(&FrameState) -> R) -> R {
        self.pool.waiting.lot.change(self.state(), transition)
    }

    /// A transition after which others may take the page.
    #[inline(always)]
    fn give(self, transition: impl FnOnce(&FrameState) -> Wake) {
        if self.change(transition) == Wake::Waiters {
            self.pool.waiting.lot.wake(self.frame, self.state());
        }
    }

    fn spot(self) -> Spot {
        PageClass::meter().segment(self.pool.segment_number(self.pool.header(self.frame).page_id()))
    }

    #[inline(always)]
    #[track_caller]
    fn count_taken(self) {
        if metering() {
            self.spot().acquired(self.state().address(), Location::caller());
        }
    }

    #[inline(always)]
    #[track_caller]
    pub fn lock_shared(self) -> Result<Word, Word> {
        let result = self.change(FrameState::lock_shared);
        if result.is_ok() {
            self.count_taken();
        }
        result
    }

    #[inline(always)]
    #[track_caller]
    pub fn lock_exclusive(self) -> Result<Word, Word> {
        let result = self.change(FrameState::lock_exclusive);
        if result.is_ok() {
            self.count_taken();
        }
        result
    }

    /// Takes the page alone if it is still as `snapshot` says. Waits a moment for sharers other than the
    /// `own_shared` of the caller.
    #[inline(always)]
    #[track_caller]
    pub fn upgrade(self, snapshot: Snapshot, own_shared: u64) -> bool {
        let is_done = match self.change(|state| state.upgrade(snapshot, own_shared)) {
            Ok(()) => true,
            Err(word) if matches!(word.mode(), Mode::Shared | Mode::Exclusive) => {
                self.upgrade_soon(snapshot, own_shared)
            }
            Err(_) => false,
        };
        if is_done {
            self.count_taken();
        }
        is_done
    }

    #[cold]
    #[track_caller]
    fn upgrade_soon(self, snapshot: Snapshot, own_shared: u64) -> bool {
        let encounter = metering().then(|| Encounter::begin(self.state().address()));
        let mut spins = 1;
        let is_done = loop {
            match self.change(|state| state.upgrade(snapshot, own_shared)) {
                Ok(()) => break true,
                Err(word) if word.snapshot() != snapshot || spins == UPGRADE_SPINS => break false,
                Err(_) if spins % 16 == 0 => thread::yield_now(),
                Err(_) => hint::spin_loop(),
            }
            spins += 1;
        };
        if let Some(encounter) = encounter {
            encounter.end(self.spot(), Contention { spins, waits: 0 }, Location::caller());
        }
        is_done
    }

    #[inline(always)]
    pub fn unlock_shared(self) {
        self.give(FrameState::unlock_shared);
    }

    #[inline(always)]
    pub fn unlock_exclusive(self, changed: Changed) {
        self.give(|state| state.unlock_exclusive(changed));
    }

    pub fn downgrade(self, changed: Changed) {
        self.give(|state| state.downgrade(changed));
    }

    pub fn discard(self) {
        self.give(FrameState::discard);
    }

    pub fn begin_load(self) {
        self.change(FrameState::begin_load);
    }

    #[track_caller]
    pub fn finish_load(self, keep: Keep) {
        self.give(|state| state.finish_load(keep));
        if keep != Keep::Nothing {
            self.count_taken();
        }
    }

    pub fn abort_load(self) {
        self.give(FrameState::abort_load);
    }

    pub fn begin_evict(self) -> bool {
        self.change(FrameState::begin_evict)
    }

    pub fn abort_evict(self) {
        self.give(FrameState::abort_evict);
    }

    pub fn finish_evict(self) {
        self.give(FrameState::finish_evict);
    }

    /// Waits while the frame has the page and `blocked` holds for the word. Backs out with `Busy` if the
    /// caller holds latches while the thread with the permit finds no frame: that thread may be waiting for
    /// the caller's latches (pagecache R8).
    ///
    /// The caller must not wait for the latch of another page that comes into the frame: that page stands
    /// elsewhere in the order of latches, and its holder may be waiting for the caller's latches.
    #[track_caller]
    pub fn wait(self, id: PageId, blocked: impl Fn(Word) -> bool) -> Result<(), Error> {
        let PageLatch { pool, frame } = self;
        let state = self.state();
        let header = pool.header(frame);
        // A frame that is loading another page may not have that page's number yet. Then the thread that
        // loads it wakes this one.
        let blocked = |word| header.page_word() == id.to_word() && blocked(word);
        let must_back_out =
            || pool.waiting.permits.is_starving() && local::holds_latches() && !local::has_permit(pool.id());
        let encounter = metering().then(|| {
            let is_loading = state.load().mode() == Mode::Loading;
            let spot = if is_loading { LoadClass::meter().outside() } else { self.spot() };
            (spot, Encounter::begin(state.address()))
        });
        let contention = pool.waiting.lot.wait(frame, state, blocked, must_back_out);
        if let Some((spot, encounter)) = encounter {
            encounter.end(spot, contention, Location::caller());
        }
        if must_back_out() { Err(Error::Busy) } else { Ok(()) }
    }
}
