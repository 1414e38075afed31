//! Versions that are too much for memory: they go to files, and snapshots go on.
#![cfg(not(feature = "shuttle"))]

mod files;

use base::Stamp;
use files::{Device, Files};
use latchwork_transactions::{Config, Found, SnapshotTooOld, Transaction, Transactions, View};
use std::io;
use std::ops::Range;
use std::sync::Arc;

const TABLE: u64 = 7;
const LIMIT: u64 = 200_000;
const CELL: [u8; 1000] = [1; 1000];

fn with_files(limit: u64) -> (Arc<Transactions>, Arc<Device>) {
    let files = Files::default();
    let device = files.0.clone();
    let config =
        Config { version_limit_bytes: limit, version_files: Some(Arc::new(files)), ..Config::default() };
    (Transactions::new(&config), device)
}

fn update(transactions: &Arc<Transactions>, key: u64, before: Stamp, cell: &[u8]) -> Stamp {
    let mut session = transactions.session();
    let mut transaction = session.begin().unwrap();
    transaction.add_version(TABLE, &key.to_le_bytes(), before, Some(cell.into()));
    let stamp = transaction.id();
    transaction.commit();
    stamp
}

/// As the engine asks: memory, then files.
fn find(view: View<'_>, key: u64) -> io::Result<Result<Found, SnapshotTooOld>> {
    match view.find_version(TABLE, &key.to_le_bytes()) {
        Ok(Found::Spilled(spilled)) => Ok(Ok(view.read_spilled(&spilled)?)),
        found => Ok(found),
    }
}

fn row(cell: &[u8]) -> Result<Found, SnapshotTooOld> {
    Ok(Found::Row(cell.into()))
}

#[test]
fn a_snapshot_outlives_the_limit_and_its_files_go_with_it() {
    let (transactions, _) = with_files(LIMIT);
    let [mut old, mut young] = [(); 2].map(|()| transactions.session());
    old.open();
    let stamps: Vec<Stamp> = (0..2_000).map(|key| update(&transactions, key, Stamp(0), &CELL)).collect();
    young.open();
    for (key, stamp) in (0..2_000).zip(&stamps) {
        update(&transactions, key, *stamp, &[2; 1000]);
        assert!(transactions.version_bytes() <= LIMIT + 65 * 1300 + 100_000, "memory is bounded");
    }
    let spilled = transactions.usage().spilled;
    assert!(spilled.versions > 3_500, "{spilled:?}");
    assert!(spilled.memory_bytes * 50 < spilled.file_bytes, "{spilled:?}");
    for key in 0..2_000 {
        assert_eq!(find(old.view().unwrap(), key).unwrap(), row(&CELL), "{key}");
        assert_eq!(find(young.view().unwrap(), key).unwrap(), row(&[2; 1000]), "{key}");
        // Somebody who has seen everything finds the newest on the page.
        assert_eq!(find(transactions.session().open(), key).unwrap(), Ok(Found::Newest), "{key}");
    }
    assert_eq!(find(old.view().unwrap(), 5_000).unwrap(), Ok(Found::Newest), "a row that nobody changed");
    transactions.merge_version_files(|| true);
    let merged = transactions.usage().spilled;
    assert!(merged.files < spilled.files && merged.versions == spilled.versions, "{merged:?} {spilled:?}");
    for key in 0..2_000 {
        assert_eq!(find(old.view().unwrap(), key).unwrap(), row(&CELL), "{key}");
        assert_eq!(find(young.view().unwrap(), key).unwrap(), row(&[2; 1000]), "{key}");
    }
    old.close();
    young.close();
    transactions.purge();
    let usage = transactions.usage();
    assert_eq!((usage.version_bytes, usage.spilled.files, usage.spilled.file_bytes), (0, 0, 0));
}

