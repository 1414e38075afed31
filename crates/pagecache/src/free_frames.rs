//! The free frames of a pool. They belong to the pool as a whole, so that no segment evicts while another has
//! room.

use crate::frames::FrameNo;
use base::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use base::sync::{CachePadded, Mutex};

base::latch_class!(pub FreeFramesLatch, "free frames");

#[derive(Debug, Default)]
pub struct FreeFrames {
    inner: CachePadded<Mutex<Inner, FreeFramesLatch>>,
    /// `inner.free.len()`, to look without the mutex.
    len: CachePadded<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Last in, first out: the frame freed last is the warmest in the processor's cache.
    free: Vec<FrameNo>,
    /// Free frames that are not handed out, because the pool has been made smaller.
    withheld: Vec<FrameNo>,
    /// Frames below this number may be handed out.
    frames: usize,
    /// Frames below this number exist: each is in use, free, or withheld.
    frames_made: usize,
    /// The most frames in use at once.
    used_high_water: usize,
}

impl Inner {
    fn used(&self) -> usize {
        self.frames_made - self.free.len() - self.withheld.len()
    }
}

impl FreeFrames {
    pub fn new() -> FreeFrames {
        FreeFrames { inner: CachePadded::default(), len: CachePadded::default() }
    }

    /// How many frames are free, as of a moment ago.
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Frames in use now.
    pub fn used(&self) -> usize {
        self.inner.lock().used()
    }

    /// The most frames in use at once.
    pub fn used_high_water(&self) -> usize {
        self.inner.lock().used_high_water
    }

    pub fn reset_high_water(&self) {
        let mut inner = self.inner.lock();
        inner.used_high_water = inner.used();
    }

    pub fn take(&self) -> Option<FrameNo> {
        if self.len() == 0 {
            return None;
        }
        let mut inner = self.inner.lock();
        let frame = inner.free.pop()?;
        self.len.store(inner.free.len(), Relaxed);
        inner.used_high_water = inner.used_high_water.max(inner.used());
        Some(frame)
    }

    /// Takes a frame back.
    pub fn put(&self, frame: FrameNo) {
        let mut inner = self.inner.lock();
        if frame.index() < inner.frames {
            inner.free.push(frame);
            self.len.store(inner.free.len(), Relaxed);
        } else {
            inner.withheld.push(frame);
        }
    }

    /// From now on frames from 0 to `frames` are handed out, and no others.
    pub fn resize(&self, frames: usize) {
        let mut inner = self.inner.lock();
        let mut idle = std::mem::take(&mut inner.free);
        idle.append(&mut inner.withheld);
        idle.extend((inner.frames_made..frames).map(|number| FrameNo(number as u32)));
        // Descending, so that low numbers are taken first and memory is touched from the start on.
        idle.sort_unstable_by(|a, b| b.cmp(a));
        (inner.withheld, inner.free) = idle.into_iter().partition(|frame| frame.index() >= frames);
        inner.frames = frames;
        inner.frames_made = inner.frames_made.max(frames);
        self.len.store(inner.free.len(), Relaxed);
    }

    /// All frames that were ever in use lie below this number.
    pub fn frames_made(&self) -> usize {
        self.inner.lock().frames_made
    }

    /// True if no frame beyond the end is in use any more.
    pub fn is_settled(&self) -> bool {
        let inner = self.inner.lock();
        inner.withheld.len() == inner.frames_made - inner.frames
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_pool_withholds_what_lies_beyond_its_end_and_a_larger_one_brings_it_back() {
        let pool = FreeFrames::new();
        pool.resize(4);
        let taken: Vec<FrameNo> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, [0, 1, 2, 3].map(FrameNo));
        pool.put(FrameNo(3));
        pool.resize(2);
        assert_eq!(pool.take(), None);
        assert!(!pool.is_settled());
        pool.put(FrameNo(2));
        assert!(pool.is_settled());
        pool.resize(5);
        let taken: Vec<FrameNo> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, [2, 3, 4].map(FrameNo));
        assert_eq!(pool.used_high_water(), 5);
    }
}
