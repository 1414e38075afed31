//! Stands in for `base::sync`: loom's threads, latches and atomics.

pub mod atomic;

pub use loom::hint;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
pub use std::sync::{Arc, OnceLock, Weak};
/// The checker runs its threads on one thread of the system, so they share these.
pub use std::thread_local;

pub mod thread {
    pub use loom::thread::{JoinHandle, spawn, yield_now};
    pub use std::thread::current;
    use std::time::Duration;

    pub fn sleep(_duration: Duration) {
        yield_now();
    }
}

#[derive(Debug, Default)]
pub struct CachePadded<T>(pub T);

impl<T> Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[derive(Debug)]
pub struct Mutex<T, C = ()>(loom::sync::Mutex<T>, PhantomData<C>);

pub type MutexGuard<'m, T> = loom::sync::MutexGuard<'m, T>;

impl<T, C> Mutex<T, C> {
    pub fn of_class(value: T) -> Mutex<T, C> {
        Mutex(loom::sync::Mutex::new(value), PhantomData)
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|_| unreachable!("a panic ends the model"))
    }
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex::of_class(value)
    }
}

impl<T: Default, C> Default for Mutex<T, C> {
    fn default() -> Self {
        Mutex::of_class(T::default())
    }
}

#[derive(Debug, Default)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    pub fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        self.0.wait(guard).unwrap_or_else(|_| unreachable!("a panic ends the model"))
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// How latches are made. Here they are never made with the wait array, whose words change under a mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Implementation {
    #[default]
    Direct,
    WaitArray,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contention {
    pub spins: u64,
    pub waits: u64,
}

/// Never made: see [`Implementation`].
#[derive(Debug)]
pub enum CentralArray {}

impl CentralArray {
    #[allow(clippy::new_without_default, reason = "it cannot be made")]
    pub fn new() -> CentralArray {
        unreachable!("latches are direct here")
    }

    pub fn internal(&self, _address: usize) -> MutexGuard<'_, ()> {
        match *self {}
    }

    pub fn spin(&self, _is_open: impl Fn() -> bool) -> u64 {
        match *self {}
    }

    pub fn wait(&self, _address: usize, _sleeps: impl FnMut() -> bool) {
        match *self {}
    }

    pub fn signal(&self, _address: usize) {
        match *self {}
    }

    pub fn signal_all(&self) {
        match *self {}
    }
}
