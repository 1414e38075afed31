//! Models: a checkpoint that logs transactions again while their sessions are at work.
//!
//! `cargo test -p latchwork-engine --features shuttle --lib models`
//!
//! A crash after each checkpoint, and at the end, shows whether the log says the right thing of each
//! transaction.

use crate::tests::{CacheSize, Row, int_key, options, table_def};
use crate::write::log;
use crate::{
    Database, Direction, HitPath, IoOptions, Isolation, KeyRange, LogOptions, Options, Reader, Table,
};
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use base::sync::{Arc, shuttle, thread};
use base::{IndexId, Stamp};
use std::path::Path;
use vfs::SimVfs;

const ITERATIONS: usize = 200;

/// Settings of hardly any capacity: a transaction is logged again as soon as four times as much has been
/// logged since it began, and what it leaves to purge is too much for the log.
fn small(vfs: &SimVfs) -> Options {
    with_capacity(vfs, 64)
}

fn with_capacity(vfs: &SimVfs, capacity: u64) -> Options {
    let options = options(Arc::new(vfs.clone()), 1_024, HitPath::Optimistic, CacheSize::Smallest);
    let log = LogOptions { file_size: 64 << 10, buffer_size: 16 << 10, capacity, ..options.log };
    // A session that is forgotten keeps the cache, and its threads would wait for work for ever.
    let io = IoOptions { write_threads: 1, read_threads: 0, ..options.io };
    Options { log, io, ..options }
}

fn row(id: i32, c: u8) -> Row {
    Row { id, k: 1, u: None, c: vec![c; 700] }
}

fn update(statement: &mut crate::WriteStatement<'_>, table: &Table, row: &Row) {
    let changed = statement.update(table, &int_key(row.id), &mut |_, out| {
        out.extend_from_slice(&row.image(table));
        true
    });
    assert!(changed.unwrap());
}

/// Logs enough for the transaction to be worth logging again, and takes a checkpoint that no page keeps from
/// letting go of the log.
fn fill_and_checkpoint(database: &Database) {
    let core = database.core();
    for _ in 0..80 {
        // Of a transaction that there never was.
        log::rolled_back(core, Stamp(0)).unwrap();
    }
    core.caches.write_older_than(core.journal.position()).unwrap();
    core.checkpoint().unwrap();
}

/// What is left of the rows under test.
fn recover(left: &SimVfs) -> Vec<(i32, u8)> {
    let database = Database::open(Path::new("data"), small(left)).unwrap();
    let table = database.table("d", "t").unwrap();
    let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some(image) = scan.next_row().unwrap() {
        let row = Row::read(&table, image);
        found.push((row.id, row.c[0]));
    }
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
    found
}

/// Runs `change` beside checkpoints. A crash in between leaves what was there before or all of `after`; one
/// at the end, `after`.
fn check(change: fn(&Database, &Table), after: &'static [(i32, u8)]) {
    let run = move || {
        let vfs = SimVfs::new();
        let database = Database::open(Path::new("data"), small(&vfs)).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let mut statement = database.begin_write().unwrap();
        [1, 2].iter().for_each(|id| statement.insert(&table, &row(*id, 0).image(&table)).unwrap());
        statement.commit().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let checkpoints = {
            let (database, vfs, over) = (database.clone(), vfs.clone(), over.clone());
            thread::spawn(move || {
                let crash = |seed| {
                    fill_and_checkpoint(&database);
                    thread::yield_now();
                    vfs.crash(seed)
                };
                // ORDER: a flag without data.
                (0..).take_while(|_| !over.load(Ordering::Relaxed)).map(crash).collect::<Vec<_>>()
            })
        };
        change(&database, &table);
        // ORDER: as above.
        over.store(true, Ordering::Relaxed);
        for left in checkpoints.join().unwrap() {
            let found = recover(&left);
            assert!(found == [(1, 0), (2, 0)] || found == after, "{found:?}");
        }
        fill_and_checkpoint(&database);
        assert_eq!(recover(&vfs.crash(4)), after);
    };
    // Long stretches of one thread, for a checkpoint has to fit into a small gap.
    shuttle::check_pct(run, ITERATIONS, 4);
}

