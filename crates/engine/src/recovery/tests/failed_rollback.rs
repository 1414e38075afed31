//! Rollbacks in which one operation of the device fails: what could not be taken back is never part of a
//! commit, and no row stays locked in an engine that takes changes.

use super::crashes::{Context, Outcome, Rows, Tables, contents, def, image, open, verify};
use crate::tests::int_key;
use crate::{Error, Isolation, Session, Table};
use std::time::Duration;
use vfs::SimVfs;
use vfs::sim::Plan;

const ROWS: i32 = 40;

fn rows(len: usize) -> Rows {
    (0..ROWS).map(|id| (id, vec![id as u8; len])).collect()
}

/// Gives each row so many bytes, in a statement that is kept or not.
fn change(session: &mut Session, table: &Table, len: usize, is_kept: bool) -> crate::Result<()> {
    let mut statement = session.write()?;
    for (id, bytes) in rows(len) {
        let new = image(table, id, &bytes);
        statement.update(table, &int_key(id), &mut |_, out| {
            out.extend_from_slice(&new);
            true
        })?;
    }
    if is_kept { statement.commit() } else { Ok(()) }
}

/// What is rolled back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// A statement with a transaction of its own.
    Statement,
    /// One of several of a transaction, which is then committed.
    StatementOfTransaction,
    Transaction,
}

/// Rolls changes back while operation `nth` fails. False if there were not so many.
fn fail_once(what: What, nth: u64) -> bool {
    let vfs = SimVfs::new();
    let database = open(&vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(def("t")).unwrap();
    let mut session = database.session();
    session.set_lock_wait(Duration::ZERO);
    let mut statement = session.write().unwrap();
    rows(100).iter().for_each(|(id, bytes)| statement.insert(&table, &image(&table, *id, bytes)).unwrap());
    statement.commit().unwrap();
    let tables = |len| Tables::from([("t".to_owned(), rows(len))]);
    let (mut present, mut asked) = (tables(100), tables(100));
    if what == What::StatementOfTransaction {
        session.begin(Isolation::RepeatableRead).unwrap();
        change(&mut session, &table, 30, true).unwrap();
        asked = tables(30);
    }
    if what == What::Transaction {
        session.begin(Isolation::RepeatableRead).unwrap();
        (0..8).for_each(|n| change(&mut session, &table, 150 + n, true).unwrap());
    }
    vfs.set_plan(Plan { failed_operation: Some(nth), ..Plan::default() });
    let result = match what {
        What::Transaction => session.roll_back(),
        _ => change(&mut session, &table, 200, false),
    };
    let happened = vfs.operations() >= nth;
    vfs.set_plan(Plan::default());
    let result = match what {
        What::StatementOfTransaction => session.commit(),
        _ => result,
    };
    if result.is_ok() {
        present = asked.clone();
    }
    let found = contents(&database);
    assert!(found == present || found == asked, "a part of what was rolled back is there: {result:?}");
    let mut other = database.session();
    other.set_lock_wait(Duration::ZERO);
    match change(&mut other, &table, 70, true) {
        Ok(()) => {
            assert_eq!(contents(&database), tables(70));
            // Nobody holds its definition either.
            database.truncate(&table).unwrap();
            let empty = Tables::from([("t".to_owned(), Rows::new())]);
            (present, asked) = (empty.clone(), empty);
        }
        // The next start takes it back.
        Err(Error::ReadOnly { .. }) => {}
        Err(error) => panic!("it takes changes, and one of these rows fails: {error}; before: {result:?}"),
    }
    let outcome = Outcome { opened: true, before: present, after: asked, error: None, last: None };
    verify(&outcome, &vfs.crash(nth));
    happened
}

#[test]
fn an_operation_that_fails_in_a_rollback_leaves_no_row_locked_and_nothing_in_part() {
    for what in [What::Statement, What::StatementOfTransaction, What::Transaction] {
        for nth in 1.. {
            let _context = Context(nth, format!("{what:?}, operation {nth}"));
            if !fail_once(what, nth) {
                assert!(nth > 5, "{what:?} has no operations");
                break;
            }
        }
    }
}
