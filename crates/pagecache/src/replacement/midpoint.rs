//! Midpoint insertion LRU, as users of MyISAM's key caches know it.
//!
//! ```text
//!   victim <- [ warm: least recent ... most recent ] [ hot: least recent ... most recent ]
//!                                             ^ new pages            ^ pages hit three times
//! ```
//!
//! A page enters at the end of warm. Its third use (the first is the load) moves it to the end of hot if warm
//! stays longer than its minimum, `frames * division_limit / 100 + 1`. With a limit of 100 nothing ever
//! becomes hot: plain LRU. A hot page that `frames * age_threshold / 100` hits have passed by goes back to
//! the start of warm. Victims come from the start of warm and are remembered as ghosts. With plain LRU a pool
//! that is larger by the number of ghosts would still have them.

use super::{List, Policy, Take};
use crate::config::Limits;
use crate::frames::{FrameNo, Frames};
use crate::ghosts::Ghosts;
use crate::index::Hash;
use base::sync::atomic::Ordering::Relaxed;

/// Uses, the load included, before a page may become hot. Users know this number from MyISAM.
const HITS_TO_BECOME_HOT: u32 = 3;

#[derive(Debug)]
pub struct Midpoint {
    warm: List,
    hot: List,
    /// The policy's clock: it counts hits.
    now: u64,
    warm_min: usize,
    age_max: u64,
    ghosts: Ghosts,
    ghosts_max: usize,
    ghost_hits: u64,
}

impl Default for Midpoint {
    fn default() -> Midpoint {
        Midpoint {
            warm: List::new(1),
            hot: List::new(2),
            now: 0,
            warm_min: usize::MAX,
            age_max: u64::MAX,
            ghosts: Ghosts::default(),
            ghosts_max: 0,
            ghost_hits: 0,
        }
    }
}

impl Midpoint {
    pub fn hot(&self) -> usize {
        self.hot.len()
    }

    fn list_of(&mut self, frames: &Frames, frame: FrameNo) -> &mut List {
        if self.hot.contains(frames, frame) { &mut self.hot } else { &mut self.warm }
    }

    /// Files the frame as most recently used; it is in no list.
    fn file(&mut self, frames: &Frames, frame: FrameNo, was_hot: bool) {
        let link = frames.link(frame);
        let hits_left = link.hits_left.load(Relaxed).saturating_sub(1);
        link.hits_left.store(hits_left, Relaxed);
        link.last_hit.store(self.now, Relaxed);
        self.now += 1;
        if was_hot || hits_left == 0 && self.warm.len() >= self.warm_min {
            self.hot.push_back(frames, frame);
        } else {
            self.warm.push_back(frames, frame);
        }
        self.age(frames);
    }

    /// The least recent hot page goes back to the start of warm if it has rested too long.
    fn age(&mut self, frames: &Frames) {
        let Some(oldest) = self.hot.front() else { return };
        if self.now - frames.link(oldest).last_hit.load(Relaxed) > self.age_max {
            self.hot.remove(frames, oldest);
            self.warm.push_front(frames, oldest);
        }
    }
}

impl Policy for Midpoint {
    fn insert(&mut self, frames: &Frames, frame: FrameNo) {
        let age = self.ghosts.recall(Hash::of(frames.header(frame).page_id()));
        self.ghost_hits += u64::from(age.is_some_and(|age| age <= self.ghosts_max as u64));
        frames.link(frame).hits_left.store(HITS_TO_BECOME_HOT, Relaxed);
        self.file(frames, frame, false);
    }

    fn hit(&mut self, frames: &Frames, frame: FrameNo) {
        let was_hot = self.hot.contains(frames, frame);
        self.remove(frames, frame);
        self.file(frames, frame, was_hot);
    }

    fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        self.list_of(frames, frame).remove(frames, frame);
    }

    fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo) {
        let (from, to) = (frames.link(old), frames.link(new));
        to.hits_left.store(from.hits_left.load(Relaxed), Relaxed);
        to.last_hit.store(from.last_hit.load(Relaxed), Relaxed);
        self.list_of(frames, old).substitute(frames, old, new);
    }

    fn evict(&mut self, frames: &Frames, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
        // Skipped pages stay where they are: being latched or dirty says nothing about their use. Hot ones
        // are proposed only when no warm one could be taken.
        for list in [&mut self.warm, &mut self.hot] {
            let mut next = list.front();
            while let Some(frame) = next {
                next = list.after(frames, frame);
                match take(frame) {
                    Take::Taken => {
                        list.remove(frames, frame);
                        self.ghosts.remember(Hash::of(frames.header(frame).page_id()), self.ghosts_max);
                        return Some(frame);
                    }
                    Take::Skip => {}
                    Take::Stop => return None,
                }
            }
        }
        None
    }

    fn set_limits(&mut self, frames_expected: usize, limits: Limits) {
        self.warm_min = frames_expected * limits.division_limit as usize / 100 + 1;
        self.age_max = frames_expected as u64 * u64::from(limits.age_threshold) / 100;
    }

    fn warm(&self) -> usize {
        self.warm.len()
    }

    fn set_ghosts(&mut self, least: usize) {
        self.ghosts_max = least;
    }

    fn ghost_hits(&self) -> u64 {
        self.ghost_hits
    }

    fn drain(&mut self, frames: &Frames) -> Vec<FrameNo> {
        let mut all = self.warm.drain(frames);
        all.extend(self.hot.drain(frames));
        all
    }
}
