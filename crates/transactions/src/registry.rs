//! Which snapshots are open: an entry for each session, and the horizon.
//!
//! To open one a session writes its own entry and nothing else. A reclaimer cannot overlook it (transactions
//! R3):
//!
//! ```text
//! session:    number = clock;  own entry = number;  fence;  announced > number?  again
//! reclaimer:  announced = clock;                   fence;  read all entries
//! ```
//!
//! Of the two fences one is first. If it is the session's, the reclaimer reads the session's number. If it is
//! the reclaimer's, the session sees what was announced. Then the session either has a number that is not
//! smaller, from which nothing is taken, or starts again.
//!
//! A snapshot that is cancelled counts as long as its session reads by it, and no longer. A session that
//! pauses between its statements says so, and asks when it resumes (transactions R10):
//!
//! ```text
//! session:    paused = 0;          fence;  cancelled?   then it does not read
//! reclaimer:  cancelled is set;    fence;  paused?      then the snapshot does not count
//! ```
//!
//! Of these two fences, too, one is first: the reclaimer sees that the session reads, or the session sees
//! that it must not.
//!
//! A reclaimer reads the entries that are listed, and not those of thousands of sessions that are idle. An
//! entry that it has found closed [`LOOKS_MAX`] times is taken from the list, and listed again when its
//! session opens the next snapshot (transactions R12):
//!
//! ```text
//! session:    own entry = number;  fence;  listed?     if not: lists itself under the mutex
//! reclaimer:  listed = no;         fence;  number?     if there is one: the entry stays
//! ```
//!
//! Once more one fence is first: the session finds that it is not listed, or the reclaimer finds the number.
//! A session that lists itself looks at what was announced afterwards. So a reclaimer that did not find it
//! had the mutex before, and what that one announced is seen.

use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use base::sync::{Arc, CachePadded, Mutex};
use std::cell::Cell;

base::latch_class!(pub SnapshotsLatch, "snapshots");

/// The number of an entry without a snapshot.
const NONE: u64 = u64::MAX;

/// How often a reclaimer looks at an entry that it finds closed. To list it again takes a latch, which costs
/// as much as about so many looks: so at most twice as much is spent as by the better choice for each entry.
#[cfg(not(feature = "shuttle"))]
const LOOKS_MAX: u32 = 32;
#[cfg(feature = "shuttle")]
const LOOKS_MAX: u32 = 1;

/// Whether a snapshot may be given up when what is kept for it takes too much memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// It may: a transaction may keep it for hours.
    UntilCancelled,
    /// It may not: it lasts as long as a statement that changes rows.
    UntilClosed,
}

/// What a session tells about its snapshot. Only the session writes it, except for `cancelled`.
#[derive(Debug)]
pub struct Entry {
    hold: Hold,
    /// The snapshot's number.
    number: AtomicU64,
    /// Counts the snapshots of this entry, so that cancelling one does not cancel the next.
    ticket: AtomicU64,
    /// The ticket of the snapshot that was cancelled last.
    cancelled: AtomicU64,
    /// 1 while nothing is read by the snapshot.
    paused: AtomicU64,
    /// 1 while reclaimers look at it. Changed under the registry's mutex.
    listed: AtomicU64,
}

pub type EntryRef = Arc<CachePadded<Entry>>;

/// What an open snapshot sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The snapshot sees what finished at this number or before.
    pub number: u64,
    /// All ids below are finished and visible.
    pub all_before: u64,
    ticket: u64,
}

impl Entry {
    fn new(hold: Hold) -> Entry {
        Entry {
            hold,
            number: AtomicU64::new(NONE),
            ticket: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            paused: AtomicU64::new(0),
            listed: AtomicU64::new(0),
        }
    }

    #[inline]
    pub fn is_cancelled(&self, snapshot: &Snapshot) -> bool {
        // ORDER: Acquire pairs with the Release in `cancel_oldest`. A reader that missed a version because it
        // was purged had the shard's latch after the purger, and so sees the cancellation.
        self.cancelled.load(Acquire) == snapshot.ticket
    }

    /// Nothing is read by the open snapshot until [`Entry::resume`].
    pub fn pause(&self) {
        // ORDER: Release: what was read by the snapshot was read before it may be passed over.
        self.paused.store_owned(1, Release);
    }

    /// The open snapshot is about to be read by; false if it has been cancelled, and must not be.
    pub fn resume(&self, snapshot: &Snapshot) -> bool {
        // ORDER: Relaxed before a SeqCst fence: see the head of this file.
        self.paused.store_owned(0, Relaxed);
        fence(SeqCst);
        !self.is_cancelled(snapshot)
    }

