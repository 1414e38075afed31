//! The word of a latch: it says how the latch is held.
//!
//! | bit    | mutex                        | reader-writer latch            |
//! |--------|------------------------------|--------------------------------|
//! | 0..29  | 1 = held                     | how many hold it shared        |
//! | 29     | somebody waits               | somebody waits                 |
//! | 30     |                              | one holds it exclusively       |
//! | 31     | its words change under a mutex, and threads wait in the central array  ||
//!
//! Bit 31 never changes: it says with which [`Implementation`] the latch was made. The fast paths expect it
//! to be clear, so a direct latch pays nothing for the other kind.
//!
//! Access rules of a direct latch. Free to held is an exchange with Acquire, held to free one with Release. A
//! thread that finds it held spins, then sets the waiters bit and waits on the word; a thread that frees a
//! latch with that bit wakes waiters. A mutex that was taken by a thread that had waited keeps the bit, since
//! others may still be waiting. The waiters bit of a reader-writer latch keeps new readers out, so that
//! writers get their turn; freeing it clears the bit and wakes all.

use super::futex::Futex;
use super::wait_array::WaitArray;
use super::{Contention, Implementation};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::hint;

const HELD: u32 = 1;
pub(super) const WAITERS: u32 = 1 << 29;
const WRITER: u32 = 1 << 30;
const BY_ARRAY: u32 = 1 << 31;
const SHARED_MAX: u32 = WAITERS - 1;

/// How often a thread looks before it waits: most latches are held for less than a microsecond, and waiting
/// costs about five.
#[cfg(not(feature = "shuttle"))]
const SPINS: u64 = 100;
#[cfg(feature = "shuttle")]
const SPINS: u64 = 1;

fn initial(implementation: Implementation) -> u32 {
    match implementation {
        Implementation::Direct => 0,
        Implementation::WaitArray => BY_ARRAY,
    }
}

fn is_by_array(word: u32) -> bool {
    word & BY_ARRAY != 0
}

/// Looks at the word until `is_open`, or until it has looked often enough. Counts the looks.
fn spin(word: &Futex, contention: &mut Contention, is_open: impl Fn(u32) -> bool) -> u32 {
    for _ in 0..SPINS {
        let now = word.load();
        if is_open(now) || now & WAITERS != 0 {
            return now;
        }
        contention.spins += 1;
        hint::spin_loop();
    }
    word.load()
}

/// Mutual exclusion.
#[derive(Debug)]
pub struct RawMutex(Futex);

impl RawMutex {
    #[cfg(not(feature = "shuttle"))]
    pub const fn direct() -> RawMutex {
        RawMutex(Futex::new(0))
    }

    pub fn new(implementation: Implementation) -> RawMutex {
        RawMutex(Futex::new(initial(implementation)))
    }

    #[cfg(not(feature = "shuttle"))]
    pub fn is_direct(&self) -> bool {
        !is_by_array(self.0.load())
    }

    /// Takes a direct latch that is free. False may also mean that it is not a direct one.
    #[inline(always)]
    pub fn try_fast(&self) -> bool {
        self.0.exchange(0, HELD, Acquire).is_ok()
    }

    /// Takes it if it is free.
    pub fn try_lock(&self, array: &WaitArray) -> bool {
        self.try_fast() || is_by_array(self.0.load()) && array.try_enter(&self.0, enter_alone)
    }

    #[cold]
    pub fn lock(&self, array: &WaitArray) -> Contention {
        if is_by_array(self.0.load()) {
            return array.enter(&self.0, enter_alone);
        }
        let mut contention = Contention::default();
        if spin(&self.0, &mut contention, |word| word == 0) == 0 && self.try_fast() {
            return contention;
        }
        // From now on the word has the waiters bit, because others may be waiting, too.
        while self.0.swap(HELD | WAITERS, Acquire) != 0 {
            contention.waits += 1;
            self.0.wait(HELD | WAITERS, None);
            spin(&self.0, &mut contention, |word| word == 0);
        }
        contention
    }

    #[cfg(all(test, not(feature = "shuttle")))]
    pub fn has_waiters(&self) -> bool {
        self.0.load() & WAITERS != 0
    }

    #[inline(always)]
    pub fn unlock(&self, array: &WaitArray) {
        if self.0.exchange(HELD, 0, Release).is_err() {
            self.unlock_slow(array);
        }
    }

    #[cold]
    fn unlock_slow(&self, array: &WaitArray) {
        if is_by_array(self.0.load()) {
            array.leave(&self.0, leave_alone);
        } else if self.0.swap(0, Release) & WAITERS != 0 {
            self.0.wake(1);
        }
    }
}

