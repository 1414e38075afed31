//! FOREIGN KEY between several sessions: no schedule leaves a row without its parent.

use crate::support::{Client, Live, wait_until};
use base::random::Random;
use std::thread;

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    client.query(sql).unwrap().to_text()
}

fn run(client: &mut Client, statements: &[&str]) {
    for sql in statements {
        client.query(sql).unwrap();
    }
}

/// The number of the error, or 0.
fn outcome(client: &mut Client, sql: &str) -> u16 {
    client.query(sql).err().and_then(|error| error.code()).unwrap_or(0)
}

fn with_tables(live: &Live) -> Client {
    let mut client = live.connect();
    run(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.p (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE d.c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id))",
            "INSERT INTO d.p VALUES (1, 0), (2, 0)",
        ],
    );
    client
}

/// Begins `first` in a transaction, runs `second` in another session until it waits, ends the transaction,
/// and gives the outcome of `second`.
fn in_turn(live: &Live, observer: &mut Client, first: &str, second: &'static str, end: &str) -> u16 {
    let (mut one, mut other) = (live.connect(), live.connect());
    let id = other.greeting().connection_id;
    run(&mut one, &["BEGIN", first]);
    let waiter = thread::spawn(move || outcome(&mut other, second));
    let state = format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {id}");
    wait_until("the wait", || rows(observer, &state)[0][0] == "Waiting for row lock");
    run(&mut one, &[end]);
    waiter.join().unwrap()
}

#[test]
fn a_child_waits_for_its_parents_deletion_and_a_deletion_for_a_new_child() {
    let live = Live::start(&[]);
    let mut client = with_tables(&live);
    let delete = "DELETE FROM d.p WHERE id = 1";
    let insert = "INSERT INTO d.c (pid) VALUES (1)";
    assert_eq!(in_turn(&live, &mut client, delete, insert, "ROLLBACK"), 0);
    run(&mut client, &["DELETE FROM d.c"]);
    assert_eq!(in_turn(&live, &mut client, insert, delete, "COMMIT"), 1451);
    run(&mut client, &["DELETE FROM d.c"]);
    assert_eq!(in_turn(&live, &mut client, insert, delete, "ROLLBACK"), 0);
    run(&mut client, &["INSERT INTO d.p VALUES (1, 0)"]);
    assert_eq!(in_turn(&live, &mut client, delete, insert, "COMMIT"), 1452);
    // The other columns of a parent's row may change while it is referred to.
    run(&mut client, &["INSERT INTO d.c (pid) VALUES (2)", "UPDATE d.p SET v = 1 WHERE id = 2"]);
}

#[test]
fn a_plan_that_was_made_before_a_constraint_obeys_it() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    let mut other = live.connect();
    run(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.p (id INT PRIMARY KEY)",
            "INSERT INTO d.p VALUES (1), (2), (3)",
        ],
    );
    let delete = "DELETE FROM d.p WHERE id = 1";
    assert_eq!(outcome(&mut other, delete), 0);
    run(
        &mut client,
        &[
            "INSERT INTO d.p VALUES (1)",
            "CREATE TABLE d.c (pid INT, FOREIGN KEY (pid) REFERENCES p (id))",
            "INSERT INTO d.c VALUES (1)",
        ],
    );
    assert_eq!(outcome(&mut other, delete), 1451);
    run(&mut client, &["ALTER TABLE d.c DROP FOREIGN KEY c_ibfk_1"]);
    assert_eq!(outcome(&mut other, delete), 0);
    assert_eq!(outcome(&mut client, "ALTER TABLE d.c ADD FOREIGN KEY (pid) REFERENCES p (id)"), 1452);
    run(
        &mut client,
        &["SET foreign_key_checks = 0", "ALTER TABLE d.c ADD FOREIGN KEY (pid) REFERENCES p (id)"],
    );
    assert_eq!(outcome(&mut other, "INSERT INTO d.c VALUES (1)"), 1452);
    run(&mut client, &["RENAME TABLE d.p TO d.q"]);
    assert_eq!(outcome(&mut other, "INSERT INTO d.c VALUES (2)"), 0);
    assert_eq!(outcome(&mut other, "DELETE FROM d.q WHERE id = 2"), 1451);
    run(&mut client, &["DROP TABLE d.c"]);
    assert_eq!(outcome(&mut other, "DELETE FROM d.q WHERE id = 2"), 0);
}

#[test]
fn sessions_that_change_parents_and_children_at_random_leave_no_row_without_its_parent() {
    let live = Live::start(&["--innodb_lock_wait_timeout=5"]);
    let mut client = live.connect();
    run(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.p (id INT PRIMARY KEY)",
            "CREATE TABLE d.r (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id))",
            "CREATE TABLE d.c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, \
             FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
            "CREATE TABLE d.n (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, \
             FOREIGN KEY (pid) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)",
            "CREATE TABLE d.cc (cid INT, FOREIGN KEY (cid) REFERENCES c (id) ON DELETE CASCADE)",
        ],
    );
    let sessions: Vec<_> = (0..4u64)
        .map(|seed| {
            let mut client = live.connect();
            thread::spawn(move || {
                let mut random = Random::new(7919, seed);
                let mut below = |limit: u32| random.below(limit);
                let mut done = 0;
                for _ in 0..600 {
                    let (a, b) = (below(6), below(6));
                    let sql = match below(12) {
                        0 | 1 => format!("INSERT IGNORE INTO d.p VALUES ({a})"),
                        2 => format!("DELETE FROM d.p WHERE id = {a}"),
                        3 => format!("UPDATE d.p SET id = {b} WHERE id = {a}"),
                        4 | 5 => format!("INSERT INTO d.c (pid) VALUES ({a}), ({b})"),
                        6 => format!("INSERT INTO d.n (pid) VALUES ({a})"),
                        7 => format!("INSERT INTO d.r (pid) VALUES ({a})"),
                        8 => format!("DELETE FROM d.r WHERE pid = {a}"),
                        9 => "INSERT INTO d.cc SELECT id FROM d.c ORDER BY RAND() LIMIT 2".to_owned(),
                        10 => format!("UPDATE d.n SET pid = {b} WHERE pid = {a} OR pid IS NULL LIMIT 2"),
                        _ => format!("REPLACE INTO d.p VALUES ({a})"),
                    };
                    let in_transaction = below(3) == 0;
                    if in_transaction {
                        run(&mut client, &["BEGIN"]);
                    }
                    let code = outcome(&mut client, &sql);
                    assert!([0, 1062, 1205, 1213, 1451, 1452].contains(&code), "{code}: {sql}");
                    done += u64::from(code == 0);
                    if in_transaction {
                        run(&mut client, &[if below(2) == 0 { "COMMIT" } else { "ROLLBACK" }]);
                    }
                }
                done
            })
        })
        .collect();
    for session in sessions {
        assert!(session.join().unwrap() > 0);
    }
    for (child, column, parent) in
        [("r", "pid", "p"), ("c", "pid", "p"), ("n", "pid", "p"), ("cc", "cid", "c")]
    {
        let orphans = format!(
            "SELECT COUNT(*) FROM d.{child} x LEFT JOIN d.{parent} y ON x.{column} = y.id \
             WHERE x.{column} IS NOT NULL AND y.id IS NULL"
        );
        assert_eq!(rows(&mut client, &orphans), [["0"]], "{child}");
        let count = rows(&mut client, &format!("SELECT COUNT(*) FROM d.{child}"));
        assert_ne!(count, [["0"]], "{child} was used");
    }
}
