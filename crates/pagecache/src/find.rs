//! Finding a page's frame, loading it on a miss, latching it, and letting it go.

use crate::compressed;
use crate::error::Error;
use crate::files::OpenFile;
use crate::frames::FrameNo;
use crate::index::{Geometry, Hash};
use crate::local;
use crate::page::PageMut;
use crate::page_header::header;
use crate::pool::Pool;
use crate::state::{Changed, Keep, Mode, Word};
use base::PageId;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::thread;
use vfs::AlignedBuffer;

/// Where a page was found or put.
pub(crate) enum Located {
    /// Some frame had it; not latched.
    Found(FrameNo),
    /// It was read from the device and is latched as the caller wished.
    Loaded(FrameNo),
}

/// A page that is being loaded into its frame. If it is dropped before the load has ended, after an error or
/// by a panic, the page is taken out again, and the threads that wait for it look for it again (pagecache
/// R9).
struct Arriving<'c> {
    pool: &'c Pool,
    id: PageId,
    frame: FrameNo,
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        let Arriving { pool, id, frame } = *self;
        pool.remove_from_segment(id, frame);
        pool.latch(frame).abort_load();
        pool.growth.free.put(frame);
    }
}

impl Pool {
    /// Latches the page as wished, wherever it is, loading it if need be.
    #[track_caller]
    pub(crate) fn latch_page(&self, id: PageId, keep: Keep) -> Result<FrameNo, Error> {
        loop {
            match self.find_or_load(id, keep)? {
                Located::Loaded(frame) => return Ok(frame),
                Located::Found(frame) => {
                    if self.latch_frame(id, frame, keep)? {
                        self.header(frame).touch();
                        return Ok(frame);
                    }
                }
            }
        }
    }

    /// Latches the frame if it still holds the page; false if it holds another by now.
    #[track_caller]
    pub(crate) fn latch_frame(&self, id: PageId, frame: FrameNo, keep: Keep) -> Result<bool, Error> {
        let (header, latch) = (self.header(frame), self.latch(frame));
        // As in `read_locked`: a sharer gives way once to a thread that waits to have the page alone.
        if keep != Keep::Exclusive && header.state.load().has_waiters() {
            thread::yield_now();
        }
        loop {
            if header.page_word() != id.to_word() {
                return Ok(false);
            }
            let attempt = match keep {
                Keep::Exclusive => latch.lock_exclusive(),
                Keep::Shared | Keep::Nothing => latch.lock_shared(),
            };
            match attempt {
                Ok(_) if header.page_word() == id.to_word() => return Ok(true),
                Ok(_) => {
                    match keep {
                        Keep::Exclusive => latch.unlock_exclusive(Changed::No),
                        Keep::Shared | Keep::Nothing => latch.unlock_shared(),
                    }
                    return Ok(false);
                }
                Err(word) => match (word.mode(), keep) {
                    (Mode::Free, _) => return Ok(false),
                    (Mode::Evicting | Mode::Unlatched, _) => thread::yield_now(),
                    (_, Keep::Exclusive) => latch.wait(id, is_closed_to_writers)?,
                    _ => latch.wait(id, is_closed_to_readers)?,
                },
            }
        }
    }

    /// The frame with the page. If the page is absent it is read from the device and latched as wished.
    #[track_caller]
    pub(crate) fn find_or_load(&self, id: PageId, keep: Keep) -> Result<Located, Error> {
        let hash = Hash::of(id);
        let geometry = Geometry(self.hot.geometry.load(Relaxed));
        let holds = |frame: &FrameNo| self.header(*frame).page_word() == id.to_word();
        let index = &self.hot.index;
        if let Some(frame) = (index.candidates(geometry, hash).find(holds))
            .or_else(|| index.neighbour_candidates(geometry, hash).find(holds))
            && self.header(frame).state.load().mode() != Mode::Free
        {
            return Ok(Located::Found(frame));
        }
        self.find_or_install(id, |frame, file, compressed| {
            let mut page = PageMut::new(self.words(frame));
            if let Some(compressed) = compressed
                && open_cold_page(&compressed, &mut page)
            {
                return Ok(keep);
            }
            local::count_load();
            let buffers = &self.device.read_buffers;
            let mut bytes = buffers.take().unwrap_or_else(|| AlignedBuffer::new(self.page_size));
            let read = file.read_page(id, &mut page, &mut bytes);
            buffers.put(bytes);
            read?;
            self.check_lsn(id, file, page.as_page().u64_at(header::LSN))?;
            let number = Geometry(self.hot.geometry.load(Relaxed)).segment_of(hash);
            self.shells[number].counters.reads.fetch_add(1, Relaxed);
            Ok(keep)
        })
    }

    /// A page is written when the log is durable as far as the page says. So one that says more belongs to a
    /// log that has lost its end, or to another time. A change of it would be logged below what it has, and
    /// redo would take it for done.
    fn check_lsn(&self, id: PageId, file: &OpenFile, lsn: u64) -> Result<(), Error> {
        let Some(end) = self.device.backend.log.as_ref().map(|log| log.end().0).filter(|end| *end < lsn)
        else {
            return Ok(());
        };
        let why = format!("it is newer than the log: the log ends at {end}");
        Err(Error::Corrupt { path: file.path.clone(), page: id, lsn, why })
    }

