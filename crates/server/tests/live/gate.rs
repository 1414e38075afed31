//! `thread_concurrency`: statements that are inside, that queue, and that leave the queue.

use crate::support::{Client, Live, wait_until};
use std::io::Write;
use wire::client::ClientError;

type Answer = Result<Vec<Vec<String>>, ClientError>;

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    client.query(sql).unwrap().to_text()
}

fn status(client: &mut Client, name: &str) -> u64 {
    rows(client, &format!("SHOW GLOBAL STATUS LIKE '{name}'"))[0][1].parse().unwrap()
}

fn state(client: &mut Client, id: u32) -> String {
    rows(client, &format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {id}"))[0][0].clone()
}

fn code(result: Answer) -> u16 {
    result.expect_err("an error").code().expect("the server's")
}

/// Runs until it is killed.
const ENDLESS: &str =
    "SELECT COUNT(*) FROM d.t a, d.t b, d.t c, d.t e, d.t f WHERE a.k + b.k + c.k + e.k + f.k < 0";

/// A server with a table of 500 rows.
fn start(options: &[&str]) -> (Live, Client) {
    let live = Live::start(options);
    let mut client = live.connect();
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (id INT PRIMARY KEY, k INT, body VARCHAR(4000))").unwrap();
    let values: Vec<String> = (0..500).map(|id| format!("({id}, {id}, REPEAT('x', 4000))")).collect();
    client.query(&format!("INSERT INTO d.t VALUES {}", values.join(","))).unwrap();
    (live, client)
}

/// A statement on a connection and thread of its own.
fn run(live: &Live, setup: &str, sql: &str) -> (u32, std::thread::JoinHandle<Answer>) {
    let mut client = live.connect();
    client.query(setup).unwrap();
    let (id, sql) = (client.greeting().connection_id, sql.to_owned());
    (id, std::thread::spawn(move || client.query(&sql).map(|result| result.to_text())))
}

#[test]
fn statements_beyond_the_limit_queue_and_can_be_killed_time_out_or_be_let_in() {
    let (live, mut observer) = start(&["--thread_concurrency=1"]);
    let (long, long_running) = run(&live, "SET NAMES utf8mb4", ENDLESS);
    wait_until("the long statement", || status(&mut observer, "Threads_inside") == 1);
    let (killed, killed_waits) = run(&live, "SET NAMES utf8mb4", "SELECT k FROM d.t WHERE id = 1");
    wait_until("the queue", || state(&mut observer, killed) == "Waiting for thread_concurrency");
    assert_eq!((status(&mut observer, "Threads_inside"), status(&mut observer, "Threads_queued")), (1, 1));
    observer.query(&format!("KILL QUERY {killed}")).unwrap();
    assert_eq!(code(killed_waits.join().unwrap()), 1317);

    let short = "SET innodb_lock_wait_timeout = 1";
    assert_eq!(code(run(&live, short, "UPDATE d.t SET k = 0 WHERE id = 1").1.join().unwrap()), 1205);
    assert_eq!(code(run(&live, short, "SELECT k FROM d.t WHERE id = 1").1.join().unwrap()), 1205);
    assert_eq!(status(&mut observer, "Threads_queued"), 0);

    let (second, second_waits) = run(&live, "SET NAMES utf8mb4", "SELECT k FROM d.t WHERE id = 2");
    let (_, third_waits) = run(&live, "SET NAMES utf8mb4", "UPDATE d.t SET k = k + 1 WHERE id = 3");
    wait_until("both in the queue", || status(&mut observer, "Threads_queued") == 2);
    assert_eq!(state(&mut observer, second), "Waiting for thread_concurrency");
    observer.query("SET GLOBAL innodb_thread_concurrency = 2").unwrap();
    assert_eq!(second_waits.join().unwrap().unwrap(), [["2"]]);
    third_waits.join().unwrap().unwrap();
    observer.query(&format!("KILL QUERY {long}")).unwrap();
    assert_eq!(code(long_running.join().unwrap()), 1317);
    wait_until("the end", || status(&mut observer, "Threads_inside") == 0);
    assert_eq!(rows(&mut observer, "SELECT k FROM d.t WHERE id = 3"), [["4"]]);
    assert_eq!(
        rows(&mut observer, "SELECT @@thread_concurrency, @@innodb_concurrency_tickets"),
        [["2", "500"]]
    );
}

#[test]
fn who_waits_for_a_row_or_for_a_client_keeps_nobody_out() {
    let (live, mut observer) = start(&["--thread_concurrency=1"]);
    let mut holder = live.connect();
    holder.query("BEGIN").unwrap();
    holder.query("UPDATE d.t SET k = 100 WHERE id = 1").unwrap();
    let (waiter, waits) = run(&live, "SET NAMES utf8mb4", "UPDATE d.t SET k = k + 1 WHERE id = 1");
    wait_until("the wait for the row", || state(&mut observer, waiter) == "Waiting for row lock");
    wait_until("its leave", || status(&mut observer, "Threads_inside") == 0);
    assert_eq!(rows(&mut holder, "SELECT k FROM d.t WHERE id = 1"), [["100"]]);
    holder.query("COMMIT").unwrap();
    waits.join().unwrap().unwrap();
    assert_eq!(rows(&mut observer, "SELECT k FROM d.t WHERE id = 1"), [["101"]]);

    // This client reads nothing of its two gigabytes. The socket takes a part of them.
    let idle = live.connect();
    let id = idle.greeting().connection_id;
    let mut packet = vec![0, 0, 0, 0, 3];
    packet.extend_from_slice(b"SELECT a.body, b.body FROM d.t a, d.t b");
    packet[0] = packet.len() as u8 - 4;
    idle.stream().write_all(&packet).unwrap();
    let running =
        format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND COMMAND = 'Query'");
    wait_until("the statement", || rows(&mut observer, &running) == [["1"]]);
    wait_until("the full socket", || status(&mut observer, "Threads_inside") == 0);
    assert_eq!(rows(&mut observer, "SELECT COUNT(*) FROM d.t"), [["500"]]);
    drop(idle);
}
