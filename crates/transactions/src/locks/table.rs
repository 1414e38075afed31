//! The locks of one table in one partition of the lock table: no latches, no threads.
//!
//! A transaction with very many locks has a *wide* lock instead of an entry for each key: it covers all
//! keys of the table in the partition, those that nobody has locked among them. A request for a key makes
//! the wide locks that cover it ordinary holders of that key first. So requests, queues and the search for
//! circles know of keys only. What the wide locks say anyway is forgotten again.

use super::Held;
use super::graph::Nodes;
use super::queue::{LockMode, Queue};
use base::hash::HashMap;
use base::sync::Arc;

#[derive(Default, Debug)]
pub(super) struct TableLocks {
    keys: HashMap<Arc<[u8]>, Queue>,
    wide: Vec<Wide>,
}

#[derive(Clone, Copy, Debug)]
struct Wide {
    owner: u64,
    mode: LockMode,
}

impl TableLocks {
    /// How many keys have a holder or a waiter.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.wide.is_empty()
    }

    /// True if a wide lock of `owner` is enough for a request.
    pub(super) fn covers(&self, owner: u64, mode: LockMode) -> bool {
        !self.wide.is_empty() && self.wide_mode(owner) >= Some(mode)
    }

    fn wide_mode(&self, owner: u64) -> Option<LockMode> {
        self.wide.iter().find(|wide| wide.owner == owner).map(|wide| wide.mode)
    }

    /// The queue of a key, which has all that hold it.
    pub(super) fn queue(&mut self, key: &[u8]) -> (Arc<[u8]>, &mut Queue) {
        if !self.keys.contains_key(key) {
            self.keys.insert(Arc::from(key), Queue::default());
        }
        let stored = self.keys.get_key_value(key).map(|(stored, _)| stored.clone());
        let (stored, queue) = stored.zip(self.keys.get_mut(key)).expect("just made");
        self.wide.iter().for_each(|wide| queue.cover(wide.owner, wide.mode));
        (stored, queue)
    }

    /// Runs `change` on a key's queue, if there is one.
    pub(super) fn with_queue(&mut self, key: &[u8], change: impl FnOnce(&mut Queue)) {
        if let Some(queue) = self.keys.get_mut(key) {
            change(queue);
            self.settle(key);
        }
    }

    /// Forgets a key's queue if it is empty, or says no more than the wide locks.
    pub(super) fn settle(&mut self, key: &[u8]) {
        let Some(queue) = self.keys.get(key) else { return };
        if queue.is_empty() || !self.wide.is_empty() && queue.is_covered(|owner| self.wide_mode(owner)) {
            self.keys.remove(key);
        }
    }

    pub(super) fn is_held_by_others(&self, owner: u64, key: &[u8]) -> bool {
        self.wide.iter().any(|wide| wide.owner != owner)
            || self.keys.get(key).is_some_and(|queue| queue.is_held_by_others(owner))
    }

    /// Gives `owner` a wide lock for its locks on keys, if nobody is in the way. Gives back those that it
    /// does not replace, all of them if it gets none; and whether it has a wide lock now and had none
    /// before.
    pub(super) fn widen(&mut self, owner: u64, held: Vec<Held>) -> (Vec<Held>, bool) {
        let mode = |held: &Held| self.keys.get(&held.key).and_then(|queue| queue.mode(owner));
        let exclusive = held.iter().filter(|held| mode(held) == Some(LockMode::Exclusive)).count();
        let wanted = if 2 * exclusive > held.len() { LockMode::Exclusive } else { LockMode::Shared };
        let before = self.wide_mode(owner);
        let wanted = before.map_or(wanted, |before| before.max(wanted));
        let both_shared = |wide: &Wide| wide.mode == LockMode::Shared && wanted == LockMode::Shared;
        let others_allow = self.wide.iter().all(|wide| wide.owner == owner || both_shared(wide));
        if !others_allow || !self.keys.values().all(|queue| queue.allows_wide(owner, wanted)) {
            return (held, false);
        }
        self.wide.retain(|wide| wide.owner != owner);
        self.wide.push(Wide { owner, mode: wanted });
        let mut rest = Vec::new();
        for held in held {
            match self.keys.get(&held.key) {
                Some(queue) if queue.mode(owner) > Some(wanted) => rest.push(held),
                _ => self.settle(&held.key),
            }
        }
        (rest, before.is_none())
    }

    /// Gives back all locks of `owner`, who has a wide one.
    pub(super) fn release_wide(
        &mut self,
        owner: u64,
        mut with_graph: impl FnMut(&mut dyn FnMut(&mut Nodes)),
    ) {
        self.wide.retain(|wide| wide.owner != owner);
        self.keys.retain(|_, queue| {
            if queue.mode(owner).is_some() {
                queue.release(owner, None);
                if queue.has_waiters() {
                    with_graph(&mut |graph| queue.advance_after(owner, None, graph));
                }
            }
            !queue.is_empty()
        });
        if self.wide.is_empty() {
            return;
        }
        // Others with wide locks may be all that is left of some.
        let keys: Vec<Arc<[u8]>> = self.keys.keys().cloned().collect();
        keys.iter().for_each(|key| self.settle(key));
    }
}
