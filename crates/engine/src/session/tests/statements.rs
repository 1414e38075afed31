//! Sessions beside each other: who sees what, who waits for whom, and that nothing stays behind.

use crate::tests::{CacheSize, Row, int_key, matrix, options, table_def};
use crate::{
    Batch, Database, Direction, Error, HitPath, Isolation, KeyList, KeyRange, LockMode, LockWait, Reader,
    Session, Table, TableDef,
};
use base::IndexId;
use base::random::Random;
use base::sync::{Arc, thread};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::{Bound, Range};
use std::path::{Path, PathBuf};
use std::time::Duration;
use types::ValueRef;
use vfs::{Create, Fault, FaultyVfs, File, MemVfs, Operation, Vfs};

const PRIMARY: IndexId = IndexId(0);
const K: IndexId = IndexId(1);
const U: IndexId = IndexId(2);

fn with_table(hit_path: HitPath, size: CacheSize) -> (Arc<Database>, Arc<Table>) {
    let options = options(Arc::new(MemVfs::new()), 4_096, hit_path, size);
    let database = Database::open(Path::new("data"), options).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    (database, table)
}

fn usual() -> (Arc<Database>, Arc<Table>) {
    with_table(HitPath::Optimistic, CacheSize::from_environment())
}

fn row(id: i32, k: i32) -> Row {
    Row { id, k, u: None, c: vec![k as u8; 20] }
}

fn insert(session: &mut Session, table: &Table, row: &Row) -> crate::Result<()> {
    let mut statement = session.write()?;
    statement.insert(table, &row.image(table))?;
    statement.commit()
}

fn update(session: &mut Session, table: &Table, new: &Row) -> crate::Result<bool> {
    let mut statement = session.write()?;
    let changed = statement.update(table, &int_key(new.id), &mut |_, out| {
        out.extend_from_slice(&new.image(table));
        true
    })?;
    statement.commit()?;
    Ok(changed)
}

fn delete(session: &mut Session, table: &Table, id: i32) -> crate::Result<bool> {
    let mut statement = session.write()?;
    let deleted = statement.delete(table, &int_key(id), &mut |_| true)?;
    statement.commit()?;
    Ok(deleted)
}

fn get(session: &mut Session, table: &Table, id: i32) -> Option<Row> {
    let mut image = Vec::new();
    let read = session.read().unwrap();
    table.get(read.reader(), &int_key(id), &mut image).unwrap().then(|| Row::read(table, &image))
}

fn scan(reader: Reader<'_>, table: &Table, index: IndexId, direction: Direction) -> Vec<Row> {
    scan_range(reader, table, index, KeyRange::all(), direction)
}

fn scan_range(
    reader: Reader<'_>,
    table: &Table,
    index: IndexId,
    range: KeyRange,
    direction: Direction,
) -> Vec<Row> {
    let mut scan = table.scan(reader, index, range, direction);
    let mut rows = Vec::new();
    while let Some(image) = scan.next_row().unwrap() {
        rows.push(Row::read(table, image));
        assert_eq!(scan.primary_key(), int_key(rows[rows.len() - 1].id));
    }
    rows
}

fn all(session: &mut Session, table: &Table) -> Vec<Row> {
    scan(session.read().unwrap().reader(), table, PRIMARY, Direction::Forward)
}

/// How many keys the tree of an index has, seen by anyone or not.
fn keys_of(table: &Table, index: usize) -> usize {
    let mut count = 0;
    let tree = &table.state().indexes[index].tree;
    tree.for_each_prefix(&[], |_| {
        count += 1;
        Ok(())
    })
    .unwrap();
    count
}

#[test]
fn a_repeatable_read_stays_what_it_was_and_a_committed_one_follows() {
    let (database, table) = usual();
    let (mut writer, mut repeatable, mut committed) =
        (database.session(), database.session(), database.session());
    insert(&mut writer, &table, &row(1, 1)).unwrap();
    repeatable.begin(Isolation::RepeatableRead).unwrap();
    committed.begin(Isolation::ReadCommitted).unwrap();
    assert_eq!(all(&mut repeatable, &table), [row(1, 1)]);
    assert_eq!(all(&mut committed, &table), [row(1, 1)]);

    writer.begin(Isolation::RepeatableRead).unwrap();
    update(&mut writer, &table, &row(1, 2)).unwrap();
    insert(&mut writer, &table, &row(2, 2)).unwrap();
    assert_eq!(all(&mut writer, &table), [row(1, 2), row(2, 2)], "its own changes");
    for reader in [&mut repeatable, &mut committed] {
        assert_eq!(all(reader, &table), [row(1, 1)], "nothing that is not committed");
    }
    let mut dirty = database.session();
    dirty.set_isolation(Isolation::ReadUncommitted);
    assert_eq!(all(&mut dirty, &table), [row(1, 2), row(2, 2)]);

    writer.commit().unwrap();
    assert_eq!(all(&mut repeatable, &table), [row(1, 1)]);
    assert_eq!(all(&mut committed, &table), [row(1, 2), row(2, 2)]);
    // A change goes by the newest, and is then seen by whoever made it.
    assert!(update(&mut repeatable, &table, &row(2, 7)).unwrap());
    assert_eq!(all(&mut repeatable, &table), [row(1, 1), row(2, 7)]);
    repeatable.commit().unwrap();
    assert_eq!(all(&mut repeatable, &table), [row(1, 2), row(2, 7)]);
}

#[test]
fn a_consistent_snapshot_begins_with_the_transaction() {
    let (database, table) = usual();
    let (mut writer, mut early, mut late) = (database.session(), database.session(), database.session());
    early.begin(Isolation::RepeatableRead).unwrap();
    early.open_snapshot();
    late.begin(Isolation::RepeatableRead).unwrap();
    insert(&mut writer, &table, &row(1, 1)).unwrap();
    assert_eq!(all(&mut early, &table), []);
    assert_eq!(all(&mut late, &table), [row(1, 1)]);
}

