//! Atomics that a model checker can schedule and a counter can count.

use super::counts;
use super::imp::raw_atomic as raw;
pub use raw::{Ordering, fence};

macro_rules! atomic_base {
    ($name:ident, $value:ty) => {
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(raw::$name);

        impl $name {
            #[inline(always)]
            pub const fn new(value: $value) -> Self {
                Self(raw::$name::new(value))
            }

            #[inline(always)]
            pub fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            #[inline(always)]
            pub fn store(&self, value: $value, order: Ordering) {
                counts::write();
                self.0.store(value, order);
            }

            /// A store to an atomic that only the calling thread ever writes, on a cache line that
            /// only it writes: not a shared write, and not counted as one.
            #[inline(always)]
            pub fn store_owned(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
            }

            #[inline(always)]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.swap(value, order)
            }

            #[inline(always)]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                counts::write();
                self.0.compare_exchange(current, new, success, failure)
            }

            #[inline(always)]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                counts::write();
                self.0.compare_exchange_weak(current, new, success, failure)
            }

            #[inline(always)]
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_or(value, order)
            }

            #[inline(always)]
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_and(value, order)
            }
        }
    };
}

macro_rules! atomic_int {
    ($name:ident, $value:ty) => {
        atomic_base!($name, $value);
        impl $name {
            #[inline(always)]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_add(value, order)
            }

            #[inline(always)]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_sub(value, order)
            }

            #[inline(always)]
            pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_max(value, order)
            }
        }
    };
}

atomic_base!(AtomicBool, bool);
atomic_int!(AtomicU8, u8);
atomic_int!(AtomicU32, u32);
atomic_int!(AtomicU64, u64);
atomic_int!(AtomicUsize, usize);