#[test]
fn a_file_goes_as_soon_as_no_snapshot_needs_it() {
    let (transactions, _) = with_files(LIMIT);
    let [mut old, mut young] = [(); 2].map(|()| transactions.session());
    old.open();
    (0..1_000).for_each(|key| {
        update(&transactions, key, Stamp(0), &CELL);
    });
    transactions.set_version_limit(0);
    let of_old = transactions.usage().spilled;
    assert_eq!((of_old.versions, transactions.version_bytes()), (1_000, of_old.memory_bytes));
    young.open();
    transactions.set_version_limit(LIMIT);
    (1_000..2_000).for_each(|key| {
        update(&transactions, key, Stamp(0), &CELL);
    });
    transactions.set_version_limit(0);
    old.close();
    transactions.purge();
    let of_young = transactions.usage().spilled;
    assert_eq!(of_young.versions, 1_000);
    assert!(of_young.file_bytes < of_old.file_bytes * 11 / 10);
    assert_eq!(find(young.view().unwrap(), 1_500).unwrap(), row(&CELL));
}

#[test]
fn a_row_that_is_changed_again_and_again_is_in_files_once() {
    let (transactions, _) = with_files(0);
    let mut old = transactions.session();
    old.open();
    let mut inserter = transactions.session();
    let inserted = inserter.begin().unwrap();
    let mut stamp = inserted.id();
    inserted.commit();
    let mut between = transactions.session();
    between.open();
    for round in 0..2_000_u64 {
        let mut session = transactions.session();
        let mut transaction = session.begin().unwrap();
        match round {
            0 => transaction.add_first_version(TABLE, &1_u64.to_le_bytes(), stamp, Some(CELL[..].into())),
            _ => transaction.add_version(TABLE, &1_u64.to_le_bytes(), stamp, Some([2; 1000][..].into())),
        }
        stamp = transaction.id();
        transaction.commit();
    }
    transactions.set_version_limit(0);
    assert_eq!(find(old.view().unwrap(), 1).unwrap(), Ok(Found::NoRow), "it was inserted later");
    assert_eq!(find(between.view().unwrap(), 1).unwrap(), row(&CELL));
    let usage = transactions.usage().spilled;
    assert!(usage.spilled > 0 && usage.spilled < 40, "{usage:?}");
}

#[test]
fn what_transactions_under_way_have_left_is_not_spilled_by_others() {
    let (transactions, _) = with_files(LIMIT);
    let mut reader = transactions.session();
    reader.open();
    let mut session = transactions.session();
    let mut large = session.begin().unwrap();
    for key in 0..1_000_u64 {
        large.add_version(TABLE, &key.to_le_bytes(), Stamp(0), Some(CELL[..].into()));
        large.count_change();
    }
    (2_000..2_400).for_each(|key| {
        update(&transactions, key, Stamp(0), &CELL);
    });
    transactions.set_version_limit(0);
    assert_eq!(transactions.usage().spilled.versions, 400);
    assert!(transactions.version_bytes() > 1_000_000);
    large.take_back_versions(4);
    assert_eq!(find(reader.view().unwrap(), 4).unwrap(), Ok(Found::Newest));
    assert_eq!(find(reader.view().unwrap(), 3).unwrap(), row(&CELL));
    large.roll_back();
    for key in 0..1_000 {
        assert_eq!(find(reader.view().unwrap(), key).unwrap(), Ok(Found::Newest));
    }
    assert_eq!(find(reader.view().unwrap(), 2_001).unwrap(), row(&CELL));
}

/// Changes rows, as the engine asks: a look at the limit before each.
fn change(transaction: &mut Transaction, keys: Range<u64>, before: Stamp, cell: &[u8]) {
    for key in keys {
        transaction.spill_versions();
        transaction.add_version(TABLE, &key.to_le_bytes(), before, Some(cell.into()));
        transaction.count_change();
    }
}

