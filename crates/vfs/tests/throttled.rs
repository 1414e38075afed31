//! The slow file tree, by a clock that is set by hand: what waits, until when, in which order.

use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, Mutex};
use latchwork_vfs::{Clock, Create, File, Limits, MemVfs, Throttled, Usage, Vfs};
use std::path::Path;
use std::time::Duration;

/// A clock that only moves when a thread sleeps, or not even then: all operations then come at one moment, as
/// if from many threads. It notes until when each slept.
#[derive(Debug, Default)]
struct ManualClock {
    state: Mutex<(Duration, Vec<u64>)>,
    frozen: AtomicBool,
}

impl ManualClock {
    fn advance(&self, by: Duration) {
        self.state.lock().0 += by;
    }

    /// The moments, in milliseconds, until which someone slept.
    fn wakes(&self) -> Vec<u64> {
        self.state.lock().1.clone()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.state.lock().0
    }

    fn sleep_until(&self, moment: Duration) {
        let mut state = self.state.lock();
        if !self.frozen.load(Relaxed) {
            state.0 = state.0.max(moment);
        }
        state.1.push(moment.as_millis() as u64);
    }
}

fn throttled(limits: Limits) -> (Throttled, Arc<dyn File>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let vfs = Throttled::with_clock(Arc::new(MemVfs::new()), limits, clock.clone());
    let file = vfs.open(Path::new("file"), Create::New).unwrap();
    (vfs, file, clock)
}

#[test]
fn each_operation_takes_its_share_of_a_second() {
    let (vfs, file, clock) = throttled(Limits { operations_per_second: Some(4.0), ..Limits::default() });
    file.write_at(&[1; 1000], 0).unwrap();
    file.sync().unwrap();
    let mut buffer = [0; 1000];
    file.read_at(&mut buffer, 0).unwrap();
    vfs.sync_dir(Path::new("")).unwrap();
    assert_eq!(buffer, [1; 1000]);
    assert_eq!(clock.wakes(), [250, 500, 750, 1000]);
    assert_eq!(vfs.usage(), Usage { reads: 1, writes: 1, syncs: 2, bytes: 2000 });
}

#[test]
fn bytes_take_longer_than_operations_if_there_are_many() {
    let limits =
        Limits { operations_per_second: Some(10.0), bytes_per_second: Some(1000.0), ..Limits::default() };
    let (_, file, clock) = throttled(limits);
    file.write_at(&[1; 500], 0).unwrap();
    file.write_at(&[1; 10], 0).unwrap();
    assert_eq!(clock.wakes(), [500, 600]);
}

#[test]
fn an_idle_device_saves_nothing_up() {
    let (_, file, clock) = throttled(Limits { operations_per_second: Some(10.0), ..Limits::default() });
    file.sync().unwrap();
    clock.advance(Duration::from_secs(5));
    file.sync().unwrap();
    file.sync().unwrap();
    assert_eq!(clock.wakes(), [100, 5200, 5300]);
}

#[test]
fn latency_delays_the_answer_and_does_not_occupy_the_device() {
    let limits = Limits {
        operations_per_second: Some(10.0),
        latency: Duration::from_millis(7),
        sync_latency: Duration::from_millis(30),
        ..Limits::default()
    };
    let (_, file, clock) = throttled(limits);
    file.write_at(b"x", 0).unwrap();
    assert_eq!(clock.wakes(), [107]);
    file.sync().unwrap();
    assert_eq!(clock.wakes(), [107, 107 + 100 + 37]);
}

#[test]
fn operations_of_one_moment_queue_for_the_device_and_wait_for_the_latency_together() {
    let latency = Duration::from_millis(7);
    let (_, file, clock) =
        throttled(Limits { operations_per_second: Some(10.0), latency, ..Limits::default() });
    // ORDER: one thread.
    clock.frozen.store(true, Relaxed);
    for _ in 0..3 {
        file.sync().unwrap();
    }
    assert_eq!(clock.wakes(), [107, 207, 307]);
}

#[test]
fn names_and_lengths_are_not_limited() {
    let (vfs, file, clock) = throttled(Limits { operations_per_second: Some(1.0), ..Limits::default() });
    file.set_len(10).unwrap();
    file.reserve(20).unwrap();
    assert_eq!(file.len().unwrap(), 20);
    file.try_lock_exclusive().unwrap();
    vfs.create_dir_all(Path::new("dir")).unwrap();
    vfs.rename(Path::new("file"), Path::new("dir/file")).unwrap();
    vfs.remove(Path::new("dir/file")).unwrap();
    assert!(!vfs.exists(Path::new("dir/file")).unwrap());
    assert!(vfs.list(Path::new("dir")).unwrap().is_empty());
    vfs.remove_dir(Path::new("dir")).unwrap();
    assert!(clock.wakes().is_empty());
    assert_eq!(vfs.usage(), Usage::default());
}

#[test]
fn the_system_clock_lets_everything_through_in_the_end() {
    let limits = Limits { operations_per_second: Some(1000.0), ..Limits::default() };
    let vfs = Throttled::new(Arc::new(MemVfs::new()), limits);
    let file = vfs.open(Path::new("file"), Create::New).unwrap();
    for n in 0..10 {
        file.write_at(&[n], u64::from(n)).unwrap();
    }
    assert_eq!((file.len().unwrap(), vfs.usage().writes), (10, 10));
}

#[test]
#[should_panic(expected = "a limit of 0")]
fn a_limit_of_nothing_is_refused() {
    throttled(Limits { bytes_per_second: Some(0.0), ..Limits::default() });
}

#[test]
fn limits_can_change_between_operations() {
    let (vfs, file, clock) = throttled(Limits::default());
    file.write_at(&[1], 0).unwrap();
    vfs.set_limits(Limits { operations_per_second: Some(10.0), ..Limits::default() });
    file.write_at(&[1], 0).unwrap();
    file.write_at(&[1], 0).unwrap();
    vfs.set_limits(Limits::default());
    file.write_at(&[1], 0).unwrap();
    assert_eq!(clock.wakes(), [0, 100, 200, 200]);
}
