//! Loom's atomics, which note the orderings that the sources ask for: see `sites`.
//!
//! Loom 0.7 remembers the last access to an atomic alone, to see which accesses it has to try in another
//! order. So a thread's own load hides an earlier load of another thread, and what follows from that is not
//! tried (tokio-rs/loom, issues 166 and 392). Each atomic here has a condition variable that nobody waits on,
//! which is notified before each load: for loom these calls depend on each other, so it tries all of their
//! orders. They make nothing visible.

use crate::sites::{self, Use};
use loom::sync::Condvar;
use loom::sync::atomic as raw;
pub use raw::Ordering;
use raw::Ordering::Relaxed;
use std::panic::Location;

/// The ordering as it is written, or weaker.
#[track_caller]
fn order(written: Ordering) -> Ordering {
    sites::order(Location::caller(), written, Use::Access).unwrap_or(Relaxed)
}

#[track_caller]
pub fn fence(written: Ordering) {
    if let Some(order) = sites::order(Location::caller(), written, Use::Fence) {
        raw::fence(order);
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[derive(Debug, Default)]
        pub struct $name {
            value: raw::$name,
            turns: Condvar,
        }

        impl $name {
            pub fn new(value: $value) -> Self {
                Self { value: raw::$name::new(value), turns: Condvar::new() }
            }

            #[track_caller]
            pub fn load(&self, written: Ordering) -> $value {
                self.turns.notify_one();
                self.value.load(order(written))
            }

            #[track_caller]
            pub fn store(&self, value: $value, written: Ordering) {
                self.value.store(value, order(written));
            }

            #[track_caller]
            pub fn store_owned(&self, value: $value, written: Ordering) {
                self.value.store(value, order(written));
            }

            #[track_caller]
            pub fn swap(&self, value: $value, written: Ordering) -> $value {
                self.value.swap(value, order(written))
            }

            /// # Errors
            /// The value that was there instead of `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.value.compare_exchange(current, new, order(success), failure)
            }
        }
    };
}

macro_rules! integer {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);

        impl $name {
            #[track_caller]
            pub fn fetch_or(&self, value: $value, written: Ordering) -> $value {
                self.value.fetch_or(value, order(written))
            }

            #[track_caller]
            pub fn fetch_and(&self, value: $value, written: Ordering) -> $value {
                self.value.fetch_and(value, order(written))
            }

            #[track_caller]
            pub fn fetch_add(&self, value: $value, written: Ordering) -> $value {
                self.value.fetch_add(value, order(written))
            }

            #[track_caller]
            pub fn fetch_sub(&self, value: $value, written: Ordering) -> $value {
                self.value.fetch_sub(value, order(written))
            }

            #[track_caller]
            pub fn fetch_max(&self, value: $value, written: Ordering) -> $value {
                self.value.fetch_max(value, order(written))
            }
        }
    };
}

atomic!(AtomicBool, bool);
integer!(AtomicU8, u8);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicUsize, usize);
