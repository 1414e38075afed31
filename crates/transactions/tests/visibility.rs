//! Visibility against a model: what was committed when the snapshot was opened, and nothing else.
#![cfg(not(feature = "shuttle"))]

use base::Stamp;
use latchwork_transactions::{Config, Session, Transaction, Transactions};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Commit(usize),
    RollBack(usize),
    Open(usize),
    Close(usize),
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Begin),
        5 => (0..100_usize).prop_map(Step::Commit),
        1 => (0..100_usize).prop_map(Step::RollBack),
        3 => (0..4_usize).prop_map(Step::Open),
        1 => (0..4_usize).prop_map(Step::Close),
        1 => Just(Step::Purge),
    ]
}

struct Run {
    writer: Session,
    sessions: Vec<Session>,
    active: Vec<Transaction>,
    committed: BTreeSet<u64>,
    rolled_back: BTreeSet<u64>,
    /// By session: what was committed, and what had been rolled back, when it opened its snapshot.
    expected: BTreeMap<usize, (BTreeSet<u64>, BTreeSet<u64>)>,
    first: u64,
}

fn check(run: &Run, transactions: &Transactions) -> Result<(), TestCaseError> {
    let next = transactions.next_id().0;
    for (session, (committed, gone)) in &run.expected {
        let view = run.sessions[*session].view().expect("open");
        for id in run.first..next + 3 {
            // A transaction that was rolled back earlier has left no stamp on any page, so either answer is
            // right.
            if !gone.contains(&id) {
                prop_assert_eq!(
                    view.sees(Stamp(id)),
                    committed.contains(&id),
                    "id {} session {}",
                    id,
                    session
                );
            }
        }
        prop_assert!((0..run.first).all(|id| view.sees(Stamp(id))));
        prop_assert!(!view.sees(Stamp(u64::MAX)));
    }
    let active: BTreeSet<u64> = run.active.iter().map(|transaction| transaction.id().0).collect();
    for id in 0..next + 3 {
        prop_assert_eq!(transactions.is_active(Stamp(id)), active.contains(&id));
    }
    prop_assert_eq!(transactions.oldest_active().0, active.first().copied().unwrap_or(next));
    let horizon = transactions.horizon();
    for id in run.first..next {
        let by_all = !run.rolled_back.contains(&id)
            && run.committed.contains(&id)
            && run.expected.values().all(|(committed, _)| committed.contains(&id));
        if !run.rolled_back.contains(&id) {
            prop_assert_eq!(transactions.is_seen_by_all(Stamp(id), horizon), by_all, "id {}", id);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_sees_what_was_committed_when_it_was_opened(
        steps in proptest::collection::vec(step(), 1..250),
        chunk_bits in 1..4_u32,
        first in 1..20_u64,
    ) {
        let config = Config { next_id: Stamp(first), chunk_ids: 1 << chunk_bits, ..Config::default() };
        let transactions = Transactions::new(&config);
        let mut run = Run {
            writer: transactions.session(),
            sessions: (0..4).map(|_| transactions.session()).collect(),
            active: Vec::new(),
            committed: BTreeSet::new(),
            rolled_back: BTreeSet::new(),
            expected: BTreeMap::new(),
            first,
        };
        for step in steps {
            match step {
                Step::Begin => run.active.push(run.writer.begin().unwrap()),
                Step::Commit(n) if !run.active.is_empty() => {
                    let transaction = run.active.swap_remove(n % run.active.len());
                    run.committed.insert(transaction.id().0);
                    transaction.commit();
                }
                Step::RollBack(n) if !run.active.is_empty() => {
                    let transaction = run.active.swap_remove(n % run.active.len());
                    run.rolled_back.insert(transaction.id().0);
                    transaction.roll_back();
                }
                Step::Commit(_) | Step::RollBack(_) => {}
                Step::Open(n) => {
                    run.sessions[n].open();
                    run.expected.insert(n, (run.committed.clone(), run.rolled_back.clone()));
                }
                Step::Close(n) => {
                    run.sessions[n].close();
                    run.expected.remove(&n);
                }
                Step::Purge => transactions.purge(),
            }
            check(&run, &transactions)?;
        }
        run.sessions.clear();
        run.active.drain(..).for_each(|transaction| { transaction.commit(); });
        transactions.purge();
        let status = transactions.usage().status;
        prop_assert!(status.chunks <= 1 && status.expanded <= 1, "{:?}", status);
    }
}

#[test]
fn a_transaction_sees_itself_and_a_snapshot_opened_before_it_does_too() {
    let transactions = Transactions::new(&Config::default());
    let mut session = transactions.session();
    session.open();
    let own = session.begin().unwrap();
    let other = transactions.session().begin().unwrap();
    let view = session.view().unwrap();
    assert!(view.sees(own.id()) && !view.sees(other.id()));
    own.commit();
    other.roll_back();
}

#[test]
fn one_old_snapshot_under_many_commits_costs_a_few_chunks() {
    let transactions = Transactions::new(&Config { chunk_ids: 8, ..Config::default() });
    let (mut old, mut writer) = (transactions.session(), transactions.session());
    let early = writer.begin().unwrap();
    let early_stamp = early.id();
    old.open();
    early.commit();
    for _ in 0..20_000 {
        writer.begin().unwrap().commit();
    }
    let status = transactions.usage().status;
    assert!(status.expanded <= 3, "{status:?}");
    let view = old.view().unwrap();
    assert!((early_stamp.0..20_000).all(|id| !view.sees(Stamp(id))));
    old.close();
    transactions.purge();
    assert!(transactions.usage().status.chunks <= 1);
}
