//! Devices that fail: the log is poisoned, says why, and keeps what it acknowledged.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::Lsn;
use base::sync::{Arc, thread};
use common::{CrashVfs, DIR, Kept, config, payload, read_all};
use latchwork_wal::{Checkpoint, Durability, Error, FIRST_LSN, Log, LogConfig, OWNER_WORDS};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use vfs::sim::Plan;
use vfs::{Fault, Faults, FaultyVfs, MemVfs, Operation, SimVfs, Vfs};

struct Faulty {
    device: CrashVfs,
    faults: Faults,
    log: Log,
}

fn faulty() -> Faulty {
    let device = CrashVfs::default();
    let vfs = FaultyVfs::new(Arc::new(device.clone()));
    let faults = vfs.faults();
    let log = Log::create(Arc::new(vfs), config(1024)).unwrap();
    Faulty { device, faults, log }
}

/// Appends and flushes until something fails; gives what was acknowledged, and the failure.
fn work(log: &Log) -> (Vec<Kept>, Option<Error>) {
    let mut acknowledged = Vec::new();
    for i in 0..40 {
        let text = payload(i, 300);
        let place = match log.append(3, &[&text]) {
            Ok(place) => place,
            Err(error) => return (acknowledged, Some(error)),
        };
        if let Err(error) = log.flush(place.end, Durability::Synced) {
            return (acknowledged, Some(error));
        }
        acknowledged.push(Kept { lsn: place.start, end: place.end, kind: 3, payload: text });
    }
    (acknowledged, None)
}

/// The log fails for ever with one reason, and a start after a crash finds everything acknowledged, and
/// works.
fn assert_poisoned(faulty: &Faulty, acknowledged: &[Kept], error: &Error, reason: &str) {
    let Error::Poisoned { why } = error else { panic!("{error}") };
    assert!(why.contains(reason), "{why}");
    assert!(why.contains(DIR), "{why}: says where");
    // The device is well again; the log does not believe it.
    faulty.faults.heal();
    let log = &faulty.log;
    assert_eq!(log.poisoned(), Some(why.as_str()));
    let is_same = |error: Error| matches!(error, Error::Poisoned { why: again } if again == *why);
    for _ in 0..2 {
        assert!(is_same(log.append(1, &[b"more"]).unwrap_err()));
        assert!(is_same(log.prepare_file().unwrap_err()));
        assert!(is_same(log.remove_unneeded().unwrap_err()));
        if log.flushed_lsn() < log.next_lsn() {
            assert!(is_same(log.flush(log.next_lsn(), Durability::Synced).unwrap_err()));
        }
    }
    log.flush(log.flushed_lsn(), Durability::Synced).expect("what is safe stays safe");

    let vfs = faulty.device.after_crash();
    let (records, end, _) = read_all(&*vfs);
    assert_eq!(records.get(..acknowledged.len()), Some(acknowledged));
    assert!(records.len() <= acknowledged.len() + 1, "at most the one that failed");
    let log = Log::open_at(vfs.clone(), config(1024), end).unwrap();
    let (more, error) = work(&log);
    assert!(error.is_none());
    assert_eq!(read_all(&*vfs).0.len(), records.len() + more.len());
}

#[test]
fn a_failed_write_poisons_and_loses_nothing_acknowledged() {
    for nth in 1..60 {
        for fault in [Fault::Error(ErrorKind::Other), Fault::Torn(ErrorKind::Other)] {
            let faulty = faulty();
            faulty.faults.fail_nth(Operation::Write, nth, fault);
            match work(&faulty.log) {
                (acknowledged, Some(error)) => assert_poisoned(&faulty, &acknowledged, &error, "other error"),
                (acknowledged, None) => assert!(nth > 40 && acknowledged.len() == 40, "{nth}"),
            }
        }
    }
}

#[test]
fn a_failed_sync_poisons_and_loses_nothing_acknowledged() {
    for nth in 1..60 {
        let faulty = faulty();
        faulty.faults.fail_nth(Operation::Sync, nth, Fault::Error(ErrorKind::Other));
        match work(&faulty.log) {
            (acknowledged, Some(error)) => assert_poisoned(&faulty, &acknowledged, &error, "other error"),
            (acknowledged, None) => assert!(nth > 40 && acknowledged.len() == 40, "{nth}"),
        }
    }
}

#[test]
fn a_full_disk_poisons_when_the_next_file_is_needed_and_not_before() {
    for free in [0, 1, 4096, 8191, 8192, 10_000, 16_384, 17_000] {
        let faulty = faulty();
        faulty.faults.set_free_bytes(Some(free));
        let (acknowledged, error) = work(&faulty.log);
        // Twelve records of 312 bytes fit the first file, then thirteen.
        assert!(acknowledged.len() >= 12, "{}", acknowledged.len());
        assert_poisoned(&faulty, &acknowledged, &error.unwrap(), "no storage space");
    }
}

