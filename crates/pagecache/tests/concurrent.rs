//! Many threads on one cache; the same test bodies on both hit paths.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::random::Random;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, thread};
use common::{FILE, Rig, config, id, on_both_paths, set_value, value};
use latchwork_pagecache::{Detach, Error, FRAMES_MIN, HitPath, Reconfigure, WriteBack};

const THREADS: u64 = 4;

/// Every thread adds one to random pages, so many times; the pages' sum must grow by exactly that.
fn increments_are_not_lost(rig: &Rig, pages: u32, rounds: u64, meanwhile: impl FnOnce(&Rig)) {
    rig.fill(pages);
    let before: u64 = (0..pages).map(|page| rig.value(page)).sum();
    let pool = &rig.pool;
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                let mut random = Random::new(1, number);
                for _ in 0..rounds {
                    let page = random.below(pages);
                    set_value(pool, page, |value| value + 1);
                    value(pool, random.below(pages));
                    increment_by_upgrade(pool, random.below(pages));
                }
            });
        }
        meanwhile(rig);
    });
    let after: u64 = (0..pages).map(|page| rig.value(page)).sum();
    assert_eq!(after, before + THREADS * rounds * 2);
    rig.pool.detach(FILE, Detach::Flush).unwrap();
    let on_device: u64 = (0..pages).map(|page| rig.device_value(page)).sum();
    assert_eq!(on_device, after);
}

/// Changes a page as the engine changes a leaf: it reads, decides and upgrades, and takes a latch after some
/// conflicts.
fn increment_by_upgrade(pool: &latchwork_pagecache::Pool, page: u32) {
    for _ in 0..4 {
        let guard = pool.read(id(page)).unwrap();
        let seen = guard.page().u64_at(common::VALUE_AT);
        let Ok(mut guard) = guard.upgrade() else { continue };
        assert_eq!(guard.page().u64_at(common::VALUE_AT), seen, "upgraded over a change");
        let mut page = guard.page_mut();
        page.set_u64(common::VALUE_AT, seen + 1);
        page.set_u64(common::VALUE_AGAIN_AT, seen + 1);
        return;
    }
    set_value(pool, page, |value| value + 1);
}

#[test]
fn changes_survive_readers_writers_and_evictors() {
    on_both_paths(|hit_path| {
        for segments in [0, 5] {
            increments_are_not_lost(&Rig::new(config(32, segments, hit_path)), 100, 3000, |_| {});
        }
    });
}

#[test]
fn changes_survive_in_a_cache_that_holds_everything() {
    on_both_paths(|hit_path| {
        increments_are_not_lost(&Rig::new(config(64, 4, hit_path)), 20, 3000, |_| {});
    });
}

#[test]
fn changes_survive_background_write_back_and_flushes() {
    on_both_paths(|hit_path| {
        let mut config = config(32, 2, hit_path);
        config.write_back = WriteBack::Background;
        let flush = |rig: &Rig| {
            for _ in 0..20 {
                rig.pool.flush_file(FILE).unwrap();
            }
        };
        increments_are_not_lost(&Rig::new(config), 100, 2000, flush);
    });
}

#[test]
fn changes_survive_reconfiguration_under_load() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(64, 4, hit_path));
        increments_are_not_lost(&rig, 100, 4000, |rig| {
            let other = |path| if path == HitPath::Locked { HitPath::Optimistic } else { HitPath::Locked };
            for (round, frames) in [20, 200, 16, 48, 90, 33].into_iter().cycle().take(30).enumerate() {
                let change = Reconfigure {
                    size_bytes: Some(common::bytes_for(frames)),
                    segments: Some([0, 7, 64, 1][round % 4]),
                    hit_path: Some(if round % 3 == 0 { other(hit_path) } else { hit_path }),
                    ..Reconfigure::default()
                };
                rig.pool.reconfigure(change).unwrap();
                assert_eq!(rig.pool.status().frames, frames as u64);
            }
        });
    });
}

#[test]
fn read_requests_add_up_over_threads() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(64, 4, hit_path));
        rig.fill(20);
        rig.pool.reset_counters();
        thread::scope(|scope| {
            for number in 0..THREADS {
                let pool = &rig.pool;
                scope.spawn(move || {
                    let mut random = Random::new(1, number);
                    for _ in 0..10_000 {
                        pool.read(id(random.below(20))).unwrap();
                    }
                });
            }
        });
        let status = rig.pool.status();
        assert_eq!(status.counters.read_requests, THREADS * 10_000);
        assert_eq!(status.counters.reads, 0);
        let by_segment: u64 = rig.pool.segment_status().iter().map(|s| s.counters.read_requests).sum();
        assert_eq!(by_segment, THREADS * 10_000);
    });
}

