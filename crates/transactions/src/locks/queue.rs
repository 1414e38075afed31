//! The holders of one key and the queue behind them: no latches, no threads.
//!
//! First come, first served (transactions R8): no request overtakes another. The only exception are holders
//! of a shared lock that want it exclusively. They go to the front, because all others wait for them anyway.

use super::graph::{Blocker, Nodes};
use super::waiter::Waiter;
use base::hash::HashMap;
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

/// So many holders are looked through one by one. Rows have few; the definition of a table has as many as
/// there are open transactions that have changed the table.
const FEW: usize = 8;

/// The transactions that hold a key.
#[derive(Debug, Default)]
struct Holders {
    list: Vec<Holder>,
    /// Where each is in the list, once there have been more than [`FEW`].
    #[allow(clippy::box_collection, reason = "each locked row has a queue: eight bytes and not 48")]
    places: Option<Box<HashMap<u64, usize>>>,
    /// How many of them hold it exclusively.
    exclusive: usize,
}

impl Holders {
    fn place(&self, owner: u64) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&owner).copied(),
            None => self.list.iter().position(|holder| {
                #[cfg(test)]
                tests::LOOKS.set(tests::LOOKS.get() + 1);
                holder.owner == owner
            }),
        }
    }

    fn mode(&self, owner: u64) -> Option<LockMode> {
        self.place(owner).map(|place| self.list[place].mode)
    }

    fn hold(&mut self, owner: u64, mode: LockMode) {
        self.exclusive += usize::from(mode == LockMode::Exclusive);
        if let Some(place) = self.place(owner) {
            let before = std::mem::replace(&mut self.list[place].mode, mode);
            self.exclusive -= usize::from(before == LockMode::Exclusive);
            return;
        }
        self.list.push(Holder { owner, mode });
        match &mut self.places {
            Some(places) => drop(places.insert(owner, self.list.len() - 1)),
            None if self.list.len() > FEW => {
                let places = self.list.iter().enumerate().map(|(place, holder)| (holder.owner, place));
                self.places = Some(Box::new(places.collect()));
            }
            None => {}
        }
    }

    fn remove(&mut self, owner: u64) {
        let Some(place) = self.place(owner) else { return };
        let Some(places) = &mut self.places else {
            // In their order, which is the one that people are shown.
            self.exclusive -= usize::from(self.list.remove(place).mode == LockMode::Exclusive);
            return;
        };
        self.exclusive -= usize::from(self.list.swap_remove(place).mode == LockMode::Exclusive);
        places.remove(&owner);
        if let Some(moved) = self.list.get(place) {
            places.insert(moved.owner, place);
        }
        if self.list.is_empty() {
            self.places = None;
        }
    }

    /// True if no holder but `owner` excludes `mode`.
    fn allow(&self, owner: u64, mode: LockMode) -> bool {
        let own = self.mode(owner);
        match mode {
            LockMode::Shared => self.exclusive == usize::from(own == Some(LockMode::Exclusive)),
            LockMode::Exclusive => self.list.len() == usize::from(own.is_some()),
        }
    }
}

