//! Cold pages of compressed files, held compressed in memory.
//!
//! A page is open in a frame, or cold in here, or neither, but never both (pagecache R12). It changes from
//! one to the other under the mutex of its segment:
//!
//! - When a clean page leaves its segment it gets a *ticket* here ([`ColdPages::expect`]). The thread that
//!   has its frame then compresses it, under no mutex, and puts it here ([`ColdPages::put`]). It is accepted
//!   only if the ticket is still there.
//! - When a page enters its segment, to be loaded or made, its cold page or its ticket is taken away
//!   ([`ColdPages::take`]).
//!
//! So a cold page equals what the page was when it was last open, and what the device has. A thread that
//! opens the page takes the cold page away before it can change the page. A thread that is late with its
//! compressed page finds that its ticket has gone. The cold pages of a file go when the file does
//! ([`ColdPages::forget_file`]).
//!
//! The oldest cold page makes room for the next. To compress pages that nobody opens again is of no use: when
//! hardly any cold page has been opened lately only a few pages are compressed, to see whether that changes.
//!
//! The cold pages of a pool are a share of its cache's budget: they take bytes that no share has. What more
//! room would be worth is measured by ghosts: pages that were asked for shortly after they had been given up
//! here.

use crate::budget::{Budget, Share};
use crate::error::Error;
use crate::ghosts::Ghosts;
use crate::index::Hash;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, CachePadded, Mutex, OnceLock};
use base::{FileId, PageId};
use std::collections::{HashMap, VecDeque};

mod blocks;

use blocks::{Blocks, Stored};

base::latch_class!(pub ColdPagesLatch, "cold pages");

/// Bytes that a cold page takes besides its blocks: its entries in map and queue.
const OVERHEAD_BYTES: usize = 112;
/// After so many puts the number of opened pages is looked at.
const PERIOD: u32 = 1024;
/// If fewer than one in so many was opened, cold pages are of no use.
const USEFUL: u32 = 16;
/// Then only one page in so many is compressed.
const SAMPLE: u64 = 16;
/// The first guess of a compressed page's length, as a share of the page size: one in so many bytes.
const SHARE_GUESS: usize = 4;

#[derive(Debug)]
pub(crate) struct ColdPages {
    /// For messages.
    name: String,
    inner: CachePadded<Mutex<Inner, ColdPagesLatch>>,
    /// What the cold pages are a share of.
    budget: OnceLock<Arc<Budget>>,
    /// There is room for cold pages, or there was. As long as it is false a miss pays one load for all of
    /// this.
    is_used: AtomicBool,
    opened: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<PageId, Entry>,
    blocks: Blocks,
    /// The cold pages in the order in which they were put. Some have gone since.
    queue: VecDeque<(PageId, Ticket)>,
    used: usize,
    bytes_max: usize,
    next: u64,
    put_lately: u32,
    opened_lately: u32,
    is_sampling: bool,
    /// The bytes of a cold page, overhead included: an average of the latest.
    average: usize,
    ghosts: Ghosts,
    ghost_hits: u64,
}

/// A page that has left its frame and is being compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u64);

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    /// `None` while the page is being compressed.
    stored: Option<Stored>,
}

impl Inner {
    /// Takes a cold page out of the map. The caller gives up its blocks.
    fn unlink(&mut self, id: PageId) -> Option<Stored> {
        let stored = self.entries.remove(&id)?.stored?;
        self.used -= stored.bytes() + OVERHEAD_BYTES;
        Some(stored)
    }

    fn remove(&mut self, id: PageId) {
        if let Some(stored) = self.unlink(id) {
            self.blocks.remove(stored);
        }
    }

    /// Gives memory back to the system.
    fn release(&mut self) {
        let Inner { entries, blocks, bytes_max, .. } = self;
        blocks.shrink_to(*bytes_max, entries.values_mut().filter_map(|entry| entry.stored.as_mut()));
        entries.shrink_to_fit();
    }

    /// Makes room by giving up the oldest cold pages.
    fn shrink_to(&mut self, bytes: usize, ghosts_max: usize) {
        while self.used > bytes {
            let Some((id, ticket)) = self.queue.pop_front() else { return };
            if self.entries.get(&id).is_some_and(|entry| entry.ticket == ticket) {
                self.remove(id);
                self.ghosts.remember(Hash::of(id), ghosts_max);
            }
        }
    }

