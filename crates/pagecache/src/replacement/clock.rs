//! CLOCK (Corbató, 1968), as a queue: a page found used goes round once more.

use super::{List, Policy, Take};
use crate::config::Limits;
use crate::frames::{FrameNo, Frames};

#[derive(Debug)]
pub struct Clock {
    /// Front = under the hand.
    ring: List,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { ring: List::new(1) }
    }
}

impl Policy for Clock {
    fn insert(&mut self, frames: &Frames, frame: FrameNo) {
        self.ring.push_back(frames, frame);
    }

    fn hit(&mut self, frames: &Frames, frame: FrameNo) {
        frames.header(frame).touch();
    }

    fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        self.ring.remove(frames, frame);
    }

    fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo) {
        self.ring.substitute(frames, old, new);
    }

    fn evict(&mut self, frames: &Frames, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
        // Twice round: once to cool every page, once to propose every page.
        for _ in 0..2 * self.ring.len() {
            let frame = self.ring.pop_front(frames)?;
            if frames.header(frame).is_hot() {
                frames.header(frame).cool();
                self.ring.push_back(frames, frame);
                continue;
            }
            match take(frame) {
                Take::Taken => return Some(frame),
                Take::Skip => self.ring.push_back(frames, frame),
                Take::Stop => {
                    self.ring.push_back(frames, frame);
                    return None;
                }
            }
        }
        None
    }

    fn set_limits(&mut self, _frames_expected: usize, _limits: Limits) {}

    fn warm(&self) -> usize {
        self.ring.len()
    }

    fn drain(&mut self, frames: &Frames) -> Vec<FrameNo> {
        self.ring.drain(frames)
    }
}
