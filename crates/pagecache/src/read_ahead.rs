//! Pages that are read before anybody waits for them.
//!
//! A reader that knows which pages it will want next asks for them, and the cache's own threads load them as
//! any miss is loaded. A reader that does not ask, or finds its pages in memory, pays nothing for this.

use crate::backend::LoadAhead;
use crate::find::Located;
use crate::index::{Geometry, Hash};
use crate::local;
use crate::pool::Pool;
use crate::state::Keep;
use base::PageId;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::{Arc, Weak};

/// The most pages asked for at once: with four threads and 0.1 ms a read, about a millisecond's work.
const WINDOW: usize = 32;
/// At most one frame in so many is asked for, so that the pages are still there when they are wanted.
const WINDOW_SHARE: usize = 16;
/// The most pages that wait to be read, for all scans together. A page that does not fit is read by the
/// thread that needs it.
const QUEUE_MAX: usize = 4 * WINDOW;

impl Pool {
    /// How many pages it makes sense to ask for at once. Below two it makes no sense.
    pub fn read_ahead_window(&self) -> usize {
        if self.device.backend.readers.size() == 0 {
            0
        } else {
            WINDOW.min(self.frames_within_reach() / WINDOW_SHARE)
        }
    }

    /// Asks for pages that will be wanted soon, in this order, and gives how many have been queued. Pages
    /// that are in memory are left out. A page that cannot be read is skipped: the thread that wants it then
    /// gets the error.
    pub fn read_ahead(self: &Arc<Pool>, pages: impl IntoIterator<Item = PageId>) -> usize {
        if self.device.backend.readers.size() == 0 {
            return 0;
        }
        self.device.read_ahead_calls.fetch_add(1, Relaxed);
        let missing: Vec<PageId> = pages.into_iter().filter(|id| !self.is_cached(*id)).collect();
        let this: Weak<dyn LoadAhead> = Arc::<Pool>::downgrade(self);
        self.device.backend.readers.add(missing.into_iter().map(|id| (this.clone(), id)), QUEUE_MAX)
    }

    /// A look without a latch, which is right most of the time.
    fn is_cached(&self, id: PageId) -> bool {
        let (hash, index) = (Hash::of(id), &self.hot.index);
        // ORDER: as in `look`.
        let geometry = Geometry(self.hot.geometry.load(Relaxed));
        let mut frames = index.candidates(geometry, hash).chain(index.neighbour_candidates(geometry, hash));
        frames.any(|frame| self.header(frame).page_word() == id.to_word())
    }
}

impl LoadAhead for Pool {
    fn load_ahead(&self, id: PageId) {
        if let Ok(Located::Loaded(_)) = self.find_or_load(id, Keep::Nothing) {
            self.device.read_ahead_pages.fetch_add(1, Relaxed);
        }
    }
}

/// How many pages have been read from devices for the calling thread, in all caches. If the number has grown
/// the thread has waited for a device.
pub fn loads_of_this_thread() -> u64 {
    local::loads()
}
