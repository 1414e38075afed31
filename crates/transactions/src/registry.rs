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

use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use base::sync::{Arc, CachePadded, Mutex};

base::latch_class!(pub SnapshotsLatch, "snapshots");

/// The number of an entry without a snapshot.
const NONE: u64 = u64::MAX;

/// What a session tells about its snapshot. Only the session writes it, except for `cancelled`.
#[derive(Debug)]
pub struct Entry {
    /// The snapshot's number.
    number: AtomicU64,
    /// Counts the snapshots of this entry, so that cancelling one does not cancel the next.
    ticket: AtomicU64,
    /// The ticket of the snapshot that was cancelled last.
    cancelled: AtomicU64,
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
    pub fn is_cancelled(&self, snapshot: &Snapshot) -> bool {
        // ORDER: Acquire pairs with the Release in `cancel_oldest`. A reader that missed a version because it
        // was purged had the shard's latch after the purger, and so sees the cancellation.
        self.cancelled.load(Acquire) == snapshot.ticket
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

#[derive(Debug, Default)]
struct Entries {
    all: Vec<EntryRef>,
    free: Vec<EntryRef>,
}

/// The snapshots that are open at a moment. A snapshot that opens later has a number of `announced` or more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Live {
    pub announced: u64,
    /// Numbers of all open snapshots, ascending.
    open: Vec<u64>,
    /// The numbers of those that have not been cancelled.
    needed: Vec<u64>,
}

impl Live {
    /// The smallest number of an open snapshot, cancelled or not, or of one to come.
    pub fn horizon(&self) -> u64 {
        self.open.first().map_or(self.announced, |first| self.announced.min(*first))
    }

    /// True if a snapshot is open, cancelled or not, with `from <= number < to`.
    pub fn is_any_open_in(&self, from: u64, to: u64) -> bool {
        last_in(&self.open, from, to).is_some()
    }

    /// The largest number with `from <= number < to` of a snapshot that needs old versions.
    pub fn last_needed_in(&self, from: u64, to: u64) -> Option<u64> {
        last_in(&self.needed, from, to)
    }

    pub fn needs(&self, number: u64) -> bool {
        self.needed.binary_search(&number).is_ok()
    }
}

fn last_in(ascending: &[u64], from: u64, to: u64) -> Option<u64> {
    let end = ascending.partition_point(|number| *number < to);
    ascending[..end].last().copied().filter(|number| *number >= from)
}

impl Registry {
    pub fn new() -> Registry {
        Registry { announced: CachePadded(AtomicU64::new(0)), entries: Mutex::default() }
    }

    pub fn register(&self) -> EntryRef {
        let mut entries = self.entries.lock();
        entries.free.pop().unwrap_or_else(|| {
            let entry = Arc::new(CachePadded(Entry {
                number: AtomicU64::new(NONE),
                ticket: AtomicU64::new(0),
                cancelled: AtomicU64::new(0),
            }));
            entries.all.push(entry.clone());
            entry
        })
    }

    /// The entry's session has ended.
    pub fn unregister(&self, entry: EntryRef) {
        entry.close();
        self.entries.lock().free.push(entry);
    }

    /// Opens a snapshot in the entry. It replaces the one that may be there. `now` loads the lowest
    /// unfinished id and then the clock.
    #[inline]
    pub fn open(&self, entry: &Entry, now: impl Fn() -> (u64, u64)) -> Snapshot {
        // ORDER: Relaxed: the session's own.
        let ticket = entry.ticket.load(Relaxed) + 1;
        // ORDER: Release on both: a thread that reads this ticket does not read the number of an earlier
        // snapshot, and what was read through the earlier snapshot was read before.
        entry.number.store_owned(NONE, Release);
        entry.ticket.store_owned(ticket, Release);
        loop {
            let (all_before, number) = now();
            // ORDER: Relaxed before a SeqCst fence, then Relaxed: see the head of this file.
            entry.number.store_owned(number, Relaxed);
            fence(SeqCst);
            if self.announced.load(Relaxed) <= number {
                // ORDER: Acquire: from here on as if the load above had been an Acquire load.
                fence(Acquire);
                return Snapshot { number, all_before, ticket };
            }
        }
    }

    /// The open snapshots, for a reclaimer that is going to take away what none of them needs.
    pub fn live(&self, clock: impl Fn() -> u64) -> Live {
        // ORDER: SeqCst fence between this write and the reads of the entries: see the head of this file.
        let clock = clock();
        let announced = clock.max(self.announced.fetch_max(clock, SeqCst));
        fence(SeqCst);
        let entries = self.entries.lock();
        let mut live = Live { announced, open: Vec::new(), needed: Vec::new() };
        for entry in &entries.all {
            let (number, is_cancelled) = read(entry);
            if number != NONE {
                live.open.push(number);
                if !is_cancelled {
                    live.needed.push(number);
                }
            }
        }
        live.open.sort_unstable();
        live.needed.sort_unstable();
        live
    }

    /// Cancels the oldest snapshot that is open, not cancelled yet, and older than `clock`. False if there is
    /// none.
    pub fn cancel_oldest(&self, clock: u64) -> bool {
        let entries = self.entries.lock();
        let oldest = entries
            .all
            .iter()
            // ORDER: Acquire: the ticket is read before the number, so it belongs to the number or to an
            // earlier snapshot. To cancel an earlier one does nothing.
            .map(|entry| (entry, entry.ticket.load(Acquire), read(entry)))
            .filter(|(_, _, (number, is_cancelled))| *number < clock && !is_cancelled)
            .min_by_key(|(_, _, (number, _))| *number);
        let Some((entry, ticket, _)) = oldest else { return false };
        // ORDER: Release, before anything is purged in consequence: see `is_cancelled`.
        entry.cancelled.store(ticket, Release);
        true
    }
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

    fn open(registry: &Registry, entry: &Entry, clock: u64) -> Snapshot {
        registry.open(entry, || (1, clock))
    }

    #[test]
    fn the_horizon_is_the_oldest_open_snapshot_or_the_clock() {
        let registry = Registry::new();
        let entries = [0; 3].map(|_| registry.register());
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
    fn cancelling_takes_the_oldest_and_spares_the_entrys_next_snapshot() {
        let registry = Registry::new();
        let entries = [0; 2].map(|_| registry.register());
        let first = open(&registry, &entries[0], 5);
        let second = open(&registry, &entries[1], 6);
        assert!(registry.cancel_oldest(7));
        assert!(entries[0].is_cancelled(&first) && !entries[1].is_cancelled(&second));
        let live = registry.live(|| 7);
        assert_eq!((live.horizon(), live.last_needed_in(0, 7)), (5, Some(6)));
        let again = open(&registry, &entries[0], 7);
        assert!(!entries[0].is_cancelled(&again));
        assert!(registry.cancel_oldest(7));
        assert!(!registry.cancel_oldest(7), "what is as new as the clock holds nothing back");
    }

    #[test]
    fn entries_of_ended_sessions_are_used_again() {
        let registry = Registry::new();
        for _ in 0..10 {
            let entry = registry.register();
            registry.unregister(entry);
        }
        assert_eq!(registry.entries.lock().all.len(), 1);
    }
}