    /// Forgets entries of the queue whose cold pages have gone, before they are more than the cold pages.
    fn tidy(&mut self) {
        if self.queue.len() > 2 * self.entries.len() + 64 {
            let Inner { queue, entries, .. } = self;
            queue.retain(|(id, ticket)| entries.get(id).is_some_and(|entry| entry.ticket == *ticket));
        }
    }
}

impl ColdPages {
    /// No cold pages, and no room for any. Pages have `page_size` bytes.
    pub fn new(name: &str, page_size: usize) -> ColdPages {
        let inner = Inner { average: page_size / SHARE_GUESS, ..Inner::default() };
        ColdPages {
            name: format!("compressed pages of {page_size} bytes in cache '{name}'"),
            inner: CachePadded(Mutex::of_class(inner)),
            budget: OnceLock::new(),
            is_used: AtomicBool::new(false),
            opened: AtomicU64::new(0),
        }
    }

    /// The cold pages are a share of `budget` from now on.
    pub fn join(self: &Arc<ColdPages>, budget: &Arc<Budget>) {
        if self.budget.set(budget.clone()).is_ok() {
            let share: Arc<dyn Share> = self.clone();
            budget.join(Arc::downgrade(&share));
            // ORDER: as in `resize_to`.
            self.is_used.store(true, Relaxed);
        }
    }

    /// How many pages are remembered when they have gone: as many as a little more room would hold.
    fn ghosts_max(&self, inner: &Inner) -> usize {
        self.budget.get().map_or(0, |budget| budget.ghost_bytes() / inner.average)
    }

    /// A clean page of a compressed file is leaving its frame. `None` if it is not to be compressed. Under
    /// the segment's mutex (pagecache R12).
    pub fn expect(&self, id: PageId) -> Option<Ticket> {
        let mut inner = self.inner.lock();
        inner.next += 1;
        let ticket = Ticket(inner.next);
        if inner.is_sampling && !ticket.0.is_multiple_of(SAMPLE) {
            return None;
        }
        if inner.bytes_max == 0 && !self.take_step(&mut inner) {
            let ghosts_max = self.ghosts_max(&inner);
            inner.ghosts.remember(Hash::of(id), ghosts_max);
            return None;
        }
        inner.entries.insert(id, Entry { ticket, stored: None });
        Some(ticket)
    }

    /// Takes in a compressed page for a ticket. `None` if the page could not be compressed.
    pub fn put(&self, id: PageId, ticket: Ticket, compressed: Option<Vec<u8>>) {
        let mut inner = self.inner.lock();
        if inner.entries.get(&id).is_none_or(|entry| entry.ticket != ticket) {
            return;
        }
        inner.entries.remove(&id);
        inner.put_lately += 1;
        if inner.put_lately == PERIOD {
            inner.is_sampling = inner.opened_lately < PERIOD / USEFUL;
            (inner.put_lately, inner.opened_lately) = (0, 0);
        }
        let Some(compressed) = compressed else { return };
        let bytes = Stored::bytes_for(compressed.len()) + OVERHEAD_BYTES;
        inner.average = (inner.average * 15 + bytes) / 16;
        while inner.used + bytes > inner.bytes_max && self.take_step(&mut inner) {}
        if bytes > inner.bytes_max {
            return;
        }
        let (room, ghosts_max) = (inner.bytes_max - bytes, self.ghosts_max(&inner));
        inner.shrink_to(room, ghosts_max);
        let Some(stored) = inner.blocks.store(&compressed) else { return };
        inner.used += bytes;
        inner.entries.insert(id, Entry { ticket, stored: Some(stored) });
        inner.queue.push_back((id, ticket));
        inner.tidy();
    }

    /// Takes a step more of the budget, if no share has it.
    fn take_step(&self, inner: &mut Inner) -> bool {
        let Some(budget) = self.budget.get() else { return false };
        let step = budget.step().max(1);
        let steps = budget.take(step, 1);
        inner.bytes_max += steps * step;
        steps > 0
    }

