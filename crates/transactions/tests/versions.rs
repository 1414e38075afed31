//! Old versions against a model: every open snapshot finds each row as it was, and nothing stays behind.
#![cfg(not(feature = "shuttle"))]

mod files;

use base::Stamp;
use files::Files;
use latchwork_transactions::{Config, Found, Session, SnapshotTooOld, Transaction, Transactions, View};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const TABLE: u64 = 7;
const KEYS: usize = 3;

/// A row on its page: its stamp, and its content (`None`: deleted). A row of the stamp 0 has never been
/// written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    stamp: u64,
    content: Option<u64>,
    /// It was inserted without leaving a version.
    inserted: bool,
}

impl Row {
    fn cell(self) -> Option<Vec<u8>> {
        self.content.map(|content| content.to_le_bytes().to_vec())
    }
}

fn key(n: usize) -> [u8; 1] {
    [n as u8]
}

/// Reads as the engine does: the page first, then the versions.
fn read(view: View<'_>, n: usize, page: Row) -> Result<Option<u64>, SnapshotTooOld> {
    if view.sees(Stamp(page.stamp)) {
        return Ok(page.content);
    }
    let found = match view.find_version(TABLE, &key(n))? {
        Found::Spilled(spilled) => view.read_spilled(&spilled).expect("the file is whole"),
        found => found,
    };
    Ok(match found {
        Found::Spilled(_) => panic!("it has been read"),
        Found::Row(cell) => Some(u64::from_le_bytes(cell[..].try_into().unwrap())),
        Found::NoRow => None,
        Found::Newest => {
            assert!(page.inserted, "a version is missing");
            None
        }
    })
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// By which transaction, and which row; `delete` ends the row.
    Change {
        writer: usize,
        key: usize,
        delete: bool,
    },
    Commit(usize),
    RollBack(usize),
    /// A transaction takes its newest changes back, but for so many.
    GoBack {
        writer: usize,
        keep: usize,
    },
    /// What a transaction under way has left goes to a file.
    SpillUnderWay(usize),
    Open(usize),
    Close(usize),
    Purge,
    /// Everything that may go to a file does.
    Spill,
    Merge,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3_usize, 0..KEYS, prop::bool::weighted(0.2))
            .prop_map(|(writer, key, delete)| Step::Change { writer, key, delete }),
        6 => (0..3_usize).prop_map(Step::Commit),
        1 => (0..3_usize).prop_map(Step::RollBack),
        2 => (0..3_usize, 0..6_usize).prop_map(|(writer, keep)| Step::GoBack { writer, keep }),
        3 => (0..3_usize).prop_map(Step::SpillUnderWay),
        3 => (0..4_usize).prop_map(Step::Open),
        2 => (0..4_usize).prop_map(Step::Close),
        2 => Just(Step::Purge),
        3 => Just(Step::Spill),
        1 => Just(Step::Merge),
    ]
}

