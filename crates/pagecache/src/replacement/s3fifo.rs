//! S3-FIFO (Yang and others, SOSP 2023) with one bit a page, and a door step of our own.
//!
//! ```text
//!   new page -> [ young ] -> [ small ] --used meanwhile--> [ main: nine tenths ] --used--> back to its end
//!                                |                                |
//!                            not used: victim, remembered     not used: victim
//!                                v
//!                            [ ghosts ] --asked for again--> enters main
//! ```
//!
//! A page that is used once, as by a scan, passes through the small queue and never touches the main one. The
//! ghosts remember, by hash, as many pages as there are frames.
//!
//! The paper counts uses up to three and asks for two before a page enters main, because the first ones come
//! in a burst: a scan touches a page several times before it goes on. With one bit the burst is told apart by
//! time: what happens while the page is young is forgotten (the idea is 2Q's correlated reference period).

use super::{List, Policy, Take};
use crate::config::Limits;
use crate::frames::{FrameNo, Frames};
use crate::ghosts::Ghosts;
use crate::index::Hash;

/// The share of the frames for new pages, young and small together, in percent: the paper's value,
/// which our traces confirm.
const SMALL_PERCENT: usize = 10;
/// One new page in so many is young.
const YOUNG_SHARE: usize = 4;
/// So many used pages are sent round again by one eviction; then the next is a victim, used or not. Bounds
/// the time under the mutex (two cache misses a page) when everything is hot; on our traces it is never
/// reached.
const ROUNDS_MAX: usize = 256;

#[derive(Debug)]
pub struct S3Fifo {
    young: List,
    small: List,
    main: List,
    ghosts: Ghosts,
    frames_expected: usize,
    /// The least number of ghosts to remember. So many of the latest count.
    ghosts_min: usize,
    ghost_hits: u64,
}

impl Default for S3Fifo {
    fn default() -> S3Fifo {
        S3Fifo {
            young: List::new(3),
            small: List::new(1),
            main: List::new(2),
            ghosts: Ghosts::default(),
            frames_expected: 1,
            ghosts_min: 0,
            ghost_hits: 0,
        }
    }
}

impl S3Fifo {
    /// Frames for new pages, young ones included.
    fn small_wanted(&self) -> usize {
        (self.frames_expected * SMALL_PERCENT / 100).max(1)
    }

    fn list_of(&mut self, frames: &Frames, frame: FrameNo) -> &mut List {
        if self.young.contains(frames, frame) {
            &mut self.young
        } else if self.small.contains(frames, frame) {
            &mut self.small
        } else {
            &mut self.main
        }
    }

    /// Pages beyond the youngest `max` are young no longer: their uses until now are forgotten.
    fn age(&mut self, frames: &Frames, max: usize) {
        while self.young.len() > max {
            let Some(frame) = self.young.pop_front(frames) else { return };
            frames.header(frame).cool();
            self.small.push_back(frames, frame);
        }
    }

    /// Judges the oldest small page. `Err` = it was no victim; go on.
    fn judge_small(
        &mut self,
        frames: &Frames,
        take: &mut dyn FnMut(FrameNo) -> Take,
    ) -> Result<Option<FrameNo>, ()> {
        let Some(frame) = self.small.pop_front(frames) else { return Err(()) };
        if frames.header(frame).is_hot() {
            frames.header(frame).cool();
            self.main.push_back(frames, frame);
            return Err(());
        }
        match take(frame) {
            Take::Taken => {
                let ghosts_max = self.frames_expected.max(self.ghosts_min);
                self.ghosts.remember(Hash::of(frames.header(frame).page_id()), ghosts_max);
                Ok(Some(frame))
            }
            Take::Skip => {
                self.small.push_back(frames, frame);
                Err(())
            }
            Take::Stop => {
                self.small.push_front(frames, frame);
                Ok(None)
            }
        }
    }

    /// Judges the oldest main page. A used page is spared only if `spare_used`.
    fn judge_main(
        &mut self,
        frames: &Frames,
        spare_used: bool,
        take: &mut dyn FnMut(FrameNo) -> Take,
    ) -> Result<Option<FrameNo>, ()> {
        let Some(frame) = self.main.pop_front(frames) else { return Err(()) };
        if spare_used && frames.header(frame).is_hot() {
            frames.header(frame).cool();
            self.main.push_back(frames, frame);
            return Err(());
        }
        match take(frame) {
            Take::Taken => Ok(Some(frame)),
            Take::Skip => {
                self.main.push_back(frames, frame);
                Err(())
            }
            Take::Stop => {
                self.main.push_front(frames, frame);
                Ok(None)
            }
        }
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, frames: &Frames, frame: FrameNo) {
        if let Some(age) = self.ghosts.recall(Hash::of(frames.header(frame).page_id())) {
            self.ghost_hits += u64::from(age <= self.ghosts_min as u64);
            self.main.push_back(frames, frame);
        } else {
            self.young.push_back(frames, frame);
            self.age(frames, self.small_wanted() / YOUNG_SHARE);
        }
    }

    fn hit(&mut self, frames: &Frames, frame: FrameNo) {
        frames.header(frame).touch();
    }

    fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        self.list_of(frames, frame).remove(frames, frame);
    }

    fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo) {
        self.list_of(frames, old).substitute(frames, old, new);
    }

    fn evict(&mut self, frames: &Frames, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
        let all = self.young.len() + self.small.len() + self.main.len();
        for turn in 0..2 * all {
            // The main queue gives only what it has beyond its share: frames come and go between segments,
            // and a segment that lends some should not lend its hot ones.
            let has_many_new = self.young.len() + self.small.len() >= self.small_wanted();
            let has_few_used = self.main.len() <= self.frames_expected - self.small_wanted();
            let from_new = has_many_new || has_few_used;
            if from_new && self.small.is_empty() {
                self.age(frames, self.young.len().saturating_sub(1));
            }
            let judged = if from_new && !self.small.is_empty() {
                self.judge_small(frames, take)
            } else {
                self.judge_main(frames, turn < ROUNDS_MAX, take)
            };
            if let Ok(verdict) = judged {
                return verdict;
            }
        }
        // Most pages are latched or dirty, or very young. Now every single one is proposed: a used one among
        // the new goes to the main queue first.
        self.age(frames, 0);
        for _ in 0..self.small.len() {
            if let Ok(verdict) = self.judge_small(frames, take) {
                return verdict;
            }
        }
        for _ in 0..self.main.len() {
            if let Ok(verdict) = self.judge_main(frames, false, take) {
                return verdict;
            }
        }
        None
    }

    fn set_limits(&mut self, frames_expected: usize, _limits: Limits) {
        self.frames_expected = frames_expected;
    }

    fn warm(&self) -> usize {
        self.young.len() + self.small.len()
    }

    fn set_ghosts(&mut self, least: usize) {
        self.ghosts_min = least;
    }

    fn ghost_hits(&self) -> u64 {
        self.ghost_hits
    }

    fn drain(&mut self, frames: &Frames) -> Vec<FrameNo> {
        let mut all = self.small.drain(frames);
        all.extend(self.young.drain(frames));
        all.extend(self.main.drain(frames));
        all
    }
}