    /// The cold page of a page that enters its segment. Under the segment's mutex (pagecache R12).
    pub fn take(&self, id: PageId) -> Option<Vec<u8>> {
        if !self.is_used() {
            return None;
        }
        let mut inner = self.inner.lock();
        let Some(stored) = inner.unlink(id) else {
            let ghosts_max = self.ghosts_max(&inner) as u64;
            let is_recent = inner.ghosts.recall(Hash::of(id)).is_some_and(|age| age <= ghosts_max);
            inner.ghost_hits += u64::from(is_recent);
            return None;
        };
        inner.opened_lately += 1;
        self.opened.fetch_add(1, Relaxed);
        Some(inner.blocks.take(stored))
    }

    /// Forgets the cold pages of a file, and its tickets. None of its pages is in the pool, and none will
    /// come.
    pub fn forget_file(&self, file: FileId) {
        if !self.is_used() {
            return;
        }
        let mut inner = self.inner.lock();
        let pages: Vec<PageId> = inner.entries.keys().copied().filter(|id| id.file == file).collect();
        for page in pages {
            inner.remove(page);
        }
        inner.tidy();
    }

    /// How many bytes cold pages may take from now on, their overhead included.
    pub fn resize_to(&self, bytes_max: usize) {
        let mut inner = self.inner.lock();
        let ghosts_max = self.ghosts_max(&inner);
        match self.budget.get() {
            Some(budget) if bytes_max > inner.bytes_max => {
                inner.bytes_max += budget.take(1, bytes_max - inner.bytes_max);
            }
            Some(budget) => {
                inner.shrink_to(bytes_max, ghosts_max);
                budget.give_back(inner.bytes_max - bytes_max);
                inner.bytes_max = bytes_max;
                inner.release();
            }
            None => {
                inner.shrink_to(bytes_max, ghosts_max);
                inner.bytes_max = bytes_max;
                inner.release();
            }
        }
        inner.tidy();
        if bytes_max > 0 {
            // ORDER: a thread that does not see it yet looks for no cold page, and there is none yet.
            self.is_used.store(true, Relaxed);
        }
    }

    /// Bytes in use, and how many cold pages have been opened so far.
    pub fn status(&self) -> (usize, u64) {
        (self.inner.lock().used, self.opened.load(Relaxed))
    }

    /// False as long as there has never been room for a cold page.
    pub fn is_used(&self) -> bool {
        // ORDER: set before the first cold page is put, under the mutex; see `resize_to`.
        self.is_used.load(Relaxed)
    }
}

impl Share for ColdPages {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn bytes(&self) -> usize {
        self.inner.lock().bytes_max
    }

    fn bytes_min(&self) -> usize {
        0
    }

    fn free_bytes(&self) -> usize {
        let inner = self.inner.lock();
        inner.bytes_max - inner.used
    }

    fn resize(&self, bytes: usize) -> Result<(), Error> {
        self.resize_to(bytes);
        Ok(())
    }

    fn ghost_hits(&self) -> u64 {
        self.inner.lock().ghost_hits
    }

