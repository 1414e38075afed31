//! A pool of frames for pages of one size: the concurrent shell around the segments, and the two ways to a
//! page that is in memory. The way to a page that is not is in `find`.

use crate::backend::Backend;
use crate::budget::{Budget, Share};
use crate::cold_pages::ColdPages;
use crate::config::{CacheConfig, HitPath, Limits, WriteBack};
use crate::error::Error;
use crate::files::{FileFormat, OpenFile};
use crate::find::{Located, is_closed_to_readers};
use crate::frames::{DIRTY, DirtyMap, FrameNo, Frames, Header, PageMemory};
use crate::free_frames::FreeFrames;
use crate::glance::Glances;
use crate::guard::{ReadGuard, WriteGuard};
use crate::index::{Geometry, Hash, Index};
use crate::local::{self, SEGMENTS_MAX};
use crate::page::{PAGE_SIZE_MAX, PAGE_SIZE_MIN, Page};
use crate::park::ParkingLot;
use crate::permit::Permits;
use crate::reconfigure;
use crate::segment::{Segment, Shared};
use crate::state::{Changed, Keep, Mode, Word};
use crate::status::{Baseline, SegmentCounters};
use crate::write_back::WriteBackState;
use base::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed},
};
use base::sync::{Arc, CachePadded, Mutex, MutexGuard, RwLock, hint, thread};
use base::{FileId, OwnedCounters, PageId};
use std::collections::HashMap;
use std::path::PathBuf;

base::latch_class!(pub FilesLatch, "files of a cache");

base::latch_class!(pub SegmentLatch, "cache segment", SEGMENTS_MAX);

/// The least frames of a pool in use. They are enough for every operation of the engine: a split holds at
/// most seven pages, and only the thread with the frame permit holds pages while it waits (pagecache R8). The
/// rest is slack.
///
/// Models have fewer, so that they evict soon. Models of the engine in which pages are split ask for more.
pub const FRAMES_MIN: usize = if cfg!(feature = "shuttle") { 3 } else { 16 };

/// Every access to a word of a page is a step of a model, so the pages of models are small.
const PAGE_BYTES_MIN: usize = if cfg!(feature = "shuttle") { 128 } else { PAGE_SIZE_MIN };

/// How often `read` looks optimistically before it takes a latch.
const ATTEMPTS_MAX: usize = 4;

/// What every hit reads. In the steady state nobody writes it (pagecache R10).
#[derive(Debug)]
pub(crate) struct Hot {
    /// A [`Geometry`].
    pub geometry: AtomicU64,
    pub is_optimistic: AtomicBool,
    pub index: Index,
    pub frames: Frames,
    pub memory: PageMemory,
    /// Read requests by segment, then write requests by segment.
    pub requests: OwnedCounters,
}

/// A segment with its mutex and its counters, alone on its cache lines.
#[derive(Debug)]
pub(crate) struct Shell {
    pub segment: Mutex<Segment, SegmentLatch>,
    /// `segment.resident()`, to look without the mutex.
    pub resident: AtomicUsize,
    pub counters: SegmentCounters,
}

/// What `reconfigure` changes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub size_bytes: usize,
    pub segments: u32,
    pub hit_path: HitPath,
    pub limits: Limits,
}

/// What makes the pool larger and smaller. Read on a miss, not on a hit.
#[derive(Debug)]
pub(crate) struct Growth {
    pub free: FreeFrames,
    /// Frames in use, without those that a reconfiguration is taking away.
    pub frame_count: AtomicUsize,
    /// The number of frames that the index was made for.
    pub index_frames: AtomicUsize,
    /// What the frames are a share of. `None` for a pool that stands alone.
    pub budget: Option<Arc<Budget>>,
    pub settings: Mutex<Settings>,
    /// Held while the pool grows. True while it must not grow, because it is being made smaller.
    pub growing: Mutex<bool>,
    /// Held for the whole of a reconfiguration, so that there is one at a time.
    pub reconfiguring: Mutex<()>,
    /// Held while a page moves to another frame, and by a thread that goes through all frames to give up a
    /// file's pages: without it that thread could miss a page in both frames (pagecache R17). Taken before
    /// page latches.
    pub relocating: Mutex<()>,
}

