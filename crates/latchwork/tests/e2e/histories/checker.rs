//! Decides whether isolation levels permit a history.
//!
//! Each transaction is divided into *moments*: the points in time at which its parts take effect
//! (docs/isolation.md). At READ COMMITTED each plain read is a moment. At REPEATABLE READ all plain reads
//! together are one moment, the snapshot. In every transaction the writes, the locking reads, and the reads
//! of lists that it has written itself are one moment, the end. At SERIALIZABLE plain reads are locking
//! reads. A locking read that finds no row has nothing to lock, so it is a moment of its own.
//!
//! With `innodb_snapshot_isolation` the first transaction that commits wins: who wrote a list before a
//! transaction writes or locks it has done so before that transaction's snapshot, if it has taken one by
//! then.
//!
//! The history is right if its moments can be put into an order in which they could have happened one after
//! the other. That is possible if the graph of their dependencies has no cycle. One moment depends on another
//! if it overwrote what the other wrote (ww), if it read what the other wrote (wr), if it wrote what the
//! other had read before (rw), or if it was asked for after the other had been answered. Every forbidden
//! anomaly is a cycle of moments. Lost update and write skew, which REPEATABLE READ permits to plain reads,
//! are cycles of transactions but not of moments.

use super::graph::{Dependency, Graph};
use super::history::{Deed, Element, Interval, Key, Lists, Outcome, Transaction};
use crate::isolation::Level;
use std::collections::{BTreeMap, BTreeSet};

/// The violations, in words. `last` has the lists at the very end.
pub fn check(history: &[Transaction], last: &Lists) -> Vec<String> {
    let mut checker = Checker::new(history, last);
    checker.check_last();
    for transaction in 0..history.len() {
        checker.take(transaction);
    }
    checker.writes();
    let Checker { graph, mut violations, .. } = checker;
    violations.extend(graph.cycles());
    violations
}

struct Checker<'a> {
    history: &'a [Transaction],
    last: &'a Lists,
    /// Which transaction wrote an element, and whether that transaction committed.
    writers: BTreeMap<Element, (usize, bool)>,
    /// The moment at which each transaction ended.
    ends: Vec<usize>,
    /// Elements that were written after a binding snapshot, with its moment.
    bound: BTreeMap<Element, usize>,
    graph: Graph,
    violations: Vec<String>,
}

/// A list that a transaction read, without the elements that it wrote itself.
#[derive(Clone, Copy)]
struct Seen {
    key: Key,
    length: usize,
    when: Interval,
}

