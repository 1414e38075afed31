//! A session that waits for a row, as other sessions see it.

use crate::support::{Client, Live, wait_until};

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    client.query(sql).unwrap().to_text()
}

fn status(client: &mut Client, name: &str) -> u64 {
    rows(client, &format!("SHOW GLOBAL STATUS LIKE '{name}'"))[0][1].parse().unwrap()
}

fn state(client: &mut Client, id: u32) -> String {
    rows(client, &format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {id}"))[0][0].clone()
}

fn with_rows(live: &Live) -> Client {
    let mut client = live.connect();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT, b VARCHAR(9), v INT, PRIMARY KEY (a, b))",
        "INSERT INTO d.t VALUES (1, 'one', 10), (2, 'two', 20)",
    ] {
        client.query(sql).unwrap();
    }
    client
}

#[test]
fn a_wait_for_a_row_shows_in_the_process_list_the_counters_and_the_list_of_transactions() {
    let live = Live::start(&[]);
    let mut observer = with_rows(&live);
    let (mut holder, mut waiter) = (live.connect(), live.connect());
    let (holder_id, waiter_id) = (holder.greeting().connection_id, waiter.greeting().connection_id);
    holder.query("BEGIN").unwrap();
    assert_eq!(
        rows(&mut observer, "SELECT * FROM information_schema.INNODB_TRX").len(),
        0,
        "nothing used yet"
    );
    holder.query("UPDATE d.t SET v = 11 WHERE a = 1").unwrap();
    waiter.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").unwrap();
    let update = std::thread::spawn(move || {
        waiter.query("UPDATE d.t SET v = 12 WHERE a = 1").unwrap();
        waiter
    });
    wait_until("the wait", || state(&mut observer, waiter_id) == "Waiting for row lock");
    assert_eq!(state(&mut observer, holder_id), "");
    wait_until("who it waits for", || status(&mut observer, "Innodb_row_lock_current_waits") == 1);
    assert_eq!(status(&mut observer, "Innodb_row_lock_waits"), 1);
    let columns = "trx_mysql_thread_id, trx_state, trx_rows_modified, trx_isolation_level, trx_query, \
                   trx_started <= NOW(), trx_requested_lock_id IS NULL, trx_wait_started IS NULL";
    let sql = format!("SELECT {columns} FROM information_schema.INNODB_TRX ORDER BY trx_mysql_thread_id");
    let transactions = rows(&mut observer, &sql);
    let (holder_id, waiter_id) = (holder_id.to_string(), waiter_id.to_string());
    assert_eq!(transactions[0], [&holder_id, "RUNNING", "1", "REPEATABLE READ", "NULL", "1", "1", "1"]);
    let update_sql = "UPDATE d.t SET v = 12 WHERE a = 1";
    assert_eq!(transactions[1], [&waiter_id, "LOCK WAIT", "0", "READ COMMITTED", update_sql, "1", "0", "0"]);
    let sql = "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, l.lock_mode, l.lock_table, l.lock_index \
               FROM information_schema.INNODB_LOCK_WAITS w \
               JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
               JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id \
               JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.blocking_lock_id";
    assert_eq!(rows(&mut observer, sql), [[&waiter_id, &holder_id, "X", "`d`.`t`", "PRIMARY"]]);

    holder.query("COMMIT").unwrap();
    drop(update.join().unwrap());
    assert_eq!(status(&mut observer, "Innodb_row_lock_current_waits"), 0);
    let time = status(&mut observer, "Innodb_row_lock_time");
    assert_eq!(status(&mut observer, "Innodb_row_lock_time_max"), time, "there was one wait");
    assert_eq!(status(&mut observer, "Innodb_row_lock_time_avg"), time);
    assert_eq!(rows(&mut observer, "SELECT * FROM information_schema.INNODB_TRX").len(), 0);
    assert_eq!(rows(&mut observer, "SELECT v FROM d.t WHERE a = 1"), [["12"]]);
}

#[test]
fn transactions_that_only_read_or_lock_are_listed_and_a_deadlock_is_counted() {
    let live = Live::start(&[]);
    let mut observer = with_rows(&live);
    let (mut first, mut second) = (live.connect(), live.connect());
    first.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY").unwrap();
    second.query("BEGIN").unwrap();
    second.query("SELECT v FROM d.t FOR UPDATE").unwrap();
    let columns =
        "trx_id > 0, trx_state, trx_tables_locked, trx_rows_locked, trx_rows_modified, trx_is_read_only";
    let sql = format!("SELECT {columns} FROM information_schema.INNODB_TRX ORDER BY trx_mysql_thread_id");
    let listed = rows(&mut observer, &sql);
    assert_eq!(listed, [["0", "RUNNING", "0", "0", "0", "1"], ["1", "RUNNING", "1", "2", "0", "0"]]);
    first.query("COMMIT").unwrap();
    second.query("ROLLBACK").unwrap();
    assert_eq!(rows(&mut observer, &sql).len(), 0);

    first.query("BEGIN").unwrap();
    second.query("BEGIN").unwrap();
    first.query("UPDATE d.t SET v = 0 WHERE a = 1").unwrap();
    second.query("UPDATE d.t SET v = 0 WHERE a = 2").unwrap();
    let crossing = std::thread::spawn(move || {
        let result = first.query("UPDATE d.t SET v = 0 WHERE a = 2").map(drop);
        let _ = first.query("ROLLBACK");
        result.is_ok()
    });
    wait_until("the wait", || status(&mut observer, "Innodb_row_lock_current_waits") == 1);
    let closed = second.query("UPDATE d.t SET v = 0 WHERE a = 1").is_ok();
    second.query("ROLLBACK").unwrap();
    assert!(closed != crossing.join().unwrap(), "one of two gives way");
    assert_eq!(status(&mut observer, "Innodb_deadlocks"), 1);
}