#[test]
fn a_large_transaction_takes_little_memory_while_it_is_under_way() {
    let (transactions, _) = with_files(LIMIT);
    transactions.set_version_file_limit(0);
    let [mut old, mut session, mut young] = [(); 3].map(|()| transactions.session());
    old.open();
    let mut large = session.begin().unwrap();
    change(&mut large, 0..5_000, Stamp(0), &CELL);
    let usage = transactions.usage();
    assert!(transactions.version_bytes() < LIMIT + 100_000, "{usage:?}");
    assert!(usage.spilled.versions > 4_000, "{usage:?}");
    assert!(transactions.has_spilled(large.id()) && !transactions.has_spilled(Stamp(0)));
    transactions.merge_version_files(|| true);
    assert!(transactions.usage().spilled.files < usage.spilled.files);
    // Taken back to a savepoint, and gone on from there with other rows.
    large.take_back_versions(1_000);
    let before = update(&transactions, 2_000, Stamp(0), &CELL);
    young.open();
    change(&mut large, 2_000..2_001, before, &[3; 1000]);
    change(&mut large, 6_000..9_000, Stamp(0), &[2; 1000]);
    transactions.merge_version_files(|| true);
    let look = || {
        for (key, expected) in [(0, row(&CELL)), (999, row(&CELL)), (8_999, row(&[2; 1000]))] {
            assert_eq!(find(old.view().unwrap(), key).unwrap(), expected, "{key}");
            assert_eq!(find(young.view().unwrap(), key).unwrap(), expected, "{key}");
        }
        for key in [1_000, 1_999, 2_001, 4_999] {
            assert_eq!(find(old.view().unwrap(), key).unwrap(), Ok(Found::Newest), "{key}");
        }
        assert_eq!(find(old.view().unwrap(), 2_000).unwrap(), row(&CELL));
        assert_eq!(find(young.view().unwrap(), 2_000).unwrap(), row(&[3; 1000]));
        assert_eq!(transactions.versions_of(TABLE, &2_000_u64.to_le_bytes()).unwrap().len(), 2);
    };
    look();
    transactions.purge();
    look();
    large.commit();
    transactions.purge();
    transactions.merge_version_files(|| true);
    look();
    drop((old, young));
    transactions.purge();
    let usage = transactions.usage();
    assert_eq!((usage.version_bytes, usage.spilled.files), (0, 0));
}

#[test]
fn a_large_transaction_that_rolls_back_leaves_no_file() {
    let (transactions, _) = with_files(LIMIT);
    let [mut reader, mut session] = [(); 2].map(|()| transactions.session());
    reader.open();
    let mut large = session.begin().unwrap();
    change(&mut large, 0..2_000, Stamp(0), &CELL);
    assert!(transactions.usage().spilled.files > 0);
    for kept in (0..2_000).rev() {
        assert_eq!(find(reader.view().unwrap(), kept).unwrap(), row(&CELL), "not undone yet");
        large.take_back_versions(kept);
        assert_eq!(find(reader.view().unwrap(), kept).unwrap(), Ok(Found::Newest), "undone");
    }
    large.roll_back();
    assert_eq!(transactions.usage().spilled.files, 0);
    assert_eq!(transactions.version_bytes(), 0);
}

#[test]
fn a_large_transaction_goes_on_in_memory_if_the_device_is_full() {
    let (transactions, device) = with_files(LIMIT);
    device.is_full_from(3);
    let [mut reader, mut session] = [(); 2].map(|()| transactions.session());
    reader.open();
    let mut large = session.begin().unwrap();
    change(&mut large, 0..2_000, Stamp(0), &CELL);
    assert!(transactions.version_bytes() > 1_500_000);
    large.take_back_versions(1_500);
    for key in 0..2_000 {
        let expected = if key < 1_500 { row(&CELL) } else { Ok(Found::Newest) };
        assert_eq!(find(reader.view().unwrap(), key).unwrap(), expected, "{key}");
    }
    large.roll_back();
    assert_eq!((transactions.version_bytes(), transactions.usage().spilled.files), (0, 0));
}

