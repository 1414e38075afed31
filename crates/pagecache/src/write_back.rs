//! Dirty pages on their way to the device.
//!
//! A page is copied under a shared latch and written from the copy, so that nobody waits for the device. From
//! the copy until the end of the write the frame is marked `WRITING`: it is not given up, and not written by a second
//! thread, so that the device never sees an older copy after a newer one, nor a reader an older page
//! than the cache had.

use crate::cache::PageCache;
use crate::config::Detach;
use crate::error::Error;
use crate::evict::pause;
use crate::files::{OpenFile, copy_of};
use crate::frames::{DIRTY, FrameNo, WRITING};
use crate::state::{Keep, Mode};
use base::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use base::sync::{Arc, CachePadded, Mutex};
use base::{FileId, PageId};

#[cfg(not(feature = "shuttle"))]
mod background;
#[cfg(feature = "shuttle")]
mod background {
    //! Under the model checker nothing runs on its own: models write where they mean to.
    use crate::cache::PageCache;
    use base::sync::Arc;
    #[derive(Debug, Default)]
    pub struct Signal;
    impl Signal {
        pub fn raise(&self) {}
        pub fn stop(&self) {}
    }
    impl PageCache {
        pub(crate) fn start_write_back(self: &Arc<PageCache>) {}
    }
}

/// One page in eight may be dirty before the background thread is called.
const DIRTY_SHARE: usize = 8;

#[derive(Debug)]
pub(crate) struct WriteBackState {
    /// Frames whose page is dirty and not being written.
    dirty_count: CachePadded<AtomicUsize>,
    signal: Arc<background::Signal>,
    failures: Mutex<Failures>,
    /// The last write failed: `failures.last` says how.
    is_failing: AtomicBool,
}

#[derive(Debug, Default)]
struct Failures {
    count: u64,
    /// What the last failed write said; cleared by the next that succeeds.
    last: Option<String>,
}

impl WriteBackState {
    pub fn new() -> WriteBackState {
        WriteBackState {
            dirty_count: CachePadded::default(),
            signal: Arc::default(),
            failures: Mutex::default(),
            is_failing: AtomicBool::default(),
        }
    }

    /// Failed writes so far, and what the last said if none has succeeded since.
    pub fn failures(&self) -> (u64, Option<String>) {
        let failures = self.failures.lock();
        (failures.count, failures.last.clone())
    }
}

/// How an attempt to write a page ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum WriteOut {
    Written,
    /// The page was clean, or the frame holds another page.
    NothingToDo,
    /// Another thread is writing it.
    InFlight,
    /// Held exclusively.
    Latched,
}

impl PageCache {
    /// Why pages cannot be written at the moment: the last write failed and none has succeeded since, or the cache
    /// is poisoned. Two loads while all is well.
    #[inline]
    pub fn write_failure(&self) -> Option<String> {
        // ORDER: a flag that is seen soon enough; the text is under its mutex.
        if self.write_back.is_failing.load(Relaxed) {
            return self.write_back.failures().1;
        }
        self.poison.get().cloned()
    }

    /// Writes the page in `frame` if it is `id` and dirty. A failed write leaves it dirty.
    pub(crate) fn write_out(&self, frame: FrameNo, id: PageId) -> Result<WriteOut, Error> {
        self.check_poison()?;
        let Ok(file) = self.file(id) else { return Ok(WriteOut::NothingToDo) };
        self.write_out_to(frame, id, &file)
    }

    fn write_out_to(&self, frame: FrameNo, id: PageId, file: &OpenFile) -> Result<WriteOut, Error> {
        let header = self.header(frame);
        if header.state.lock_shared().is_err() {
            return Ok(WriteOut::Latched);
        }
        let copy = self.begin_write(frame, id).map(|()| copy_of(self.page(frame)));
        let wake = header.state.unlock_shared();
        self.wake(frame, wake);
        match copy {
            Err(outcome) => Ok(outcome),
            Ok(mut copy) => {
                let written = file.write_page(id, &mut copy);
                self.end_write(frame, id, written).map(|()| WriteOut::Written)
            }
        }
    }