#[test]
fn many_readers_of_an_absent_page_cause_one_device_read() {
    on_both_paths(|hit_path| {
        for _ in 0..20 {
            let rig = Rig::new(config(64, 4, hit_path));
            rig.fill(10);
            rig.pool.detach(FILE, Detach::Flush).unwrap();
            rig.attach();
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| (0..10).for_each(|page| assert_eq!(rig.value(page), u64::from(page))));
                }
            });
            assert_eq!(rig.pool.status().counters.reads, 10);
        }
    });
}

/// Threads latch three pages each, in order, in a cache that cannot hold all they want: the guard rule at
/// work.
#[test]
fn threads_that_hold_latches_make_progress_in_the_smallest_cache() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(FRAMES_MIN, 2, hit_path));
        rig.fill(200);
        let done = AtomicU64::new(0);
        let threads = 12;
        thread::scope(|scope| {
            for number in 0..threads {
                let (rig, done) = (&rig, &done);
                scope.spawn(move || {
                    let mut random = Random::new(1, number);
                    for _ in 0..100 {
                        let mut pages: Vec<u32> = (0..5).map(|_| random.below(200)).collect();
                        pages.sort_unstable();
                        pages.dedup();
                        add_to_all(&rig.pool, &pages);
                        done.fetch_add(pages.len() as u64, Relaxed);
                    }
                });
            }
        });
        let sum: u64 = (0..200).map(|page| rig.value(page) - u64::from(page)).sum();
        assert_eq!(sum, done.load(Relaxed));
    });
}

/// Latches all pages exclusively at once, then adds one to each.
fn add_to_all(pool: &latchwork_pagecache::Pool, pages: &[u32]) {
    let mut permit = None;
    loop {
        let guards: Result<Vec<_>, Error> = pages.iter().map(|&page| pool.write(id(page))).collect();
        match guards {
            Ok(guards) => {
                for mut guard in guards {
                    let value = guard.page().u64_at(common::VALUE_AT) + 1;
                    let mut page = guard.page_mut();
                    page.set_u64(common::VALUE_AT, value);
                    page.set_u64(common::VALUE_AGAIN_AT, value);
                }
                drop(permit);
                return;
            }
            Err(Error::Busy) => permit = permit.or_else(|| Some(pool.wait_for_frames())),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_file_can_be_detached_while_another_is_in_use() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 3, hit_path));
        rig.fill(50);
        let other = base::FileId(9);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for number in 0..3 {
                let (rig, stop) = (&rig, &stop);
                scope.spawn(move || {
                    let mut random = Random::new(1, number);
                    while !stop.load(Relaxed) {
                        let page = random.below(50);
                        assert_eq!(rig.value(page), u64::from(page));
                    }
                });
            }
            for round in 0..50_u64 {
                use vfs::{Create, Vfs};
                let path = std::path::PathBuf::from("other");
                let file = rig.vfs.open(&path, Create::IfMissing).unwrap();
                rig.pool.attach(other, path, file).unwrap();
                for page in 0..20 {
                    let mut guard = rig.pool.create(base::PageId::new(other, base::PageNo(page))).unwrap();
                    guard.page_mut().set_u64(common::VALUE_AT, round);
                }
                let how = if round % 2 == 0 { Detach::Flush } else { Detach::Discard };
                rig.pool.detach(other, how).unwrap();
            }
            stop.store(true, Relaxed);
        });
        assert_eq!(rig.pool.status().blocks.not_flushed, 0);
    });
}

#[test]
fn a_writer_gets_its_turn_among_readers_who_latch() {
    on_both_paths(|hit_path| {
        let rig = Rig::new(config(32, 1, hit_path));
        rig.fill(1);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..8 {
                let (rig, stop) = (&rig, &stop);
                scope.spawn(move || {
                    while !stop.load(Relaxed) {
                        let first = rig.pool.read_shared(id(0)).unwrap();
                        let second = rig.pool.read_shared(id(0)).unwrap();
                        drop((first, second));
                    }
                });
            }
            (0..200).for_each(|_| set_value(&rig.pool, 0, |value| value + 1));
            stop.store(true, Relaxed);
        });
        assert_eq!(rig.value(0), 200);
    });
}

#[test]
fn dropping_the_cache_ends_its_thread() {
    let mut config = config(32, 2, HitPath::Optimistic);
    config.write_back = WriteBack::Background;
    let rig = Rig::new(config);
    rig.fill(10);
    let weak = Arc::downgrade(&rig.pool);
    drop(rig);
    // The thread may hold the last reference for the length of a batch.
    while weak.upgrade().is_some() {
        thread::yield_now();
    }
}
