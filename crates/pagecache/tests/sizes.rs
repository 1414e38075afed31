//! All page sizes side by side in one named cache: the smallest there can be, and one that is changed,
//! dropped and made anew while it is used.
#![cfg(not(feature = "shuttle"))]

use base::random::Random;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex, thread};
use base::{FileId, PageId, PageNo};
use latchwork_pagecache::{
    CacheChange, CacheConfig, CachedFile, Caches, Detach, Error, FRAMES_MIN, FileFormat, HitPath, Share,
    WriteBack, cache_bytes_max, size_for_frames,
};
use std::io;
use std::sync::mpsc;
use std::time::Duration;
use vfs::{Create, File, MemVfs, Vfs};

const SIZES: [usize; 7] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
const VALUE_AT: usize = 64;
/// More than [`FRAMES_MIN`].
const PAGES: u32 = 40;
const THREADS: u64 = 4;
/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// A file whose writes stand still while the gate is shut.
#[derive(Debug)]
struct Gated {
    inner: Arc<dyn File>,
    gate: Arc<Gate>,
}

#[derive(Default, Debug)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct GateState {
    is_shut: bool,
    waiting: usize,
    writes: u64,
}

impl Gate {
    fn shut(&self) {
        self.state.lock().is_shut = true;
    }

    fn open(&self) {
        self.state.lock().is_shut = false;
        self.changed.notify_all();
    }

    fn wait_for_a_writer(&self) {
        let mut state = self.state.lock();
        while state.waiting == 0 {
            state = self.changed.wait(state);
        }
    }

    fn writes(&self) -> u64 {
        self.state.lock().writes
    }
}

impl File for Gated {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.gate.state.lock();
        state.writes += 1;
        state.waiting += 1;
        self.gate.changed.notify_all();
        while state.is_shut {
            state = self.gate.changed.wait(state);
        }
        state.waiting -= 1;
        drop(state);
        self.inner.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        Ok(())
    }
}

struct Rig {
    caches: Arc<Caches>,
    files: Vec<Arc<CachedFile>>,
    devices: Vec<Arc<Gated>>,
    gate: Arc<Gate>,
}

/// A cache "hot" of `size` bytes with a file of each page size, [`PAGES`] pages with the value 0 each.
fn rig(hit_path: HitPath, size: usize) -> Rig {
    let config = CacheConfig {
        segments: 4,
        hit_path,
        write_back: WriteBack::AtEvictionOnly,
        ..CacheConfig::new(16 << 20, 16 << 10)
    };
    let caches = Caches::new(config).unwrap();
    caches.set("hot", CacheChange::size(size)).unwrap();
    let hot = caches.get("hot").unwrap();
    let gate = Arc::new(Gate::default());
    let device = || {
        let inner = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
        Arc::new(Gated { inner, gate: gate.clone() })
    };
    let devices: Vec<Arc<Gated>> = SIZES.into_iter().map(|_| device()).collect();
    let file = |(page_size, number): (usize, u32)| {
        let device = devices[number as usize - 1].clone();
        let (id, path, format) = (FileId(number), format!("{number}").into(), FileFormat::plain(page_size));
        let file = caches.attach(&hot, id, path, device, format).unwrap();
        for page in 0..PAGES {
            drop(file.pool().create(PageId::new(id, PageNo(page))).unwrap());
        }
        file
    };
    let files = SIZES.into_iter().zip(1..).map(file).collect();
    Rig { caches, files, devices, gate }
}

/// Does what the engine does with an operation: again, until it gives a result.
fn retry<T>(file: &CachedFile, mut attempt: impl FnMut() -> Result<T, Error>) -> T {
    let mut permit = None;
    loop {
        match attempt() {
            Ok(result) => return result,
            Err(Error::Busy) => {
                drop(permit.take());
                permit = Some(file.pool().wait_for_frames());
            }
            Err(Error::NotAttached { .. }) => {
                drop(permit.take());
                assert!(file.settle());
            }
            Err(error) => panic!("a wrong error: {error}"),
        }
    }
}

