//! The page cache: state words, page ids beside versions, the index, marks of dirty pages, parking.

extern crate latchwork_orderings as base;

#[allow(dead_code, reason = "models need a part of each source")]
#[path = "../../../../crates/pagecache/src"]
mod sources {
    pub mod frames;
    pub mod hints;
    pub mod index;
    pub mod page;
    pub mod park;
    pub mod state;
}

/// What the index takes from there.
mod local {
    pub const SEGMENTS_MAX: usize = 1;
}

use base::runner::{Excused, Model};
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use base::sync::{Arc, Implementation, thread};
use base::{FileId, Lsn, PageId, PageNo};
use frames::{DIRTY, DirtyMap, FrameNo, Frames, Header, PageMemory, WRITING};
use index::{Geometry, Hash, Index};
use loom::cell::UnsafeCell;
use sources::park::{ParkingLot, Permits};
use sources::{frames, hints, index, page, state};
use state::{Changed, FrameState, Keep, Wake};
use std::process::ExitCode;

const FRAME: FrameNo = FrameNo(0);

fn id(page: u32) -> PageId {
    PageId::new(FileId(1), PageNo(page))
}

/// A frame, its page of two words that say the same, and what only holders of latches touch.
struct Cache {
    frames: Frames,
    memory: PageMemory,
    latched: UnsafeCell<u64>,
}

// SAFETY: the checker looks at how `latched` is used, and that is what is tried.
unsafe impl Sync for Cache {}
// SAFETY: as above.
unsafe impl Send for Cache {}

impl Cache {
    /// With page 1 in its frame, whose words say 1.
    fn new() -> Arc<Cache> {
        let frames = Frames::new(1).expect("a box");
        let memory = PageMemory::new(1, 64).expect("a box");
        let cache = Cache { frames, memory, latched: UnsafeCell::new(0) };
        cache.header().state.begin_load();
        cache.load(1);
        Arc::new(cache)
    }

    fn header(&self) -> &Header {
        self.frames.header(FRAME)
    }

    fn state(&self) -> &FrameState {
        &self.header().state
    }

    /// The frame is loading.
    fn load(&self, page: u32) {
        self.header().set_page_id(id(page));
        self.write(u64::from(page));
        let _ = self.state().finish_load(Keep::Nothing);
    }

    fn write(&self, value: u64) {
        self.memory.words(FRAME)[..2].iter().for_each(|word| word.store(value, Relaxed));
    }

    fn read(&self) -> [u64; 2] {
        [0, 1].map(|at| self.memory.words(FRAME)[at].load(Relaxed))
    }
}

fn spawn(cache: &Arc<Cache>, run: impl FnOnce(&Cache) + 'static) -> thread::JoinHandle<()> {
    let cache = cache.clone();
    thread::spawn(move || run(&cache))
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("a panic ends the model"));
}

fn a_validated_look_at_a_page_saw_one_version() {
    let cache = Cache::new();
    let writer = spawn(&cache, |cache| {
        if cache.state().lock_exclusive().is_ok() {
            cache.write(2);
            let _ = cache.state().unlock_exclusive(Changed::Yes);
        }
    });
    let word = cache.state().load();
    if word.is_readable() {
        let [first, second] = cache.read();
        if cache.state().is_unchanged(word.snapshot()) {
            assert_eq!(first, second, "a torn page was believed");
        }
    }
    join([writer]);
}

/// What an exclusive holder wrote is what the page says in the version that it published.
fn a_version_has_the_bytes_that_were_published_with_it() {
    let cache = Cache::new();
    let before = cache.state().load().snapshot();
    let writer = spawn(&cache, |cache| {
        cache.state().lock_exclusive().expect("nobody else latches");
        cache.write(2);
        let _ = cache.state().unlock_exclusive(Changed::Yes);
    });
    let word = cache.state().load();
    if word.is_readable() {
        let value = cache.read()[1];
        if cache.state().is_unchanged(word.snapshot()) {
            let expected = if word.snapshot() == before { 1 } else { 2 };
            assert_eq!(value, expected, "bytes of another version");
        }
    }
    join([writer]);
}

fn an_exclusive_holder_is_alone_and_sees_the_holder_before() {
    let cache = Cache::new();
    let writer = |cache: &Cache| {
        if cache.state().lock_exclusive().is_ok() {
            // SAFETY: the checker fails the model if another thread is here.
            cache.latched.with_mut(|value| unsafe { *value += 1 });
            let _ = cache.state().unlock_exclusive(Changed::Yes);
        }
    };
    let reader = |cache: &Cache| {
        if cache.state().lock_shared().is_ok() {
            // SAFETY: as above.
            cache.latched.with(|value| unsafe { *value });
            let _ = cache.state().unlock_shared();
        }
    };
    let threads = [spawn(&cache, writer), spawn(&cache, reader)];
    writer(&cache);
    join(threads);
}

