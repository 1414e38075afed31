//! Changing a pool while it is in use. Pages stay as far as there is room, and readers are never stopped.

use crate::budget::{Budget, Share};
use crate::config::{HitPath, Limits, Reconfigure};
use crate::error::Error;
use crate::frames::{DIRTY, FrameNo, WRITING};
use crate::index::{Geometry, Hash};
use crate::local::{self, SEGMENTS_MAX};
use crate::page::PageMut;
use crate::park::pause;
use crate::pool::Pool;
use crate::segment::Segment;
use crate::sizing::{FRAMES_MIN, checked_limits, frames_for, segments_for, size_for_frames};
use crate::state::{Changed, Keep, Mode};
use base::PageId;
use base::sync::MutexGuard;
use base::sync::atomic::Ordering::{Relaxed, Release};

impl Pool {
    /// Tells every segment how many frames it can expect, and the limits.
    pub(crate) fn apply_limits(&self, frames: usize, limits: Limits) {
        let segments = Geometry(self.hot.geometry.load(Relaxed)).segments();
        for shell in &self.shells[..segments] {
            let mut segment = shell.segment.lock();
            segment.set_limits(frames.div_ceil(segments), limits);
            segment.set_ghosts(self.ghost_frames().div_ceil(segments));
        }
    }

    /// The cost of a frame.
    pub(crate) fn frame_bytes(&self) -> usize {
        size_for_frames(1, self.page_size)
    }

    /// How many ghosts count. None without a budget.
    fn ghost_frames(&self) -> usize {
        self.growth.budget.as_ref().map_or(0, |budget| (budget.ghost_bytes() / self.frame_bytes()).max(1))
    }

    /// Takes a step more of the budget, if no share has it, or another share does not use it (pagecache R15,
    /// R16). False if that brought no frame: then a page has to go.
    ///
    /// A share may have to wait for latches before it can give room back. So a thread that holds latches
    /// takes only what no share has. If another share could give room back the thread gets `Busy`. It comes
    /// back with the permit after `wait_for_frames` has asked for the room (pagecache R8).
    pub(crate) fn grow(&self) -> Result<bool, Error> {
        let Some(budget) = &self.growth.budget else { return Ok(false) };
        if budget.free() < self.frame_bytes() {
            if !budget.is_shared() || *self.growth.growing.lock() {
                return Ok(false);
            }
            if local::holds_latches() {
                let has_asked = local::has_permit(self.id());
                let is_there = !has_asked && budget.could_reclaim(self.as_share(), self.frame_bytes());
                return if is_there { Err(Error::Busy) } else { Ok(false) };
            }
            if !self.reclaim_room() {
                return Ok(false);
            }
        }
        let is_withheld = self.growth.growing.lock();
        if self.growth.free.len() > 0 {
            // Another thread has been faster.
            return Ok(true);
        }
        Ok(!*is_withheld && self.grow_by((budget.step() / self.frame_bytes()).max(1)) > 0)
    }

    /// Makes other shares give back what they do not use, unless there is room already. True if there is room
    /// afterwards. The caller holds no latches.
    pub(crate) fn reclaim_room(&self) -> bool {
        let Some(budget) = &self.growth.budget else { return false };
        let has_room = || budget.free() >= self.frame_bytes();
        has_room() || budget.is_shared() && budget.reclaim(self.as_share()) && has_room()
    }

    /// How the budget tells this pool from other shares.
    fn as_share(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }

    /// How many frames it has, together with those it could take from what no share has.
    pub(crate) fn frames_within_reach(&self) -> usize {
        let more = self.growth.budget.as_ref().map_or(0, |budget| budget.free() / self.frame_bytes());
        self.frames() + more
    }

