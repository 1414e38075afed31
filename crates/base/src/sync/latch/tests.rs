use super::meter::{ClassFigures, WaitFigures, set_metering};
use super::{Condvar, Implementation, Mutex, RwLock};
use crate::latch_class;
use crate::sync::Arc;
use std::thread;
use std::time::Duration;

latch_class!(Counted, "tests: counted");
latch_class!(Waited, "tests: waited");
latch_class!(Segmented, "tests: segmented", 2);

const ROUNDS: u64 = if cfg!(miri) { 20 } else { 5_000 };

/// Latches of both kinds; the choice is the process's, and tests run side by side.
pub(super) fn both<T>(make: impl Fn() -> T) -> [T; 2] {
    static CHOOSING: Mutex<()> = Mutex::new(());
    let _choosing = CHOOSING.lock();
    Implementation::WaitArray.choose();
    let by_array = make();
    Implementation::Direct.choose();
    [make(), by_array]
}

#[test]
fn additions_under_a_latch_are_all_there() {
    for (mutex, rw) in both(|| (Mutex::<u64>::default(), RwLock::new(0_u64))) {
        let shared = Arc::new((mutex, rw));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    for round in 0..ROUNDS {
                        *shared.0.lock() += 1;
                        *shared.1.write() += 1;
                        let before = *shared.1.read();
                        assert!(before > round, "what a thread wrote it sees");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((*shared.0.lock(), *shared.1.read()), (4 * ROUNDS, 4 * ROUNDS));
    }
}

#[test]
fn a_latch_that_is_held_cannot_be_had_at_once() {
    for mutex in both(Mutex::<u8>::default) {
        let held = mutex.lock();
        assert!(mutex.try_lock().is_none());
        drop(held);
        assert!(mutex.try_lock().is_some());
    }
}

#[test]
fn readers_share() {
    for rw in both(|| RwLock::new(7)) {
        let first = rw.read();
        assert_eq!(*first + *rw.read(), 14);
    }
}

#[test]
fn a_panic_frees_the_latch() {
    for mutex in both(Mutex::<u8>::default) {
        let mutex = Arc::new(mutex);
        let other = mutex.clone();
        let panicked = thread::spawn(move || {
            let _held = other.lock();
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert!(mutex.try_lock().is_some());
    }
}

#[test]
fn waiting_ends_with_a_notification_or_with_the_time() {
    for pair in both(|| (Mutex::<bool>::default(), Condvar::new())) {
        let pair = Arc::new(pair);
        let (mutex, condvar) = &*pair;
        let (guard, is_over) = condvar.wait_timeout(mutex.lock(), Duration::from_millis(1));
        assert!(is_over && !*guard);
        drop(guard);
        let other = pair.clone();
        let thread = thread::spawn(move || {
            *other.0.lock() = true;
            other.1.notify_one();
        });
        let mut guard = mutex.lock();
        while !*guard {
            guard = condvar.wait(guard);
        }
        drop(guard);
        thread.join().unwrap();
    }
}

fn figures(name: &str) -> Option<ClassFigures> {
    ClassFigures::all().into_iter().find(|class| class.name == name)
}

#[test]
fn latches_are_counted_by_class_while_metering_is_on() {
    let mutex = Mutex::<u8, Counted>::of_class(0);
    let rw = RwLock::<u8, Counted>::of_class(0);
    drop(mutex.lock());
    assert_eq!(figures("tests: counted"), None, "nobody counts yet");
    set_metering(true);
    for _ in 0..3 {
        drop(mutex.lock());
        drop(mutex.try_lock());
        drop(rw.read());
        drop(rw.write());
    }
    let figures = figures("tests: counted").unwrap();
    assert_eq!((figures.acquisitions, figures.contended, figures.waited_ns), (12, 0, 0));

    // By segment, and together.
    let latches = [(); 2].map(|()| Mutex::<u8, Segmented>::of_class(0));
    drop((latches[0].lock_in(0), latches[1].try_lock_in(1)));
    drop(latches[1].lock_in(1));
    let segments: Vec<_> = ClassFigures::all()
        .into_iter()
        .filter(|class| class.name == "tests: segmented")
        .map(|class| (class.segment, class.acquisitions))
        .collect();
    assert_eq!(segments, [(None, 3), (Some(0), 1), (Some(1), 2)]);

    // Somebody holds a latch until another waits for it.
    let mutex = Arc::new(Mutex::<u8, Waited>::of_class(0));
    let other = mutex.clone();
    let held = mutex.lock();
    let line = line!() - 1;
    let waiter = thread::spawn(move || drop(other.lock()));
    let waiting = line!() - 1;
    while !mutex.has_waiters() {
        thread::yield_now();
    }
    drop(held);
    waiter.join().unwrap();
    let waited = self::figures("tests: waited").unwrap();
    assert_eq!((waited.acquisitions, waited.contended), (2, 1));
    assert_eq!(waited.times.iter().sum::<u64>(), 1);
    assert!(waited.spins > 0 && waited.waited_ns > 0);
    assert_eq!(waited.waited_ns_max, waited.waited_ns);
    assert_eq!(waited.waited_ns_within(0.99), waited.waited_ns, "no more than the longest");
    let site = WaitFigures::all().into_iter().find(|wait| wait.class == "tests: waited").unwrap();
    assert_eq!(site.holder.map(|holder| holder.line()), Some(line));
    assert_eq!((site.waiter.line(), site.count, site.waited_ns), (waiting, 1, waited.waited_ns));

    // Off, nothing is counted; on again, all begins anew.
    set_metering(false);
    drop(latches[0].lock_in(0));
    assert_eq!(self::figures("tests: waited"), Some(waited));
    assert_eq!(self::figures("tests: segmented").unwrap().acquisitions, 3);
    set_metering(true);
    drop(latches[0].lock_in(0));
    let figures = self::figures("tests: segmented").unwrap();
    assert_eq!((figures.acquisitions, figures.waits), (1, 0));
    let waited = self::figures("tests: waited").unwrap();
    assert_eq!((waited.acquisitions, waited.contended, waited.waited_ns_max), (0, 0, 0));
    assert!(WaitFigures::all().iter().all(|wait| wait.class != "tests: waited"));
}
