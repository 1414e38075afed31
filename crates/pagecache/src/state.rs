//! The state word of a frame: one u64 that says what the frame holds, how it may be used, and in which
//! version its page is.
//!
//! | bits   | field     | meaning                                                                |
//! |--------|-----------|------------------------------------------------------------------------|
//! | 0..12  | shared    | how many hold the page shared (pinned, for readers that latch)         |
//! | 12     | exclusive | one holds the page exclusively                                         |
//! | 13     | waiters   | a thread is parked until this word changes; the next to unlatch wakes  |
//! | 14..16 | residency | free, loading, resident, evicting                                      |
//! | 16..64 | version   | grows when the page changed and when the frame was given up            |
//!
//! Every change is one of the named transitions below, and each asserts that the table [`LEGAL`] has it.
//!
//! How optimistic reading works (Boehm, "Can seqlocks get along with programming language memory
//! models?", 2012): the reader loads the word with Acquire, reads the page with relaxed loads, issues an
//! Acquire fence and loads the word again. A writer makes the word unreadable first, then issues a
//! Release fence, then stores to the page with relaxed stores, then publishes a new version with
//! Release. If a reader saw any of the stores, the two fences make its second load see the word at least as
//! unreadable as it was before that store, so the comparison fails.

use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

const SHARED_MAX: u64 = (1 << 12) - 1;
const EXCLUSIVE: u64 = 1 << 12;
const WAITERS: u64 = 1 << 13;
const RESIDENCY: u64 = 3 << 14;
const VERSION_ONE: u64 = 1 << 16;

const FREE: u64 = 0;
const LOADING: u64 = 1 << 14;
const RESIDENT: u64 = 2 << 14;
const EVICTING: u64 = 3 << 14;

/// What a validation compares: all but the shared count and the waiters bit, which say nothing
/// about the bytes of the page.
const COMPARED: u64 = !(SHARED_MAX | WAITERS);

/// What a frame is used for, as far as transitions care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mode {
    /// Among the free frames, or on the way to or from there.
    Free,
    /// A page is being read into it (or zeroed) by one thread.
    Loading,
    /// Holds a page, latched by nobody. Optimistic readers may be looking.
    Unlatched,
    /// Holds a page, latched shared.
    Shared,
    /// Holds a page, latched exclusively.
    Exclusive,
    /// Chosen as a victim. Becomes free, or resident again if its page turns out to be dirty.
    Evicting,
}

/// Which mode may follow which: row = from, column = to, in the order of [`Mode`].
pub const LEGAL: [[bool; 6]; 6] = {
    const NO: bool = false;
    const YES: bool = true;
    [
        // to: Free Loading Unlatched Shared Exclusive Evicting
        [NO, YES, NO, NO, NO, NO],    // Free: begin_load
        [YES, NO, YES, YES, YES, NO], // Loading: abort_load, finish_load
        [NO, NO, YES, YES, YES, YES], // Unlatched: waiters, lock_shared, lock_exclusive, begin_evict
        [NO, NO, YES, YES, YES, NO],  // Shared: unlock_shared, lock_shared, upgrade_shared
        [YES, NO, YES, YES, YES, NO], // Exclusive: discard, unlock_exclusive, downgrade
        [YES, NO, YES, NO, NO, NO],   // Evicting: finish_evict, abort_evict
    ]
};

/// A value of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    pub fn mode(self) -> Mode {
        match (self.0 & RESIDENCY, self.0 & EXCLUSIVE != 0, self.0 & SHARED_MAX) {
            (FREE, ..) => Mode::Free,
            (LOADING, ..) => Mode::Loading,
            (EVICTING, ..) => Mode::Evicting,
            (_, true, _) => Mode::Exclusive,
            (_, false, 0) => Mode::Unlatched,
            (_, false, _) => Mode::Shared,
        }
    }

    /// True if a reader may look at the page without a latch: resident and not held exclusively.
    #[inline(always)]
    pub fn is_readable(self) -> bool {
        self.0 & (RESIDENCY | EXCLUSIVE) == RESIDENT
    }

    pub fn is_resident(self) -> bool {
        self.0 & RESIDENCY == RESIDENT
    }

    pub fn shared_count(self) -> u64 {
        self.0 & SHARED_MAX
    }

    /// True if no further reader can share the page.
    pub fn is_full(self) -> bool {
        self.0 & SHARED_MAX == SHARED_MAX
    }

    pub fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// What a reader keeps to compare later.
    #[inline(always)]
    pub fn snapshot(self) -> Snapshot {
        Snapshot(self.0 & COMPARED)
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiters = if self.has_waiters() { " waiters" } else { "" };
        write!(f, "{:?} v{} x{}{waiters}", self.mode(), self.0 >> 16, self.shared_count())
    }
}

