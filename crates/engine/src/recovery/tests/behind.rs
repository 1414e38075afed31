//! Large transactions that a crash has cut, and that are taken back behind the start.

use super::crashes::{AT_START_MAX, Context, Rows, Tables, contents, def, image, open};
use super::full_disk::change_many;
use crate::tests::{int_key, part};
use crate::{Database, Error, IndexDef, Isolation, KeyRange};
use base::IndexId;
use base::random::Random;
use base::sync::Arc;
use std::time::Duration;
use vfs::SimVfs;
use vfs::sim::{Cut, Plan};

/// What a crash leaves in which a transaction of several hundred changes was under way; and what had been
/// committed.
fn cut_short(seed: u64) -> (SimVfs, Tables) {
    let vfs = SimVfs::new();
    let database = open(&vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(def("t")).unwrap();
    let index = IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] };
    database.create_index(&table, index).unwrap();
    let (mut random, mut rows) = (Random::new(seed, 2), Rows::new());
    let mut session = database.session();
    for _ in 0..5 {
        rows = change_many(&mut session, &table, &rows, &mut random).unwrap();
    }
    session.begin(Isolation::RepeatableRead).unwrap();
    let mut own = rows.clone();
    for number in 0..7 {
        own = change_many(&mut session, &table, &own, &mut random).unwrap();
        if number == 3 {
            database.checkpoint().unwrap();
        }
    }
    // What is durable without it.
    let mut other = database.session();
    let mut statement = other.write().unwrap();
    let new = image(&table, 9_000, b"committed");
    statement.insert(&table, &new).unwrap();
    statement.commit().unwrap();
    rows.insert(9_000, b"committed".to_vec());
    (vfs.crash(seed), Tables::from([("t".to_owned(), rows)]))
}

/// As a server that has a thread for rollbacks, which has not come to any.
fn open_behind(vfs: &SimVfs) -> crate::Result<Arc<Database>> {
    AT_START_MAX.set(10);
    let database = open(vfs);
    AT_START_MAX.set(10_000);
    let database = database?;
    database.core().rollbacks.set_served(true);
    Ok(database)
}

