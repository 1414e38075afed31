//! The settings of caches and pools.

use base::Lsn;
use base::sync::{Arc, Implementation};

/// How a page that is in the cache is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum HitPath {
    /// The segment's mutex is taken, the page moves in the LRU list, and is pinned: what MyISAM does.
    Locked,
    /// Version, read, version: no latch and no write to shared memory.
    Optimistic,
}

impl HitPath {
    /// As the setting `key_cache_hit_path` has it.
    pub fn name(self) -> &'static str {
        match self {
            HitPath::Locked => "locked",
            HitPath::Optimistic => "optimistic",
        }
    }
}

/// Which threads write dirty pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteBack {
    /// A thread of the cache's own, ahead of need.
    Background,
    /// The thread that needs a frame, and flushes: for tests and models. The cache has no threads then.
    AtEvictionOnly,
}

/// The limits of midpoint insertion, in percent of a segment's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The least share of warm pages, 1 to 100. 100 = plain LRU.
    pub division_limit: u32,
    /// After how many hits without one of its own a hot page becomes warm, 100 or more.
    pub age_threshold: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { division_limit: 100, age_threshold: 300 }
    }
}

/// How much of the device the cache's threads use, and how many they are. With [`WriteBack::AtEvictionOnly`]
/// there are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoConfig {
    /// Pages a second that are written ahead of need, as long as nothing is urgent.
    pub capacity: u32,
    /// Pages a second that are written while too many frames are dirty, or the log is short of room. At least
    /// `capacity`; 4294967295 means as fast as the device takes them. Neither number slows down a thread that
    /// waits for a frame or a flush.
    pub capacity_max: u32,
    /// How many threads write the pages of a batch side by side, including the one whose batch it is.
    pub write_threads: u32,
    /// How many threads read ahead; 0 = nothing is read ahead.
    pub read_threads: u32,
}

impl Default for IoConfig {
    /// InnoDB's default rate, no limit when writing is urgent, four threads each.
    fn default() -> IoConfig {
        IoConfig { capacity: 200, capacity_max: u32::MAX, write_threads: 4, read_threads: 4 }
    }
}

/// The settings of a cache.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// The name users know it by; "default" for the first.
    pub name: String,
    /// Budget in bytes for pages, headers and index together. Raised to what `FRAMES_MIN` frames need.
    pub size_bytes: usize,
    /// Bytes a page: a power of two, 1 to 64 KiB. Fixed for the life of the cache.
    pub page_size: usize,
    /// 0 = one mutex; 1 to 64 segments. More are cut to 64.
    pub segments: u32,
    pub hit_path: HitPath,
    /// See [`Limits`].
    pub division_limit: u32,
    /// See [`Limits`].
    pub age_threshold: u32,
    pub write_back: WriteBack,
    pub io: IoConfig,
    /// How the latches of its pages are made. Its other latches are made as the process has chosen.
    pub latches: Implementation,
    /// The log, which pages wait for before they are written.
    pub log: Option<Arc<dyn WriteAhead>>,
    /// The file to which pages are written before they are written in their places: see `doublewrite`.
    pub doublewrite: Option<Arc<dyn vfs::File>>,
}

/// The settings of a cache, as the user set them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheSettings {
    /// 0 = the cache is disabled, and no file is in it.
    pub size_bytes: usize,
    /// 0 = one mutex; 1 to 64.
    pub segments: u32,
    pub hit_path: HitPath,
    pub limits: Limits,
    /// Only shown to users. The page size comes from the table.
    pub block_size: u32,
    /// Only shown to users: there are no chains of blocks to search.
    pub file_hash_size: u32,
}

/// The log that describes the changes of pages. A page's header names the position up to which it has to be
/// durable before the page is written.
pub trait WriteAhead: Send + Sync + std::fmt::Debug {
    /// A position at or below the LSN of every record to come. Called when a page becomes dirty, so it must
    /// be cheap.
    fn position(&self) -> Lsn;
    /// Where the log ends. No page has a higher LSN, unless the log has lost its end.
    fn end(&self) -> Lsn {
        self.position()
    }
    /// Returns when the log is durable up to `lsn`, at once if it is already. The error says why it will not
    /// be.
    fn make_durable(&self, lsn: Lsn) -> Result<(), String>;
}

impl CacheConfig {
    /// The default settings for a cache of `size_bytes` with pages of `page_size` bytes.
    pub fn new(size_bytes: usize, page_size: usize) -> CacheConfig {
        let limits = Limits::default();
        CacheConfig {
            name: "default".to_owned(),
            size_bytes,
            page_size,
            segments: default_segments(),
            hit_path: HitPath::Optimistic,
            division_limit: limits.division_limit,
            age_threshold: limits.age_threshold,
            write_back: WriteBack::Background,
            io: IoConfig::default(),
            latches: Implementation::chosen(),
            log: None,
            doublewrite: None,
        }
    }

    pub fn limits(&self) -> Limits {
        Limits { division_limit: self.division_limit, age_threshold: self.age_threshold }
    }
}

/// Segments for this machine: four a core, so that two threads rarely want the same one, at
/// least 8 and at most 64 (more than 64 have never been measured to help).
pub fn default_segments() -> u32 {
    if cfg!(feature = "shuttle") {
        return 2;
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    (cores * 4).next_power_of_two().clamp(8, 64) as u32
}

/// What [`crate::Pool::reconfigure`] changes; `None` leaves a setting as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reconfigure {
    pub size_bytes: Option<usize>,
    pub segments: Option<u32>,
    pub hit_path: Option<HitPath>,
    pub division_limit: Option<u32>,
    pub age_threshold: Option<u32>,
}

/// What becomes of a file's pages when it leaves the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detach {
    /// Dirty pages are written and the file is synced first.
    Flush,
    /// Dirty pages are forgotten: the file is going to be deleted.
    Discard,
}