/// Version, residency and exclusive bit as a reader saw them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot(u64);

/// Whether the thread that gave up the frame must wake parked threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Wake {
    Nobody,
    Waiters,
}

/// Which latch the loader of a page keeps when the page has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    Nothing,
    Shared,
    Exclusive,
}

/// Whether the holder of an exclusive latch has changed the page: then its version grows (pagecache R2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changed {
    No,
    Yes,
}

impl Changed {
    /// What the version grows by.
    #[inline(always)]
    fn versions(self) -> u64 {
        match self {
            Changed::No => 0,
            Changed::Yes => VERSION_ONE,
        }
    }
}

#[derive(Debug, Default)]
pub struct FrameState(AtomicU64);

fn is_legal(from: u64, to: u64) -> bool {
    LEGAL[Word(from).mode() as usize][Word(to).mode() as usize]
}

/// The transition must be in the table. Stays in release builds: a wrong transition loses data.
#[inline(always)]
fn check(from: u64, to: u64) {
    assert!(is_legal(from, to), "illegal transition {:?} to {:?}", Word(from), Word(to));
}

impl FrameState {
    /// What the latch is known by where threads wait and in figures.
    #[inline(always)]
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The word, such that what was published before it is visible.
    #[inline(always)]
    pub fn load(&self) -> Word {
        // ORDER: pairs with the Release of `publish`: the page and its id are at least as new as the version.
        Word(self.0.load(Acquire))
    }

    /// True if nothing that `snapshot` stands for has changed since it was taken.
    #[inline(always)]
    pub fn is_unchanged(&self, snapshot: Snapshot) -> bool {
        // ORDER: the fence keeps the relaxed loads of the page before the load of the word; it pairs with
        // the Release fence of `claim`.
        fence(Acquire);
        self.0.load(Relaxed) & COMPARED == snapshot.0
    }

    /// Replaces the word, of which only the waiters bit may meanwhile have changed, since the caller owns the
    /// rest.
    fn publish(&self, to: u64) -> Wake {
        // ORDER: Release publishes the page and its id with the version that names them.
        let from = self.0.swap(to, Release);
        check(from, to);
        if from & WAITERS != 0 { Wake::Waiters } else { Wake::Nobody }
    }

    /// Makes the page unreadable and keeps the caller's later stores behind that.
    #[inline(always)]
    fn claim(&self, from: u64, to: u64) -> bool {
        // ORDER: Acquire sees everything the last holder did; the Release fence keeps the stores to the
        // page behind the exclusive bit, see the head of this file.
        check(from, to);
        let won = self.0.compare_exchange(from, to, Acquire, Relaxed).is_ok();
        fence(Release);
        won
    }

    /// Free to Loading: the caller took the frame from the free ones and owns it.
    pub fn begin_load(&self) {
        let from = self.0.load(Relaxed);
        let won = self.claim(from, from & !RESIDENCY | LOADING | EXCLUSIVE);
        assert!(won, "a free frame has one owner");
    }

    /// Loading to resident: the page is in place.
    pub fn finish_load(&self, keep: Keep) -> Wake {
        let latch = match keep {
            Keep::Nothing => 0,
            Keep::Shared => 1,
            Keep::Exclusive => EXCLUSIVE,
        };
        self.publish(self.version() | RESIDENT | latch)
    }

    /// Loading to Free: the page could not be read.
    pub fn abort_load(&self) -> Wake {
        self.publish(self.version().wrapping_add(VERSION_ONE) | FREE)
    }