/// One thread gives up the frame of page 1 and loads page 2 there. Readers of either look at the frame.
fn look_for(page: u32) {
    let cache = Cache::new();
    let evictor = spawn(&cache, |cache| {
        assert!(cache.state().begin_evict(), "nobody latches");
        let _ = cache.state().finish_evict();
        cache.state().begin_load();
        cache.load(2);
    });
    if let Some(word) = cache.header().readable(id(page)) {
        let [first, _] = cache.read();
        if cache.state().is_unchanged(word.snapshot()) {
            assert_eq!(first, u64::from(page), "a page was taken for another");
        }
    }
    join([evictor]);
}

fn a_page_that_leaves_its_frame_is_not_taken_for_the_next() {
    look_for(1);
}

fn a_page_that_comes_into_a_frame_is_not_taken_for_the_last() {
    look_for(2);
}

/// As above, from the index on, which is changed meanwhile.
fn the_index_leads_to_no_wrong_page() {
    let cache = Cache::new();
    let geometry = Geometry::new(1, 1, None);
    let index = Arc::new(Index::new(1).expect("boxes"));
    assert!(index.insert(geometry, Hash::of(id(1)), FRAME));
    let evictor = {
        let index = index.clone();
        spawn(&cache, move |cache| {
            assert!(cache.state().begin_evict(), "nobody latches");
            index.remove(geometry, Hash::of(id(1)), FRAME);
            let _ = cache.state().finish_evict();
            cache.state().begin_load();
            index.insert(geometry, Hash::of(id(2)), FRAME);
            cache.load(2);
        })
    };
    for frame in index.candidates(geometry, Hash::of(id(2))) {
        if let Some(word) = cache.frames.header(frame).readable(id(2)) {
            let [first, _] = cache.read();
            if cache.state().is_unchanged(word.snapshot()) {
                assert_eq!(first, 2, "a page was taken for another");
            }
        }
    }
    join([evictor]);
}

struct Parked {
    state: FrameState,
    lot: ParkingLot,
    permits: Permits,
}

impl Parked {
    /// A frame that is held exclusively.
    fn new() -> Arc<Parked> {
        let state = FrameState::default();
        state.begin_load();
        let _ = state.finish_load(Keep::Exclusive);
        Arc::new(Parked { state, lot: ParkingLot::new(Implementation::Direct), permits: Permits::new() })
    }

    fn wait(&self) {
        let is_blocked = |word: state::Word| !word.is_readable();
        while is_blocked(self.state.load()) && !self.permits.is_starving() {
            self.lot.wait(FRAME, &self.state, is_blocked, || self.permits.is_starving());
        }
    }
}

/// A wake-up that is lost is a deadlock, which the checker reports.
fn who_parks_is_woken() {
    let parked = Parked::new();
    let waiter = {
        let parked = parked.clone();
        thread::spawn(move || parked.wait())
    };
    if parked.state.unlock_exclusive(Changed::Yes) == Wake::Waiters {
        parked.lot.wake(FRAME, &parked.state);
    }
    join([waiter]);
}

fn who_parks_hears_that_the_permits_holder_starves() {
    let parked = Parked::new();
    let waiter = {
        let parked = parked.clone();
        thread::spawn(move || parked.wait())
    };
    parked.permits.set_starving(true);
    parked.lot.wake_all();
    join([waiter]);
}

/// A page, the log, and the two maps of pages that are not on the device.
struct Marks {
    header: Header,
    dirty: DirtyMap,
    writing: DirtyMap,
    /// The end of the log.
    end: AtomicU64,
    /// The newest change that the device has.
    device: AtomicU64,
}

impl Marks {
    fn new() -> Arc<Marks> {
        let header = Header::default();
        header.state.begin_load();
        let _ = header.state.finish_load(Keep::Nothing);
        let map = || DirtyMap::new(1).expect("a box");
        let (end, device) = (AtomicU64::new(1), AtomicU64::new(0));
        Arc::new(Marks { header, dirty: map(), writing: map(), end, device })
    }

    /// As `Pool::mark_dirty` under the exclusive latch, and then the log.
    fn change(&self) {
        self.header.state.lock_exclusive().expect("one thread changes or writes");
        if self.header.set_flags(DIRTY) & DIRTY == 0 {
            self.header.note_change(Lsn(self.end.load(Acquire)));
            self.dirty.insert(FRAME);
        }
        // As the log reserves. That its records are found below the end is its own model's claim.
        self.end.fetch_add(1, Release);
        let _ = self.header.state.unlock_exclusive(Changed::Yes);
    }

    /// As `Pool::send` under the shared latch, the write, and `Pool::end_write`.
    fn write_out(&self) {
        self.header.state.lock_shared().expect("one thread changes or writes");
        let newest = self.end.load(Acquire) - 1;
        self.header.set_flags(WRITING);
        self.header.clear_flags(DIRTY);
        self.header.send_changes();
        self.writing.insert(FRAME);
        self.dirty.remove(FRAME);
        let _ = self.header.state.unlock_shared();
        self.device.store(newest, Relaxed);
        self.header.forget_sent();
        self.writing.remove(FRAME);
        self.header.clear_flags(WRITING);
    }