    pub fn close(&self) {
        // ORDER: Release: the snapshot's owner has read what it read before its versions may be taken away.
        self.number.store_owned(NONE, Release);
    }
}

#[derive(Debug)]
pub struct Registry {
    /// What only snapshots below this number need may have been taken away.
    announced: CachePadded<AtomicU64>,
    entries: Mutex<Entries, SnapshotsLatch>,
}

#[derive(Debug)]
struct Listed {
    entry: EntryRef,
    /// How often it has been found closed since it was found open.
    looks: u32,
}

#[derive(Debug, Default)]
struct Entries {
    /// All that are open, and others that were a short time ago.
    listed: Vec<Listed>,
    /// Those without a session, by [`Hold`].
    free: [Vec<EntryRef>; 2],
}

/// The snapshots that are open at a moment. A snapshot that opens later has a number of `announced` or more.
#[derive(PartialEq, Eq, Debug)]
pub struct Live {
    pub announced: u64,
    /// Numbers of the open snapshots that something is read by or may be, ascending: of all but those that
    /// were cancelled and pause.
    open: Vec<u64>,
    /// The numbers of those that have not been cancelled.
    needed: Vec<u64>,
}

thread_local! {
    /// The memory of the last one, for the next: some are made under latches.
    static SPARE: Cell<Option<[Vec<u64>; 2]>> = const { Cell::new(None) };
}

impl Drop for Live {
    fn drop(&mut self) {
        let spare = [&mut self.open, &mut self.needed].map(|list| {
            list.clear();
            std::mem::take(list)
        });
        // A thread that is ending has no use for it.
        let _ = SPARE.try_with(|place| place.set(Some(spare)));
    }
}

impl Live {
    /// Nothing is open.
    fn none(announced: u64) -> Live {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        let [open, needed] = spare.unwrap_or_default();
        Live { announced, open, needed }
    }

    /// The smallest number of an open snapshot that may be read by, or of one to come.
    pub fn horizon(&self) -> u64 {
        self.open.first().map_or(self.announced, |first| self.announced.min(*first))
    }

    /// True if a snapshot is open that may be read by, with `from <= number < to`.
    pub fn is_any_open_in(&self, from: u64, to: u64) -> bool {
        last_in(&self.open, from, to).is_some()
    }

    /// The largest number with `from <= number < to` of a snapshot that needs old versions.
    pub fn last_needed_in(&self, from: u64, to: u64) -> Option<u64> {
        last_in(&self.needed, from, to)
    }

    /// All numbers with `from <= number < to` of snapshots that need old versions.
    pub fn all_needed_in(&self, from: u64, to: u64) -> impl Iterator<Item = u64> {
        self.needed.iter().copied().filter(move |number| (from..to).contains(number))
    }

    /// The smallest number of an open snapshot that has not been cancelled.
    pub fn oldest_needed(&self) -> Option<u64> {
        self.needed.first().copied()
    }

    pub fn needs(&self, number: u64) -> bool {
        self.needed.binary_search(&number).is_ok()
    }
}

fn last_in(ascending: &[u64], from: u64, to: u64) -> Option<u64> {
    let end = ascending.partition_point(|number| *number < to);
    ascending[..end].last().copied().filter(|number| *number >= from)
}

impl Entries {
    fn list(&mut self, entry: &EntryRef) {
        // ORDER: under the mutex. A reclaimer may have found the number meanwhile and left it listed.
        if entry.listed.load(Relaxed) == 0 {
            entry.listed.store(1, Relaxed);
            self.listed.push(Listed { entry: entry.clone(), looks: 0 });
        }
    }
}

impl Registry {
    pub fn new() -> Registry {
        Registry { announced: CachePadded(AtomicU64::new(0)), entries: Mutex::default() }
    }

    pub fn register(&self, hold: Hold) -> EntryRef {
        let mut entries = self.entries.lock();
        let free = entries.free[hold as usize].pop();
        let entry = free.unwrap_or_else(|| Arc::new(CachePadded(Entry::new(hold))));
        // Its first snapshot is likely to come soon.
        entries.list(&entry);
        entry
    }

    /// The entry's session has ended.
    pub fn unregister(&self, entry: EntryRef) {
        entry.close();
        self.entries.lock().free[entry.hold as usize].push(entry);
    }

