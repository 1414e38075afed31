//! Which writers are still copying. From this a leader knows up to where the ring has no hole.
//!
//! A writer claims a slot by storing the next LSN as it is then, which is at or below what the writer will
//! get. Then it reserves, stores the exact start, copies, and gives the slot back (wal R1). A leader reads
//! the end of the log *first* and the slots *after that* (wal R3): a writer that reserved below that end had
//! claimed its slot before, so the leader sees the claim, or the writer has finished.

use base::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use base::sync::{CachePadded, thread, thread_local};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many writers can copy at the same time. Copying takes less than a microsecond, so this has to be about
/// the number of cores, and of threads that were interrupted while they copied, not the number of threads.
#[cfg(not(feature = "shuttle"))]
const SLOTS: usize = 64;
/// In models three threads are enough to take all slots.
#[cfg(feature = "shuttle")]
const SLOTS: usize = 2;

const IDLE: u64 = u64::MAX;

thread_local! {
    /// Where this thread looks first, so that threads rarely meet in a slot.
    static FIRST: usize = {
        let mut hasher = DefaultHasher::new();
        thread::current().id().hash(&mut hasher);
        hasher.finish() as usize % SLOTS
    };
}

#[derive(Debug)]
pub(crate) struct Slots {
    slots: [CachePadded<AtomicU64>; SLOTS],
}

/// A claimed slot.
#[derive(Debug)]
pub(crate) struct Slot<'s>(&'s AtomicU64);

impl Slots {
    pub fn new() -> Slots {
        Slots { slots: std::array::from_fn(|_| CachePadded(AtomicU64::new(IDLE))) }
    }

    /// Claims a slot that says "from `next`, as it is now, on". `None` if all are taken.
    pub fn claim(&self, next: &AtomicU64) -> Option<Slot<'_>> {
        let first = FIRST.try_with(|first| *first).unwrap_or(0);
        for i in 0..SLOTS {
            let slot = &*self.slots[(first + i) % SLOTS];
            // ORDER: the exchange decides. An old `next` is lower, which only makes a leader wait longer.
            if slot.load(Relaxed) != IDLE {
                continue;
            }
            let bound = next.load(Relaxed);
            // ORDER: Acquire and Release, so that a leader that sees this claim also sees what the slot's
            // last user copied.
            if slot.compare_exchange(IDLE, bound, AcqRel, Relaxed).is_ok() {
                return Some(Slot(slot));
            }
        }
        None
    }

    /// The position below which every record is in the ring. It may be too low, and is never too high.
    pub fn complete_up_to(&self, next: &AtomicU64) -> u64 {
        // ORDER: the end first: its Acquire meets the Release of every reservation below it, and with that
        // the claims made before.
        let end = next.load(Acquire);
        self.lowest(end)
    }

    fn lowest(&self, end: u64) -> u64 {
        // ORDER: Acquire meets the Release with which a writer moved its slot or gave it back, so its words
        // are visible.
        self.slots.iter().fold(end, |lowest, slot| lowest.min(slot.load(Acquire)))
    }
}

impl Slot<'_> {
    /// Everything below `lsn` is copied.
    pub fn move_to(&self, lsn: u64) {
        // ORDER: publishes the words below.
        self.0.store(lsn, Release);
    }

    /// The record is copied.
    pub fn complete(self) {
        // ORDER: publishes the words.
        self.0.store(IDLE, Release);
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod models {
    use super::*;
    use base::sync::{Arc, find_fault, shuttle};

    #[derive(Debug)]
    struct Model {
        next: AtomicU64,
        slots: Slots,
        words: [AtomicU64; 4],
    }

    impl Model {
        fn new() -> Arc<Model> {
            let words = std::array::from_fn(|_| AtomicU64::new(0));
            Arc::new(Model { next: AtomicU64::new(0), slots: Slots::new(), words })
        }

        fn append(&self) {
            let slot = loop {
                match self.slots.claim(&self.next) {
                    Some(slot) => break slot,
                    None => thread::yield_now(),
                }
            };
            let start = self.next.fetch_add(1, Release);
            slot.move_to(start);
            self.words[start as usize].store(1, Relaxed);
            slot.complete();
        }

        fn assert_no_hole(&self, end: u64) {
            for word in &self.words[..end as usize] {
                assert_eq!(word.load(Relaxed), 1, "a hole was called complete");
            }
        }
    }

    fn run(complete_up_to: fn(&Model) -> u64) {
        let model = Model::new();
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let model = model.clone();
                thread::spawn(move || model.append())
            })
            .collect();
        for _ in 0..3 {
            let end = complete_up_to(&model);
            model.assert_no_hole(end);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(complete_up_to(&model), 3);
    }

    fn explore(complete_up_to: fn(&Model) -> u64) {
        shuttle::check_random(move || run(complete_up_to), 4000);
        shuttle::check_pct(move || run(complete_up_to), 4000, 3);
    }

    #[test]
    fn no_hole_is_ever_called_complete() {
        explore(|model| model.slots.complete_up_to(&model.next));
    }

    /// The canary: to read the slots before the end is the wrong way round.
    #[test]
    #[should_panic(expected = "a hole was called complete")]
    fn a_leader_that_reads_the_slots_before_the_end_is_caught() {
        find_fault(|| {
            run(|model| {
                let lowest = model.slots.lowest(u64::MAX);
                lowest.min(model.next.load(Acquire))
            });
        });
    }
}