#[derive(Debug, Default)]
pub struct Queue {
    holders: Holders,
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
        let before = self.holders.mode(owner);
        if before >= Some(mode) {
            return Acquired::Already;
        }
        let is_upgrade = before.is_some();
        if (is_upgrade || self.waiting.is_empty()) && self.is_free_for(owner, mode) {
            self.holders.hold(owner, mode);
            return Acquired::Now { before };
        }
        Acquired::NotYet { before }
    }

    fn is_free_for(&self, owner: u64, mode: LockMode) -> bool {
        self.holders.allow(owner, mode)
    }

    /// The holders that exclude `mode`.
    fn in_the_way_of(&self, owner: u64, mode: LockMode) -> impl Iterator<Item = Blocker> {
        self.holders
            .list
            .iter()
            .filter(move |holder| {
                #[cfg(test)]
                tests::LOOKS.set(tests::LOOKS.get() + 1);
                let both_shared = mode == LockMode::Shared && holder.mode == LockMode::Shared;
                holder.owner != owner && !both_shared
            })
            .map(|holder| Blocker { transaction: holder.owner, mode: holder.mode })
    }

    /// Queues a request and gives its place.
    pub fn join(&mut self, owner: u64, mode: LockMode, waiter: Arc<Waiter>) -> usize {
        let is_upgrade = self.holders.mode(owner).is_some();
        let place = match is_upgrade {
            true => self.waiting.iter().take_while(|waiting| waiting.is_upgrade).count(),
            false => self.waiting.len(),
        };
        self.waiting.insert(place, Waiting { owner, mode, is_upgrade, waiter });
        place
    }

    /// Tells the graph which transactions the waiters at `place` and behind it wait for. The first waits for
    /// the holders that exclude it, and each other one for the one before it. Because nobody overtakes that
    /// is enough, and a request that comes touches only two waiters.
    ///
    /// A holder may have got a stronger lock since the first waiter came, which is shown if there are few.
    pub fn link(&self, place: usize, graph: &mut Nodes) {
        let first = if self.holders.list.len() <= FEW { 0 } else { place };
        for place in [first, place, place + 1] {
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
            Some(mode) => self.holders.hold(owner, mode),
            None => self.holders.remove(owner),
        }
    }

    /// Hands the lock, which `owner` has given back down to `to`, to the first waiters that can have it now.
    pub fn advance_after(&mut self, owner: u64, to: Option<LockMode>, graph: &mut Nodes) {
        let first = self.waiting.front().map(|first| first.owner);
        match first {
            // Of perhaps thousands of holders one has gone.
            Some(first) if to.is_none() && !self.can_advance() => graph.drop_edge(first, owner),
            Some(_) => self.advance(graph),
            None => {}
        }
    }

    fn can_advance(&self) -> bool {
        self.waiting.front().is_some_and(|first| self.is_free_for(first.owner, first.mode))
    }

    /// Hands the lock to the first waiters that can have it now.
    fn advance(&mut self, graph: &mut Nodes) {
        while let Some(first) = self.waiting.front() {
            if !self.is_free_for(first.owner, first.mode) {
                break;
            }
            let first = self.waiting.pop_front().expect("just seen");
            graph.forget(first.owner);
            // A victim that has not left yet is passed over. It finds later that it is no longer in the
            // queue.
            if first.waiter.grant() {
                self.holders.hold(first.owner, first.mode);
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
        self.link(0, graph);
        self.link(place, graph);
        for place in [0, place] {
            if let Some(waiting) = self.waiting.get(place) {
                graph.break_circles(waiting.owner);
            }
        }
    }

    /// What `owner` holds.
    pub fn mode(&self, owner: u64) -> Option<LockMode> {
        self.holders.mode(owner)
    }

    /// `owner` has a wide lock, which the queue is to know.
    pub fn cover(&mut self, owner: u64, mode: LockMode) {
        if self.holders.mode(owner) < Some(mode) {
            self.holders.hold(owner, mode);
        }
    }

    /// True if nobody waits, and the holders have no more than wide locks give them.
    pub fn is_covered(&self, wide: impl Fn(u64) -> Option<LockMode>) -> bool {
        self.waiting.is_empty()
            && self.holders.list.iter().all(|holder| wide(holder.owner) >= Some(holder.mode))
    }

    /// True if `owner` may hold this key too, without overtaking anybody.
    pub fn allows_wide(&self, owner: u64, mode: LockMode) -> bool {
        let has_it = self.holders.mode(owner) >= Some(mode);
        has_it || self.waiting.is_empty() && self.holders.allow(owner, mode)
    }

    /// True if another transaction holds the key, in any mode.
    pub fn is_held_by_others(&self, owner: u64) -> bool {
        !self.is_free_for(owner, LockMode::Exclusive)
    }

    pub fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.holders.list.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    thread_local! {
        /// Holders that have been looked at.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    #[cfg(not(feature = "shuttle"))]
    mod of_queues {
        use super::super::*;
        use super::LOOKS;
        use base::random::Random;
        use std::collections::BTreeMap;

        #[test]
        fn a_lock_that_thousands_share_is_taken_and_given_back_without_a_look_at_each() {
            const OWNERS: u64 = 5_000;
            let mut queue = Queue::default();
            for owner in 0..OWNERS {
                assert_eq!(queue.acquire(owner, LockMode::Shared), Acquired::Now { before: None });
                assert_eq!(queue.acquire(owner, LockMode::Shared), Acquired::Already);
            }
            (0..OWNERS).rev().step_by(2).for_each(|owner| queue.release(owner, None));
            assert!(queue.is_held_by_others(1));
            (0..OWNERS).for_each(|owner| queue.release(owner, None));
            assert!(queue.is_empty());
            let looks = LOOKS.get();
            assert!(looks < 20 * OWNERS as usize, "{looks} looks for {OWNERS} owners");
        }

        #[test]
        fn a_change_of_definition_that_waits_for_thousands_is_told_of_each_end_by_itself() {
            const OWNERS: u64 = 2_000;
            let mut queue = Queue::default();
            let mut graph = Nodes::default();
            (1..=OWNERS).for_each(|owner| queue.holders.hold(owner, LockMode::Shared));
            let waiter = Arc::new(Waiter::default());
            waiter.begin();
            let wanted = crate::locks::Wanted { table: 1, key: Arc::from(*b"t"), mode: LockMode::Exclusive };
            graph.wait(0, waiter.clone(), wanted);
            let place = queue.join(0, LockMode::Exclusive, waiter.clone());
            queue.link(place, &mut graph);
            let before = LOOKS.get();
            for owner in 1..=OWNERS {
                assert!(waiter.is_waiting());
                assert_eq!(graph.waits()[0].blockers.len() as u64, OWNERS - owner + 1);
                queue.release(owner, None);
                queue.advance_after(owner, None, &mut graph);
            }
            assert!(!waiter.is_waiting() && graph.len() == 0);
            let looks = LOOKS.get() - before;
            assert!(looks < 20 * OWNERS as usize, "{looks} looks at {OWNERS} holders");
        }

        #[test]
        fn holders_are_what_a_map_of_them_is() {
            let mut random = Random::new(5, 0);
            for most in [3, 30] {
                let (mut holders, mut map) = (Holders::default(), BTreeMap::new());
                for _ in 0..5_000 {
                    let owner = random.below_u64(most);
                    let mode = [LockMode::Shared, LockMode::Exclusive][random.index(2)];
                    if random.below(5) < 2 {
                        holders.remove(owner);
                        map.remove(&owner);
                    } else {
                        holders.hold(owner, mode);
                        map.insert(owner, mode);
                    }
                    let mut list: Vec<_> = holders.list.iter().map(|h| (h.owner, h.mode)).collect();
                    list.sort_unstable();
                    assert!(list.iter().copied().eq(map.iter().map(|(owner, mode)| (*owner, *mode))));
                    let asks = random.below_u64(most);
                    assert_eq!(holders.mode(asks), map.get(&asks).copied());
                    let others: Vec<_> = map.iter().filter(|(owner, _)| **owner != asks).collect();
                    assert_eq!(holders.allow(asks, LockMode::Exclusive), others.is_empty());
                    let shared = others.iter().all(|(_, mode)| **mode == LockMode::Shared);
                    assert_eq!(holders.allow(asks, LockMode::Shared), shared);
                }
            }
        }
    }
}
