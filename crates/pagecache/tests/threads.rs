//! What the cache's own threads do: write side by side, read ahead.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::sync::{Arc, Condvar, Mutex, thread};
use common::{FILE, PAGE_SIZE, VALUE_AGAIN_AT, VALUE_AT, bytes_for, id, value};
use latchwork_pagecache::{CacheConfig, Detach, Error, IoConfig, Pool, WriteBack, loads_of_this_thread};
use std::io;
use std::time::{Duration, Instant};
use vfs::{Create, File, MemVfs, Vfs};

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file whose writes wait until so many are under way at once.
#[derive(Debug)]
struct Gate {
    inner: Arc<dyn File>,
    expected: usize,
    state: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct Inside {
    now: usize,
    most: usize,
}

impl File for Gate {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.now += 1;
        state.most = state.most.max(state.now);
        self.changed.notify_all();
        let end = Instant::now() + PATIENCE;
        while state.most < self.expected {
            assert!(Instant::now() < end, "{} writes at once", state.most);
            state = self.changed.wait_timeout(state, PATIENCE).0;
        }
        drop(state);
        let written = self.inner.write_at(bytes, offset);
        self.state.lock().now -= 1;
        written
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

fn cache(io: IoConfig) -> Arc<Pool> {
    // Nothing is written but what the test writes.
    let io = IoConfig { capacity: 0, capacity_max: 0, ..io };
    Pool::new(CacheConfig { io, segments: 4, ..CacheConfig::new(bytes_for(512), PAGE_SIZE) }).unwrap()
}

fn make(pool: &Pool, pages: u32) {
    for page in 0..pages {
        let mut guard = pool.create(id(page)).unwrap();
        let mut page_mut = guard.page_mut();
        page_mut.set_u64(VALUE_AT, u64::from(page));
        page_mut.set_u64(VALUE_AGAIN_AT, u64::from(page));
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what} did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn as_many_threads_write_a_batch_as_the_settings_say() {
    for (write_threads, at_once) in [(0, 1), (1, 1), (2, 2), (4, 4)] {
        let inner = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
        let state = Mutex::default();
        let gate = Arc::new(Gate { inner, expected: at_once, state, changed: Condvar::new() });
        let pool = cache(IoConfig { write_threads, ..IoConfig::default() });
        pool.attach(FILE, "file".into(), gate.clone()).unwrap();
        make(&pool, 40);
        pool.flush_file(FILE).unwrap();
        assert_eq!(gate.state.lock().most, at_once);
        pool.detach(FILE, Detach::Discard).unwrap();
        pool.attach(FILE, "file".into(), gate).unwrap();
        assert!((0..40).all(|page| value(&pool, page) == u64::from(page)));
    }
}

#[test]
fn pages_asked_for_are_there_when_they_are_wanted() {
    let pool = cache(IoConfig::default());
    let file = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
    pool.attach(FILE, "file".into(), file.clone()).unwrap();
    make(&pool, 40);
    pool.detach(FILE, Detach::Flush).unwrap();
    pool.attach(FILE, "file".into(), file).unwrap();
    assert_eq!(pool.read_ahead_window(), 32);
    assert_eq!(value(&pool, 7), 7);
    let loads = loads_of_this_thread();
    assert_eq!(pool.read_ahead((0..32).map(id)), 31, "one was there");
    wait_until("reading ahead", || pool.status().read_ahead_pages == 31);
    let reads = pool.status().counters.reads;
    assert_eq!(reads, 32);
    assert!((0..32).all(|page| value(&pool, page) == u64::from(page)));
    assert_eq!((pool.status().counters.reads, loads_of_this_thread()), (reads, loads));
    assert_eq!(pool.read_ahead((0..32).map(id)), 0);
    // The next one is a miss, which this thread waits for.
    assert_eq!(value(&pool, 35), 35);
    assert_eq!(loads_of_this_thread(), loads + 1);
}

#[test]
fn what_is_no_page_is_not_read_ahead_and_who_wants_it_hears_why() {
    let pool = cache(IoConfig { read_threads: 1, ..IoConfig::default() });
    let file = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
    file.set_len(10 * PAGE_SIZE as u64).unwrap();
    pool.attach(FILE, "file".into(), file).unwrap();
    let nobodys = base::PageId::new(base::FileId(99), base::PageNo(0));
    make(&pool, 1);
    pool.flush_file(FILE).unwrap();
    assert_eq!(pool.read_ahead([id(3), id(1_000_000), nobodys]), 3);
    // One thread, first come, first served: when this has been read, so have the others.
    make(&pool, 6);
    pool.detach(FILE, Detach::Flush).unwrap();
    let file = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
    pool.attach(FILE, "file".into(), file.clone()).unwrap();
    assert!(matches!(pool.read(id(3)), Err(Error::Io { .. })));
    assert!(matches!(pool.read(nobodys), Err(Error::NotAttached { .. })));
    assert_eq!(pool.status().poisoned, None);
}

#[test]
fn without_threads_nothing_is_asked_for() {
    let config =
        CacheConfig { write_back: WriteBack::AtEvictionOnly, ..CacheConfig::new(bytes_for(512), PAGE_SIZE) };
    for pool in [cache(IoConfig { read_threads: 0, ..IoConfig::default() }), Pool::new(config).unwrap()] {
        let file = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
        pool.attach(FILE, "file".into(), file).unwrap();
        make(&pool, 4);
        assert_eq!(pool.read_ahead_window(), 0);
        assert_eq!(pool.read_ahead([id(900)]), 0);
        assert_eq!(pool.status().read_ahead_calls, 0);
    }
}
