//! The cost of reading by snapshots, counted: `cargo test -p latchwork-transactions --features counting`.
#![cfg(all(feature = "counting", not(feature = "shuttle")))]

use base::sync::{Counts, counts};
use latchwork_transactions::{Config, Transactions};

fn cost(run: impl FnOnce()) -> Counts {
    let before = counts();
    run();
    let after = counts();
    Counts {
        shared_writes: after.shared_writes - before.shared_writes,
        latches: after.latches - before.latches,
    }
}

#[test]
fn snapshots_and_visibility_write_nothing_shared_and_take_no_latch() {
    let transactions = Transactions::new(&Config { chunk_ids: 16, ..Config::default() });
    let (mut reader, mut writer, mut old) =
        (transactions.session(), transactions.session(), transactions.session());
    // An old transaction and an old snapshot: most stamps miss the fast path, in collapsed and expanded
    // chunks.
    let unfinished = writer.begin().unwrap();
    let mut stamps = vec![unfinished.id()];
    old.open();
    for _ in 0..100 {
        let transaction = writer.begin().unwrap();
        stamps.push(transaction.id());
        transaction.commit();
    }
    assert!(transactions.usage().status.expanded < 5);
    let steady = cost(|| {
        for _ in 0..100 {
            let view = reader.open();
            let seen = stamps.iter().filter(|stamp| view.sees(**stamp)).count();
            assert_eq!(seen, 100);
            view.check().unwrap();
            reader.close();
        }
    });
    assert_eq!(steady, Counts::default());
    unfinished.commit();
    let steady = cost(|| {
        let view = reader.open();
        assert!(stamps.iter().all(|stamp| view.sees(*stamp)));
    });
    assert_eq!(steady, Counts::default());
}

#[test]
fn a_commit_that_nobody_waits_for_takes_two_latches() {
    let transactions = Transactions::new(&Config::default());
    let mut writer = transactions.session();
    let transaction = writer.begin().unwrap();
    // One latch of the status table, and one of the partitions of the threads that wait for a transaction to
    // end.
    assert_eq!(
        cost(|| {
            transaction.commit();
        })
        .latches,
        2
    );
}
