//! The cost of a hit, counted: `cargo test -p latchwork-pagecache --features counting`.
#![cfg(all(feature = "counting", not(feature = "shuttle")))]

mod common;

use base::sync::{Counts, counts};
use common::{Rig, VALUE_AT, config, id};
use latchwork_pagecache::HitPath;

fn cost(run: impl FnOnce()) -> Counts {
    let before = counts();
    run();
    let after = counts();
    Counts {
        shared_writes: after.shared_writes - before.shared_writes,
        latches: after.latches - before.latches,
    }
}

fn read_all(rig: &Rig) {
    for page in 0..50 {
        let guard = rig.pool.read(id(page)).unwrap();
        assert_eq!(guard.page().u64_at(VALUE_AT), u64::from(page));
        guard.validate().unwrap();
    }
}

#[test]
fn an_optimistic_hit_writes_nothing_shared_and_takes_no_latch() {
    for segments in [0, 1, 8, 64] {
        let rig = Rig::new(config(200, segments, HitPath::Optimistic));
        rig.fill(50);
        // The first hit after a page came or was passed over by the eviction sets its heat bit.
        let first = cost(|| read_all(&rig));
        assert!(first.shared_writes <= 50, "{first:?}");
        let steady = cost(|| {
            for _ in 0..100 {
                read_all(&rig);
            }
        });
        assert_eq!(steady, Counts::default());
        assert_eq!(rig.pool.status().counters.read_requests, 101 * 50);
    }
}

#[test]
fn looking_ahead_costs_nothing_shared_either() {
    let rig = Rig::new(config(200, 8, HitPath::Optimistic));
    rig.fill(50);
    read_all(&rig);
    let steady = cost(|| {
        let glances = rig.pool.glances().unwrap();
        for page in 0..50 {
            let glance = glances.look(id(page), glances.whereabouts(id(page))).unwrap();
            glance.page().prefetch(VALUE_AT);
            assert_eq!(glance.page().u64_at(VALUE_AT), u64::from(page));
            assert!(glance.is_valid());
        }
    });
    assert_eq!(steady, Counts::default());
    assert_eq!(rig.pool.status().counters.read_requests, 100);
}

#[test]
fn pages_that_share_a_shortcut_do_not_take_it_from_each_other_for_ever() {
    let rig = Rig::new(config(200, 8, HitPath::Optimistic));
    // Far beyond the shortcuts of two hundred frames, whose number is a power of two.
    let pages = [0, 1, 1 << 14, 1 | 1 << 14, 1 << 15];
    for page in pages {
        let mut guard = rig.pool.create(id(page)).unwrap();
        guard.page_mut().set_u64(VALUE_AT, u64::from(page));
    }
    let read = |pages: &[u32]| {
        for page in pages {
            let guard = rig.pool.read(id(*page)).unwrap();
            assert_eq!(guard.page().u64_at(VALUE_AT), u64::from(*page));
            guard.validate().unwrap();
        }
    };
    read(&pages);
    read(&pages);
    assert_eq!(cost(|| read(&pages)), Counts::default());
    // From one that is not there any more it is taken, once.
    rig.pool.write(id(0)).unwrap().free();
    let taken = cost(|| read(&pages[1..]));
    assert!(taken.shared_writes <= 1 && taken.latches == 0, "{taken:?}");
    assert_eq!(cost(|| read(&pages[1..])), Counts::default());
}

#[test]
fn a_locked_hit_takes_a_latch_and_writes_shared_memory() {
    let rig = Rig::new(config(200, 8, HitPath::Locked));
    rig.fill(50);
    read_all(&rig);
    let steady = cost(|| read_all(&rig));
    assert_eq!(steady.latches, 50);
    // Pin and unpin at least; the LRU list on top.
    assert!(steady.shared_writes >= 100, "{steady:?}");
}
