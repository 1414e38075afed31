//! The two ways to a page that is in memory: the optimistic hit and the locked one.

use crate::error::Error;
use crate::find::{Located, is_closed_to_readers};
use crate::frames::FrameNo;
use crate::glance::Glances;
use crate::guard::{ReadGuard, WriteGuard};
use crate::index::{Geometry, Hash};
use crate::pool::Pool;
use crate::state::{Changed, Keep, Mode};
use base::PageId;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::{hint, thread};

/// How often `read` looks optimistically before it takes a latch.
const ATTEMPTS_MAX: usize = 4;

impl Pool {
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
