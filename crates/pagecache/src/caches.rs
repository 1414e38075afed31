//! The caches of a database, by name, and which file is in which of them.
//!
//! ```text
//! Caches ── NamedCache "default" ── a Pool for each page size in use
//!        ── NamedCache "hot" ────── ...
//!        ── CachedFile ──> the pool that has the file's pages at present
//! ```
//!
//! Pools are never freed while the database is open, and names are never forgotten. So a reader follows a
//! number to a plain reference and counts no users.
//!
//! # How a file changes its pool
//!
//! One rule carries it (pagecache R13): **a file is attached to one pool at a time, and to the one that its
//! number names.** First the old pool gives the file up: all is written and synced, and all its pages are
//! gone. Then the number changes. Then the new pool takes the file in. A thread that comes with the old
//! number, or too early with the new one, gets [`Error::NotAttached`]. It holds no page, waits for the move
//! to end ([`CachedFile::settle`]) and tries again. So:
//! - A page read from any pool is the newest there is: a pool that has given up a file has none of its pages.
//! - An optimistic reader that began in the old pool fails to validate there: the page's frame has a new
//!   version.
//! - While a thread holds a latch on a page the file stays where it is: the old pool waits for the latch. So
//!   a thread never holds latches on one file's pages in two pools.

use crate::backend::Backend;
use crate::budget::Budget;
use crate::config::{CacheConfig, CacheSettings, Detach, HitPath, IoConfig, Limits, Reconfigure};
use crate::error::Error;
use crate::files::{FileFormat, OpenFile};
use crate::local::SEGMENTS_MAX;
use crate::page::PAGE_SIZE_MAX;
use crate::pool::Pool;
use crate::sizing::{check_page_size, checked_limits, frames_for};
use crate::status::{CacheStatus, SegmentStatus};
use base::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Release},
};
use base::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use base::{FileId, Lsn};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The name of the cache that is always there: files are in it unless they have been assigned to another.
pub const DEFAULT_CACHE: &str = "default";

/// The most pools that a database can have. Each costs sixteen bytes here.
const POOLS_MAX: usize = if cfg!(feature = "shuttle") { 8 } else { 1024 };

/// Page sizes, as powers of two.
const SIZES: usize = PAGE_SIZE_MAX.ilog2() as usize + 1;

/// What [`Caches::set`] changes; `None` leaves a setting as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheChange {
    /// 0 drops the cache: its files go to the default one, its other settings stay.
    pub size_bytes: Option<usize>,
    pub segments: Option<u32>,
    pub hit_path: Option<HitPath>,
    pub division_limit: Option<u32>,
    pub age_threshold: Option<u32>,
    pub block_size: Option<u32>,
    pub file_hash_size: Option<u32>,
}

impl CacheChange {
    /// A change of the size alone.
    pub fn size(size_bytes: usize) -> CacheChange {
        CacheChange { size_bytes: Some(size_bytes), ..CacheChange::default() }
    }
}

/// Pools by their numbers; filled from the first on.
type Pools = Arc<[OnceLock<Arc<Pool>>]>;

/// A cache that users know by its name.
#[derive(Debug)]
pub struct NamedCache {
    name: String,
    settings: Mutex<CacheSettings>,
    budget: Arc<Budget>,
    /// Numbers of pools, by the logarithm of the page size.
    pools: [OnceLock<usize>; SIZES],
    all: Pools,
    /// Held for the whole of a change of settings.
    changing: Mutex<()>,
}

/// All caches of a database.
#[derive(Debug)]
pub struct Caches {
    backend: Arc<Backend>,
    /// What pools are made from, whatever their cache's settings.
    template: CacheConfig,
    /// In the order in which they were made. The first is the default one.
    names: RwLock<Vec<Arc<NamedCache>>>,
    default: Arc<NamedCache>,
    pools: Pools,
    /// Pools made.
    made: Mutex<usize>,
    files: Mutex<BTreeMap<FileId, Weak<CachedFile>>>,
}

/// A file whose pages are in one of the caches. It may move to another cache while it is in use.
#[derive(Debug)]
pub struct CachedFile {
    caches: Arc<Caches>,
    pools: Pools,
    id: FileId,
    format: FileFormat,
    /// The number of the pool.
    pool: AtomicUsize,
    /// Held while the file changes its pool, and while it is closed: for as long as it takes to write its
    /// pages.
    moving: Mutex<()>,
    /// Changed under `moving` only.
    assignment: Mutex<Assignment>,
}

