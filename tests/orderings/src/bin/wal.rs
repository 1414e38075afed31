//! The log: slots of writers, the ring, and what the leader hands over.

extern crate latchwork_orderings as base;

#[allow(dead_code, reason = "models need a part of each source")]
#[path = "../../../../crates/wal/src"]
mod sources {
    pub mod append;
    pub mod error;
    pub mod flush;
    pub mod format;
    pub mod ring;
    pub mod slots;
}

/// The log without its files, in a form that `append` and `flush` take for it.
mod log {
    use crate::files::{Files, LogFile};
    use crate::flush::Leading;
    use crate::ring::Ring;
    use crate::slots::Slots;
    use crate::{Error, Result};
    use base::Lsn;
    use base::sync::atomic::{AtomicU64, Ordering::Acquire};
    use base::sync::{CachePadded, Condvar, Mutex, OnceLock};

    #[derive(Debug)]
    pub struct Log {
        pub next: CachePadded<AtomicU64>,
        pub slots: Slots,
        pub ring: Ring,
        pub written: CachePadded<AtomicU64>,
        pub synced: CachePadded<AtomicU64>,
        pub leading: Mutex<Leading>,
        pub write_done: Condvar,
        pub lead_ended: Condvar,
        pub device: Mutex<Device>,
        pub files: Files,
        pub poison: OnceLock<String>,
        pub counters: Counters,
    }

    #[derive(Debug, Default)]
    pub struct Device {
        pub staging: Vec<u8>,
        pub current: Option<LogFile>,
        pub unsynced: Vec<LogFile>,
    }

    #[derive(Debug, Default)]
    pub struct Counters {
        pub writes: AtomicU64,
        pub syncs: AtomicU64,
        pub waits: AtomicU64,
    }

    impl Log {
        pub fn new(start: u64, ring_bytes: usize) -> Log {
            let position = || CachePadded(AtomicU64::new(start));
            Log {
                next: position(),
                slots: Slots::new(),
                ring: Ring::new(ring_bytes),
                written: position(),
                synced: position(),
                leading: Mutex::new(Leading::default()),
                write_done: Condvar::new(),
                lead_ended: Condvar::new(),
                device: Mutex::new(Device::default()),
                files: Files::default(),
                poison: OnceLock::new(),
                counters: Counters::default(),
            }
        }

        pub fn next_lsn(&self) -> Lsn {
            Lsn(self.next.load(Acquire))
        }

        pub fn check_poison(&self) -> Result<()> {
            self.poison.get().map_or(Ok(()), |why| Err(Error::Poisoned { why: why.clone() }))
        }

        pub fn poison(&self, why: String) -> Error {
            panic!("{why}")
        }
    }
}

/// One file of any length, which keeps what is written. Its words have no order of their own.
mod files {
    use crate::Result;
    use base::sync::Arc;
    use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::io;
    use std::path::PathBuf;
    use std::time::Duration;

    #[derive(Clone, Debug, Default)]
    pub struct LogFile {
        pub path: PathBuf,
        pub file: Arc<Words>,
    }

    pub const WORDS: usize = 8;

    #[derive(Debug, Default)]
    pub struct Words {
        pub words: [AtomicU64; WORDS],
        /// How many have been synced.
        pub synced: AtomicU64,
        written: AtomicU64,
    }

    impl Words {
        pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            for (at, bytes) in bytes.chunks_exact(8).enumerate() {
                let word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                self.words[offset as usize / 8 + at].store(word, Relaxed);
            }
            self.written.store(offset / 8 + bytes.len() as u64 / 8, Relaxed);
            Ok(())
        }

        pub fn sync(&self) -> io::Result<()> {
            self.synced.store(self.written.load(Relaxed), Relaxed);
            Ok(())
        }
    }

    impl LogFile {
        pub fn first(&self) -> u64 {
            crate::START
        }

        pub fn end(&self) -> u64 {
            u64::MAX
        }

        pub fn holds(&self, _lsn: u64) -> bool {
            true
        }

        pub fn offset(&self, lsn: u64) -> u64 {
            lsn - crate::START
        }
    }

    #[derive(Debug, Default)]
    pub struct Files {
        pub file: LogFile,
        pub reserve: Reserve,
        config: Config,
    }

    #[derive(Debug, Default)]
    pub struct Config {
        pub file_size: u64,
        pub full_wait: Duration,
    }

    #[derive(Debug, Default)]
    pub struct Reserve;

    impl Reserve {
        pub fn give(&self, _bytes: u64) -> bool {
            false
        }
    }

    impl Files {
        pub fn config(&self) -> &Config {
            &self.config
        }

        pub fn holding(&self, _at: u64) -> Result<LogFile> {
            Ok(self.file.clone())
        }
    }
}

use base::runner::{Excused, Model};
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, Release},
};
use base::sync::{Arc, thread};
use log::Log;
use ring::Ring;
use slots::Slots;
use sources::error::{Error, Result};
use sources::{error, flush, format, ring, slots};
use std::process::ExitCode;

pub use format::PAYLOAD_MAX;

/// Where the log begins.
const START: u64 = 4096;

/// Slots and a ring; each record is one word.
struct Writers {
    next: AtomicU64,
    slots: Slots,
    ring: Ring,
}