#[test]
fn a_device_that_is_full_at_any_write_gives_up_snapshots_and_nothing_else() {
    let run = |full_from: u64| {
        let (transactions, device) = with_files(LIMIT);
        device.is_full_from(full_from);
        let [mut old, mut young] = [(); 2].map(|()| transactions.session());
        old.open();
        let stamps: Vec<Stamp> = (0..1_000).map(|key| update(&transactions, key, Stamp(0), &CELL)).collect();
        young.open();
        (0..1_000).zip(&stamps).for_each(|(key, stamp)| {
            update(&transactions, key, *stamp, &[2; 1000]);
        });
        transactions.merge_version_files(|| true);
        let mut given_up = 0;
        for (view, cell) in [(old.view().unwrap(), &CELL), (young.view().unwrap(), &[2; 1000])] {
            let is_cancelled = view.check().is_err();
            given_up += u32::from(is_cancelled);
            for key in 0..1_000 {
                let expected = if is_cancelled { Err(SnapshotTooOld) } else { row(cell) };
                assert_eq!(find(view, key).unwrap(), expected, "write {full_from}, row {key}");
            }
        }
        let bytes = transactions.version_bytes();
        assert!(bytes <= LIMIT + 65 * 1300 + 100_000, "write {full_from}: {bytes}");
        drop((old, young));
        transactions.purge();
        let usage = transactions.usage();
        assert_eq!((usage.version_bytes, usage.spilled.files), (0, 0), "write {full_from}");
        (given_up, device.writes())
    };
    let (given_up, writes) = run(0);
    assert_eq!(given_up, 0);
    assert!(writes > 20, "{writes}");
    let given_up: Vec<u32> = (1..=writes).map(|write| run(write).0).collect();
    assert!(given_up[0] > 0 && given_up[writes as usize - 1] == 0, "{given_up:?}");
}

#[test]
fn beyond_the_limit_of_files_the_oldest_snapshot_is_given_up_and_what_it_needed_makes_room() {
    let (transactions, _) = with_files(LIMIT);
    transactions.set_version_file_limit(1_000_000);
    let [mut old, mut young] = [(); 2].map(|()| transactions.session());
    old.open();
    (0..900).for_each(|key| {
        update(&transactions, key, Stamp(0), &CELL);
    });
    assert_eq!(find(old.view().unwrap(), 7).unwrap(), row(&CELL));
    young.open();
    (1_000..1_900).for_each(|key| {
        update(&transactions, key, Stamp(0), &CELL);
    });
    assert_eq!(old.view().unwrap().check(), Err(SnapshotTooOld));
    for key in 1_000..1_900 {
        assert_eq!(find(young.view().unwrap(), key).unwrap(), row(&CELL));
    }
    assert!(transactions.usage().spilled.file_bytes <= 1_000_000);
    transactions.set_version_file_limit(0);
    (2_000..2_400).for_each(|key| {
        update(&transactions, key, Stamp(0), &CELL);
    });
    assert_eq!(young.view().unwrap().check(), Err(SnapshotTooOld), "no files at all");
}

#[test]
fn a_block_that_is_not_what_was_written_is_an_error_of_the_device() {
    let (transactions, device) = with_files(0);
    let mut reader = transactions.session();
    reader.open();
    let stamp = update(&transactions, 1, Stamp(0), &CELL);
    transactions.set_version_limit(0);
    for key in 2..6 {
        update(&transactions, key, Stamp(0), &CELL);
        transactions.set_version_limit(0);
    }
    device.breaks();
    let error = find(reader.view().unwrap(), 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(transactions.versions_of(TABLE, &1_u64.to_le_bytes()).is_err());
    // What cannot be read cannot be merged. Nothing is lost by the attempt.
    let before = transactions.usage().spilled;
    transactions.merge_version_files(|| true);
    assert_eq!(transactions.usage().spilled, before);
    assert_eq!(reader.view().unwrap().check(), Ok(()));
    // A snapshot that needs no file meets none.
    let mut other = transactions.session();
    assert!(other.open().sees(stamp));
    reader.close();
    transactions.purge();
    assert_eq!(transactions.versions_of(TABLE, &1_u64.to_le_bytes()).unwrap(), []);
}