impl<'a> Checker<'a> {
    fn new(history: &'a [Transaction], last: &'a Lists) -> Checker<'a> {
        let in_last: BTreeSet<Element> = last.values().flatten().copied().collect();
        let (mut writers, mut ends, mut graph) = (BTreeMap::new(), Vec::new(), Graph::default());
        for (number, transaction) in history.iter().enumerate() {
            let written = lasting_elements(transaction);
            let committed = match transaction.outcome {
                Outcome::Committed => true,
                Outcome::RolledBack => false,
                Outcome::Unknown => written.iter().any(|element| in_last.contains(element)),
            };
            for (deed, _) in &transaction.deeds {
                if let Deed::Append { element, .. } = deed {
                    writers.insert(*element, (number, committed && written.contains(element)));
                }
            }
            let mut locked = transaction.deeds.iter().filter(|(deed, _)| is_locking(transaction.level, deed));
            let end = match transaction.outcome {
                Outcome::Committed => transaction.end,
                // The transaction held all its locks when it was given the last one.
                _ => Interval {
                    asked: locked.next_back().map_or(0, |(_, when)| when.asked),
                    answered: transaction.end.answered,
                },
            };
            ends.push(graph.moment(format!("end of {}", transaction.name), end));
        }
        Checker { history, last, writers, ends, bound: BTreeMap::new(), graph, violations: Vec::new() }
    }

    /// Each committed element is in its list once, and no other element is there.
    fn check_last(&mut self) {
        let mut there = BTreeSet::new();
        for (key, list) in self.last {
            for element in list {
                match self.writers.get(element) {
                    Some((_, true)) => {}
                    Some((writer, false)) => self.violations.push(format!(
                        "element {element} of key {key} is there, and {} took it back",
                        self.history[*writer].name
                    )),
                    None => self.violations.push(format!("element {element} of key {key}: nobody wrote it")),
                }
                if !there.insert(*element) {
                    self.violations.push(format!("element {element} of key {key} is there twice"));
                }
            }
        }
        for (element, (writer, lasting)) in &self.writers {
            if *lasting && !there.contains(element) {
                let name = &self.history[*writer].name;
                self.violations.push(format!("element {element} is gone, and {name} had committed it"));
            }
        }
    }

    /// Divides a transaction into moments and adds their dependencies.
    fn take(&mut self, number: usize) {
        let transaction = &self.history[number];
        let mut own: BTreeMap<Key, Vec<Element>> = BTreeMap::new();
        let mut snapshot = None;
        let mut at_end: Vec<Seen> = Vec::new();
        let mut savepoint = None;
        for (deed, when) in &transaction.deeds {
            match deed {
                Deed::Snapshot => {
                    snapshot = Some(self.moment(number, "snapshot", *when));
                }
                Deed::Append { key, element } => {
                    own.entry(*key).or_default().push(*element);
                    if let Some(snapshot) = snapshot.filter(|_| transaction.first_committer_wins) {
                        self.bound.insert(*element, snapshot);
                    }
                }
                Deed::Savepoint => savepoint = Some((own.clone(), at_end.len())),
                Deed::RollBackToSavepoint => {
                    let (before, reads) = savepoint.clone().unwrap_or_default();
                    own = before;
                    // Rows that were changed, and so locked, since the savepoint are unlocked again.
                    for seen in at_end.split_off(reads) {
                        let moment = self.moment(number, "read", seen.when);
                        self.depend(moment, seen);
                    }
                }
                Deed::Read { lists, .. } => {
                    let locking = is_locking(transaction.level, deed);
                    let plain = match (locking, transaction.level) {
                        (false, Level::RepeatableRead) => {
                            *snapshot.get_or_insert_with(|| self.moment(number, "snapshot", *when))
                        }
                        _ => self.moment(number, "read", *when),
                    };
                    for (key, list) in lists {
                        let own = own.get(key).map_or(&[][..], Vec::as_slice);
                        let Some(length) = self.foreign(number, *key, list, own) else { continue };
                        let seen = Seen { key: *key, length, when: *when };
                        if let Some(snapshot) =
                            snapshot.filter(|_| locking && transaction.first_committer_wins)
                        {
                            self.depend_on_last(snapshot, seen);
                        }
                        if !own.is_empty() || (locking && !list.is_empty()) {
                            at_end.push(seen);
                        } else {
                            self.depend(plain, seen);
                        }
                    }
                }
            }
        }
        for seen in at_end {
            self.depend(self.ends[number], seen);
        }
    }

    fn moment(&mut self, transaction: usize, what: &str, when: Interval) -> usize {
        self.graph.moment(format!("{what} of {}", self.history[transaction].name), when)
    }

    /// How many elements of a list other transactions wrote. `None` if the list can never have existed.
    fn foreign(&mut self, reader: usize, key: Key, list: &[Element], own: &[Element]) -> Option<usize> {
        let name = &self.history[reader].name;
        let Some(foreign) = list.strip_suffix(own) else {
            self.violations
                .push(format!("{name} read {list:?} of key {key} and had itself appended {own:?}"));
            return None;
        };
        let taken_back = foreign.iter().find(|element| {
            self.writers.get(element).is_none_or(|(writer, lasting)| !lasting || *writer == reader)
        });
        if let Some(element) = taken_back {
            self.violations
                .push(format!("{name} read element {element} of key {key}, which never was committed (G1a)"));
            return None;
        }
        let order = self.last.get(&key).map_or(&[][..], Vec::as_slice);
        if !order.starts_with(foreign) {
            self.violations.push(format!("{name} read {list:?} of key {key}, which became {order:?}"));
            return None;
        }
        Some(foreign.len())
    }

    /// The moment comes after the writer of the last element that it saw, and before the writer of the first
    /// element that it did not see.
    fn depend(&mut self, moment: usize, seen: Seen) {
        self.depend_on_last(moment, seen);
        let Some(order) = self.last.get(&seen.key) else { return };
        let after = order.get(seen.length).and_then(|element| Some(self.ends[self.writers.get(element)?.0]));
        if let Some(after) = after {
            self.graph.edge(moment, after, Dependency::Overtaken(seen.key));
        }
    }

    /// The moment comes after the writer of the last element that it saw.
    fn depend_on_last(&mut self, moment: usize, seen: Seen) {
        let last = self.last.get(&seen.key).and_then(|order| order.get(seen.length.checked_sub(1)?));
        if let Some((writer, _)) = last.and_then(|element| self.writers.get(element)) {
            self.graph.edge(self.ends[*writer], moment, Dependency::Read(seen.key));
        }
    }

    fn writes(&mut self) {
        for (key, order) in self.last {
            for pair in order.windows(2) {
                let writers = (self.writers.get(&pair[0]), self.writers.get(&pair[1]));
                if let (Some((first, _)), Some((second, _))) = writers {
                    self.graph.edge(self.ends[*first], self.ends[*second], Dependency::Overwritten(*key));
                    if let Some(snapshot) = self.bound.get(&pair[1]).filter(|_| first != second) {
                        self.graph.edge(self.ends[*first], *snapshot, Dependency::Overwritten(*key));
                    }
                }
            }
        }
    }
}

fn is_locking(level: Level, deed: &Deed) -> bool {
    match deed {
        Deed::Read { locking, .. } => *locking || level == Level::Serializable,
        Deed::Append { .. } => true,
        _ => false,
    }
}

/// The elements that the transaction would leave if it committed.
fn lasting_elements(transaction: &Transaction) -> BTreeSet<Element> {
    let (mut elements, mut savepoint) = (BTreeSet::new(), BTreeSet::new());
    for (deed, _) in &transaction.deeds {
        match deed {
            Deed::Append { element, .. } => {
                elements.insert(*element);
            }
            Deed::Savepoint => savepoint = elements.clone(),
            Deed::RollBackToSavepoint => elements = savepoint.clone(),
            Deed::Snapshot | Deed::Read { .. } => {}
        }
    }
    elements
}
