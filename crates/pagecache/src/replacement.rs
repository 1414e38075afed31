//! Which page to give up: the replacement policies, each a single-threaded core that a segment owns.
//!
//! A policy knows the frames of its segment through intrusive lists ([`crate::frames::Link`]) and the heat of
//! their headers, which hits set without a latch. `hit` is called by the locked hit path only, under the
//! mutex.

mod clock;
mod list;
mod midpoint;
mod s3fifo;
mod sieve;

pub use clock::Clock;
pub use list::List;
pub use midpoint::Midpoint;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;

use crate::config::{HitPath, Limits};
use crate::frames::{FrameNo, Frames};

/// What the caller says to a proposed victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Take {
    /// The caller has it; the policy forgets the frame.
    Taken,
    /// Latched or dirty: the policy proposes another.
    Skip,
    /// No more proposals are wanted now.
    Stop,
}

/// A replacement policy. All methods run under the mutex of the segment that owns the frames.
pub trait Policy {
    /// A page was loaded into `frame`: its first use.
    fn insert(&mut self, frames: &Frames, frame: FrameNo);
    /// The page was found again, by a reader that holds the mutex.
    fn hit(&mut self, frames: &Frames, frame: FrameNo);
    /// The page is given up for a reason of its own (freed, its file detached).
    fn remove(&mut self, frames: &Frames, frame: FrameNo);
    /// The page has moved from frame `old` to frame `new`; what is known of its use stays.
    fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo);
    /// Proposes victims, best first, until one is taken. Proposes every frame before giving up.
    fn evict(&mut self, frames: &Frames, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo>;
    /// How many frames the segment can expect to have, and the settings.
    fn set_limits(&mut self, frames_expected: usize, limits: Limits);
    /// Frames that are candidates for eviction rather than protected.
    fn warm(&self) -> usize;
    /// Remembers at least so many pages that were given up, and counts how often one of the latest so many is
    /// asked for again.
    fn set_ghosts(&mut self, _least: usize) {}
    /// How often that was. A policy without ghosts says 0; no pool runs one.
    fn ghost_hits(&self) -> u64 {
        0
    }
    /// Gives up all frames, the next victim first, to hand them to another policy.
    fn drain(&mut self, frames: &Frames) -> Vec<FrameNo>;
}

/// The policies that a segment can run.
#[derive(Debug)]
pub enum Replacement {
    Midpoint(Midpoint),
    S3Fifo(S3Fifo),
}

macro_rules! each_policy {
    ($self:ident, $policy:ident => $body:expr) => {
        match $self {
            Replacement::Midpoint($policy) => $body,
            Replacement::S3Fifo($policy) => $body,
        }
    };
}

impl Replacement {
    /// The policy of a hit path.
    pub fn for_hit_path(hit_path: HitPath) -> Replacement {
        match hit_path {
            HitPath::Locked => Replacement::Midpoint(Midpoint::default()),
            HitPath::Optimistic => Replacement::S3Fifo(S3Fifo::default()),
        }
    }
}

impl Policy for Replacement {
    fn insert(&mut self, frames: &Frames, frame: FrameNo) {
        each_policy!(self, policy => policy.insert(frames, frame));
    }

    fn hit(&mut self, frames: &Frames, frame: FrameNo) {
        each_policy!(self, policy => policy.hit(frames, frame));
    }

    fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        each_policy!(self, policy => policy.remove(frames, frame));
    }

    fn substitute(&mut self, frames: &Frames, old: FrameNo, new: FrameNo) {
        each_policy!(self, policy => policy.substitute(frames, old, new));
    }

    fn evict(&mut self, frames: &Frames, take: &mut dyn FnMut(FrameNo) -> Take) -> Option<FrameNo> {
        each_policy!(self, policy => policy.evict(frames, take))
    }

    fn set_limits(&mut self, frames_expected: usize, limits: Limits) {
        each_policy!(self, policy => policy.set_limits(frames_expected, limits));
    }

    fn warm(&self) -> usize {
        each_policy!(self, policy => policy.warm())
    }

    fn set_ghosts(&mut self, least: usize) {
        each_policy!(self, policy => policy.set_ghosts(least));
    }

    fn ghost_hits(&self) -> u64 {
        each_policy!(self, policy => policy.ghost_hits())
    }

    fn drain(&mut self, frames: &Frames) -> Vec<FrameNo> {
        each_policy!(self, policy => policy.drain(frames))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