#[test]
fn a_full_disk_is_waited_for_and_poisons_nothing_if_it_gets_room() {
    let device = CrashVfs::default();
    let vfs = FaultyVfs::new(Arc::new(device.clone()));
    let faults = vfs.faults();
    let config = LogConfig { full_wait: Duration::from_secs(600), ..config(1024) };
    let log = Log::create(Arc::new(vfs), config).unwrap();
    faults.set_free_bytes(Some(100));
    let (acknowledged, error) = thread::scope(|scope| {
        let worker = scope.spawn(|| work(&log));
        while log.prepare_file().is_ok() || log.flushed_lsn() < Lsn(FIRST_LSN.0 + 12 * 312) {
            thread::yield_now();
        }
        assert_eq!(log.poisoned(), None);
        faults.heal();
        worker.join().unwrap()
    });
    assert!(error.is_none(), "{error:?}");
    assert_eq!(read_all(&*device.after_crash()).0, acknowledged);
}

#[test]
fn the_next_files_are_made_from_the_reserve_when_the_disk_is_full() {
    let sim = SimVfs::new();
    let log = Log::create(Arc::new(sim.clone()), config(1024)).unwrap();
    log.keep_reserve(3 * 8192).unwrap();
    sim.set_plan(Plan { free_bytes: Some(10), ..Plan::default() });
    assert!(matches!(log.prepare_file(), Err(Error::Io { .. })), "what is asked for ahead may fail");
    assert_eq!(log.reserve(), 3 * 8192);
    let (acknowledged, error) = work(&log);
    assert!(matches!(error, Some(Error::Poisoned { .. }) | None), "{error:?}");
    assert!(acknowledged.len() >= 40, "the first file and three more hold all of it: {}", acknowledged.len());
    assert!(!log.give_reserve(1) || log.reserve() < 8192);
    // The next start has its room.
    let left = sim.crash(1);
    let (records, end, _) = read_all(&left);
    assert_eq!(records.len(), acknowledged.len());
    let log = Log::open_at(Arc::new(left.clone()), config(1024), end).unwrap();
    assert_eq!(log.reserve(), 0);
    assert!(!left.exists(Path::new("log/reserve")).unwrap());
}

#[test]
fn a_file_that_cannot_get_its_name_poisons() {
    for nth in 1..=2 {
        let faulty = faulty();
        faulty.faults.fail_from(Operation::Name, nth, Fault::Error(ErrorKind::PermissionDenied));
        let (acknowledged, error) = work(&faulty.log);
        assert_poisoned(&faulty, &acknowledged, &error.unwrap(), "permission denied");
    }
}

#[test]
fn a_failure_to_make_a_file_ahead_harms_nothing() {
    let faulty = faulty();
    faulty.faults.set_free_bytes(Some(5000));
    assert!(matches!(faulty.log.prepare_file(), Err(Error::Io { .. })));
    assert_eq!(faulty.log.poisoned(), None);
    faulty.faults.heal();
    faulty.log.prepare_file().unwrap();
    let (acknowledged, error) = work(&faulty.log);
    assert!(error.is_none());
    assert_eq!(read_all(&*faulty.device.after_crash()).0, acknowledged);
}

#[test]
fn a_failed_checkpoint_leaves_the_one_before() {
    for operation in [Operation::Write, Operation::Sync] {
        let faulty = faulty();
        let log = &faulty.log;
        let at = |lsn| Checkpoint { lsn, needed: lsn, owner: [1; OWNER_WORDS] };
        let first = log.append(1, &[b"first"]).unwrap();
        log.write_checkpoint(at(first.end)).unwrap();
        let second = log.append(1, &[b"second"]).unwrap();
        log.flush(second.end, Durability::Synced).unwrap();
        faulty.faults.fail_from(operation, 1, Fault::Torn(ErrorKind::Other));
        assert!(matches!(log.write_checkpoint(at(second.end)), Err(Error::Io { .. })));
        assert_eq!(log.checkpoint(), Some(at(first.end)));
        let read = Checkpoint::read(&*faulty.device.after_crash(), DIR.as_ref()).unwrap();
        assert_eq!(read, Some(at(first.end)));
        faulty.faults.heal();
        log.write_checkpoint(at(second.end)).unwrap();
        let read = Checkpoint::read(&*faulty.device.after_crash(), DIR.as_ref()).unwrap();
        assert_eq!(read, Some(at(second.end)));
    }
}

