//! Models of both implementations: no two threads hold a latch that excludes them, and no thread sleeps for
//! ever.

use super::Implementation::{self, Direct, WaitArray as ByArray};
use super::condvar::RawCondvar;
use super::wait_array::WaitArray;
use super::word::{RawMutex, RawRwLatch};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, shuttle, thread};

fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), 20_000);
    shuttle::check_pct(model, 20_000, 3);
}

/// Adds one in two steps, so that an addition is lost if a second thread is let in.
fn add_one(count: &AtomicU64) {
    let now = count.load(Relaxed);
    thread::yield_now();
    count.store(now + 1, Relaxed);
}

fn mutex(implementation: Implementation) {
    let latch = Arc::new((RawMutex::new(implementation), WaitArray::new(), AtomicU64::new(0)));
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let latch = latch.clone();
            thread::spawn(move || {
                let (mutex, array, count) = &*latch;
                for round in 0..2 {
                    if (number + round) % 3 == 0 {
                        while !mutex.try_lock(array) {
                            thread::yield_now();
                        }
                    } else if !mutex.try_fast() {
                        mutex.lock(array);
                    }
                    add_one(count);
                    mutex.unlock(array);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(latch.2.load(Relaxed), 6);
}

#[test]
fn a_mutex_admits_one_at_a_time_and_wakes_who_waits() {
    explore(|| mutex(Direct));
    explore(|| mutex(ByArray));
}

/// Two writers and two readers of two numbers that are always changed together.
fn rw_latch(implementation: Implementation) {
    #[derive(Debug)]
    struct Shared {
        latch: RawRwLatch,
        array: WaitArray,
        numbers: [AtomicU64; 2],
        readers: AtomicU32,
    }
    let shared = Arc::new(Shared {
        latch: RawRwLatch::new(implementation),
        array: WaitArray::new(),
        numbers: Default::default(),
        readers: AtomicU32::new(0),
    });
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let shared = shared.clone();
            thread::spawn(move || {
                let Shared { latch, array, numbers, readers } = &*shared;
                if number < 2 {
                    if !latch.try_exclusive_fast() {
                        latch.lock_exclusive(array);
                    }
                    assert_eq!(readers.load(Relaxed), 0);
                    numbers.iter().for_each(add_one);
                    latch.unlock_exclusive(array);
                } else {
                    if !latch.try_shared_fast() {
                        latch.lock_shared(array);
                    }
                    readers.fetch_add(1, Relaxed);
                    let first = numbers[0].load(Relaxed);
                    thread::yield_now();
                    assert_eq!(numbers[1].load(Relaxed), first);
                    readers.fetch_sub(1, Relaxed);
                    latch.unlock_shared(array);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(shared.numbers[1].load(Relaxed), 2);
}

#[test]
fn a_reader_writer_latch_keeps_writers_alone_and_wakes_who_waits() {
    explore(|| rw_latch(Direct));
    explore(|| rw_latch(ByArray));
}

/// One thread waits until two others have each done their part.
fn condition(implementation: Implementation) {
    let shared =
        Arc::new((RawMutex::new(implementation), WaitArray::new(), RawCondvar::new(), AtomicU64::new(0)));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (mutex, array, condvar, count) = &*shared;
                if !mutex.try_fast() {
                    mutex.lock(array);
                }
                add_one(count);
                mutex.unlock(array);
                condvar.notify_all();
            })
        })
        .collect();
    let (mutex, array, condvar, count) = &*shared;
    if !mutex.try_fast() {
        mutex.lock(array);
    }
    while count.load(Relaxed) < 2 {
        condvar.sleep(mutex, array, None);
    }
    mutex.unlock(array);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_notification_after_a_change_is_not_missed() {
    explore(|| condition(Direct));
    explore(|| condition(ByArray));
}
