//! Tests of what two sessions see of each other and wait for.

use crate::host::Kill;
use crate::statements::dml::tests::{Fixture, Last};
use crate::{ColumnMeta, Completion, ResultSink, Session, SqlError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use types::{Value, ValueRef};

fn other(fixture: &Fixture, id: u64) -> Session {
    let mut session = Session::new(fixture.session.instance.clone(), id, "root", "localhost");
    session.use_database("test").expect("the database");
    session
}

fn run(session: &mut Session, sql: &str) -> Result<Last, SqlError> {
    let mut last = Last::default();
    session.query(sql.as_bytes(), &mut last).map(|()| last)
}

fn numbers(session: &mut Session, sql: &str) -> Vec<i64> {
    let last = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let number = |row: &Vec<Value>| match row[0] {
        Value::Int(number) => number,
        ref value => panic!("{value:?}"),
    };
    last.rows.iter().map(number).collect()
}

fn fail(session: &mut Session, sql: &str) -> u16 {
    match run(session, sql) {
        Err(error) => error.code(),
        Ok(_) => panic!("{sql} was accepted"),
    }
}

fn table() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v))");
    fixture.run("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    fixture
}

#[test]
fn each_isolation_level_sees_what_it_should() {
    let mut fixture = table();
    let mut reader = other(&fixture, 8);
    for (level, expected) in [
        ("READ UNCOMMITTED", [vec![11], vec![11]]),
        ("READ COMMITTED", [vec![10], vec![11]]),
        ("REPEATABLE READ", [vec![10], vec![10]]),
    ] {
        fixture.run("UPDATE t SET v = 10 WHERE id = 1");
        run(&mut reader, &format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).expect("a level");
        run(&mut reader, "BEGIN").expect("a transaction");
        assert_eq!(numbers(&mut reader, "SELECT v FROM t WHERE id = 1"), [10], "{level}");
        fixture.run("BEGIN");
        fixture.run("UPDATE t SET v = 11 WHERE id = 1");
        assert_eq!(numbers(&mut reader, "SELECT v FROM t WHERE id = 1"), expected[0], "{level}");
        fixture.run("COMMIT");
        assert_eq!(numbers(&mut reader, "SELECT v FROM t WHERE id = 1"), expected[1], "{level}");
        assert_eq!(numbers(&mut reader, "SELECT v FROM t WHERE id = 1 FOR UPDATE"), [11], "{level}");
        run(&mut reader, "COMMIT").expect("a commit");
    }
    run(&mut reader, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE").expect("a level");
    run(&mut reader, "BEGIN").expect("a transaction");
    assert_eq!(numbers(&mut reader, "SELECT v FROM t WHERE id = 1"), [11]);
    fixture.run("SET innodb_lock_wait_timeout = 0");
    assert_eq!(fixture.fail("UPDATE t SET v = 12 WHERE id = 1").0, 1205);
    run(&mut reader, "COMMIT").expect("a commit");
    fixture.run("UPDATE t SET v = 12 WHERE id = 1");
    // Outside of a transaction a SELECT locks nothing.
    assert_eq!(numbers(&mut reader, "SELECT COUNT(*) FROM t"), [3]);
}

#[test]
fn a_row_lock_that_is_not_to_be_had_costs_the_statement_and_not_the_transaction() {
    let mut fixture = table();
    let mut second = other(&fixture, 8);
    fixture.run("BEGIN");
    fixture.run("UPDATE t SET v = 11 WHERE id = 1");
    run(&mut second, "SET innodb_lock_wait_timeout = 0").expect("a limit");
    run(&mut second, "BEGIN").expect("a transaction");
    run(&mut second, "UPDATE t SET v = 21 WHERE id = 2").expect("a free row");
    assert_eq!(fail(&mut second, "UPDATE t SET v = v + 1 WHERE id IN (3, 1)"), 1205);
    assert_eq!(fail(&mut second, "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT"), 1205);
    assert_eq!(fail(&mut second, "SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE"), 1205);
    assert_eq!(numbers(&mut second, "SELECT id FROM t FOR UPDATE SKIP LOCKED"), [2, 3]);
    assert_ne!(second.status_flags() & 1, 0);
    run(&mut second, "COMMIT").expect("a commit");
    fixture.run("ROLLBACK");
    assert_eq!(numbers(&mut second, "SELECT v FROM t"), [10, 21, 30]);
}

#[test]
fn the_patience_of_a_prepared_locking_read_is_a_number_or_a_parameter() {
    let mut fixture = table();
    let mut holder = other(&fixture, 8);
    run(&mut holder, "BEGIN").expect("a transaction");
    run(&mut holder, "UPDATE t SET v = 11 WHERE id = 1").expect("an update");
    let session = &mut fixture.session;
    let mut execute = |sql: &str, params: &[ValueRef<'_>]| {
        let prepared = session.prepare(sql.as_bytes()).expect(sql);
        session.execute(prepared.id, params, &mut Last::default()).map_err(|error| error.code())
    };
    // The session's own limit is most of a minute.
    let (one, two) = (ValueRef::Int(1), ValueRef::Int(2));
    assert_eq!(execute("SELECT v FROM t WHERE id = ? FOR UPDATE WAIT 0", &[one]), Err(1205));
    assert_eq!(execute("SELECT v FROM t WHERE id = ? FOR UPDATE WAIT 0", &[two]), Ok(()));
    assert_eq!(
        execute("SELECT v FROM t WHERE id = ? LOCK IN SHARE MODE WAIT ?", &[one, ValueRef::Int(0)]),
        Err(1205)
    );
    assert_eq!(execute("SELECT v FROM t WHERE id = ? FOR UPDATE NOWAIT", &[one]), Err(1205));
    let no_number = ValueRef::Text(b"soon");
    assert_eq!(execute("SELECT v FROM t WHERE id = ? FOR UPDATE WAIT ?", &[two, no_number]), Err(1064));
    run(&mut holder, "ROLLBACK").expect("a rollback");
}

#[test]
fn a_deadlock_costs_one_whole_transaction() {
    let mut fixture = table();
    let mut second = other(&fixture, 8);
    fixture.run("BEGIN");
    fixture.run("UPDATE t SET v = 11 WHERE id = 1");
    run(&mut second, "BEGIN").expect("a transaction");
    run(&mut second, "UPDATE t SET v = 21 WHERE id = 2").expect("a free row");
    let (first, second) = std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let result = run(&mut second, "UPDATE t SET v = 12 WHERE id = 1").map(drop);
            (result, second)
        });
        let mut last = Last::default();
        let first = fixture.session.query(b"UPDATE t SET v = 22 WHERE id = 2", &mut last);
        if first.is_ok() {
            fixture.run("COMMIT");
        }
        (first, waiting.join().expect("no panic"))
    });
    let (second, mut session) = second;
    let loser = match (&first, &second) {
        (Err(error), Ok(())) | (Ok(()), Err(error)) => error,
        other => panic!("one of the two gives way: {other:?}"),
    };
    assert_eq!((loser.code(), loser.sqlstate()), (1213, b"40001"));
    let expected = if first.is_ok() { [11, 22, 30] } else { [12, 21, 30] };
    if second.is_ok() {
        assert_eq!(fixture.session.status_flags() & 1, 0, "the whole transaction is gone");
        run(&mut session, "COMMIT").expect("a commit");
    } else {
        assert_eq!(session.status_flags() & 1, 0, "the whole transaction is gone");
    }
    assert_eq!(numbers(&mut session, "SELECT v FROM t ORDER BY id"), expected);
}