fn verify(database: &Database, committed: &Tables) {
    database.finish_rollbacks();
    assert!(database.core().rollbacks.is_empty());
    assert_eq!(&contents(database), committed);
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

/// The rows that an index leads to.
fn through_index(database: &Database) -> usize {
    let table = database.table("d", "t").unwrap();
    let mut session = database.session();
    let statement = session.read().unwrap();
    let mut scan = table.scan(statement.reader(), IndexId(1), KeyRange::all(), crate::Direction::Forward);
    let mut rows = 0;
    while scan.next_row().unwrap().is_some() {
        rows += 1;
    }
    rows
}

#[test]
fn a_large_transaction_is_taken_back_behind_the_start_and_its_rows_are_locked_meanwhile() {
    for seed in 0..12 {
        let _context = Context(seed, "behind".into());
        let (left, committed) = cut_short(seed);
        let database = open_behind(&left).unwrap();
        assert!(!database.core().rollbacks.is_empty(), "it is open before that");
        assert_eq!(database.recovery().rolled_back, 1);
        let table = database.table("d", "t").unwrap();
        let mut session = database.session();
        session.set_lock_wait(Duration::ZERO);
        let mut locked = 0;
        for round in 0..4 {
            assert_eq!(contents(&database), committed, "everybody sees what was committed");
            assert_eq!(through_index(&database), committed["t"].len());
            let mut open_rows = 0;
            for id in committed["t"].keys() {
                let mut statement = session.write().unwrap();
                match statement.delete(&table, &int_key(*id), &mut |_| false) {
                    Ok(false) => open_rows += 1,
                    Err(Error::LockWaitTimeout) => locked += 1,
                    other => panic!("{other:?}"),
                }
            }
            assert!(open_rows > 0, "the row that was committed last is nobody's");
            let mut statement = session.write().unwrap();
            statement.insert(&table, &image(&table, 10_000 + round, b"new")).unwrap();
            statement.delete(&table, &int_key(10_000 + round), &mut |_| true).unwrap();
            statement.commit().unwrap();
            database.checkpoint().unwrap();
            database.core().rollbacks.go_on(database.core());
        }
        assert!(locked > 0);
        drop(session);
        verify(&database, &committed);
        // Nobody's any more.
        let mut session = database.session();
        session.set_lock_wait(Duration::ZERO);
        let mut statement = session.write().unwrap();
        for id in committed["t"].keys() {
            assert!(statement.delete(&table, &int_key(*id), &mut |_| true).unwrap());
        }
        statement.commit().unwrap();
        drop(session);
        database.close().unwrap();
        let again = open(&left.crash(seed)).unwrap();
        assert_eq!(again.recovery().rolled_back, 0);
        assert!(contents(&again)["t"].is_empty());
    }
}

#[test]
fn a_start_that_takes_back_behind_it_may_be_cut_anywhere_and_begins_anew() {
    for seed in 0..3 {
        let (left, committed) = cut_short(seed);
        let mut event = seed;
        loop {
            let _context = Context(seed, format!("cut after event {event}"));
            let again = left.crash(seed);
            again.set_plan(Plan { cut: Some(Cut::AfterEvent(event)), ..Plan::default() });
            if let Ok(database) = open_behind(&again) {
                let mut steps = 0;
                while !again.stopped() && !database.core().rollbacks.is_empty() && steps < 1_000 {
                    database.core().rollbacks.go_on(database.core());
                    let _ = database.checkpoint();
                    steps += 1;
                }
                let _ = database.close();
            }
            let was_cut = again.stopped();
            let database = open_behind(&again.crash(event)).unwrap();
            assert_eq!(contents(&database), committed);
            verify(&database, &committed);
            if !was_cut {
                break;
            }
            event += 7;
        }
    }
}

#[test]
fn a_clean_shutdown_leaves_what_is_not_taken_back_to_the_next_start() {
    let (left, committed) = cut_short(3);
    for _ in 0..3 {
        let database = open_behind(&left).unwrap();
        assert!(!database.core().rollbacks.is_empty());
        assert_eq!(contents(&database), committed);
        database.close().unwrap();
    }
    // A check takes it back in memory.
    let report = crate::check(std::path::Path::new("data"), Arc::new(left.clone())).unwrap();
    assert!(report.is_clean(), "{report}");
    let database = open(&left).unwrap();
    assert!(database.core().rollbacks.is_empty(), "a small one is taken back before");
    verify(&database, &committed);
}

#[test]
fn thousands_of_changes_are_taken_back_by_a_rollback_and_by_a_savepoint() {
    let vfs = SimVfs::new();
    let database = open(&vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(def("t")).unwrap();
    let mut session = database.session();
    session.begin(Isolation::RepeatableRead).unwrap();
    let insert = |session: &mut crate::Session, ids: std::ops::Range<i32>| {
        let mut statement = session.write().unwrap();
        ids.for_each(|id| statement.insert(&table, &image(&table, id, b"x")).unwrap());
        statement.commit().unwrap();
    };
    insert(&mut session, 0..10);
    let savepoint = session.savepoint();
    insert(&mut session, 10..9_000);
    session.roll_back_to(savepoint).unwrap();
    session.commit().unwrap();
    assert_eq!(contents(&database)["t"].len(), 10);
    session.begin(Isolation::RepeatableRead).unwrap();
    insert(&mut session, 10..9_000);
    session.roll_back().unwrap();
    assert_eq!(contents(&database)["t"].len(), 10);
    insert(&mut session, 10..20);
    assert_eq!(contents(&database)["t"].len(), 20);
}

/// Rows that are deleted where they lie, some of which the same transaction has replaced: what another sees
/// of them while they are taken back behind a start.
#[test]
fn rows_deleted_in_place_are_seen_and_taken_back_behind_a_start() {
    const ROWS: i32 = 300;
    let vfs = SimVfs::new();
    let database = open(&vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(def("t")).unwrap();
    let mut session = database.session();
    let mut statement = session.write().unwrap();
    (0..ROWS).for_each(|id| statement.insert(&table, &image(&table, id, b"old")).unwrap());
    statement.commit().unwrap();
    let committed = contents(&database);
    session.begin(Isolation::RepeatableRead).unwrap();
    let mut statement = session.write().unwrap();
    for id in 0..ROWS {
        assert!(statement.delete(&table, &int_key(id), &mut |_| true).unwrap());
        if id % 3 == 0 {
            statement.insert(&table, &image(&table, id, b"new")).unwrap();
        }
    }
    statement.commit().unwrap();
    database.checkpoint().unwrap();
    let left = vfs.crash(1);
    let database = open_behind(&left).unwrap();
    assert!(!database.core().rollbacks.is_empty());
    let of_replaced = database.status().version_bytes;
    assert!(of_replaced > 0 && of_replaced < ROWS as u64 * 150, "{of_replaced}");
    let mut reader = database.session();
    reader.begin(Isolation::RepeatableRead).unwrap();
    while !database.core().rollbacks.is_empty() {
        assert_eq!(contents(&database), committed);
        database.core().rollbacks.go_on(database.core());
    }
    assert_eq!(database.status().version_bytes, 0);
    verify(&database, &committed);
}