    /// Opens a snapshot in the entry. It replaces the one that may be there. `now` loads the lowest
    /// unfinished id and then the clock.
    #[inline]
    pub fn open(&self, entry: &EntryRef, now: impl Fn() -> (u64, u64)) -> Snapshot {
        // ORDER: Relaxed: the session's own.
        let ticket = entry.ticket.load(Relaxed) + 1;
        // ORDER: Release on both: a thread that reads this ticket does not read the number of an earlier
        // snapshot, and what was read through the earlier snapshot was read before.
        entry.number.store_owned(NONE, Release);
        entry.ticket.store_owned(ticket, Release);
        // ORDER: Relaxed before the fence below, as in `resume`. The number that follows cannot be cancelled
        // yet.
        if entry.paused.load(Relaxed) != 0 {
            entry.paused.store_owned(0, Relaxed);
        }
        loop {
            let (all_before, number) = now();
            // ORDER: Relaxed before a SeqCst fence, then Relaxed: see the head of this file.
            entry.number.store_owned(number, Relaxed);
            fence(SeqCst);
            // Before the look at what is announced.
            if entry.listed.load(Relaxed) == 0 {
                self.list(entry);
            }
            if self.announced.load(Relaxed) <= number {
                // ORDER: Acquire: from here on as if the load above had been an Acquire load.
                fence(Acquire);
                return Snapshot { number, all_before, ticket };
            }
        }
    }

    /// Has reclaimers look at the entry from now on.
    #[cold]
    fn list(&self, entry: &EntryRef) {
        self.entries.lock().list(entry);
    }

    /// The open snapshots, for a reclaimer that is going to take away what none of them needs.
    pub fn live(&self, clock: impl Fn() -> u64) -> Live {
        // ORDER: SeqCst fence between this write and the reads of the entries: see the head of this file.
        let clock = clock();
        let announced = clock.max(self.announced.fetch_max(clock, SeqCst));
        fence(SeqCst);
        let mut live = Live::none(announced);
        self.entries.lock().listed.retain_mut(|Listed { entry, looks }| {
            let (number, is_cancelled) = read(entry);
            if number == NONE {
                *looks += 1;
                return *looks < LOOKS_MAX || !unlist(entry);
            }
            *looks = 0;
            if !is_cancelled {
                live.needed.push(number);
            } else if is_passed_over(entry) {
                return true;
            }
            live.open.push(number);
            true
        });
        live.open.sort_unstable();
        live.needed.sort_unstable();
        live
    }

    /// Cancels the snapshots that may be cancelled, with numbers up to this one. True if there were any.
    pub fn cancel_until(&self, number: u64) -> bool {
        let entries = self.entries.lock();
        let mut is_any = false;
        let listed = entries.listed.iter().map(|listed| &listed.entry);
        for entry in listed.filter(|entry| entry.hold == Hold::UntilCancelled) {
            // ORDER: Acquire: the ticket is read before the number, so it belongs to the number or to an
            // earlier snapshot. To cancel an earlier one does nothing.
            let ticket = entry.ticket.load(Acquire);
            let (own, is_cancelled) = read(entry);
            if own <= number && !is_cancelled {
                // ORDER: Release, before anything is purged in consequence: see `is_cancelled`.
                entry.cancelled.store(ticket, Release);
                is_any = true;
            }
        }
        is_any
    }
}

/// Under the mutex: takes an entry that was found closed from the list. False if it has been opened
/// meanwhile, and stays.
fn unlist(entry: &Entry) -> bool {
    // ORDER: Relaxed before a SeqCst fence: see the head of this file.
    entry.listed.store(0, Relaxed);
    fence(SeqCst);
    let is_closed = entry.number.load(Relaxed) == NONE;
    if !is_closed {
        entry.listed.store(1, Relaxed);
    }
    is_closed
}

/// True if nothing is read, nor will be, by the snapshot of this entry, which was seen cancelled.
fn is_passed_over(entry: &Entry) -> bool {
    // ORDER: a SeqCst fence between the loads: see the head of this file.
    fence(SeqCst);
    entry.paused.load(Relaxed) != 0
}

