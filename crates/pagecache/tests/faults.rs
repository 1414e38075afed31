//! Devices that fail, lie or fill up: nothing is lost, and the message says what happened.
#![cfg(not(feature = "shuttle"))]

mod common;

use common::{FILE, PAGE_SIZE, Rig, bytes_for, config, id, on_both_paths};
use latchwork_pagecache::{CacheConfig, Detach, Error, FRAMES_MIN, HitPath, WriteBack, header};
use std::io::ErrorKind;
use std::path::Path;
use vfs::{Create, Fault, Operation, Vfs};

/// Changes bytes on the device behind the cache's back.
fn overwrite(rig: &Rig, page: u32, at: usize, bytes: &[u8]) {
    let file = rig.vfs.open(Path::new("file"), Create::Never).unwrap();
    file.write_at(bytes, u64::from(page) * PAGE_SIZE as u64 + at as u64).unwrap();
}

fn reopen(rig: &Rig) {
    rig.pool.detach(FILE, Detach::Flush).unwrap();
    rig.attach();
}

#[test]
fn a_failed_write_keeps_the_page_dirty_until_one_succeeds() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 2, hit_path));
        rig.fill(4);
        rig.set_value(2, 50);
        rig.faults.fail_from(Operation::Write, 1, Fault::Error(ErrorKind::PermissionDenied));
        let error = rig.pool.flush_file(FILE).unwrap_err();
        assert!(matches!(&error, Error::Io { page: Some(page), .. } if *page == id(2)), "{error}");
        assert!(rig.pool.detach(FILE, Detach::Flush).is_err());
        let status = rig.pool.status();
        assert_eq!((status.blocks.not_flushed, status.write_failures), (1, 2));
        assert!(status.write_failure.is_some_and(|why| why.contains("file 7 page 2")));
        assert_eq!(rig.value(2), 50, "the page is still there and the file still attached");
        rig.faults.heal();
        rig.pool.flush_file(FILE).unwrap();
        assert_eq!(rig.device_value(2), 50);
        let status = rig.pool.status();
        assert_eq!((status.blocks.not_flushed, status.write_failure), (0, None));
    });
}

#[test]
fn a_torn_write_is_repaired_by_the_next() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 2, hit_path));
        rig.fill(4);
        rig.set_value(1, 60);
        rig.faults.fail_nth(Operation::Write, 1, Fault::Torn(ErrorKind::Other));
        assert!(rig.pool.flush_file(FILE).is_err());
        rig.pool.flush_file(FILE).unwrap();
        reopen(&rig);
        assert_eq!(rig.value(1), 60);
    });
}

#[test]
fn a_full_disk_stops_evictions_with_an_error_and_loses_nothing() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.faults.set_free_bytes(Some(20 * PAGE_SIZE as u64));
        let mut made = 0;
        let failure = loop {
            match rig.pool.create(id(made)) {
                Ok(mut guard) => {
                    guard.page_mut().set_u64(common::VALUE_AT, u64::from(made));
                    guard.page_mut().set_u64(common::VALUE_AGAIN_AT, u64::from(made));
                    made += 1;
                }
                Err(error) => break error,
            }
            assert!(made < 1000, "the disk never filled");
        };
        assert!(
            matches!(&failure, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull),
            "{failure}"
        );
        assert!(made as usize >= 20 && made as usize <= 20 + FRAMES_MIN);
        // Pages in memory can be read. A request that needs a frame fails and says why it gets none.
        let readable = (0..made).filter(|&page| rig.pool.read(id(page)).is_ok()).count();
        assert!(readable >= FRAMES_MIN, "{readable} readable");
        assert!(rig.pool.flush_file(FILE).is_err());
        rig.faults.heal();
        rig.pool.flush_file(FILE).unwrap();
        for page in 0..made {
            assert_eq!(rig.value(page), u64::from(page));
        }
    });
}