    /// Under a latch: the page is about to be copied.
    fn begin_write(&self, frame: FrameNo, id: PageId) -> Result<(), WriteOut> {
        let header = self.header(frame);
        if header.page_id() != id || header.flags() & DIRTY == 0 {
            return Err(WriteOut::NothingToDo);
        }
        if header.set_flags(WRITING) & WRITING != 0 {
            return Err(WriteOut::InFlight);
        }
        if header.clear_flags(DIRTY) & DIRTY == 0 {
            header.clear_flags(WRITING);
            return Err(WriteOut::NothingToDo);
        }
        self.write_back.dirty_count.fetch_sub(1, Relaxed);
        Ok(())
    }

    fn end_write(&self, frame: FrameNo, id: PageId, written: Result<(), Error>) -> Result<(), Error> {
        let header = self.header(frame);
        match &written {
            Ok(()) => {
                self.shells[self.segment_number(id)].counters.writes.fetch_add(1, Relaxed);
                let mut failures = self.write_back.failures.lock();
                if failures.last.take().is_some() {
                    // ORDER: a flag that is seen soon enough; the text is under its mutex.
                    self.write_back.is_failing.store(false, Relaxed);
                }
            }
            Err(error) => {
                // CRASH: the device may hold the old page, the new one, or a mixture that its checksum gives
                // away. The page stays here, dirty, and is written again.
                if header.set_flags(DIRTY) & DIRTY == 0 {
                    self.write_back.dirty_count.fetch_add(1, Relaxed);
                }
                let mut failures = self.write_back.failures.lock();
                failures.count += 1;
                failures.last = Some(error.to_string());
                // ORDER: as above.
                self.write_back.is_failing.store(true, Relaxed);
            }
        }
        // The mark in the map goes first and comes back if the page is dirty: a writer sets the flag first and
        // the mark second, so that one of the two of us sees the other.
        self.dirty.remove(frame);
        if header.clear_flags(WRITING) & DIRTY != 0 {
            self.dirty.insert(frame);
        }
        written
    }

    /// Under the exclusive latch: the page need not be written any more. False if it is being written.
    pub(crate) fn forget_dirt(&self, frame: FrameNo) -> bool {
        let header = self.header(frame);
        if header.flags() & WRITING != 0 {
            return false;
        }
        if header.clear_flags(DIRTY) & DIRTY != 0 {
            self.write_back.dirty_count.fetch_sub(1, Relaxed);
            self.dirty.remove(frame);
        }
        true
    }

    /// A page has become dirty.
    pub(crate) fn note_dirtied(&self) {
        let dirty = self.write_back.dirty_count.fetch_add(1, Relaxed) + 1;
        if dirty > self.frame_count.load(Relaxed) / DIRTY_SHARE {
            self.write_back.signal.raise();
        }
    }

    #[cfg(not(feature = "shuttle"))]
    fn has_much_dirt(&self) -> bool {
        self.write_back.dirty_count.load(Relaxed) > self.frame_count.load(Relaxed) / DIRTY_SHARE
    }

    /// Frames whose page is dirty or being written, with the page, in the order of the device.
    fn dirty_pages(&self, wanted: impl Fn(PageId) -> bool) -> Vec<(PageId, FrameNo)> {
        let mut pages: Vec<(PageId, FrameNo)> = self
            .dirty
            .iter(self.pool.frames_made())
            .map(|frame| (self.header(frame).page_id(), frame))
            .filter(|&(id, _)| wanted(id))
            .collect();
        pages.sort_unstable();
        pages
    }

    /// How many pages of each wanted kind differ from the device.
    pub(crate) fn count_dirty(&self, mut each: impl FnMut(PageId)) {
        for frame in self.dirty.iter(self.pool.frames_made()) {
            let header = self.header(frame);
            if header.flags() != 0 {
                each(header.page_id());
            }
        }
    }

    /// Writes every page of the file that is dirty now, then syncs the file.
    ///
    /// On an error some pages may have been written; those that were not stay dirty. A failed sync
    /// poisons the cache: what the device holds is unknown from then on.
    pub fn flush_file(&self, id: FileId) -> Result<(), Error> {
        let Some(file) = self.files.read().get(&id).cloned() else {
            return Err(Error::NotAttached { page: PageId::new(id, base::PageNo(0)) });
        };
        self.write_all(&file)?;
        self.sync_file(&file)
    }