#[test]
fn what_commits_beside_a_checkpoint_stays_committed() {
    let change = |database: &Database, table: &Table| {
        let mut session = database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = session.write().unwrap();
        update(&mut statement, table, &row(1, 1));
        update(&mut statement, table, &row(2, 1));
        statement.insert(table, &row(3, 1).image(table)).unwrap();
        statement.commit().unwrap();
        session.commit().unwrap();
    };
    check(change, &[(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn what_is_open_at_a_crash_is_taken_back_wherever_it_was_logged_again() {
    let change = |database: &Database, table: &Table| {
        let mut session = database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = session.write().unwrap();
        update(&mut statement, table, &row(1, 1));
        statement.commit().unwrap();
        let savepoint = session.savepoint();
        let mut statement = session.write().unwrap();
        assert!(statement.delete(table, &int_key(2), &mut |_| true).unwrap());
        statement.commit().unwrap();
        session.roll_back_to(savepoint).unwrap();
        // The crash comes before its end.
        std::mem::forget(session);
    };
    check(change, &[(1, 0), (2, 0)]);
}

#[test]
fn what_is_taken_back_behind_a_start_is_taken_back_once_and_those_who_wait_come_after_it() {
    let run = || {
        let vfs = SimVfs::new();
        let database = Database::open(Path::new("data"), small(&vfs)).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let mut statement = database.begin_write().unwrap();
        [1, 2].iter().for_each(|id| statement.insert(&table, &row(*id, 0).image(&table)).unwrap());
        statement.commit().unwrap();
        let mut session = database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = session.write().unwrap();
        [1, 2].iter().for_each(|id| update(&mut statement, &table, &row(*id, 5)));
        statement.commit().unwrap();
        database.core().journal.flush(database.core().journal.position(), wal::Durability::Synced).unwrap();
        let left = vfs.crash(1);
        let options = Options { taken_back_at_start_max: 0, ..small(&left) };
        let database = Database::open(Path::new("data"), options).unwrap();
        assert!(!database.core().rollbacks.is_empty());
        // What a thread does, and a statement that helps because there is none.
        let undoer = {
            let database = database.clone();
            thread::spawn(move || {
                while !database.core().rollbacks.is_empty() {
                    let _passage = database.core().statements.pass();
                    database.core().rollbacks.go_on(database.core());
                    thread::yield_now();
                }
            })
        };
        let writer = {
            let database = database.clone();
            thread::spawn(move || {
                let table = database.table("d", "t").unwrap();
                let mut statement = database.begin_write().unwrap();
                update(&mut statement, &table, &row(1, 7));
                statement.commit().unwrap();
            })
        };
        let checkpoints = {
            let database = database.clone();
            thread::spawn(move || fill_and_checkpoint(&database))
        };
        let table = database.table("d", "t").unwrap();
        let mut session = database.session();
        let statement = session.read().unwrap();
        let mut scan = table.scan(statement.reader(), IndexId(0), KeyRange::all(), Direction::Forward);
        let mut seen = Vec::new();
        while let Some(image) = scan.next_row().unwrap() {
            seen.push(Row::read(&table, image).c[0]);
        }
        drop(scan);
        drop(statement);
        drop(session);
        assert!(seen == [0, 0] || seen == [7, 0], "{seen:?}");
        undoer.join().unwrap();
        writer.join().unwrap();
        checkpoints.join().unwrap();
        assert!(database.core().rollbacks.is_empty());
        assert_eq!(recover(&left.crash(2)), [(1, 7), (2, 0)]);
    };
    shuttle::check_random(run, ITERATIONS);
}

/// How many entries the second index has, and how many of them a reader counts.
fn entries(database: &Database) -> (usize, usize) {
    let table = database.table("d", "t").unwrap();
    let mut session = database.session();
    let statement = session.read().unwrap();
    let mut scan = table.scan(statement.reader(), IndexId(1), KeyRange::all(), Direction::Forward);
    let mut counted = 0;
    while scan.next_key().unwrap().is_some() {
        counted += 1;
    }
    (table.state().indexes[1].tree.estimate(&[], None).unwrap() as usize, counted)
}

/// A row is deleted and another changed, beside checkpoints, headers that get their numbers, and purge.
/// After a crash at any time readers count what there is, and purge leaves nothing else.
fn check_garbage(capacity: u64) {
    let run = move || {
        let vfs = SimVfs::new();
        let database = Database::open(Path::new("data"), with_capacity(&vfs, capacity)).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let mut statement = database.begin_write().unwrap();
        [1, 2, 3].iter().for_each(|id| statement.insert(&table, &row(*id, 0).image(&table)).unwrap());
        statement.commit().unwrap();
        let checkpoints = {
            let (database, vfs) = (database.clone(), vfs.clone());
            thread::spawn(move || {
                let crash = |seed| {
                    fill_and_checkpoint(&database);
                    thread::yield_now();
                    vfs.crash(seed)
                };
                (0..3).map(crash).collect::<Vec<_>>()
            })
        };
        let saving = {
            let database = database.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    database.save_numbers().unwrap();
                    database.core().purge.drain(database.core());
                }
            })
        };
        let mut statement = database.begin_write().unwrap();
        assert!(statement.delete(&table, &int_key(2), &mut |_| true).unwrap());
        update(&mut statement, &table, &Row { k: 7, ..row(1, 1) });
        statement.commit().unwrap();
        saving.join().unwrap();
        let mut left = checkpoints.join().unwrap();
        fill_and_checkpoint(&database);
        left.push(vfs.crash(5));
        for left in left {
            let database = Database::open(Path::new("data"), with_capacity(&left, capacity)).unwrap();
            let rows = database.table("d", "t").unwrap().garbage();
            let (all, counted) = entries(&database);
            database.core().purge.drain(database.core());
            let (kept, counted_again) = entries(&database);
            assert_eq!(counted, counted_again, "{all} entries and {rows} of garbage after the start");
            assert_eq!(kept, counted, "entries that nobody has a list of");
            assert!([2, 3].contains(&counted));
        }
    };
    shuttle::check_pct(run, ITERATIONS, 4);
}

#[test]
fn a_start_knows_what_was_to_be_purged_from_the_log() {
    check_garbage(1 << 20);
}

#[test]
fn a_start_knows_what_was_to_be_purged_from_headers_if_the_log_is_too_small_for_it() {
    check_garbage(64);
}

/// Two threads give out numbers for rows that they insert and delete, beside checkpoints that give up the
/// records of that. After a crash at any time no number comes again that somebody had.
#[test]
fn a_checkpoint_saves_the_numbers_of_the_changes_that_it_gives_up() {
    let run = || {
        let vfs = SimVfs::new();
        let database = Database::open(Path::new("data"), small(&vfs)).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let used = Arc::new(AtomicU64::new(0));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (database, table, used) = (database.clone(), table.clone(), used.clone());
                thread::spawn(move || {
                    let id = table.reserve_auto_increment(1).unwrap();
                    let mut statement = database.begin_write().unwrap();
                    statement.insert(&table, &row(id as i32, 0).image(&table)).unwrap();
                    statement.commit().unwrap();
                    // ORDER: the thread that crashes the device is to see what was acknowledged.
                    used.fetch_max(id, Ordering::SeqCst);
                })
            })
            .collect();
        let crashes: Vec<_> = (0..3)
            .map(|seed| {
                database.core().caches.flush_all().unwrap();
                database.core().checkpoint().unwrap();
                thread::yield_now();
                (used.load(Ordering::SeqCst), vfs.crash(seed))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        for (used, left) in crashes {
            let database = Database::open(Path::new("data"), small(&left)).unwrap();
            let next = database.table("d", "t").unwrap().next_auto_increment();
            assert!(next > used, "{next} is given out again, and {used} was used");
        }
    };
    shuttle::check_random(run, ITERATIONS);
}