#[test]
fn the_background_thread_tries_again_after_a_failure() {
    let mut config = CacheConfig { hit_path: HitPath::Optimistic, ..CacheConfig::new(0, PAGE_SIZE) };
    config.size_bytes = bytes_for(32);
    config.write_back = WriteBack::Background;
    let rig = Rig::new(config);
    rig.fill(20);
    rig.faults.fail_nth(Operation::Write, 1, Fault::Error(ErrorKind::Other));
    rig.faults.fail_nth(Operation::Write, 2, Fault::Error(ErrorKind::Other));
    (0..20).for_each(|page| rig.set_value(page, 500));
    while rig.pool.status().blocks.not_flushed > 0 {
        base::sync::thread::yield_now();
    }
    assert!((0..20).all(|page| rig.device_value(page) == 500));
    assert!(rig.pool.status().write_failures >= 1);
}

#[test]
fn a_failed_sync_ends_all_writing() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 2, hit_path));
        rig.fill(4);
        rig.set_value(3, 1);
        rig.faults.fail_nth(Operation::Sync, 1, Fault::Error(ErrorKind::Other));
        assert!(matches!(rig.pool.flush_file(FILE), Err(Error::Io { page: None, .. })));
        // The device would report success now; it must not be believed.
        rig.set_value(3, 2);
        let error = rig.pool.flush_all().unwrap_err();
        assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        assert!(rig.pool.status().poisoned.is_some_and(|why| why.contains("sync failed")));
        assert_eq!(rig.value(3), 2, "reading goes on");
        assert_eq!(rig.device_value(3), 1);
        rig.pool.detach(FILE, Detach::Discard).unwrap();
    });
}

#[test]
fn a_failed_read_is_reported_and_the_next_succeeds() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 2, hit_path));
        rig.fill(4);
        reopen(&rig);
        rig.faults.fail_nth(Operation::Read, 1, Fault::Error(ErrorKind::Other));
        assert!(matches!(rig.pool.read(id(0)), Err(Error::Io { page: Some(_), .. })));
        assert_eq!(rig.value(0), 0);
        let status = rig.pool.status();
        assert_eq!((status.blocks.used, status.counters.reads), (1, 1));
    });
}

#[test]
fn every_kind_of_corruption_is_told_with_page_and_lsn() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 2, hit_path));
        rig.fill(6);
        let mut guard = rig.pool.write(id(1)).unwrap();
        guard.page_mut().set_u64(header::LSN, 4711);
        drop(guard);
        reopen(&rig);
        // A flipped bit, a page of zeroes, a page written to the wrong place, a file cut short.
        overwrite(&rig, 1, 500, &[0xff]);
        overwrite(&rig, 2, 0, &[0; PAGE_SIZE]);
        let astray = rig.device(4);
        overwrite(&rig, 3, 0, &astray);
        let file = rig.vfs.open(Path::new("file"), Create::Never).unwrap();
        file.set_len(5 * PAGE_SIZE as u64 + 100).unwrap();
        for (page, expected) in [(1, "checksum"), (2, "zeroes"), (3, "astray"), (5, "")] {
            for _ in 0..2 {
                let error = rig.pool.read(id(page)).map(drop).unwrap_err();
                let text = error.to_string();
                assert!(text.contains(&format!("page {page}")) && text.contains(expected), "{text}");
                match error {
                    Error::Corrupt { page: found, lsn, .. } => {
                        assert_eq!(found, id(page));
                        assert_eq!(lsn, if page == 1 { 4711 } else { 0 });
                    }
                    Error::Io { .. } => assert_eq!(page, 5),
                    error => panic!("{error}"),
                }
            }
        }
        assert_eq!(rig.value(4), 4);
        assert_eq!(rig.pool.status().blocks.used, 1);
    });
}

#[test]
fn a_thread_that_panics_over_a_page_poisons_the_cache_and_leaves_no_latch() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 2, hit_path));
        rig.fill(4);
        let pool = rig.pool.clone();
        let panicked = base::sync::thread::spawn(move || {
            let mut guard = pool.write(id(1)).unwrap();
            guard.page_mut().set_u64(common::VALUE_AT, 9);
            panic!("in the middle of a change, on purpose");
        });
        assert!(panicked.join().is_err());
        assert!(rig.pool.write(id(1)).is_ok(), "the latch was given back");
        assert!(matches!(rig.pool.flush_file(FILE), Err(Error::Poisoned { .. })));
        assert_eq!(rig.device_value(1), 1);
    });
}