    /// As a checkpoint: the end of the log first, then the oldest change, in the order of the maps.
    fn checkpoint(&self) {
        let end = self.end.load(Acquire);
        let unsaved = self.dirty.iter(1).chain(self.writing.iter(1));
        let oldest = unsaved.filter_map(|_| self.header.oldest_change()).min();
        let needed = oldest.map_or(end, |oldest| oldest.0.min(end));
        // Changes have the numbers from 1 on. What is below `needed` has to be on the device.
        assert!(self.device.load(Relaxed) + 1 >= needed, "a checkpoint passed over a change");
    }
}

fn a_checkpoint_passes_over_no_change_that_is_being_made() {
    let marks = Marks::new();
    let writer = {
        let marks = marks.clone();
        thread::spawn(move || marks.change())
    };
    marks.checkpoint();
    join([writer]);
}

fn a_checkpoint_passes_over_no_change_that_is_being_written() {
    let marks = Marks::new();
    marks.change();
    let writer = {
        let marks = marks.clone();
        thread::spawn(move || marks.write_out())
    };
    marks.checkpoint();
    join([writer]);
}

fn a_checkpoint_passes_over_no_change_that_follows_a_write() {
    let marks = Marks::new();
    marks.change();
    let writer = {
        let marks = marks.clone();
        thread::spawn(move || {
            marks.write_out();
            marks.change();
        })
    };
    marks.checkpoint();
    join([writer]);
}

/// What a thread looks for that is to give up a frame: neither flag is set (pagecache R5).
fn a_frame_seen_clean_has_its_page_on_the_device() {
    let marks = Marks::new();
    marks.change();
    let writer = {
        let marks = marks.clone();
        thread::spawn(move || marks.write_out())
    };
    if marks.header.flags() & (DIRTY | WRITING) == 0 {
        assert_eq!(marks.device.load(Relaxed), 1, "a page was given up before it was written");
    }
    join([writer]);
}

const MODELS: &[Model] = base::models![
    a_validated_look_at_a_page_saw_one_version: None,
    a_version_has_the_bytes_that_were_published_with_it: None,
    an_exclusive_holder_is_alone_and_sees_the_holder_before: Some(2),
    a_page_that_leaves_its_frame_is_not_taken_for_the_next: Some(2),
    a_page_that_comes_into_a_frame_is_not_taken_for_the_last: Some(2),
    the_index_leads_to_no_wrong_page: Some(3),
    who_parks_is_woken: Some(3),
    who_parks_hears_that_the_permits_holder_starves: Some(3),
    a_checkpoint_passes_over_no_change_that_is_being_made: None,
    a_checkpoint_passes_over_no_change_that_is_being_written: Some(3),
    a_checkpoint_passes_over_no_change_that_follows_a_write: Some(2),
    a_frame_seen_clean_has_its_page_on_the_device: None,
];

const LATCHED: &str =
    "who sets or clears a flag holds the page's latch, which publishes what was done before";
const LOGGED: &str = "a change counts for a checkpoint if it is below the end of the log that was read before, and \
                      what was noted of it was published with that end";
const SYMMETRY: &str = "for symmetry: nothing is read behind it that another thread stores";

const EXCUSED: &[Excused] = &[
    ("frames.rs clear_flags: `self.flags.fetch_and(!flags, AcqRel)` -> Release", LATCHED),
    (
        "frames.rs insert: `self.words[frame.index() / 64].fetch_or(1 << (frame.0 % 64), AcqRel);` -> Acquire",
        LOGGED,
    ),
    (
        "frames.rs insert: `self.words[frame.index() / 64].fetch_or(1 << (frame.0 % 64), AcqRel);` -> Release",
        SYMMETRY,
    ),
    (
        "frames.rs remove: `self.words[frame.index() / 64].fetch_and(!(1 << (frame.0 % 64)), AcqRel);` -> Release",
        SYMMETRY,
    ),
    (
        "frames.rs send_changes: `self.sent.store(self.first.load(Relaxed), Release);` -> Relaxed",
        "the store to `first` that follows publishes it",
    ),
    ("frames.rs set_flags: `self.flags.fetch_or(flags, AcqRel)` -> Acquire", LATCHED),
    ("frames.rs set_flags: `self.flags.fetch_or(flags, AcqRel)` -> Release", LATCHED),
    ("park.rs is_starving: `self.starving.load(SeqCst)` -> Relaxed", STRIPE),
    ("park.rs set_starving: `self.starving.swap(starving, SeqCst)` -> Relaxed", STRIPE),
];

const STRIPE: &str = "who sets it takes the stripe's mutex afterwards, under which it is read before parking";

fn main() -> ExitCode {
    base::runner::main(MODELS, &[], EXCUSED)
}