    /// Takes a shared latch if the page is readable; otherwise gives the word that was in the way.
    #[inline(always)]
    pub fn lock_shared(&self) -> Result<Word, Word> {
        let mut from = self.0.load(Relaxed);
        loop {
            if !Word(from).is_readable() || from & SHARED_MAX == SHARED_MAX {
                return Err(Word(from));
            }
            // Readable is Unlatched or Shared, so the transition is legal; to look it up on each locked hit
            // would cost more than the hit's own work on the word.
            debug_assert!(is_legal(from, from + 1));
            // ORDER: Acquire sees what the last exclusive holder published.
            if self.0.compare_exchange(from, from + 1, Acquire, Relaxed).is_ok() {
                return Ok(Word(from + 1));
            }
            from = self.0.load(Relaxed);
        }
    }

    pub fn unlock_shared(&self) -> Wake {
        let mut from = self.0.load(Relaxed);
        loop {
            assert!(from & SHARED_MAX > 0, "unlatched twice");
            let last = from & SHARED_MAX == 1;
            let to = if last { (from - 1) & !WAITERS } else { from - 1 };
            // As above: a word that counts a sharer is Shared.
            debug_assert!(is_legal(from, to));
            // ORDER: Release keeps the holder's reads before the next exclusive holder's stores.
            if self.0.compare_exchange(from, to, Release, Relaxed).is_ok() {
                return if last && from & WAITERS != 0 { Wake::Waiters } else { Wake::Nobody };
            }
            from = self.0.load(Relaxed);
        }
    }

    /// Takes the exclusive latch if nobody has one; otherwise gives the word that was in the way.
    pub fn lock_exclusive(&self) -> Result<Word, Word> {
        let mut from = self.0.load(Relaxed);
        loop {
            if Word(from).mode() != Mode::Unlatched {
                return Err(Word(from));
            }
            if self.claim(from, from | EXCLUSIVE) {
                return Ok(Word(from | EXCLUSIVE));
            }
            from = self.0.load(Relaxed);
        }
    }

    /// Takes the exclusive latch if the page is as `snapshot` says and nobody but `own_shared` (0 or 1)
    /// holds it shared.
    pub fn upgrade(&self, snapshot: Snapshot, own_shared: u64) -> Result<(), Word> {
        let mut from = self.0.load(Relaxed);
        loop {
            if from & COMPARED != snapshot.0 || from & SHARED_MAX != own_shared {
                return Err(Word(from));
            }
            if self.claim(from, (from - own_shared) | EXCLUSIVE) {
                return Ok(());
            }
            from = self.0.load(Relaxed);
        }
    }

    /// Exclusive to Unlatched; the version grows if the page was changed.
    #[inline(always)]
    pub fn unlock_exclusive(&self, changed: Changed) -> Wake {
        self.publish(self.version().wrapping_add(changed.versions()) | RESIDENT)
    }

    /// Exclusive to Shared, with nobody in between.
    pub fn downgrade(&self, changed: Changed) -> Wake {
        self.publish(self.version().wrapping_add(changed.versions()) | RESIDENT | 1)
    }

    /// Exclusive to Free: the page is no longer wanted.
    pub fn discard(&self) -> Wake {
        self.publish(self.version().wrapping_add(VERSION_ONE) | FREE)
    }

    /// Unlatched to Evicting; false if somebody holds or wants the page.
    pub fn begin_evict(&self) -> bool {
        let from = self.0.load(Relaxed);
        Word(from).mode() == Mode::Unlatched
            && from & WAITERS == 0
            && self.claim(from, from & !RESIDENCY | EVICTING)
    }

    /// Evicting to Unlatched: the page was dirty after all.
    pub fn abort_evict(&self) -> Wake {
        self.publish(self.version() | RESIDENT)
    }

    pub fn finish_evict(&self) -> Wake {
        self.publish(self.version().wrapping_add(VERSION_ONE) | FREE)
    }

    /// Announces a waiter if `word` is still what the state is; false if it changed and the caller looks
    /// again.
    pub fn announce_waiter(&self, word: Word) -> bool {
        // No `check`: the bit is no transition. A waiter may announce itself in any mode but Free.
        word.has_waiters() || self.0.compare_exchange(word.0, word.0 | WAITERS, Relaxed, Relaxed).is_ok()
    }

