//! Models: every interleaving that a randomised scheduler finds, of the few steps that matter.
//!
//! `cargo test -p latchwork-pagecache --features shuttle`
//!
//! The scheduler switches threads at every atomic, mutex and condition variable, and reports a deadlock when
//! nobody can go on: that is how a lost wake-up shows. It runs sequentially consistent memory only; the weak
//! orderings are argued beside each in the code. A canary at the end shows that the models can fail.
#![cfg(feature = "shuttle")]

use base::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, Implementation, Mutex, find_fault, shuttle, thread};
use base::{FileId, Lsn, PageId, PageNo};
use latchwork_pagecache::{
    CacheConfig, Detach, Error, FileFormat, HitPath, IoConfig, Pool, Reconfigure, WriteAhead, WriteBack,
    size_for_frames,
};
use std::io;
use std::path::PathBuf;

const PAGE_SIZE: usize = 128;
const FILE: FileId = FileId(7);
const LSN_AT: usize = 8;
const VALUE_AT: usize = 32;
const VALUE_AGAIN_AT: usize = 120;

/// A device of a few pages that counts how often each was read, and knows how far the log is durable.
#[derive(Debug, Default)]
struct Device {
    file: Option<Arc<dyn vfs::File>>,
    /// The content at the latest sync, which is all that a crash is sure to leave.
    synced: Mutex<Vec<u8>>,
    reads: AtomicU64,
    log: Option<Arc<Log>>,
    /// The next sync fails, once, and takes what was to be synced with it.
    fails_to_sync: AtomicBool,
    /// So many writes fail.
    writes_that_fail: AtomicU64,
}

/// A log of records that say which page they changed.
#[derive(Debug, Default)]
struct Log {
    next: AtomicU64,
    durable: AtomicU64,
    /// Start and page of each record.
    records: Mutex<Vec<(u64, u32)>>,
}

impl Log {
    /// The place of a new record.
    fn append(&self, page: u32) -> std::ops::Range<u64> {
        let mut records = self.records.lock();
        let start = self.next.fetch_add(8, SeqCst);
        records.push((start, page));
        start..start + 8
    }
}

impl WriteAhead for Log {
    fn position(&self) -> Lsn {
        Lsn(self.next.load(SeqCst))
    }

    fn make_durable(&self, lsn: Lsn) -> Result<(), String> {
        self.durable.fetch_max(lsn.0, SeqCst);
        Ok(())
    }
}

impl vfs::File for Device {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.reads.fetch_add(1, SeqCst);
        self.inner().read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let failing = self.writes_that_fail.load(SeqCst);
        if failing > 0 {
            self.writes_that_fail.store(failing - 1, SeqCst);
            return Err(io::ErrorKind::Other.into());
        }
        if let Some(log) = &self.log {
            let lsn = u64::from_le_bytes(bytes[LSN_AT..LSN_AT + 8].try_into().unwrap());
            assert!(lsn <= log.durable.load(SeqCst), "a page overtakes its log");
        }
        self.inner().write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        if self.fails_to_sync.swap(false, SeqCst) {
            return Err(io::ErrorKind::Other.into());
        }
        // From the first byte on: of two syncs the later one has what the earlier one had.
        let mut synced = self.synced.lock();
        let mut bytes = vec![0; self.inner().len()? as usize];
        self.inner().read_at(&mut bytes, 0)?;
        *synced = bytes;
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.inner().len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner().set_len(len)
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Device {
    fn new(log: Option<Arc<Log>>) -> Arc<Device> {
        use vfs::Vfs;
        let file = vfs::MemVfs::new().open("file".as_ref(), vfs::Create::New).unwrap();
        Arc::new(Device { file: Some(file), log, ..Device::default() })
    }

    fn inner(&self) -> &Arc<dyn vfs::File> {
        self.file.as_ref().expect("made by `new`")
    }
}

#[derive(Clone)]
struct Model {
    pool: Arc<Pool>,
    device: Arc<Device>,
}

fn id(page: u32) -> PageId {
    PageId::new(FILE, PageNo(page))
}

impl Model {
    /// A cache of three frames (the minimum under the model checker) with pages 0 to `pages` on the device.
    fn new(way: Way, segments: u32, pages: u32) -> Model {
        let config = CacheConfig {
            segments,
            hit_path: way.hit_path,
            latches: way.latches,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(0, PAGE_SIZE)
        };
        Model::with(config, pages)
    }

