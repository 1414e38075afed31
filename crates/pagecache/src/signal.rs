//! How a pool calls its write-back thread, and what the two share.

use base::sync::atomic::AtomicUsize;
use base::sync::{Arc, CachePadded};

#[cfg(not(feature = "shuttle"))]
pub(crate) use thread::Signal;

/// Under the model checker there is no such thread.
#[cfg(feature = "shuttle")]
#[derive(Debug, Default)]
pub(crate) struct Signal;

#[cfg(feature = "shuttle")]
impl Signal {
    pub fn raise(&self) {}
    pub fn stop(&self) {}
}

#[derive(Debug)]
pub(crate) struct WriteBackState {
    /// Frames whose page is dirty and not being written.
    pub dirty_count: CachePadded<AtomicUsize>,
    pub signal: Arc<Signal>,
}

impl WriteBackState {
    pub fn new() -> WriteBackState {
        WriteBackState { dirty_count: CachePadded::default(), signal: Arc::default() }
    }
}

#[cfg(not(feature = "shuttle"))]
mod thread {
    use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use base::sync::{Condvar, Mutex, thread};
    use std::time::Duration;

    /// How the pool calls its thread. Outlives the pool.
    #[derive(Debug, Default)]
    pub struct Signal {
        pub(crate) state: Mutex<State>,
        changed: Condvar,
        /// `State::called`, to look without the mutex.
        called: AtomicBool,
    }

    #[derive(Debug, Default)]
    pub(crate) struct State {
        stop: bool,
        pub thread: Option<thread::JoinHandle<()>>,
    }

    impl Signal {
        /// Calls the thread. Cheap if it has been called already.
        pub fn raise(&self) {
            // ORDER: if a call is missed, the next call or the end of the pause does as well.
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

        /// Sleeps until it is called, or for `pause`. False when it is time to end.
        pub fn sleep(&self, pause: Duration) -> bool {
            let mut state = self.state.lock();
            if !state.stop && !self.called.load(Relaxed) {
                state = self.changed.wait_timeout(state, pause).0;
            }
            self.called.store(false, Relaxed);
            !state.stop
        }

        /// Sleeps for `pause`, or less if it is told to end, and is not woken by calls. False when it is time
        /// to end.
        pub fn rest(&self, pause: Duration) -> bool {
            // A thread that would call sees a call already, and does not wake this one.
            self.called.store(true, Relaxed);
            let mut state = self.state.lock();
            if !state.stop && !pause.is_zero() {
                state = self.changed.wait_timeout(state, pause).0;
            }
            self.called.store(false, Relaxed);
            !state.stop
        }
    }
}
