//! One budget for each cache: a pool that needs room first takes free bytes, and then the pools are balanced
//! by what one more byte would gain each.
#![cfg(not(feature = "shuttle"))]

use base::random::{Random, mix};
use base::sync::Arc;
use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use base::{FileId, PageId, PageNo};
use latchwork_pagecache::{
    Budget, CacheChange, CacheConfig, CachedFile, Caches, Detach, Error, FileFormat, HitPath, NamedCache,
    Pool, Share, WriteBack,
};
use std::path::PathBuf;
use vfs::{Create, MemVfs, Vfs};

const SMALL: usize = 1024;
const LARGE: usize = 8192;
const BUDGET: usize = 4 << 20;

struct Rig {
    caches: Arc<Caches>,
    hot: Arc<NamedCache>,
    small: Arc<CachedFile>,
    large: Arc<CachedFile>,
}

const HIT_PATHS: [HitPath; 2] = [HitPath::Locked, HitPath::Optimistic];

/// Two files of different page sizes in one cache: 8,000 pages of 1 KiB and 1,000 of 8 KiB, eight megabytes
/// each.
fn rig(hit_path: HitPath) -> Rig {
    let config = CacheConfig {
        segments: 4,
        hit_path,
        write_back: WriteBack::AtEvictionOnly,
        ..CacheConfig::new(BUDGET, 4096)
    };
    let caches = Caches::new(config).unwrap();
    let hot = caches.default_cache().clone();
    let file = |number: u32, page_size: usize| {
        let device = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
        let format = FileFormat::plain(page_size);
        let path = PathBuf::from(format!("file {number}"));
        let attach = || caches.attach(&hot, FileId(number), path.clone(), device.clone(), format).unwrap();
        let file = attach();
        for page in 0..(8_000 * SMALL / page_size) as u32 {
            drop(file.pool().create(PageId::new(FileId(number), PageNo(page))).unwrap());
        }
        file.close(Detach::Flush).unwrap();
        attach()
    };
    let (small, large) = (file(1, SMALL), file(2, LARGE));
    Rig { hot, small, large, caches }
}

fn empty_file(
    caches: &Arc<Caches>,
    cache: &Arc<NamedCache>,
    number: u32,
    page_size: usize,
) -> Arc<CachedFile> {
    let device = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
    let path = PathBuf::from(format!("file {number}"));
    caches.attach(cache, FileId(number), path, device, FileFormat::plain(page_size)).unwrap()
}

/// A share that gives back all it has by itself, after its bytes have been looked at this many times.
#[derive(Debug)]
struct Leaver {
    budget: Arc<Budget>,
    bytes: AtomicUsize,
    looks_left: AtomicUsize,
    /// Nothing of it is in use.
    is_idle: bool,
    ghost_hits: AtomicU64,
}

impl Leaver {
    fn join(budget: &Arc<Budget>, bytes: usize, looks: usize, is_idle: bool) -> Arc<Leaver> {
        assert_eq!(budget.take(1, bytes), bytes);
        let leaver = Arc::new(Leaver {
            budget: budget.clone(),
            bytes: AtomicUsize::new(bytes),
            looks_left: AtomicUsize::new(looks),
            is_idle,
            ghost_hits: AtomicU64::new(0),
        });
        let share: Arc<dyn Share> = leaver.clone();
        budget.join(Arc::downgrade(&share));
        leaver
    }
}

impl Share for Leaver {
    fn name(&self) -> String {
        "leaver".to_owned()
    }

    fn bytes(&self) -> usize {
        match self.looks_left.load(Relaxed) {
            0 => self.budget.give_back(self.bytes.swap(0, Relaxed)),
            looks => self.looks_left.store(looks - 1, Relaxed),
        }
        self.bytes.load(Relaxed)
    }

    fn bytes_min(&self) -> usize {
        0
    }

    fn free_bytes(&self) -> usize {
        if self.is_idle { self.bytes.load(Relaxed) } else { 0 }
    }

    fn resize(&self, bytes: usize) -> Result<(), Error> {
        let old = self.bytes.load(Relaxed);
        let new = if bytes > old { old + self.budget.take(1, bytes - old) } else { bytes };
        self.budget.give_back(old.saturating_sub(new));
        self.bytes.store(new, Relaxed);
        Ok(())
    }

    fn ghost_hits(&self) -> u64 {
        self.ghost_hits.load(Relaxed)
    }

    fn ghost_bytes(&self) -> usize {
        self.budget.ghost_bytes()
    }
}