/// An entry's number, and whether the snapshot with that number has been cancelled.
fn read(entry: &Entry) -> (u64, bool) {
    loop {
        // ORDER: Acquire keeps the loads in order. If the ticket did not change in between it belongs to the
        // number.
        let ticket = entry.ticket.load(Acquire);
        let number = entry.number.load(Acquire);
        if entry.ticket.load(Acquire) == ticket {
            return (number, entry.cancelled.load(Acquire) == ticket);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn open(registry: &Registry, entry: &EntryRef, clock: u64) -> Snapshot {
        registry.open(entry, || (1, clock))
    }

    #[test]
    fn the_horizon_is_the_oldest_open_snapshot_or_the_clock() {
        let registry = Registry::new();
        let entries = [0; 3].map(|_| registry.register(Hold::UntilCancelled));
        assert_eq!(registry.live(|| 9).horizon(), 9);
        open(&registry, &entries[0], 12);
        open(&registry, &entries[1], 10);
        let live = registry.live(|| 20);
        assert_eq!(live.horizon(), 10);
        assert_eq!(live.last_needed_in(10, 12), Some(10));
        assert_eq!(live.last_needed_in(11, 12), None);
        assert_eq!(live.last_needed_in(0, 100), Some(12));
        assert!(live.is_any_open_in(12, 13) && !live.is_any_open_in(13, 99));
        entries[1].close();
        assert_eq!(registry.live(|| 20).horizon(), 12);
    }

    #[test]
    fn cancelling_takes_the_old_and_spares_the_young_the_entrys_next_snapshot_and_statements() {
        let registry = Registry::new();
        let entries = [Hold::UntilCancelled, Hold::UntilCancelled, Hold::UntilClosed]
            .map(|hold| registry.register(hold));
        let first = open(&registry, &entries[0], 5);
        let second = open(&registry, &entries[1], 6);
        let statement = open(&registry, &entries[2], 5);
        assert!(registry.cancel_until(5));
        assert!(entries[0].is_cancelled(&first) && !entries[1].is_cancelled(&second));
        assert!(!entries[2].is_cancelled(&statement));
        entries[2].close();
        let live = registry.live(|| 7);
        assert_eq!((live.horizon(), live.last_needed_in(0, 7)), (5, Some(6)));
        let again = open(&registry, &entries[0], 7);
        assert!(!entries[0].is_cancelled(&again));
        assert!(registry.cancel_until(6));
        assert!(!registry.cancel_until(6), "once is enough");
    }

    #[test]
    fn a_cancelled_snapshot_counts_while_it_is_read_by() {
        let registry = Registry::new();
        let entry = registry.register(Hold::UntilCancelled);
        let snapshot = open(&registry, &entry, 5);
        let horizon = || registry.live(|| 7).horizon();
        entry.pause();
        assert_eq!(horizon(), 5, "a snapshot that pauses counts until it is cancelled");
        assert!(entry.resume(&snapshot));
        assert!(registry.cancel_until(5));
        assert_eq!(horizon(), 5);
        entry.pause();
        assert_eq!(horizon(), 7);
        assert!(!entry.resume(&snapshot));
        open(&registry, &entry, 7);
        assert_eq!(registry.live(|| 9).horizon(), 7, "the next snapshot does not pause");
    }

    #[test]
    fn entries_of_ended_sessions_are_used_again() {
        let registry = Registry::new();
        for _ in 0..10 {
            let entry = registry.register(Hold::UntilClosed);
            open(&registry, &entry, 1);
            registry.unregister(entry);
        }
        let entries = registry.entries.lock();
        assert_eq!((entries.free[Hold::UntilClosed as usize].len(), entries.listed.len()), (1, 1));
    }

    #[test]
    fn idle_sessions_are_not_looked_at() {
        const IDLE: usize = 10_000;
        let registry = Registry::new();
        let entries: Vec<_> = (0..IDLE).map(|_| registry.register(Hold::UntilCancelled)).collect();
        for entry in &entries {
            open(&registry, entry, 5);
        }
        assert_eq!(registry.live(|| 9).open.len(), IDLE);
        entries.iter().skip(1).for_each(|entry| entry.close());
        for _ in 0..LOOKS_MAX {
            assert_eq!(registry.live(|| 9).horizon(), 5);
        }
        assert_eq!(registry.entries.lock().listed.len(), 1);
        // Each comes back by its next snapshot.
        open(&registry, &entries[7], 9);
        assert_eq!(registry.entries.lock().listed.len(), 2);
        assert_eq!(registry.live(|| 12).open, [5, 9]);
        assert!(registry.cancel_until(10));
        entries[0].close();
        entries[7].pause();
        assert_eq!(registry.live(|| 12).horizon(), 12);
    }

    #[test]
    fn what_is_open_is_noted_in_memory_that_is_used_again() {
        let registry = Registry::new();
        let entry = registry.register(Hold::UntilCancelled);
        open(&registry, &entry, 5);
        let memory = registry.live(|| 9).open.as_ptr();
        assert_eq!(registry.live(|| 9).open.as_ptr(), memory);
    }
}