#[test]
fn rows_are_changed_by_what_they_are_once_they_are_free() {
    let mut fixture = table();
    fixture.run("BEGIN");
    fixture.run("UPDATE t SET v = v + 5");
    let mut second = other(&fixture, 8);
    let changed = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let first = run(&mut second, "UPDATE t SET v = 0 WHERE v >= 20 ORDER BY v LIMIT 1");
            first.expect("rows that are free in the end").completion.affected_rows
        });
        // The result must be the same whether the statement waits by now or starts after the commit.
        std::thread::sleep(Duration::from_millis(50));
        fixture.run("UPDATE t SET v = 1 WHERE id = 2");
        fixture.run("COMMIT");
        waiting.join().expect("no panic")
    });
    assert_eq!(changed, 1);
    assert_eq!(numbers(&mut second, "SELECT v FROM t ORDER BY id"), [15, 1, 0]);
}

#[test]
fn kill_ends_a_wait_for_a_row() {
    let mut fixture = table();
    fixture.run("BEGIN");
    fixture.run("DELETE FROM t WHERE id = 1");
    let mut second = other(&fixture, 8);
    let interrupt = second.interrupt().clone();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fail(&mut second, "SELECT * FROM t WHERE id = 1 FOR UPDATE"));
        while !waiting.is_finished() {
            // A KILL QUERY that comes before the statement is forgotten, so it is repeated.
            interrupt.raise(Kill::Statement);
            std::thread::yield_now();
        }
        assert_eq!(waiting.join().expect("no panic"), 1317);
    });
    fixture.run("ROLLBACK");
    assert_eq!(numbers(&mut second, "SELECT id FROM t WHERE id = 1 FOR UPDATE"), [1]);
}