/// The way to the device: which files there are, and which pages have to be written.
#[derive(Debug)]
pub(crate) struct DeviceSide {
    pub files: RwLock<HashMap<FileId, Arc<OpenFile>>, FilesLatch>,
    /// Frames whose page is dirty.
    pub dirty: DirtyMap,
    /// Frames whose page is being written.
    pub writing: DirtyMap,
    pub write_back: WriteBackState,
    pub read_ahead_calls: AtomicU64,
    pub read_ahead_pages: AtomicU64,
    /// Shared with the other pools of the database.
    pub backend: Arc<Backend>,
}

/// Where threads wait: for a page, or for a frame.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub lot: ParkingLot,
    pub permits: Permits,
}

/// A pool of frames for pages of one size. See the README of this crate for its rules.
///
/// Its fields are grouped by who touches them. The groups lie inside the pool: no pointer leads to them.
#[derive(Debug)]
pub struct Pool {
    pub(crate) hot: CachePadded<Hot>,
    /// The name of its cache.
    pub(crate) name: String,
    pub(crate) page_size: usize,
    /// Always [`SEGMENTS_MAX`]; the geometry says how many are in use.
    pub(crate) shells: Box<[CachePadded<Shell>]>,
    pub(crate) waiting: Waiting,
    pub(crate) growth: Growth,
    pub(crate) device: DeviceSide,
    /// Pages of compressed files that have left their frames.
    pub(crate) cold_pages: Arc<ColdPages>,
    /// What the counters were when they were last set to zero.
    pub(crate) baseline: Mutex<Baseline>,
}

impl Pool {
    /// Makes a pool that stands alone and, with background write-back, starts its threads.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the page size is not a valid one, or the operating system has no address space
    /// for the pool.
    pub fn new(config: CacheConfig) -> Result<Arc<Pool>, Error> {
        check_page_size(config.page_size)?;
        let frames = reconfigure::frames_for(config.size_bytes, config.page_size);
        let backend = Backend::new(&config, frames)?;
        Pool::beside(config, backend, None)
    }

    /// Makes a pool that shares `backend` with others. With a budget it has no frames until its first file
    /// comes, and takes more when it needs them. The configured size is the most that it may grow to.
    pub(crate) fn beside(
        config: CacheConfig,
        backend: Arc<Backend>,
        budget: Option<Arc<Budget>>,
    ) -> Result<Arc<Pool>, Error> {
        let page_size = config.page_size;
        check_page_size(page_size)?;
        let index_frames = reconfigure::frames_for(config.size_bytes, page_size);
        let frames = if budget.is_some() { 0 } else { index_frames };
        // Address space for growth: as much as the machine has memory. It costs nothing until it is used.
        let room = reconfigure::frames_for(base::region::machine_memory_bytes(), page_size);
        let memory = Memory::reserve(index_frames.max(room).min(u32::MAX as usize / 2), page_size)
            .or_else(|_| Memory::reserve(index_frames, page_size))
            .map_err(|source| Error::Config { why: format!("no address space for the cache: {source}") })?;
        let segments = reconfigure::segments_for(config.segments);
        let geometry = Geometry::new(segments, index_frames, None);
        let shells = (0..SEGMENTS_MAX).map(|_| {
            CachePadded(Shell {
                segment: Mutex::of_class(Segment::new(geometry, config.hit_path)),
                resident: AtomicUsize::new(0),
                counters: SegmentCounters::default(),
            })
        });
        let hot = Hot {
            geometry: AtomicU64::new(geometry.0),
            is_optimistic: AtomicBool::new(config.hit_path == HitPath::Optimistic),
            index: memory.index,
            frames: memory.frames,
            memory: memory.pages,
            requests: OwnedCounters::new(2 * SEGMENTS_MAX),
        };
        let limits = reconfigure::checked_limits(config.limits())?;
        let settings = Settings {
            size_bytes: config.size_bytes,
            segments: config.segments.min(SEGMENTS_MAX as u32),
            hit_path: config.hit_path,
            limits,
        };
        let growth = Growth {
            free: FreeFrames::new(),
            frame_count: AtomicUsize::new(frames),
            index_frames: AtomicUsize::new(index_frames),
            budget,
            settings: Mutex::new(settings),
            growing: Mutex::new(false),
            reconfiguring: Mutex::new(()),
            relocating: Mutex::new(()),
        };
        let device = DeviceSide {
            files: RwLock::of_class(HashMap::new()),
            dirty: memory.dirty,
            writing: memory.writing,
            write_back: WriteBackState::new(),
            read_ahead_calls: AtomicU64::new(0),
            read_ahead_pages: AtomicU64::new(0),
            backend,
        };
        let cold_pages = Arc::new(ColdPages::new(&config.name, page_size));
        let pool = Arc::new(Pool {
            hot: CachePadded(hot),
            name: config.name,
            page_size,
            shells: shells.collect(),
            waiting: Waiting { lot: ParkingLot::new(config.latches), permits: Permits::new() },
            growth,
            device,
            cold_pages,
            baseline: Mutex::new(Baseline::default()),
        });
        pool.hot.frames.use_huge_pages(frames);
        pool.hot.memory.use_huge_pages(frames);
        pool.growth.free.resize(frames);
        pool.apply_limits(frames.max(FRAMES_MIN), limits);
        if let Some(budget) = &pool.growth.budget {
            let share: Arc<dyn Share> = pool.clone();
            budget.join(Arc::downgrade(&share));
        }
        if pool.device.backend.write_back == WriteBack::Background {
            pool.start_write_back();
        }
        Ok(pool)
    }