#[test]
fn savepoints_and_failed_statements_take_back_their_part_only() {
    let (database, table) = usual();
    let mut session = database.session();
    insert(&mut session, &table, &row(1, 1)).unwrap();
    session.begin(Isolation::RepeatableRead).unwrap();
    update(&mut session, &table, &row(1, 2)).unwrap();
    let savepoint = session.savepoint();
    update(&mut session, &table, &row(1, 3)).unwrap();
    delete(&mut session, &table, 1).unwrap();
    insert(&mut session, &table, &row(1, 4)).unwrap();
    insert(&mut session, &table, &row(2, 4)).unwrap();
    assert_eq!(all(&mut session, &table), [row(1, 4), row(2, 4)]);
    session.roll_back_to(savepoint).unwrap();
    assert_eq!(all(&mut session, &table), [row(1, 2)]);

    let mut rows = KeyList::default();
    [5, 6, 1].iter().for_each(|id| rows.push(&row(*id, 0).image(&table)));
    let mut statement = session.write().unwrap();
    let (position, error) = statement.insert_many(&table, &rows).unwrap_err();
    assert!(position == 2 && matches!(error, Error::DuplicateKey { index: PRIMARY }));
    drop(statement);
    assert_eq!(all(&mut session, &table), [row(1, 2)], "the transaction lives on");

    session.roll_back().unwrap();
    assert_eq!(all(&mut session, &table), [row(1, 1)]);
    assert_eq!(scan(Reader::newest(), &table, K, Direction::Forward), [row(1, 1)]);
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn what_a_savepoint_brings_back_has_its_index_entries() {
    let (database, table) = usual();
    let mut session = database.session();
    insert(&mut session, &table, &row(1, 1)).unwrap();
    // The entry of 1 is garbage now, and the transaction makes use of it.
    update(&mut session, &table, &row(1, 2)).unwrap();
    session.begin(Isolation::RepeatableRead).unwrap();
    update(&mut session, &table, &row(1, 1)).unwrap();
    for by_deletion in [false, true] {
        let savepoint = session.savepoint();
        if by_deletion {
            delete(&mut session, &table, 1).unwrap();
            insert(&mut session, &table, &row(1, 3)).unwrap();
        } else {
            update(&mut session, &table, &row(1, 3)).unwrap();
            update(&mut session, &table, &row(1, 4)).unwrap();
        }
        database.core().purge.drain(database.core());
        session.roll_back_to(savepoint).unwrap();
        assert_eq!(scan(Reader::newest(), &table, K, Direction::Forward), [row(1, 1)]);
    }
    session.commit().unwrap();
    database.core().purge.drain(database.core());
    assert_eq!((keys_of(&table, 1), table.garbage()), (1, 0));
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn rows_that_a_savepoint_brings_back_stay_locked() {
    let (database, table) = usual();
    let mut session = database.session();
    (1..=4).for_each(|id| insert(&mut session, &table, &row(id, 1)).unwrap());
    session.begin(Isolation::RepeatableRead).unwrap();
    update(&mut session, &table, &row(4, 2)).unwrap();
    let savepoint = session.savepoint();
    update(&mut session, &table, &row(1, 2)).unwrap();
    update(&mut session, &table, &row(1, 3)).unwrap();
    delete(&mut session, &table, 2).unwrap();
    insert(&mut session, &table, &row(5, 1)).unwrap();
    let mut statement = session.write().unwrap();
    let (_, mut writer) = statement.split();
    assert!(writer.lock(&table, &int_key(1), LockMode::Exclusive, LockWait::NoWait).unwrap().is_some());
    statement.commit().unwrap();
    session.roll_back_to(savepoint).unwrap();

    let mut hasty = database.session();
    hasty.set_lock_wait(Duration::ZERO);
    for id in 1..=2 {
        assert!(matches!(delete(&mut hasty, &table, id), Err(Error::LockWaitTimeout)), "row {id}");
    }
    insert(&mut hasty, &table, &row(5, 2)).unwrap();
    assert!(delete(&mut hasty, &table, 3).unwrap());
    session.commit().unwrap();
    [1, 2, 4, 5].iter().for_each(|id| assert!(delete(&mut hasty, &table, *id).unwrap()));
    assert_eq!(database.core().transactions.usage().locks, transactions::LockUsage::default());
}

#[test]
fn a_unique_key_that_a_savepoint_may_bring_back_is_taken() {
    let (database, table) = usual();
    let with_u = |id, u| Row { u, ..row(id, 1) };
    let mut first = database.session();
    let mut hasty = database.session();
    hasty.set_lock_wait(Duration::ZERO);
    for round in 0..3 {
        let id = 10 * round;
        first.begin(Isolation::RepeatableRead).unwrap();
        insert(&mut first, &table, &with_u(id, Some(7))).unwrap();
        let savepoint = first.savepoint();
        if round > 0 {
            delete(&mut first, &table, id).unwrap();
        }
        match round {
            0 => assert!(update(&mut first, &table, &with_u(id, Some(8))).unwrap()),
            1 => {}
            _ => insert(&mut first, &table, &with_u(id, None)).unwrap(),
        }
        let taken = insert(&mut hasty, &table, &with_u(id + 1, Some(7)));
        assert!(matches!(taken, Err(Error::LockWaitTimeout)), "{round}: {taken:?}");
        first.roll_back_to(savepoint).unwrap();
        assert_eq!(get(&mut first, &table, id), Some(with_u(id, Some(7))));
        first.roll_back().unwrap();
        insert(&mut hasty, &table, &with_u(id + 1, Some(7))).unwrap();
        delete(&mut hasty, &table, id + 1).unwrap();
    }
    database.core().purge.drain(database.core());
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn a_row_that_is_changed_is_waited_for_and_its_change_is_what_the_next_one_sees() {
    let (database, table) = usual();
    let mut first = database.session();
    insert(&mut first, &table, &row(1, 10)).unwrap();
    first.begin(Isolation::RepeatableRead).unwrap();
    update(&mut first, &table, &row(1, 11)).unwrap();

    let mut hasty = database.session();
    hasty.set_lock_wait(Duration::ZERO);
    assert!(matches!(delete(&mut hasty, &table, 1), Err(Error::LockWaitTimeout)));
    assert!(matches!(insert(&mut hasty, &table, &row(1, 0)), Err(Error::LockWaitTimeout)));
    let mut statement = hasty.write().unwrap();
    let (_, mut writer) = statement.split();
    let locked = writer.lock(&table, &int_key(1), LockMode::Shared, LockWait::NoWait);
    assert!(matches!(locked, Err(Error::WouldBlock)));
    drop(statement);

    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut second = database.session();
            let mut statement = second.write().unwrap();
            let mut seen = 0;
            statement
                .update(&table, &int_key(1), &mut |image, out| {
                    seen = Row::read(&table, image).k;
                    out.extend_from_slice(&row(1, seen + 1).image(&table));
                    true
                })
                .unwrap();
            statement.commit().unwrap();
            seen
        });
        while database.core().transactions.usage().locks.waiting == 0 {
            thread::yield_now();
        }
        first.commit().unwrap();
        assert_eq!(waiter.join().unwrap(), 11);
    });
    assert_eq!(get(&mut first, &table, 1), Some(row(1, 12)));
}