#[test]
fn a_definition_waits_for_the_transactions_that_have_used_the_table() {
    let mut fixture = table();
    let mut second = other(&fixture, 8);
    run(&mut second, "SET lock_wait_timeout = 0").expect("a limit");
    for use_of_table in ["SELECT * FROM t", "INSERT INTO t VALUES (4, 4)"] {
        fixture.run("BEGIN");
        fixture.run(use_of_table);
        for statement in [
            "ALTER TABLE t ADD COLUMN w INT",
            "DROP TABLE t",
            "TRUNCATE TABLE t",
            "RENAME TABLE t TO s",
            "CREATE INDEX w ON t (v)",
            "OPTIMIZE TABLE t",
            "LOCK TABLES t WRITE",
        ] {
            let failed = match run(&mut second, statement) {
                Err(error) => error.code() == 1205,
                Ok(last) => last.rows.iter().any(|row| row[3] == Value::text("Operation failed")),
            };
            assert!(failed, "{statement} while another has said {use_of_table}");
        }
        fixture.run("ROLLBACK");
    }
    run(&mut second, "ALTER TABLE t ADD COLUMN w INT").expect("nobody uses it any more");
}

#[test]
fn sessions_that_drop_a_database_if_it_exists_do_not_fail_because_another_was_first() {
    let mut fixture = table();
    for _ in 0..3 {
        fixture.run("CREATE DATABASE other");
        fixture.run("CREATE TABLE other.t (id INT PRIMARY KEY)");
        fixture.run("BEGIN");
        fixture.run("SELECT * FROM other.t");
        let mut sessions = [other(&fixture, 8), other(&fixture, 9)];
        std::thread::scope(|scope| {
            let waiting = sessions.each_mut().map(|session| {
                scope.spawn(|| run(session, "DROP DATABASE IF EXISTS other").map(drop).map_err(|e| e.code()))
            });
            // They find the database now, or only after the commit: neither is an error.
            std::thread::sleep(Duration::from_millis(50));
            fixture.run("COMMIT");
            assert_eq!(waiting.map(|waiting| waiting.join().expect("no panic")), [Ok(()), Ok(())]);
        });
    }
}

#[test]
fn lock_tables_keeps_others_out_and_its_end_lets_them_in() {
    let mut fixture = table();
    let mut second = other(&fixture, 8);
    run(&mut second, "SET lock_wait_timeout = 0").expect("a limit");
    fixture.run("LOCK TABLES t READ");
    assert_eq!(numbers(&mut second, "SELECT COUNT(*) FROM t"), [3]);
    assert_eq!(fail(&mut second, "DELETE FROM t"), 1205);
    fixture.run("LOCK TABLES t WRITE");
    assert_eq!(fail(&mut second, "SELECT COUNT(*) FROM t"), 1205);
    assert_eq!(numbers(&mut second, "SELECT 1"), [1]);
    fixture.run("UNLOCK TABLES");
    assert_eq!(numbers(&mut second, "SELECT COUNT(*) FROM t"), [3]);
    fixture.run("LOCK TABLES t WRITE");
    fixture.session.reset();
    run(&mut second, "DELETE FROM t").expect("a session that begins anew holds nothing");
}

