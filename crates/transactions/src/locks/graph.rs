//! Which transaction waits for which, and how circles are broken.
//!
//! Edges are set when a wait begins and kept up to date while it lasts. A thread that adds edges looks for
//! circles through its own transaction, so a circle is found by the request that closes it. A transaction
//! that nobody waits for is in no circle, and nothing is searched: of thousands that queue for one row, each
//! comes last and is such a one.

use super::queue::LockMode;
use super::waiter::{Phase, Waiter};
use crate::DEFINITIONS;
use base::hash::HashMap;
use base::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One mutex for all. It is taken only when a transaction has to wait, or had to.
#[derive(Debug, Default)]
pub struct Graph(Mutex<Nodes>);

impl Graph {
    pub fn with<R>(&self, run: impl FnOnce(&mut Nodes) -> R) -> R {
        run(&mut self.0.lock())
    }
}

/// The transactions that wait. A victim is no longer among them.
#[derive(Debug, Default)]
pub struct Nodes {
    waiting: HashMap<u64, Node>,
    /// How many of the edges lead to a transaction, whether it waits itself or not.
    awaited: HashMap<u64, usize>,
    totals: WaitTotals,
    /// Transactions that searches have come to.
    #[cfg(test)]
    visited: std::cell::Cell<usize>,
}

#[derive(Debug)]
struct Node {
    waiter: Arc<Waiter>,
    blockers: Vec<Blocker>,
    wanted: Wanted,
    since: Instant,
}

/// What a transaction waits for: this lock, or the end of the transaction that has changed the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub table: u64,
    pub key: Arc<[u8]>,
    pub mode: LockMode,
}

impl Wanted {
    fn is_row(&self) -> bool {
        self.table != DEFINITIONS
    }
}

/// A transaction that another one waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocker {
    pub transaction: u64,
    /// The lock that it holds, or waits for before the other.
    pub mode: LockMode,
}

/// A transaction that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingLock {
    pub transaction: u64,
    pub wanted: Wanted,
    /// For how long.
    pub waited: Duration,
    /// The transactions it waits for: the holders in its way, or the one before it in the queue.
    pub blockers: Vec<Blocker>,
}

/// Waits for rows since the start. Changed by threads that wait and threads that wake them, under the graph's
/// mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitTotals {
    /// Begun.
    pub waits: u64,
    /// Under way.
    pub waiting: u64,
    /// Of those that have ended: together, and the longest.
    pub waited: Duration,
    pub longest: Duration,
    /// Circles broken, those through definitions of tables included.
    pub deadlocks: u64,
}

impl Nodes {
    /// `owner` begins to wait. For which transactions is said later.
    pub fn wait(&mut self, owner: u64, waiter: Arc<Waiter>, wanted: Wanted) {
        if wanted.is_row() {
            self.totals.waits += 1;
            self.totals.waiting += 1;
        }
        self.waiting.insert(owner, Node { waiter, blockers: Vec::new(), wanted, since: Instant::now() });
    }

    /// Says which transactions `owner` waits for, if it still waits.
    pub fn set_edges(&mut self, owner: u64, blockers: impl FnOnce() -> Vec<Blocker>) {
        let Some(node) = self.waiting.get_mut(&owner) else { return };
        let before = std::mem::replace(&mut node.blockers, blockers());
        for blocker in &node.blockers {
            *self.awaited.entry(blocker.transaction).or_default() += 1;
        }
        self.forget_edges(&before);
    }

    /// `owner` waits no longer for this one of the transactions that it waits for.
    pub fn drop_edge(&mut self, owner: u64, blocker: u64) {
        let Some(node) = self.waiting.get_mut(&owner) else { return };
        if let Some(place) = node.blockers.iter().position(|known| known.transaction == blocker) {
            let gone = node.blockers.swap_remove(place);
            self.forget_edges(&[gone]);
        }
    }

    fn forget_edges(&mut self, blockers: &[Blocker]) {
        for Blocker { transaction, .. } in blockers {
            if let Some(count) = self.awaited.get_mut(transaction) {
                *count -= 1;
                if *count == 0 {
                    self.awaited.remove(transaction);
                }
            }
        }
    }

    /// `owner` waits no longer.
    pub fn forget(&mut self, owner: u64) {
        self.take(owner);
    }

