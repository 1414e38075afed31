//! The promises of the cache to one thread, on both hit paths.
#![cfg(not(feature = "shuttle"))]

mod common;

use common::{FILE, Rig, VALUE_AT, config, id, on_both_paths};
use latchwork_pagecache::{Conflict, Detach, Error, FRAMES_MIN, Reconfigure};
use vfs::{Create, Vfs};

#[test]
fn pages_survive_eviction_and_come_back_as_they_were() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(100);
        for page in (0..100).rev() {
            assert_eq!(rig.value(page), u64::from(page));
            rig.set_value(page, u64::from(page) + 1000);
        }
        for page in 0..100 {
            assert_eq!(rig.value(page), u64::from(page) + 1000);
        }
        rig.pool.detach(FILE, Detach::Flush).unwrap();
        assert!((0..100).all(|page| rig.device_value(page) == u64::from(page) + 1000));
        assert!(matches!(rig.pool.read(id(3)), Err(Error::NotAttached { .. })));
        rig.attach();
        assert_eq!(rig.value(3), 1003);
    });
}

#[test]
fn a_discarded_file_leaves_the_device_as_it_was() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(4);
        rig.set_value(2, 99);
        rig.pool.detach(FILE, Detach::Discard).unwrap();
        assert_eq!(rig.device_value(2), 2);
        assert_eq!(rig.pool.status().blocks.not_flushed, 0);
        assert_eq!(rig.pool.status().blocks.unused, FRAMES_MIN as u64);
    });
}

#[test]
fn a_guard_upgrades_unless_the_page_changed_meanwhile() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(2);
        let guard = rig.pool.read(id(1)).unwrap();
        let mut guard = guard.upgrade().unwrap();
        guard.page_mut().set_u64(VALUE_AT, 5);
        let guard = guard.downgrade();
        assert_eq!(guard.page().u64_at(VALUE_AT), 5);
        guard.validate().unwrap();
    });
}

#[test]
fn an_optimistic_guard_notices_a_change() {
    let rig = Rig::small(latchwork_pagecache::HitPath::Optimistic);
    rig.fill(2);
    let guard = rig.pool.read(id(1)).unwrap();
    assert!(guard.is_optimistic());
    drop(rig.pool.write(id(1)).unwrap());
    guard.validate().expect("an exclusive latch without a change is none");
    rig.set_value(1, 7);
    assert_eq!(guard.validate(), Err(Conflict));
    assert!(guard.upgrade().is_err());
    assert_eq!(rig.pool.status().counters.conflicts, 2);
}

#[test]
fn a_page_that_is_nobodys_is_an_error_and_not_a_panic() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(2);
        assert!(matches!(rig.pool.read(id(50)), Err(Error::Io { page: Some(_), .. })));
        let other = base::PageId::new(base::FileId(1), base::PageNo(0));
        assert!(matches!(rig.pool.write(other), Err(Error::NotAttached { .. })));
        let file = rig.vfs.open(std::path::Path::new("file"), Create::Never).unwrap();
        assert!(rig.pool.attach(FILE, "file".into(), file).is_err());
        assert_eq!(rig.value(1), 1);
    });
}

#[test]
fn counters_are_exact() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 3, hit_path));
        rig.fill(10);
        rig.pool.detach(FILE, Detach::Flush).unwrap();
        rig.attach();
        rig.pool.reset_counters();
        for _ in 0..5 {
            for page in 0..10 {
                rig.value(page);
            }
        }
        rig.set_value(3, 1);
        let status = rig.pool.status();
        assert_eq!(status.counters.read_requests, 51);
        assert_eq!(status.counters.reads, 10);
        assert_eq!((status.counters.write_requests, status.counters.writes), (1, 0));
        assert_eq!((status.blocks.used, status.blocks.unused, status.blocks.not_flushed), (10, 22, 1));
        rig.pool.flush_all().unwrap();
        let status = rig.pool.status();
        assert_eq!((status.counters.writes, status.blocks.not_flushed), (1, 0));
        let segments = rig.pool.segment_status();
        assert_eq!(segments.len(), 3);
        let sum =
            |each: fn(&latchwork_pagecache::SegmentStatus) -> u64| segments.iter().map(each).sum::<u64>();
        assert_eq!(sum(|segment| segment.counters.read_requests), 51);
        assert_eq!(sum(|segment| segment.counters.reads), 10);
        assert_eq!(sum(|segment| segment.counters.writes), 1);
        assert_eq!(sum(|segment| segment.blocks.unused), 22);
        assert_eq!(sum(|segment| segment.blocks.used), 10);
        assert_eq!(sum(|segment| segment.blocks.warm), status.blocks.warm);
    });
}

#[test]
fn a_scan_does_not_flush_the_hot_set() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(100, 4, hit_path));
        // What users of the locked path set to protect a hot set from scans; the other path needs nothing.
        let protect =
            Reconfigure { division_limit: Some(30), age_threshold: Some(2000), ..Reconfigure::default() };
        rig.pool.reconfigure(protect).unwrap();
        rig.fill(1000);
        rig.pool.detach(FILE, Detach::Flush).unwrap();
        rig.attach();
        let hot = || (0..20).for_each(|page| assert_eq!(rig.value(page), u64::from(page)));
        // The hot set proves itself while the cache turns over.
        for round in 0..20_u32 {
            hot();
            (0..10).for_each(|page| _ = rig.value(100 + round * 10 + page));
        }
        rig.pool.reset_counters();
        (300..1000).for_each(|page| _ = rig.value(page));
        hot();
        let reads = rig.pool.status().counters.reads;
        assert!(reads < 700 + 5, "{hit_path:?}: {} hot pages were lost to the scan", reads - 700);
    });
}

#[test]
fn a_freed_page_leaves_the_cache_unwritten() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(3);
        let mut guard = rig.pool.write(id(1)).unwrap();
        guard.page_mut().set_u64(VALUE_AT, 9);
        guard.free();
        let status = rig.pool.status();
        assert_eq!((status.blocks.used, status.blocks.not_flushed), (2, 0));
        assert_eq!(rig.value(1), 1);
    });
}

#[test]
fn a_page_created_over_a_cached_one_is_empty() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(3);
        let guard = rig.pool.create(id(1)).unwrap();
        assert_eq!(guard.page().u64_at(VALUE_AT), 0);
        drop(guard);
        rig.pool.flush_file(FILE).unwrap();
        assert_eq!(rig.device_value(1), 0);
    });
}

#[test]
fn only_cached_pages_are_read_without_the_device() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(3);
        assert_eq!(rig.pool.try_read_cached(id(2)).unwrap().page().u64_at(VALUE_AT), 2);
        assert!(rig.pool.try_read_cached(id(9)).is_none());
        let guard = rig.pool.write(id(2)).unwrap();
        assert!(rig.pool.try_read_cached(id(2)).is_none(), "held exclusively");
        drop(guard);
    });
}

#[test]
fn who_holds_latches_is_told_to_back_out_of_a_full_cache() {
    on_both_paths(|hit_path| {
        let rig = Rig::small(hit_path);
        rig.fill(40);
        let mut guards: Vec<_> =
            (0..FRAMES_MIN as u32).map(|page| rig.pool.write(id(page)).unwrap()).collect();
        assert!(matches!(rig.pool.write(id(30)), Err(Error::Busy)));
        assert!(matches!(rig.pool.read(id(30)), Err(Error::Busy)));
        assert!(matches!(rig.pool.create(id(50)), Err(Error::Busy)));
        guards.pop();
        assert_eq!(rig.value(30), 30);
    });
}