/// Adds one to each of two pages, under both latches.
fn add(file: &CachedFile, pages: [u32; 2]) {
    let mut pages = pages;
    pages.sort_unstable();
    let id = |page| PageId::new(file.id(), PageNo(page));
    let last = file.page_size() - 8;
    retry(file, || {
        let pool = file.pool();
        let mut first = pool.write(id(pages[0]))?;
        let mut second = if pages[0] == pages[1] { None } else { Some(pool.write(id(pages[1]))?) };
        for guard in [Some(&mut first), second.as_mut()].into_iter().flatten() {
            let value = guard.page().u64_at(VALUE_AT) + 1;
            guard.page_mut().set_u64(VALUE_AT, value);
            guard.page_mut().set_u64(last, value);
        }
        Ok(())
    });
}

fn value(file: &CachedFile, page: u32) -> u64 {
    let last = file.page_size() - 8;
    retry(file, || {
        let guard = file.pool().read_shared(PageId::new(file.id(), PageNo(page)))?;
        let value = guard.page().u64_at(VALUE_AT);
        assert_eq!(guard.page().u64_at(last), value, "half of a page is old");
        Ok(value)
    })
}

fn sum(files: &[Arc<CachedFile>]) -> u64 {
    files.iter().flat_map(|file| (0..PAGES).map(|page| value(file, page))).sum()
}

/// Threads add to pages of all files until `body` has ended, and a minimum number of times. Gives the sum
/// that the pages must have.
fn under_load(rig: &Rig, rounds_min: u64, body: impl FnOnce()) -> u64 {
    let (done, added) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (done, added) = (&done, &added);
            scope.spawn(move || {
                let mut random = Random::new(1, number);
                let mut rounds = 0;
                while rounds < rounds_min || !done.load(Relaxed) {
                    let file = &rig.files[random.index(SIZES.len())];
                    let pages = [0; 2].map(|_| random.below(PAGES));
                    add(file, pages);
                    added.fetch_add(if pages[0] == pages[1] { 1 } else { 2 }, Relaxed);
                    value(file, random.below(PAGES));
                    rounds += 1;
                }
            });
        }
        body();
        done.store(true, Relaxed);
    });
    added.load(Relaxed)
}

/// Closes all files; what the devices have then.
fn sum_on_devices(rig: &Rig) -> u64 {
    let cache = rig.caches.default_cache();
    let again = |(file, device): (&Arc<CachedFile>, &Arc<Gated>)| {
        file.close(Detach::Flush).unwrap();
        rig.caches.attach(cache, file.id(), "again".into(), device.clone(), file.format()).unwrap()
    };
    sum(&rig.files.iter().zip(&rig.devices).map(again).collect::<Vec<_>>())
}

#[test]
fn the_smallest_cache_holds_pages_of_all_sizes() {
    for hit_path in [HitPath::Locked, HitPath::Optimistic] {
        for size in [1, 4096, 100_000] {
            let rig = rig(hit_path, size);
            let hot = rig.caches.get("hot").unwrap();
            let expected = under_load(&rig, 300, || {
                for _ in 0..50 {
                    hot.budget().balance();
                    thread::yield_now();
                }
            });
            assert_eq!(sum(&rig.files), expected);
            // What they cannot do without, and no more.
            for pool in hot.pools() {
                assert_eq!(Share::bytes(&**pool), size_for_frames(FRAMES_MIN, pool.page_size()));
            }
            assert_eq!(hot.pools().count(), SIZES.len());
            assert_eq!(hot.status().size_bytes, size);
        }
    }
}

