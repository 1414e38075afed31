//! A segment: the single-threaded core of a part of the pool. The shell in `pool` owns its mutex.

use crate::config::{HitPath, Limits};
use crate::frames::{FrameNo, Frames};
use crate::index::{Geometry, Hash, Index};
use crate::replacement::{Policy, Replacement, Take};
use base::PageId;
use std::collections::HashMap;

/// What every method works on, besides the segment itself.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a> {
    pub frames: &'a Frames,
    pub index: &'a Index,
}

/// The pages of one segment: where they are and which to give up.
#[derive(Debug)]
pub struct Segment {
    /// The geometry that this segment was made for. A caller that comes with another one starts again.
    geometry: Geometry,
    replacement: Replacement,
    /// Pages for which both buckets were full.
    overflow: HashMap<PageId, FrameNo>,
    resident: usize,
    resident_high_water: usize,
    /// Ghost hits of the policies before this one.
    ghost_hits_before: u64,
}

impl Segment {
    pub fn new(geometry: Geometry, hit_path: HitPath) -> Segment {
        Segment {
            geometry,
            replacement: Replacement::for_hit_path(hit_path),
            overflow: HashMap::new(),
            resident: 0,
            resident_high_water: 0,
            ghost_hits_before: 0,
        }
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Pages held or being loaded.
    pub fn resident(&self) -> usize {
        self.resident
    }

    /// The most pages held at once since the segment was made.
    pub fn resident_high_water(&self) -> usize {
        self.resident_high_water
    }

    /// Pages that are candidates for eviction.
    pub fn warm(&self) -> usize {
        self.replacement.warm()
    }

    /// The frame that holds the page or is loading it. Exact, unlike a look without the mutex.
    pub fn find(&self, shared: Shared<'_>, id: PageId) -> Option<FrameNo> {
        let hash = Hash::of(id);
        let holds = |frame: &FrameNo| shared.frames.header(*frame).page_word() == id.to_word();
        (shared.index.candidates(self.geometry, hash).find(holds))
            .or_else(|| shared.index.neighbour_candidates(self.geometry, hash).find(holds))
            .or_else(|| self.overflow.get(&id).copied())
    }

    /// Takes in a frame whose header names a page of this segment that it does not hold yet.
    pub fn install(&mut self, shared: Shared<'_>, frame: FrameNo) {
        self.enter(shared, frame);
        self.replacement.insert(shared.frames, frame);
    }

    fn enter(&mut self, shared: Shared<'_>, frame: FrameNo) {
        let id = shared.frames.header(frame).page_id();
        shared.index.set_shortcut(self.geometry, id, frame);
        if !shared.index.insert(self.geometry, Hash::of(id), frame) {
            self.overflow.insert(id, frame);
        }
        self.resident += 1;
        self.resident_high_water = self.resident_high_water.max(self.resident);
    }

    /// The page was read again by a holder of the mutex.
    pub fn hit(&mut self, shared: Shared<'_>, frame: FrameNo) {
        self.replacement.hit(shared.frames, frame);
    }

    /// Lets a frame go whose page is given up.
    pub fn remove(&mut self, shared: Shared<'_>, frame: FrameNo) {
        self.replacement.remove(shared.frames, frame);
        self.leave(shared, frame);
    }

    fn leave(&mut self, shared: Shared<'_>, frame: FrameNo) {
        let id = shared.frames.header(frame).page_id();
        if !shared.index.remove(self.geometry, Hash::of(id), frame) {
            let known = self.overflow.remove(&id);
            assert_eq!(known, Some(frame), "{id} was not in the index");
        }
        self.resident -= 1;
    }

    /// The page of frame `old` has moved to frame `new`, whose header names it already.
    pub fn substitute(&mut self, shared: Shared<'_>, old: FrameNo, new: FrameNo) {
        self.replacement.substitute(shared.frames, old, new);
        self.leave(shared, old);
        self.enter(shared, new);
    }

    /// Proposes victims to `take` until it takes one; that one is out of the segment.
    pub fn evict(&mut self, shared: Shared<'_>, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
        let frame = self.replacement.evict(shared.frames, take)?;
        self.leave(shared, frame);
        Some(frame)
    }

    pub fn set_limits(&mut self, frames_expected: usize, limits: Limits) {
        self.replacement.set_limits(frames_expected, limits);
    }

    /// See [`Policy::set_ghosts`].
    pub fn set_ghosts(&mut self, least: usize) {
        self.replacement.set_ghosts(least);
    }

    pub fn ghost_hits(&self) -> u64 {
        self.ghost_hits_before + self.replacement.ghost_hits()
    }

    /// Runs another policy from now on; the pages stay, in the order in which they would have gone.
    pub fn set_hit_path(&mut self, shared: Shared<'_>, hit_path: HitPath) {
        let order = self.replacement.drain(shared.frames);
        self.ghost_hits_before = self.ghost_hits();
        self.replacement = Replacement::for_hit_path(hit_path);
        for frame in order {
            self.replacement.insert(shared.frames, frame);
        }
    }

    /// Gives up all frames, the next victim first, for a change of geometry. The index stays as it is,
    /// because its other half is going to be used.
    pub fn dissolve(&mut self, shared: Shared<'_>, geometry: Geometry, hit_path: HitPath) -> Vec<FrameNo> {
        let order = self.replacement.drain(shared.frames);
        *self = Segment { ghost_hits_before: self.ghost_hits(), ..Segment::new(geometry, hit_path) };
        order
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use base::{FileId, PageNo};

    const FRAMES: usize = 64;

    struct Rig {
        frames: Frames,
        index: Index,
        segment: Segment,
    }

    fn id(page: u32) -> PageId {
        PageId::new(FileId(1), PageNo(page))
    }

    impl Rig {
        /// One segment, whose index expects `frames_expected` frames.
        fn new(frames_expected: usize, hit_path: HitPath) -> Rig {
            let geometry = Geometry::new(1, frames_expected, None);
            let mut segment = Segment::new(geometry, hit_path);
            segment.set_limits(frames_expected, Limits::default());
            Rig { frames: Frames::new(FRAMES).unwrap(), index: Index::new(FRAMES).unwrap(), segment }
        }

        fn load(&mut self, frame: u32, page: u32) {
            self.frames.header(FrameNo(frame)).set_page_id(id(page));
            self.segment.install(Shared { frames: &self.frames, index: &self.index }, FrameNo(frame));
        }

        fn find(&self, page: u32) -> Option<FrameNo> {
            self.segment.find(Shared { frames: &self.frames, index: &self.index }, id(page))
        }

        fn evict(&mut self, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
            self.segment.evict(Shared { frames: &self.frames, index: &self.index }, take)
        }
    }

    #[test]
    fn no_hash_is_so_odd_that_a_page_cannot_be_cached() {
        for hit_path in [HitPath::Locked, HitPath::Optimistic] {
            // Two buckets for eight frames: most of these pages overflow.
            let mut rig = Rig::new(8, hit_path);
            (0..60).for_each(|n| rig.load(n, 1000 + n));
            assert_eq!(rig.segment.resident(), 60);
            assert!(rig.segment.overflow.len() >= 60 - 16);
            assert!((0..60).all(|n| rig.find(1000 + n) == Some(FrameNo(n))));
            let mut evicted: Vec<u32> =
                std::iter::from_fn(|| rig.evict(&mut |_| Take::Taken)).map(|frame| frame.0).collect();
            evicted.sort_unstable();
            assert_eq!(evicted, (0..60).collect::<Vec<u32>>());
            assert!(rig.segment.overflow.is_empty() && rig.segment.resident() == 0);
            assert!((0..60).all(|n| rig.find(1000 + n).is_none()));
            assert_eq!(rig.segment.resident_high_water(), 60);
        }
    }

    #[test]
    fn every_page_is_proposed_before_an_eviction_gives_up() {
        for hit_path in [HitPath::Locked, HitPath::Optimistic] {
            let mut rig = Rig::new(32, hit_path);
            (0..32).for_each(|n| rig.load(n, n));
            (0..32).step_by(2).for_each(|n| rig.frames.header(FrameNo(n)).touch());
            let mut proposed = [false; 32];
            let victim = rig.evict(&mut |frame| {
                proposed[frame.index()] = true;
                Take::Skip
            });
            assert_eq!((victim, rig.segment.resident()), (None, 32));
            assert!(proposed.iter().all(|&was| was), "{hit_path:?}: {proposed:?}");
        }
    }

    #[test]
    fn a_stopped_eviction_changes_nothing_and_a_substitute_takes_the_place() {
        for hit_path in [HitPath::Locked, HitPath::Optimistic] {
            let mut rig = Rig::new(16, hit_path);
            (0..16).for_each(|n| rig.load(n, n));
            assert_eq!(rig.evict(&mut |_| Take::Stop), None);
            let mut first = None;
            rig.evict(&mut |frame| {
                first = Some(frame);
                Take::Stop
            });
            let first = first.expect("a proposal");
            let page = rig.frames.header(first).page_id();
            rig.frames.header(FrameNo(40)).set_page_id(page);
            rig.segment.substitute(Shared { frames: &rig.frames, index: &rig.index }, first, FrameNo(40));
            assert_eq!(rig.find(page.page.0), Some(FrameNo(40)));
            assert_eq!(rig.evict(&mut |_| Take::Taken), Some(FrameNo(40)));
        }
    }
}