    fn with(config: CacheConfig, pages: u32) -> Model {
        Model::with_log(config, pages, None)
    }

    fn with_log(mut config: CacheConfig, pages: u32, log: Option<Arc<Log>>) -> Model {
        if let Some(log) = &log {
            config.log = Some(log.clone());
        }
        let model = Model { pool: Pool::new(config).unwrap(), device: Device::new(log) };
        model.attach();
        for page in 0..pages {
            let mut guard = model.pool.create(id(page)).unwrap();
            guard.page_mut().set_u64(VALUE_AT, u64::from(page));
            guard.page_mut().set_u64(VALUE_AGAIN_AT, u64::from(page));
        }
        model.pool.flush_file(FILE).unwrap();
        model
    }

    fn attach(&self) {
        self.pool.attach(FILE, PathBuf::from("file"), self.device.clone()).unwrap();
    }

    fn value(&self, page: u32) -> u64 {
        self.try_value(page).unwrap()
    }

    fn try_value(&self, page: u32) -> Result<u64, Error> {
        let guard = self.pool.read(id(page))?;
        let (first, second) = (guard.page().u64_at(VALUE_AT), guard.page().u64_at(VALUE_AGAIN_AT));
        if guard.validate().is_ok() {
            assert_eq!(first, second, "a torn page passed validation");
            return Ok(first);
        }
        drop(guard);
        let guard = self.pool.read_shared(id(page))?;
        let (first, second) = (guard.page().u64_at(VALUE_AT), guard.page().u64_at(VALUE_AGAIN_AT));
        guard.validate().expect("a latched page does not change");
        assert_eq!(first, second, "a latched page was torn");
        Ok(first)
    }

    fn add(&self, page: u32, amount: u64) {
        let mut guard = self.pool.write(id(page)).unwrap();
        let value = guard.page().u64_at(VALUE_AT) + amount;
        guard.page_mut().set_u64(VALUE_AT, value);
        guard.page_mut().set_u64(VALUE_AGAIN_AT, value);
    }

