//! A cache changed while in use keeps what it can.
#![cfg(not(feature = "shuttle"))]

mod common;

use common::{Rig, bytes_for, config, id, on_both_paths};
use latchwork_pagecache::{CacheConfig, Error, FRAMES_MIN, HitPath, Pool, Reconfigure};
use std::io::ErrorKind;
use vfs::{Fault, Operation};

fn resize(frames: usize) -> Reconfigure {
    Reconfigure { size_bytes: Some(bytes_for(frames)), ..Reconfigure::default() }
}

#[test]
fn other_segments_and_more_memory_keep_every_page() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 4, hit_path));
        rig.fill(32);
        for segments in [1, 64, 0, 7] {
            rig.pool.reconfigure(Reconfigure { segments: Some(segments), ..Reconfigure::default() }).unwrap();
            assert_eq!(rig.pool.status().segments, segments);
            assert_eq!(rig.pool.segment_status().len(), segments.max(1) as usize);
        }
        rig.pool.reconfigure(resize(1000)).unwrap();
        assert!((0..32).all(|page| rig.value(page) == u64::from(page)));
        let status = rig.pool.status();
        assert_eq!((status.counters.reads, status.counters.read_requests), (0, 32));
        assert_eq!((status.blocks.used, status.blocks.unused), (32, 968));
    });
}

#[test]
fn a_smaller_cache_keeps_its_hot_pages_and_loses_no_change() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(200, 4, hit_path));
        rig.fill(200);
        let hot = 190..200;
        for _ in 0..10 {
            hot.clone().for_each(|page| assert_eq!(rig.value(page), u64::from(page)));
        }
        rig.set_value(150, 1);
        rig.pool.reconfigure(resize(40)).unwrap();
        let status = rig.pool.status();
        assert_eq!((status.frames, status.counters.reads), (40, 0));
        assert!(status.blocks.used <= 40);
        for page in hot {
            assert_eq!(rig.value(page), u64::from(page));
        }
        // Hits in lists by recency are kept exactly; with one bit a page, most of them.
        assert!(rig.pool.status().counters.reads <= if hit_path == HitPath::Locked { 0 } else { 10 });
        assert_eq!(rig.value(150), 1);
        assert!((0..150).all(|page| rig.value(page) == u64::from(page)));
    });
}

#[test]
fn a_cache_that_cannot_write_keeps_its_size_and_its_pages() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(100, 4, hit_path));
        rig.fill(100);
        (0..100).for_each(|page| rig.set_value(page, 7));
        rig.faults.fail_from(Operation::Write, 1, Fault::Error(ErrorKind::StorageFull));
        assert!(matches!(rig.pool.reconfigure(resize(20)), Err(Error::Io { .. })));
        assert_eq!(rig.pool.status().frames, 100);
        assert!((0..100).all(|page| rig.value(page) == 7));
        rig.faults.heal();
        rig.pool.reconfigure(resize(20)).unwrap();
        assert!((0..100).all(|page| rig.value(page) == 7));
        rig.pool.reconfigure(resize(100)).unwrap();
        assert!((0..100).all(|page| rig.value(page) == 7));
        assert_eq!(rig.pool.status().blocks.used, 100);
    });
}

#[test]
fn limits_are_checked_and_take_effect_at_once() {
    let rig = Rig::new(config(100, 1, HitPath::Locked));
    rig.fill(100);
    let limits = |division_limit, age_threshold| Reconfigure {
        division_limit: Some(division_limit),
        age_threshold: Some(age_threshold),
        ..Reconfigure::default()
    };
    assert!(matches!(rig.pool.reconfigure(limits(0, 300)), Err(Error::Config { .. })));
    assert!(matches!(rig.pool.reconfigure(limits(100, 99)), Err(Error::Config { .. })));
    assert_eq!(rig.pool.status().blocks.warm, 100);
    rig.pool.reconfigure(limits(30, 300)).unwrap();
    for _ in 0..3 {
        (0..100).for_each(|page| assert_eq!(rig.value(page), u64::from(page)));
    }
    let warm = rig.pool.status().blocks.warm;
    assert!((30..=32).contains(&warm), "{warm} warm pages");
}

#[test]
fn a_size_beyond_all_memory_is_refused() {
    let rig = Rig::new(config(32, 1, HitPath::Optimistic));
    assert!(matches!(
        rig.pool.reconfigure(Reconfigure { size_bytes: Some(usize::MAX), ..Reconfigure::default() }),
        Err(Error::Config { .. })
    ));
    assert_eq!(rig.pool.status().frames, 32);
}

#[test]
fn a_cache_is_never_smaller_than_its_minimum() {
    for size in [0, 1, 5000] {
        let pool = Pool::new(CacheConfig::new(size, 4096)).unwrap();
        assert_eq!(pool.status().frames, FRAMES_MIN as u64);
    }
    assert!(Pool::new(CacheConfig::new(1 << 20, 5000)).is_err());
    assert!(Pool::new(CacheConfig::new(1 << 20, 512)).is_err());
}

#[test]
fn an_optimistic_guard_survives_reconfiguration_or_conflicts() {
    let rig = Rig::new(config(100, 4, HitPath::Optimistic));
    rig.fill(100);
    let guards: Vec<_> = (0..100).map(|page| rig.pool.read(id(page)).unwrap()).collect();
    rig.pool.reconfigure(resize(30)).unwrap();
    for guard in guards {
        let value = guard.page().u64_at(common::VALUE_AT);
        if guard.validate().is_ok() {
            assert_eq!(value, u64::from(guard.page_id().page.0));
        }
    }
}
