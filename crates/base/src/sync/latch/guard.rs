//! Latches with what they guard.

use super::condvar::RawCondvar;
use super::meter::{self, LatchClass, Met, Other, Site, Spot};
use super::wait_array::WAIT_ARRAY;
use super::word::{RawMutex, RawRwLatch};
use super::{Contention, Implementation};
use crate::sync::counts;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::time::{Duration, Instant};

/// A mutual-exclusion latch. A panic while it is held frees it.
pub struct Mutex<T, C = Other> {
    raw: RawMutex,
    class: PhantomData<fn() -> C>,
    value: UnsafeCell<T>,
}

// SAFETY: the latch gives the value to one thread at a time, and moves it between threads only in that sense.
unsafe impl<T: Send, C> Send for Mutex<T, C> {}
// SAFETY: as above.
unsafe impl<T: Send, C> Sync for Mutex<T, C> {}

impl<T> Mutex<T> {
    /// A direct latch, of no class.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { raw: RawMutex::direct(), class: PhantomData, value: UnsafeCell::new(value) }
    }
}

impl<T, C: LatchClass> Mutex<T, C> {
    /// A latch of the class, as [`Implementation::chosen`].
    pub fn of_class(value: T) -> Mutex<T, C> {
        let raw = RawMutex::new(Implementation::chosen());
        Mutex { raw, class: PhantomData, value: UnsafeCell::new(value) }
    }

    #[inline(always)]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.lock_at(|| C::meter().outside())
    }

    /// The same for a latch that is in a segment.
    #[inline(always)]
    #[track_caller]
    pub fn lock_in(&self, segment: usize) -> MutexGuard<'_, T> {
        self.lock_at(|| C::meter().segment(segment))
    }

    #[inline(always)]
    #[track_caller]
    fn lock_at(&self, spot: impl FnOnce() -> Spot) -> MutexGuard<'_, T> {
        counts::latch();
        if meter::metering() {
            let try_now = || self.raw.try_lock(&WAIT_ARRAY);
            meter::acquire(spot(), self.address(), Location::caller(), try_now, || {
                self.raw.lock(&WAIT_ARRAY)
            });
        } else if !self.raw.try_fast() {
            self.raw.lock(&WAIT_ARRAY);
        }
        self.guard()
    }

    /// The latch if it is free now.
    #[inline(always)]
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.try_lock_at(|| C::meter().outside())
    }

    /// The same for a latch that is in a segment.
    #[inline(always)]
    #[track_caller]
    pub fn try_lock_in(&self, segment: usize) -> Option<MutexGuard<'_, T>> {
        self.try_lock_at(|| C::meter().segment(segment))
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_at(&self, spot: impl FnOnce() -> Spot) -> Option<MutexGuard<'_, T>> {
        counts::latch();
        if !self.raw.try_lock(&WAIT_ARRAY) {
            return None;
        }
        if meter::metering() {
            spot().acquired(self.address(), Location::caller());
        }
        Some(self.guard())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(&self.raw).addr()
    }

    /// Takes the latch without metering it, and says what that took if it was not free: for latches below the
    /// meters, which allocate. The wait array allocates, too; so the latch has to be a direct one.
    #[inline(always)]
    pub fn lock_quietly(&self) -> (MutexGuard<'_, T>, Option<Met>) {
        counts::latch();
        let met = if self.raw.try_fast() { None } else { Some(self.meet()) };
        (self.guard(), met)
    }

    #[cold]
    fn meet(&self) -> Met {
        assert!(self.raw.is_direct(), "a latch below the wait array waits in it");
        let start = Instant::now();
        let _waiting = crate::phases::enter(crate::phases::Phase::LatchWait);
        let Contention { spins, waits } = self.raw.lock(&WAIT_ARRAY);
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Met { spins, waits, nanoseconds }
    }

    #[cfg(test)]
    pub(super) fn has_waiters(&self) -> bool {
        self.raw.has_waiters()
    }

    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { raw: &self.raw, value: &self.value, not_send: PhantomData }
    }
}

impl<T: Default, C: LatchClass> Default for Mutex<T, C> {
    fn default() -> Mutex<T, C> {
        Mutex::of_class(T::default())
    }
}

impl<T, C> fmt::Debug for Mutex<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// Holds a [`Mutex`].
#[must_use = "the latch is free again when this is dropped"]
pub struct MutexGuard<'a, T> {
    raw: &'a RawMutex,
    value: &'a UnsafeCell<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives references to the value, and nothing else.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the latch, so nobody else has the value.
        unsafe { &*self.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `self` is borrowed alone.
        unsafe { &mut *self.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.raw.unlock(&WAIT_ARRAY);
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug)]
pub struct Condvar(RawCondvar);

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar(RawCondvar::new())
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.sleep(guard.raw, &WAIT_ARRAY, None);
        guard
    }

    /// Waits for a notification or `timeout`; true if the time ran out.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let is_over = !self.0.sleep(guard.raw, &WAIT_ARRAY, Some(timeout));
        (guard, is_over)
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