#[test]
fn a_share_that_leaves_while_it_is_asked_to_give_way_gives_no_more_than_it_had() {
    let all = |leaver: &Leaver, other: &Leaver| leaver.bytes.load(Relaxed) + other.bytes.load(Relaxed);
    let wanted = std::ptr::null();
    for looks in 0..6 {
        let budget = Budget::new(BUDGET);
        let idle = Leaver::join(&budget, BUDGET / 2, looks, true);
        let busy = Leaver::join(&budget, BUDGET / 2, usize::MAX, false);
        budget.reclaim(wanted);
        assert_eq!(all(&idle, &busy) + budget.free(), BUDGET, "{looks} looks");
        assert!(Share::bytes(&*idle) <= budget.step() && Share::bytes(&*busy) == BUDGET / 2);

        let budget = Budget::new(BUDGET);
        let cold = Leaver::join(&budget, BUDGET / 2, looks, false);
        let hot = Leaver::join(&budget, BUDGET / 2, usize::MAX, false);
        hot.ghost_hits.store(1000, Relaxed);
        budget.balance();
        assert_eq!(all(&cold, &hot) + budget.free(), BUDGET, "{looks} looks");
        assert!(hot.bytes.load(Relaxed) >= BUDGET / 2);
    }
}

fn read(file: &CachedFile, page: u32) {
    let guard = file.pool().read(PageId::new(file.id(), PageNo(page))).unwrap();
    guard.validate().unwrap();
}

/// The bytes that all pools have, which never exceed the budget, and the bytes that are free.
fn allotted(hot: &NamedCache) -> usize {
    let sum: usize = hot.pools().map(|pool| pool.bytes()).sum();
    assert!(sum <= BUDGET, "{sum} bytes of {BUDGET}");
    assert_eq!(hot.budget().free(), BUDGET - sum);
    sum
}

fn bytes(file: &CachedFile) -> usize {
    Share::bytes(&**file.pool())
}

#[test]
fn no_pool_evicts_while_there_is_room_that_nobody_uses() {
    let rig = rig(HitPath::Optimistic);
    // Three quarters of the budget in small pages: more than half, and nothing is read twice.
    let pages = (BUDGET / 4 * 3 / 1200) as u32;
    for _ in 0..2 {
        (0..pages).for_each(|page| read(&rig.small, page));
    }
    assert_eq!(rig.small.pool().status().counters.reads, u64::from(pages));
    allotted(&rig.hot);
    // Their file goes, and the room is the other's.
    rig.small.close(Detach::Discard).unwrap();
    let pages = (BUDGET / 4 * 3 / 8400) as u32;
    for _ in 0..2 {
        (0..pages).for_each(|page| read(&rig.large, page));
    }
    assert_eq!(rig.large.pool().status().counters.reads, u64::from(pages));
    allotted(&rig.hot);
}

#[test]
fn who_holds_a_latch_gets_the_room_that_another_pool_does_not_use() {
    for hit_path in HIT_PATHS {
        let rig = rig(hit_path);
        // The large pages take all there is, and go.
        (0..1_000).for_each(|page| read(&rig.large, page));
        assert!(rig.hot.budget().free() < 9_000);
        // Another file of theirs keeps the pool in use.
        let _other = empty_file(&rig.caches, &rig.hot, 3, LARGE);
        rig.large.close(Detach::Discard).unwrap();
        let pool = rig.small.pool();
        let id = |page| PageId::new(rig.small.id(), PageNo(page));
        let pages = (BUDGET / 2 / 1200) as u32;
        let (mut next, mut busy, mut permit) = (1, 0, None);
        while next < pages {
            let _latch = pool.write(id(0)).unwrap();
            match (next..pages).try_for_each(|page| {
                drop(pool.read(id(page))?);
                next = page + 1;
                Ok(())
            }) {
                Ok(()) => {}
                Err(Error::Busy) => {
                    drop(_latch);
                    busy += 1;
                    drop(permit.take());
                    permit = Some(pool.wait_for_frames());
                }
                Err(error) => panic!("a wrong error: {error}"),
            }
        }
        drop(permit);
        assert!(busy > 0);
        (0..pages).for_each(|page| read(&rig.small, page));
        assert_eq!(pool.status().counters.reads, u64::from(pages), "a page had to go");
        allotted(&rig.hot);
    }
}

