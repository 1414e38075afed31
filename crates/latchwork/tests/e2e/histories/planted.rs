//! Tests of the checker with histories made by hand: it finds what is forbidden, and accepts what is
//! permitted.

use super::checker::check;
use super::history::{Deed, Element, Interval, Key, Lists, Outcome, Transaction};
use crate::isolation::Level::{self, ReadCommitted, RepeatableRead, Serializable};

const X: Key = 1;
const Y: Key = 2;

/// Deeds in the order in which they happen. Each ends before the next begins.
#[derive(Default)]
struct Plan {
    clock: u64,
    transactions: Vec<Transaction>,
}

impl Plan {
    fn tick(&mut self) -> Interval {
        self.clock += 2;
        Interval { asked: self.clock - 1, answered: self.clock }
    }

    fn begin(&mut self, name: &str, level: Level) {
        self.begin_with(name, level, false);
    }

    fn begin_with(&mut self, name: &str, level: Level, first_committer_wins: bool) {
        let (name, end) = (name.to_string(), Interval { asked: 0, answered: u64::MAX });
        self.transactions.push(Transaction {
            name,
            level,
            first_committer_wins,
            deeds: Vec::new(),
            outcome: Outcome::Unknown,
            end,
        });
    }

    fn transaction(&mut self, name: &str) -> &mut Transaction {
        self.transactions.iter_mut().find(|transaction| transaction.name == name).unwrap()
    }

    fn does(&mut self, name: &str, deed: Deed) {
        let when = self.tick();
        self.transaction(name).deeds.push((deed, when));
    }

    fn appends(&mut self, name: &str, key: Key, element: Element) {
        self.does(name, Deed::Append { key, element });
    }

    fn reads(&mut self, name: &str, lists: &[(Key, &[Element])]) {
        self.does(name, Deed::Read { lists: to_lists(lists), locking: false });
    }

    fn locks(&mut self, name: &str, lists: &[(Key, &[Element])]) {
        self.does(name, Deed::Read { lists: to_lists(lists), locking: true });
    }

    fn ends(&mut self, name: &str, outcome: Outcome) {
        let end = self.tick();
        let transaction = self.transaction(name);
        (transaction.outcome, transaction.end) = (outcome, end);
    }

    fn commits(&mut self, name: &str) {
        self.ends(name, Outcome::Committed);
    }

    /// A transaction that appends an element to each key's list and commits.
    fn wrote(&mut self, name: &str, elements: &[(Key, Element)]) {
        self.begin(name, RepeatableRead);
        elements.iter().for_each(|&(key, element)| self.appends(name, key, element));
        self.commits(name);
    }

    fn is_right(&self, last: &[(Key, &[Element])]) {
        let violations = check(&self.transactions, &to_lists(last));
        assert!(violations.is_empty(), "{}", violations.join("\n"));
    }

    /// Asserts that the checker's report contains each of these.
    fn is_wrong(&self, last: &[(Key, &[Element])], words: &[&str]) {
        let violations = check(&self.transactions, &to_lists(last)).join("\n");
        for word in words {
            assert!(violations.contains(word), "'{word}' is not in: {violations}");
        }
    }
}

fn to_lists(lists: &[(Key, &[Element])]) -> Lists {
    lists.iter().map(|(key, list)| (*key, list.to_vec())).collect()
}

#[test]
fn a_history_in_order_is_right_at_every_level() {
    for level in [ReadCommitted, RepeatableRead, Serializable] {
        let mut plan = Plan::default();
        plan.wrote("a", &[(X, 1), (Y, 2)]);
        plan.begin("b", level);
        plan.reads("b", &[(X, &[1]), (Y, &[2])]);
        plan.appends("b", X, 3);
        plan.reads("b", &[(X, &[1, 3])]);
        plan.commits("b");
        plan.is_right(&[(X, &[1, 3]), (Y, &[2])]);
    }
}

