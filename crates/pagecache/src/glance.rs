//! Glances: optimistic reads of many pages at once.
//!
//! A reader of one page has a [`ReadGuard`](crate::ReadGuard), which may hold a latch. A reader that goes
//! through many pages side by side, so that their cache misses overlap, has a glance of each: a plain value,
//! which may be copied and dropped at will. It is worth as much as an optimistic guard: what was read from
//! the page means nothing before [`Glance::is_valid`] has said so (pagecache R1). A glance never blocks: if
//! the frame has changed, there is none.

use crate::frames::{FrameNo, Header};
use crate::hints::Hints;
use crate::index::{Geometry, Hash};
use crate::page::Page;
use crate::pool::Pool;
use crate::state::Snapshot;
use base::region::prefetch_line;
use base::sync::atomic::Ordering::Relaxed;
use base::{PageId, ThreadCounters};

/// What all pages that are looked at together have in common.
#[derive(Clone, Copy, Debug)]
pub struct Glances<'c> {
    pool: &'c Pool,
    counters: ThreadCounters<'c>,
    /// As it was a moment ago, which is good enough to find and to count.
    geometry: Geometry,
}

/// Where a page probably is.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts<'c> {
    header: &'c Header,
    page: Page<'c>,
}

/// A page being read. Until validated, anything read from it may be torn.
#[derive(Clone, Copy, Debug)]
pub struct Glance<'c> {
    header: &'c Header,
    page: Page<'c>,
    snapshot: Snapshot,
}

impl<'c> Glances<'c> {
    #[inline(always)]
    pub(crate) fn new(pool: &'c Pool) -> Glances<'c> {
        // ORDER: every frame that is found is verified (pagecache R3).
        let geometry = Geometry(pool.hot.geometry.load(Relaxed));
        Glances { pool, counters: pool.hot.requests.mine(), geometry }
    }

    /// Where to look for the page. Asks the processor to fetch what [`Glances::look`] reads, and the first
    /// line of the page.
    #[inline(always)]
    pub fn whereabouts(&self, id: PageId) -> Whereabouts<'c> {
        let whereabouts = self.in_frame(self.pool.hot.index.shortcut(self.geometry, id));
        prefetch_line(whereabouts.header);
        whereabouts.page.prefetch(0);
        whereabouts
    }

    #[inline(always)]
    fn in_frame(&self, frame: FrameNo) -> Whereabouts<'c> {
        Whereabouts { header: self.pool.header(frame), page: self.pool.page(frame) }
    }

    /// The page, if it is cached and nobody is changing it.
    #[inline(always)]
    pub fn look(&self, id: PageId, whereabouts: Whereabouts<'c>) -> Option<Glance<'c>> {
        let (Whereabouts { header, page }, word) = match whereabouts.header.readable(id) {
            Some(word) => (whereabouts, word),
            None => {
                let (frame, word) = self.pool.look_in_bucket(self.geometry, id)?;
                (self.in_frame(frame), word)
            }
        };
        self.counters.count(self.geometry.segment_of(Hash::of(id)));
        Some(Glance { header, page, snapshot: word.snapshot() })
    }

    /// As [`Glance::is_valid`]; if it is not, that is counted as a conflict.
    #[inline(always)]
    pub fn validate(&self, glance: &Glance<'c>) -> bool {
        let is_valid = glance.is_valid();
        if !is_valid {
            self.pool.count_conflict(glance.header.page_id());
        }
        is_valid
    }
}

impl<'c> Glance<'c> {
    #[inline(always)]
    pub fn page(&self) -> Page<'c> {
        self.page
    }

    /// See [`ReadGuard::hints`](crate::ReadGuard::hints).
    #[inline(always)]
    pub fn hints(&self) -> &'c Hints {
        &self.header.hints
    }

    /// Whether everything read from the page since the glance is what the page held then. May be asked again
    /// later.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        self.header.state.is_unchanged(self.snapshot)
    }
}
