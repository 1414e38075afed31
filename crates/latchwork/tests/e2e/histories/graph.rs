//! The graph of moments: which came before which, and cycles in it.

use super::history::{Interval, Key};
use std::collections::{BTreeMap, VecDeque};

/// Why one moment comes before another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dependency {
    /// ww: the second wrote behind the first.
    Overwritten(Key),
    /// wr: the second read what the first wrote.
    Read(Key),
    /// rw: the second wrote what the first did not see.
    Overtaken(Key),
    /// Time: the first had been answered before the second was asked for.
    Time,
}

#[derive(Debug, Default)]
pub struct Graph {
    names: Vec<String>,
    intervals: Vec<Interval>,
    edges: Vec<Vec<(usize, Dependency)>>,
}

impl Graph {
    pub fn moment(&mut self, name: String, when: Interval) -> usize {
        self.names.push(name);
        self.intervals.push(when);
        self.edges.push(Vec::new());
        self.names.len() - 1
    }

    pub fn edge(&mut self, from: usize, to: usize, why: Dependency) {
        if from != to {
            self.edges[from].push((to, why));
        }
    }

    /// One cycle, in words, for each strongly connected component of more than one moment.
    pub fn cycles(mut self) -> Vec<String> {
        let moments = self.names.len();
        self.add_time();
        let mut told = vec![false; moments];
        let mut cycles = Vec::new();
        for component in components(&self.edges) {
            let first = component.iter().copied().filter(|&node| node < moments).min();
            let (Some(first), true) = (first, component.len() > 1) else { continue };
            if !std::mem::replace(&mut told[first], true) {
                cycles.push(self.describe(&self.shortest_cycle(first), moments));
            }
        }
        cycles
    }

    /// Adds points in time as nodes, so that the order in time needs few edges. A moment has an edge to the
    /// point of its answer, and a point has edges to the moments that are asked for there.
    fn add_time(&mut self) {
        let moments = self.names.len();
        let mut points: BTreeMap<u64, usize> = BTreeMap::new();
        for interval in &self.intervals {
            for time in [interval.asked, interval.answered] {
                let next = points.len();
                points.entry(time).or_insert(next);
            }
        }
        self.edges.resize(moments + points.len(), Vec::new());
        let nodes: Vec<usize> = points.values().map(|point| moments + point).collect();
        for pair in nodes.windows(2) {
            self.edges[pair[0]].push((pair[1], Dependency::Time));
        }
        for moment in 0..moments {
            let Interval { asked, answered } = self.intervals[moment];
            self.edges[moment].push((moments + points[&answered], Dependency::Time));
            self.edges[moments + points[&asked]].push((moment, Dependency::Time));
        }
    }

    /// The nodes of a cycle, from a node back to itself. Each has the reason why it comes after the one
    /// before.
    fn shortest_cycle(&self, start: usize) -> Vec<(usize, Dependency)> {
        let mut before: BTreeMap<usize, (usize, Dependency)> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &(next, why) in &self.edges[node] {
                if next == start {
                    let mut path = vec![(start, why)];
                    let mut node = node;
                    while node != start {
                        let (previous, why) = before[&node];
                        path.push((node, why));
                        node = previous;
                    }
                    path.reverse();
                    return path;
                }
                before.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    (node, why)
                });
            }
        }
        Vec::new()
    }

    fn describe(&self, cycle: &[(usize, Dependency)], moments: usize) -> String {
        let Some((start, _)) = cycle.last() else { return String::new() };
        let mut text = format!("a cycle: {}", self.names[*start]);
        for (node, why) in cycle.iter().filter(|(node, _)| *node < moments) {
            let name = &self.names[*node];
            text += &match why {
                Dependency::Overwritten(key) => format!("\n    was overwritten at key {key} by {name}"),
                Dependency::Read(key) => format!("\n    wrote what at key {key} was seen by {name}"),
                Dependency::Overtaken(key) => {
                    format!("\n    did not see at key {key} what was written by {name}")
                }
                Dependency::Time => format!("\n    was over before {name}"),
            };
        }
        text
    }
}

/// Strongly connected components (Tarjan 1972), without recursion.
fn components(edges: &[Vec<(usize, Dependency)>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let (mut index, mut low) = (vec![NEW; edges.len()], vec![0; edges.len()]);
    let mut open = vec![false; edges.len()];
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..edges.len() {
        if index[root] != NEW {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((node, position)) = work.pop() {
            if position == 0 {
                (index[node], low[node]) = (next, next);
                next += 1;
                stack.push(node);
                open[node] = true;
            }
            if let Some(&(child, _)) = edges[node].get(position) {
                work.push((node, position + 1));
                if index[child] == NEW {
                    work.push((child, 0));
                } else if open[child] {
                    low[node] = low[node].min(index[child]);
                }
                continue;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == index[node] {
                let start = stack.iter().rposition(|&member| member == node).unwrap();
                let component = stack.split_off(start);
                component.iter().for_each(|&member| open[member] = false);
                found.push(component);
            }
        }
    }
    found
}