#[test]
fn reading_what_is_rolled_back_is_found() {
    let mut plan = Plan::default();
    plan.begin("a", RepeatableRead);
    plan.begin("b", ReadCommitted);
    plan.appends("a", X, 1);
    plan.reads("b", &[(X, &[1])]);
    plan.ends("a", Outcome::RolledBack);
    plan.commits("b");
    plan.is_wrong(&[(X, &[])], &["b read element 1 of key 1, which never was committed (G1a)"]);
    plan.is_wrong(&[(X, &[1])], &["element 1 of key 1 is there, and a took it back"]);
}

#[test]
fn reading_what_is_rolled_back_to_a_savepoint_is_found() {
    let mut plan = Plan::default();
    plan.begin("a", RepeatableRead);
    plan.appends("a", X, 1);
    plan.does("a", Deed::Savepoint);
    plan.appends("a", X, 2);
    plan.reads("a", &[(X, &[1, 2])]);
    plan.does("a", Deed::RollBackToSavepoint);
    plan.reads("a", &[(X, &[1])]);
    plan.commits("a");
    plan.is_right(&[(X, &[1])]);
    plan.is_wrong(&[(X, &[1, 2])], &["element 2 of key 1 is there, and a took it back"]);
}

#[test]
fn an_intermediate_read_is_found() {
    let mut plan = Plan::default();
    plan.begin("a", RepeatableRead);
    plan.begin("b", ReadCommitted);
    plan.appends("a", X, 1);
    plan.reads("b", &[(X, &[1])]);
    plan.appends("a", X, 2);
    plan.commits("a");
    plan.commits("b");
    plan.is_wrong(&[(X, &[1, 2])], &["end of a\n    wrote what at key 1 was seen by read of b\n    did not see at key 1 what was written by end of a"]);
}

#[test]
fn mixed_writes_are_found() {
    let mut plan = Plan::default();
    plan.begin("a", RepeatableRead);
    plan.begin("b", RepeatableRead);
    plan.appends("a", X, 1);
    plan.appends("b", X, 2);
    plan.appends("b", Y, 3);
    plan.appends("a", Y, 4);
    plan.commits("a");
    plan.commits("b");
    plan.is_wrong(
        &[(X, &[1, 2]), (Y, &[3, 4])],
        &["was overwritten at key 1 by end of b", "was overwritten at key 2 by end of a"],
    );
}

#[test]
fn a_commit_that_is_gone_and_an_element_that_is_there_twice_are_found() {
    let mut plan = Plan::default();
    plan.wrote("a", &[(X, 1)]);
    plan.wrote("b", &[(X, 2)]);
    plan.is_right(&[(X, &[1, 2])]);
    plan.is_wrong(&[(X, &[2])], &["element 1 is gone, and a had committed it"]);
    plan.is_wrong(&[(X, &[1, 2, 1])], &["element 1 of key 1 is there twice"]);
    plan.is_wrong(&[(X, &[1, 2, 9])], &["element 9 of key 1: nobody wrote it"]);
    plan.is_wrong(&[(X, &[2, 1])], &["was over before"]);
}

/// Both transactions see `x` as it was, and then append to it one after the other.
fn two_who_append_after_reading(level: Level, locking: bool) -> Plan {
    let mut plan = Plan::default();
    plan.wrote("z", &[(X, 1)]);
    plan.begin("a", level);
    plan.begin("b", level);
    for name in ["a", "b"] {
        plan.does(name, Deed::Read { lists: to_lists(&[(X, &[1])]), locking });
    }
    plan.appends("a", X, 2);
    plan.commits("a");
    plan.appends("b", X, 3);
    plan.commits("b");
    plan
}

#[test]
fn a_lost_update_is_found_where_reads_lock_and_permitted_where_they_do_not() {
    let last: &[(Key, &[Element])] = &[(X, &[1, 2, 3])];
    two_who_append_after_reading(RepeatableRead, false).is_right(last);
    two_who_append_after_reading(ReadCommitted, false).is_right(last);
    let words = ["end of b\n    did not see at key 1 what was written by end of a", "end of b"];
    two_who_append_after_reading(RepeatableRead, true).is_wrong(last, &words);
    two_who_append_after_reading(ReadCommitted, true).is_wrong(last, &words);
    two_who_append_after_reading(Serializable, false).is_wrong(last, &words);
}

