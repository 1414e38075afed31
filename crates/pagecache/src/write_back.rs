//! Dirty pages on their way to the device.
//!
//! A page is copied under a shared latch and written from the copy, so that nobody waits for the device. From
//! the copy until the end of the write the frame is marked `WRITING` (pagecache R6). Meanwhile the frame is
//! not given up, so no reader gets an older page than the pool had. And no second thread writes it, so the
//! device never gets an older copy after a newer one.
//!
//! Pages are written in batches: the log is made durable as far as they need it, all are written to the
//! doublewrite file and that is synced, then each is written in its place.
//!
//! What is written ahead of need keeps to a pace. What a thread waits for does not.

use crate::config::{Detach, IoConfig};
use crate::error::Error;
use crate::files::{OpenFile, copy_of};
use crate::frames::{DIRTY, FrameNo, WRITING};
use crate::index::Hash;
use crate::outgoing::Outgoing;
use crate::page_header::seal;
use crate::park::pause;
use crate::pool::Pool;
use crate::side_by_side;
use crate::state::{Changed, Keep, Mode};
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use base::{FileId, Lsn, PageId};
use std::ops::Range;
use std::time::Duration;

#[cfg(not(feature = "shuttle"))]
mod background;
/// Under the model checker nothing runs on its own. Models write when they mean to.
#[cfg(feature = "shuttle")]
impl Pool {
    pub(crate) fn start_write_back(self: &Arc<Pool>) {}
}

/// Pages written together: one sync of the log and one of the doublewrite file for all of them.
const BATCH_MAX: usize = 64;

/// One page in so many may be dirty before writing becomes urgent. With a half, a page that changes often is
/// written only when the log needs it, and a thread that looks for a victim finds enough clean pages.
const DIRTY_SHARE: usize = 2;

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

impl Pool {
    /// Why pages cannot be written at the moment: the last write failed and none has succeeded since, or
    /// writing has been given up. Two loads while all is well.
    #[inline]
    pub fn write_failure(&self) -> Option<String> {
        self.device.backend.write_failure()
    }

    /// Writes the page in `frame` if it is `id` and dirty, and others with it that are. A failed write leaves
    /// it dirty.
    pub(crate) fn write_out(&self, frame: FrameNo, id: PageId) -> Result<WriteOut, Error> {
        self.check_poison()?;
        let Ok(file) = self.file(id) else { return Ok(WriteOut::NothingToDo) };
        let first = match self.begin_write(frame, id, &file) {
            Ok(first) => first,
            Err(outcome) => return Ok(outcome),
        };
        let mut batch = vec![first];
        // The sync of the log and that of the doublewrite file cost the same for one page as for many.
        if self.device.backend.doublewrite.is_some() || self.device.backend.log.is_some() {
            let max = self.batch_max();
            let near = self
                .device
                .dirty
                .iter_from(frame, self.growth.free.frames_made())
                .filter(|other| *other != frame);
            for other in near.take(max) {
                let id = self.header(other).page_id();
                if let Ok(file) = self.file(id)
                    && let Ok(page) = self.begin_write(other, id, &file)
                {
                    batch.push(page);
                }
                if batch.len() == max {
                    break;
                }
            }
        }
        self.write_batch(batch).map(|()| WriteOut::Written)
    }

    /// How many pages are written together. Only a part of the pool, because they cannot be given up
    /// meanwhile.
    fn batch_max(&self) -> usize {
        (self.frames_within_reach() / 4).clamp(1, BATCH_MAX)
    }

    /// Copies a page that is to be written, and marks it as on its way.
    fn begin_write(&self, frame: FrameNo, id: PageId, file: &Arc<OpenFile>) -> Result<Outgoing, WriteOut> {
        let latch = self.latch(frame);
        if latch.lock_shared().is_err() {
            return Err(WriteOut::Latched);
        }
        let copy = self.send(frame, id).map(|()| copy_of(self.page(frame)));
        latch.unlock_shared();
        let mut copy = copy?;
        seal(&mut copy, id);
        Ok(Outgoing { frame, id, file: file.clone(), copy })
    }

    /// Under a latch: the page is about to be copied.
    fn send(&self, frame: FrameNo, id: PageId) -> Result<(), WriteOut> {
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
        header.send_changes();
        // In this order, because a thread that looks for the oldest change goes through the dirty pages first
        // (pagecache R7). After a write that failed the frame is there already.
        self.device.writing.insert(frame);
        self.device.dirty.remove(frame);
        self.device.write_back.dirty_count.fetch_sub(1, Relaxed);
        Ok(())
    }

