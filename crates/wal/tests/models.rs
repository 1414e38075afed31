//! Models: every interleaving that a randomised scheduler finds, of the few steps that matter.
//!
//! `cargo test -p latchwork-wal --features shuttle`
//!
//! The scheduler switches threads at every atomic, mutex and condition variable, and reports a deadlock when
//! nobody can go on: that is how a lost wake-up shows. It runs sequentially consistent memory only; the weak
//! orderings are argued beside each in the code. The device forgets what was not synced. Canaries at the end,
//! and in `slots.rs`, show that the models can fail.
#![cfg(feature = "shuttle")]

mod common;

use base::Lsn;
use base::sync::{Arc, find_fault, shuttle, thread};
use common::{CrashVfs, config, read_all};
use latchwork_wal::{Durability, Error, Log};
use std::io::ErrorKind;
use std::ops::Range;
use vfs::{Fault, Faults, FaultyVfs, Operation, Vfs};

/// Bytes of payload that make a record of two words.
const SMALL: usize = 7;

#[derive(Clone)]
struct Model {
    device: CrashVfs,
    faults: Faults,
    log: Arc<Log>,
}

impl Model {
    /// A log with a ring of eight words.
    fn new() -> Model {
        let device = CrashVfs::default();
        let vfs = FaultyVfs::new(Arc::new(device.clone()));
        let faults = vfs.faults();
        let log = Arc::new(Log::create(Arc::new(vfs), config(64)).unwrap());
        Model { device, faults, log }
    }

    fn spawn(&self, body: impl FnOnce(Model) + Send + 'static) -> thread::JoinHandle<()> {
        let model = self.clone();
        thread::spawn(move || body(model))
    }

    fn append(&self, byte: u8, bytes: usize) -> Range<Lsn> {
        self.log.append(byte, &[&vec![byte; bytes]]).unwrap()
    }

    /// Appends and flushes; what a crash would leave has the record, whole, and everything before it.
    fn commit(&self, byte: u8, bytes: usize) {
        let place = self.append(byte, bytes);
        self.log.flush(place.end, Durability::Synced).unwrap();
        assert!(self.log.flushed_lsn() >= place.end);
        self.assert_durable(byte, bytes, &place);
    }

    fn assert_durable(&self, byte: u8, bytes: usize, place: &Range<Lsn>) {
        assert!(
            self.survives(&*self.device.after_crash(), byte, bytes, place),
            "acknowledged and not durable"
        );
    }

    fn survives(&self, vfs: &dyn Vfs, byte: u8, bytes: usize, place: &Range<Lsn>) -> bool {
        let (records, ..) = read_all(vfs);
        let record = records.iter().find(|record| record.lsn == place.start);
        record.is_some_and(|record| {
            record.end == place.end && record.kind == byte && record.payload == vec![byte; bytes]
        })
    }

    /// Everything was synced, and is there without a hole.
    fn assert_all_there(&self, records: usize) {
        let (found, end, _) = read_all(&*self.device.after_crash());
        assert_eq!((found.len(), end), (records, self.log.next_lsn()));
    }
}

/// Interleavings a model, times its weight. All models together take some seconds of processor time.
const ITERATIONS: usize = 100;