impl Writers {
    fn append(&self) {
        let slot = self.slots.claim(&self.next).expect("two slots for two threads");
        // As `Log::append`.
        let start = self.next.fetch_add(8, Release);
        slot.move_to(start);
        self.ring.put(start, 7);
        slot.complete();
    }

    fn assert_no_hole(&self, end: u64) {
        for at in (0..end).step_by(8) {
            let mut word = [0; 8];
            self.ring.copy_out(at, &mut word);
            assert_eq!(u64::from_le_bytes(word), 7, "a hole was called complete");
        }
    }
}

fn no_hole_is_called_complete() {
    let writers = Arc::new(Writers { next: AtomicU64::new(0), slots: Slots::new(), ring: Ring::new(32) });
    let threads = [writers.clone(), writers.clone()].map(|writers| thread::spawn(move || writers.append()));
    writers.assert_no_hole(writers.slots.complete_up_to(&writers.next));
    threads.into_iter().for_each(|thread| thread.join().expect("a panic ends the model"));
}

/// A thread appends twice, so that a slot that looks free hides a record.
fn no_hole_is_called_complete_when_a_slot_is_used_again() {
    let writers = Arc::new(Writers { next: AtomicU64::new(0), slots: Slots::new(), ring: Ring::new(32) });
    let others = writers.clone();
    let thread = thread::spawn(move || {
        others.append();
        others.append();
    });
    writers.assert_no_hole(writers.slots.complete_up_to(&writers.next));
    thread.join().expect("a panic ends the model");
}

/// Appends a record without a payload, which has two words, and flushes it. Then both are in the file.
fn append_and_flush(log: &Log, kind: u8) {
    let place = log.append(kind, &[]).expect("there is room");
    let words: Vec<u64> = (place.start.0..place.end.0).step_by(8).map(|lsn| in_ring(log, lsn)).collect();
    log.flush(place.end, flush::Durability::Synced).expect("nothing fails");
    let file = &log.files.file.file;
    let first = (place.start.0 - START) / 8;
    assert!(file.synced.load(Relaxed) >= first + 2, "a record was called durable before it was");
    for (at, word) in (first as usize..).zip(words) {
        assert_eq!(file.words[at].load(Relaxed), word, "a word is missing");
    }
}

/// As the thread knows that has just put it there.
fn in_ring(log: &Log, lsn: u64) -> u64 {
    let mut word = [0; 8];
    log.ring.copy_out(lsn, &mut word);
    u64::from_le_bytes(word)
}

fn what_is_flushed_is_in_the_file_and_synced() {
    let log = Arc::new(Log::new(START, 32));
    let others = log.clone();
    let thread = thread::spawn(move || append_and_flush(&others, 1));
    append_and_flush(&log, 2);
    thread.join().expect("a panic ends the model");
}

/// Only looks, as a thread that asks whether it has to flush.
fn look_at(durability: flush::Durability) {
    let log = Arc::new(Log::new(START, 32));
    let others = log.clone();
    let thread = thread::spawn(move || append_and_flush(&others, 1));
    let end = base::Lsn(START + 16);
    if log.next_lsn() == end && log.flush(end, durability).is_ok() {
        let file = &log.files.file.file;
        let synced = file.synced.load(Relaxed);
        assert!(synced == 2 || durability == flush::Durability::Written, "called durable before it was");
        assert_ne!(file.words[0].load(Relaxed), 0, "called written before it was");
    }
    thread.join().expect("a panic ends the model");
}

fn who_sees_a_position_synced_finds_its_record_there() {
    look_at(flush::Durability::Synced);
}

fn who_sees_a_position_written_finds_its_record_there() {
    look_at(flush::Durability::Written);
}

/// The ring has room for one record: the second goes where the first was, when that has been written.
fn a_word_of_the_ring_is_not_used_again_before_it_is_written() {
    let log = Arc::new(Log::new(START, 16));
    let first = log.append(1, &[]).expect("there is room");
    let expected = in_ring(&log, START);
    let others = log.clone();
    let thread = thread::spawn(move || {
        others.flush(first.end, flush::Durability::Written).expect("nothing fails");
    });
    log.append(2, &[]).expect("there is room");
    thread.join().expect("a panic ends the model");
    assert_eq!(log.files.file.file.words[0].load(Relaxed), expected, "a record was overwritten");
}

const MODELS: &[Model] = base::models![
    no_hole_is_called_complete: Some(2),
    no_hole_is_called_complete_when_a_slot_is_used_again: None,
    what_is_flushed_is_in_the_file_and_synced: Some(1),
    who_sees_a_position_synced_finds_its_record_there: Some(2),
    who_sees_a_position_written_finds_its_record_there: Some(2),
    a_word_of_the_ring_is_not_used_again_before_it_is_written: Some(2),
];

const EXCUSED: &[Excused] = &[
    (
        "append.rs room: `self.written.load(Acquire) + self.ring.bytes()` -> Relaxed",
        "it keeps the leader's loads before the stores that follow, and loom lets no load see what is stored later",
    ),
    (
        "slots.rs claim: `if slot.compare_exchange(IDLE, bound, AcqRel, Relaxed).is_ok() {` -> Acquire",
        "the exchange continues the release sequence of the store that gave the slot back",
    ),
];

fn main() -> ExitCode {
    base::runner::main(MODELS, &[], EXCUSED)
}
