//! Guards: what a thread holds while it looks at a page or changes it.

use crate::error::Conflict;
use crate::frames::{FrameNo, Header};
use crate::hints::Hints;
use crate::local;
use crate::page::{Page, PageMut};
use crate::pool::Pool;
use crate::state::{Changed, Snapshot};
use base::PageId;
use std::fmt;
use std::marker::PhantomData;

/// A page being read. Optimistically nothing is held, and what was read means nothing before `validate` has
/// succeeded (pagecache R1). Under a shared latch `validate` always succeeds.
pub struct ReadGuard<'c> {
    pool: &'c Pool,
    header: &'c Header,
    page: Page<'c>,
    id: PageId,
    snapshot: Snapshot,
    frame: FrameNo,
    latched: bool,
    /// A latch belongs to the thread that took it.
    not_send: PhantomData<*const ()>,
}

impl<'c> ReadGuard<'c> {
    #[inline(always)]
    pub(crate) fn optimistic(
        pool: &'c Pool,
        id: PageId,
        frame: FrameNo,
        header: &'c Header,
        snapshot: Snapshot,
    ) -> ReadGuard<'c> {
        let page = pool.page(frame);
        ReadGuard { pool, header, page, id, snapshot, frame, latched: false, not_send: PhantomData }
    }

    /// The caller holds a shared latch on the frame, which the guard takes over.
    pub(crate) fn latched(pool: &'c Pool, id: PageId, frame: FrameNo) -> ReadGuard<'c> {
        local::latch_taken();
        let header = pool.header(frame);
        let snapshot = header.state.load().snapshot();
        ReadGuard { latched: true, ..ReadGuard::optimistic(pool, id, frame, header, snapshot) }
    }

    /// The page. Until validated, anything read from it may be torn.
    #[inline(always)]
    pub fn page(&self) -> Page<'_> {
        self.page
    }

    /// What readers have noted about the page. Not validated with the page, and possibly wrong (pagecache
    /// R10).
    #[inline(always)]
    pub fn hints(&self) -> &Hints {
        &self.header.hints
    }

    #[inline(always)]
    pub fn page_id(&self) -> PageId {
        self.id
    }

    #[inline(always)]
    pub fn is_optimistic(&self) -> bool {
        !self.latched
    }

    /// Whether everything read from the page since the guard was made is what the page held then (pagecache
    /// R1). After success the guard may be used on and validated again.
    #[inline(always)]
    pub fn validate(&self) -> Result<(), Conflict> {
        if self.header.state.is_unchanged(self.snapshot) {
            Ok(())
        } else {
            self.pool.count_conflict(self.id);
            Err(Conflict)
        }
    }

    /// Turns the guard into an exclusive one if the page has not changed since the guard was made. Waits only
    /// a moment for other holders of the latch: then they are a conflict.
    #[track_caller]
    pub fn upgrade(self) -> Result<WriteGuard<'c>, Conflict> {
        let (pool, id, frame) = (self.pool, self.id, self.frame);
        if !pool.latch(frame).upgrade(self.snapshot, u64::from(self.latched)) {
            pool.count_conflict(id);
            return Err(Conflict);
        }
        if self.latched {
            // The shared latch became the exclusive one.
            local::latch_dropped();
        }
        std::mem::forget(self);
        Ok(WriteGuard::new(pool, id, frame))
    }

    /// Asks the processor to fetch the cache line of byte `offset` of the page.
    #[inline(always)]
    pub fn prefetch(&self, offset: usize) {
        self.page().prefetch(offset);
    }
}

impl Drop for ReadGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.latched {
            self.pool.unlatch_shared(self.frame);
        }
    }
}

impl fmt::Debug for ReadGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.latched { "latched" } else { "optimistic" };
        write!(f, "ReadGuard({}, {kind})", self.id)
    }
}

/// A page held exclusively. Optimistic readers that looked at it find out whether it was changed.
pub struct WriteGuard<'c> {
    pool: &'c Pool,
    id: PageId,
    frame: FrameNo,
    changed: Changed,
    not_send: PhantomData<*const ()>,
}

impl<'c> WriteGuard<'c> {
    /// The caller holds the exclusive latch of the frame, which the guard takes over.
    pub(crate) fn new(pool: &'c Pool, id: PageId, frame: FrameNo) -> WriteGuard<'c> {
        local::latch_taken();
        WriteGuard { pool, id, frame, changed: Changed::No, not_send: PhantomData }
    }

    #[inline(always)]
    pub fn page(&self) -> Page<'_> {
        self.pool.page(self.frame)
    }

    /// The page, to change it. From here on it is dirty (pagecache R2, R7).
    #[inline]
    pub fn page_mut(&mut self) -> PageMut<'_> {
        if self.changed == Changed::No {
            self.changed = Changed::Yes;
            self.pool.mark_dirty(self.frame);
        }
        PageMut::new(self.pool.words(self.frame))
    }

    #[inline(always)]
    pub fn page_id(&self) -> PageId {
        self.id
    }

    /// Turns the guard into a shared one, with nobody in between.
    pub fn downgrade(mut self) -> ReadGuard<'c> {
        self.pool.latch(self.frame).downgrade(self.changed);
        if std::mem::replace(&mut self.changed, Changed::No) == Changed::Yes {
            self.pool.count_write_request(self.id);
        }
        local::latch_dropped();
        let guard = ReadGuard::latched(self.pool, self.id, self.frame);
        std::mem::forget(self);
        guard
    }

    /// Gives up the page and forgets its changes. A later `read` finds what the device holds.
    pub fn free(self) {
        let (pool, id, frame) = (self.pool, self.id, self.frame);
        local::latch_dropped();
        std::mem::forget(self);
        pool.free_latched(id, frame);
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if self.changed == Changed::Yes {
            if std::thread::panicking() {
                // CRASH: the change may be half done, so it must not be written. What the device holds is
                // still whole.
                self.pool.poison(format!("a thread panicked while it changed {}", self.id));
            }
            self.pool.count_write_request(self.id);
        }
        self.pool.latch(self.frame).unlock_exclusive(self.changed);
        local::latch_dropped();
    }
}

impl fmt::Debug for WriteGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteGuard({}, changed: {:?})", self.id, self.changed)
    }
}