fn explore(weight: usize, model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let (random, priorities) = (model.clone(), model);
    shuttle::check_random(move || random(), ITERATIONS * weight);
    // Priorities with a few changes find failures in which one thread stands still while another runs far.
    shuttle::check_pct(move || priorities(), ITERATIONS * weight, 3);
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn no_hole_is_ever_reported_as_flushed() {
    explore(40, || {
        let model = Model::new();
        // Writers that do not flush, and one that does. It finds their records below its own complete.
        let writers =
            [1, 2].map(|byte| model.spawn(move |model| assert!(model.append(byte, SMALL).start.0 > 0)));
        model.commit(3, SMALL);
        let flushed = model.log.flushed_lsn();
        let (_, end, _) = read_all(&*model.device.after_crash());
        assert!(end >= flushed, "flushed up to {flushed}, whole up to {end}");
        join(writers);
        model.log.flush(model.log.next_lsn(), Durability::Synced).unwrap();
        model.assert_all_there(3);
    });
}

#[test]
fn nobody_returns_before_its_record_is_durable_and_nobody_sleeps_for_ever() {
    explore(40, || {
        let model = Model::new();
        let writers = [1, 2, 3].map(|byte| model.spawn(move |model| model.commit(byte, SMALL)));
        join(writers);
        model.assert_all_there(3);
    });
}

#[test]
fn those_who_want_it_written_and_those_who_want_it_synced_share_a_leader() {
    explore(40, || {
        let model = Model::new();
        let synced = model.spawn(|model| model.commit(1, SMALL));
        let written = [2, 3].map(|byte| {
            model.spawn(move |model| {
                let place = model.append(byte, SMALL);
                model.log.flush(place.end, Durability::Written).unwrap();
                assert!(model.survives(&model.device.live, byte, SMALL, &place), "not written");
            })
        });
        join(written);
        join([synced]);
        model.log.flush(model.log.next_lsn(), Durability::Synced).unwrap();
        model.assert_all_there(3);
    });
}

#[test]
fn a_full_ring_is_emptied_by_those_who_wait_for_room() {
    explore(30, || {
        let model = Model::new();
        // Five records of four words go through eight words, and nobody flushes on purpose.
        let writers = [1, 2].map(|byte| {
            model.spawn(move |model| {
                model.append(byte, 20);
                model.append(byte, 20);
            })
        });
        model.append(3, 20);
        join(writers);
        model.log.flush(model.log.next_lsn(), Durability::Synced).unwrap();
        model.assert_all_there(5);
    });
}

#[test]
fn records_larger_than_the_ring_pass_through_it_beside_others() {
    explore(20, || {
        let model = Model::new();
        let large = model.spawn(|model| model.commit(1, 150));
        let other = model.spawn(|model| model.commit(2, 80));
        model.commit(3, SMALL);
        join([large, other]);
        model.assert_all_there(3);
    });
}

#[test]
fn a_flush_of_the_records_of_others_lets_them_come_through_the_ring() {
    explore(20, || {
        let model = Model::new();
        let writers = [(1, 90), (2, 40)]
            .map(|(byte, bytes)| model.spawn(move |model| assert!(model.append(byte, bytes).start.0 > 0)));
        // A page or a checkpoint asks for records that other threads have reserved and not copied yet.
        for _ in 0..2 {
            let end = model.log.next_lsn();
            model.log.flush(end, Durability::Synced).unwrap();
            assert!(read_all(&*model.device.after_crash()).1 >= end);
        }
        join(writers);
        model.log.flush(model.log.next_lsn(), Durability::Synced).unwrap();
        model.assert_all_there(2);
    });
}

/// Appends and flushes on a device that will fail: what is acknowledged is durable, and every other record
/// gets an error.
fn try_commit(model: &Model, byte: u8, bytes: usize) {
    let committed = model.log.append(byte, &[&vec![byte; bytes]]).and_then(|place| {
        model.log.flush(place.end, Durability::Synced)?;
        Ok(place)
    });
    match committed {
        Ok(place) => model.assert_durable(byte, bytes, &place),
        Err(error) => {
            assert!(matches!(error, Error::Poisoned { .. }), "{error}");
            assert!(model.log.append(byte, &[]).is_err(), "poisoned for ever");
        }
    }
}

#[test]
fn a_failed_sync_reaches_all_who_wait() {
    for nth in 1..=2 {
        explore(20, move || {
            let model = Model::new();
            model.faults.fail_from(Operation::Sync, nth, Fault::Error(ErrorKind::Other));
            join([1, 2, 3].map(|byte| model.spawn(move |model| try_commit(&model, byte, SMALL))));
        });
    }
}

#[test]
fn a_failed_write_reaches_those_who_wait_for_room() {
    for nth in 1..=3 {
        explore(20, move || {
            let model = Model::new();
            model.faults.fail_from(Operation::Write, nth, Fault::Torn(ErrorKind::Other));
            join([1, 2, 3].map(|byte| model.spawn(move |model| try_commit(&model, byte, 60))));
            assert!(model.log.poisoned().is_some());
        });
    }
}

/// The canary: who does not wait for its flush is caught.
#[test]
#[should_panic(expected = "acknowledged and not durable")]
fn a_commit_that_only_waits_for_the_write_is_caught() {
    find_fault(|| {
        let model = Model::new();
        let other = model.spawn(|model| model.commit(1, SMALL));
        let place = model.append(2, SMALL);
        model.log.flush(place.end, Durability::Written).unwrap();
        model.assert_durable(2, SMALL, &place);
        join([other]);
    });
}

/// The canary for lost acknowledgements: a device that lies must be caught.
#[test]
#[should_panic(expected = "acknowledged and not durable")]
fn a_sync_that_does_nothing_is_caught() {
    find_fault(|| {
        let model = Model::new();
        model.faults.fail_from(Operation::Sync, 1, Fault::Lost);
        model.commit(1, SMALL);
    });
}
