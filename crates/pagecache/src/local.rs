//! What each thread knows of itself: how many latches it holds, how many pages were read for it, whether it
//! has the permit. What it counts at every hit is in [`base::OwnedCounters`].

use base::sync::thread_local;
use std::cell::Cell;

/// Models have fewer, because they make a pool thousands of times.
pub const SEGMENTS_MAX: usize = if cfg!(feature = "shuttle") { 4 } else { 64 };

struct Local {
    latches_held: Cell<u32>,
    /// How many pages were read from devices for it.
    loads: Cell<u64>,
    /// The pool whose frame permit this thread has, by its id; 0 = none.
    permit_of: Cell<u64>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            latches_held: Cell::new(0),
            loads: Cell::new(0),
            permit_of: Cell::new(0),
        }
    };
}

pub fn latch_taken() {
    LOCAL.with(|local| local.latches_held.set(local.latches_held.get() + 1));
}

pub fn latch_dropped() {
    LOCAL.with(|local| local.latches_held.set(local.latches_held.get() - 1));
}

pub fn count_load() {
    LOCAL.with(|local| local.loads.set(local.loads.get() + 1));
}

#[inline]
pub fn loads() -> u64 {
    LOCAL.with(|local| local.loads.get())
}

/// True if the calling thread holds page latches of any pool.
pub fn holds_latches() -> bool {
    LOCAL.with(|local| local.latches_held.get() > 0)
}

pub fn set_permit(cache: u64) {
    LOCAL.with(|local| local.permit_of.set(cache));
}

pub fn has_permit(cache: u64) -> bool {
    LOCAL.with(|local| local.permit_of.get() == cache)
}