    fn take(&mut self, owner: u64) -> Option<Node> {
        let node = self.waiting.remove(&owner)?;
        self.forget_edges(&node.blockers);
        if node.wanted.is_row() {
            let waited = node.since.elapsed();
            self.totals.waiting -= 1;
            self.totals.waited += waited;
            self.totals.longest = self.totals.longest.max(waited);
        }
        Some(node)
    }

    /// Ends a wait that may not have been granted, and gives the phase that it had reached. In one step with
    /// leaving the graph, because a transaction that is in the graph may be made a victim.
    pub fn give_up(&mut self, owner: u64, waiter: &Waiter) -> Phase {
        self.forget(owner);
        waiter.finish()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn totals(&self) -> WaitTotals {
        self.totals
    }

    /// All transactions that wait, in the order of their ids.
    pub fn waits(&self) -> Vec<PendingLock> {
        let wait = |(id, node): (&u64, &Node)| PendingLock {
            transaction: *id,
            wanted: node.wanted.clone(),
            waited: node.since.elapsed(),
            blockers: node.blockers.clone(),
        };
        let mut waits: Vec<PendingLock> = self.waiting.iter().map(wait).collect();
        waits.sort_by_key(|wait| wait.transaction);
        waits
    }

    /// Makes victims until `start` waits in no circle: of each circle the transaction that has changed the
    /// fewest rows, among equals the youngest.
    pub fn break_circles(&mut self, start: u64) {
        while let Some(circle) = self.circle_through(start) {
            let weight = |id: &u64| (self.waiting[id].waiter.rows_changed(), std::cmp::Reverse(*id));
            let victim = circle.into_iter().min_by_key(weight).expect("a circle has members");
            let node = self.take(victim).expect("members of a circle wait");
            self.totals.deadlocks += 1;
            node.waiter.condemn();
        }
    }

    /// The transactions of one circle through `start`.
    fn circle_through(&self, start: u64) -> Option<Vec<u64>> {
        if !self.awaited.contains_key(&start) {
            return None;
        }
        let mut came_from = HashMap::default();
        let mut to_visit = vec![start];
        while let Some(id) = to_visit.pop() {
            let Some(node) = self.waiting.get(&id) else { continue };
            #[cfg(test)]
            self.visited.set(self.visited.get() + 1);
            for Blocker { transaction: blocker, .. } in &node.blockers {
                if *blocker == start {
                    let mut circle = vec![id];
                    while let Some(before) = circle.last().and_then(|id| came_from.get(id)) {
                        circle.push(*before);
                    }
                    return Some(circle);
                }
                if !came_from.contains_key(blocker) {
                    came_from.insert(*blocker, id);
                    to_visit.push(*blocker);
                }
            }
        }
        None
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn graph(edges: &[(u64, &[u64])]) -> (Nodes, HashMap<u64, Arc<Waiter>>) {
        let (mut nodes, mut waiters) = (Nodes::default(), HashMap::default());
        for (id, blockers) in edges {
            let waiter = Arc::new(Waiter::default());
            waiter.begin();
            let wanted = Wanted { table: 1, key: Arc::from(*b"row"), mode: LockMode::Exclusive };
            nodes.wait(*id, waiter.clone(), wanted);
            let blocker = |id: &u64| Blocker { transaction: *id, mode: LockMode::Exclusive };
            nodes.set_edges(*id, || blockers.iter().map(blocker).collect());
            waiters.insert(*id, waiter);
        }
        (nodes, waiters)
    }

    fn victims(waiters: &HashMap<u64, Arc<Waiter>>) -> Vec<u64> {
        let mut victims: Vec<u64> = waiters
            .iter()
            .filter(|(_, waiter)| waiter.finish() == Phase::Victim)
            .map(|(id, _)| *id)
            .collect();
        victims.sort_unstable();
        victims
    }

    #[test]
    fn who_comes_last_in_a_long_queue_searches_nothing() {
        const WAITERS: u64 = 2_000;
        let mut nodes = Nodes::default();
        for id in 1..=WAITERS {
            let waiter = Arc::new(Waiter::default());
            waiter.begin();
            let wanted = Wanted { table: 1, key: Arc::from(*b"row"), mode: LockMode::Exclusive };
            nodes.wait(id, waiter, wanted);
            nodes.set_edges(id, || vec![Blocker { transaction: id - 1, mode: LockMode::Exclusive }]);
            nodes.break_circles(id);
        }
        let visited = nodes.visited.get();
        assert!(visited <= WAITERS as usize, "{visited} looks for {WAITERS} waiters");
        // The holder waits for the last of them: a circle through all.
        let holder = Arc::new(Waiter::default());
        holder.begin();
        holder.set_rows_changed(1);
        let wanted = Wanted { table: 1, key: Arc::from(*b"other"), mode: LockMode::Exclusive };
        nodes.wait(0, holder.clone(), wanted);
        nodes.set_edges(0, || vec![Blocker { transaction: WAITERS, mode: LockMode::Exclusive }]);
        nodes.break_circles(0);
        assert_eq!((nodes.totals().deadlocks, nodes.len()), (1, WAITERS as usize));
        assert!(holder.is_waiting(), "it has changed most");
    }

    #[test]
    fn the_edges_that_lead_to_each_are_counted() {
        let mut random = base::random::Random::new(9, 0);
        let mut nodes = Nodes::default();
        for _ in 0..20_000 {
            let owner = random.below_u64(12);
            let some = |random: &mut base::random::Random| {
                let count = random.below_u64(4);
                let blocker = |id| Blocker { transaction: id, mode: LockMode::Shared };
                (0..count).map(|_| blocker(random.below_u64(12))).collect::<Vec<_>>()
            };
            match random.below(6) {
                0 if !nodes.waiting.contains_key(&owner) => {
                    let waiter = Arc::new(Waiter::default());
                    waiter.begin();
                    let wanted = Wanted { table: 1, key: Arc::from(*b"row"), mode: LockMode::Exclusive };
                    nodes.wait(owner, waiter, wanted);
                }
                1 => nodes.forget(owner),
                2 => nodes.drop_edge(owner, random.below_u64(12)),
                3 => nodes.break_circles(owner),
                _ => nodes.set_edges(owner, || some(&mut random)),
            }
            let mut counted: HashMap<u64, usize> = HashMap::default();
            for blocker in nodes.waiting.values().flat_map(|node| &node.blockers) {
                *counted.entry(blocker.transaction).or_default() += 1;
            }
            assert_eq!(nodes.awaited, counted);
        }
    }

    #[test]
    fn a_chain_is_no_circle() {
        let (mut nodes, waiters) = graph(&[(1, &[2]), (2, &[3, 4]), (3, &[4])]);
        nodes.break_circles(1);
        assert_eq!(victims(&waiters), []);
    }

    #[test]
    fn of_equals_the_youngest_gives_way_and_bystanders_go_free() {
        let (mut nodes, waiters) = graph(&[(1, &[2]), (2, &[3, 9]), (3, &[1]), (9, &[8])]);
        nodes.break_circles(1);
        assert_eq!(victims(&waiters), [3]);
    }

    #[test]
    fn who_changed_fewest_rows_gives_way() {
        let (mut nodes, waiters) = graph(&[(1, &[2]), (2, &[3]), (3, &[1])]);
        waiters[&3].set_rows_changed(5);
        waiters[&1].set_rows_changed(2);
        waiters[&2].set_rows_changed(3);
        nodes.break_circles(2);
        assert_eq!(victims(&waiters), [1]);
    }

    #[test]
    fn every_circle_through_the_requester_is_broken() {
        let (mut nodes, waiters) = graph(&[(1, &[2, 3]), (2, &[1]), (3, &[1])]);
        waiters[&1].set_rows_changed(9);
        nodes.break_circles(1);
        assert_eq!(victims(&waiters), [2, 3]);
        let totals = nodes.totals();
        assert_eq!((totals.waits, totals.waiting, totals.deadlocks), (3, 1, 2));
    }

    #[test]
    fn waits_are_counted_until_they_end_and_those_for_definitions_are_not() {
        let (mut nodes, waiters) = graph(&[(2, &[1]), (3, &[2])]);
        let definition = Wanted { table: DEFINITIONS, key: Arc::from(*b"t"), mode: LockMode::Shared };
        nodes.wait(4, waiters[&3].clone(), definition);
        let waits = nodes.waits();
        let edges = waits.iter().flat_map(|w| w.blockers.iter().map(|b| (w.transaction, b.transaction)));
        assert_eq!(edges.collect::<Vec<_>>(), [(2, 1), (3, 2)]);
        assert_eq!((nodes.totals().waits, nodes.totals().waiting), (2, 2));
        nodes.forget(4);
        nodes.forget(2);
        nodes.forget(2);
        let totals = nodes.totals();
        assert_eq!((totals.waits, totals.waiting, totals.deadlocks), (2, 1, 0));
        assert!(totals.longest == totals.waited && totals.waited > Duration::ZERO);
    }
}
