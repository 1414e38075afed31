//! What users see of a cache: `SHOW STATUS LIKE 'Key%'` and `information_schema.KEY_CACHES`.

use crate::config::{CacheSettings, HitPath, Limits};
use crate::counters::Counters;
use crate::index::Geometry;
use crate::local::SEGMENTS_MAX;
use crate::pool::Pool;
use base::sync::atomic::Ordering::Relaxed;

/// The pages of a cache or of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blocks {
    /// The most in use at once: `Key_blocks_used`.
    pub used_high_water: u64,
    /// In use now.
    pub used: u64,
    /// Free. A segment's share of the common pool, so that the segments add up to the cache.
    pub unused: u64,
    /// In use and not protected from eviction.
    pub warm: u64,
    /// Differing from the device: `Key_blocks_not_flushed`.
    pub not_flushed: u64,
}

impl Blocks {
    fn plus(self, other: Blocks) -> Blocks {
        Blocks {
            used_high_water: self.used_high_water + other.used_high_water,
            used: self.used + other.used,
            unused: self.unused + other.unused,
            warm: self.warm + other.warm,
            not_flushed: self.not_flushed + other.not_flushed,
        }
    }
}

/// A cache as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheStatus {
    pub name: String,
    /// As configured.
    pub size_bytes: usize,
    pub page_size: usize,
    /// As configured: 0 = one mutex.
    pub segments: u32,
    pub hit_path: HitPath,
    pub limits: Limits,
    /// Frames the budget has room for.
    pub frames: u64,
    pub blocks: Blocks,
    pub counters: Counters,
    /// How often pages were asked for ahead of need since the cache was made, and how many were read for
    /// that.
    pub read_ahead_calls: u64,
    pub read_ahead_pages: u64,
    /// Failed writes since the cache was made.
    pub write_failures: u64,
    /// Why the last write failed, if none has succeeded since.
    pub write_failure: Option<String>,
    /// Why nothing is written any more, if so.
    pub poisoned: Option<String>,
}

impl CacheStatus {
    /// The status of a cache that has no pool yet.
    pub(crate) fn none(name: &str, settings: &CacheSettings) -> CacheStatus {
        CacheStatus {
            name: name.to_owned(),
            size_bytes: settings.size_bytes,
            page_size: 0,
            segments: settings.segments,
            hit_path: settings.hit_path,
            limits: settings.limits,
            frames: 0,
            blocks: Blocks::default(),
            counters: Counters::default(),
            read_ahead_calls: 0,
            read_ahead_pages: 0,
            write_failures: 0,
            write_failure: None,
            poisoned: None,
        }
    }

    /// Adds what a pool of the cache has.
    pub(crate) fn add(&mut self, pool: &CacheStatus) {
        if self.page_size == 0 {
            self.page_size = pool.page_size;
        }
        self.frames += pool.frames;
        self.blocks = self.blocks.plus(pool.blocks);
        self.counters = self.counters.plus(pool.counters);
        self.read_ahead_calls += pool.read_ahead_calls;
        self.read_ahead_pages += pool.read_ahead_pages;
        // These are the same for all caches of a database.
        self.write_failures = pool.write_failures;
        self.write_failure.clone_from(&pool.write_failure);
        self.poisoned.clone_from(&pool.poisoned);
    }
}

/// One segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentStatus {
    /// From 1, as `information_schema.KEY_CACHES` counts.
    pub number: u32,
    pub blocks: Blocks,
    pub counters: Counters,
}

impl SegmentStatus {
    /// Adds the same segment of another pool.
    pub(crate) fn add(&mut self, other: &SegmentStatus) {
        self.blocks = self.blocks.plus(other.blocks);
        self.counters = self.counters.plus(other.counters);
    }
}

impl Pool {
    /// All counters since the pool was made, also of segments that are not in use.
    fn raw_counters(&self) -> [Counters; SEGMENTS_MAX] {
        let requests = &self.hot.requests;
        std::array::from_fn(|number| {
            let counters = &self.shells[number].counters;
            Counters {
                read_requests: requests.sum(number),
                reads: counters.reads.load(Relaxed),
                write_requests: requests.sum(SEGMENTS_MAX + number),
                writes: counters.writes.load(Relaxed),
                latch_waits: counters.latch_waits.load(Relaxed),
                conflicts: counters.conflicts.load(Relaxed),
                fallbacks: counters.fallbacks.load(Relaxed),
            }
        })
    }

    fn counters(&self) -> [Counters; SEGMENTS_MAX] {
        let baseline = self.baseline.lock();
        let raw = self.raw_counters();
        std::array::from_fn(|number| raw[number].minus(baseline.0[number]))
    }

    /// The pool as a whole. Each number is exact for what happened before the call. While threads work the
    /// numbers need not belong to one instant.
    pub fn status(&self) -> CacheStatus {
        let settings = self.growth.settings.lock().clone();
        let frames = self.growth.frame_count.load(Relaxed) as u64;
        let unused = self.growth.free.len() as u64;
        let mut not_flushed = 0;
        self.count_dirty(|_| not_flushed += 1);
        let segments = Geometry(self.hot.geometry.load(Relaxed)).segments();
        let warm = (0..segments).map(|number| self.shells[number].segment.lock().warm() as u64).sum();
        let (write_failures, write_failure) = self.device.backend.failures();
        CacheStatus {
            name: self.name.clone(),
            size_bytes: settings.size_bytes,
            page_size: self.page_size,
            segments: settings.segments,
            hit_path: settings.hit_path,
            limits: settings.limits,
            frames,
            blocks: Blocks {
                used_high_water: self.growth.free.used_high_water() as u64,
                used: frames.saturating_sub(unused),
                unused,
                warm,
                not_flushed,
            },
            counters: self.counters().into_iter().fold(Counters::default(), Counters::plus),
            read_ahead_calls: self.device.read_ahead_calls.load(Relaxed),
            read_ahead_pages: self.device.read_ahead_pages.load(Relaxed),
            write_failures,
            write_failure,
            poisoned: self.device.backend.poisoned().cloned(),
        }
    }

    /// The segments in use, one at least.
    pub fn segment_status(&self) -> Vec<SegmentStatus> {
        let segments = Geometry(self.hot.geometry.load(Relaxed)).segments();
        let counters = self.counters();
        let unused = self.growth.free.len();
        let mut not_flushed = [0; SEGMENTS_MAX];
        self.count_dirty(|id| not_flushed[self.segment_number(id)] += 1);
        (0..segments)
            .map(|number| {
                let segment = self.shells[number].segment.lock();
                let blocks = Blocks {
                    used_high_water: segment.resident_high_water() as u64,
                    used: segment.resident() as u64,
                    unused: (unused / segments + usize::from(number < unused % segments)) as u64,
                    warm: segment.warm() as u64,
                    not_flushed: not_flushed[number],
                };
                SegmentStatus { number: number as u32 + 1, blocks, counters: counters[number] }
            })
            .collect()
    }

    /// Sets all counters to zero. The numbers of the blocks are not counters and stay, also the most in use
    /// at once.
    pub fn reset_counters(&self) {
        self.baseline.lock().0 = self.raw_counters();
    }
}
