//! The latches of a model: the scheduler's own, whatever class they have.

use super::counts;
use super::latch::{Met, Other};
use super::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use shuttle::sync as raw;
use std::marker::PhantomData;
use std::sync::TryLockError;

#[derive(Debug)]
pub struct Mutex<T, C = Other>(raw::Mutex<T>, PhantomData<fn() -> C>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex::of_class(value)
    }
}

impl<T, C> Mutex<T, C> {
    pub fn of_class(value: T) -> Mutex<T, C> {
        Mutex(raw::Mutex::new(value), PhantomData)
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        counts::latch();
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn lock_quietly(&self) -> (MutexGuard<'_, T>, Option<Met>) {
        (self.lock(), None)
    }

    pub fn lock_in(&self, _segment: usize) -> MutexGuard<'_, T> {
        self.lock()
    }

    pub fn try_lock_in(&self, _segment: usize) -> Option<MutexGuard<'_, T>> {
        self.try_lock()
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        counts::latch();
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T: Default, C> Default for Mutex<T, C> {
    fn default() -> Mutex<T, C> {
        Mutex::of_class(T::default())
    }
}

#[derive(Debug, Default)]
pub struct Condvar(raw::Condvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar(raw::Condvar::new())
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[derive(Debug)]
pub struct RwLock<T, C = Other>(raw::RwLock<T>, PhantomData<fn() -> C>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock::of_class(value)
    }
}

impl<T, C> RwLock<T, C> {
    pub fn of_class(value: T) -> RwLock<T, C> {
        RwLock(raw::RwLock::new(value), PhantomData)
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        counts::latch();
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        counts::latch();
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        counts::latch();
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        counts::latch();
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T: Default, C> Default for RwLock<T, C> {
    fn default() -> RwLock<T, C> {
        RwLock::of_class(T::default())
    }
}