    /// Makes the pages of `file` reachable under `id`. The path is for messages.
    pub fn attach(&self, id: FileId, path: PathBuf, file: Arc<dyn vfs::File>) -> Result<(), Error> {
        self.take_in(OpenFile::new(id, path, file, FileFormat::plain(self.page_size)))
    }

    pub(crate) fn take_in(&self, file: OpenFile) -> Result<(), Error> {
        let is_compressed = file.is_compressed();
        let is_first = {
            let mut files = self.device.files.write();
            if files.contains_key(&file.id) {
                let why = format!("{}: file {} is attached already", file.path.display(), file.id);
                return Err(Error::Config { why });
            }
            files.insert(file.id, Arc::new(file));
            files.len() == 1
        };
        if let Some(budget) = &self.growth.budget {
            if is_compressed {
                self.cold_pages.join(budget);
            }
            if is_first {
                self.come_into_use(budget);
            }
        }
        Ok(())
    }

    /// As [`Pool::attach`], for a file with the layout `format`. Its pages must have this pool's page size.
    pub fn attach_as(
        &self,
        id: FileId,
        path: PathBuf,
        file: Arc<dyn vfs::File>,
        format: FileFormat,
    ) -> Result<(), Error> {
        if format.page_size != self.page_size {
            let why = format!("{}: pages of {} bytes in a cache of others", path.display(), format.page_size);
            return Err(Error::Config { why });
        }
        self.take_in(OpenFile::new(id, path, file, format))
    }

    /// How many bytes of memory, beside the frames, cold pages of compressed files may take from now on.
    pub fn resize_cold_pages(&self, bytes: usize) {
        self.cold_pages.resize_to(bytes);
    }

    /// Bytes that cold pages take, and how many pages have been opened from there.
    pub fn cold_page_status(&self) -> (usize, u64) {
        self.cold_pages.status()
    }

    /// The page size in bytes.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// A number that tells pools apart. A later pool has a larger one.
    pub(crate) fn id(&self) -> u64 {
        self.hot.requests.id()
    }

    /// How many pages it has room for now.
    pub fn frames(&self) -> usize {
        // ORDER: a figure.
        self.growth.frame_count.load(Relaxed)
    }

    /// True if hits take no latch: the configured hit path is the optimistic one.
    #[inline(always)]
    pub fn is_optimistic(&self) -> bool {
        self.hot.is_optimistic.load(Relaxed)
    }

