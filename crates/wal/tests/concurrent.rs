//! Many threads append and flush; crashes in between.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::sync::atomic::{AtomicBool, Ordering::SeqCst};
use base::sync::{Arc, Mutex, thread};
use common::{CrashVfs, Kept, config, payload, read_all};
use latchwork_wal::{Durability, FIRST_LSN, Log, LogConfig};

const THREADS: u64 = 6;
const RECORDS: u64 = 300;

/// Runs the threads on a log and a thread that looks at what a crash would leave.
fn run(config: LogConfig) {
    let device = CrashVfs::default();
    let log = Log::create(Arc::new(device.clone()), config.clone()).unwrap();
    let acknowledged = Mutex::new(Vec::new());
    let appended = Mutex::new(Vec::new());
    let done = AtomicBool::new(false);

    let check = || {
        // First what was acknowledged, then the crash: all of the first survives the second.
        let acknowledged: Vec<Kept> = acknowledged.lock().clone();
        let vfs = device.after_crash();
        let (records, end, _) = read_all(&*vfs);
        for record in &acknowledged {
            assert!(records.binary_search(record).is_ok(), "acknowledged and lost: {:?}", record.lsn);
        }
        (vfs, records, end)
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|number| {
                let (log, acknowledged, appended) = (&log, &acknowledged, &appended);
                scope.spawn(move || {
                    for i in 0..RECORDS {
                        let seed = number * RECORDS + i;
                        let text = payload(seed, (seed * 37 % 400) as usize);
                        let (first, second) = text.split_at(text.len() / 2);
                        let place = log.append(number as u8, &[first, second]).unwrap();
                        let record =
                            Kept { lsn: place.start, end: place.end, kind: number as u8, payload: text };
                        appended.lock().push(record.clone());
                        let durability = if i % 4 == 3 { Durability::Written } else { Durability::Synced };
                        log.flush(place.end, durability).unwrap();
                        if durability == Durability::Synced {
                            assert!(log.flushed_lsn() >= place.end);
                            acknowledged.lock().push(record);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(SeqCst) {
                check();
                thread::yield_now();
            }
        });
        // The watcher stops whatever became of the writers.
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
    });

    log.flush(log.next_lsn(), Durability::Synced).unwrap();
    let status = log.status();
    assert!(status.syncs <= THREADS * RECORDS, "{status:?}");
    let (vfs, records, end) = check();
    let mut appended = appended.lock().clone();
    appended.sort();
    assert_eq!(records, appended, "every record, whole, in the order of the places given out");
    assert_eq!(end, log.next_lsn());
    Log::open_at(vfs, config, end).unwrap();
}

#[test]
fn what_was_acknowledged_survives_with_a_roomy_ring() {
    run(LogConfig { file_size: 64 << 10, ..config(64 << 10) });
}

#[test]
fn what_was_acknowledged_survives_with_a_ring_smaller_than_a_record() {
    run(config(64));
}

#[test]
fn what_was_acknowledged_survives_with_many_small_files() {
    run(config(1024));
}

#[test]
fn files_come_and_go_while_others_append() {
    let device = CrashVfs::default();
    let log = Log::create(Arc::new(device.clone()), config(1024)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let keeper = scope.spawn(|| {
            let mut removed = 0;
            loop {
                // The last round comes after the last record.
                let is_last = done.load(SeqCst);
                log.prepare_file().unwrap();
                let lsn = log.flushed_lsn();
                let checkpoint = latchwork_wal::Checkpoint { lsn, needed: lsn, owner: [0; 11] };
                log.write_checkpoint(checkpoint).unwrap();
                removed += log.remove_unneeded().unwrap();
                if is_last {
                    return removed;
                }
            }
        });
        let writers: Vec<_> = (0..3_u64)
            .map(|number| {
                let log = &log;
                scope.spawn(move || {
                    for i in 0..RECORDS {
                        let place = log.append(1, &[&payload(number * RECORDS + i, 300)]).unwrap();
                        log.flush(place.end, Durability::Synced).unwrap();
                    }
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
        // Each file holds a block, and the last one stays.
        let files = (log.next_lsn().0 - FIRST_LSN.0) / 4096;
        assert!(keeper.join().unwrap() as u64 + 1 >= files);
    });
    let needed = log.checkpoint().unwrap().needed;
    let (_, end, _) = common::read_from(&*device.after_crash(), needed);
    assert_eq!(end, log.next_lsn());
}