    /// Runs `body` in a thread of the model.
    fn spawn(&self, body: impl FnOnce(Model) + Send + 'static) -> thread::JoinHandle<()> {
        let model = self.clone();
        thread::spawn(move || body(model))
    }
}

/// Interleavings a model and hit path, times the weight of the model. All models together take about
/// ten seconds of processor time.
const ITERATIONS: usize = 5;

/// The settings of a model.
#[derive(Clone, Copy)]
struct Way {
    hit_path: HitPath,
    latches: Implementation,
}

impl Way {
    const DEFAULT: Way = Way { hit_path: HitPath::Optimistic, latches: Implementation::Direct };
}

fn explore(weight: usize, model: impl Fn(Way) + Send + Sync + 'static) {
    let model = Arc::new(model);
    for hit_path in [HitPath::Optimistic, HitPath::Locked] {
        for latches in [Implementation::Direct, Implementation::WaitArray] {
            let way = Way { hit_path, latches };
            let (random, priorities) = (model.clone(), model.clone());
            shuttle::check_random(move || random(way), ITERATIONS * weight);
            // Priorities with a few changes find failures in which one thread stands still while another runs
            // far.
            shuttle::check_pct(move || priorities(way), ITERATIONS * weight, 3);
        }
    }
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_page_is_as_new_from_its_image_as_from_the_device() {
    explore(300, |way| {
        let config = CacheConfig {
            hit_path: way.hit_path,
            latches: way.latches,
            segments: 2,
            ..CacheConfig::new(0, PAGE_SIZE)
        };
        let config = CacheConfig { write_back: WriteBack::AtEvictionOnly, ..config };
        let model = Model { pool: Pool::new(config).unwrap(), device: Device::new(None) };
        let format = FileFormat { page_size: PAGE_SIZE, is_compressed: true };
        model.pool.resize_cold_pages(1 << 20);
        model.pool.attach_as(FILE, PathBuf::from("file"), model.device.clone(), format).unwrap();
        for page in 0..4 {
            let mut guard = model.pool.create(id(page)).unwrap();
            guard.page_mut().set_u64(VALUE_AT, 0);
            guard.page_mut().set_u64(VALUE_AGAIN_AT, 0);
        }
        model.pool.flush_file(FILE).unwrap();
        // More pages than frames, so that each comes and goes. While one thread compresses a page, another
        // may change the page, write it and compress it again.
        let reader = model.spawn(|model| (1..4).for_each(|page| assert_eq!(model.value(page), 0)));
        let writer = model.spawn(|model| {
            model.add(0, 1);
            (1..4).for_each(|page| assert_eq!(model.value(page), 0));
            assert_eq!(model.value(0), 1);
        });
        join([reader, writer]);
        assert_eq!((0..4).map(|page| model.value(page)).collect::<Vec<u64>>(), [1, 0, 0, 0]);
        assert!(model.pool.cold_page_status().1 > 0, "no page was ever opened from its image");
    });
}

#[test]
fn a_hit_against_an_eviction_gives_the_page_or_a_conflict() {
    explore(400, |way| {
        let model = Model::new(way, 2, 5);
        let reader = model.spawn(|model| {
            for page in [0, 1, 0] {
                assert_eq!(model.value(page), u64::from(page));
            }
        });
        let evictor = model.spawn(|model| {
            for page in [2, 3, 4] {
                assert_eq!(model.value(page), u64::from(page));
            }
        });
        join([reader, evictor]);
    });
}

#[test]
fn a_dirty_page_evicted_under_its_readers_comes_back_changed() {
    explore(300, |way| {
        let model = Model::new(way, 1, 5);
        let writer = model.spawn(|model| {
            model.add(0, 100);
            model.add(0, 100);
        });
        let evictor = model.spawn(|model| {
            for page in [1, 2, 3, 4] {
                assert_eq!(model.value(page), u64::from(page));
            }
        });
        let value = model.value(0);
        assert!([0, 100, 200].contains(&value), "{value}");
        join([writer, evictor]);
        assert_eq!(model.value(0), 200);
    });
}

#[test]
fn a_page_on_its_way_to_the_device_is_not_read_back_too_early() {
    explore(300, |way| {
        let model = Model::new(way, 1, 4);
        model.add(0, 100);
        let flusher = model.spawn(|model| model.pool.flush_file(FILE).unwrap());
        for page in [1, 2, 3] {
            assert_eq!(model.value(page), u64::from(page));
        }
        assert_eq!(model.value(0), 100);
        join([flusher]);
        assert_eq!(model.value(0), 100);
    });
}

#[test]
fn a_frame_used_for_another_page_is_no_longer_the_readers() {
    explore(300, |way| {
        let model = Model::new(way, 1, 4);
        let evictor = model.spawn(|model| {
            for page in [1, 2, 3] {
                assert_eq!(model.value(page), u64::from(page));
            }
        });
        let guard = model.pool.read(id(0)).unwrap();
        let value = guard.page().u64_at(VALUE_AT);
        if guard.validate().is_ok() {
            assert_eq!(value, 0);
        }
        drop(guard);
        join([evictor]);
    });
}

#[test]
fn a_glance_that_is_valid_saw_its_page_whole() {
    explore(300, |way| {
        let model = Model::new(way, 1, 18);
        let writer = model.spawn(|model| model.add(0, 100));
        // Frames pass to other pages. There are sixteen shortcuts, so pages 0 and 16 share one.
        let evictor = model.spawn(|model| {
            for page in [2, 16, 17] {
                assert_eq!(model.value(page), u64::from(page));
            }
        });
        let pages = [0, 1];
        for page in pages {
            model.value(page);
        }
        if let Some(glances) = model.pool.glances() {
            let whereabouts = pages.map(|page| glances.whereabouts(id(page)));
            let looks = [0, 1].map(|at| glances.look(id(pages[at]), whereabouts[at]));
            let values = looks
                .map(|look| look.map(|glance| [VALUE_AT, VALUE_AGAIN_AT].map(|at| glance.page().u64_at(at))));
            for (page, (look, value)) in pages.into_iter().zip(looks.into_iter().zip(values)) {
                let (Some(glance), Some([first, second])) = (look, value) else { continue };
                if glances.validate(&glance) {
                    assert_eq!(first, second, "a torn page passed validation");
                    assert!([u64::from(page), 100].contains(&first), "page {page} has {first}");
                }
            }
        }
        join([writer, evictor]);
        assert_eq!(model.value(0), 100);
    });
}

#[test]
fn a_miss_against_a_miss_is_a_single_flight() {
    explore(500, |way| {
        let model = Model::new(way, 2, 1);
        model.pool.detach(FILE, Detach::Flush).unwrap();
        model.attach();
        let before = model.device.reads.load(SeqCst);
        let threads = [0; 3].map(|page| model.spawn(move |model| assert_eq!(model.value(page), 0)));
        join(threads);
        assert_eq!(model.device.reads.load(SeqCst) - before, 1);
    });
}

#[test]
fn a_write_against_a_read_is_seen_whole_or_not_at_all() {
    explore(400, |way| {
        let model = Model::new(way, 1, 1);
        let writer = model.spawn(|model| model.add(0, 5));
        let upgrader = model.spawn(|model| {
            let guard = model.pool.read(id(0)).unwrap();
            let seen = guard.page().u64_at(VALUE_AT);
            if let Ok(mut guard) = guard.upgrade() {
                assert_eq!(guard.page().u64_at(VALUE_AT), seen, "upgraded over a change");
                guard.page_mut().set_u64(VALUE_AT, seen + 10);
                guard.page_mut().set_u64(VALUE_AGAIN_AT, seen + 10);
            } else {
                model.add(0, 10);
            }
        });
        let value = model.value(0);
        assert!([0, 5, 10, 15].contains(&value), "{value}");
        join([writer, upgrader]);
        assert_eq!(model.value(0), 15);
    });
}

#[test]
fn a_segment_borrows_a_frame_from_its_neighbour() {
    explore(300, |way| {
        // Three frames, four segments: most pages need a frame that another segment has.
        let model = Model::new(way, 4, 6);
        let threads = [[0, 1, 2], [3, 4, 5]].map(|pages| {
            model.spawn(move |model| {
                for page in pages {
                    model.add(page, 10);
                }
            })
        });
        join(threads);
        let sum: u64 = (0..6).map(|page| model.value(page)).sum();
        assert_eq!(sum, 15 + 60);
        assert_eq!(model.pool.status().blocks.used, 3);
    });
}

/// A cache with threads that write and read with it, large enough for batches of three pages.
fn with_crews(way: Way, write_threads: u32, read_threads: u32, pages: u32) -> Model {
    let config = CacheConfig {
        segments: 2,
        hit_path: way.hit_path,
        latches: way.latches,
        io: IoConfig { write_threads, read_threads, ..IoConfig::default() },
        ..CacheConfig::new(size_for_frames(12, PAGE_SIZE), PAGE_SIZE)
    };
    Model::with(config, pages)
}

#[test]
fn pages_of_a_batch_are_written_side_by_side_and_each_arrives() {
    explore(60, |way| {
        let model = with_crews(way, 3, 0, 5);
        (0..5).for_each(|page| model.add(page, 100));
        let other = model.spawn(|model| {
            model.add(4, 1_000);
            model.pool.flush_file(FILE).unwrap();
        });
        model.pool.flush_file(FILE).unwrap();
        join([other]);
        // What the device has.
        model.pool.detach(FILE, Detach::Discard).unwrap();
        model.attach();
        for page in 0..5 {
            let more = if page == 4 { 1_000 } else { 0 };
            assert_eq!(model.value(page), u64::from(page) + 100 + more);
        }
        // The threads end with the cache: if one did not, the model would not.
    });
}

#[test]
fn a_batch_does_not_wait_for_helpers_that_are_being_stopped() {
    explore(100, |way| {
        let model = with_crews(way, 2, 1, 3);
        (0..3).for_each(|page| model.add(page, 100));
        let asking = model.spawn(|model| {
            assert_eq!(model.pool.read_ahead([id(0), id(1)]), 0, "they are there");
        });
        model.pool.flush_file(FILE).unwrap();
        let Model { pool, device } = model;
        // The thread that drops the last reference to the cache ends the cache's threads. It may be one of
        // them itself.
        drop(pool);
        join([asking]);
        assert_eq!(device.reads.load(SeqCst), 0);
    });
}

#[test]
fn a_page_read_ahead_is_the_page_whatever_happens_to_it_meanwhile() {
    explore(80, |way| {
        let model = with_crews(way, 1, 2, 4);
        model.pool.detach(FILE, Detach::Flush).unwrap();
        model.attach();
        let before = model.device.reads.load(SeqCst);
        model.pool.read_ahead([0, 1, 2].map(id));
        let writer = model.spawn(|model| {
            model.add(0, 100);
            model.pool.flush_file(FILE).unwrap();
        });
        let reader = model.spawn(|model| assert_eq!(model.value(1), 1));
        assert!([0, 100].contains(&model.value(0)));
        join([writer, reader]);
        // Nobody has read a page twice.
        assert!(model.device.reads.load(SeqCst) - before <= 3);
        model.pool.read_ahead([id(3)]);
        model.pool.detach(FILE, Detach::Discard).unwrap();
        model.attach();
        assert_eq!(model.value(0), 100);
        assert_eq!(model.value(3), 3);
    });
}

#[test]
fn closing_a_file_waits_for_its_users_and_keeps_their_changes() {
    explore(400, |way| {
        let model = Model::new(way, 2, 2);
        let writer = model.spawn(|model| match model.pool.write(id(0)) {
            Ok(mut guard) => {
                guard.page_mut().set_u64(VALUE_AT, 77);
                guard.page_mut().set_u64(VALUE_AGAIN_AT, 77);
            }
            Err(Error::NotAttached { .. }) => {}
            Err(error) => panic!("{error}"),
        });
        let reader = model.spawn(|model| match model.try_value(1) {
            Ok(value) => assert_eq!(value, 1),
            Err(Error::NotAttached { .. }) => {}
            Err(error) => panic!("{error}"),
        });
        model.pool.detach(FILE, Detach::Flush).unwrap();
        join([reader, writer]);
        assert_eq!(model.pool.status().blocks.used, 0);
        let closed = model.pool.read(id(0));
        assert!(matches!(closed, Err(Error::NotAttached { .. })));
        drop(closed);
        model.attach();
        let value = model.value(0);
        assert!([0, 77].contains(&value), "{value}");
    });
}

#[test]
fn dropping_a_file_leaves_no_frame_behind() {
    explore(400, |way| {
        let model = Model::new(way, 2, 3);
        let users = [0, 1].map(|page| {
            model.spawn(move |model| match model.try_value(page) {
                Ok(value) => assert_eq!(value, u64::from(page)),
                Err(Error::NotAttached { .. }) => {}
                Err(error) => panic!("{error}"),
            })
        });
        model.pool.detach(FILE, Detach::Discard).unwrap();
        join(users);
        let blocks = model.pool.status().blocks;
        assert_eq!((blocks.used, blocks.unused, blocks.not_flushed), (0, 3, 0));
    });
}

#[test]
fn no_wake_up_is_lost_between_those_who_wait_for_one_page() {
    explore(400, |way| {
        let model = Model::new(way, 1, 1);
        let writers = [1, 2, 3].map(|amount| model.spawn(move |model| model.add(0, amount)));
        let reader = model.spawn(|model| {
            let guard = model.pool.read_shared(id(0)).unwrap();
            assert_eq!(guard.page().u64_at(VALUE_AT), guard.page().u64_at(VALUE_AGAIN_AT));
        });
        join(writers.into_iter().chain([reader]));
        assert_eq!(model.value(0), 6);
    });
}

#[test]
fn a_page_is_flushed_whole_while_it_changes() {
    explore(300, |way| {
        let model = Model::new(way, 1, 2);
        model.add(0, 1);
        let writer = model.spawn(|model| model.add(0, 2));
        let flusher = model.spawn(|model| model.pool.flush_file(FILE).unwrap());
        model.pool.flush_file(FILE).unwrap();
        join([writer, flusher]);
        model.pool.detach(FILE, Detach::Flush).unwrap();
        model.attach();
        assert_eq!(model.value(0), 3);
    });
}

#[test]
fn the_permit_lets_one_of_two_who_want_all_frames_go_on() {
    explore(300, |way| {
        let model = Model::new(way, 1, 4);
        let threads = [[0, 1], [2, 3]].map(|pages| {
            model.spawn(move |model| {
                let mut permit = None;
                loop {
                    let first = model.pool.write(id(pages[0]));
                    let second = model.pool.write(id(pages[1]));
                    match (first, second) {
                        (Ok(_first), Ok(_second)) => break,
                        (first, second) => {
                            let busy = |result: &Result<_, Error>| matches!(result, Ok(_) | Err(Error::Busy));
                            assert!(busy(&first) && busy(&second));
                        }
                    }
                    permit = permit.or_else(|| Some(model.pool.wait_for_frames()));
                }
                drop(permit);
            })
        });
        join(threads);
    });
}

/// The one holds page 0 and wants page 1; the other holds page 1 and wants two more, which are all frames.
#[test]
fn who_sleeps_with_a_latch_held_is_woken_for_who_has_the_permit() {
    explore(300, |way| {
        let model = Model::new(way, 1, 4);
        let threads = [&[0, 1][..], &[1, 2, 3]].map(|pages: &'static [u32]| {
            model.spawn(move |model| {
                let mut permit = None;
                loop {
                    let guards: Result<Vec<_>, Error> =
                        pages.iter().map(|page| model.pool.write(id(*page))).collect();
                    match guards {
                        Ok(_) => break,
                        Err(error) => assert!(matches!(error, Error::Busy), "{error}"),
                    }
                    permit = permit.or_else(|| Some(model.pool.wait_for_frames()));
                }
                drop(permit);
            })
        });
        join(threads);
    });
}

#[test]
fn reconfiguration_stops_nobody_and_loses_nothing() {
    explore(200, |way| {
        let model = Model::new(way, 1, 5);
        let writer = model.spawn(|model| {
            model.add(0, 100);
            model.add(1, 100);
        });
        let reader = model.spawn(|model| {
            for page in [2, 3] {
                assert_eq!(model.value(page), u64::from(page));
            }
        });
        let segments = Reconfigure { segments: Some(3), ..Reconfigure::default() };
        model.pool.reconfigure(segments).unwrap();
        let other = if way.hit_path == HitPath::Locked { HitPath::Optimistic } else { HitPath::Locked };
        let hit_path = Reconfigure { hit_path: Some(other), ..Reconfigure::default() };
        model.pool.reconfigure(hit_path).unwrap();
        join([writer, reader]);
        let sum: u64 = (0..5).map(|page| model.value(page)).sum();
        assert_eq!(sum, 10 + 200);
    });
}

#[test]
fn a_page_moves_to_another_frame_under_its_users() {
    explore(200, |way| {
        let frames = |frames| latchwork_pagecache::size_for_frames(frames, PAGE_SIZE);
        let config = CacheConfig {
            segments: 2,
            hit_path: way.hit_path,
            latches: way.latches,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(frames(5), PAGE_SIZE)
        };
        let model = Model::with(config, 5);
        let writer = model.spawn(|model| (0..2).for_each(|page| model.add(page, 100)));
        let reader = model.spawn(|model| {
            for page in [4, 3] {
                assert_eq!(model.value(page), u64::from(page));
            }
        });
        let smaller = Reconfigure { size_bytes: Some(frames(3)), ..Reconfigure::default() };
        model.pool.reconfigure(smaller).unwrap();
        join([writer, reader]);
        assert_eq!(model.pool.status().frames, 3);
        let sum: u64 = (0..5).map(|page| model.value(page)).sum();
        assert_eq!(sum, 10 + 200);
    });
}

/// Writers with a page each, a thread that writes dirty pages, and a checkpoint.
fn check_checkpoint(way: Way, marks_first: bool) {
    let config = CacheConfig {
        segments: 1,
        hit_path: way.hit_path,
        latches: way.latches,
        write_back: WriteBack::AtEvictionOnly,
        ..CacheConfig::new(0, PAGE_SIZE)
    };
    let log = Arc::new(Log::default());
    let model = Model::with_log(config, 4, Some(log.clone()));
    let mut threads = Vec::new();
    for page in 0..2 {
        let log = log.clone();
        threads.push(model.spawn(move |model| {
            for _ in 0..2 {
                let mut guard = model.pool.write(id(page)).unwrap();
                if marks_first {
                    guard.page_mut();
                }
                let place = log.append(page);
                guard.page_mut().set_u64(LSN_AT, place.end);
            }
        }));
    }
    // An eviction writes, and so does this.
    threads.push(model.spawn(|model| model.pool.write_older_than(Lsn(u64::MAX)).unwrap()));
    threads.push(model.spawn(|model| drop(model.pool.read(id(3)).unwrap())));
    for _ in 0..2 {
        let end = log.position();
        let needed = model.pool.oldest_change().unwrap_or(end).min(end);
        model.pool.sync_files().unwrap();
        let records: Vec<(u64, u32)> = log.records.lock().clone();
        for (start, page) in records.into_iter().filter(|(start, _)| *start < needed.0) {
            let synced = model.device.synced.lock();
            let lsn_at = page as usize * PAGE_SIZE + LSN_AT;
            let lsn = u64::from_le_bytes(synced[lsn_at..lsn_at + 8].try_into().unwrap());
            assert!(lsn > start, "the checkpoint forgets a change of page {page} that is not on the device");
        }
    }
    join(threads);
    model.pool.flush_file(FILE).unwrap();
    assert_eq!(model.pool.oldest_change(), None);
}

#[test]
fn a_page_waits_for_its_log_and_a_checkpoint_for_its_pages() {
    explore(200, |way| check_checkpoint(way, true));
}

#[test]
fn a_sync_beside_a_write_leaves_the_next_one_what_it_missed() {
    explore(40, |way| {
        let config = CacheConfig {
            hit_path: way.hit_path,
            latches: way.latches,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(0, PAGE_SIZE)
        };
        let model = Model::with_log(config, 1, Some(Arc::default()));
        model.add(0, 5);
        let writer = model.spawn(|model| model.pool.write_older_than(Lsn(u64::MAX)).unwrap());
        model.pool.sync_files().unwrap();
        join([writer]);
        model.pool.sync_files().unwrap();
        let synced = model.device.synced.lock();
        assert_eq!(synced[VALUE_AT], 5, "written, and left to its fate");
    });
}

#[test]
fn a_page_whose_write_fails_and_is_tried_again_is_not_forgotten_by_a_checkpoint() {
    explore(60, |way| {
        let config = CacheConfig {
            hit_path: way.hit_path,
            latches: way.latches,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(0, PAGE_SIZE)
        };
        let log = Arc::new(Log::default());
        let model = Model::with_log(config, 1, Some(log.clone()));
        let mut guard = model.pool.write(id(0)).unwrap();
        guard.page_mut();
        let place = log.append(0);
        guard.page_mut().set_u64(LSN_AT, place.end);
        drop(guard);
        model.device.writes_that_fail.store(2, SeqCst);
        let writer = model.spawn(|model| {
            for _ in 0..2 {
                assert!(model.pool.write_older_than(Lsn(u64::MAX)).is_err());
            }
        });
        // It is on the device at no moment.
        assert_eq!(model.pool.oldest_change(), Some(Lsn(place.start)), "the change is forgotten");
        join([writer]);
        assert_eq!(model.pool.oldest_change(), Some(Lsn(place.start)));
        model.pool.flush_file(FILE).unwrap();
        assert_eq!(model.pool.oldest_change(), None);
    });
}

#[test]
fn a_sync_that_failed_is_nobodys_success() {
    explore(40, |way| {
        let config = CacheConfig {
            hit_path: way.hit_path,
            latches: way.latches,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(0, PAGE_SIZE)
        };
        let model = Model::with_log(config, 1, Some(Arc::default()));
        model.add(0, 5);
        model.pool.write_older_than(Lsn(u64::MAX)).unwrap();
        model.device.fails_to_sync.store(true, SeqCst);
        // The operating system reports a failure to one of them. The others get a second sync of nothing.
        let flushes = model.spawn(|model| {
            let flushed = model.pool.flush_file(FILE);
            assert!(flushed.is_err(), "a flush believes that it has synced");
        });
        let another = model.spawn(|model| {
            let synced = model.pool.sync_files();
            assert!(synced.is_err(), "a checkpoint believes that all is synced");
        });
        assert!(model.pool.sync_files().is_err(), "a checkpoint believes that all is synced");
        join([flushes, another]);
        assert_ne!(model.device.synced.lock()[VALUE_AT], 5);
    });
}

/// The canary for checkpoints: a page that is marked dirty only after its change was logged must be missed by
/// one.
#[test]
#[should_panic(expected = "the checkpoint forgets")]
fn a_page_that_is_marked_after_its_record_is_caught() {
    find_fault(|| check_checkpoint(Way::DEFAULT, false));
}

/// The canary: a reader that skips validation must be caught.
#[test]
#[should_panic(expected = "torn")]
fn a_reader_that_skips_validation_is_caught() {
    find_fault(|| {
        let model = Model::new(Way::DEFAULT, 1, 1);
        let writer = model.spawn(|model| model.add(0, 5));
        let guard = model.pool.read(id(0)).unwrap();
        let (first, second) = (guard.page().u64_at(VALUE_AT), guard.page().u64_at(VALUE_AGAIN_AT));
        assert_eq!(first, second, "torn, as it must be");
        drop(guard);
        join([writer]);
    });
}

/// The canary for single flights: two device reads must be caught.
#[test]
#[should_panic(expected = "two flights")]
fn a_miss_that_bypasses_the_cache_is_caught() {
    find_fault(|| {
        use vfs::File;
        let model = Model::new(Way::DEFAULT, 1, 1);
        model.pool.detach(FILE, Detach::Flush).unwrap();
        model.attach();
        let other = model.spawn(|model| {
            let mut bytes = [0; PAGE_SIZE];
            model.device.read_at(&mut bytes, 0).unwrap();
        });
        model.value(0);
        join([other]);
        assert!(model.device.reads.load(SeqCst) <= 1, "two flights, as it must be");
    });
}