struct Writer {
    session: Session,
    transaction: Option<Transaction>,
    /// What it has changed, oldest first, and what the pages were before.
    undo: Vec<(usize, Row)>,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_048, ..ProptestConfig::default() })]

    #[test]
    fn every_snapshot_finds_each_row_as_it_was_and_nothing_stays_behind(
        steps in proptest::collection::vec(step(), 1..250),
        chunk_bits in 1..4_u32,
        has_files: bool,
    ) {
        let transactions = Transactions::new(&Config {
            chunk_ids: 1 << chunk_bits,
            version_files: Some(Arc::new(Files::default())),
            version_limit_bytes: if has_files { 0 } else { 1 << 30 },
            ..Config::default()
        });
        let mut pages = [Row::default(); KEYS];
        let mut committed = [None; KEYS];
        let mut writers: Vec<Writer> = (0..3)
            .map(|_| Writer { session: transactions.session(), transaction: None, undo: Vec::new() })
            .collect();
        let mut readers: Vec<Session> = (0..4).map(|_| transactions.session()).collect();
        let mut expected: BTreeMap<usize, [Option<u64>; KEYS]> = BTreeMap::new();
        for (content, step) in steps.into_iter().enumerate() {
            match step {
                Step::Change { writer, key: n, delete } => {
                    let Writer { session, transaction, undo } = &mut writers[writer];
                    let page = &mut pages[n];
                    let own = transaction.as_ref().map_or(u64::MAX, |own| own.id().0);
                    if page.stamp != own && transactions.is_active(Stamp(page.stamp)) {
                        continue;
                    }
                    let transaction = transaction.get_or_insert_with(|| session.begin().unwrap());
                    undo.push((n, *page));
                    let is_own_insert = page.inserted && page.stamp == transaction.id().0;
                    let was_inserted = page.inserted;
                    page.inserted = page.stamp == 0 || is_own_insert;
                    let (stamp, old) = (Stamp(page.stamp), page.cell().map(Into::into));
                    match was_inserted {
                        _ if page.inserted => {}
                        true => transaction.add_first_version(TABLE, &key(n), stamp, old),
                        false => transaction.add_version(TABLE, &key(n), stamp, old),
                    }
                    page.stamp = transaction.id().0;
                    page.content = (!delete).then_some(content as u64);
                    transaction.count_change();
                }
                Step::Commit(n) => {
                    if let Some(transaction) = writers[n].transaction.take() {
                        for (n, _) in std::mem::take(&mut writers[n].undo) {
                            committed[n] = pages[n].content;
                        }
                        transaction.commit();
                    }
                }
                Step::RollBack(n) => {
                    if let Some(transaction) = writers[n].transaction.take() {
                        for (n, row) in std::mem::take(&mut writers[n].undo).into_iter().rev() {
                            pages[n] = row;
                        }
                        transaction.roll_back();
                    }
                }
                Step::GoBack { writer, keep } => {
                    let Writer { transaction: Some(transaction), undo, .. } = &mut writers[writer] else {
                        continue;
                    };
                    while undo.len() > keep {
                        let (n, row) = undo.pop().unwrap();
                        pages[n] = row;
                        for (reader, expected) in &expected {
                            let read = read(readers[*reader].view().unwrap(), n, pages[n]);
                            prop_assert_eq!(read, Ok(expected[n]), "restored, reader {} row {}", reader, n);
                        }
                        transaction.take_back_versions(undo.len() as u64);
                    }
                }
                Step::SpillUnderWay(n) => {
                    if has_files && let Some(transaction) = &mut writers[n].transaction {
                        transaction.spill_versions();
                    }
                }
                Step::Open(n) => {
                    readers[n].open();
                    expected.insert(n, committed);
                }
                Step::Close(n) => {
                    readers[n].close();
                    expected.remove(&n);
                }
                Step::Purge => transactions.purge(),
                Step::Spill if has_files => transactions.set_version_limit(0),
                Step::Spill => {}
                Step::Merge => transactions.merge_version_files(|| true),
            }
            for (reader, expected) in &expected {
                let view = readers[*reader].view().unwrap();
                for n in 0..KEYS {
                    prop_assert_eq!(read(view, n, pages[n]), Ok(expected[n]), "reader {} row {}", reader, n);
                }
            }
        }
        for writer in &mut writers {
            if let Some(transaction) = writer.transaction.take() {
                transaction.commit();
            }
        }
        readers.clear();
        transactions.purge();
        let usage = transactions.usage();
        prop_assert_eq!((usage.version_bytes, usage.spilled.files), (0, 0));
    }
}

fn update(transactions: &std::sync::Arc<Transactions>, key: &[u8], before: Stamp, cell: &[u8]) -> Stamp {
    let mut session = transactions.session();
    let mut transaction = session.begin().unwrap();
    transaction.add_version(TABLE, key, before, Some(cell.into()));
    let stamp = transaction.id();
    transaction.commit();
    stamp
}

#[test]
fn one_old_snapshot_under_hot_updates_costs_one_version_a_row() {
    let transactions = Transactions::new(&Config::default());
    let mut old = transactions.session();
    let mut stamp = Stamp(0);
    old.open();
    let mut most = 0;
    for n in 0..10_000_u64 {
        stamp = update(&transactions, b"hot", stamp, &n.to_le_bytes());
        most = most.max(transactions.version_bytes());
    }
    assert!(most < 1500, "{most} bytes between purges");
    transactions.purge();
    assert!(transactions.version_bytes() < 300, "{}", transactions.version_bytes());
    let found = old.view().unwrap().find_version(TABLE, b"hot").unwrap();
    assert_eq!(found, Found::Row(0_u64.to_le_bytes()[..].into()));
    old.close();
    transactions.purge();
    assert_eq!(transactions.version_bytes(), 0);
}