    /// Writes pages that are marked as being written. Gives the first error. Each page that could not be
    /// written is dirty again.
    fn write_batch(&self, batch: Vec<Outgoing>) -> Result<(), Error> {
        // CRASH: what a page says must not be on the device before the log has it. One sync of the log is for
        // all pages.
        let newest = batch.iter().map(Outgoing::lsn).max().unwrap_or_default();
        let log_failure = self.device.backend.log.as_ref().and_then(|log| log.make_durable(newest).err());
        let may_go = |page: &Outgoing| match (&self.device.backend.log, &log_failure) {
            // After a failure of the log some pages may need only what had been durable before.
            (Some(log), Some(_)) => log.make_durable(page.lsn()).map_err(|why| Error::Log { why }),
            _ => Ok(()),
        };
        let (going, staying): (Vec<Outgoing>, Vec<Outgoing>) =
            batch.into_iter().partition(|page| may_go(page).is_ok());
        let mut result = Ok(());
        for page in staying {
            result = result.and(self.end_write(page.frame, page.id, may_go(&page)));
        }
        let going: Arc<[Outgoing]> = going.into();
        let in_place = |some: Range<usize>| side_by_side::write(&self.device.backend.writers, &going, some);
        let written: Vec<Result<(), Error>> = match &self.device.backend.doublewrite {
            Some(doublewrite) => {
                doublewrite.write(&going, in_place, |why| self.poison(format!("sync failed: {why}")))
            }
            None => in_place(0..going.len()),
        };
        for (page, written) in going.iter().zip(written) {
            let ended = self.end_write(page.frame, page.id, written);
            result = result.and(ended);
        }
        result
    }

    fn end_write(&self, frame: FrameNo, id: PageId, written: Result<(), Error>) -> Result<(), Error> {
        let header = self.header(frame);
        match &written {
            Ok(()) => {
                self.shells[self.segment_number(id)].counters.writes.fetch_add(1, Relaxed);
                self.device.backend.note_written();
                header.forget_sent();
                self.device.writing.remove(frame);
            }
            Err(error) => {
                // CRASH: the device may hold the old page, the new one, or a mixture that fails its checksum.
                // The page stays here, dirty, and is written again. It stays among those that are being
                // written, too: if it went back and forth, a checkpoint could miss it in both maps (pagecache
                // R7).
                header.take_changes_back();
                if header.set_flags(DIRTY) & DIRTY == 0 {
                    self.device.write_back.dirty_count.fetch_add(1, Relaxed);
                }
                self.device.dirty.insert(frame);
                self.device.backend.note_failure(error);
            }
        }
        header.clear_flags(WRITING);
        written
    }

    /// Under the exclusive latch: the page does not have to be written any more. False if it is being
    /// written.
    pub(crate) fn forget_dirt(&self, frame: FrameNo) -> bool {
        let header = self.header(frame);
        if header.flags() & WRITING != 0 {
            return false;
        }
        if header.clear_flags(DIRTY) & DIRTY != 0 {
            header.forget_changes();
            self.device.write_back.dirty_count.fetch_sub(1, Relaxed);
            self.device.dirty.remove(frame);
            // It is there if its last write failed.
            self.device.writing.remove(frame);
        }
        true
    }

    /// A page has become dirty.
    pub(crate) fn note_dirtied(&self) {
        let dirty = self.device.write_back.dirty_count.fetch_add(1, Relaxed) + 1;
        if dirty > self.dirty_max() {
            self.device.write_back.signal.raise();
        }
    }

    /// The settings in effect; of threads, those that could be started.
    pub fn io(&self) -> IoConfig {
        self.device.backend.io()
    }

    /// Sets how many pages a second are written ahead of need, and how many when it is urgent: see
    /// [`IoConfig`].
    pub fn set_io_capacity(&self, capacity: u32, capacity_max: u32) {
        self.device.backend.set_io_capacity(capacity, capacity_max);
    }

    fn dirty_max(&self) -> usize {
        self.frames_within_reach() / DIRTY_SHARE
    }

    /// How many more pages are dirty than may be.
    #[cfg(not(feature = "shuttle"))]
    fn surplus_dirt(&self) -> usize {
        self.device.write_back.dirty_count.load(Relaxed).saturating_sub(self.dirty_max())
    }

