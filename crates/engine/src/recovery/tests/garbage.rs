//! What was to be purged when the machine stopped.

use super::crashes::{def, image, open};
use crate::tests::int_key;
use crate::{Database, Direction, IndexDef, Isolation, KeyRange, Table};
use base::IndexId;
use base::sync::Arc;
use std::path::Path;
use types::KeyPart;
use vfs::SimVfs;
use wal::Checkpoint;

const ROWS: i32 = 60;

fn world(vfs: &SimVfs) -> (Arc<Database>, Arc<Table>) {
    let database = open(vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(def("t")).unwrap();
    let parts = vec![KeyPart { column: 2, prefix_chars: Some(20), descending: false }];
    let index = IndexDef { name: "c".into(), unique: false, parts };
    database.create_index(&table, index).unwrap();
    let mut statement = database.begin_write().unwrap();
    for id in 0..ROWS {
        statement.insert(&table, &image(&table, id, &[0; 90])).unwrap();
    }
    statement.commit().unwrap();
    (database, table)
}

/// Gives rows another value in the index.
fn change(database: &Database, table: &Table, ids: impl Iterator<Item = i32>, to: u8) {
    let mut statement = database.begin_write().unwrap();
    for id in ids {
        let changed = statement.update(table, &int_key(id), &mut |_, out| {
            out.extend_from_slice(&image(table, id, &[to; 90]));
            true
        });
        assert!(changed.unwrap());
    }
    statement.commit().unwrap();
}

fn delete(database: &Database, table: &Table, ids: impl Iterator<Item = i32>) {
    let mut statement = database.begin_write().unwrap();
    ids.for_each(|id| assert!(statement.delete(table, &int_key(id), &mut |_| true).unwrap()));
    statement.commit().unwrap();
}

/// Checks what a start makes of it: readers count right before the purge and after it, and it leaves nothing.
/// Gives whether tables were to be swept.
fn check_start(vfs: &SimVfs, rows: usize) -> bool {
    let database = open(vfs).unwrap();
    let table = database.table("d", "t").unwrap();
    let count = || {
        let mut session = database.session();
        let statement = session.read().unwrap();
        let mut scan = table.scan(statement.reader(), IndexId(1), KeyRange::all(), Direction::Forward);
        let mut keys = 0;
        while scan.next_key().unwrap().is_some() {
            keys += 1;
        }
        keys
    };
    let is_swept = database.core().purge.has_sweeps();
    assert_eq!(count(), rows);
    database.core().purge.drain(database.core());
    assert_eq!((table.garbage(), database.core().purge.len()), (0, 0));
    assert_eq!(count(), rows);
    database.close().unwrap();
    is_swept
}

#[test]
fn a_start_purges_what_the_log_lists_and_sweeps_nothing() {
    let vfs = SimVfs::new();
    let (database, table) = world(&vfs);
    database.save_numbers().unwrap();
    change(&database, &table, 0..20, 1);
    delete(&database, &table, 10..30);
    // The count is not in the header: a statement that meets a full log takes a checkpoint like this one.
    database.core().caches.flush_all().unwrap();
    database.core().checkpoint().unwrap();
    assert!(!check_start(&vfs.crash(1), ROWS as usize - 20));
}

#[test]
fn what_was_purged_before_the_crash_may_be_purged_again() {
    let vfs = SimVfs::new();
    let (database, table) = world(&vfs);
    change(&database, &table, 0..20, 1);
    delete(&database, &table, 10..30);
    database.core().purge.drain(database.core());
    let mut statement = database.begin_write().unwrap();
    (10..15).for_each(|id| statement.insert(&table, &image(&table, id, &[0; 90])).unwrap());
    statement.commit().unwrap();
    assert!(!check_start(&vfs.crash(1), ROWS as usize - 15));
}

#[test]
fn a_row_deleted_before_a_transaction_that_did_not_end_took_its_place_is_purged_by_the_start() {
    let vfs = SimVfs::new();
    let (database, table) = world(&vfs);
    let mut session = database.session();
    delete(&database, &table, 10..14);
    session.begin(Isolation::RepeatableRead).unwrap();
    let mut statement = session.write().unwrap();
    (10..12).for_each(|id| statement.insert(&table, &image(&table, id, &[3; 90])).unwrap());
    statement.commit().unwrap();
    // Purge finds two of the four rows, and leaves the two places that are taken.
    database.core().purge.drain(database.core());
    assert_eq!(database.core().purge.len(), 0);
    database.core().caches.flush_all().unwrap();
    database.core().checkpoint().unwrap();
    // It survives the crash by the next commit.
    change(&database, &table, 50..51, 1);
    std::mem::forget(session);
    assert!(!check_start(&vfs.crash(1), ROWS as usize - 4));
}

#[test]
fn what_waits_for_a_snapshot_is_listed_again_or_swept_by_the_start_if_it_is_too_much() {
    for (many, is_swept) in [(false, false), (true, true)] {
        let vfs = SimVfs::new();
        let (database, table) = world(&vfs);
        let mut reader = database.session();
        reader.begin(Isolation::RepeatableRead).unwrap();
        drop(reader.read().unwrap());
        change(&database, &table, 0..5, 1);
        let capacity = database.core().journal.capacity();
        let first = database.core().journal.position();
        // Half of the log's capacity behind the first changes.
        for round in 0u8.. {
            match many {
                true => change(&database, &table, 0..ROWS, 2 + round % 100),
                false => {
                    let mut statement = database.begin_write().unwrap();
                    for id in 0..20 {
                        let id = 1_000 + 20 * i32::from(round) + id;
                        statement.insert(&table, &image(&table, id, &[0; 900])).unwrap();
                    }
                    drop(statement);
                }
            }
            database.core().caches.flush_all().unwrap();
            database.checkpoint().unwrap();
            if database.core().journal.position().0 - first.0 > capacity {
                break;
            }
        }
        let needed = database.core().journal.needed();
        let position = database.core().journal.position();
        assert!(position.0 - needed.0 <= capacity / 4 * 3, "the log holds what it need not");
        assert_eq!(check_start(&vfs.crash(1), ROWS as usize), is_swept);
        drop(reader);
    }
}

#[test]
fn a_log_of_a_build_that_listed_nothing_has_its_tables_swept() {
    let vfs = SimVfs::new();
    let (database, table) = world(&vfs);
    database.checkpoint().unwrap();
    change(&database, &table, 0..20, 1);
    delete(&database, &table, 10..30);
    let log = database.core().journal.log();
    let Checkpoint { lsn, needed, mut owner } = log.checkpoint().unwrap();
    owner[3] = 0;
    log.write_checkpoint(Checkpoint { lsn, needed, owner }).unwrap();
    assert!(check_start(&vfs.crash(1), ROWS as usize - 20));
}

#[test]
fn rows_in_pages_of_their_own_are_purged_by_the_start() {
    let vfs = SimVfs::new();
    let (database, table) = world(&vfs);
    let large = |to: u8, ids: std::ops::Range<i32>| {
        let mut statement = database.begin_write().unwrap();
        for id in ids {
            let changed = statement.update(&table, &int_key(id), &mut |_, out| {
                out.extend_from_slice(&image(&table, id, &[to; 5_000]));
                true
            });
            assert!(changed.unwrap());
        }
        statement.commit().unwrap();
    };
    large(1, 0..10);
    large(2, 0..8);
    database.core().purge.drain(database.core());
    // So that the log has room for what is to be listed.
    database.checkpoint().unwrap();
    large(3, 0..6);
    delete(&database, &table, 0..4);
    let left = vfs.crash(1);
    drop((table, database));
    assert!(!check_start(&left, ROWS as usize - 4));
    let report = crate::check(Path::new("data"), Arc::new(left)).unwrap();
    assert!(report.is_clean(), "{report}");
}