    /// Takes so many frames more, as far as the budget has bytes for them, and gives their number. The caller
    /// holds `growing`.
    fn grow_by(&self, frames: usize) -> usize {
        let Some(budget) = &self.growth.budget else { return 0 };
        if self.frames_min() == 0 {
            // The caller is late: its file has gone.
            return 0;
        }
        // ORDER: changed by the holder of `growing` only.
        let old = self.growth.frame_count.load(Relaxed);
        let more = budget.take(self.frame_bytes(), frames.min(self.hot.frames.frames_max() - old));
        if more > 0 {
            self.grow_to(old + more);
        }
        more
    }

    /// The caller holds `growing`, and has taken the bytes from the budget (pagecache R15).
    fn grow_to(&self, frames: usize) {
        self.hot.frames.use_huge_pages(frames);
        self.hot.memory.use_huge_pages(frames);
        self.growth.frame_count.store(frames, Relaxed);
        self.growth.free.resize(frames);
        let limits = self.growth.settings.lock().limits;
        self.apply_limits(frames, limits);
    }

    /// Frames that it cannot do without. A pool with a budget and without files needs none.
    fn frames_min(&self) -> usize {
        if self.growth.budget.is_some() && self.device.files.read().is_empty() { 0 } else { FRAMES_MIN }
    }

    /// The first file has come: takes what the pool cannot do without, even if other shares have it.
    /// [`Budget::fit`] then makes the others smaller. Until then a thread that wants a page of the file finds
    /// no frame, and looks again (pagecache R16).
    pub(crate) fn come_into_use(&self, budget: &Budget) {
        // A thread that found the pool without files has made it small by now.
        let _one_at_a_time = self.growth.reconfiguring.lock();
        let _growing = self.growth.growing.lock();
        // ORDER: changed by the holder of `growing` only.
        let old = self.growth.frame_count.load(Relaxed);
        if old < FRAMES_MIN && self.frames_min() > 0 {
            budget.insist((FRAMES_MIN - old) * self.frame_bytes());
            self.grow_to(FRAMES_MIN);
        }
    }

    /// The last file may have gone: then all frames go. No page is left, so nothing is written. The only
    /// threads to wait for are those that have taken a frame and come too late to use it.
    pub(crate) fn rest_if_unused(&self) {
        if self.frames_min() > 0 {
            return;
        }
        let _one_at_a_time = self.growth.reconfiguring.lock();
        if self.frames_min() == 0 {
            // If a file comes just now `give_back` leaves it the least number of frames.
            let emptied = self.give_back(0);
            debug_assert!(emptied.is_ok(), "a page of no file: {emptied:?}");
        }
    }

    /// Makes the pool smaller, but not below what it cannot do without, and gives the rest back to the
    /// budget. The caller holds `reconfiguring`.
    fn give_back(&self, frames: usize) -> Result<(), Error> {
        let (frames, frames_old) = {
            let mut is_withheld = self.growth.growing.lock();
            // With `files` held (pagecache R16): a file that comes later finds no frame to take until
            // `come_into_use` has run, so nobody holds a page that this thread would have to wait for.
            let files = self.device.files.read();
            let least = if self.growth.budget.is_some() && files.is_empty() { 0 } else { FRAMES_MIN };
            // A thread that made the pool grow since the caller looked has finished by now, and no other
            // begins.
            let frames_old = self.growth.frame_count.load(Relaxed);
            let frames = frames.max(least);
            if frames >= frames_old {
                return Ok(());
            }
            *is_withheld = true;
            self.growth.frame_count.store(frames, Relaxed);
            self.growth.free.resize(frames);
            (frames, frames_old)
        };
        let shrunk = self.shrink(frames, frames_old);
        if shrunk.is_ok()
            && let Some(budget) = &self.growth.budget
        {
            budget.give_back((frames_old - frames) * self.frame_bytes());
        }
        *self.growth.growing.lock() = false;
        shrunk
    }