    /// The version field in place, for the owner of the word.
    fn version(&self) -> u64 {
        self.0.load(Relaxed) & !(VERSION_ONE - 1)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn resident() -> FrameState {
        let state = FrameState::default();
        state.begin_load();
        assert_eq!(state.finish_load(Keep::Nothing), Wake::Nobody);
        state
    }

    #[test]
    fn a_frame_lives_from_free_over_resident_to_free() {
        let state = FrameState::default();
        assert_eq!(state.load().mode(), Mode::Free);
        state.begin_load();
        assert_eq!(state.load().mode(), Mode::Loading);
        assert!(state.lock_shared().is_err());
        assert!(state.lock_exclusive().is_err());
        let _ = state.finish_load(Keep::Nothing);
        assert_eq!(state.load().mode(), Mode::Unlatched);
        assert!(state.begin_evict());
        assert!(!state.load().is_readable());
        let _ = state.finish_evict();
        assert_eq!(state.load().mode(), Mode::Free);
    }

    #[test]
    fn shared_latches_and_waiters_do_not_disturb_a_snapshot() {
        let state = resident();
        let snapshot = state.load().snapshot();
        state.lock_shared().unwrap();
        assert!(state.announce_waiter(state.load()));
        assert!(state.is_unchanged(snapshot));
        assert_eq!(state.unlock_shared(), Wake::Waiters);
        assert_eq!(state.load().snapshot(), snapshot);
    }

    #[test]
    fn an_exclusive_latch_breaks_a_snapshot_and_an_unchanged_page_mends_it() {
        let state = resident();
        let snapshot = state.load().snapshot();
        state.lock_exclusive().unwrap();
        assert!(!state.is_unchanged(snapshot));
        let _ = state.unlock_exclusive(Changed::No);
        assert!(state.is_unchanged(snapshot));
        state.upgrade(snapshot, 0).unwrap();
        let _ = state.unlock_exclusive(Changed::Yes);
        assert!(!state.is_unchanged(snapshot));
        assert!(state.upgrade(snapshot, 0).is_err());
    }

    #[test]
    fn a_recycled_frame_breaks_a_snapshot_even_with_the_same_page() {
        let state = resident();
        let snapshot = state.load().snapshot();
        assert!(state.begin_evict());
        assert!(!state.is_unchanged(snapshot));
        let _ = state.finish_evict();
        state.begin_load();
        let _ = state.finish_load(Keep::Nothing);
        assert!(!state.is_unchanged(snapshot));
    }

    #[test]
    fn latched_and_awaited_frames_are_no_victims() {
        let state = resident();
        state.lock_shared().unwrap();
        assert!(!state.begin_evict());
        let _ = state.unlock_shared();
        state.lock_exclusive().unwrap();
        assert!(!state.begin_evict());
        assert!(state.announce_waiter(state.load()));
        assert_eq!(state.unlock_exclusive(Changed::No), Wake::Waiters);
        assert!(state.begin_evict());
        assert_eq!(state.abort_evict(), Wake::Nobody);
        assert_eq!(state.load().mode(), Mode::Unlatched);
    }

    #[test]
    fn an_upgrade_tolerates_only_the_own_shared_latch() {
        let state = resident();
        let snapshot = state.lock_shared().unwrap().snapshot();
        state.lock_shared().unwrap();
        assert!(state.upgrade(snapshot, 1).is_err());
        let _ = state.unlock_shared();
        state.upgrade(snapshot, 1).unwrap();
        assert_eq!(state.load().mode(), Mode::Exclusive);
    }

    #[test]
    fn the_shared_count_stops_at_its_limit() {
        let state = resident();
        for _ in 0..SHARED_MAX {
            state.lock_shared().unwrap();
        }
        assert!(state.lock_shared().is_err());
    }

    #[test]
    #[should_panic(expected = "illegal transition")]
    fn an_illegal_transition_is_refused() {
        let state = resident();
        state.begin_load();
    }
}