#[derive(Debug)]
struct Assignment {
    cache: Arc<NamedCache>,
    is_open: bool,
}

impl NamedCache {
    fn new(name: &str, settings: CacheSettings, all: Pools) -> Arc<NamedCache> {
        Arc::new(NamedCache {
            name: name.to_owned(),
            budget: Budget::new(settings.size_bytes),
            settings: Mutex::new(settings),
            pools: [const { OnceLock::new() }; SIZES],
            all,
            changing: Mutex::new(()),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn settings(&self) -> CacheSettings {
        self.settings.lock().clone()
    }

    /// True if it has a size, so that files may be assigned to it.
    pub fn is_enabled(&self) -> bool {
        self.settings.lock().size_bytes > 0
    }

    /// The pools made so far, by page size.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter().filter_map(|number| self.all[*number.get()?].get())
    }

    /// Its bytes and the shares of them. Pools join by themselves, others by [`Budget::join`].
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Makes other shares smaller for a pool that has come into use. If a dirty page cannot be written now,
    /// the next balance tries again.
    fn make_room(&self) {
        if self.budget.is_over() {
            let _ = self.budget.fit();
        }
    }

    /// How many frames the bytes that no share has would make, in the pool that was made first.
    fn frames_to_come(&self) -> u64 {
        let first = self.pools().min_by_key(|pool| pool.id());
        first.map_or(0, |pool| (self.budget.free() / pool.frame_bytes()) as u64)
    }

    /// The cache as a whole: the sums over its pools, with frames for all that no pool has yet.
    pub fn status(&self) -> CacheStatus {
        let settings = self.settings();
        let mut whole = CacheStatus::none(&self.name, &settings);
        for pool in self.pools() {
            whole.add(&pool.status());
        }
        let more = self.frames_to_come();
        whole.frames += more;
        whole.blocks.unused += more;
        whole
    }

    /// Its segments, at least one: the sums over its pools.
    pub fn segment_status(&self) -> Vec<SegmentStatus> {
        let mut segments: Vec<SegmentStatus> = Vec::new();
        for pool in self.pools() {
            for (position, segment) in pool.segment_status().into_iter().enumerate() {
                match segments.get_mut(position) {
                    Some(sum) => sum.add(&segment),
                    None => segments.push(segment),
                }
            }
        }
        let (more, count) = (self.frames_to_come(), segments.len() as u64);
        for (number, segment) in segments.iter_mut().enumerate() {
            segment.blocks.unused += more / count + u64::from((number as u64) < more % count);
        }
        segments
    }

    /// Sets its counters to zero: see [`Pool::reset_counters`].
    pub fn reset_counters(&self) {
        self.pools().for_each(|pool| pool.reset_counters());
    }
}

impl Caches {
    /// Makes the default cache, as `config` says, with a pool for its page size. Later caches take its
    /// settings.
    pub fn new(config: CacheConfig) -> Result<Arc<Caches>, Error> {
        check_page_size(config.page_size)?;
        check_size(config.size_bytes)?;
        let limits = checked_limits(config.limits())?;
        let backend = Backend::new(&config, frames_for(config.size_bytes, config.page_size))?;
        let pools: Pools = (0..POOLS_MAX).map(|_| OnceLock::new()).collect();
        let settings = CacheSettings {
            size_bytes: config.size_bytes,
            segments: config.segments.min(SEGMENTS_MAX as u32),
            hit_path: config.hit_path,
            limits,
            block_size: 1024,
            file_hash_size: 512,
        };
        let default = NamedCache::new(DEFAULT_CACHE, settings, pools.clone());
        let caches = Caches {
            backend,
            template: config,
            names: RwLock::new(vec![default.clone()]),
            default,
            pools,
            made: Mutex::new(0),
            files: Mutex::new(BTreeMap::new()),
        };
        caches.pool_of(&caches.default, &caches.default.settings.lock(), caches.template.page_size)?;
        Ok(Arc::new(caches))
    }

    /// The cache that is always there.
    pub fn default_cache(&self) -> &Arc<NamedCache> {
        &self.default
    }

    /// All caches ever named, oldest first.
    pub fn list(&self) -> Vec<Arc<NamedCache>> {
        self.names.read().clone()
    }

    /// The cache of exactly this name.
    pub fn get(&self, name: &str) -> Option<Arc<NamedCache>> {
        self.names.read().iter().find(|cache| cache.name == name).cloned()
    }

    /// Changes settings of a cache while it is in use. Makes the cache if there is none of this name, with
    /// the default cache's settings and no size. A cache without a size is disabled. Size 0 for a name that
    /// does not exist does nothing.
    ///
    /// Size 0 drops a cache: its files go to the default cache, after their dirty pages have been written. If
    /// that fails the cache stays as it was, but some files may have moved. A size beyond the machine's
    /// memory is refused. The caller holds no latches.
    pub fn set(&self, name: &str, change: CacheChange) -> Result<(), Error> {
        check_size(change.size_bytes.unwrap_or(0))?;
        let Some(cache) = self.get_or_name(name, change) else { return Ok(()) };
        let _one_at_a_time = cache.changing.lock();
        let old = cache.settings();
        let new = CacheSettings {
            size_bytes: change.size_bytes.unwrap_or(old.size_bytes),
            segments: change.segments.unwrap_or(old.segments).min(SEGMENTS_MAX as u32),
            hit_path: change.hit_path.unwrap_or(old.hit_path),
            limits: checked_limits(Limits {
                division_limit: change.division_limit.unwrap_or(old.limits.division_limit),
                age_threshold: change.age_threshold.unwrap_or(old.limits.age_threshold),
            })?,
            block_size: change.block_size.unwrap_or(old.block_size),
            file_hash_size: change.file_hash_size.unwrap_or(old.file_hash_size),
        };
        if new.size_bytes == 0 && Arc::ptr_eq(&cache, &self.default) {
            return Err(Error::Config { why: "the default cache cannot be dropped".to_owned() });
        }
        if new.size_bytes == 0 && old.size_bytes > 0 {
            // The size goes first, so that no new file is assigned to this cache.
            cache.settings.lock().size_bytes = 0;
            if let Err(error) = self.empty(&cache) {
                cache.settings.lock().size_bytes = old.size_bytes;
                return Err(error);
            }
        }
        let reconfigure = Reconfigure {
            // A disabled cache keeps the least that a pool can have.
            size_bytes: change.size_bytes.map(|_| new.size_bytes),
            segments: change.segments,
            hit_path: change.hit_path,
            division_limit: change.division_limit,
            age_threshold: change.age_threshold,
        };
        {
            let mut settings = cache.settings.lock();
            if new.size_bytes > 0 {
                // What can fail comes first. A cache with a size has a pool for the page size of most tables.
                self.pool_of(&cache, &new, self.template.page_size)?;
            }
            // Before the pools are changed, so that a pool made meanwhile gets the new settings.
            *settings = new.clone();
        }
        let changed = match change.size_bytes {
            Some(bytes) => cache.budget.set_total(bytes),
            None => Ok(()),
        };
        if let Err(error) =
            changed.and_then(|()| cache.pools().try_for_each(|pool| pool.reconfigure(reconfigure)))
        {
            // Some shares may be smaller than before. They grow again when they need to.
            let _ = cache.budget.set_total(old.size_bytes);
            *cache.settings.lock() = old;
            return Err(error);
        }
        if change.block_size.is_some() || change.file_hash_size.is_some() {
            cache.reset_counters();
        }
        Ok(())
    }

    /// The cache to be changed. `None` if there is none and this change makes none.
    fn get_or_name(&self, name: &str, change: CacheChange) -> Option<Arc<NamedCache>> {
        let mut names = self.names.write();
        if let Some(cache) = names.iter().find(|cache| cache.name == name) {
            return Some(cache.clone());
        }
        if change == CacheChange::size(0) {
            return None;
        }
        let settings = CacheSettings { size_bytes: 0, ..self.default.settings() };
        let cache = NamedCache::new(name, settings, self.pools.clone());
        names.push(cache.clone());
        Some(cache)
    }

    /// Moves every file of the cache to the default one.
    fn empty(&self, cache: &Arc<NamedCache>) -> Result<(), Error> {
        let files: Vec<Weak<CachedFile>> = self.files.lock().values().cloned().collect();
        for file in files.iter().filter_map(Weak::upgrade) {
            if !file.is_in(cache) {
                continue;
            }
            let _moving = file.moving.lock();
            if file.is_in(cache) {
                file.move_to(&self.default)?;
            }
        }
        Ok(())
    }

    /// The number of the cache's pool for pages of this size. Makes the pool if there is none yet. The caller
    /// holds the mutex of the settings.
    fn pool_of(
        &self,
        cache: &NamedCache,
        settings: &CacheSettings,
        page_size: usize,
    ) -> Result<usize, Error> {
        check_page_size(page_size)?;
        let known = &cache.pools[page_size.ilog2() as usize];
        if let Some(number) = known.get() {
            return Ok(*number);
        }
        let mut made = self.made.lock();
        let Some(unused) = self.pools.get(*made) else {
            return Err(Error::Config { why: format!("there are {} pools of pages already", *made) });
        };
        let config = CacheConfig {
            name: cache.name.clone(),
            size_bytes: settings.size_bytes,
            page_size,
            segments: settings.segments,
            hit_path: settings.hit_path,
            division_limit: settings.limits.division_limit,
            age_threshold: settings.limits.age_threshold,
            ..self.template.clone()
        };
        let pool = Pool::beside(config, self.backend.clone(), Some(cache.budget.clone()))?;
        let fresh = unused.set(pool).is_ok() && known.set(*made).is_ok();
        assert!(fresh, "two pools at once for cache {}", cache.name);
        *made += 1;
        Ok(*made - 1)
    }

    /// Attaches a file to a cache, or to the default one if that is disabled. The path is for messages.
    pub fn attach(
        self: &Arc<Caches>,
        cache: &Arc<NamedCache>,
        id: FileId,
        path: PathBuf,
        file: Arc<dyn vfs::File>,
        format: FileFormat,
    ) -> Result<Arc<CachedFile>, Error> {
        let mut cache = cache;
        let mut settings = cache.settings.lock();
        if settings.size_bytes == 0 {
            drop(settings);
            cache = &self.default;
            settings = cache.settings.lock();
        }
        let number = self.pool_of(cache, &settings, format.page_size)?;
        let pool = self.pools[number].get().expect("a pool with a number");
        pool.take_in(OpenFile::new(id, path, file, format))?;
        let file = Arc::new(CachedFile {
            caches: self.clone(),
            pools: self.pools.clone(),
            id,
            format,
            pool: AtomicUsize::new(number),
            moving: Mutex::new(()),
            assignment: Mutex::new(Assignment { cache: cache.clone(), is_open: true }),
        });
        // With the settings held, so that a thread that drops the cache finds the file.
        self.files.lock().insert(id, Arc::downgrade(&file));
        let cache = cache.clone();
        drop(settings);
        cache.make_room();
        Ok(file)
    }

    fn all_pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter().map_while(OnceLock::get)
    }

    /// [`Pool::flush_all`] of all of them. Goes on after a failure; the first error is returned.
    pub fn flush_all(&self) -> Result<(), Error> {
        let mut first = Ok(());
        for pool in self.all_pools() {
            first = first.and(pool.flush_all());
        }
        first
    }

    /// [`Pool::oldest_change`] of all of them. A pool that is made meanwhile has no older change, and a file
    /// that changes its pool meanwhile leaves no change behind.
    pub fn oldest_change(&self) -> Option<Lsn> {
        self.all_pools().filter_map(|pool| pool.oldest_change()).min()
    }

    /// [`Pool::sync_files`] of all of them. A file that is moving from one to another has been synced
    /// already.
    pub fn sync_files(&self) -> Result<(), Error> {
        self.all_pools().try_for_each(|pool| pool.sync_files())
    }

    /// [`Pool::write_older_than`] of all of them.
    pub fn write_older_than(&self, position: Lsn) -> Result<(), Error> {
        self.all_pools().try_for_each(|pool| pool.write_older_than(position))
    }

    /// [`Pool::write_failure`], of any of them.
    #[inline]
    pub fn write_failure(&self) -> Option<String> {
        self.backend.write_failure()
    }

    /// Bytes that cold pages take in all of them, and how many pages have been opened from there.
    pub fn cold_pages(&self) -> (usize, u64) {
        let status = self.all_pools().map(|pool| pool.cold_page_status());
        status.fold((0, 0), |sum, pool| (sum.0 + pool.0, sum.1 + pool.1))
    }

    /// Sets the counters of all of them to zero.
    pub fn reset_counters(&self) {
        self.all_pools().for_each(|pool| pool.reset_counters());
    }

    /// The limits of input and output that hold for all of them together.
    pub fn io(&self) -> IoConfig {
        self.backend.io()
    }

    /// Sets how many pages a second are written ahead of need, and how many when it is urgent: see
    /// [`IoConfig`].
    pub fn set_io_capacity(&self, capacity: u32, capacity_max: u32) {
        self.backend.set_io_capacity(capacity, capacity_max);
    }
}

/// Refuses a size that no cache can have: pools reserve address space for the machine's memory, and can grow
/// no further.
fn check_size(bytes: usize) -> Result<(), Error> {
    let most = cache_bytes_max();
    if bytes <= most {
        return Ok(());
    }
    Err(Error::Config { why: format!("{bytes} bytes are more than this machine has ({most})") })
}

/// The largest size of a cache, in bytes: the memory that the process may use.
pub fn cache_bytes_max() -> usize {
    // Models do not depend on the machine.
    if cfg!(any(feature = "shuttle", miri)) { usize::MAX } else { base::machine::memory_bytes() }
}

impl CachedFile {
    /// The pool that has the file's pages. Each attempt of an operation asks again (pagecache R13).
    #[inline(always)]
    pub fn pool(&self) -> &Arc<Pool> {
        // ORDER: Acquire pairs with the Release in `move_to`: a thread that gets the new number finds the old
        // pool empty.
        self.pools[self.pool.load(Acquire)].get().expect("a pool with a number")
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    pub fn page_size(&self) -> usize {
        self.format.page_size
    }

    /// The layout of its pages on the device.
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// The cache that the file is in.
    pub fn cache(&self) -> Arc<NamedCache> {
        self.assignment.lock().cache.clone()
    }

    /// To be called after [`Error::NotAttached`]: waits until the move of the file has ended. False if the
    /// file has been closed. The caller holds no latch.
    pub fn settle(&self) -> bool {
        let _moving = self.moving.lock();
        self.assignment.lock().is_open
    }

    /// A thread that drops the cache has set its size to 0 before it asks, so no file comes to the cache any
    /// more.
    fn is_in(&self, cache: &Arc<NamedCache>) -> bool {
        let assignment = self.assignment.lock();
        assignment.is_open && Arc::ptr_eq(&assignment.cache, cache)
    }

    /// Moves the file to another cache while it is in use. Its dirty pages are written; if that fails it
    /// stays where it is. [`Error::NotAttached`] if the file has been closed, [`Error::Config`] if the cache
    /// is disabled. The caller holds no latches.
    pub fn assign(&self, cache: &Arc<NamedCache>) -> Result<(), Error> {
        let _moving = self.moving.lock();
        if !self.assignment.lock().is_open {
            return Err(Error::NotAttached { page: base::PageId::new(self.id, base::PageNo(0)) });
        }
        if !cache.is_enabled() {
            return Err(Error::Config { why: format!("the cache '{}' has no size", cache.name) });
        }
        if self.is_in(cache) { Ok(()) } else { self.move_to(cache) }
    }

    /// The caller holds `moving`.
    fn move_to(&self, cache: &Arc<NamedCache>) -> Result<(), Error> {
        let caches = &self.caches;
        // What can fail comes before the file is given up.
        for cache in [cache, &caches.default] {
            caches.pool_of(cache, &cache.settings.lock(), self.format.page_size)?;
        }
        let file = self.pool().give_up(self.id, Detach::Flush)?;
        // If the target has been dropped meanwhile, the file goes to the default cache.
        let mut target = cache;
        let mut settings = target.settings.lock();
        if settings.size_bytes == 0 {
            drop(settings);
            target = &caches.default;
            settings = target.settings.lock();
        }
        let number = caches.pool_of(target, &settings, self.format.page_size)?;
        // ORDER: Release, see `pool`. The number changes before the new pool takes the file in. So while a
        // thread has a page of the file latched in the new pool, the number names that pool (pagecache R13).
        self.pool.store(number, Release);
        self.assignment.lock().cache = target.clone();
        self.pool().take_in(file.again())?;
        drop(settings);
        target.make_room();
        Ok(())
    }

    /// Lets go of the file for good: see [`Pool::detach`].
    pub fn close(&self, how: Detach) -> Result<(), Error> {
        let _moving = self.moving.lock();
        self.pool().detach(self.id, how)?;
        self.assignment.lock().is_open = false;
        self.caches.files.lock().remove(&self.id);
        Ok(())
    }
}
