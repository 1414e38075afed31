//! A file tree as slow as a given device, to see what a fast device hides.

use crate::forward::{forward_names, forward_size_and_lock};
use crate::{Create, File, Vfs};
use base::sync::{Arc, Mutex, thread};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The limits of the device. By default there are none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Limits {
    /// Reads, writes and syncs a second.
    pub operations_per_second: Option<f64>,
    /// Bytes read and written a second.
    pub bytes_per_second: Option<f64>,
    /// Added to each read, write and sync. Operations of several threads wait for it together.
    pub latency: Duration,
    /// Added to each sync besides.
    pub sync_latency: Duration,
}

/// Time, and waiting for it to pass.
pub trait Clock: Send + Sync + Debug {
    /// The time since some fixed moment.
    fn now(&self) -> Duration;
    fn sleep_until(&self, moment: Duration);
}

/// The system's monotonic clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep_until(&self, moment: Duration) {
        let left = moment.saturating_sub(self.now());
        if !left.is_zero() {
            thread::sleep(left);
        }
    }
}

/// Wraps another file tree and makes reads, writes and syncs wait as its [`Limits`] say; names are not
/// limited. A write waits as if there were no cache of the operating system before the device.
#[derive(Clone, Debug)]
pub struct Throttled {
    inner: Arc<dyn Vfs>,
    device: Arc<Device>,
}

/// What has been asked of a [`Throttled`] device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
    pub bytes: u64,
}

#[derive(Debug)]
struct Device {
    clock: Arc<dyn Clock>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    limits: Limits,
    /// The time at which the device will have done everything asked so far.
    free_at: Duration,
    usage: Usage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Read(usize),
    Write(usize),
    Sync,
}

impl Device {
    /// Queues the request, then waits for its turn and for the latency. First come, first served.
    fn wait(&self, request: Request) {
        let done_at = {
            let mut queue = self.queue.lock();
            let limits = queue.limits;
            let usage = &mut queue.usage;
            let (bytes, latency) = match request {
                Request::Read(bytes) => {
                    usage.reads += 1;
                    (bytes, limits.latency)
                }
                Request::Write(bytes) => {
                    usage.writes += 1;
                    (bytes, limits.latency)
                }
                Request::Sync => {
                    usage.syncs += 1;
                    (0, limits.latency + limits.sync_latency)
                }
            };
            usage.bytes += bytes as u64;
            // An operation takes the longer of its share of the two limits: a device works on both at once.
            let share = |amount: f64, limit: Option<f64>| limit.map_or(0.0, |limit| amount / limit);
            let seconds =
                share(1.0, limits.operations_per_second).max(share(bytes as f64, limits.bytes_per_second));
            queue.free_at = queue.free_at.max(self.clock.now()) + Duration::from_secs_f64(seconds);
            queue.free_at + latency
        };
        self.clock.sleep_until(done_at);
    }
}

impl Throttled {
    pub fn new(inner: Arc<dyn Vfs>, limits: Limits) -> Throttled {
        Throttled::with_clock(inner, limits, Arc::new(SystemClock::default()))
    }

    /// Panics if a limit is zero, negative or not a number, because no operation would ever end.
    pub fn with_clock(inner: Arc<dyn Vfs>, limits: Limits, clock: Arc<dyn Clock>) -> Throttled {
        let throttled = Throttled { inner, device: Arc::new(Device { clock, queue: Mutex::default() }) };
        throttled.set_limits(limits);
        throttled
    }

    /// Other limits for what is asked for from now on. Panics as [`Throttled::with_clock`] does.
    pub fn set_limits(&self, limits: Limits) {
        for limit in [limits.operations_per_second, limits.bytes_per_second].into_iter().flatten() {
            assert!(limit > 0.0, "a limit of {limit} a second");
        }
        self.device.queue.lock().limits = limits;
    }

    pub fn usage(&self) -> Usage {
        self.device.queue.lock().usage
    }
}

impl Vfs for Throttled {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, create)?;
        Ok(Arc::new(ThrottledFile { inner, device: self.device.clone() }))
    }

    fn open_direct(&self, path: &Path, create: Create, block: usize) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open_direct(path, create, block)?;
        Ok(Arc::new(ThrottledFile { inner, device: self.device.clone() }))
    }

    forward_names!(inner);

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.device.wait(Request::Sync);
        self.inner.sync_dir(dir)
    }
}

#[derive(Debug)]
struct ThrottledFile {
    inner: Arc<dyn File>,
    device: Arc<Device>,
}

impl File for ThrottledFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.device.wait(Request::Read(buffer.len()));
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.device.wait(Request::Write(bytes.len()));
        self.inner.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.device.wait(Request::Sync);
        self.inner.sync()
    }

    forward_size_and_lock!(inner);
}
