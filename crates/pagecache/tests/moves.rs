//! Models of files that change their pool while they are in use: see `caches`.
//!
//! `cargo test -p latchwork-pagecache --features shuttle --test moves`
#![cfg(feature = "shuttle")]

use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, Mutex, find_fault, shuttle, thread};
use base::{FileId, Lsn, PageId, PageNo};
use latchwork_pagecache::{
    CacheChange, CacheConfig, CachedFile, Caches, Detach, Error, FileFormat, HitPath, Pool, Share,
    WriteAhead, WriteBack,
};
use std::path::PathBuf;
use vfs::Vfs;

const PAGE_SIZE: usize = 128;
const FILE: FileId = FileId(7);
const LSN_AT: usize = 8;
const VALUE_AT: usize = 32;

/// A log that knows the start and the page of each record.
#[derive(Debug, Default)]
struct Log {
    next: AtomicU64,
    records: Mutex<Vec<(u64, u32)>>,
}

impl Log {
    /// The end of a new record.
    fn append(&self, page: u32) -> u64 {
        let mut records = self.records.lock();
        let start = self.next.fetch_add(8, SeqCst);
        records.push((start, page));
        start + 8
    }
}

impl WriteAhead for Log {
    fn position(&self) -> Lsn {
        Lsn(self.next.load(SeqCst))
    }

    fn make_durable(&self, _lsn: Lsn) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Clone)]
struct Model {
    caches: Arc<Caches>,
    file: Arc<CachedFile>,
    device: Arc<dyn vfs::File>,
    log: Arc<Log>,
    /// The value that the pages are known to have at least.
    known: Arc<AtomicU64>,
}

fn id(page: u32) -> PageId {
    PageId::new(FILE, PageNo(page))
}

impl Model {
    /// Two caches, of which the file is in the default one, with two pages.
    fn new(hit_path: HitPath) -> Model {
        Model::of_size(hit_path, 1)
    }

    fn of_size(hit_path: HitPath, bytes: usize) -> Model {
        let log = Arc::new(Log::default());
        let config = CacheConfig {
            segments: 1,
            hit_path,
            write_back: WriteBack::AtEvictionOnly,
            log: Some(log.clone()),
            ..CacheConfig::new(bytes, PAGE_SIZE)
        };
        let caches = Caches::new(config).unwrap();
        caches.set("hot", CacheChange::size(1)).unwrap();
        let device = vfs::MemVfs::new().open("file".as_ref(), vfs::Create::New).unwrap();
        let file = caches
            .attach(
                caches.default_cache(),
                FILE,
                PathBuf::from("file"),
                device.clone(),
                FileFormat::plain(PAGE_SIZE),
            )
            .unwrap();
        for page in 0..2 {
            drop(file.pool().create(id(page)).unwrap());
        }
        Model { caches, file, device, log, known: Arc::default() }
    }

    /// What the engine does with an operation: again, until it gives a result.
    fn retry<T>(&self, mut attempt: impl FnMut(&CachedFile) -> Result<Option<T>, Error>) -> T {
        let mut permit = None;
        loop {
            match attempt(&self.file) {
                Ok(Some(result)) => return result,
                Ok(None) => thread::yield_now(),
                Err(Error::Busy) => {
                    drop(permit.take());
                    permit = Some(self.file.pool().wait_for_frames());
                }
                Err(Error::NotAttached { .. }) => {
                    drop(permit.take());
                    assert!(self.file.settle(), "an open file was said to be closed");
                }
                Err(error) => panic!("a wrong error: {error}"),
            }
        }
    }

    /// Parent, child, parent again, as a descent does, each from where the file is by then.
    fn look(&self) {
        let known = self.known.load(SeqCst);
        let (first, second) = self.retry(|file| {
            let parent = file.pool().read(id(0))?;
            let first = parent.page().u64_at(VALUE_AT);
            if parent.validate().is_err() {
                return Ok(None);
            }
            let child = match file.pool().read(id(1)) {
                Ok(child) => child,
                // It counts only if the parent still is what it was.
                Err(_) if parent.validate().is_err() => return Ok(None),
                Err(error) => return Err(error),
            };
            if parent.validate().is_err() {
                return Ok(None);
            }
            let second = child.page().u64_at(VALUE_AT);
            Ok(child.validate().is_ok().then_some((first, second)))
        });
        assert!(first >= known && second >= known, "an old page was read: {first}, {second}, not {known}");
        // The child was guarded while the parent was valid, and read later.
        assert!(second >= first, "the child is older than its parent");
    }

