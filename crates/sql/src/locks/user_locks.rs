//! GET_LOCK: locks on names. A session owns the names that it has locked until it releases them or ends.
//! Transactions do not matter.

use super::Request;
use crate::SqlError;
use crate::host::{Interrupt, WaitsFor};
use base::sync::{Arc, Mutex};
use std::collections::{HashMap, VecDeque};

base::latch_class!(pub UserLocksLatch, "user locks");

/// The locks of all sessions. The latch is held for a few steps, so a server needs only one.
#[derive(Debug, Default)]
pub(crate) struct UserLocks {
    state: Mutex<State, UserLocksLatch>,
}

#[derive(Debug, Default)]
struct State {
    locks: HashMap<Box<[u8]>, UserLock>,
    /// The name that a session waits for.
    waits: HashMap<u64, Box<[u8]>>,
}

/// A lock exists while a session owns it.
#[derive(Debug)]
struct UserLock {
    owner: u64,
    /// How often the owner has locked it.
    count: u64,
    /// Sessions that wait, in the order in which they came.
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    owner: u64,
    interrupt: Arc<Interrupt>,
}

/// How an attempt to lock a name ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// The session owns the name, and did not before.
    First,
    /// The session owned the name already.
    Again,
    /// The time is over.
    Late,
    /// The statement was killed, or its time is over.
    Interrupted,
}

impl State {
    /// True if `owner` would wait for itself, directly or through others, if it waited for `name`.
    ///
    /// Each session waits for one name at most, and the waits before this one have no cycle, so the walk
    /// ends. A lock that changes its owner closes no cycle either: the new owner waits for nothing.
    fn would_deadlock(&self, owner: u64, name: &[u8]) -> bool {
        let mut name = name;
        while let Some(lock) = self.locks.get(name) {
            if lock.owner == owner {
                return true;
            }
            match self.waits.get(&lock.owner) {
                Some(next) => name = next,
                None => return false,
            }
        }
        false
    }

    /// Hands a lock to the first session that waits for it. The lock goes away if none does.
    fn hand_over(&mut self, name: &[u8]) {
        let Some(lock) = self.locks.get_mut(name) else { return };
        match lock.queue.pop_front() {
            Some(next) => {
                lock.owner = next.owner;
                lock.count = 1;
                self.waits.remove(&next.owner);
                next.interrupt.ring();
            }
            None => {
                self.locks.remove(name);
            }
        }
    }
}

impl UserLocks {
    /// Locks a name if no other session owns it. `None` if one does.
    pub(crate) fn try_lock(&self, name: &[u8], owner: u64) -> Option<Attempt> {
        let mut state = self.state.lock();
        match state.locks.get_mut(name) {
            Some(lock) if lock.owner == owner => {
                lock.count += 1;
                Some(Attempt::Again)
            }
            Some(_) => None,
            None => {
                state.locks.insert(name.into(), UserLock { owner, count: 1, queue: VecDeque::new() });
                Some(Attempt::First)
            }
        }
    }

    /// Locks a name, and waits for it while other sessions own it.
    ///
    /// # Errors
    /// 1213 for a deadlock.
    pub(crate) fn lock(&self, name: &[u8], request: &Request<'_>) -> Result<Attempt, SqlError> {
        let Request { owner, interrupt, until } = *request;
        if let Some(attempt) = self.try_lock(name, owner) {
            return Ok(attempt);
        }
        {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            if state.would_deadlock(owner, name) {
                return Err(SqlError::user_lock_deadlock());
            }
            match state.locks.get_mut(name) {
                Some(lock) => lock.queue.push_back(Waiter { owner, interrupt: interrupt.clone() }),
                // The owner has released it meanwhile.
                None => {
                    let lock = UserLock { owner, count: 1, queue: VecDeque::new() };
                    state.locks.insert(name.into(), lock);
                    return Ok(Attempt::First);
                }
            }
            state.waits.insert(owner, name.into());
        }
        loop {
            let slept = interrupt.sleep(until, WaitsFor::UserLock);
            let mut guard = self.state.lock();
            let state = &mut *guard;
            // The session that hands the lock over ends the wait.
            if !state.waits.contains_key(&owner) {
                return Ok(Attempt::First);
            }
            if slept.is_err() {
                state.waits.remove(&owner);
                if let Some(lock) = state.locks.get_mut(name) {
                    lock.queue.retain(|waiter| waiter.owner != owner);
                }
                let killed = interrupt.check().is_err();
                return Ok(if killed { Attempt::Interrupted } else { Attempt::Late });
            }
        }
    }

    /// Undoes one [`UserLocks::lock`]: true if the name is free for others now. `None` if the session does
    /// not own it.
    pub(crate) fn unlock(&self, name: &[u8], owner: u64) -> Option<bool> {
        let mut state = self.state.lock();
        let lock = state.locks.get_mut(name).filter(|lock| lock.owner == owner)?;
        lock.count -= 1;
        if lock.count > 0 {
            return Some(false);
        }
        state.hand_over(name);
        Some(true)
    }

    /// Releases all names of a session, and tells how often it had locked them.
    pub(crate) fn unlock_all(&self, owner: u64) -> u64 {
        let mut state = self.state.lock();
        let owned = state.locks.iter().filter(|(_, lock)| lock.owner == owner);
        let owned: Vec<(Box<[u8]>, u64)> = owned.map(|(name, lock)| (name.clone(), lock.count)).collect();
        owned.iter().for_each(|(name, _)| state.hand_over(name));
        owned.iter().map(|(_, count)| count).sum()
    }