#[test]
fn ghosts_are_not_forgotten_with_a_policy_or_a_number_of_segments() {
    let rig = rig(HitPath::Locked);
    let ghosts = || Share::ghost_hits(&**rig.small.pool());
    let pages = 6_000;
    let mut random = Random::new(99, 0);
    let mut met = 0;
    for change in [
        CacheChange { segments: Some(8), ..CacheChange::default() },
        CacheChange { hit_path: Some(HitPath::Optimistic), ..CacheChange::default() },
        CacheChange { hit_path: Some(HitPath::Locked), segments: Some(2), ..CacheChange::default() },
    ] {
        (0..30_000).for_each(|_| read(&rig.small, random.below(pages).min(random.below(pages))));
        assert!(ghosts() > met, "{change:?}");
        met = ghosts();
        rig.caches.set("default", change).unwrap();
        assert_eq!(ghosts(), met);
    }
}

#[test]
fn the_budget_follows_the_benefit_on_both_hit_paths() {
    HIT_PATHS.into_iter().for_each(the_budget_follows_the_benefit);
}

fn the_budget_follows_the_benefit(hit_path: HitPath) {
    let rig = rig(hit_path);
    let mut random = Random::new(4711, 0);
    // Hot pages of one file, scattered with a preference, beside a scan of the other, which is worth nothing.
    let mut load = |hot: &CachedFile, hot_pages: u32, scanned: &CachedFile, scanned_pages: u32| {
        let mut moved = 0;
        for turn in 0..120_000_u32 {
            let (one, other) = (random.below(hot_pages), random.below(hot_pages));
            read(hot, one.min(other));
            if turn % 4 == 0 {
                read(scanned, turn / 4 % scanned_pages);
            }
            if turn % 500 == 0 {
                moved += u32::from(rig.hot.budget().balance());
                allotted(&rig.hot);
            }
        }
        moved
    };
    load(&rig.small, 5_000, &rig.large, 1_000);
    let (small, large) = (bytes(&rig.small), bytes(&rig.large));
    assert!(small > 4 * large, "{small} for the hot pages, {large} for the scan");
    let moved = load(&rig.large, 700, &rig.small, 8_000);
    assert!(moved > 10, "{moved} steps");
    let (small, large) = (bytes(&rig.small), bytes(&rig.large));
    assert!(large > 4 * small, "{large} for the hot pages, {small} for the scan");
    // And what was read is still what it was.
    for page in 0..1_000 {
        read(&rig.large, page);
    }
}

#[test]
fn a_new_size_is_kept_by_all_pools_together() {
    let rig = rig(HitPath::Optimistic);
    let fill = || {
        (0..8_000).for_each(|page| read(&rig.small, page));
        (0..1_000).for_each(|page| read(&rig.large, page));
    };
    fill();
    let sum = |rig: &Rig| -> usize { rig.hot.pools().map(|pool: &Arc<Pool>| Share::bytes(&**pool)).sum() };
    for size in [BUDGET / 2, BUDGET, BUDGET / 8, 2 * BUDGET] {
        let floors: usize = rig.hot.pools().map(|pool| pool.bytes_min()).sum();
        rig.caches.set("default", CacheChange::size(size)).unwrap();
        assert!(sum(&rig) <= size.max(floors), "{} bytes of {size}", sum(&rig));
        assert_eq!(rig.hot.status().counters.read_requests, 0);
        fill();
        assert!(sum(&rig) <= size.max(floors), "{} bytes of {size}", sum(&rig));
        assert_eq!(rig.hot.settings().size_bytes, size);
    }
}