#[test]
fn beyond_the_limit_the_oldest_snapshot_is_cancelled_and_newer_ones_are_not() {
    let transactions = Transactions::new(&Config { version_limit_bytes: 200_000, ..Config::default() });
    let (mut old, mut young) = (transactions.session(), transactions.session());
    old.open();
    let cell = [1; 1000];
    for n in 0..150_u64 {
        update(&transactions, &n.to_le_bytes(), Stamp(0), &cell);
    }
    young.open();
    for n in 150..300_u64 {
        update(&transactions, &n.to_le_bytes(), Stamp(0), &cell);
    }
    assert_eq!(old.view().unwrap().find_version(TABLE, &[0]), Err(SnapshotTooOld));
    assert_eq!(old.view().unwrap().check(), Err(SnapshotTooOld));
    // Visibility stays right even now: deleting from pages obeys the horizon, which still counts this
    // snapshot.
    assert!(!old.view().unwrap().sees(Stamp(1)));
    let found = young.view().unwrap().find_version(TABLE, &200_u64.to_le_bytes());
    assert_eq!(found, Ok(Found::Row(cell[..].into())));
    assert!(transactions.version_bytes() <= 200_000 + 65 * 1300);
    old.open();
    assert_eq!(old.view().unwrap().check(), Ok(()));
}

#[test]
fn what_a_transaction_under_way_has_left_gives_no_snapshot_up() {
    let transactions = Transactions::new(&Config { version_limit_bytes: 200_000, ..Config::default() });
    let mut reader = transactions.session();
    reader.open();
    let mut session = transactions.session();
    let mut large = session.begin().unwrap();
    for n in 0..1_000_u64 {
        large.add_version(TABLE, &n.to_le_bytes(), Stamp(0), Some([1; 1000][..].into()));
    }
    assert!(transactions.version_bytes() > 1_000_000);
    for n in 2_000..2_100_u64 {
        update(&transactions, &n.to_le_bytes(), Stamp(0), b"small");
    }
    let found = reader.view().unwrap().find_version(TABLE, &1_u64.to_le_bytes());
    assert_eq!(found, Ok(Found::Row([1; 1000][..].into())));
    // Once it has committed, what it left is kept for the snapshot alone.
    large.commit();
    let found = reader.view().unwrap().find_version(TABLE, &1_u64.to_le_bytes());
    assert_eq!(found, Err(SnapshotTooOld));
    assert_eq!(transactions.version_bytes(), 0);
}

#[test]
fn versions_that_were_taken_back_do_not_count_as_left() {
    let transactions = Transactions::new(&Config { version_limit_bytes: 200_000, ..Config::default() });
    let (mut reader, mut session) = (transactions.session(), transactions.session());
    reader.open();
    let mut undecided = session.begin().unwrap();
    for n in 0..1_000_u64 {
        undecided.add_version(TABLE, &n.to_le_bytes(), Stamp(0), Some([1; 1000][..].into()));
        undecided.take_back_versions(0);
    }
    for n in 2_000..2_300_u64 {
        update(&transactions, &n.to_le_bytes(), Stamp(0), &[2; 1000]);
    }
    assert_eq!(reader.view().unwrap().check(), Err(SnapshotTooOld), "the limit holds beside it");
    undecided.roll_back();
}

#[test]
fn a_view_of_a_statement_is_never_cancelled() {
    let transactions = Transactions::new(&Config { version_limit_bytes: 20_000, ..Config::default() });
    let mut statement = transactions.session_of_statements();
    statement.open();
    for n in 0..300_u64 {
        update(&transactions, &n.to_le_bytes(), Stamp(0), &[1; 1000]);
    }
    let found = statement.view().unwrap().find_version(TABLE, &7_u64.to_le_bytes());
    assert_eq!(found, Ok(Found::Row([1; 1000][..].into())));
}

#[test]
fn the_horizon_passes_a_cancelled_snapshot_that_pauses() {
    let transactions = Transactions::new(&Config::default());
    let mut idle = transactions.session();
    idle.open();
    idle.pause();
    let stamp = update(&transactions, &[1], Stamp(0), b"old");
    assert!(!transactions.is_seen_by_all(stamp, transactions.horizon()));
    transactions.give_up_oldest_snapshot();
    assert!(transactions.is_seen_by_all(stamp, transactions.horizon()));
    assert_eq!(idle.resume(), Err(SnapshotTooOld));
    idle.pause();
    idle.open();
    assert_eq!(idle.resume(), Ok(()));
    assert!(idle.view().unwrap().sees(stamp));
}

#[test]
fn a_rollback_takes_its_versions_back_at_once() {
    let transactions = Transactions::new(&Config::default());
    let mut session = transactions.session();
    let mut transaction = session.begin().unwrap();
    for n in 0..10_u8 {
        transaction.add_version(TABLE, &[n], Stamp(0), Some(b"cell"[..].into()));
        transaction.count_change();
    }
    transaction.take_back_versions(9);
    let mut reader = transactions.session();
    assert_eq!(reader.open().find_version(TABLE, &[9]), Ok(Found::Newest));
    assert_eq!(reader.open().find_version(TABLE, &[8]), Ok(Found::Row(b"cell"[..].into())));
    transaction.roll_back();
    assert_eq!(transactions.version_bytes(), 0);
}