#[test]
fn a_read_lock_stops_changes_and_commits() {
    let mut fixture = table();
    let mut second = other(&fixture, 8);
    run(&mut second, "SET lock_wait_timeout = 0").expect("a limit");
    run(&mut second, "BEGIN").expect("a transaction");
    run(&mut second, "DELETE FROM t WHERE id = 3").expect("a change");
    fixture.run("FLUSH TABLES WITH READ LOCK");
    assert_eq!(fail(&mut second, "COMMIT"), 1205);
    assert_eq!(fail(&mut second, "DELETE FROM t"), 1205);
    assert_eq!(fixture.fail("DELETE FROM t").0, 1223);
    fixture.run("UNLOCK TABLES");
    run(&mut second, "COMMIT").expect("a commit that may");
    assert_eq!(numbers(&mut second, "SELECT COUNT(*) FROM t"), [2]);
}

/// A sink that panics on the first row.
struct Panics;

impl ResultSink for Panics {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }
    fn row(&mut self, _row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        panic!("a row that nobody can take");
    }
    fn end(&mut self, _completion: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

#[test]
fn a_panic_ends_the_session_and_takes_back_its_transaction() {
    let mut fixture = table();
    let mut second = other(&fixture, 8);
    let instance = Arc::clone(&second.instance);
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        run(&mut second, "BEGIN").expect("a transaction");
        run(&mut second, "UPDATE t SET v = 0").expect("a change");
        second.query(b"SELECT * FROM t FOR UPDATE", &mut Panics)
    }));
    assert!(panicked.is_err());
    assert_eq!(numbers(&mut fixture.session, "SELECT v FROM t FOR UPDATE"), [10, 20, 30]);
    fixture.run("ALTER TABLE t ADD COLUMN w INT");
    fixture.run("FLUSH TABLES WITH READ LOCK");
    fixture.run("UNLOCK TABLES");
    drop(instance);
}

#[test]
fn a_statement_that_locks_very_many_rows_takes_little_memory_for_them() {
    let mut fixture = table();
    let mut second = other(&fixture, 8);
    run(&mut second, "SET innodb_lock_wait_timeout = 0").expect("a limit");
    fixture.run("SET GLOBAL latchwork_lock_limit = 1048576");
    fixture.run("CREATE TABLE many (id INT PRIMARY KEY, v INT, KEY (v))");
    fixture.run("INSERT INTO many VALUES (1, 1)");
    for doubled in 0..16 {
        fixture.run(&format!("INSERT INTO many SELECT id + {0}, v + {0} FROM many", 1 << doubled));
    }
    fixture.run("CREATE TABLE copy LIKE many");
    let lock_bytes = |session: &mut Session| {
        let last = run(session, "SHOW STATUS LIKE 'Latchwork_lock_bytes'").expect("a status");
        let Value::Text(text) = &last.rows[0][1] else { panic!("{:?}", last.rows[0][1]) };
        std::str::from_utf8(text).expect("digits").parse::<u64>().expect("a number")
    };
    for sql in ["INSERT INTO copy SELECT * FROM many", "SELECT COUNT(*) FROM many FOR UPDATE"] {
        fixture.run("BEGIN");
        fixture.run(sql);
        let bytes = lock_bytes(&mut second);
        assert!(bytes <= 2 << 20, "{sql}: {bytes}");
        assert_eq!(fail(&mut second, "UPDATE many SET v = 0 WHERE id = 39999"), 1205, "{sql}");
        assert_eq!(fail(&mut second, "DELETE FROM many WHERE id = 5"), 1205, "{sql}");
        fixture.run("ROLLBACK");
        assert_eq!(lock_bytes(&mut second), 0);
        run(&mut second, "UPDATE many SET v = v + 1 WHERE id = 39999").expect("a free row");
    }
    // Others hold rows everywhere.
    run(&mut second, "BEGIN").expect("a transaction");
    run(&mut second, "SELECT COUNT(*) FROM many WHERE id < 2000 LOCK IN SHARE MODE").expect("locks");
    fixture.run("BEGIN");
    fixture.run("INSERT INTO copy VALUES (1, 1)");
    assert_eq!(fail(&mut fixture.session, "SELECT COUNT(*) FROM many WHERE id > 2000 FOR UPDATE"), 1206);
    assert_eq!(numbers(&mut fixture.session, "SELECT COUNT(*) FROM copy"), [0], "all of it is rolled back");
    run(&mut second, "COMMIT").expect("an end");
    assert_eq!(lock_bytes(&mut second), 0);
}
