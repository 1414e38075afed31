//! Pages that are read before anybody waits for them.
//!
//! Who knows what it will want next says so; threads of the cache's own load it as any miss is loaded. Who is told nothing, or
//! finds its pages here, pays nothing for this.

use crate::find::Located;
use crate::index::{Geometry, Hash};
use crate::local;
use crate::pool::Pool;
use crate::state::Keep;
use base::PageId;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;

/// Pages asked for at once, at most: with four threads and 0.1 ms a read, a millisecond's work.
const WINDOW: usize = 32;
/// And no more than this share of the frames, so that they are still there when they are wanted.
const WINDOW_SHARE: usize = 16;
/// Pages that wait to be read, for all scans together. What does not fit is read by who needs it.
const QUEUE_MAX: usize = 4 * WINDOW;

impl Pool {
    /// How many pages it makes sense to ask for at once; fewer than two: it makes none.
    pub fn read_ahead_window(&self) -> usize {
        if self.device.backend.readers.size() == 0 {
            0
        } else {
            WINDOW.min(self.frames_within_reach() / WINDOW_SHARE)
        }
    }

    /// Asks for pages that will be wanted soon, in this order. Those that are here are left out; gives the number of the others.
    /// What cannot be read, or is no page any more, is not: who wants it then will hear why.
    pub fn read_ahead(self: &Arc<Pool>, pages: impl IntoIterator<Item = PageId>) -> usize {
        if self.device.backend.readers.size() == 0 {
            return 0;
        }
        self.device.read_ahead_calls.fetch_add(1, Relaxed);
        let missing: Vec<PageId> = pages.into_iter().filter(|id| !self.is_cached(*id)).collect();
        let this = Arc::downgrade(self);
        self.device.backend.readers.add(missing.into_iter().map(|id| (this.clone(), id)), QUEUE_MAX)
    }

    /// A look without a latch: right most of the time.
    fn is_cached(&self, id: PageId) -> bool {
        let (hash, index) = (Hash::of(id), &self.hot.index);
        // ORDER: as in `look`.
        let geometry = Geometry(self.hot.geometry.load(Relaxed));
        let mut frames = index.candidates(geometry, hash).chain(index.neighbour_candidates(geometry, hash));
        frames.any(|frame| self.header(frame).page_word() == id.to_word())
    }

    pub(crate) fn load_ahead(&self, id: PageId) {
        if let Ok(Located::Loaded(_)) = self.find_or_load(id, Keep::Nothing) {
            self.device.read_ahead_pages.fetch_add(1, Relaxed);
        }
    }
}

/// How many pages the calling thread has had read from a device, in all caches: more than before, and it has waited.
pub fn loads_of_this_thread() -> u64 {
    local::loads()
}
