//! What a hit costs, counted: `cargo test -p latchwork-pagecache --features counting`.
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
        let guard = rig.cache.read(id(page)).unwrap();
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
        assert_eq!(rig.cache.status().counters.read_requests, 101 * 50);
    }
}

#[test]
fn looking_ahead_costs_nothing_shared_either() {
    let rig = Rig::new(config(200, 8, HitPath::Optimistic));
    rig.fill(50);
    read_all(&rig);
    let steady = cost(|| {
        let glances = rig.cache.glances().unwrap();
        for page in 0..50 {
            let glance = glances.look(id(page), glances.whereabouts(id(page))).unwrap();
            glance.page().prefetch(VALUE_AT);
            assert_eq!(glance.page().u64_at(VALUE_AT), u64::from(page));
            assert!(glance.is_valid());
        }
    });
    assert_eq!(steady, Counts::default());
    assert_eq!(rig.cache.status().counters.read_requests, 100);
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
