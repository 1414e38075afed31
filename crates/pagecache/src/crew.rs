//! A queue, and threads that take from it.

use base::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex, thread};
use std::collections::VecDeque;

/// Threads that do work which others leave for them. No caller may rely on them: there may be none, and what
/// is queued when they are stopped is forgotten.
#[derive(Debug)]
pub(crate) struct Crew<T> {
    queue: Arc<Queue<T>>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    size: AtomicUsize,
}

#[derive(Debug)]
struct Queue<T> {
    state: Mutex<State<T>>,
    called: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    stop: bool,
}

impl<T: Send + 'static> Crew<T> {
    /// Nobody yet.
    pub fn new() -> Crew<T> {
        let state = Mutex::new(State { items: VecDeque::new(), stop: false });
        let queue = Arc::new(Queue { state, called: Condvar::new() });
        Crew { queue, threads: Mutex::new(Vec::new()), size: AtomicUsize::new(0) }
    }

    /// Starts `count` threads, or as many as the system allows. To be called once.
    pub fn start(&self, name: &str, count: usize, work: impl Fn(T) + Clone + Send + 'static) {
        let mut threads = self.threads.lock();
        for _ in 0..count {
            let (queue, work) = (self.queue.clone(), work.clone());
            let run = move || {
                while let Some(item) = queue.take() {
                    work(item);
                }
            };
            threads.extend(thread::Builder::new().name(name.to_owned()).spawn(run));
        }
        // ORDER: a caller that sees fewer threads does more of the work itself.
        self.size.store(threads.len(), Relaxed);
    }

    /// How many threads there are.
    pub fn size(&self) -> usize {
        self.size.load(Relaxed)
    }

    /// Leaves work in the queue as long as no more than `limit` items wait there. Gives the number of items
    /// taken.
    pub fn add(&self, items: impl Iterator<Item = T>, limit: usize) -> usize {
        let mut state = self.queue.state.lock();
        let room = limit.saturating_sub(state.items.len());
        let before = state.items.len();
        state.items.extend(items.take(room));
        let added = state.items.len() - before;
        drop(state);
        if added > 0 {
            self.queue.called.notify_all();
        }
        added
    }

    /// Ends the threads and waits for them, unless one of them is the caller.
    pub fn stop(&self) {
        self.queue.state.lock().stop = true;
        self.queue.called.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if thread.thread().id() != thread::current().id() {
                // A panic of the thread has been reported by the panic hook; there is nothing to add.
                let _ = thread.join();
            }
        }
    }
}

impl<T> Queue<T> {
    /// The next item; `None` when it is time to end.
    fn take(&self) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return None;
            }
            if let Some(item) = state.items.pop_front() {
                return Some(item);
            }
            state = self.called.wait(state);
        }
    }
}
