//! The engine: ranges that were read at SERIALIZABLE against rows that are changed, and counts of what
//! purge is to remove.

extern crate latchwork_orderings as base;

#[allow(dead_code, reason = "models need a part of each source")]
#[path = "../../../../crates/engine/src"]
mod sources {
    pub mod absent;
    pub mod ranges;
    pub mod table {
        mod garbage;

        pub mod models {
            use super::garbage::GarbageCount;
            use base::sync::{Arc, thread};

            pub fn what_is_left_unlisted_is_known_to_be() {
                let count = Arc::new(GarbageCount::default());
                count.set(1, true);
                let settling = count.clone();
                let settling = thread::spawn(move || settling.settle());
                let coming = count.clone();
                let coming = thread::spawn(move || {
                    coming.come(1);
                    coming.set_unlisted();
                });
                count.go(1);
                coming.join().expect("a panic ends the model");
                settling.join().expect("a panic ends the model");
                assert_eq!(count.left(), 1);
                assert!(count.is_unlisted() && count.settle());
            }

            pub fn something_is_left_as_long_as_something_stays() {
                let count = Arc::new(GarbageCount::default());
                count.come(1);
                let coming = count.clone();
                let coming = thread::spawn(move || {
                    coming.come(1);
                    let going = coming.clone();
                    thread::spawn(move || going.go(1))
                });
                assert!(count.left() >= 1);
                coming.join().expect("a panic ends the model").join().expect("a panic ends the model");
                assert_eq!(count.left(), 1);
            }
        }
    }
}

#[allow(dead_code, reason = "as above")]
#[path = "../../../../crates/engine/src/counter.rs"]
mod counter;

use base::runner::{Excused, Model};
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, thread};
use base::{IndexId, Stamp, TableId};
use sources::absent::AbsentLockers;
use sources::ranges::RangeLocks;
use sources::table::models::{
    something_is_left_as_long_as_something_stays, what_is_left_unlisted_is_known_to_be,
};
use std::process::ExitCode;

/// Two threads, of which one stores and then looks for what the other has stored.
fn cross(first: impl FnOnce() -> bool + 'static, second: impl FnOnce() -> bool) {
    let first = thread::spawn(first);
    let second_saw = second();
    assert!(first.join().expect("a panic ends the model") || second_saw, "neither saw the other");
}

fn a_reader_sees_the_changed_row_or_its_writer_the_range() {
    let (page, ranges) = (Arc::new(AtomicU64::new(0)), Arc::new(RangeLocks::default()));
    let (readers_page, readers_ranges) = (page.clone(), ranges.clone());
    let reader = move || {
        readers_ranges.lock(Stamp(1), (TableId(1), IndexId(0)), b"a", Some(b"z"));
        readers_page.load(Relaxed) == 1
    };
    cross(reader, || {
        page.store(1, Relaxed);
        ranges.is_any()
    });
}

fn a_locker_of_an_absent_row_sees_the_writers_latch_or_is_seen() {
    let (latch, lockers) = (Arc::new(AtomicU64::new(0)), Arc::new(AbsentLockers::default()));
    let (lockers_latch, own) = (latch.clone(), lockers.clone());
    let locker = move || {
        own.begin();
        lockers_latch.load(Relaxed) == 1
    };
    cross(locker, || {
        latch.store(1, Relaxed);
        lockers.is_any()
    });
}

const MODELS: &[Model] = base::models![
    a_reader_sees_the_changed_row_or_its_writer_the_range: None,
    a_locker_of_an_absent_row_sees_the_writers_latch_or_is_seen: None,
    what_is_left_unlisted_is_known_to_be: Some(2),
    something_is_left_as_long_as_something_stays: Some(2),
];

const FENCED: &str = "the fence beside it orders it; SeqCst says so to readers";

const EXCUSED: &[Excused] = &[
    ("absent.rs begin: `self.0.fetch_add(1, SeqCst);` -> Relaxed", FENCED),
    ("absent.rs is_any: `self.0.load(SeqCst) > 0` -> Relaxed", FENCED),
];

fn main() -> ExitCode {
    base::runner::main(MODELS, &[], EXCUSED)
}