    /// The session that owns a name.
    pub(crate) fn owner(&self, name: &[u8]) -> Option<u64> {
        self.state.lock().locks.get(name).map(|lock| lock.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Kill;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    fn after(millis: u64) -> Instant {
        Instant::now() + Duration::from_millis(millis)
    }

    fn wait_for_waiters(locks: &UserLocks, count: usize) {
        while locks.state.lock().waits.len() < count {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_session_locks_a_name_as_often_as_it_likes_and_others_wait_in_turn() {
        let locks = UserLocks::default();
        let interrupt = Arc::new(Interrupt::default());
        let request = |owner, until| Request { owner, interrupt: &interrupt, until };
        assert_eq!(locks.lock(b"a", &request(1, after(0))), Ok(Attempt::First));
        assert_eq!(locks.lock(b"a", &request(1, after(0))), Ok(Attempt::Again));
        assert_eq!(locks.try_lock(b"a", 2), None);
        assert_eq!(locks.lock(b"a", &request(2, after(5))), Ok(Attempt::Late));
        assert_eq!(locks.unlock(b"a", 2), None);
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for owner in [2, 3] {
                let (locks, order) = (&locks, &order);
                scope.spawn(move || {
                    let interrupt = Arc::new(Interrupt::default());
                    let request = Request { owner, interrupt: &interrupt, until: after(60_000) };
                    assert_eq!(locks.lock(b"a", &request), Ok(Attempt::First));
                    order.lock().push(owner);
                    assert_eq!(locks.unlock(b"a", owner), Some(true));
                });
                wait_for_waiters(locks, owner as usize - 1);
            }
            assert_eq!(locks.unlock(b"a", 1), Some(false));
            assert_eq!(locks.owner(b"a"), Some(1));
            assert_eq!(locks.unlock(b"a", 1), Some(true));
        });
        assert_eq!(*order.lock(), [2, 3]);
        assert!(locks.state.lock().locks.is_empty());
    }

    #[test]
    fn a_ring_of_waits_is_a_deadlock_for_the_last_who_comes() {
        let locks = UserLocks::default();
        let names: [&[u8]; 3] = [b"a", b"b", b"c"];
        for (owner, name) in (1..).zip(names) {
            assert_eq!(locks.try_lock(name, owner), Some(Attempt::First));
        }
        std::thread::scope(|scope| {
            for owner in [1, 2] {
                let locks = &locks;
                scope.spawn(move || {
                    let interrupt = Arc::new(Interrupt::default());
                    let request = Request { owner, interrupt: &interrupt, until: after(60_000) };
                    assert_eq!(locks.lock(names[owner as usize], &request), Ok(Attempt::First));
                    locks.unlock_all(owner);
                });
                wait_for_waiters(locks, owner as usize);
            }
            let interrupt = Arc::new(Interrupt::default());
            let request = Request { owner: 3, interrupt: &interrupt, until: after(60_000) };
            assert_eq!(locks.lock(b"a", &request).unwrap_err().code(), 1213);
            assert_eq!(locks.unlock_all(3), 1);
        });
        assert!(locks.state.lock().locks.is_empty());
    }

    #[test]
    fn a_kill_ends_the_wait() {
        let locks = UserLocks::default();
        assert_eq!(locks.try_lock(b"a", 1), Some(Attempt::First));
        let interrupt = Arc::new(Interrupt::default());
        std::thread::scope(|scope| {
            let request = Request { owner: 2, interrupt: &interrupt, until: after(60_000) };
            let waiting = scope.spawn({
                let locks = &locks;
                move || locks.lock(b"a", &request)
            });
            wait_for_waiters(&locks, 1);
            interrupt.raise(Kill::Statement);
            assert_eq!(waiting.join().expect("no panic"), Ok(Attempt::Interrupted));
        });
        assert_eq!(locks.unlock_all(1), 1);
        assert!(locks.state.lock().locks.is_empty());
    }

    /// Sessions that come, wait for a moment, give up and release at random.
    #[test]
    fn only_one_session_at_a_time_owns_a_name() {
        let locks = UserLocks::default();
        let inside = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            for owner in 1..=4u64 {
                let (locks, inside) = (&locks, &inside);
                scope.spawn(move || {
                    let interrupt = Arc::new(Interrupt::default());
                    let mut random = base::random::Random::new(owner, 0);
                    for _ in 0..500 {
                        let which = random.below(2) as usize;
                        let name: &[u8] = [b"a", b"b"][which];
                        let until = Instant::now() + Duration::from_micros(random.below(200) as u64);
                        let request = Request { owner, interrupt: &interrupt, until };
                        if locks.lock(name, &request) == Ok(Attempt::First) {
                            assert_eq!(inside[which].swap(owner, Ordering::SeqCst), 0);
                            std::thread::yield_now();
                            assert_eq!(inside[which].swap(0, Ordering::SeqCst), owner);
                            assert_eq!(locks.unlock(name, owner), Some(true));
                        }
                    }
                });
            }
        });
        let state = locks.state.lock();
        assert!(state.locks.is_empty() && state.waits.is_empty());
    }
}
