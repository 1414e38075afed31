//! The words of latches.

extern crate latchwork_orderings as base;

/// As in `base`, where the word is a module of latches.
#[path = "../../../../crates/base/src/sync"]
mod sync {
    pub use base::sync::{atomic, hint};

    pub mod latch {
        #[allow(dead_code, reason = "models need a part of each source")]
        pub mod word;

        pub use base::sync::{Contention, Implementation};

        pub mod futex {
            use base::sync::atomic::{AtomicU32, Ordering};
            use base::sync::{Condvar, Mutex};
            use std::time::Duration;

            /// As in the models of schedules: looking at the word and going to sleep are one step for the
            /// thread that wakes others.
            #[derive(Debug)]
            pub struct Futex {
                word: AtomicU32,
                parked: (Mutex<()>, Condvar),
            }

            impl Futex {
                pub fn new(value: u32) -> Futex {
                    Futex { word: AtomicU32::new(value), parked: (Mutex::new(()), Condvar::new()) }
                }

                pub fn load(&self) -> u32 {
                    self.word.load(Ordering::Relaxed)
                }

                #[track_caller]
                pub fn exchange(&self, from: u32, to: u32, order: Ordering) -> Result<u32, u32> {
                    self.word.compare_exchange(from, to, order, Ordering::Relaxed)
                }

                #[track_caller]
                pub fn swap(&self, to: u32, order: Ordering) -> u32 {
                    self.word.swap(to, order)
                }

                #[track_caller]
                pub fn subtract(&self, less: u32, order: Ordering) -> u32 {
                    self.word.fetch_sub(less, order)
                }

                pub fn wait(&self, expected: u32, _timeout: Option<Duration>) -> bool {
                    let parked = self.parked.0.lock();
                    if self.load() == expected {
                        drop(self.parked.1.wait(parked));
                    }
                    true
                }

                pub fn wake(&self, threads: u32) {
                    drop(self.parked.0.lock());
                    if threads == 1 { self.parked.1.notify_one() } else { self.parked.1.notify_all() }
                }
            }
        }

        pub mod wait_array {
            use super::Contention;
            use super::futex::Futex;

            /// Not used: latches are direct here, and those of the array change under a mutex.
            #[derive(Debug)]
            pub struct WaitArray;

            impl WaitArray {
                pub fn try_enter(&self, _word: &Futex, _enter: fn(u32) -> Option<u32>) -> bool {
                    unreachable!("latches are direct here")
                }

                pub fn enter(&self, _word: &Futex, _enter: fn(u32) -> Option<u32>) -> Contention {
                    unreachable!("latches are direct here")
                }

                pub fn leave(&self, _word: &Futex, _leave: fn(u32) -> u32) {
                    unreachable!("latches are direct here")
                }
            }
        }
    }
}

use base::runner::{Excused, Model};
use base::sync::{Arc, Implementation, thread};
use loom::cell::UnsafeCell;
use std::process::ExitCode;
use sync::latch::wait_array::WaitArray;
use sync::latch::word::{RawMutex, RawRwLatch};

const ARRAY: WaitArray = WaitArray;

struct Guarded<L> {
    latch: L,
    value: UnsafeCell<u64>,
}

// SAFETY: the checker looks at how `value` is used, and that is what is tried.
unsafe impl<L: Sync> Sync for Guarded<L> {}
// SAFETY: as above.
unsafe impl<L: Send> Send for Guarded<L> {}

impl<L> Guarded<L> {
    fn new(latch: L) -> Arc<Guarded<L>> {
        Arc::new(Guarded { latch, value: UnsafeCell::new(0) })
    }

    fn add(&self) {
        // SAFETY: the checker fails the model if another thread is here.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    fn read(&self) -> u64 {
        // SAFETY: as above.
        self.value.with(|value| unsafe { *value })
    }
}

fn both<L: 'static>(guarded: &Arc<Guarded<L>>, other: fn(&Guarded<L>), own: fn(&Guarded<L>)) {
    let others = guarded.clone();
    let thread = thread::spawn(move || other(&others));
    own(guarded);
    thread.join().expect("a panic ends the model");
}

fn alone(guarded: &Guarded<RawMutex>) {
    if !guarded.latch.try_fast() {
        guarded.latch.lock(&ARRAY);
    }
    guarded.add();
    guarded.latch.unlock(&ARRAY);
}

fn a_mutex_has_one_holder_who_sees_the_last() {
    both(&Guarded::new(RawMutex::new(Implementation::Direct)), alone, alone);
}

/// Three threads, so that one is woken while another waits.
fn a_mutex_with_waiters_has_one_holder_who_sees_the_last() {
    let guarded = Guarded::new(RawMutex::new(Implementation::Direct));
    let others = guarded.clone();
    let thread = thread::spawn(move || alone(&others));
    both(&guarded, alone, alone);
    thread.join().expect("a panic ends the model");
}

fn exclusively(guarded: &Guarded<RawRwLatch>) {
    if !guarded.latch.try_exclusive_fast() {
        guarded.latch.lock_exclusive(&ARRAY);
    }
    guarded.add();
    guarded.latch.unlock_exclusive(&ARRAY);
}

fn shared(guarded: &Guarded<RawRwLatch>) {
    if !guarded.latch.try_shared_fast() {
        guarded.latch.lock_shared(&ARRAY);
    }
    guarded.read();
    guarded.latch.unlock_shared(&ARRAY);
}

fn two_writers_take_turns() {
    both(&Guarded::new(RawRwLatch::new(Implementation::Direct)), exclusively, exclusively);
}

fn a_reader_and_a_writer_take_turns() {
    both(&Guarded::new(RawRwLatch::new(Implementation::Direct)), exclusively, shared);
}

fn two_readers_and_a_writer_take_turns() {
    let guarded = Guarded::new(RawRwLatch::new(Implementation::Direct));
    let others = guarded.clone();
    let thread = thread::spawn(move || shared(&others));
    both(&guarded, exclusively, shared);
    thread.join().expect("a panic ends the model");
}

const MODELS: &[Model] = base::models![
    a_mutex_has_one_holder_who_sees_the_last: Some(2),
    a_mutex_with_waiters_has_one_holder_who_sees_the_last: Some(2),
    two_writers_take_turns: Some(2),
    a_reader_and_a_writer_take_turns: Some(2),
    two_readers_and_a_writer_take_turns: Some(1),
];

const EXCUSED: &[Excused] = &[];

fn main() -> ExitCode {
    base::runner::main(MODELS, &[], EXCUSED)
}
