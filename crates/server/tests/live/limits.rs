//! Limits of time and number that an administrator sets.

use crate::support::Live;
use std::time::Duration;

#[test]
fn a_statement_ends_when_its_time_is_over() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9)",
        "SET max_statement_time = 0.05",
    ] {
        client.query(sql).unwrap();
    }
    let endless =
        "SELECT COUNT(*) FROM d.t a, d.t b, d.t c, d.t d, d.t e, d.t f, d.t g, d.t h, d.t i, d.t j, d.t k";
    let prepared = client.prepare(endless).unwrap();
    for _ in 0..2 {
        let error = client.query(endless).unwrap_err();
        assert_eq!(error.code(), Some(1969), "{error}");
        assert!(error.to_string().contains("(max_statement_time exceeded)"), "{error}");
        assert_eq!(client.execute(prepared.id, &[]).unwrap_err().code(), Some(1969));
        assert_eq!(client.query("SELECT SLEEP(30)").unwrap_err().code(), Some(1969));
        // The limit is each statement's own.
        assert_eq!(client.query("SELECT v FROM d.t WHERE id = 3").unwrap().to_text(), [["3"]]);
    }
    // Nothing of an ended change is left.
    let change = format!("UPDATE d.t SET v = 0 WHERE id < 9 OR ({endless}) > 0");
    assert_eq!(client.query(&change).unwrap_err().code(), Some(1969));
    assert_eq!(client.query("SELECT SUM(v) FROM d.t").unwrap().to_text(), [["45"]]);
    // A wait for a row ends too.
    let mut holder = live.connect();
    holder.query("BEGIN").unwrap();
    holder.query("UPDATE d.t SET v = 10 WHERE id = 1").unwrap();
    assert_eq!(client.query("UPDATE d.t SET v = 11 WHERE id = 1").unwrap_err().code(), Some(1969));
    holder.query("ROLLBACK").unwrap();
    // KILL QUERY is another error, with a limit and without one.
    for limit in ["30", "0"] {
        client.query(&format!("SET max_statement_time = {limit}")).unwrap();
        let id = client.query("SELECT CONNECTION_ID()").unwrap().to_text().concat().concat();
        let killer = std::thread::spawn({
            let mut other = live.connect();
            move || {
                std::thread::sleep(Duration::from_millis(200));
                other.query(&format!("KILL QUERY {id}")).unwrap();
            }
        });
        assert_eq!(client.query(endless).unwrap_err().code(), Some(1317));
        killer.join().unwrap();
    }
    // A global limit is for the sessions that begin behind it.
    client.query("SET GLOBAL max_statement_time = 0.05").unwrap();
    assert_eq!(live.connect().query(endless).unwrap_err().code(), Some(1969));
    let error = client.query("SET max_statement_time = 'x'").unwrap_err();
    assert_eq!(error.code(), Some(1232), "{error}");
}