    /// Changes both pages under both latches.
    fn add(&self) {
        let value = self.retry(|file| {
            let mut parent = file.pool().write(id(0))?;
            let mut child = file.pool().write(id(1))?;
            let value = parent.page().u64_at(VALUE_AT) + 1;
            assert_eq!(child.page().u64_at(VALUE_AT) + 1, value, "a change was lost");
            for (number, guard) in [(0, &mut parent), (1, &mut child)] {
                guard.page_mut();
                let end = self.log.append(number);
                guard.page_mut().set_u64(VALUE_AT, value);
                guard.page_mut().set_u64(LSN_AT, end);
            }
            Ok(Some(value))
        });
        self.known.fetch_max(value, SeqCst);
    }

    fn assign(&self, name: &str) -> Result<(), Error> {
        self.file.assign(&self.caches.get(name).unwrap())
    }

    fn spawn(&self, body: impl FnOnce(Model) + Send + 'static) -> thread::JoinHandle<()> {
        let model = self.clone();
        thread::spawn(move || body(model))
    }
}

fn explore(iterations: usize, model: impl Fn(HitPath) + Send + Sync + 'static) {
    let model = Arc::new(model);
    for hit_path in [HitPath::Optimistic, HitPath::Locked] {
        let (random, priorities) = (model.clone(), model.clone());
        shuttle::check_random(move || random(hit_path), iterations);
        shuttle::check_pct(move || priorities(hit_path), iterations, 3);
    }
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn readers_and_writers_go_on_while_their_file_moves() {
    explore(1500, |hit_path| {
        let model = Model::new(hit_path);
        let reader = model.spawn(|model| (0..2).for_each(|_| model.look()));
        let writer = model.spawn(|model| (0..2).for_each(|_| model.add()));
        // There and back: whoever still has the first number is right again.
        model.assign("hot").unwrap();
        model.assign("default").unwrap();
        join([reader, writer]);
        assert_eq!(model.known.load(SeqCst), 2);
        model.look();
    });
}

#[test]
fn two_who_move_a_file_and_one_who_drops_the_cache_leave_it_in_one_that_has_a_size() {
    explore(800, |hit_path| {
        let model = Model::new(hit_path);
        let writer = model.spawn(|model| model.add());
        let mover = model.spawn(|model| match model.assign("hot") {
            Ok(()) | Err(Error::Config { .. }) => {}
            Err(error) => panic!("a wrong error: {error}"),
        });
        model.caches.set("hot", CacheChange::size(0)).unwrap();
        join([writer, mover]);
        assert_eq!(model.file.cache().name(), "default");
        model.look();
    });
}

#[test]
fn a_closed_file_is_said_to_be_closed() {
    explore(500, |hit_path| {
        let model = Model::new(hit_path);
        let mover = model.spawn(|model| match model.assign("hot") {
            Ok(()) | Err(Error::NotAttached { .. }) => {}
            Err(error) => panic!("a wrong error: {error}"),
        });
        let reader = model.spawn(|model| {
            while let Err(error) = model.file.pool().read(id(0)).map(drop) {
                assert!(matches!(error, Error::NotAttached { .. }));
                if !model.file.settle() {
                    return;
                }
            }
        });
        model.file.close(Detach::Flush).unwrap();
        join([mover, reader]);
        assert!(!model.file.settle());
    });
}

#[test]
fn a_checkpoint_misses_nothing_of_a_file_that_moves() {
    explore(800, |hit_path| {
        let model = Model::new(hit_path);
        model.caches.flush_all().unwrap();
        let writer = model.spawn(|model| (0..2).for_each(|_| model.add()));
        let mover = model.spawn(|model| {
            model.assign("hot").unwrap();
            model.assign("default").unwrap();
        });
        for _ in 0..2 {
            let end = model.log.position();
            let needed = model.caches.oldest_change().unwrap_or(end).min(end);
            model.caches.sync_files().unwrap();
            let records: Vec<(u64, u32)> = model.log.records.lock().clone();
            for (start, page) in records.into_iter().filter(|(start, _)| *start < needed.0) {
                let mut bytes = [0; PAGE_SIZE];
                model.device.read_at(&mut bytes, u64::from(page) * PAGE_SIZE as u64).unwrap();
                let lsn = u64::from_le_bytes(bytes[LSN_AT..LSN_AT + 8].try_into().unwrap());
                assert!(lsn > start, "the checkpoint forgets a change of page {page}");
            }
        }
        join([writer, mover]);
        model.caches.flush_all().unwrap();
        assert_eq!(model.caches.oldest_change(), None);
    });
}

/// The canary: a file that the new pool takes in before the old one has given it up must be caught.
#[test]
#[should_panic(expected = "an old page was read")]
fn a_file_in_two_pools_at_once_is_caught() {
    find_fault(|| {
        let config = || CacheConfig {
            segments: 1,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(1, PAGE_SIZE)
        };
        let pools = [Pool::new(config()).unwrap(), Pool::new(config()).unwrap()];
        let device = vfs::MemVfs::new().open("file".as_ref(), vfs::Create::New).unwrap();
        pools[0].attach(FILE, PathBuf::from("file"), device.clone()).unwrap();
        drop(pools[0].create(id(0)).unwrap());
        pools[0].flush_file(FILE).unwrap();
        pools[1].attach(FILE, PathBuf::from("file"), device).unwrap();
        pools[1].write(id(0)).unwrap().page_mut().set_u64(VALUE_AT, 1);
        let old = pools[0].clone();
        let reader = thread::spawn(move || {
            let Ok(guard) = old.read(id(0)) else { return };
            let value = guard.page().u64_at(VALUE_AT);
            assert!(guard.validate().is_err() || value == 1, "an old page was read, as it must be");
        });
        pools[0].detach(FILE, Detach::Flush).unwrap();
        reader.join().unwrap();
    });
}

/// Two files whose pages differ in size share the bytes of a cache; a third thread forces a balance again and
/// again.
#[test]
fn pools_take_from_each_other_and_no_page_is_lost() {
    explore(400, |hit_path| {
        let frames = |frames, page_size| latchwork_pagecache::size_for_frames(frames, page_size);
        // Two frames more than both need at least.
        let total = frames(5, PAGE_SIZE) + frames(3, 2 * PAGE_SIZE);
        let config = CacheConfig {
            segments: 1,
            hit_path,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(total, PAGE_SIZE)
        };
        let caches = Caches::new(config).unwrap();
        let files: Vec<Arc<CachedFile>> = [PAGE_SIZE, 2 * PAGE_SIZE]
            .into_iter()
            .zip(1..)
            .map(|(page_size, number)| {
                let device = vfs::MemVfs::new().open("file".as_ref(), vfs::Create::New).unwrap();
                let (id, path, format) =
                    (FileId(number), PathBuf::from("file"), FileFormat::plain(page_size));
                caches.attach(caches.default_cache(), id, path, device, format).unwrap()
            })
            .collect();
        let budget = caches.default_cache().budget().clone();
        let users: Vec<_> = files
            .iter()
            .cloned()
            .map(|file| {
                thread::spawn(move || {
                    for page in 0..5 {
                        let mut guard = file.pool().create(PageId::new(file.id(), PageNo(page))).unwrap();
                        guard.page_mut().set_u64(VALUE_AT, u64::from(page) + 1);
                    }
                    for page in 0..5 {
                        let guard = file.pool().read_shared(PageId::new(file.id(), PageNo(page))).unwrap();
                        assert_eq!(guard.page().u64_at(VALUE_AT), u64::from(page) + 1, "a page is lost");
                    }
                })
            })
            .collect();
        let [small, large] = [files[0].pool(), files[1].pool()];
        Share::resize(&**small, small.bytes_min()).unwrap();
        Share::resize(&**large, large.bytes_min() + frames(1, 2 * PAGE_SIZE)).unwrap();
        Share::resize(&**large, large.bytes_min()).unwrap();
        join(users);
        let sum = small.bytes() + large.bytes();
        assert!(sum <= total, "{sum} bytes of {total}");
        assert_eq!(budget.free(), total - sum, "bytes were lost or made");
    });
}

/// If a page moved to a frame that the thread that gives the file up had already looked at, the page would
/// stay behind and be found when the file comes back.
#[test]
fn a_file_that_leaves_a_pool_while_that_is_made_smaller_leaves_no_page_behind() {
    explore(600, |hit_path| {
        let model = Model::of_size(hit_path, latchwork_pagecache::size_for_frames(8, PAGE_SIZE));
        let pool = model.caches.default_cache().pools().next().unwrap().clone();
        // Another file takes the first frames, and is gone when the pages have come to lie behind it.
        let other = {
            let device = vfs::MemVfs::new().open("other".as_ref(), vfs::Create::New).unwrap();
            let format = FileFormat::plain(PAGE_SIZE);
            let cache = model.caches.default_cache();
            model.caches.attach(cache, FileId(8), PathBuf::from("other"), device, format).unwrap()
        };
        model.assign("hot").unwrap();
        for page in 0..4 {
            drop(pool.create(PageId::new(other.id(), PageNo(page))).unwrap());
        }
        model.assign("default").unwrap();
        model.look();
        other.close(Detach::Discard).unwrap();
        let resizer = thread::spawn(move || {
            Share::resize(&*pool, pool.bytes_min()).unwrap();
        });
        model.add();
        model.assign("hot").unwrap();
        model.add();
        model.assign("default").unwrap();
        model.look();
        join([resizer]);
        model.add();
        model.look();
    });
}

/// A thread that holds a latch gets the room that another pool does not use by way of `Busy`, while that pool
/// is in use again.
#[test]
fn room_is_asked_for_by_who_holds_latches_and_no_page_is_lost() {
    explore(400, |hit_path| {
        let frames = |frames, page_size| latchwork_pagecache::size_for_frames(frames, page_size);
        let total = frames(4, PAGE_SIZE) + frames(6, 2 * PAGE_SIZE);
        let config = CacheConfig {
            segments: 1,
            hit_path,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(total, PAGE_SIZE)
        };
        let caches = Caches::new(config).unwrap();
        let attach = |page_size, number| {
            let device = vfs::MemVfs::new().open("file".as_ref(), vfs::Create::New).unwrap();
            let (id, path, format) = (FileId(number), PathBuf::from("file"), FileFormat::plain(page_size));
            caches.attach(caches.default_cache(), id, path, device, format).unwrap()
        };
        let (small, large, other) =
            (attach(PAGE_SIZE, 1), attach(2 * PAGE_SIZE, 2), attach(2 * PAGE_SIZE, 3));
        for page in 0..6 {
            drop(large.pool().create(PageId::new(large.id(), PageNo(page))).unwrap());
        }
        large.close(Detach::Discard).unwrap();
        let user = thread::spawn(move || {
            for page in 0..4 {
                drop(other.pool().create(PageId::new(other.id(), PageNo(page))).unwrap());
            }
        });
        let id = |page| PageId::new(small.id(), PageNo(page));
        drop(small.pool().create(id(0)).unwrap());
        let (mut next, mut permit) = (1, None);
        while next < 6 {
            let pool = small.pool();
            let mut latch = pool.write(id(0)).unwrap();
            match pool.create(id(next)) {
                Ok(_) => {
                    latch.page_mut().set_u64(VALUE_AT, u64::from(next));
                    next += 1;
                }
                Err(Error::Busy) => {
                    drop(latch);
                    drop(permit.take());
                    permit = Some(pool.wait_for_frames());
                }
                Err(error) => panic!("a wrong error: {error}"),
            }
        }
        drop(permit);
        join([user]);
        let guard = small.pool().read_shared(id(0)).unwrap();
        assert_eq!(guard.page().u64_at(VALUE_AT), 5);
        drop(guard);
        let pools: usize = caches.default_cache().pools().map(|pool| pool.bytes()).sum();
        assert_eq!(caches.default_cache().budget().free(), total.saturating_sub(pools));
    });
}

/// Files come and go while pools are balanced and sizes are set: no byte of the budget is lost or counted
/// twice, and no page is old.
#[test]
fn pools_that_come_into_use_and_go_out_of_it_keep_the_budget_exact() {
    explore(600, |hit_path| {
        let frames = |frames, page_size| latchwork_pagecache::size_for_frames(frames, page_size);
        let total = frames(5, PAGE_SIZE) + frames(3, 2 * PAGE_SIZE);
        let model = Model::of_size(hit_path, total);
        let cache = model.caches.default_cache().clone();
        let mover = model.spawn(|model| {
            model.assign("hot").unwrap();
            model.assign("default").unwrap();
        });
        let caches = model.caches.clone();
        let other = thread::spawn(move || {
            for number in [8, 9] {
                let device = vfs::MemVfs::new().open("other".as_ref(), vfs::Create::New).unwrap();
                let format = FileFormat::plain(2 * PAGE_SIZE);
                let path = PathBuf::from("other");
                let file =
                    caches.attach(caches.default_cache(), FileId(number), path, device, format).unwrap();
                for page in 0..2 {
                    drop(file.pool().create(PageId::new(file.id(), PageNo(page))).unwrap());
                }
                file.close(Detach::Discard).unwrap();
            }
        });
        let balancer = model.spawn(move |model| {
            let budget = model.caches.default_cache().budget();
            budget.fit().unwrap();
            budget.set_total(total - frames(1, PAGE_SIZE)).unwrap();
            for pool in model.caches.default_cache().pools() {
                Share::resize(&**pool, pool.bytes_min()).unwrap();
            }
            budget.set_total(total).unwrap();
        });
        model.add();
        model.look();
        join([mover, other, balancer]);
        model.look();
        let pools: Vec<usize> = cache.pools().map(|pool| pool.bytes()).collect();
        assert_eq!(pools[1..].iter().sum::<usize>(), 0, "a pool without files has frames");
        assert!((frames(3, PAGE_SIZE)..=total).contains(&pools[0]));
        assert_eq!(cache.budget().free(), total - pools[0], "bytes were lost or made");
        model.file.close(Detach::Flush).unwrap();
        assert_eq!(cache.budget().free(), total, "bytes were lost or made");
    });
}