#[test]
fn a_cache_with_all_page_sizes_shrinks_grows_and_goes_under_load_and_nothing_is_lost() {
    for hit_path in [HitPath::Locked, HitPath::Optimistic] {
        let rig = rig(hit_path, 4 << 20);
        let set = |change| rig.caches.set("hot", change).unwrap();
        let expected = under_load(&rig, 200, || {
            for round in 0..6 {
                for size in [1 << 20, 8 << 20, 1, 3 << 20] {
                    set(CacheChange::size(size));
                }
                set(CacheChange { segments: Some(round % 3 * 4), ..CacheChange::default() });
                // Dropped: its files go to the default cache. And back, one after the other, while it changes
                // again.
                set(CacheChange::size(0));
                assert!(rig.files.iter().all(|file| file.cache().name() == "default"));
                set(CacheChange::size(2 << 20));
                let hot = rig.caches.get("hot").unwrap();
                for file in &rig.files {
                    file.assign(&hot).unwrap();
                    set(CacheChange::size((2 << 20) + file.page_size() * 20));
                }
            }
        });
        assert_eq!(sum(&rig.files), expected);
        let hot = rig.caches.get("hot").unwrap();
        let bytes: usize = hot.pools().map(|pool| Share::bytes(&**pool)).sum();
        let least: usize = hot.pools().map(|pool| pool.bytes_min()).sum();
        assert!(bytes <= hot.settings().size_bytes.max(least));
        assert_eq!(sum_on_devices(&rig), expected);
    }
}

/// Runs `body` on a thread of its own, which must not wait for anything that this test holds back.
fn without_waiting(what: &str, body: impl FnOnce() + Send + 'static) {
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || {
        body();
        let _ = send.send(());
    });
    assert!(receive.recv_timeout(PATIENCE).is_ok(), "{what} waits for the device");
    thread.join().unwrap();
}

#[test]
fn who_uses_a_cache_that_is_made_smaller_or_dropped_does_not_wait_for_its_dirty_pages() {
    for hit_path in [HitPath::Locked, HitPath::Optimistic] {
        for size in [1, 0] {
            // Room for all of them.
            let rig = rig(hit_path, 8 << 20);
            assert_eq!(rig.gate.writes(), 0, "all pages are dirty");
            rig.caches.set("hot", CacheChange::size(9 << 20)).unwrap();
            assert_eq!(rig.gate.writes(), 0, "a larger cache writes nothing");
            rig.gate.shut();
            let caches = rig.caches.clone();
            let change = thread::spawn(move || caches.set("hot", CacheChange::size(size)));
            rig.gate.wait_for_a_writer();
            let (files, caches) = (rig.files.clone(), rig.caches.clone());
            without_waiting("a reader, a writer or a look at the status", move || {
                for file in &files {
                    // Pages that are being written can be read too. A page that has been evicted, if any was
                    // clean by then, would need a frame.
                    for page in 0..PAGES {
                        let id = PageId::new(file.id(), PageNo(page));
                        if file.pool().try_read_cached(id).is_some() {
                            add(file, [page; 2]);
                        }
                    }
                }
                let hot = caches.get("hot").unwrap();
                assert_eq!(hot.budget().shares().len(), SIZES.len());
                assert!(hot.status().blocks.not_flushed > 0 && !hot.segment_status().is_empty());
                // Another cache is changed, and used, meanwhile.
                caches.set("other", CacheChange::size(1 << 20)).unwrap();
                caches.set("other", CacheChange::size(0)).unwrap();
            });
            let expected = u64::from(PAGES) * SIZES.len() as u64;
            rig.gate.open();
            change.join().unwrap().unwrap();
            assert_eq!(sum(&rig.files), expected, "all pages were there, and were added to");
            assert_eq!(sum_on_devices(&rig), expected);
        }
    }
}

#[test]
fn a_size_beyond_the_machines_memory_is_refused_and_leaves_everything_as_it_was() {
    let rig = rig(HitPath::Optimistic, 1 << 20);
    for name in ["hot", "unborn", "default"] {
        let before = rig.caches.get(name).map(|cache| cache.settings());
        for size in [cache_bytes_max() + 1, usize::MAX] {
            let change = CacheChange { size_bytes: Some(size), segments: Some(7), ..CacheChange::default() };
            assert!(matches!(rig.caches.set(name, change), Err(Error::Config { .. })));
        }
        assert_eq!(rig.caches.get(name).map(|cache| cache.settings()), before);
    }
    // All of it is taken as a size, and costs nothing until it is used.
    rig.caches.set("unborn", CacheChange::size(cache_bytes_max())).unwrap();
    let large = rig.caches.get("unborn").unwrap();
    rig.files.iter().for_each(|file| file.assign(&large).unwrap());
    assert_eq!(sum(&rig.files), 0);
    assert!(Caches::new(CacheConfig::new(usize::MAX, 4096)).is_err());
}