#[test]
fn write_skew_is_found_at_serializable_and_permitted_at_repeatable_read() {
    for (level, permitted) in [(RepeatableRead, true), (Serializable, false)] {
        let mut plan = Plan::default();
        plan.wrote("z", &[(X, 1), (Y, 2)]);
        plan.begin("a", level);
        plan.begin("b", level);
        plan.reads("a", &[(X, &[1]), (Y, &[2])]);
        plan.reads("b", &[(X, &[1]), (Y, &[2])]);
        plan.appends("a", X, 3);
        plan.appends("b", Y, 4);
        plan.commits("a");
        plan.commits("b");
        let last: &[(Key, &[Element])] = &[(X, &[1, 3]), (Y, &[2, 4])];
        if permitted { plan.is_right(last) } else { plan.is_wrong(last, &["did not see at key 2"]) }
    }
}

#[test]
fn read_skew_is_found_in_a_snapshot_and_permitted_between_statements() {
    for (level, permitted) in [(ReadCommitted, true), (RepeatableRead, false)] {
        let mut plan = Plan::default();
        plan.wrote("z", &[(X, 1), (Y, 2)]);
        plan.begin("a", level);
        plan.reads("a", &[(X, &[1])]);
        plan.wrote("b", &[(X, 3), (Y, 4)]);
        plan.reads("a", &[(Y, &[2, 4])]);
        plan.commits("a");
        let last: &[(Key, &[Element])] = &[(X, &[1, 3]), (Y, &[2, 4])];
        let cycle = "end of b\n    wrote what at key 2 was seen by snapshot of a\n    did not see at key 1 what was written by end of b";
        if permitted { plan.is_right(last) } else { plan.is_wrong(last, &[cycle]) }
    }
}

#[test]
fn half_a_transaction_in_one_statement_is_found_at_read_committed() {
    let mut plan = Plan::default();
    plan.wrote("z", &[(X, 1), (Y, 2)]);
    plan.begin("a", ReadCommitted);
    plan.begin("b", RepeatableRead);
    plan.appends("b", X, 3);
    plan.appends("b", Y, 4);
    plan.commits("b");
    plan.reads("a", &[(X, &[1, 3]), (Y, &[2])]);
    plan.commits("a");
    plan.is_wrong(
        &[(X, &[1, 3]), (Y, &[2, 4])],
        &["read of a\n    did not see at key 2 what was written by end of b"],
    );
}

#[test]
fn a_snapshot_from_the_past_is_found() {
    let mut plan = Plan::default();
    plan.wrote("a", &[(X, 1)]);
    plan.begin("b", RepeatableRead);
    plan.reads("b", &[(X, &[])]);
    plan.commits("b");
    plan.is_wrong(&[(X, &[1])], &["was over before snapshot of b"]);
    let mut plan = Plan::default();
    plan.begin("b", RepeatableRead);
    plan.does("b", Deed::Snapshot);
    plan.wrote("a", &[(X, 1)]);
    plan.reads("b", &[(X, &[])]);
    plan.commits("b");
    plan.is_right(&[(X, &[1])]);
}

#[test]
fn a_list_that_never_was_is_found() {
    let mut plan = Plan::default();
    plan.wrote("a", &[(X, 1)]);
    plan.wrote("b", &[(X, 2)]);
    plan.begin("c", ReadCommitted);
    plan.reads("c", &[(X, &[2])]);
    plan.commits("c");
    plan.is_wrong(&[(X, &[1, 2])], &["c read [2] of key 1, which became [1, 2]"]);
}

#[test]
fn not_to_see_the_own_change_is_found() {
    let mut plan = Plan::default();
    plan.begin("a", RepeatableRead);
    plan.reads("a", &[(X, &[])]);
    plan.appends("a", X, 1);
    plan.reads("a", &[(X, &[])]);
    plan.commits("a");
    plan.is_wrong(&[(X, &[1])], &["a read [] of key 1 and had itself appended [1]"]);
}