    /// The frame with the page, or a new one that `fill` has filled, from the cold page or from the file. One
    /// thread fills, the others wait for it (pagecache R9).
    #[track_caller]
    pub(crate) fn find_or_install(
        &self,
        id: PageId,
        fill: impl FnOnce(FrameNo, &OpenFile, Option<Vec<u8>>) -> Result<Keep, Error>,
    ) -> Result<Located, Error> {
        let hash = Hash::of(id);
        let (segment, number) = self.lock_segment(hash);
        if let Some(frame) = segment.find(self.shared(), id) {
            return Ok(Located::Found(frame));
        }
        drop(segment);
        let file = self.file(id)?;
        // No mutex is held here (pagecache R8): to find a frame may mean to evict from any segment, and to
        // write.
        let frame = self.take_frame(number, || {
            if file.is_detached() { Err(Error::NotAttached { page: id }) } else { Ok(()) }
        })?;
        let (mut segment, number) = self.lock_segment(hash);
        if let Some(found) = segment.find(self.shared(), id) {
            self.growth.free.put(frame);
            return Ok(Located::Found(found));
        }
        if file.is_detached() {
            self.growth.free.put(frame);
            return Err(Error::NotAttached { page: id });
        }
        let header = self.header(frame);
        self.latch(frame).begin_load();
        header.set_page_id(id);
        segment.install(self.shared(), frame);
        self.shells[number].resident.store(segment.resident(), Relaxed);
        let compressed = self.cold_pages.take(id);
        drop(segment);
        let arriving = Arriving { pool: self, id, frame };
        let keep = fill(frame, &file, compressed)?;
        std::mem::forget(arriving);
        self.latch(frame).finish_load(keep);
        Ok(Located::Loaded(frame))
    }

    /// Takes a page out that the caller holds exclusively or is loading. The frame becomes the caller's.
    pub(crate) fn remove_from_segment(&self, id: PageId, frame: FrameNo) {
        let (mut segment, number) = self.lock_segment(Hash::of(id));
        segment.remove(self.shared(), frame);
        self.shells[number].resident.store(segment.resident(), Relaxed);
    }

    /// Gives up a page under its exclusive latch, dirty or not. False if a copy is being written (pagecache
    /// R5).
    pub(crate) fn drop_latched_page(&self, id: PageId, frame: FrameNo) -> bool {
        if !self.forget_dirt(frame) {
            return false;
        }
        self.remove_from_segment(id, frame);
        self.latch(frame).discard();
        self.growth.free.put(frame);
        true
    }
}

/// False if the bytes cannot be opened: then the page has to be read from the device.
fn open_cold_page(compressed: &[u8], page: &mut PageMut<'_>) -> bool {
    let mut bytes = vec![0; page.size()];
    let is_open = compressed::open_from_memory(compressed, &mut bytes).is_ok();
    debug_assert!(is_open, "a cold page in memory was damaged");
    if is_open {
        page.write(0, &bytes);
    }
    is_open
}

pub(crate) fn is_closed_to_readers(word: Word) -> bool {
    matches!(word.mode(), Mode::Exclusive | Mode::Loading) || word.is_full()
}

fn is_closed_to_writers(word: Word) -> bool {
    matches!(word.mode(), Mode::Exclusive | Mode::Loading | Mode::Shared)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::config::{CacheConfig, WriteBack};
    use base::sync::Arc;
    use base::{FileId, PageNo};
    use std::collections::BTreeSet;
    use std::path::Path;
    use vfs::{Create, MemVfs, Vfs};

    #[test]
    fn misses_read_into_memory_that_is_used_again() {
        const PAGES: u32 = 200;
        let config = CacheConfig {
            segments: 1,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(crate::size_for_frames(16, 1024), 1024)
        };
        let pool: Arc<Pool> = Pool::new(config).unwrap();
        let device = MemVfs::new().open(Path::new("file"), Create::New).unwrap();
        pool.attach(FileId(7), "file".into(), device).unwrap();
        let id = |page| PageId::new(FileId(7), PageNo(page));
        for page in 0..PAGES {
            pool.create(id(page)).unwrap().page_mut().set_u64(64, page.into());
        }
        pool.flush_all().unwrap();
        let mut buffers = BTreeSet::new();
        for page in 0..PAGES {
            assert_eq!(pool.read_shared(id(page)).unwrap().page().u64_at(64), page.into());
            if let Some(buffer) = pool.device.read_buffers.take() {
                buffers.insert(buffer.as_ptr().addr());
                pool.device.read_buffers.put(buffer);
            }
        }
        let cores = std::thread::available_parallelism().unwrap().get();
        assert!((1..=cores).contains(&buffers.len()), "{} buffers", buffers.len());
    }
}