/// Many readers or one writer.
#[derive(Debug)]
pub struct RawRwLatch(Futex);

impl RawRwLatch {
    pub fn new(implementation: Implementation) -> RawRwLatch {
        RawRwLatch(Futex::new(initial(implementation)))
    }

    /// Takes a direct latch shared if no thread has it alone or wants to. False may also mean that it is not
    /// a direct one.
    #[inline(always)]
    pub fn try_shared_fast(&self) -> bool {
        let word = self.0.load();
        word < SHARED_MAX && self.0.exchange(word, word + 1, Acquire).is_ok()
    }

    #[inline(always)]
    pub fn try_exclusive_fast(&self) -> bool {
        self.0.exchange(0, WRITER, Acquire).is_ok()
    }

    /// Takes it shared if that can be now.
    pub fn try_shared(&self, array: &WaitArray) -> bool {
        self.try_shared_fast() || is_by_array(self.0.load()) && array.try_enter(&self.0, enter_shared)
    }

    pub fn try_exclusive(&self, array: &WaitArray) -> bool {
        self.try_exclusive_fast() || is_by_array(self.0.load()) && array.try_enter(&self.0, enter_exclusive)
    }

    #[cold]
    pub fn lock_shared(&self, array: &WaitArray) -> Contention {
        self.lock(array, enter_shared)
    }

    #[cold]
    pub fn lock_exclusive(&self, array: &WaitArray) -> Contention {
        self.lock(array, enter_exclusive)
    }

    fn lock(&self, array: &WaitArray, enter: fn(u32) -> Option<u32>) -> Contention {
        if is_by_array(self.0.load()) {
            return array.enter(&self.0, enter);
        }
        let mut contention = Contention::default();
        loop {
            let word = spin(&self.0, &mut contention, |word| enter(word).is_some());
            if let Some(to) = enter(word) {
                if self.0.exchange(word, to, Acquire).is_ok() {
                    return contention;
                }
                continue;
            }
            let waiting = word | WAITERS;
            if word == waiting || self.0.exchange(word, waiting, Relaxed).is_ok() {
                contention.waits += 1;
                self.0.wait(waiting, None);
            }
        }
    }

    #[inline(always)]
    pub fn unlock_shared(&self, array: &WaitArray) {
        let word = self.0.load();
        if word & (WAITERS | BY_ARRAY) != 0 || self.0.exchange(word, word - 1, Release).is_err() {
            self.unlock_shared_slow(array);
        }
    }

    #[cold]
    fn unlock_shared_slow(&self, array: &WaitArray) {
        if is_by_array(self.0.load()) {
            return array.leave(&self.0, leave_shared);
        }
        if self.0.subtract(1, Release) == WAITERS | 1 && self.0.exchange(WAITERS, 0, Relaxed).is_ok() {
            self.0.wake(u32::MAX >> 1);
        }
    }

    #[inline(always)]
    pub fn unlock_exclusive(&self, array: &WaitArray) {
        if self.0.exchange(WRITER, 0, Release).is_err() {
            self.unlock_exclusive_slow(array);
        }
    }

    #[cold]
    fn unlock_exclusive_slow(&self, array: &WaitArray) {
        if is_by_array(self.0.load()) {
            array.leave(&self.0, leave_exclusive);
        } else if self.0.swap(0, Release) & WAITERS != 0 {
            self.0.wake(u32::MAX >> 1);
        }
    }
}

// What a word becomes when a thread enters; `None` if it may not enter now. A thread that leaves clears the
// waiters bit, because it wakes all threads that set it.

fn enter_alone(word: u32) -> Option<u32> {
    (word & HELD == 0).then_some(word | HELD)
}

fn leave_alone(word: u32) -> u32 {
    word & BY_ARRAY
}

fn enter_shared(word: u32) -> Option<u32> {
    // In a latch of the wait array the waiters bit does not keep readers out, as in the servers that it is
    // modelled on.
    let is_barred = word & WAITERS != 0 && !is_by_array(word);
    (word & WRITER == 0 && !is_barred && word & SHARED_MAX < SHARED_MAX - 1).then(|| word + 1)
}

fn leave_shared(word: u32) -> u32 {
    let left = word - 1;
    if left & SHARED_MAX == 0 { left & !WAITERS } else { left }
}

fn enter_exclusive(word: u32) -> Option<u32> {
    (word & (WRITER | SHARED_MAX) == 0).then_some(word | WRITER)
}

fn leave_exclusive(word: u32) -> u32 {
    word & BY_ARRAY
}
