//! The names that a session locks with GET_LOCK.

use super::Session;
use crate::SqlError;
use crate::locks::{Attempt, Request};
use crate::memory::Charge;
use std::time::{Duration, Instant};

/// What the lock of a name takes in memory beside the name, about.
const LOCK_BYTES: usize = 160;

/// How many names a session has locked, and what they take in memory.
#[derive(Debug, Default)]
pub(super) struct Owned {
    names: usize,
    bytes: usize,
    charge: Charge,
}

impl Session {
    /// Locks a name: true if the session has the lock, false if the time is over, `None` after KILL and when
    /// the statement's time is over.
    ///
    /// # Errors
    /// 1213 for a deadlock, 1927 after KILL of the connection; 1290 and 1041 if the session would hold too
    /// much memory.
    pub(super) fn get_user_lock(&self, name: &[u8], wait: Duration) -> Result<Option<bool>, SqlError> {
        let (locks, owner) = (&self.instance.user_locks, self.client.id);
        let mut owned = self.user_locks.borrow_mut();
        let bytes = owned.bytes + name.len() + LOCK_BYTES;
        owned.charge.cover(bytes, &self.memory)?;
        let attempt = match locks.try_lock(name, owner) {
            Some(attempt) => attempt,
            None if wait.is_zero() => Attempt::Late,
            None => {
                let request = Request { owner, interrupt: &self.interrupt, until: Instant::now() + wait };
                let mut attempt = Ok(Attempt::Late);
                let returned = self.interrupt.outside(|| attempt = locks.lock(name, &request));
                if returned.is_err() && matches!(attempt, Ok(Attempt::First | Attempt::Again)) {
                    locks.unlock(name, owner);
                    return Ok(None);
                }
                attempt?
            }
        };
        Ok(match attempt {
            Attempt::First => {
                owned.names += 1;
                owned.bytes = bytes;
                Some(true)
            }
            Attempt::Again => Some(true),
            Attempt::Late => Some(false),
            Attempt::Interrupted if self.interrupt.connection_is_killed() => {
                self.interrupt.check()?;
                None
            }
            Attempt::Interrupted => None,
        })
    }

    /// Undoes one [`Session::get_user_lock`]: false if another session owns the lock, `None` if no session
    /// does.
    pub(super) fn release_user_lock(&self, name: &[u8]) -> Option<bool> {
        let locks = &self.instance.user_locks;
        let Some(is_free) = locks.unlock(name, self.client.id) else {
            return locks.owner(name).map(|_| false);
        };
        if is_free {
            let mut owned = self.user_locks.borrow_mut();
            owned.names = owned.names.saturating_sub(1);
            owned.bytes = owned.bytes.saturating_sub(name.len() + LOCK_BYTES);
            if owned.names == 0 {
                *owned = Owned::default();
            }
        }
        Some(true)
    }

    /// Releases all names, and tells how often the session had locked them. Without one this is a look at
    /// the session.
    pub(super) fn release_user_locks(&self) -> u64 {
        let mut owned = self.user_locks.borrow_mut();
        if owned.names == 0 {
            return 0;
        }
        *owned = Owned::default();
        self.instance.user_locks.unlock_all(self.client.id)
    }
}