#[test]
fn a_pool_without_files_has_nothing_and_one_in_use_what_it_needs() {
    const MIB: usize = 1 << 20;
    let frames = latchwork_pagecache::size_for_frames;
    for hit_path in HIT_PATHS {
        let config = CacheConfig {
            segments: 4,
            hit_path,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(2 * MIB, 16 << 10)
        };
        let caches = Caches::new(config).unwrap();
        let hot = caches.default_cache().clone();
        let sum = || -> usize { hot.pools().map(|pool| pool.bytes()).sum() };
        let exact = |total: usize| {
            assert!(sum() <= total, "{} bytes of {total}", sum());
            assert_eq!(hot.budget().free(), total - sum());
        };
        assert_eq!(sum(), 0);
        let table = empty_file(&caches, &hot, 1, 16 << 10);
        assert_eq!(sum(), frames(16, 16 << 10));
        let pages = (2 * MIB / frames(1, 16 << 10)) as u32;
        for page in 0..pages {
            drop(table.pool().create(PageId::new(table.id(), PageNo(page))).unwrap());
        }
        table.pool().flush_file(table.id()).unwrap();
        assert_eq!(bytes(&table), frames(pages as usize, 16 << 10));
        // The others come, and it gives way; they go, and it has all again.
        let large = [(2, 64 << 10), (3, 32 << 10)].map(|(id, size)| empty_file(&caches, &hot, id, size));
        exact(2 * MIB);
        assert_eq!(bytes(&large[0]), frames(16, 64 << 10));
        assert_eq!(bytes(&large[1]), frames(16, 32 << 10));
        large.iter().for_each(|file| file.close(Detach::Discard).unwrap());
        assert_eq!(sum(), bytes(&table));
        let all = |count: u32| (0..count).for_each(|page| read(&table, page));
        for _ in 0..2 {
            all(pages);
            exact(2 * MIB);
        }
        assert_eq!(bytes(&table), frames(pages as usize, 16 << 10));
        // A smaller size, and the old one again.
        caches.set("default", CacheChange::size(MIB)).unwrap();
        exact(MIB);
        all(pages);
        caches.set("default", CacheChange::size(2 * MIB)).unwrap();
        all(pages);
        assert_eq!(bytes(&table), frames(pages as usize, 16 << 10));
        table.pool().reset_counters();
        all(pages);
        assert_eq!(table.pool().status().counters.reads, 0, "there is room for all pages");
        // Too small for what all need: they have that, and no more.
        caches.set("default", CacheChange::size(4096)).unwrap();
        assert_eq!(sum(), frames(16, 16 << 10));
        let large = empty_file(&caches, &hot, 4, 64 << 10);
        assert_eq!(sum(), frames(16, 16 << 10) + frames(16, 64 << 10));
        large.close(Detach::Flush).unwrap();
        table.close(Detach::Flush).unwrap();
        assert_eq!((sum(), hot.budget().free()), (0, 4096));
        // A cache that is dropped has nothing.
        caches.set("own", CacheChange::size(MIB)).unwrap();
        let own = caches.get("own").unwrap();
        let file = empty_file(&caches, &own, 5, 8 << 10);
        assert_eq!(own.pools().map(|pool| pool.bytes()).sum::<usize>(), frames(16, 8 << 10));
        caches.set("own", CacheChange::size(0)).unwrap();
        assert_eq!(own.pools().map(|pool| pool.bytes()).sum::<usize>(), 0);
        assert_eq!(bytes(&file), frames(16, 8 << 10));
    }
}

#[test]
fn cold_pages_that_can_be_compressed_stay_in_memory_as_images_and_hot_ones_open() {
    let config =
        CacheConfig { segments: 4, write_back: WriteBack::AtEvictionOnly, ..CacheConfig::new(BUDGET, LARGE) };
    let caches = Caches::new(config).unwrap();
    let hot = caches.default_cache().clone();
    let device = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
    let format = FileFormat { page_size: LARGE, is_compressed: true };
    // Three times what fits as it is; by a good part less than the budget, compressed.
    let pages = 3 * (BUDGET / LARGE) as u32;
    device.set_len(u64::from(pages) * LARGE as u64).unwrap();
    let file = caches.attach(&hot, FileId(1), "file".into(), device, format).unwrap();
    for page in 0..pages {
        let mut guard = file.pool().create(PageId::new(FileId(1), PageNo(page))).unwrap();
        // Four fifths of it are the same.
        for at in (64..LARGE).step_by(8) {
            let noise = mix(u64::from(page) << 32 | at as u64);
            guard.page_mut().set_u64(at, if at < LARGE / 5 { noise } else { u64::from(page) });
        }
    }
    file.pool().flush_file(FileId(1)).unwrap();
    let mut random = Random::new(7, 0);
    for _ in 0..60 {
        for _ in 0..1_000 {
            let page = random.below(pages);
            let guard = file.pool().read(PageId::new(FileId(1), PageNo(page))).unwrap();
            assert_eq!(guard.page().u64_at(LARGE - 64), u64::from(page));
            guard.validate().unwrap();
        }
        hot.budget().balance();
    }
    file.pool().reset_counters();
    let opened = file.pool().cold_page_status().1;
    (0..6_000).for_each(|_| read(&file, random.below(pages)));
    let (reads, opened) = (file.pool().status().counters.reads, file.pool().cold_page_status().1 - opened);
    assert!(reads < 600, "{reads} reads of the device for 6,000 pages");
    assert!(opened > 3_000, "{opened} images were opened");
    assert!(bytes(&file) + file.pool().cold_page_status().0 <= BUDGET);
    // A few hot pages are open in the end, and no image is made or opened for them.
    for _ in 0..50 {
        (0..1_000).for_each(|_| read(&file, random.below(100)));
        hot.budget().balance();
    }
    let opened = file.pool().cold_page_status().1;
    (0..100).for_each(|page| read(&file, page));
    assert_eq!(file.pool().cold_page_status().1, opened);
}