#[test]
fn a_write_after_the_snapshot_goes_to_the_newest_row_and_shows_it() {
    let mut plan = Plan::default();
    plan.wrote("z", &[(X, 1)]);
    plan.begin("a", RepeatableRead);
    plan.reads("a", &[(X, &[1])]);
    plan.wrote("b", &[(X, 2)]);
    plan.reads("a", &[(X, &[1])]);
    plan.locks("a", &[(X, &[1, 2])]);
    plan.appends("a", X, 3);
    plan.reads("a", &[(X, &[1, 2, 3])]);
    plan.commits("a");
    plan.is_right(&[(X, &[1, 2, 3])]);
}

#[test]
fn a_locked_row_that_changes_all_the_same_is_found_even_if_the_reader_rolls_back() {
    for outcome in [Outcome::Committed, Outcome::RolledBack] {
        let mut plan = Plan::default();
        plan.wrote("z", &[(X, 1)]);
        plan.begin("a", ReadCommitted);
        plan.locks("a", &[(X, &[1])]);
        plan.wrote("b", &[(X, 2)]);
        plan.locks("a", &[(X, &[1, 2])]);
        plan.ends("a", outcome);
        plan.is_wrong(&[(X, &[1, 2])], &["end of a\n    did not see at key 1 what was written by end of b"]);
    }
}

#[test]
fn a_commit_of_unknown_outcome_is_there_as_a_whole_or_not_at_all() {
    let mut plan = Plan::default();
    plan.begin("a", RepeatableRead);
    plan.appends("a", X, 1);
    plan.appends("a", Y, 2);
    plan.is_right(&[(X, &[1]), (Y, &[2])]);
    plan.is_right(&[(X, &[]), (Y, &[])]);
    plan.is_wrong(&[(X, &[1]), (Y, &[])], &["element 2 is gone, and a had committed it"]);
}

#[test]
fn the_first_committer_wins_over_a_lost_update_and_a_skewed_write() {
    // s2's change lies between s1's snapshot and s1's change of the same list.
    let lost_update = |first_committer_wins| {
        let mut plan = Plan::default();
        plan.begin_with("s1", RepeatableRead, first_committer_wins);
        plan.reads("s1", &[(X, &[])]);
        plan.wrote("s2", &[(X, 2)]);
        plan.appends("s1", X, 1);
        plan.commits("s1");
        plan
    };
    lost_update(false).is_right(&[(X, &[2, 1])]);
    lost_update(true).is_wrong(&[(X, &[2, 1])], &["snapshot of s1", "end of s2"]);

    // As it was, but s1 only locks what it found changed.
    let mut plan = Plan::default();
    plan.begin_with("s1", RepeatableRead, true);
    plan.reads("s1", &[(X, &[])]);
    plan.wrote("s2", &[(X, 2)]);
    plan.locks("s1", &[(X, &[2])]);
    plan.commits("s1");
    plan.is_wrong(&[(X, &[2])], &["snapshot of s1", "end of s2"]);

    // One anti-dependency and back by a write: s1 does not see s2's X, and overwrites s2's Y.
    let mut plan = Plan::default();
    plan.begin_with("s1", RepeatableRead, true);
    plan.reads("s1", &[(X, &[])]);
    plan.wrote("s2", &[(X, 2), (Y, 3)]);
    plan.appends("s1", Y, 1);
    plan.commits("s1");
    plan.is_wrong(&[(X, &[2]), (Y, &[3, 1])], &["snapshot of s1", "end of s2"]);

    // Permitted: before its snapshot, over its own elements, and where nobody else wrote.
    let mut plan = Plan::default();
    plan.begin_with("s1", RepeatableRead, true);
    plan.appends("s1", X, 1);
    plan.wrote("s2", &[(Y, 2)]);
    plan.reads("s1", &[(Y, &[2])]);
    plan.appends("s1", X, 3);
    plan.appends("s1", Y, 4);
    plan.commits("s1");
    plan.is_right(&[(X, &[1, 3]), (Y, &[2, 4])]);
}