    fn ghost_bytes(&self) -> usize {
        self.budget.get().map_or(1, |budget| budget.ghost_bytes())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use base::PageNo;

    fn id(page: u32) -> PageId {
        PageId::new(FileId(1), PageNo(page))
    }

    fn keep(cold: &ColdPages, page: u32, bytes: usize) {
        if let Some(ticket) = cold.expect(id(page)) {
            cold.put(id(page), ticket, Some(vec![page as u8; bytes]));
        }
    }

    #[test]
    fn the_oldest_page_makes_room_and_a_page_is_taken_once() {
        let cold = ColdPages::new("default", 1024);
        let one = Stored::bytes_for(100) + OVERHEAD_BYTES;
        keep(&cold, 1, 100);
        assert!(cold.take(id(1)).is_none(), "there is no room yet");
        cold.resize_to(3 * one);
        (1..=4).for_each(|page| keep(&cold, page, 100));
        assert!(cold.take(id(1)).is_none());
        assert_eq!(cold.take(id(2)).unwrap()[0], 2);
        assert!(cold.take(id(2)).is_none());
        assert_eq!(cold.status(), (2 * one, 1));
        cold.resize_to(one);
        assert!(cold.take(id(3)).is_none() && cold.take(id(4)).is_some());
        assert_eq!(cold.status().0, 0);
    }

    #[test]
    fn a_page_that_comes_late_is_not_kept() {
        let cold = ColdPages::new("default", 1024);
        cold.resize_to(1 << 20);
        let late = cold.expect(id(1)).unwrap();
        assert!(cold.take(id(1)).is_none(), "the page is open again");
        cold.put(id(1), late, Some(vec![1]));
        assert!(cold.take(id(1)).is_none());
        let late = cold.expect(id(1)).unwrap();
        let newer = cold.expect(id(1)).unwrap();
        cold.put(id(1), newer, Some(vec![2]));
        cold.put(id(1), late, Some(vec![1]));
        assert_eq!(*cold.take(id(1)).unwrap(), [2]);
        let late = cold.expect(id(1)).unwrap();
        cold.forget_file(FileId(1));
        cold.put(id(1), late, Some(vec![3]));
        assert!(cold.take(id(1)).is_none());
        assert!(cold.inner.lock().entries.is_empty());
    }

    #[test]
    fn pages_that_nobody_opens_again_are_hardly_compressed() {
        let cold = ColdPages::new("default", 1024);
        cold.resize_to(1 << 16);
        let wanted = |pages: std::ops::Range<u32>| {
            pages.filter(|page| {
                let ticket = cold.expect(id(*page));
                if let Some(ticket) = ticket {
                    cold.put(id(*page), ticket, Some(vec![0; 50]));
                }
                ticket.is_some()
            })
        };
        assert_eq!(wanted(0..PERIOD).count() as u32, PERIOD);
        let few = wanted(PERIOD..17 * PERIOD).count() as u32;
        assert_eq!(few, PERIOD);
        // Some are opened after all.
        let last = 17 * PERIOD;
        for page in last..last + 20 * PERIOD {
            keep(&cold, page, 50);
            cold.take(id(page));
        }
        assert_eq!(wanted(0..100).count(), 100);
        let inner = cold.inner.lock();
        assert!(inner.queue.len() <= 2 * inner.entries.len() + 64);
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod models {
    use super::*;
    use base::PageNo;
    use base::sync::{Arc, shuttle, thread};

    const PAGE: PageId = PageId { file: FileId(1), page: PageNo(7) };

    /// One page: what it is while it is open, under its segment's mutex, and what the device has.
    struct Model {
        open: Mutex<Option<u8>>,
        device: AtomicU64,
        cold: ColdPages,
    }

    impl Model {
        /// Opens the page if need be, and adds to it. What is changed is written at once.
        fn add(&self, amount: u8) -> u8 {
            let mut open = self.open.lock();
            let value = match *open {
                Some(value) => value,
                None => {
                    let device = self.device.load(Relaxed) as u8;
                    let compressed = self.cold.take(PAGE);
                    assert!(
                        compressed.as_ref().is_none_or(|compressed| **compressed == [device]),
                        "a page from before"
                    );
                    device
                }
            };
            *open = Some(value + amount);
            self.device.store(u64::from(value + amount), Relaxed);
            value
        }

        fn evict(&self) {
            let mut open = self.open.lock();
            let Some(value) = open.take() else { return };
            let ticket = self.cold.expect(PAGE);
            drop(open);
            if let Some(ticket) = ticket {
                self.cold.put(PAGE, ticket, Some(vec![value]));
            }
        }
    }

    #[test]
    fn a_cold_page_is_never_older_than_the_page() {
        let model = || {
            let model = Arc::new(Model {
                open: Mutex::default(),
                device: AtomicU64::default(),
                cold: ColdPages::new("default", 1024),
            });
            model.cold.resize_to(1 << 10);
            let threads = [[1, 0], [0, 1]].map(|amounts| {
                let model = model.clone();
                thread::spawn(move || {
                    for amount in amounts {
                        model.add(amount);
                        model.evict();
                    }
                })
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(model.add(0), 2);
        };
        shuttle::check_random(model, 5_000);
        shuttle::check_pct(model, 5_000, 3);
    }
}
