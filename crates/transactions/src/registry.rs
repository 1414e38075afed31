//! Which snapshots are open: a slot for each session, and the horizon.
//!
//! Opening one writes the session's own slot and nothing else. That it is not overlooked:
//!
//! ```text
//! session:    number = clock;  own slot = number;  fence;  announced > number?  again
//! reclaimer:  announced = clock;                   fence;  read all slots
//! ```
//!
//! Of the two fences one is first. If it is the session's, the reclaimer reads its slot. If it is the
//! reclaimer's, the session sees what was announced, and either has a number no less, of which nothing is
//! taken, or starts again.

use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use base::sync::{Arc, CachePadded, Mutex};

base::latch_class!(pub SnapshotsLatch, "snapshots");

/// The number of a slot without a snapshot.
const NONE: u64 = u64::MAX;

/// A session's place among the readers. Written by its session only, but for `cancelled`.
#[derive(Debug)]
pub struct Slot {
    /// The snapshot's number.
    number: AtomicU64,
    /// Counts the snapshots of this slot, so that cancelling one does not cancel the next.
    ticket: AtomicU64,
    /// The ticket of the snapshot that was cancelled last.
    cancelled: AtomicU64,
}

pub type SlotRef = Arc<CachePadded<Slot>>;

/// What an open snapshot sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Whatever finished at this number or before.
    pub number: u64,
    /// All ids below are finished and visible.
    pub all_before: u64,
    ticket: u64,
}

impl Slot {
    pub fn is_cancelled(&self, snapshot: &Snapshot) -> bool {
        // ORDER: Acquire pairs with the Release in `cancel_oldest`. A reader that missed a version because it
        // was purged had the shard's latch after the purger, and so sees why.
        self.cancelled.load(Acquire) == snapshot.ticket
    }

    pub fn close(&self) {
        // ORDER: Release: what the snapshot's owner read was read before its versions may be taken away.
        self.number.store_owned(NONE, Release);
    }
}

#[derive(Debug)]
pub struct Registry {
    /// Something may have been taken away that only snapshots below this need.
    announced: CachePadded<AtomicU64>,
    slots: Mutex<Slots, SnapshotsLatch>,
}

#[derive(Debug, Default)]
struct Slots {
    all: Vec<SlotRef>,
    free: Vec<SlotRef>,
}

/// The snapshots open at a moment. What opens later has a number of `announced` or more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Live {
    pub announced: u64,
    /// Numbers of all open snapshots, ascending.
    open: Vec<u64>,
    /// Those of them that have not been cancelled.
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

    /// The largest number with `from <= number < to` of a snapshot that counts on old versions.
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
        Registry { announced: CachePadded(AtomicU64::new(0)), slots: Mutex::default() }
    }

    pub fn register(&self) -> SlotRef {
        let mut slots = self.slots.lock();
        slots.free.pop().unwrap_or_else(|| {
            let slot = Arc::new(CachePadded(Slot {
                number: AtomicU64::new(NONE),
                ticket: AtomicU64::new(0),
                cancelled: AtomicU64::new(0),
            }));
            slots.all.push(slot.clone());
            slot
        })
    }

    /// The slot's session has ended.
    pub fn unregister(&self, slot: SlotRef) {
        slot.close();
        self.slots.lock().free.push(slot);
    }

    /// Opens a snapshot in the slot, in place of the one that may be there. `now` gives the lowest unfinished
    /// id and then the clock.
    #[inline]
    pub fn open(&self, slot: &Slot, now: impl Fn() -> (u64, u64)) -> Snapshot {
        // ORDER: Relaxed: the session's own.
        let ticket = slot.ticket.load(Relaxed) + 1;
        // ORDER: Release on both: a thread that reads this ticket reads no number of an earlier snapshot, and
        // what was read through the earlier one was read before.
        slot.number.store_owned(NONE, Release);
        slot.ticket.store_owned(ticket, Release);
        loop {
            let (all_before, number) = now();
            // ORDER: Relaxed before a SeqCst fence, then Relaxed: see the head of this file.
            slot.number.store_owned(number, Relaxed);
            fence(SeqCst);
            if self.announced.load(Relaxed) <= number {
                // ORDER: Acquire: on from here as if the load above had been one.
                fence(Acquire);
                return Snapshot { number, all_before, ticket };
            }
        }
    }

    /// The open snapshots, for a thread that is about to remove what none of them needs.
    pub fn live(&self, clock: impl Fn() -> u64) -> Live {
        // ORDER: SeqCst fence between this write and the reads of the slots: see the head of this file.
        let clock = clock();
        let announced = clock.max(self.announced.fetch_max(clock, SeqCst));
        fence(SeqCst);
        let slots = self.slots.lock();
        let mut live = Live { announced, open: Vec::new(), needed: Vec::new() };
        for slot in &slots.all {
            let (number, is_cancelled) = read(slot);
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
        let slots = self.slots.lock();
        let oldest = slots
            .all
            .iter()
            // ORDER: Acquire: the ticket before the number, so that it is the number's or an older one, which
            // harms nobody.
            .map(|slot| (slot, slot.ticket.load(Acquire), read(slot)))
            .filter(|(_, _, (number, is_cancelled))| *number < clock && !is_cancelled)
            .min_by_key(|(_, _, (number, _))| *number);
        let Some((slot, ticket, _)) = oldest else { return false };
        // ORDER: Release, before anything is purged in consequence: see `is_cancelled`.
        slot.cancelled.store(ticket, Release);
        true
    }
}

