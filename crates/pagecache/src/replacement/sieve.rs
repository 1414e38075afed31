//! SIEVE (Zhang and others, NSDI 2024): a queue in order of arrival and a hand that sifts it from the oldest
//! to the newest. Used pages lose their mark and keep their place; so new pages are judged soon.

use super::{List, Policy, Take};
use crate::config::Limits;
use crate::frames::{FrameNo, Frames};

#[derive(Debug)]
pub struct Sieve {
    /// Front = oldest.
    queue: List,
    /// The page to be judged next; `None` = start again at the oldest.
    hand: Option<FrameNo>,
}

impl Default for Sieve {
    fn default() -> Sieve {
        Sieve { queue: List::new(1), hand: None }
    }
}

impl Policy for Sieve {
    fn insert(&mut self, frames: &Frames, frame: FrameNo) {
        self.queue.push_back(frames, frame);
    }

    fn hit(&mut self, frames: &Frames, frame: FrameNo) {
        frames.header(frame).touch();
    }

    fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        if self.hand == Some(frame) {
            self.hand = self.queue.after(frames, frame);
        }
        self.queue.remove(frames, frame);
    }

    fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo) {
        if self.hand == Some(old) {
            self.hand = Some(new);
        }
        self.queue.substitute(frames, old, new);
    }

    fn evict(&mut self, frames: &Frames, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
        // Twice round: once to cool every page, once to propose every page.
        for _ in 0..2 * self.queue.len() {
            let frame = self.hand.or(self.queue.front())?;
            let next = self.queue.after(frames, frame);
            if frames.header(frame).is_hot() {
                frames.header(frame).cool();
                self.hand = next;
                continue;
            }
            match take(frame) {
                Take::Taken => {
                    self.hand = next;
                    self.queue.remove(frames, frame);
                    return Some(frame);
                }
                Take::Skip => self.hand = next,
                Take::Stop => return None,
            }
        }
        None
    }

    fn set_limits(&mut self, _frames_expected: usize, _limits: Limits) {}

    fn warm(&self) -> usize {
        self.queue.len()
    }

    fn drain(&mut self, frames: &Frames) -> Vec<FrameNo> {
        self.hand = None;
        self.queue.drain(frames)
    }
}
