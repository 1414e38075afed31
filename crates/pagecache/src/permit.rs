//! The frame permit: how the smallest cache makes progress.
//!
//! This is pagecache R8. A thread that holds latches must not wait for a frame, because a thread that could
//! free one may be waiting for those latches. It gets `Busy`, drops all its latches, takes the permit and
//! tries again. There is one permit. Its holder may wait while it holds latches, because all others back out:
//! a thread that finds no frame while it holds latches gets `Busy`, and a thread that waits for a latch while
//! it holds others gets `Busy` as soon as the permit's holder starves.
//!
//! Room that another share of the cache's budget does not use is got in the same way: it is asked for between
//! the first attempt and the one with the permit, while the thread holds nothing.

use crate::local;
use crate::pool::Pool;
use std::marker::PhantomData;

/// The right to wait for frames while holding latches. One at a time for each cache.
#[derive(Debug)]
pub struct FramePermit<'c> {
    pool: &'c Pool,
    /// The permit belongs to the thread that took it.
    not_send: PhantomData<*const ()>,
}

impl Pool {
    /// Waits for the frame permit. The caller holds no latches and got [`crate::Error::Busy`]; with the
    /// permit in hand the same operation succeeds as soon as the others have backed out. A thread takes one
    /// permit at a time.
    pub fn wait_for_frames(&self) -> FramePermit<'_> {
        assert!(!local::has_permit(self.id()), "the thread has the permit already");
        if self.growth.free.len() == 0 {
            self.reclaim_room();
        }
        let mut out = self.waiting.permits.out.lock();
        while *out {
            out = self.waiting.permits.returned.wait(out);
        }
        *out = true;
        local::set_permit(self.id());
        FramePermit { pool: self, not_send: PhantomData }
    }
}

impl Drop for FramePermit<'_> {
    fn drop(&mut self) {
        self.pool.waiting.permits.set_starving(false);
        local::set_permit(0);
        *self.pool.waiting.permits.out.lock() = false;
        self.pool.waiting.permits.returned.notify_one();
    }
}
