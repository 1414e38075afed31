//! An intrusive doubly linked list over frames.

use crate::frames::{FrameNo, Frames};
use base::sync::atomic::Ordering::Relaxed;

/// No frame.
const NONE: u32 = u32::MAX;

/// A list of frames, each of which is in at most one list. Links are atomics only because they are
/// shared memory; the segment's mutex orders all access, so that Relaxed is enough.
#[derive(Debug)]
pub struct List {
    /// What `Link::list` says of members.
    id: u32,
    head: u32,
    tail: u32,
    len: usize,
}

impl List {
    /// `id` tells the lists of one policy apart; 0 is for frames in no list.
    pub fn new(id: u32) -> List {
        assert!(id != 0);
        List { id, head: NONE, tail: NONE, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn contains(&self, frames: &Frames, frame: FrameNo) -> bool {
        frames.link(frame).list.load(Relaxed) == self.id
    }

    pub fn front(&self) -> Option<FrameNo> {
        (self.head != NONE).then_some(FrameNo(self.head))
    }

    pub fn back(&self) -> Option<FrameNo> {
        (self.tail != NONE).then_some(FrameNo(self.tail))
    }

    /// The neighbour toward the front.
    pub fn before(&self, frames: &Frames, frame: FrameNo) -> Option<FrameNo> {
        let prev = frames.link(frame).prev.load(Relaxed);
        (prev != NONE).then_some(FrameNo(prev))
    }

    /// The neighbour toward the back.
    pub fn after(&self, frames: &Frames, frame: FrameNo) -> Option<FrameNo> {
        let next = frames.link(frame).next.load(Relaxed);
        (next != NONE).then_some(FrameNo(next))
    }

    pub fn push_back(&mut self, frames: &Frames, frame: FrameNo) {
        self.join(frames, frame, self.tail, NONE);
    }

    pub fn push_front(&mut self, frames: &Frames, frame: FrameNo) {
        self.join(frames, frame, NONE, self.head);
    }

    fn join(&mut self, frames: &Frames, frame: FrameNo, prev: u32, next: u32) {
        let link = frames.link(frame);
        assert_eq!(link.list.load(Relaxed), 0, "{frame} is in a list already");
        link.list.store(self.id, Relaxed);
        link.prev.store(prev, Relaxed);
        link.next.store(next, Relaxed);
        match prev {
            NONE => self.head = frame.0,
            prev => frames.link(FrameNo(prev)).next.store(frame.0, Relaxed),
        }
        match next {
            NONE => self.tail = frame.0,
            next => frames.link(FrameNo(next)).prev.store(frame.0, Relaxed),
        }
        self.len += 1;
    }

    pub fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        let link = frames.link(frame);
        assert_eq!(link.list.load(Relaxed), self.id, "{frame} is in another list");
        link.list.store(0, Relaxed);
        let (prev, next) = (link.prev.load(Relaxed), link.next.load(Relaxed));
        match prev {
            NONE => self.head = next,
            prev => frames.link(FrameNo(prev)).next.store(next, Relaxed),
        }
        match next {
            NONE => self.tail = prev,
            next => frames.link(FrameNo(next)).prev.store(prev, Relaxed),
        }
        self.len -= 1;
    }

    /// Puts `new`, which is in no list, where `old` was.
    pub fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo) {
        let (prev, next) = (self.before(frames, old), self.after(frames, old));
        self.remove(frames, old);
        let word = |frame: Option<FrameNo>| frame.map_or(NONE, |frame| frame.0);
        self.join(frames, new, word(prev), word(next));
    }

    pub fn pop_front(&mut self, frames: &Frames) -> Option<FrameNo> {
        let frame = self.front()?;
        self.remove(frames, frame);
        Some(frame)
    }

    /// Takes all frames out, front first.
    pub fn drain(&mut self, frames: &Frames) -> Vec<FrameNo> {
        std::iter::from_fn(|| self.pop_front(frames)).collect()
    }

    /// The frames, front first.
    #[cfg(test)]
    pub fn to_vec(&self, frames: &Frames) -> Vec<FrameNo> {
        std::iter::successors(self.front(), |&frame| self.after(frames, frame)).collect()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_under_insertion_and_removal_anywhere() {
        let frames = Frames::new(8).unwrap();
        let mut list = List::new(1);
        for n in 0..5 {
            list.push_back(&frames, FrameNo(n));
        }
        list.push_front(&frames, FrameNo(5));
        list.remove(&frames, FrameNo(2));
        list.substitute(&frames, FrameNo(5), FrameNo(7));
        list.substitute(&frames, FrameNo(1), FrameNo(6));
        list.substitute(&frames, FrameNo(4), FrameNo(5));
        assert_eq!(list.to_vec(&frames), [7, 0, 6, 3, 5].map(FrameNo));
        list.substitute(&frames, FrameNo(6), FrameNo(1));
        list.remove(&frames, FrameNo(7));
        list.substitute(&frames, FrameNo(5), FrameNo(4));
        list.remove(&frames, FrameNo(4));
        assert_eq!(list.to_vec(&frames), [FrameNo(0), FrameNo(1), FrameNo(3)]);
        assert_eq!(list.before(&frames, FrameNo(3)), Some(FrameNo(1)));
        assert_eq!(list.pop_front(&frames), Some(FrameNo(0)));
        assert_eq!(list.drain(&frames), [FrameNo(1), FrameNo(3)]);
        assert!(list.is_empty() && list.front().is_none() && list.back().is_none());
    }
}
