//! Counters are exact: known accesses, known numbers, of a cache and of each of its segments.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::sync::{Arc, thread};
use base::{FileId, PageId, PageNo};
use common::{PAGE_SIZE, bytes_for};
use latchwork_pagecache::{
    CacheChange, CacheConfig, CacheStatus, CachedFile, Caches, Detach, FileFormat, HitPath, NamedCache,
    SegmentStatus, WriteBack,
};
use std::path::PathBuf;
use vfs::{Create, File, MemVfs, Vfs};

const FILE: FileId = FileId(7);
const FRAMES: usize = 40;

fn id(page: u32) -> PageId {
    PageId::new(FILE, PageNo(page))
}

struct Rig {
    caches: Arc<Caches>,
    hot: Arc<NamedCache>,
    device: Arc<dyn File>,
    file: Arc<CachedFile>,
}

/// A file of twenty pages in the cache "hot", of which none is in memory, and counters at zero.
fn rig(hit_path: HitPath, segments: u32) -> Rig {
    let config = CacheConfig {
        hit_path,
        segments,
        write_back: WriteBack::AtEvictionOnly,
        ..CacheConfig::new(bytes_for(FRAMES), PAGE_SIZE)
    };
    let caches = Caches::new(config).unwrap();
    caches.set("hot", CacheChange::size(bytes_for(FRAMES))).unwrap();
    let hot = caches.get("hot").unwrap();
    let device = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
    let attach = || {
        let format = FileFormat::plain(PAGE_SIZE);
        caches.attach(&hot, FILE, PathBuf::from("file"), device.clone(), format).unwrap()
    };
    let file = attach();
    for page in 0..20 {
        drop(file.pool().create(id(page)).unwrap());
    }
    file.close(Detach::Flush).unwrap();
    let file = attach();
    // Of the size, which sets everything to zero.
    caches.set("hot", CacheChange { segments: Some(segments), ..CacheChange::default() }).unwrap();
    Rig { hot, file, device, caches }
}

/// Requests to read, reads, requests to write, writes, used at most, used, unused, warm, dirty.
fn numbers(status: &CacheStatus) -> [u64; 9] {
    let (c, b) = (&status.counters, &status.blocks);
    [
        c.read_requests,
        c.reads,
        c.write_requests,
        c.writes,
        b.used_high_water,
        b.used,
        b.unused,
        b.warm,
        b.not_flushed,
    ]
}

fn sums(segments: &[SegmentStatus]) -> [u64; 6] {
    let sum = |of: &dyn Fn(&SegmentStatus) -> u64| segments.iter().map(of).sum();
    [
        sum(&|s| s.counters.read_requests),
        sum(&|s| s.counters.reads),
        sum(&|s| s.counters.write_requests),
        sum(&|s| s.counters.writes),
        sum(&|s| s.blocks.used),
        sum(&|s| s.blocks.not_flushed),
    ]
}

#[test]
fn known_accesses_give_known_numbers() {
    for (hit_path, segments) in
        [(HitPath::Optimistic, 0), (HitPath::Optimistic, 7), (HitPath::Locked, 0), (HitPath::Locked, 7)]
    {
        let rig = rig(hit_path, segments);
        let (pool, frames) = (rig.file.pool(), FRAMES as u64);
        let check = |expected: [u64; 8]| {
            let status = rig.hot.status();
            let [rr, r, wr, w, high, used, unused, dirty] = expected;
            let mut found = numbers(&status);
            // Every page in use is a candidate: nothing was asked for often enough to be protected.
            assert_eq!(found[7], used, "warm, {hit_path:?}, {segments} segments");
            found[7] = found[8];
            assert_eq!(found[..8], [rr, r, wr, w, high, used, unused, dirty], "{hit_path:?}, {segments}");
            let of_segments = rig.hot.segment_status();
            assert_eq!(of_segments.len(), segments.max(1) as usize);
            assert_eq!(sums(&of_segments), [rr, r, wr, w, used, dirty]);
        };
        check([0, 0, 0, 0, 0, 0, frames, 0]);
        // Five misses, and the same five again.
        for page in 0..5 {
            drop(pool.read(id(page)).unwrap());
        }
        check([5, 5, 0, 0, 5, 5, frames - 5, 0]);
        for page in 0..5 {
            drop(pool.read(id(page)).unwrap());
        }
        check([10, 5, 0, 0, 5, 5, frames - 5, 0]);
        // Latched but not changed, then changed twice, then a page that is there anyway.
        drop(pool.write(id(0)).unwrap());
        check([11, 5, 0, 0, 5, 5, frames - 5, 0]);
        for _ in 0..2 {
            pool.write(id(1)).unwrap().page_mut().set_u64(64, 1);
        }
        check([13, 5, 2, 0, 5, 5, frames - 5, 1]);
        drop(pool.create(id(30)).unwrap());
        check([13, 5, 3, 0, 6, 6, frames - 6, 2]);
        rig.caches.flush_all().unwrap();
        check([13, 5, 3, 2, 6, 6, frames - 6, 0]);
        // Given up: the mark of the most in use stays.
        pool.write(id(30)).unwrap().free();
        check([14, 5, 3, 2, 6, 5, frames - 5, 0]);
        // In another thread, which ends.
        thread::scope(|scope| {
            scope.spawn(|| drop(pool.read_shared(id(9)).unwrap()));
        });
        check([15, 6, 3, 2, 6, 6, frames - 6, 0]);
        rig.hot.reset_counters();
        let status = rig.hot.status();
        assert_eq!(numbers(&status)[..4], [0; 4]);
        assert_eq!((status.blocks.used, status.blocks.unused), (6, frames - 6));
        // The other cache has had none of it.
        assert_eq!(numbers(&rig.caches.default_cache().status())[..4], [0; 4]);
        assert!(rig.device.len().unwrap() >= 20 * PAGE_SIZE as u64);
    }
}

#[test]
fn each_access_counts_in_one_segment_and_always_the_same() {
    for hit_path in [HitPath::Optimistic, HitPath::Locked] {
        let rig = rig(hit_path, 8);
        let pool = rig.file.pool();
        let requests = || -> Vec<[u64; 4]> {
            let segments = rig.hot.segment_status();
            let of = |s: &SegmentStatus| {
                [s.counters.read_requests, s.counters.reads, s.counters.write_requests, s.blocks.used]
            };
            segments.iter().map(of).collect()
        };
        let changed = |before: &[[u64; 4]], after: &[[u64; 4]]| -> Vec<(usize, [u64; 4])> {
            let pairs = before.iter().zip(after).enumerate();
            pairs
                .filter(|(_, (old, new))| old != new)
                .map(|(number, (old, new))| (number, std::array::from_fn(|n| new[n] - old[n])))
                .collect()
        };
        for page in 0..20 {
            let start = requests();
            drop(pool.read(id(page)).unwrap());
            let missed = requests();
            let [(segment, difference)] = changed(&start, &missed)[..] else { panic!("not one segment") };
            assert_eq!(difference, [1, 1, 0, 1]);
            drop(pool.read(id(page)).unwrap());
            let hit = requests();
            assert_eq!(changed(&missed, &hit), [(segment, [1, 0, 0, 0])]);
            pool.write(id(page)).unwrap().page_mut().set_u64(64, 1);
            assert_eq!(changed(&hit, &requests()), [(segment, [1, 0, 1, 0])]);
        }
    }
}