    /// [`PageCache::flush_file`] for all files. Goes on after a failure; the first error is returned.
    pub fn flush_all(&self) -> Result<(), Error> {
        let mut files: Vec<FileId> = self.files.read().keys().copied().collect();
        files.sort_unstable();
        let mut first = Ok(());
        for id in files {
            match self.flush_file(id) {
                // Detached meanwhile, and flushed by whoever did that.
                Ok(()) | Err(Error::NotAttached { .. }) => {}
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    fn sync_file(&self, file: &OpenFile) -> Result<(), Error> {
        self.check_poison()?;
        file.sync().inspect_err(|error| {
            // CRASH: after a failed sync the operating system may have thrown away what it could not write, and
            // a second sync would report success. Nothing may be called durable any more.
            self.poison(format!("sync failed: {error}"));
        })
    }

    /// Every page dirty now is on its way to the device at the return.
    fn write_all(&self, file: &OpenFile) -> Result<(), Error> {
        self.check_poison()?;
        for (id, frame) in self.dirty_pages(|id| id.file == file.id) {
            for round in 0.. {
                match self.write_out_to(frame, id, file)? {
                    WriteOut::Written => break,
                    WriteOut::NothingToDo => {
                        // Clean, or on its way with nothing newer: that one is worth waiting for.
                        let header = self.header(frame);
                        if header.flags() & WRITING == 0 || header.page_id() != id {
                            break;
                        }
                        pause(round);
                    }
                    WriteOut::InFlight | WriteOut::Latched => pause(round),
                }
            }
        }
        Ok(())
    }

    /// Lets go of a file: its pages leave the cache, after waiting for whoever has latched them. The caller holds
    /// no latch and makes sure that nobody starts to use the file anew.
    ///
    /// `Detach::Flush` writes and syncs first; on an error the file stays attached, and nothing is lost.
    pub fn detach(&self, id: FileId, how: Detach) -> Result<(), Error> {
        let Some(file) = self.files.read().get(&id).cloned() else {
            return Err(Error::NotAttached { page: PageId::new(id, base::PageNo(0)) });
        };
        if how == Detach::Flush {
            self.write_all(&file)?;
            self.sync_file(&file)?;
        }
        file.set_detached(true);
        // Whoever installed a page without seeing that has left the mutex by the time we have passed it.
        for number in 0..self.shells.len() {
            drop(self.lock_shell(number));
        }
        let purged = self.purge(&file, how);
        if purged.is_err() {
            file.set_detached(false);
        } else {
            self.files.write().remove(&id);
        }
        purged
    }

    /// Gives up all pages of the file.
    fn purge(&self, file: &OpenFile, how: Detach) -> Result<(), Error> {
        let mut written = false;
        for number in 0..self.pool.frames_made() {
            let frame = FrameNo(number as u32);
            let header = self.header(frame);
            let mut round = 0;
            while header.page_id().file == file.id && header.state.load().mode() != Mode::Free {
                if matches!(header.state.load().mode(), Mode::Loading | Mode::Evicting) {
                    self.wait_settled(frame);
                    continue;
                }
                let id = header.page_id();
                // A page dirtied between the flush and now.
                if how == Detach::Flush
                    && header.flags() & DIRTY != 0
                    && self.write_out_to(frame, id, file)? == WriteOut::Written
                {
                    written = true;
                    continue;
                }
                if !self.latch_frame(id, frame, Keep::Exclusive)? {
                    continue;
                }
                let late = how == Detach::Flush && header.flags() & DIRTY != 0;
                if late || !self.drop_latched_page(id, frame) {
                    let wake = header.state.unlock_exclusive(false);
                    self.wake(frame, wake);
                    pause(round);
                    round += 1;
                }
            }
        }
        if written { self.sync_file(file) } else { Ok(()) }
    }
}

impl Drop for PageCache {
    fn drop(&mut self) {
        self.write_back.signal.stop();
    }
}