    /// The page, by the configured hit path. A miss reads the device once, however many threads ask
    /// (pagecache R9). Waits for a thread that holds the page exclusively. Does not wait for the device if
    /// the page is in memory.
    #[inline]
    pub fn read(&self, id: PageId) -> Result<ReadGuard<'_>, Error> {
        if !self.hot.is_optimistic.load(Relaxed) {
            return self.read_locked(id);
        }
        match self.look(id) {
            Some(guard) => Ok(guard),
            None => self.read_slow(id),
        }
    }

    /// The page, if it can be read at once: by the optimistic path, or with a latch that is free. Does no
    /// I/O.
    #[inline]
    pub fn try_read_cached(&self, id: PageId) -> Option<ReadGuard<'_>> {
        if self.hot.is_optimistic.load(Relaxed) {
            return self.look(id);
        }
        let (mut segment, number) = self.lock_segment(Hash::of(id));
        let frame = segment.find(self.shared(), id)?;
        if self.header(frame).state.load().has_waiters() {
            return None;
        }
        self.latch(frame).lock_shared().ok()?;
        segment.hit(self.shared(), frame);
        drop(segment);
        self.count_read(number);
        Some(ReadGuard::latched(self, id, frame))
    }

    /// The page under a shared latch, whatever the hit path. For readers that met too many conflicts.
    #[track_caller]
    pub fn read_shared(&self, id: PageId) -> Result<ReadGuard<'_>, Error> {
        if !self.hot.is_optimistic.load(Relaxed) {
            return self.read_locked(id);
        }
        let number = self.count_read_request(id);
        self.shells[number].counters.fallbacks.fetch_add(1, Relaxed);
        let frame = self.latch_page(id, Keep::Shared)?;
        Ok(ReadGuard::latched(self, id, frame))
    }

    /// The page under an exclusive latch. Waits for all threads that hold it.
    #[track_caller]
    pub fn write(&self, id: PageId) -> Result<WriteGuard<'_>, Error> {
        self.count_read_request(id);
        let frame = self.latch_page(id, Keep::Exclusive)?;
        Ok(WriteGuard::new(self, id, frame))
    }

    /// The page under an exclusive latch, all zeroes and dirty; the device is not read.
    #[track_caller]
    pub fn create(&self, id: PageId) -> Result<WriteGuard<'_>, Error> {
        let frame = loop {
            match self.find_or_install(id, |_, _, _| Ok(Keep::Exclusive))? {
                Located::Loaded(frame) => break frame,
                Located::Found(frame) => {
                    if self.latch_frame(id, frame, Keep::Exclusive)? {
                        break frame;
                    }
                }
            }
        };
        let mut guard = WriteGuard::new(self, id, frame);
        guard.page_mut().clear();
        Ok(guard)
    }

    /// See [`WriteGuard::free`].
    pub(crate) fn free_latched(&self, id: PageId, frame: FrameNo) {
        if !self.drop_latched_page(id, frame) {
            // A copy is being written to the device (pagecache R5): the page stays until its frame is needed.
            self.latch(frame).unlock_exclusive(Changed::Yes);
        }
    }

    /// For a reader that is going to look at many pages. `None` if hits take latches in this pool.
    #[inline(always)]
    pub fn glances(&self) -> Option<Glances<'_>> {
        self.is_optimistic().then(|| Glances::new(self))
    }

    /// The optimistic hit: index, header, version (pagecache R10). Finds nothing if the page is absent or
    /// being changed, or if it has lost its shortcut and lies outside its home bucket.
    #[inline(always)]
    fn look(&self, id: PageId) -> Option<ReadGuard<'_>> {
        // ORDER: a stale geometry leads to stale shortcuts and buckets. Every frame found there is verified
        // (pagecache R3).
        let geometry = Geometry(self.hot.geometry.load(Relaxed));
        let frame = self.hot.index.shortcut(geometry, id);
        let (frame, word) = match self.header(frame).readable(id) {
            Some(word) => (frame, word),
            None => self.look_in_bucket(geometry, id)?,
        };
        self.count_read(geometry.segment_of(Hash::of(id)));
        Some(ReadGuard::optimistic(self, id, frame, self.header(frame), word.snapshot()))
    }

    /// The frame that the page's bucket names, if that frame has the page, and the frame's state.
    #[inline(never)]
    pub(crate) fn look_in_bucket(&self, geometry: Geometry, id: PageId) -> Option<(FrameNo, Word)> {
        let index = &self.hot.index;
        let mut candidates = index.candidates(geometry, Hash::of(id));
        let found = candidates.find_map(|frame| Some((frame, self.header(frame).readable(id)?)))?;
        // If both pages are used, the one that has the shortcut keeps it. Otherwise they would take it from
        // each other forever.
        let other = self.header(index.shortcut(geometry, id));
        let is_others = geometry.shortcut_of(other.page_id()) == geometry.shortcut_of(id);
        if !(is_others && other.is_hot() && other.state.load().is_readable()) {
            index.set_shortcut(geometry, id, found.0);
        }
        Some(found)
    }

    #[cold]
    #[inline(never)]
    fn read_slow(&self, id: PageId) -> Result<ReadGuard<'_>, Error> {
        let number = self.count_read_request(id);
        for _ in 0..ATTEMPTS_MAX {
            // A load is not a second use: only a page that was in memory is marked as used.
            let (frame, was_there) = match self.find_or_load(id, Keep::Nothing)? {
                Located::Found(frame) => (frame, true),
                Located::Loaded(frame) => (frame, false),
            };
            let header = self.header(frame);
            let word = header.state.load();
            if word.is_readable() && header.page_word() == id.to_word() {
                if was_there {
                    header.touch();
                }
                return Ok(ReadGuard::optimistic(self, id, frame, header, word.snapshot()));
            }
            if word.mode() == Mode::Loading {
                self.latch(frame).wait(id, |word| word.mode() == Mode::Loading)?;
            } else {
                spin_a_little(|| header.state.load().mode() != Mode::Exclusive);
            }
        }
        self.shells[number].counters.fallbacks.fetch_add(1, Relaxed);
        let frame = self.latch_page(id, Keep::Shared)?;
        Ok(ReadGuard::latched(self, id, frame))
    }

    /// The locked hit: mutex, index, LRU, pin.
    #[inline(never)]
    fn read_locked(&self, id: PageId) -> Result<ReadGuard<'_>, Error> {
        let mut counted = false;
        let mut gave_way = false;
        loop {
            let (mut segment, number) = self.lock_segment(Hash::of(id));
            if !std::mem::replace(&mut counted, true) {
                self.count_read(number);
            }
            let Some(frame) = segment.find(self.shared(), id) else {
                drop(segment);
                match self.find_or_load(id, Keep::Shared)? {
                    Located::Loaded(frame) => return Ok(ReadGuard::latched(self, id, frame)),
                    Located::Found(_) => continue,
                }
            };
            // A thread waits to have the page alone: give it one chance.
            if self.header(frame).state.load().has_waiters() && !std::mem::replace(&mut gave_way, true) {
                drop(segment);
                thread::yield_now();
                continue;
            }
            // Under the mutex the frame cannot change its page (pagecache R3).
            if self.latch(frame).lock_shared().is_ok() {
                segment.hit(self.shared(), frame);
                return Ok(ReadGuard::latched(self, id, frame));
            }
            drop(segment);
            self.latch(frame).wait(id, is_closed_to_readers)?;
        }
    }

    /// The mutex of the segment that the hash belongs to, and the segment's number.
    #[track_caller]
    pub(crate) fn lock_segment(&self, hash: Hash) -> (MutexGuard<'_, Segment>, usize) {
        loop {
            // ORDER: Acquire, so that a reader of a new geometry sees the segments made for it.
            let geometry = Geometry(self.hot.geometry.load(Acquire));
            let number = geometry.segment_of(hash);
            let segment = self.lock_shell(number);
            if segment.geometry() == geometry {
                return (segment, number);
            }
        }
    }

    #[track_caller]
    pub(crate) fn lock_shell(&self, number: usize) -> MutexGuard<'_, Segment> {
        let shell = &self.shells[number];
        shell.segment.try_lock_in(number).unwrap_or_else(|| {
            shell.counters.latch_waits.fetch_add(1, Relaxed);
            shell.segment.lock_in(number)
        })
    }

    pub(crate) fn file(&self, id: PageId) -> Result<Arc<OpenFile>, Error> {
        self.device.files.read().get(&id.file).cloned().ok_or(Error::NotAttached { page: id })
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> Shared<'_> {
        Shared { frames: &self.hot.frames, index: &self.hot.index }
    }

    #[inline(always)]
    pub(crate) fn header(&self, frame: FrameNo) -> &Header {
        self.hot.frames.header(frame)
    }

    #[inline(always)]
    pub(crate) fn words(&self, frame: FrameNo) -> &[AtomicU64] {
        self.hot.memory.words(frame)
    }

    #[inline(always)]
    pub(crate) fn page(&self, frame: FrameNo) -> Page<'_> {
        self.hot.memory.page(frame)
    }

    pub(crate) fn unlatch_shared(&self, frame: FrameNo) {
        self.latch(frame).unlock_shared();
        local::latch_dropped();
    }

    /// Under the exclusive latch: the page is going to change (pagecache R2, R7).
    pub(crate) fn mark_dirty(&self, frame: FrameNo) {
        let header = self.header(frame);
        if header.set_flags(DIRTY) & DIRTY == 0 {
            if let Some(log) = &self.device.backend.log {
                header.note_change(log.position());
            }
            self.device.dirty.insert(frame);
            self.note_dirtied();
        }
    }

    pub(crate) fn segment_number(&self, id: PageId) -> usize {
        Geometry(self.hot.geometry.load(Relaxed)).segment_of(Hash::of(id))
    }

    #[inline(always)]
    fn count_read(&self, segment: usize) {
        self.hot.requests.count(segment);
    }

    fn count_read_request(&self, id: PageId) -> usize {
        let number = self.segment_number(id);
        self.count_read(number);
        number
    }

    pub(crate) fn count_write_request(&self, id: PageId) {
        let number = self.segment_number(id);
        self.hot.requests.count(SEGMENTS_MAX + number);
    }

    #[cold]
    pub(crate) fn count_conflict(&self, id: PageId) {
        self.shells[self.segment_number(id)].counters.conflicts.fetch_add(1, Relaxed);
    }

    /// Stops all writing from now on. The first reason is remembered.
    pub(crate) fn poison(&self, why: String) {
        self.device.backend.poison(why);
    }

    pub(crate) fn check_poison(&self) -> Result<(), Error> {
        match self.device.backend.poisoned() {
            None => Ok(()),
            Some(why) => Err(Error::Poisoned { why: why.clone() }),
        }
    }
}

