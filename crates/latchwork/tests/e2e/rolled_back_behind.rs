//! A large transaction that a SIGKILL cuts: the server opens at once and takes it back behind that.

use crate::support::{Latchwork, client, have, wait_until};
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_large_transaction_that_was_killed_is_taken_back_while_the_server_serves() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    let digits: Vec<String> = (0..250).map(|id| format!("({id})")).collect();
    server.sql(&format!(
        "CREATE DATABASE d; CREATE TABLE d.s (id INT PRIMARY KEY); INSERT INTO d.s VALUES {}; \
         CREATE TABLE d.t (id INT PRIMARY KEY, k INT, pad CHAR(100), KEY (k)); \
         INSERT INTO d.t SELECT a.id * 250 + b.id, b.id, 'before' FROM d.s a, d.s b",
        digits.join(",")
    ));
    let mut open = client(&server.socket).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = open.stdin.take().unwrap();
    let script = "BEGIN; UPDATE d.t SET k = k + 1000, pad = REPEAT('x', 90) WHERE id < 40000; \
                  DELETE FROM d.t WHERE id >= 40000; INSERT INTO d.t VALUES (1000000, 1, 'open');\n";
    input.write_all(script.as_bytes()).unwrap();
    input.flush().unwrap();
    // A row that others may read before it is committed: so all of it has been done.
    let is_done = || {
        let level = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; ";
        server.sql(&format!("{level}SELECT COUNT(*) FROM d.t WHERE id = 1000000")) == "1\n"
    };
    assert!(wait_until(is_done));
    // The log is written up to here, and what the transaction did lies before it.
    server.sql("CREATE TABLE d.u (id INT PRIMARY KEY); INSERT INTO d.u VALUES (1)");
    server.kill();
    drop(input);
    let _ = open.wait();
    let sums = "SELECT COUNT(*), SUM(k), SUM(pad = 'before') FROM d.t";
    let before = format!("62500\t{}\t62500\n", 250 * (249 * 250 / 2));
    let server = Latchwork::start(scratch.path(), &[]);
    assert!(server.log().contains("rolled back 1 transaction(s) with 62501 change(s)"), "{}", server.log());
    assert_eq!(server.sql(sums), before);
    server.sql("INSERT INTO d.t VALUES (2000000, 1, 'new'); DELETE FROM d.t WHERE id = 2000000");
    // Again in the middle of it, perhaps; and then until it is done.
    server.kill();
    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(server.sql(sums), before);
    server.sql("UPDATE d.t SET k = k + 1 WHERE id IN (0, 62499)");
    let changed = format!("62500\t{}\t62500\n", 250 * (249 * 250 / 2) + 2);
    assert_eq!(server.sql(sums), changed);
    assert_eq!(server.stop().code(), Some(0));
    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(server.sql(sums), changed);
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t FORCE INDEX (k) WHERE k >= 1000"), "0\n");
}
