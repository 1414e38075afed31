//! A word that threads can wait on.

use super::super::imp::raw_atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// An atomic word, and the threads that wait until it changes. Its changes are those of latches: the counting
/// shim counts latches and not these.
#[derive(Debug)]
pub struct Futex {
    word: AtomicU32,
    #[cfg(feature = "shuttle")]
    parked: (shuttle::sync::Mutex<()>, shuttle::sync::Condvar),
}

impl Futex {
    #[cfg(not(feature = "shuttle"))]
    pub const fn new(value: u32) -> Futex {
        Futex { word: AtomicU32::new(value) }
    }

    #[inline(always)]
    pub fn load(&self) -> u32 {
        // ORDER: Relaxed: the exchange that follows checks what was read.
        self.word.load(Ordering::Relaxed)
    }

    /// Replaces `from`, and gives what was there. With an Acquire in `order` the caller sees what the last
    /// holder did.
    #[inline(always)]
    pub fn exchange(&self, from: u32, to: u32, order: Ordering) -> Result<u32, u32> {
        self.word.compare_exchange(from, to, order, Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn swap(&self, to: u32, order: Ordering) -> u32 {
        self.word.swap(to, order)
    }

    #[inline(always)]
    pub fn subtract(&self, less: u32, order: Ordering) -> u32 {
        self.word.fetch_sub(less, order)
    }

    #[inline(always)]
    pub fn add(&self, more: u32, order: Ordering) -> u32 {
        self.word.fetch_add(more, order)
    }
}

#[cfg(all(not(feature = "shuttle"), not(miri)))]
impl Futex {
    /// Returns when woken, after `timeout`, at once if the word is not `expected`, or for no reason. False if
    /// the time ran out.
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) -> bool {
        use rustix::thread::futex;
        // A time that does not fit is as good as forever.
        let timeout = timeout.and_then(|timeout| futex::Timespec::try_from(timeout).ok());
        let waited = futex::wait(&self.word, futex::Flags::PRIVATE, expected, timeout.as_ref());
        waited != Err(rustix::io::Errno::TIMEDOUT)
    }

    pub fn wake(&self, threads: u32) {
        use rustix::thread::futex;
        // Fails for no reason that the caller could mend: the address and the flags are right.
        let _ = futex::wake(&self.word, futex::Flags::PRIVATE, threads);
    }
}

/// The interpreter does not know this system call. Here each wait ends at once, which is allowed.
#[cfg(all(not(feature = "shuttle"), miri))]
impl Futex {
    pub fn wait(&self, _expected: u32, timeout: Option<Duration>) -> bool {
        std::thread::yield_now();
        timeout.is_none()
    }

    pub fn wake(&self, _threads: u32) {}
}

/// As in the kernel: for the thread that wakes others, looking at the word and going to sleep are one step.
#[cfg(feature = "shuttle")]
impl Futex {
    pub fn new(value: u32) -> Futex {
        Futex { word: AtomicU32::new(value), parked: Default::default() }
    }

    pub fn wait(&self, expected: u32, _timeout: Option<Duration>) -> bool {
        let parked = self.parked.0.lock().unwrap();
        if self.load() == expected {
            drop(self.parked.1.wait(parked).unwrap());
        }
        true
    }

    pub fn wake(&self, threads: u32) {
        drop(self.parked.0.lock().unwrap());
        if threads == 1 { self.parked.1.notify_one() } else { self.parked.1.notify_all() }
    }
}
