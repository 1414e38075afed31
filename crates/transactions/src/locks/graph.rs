//! Who waits for whom, and breaking circles.
//!
//! Edges are set when a wait begins and kept up to date while it lasts. Whoever adds edges looks for circles through itself, so
//! that a circle is found by the request that closes it.

use super::waiter::{Phase, Waiter};
use base::sync::{Arc, Mutex};
use std::collections::HashMap;

/// One mutex for all: it is taken only when somebody has to wait, or had to.
#[derive(Debug, Default)]
pub struct Graph(Mutex<Nodes>);

impl Graph {
    pub fn with<R>(&self, run: impl FnOnce(&mut Nodes) -> R) -> R {
        run(&mut self.0.lock())
    }
}

/// The transactions that wait. A victim is none of them any more.
#[derive(Debug, Default)]
pub struct Nodes(HashMap<u64, Node>);

#[derive(Debug)]
struct Node {
    waiter: Arc<Waiter>,
    blockers: Vec<u64>,
}

impl Nodes {
    /// `owner` begins to wait; for whom is yet to be said.
    pub fn wait(&mut self, owner: u64, waiter: Arc<Waiter>) {
        self.0.insert(owner, Node { waiter, blockers: Vec::new() });
    }

    /// Says whom `owner` waits for, if it still does.
    pub fn set_edges(&mut self, owner: u64, blockers: impl FnOnce() -> Vec<u64>) {
        if let Some(node) = self.0.get_mut(&owner) {
            node.blockers = blockers();
        }
    }

    pub fn forget(&mut self, owner: u64) {
        self.0.remove(&owner);
    }

    /// Ends a wait that may not have been granted, and gives the phase that it had come to. In one step with leaving the
    /// graph, for whoever is in it may be made a victim.
    pub fn give_up(&mut self, owner: u64, waiter: &Waiter) -> Phase {
        self.forget(owner);
        waiter.finish()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes victims until `start` waits in no circle: of each circle the transaction that has changed the fewest rows, among
    /// equals the youngest.
    pub fn break_circles(&mut self, start: u64) {
        while let Some(circle) = self.circle_through(start) {
            let weight = |id: &u64| (self.0[id].waiter.rows_changed(), std::cmp::Reverse(*id));
            let victim = circle.into_iter().min_by_key(weight).expect("a circle has members");
            let node = self.0.remove(&victim).expect("members of a circle wait");
            node.waiter.condemn();
        }
    }

    /// The transactions of one circle through `start`.
    fn circle_through(&self, start: u64) -> Option<Vec<u64>> {
        let mut came_from = HashMap::new();
        let mut to_visit = vec![start];
        while let Some(id) = to_visit.pop() {
            let Some(node) = self.0.get(&id) else { continue };
            for blocker in &node.blockers {
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
        let (mut nodes, mut waiters) = (Nodes::default(), HashMap::new());
        for (id, blockers) in edges {
            let waiter = Arc::new(Waiter::default());
            waiter.begin();
            nodes.wait(*id, waiter.clone());
            nodes.set_edges(*id, || blockers.to_vec());
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
    }
}