    /// Changes settings while the cache is in use; the pages stay, as far as the new size has room.
    /// A second caller waits for the first. The caller holds no latches.
    ///
    /// A change of size or segments sets the counters to zero, as MyISAM's users expect. If a
    /// smaller size fails because dirty pages cannot be written, the old size stays.
    pub fn reconfigure(&self, change: Reconfigure) -> Result<(), Error> {
        let _one_at_a_time = self.growth.reconfiguring.lock();
        let mut settings = self.growth.settings.lock().clone();
        settings.limits = checked_limits(Limits {
            division_limit: change.division_limit.unwrap_or(settings.limits.division_limit),
            age_threshold: change.age_threshold.unwrap_or(settings.limits.age_threshold),
        })?;
        settings.size_bytes = change.size_bytes.unwrap_or(settings.size_bytes);
        settings.segments = change.segments.unwrap_or(settings.segments).min(SEGMENTS_MAX as u32);
        if let Some(hit_path) = change.hit_path
            && hit_path != settings.hit_path
        {
            settings.hit_path = hit_path;
            self.hot.is_optimistic.store(hit_path == HitPath::Optimistic, Relaxed);
            for shell in &self.shells {
                let mut segment = shell.segment.lock();
                segment.set_hit_path(self.shared(), hit_path);
            }
        }
        let index_frames = frames_for(settings.size_bytes, self.page_size);
        if index_frames > self.hot.frames.frames_max() {
            let frames_max = self.hot.frames.frames_max();
            let why = format!(
                "{} bytes are more than this cache can grow to ({frames_max} pages)",
                settings.size_bytes
            );
            return Err(Error::Config { why });
        }
        let frames_old = self.growth.frame_count.load(Relaxed);
        // With a budget the pool takes what it needs when it needs it.
        let frames = if self.growth.budget.is_some() { frames_old.min(index_frames) } else { index_frames };
        if frames < frames_old {
            self.give_back(frames)?;
        }
        let index_frames_old = self.growth.index_frames.swap(index_frames, Relaxed);
        if index_frames != index_frames_old || change.segments.is_some() {
            let segments = segments_for(settings.segments);
            let expected = frames.max(FRAMES_MIN);
            self.repartition(segments, expected, index_frames, settings.hit_path, settings.limits);
            if frames > frames_old {
                self.hot.frames.use_huge_pages(frames);
                self.hot.memory.use_huge_pages(frames);
                self.growth.free.resize(frames);
                self.growth.frame_count.store(frames, Relaxed);
            }
            self.growth.free.reset_high_water();
            self.reset_counters();
        } else {
            self.apply_limits(frames.max(FRAMES_MIN), settings.limits);
        }
        *self.growth.settings.lock() = settings;
        Ok(())
    }

    /// Deals all pages to the segments anew. Takes every mutex, in ascending order. No other code ever holds
    /// two.
    fn repartition(
        &self,
        segments: usize,
        frames: usize,
        index_frames: usize,
        hit_path: HitPath,
        limits: Limits,
    ) {
        let mut all: Vec<MutexGuard<'_, Segment>> =
            self.shells.iter().map(|shell| shell.segment.lock()).collect();
        let old = Geometry(self.hot.geometry.load(Relaxed));
        let new = Geometry::new(segments, index_frames, Some(old));
        self.hot.index.clear(new);
        let orders: Vec<Vec<FrameNo>> =
            (all.iter_mut()).map(|segment| segment.dissolve(self.shared(), new, hit_path)).collect();
        for segment in &mut all[..segments] {
            segment.set_limits(frames.div_ceil(segments), limits);
            segment.set_ghosts(self.ghost_frames().div_ceil(segments));
        }
        // First the next victim of each segment, then the second of each, and so on. So the order stays,
        // roughly.
        let longest = orders.iter().map(Vec::len).max().unwrap_or(0);
        for frame in (0..longest).flat_map(|nth| orders.iter().filter_map(move |order| order.get(nth))) {
            let hash = Hash::of(self.header(*frame).page_id());
            all[new.segment_of(hash)].install(self.shared(), *frame);
        }
        for (shell, segment) in self.shells.iter().zip(&all) {
            shell.resident.store(segment.resident(), Relaxed);
        }
        // ORDER: pairs with the Acquire of `lock_segment`. Readers without a latch may go on with the old
        // geometry: its half of the index stays as it is until the next change, and what they find is
        // verified (pagecache R3, R4).
        self.hot.geometry.store(new.0, Release);
        self.hot.index.release_shortcuts(new);
    }