/// A slot's number, and whether the snapshot with that number has been cancelled.
fn read(slot: &Slot) -> (u64, bool) {
    loop {
        // ORDER: Acquire keeps the loads in order; a ticket that did not change in between was the number's.
        let ticket = slot.ticket.load(Acquire);
        let number = slot.number.load(Acquire);
        if slot.ticket.load(Acquire) == ticket {
            return (number, slot.cancelled.load(Acquire) == ticket);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn open(registry: &Registry, slot: &Slot, clock: u64) -> Snapshot {
        registry.open(slot, || (1, clock))
    }

    #[test]
    fn the_horizon_is_the_oldest_open_snapshot_or_the_clock() {
        let registry = Registry::new();
        let slots = [0; 3].map(|_| registry.register());
        assert_eq!(registry.live(|| 9).horizon(), 9);
        open(&registry, &slots[0], 12);
        open(&registry, &slots[1], 10);
        let live = registry.live(|| 20);
        assert_eq!(live.horizon(), 10);
        assert_eq!(live.last_needed_in(10, 12), Some(10));
        assert_eq!(live.last_needed_in(11, 12), None);
        assert_eq!(live.last_needed_in(0, 100), Some(12));
        assert!(live.is_any_open_in(12, 13) && !live.is_any_open_in(13, 99));
        slots[1].close();
        assert_eq!(registry.live(|| 20).horizon(), 12);
    }

    #[test]
    fn cancelling_takes_the_oldest_and_spares_the_slots_next_snapshot() {
        let registry = Registry::new();
        let slots = [0; 2].map(|_| registry.register());
        let first = open(&registry, &slots[0], 5);
        let second = open(&registry, &slots[1], 6);
        assert!(registry.cancel_oldest(7));
        assert!(slots[0].is_cancelled(&first) && !slots[1].is_cancelled(&second));
        let live = registry.live(|| 7);
        assert_eq!((live.horizon(), live.last_needed_in(0, 7)), (5, Some(6)));
        let again = open(&registry, &slots[0], 7);
        assert!(!slots[0].is_cancelled(&again));
        assert!(registry.cancel_oldest(7));
        assert!(!registry.cancel_oldest(7), "what is as new as the clock holds nothing back");
    }

    #[test]
    fn slots_of_ended_sessions_are_used_again() {
        let registry = Registry::new();
        for _ in 0..10 {
            let slot = registry.register();
            registry.unregister(slot);
        }
        assert_eq!(registry.slots.lock().all.len(), 1);
    }
}
