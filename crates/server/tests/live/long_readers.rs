//! A long transaction that reads while others change the rows that it reads.

use crate::support::{Client, Live, wait_until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn run(client: &mut Client, sql: &str) {
    client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

fn number(client: &mut Client, sql: &str) -> u64 {
    client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).to_text()[0][0].parse().unwrap()
}

fn status(client: &mut Client, name: &str) -> u64 {
    client.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap().to_text()[0][1].parse().unwrap()
}

fn version_bytes(client: &mut Client) -> u64 {
    status(client, "Latchwork_version_bytes")
}

const LIMIT: u64 = 1 << 20;
/// The memory may exceed the limit by this much between two checks: the transactions under way, and what 64
/// commits leave.
const SLACK: u64 = 256 << 10;

fn with_table(rows: u64) -> (Live, Client) {
    let live = Live::start(&["--flush_log_at_trx_commit=2"]);
    let mut client = live.connect();
    run(&mut client, &format!("SET GLOBAL latchwork_version_limit = {LIMIT}"));
    run(&mut client, "CREATE DATABASE d");
    run(&mut client, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, pad CHAR(200), KEY (v))");
    for first in (0..rows).step_by(500) {
        let rows: Vec<String> =
            (first..rows.min(first + 500)).map(|id| format!("({id}, 0, 'pad')")).collect();
        run(&mut client, &format!("INSERT INTO d.t VALUES {}", rows.join(", ")));
    }
    (live, client)
}

#[test]
fn hot_rows_cost_a_long_reader_little_and_it_sees_them_as_they_were() {
    let (live, mut observer) = with_table(8);
    let mut reader = live.connect();
    run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..3 {
            let (mut client, is_over) = (live.connect(), &is_over);
            scope.spawn(move || {
                for round in 0..1_500 {
                    run(
                        &mut client,
                        &format!("UPDATE d.t SET v = v + 1 WHERE id = {}", (round + writer) % 8),
                    );
                }
                is_over.store(true, Ordering::SeqCst);
            });
        }
        while !is_over.load(Ordering::SeqCst) {
            assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t WHERE v = 0"), 8);
            assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t FORCE INDEX (v) WHERE v > 0"), 0);
            // The thread that enforces the limit may be interrupted at it.
            wait_until("old versions within the limit", || version_bytes(&mut observer) <= LIMIT + SLACK);
        }
    });
    assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t WHERE v = 0"), 8);
    assert_eq!(number(&mut observer, "SELECT SUM(v) FROM d.t"), 4_500);
    run(&mut reader, "COMMIT");
    assert_eq!(number(&mut reader, "SELECT SUM(v) FROM d.t"), 4_500);
    wait_until("the end of all old versions", || version_bytes(&mut observer) == 0);
}

#[test]
fn beyond_the_limit_the_reader_goes_on_by_files() {
    const ROWS: u64 = 8_000;
    let (live, mut observer) = with_table(ROWS);
    let [mut reader, mut writer] = [(); 2].map(|()| live.connect());
    run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    for round in 0..ROWS / 50 {
        let from = round * 50;
        run(&mut writer, &format!("UPDATE d.t SET v = v + 1 WHERE id >= {from} AND id < {}", from + 50));
        let bytes = version_bytes(&mut observer);
        assert!(bytes <= LIMIT + SLACK, "{bytes}");
        if round % 10 == 9 {
            assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t WHERE v = 0"), ROWS);
            assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t FORCE INDEX (v) WHERE v = 0"), ROWS);
            assert_eq!(number(&mut reader, &format!("SELECT COUNT(*) FROM d.t WHERE id = {from}")), 1);
        }
    }
    assert!(status(&mut observer, "Latchwork_version_file_bytes") > 0);
    assert!(status(&mut observer, "Latchwork_versions_in_files") > ROWS / 2);
    run(&mut reader, "COMMIT");
    assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t WHERE v = 1"), ROWS);
    wait_until("the end of all old versions", || version_bytes(&mut observer) == 0);
    assert_eq!(status(&mut observer, "Latchwork_version_file_bytes"), 0);
    assert!(status(&mut observer, "Latchwork_versions_spilled") > ROWS / 2);
    assert_eq!(observer.query("CHECK TABLE d.t").unwrap().to_text()[0][3], "OK");
}

#[test]
fn beyond_the_limit_the_reader_is_given_up_and_writers_never_are() {
    const ROWS: u64 = 8_000;
    let (live, mut observer) = with_table(ROWS);
    run(&mut observer, "SET GLOBAL latchwork_version_file_limit = 0");
    let (mut reader, mut late) = (live.connect(), live.connect());
    run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t WHERE v = 0"), ROWS);
    let mut writer = live.connect();
    let mut given_up = false;
    for round in 0..ROWS / 50 {
        let from = round * 50;
        run(&mut writer, &format!("UPDATE d.t SET v = v + 1 WHERE id >= {from} AND id < {}", from + 50));
        let bytes = version_bytes(&mut observer);
        assert!(bytes <= LIMIT + SLACK, "{bytes}");
        match reader.query("SELECT COUNT(*) FROM d.t WHERE v = 0") {
            Ok(result) if !given_up => {
                assert_eq!(result.to_text(), [[ROWS.to_string()]], "never a wrong row")
            }
            Ok(_) => panic!("what was given up has come back"),
            Err(error) => {
                assert_eq!(error.code(), Some(1412), "{error:?}");
                given_up = true;
            }
        }
    }
    assert!(given_up, "8,000 old rows of 200 bytes fit a mebibyte");
    assert_eq!(number(&mut late, "SELECT COUNT(*) FROM d.t WHERE v = 1"), ROWS);
    // The session goes on. Its next transaction has a snapshot of its own.
    run(&mut reader, "ROLLBACK");
    assert_eq!(number(&mut reader, "SELECT COUNT(*) FROM d.t WHERE v = 1"), ROWS);
    wait_until("the end of all old versions", || version_bytes(&mut observer) == 0);
    assert_eq!(observer.query("CHECK TABLE d.t").unwrap().to_text()[0][3], "OK");
}