#[test]
fn two_that_wait_for_each_other_are_told_apart_by_a_deadlock() {
    let (database, table) = usual();
    let mut session = database.session();
    (1..=2).for_each(|id| insert(&mut session, &table, &row(id, 0)).unwrap());
    let change = |first: i32, second: i32, barrier: &std::sync::Barrier| {
        let mut session = database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        update(&mut session, &table, &row(first, first)).unwrap();
        barrier.wait();
        match update(&mut session, &table, &row(second, first)) {
            Ok(_) => {
                session.commit().unwrap();
                true
            }
            Err(Error::Deadlock) => {
                session.roll_back().unwrap();
                false
            }
            Err(error) => panic!("{error}"),
        }
    };
    let barrier = std::sync::Barrier::new(2);
    let survivors = thread::scope(|scope| {
        let one = scope.spawn(|| change(1, 2, &barrier));
        let other = scope.spawn(|| change(2, 1, &barrier));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert!(survivors.0 != survivors.1);
    let winner = if survivors.0 { 1 } else { 2 };
    assert_eq!(all(&mut session, &table), [row(1, winner), row(2, winner)]);
}

#[test]
fn a_locked_row_is_left_alone_until_its_owner_ends() {
    let (database, table) = usual();
    let (mut owner, mut other) = (database.session(), database.session());
    insert(&mut owner, &table, &row(1, 1)).unwrap();
    other.set_lock_wait(Duration::ZERO);
    for (mode, shared_too) in [(LockMode::Shared, true), (LockMode::Exclusive, false)] {
        owner.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = owner.write().unwrap();
        let (_, mut writer) = statement.split();
        assert!(writer.lock(&table, &int_key(1), mode, LockWait::Wait).unwrap().is_some());
        assert!(writer.lock(&table, &int_key(9), mode, LockWait::Wait).unwrap().is_none());
        statement.commit().unwrap();
        assert!(matches!(update(&mut other, &table, &row(1, 2)), Err(Error::LockWaitTimeout)));
        let mut statement = other.write().unwrap();
        let (_, mut writer) = statement.split();
        let shared = writer.lock(&table, &int_key(1), LockMode::Shared, LockWait::NoWait);
        assert_eq!(shared.is_ok(), shared_too);
        drop(statement);
        assert_eq!(get(&mut other, &table, 1), Some(row(1, 1)), "plain reads do not wait");
        owner.commit().unwrap();
    }
    assert!(update(&mut other, &table, &row(1, 2)).unwrap());
}

#[test]
fn a_unique_key_is_free_again_when_its_row_has_gone_and_older_snapshots_still_find_it() {
    let (database, table) = usual();
    let unique = |id: i32, u: i32| Row { u: Some(u), ..row(id, id) };
    let (mut writer, mut reader, mut other) = (database.session(), database.session(), database.session());
    other.set_lock_wait(Duration::ZERO);
    insert(&mut writer, &table, &unique(1, 5)).unwrap();
    reader.begin(Isolation::RepeatableRead).unwrap();
    reader.open_snapshot();

    writer.begin(Isolation::RepeatableRead).unwrap();
    delete(&mut writer, &table, 1).unwrap();
    insert(&mut writer, &table, &unique(2, 5)).unwrap();
    // Whether the key is free depends on how the writer ends.
    assert!(matches!(insert(&mut other, &table, &unique(3, 5)), Err(Error::LockWaitTimeout)));
    writer.roll_back().unwrap();
    let duplicate = insert(&mut other, &table, &unique(3, 5));
    assert!(matches!(duplicate, Err(Error::DuplicateKey { index: U })));
    let duplicate = update(&mut other, &table, &unique(1, 5));
    assert!(duplicate.unwrap(), "a row does not collide with itself");

    delete(&mut writer, &table, 1).unwrap();
    insert(&mut writer, &table, &unique(2, 5)).unwrap();
    assert!(matches!(insert(&mut other, &table, &unique(3, 5)), Err(Error::DuplicateKey { index: U })));
    assert!(update(&mut writer, &table, &unique(2, 6)).unwrap());
    insert(&mut writer, &table, &unique(3, 5)).unwrap();

    let mut keys = KeyList::default();
    let codec = table.key_codec(U);
    codec.encode_prefix(&[types::ValueRef::Int(5)], &mut keys.bytes);
    keys.ends.push(keys.bytes.len() as u32);
    let by_unique = |reader: Reader<'_>| {
        let mut found = Vec::new();
        table
            .multi_get(reader, U, &keys, &mut Batch::default(), &mut |_, _, image| {
                found.push(Row::read(&table, image).id);
                true
            })
            .unwrap();
        found
    };
    assert_eq!(by_unique(reader.read().unwrap().reader()), [1]);
    assert_eq!(by_unique(writer.read().unwrap().reader()), [3]);
    drop(reader);
    assert_eq!(all(&mut writer, &table), [unique(2, 6), unique(3, 5)]);
    assert!(database.check().unwrap().is_clean());
    assert_eq!(table.garbage(), 0);
}

#[test]
fn purge_waits_for_the_oldest_snapshot_and_leaves_nothing() {
    let (database, table) = usual();
    let (mut writer, mut reader) = (database.session(), database.session());
    let large = |id: i32, k: i32| Row { c: vec![k as u8; 9_000], ..row(id, k) };
    (0..50).for_each(|id| insert(&mut writer, &table, &large(id, 0)).unwrap());
    reader.begin(Isolation::RepeatableRead).unwrap();
    let before = all(&mut reader, &table);
    for round in 1..5 {
        (0..50).for_each(|id| assert!(update(&mut writer, &table, &large(id, round)).unwrap()));
    }
    (0..50).step_by(2).for_each(|id| assert!(delete(&mut writer, &table, id).unwrap()));
    database.core().purge.drain(database.core());
    assert!(table.garbage() > 0);
    assert_eq!(all(&mut reader, &table), before);
    assert_eq!(scan(reader.read().unwrap().reader(), &table, K, Direction::Forward), before);
    reader.commit().unwrap();

    database.core().purge.drain(database.core());
    assert_eq!((table.garbage(), database.core().purge.len()), (0, 0));
    assert_eq!(database.core().transactions.version_bytes(), 0);
    let report = database.check().unwrap();
    assert!(report.is_clean() && report.garbage == 0 && report.rows == 25, "{report}");
    assert_eq!(keys_of(&table, 1), 25);
}

#[test]
fn a_long_reader_of_hot_rows_keeps_its_snapshot_in_little_memory() {
    const LIMIT: u64 = 256 << 10;
    let (database, table) = usual();
    database.set_version_limit(LIMIT);
    let (mut setup, mut reader) = (database.session(), database.session());
    (0..8).for_each(|id| insert(&mut setup, &table, &row(id, 0)).unwrap());
    reader.begin(Isolation::RepeatableRead).unwrap();
    let before = all(&mut reader, &table);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (database, table) = (&database, &table);
                scope.spawn(move || {
                    let mut session = database.session();
                    for round in 1..600 {
                        assert!(update(&mut session, table, &row((round + writer) % 8, round)).unwrap());
                    }
                })
            })
            .collect();
        while !writers.iter().all(|writer| writer.is_finished()) {
            assert_eq!(all(&mut reader, &table), before);
            assert_eq!(scan(reader.read().unwrap().reader(), &table, K, Direction::Forward), before);
            let bytes = database.status().version_bytes;
            assert!(bytes <= LIMIT, "{bytes}");
        }
    });
    assert_eq!(all(&mut reader, &table), before);
    reader.commit().unwrap();
    database.core().purge.drain(database.core());
    assert_eq!((table.garbage(), database.status().version_bytes), (0, 0));
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn beyond_the_version_limit_a_long_reader_is_given_up_and_writers_never_are() {
    const ROWS: i32 = 1_000;
    const LIMIT: u64 = 64 << 10;
    let (database, table) = usual();
    let (mut writer, mut reader) = (database.session(), database.session());
    (0..ROWS).for_each(|id| insert(&mut writer, &table, &row(id, 0)).unwrap());
    database.set_version_limit(LIMIT);
    database.set_version_file_limit(0);
    reader.begin(Isolation::RepeatableRead).unwrap();
    let before = all(&mut reader, &table);
    let mut is_given_up = false;
    for id in 0..ROWS {
        assert!(update(&mut writer, &table, &row(id, 1)).unwrap());
        // The limit is looked at every 64 commits.
        let bytes = database.status().version_bytes;
        assert!(bytes <= LIMIT + 64 * 512, "{bytes}");
        if id % 50 == 0 {
            let read = reader.read().unwrap();
            let mut rows = table.scan(read.reader(), PRIMARY, KeyRange::all(), Direction::Forward);
            let mut seen = Vec::new();
            let end = loop {
                match rows.next_row() {
                    Ok(Some(image)) => seen.push(Row::read(&table, image)),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            match end {
                Ok(()) => assert!(!is_given_up && seen == before),
                Err(error) => {
                    assert!(matches!(error, Error::SnapshotTooOld), "{error:?}");
                    assert_eq!(seen, before[..seen.len()], "what it did see was right");
                    is_given_up = true;
                }
            }
        }
    }
    assert!(is_given_up);
    reader.commit().unwrap();
    assert!(all(&mut reader, &table).iter().all(|row| row.k == 1));
    database.core().purge.drain(database.core());
    assert_eq!((table.garbage(), database.status().version_bytes), (0, 0));
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn beyond_the_version_limit_a_long_reader_goes_on_by_files() {
    const ROWS: i32 = 1_000;
    const LIMIT: u64 = 64 << 10;
    let (database, table) = usual();
    let [mut writer, mut undecided, mut reader, mut later] = [(); 4].map(|()| database.session());
    (0..ROWS).for_each(|id| insert(&mut writer, &table, &row(id, 0)).unwrap());
    database.set_version_limit(LIMIT);
    reader.begin(Isolation::RepeatableRead).unwrap();
    let before = all(&mut reader, &table);
    let mut between = Vec::new();
    for id in 0..ROWS {
        if id == ROWS / 2 {
            later.begin(Isolation::RepeatableRead).unwrap();
            between = all(&mut later, &table);
        }
        assert!(update(&mut writer, &table, &row(id, 1 + id % 7)).unwrap());
        if id % 3 == 0 {
            assert!(delete(&mut writer, &table, id).unwrap());
        }
        if id % 6 == 0 {
            insert(&mut writer, &table, &row(id, 9)).unwrap();
        }
        insert(&mut writer, &table, &row(ROWS + id, 5)).unwrap();
        // A rollback leaves the entries that old versions need, though they are in files.
        undecided.begin(Isolation::RepeatableRead).unwrap();
        update(&mut undecided, &table, &row(id / 2, 0)).unwrap();
        undecided.roll_back().unwrap();
        let bytes = database.status().version_bytes;
        assert!(bytes <= LIMIT + 64 * 1_024, "{bytes}");
        if id % 100 == 99 {
            assert_eq!(all(&mut reader, &table), before);
            assert_eq!(scan(reader.read().unwrap().reader(), &table, K, Direction::Forward), before);
            assert_eq!(get(&mut reader, &table, id), Some(row(id, 0)));
        }
    }
    let mut by_k = between.clone();
    by_k.sort_by_key(|row| (row.k, row.id));
    for round in 0..2 {
        assert_eq!(all(&mut reader, &table), before, "round {round}");
        assert_eq!(scan(reader.read().unwrap().reader(), &table, K, Direction::Forward), before);
        assert_eq!(all(&mut later, &table), between, "round {round}");
        assert_eq!(scan(later.read().unwrap().reader(), &table, K, Direction::Forward), by_k);
        database.core().purge.drain(database.core());
    }
    let status = database.status();
    assert!(status.version_file_bytes > LIMIT && status.versions_in_files > 800, "{status:?}");
    reader.commit().unwrap();
    database.core().purge.drain(database.core());
    assert_eq!(all(&mut later, &table), between);
    assert_eq!(scan(later.read().unwrap().reader(), &table, K, Direction::Forward), by_k);
    later.commit().unwrap();
    database.core().purge.drain(database.core());
    let status = database.status();
    assert_eq!((table.garbage(), status.version_bytes, status.version_file_bytes), (0, 0, 0));
    assert_clean(&database);
}

#[test]
fn a_shutdown_does_not_wait_for_a_long_purge_and_the_next_start_goes_on() {
    const ROWS: i32 = 100;
    const ROUNDS: i32 = 80;
    for is_listed in [true, false] {
        let vfs: Arc<MemVfs> = Arc::new(MemVfs::new());
        let open = || {
            let mut options = options(vfs.clone(), 4_096, HitPath::Optimistic, CacheSize::from_environment());
            options.log.capacity = if is_listed { 256 << 20 } else { 512 << 10 };
            Database::open(Path::new("data"), options).unwrap()
        };
        let database = open();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let [mut writer, mut reader] = [(); 2].map(|()| database.session());
        (0..ROWS).for_each(|id| insert(&mut writer, &table, &row(id, 0)).unwrap());
        reader.begin(Isolation::RepeatableRead).unwrap();
        reader.open_snapshot();
        for k in 1..=ROUNDS {
            (0..ROWS).for_each(|id| assert!(update(&mut writer, &table, &row(id, k)).unwrap()));
        }
        reader.commit().unwrap();
        let waits = database.core().purge.len();
        database.checkpoint().unwrap();
        drop((reader, writer));
        database.close().unwrap();
        let left = database.core().purge.len();
        assert!(0 < left && left < waits, "{left} of {waits}");
        assert_eq!(table.is_unlisted(), !is_listed);
        drop((table, database));

        let database = open();
        let table = database.table("d", "t").unwrap();
        let expected: Vec<Row> = (0..ROWS).map(|id| row(id, ROUNDS)).collect();
        assert_eq!(scan(Reader::newest(), &table, K, Direction::Forward), expected);
        database.core().purge.drain(database.core());
        assert_eq!((table.garbage(), keys_of(&table, 1)), (0, ROWS as usize));
        assert_clean(&database);
    }
}

#[test]
fn old_versions_that_cannot_be_written_give_a_reader_up_and_unreadable_ones_are_an_error() {
    let faulty = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let options = options(faulty.clone(), 4_096, HitPath::Optimistic, CacheSize::from_environment());
    let database = Database::open(Path::new("data"), options).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let [mut writer, mut reader, mut full] = [(); 3].map(|()| database.session());
    (0..200).for_each(|id| insert(&mut writer, &table, &row(id, 0)).unwrap());
    reader.begin(Isolation::RepeatableRead).unwrap();
    let before = all(&mut reader, &table);
    (0..200).for_each(|id| assert!(update(&mut writer, &table, &row(id, 1)).unwrap()));
    database.set_version_limit(0);
    assert_eq!(database.status().versions_in_files, 200);
    // What a scratch file is called until it has no name.
    let scratch = PathBuf::from(format!("latchwork-{}-0", std::process::id()));
    faulty.faults().fail_file_from(&scratch, Operation::Read, 1, Fault::Lost);
    let read = |reader: &mut Session| {
        let read = reader.read()?;
        table.get(read.reader(), &int_key(7), &mut Vec::new())
    };
    assert!(matches!(read(&mut reader), Err(Error::Io(_))), "{:?}", read(&mut reader));
    faulty.faults().heal();
    assert_eq!(all(&mut reader, &table), before, "the file was there all the time");
    let full_disk = Fault::Error(io::ErrorKind::StorageFull);
    faulty.faults().fail_file_from(&scratch, Operation::Write, 1, full_disk);
    full.begin(Isolation::RepeatableRead).unwrap();
    assert_eq!(all(&mut full, &table).len(), 200);
    (0..200).for_each(|id| assert!(update(&mut writer, &table, &row(id, 2)).unwrap()));
    assert!(matches!(read(&mut full), Err(Error::SnapshotTooOld)));
}

#[test]
fn a_large_transaction_under_way_gives_no_snapshot_up_and_takes_little_memory() {
    const ROWS: i32 = 4_000;
    const LIMIT: u64 = 256 << 10;
    let (database, table) = usual();
    let [mut large, mut small, mut reader, mut between] = [(); 4].map(|()| database.session());
    (0..ROWS).for_each(|id| insert(&mut large, &table, &Row { u: Some(id), ..row(id, 0) }).unwrap());
    database.set_version_limit(LIMIT);
    for is_kept in [false, true] {
        reader.begin(Isolation::RepeatableRead).unwrap();
        let before = all(&mut reader, &table);
        large.begin(Isolation::RepeatableRead).unwrap();
        let change = |large: &mut Session, ids: Range<i32>, k| {
            ids.for_each(|id| assert!(update(large, &table, &Row { u: None, ..row(id, k) }).unwrap()));
        };
        change(&mut large, 100..1_500, 1);
        let savepoint = large.savepoint();
        change(&mut large, 1_500..ROWS, 1);
        let status = database.status();
        assert!(status.versions_in_files > 2_000 && status.version_bytes < LIMIT + (200 << 10), "{status:?}");
        for round in 0..128 {
            assert!(update(&mut small, &table, &row(round % 50, round)).unwrap());
        }
        assert_eq!(all(&mut reader, &table), before);
        small.set_lock_wait(Duration::ZERO);
        let taken = Row { u: Some(2_000), ..row(9_000, 0) };
        assert!(
            matches!(insert(&mut small, &table, &taken), Err(Error::LockWaitTimeout)),
            "it may come back"
        );
        large.roll_back_to(savepoint).unwrap();
        let other = |id| Row { u: Some(id), ..row(id, 5) };
        assert!(matches!(update(&mut small, &table, &other(3_000)), Err(Error::LockWaitTimeout)));
        assert_eq!(all(&mut reader, &table), before);
        between.begin(Isolation::RepeatableRead).unwrap();
        let amid = all(&mut between, &table);
        change(&mut large, 2_000..ROWS, 2);
        database.core().transactions.merge_version_files(|| true);
        assert_eq!(all(&mut reader, &table), before);
        assert_eq!(all(&mut between, &table), amid);
        if is_kept { large.commit() } else { large.roll_back() }.unwrap();
        assert_eq!(all(&mut reader, &table), before);
        assert_eq!(all(&mut between, &table), amid);
        reader.commit().unwrap();
        between.commit().unwrap();
        database.core().purge.drain(database.core());
        let status = database.status();
        assert_eq!((status.version_bytes, status.versions_in_files), (0, 0), "{is_kept}");
        assert_eq!(get(&mut small, &table, 3_000).unwrap().k, if is_kept { 2 } else { 0 });
    }
    assert_clean(&database);
}

/// A transaction that somebody has forgotten, beside changes of one row that has few versions, but leaves an
/// index entry for purge with each change. Every hundredth change replaces the row's overflow pages, too.
fn beside_a_forgotten_transaction(
    vfs: Arc<dyn Vfs>,
    body: impl FnOnce(&Database, &Table, &mut Session),
) -> Arc<Database> {
    let options = options(vfs, 4_096, HitPath::Optimistic, CacheSize::from_environment());
    let database = Database::open(Path::new("data"), options).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let [mut writer, mut forgotten] = [(); 2].map(|()| database.session());
    (0..20).for_each(|id| insert(&mut writer, &table, &row(id, 0)).unwrap());
    forgotten.begin(Isolation::RepeatableRead).unwrap();
    assert_eq!(all(&mut forgotten, &table).len(), 20);
    for k in 1..30_000 {
        let long = if k % 100 == 0 { 9_000 } else { 20 };
        let changed = Row { c: vec![k as u8; long], ..row(1, k) };
        assert!(update(&mut writer, &table, &changed).unwrap());
        if k % 1_000 == 0 {
            database.core().purge.spill(database.core(), SPILL_BYTES);
        }
    }
    body(&database, &table, &mut forgotten);
    database.core().purge.drain(database.core());
    let purge = &database.core().purge;
    assert_eq!((table.garbage(), purge.len(), purge.bytes()), (0, 0, 0));
    assert_eq!(database.status().version_bytes, 0);
    database
}

fn assert_clean(database: &Database) {
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

/// Less than the test leaves for purge, and more than a block of a scratch file.
const SPILL_BYTES: u64 = 2 << 20;

#[test]
fn what_a_forgotten_transaction_holds_back_waits_outside_of_memory() {
    let database = beside_a_forgotten_transaction(Arc::new(MemVfs::new()), |database, table, forgotten| {
        let purge = &database.core().purge;
        purge.spill(database.core(), SPILL_BYTES);
        assert!(purge.len() >= 29_999, "{}", purge.len());
        assert!(purge.bytes() < SPILL_BYTES + (1 << 20), "{}", purge.bytes());
        // Chains in files are logged again like others.
        database.core().purge.log_again(database.core(), base::Lsn(u64::MAX)).unwrap();
        assert_eq!(all(forgotten, table)[1], row(1, 0));
        forgotten.commit().unwrap();
    });
    assert_clean(&database);
}

#[test]
fn pages_that_only_an_unreadable_file_knew_are_found_by_the_next_start() {
    let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let database = beside_a_forgotten_transaction(vfs.clone(), |database, _, forgotten| {
        database.core().purge.spill(database.core(), SPILL_BYTES);
        let unnamed = format!("latchwork-{}-0", std::process::id());
        let fault = Fault::Error(io::ErrorKind::Other);
        vfs.faults().fail_file_from(Path::new(&unnamed), Operation::Read, 1, fault);
        forgotten.commit().unwrap();
    });
    assert!(vfs.faults().count(Operation::Read) > 0);
    vfs.faults().heal();
    database.close().unwrap();
    let options = options(vfs, 4_096, HitPath::Optimistic, CacheSize::from_environment());
    assert_clean(&Database::open(Path::new("data"), options).unwrap());
}

#[test]
fn what_a_large_transaction_leaves_waits_outside_of_memory_behind_a_snapshot() {
    const ROWS: i32 = 3_000;
    let (database, table) = usual();
    let mut writer = database.session();
    for id in 0..ROWS {
        insert(&mut writer, &table, &row(id, 0)).unwrap();
    }
    let mut reader = database.session();
    reader.begin(Isolation::RepeatableRead).unwrap();
    assert_eq!(all(&mut reader, &table).len(), ROWS as usize);
    for is_kept in [false, true] {
        writer.begin(Isolation::RepeatableRead).unwrap();
        for id in 0..ROWS {
            let is_deletion = id % 3 > 0;
            let done = match is_deletion {
                true => delete(&mut writer, &table, id),
                false => update(&mut writer, &table, &Row { c: vec![1; 2_000], ..row(id, 1) }),
            };
            assert!(done.unwrap());
        }
        let undo = writer.state.active.as_ref().unwrap().undo_memory();
        assert!(undo < 16 << 10, "{undo} bytes of undo in memory");
        assert_eq!(all(&mut reader, &table).len(), ROWS as usize);
        if is_kept { writer.commit() } else { writer.roll_back() }.unwrap();
    }
    let purge = &database.core().purge;
    assert_eq!(purge.len(), ROWS as usize, "of each row its deletion, or the index entry that it had");
    assert!(purge.bytes() < 64 << 10, "{}", purge.bytes());
    assert_eq!(all(&mut writer, &table).len(), ROWS as usize / 3);
    assert_eq!(all(&mut reader, &table).len(), ROWS as usize);
    reader.commit().unwrap();
    purge.drain(database.core());
    assert_eq!((table.garbage(), purge.len(), purge.bytes()), (0, 0, 0));
    assert_eq!(keys_of(&table, 0), ROWS as usize / 3);
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

/// The newest state of each row and, of rows that others are changing, what they were.
fn candidates(session: &mut Session, table: &Table) -> Vec<Row> {
    let mut statement = session.write().unwrap();
    let (readers, _) = statement.split();
    let found = scan(readers.current, table, PRIMARY, Direction::Forward);
    statement.commit().unwrap();
    found
}

#[test]
fn a_row_that_everybody_has_seen_is_deleted_without_a_copy_and_seen_where_it_lies() {
    const ROWS: i32 = 400;
    let (database, table) = usual();
    let [mut deleter, mut before, mut other] = [(); 3].map(|()| database.session());
    let long = |id| Row { c: vec![7; 3_000], u: Some(id), ..row(id, id % 3) };
    for id in 0..ROWS {
        let new = if id % 10 == 0 { long(id) } else { Row { u: Some(id), ..row(id, id % 3) } };
        insert(&mut deleter, &table, &new).unwrap();
    }
    before.begin(Isolation::RepeatableRead).unwrap();
    let old = all(&mut before, &table);
    let sees_old = |session: &mut Session| {
        assert_eq!(all(session, &table), old);
        for index in 1..=2 {
            let statement = session.read().unwrap();
            let found = scan(statement.reader(), &table, IndexId(index), Direction::Backward);
            assert_eq!(found.len(), old.len(), "by index {index}");
        }
        assert_eq!(get(session, &table, 10), Some(long(10)));
        assert_eq!(get(session, &table, 11), Some(old[11].clone()));
    };
    deleter.begin(Isolation::RepeatableRead).unwrap();
    for id in 0..ROWS {
        assert!(delete(&mut deleter, &table, id).unwrap());
    }
    assert_eq!(database.status().version_bytes, 0, "nothing was copied");
    assert_eq!(all(&mut deleter, &table), []);
    sees_old(&mut before);
    sees_old(&mut other);
    // A statement that changes rows meets what the deletion may give back, and waits for it.
    assert_eq!(candidates(&mut other, &table), old);
    other.set_lock_wait(Duration::ZERO);
    assert!(matches!(delete(&mut other, &table, 5), Err(Error::LockWaitTimeout)));
    let same_key = Row { u: Some(5), ..row(9_000, 0) };
    assert!(matches!(insert(&mut other, &table, &same_key), Err(Error::LockWaitTimeout)), "a unique key");
    // Another row takes the place of a deleted one, and goes again.
    let savepoint = deleter.savepoint();
    for id in 0..ROWS / 2 {
        insert(&mut deleter, &table, &row(id, 99)).unwrap();
    }
    sees_old(&mut before);
    deleter.roll_back_to(savepoint).unwrap();
    sees_old(&mut before);
    sees_old(&mut other);
    assert_eq!(database.status().version_bytes, 0);
    for id in 0..20 {
        insert(&mut deleter, &table, &row(id, 98)).unwrap();
        assert!(id % 2 == 0 || delete(&mut deleter, &table, id).unwrap());
    }
    sees_old(&mut other);
    deleter.commit().unwrap();
    sees_old(&mut before);
    assert_eq!(all(&mut other, &table).len(), 10);
    // And again, by another transaction, beside a snapshot between the two.
    let mut between = database.session();
    between.begin(Isolation::RepeatableRead).unwrap();
    assert_eq!(all(&mut between, &table).len(), 10);
    for is_kept in [false, true] {
        other.begin(Isolation::RepeatableRead).unwrap();
        for id in 0..ROWS {
            if id >= 20 || id % 2 == 1 {
                insert(&mut other, &table, &row(id, 97)).unwrap();
            }
        }
        sees_old(&mut before);
        assert_eq!(all(&mut between, &table).len(), 10);
        if is_kept { other.commit() } else { other.roll_back() }.unwrap();
        sees_old(&mut before);
        assert_eq!(all(&mut between, &table).len(), 10);
    }
    assert_eq!(all(&mut other, &table).len(), ROWS as usize);
    before.commit().unwrap();
    between.commit().unwrap();
    database.core().purge.drain(database.core());
    assert_eq!((table.garbage(), database.status().version_bytes), (0, 0));
    assert_clean(&database);
}

#[test]
fn a_forgotten_transaction_is_given_up_if_nothing_can_be_written_for_it() {
    let vfs = Arc::new(WithoutScratch(MemVfs::new()));
    let database = beside_a_forgotten_transaction(vfs, |database, table, forgotten| {
        let purge = &database.core().purge;
        assert!(purge.bytes() > SPILL_BYTES, "nothing was written");
        assert_eq!(all(forgotten, table)[1], row(1, 0), "what it may take is a limit for all of it");
        database.set_version_limit(SPILL_BYTES);
        purge.spill(database.core(), SPILL_BYTES);
        let begin = std::time::Instant::now();
        while purge.len() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "the queue does not become shorter");
            thread::sleep(Duration::from_millis(10));
        }
        {
            let read = forgotten.read().unwrap();
            let mut rows = table.scan(read.reader(), PRIMARY, KeyRange::all(), Direction::Forward);
            assert!(matches!(rows.next_row(), Err(Error::SnapshotTooOld)));
        }
        // Whoever changes rows is not given up, except for what it reads by its snapshot.
        assert!(update(forgotten, table, &row(2, 7)).unwrap());
        {
            let mut statement = forgotten.write().unwrap();
            let (readers, _) = statement.split();
            let read = table.get(readers.snapshot, &int_key(1), &mut Vec::new());
            assert!(matches!(read, Err(Error::SnapshotTooOld)), "{read:?}");
        }
        forgotten.commit().unwrap();
        assert_eq!(all(forgotten, table)[2], row(2, 7));
    });
    assert_clean(&database);
}

/// A device that is full for scratch files.
#[derive(Debug)]
struct WithoutScratch(MemVfs);

impl Vfs for WithoutScratch {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        self.0.open(path, create)
    }
    fn open_unnamed(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.create_dir_all(dir)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

#[test]
fn a_table_that_is_being_redefined_holds_up_neither_commits_nor_the_purge_of_others() {
    let (database, busy) = usual();
    let other = database.create_table(TableDef { name: "other".to_owned(), ..table_def() }).unwrap();
    let mut session = database.session();
    for table in [&busy, &other] {
        (0..20).for_each(|id| insert(&mut session, table, &row(id, 0)).unwrap());
    }
    let mut reader = database.session();
    reader.begin(Isolation::RepeatableRead).unwrap();
    assert_eq!(all(&mut reader, &busy).len(), 20);
    (0..5).for_each(|id| assert!(delete(&mut session, &busy, id).unwrap()));
    thread::scope(|scope| {
        let closure = busy.gate.close();
        reader.commit().unwrap();
        let writer = scope.spawn(|| {
            let mut session = database.session();
            // More than what makes sessions help.
            (1..21_000).for_each(|k| assert!(update(&mut session, &other, &row(1, k)).unwrap()));
        });
        let begin = std::time::Instant::now();
        while !writer.is_finished() || other.garbage() > 0 {
            // The closure is dropped before the panic: nobody waits for ever.
            assert!(begin.elapsed() < std::time::Duration::from_secs(120), "a redefinition holds others up");
            thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(busy.garbage() > 0);
        drop(closure);
    });
    database.core().purge.drain(database.core());
    assert_eq!((busy.garbage(), database.core().purge.len()), (0, 0));
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn at_serializable_what_was_read_stays_as_it_was() {
    let (database, table) = usual();
    let [mut reader, mut writer] = [(); 2].map(|()| database.session());
    for (id, k) in [(1, 10), (2, 20), (3, 30)] {
        insert(&mut writer, &table, &row(id, k)).unwrap();
    }
    writer.set_lock_wait(Duration::from_millis(1));
    let by_k = |low: i32, high: i32| {
        let [low, high] = [low, high].map(|k| {
            let mut key = Vec::new();
            table.key_codec(K).encode_prefix(&[ValueRef::Int(k.into())], &mut key);
            key
        });
        KeyRange { lower: Bound::Included(low), upper: Bound::Included(high) }
    };
    let read = |reader: &mut Session, index, range| {
        let mut statement = reader.write().unwrap();
        let (readers, _) = statement.split();
        let found = scan_range(readers.current, &table, index, range, Direction::Forward);
        statement.commit().unwrap();
        found
    };
    reader.begin(Isolation::Serializable).unwrap();
    assert_eq!(read(&mut reader, K, by_k(15, 25)), [row(2, 20)]);
    let waits = |result: crate::Result<bool>| match result {
        Err(Error::LockWaitTimeout) => true,
        Ok(_) => false,
        Err(error) => panic!("{error:?}"),
    };
    let mut inserted = |row: Row| insert(&mut writer, &table, &row).map(|()| true);
    assert!(waits(inserted(row(4, 15))));
    assert!(!waits(inserted(row(5, 26))));
    // Out of the range, into it, within it, and beside it.
    assert!(waits(update(&mut writer, &table, &row(2, 40))));
    assert!(waits(update(&mut writer, &table, &row(3, 25))));
    assert!(waits(update(&mut writer, &table, &Row { c: vec![9], ..row(2, 20) })));
    assert!(waits(delete(&mut writer, &table, 2)));
    assert!(!waits(update(&mut writer, &table, &row(1, 14))));
    // Many rows at once: all of them or none.
    let mut rows = KeyList::default();
    [row(6, 50), row(7, 20)].iter().for_each(|row| rows.push(&row.image(&table)));
    {
        let mut statement = writer.write().unwrap();
        let (_, error) = statement.insert_many(&table, &rows).unwrap_err();
        assert!(matches!(error, Error::LockWaitTimeout), "{error:?}");
    }
    // Its own changes do not wait.
    assert!(update(&mut reader, &table, &row(2, 21)).unwrap());
    assert_eq!(read(&mut reader, K, by_k(15, 25)), [row(2, 21)]);
    // What did not wait for nothing is what everybody sees.
    reader.commit().unwrap();
    assert!(!waits(insert(&mut writer, &table, &row(4, 15)).map(|()| true)));
    assert_eq!(all(&mut writer, &table), [row(1, 14), row(2, 21), row(3, 30), row(4, 15), row(5, 26)]);
    reader.begin(Isolation::Serializable).unwrap();
    assert_eq!(read(&mut reader, PRIMARY, KeyRange::all()).len(), 5);
    assert!(waits(insert(&mut writer, &table, &row(9, 90)).map(|()| true)));
    reader.roll_back().unwrap();
    assert!(!waits(insert(&mut writer, &table, &row(9, 90)).map(|()| true)));
    database.core().purge.drain(database.core());
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn a_redefinition_waits_for_those_who_have_changed_the_table() {
    let (database, table) = usual();
    let mut session = database.session();
    session.begin(Isolation::RepeatableRead).unwrap();
    insert(&mut session, &table, &row(1, 1)).unwrap();
    thread::scope(|scope| {
        let truncate = scope.spawn(|| database.truncate(&table));
        while database.core().transactions.usage().locks.waiting == 0 {
            thread::yield_now();
        }
        session.commit().unwrap();
        truncate.join().unwrap().unwrap();
    });
    assert_eq!(all(&mut session, &table), []);
}

/// What one session has done and sees.
#[derive(Default)]
struct Mirror {
    isolation: Option<Isolation>,
    snapshot: Option<BTreeMap<i32, Row>>,
    /// Rows that the transaction has changed, as they are now.
    own: BTreeMap<i32, Option<Row>>,
    /// Rows that it looked for and that were not there: nobody else may insert them.
    absent: BTreeSet<i32>,
}

impl Mirror {
    fn view(&mut self, committed: &BTreeMap<i32, Row>) -> Vec<Row> {
        let mut view = match self.isolation {
            Some(Isolation::RepeatableRead) => self.snapshot.get_or_insert_with(|| committed.clone()).clone(),
            _ => committed.clone(),
        };
        for (id, row) in &self.own {
            match row {
                Some(row) => view.insert(*id, row.clone()),
                None => view.remove(id),
            };
        }
        view.into_values().collect()
    }
}

impl Mirror {
    fn note_absent(&mut self, id: i32, newest: &Option<Row>) {
        if newest.is_none() && self.isolation == Some(Isolation::RepeatableRead) {
            self.absent.insert(id);
        }
    }
}

/// Random statements of several sessions against maps: each sees what it should by every index, at every
/// moment.
fn run_against_the_model(seed: u64, hit_path: HitPath, size: CacheSize) {
    const IDS: u32 = 24;
    let (database, table) = with_table(hit_path, size);
    let (mut random, mut spills) = (Random::new(seed, 0), Random::new(seed, 1));
    let mut sessions: Vec<Session> = (0..4).map(|_| database.session()).collect();
    sessions.iter_mut().for_each(|session| session.set_lock_wait(Duration::ZERO));
    let mut mirrors: Vec<Mirror> = (0..4).map(|_| Mirror::default()).collect();
    let mut committed: BTreeMap<i32, Row> = BTreeMap::new();
    for step in 0..400 {
        let who = random.below(4) as usize;
        let id = random.below(IDS) as i32;
        let len = [10, 10, 10, 200, 3_000][random.below(5) as usize];
        // Unique keys of their own, two a row, so that they come and go.
        let u = [None, Some(2 * id), Some(2 * id + 1)][random.below(3) as usize];
        let new = Row { id, k: random.below(4) as i32, u, c: vec![step as u8; len] };
        let has = |mirror: &Mirror| mirror.own.contains_key(&id) || mirror.absent.contains(&id);
        let is_taken = (0..4).any(|other| other != who && has(&mirrors[other]));
        let newest = match mirrors[who].own.get(&id) {
            Some(own) => own.clone(),
            None => committed.get(&id).cloned(),
        };
        let session = &mut sessions[who];
        let mirror = &mut mirrors[who];
        let context = format!("seed {seed}, step {step}, session {who}, row {id}");
        if seed % 2 == 1 {
            match spills.below(6) {
                // Everything that may go to files does. From then on so does what a transaction leaves while
                // it is under way.
                0 | 1 => database.set_version_limit(0),
                2 => database.set_version_limit(256 << 20),
                _ => {}
            }
        }
        let mut keep = |mirror: &mut Mirror, row: Option<Row>| {
            if mirror.isolation.is_some() {
                mirror.own.insert(id, row);
            } else {
                match row {
                    Some(row) => committed.insert(id, row),
                    None => committed.remove(&id),
                };
            }
        };
        match random.below(12) {
            0 | 1 => {
                let isolation =
                    [Isolation::RepeatableRead, Isolation::ReadCommitted][random.below(2) as usize];
                session.begin(isolation).unwrap();
                *mirror = Mirror { isolation: Some(isolation), ..Mirror::default() };
            }
            2 => {
                session.commit().unwrap();
                for (id, row) in std::mem::take(mirror).own {
                    match row {
                        Some(row) => committed.insert(id, row),
                        None => committed.remove(&id),
                    };
                }
            }
            3 => {
                session.roll_back().unwrap();
                *mirror = Mirror::default();
            }
            4..7 => match insert(session, &table, &new) {
                Err(Error::LockWaitTimeout) => assert!(is_taken, "{context}"),
                Err(Error::DuplicateKey { index: PRIMARY }) => {
                    assert!(newest.is_some() && !is_taken, "{context}");
                }
                result => {
                    result.unwrap();
                    assert!(newest.is_none() && !is_taken, "{context}");
                    keep(mirror, Some(new));
                }
            },
            7 | 8 => match update(session, &table, &new) {
                Err(Error::LockWaitTimeout) => assert!(is_taken, "{context}"),
                changed => {
                    assert!(
                        !is_taken && *changed.as_ref().unwrap() == newest.is_some(),
                        "{context} {is_taken} {changed:?} {newest:?}"
                    );
                    mirror.note_absent(id, &newest);
                    if newest.is_some() {
                        keep(mirror, Some(new));
                    }
                }
            },
            9 => match delete(session, &table, id) {
                Err(Error::LockWaitTimeout) => assert!(is_taken, "{context}"),
                deleted => {
                    assert!(
                        !is_taken && *deleted.as_ref().unwrap() == newest.is_some(),
                        "{context} {is_taken} {deleted:?} {newest:?}"
                    );
                    mirror.note_absent(id, &newest);
                    if newest.is_some() {
                        keep(mirror, None);
                    }
                }
            },
            _ => {}
        }
        let who = random.below(4) as usize;
        let expected = mirrors[who].view(&committed);
        let read = sessions[who].read().unwrap();
        check_view(read.reader(), &table, &expected, &format!("seed {seed}, step {step}, reader {who}"));
    }
    drop(sessions);
    database.core().purge.drain(database.core());
    assert_eq!(table.garbage(), 0, "seed {seed}");
    assert_eq!(database.core().transactions.version_bytes(), 0, "seed {seed}");
    let report = database.check().unwrap();
    assert!(report.is_clean() && report.garbage == 0, "seed {seed}: {report}");
    let rows: Vec<Row> = committed.values().cloned().collect();
    assert_eq!(scan(Reader::newest(), &table, PRIMARY, Direction::Forward), rows, "seed {seed}");
    for index in 0..3 {
        assert_eq!(keys_of(&table, index), rows.len(), "seed {seed}");
    }
}

fn check_view(reader: Reader<'_>, table: &Table, expected: &[Row], context: &str) {
    assert_eq!(scan(reader, table, PRIMARY, Direction::Forward), expected, "{context}");
    let mut by_k = expected.to_vec();
    by_k.sort_by_key(|row| (row.k, row.id));
    assert_eq!(scan(reader, table, K, Direction::Forward), by_k, "{context}");
    let mut by_u = expected.to_vec();
    by_u.sort_by_key(|row| (row.u, row.id));
    by_u.reverse();
    assert_eq!(scan(reader, table, U, Direction::Backward), by_u, "{context}");
    let mut keys = table.scan(reader, K, KeyRange::all(), Direction::Forward);
    for row in &by_k {
        assert_eq!(
            keys.next_key().unwrap(),
            Some(&[int_key(row.k), int_key(row.id)].concat()[..]),
            "{context}"
        );
    }
    assert!(keys.next_key().unwrap().is_none(), "{context}");
    let mut prefixes = KeyList::default();
    (0..4).for_each(|k| prefixes.push(&int_key(k)));
    let mut found = Vec::new();
    table
        .multi_get(reader, K, &prefixes, &mut Batch::default(), &mut |_, _, image| {
            found.push(Row::read(table, image));
            true
        })
        .unwrap();
    assert_eq!(found, by_k, "{context}");
}

#[test]
fn each_session_sees_what_it_should_by_every_index_at_every_moment() {
    for (hit_path, size) in matrix() {
        (1..=12).for_each(|seed| run_against_the_model(seed, hit_path, size));
    }
}

#[test]
fn money_is_neither_made_nor_lost_by_concurrent_transfers() {
    const ACCOUNTS: i32 = 20;
    const EACH: i32 = 1_000;
    let (database, table) = usual();
    let mut session = database.session();
    (0..ACCOUNTS).for_each(|id| insert(&mut session, &table, &row(id, EACH)).unwrap());
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let (database, table) = (&database, &table);
            scope.spawn(move || {
                let mut random = Random::new(1, thread);
                let mut session = database.session();
                for _ in 0..300 {
                    let from = random.below(ACCOUNTS as u32) as i32;
                    let to = random.below(ACCOUNTS as u32) as i32;
                    session.begin(Isolation::RepeatableRead).unwrap();
                    let moved = [(from, -1), (to, 1)].into_iter().try_for_each(|(id, delta)| {
                        let mut statement = session.write()?;
                        statement.update(table, &int_key(id), &mut |image, out| {
                            let old = Row::read(table, image);
                            out.extend_from_slice(&Row { k: old.k + delta, ..old }.image(table));
                            true
                        })?;
                        statement.commit()
                    });
                    match moved {
                        Ok(()) if random.below(8) > 0 => session.commit().unwrap(),
                        Ok(()) | Err(Error::Deadlock) => session.roll_back().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        let (database, table) = (&database, &table);
        scope.spawn(move || {
            let mut session = database.session();
            for _ in 0..200 {
                let read = session.read().unwrap();
                for index in [PRIMARY, K] {
                    let rows = scan(read.reader(), table, index, Direction::Forward);
                    assert_eq!(rows.len(), ACCOUNTS as usize);
                    assert_eq!(rows.iter().map(|row| row.k).sum::<i32>(), ACCOUNTS * EACH);
                }
            }
        });
    });
    database.core().purge.drain(database.core());
    assert_eq!(table.garbage(), 0);
    assert!(database.check().unwrap().is_clean());
}

#[test]
fn who_reads_and_who_writes_wait_for_their_turn() {
    let (database, table) = usual();
    let (mut first, mut second) = (database.session(), database.session());
    insert(&mut first, &table, &row(1, 1)).unwrap();
    second.set_lock_wait(Duration::from_millis(20));
    database.set_thread_concurrency(1);
    let read = first.read().unwrap();
    assert!(matches!(second.read(), Err(Error::LockWaitTimeout)));
    assert!(matches!(second.write(), Err(Error::LockWaitTimeout)));
    drop(read);
    assert_eq!(all(&mut second, &table), [row(1, 1)]);
    let write = first.write().unwrap();
    assert!(matches!(second.read(), Err(Error::LockWaitTimeout)));
    drop(write);
    // An interrupt ends the wait as well.
    let _read = first.read().unwrap();
    second.interrupter().interrupt();
    assert!(matches!(second.read(), Err(Error::Interrupted)));
}
