//! A cache over a file in memory, and pages that say what they are.
#![allow(dead_code)]

use base::sync::Arc;
use base::{FileId, PageId, PageNo};
use latchwork_pagecache::{CacheConfig, FRAMES_MIN, HitPath, Pool, ReadGuard, WriteBack};
use std::path::{Path, PathBuf};
use vfs::{Create, Faults, FaultyVfs, MemVfs, Vfs};

pub const PAGE_SIZE: usize = 1024;
pub const FILE: FileId = FileId(7);
/// Where the pages of these tests keep their value, twice, at both ends.
pub const VALUE_AT: usize = 64;
pub const VALUE_AGAIN_AT: usize = PAGE_SIZE - 16;

pub fn id(page: u32) -> PageId {
    PageId::new(FILE, PageNo(page))
}

/// A budget for exactly so many frames of [`PAGE_SIZE`].
pub fn bytes_for(frames: usize) -> usize {
    latchwork_pagecache::size_for_frames(frames, PAGE_SIZE)
}

pub fn config(frames: usize, segments: u32, hit_path: HitPath) -> CacheConfig {
    CacheConfig {
        segments,
        hit_path,
        write_back: WriteBack::AtEvictionOnly,
        ..CacheConfig::new(bytes_for(frames), PAGE_SIZE)
    }
}

#[derive(Debug)]
pub struct Rig {
    pub pool: Arc<Pool>,
    pub vfs: FaultyVfs,
    pub faults: Faults,
}

impl Rig {
    pub fn new(config: CacheConfig) -> Rig {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let pool = Pool::new(config).unwrap();
        let rig = Rig { pool, faults: vfs.faults(), vfs };
        rig.attach();
        rig
    }

    /// A small cache with the hit path in question.
    pub fn small(hit_path: HitPath) -> Rig {
        Rig::new(config(FRAMES_MIN, 2, hit_path))
    }

    pub fn attach(&self) {
        let path = PathBuf::from("file");
        let file = self.vfs.open(Path::new("file"), Create::IfMissing).unwrap();
        self.pool.attach(FILE, path, file).unwrap();
    }

    /// Makes pages 0 to `pages` with their number as value, on the device.
    pub fn fill(&self, pages: u32) {
        for page in 0..pages {
            let mut guard = self.pool.create(id(page)).unwrap();
            let mut page_mut = guard.page_mut();
            page_mut.set_u64(VALUE_AT, u64::from(page));
            page_mut.set_u64(VALUE_AGAIN_AT, u64::from(page));
        }
        self.pool.flush_file(FILE).unwrap();
    }

    /// The value of a page, read as the engine would: validated, retried, latched in the end.
    pub fn value(&self, page: u32) -> u64 {
        value(&self.pool, page)
    }

    pub fn set_value(&self, page: u32, value: u64) {
        set_value(&self.pool, page, |_| value);
    }

    /// The bytes of the page on the device.
    pub fn device(&self, page: u32) -> Vec<u8> {
        let mut bytes = vec![0; PAGE_SIZE];
        let file = self.vfs.open(Path::new("file"), Create::Never).unwrap();
        file.read_at(&mut bytes, u64::from(page) * PAGE_SIZE as u64).unwrap();
        bytes
    }

    pub fn device_value(&self, page: u32) -> u64 {
        u64::from_le_bytes(self.device(page)[VALUE_AT..][..8].try_into().unwrap())
    }
}

fn read_value(guard: &ReadGuard<'_>) -> Option<u64> {
    let (first, second) = (guard.page().u64_at(VALUE_AT), guard.page().u64_at(VALUE_AGAIN_AT));
    guard.validate().ok()?;
    assert_eq!(first, second, "a torn page passed validation");
    Some(first)
}

pub fn value(pool: &Pool, page: u32) -> u64 {
    for _ in 0..4 {
        if let Some(value) = read_value(&pool.read(id(page)).unwrap()) {
            return value;
        }
    }
    read_value(&pool.read_shared(id(page)).unwrap()).expect("a latched page does not change")
}

pub fn set_value(pool: &Pool, page: u32, change: impl FnOnce(u64) -> u64) {
    let mut guard = pool.write(id(page)).unwrap();
    let value = change(guard.page().u64_at(VALUE_AT));
    let mut page = guard.page_mut();
    page.set_u64(VALUE_AT, value);
    page.set_u64(VALUE_AGAIN_AT, value);
}

/// Runs the same test body on both hit paths.
pub fn on_both_paths(body: impl Fn(HitPath)) {
    for hit_path in [HitPath::Locked, HitPath::Optimistic] {
        body(hit_path);
    }
}