#[test]
fn a_failed_removal_leaves_a_log_that_works() {
    for operation in [Operation::Name, Operation::Write, Operation::Sync] {
        for spare_files in [0, 4] {
            let device = CrashVfs::default();
            let vfs = FaultyVfs::new(Arc::new(device.clone()));
            let faults = vfs.faults();
            let config = LogConfig { spare_files, ..config(1024) };
            let log = Log::create(Arc::new(vfs), config.clone()).unwrap();
            log.append(1, &[&payload(1, 20_000)]).unwrap();
            let needed = log.next_lsn();
            log.write_checkpoint(Checkpoint { lsn: needed, needed, owner: [0; OWNER_WORDS] }).unwrap();
            faults.fail_from(operation, 1, Fault::Error(ErrorKind::Other));
            let removed = log.remove_unneeded();
            let is_touched = spare_files > 0 || operation != Operation::Write;
            assert_eq!(removed.is_err(), is_touched, "{operation:?}, {spare_files} spare files");
            faults.heal();
            log.remove_unneeded().unwrap();
            let place = log.append(1, &[&payload(2, 20_000)]).unwrap();
            log.flush(place.end, Durability::Synced).unwrap();
            drop(log);
            let vfs = device.after_crash();
            let (records, end, _) = common::read_from(&*vfs, needed);
            assert_eq!((records.len(), end), (1, place.end));
            let log = Log::open_at(vfs, config, end).unwrap();
            assert!(log.status().files <= 10);
        }
    }
}

#[test]
fn a_device_that_lies_about_writes_is_found_out_at_the_next_start() {
    let faulty = faulty();
    let log = &faulty.log;
    log.append(1, &[b"kept"]).unwrap();
    log.flush(log.next_lsn(), Durability::Synced).unwrap();
    faulty.faults.fail_nth(Operation::Write, 1, Fault::Lost);
    log.append(1, &[b"lost"]).unwrap();
    log.write_checkpoint(Checkpoint { lsn: log.next_lsn(), needed: FIRST_LSN, owner: [0; OWNER_WORDS] })
        .unwrap();
    let vfs = faulty.device.after_crash();
    let (records, end, _) = read_all(&*vfs);
    assert_eq!(records.len(), 1);
    assert!(matches!(Log::open_at(vfs, config(1024), end), Err(Error::Checkpoint { .. })));
}

#[test]
fn a_making_cut_short_can_be_repeated_or_has_made_a_log() {
    for operation in [Operation::Write, Operation::Sync, Operation::Name] {
        for nth in 1..10 {
            let device = CrashVfs::default();
            let vfs = FaultyVfs::new(Arc::new(device.clone()));
            vfs.faults().fail_nth(operation, nth, Fault::Error(ErrorKind::Other));
            let Err(error) = Log::create(Arc::new(vfs), config(1024)) else { continue };
            assert!(matches!(error, Error::Io { .. }), "{error}");
            let vfs: Arc<dyn vfs::Vfs> = Arc::new(device.clone());
            match Log::create(vfs.clone(), config(1024)) {
                Ok(log) => drop(work(&log)),
                Err(_) => drop(Log::open_at(vfs, config(1024), FIRST_LSN).unwrap()),
            }
        }
    }
}

#[test]
fn everybody_who_waits_learns_of_a_failure() {
    for nth in 1..30 {
        let faulty = faulty();
        faulty.faults.fail_from(Operation::Sync, nth, Fault::Error(ErrorKind::Other));
        let results: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| work(&faulty.log))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (records, ..) = read_all(&*faulty.device.after_crash());
        for (acknowledged, error) in results {
            assert!(matches!(error, Some(Error::Poisoned { .. })));
            for record in acknowledged {
                assert!(records.binary_search(&record).is_ok(), "acknowledged and lost");
            }
        }
    }
}

#[test]
fn a_failed_read_is_not_the_end_of_the_log() {
    let memory = MemVfs::new();
    let log = Log::create(Arc::new(memory.clone()), config(1024)).unwrap();
    let (acknowledged, _) = work(&log);
    let vfs = FaultyVfs::new(Arc::new(memory));
    let mut reader = latchwork_wal::Reader::open(&vfs, DIR.as_ref(), FIRST_LSN).unwrap();
    vfs.faults().fail_nth(Operation::Read, 1, Fault::Error(ErrorKind::Other));
    assert!(matches!(reader.read_next(), Err(Error::Io { .. })));
    assert_eq!(reader.end(), None);
    assert_eq!(common::drain(reader).0, acknowledged);
}

#[test]
fn what_only_the_operating_system_knew_is_durable_after_a_start() {
    let device = CrashVfs::default();
    let vfs: Arc<dyn vfs::Vfs> = Arc::new(device.clone());
    let log = Log::create(vfs.clone(), config(1024)).unwrap();
    for i in 0..40 {
        log.append(1, &[&payload(i, 300)]).unwrap();
    }
    log.flush(log.next_lsn(), Durability::Written).unwrap();
    // The process stops, the machine does not.
    drop(log);
    let (records, end, _) = read_all(&*vfs);
    assert_eq!(records.len(), 40);
    assert_eq!(read_all(&*device.after_crash()).0.len(), 0);
    drop(Log::open_at(vfs, config(1024), end).unwrap());
    assert_eq!(read_all(&*device.after_crash()).0, records);
}
