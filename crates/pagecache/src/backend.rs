//! What the caches of a database have in common: the way to the device, how fast it may be used, and whether
//! it works.

use crate::config::{CacheConfig, IoConfig, WriteAhead, WriteBack};
use crate::crew::Crew;
use crate::doublewrite::Doublewrite;
use crate::error::Error;
use crate::pace::Pace;
use crate::side_by_side::Run;
use base::PageId;
use base::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use base::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// What the threads that read ahead call: a pool.
pub(crate) trait LoadAhead: Send + Sync {
    /// Loads the page if it can be read, for a reader that will want it soon.
    fn load_ahead(&self, id: PageId);
}

#[derive(Debug)]
pub(crate) struct Backend {
    pub log: Option<Arc<dyn WriteAhead>>,
    pub doublewrite: Option<Doublewrite>,
    pub write_back: WriteBack,
    /// Threads that help to write batches.
    pub writers: Crew<Arc<Run>>,
    /// Threads that read ahead.
    pub readers: Crew<(Weak<dyn LoadAhead>, PageId)>,
    io_capacity: AtomicU32,
    io_capacity_max: AtomicU32,
    /// The pace of what is written ahead of need. Its clock begins at `start`.
    pub pace: Mutex<Pace>,
    start: Instant,
    failures: Mutex<Failures>,
    /// The last write failed: `failures.last` says how.
    is_failing: AtomicBool,
    /// Why nothing is written any more.
    poison: OnceLock<String>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u64,
    /// What the last failed write said; cleared by the next that succeeds.
    last: Option<String>,
}

impl Backend {
    /// `frames`: those of the first cache. The doublewrite file is made large enough for it.
    pub fn new(config: &CacheConfig, frames: usize) -> Result<Arc<Backend>, Error> {
        let no_room = |source| Error::Config { why: format!("no room for the doublewrite file: {source}") };
        let doublewrite = config.doublewrite.clone();
        let doublewrite = doublewrite.map(|file| Doublewrite::new(file, config.page_size, frames));
        let backend = Arc::new(Backend {
            log: config.log.clone(),
            doublewrite: doublewrite.transpose().map_err(no_room)?,
            write_back: config.write_back,
            writers: Crew::new(),
            readers: Crew::new(),
            io_capacity: AtomicU32::new(config.io.capacity),
            io_capacity_max: AtomicU32::new(config.io.capacity_max),
            pace: Mutex::default(),
            start: Instant::now(),
            failures: Mutex::default(),
            is_failing: AtomicBool::default(),
            poison: OnceLock::new(),
        });
        if config.write_back == WriteBack::Background {
            let helpers = config.io.write_threads.saturating_sub(1) as usize;
            backend.writers.start("page-writer", helpers, |run| run.work());
            let readers = config.io.read_threads as usize;
            backend.readers.start("read-ahead", readers, |(pool, id): (Weak<dyn LoadAhead>, PageId)| {
                if let Some(pool) = pool.upgrade() {
                    pool.load_ahead(id);
                }
            });
        }
        Ok(backend)
    }

    /// How many pages a second may be written ahead of need.
    pub fn rate(&self, is_urgent: bool) -> u32 {
        // ORDER: a change of a setting is seen soon enough.
        let capacity = self.io_capacity.load(Relaxed);
        if is_urgent { self.io_capacity_max.load(Relaxed).max(capacity) } else { capacity }
    }

    /// The settings in effect. Of the threads, those that could be started.
    pub fn io(&self) -> IoConfig {
        IoConfig {
            capacity: self.rate(false),
            capacity_max: self.rate(true),
            write_threads: self.writers.size() as u32 + 1,
            read_threads: self.readers.size() as u32,
        }
    }

    pub fn set_io_capacity(&self, capacity: u32, capacity_max: u32) {
        // ORDER: as in `rate`.
        self.io_capacity.store(capacity, Relaxed);
        self.io_capacity_max.store(capacity_max, Relaxed);
    }

    /// The time since the start, as `pace` counts it.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Failed writes so far, and what the last said if none has succeeded since.
    pub fn failures(&self) -> (u64, Option<String>) {
        let failures = self.failures.lock();
        (failures.count, failures.last.clone())
    }

    /// Why pages cannot be written at the moment. Two loads while all is well.
    #[inline]
    pub fn write_failure(&self) -> Option<String> {
        // ORDER: a change of the flag is seen soon enough. The text is under its mutex.
        if self.is_failing.load(Relaxed) {
            return self.failures().1;
        }
        self.poison.get().cloned()
    }

    pub fn note_written(&self) {
        // ORDER: a failure noted at this moment may stay noted until the next write.
        if self.is_failing.load(Relaxed) {
            let mut failures = self.failures.lock();
            failures.last = None;
            // ORDER: as in `write_failure`.
            self.is_failing.store(false, Relaxed);
        }
    }

    pub fn note_failure(&self, error: &Error) {
        let mut failures = self.failures.lock();
        failures.count += 1;
        failures.last = Some(error.to_string());
        // ORDER: as in `write_failure`.
        self.is_failing.store(true, Relaxed);
    }

    /// Stops all writing from now on. The first reason is remembered.
    pub fn poison(&self, why: String) {
        let _ = self.poison.set(why);
    }

    pub fn poisoned(&self) -> Option<&String> {
        self.poison.get()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.readers.stop();
        self.writers.stop();
    }
}