    /// Frames whose page is dirty or being written, some of them twice. A page that becomes dirty meanwhile
    /// may be missing.
    fn unsaved(&self) -> impl Iterator<Item = FrameNo> + '_ {
        let frames = self.growth.free.frames_made();
        // Pages go from the first map to the second, and leave that only when they have been written
        // (pagecache R7).
        self.device.dirty.iter(frames).chain(self.device.writing.iter(frames))
    }

    /// Pages that are dirty or being written, with their frames, in the order in which they lie on the
    /// device.
    fn dirty_pages(&self, wanted: impl Fn(PageId) -> bool) -> Vec<(PageId, FrameNo)> {
        let mut pages: Vec<(PageId, FrameNo)> = self
            .unsaved()
            .map(|frame| (self.header(frame).page_id(), frame))
            .filter(|&(id, _)| wanted(id))
            .collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Calls `each` for every page that differs from the device.
    pub(crate) fn count_dirty(&self, mut each: impl FnMut(PageId)) {
        let mut frames: Vec<FrameNo> = self.unsaved().collect();
        frames.sort_unstable();
        frames.dedup();
        for frame in frames {
            let header = self.header(frame);
            if header.flags() != 0 {
                each(header.page_id());
            }
        }
    }

    /// Where the log was before the oldest change that has not been handed to the operating system. `None` if
    /// there is none. Changes that are logged while this looks may be missing, so the caller asks the log for
    /// its end first (pagecache R7).
    ///
    /// Before the log below that position may go, [`Pool::sync_files`] has to be called.
    pub fn oldest_change(&self) -> Option<Lsn> {
        // Without this a page that moves to another frame meanwhile could be missed in both.
        let _reconfiguring = self.growth.reconfiguring.lock();
        self.unsaved().filter_map(|frame| self.header(frame).oldest_change()).min()
    }

    /// Makes durable what has been written so far, in all files.
    pub fn sync_files(&self) -> Result<(), Error> {
        let files: Vec<Arc<OpenFile>> = self.device.files.read().values().cloned().collect();
        for file in files {
            self.check_poison()?;
            file.sync_if_written().inspect_err(|error| self.poison(format!("sync failed: {error}")))?;
        }
        // Another thread may have given up writing meanwhile, for a reason that no file of this pool knows.
        self.check_poison()
    }

    /// Writes the pages whose oldest change was logged before `position`, except those that are latched
    /// exclusively. The log is short of room, so this writes as fast as `io_capacity_max` allows.
    pub fn write_older_than(&self, position: Lsn) -> Result<(), Error> {
        let is_old = |frame: FrameNo| self.header(frame).oldest_change().is_some_and(|lsn| lsn < position);
        let mut old: Vec<(PageId, FrameNo)> = self
            .device
            .dirty
            .iter(self.growth.free.frames_made())
            .filter(|frame| is_old(*frame))
            .map(|frame| (self.header(frame).page_id(), frame))
            .collect();
        old.sort_unstable();
        for batch in old.chunks(self.batch_max()) {
            let written = self.write_pages(batch)?;
            let rate = self.device.backend.rate(true);
            let mut pace = self.device.backend.pace.lock();
            pace.spend(self.device.backend.now(), written, rate);
            let pause = pace.wait(self.device.backend.now(), 0, rate);
            drop(pace);
            rest(pause);
        }
        Ok(())
    }

    /// Writes these pages, batch by batch, as far as they are dirty and not latched exclusively. Gives the
    /// number written.
    fn write_pages(&self, pages: &[(PageId, FrameNo)]) -> Result<usize, Error> {
        let mut written = 0;
        for some in pages.chunks(self.batch_max()) {
            self.check_poison()?;
            let outgoing = some.iter().filter_map(|&(id, frame)| {
                let file = self.file(id).ok()?;
                self.begin_write(frame, id, &file).ok()
            });
            let batch: Vec<Outgoing> = outgoing.collect();
            written += batch.len();
            self.write_batch(batch)?;
        }
        Ok(written)
    }

    /// Writes every page of the file that is dirty now, then syncs the file.
    ///
    /// # Errors
    ///
    /// Those of the device and of the log. Some pages may have been written then, and the others stay dirty.
    /// A failed sync poisons the cache: from then on it is unknown what the device holds.
    pub fn flush_file(&self, id: FileId) -> Result<(), Error> {
        let file = self.attached(id)?;
        self.write_all(&file)?;
        self.sync_file(&file)
    }

    fn attached(&self, id: FileId) -> Result<Arc<OpenFile>, Error> {
        let file = self.device.files.read().get(&id).cloned();
        file.ok_or(Error::NotAttached { page: PageId::new(id, base::PageNo(0)) })
    }

    /// Writes every page that is dirty now, and syncs the files that have been written to. Goes on after a
    /// failure and gives the first error.
    ///
    /// # Errors
    /// As [`Pool::flush_file`].
    pub fn flush_all(&self) -> Result<(), Error> {
        let mut files: Vec<FileId> = self.device.files.read().keys().copied().collect();
        files.sort_unstable();
        let mut first = Ok(());
        for id in files {
            let flushed = self.attached(id).and_then(|file| {
                self.write_all(&file)?;
                self.check_poison()?;
                file.sync_if_written().inspect_err(|error| self.poison(format!("sync failed: {error}")))
            });
            match flushed {
                // Detached meanwhile, and flushed by the thread that did it.
                Ok(()) | Err(Error::NotAttached { .. }) => {}
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    fn sync_file(&self, file: &OpenFile) -> Result<(), Error> {
        self.check_poison()?;
        file.sync().inspect_err(|error| {
            // CRASH: after a failed sync the operating system may have thrown away what it could not write,
            // and a second sync would report success. Nothing may be called durable any more.
            self.poison(format!("sync failed: {error}"));
        })
    }

    /// On return every page that was dirty at the call has been handed to the device.
    fn write_all(&self, file: &Arc<OpenFile>) -> Result<(), Error> {
        self.check_poison()?;
        let pages = self.dirty_pages(|id| id.file == file.id);
        self.write_pages(&pages)?;
        // Now the pages that were latched, or on their way already.
        for (id, _) in pages {
            let mut round = 0;
            // Looked up again, because the page may have been given up, or have moved to another frame.
            while let Some(frame) = self.frame_of(id) {
                match self.begin_write(frame, id, file) {
                    Ok(page) => {
                        self.write_batch(vec![page])?;
                        break;
                    }
                    Err(WriteOut::NothingToDo) => {
                        // The page is clean, or it is being written and has no newer change. That write is
                        // waited for.
                        let header = self.header(frame);
                        if header.page_id() == id && header.flags() & WRITING == 0 {
                            break;
                        }
                        pause(round);
                    }
                    Err(_) => pause(round),
                }
                round += 1;
            }
        }
        Ok(())
    }

    /// The frame that has the page, or is going to have it.
    fn frame_of(&self, id: PageId) -> Option<FrameNo> {
        let (segment, _) = self.lock_segment(Hash::of(id));
        segment.find(self.shared(), id)
    }

    /// Lets go of a file: its pages leave the pool, after waiting for the threads that have latched them. The
    /// caller holds no latch. Later calls for the file get [`Error::NotAttached`].
    ///
    /// # Errors
    ///
    /// `Detach::Flush` writes and syncs first. On an error the file stays attached, and nothing is lost.
    pub fn detach(&self, id: FileId, how: Detach) -> Result<(), Error> {
        self.give_up(id, how).map(drop)
    }

    /// [`Pool::detach`], for a caller that is going to attach the file elsewhere.
    pub(crate) fn give_up(&self, id: FileId, how: Detach) -> Result<Arc<OpenFile>, Error> {
        let Some(file) = self.device.files.read().get(&id).cloned() else {
            return Err(Error::NotAttached { page: PageId::new(id, base::PageNo(0)) });
        };
        if how == Detach::Flush {
            self.write_all(&file)?;
            self.sync_file(&file)?;
        }
        file.set_detached(true);
        // A thread that installed a page without seeing the mark has left the mutex when this loop has passed
        // it.
        for number in 0..self.shells.len() {
            drop(self.lock_shell(number));
        }
        match self.purge(&file, how) {
            Ok(()) => {
                self.device.files.write().remove(&id);
                // After the file has been removed, so that no ticket is given any more.
                self.cold_pages.forget_file(id);
                if how == Detach::Discard {
                    file.forget_writes();
                    if let Some(doublewrite) = &self.device.backend.doublewrite {
                        doublewrite.forget_file(id);
                    }
                }
                self.rest_if_unused();
                Ok(file)
            }
            Err(error) => {
                file.set_detached(false);
                Err(error)
            }
        }
    }

    /// Gives up all pages of the file.
    fn purge(&self, file: &Arc<OpenFile>, how: Detach) -> Result<(), Error> {
        // Threads that change the file go on until a page that they need has gone. So clean pages go first,
        // and with them the way to the dirty ones. After that hardly any page becomes dirty, and the rest is
        // written together.
        let late = self.purge_some(file, how)?;
        if late {
            self.write_all(file)?;
            while self.purge_some(file, Detach::Flush)? {
                self.write_all(file)?;
            }
            self.sync_file(file)?;
        }
        Ok(())
    }

    /// Gives up pages of the file. Dirty ones only with [`Detach::Discard`]. True if dirty ones are left.
    fn purge_some(&self, file: &Arc<OpenFile>, how: Detach) -> Result<bool, Error> {
        let mut left = false;
        let _relocating = self.growth.relocating.lock();
        for number in 0..self.growth.free.frames_made() {
            let frame = FrameNo(number as u32);
            let header = self.header(frame);
            let mut round = 0;
            while header.page_id().file == file.id && header.state.load().mode() != Mode::Free {
                if matches!(header.state.load().mode(), Mode::Loading | Mode::Evicting) {
                    self.wait_settled(frame);
                    continue;
                }
                let id = header.page_id();
                if !self.latch_frame(id, frame, Keep::Exclusive)? {
                    continue;
                }
                let is_late = how == Detach::Flush && header.flags() & DIRTY != 0;
                if !is_late && self.drop_latched_page(id, frame) {
                    break;
                }
                self.latch(frame).unlock_exclusive(Changed::No);
                if is_late {
                    left = true;
                    break;
                }
                // A copy is being written.
                pause(round);
                round += 1;
            }
        }
        Ok(left)
    }
}

fn rest(pause: Duration) {
    #[cfg(not(feature = "shuttle"))]
    if !pause.is_zero() {
        base::sync::thread::sleep(pause);
    }
    let _ = pause;
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.device.write_back.signal.stop();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::config::{CacheConfig, WriteBack};
    use base::PageNo;
    use std::path::Path;
    use vfs::{Create, MemVfs, Vfs};

    /// A checkpoint looks at the marks of 64 frames at a time. Here a write fails and begins again between
    /// its looks.
    #[test]
    fn a_page_whose_write_fails_and_begins_again_is_unsaved_all_the_time() {
        const FILE: FileId = FileId(7);
        let config = CacheConfig {
            segments: 1,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(crate::size_for_frames(200, 1024), 1024)
        };
        let pool = Pool::new(config).unwrap();
        let device = MemVfs::new().open(Path::new("file"), Create::New).unwrap();
        pool.attach(FILE, "file".into(), device).unwrap();
        let mut near = Vec::new();
        let mut far = Vec::new();
        for page in 0..150 {
            let id = PageId::new(FILE, PageNo(page));
            drop(pool.create(id).unwrap());
            let frame = pool.frame_of(id).unwrap();
            match frame.index() / 64 {
                0 => near.push((id, frame)),
                1 => far.push((id, frame)),
                _ => {}
            }
        }
        pool.flush_all().unwrap();
        let (page, dirty, written) = (near[0], far[0], far[1]);
        for (id, _) in [page, dirty, written] {
            pool.write(id).unwrap().page_mut().set_u64(64, 1);
        }
        let file = pool.file(page.0).unwrap();
        let begin = |(id, frame): (PageId, FrameNo)| pool.begin_write(frame, id, &file).unwrap();
        begin(page);
        begin(written);
        let mut walk = pool.unsaved();
        let mut found = vec![walk.next().unwrap()];
        assert_eq!(found, [dirty.1], "it has passed the page, which is being written");
        let failed = Err(Error::Config { why: "a device that fails".to_string() });
        assert!(pool.end_write(page.1, page.0, failed).is_err());
        found.extend(walk.next());
        begin(page);
        found.extend(walk);
        assert!(found.contains(&page.1), "{page:?} is not among {found:?}");
        for (id, frame) in [page, written] {
            pool.end_write(frame, id, Ok(())).unwrap();
        }
        assert_eq!(pool.unsaved().collect::<Vec<_>>(), [dirty.1]);
        pool.flush_all().unwrap();
        assert_eq!(pool.unsaved().next(), None);
    }
}