pub(crate) fn check_page_size(page_size: usize) -> Result<(), Error> {
    if page_size.is_power_of_two() && (PAGE_BYTES_MIN..=PAGE_SIZE_MAX).contains(&page_size) {
        return Ok(());
    }
    let why = format!("page size {page_size}: a power of two from 1 KiB to 64 KiB is needed");
    Err(Error::Config { why })
}

/// Waits for `done` for about as long as an exclusive latch is typically held.
fn spin_a_little(done: impl Fn() -> bool) {
    for _ in 0..if cfg!(feature = "shuttle") { 1 } else { 50 } {
        if done() {
            return;
        }
        hint::spin_loop();
    }
    thread::yield_now();
}

/// The memory of a pool.
struct Memory {
    index: Index,
    frames: Frames,
    pages: PageMemory,
    dirty: DirtyMap,
    writing: DirtyMap,
}

impl Memory {
    fn reserve(frames_max: usize, page_size: usize) -> std::io::Result<Memory> {
        Ok(Memory {
            index: Index::new(frames_max)?,
            frames: Frames::new(frames_max)?,
            pages: PageMemory::new(frames_max, page_size)?,
            dirty: DirtyMap::new(frames_max)?,
            writing: DirtyMap::new(frames_max)?,
        })
    }
}