/// A reader-writer latch. A panic while it is held frees it. Not for hot paths: taking it shared writes.
pub struct RwLock<T, C = Other> {
    raw: RawRwLatch,
    class: PhantomData<fn() -> C>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is given to one thread alone, or to several as shared references.
unsafe impl<T: Send, C> Send for RwLock<T, C> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync, C> Sync for RwLock<T, C> {}

impl<T> RwLock<T> {
    /// Of no class, and as [`Implementation::chosen`].
    pub fn new(value: T) -> RwLock<T> {
        RwLock::of_class(value)
    }
}

impl<T, C: LatchClass> RwLock<T, C> {
    /// A latch of the class, as [`Implementation::chosen`].
    pub fn of_class(value: T) -> RwLock<T, C> {
        let raw = RawRwLatch::new(Implementation::chosen());
        RwLock { raw, class: PhantomData, value: UnsafeCell::new(value) }
    }

    #[inline(always)]
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        counts::latch();
        if meter::metering() {
            let try_now = || self.raw.try_shared(&WAIT_ARRAY);
            self.acquire(Location::caller(), try_now, || self.raw.lock_shared(&WAIT_ARRAY));
        } else if !self.raw.try_shared_fast() {
            self.raw.lock_shared(&WAIT_ARRAY);
        }
        RwLockReadGuard { raw: &self.raw, value: &self.value, not_send: PhantomData }
    }

    /// The latch, shared, if nobody has it alone or waits for it.
    #[inline(always)]
    #[track_caller]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        counts::latch();
        if !self.raw.try_shared(&WAIT_ARRAY) {
            return None;
        }
        if meter::metering() {
            let address = std::ptr::from_ref(&self.raw).addr();
            C::meter().outside().acquired(address, Location::caller());
        }
        Some(RwLockReadGuard { raw: &self.raw, value: &self.value, not_send: PhantomData })
    }

    #[inline(always)]
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        counts::latch();
        if meter::metering() {
            let try_now = || self.raw.try_exclusive(&WAIT_ARRAY);
            self.acquire(Location::caller(), try_now, || self.raw.lock_exclusive(&WAIT_ARRAY));
        } else if !self.raw.try_exclusive_fast() {
            self.raw.lock_exclusive(&WAIT_ARRAY);
        }
        RwLockWriteGuard { raw: &self.raw, value: &self.value, not_send: PhantomData }
    }

    /// The latch alone, if no thread has it now.
    #[track_caller]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        counts::latch();
        if !self.raw.try_exclusive(&WAIT_ARRAY) {
            return None;
        }
        if meter::metering() {
            let address = std::ptr::from_ref(&self.raw).addr();
            C::meter().outside().acquired(address, Location::caller());
        }
        Some(RwLockWriteGuard { raw: &self.raw, value: &self.value, not_send: PhantomData })
    }

    fn acquire(&self, site: Site, try_now: impl FnOnce() -> bool, lock: impl FnOnce() -> Contention) {
        let address = std::ptr::from_ref(&self.raw).addr();
        meter::acquire(C::meter().outside(), address, site, try_now, lock);
    }
}

impl<T: Default, C: LatchClass> Default for RwLock<T, C> {
    fn default() -> RwLock<T, C> {
        RwLock::of_class(T::default())
    }
}

impl<T, C> fmt::Debug for RwLock<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

/// Holds a [`RwLock`] shared.
#[must_use = "the latch is free again when this is dropped"]
pub struct RwLockReadGuard<'a, T> {
    raw: &'a RawRwLatch,
    value: &'a UnsafeCell<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives references to the value, and nothing else.
unsafe impl<T: Sync> Sync for RwLockReadGuard<'_, T> {}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the latch is held shared: nobody changes the value.
        unsafe { &*self.value.get() }
    }
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.raw.unlock_shared(&WAIT_ARRAY);
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Holds a [`RwLock`] alone.
#[must_use = "the latch is free again when this is dropped"]
pub struct RwLockWriteGuard<'a, T> {
    raw: &'a RawRwLatch,
    value: &'a UnsafeCell<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives references to the value, and nothing else.
unsafe impl<T: Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the latch is held alone.
        unsafe { &*self.value.get() }
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the latch is held alone, and `self` is borrowed alone.
        unsafe { &mut *self.value.get() }
    }
}

impl<T> Drop for RwLockWriteGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.raw.unlock_exclusive(&WAIT_ARRAY);
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