    /// Empties the frames from number `frames` on, which are no longer handed out. The coldest pages are
    /// evicted to make room, and the others move to lower frames.
    fn shrink(&self, frames: usize, frames_old: usize) -> Result<(), Error> {
        // The coldest pages go until the rest has room below number `frames`. Then what lies above moves
        // down.
        let mut round = 0;
        while self.growth.free.used() > frames {
            let segments = Geometry(self.hot.geometry.load(Relaxed)).segments();
            let fullest = (0..segments).max_by_key(|&number| self.shells[number].resident.load(Relaxed));
            match self.evict_somewhere(fullest.unwrap_or(0), round) {
                Ok(Some(frame)) => self.growth.free.put(frame),
                Ok(None) => {
                    pause(round);
                    round += 1;
                }
                Err(error) => return Err(self.stay_at(frames_old, error)),
            }
        }
        let mut round = 0;
        while !self.growth.free.is_settled() {
            for number in frames..self.growth.free.frames_made() {
                if let Err(error) = self.vacate(FrameNo(number as u32), frames) {
                    return Err(self.stay_at(frames_old, error));
                }
            }
            pause(round);
            round += 1;
        }
        self.hot.memory.release_from(FrameNo(frames as u32));
        Ok(())
    }

    /// The pool keeps its old size because of `error`.
    fn stay_at(&self, frames_old: usize, error: Error) -> Error {
        self.growth.free.resize(frames_old);
        self.growth.frame_count.store(frames_old, Relaxed);
        error
    }

    /// Moves the page in `frame`, if there is one, to a frame below `frames`.
    fn vacate(&self, frame: FrameNo, frames: usize) -> Result<(), Error> {
        let header = self.header(frame);
        while header.state.load().mode() != Mode::Free {
            self.wait_settled(frame);
            let id = header.page_id();
            // A free frame, or that of the coldest page. The latter may itself lie above the new end. Then it
            // is withheld.
            let target = self.take_frame(self.segment_number(id), || Ok(()))?;
            if target.index() >= frames {
                self.growth.free.put(target);
                continue;
            }
            let relocating = self.growth.relocating.lock();
            if !self.latch_frame(id, frame, Keep::Exclusive)? {
                drop(relocating);
                self.growth.free.put(target);
                continue;
            }
            if header.flags() & WRITING != 0 {
                self.latch(frame).unlock_exclusive(Changed::No);
                drop(relocating);
                self.growth.free.put(target);
                pause(0);
                continue;
            }
            self.relocate(id, frame, target);
        }
        Ok(())
    }

    /// Moves a page that the caller holds exclusively, and that is not being written, into a frame that is
    /// the caller's (pagecache R17). Optimistic readers of the old frame meet a conflict.
    fn relocate(&self, id: PageId, source: FrameNo, target: FrameNo) {
        let (old, new) = (self.header(source), self.header(target));
        self.latch(target).begin_load();
        new.set_page_id(id);
        if old.is_hot() {
            new.touch();
        }
        PageMut::new(self.words(target)).copy_from(self.page(source));
        if old.flags() & DIRTY != 0 {
            // For a moment the page is dirty in both frames, so it is never taken for clean (pagecache R7).
            if let Some(position) = old.oldest_change() {
                new.note_change(position);
            }
            self.mark_dirty(target);
            self.forget_dirt(source);
        }
        let (mut segment, _) = self.lock_segment(Hash::of(id));
        segment.substitute(self.shared(), source, target);
        drop(segment);
        self.latch(target).finish_load(Keep::Nothing);
        self.latch(source).discard();
        self.growth.free.put(source);
    }
}

impl Share for Pool {
    fn name(&self) -> String {
        format!("pages of {} bytes in cache '{}'", self.page_size, self.name)
    }

