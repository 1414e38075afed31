//! The thread that writes dirty pages ahead of need, so that a miss finds a clean victim.

use crate::cache::PageCache;
use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex, Weak, thread};
use std::time::Duration;

/// Without a call the thread looks after this long, so that an idle cache becomes clean.
const PAUSE: Duration = Duration::from_millis(500);
/// The wait after a failed write doubles from the first to the second of these.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// How the cache talks to its thread. Outlives the cache.
#[derive(Debug, Default)]
pub struct Signal {
    state: Mutex<State>,
    changed: Condvar,
    /// `State::called`, to look without the mutex.
    called: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    thread: Option<thread::JoinHandle<()>>,
}

impl Signal {
    /// Calls the thread. Cheap if it has been called already.
    pub fn raise(&self) {
        // ORDER: a missed call is made up for by the next one, or by the pause running out.
        if !self.called.load(Relaxed) && !self.called.swap(true, Relaxed) {
            drop(self.state.lock());
            self.changed.notify_one();
        }
    }

    /// Ends the thread and waits for it, unless it is the caller.
    pub fn stop(&self) {
        let thread = {
            let mut state = self.state.lock();
            state.stop = true;
            state.thread.take()
        };
        self.changed.notify_one();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // A panic of the thread has been reported by the panic hook; there is nothing to add.
            let _ = thread.join();
        }
    }

    /// Sleeps until called, or for `pause`; false when it is time to end.
    fn sleep(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !self.called.load(Relaxed) {
            state = self.changed.wait_timeout(state, pause).0;
        }
        self.called.store(false, Relaxed);
        !state.stop
    }
}

impl PageCache {
    pub(crate) fn start_write_back(self: &Arc<PageCache>) {
        let signal = self.write_back.signal.clone();
        let cache = Arc::downgrade(self);
        let spawned =
            thread::Builder::new().name("write-back".to_owned()).spawn(move || run(&cache, &signal));
        // Without the thread pages are written when their frame is needed: slower, not wrong.
        self.write_back.signal.state.lock().thread = spawned.ok();
    }

    /// Writes what is dirty, in the order of the device; false if a write failed. Ends early when
    /// nobody but the thread has the cache any more.
    fn write_dirty(self: &Arc<PageCache>) -> bool {
        let pages = self.dirty_pages(|_| true);
        let mut batches = pages.chunks(self.batch_max()).take_while(|_| Arc::strong_count(self) > 1);
        batches.all(|batch| self.write_pages(batch).is_ok())
    }
}

fn run(cache: &Weak<PageCache>, signal: &Signal) {
    let mut retry = RETRY_FIRST;
    let mut pause = PAUSE;
    while signal.sleep(pause) {
        let Some(cache) = cache.upgrade() else { return };
        if cache.write_dirty() {
            retry = RETRY_FIRST;
            pause = if cache.has_much_dirt() { Duration::ZERO } else { PAUSE };
        } else {
            pause = retry;
            retry = (retry * 2).min(RETRY_MAX);
        }
    }
}
