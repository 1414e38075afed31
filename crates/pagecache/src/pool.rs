//! A pool of frames for pages of one size: the concurrent shell around the segments. The ways to a page that
//! is in memory are in `hit`, the way to a page that is not is in `find`.

use crate::backend::Backend;
use crate::budget::{Budget, Share};
use crate::cold_pages::ColdPages;
use crate::config::{CacheConfig, HitPath, Limits, WriteBack};
use crate::counters::{Baseline, SegmentCounters};
use crate::error::Error;
use crate::files::{FileFormat, OpenFile};
use crate::frames::{DIRTY, DirtyMap, FrameNo, Frames, Header, PageMemory};
use crate::free_frames::FreeFrames;
use crate::index::{Geometry, Hash, Index};
use crate::local::{self, SEGMENTS_MAX};
use crate::page::Page;
use crate::park::{ParkingLot, Permits};
use crate::segment::{Segment, Shared};
use crate::signal::WriteBackState;
use crate::sizing::{self, FRAMES_MIN, check_page_size};
use crate::state::Word;
use base::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed},
};
use base::sync::{Arc, CachePadded, Mutex, MutexGuard, RwLock};
use base::{CoreLocal, FileId, OwnedCounters, PageId};
use std::collections::HashMap;
use std::path::PathBuf;
use vfs::AlignedBuffer;

base::latch_class!(pub FilesLatch, "files of a cache");

base::latch_class!(pub SegmentLatch, "cache segment", SEGMENTS_MAX);

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
    /// Frames whose page is being written, or whose last write failed.
    pub writing: DirtyMap,
    pub write_back: WriteBackState,
    /// What pages are read into before they are checked, each as long as a page.
    pub read_buffers: CoreLocal<AlignedBuffer>,
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
/// Its fields are grouped by the threads that touch them. The groups lie
/// inside the pool: no pointer leads to them.
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
        let frames = sizing::frames_for(config.size_bytes, config.page_size);
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
        let index_frames = sizing::frames_for(config.size_bytes, page_size);
        let frames = if budget.is_some() { 0 } else { index_frames };
        // Address space for growth: as much as there is memory, unless that is limited, too. It costs nothing
        // until it is used.
        let room = sizing::frames_for(base::machine::room_bytes(), page_size);
        let memory = Memory::reserve(index_frames.max(room).min(u32::MAX as usize / 2), page_size)
            .or_else(|_| Memory::reserve(index_frames, page_size))
            .map_err(|source| Error::Config { why: format!("no address space for the cache: {source}") })?;
        let segments = sizing::segments_for(config.segments);
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
        let limits = sizing::checked_limits(config.limits())?;
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
            read_buffers: CoreLocal::new(),
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
    pub(crate) fn count_read(&self, segment: usize) {
        self.hot.requests.count(segment);
    }

    #[inline]
    pub(crate) fn count_read_request(&self, id: PageId) -> usize {
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