    fn bytes(&self) -> usize {
        self.frames() * self.frame_bytes()
    }

    fn bytes_min(&self) -> usize {
        self.frames_min() * self.frame_bytes()
    }

    fn free_bytes(&self) -> usize {
        self.growth.free.len() * self.frame_bytes()
    }

    /// The index keeps its size, which is made for the whole budget, and the counters go on.
    fn resize(&self, bytes: usize) -> Result<(), Error> {
        let _one_at_a_time = self.growth.reconfiguring.lock();
        let old = self.growth.frame_count.load(Relaxed);
        let new = (bytes / self.frame_bytes()).max(self.frames_min());
        if new < old {
            self.give_back(new)?;
            // ORDER: a figure.
            let new = self.growth.frame_count.load(Relaxed).max(FRAMES_MIN);
            let limits = self.growth.settings.lock().limits;
            self.apply_limits(new, limits);
        } else {
            let _growing = self.growth.growing.lock();
            let old = self.growth.frame_count.load(Relaxed);
            self.grow_by(new.saturating_sub(old));
        }
        Ok(())
    }

    fn ghost_hits(&self) -> u64 {
        self.shells.iter().map(|shell| shell.segment.lock().ghost_hits()).sum()
    }

    fn ghost_bytes(&self) -> usize {
        let segments = Geometry(self.hot.geometry.load(Relaxed)).segments();
        self.ghost_frames().div_ceil(segments) * segments * self.frame_bytes()
    }
}

/// The canary of the models of pools that come into use (`tests/moves.rs`).
#[cfg(all(test, feature = "shuttle"))]
mod models {
    use super::*;
    use crate::backend::Backend;
    use crate::config::{CacheConfig, WriteBack};
    use crate::files::{FileFormat, OpenFile};
    use base::sync::{Arc, find_fault, shuttle, thread};
    use base::{FileId, PageNo};
    use vfs::Vfs;

    const PAGE_SIZE: usize = 128;
    const FILE: FileId = FileId(7);

    /// The first file comes to a pool while a thread wants a page of it. A careless pool takes its first
    /// frames while another thread makes it grow.
    fn the_first_file_comes(is_careful: bool) {
        let total = size_for_frames(8, PAGE_SIZE);
        let config = CacheConfig {
            segments: 1,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(total, PAGE_SIZE)
        };
        let backend = Backend::new(&config, 8).unwrap();
        let budget = Budget::new(total);
        let pool = Pool::beside(config, backend, Some(budget.clone())).unwrap();
        let user = {
            let pool = pool.clone();
            thread::spawn(move || {
                while let Err(error) = pool.create(PageId::new(FILE, PageNo(0))).map(drop) {
                    assert!(matches!(error, Error::NotAttached { .. }), "{error}");
                    thread::yield_now();
                }
            })
        };
        let device = vfs::MemVfs::new().open("file".as_ref(), vfs::Create::New).unwrap();
        let file = OpenFile::new(FILE, "file".into(), device, FileFormat::plain(PAGE_SIZE));
        if is_careful {
            pool.take_in(file).unwrap();
        } else {
            pool.device.files.write().insert(FILE, Arc::new(file));
            let old = pool.growth.frame_count.load(Relaxed);
            if old < FRAMES_MIN {
                budget.insist((FRAMES_MIN - old) * pool.frame_bytes());
                pool.grow_to(FRAMES_MIN);
            }
        }
        user.join().unwrap();
        assert_eq!(budget.free(), total - Share::bytes(&*pool), "bytes were lost or made");
    }

    #[test]
    fn a_pool_that_comes_into_use_has_what_the_budget_gave() {
        shuttle::check_random(|| the_first_file_comes(true), 2_000);
    }

    #[test]
    #[should_panic(expected = "bytes were lost or made")]
    fn a_pool_that_comes_into_use_beside_one_who_makes_it_grow_is_caught() {
        find_fault(|| the_first_file_comes(false));
    }
}
