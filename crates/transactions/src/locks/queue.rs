//! The holders of one key and the queue behind them: no latches, no threads.
//!
//! First come, first served (transactions R8): no request overtakes another. The only exception are holders
//! of a shared lock that want it exclusively. They go to the front, because all others wait for them anyway.

use super::graph::{Blocker, Nodes};
use super::waiter::Waiter;
use base::sync::Arc;
use std::collections::VecDeque;

/// What a lock allows other transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockMode {
    /// Shared: others may hold it too (LOCK IN SHARE MODE).
    Shared,
    /// Exclusive: no other transaction holds it (FOR UPDATE).
    Exclusive,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    owner: u64,
    mode: LockMode,
}

#[derive(Debug)]
struct Waiting {
    owner: u64,
    mode: LockMode,
    is_upgrade: bool,
    waiter: Arc<Waiter>,
}

#[derive(Debug, Default)]
pub struct Queue {
    holders: Vec<Holder>,
    waiting: VecDeque<Waiting>,
}

/// The result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// The owner had at least this lock.
    Already,
    /// It has the lock now.
    Now { before: Option<LockMode> },
    /// It has to wait.
    NotYet { before: Option<LockMode> },
}

impl Queue {
    /// Takes the lock if no holder and no waiter is in the way.
    pub fn acquire(&mut self, owner: u64, mode: LockMode) -> Acquired {
        let before = self.holders.iter().find(|holder| holder.owner == owner).map(|holder| holder.mode);
        if before >= Some(mode) {
            return Acquired::Already;
        }
        let is_upgrade = before.is_some();
        if (is_upgrade || self.waiting.is_empty()) && self.is_free_for(owner, mode) {
            self.hold(owner, mode);
            return Acquired::Now { before };
        }
        Acquired::NotYet { before }
    }

    fn is_free_for(&self, owner: u64, mode: LockMode) -> bool {
        self.in_the_way_of(owner, mode).next().is_none()
    }

    /// The holders that exclude `mode`.
    fn in_the_way_of(&self, owner: u64, mode: LockMode) -> impl Iterator<Item = Blocker> {
        self.holders
            .iter()
            .filter(move |holder| {
                let both_shared = mode == LockMode::Shared && holder.mode == LockMode::Shared;
                holder.owner != owner && !both_shared
            })
            .map(|holder| Blocker { transaction: holder.owner, mode: holder.mode })
    }

    fn hold(&mut self, owner: u64, mode: LockMode) {
        match self.holders.iter_mut().find(|holder| holder.owner == owner) {
            Some(holder) => holder.mode = mode,
            None => self.holders.push(Holder { owner, mode }),
        }
    }

    /// Queues a request and gives its place.
    pub fn join(&mut self, owner: u64, mode: LockMode, waiter: Arc<Waiter>) -> usize {
        let is_upgrade = self.holders.iter().any(|holder| holder.owner == owner);
        let place = match is_upgrade {
            true => self.waiting.iter().take_while(|waiting| waiting.is_upgrade).count(),
            false => self.waiting.len(),
        };
        self.waiting.insert(place, Waiting { owner, mode, is_upgrade, waiter });
        place
    }

    /// Tells the graph which transactions the waiters at `place` and next to it wait for. The first waits for
    /// the holders that exclude it, and each other one for the one before it. Because nobody overtakes that
    /// is enough, and a change touches only three waiters.
    pub fn link(&self, place: usize, graph: &mut Nodes) {
        for place in [0, place, place + 1] {
            if let Some(waiting) = self.waiting.get(place) {
                graph.set_edges(waiting.owner, || match place.checked_sub(1) {
                    Some(before) => {
                        let before = &self.waiting[before];
                        vec![Blocker { transaction: before.owner, mode: before.mode }]
                    }
                    None => self.in_the_way_of(waiting.owner, waiting.mode).collect(),
                });
            }
        }
    }

    /// Gives a lock back, down to `to`.
    pub fn release(&mut self, owner: u64, to: Option<LockMode>) {
        match to {
            Some(mode) => self.hold(owner, mode),
            None => self.holders.retain(|holder| holder.owner != owner),
        }
    }

    /// Hands the lock to the first waiters that can have it now.
    pub fn advance(&mut self, graph: &mut Nodes) {
        while let Some(first) = self.waiting.front() {
            if !self.is_free_for(first.owner, first.mode) {
                break;
            }
            let first = self.waiting.pop_front().expect("just seen");
            graph.forget(first.owner);
            // A victim that has not left yet is passed over. It finds later that it is no longer in the
            // queue.
            if first.waiter.grant() {
                self.hold(first.owner, first.mode);
            }
        }
        self.relink(0, graph);
    }

    /// Takes a waiter out that has given up and left the graph. Does nothing if it was passed over.
    pub fn leave(&mut self, owner: u64, graph: &mut Nodes) {
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.owner == owner) {
            self.waiting.remove(place);
            self.relink(place, graph);
        }
        self.advance(graph);
    }

    /// Links the waiters near `place` after one before them has gone, and looks for circles again: a victim's
    /// edges leave the graph before it leaves the queue, so that a circle through it may have closed unseen.
    fn relink(&self, place: usize, graph: &mut Nodes) {
        self.link(place, graph);
        for place in [0, place] {
            if let Some(waiting) = self.waiting.get(place) {
                graph.break_circles(waiting.owner);
            }
        }
    }

    /// True if another transaction holds the key, in any mode.
    pub fn is_held_by_others(&self, owner: u64) -> bool {
        !self.is_free_for(owner, LockMode::Exclusive)
    }

    pub fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.waiting.is_empty()
    }
}
