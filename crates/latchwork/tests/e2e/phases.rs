//! `query_phases`: what a connection's time goes to.

use crate::support::Latchwork;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wire::client::{ConnectOptions, Connection};
use wire::value::WireValue;

type Client = Connection<UnixStream>;

fn connect(server: &Latchwork) -> Client {
    let stream = UnixStream::connect(&server.socket).unwrap();
    Connection::connect(stream, &ConnectOptions { user: "root".to_string(), ..ConnectOptions::default() })
        .unwrap()
}

/// The session's figures up to the command before this.
fn phases(client: &mut Client) -> HashMap<String, u64> {
    let rows = client.query("SHOW SESSION STATUS LIKE 'Phase_%'").unwrap().to_text();
    rows.into_iter().map(|row| (row[0].clone(), row[1].parse().unwrap())).collect()
}

/// What `work` adds to the figures. The statement that reads them first is counted too.
fn added(client: &mut Client, work: impl FnOnce(&mut Client)) -> HashMap<String, u64> {
    let before = phases(client);
    work(client);
    phases(client).into_iter().map(|(name, value)| (name.clone(), value - before[&name])).collect()
}

fn nanoseconds(figures: &HashMap<String, u64>) -> u64 {
    figures.iter().filter(|(name, _)| name.ends_with("_ns")).map(|(_, value)| value).sum()
}

#[test]
fn phases_add_up_to_the_time_that_went_by_and_are_those_of_what_was_done() {
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--skip-grant-tables"]);
    let mut client = connect(&server);
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (id INT PRIMARY KEY, k INT, c CHAR(20), KEY (k))").unwrap();
    for id in 0..20 {
        client.query(&format!("INSERT INTO d.t VALUES ({id}, {id}, 'text')")).unwrap();
    }
    assert!(phases(&mut client).values().all(|value| *value == 0), "it is off unless asked for");

    client.query("SET GLOBAL query_phases = ON").unwrap();
    // All time belongs to some phase: the sum is at most the time measured around it, and at least the time
    // within.
    let around = Instant::now();
    client.ping().unwrap();
    let mut within = Duration::ZERO;
    let read = added(&mut client, |client| {
        let begin = Instant::now();
        for k in 0..50 {
            client.query(&format!("SELECT c FROM d.t WHERE k IN ({k}, 3, 4)")).unwrap();
        }
        within = begin.elapsed();
        client.ping().unwrap();
    });
    let (sum, around) = (u128::from(nanoseconds(&read)), around.elapsed().as_nanos());
    assert!(sum <= around, "{sum} of {around} ns");
    assert!(sum >= within.as_nanos(), "{sum} of {} ns", within.as_nanos());
    assert_eq!(read["Phase_commands"], 52, "the first reading of the figures, 50 queries, a ping");
    for phase in ["idle", "network", "parse", "plan", "index", "row", "rest"] {
        assert!(read[&format!("Phase_{phase}_ns")] > 0, "{phase}: {read:?}");
    }
    // There may have been waits for latches that interrupted background threads held.
    for phase in ["log", "lock_wait"] {
        assert_eq!(read[&format!("Phase_{phase}_ns")], 0, "{phase}: {read:?}");
    }

    // A prepared statement is not parsed again.
    let prepared = client.prepare("SELECT c FROM d.t WHERE id = ?").unwrap();
    let read = added(&mut client, |client| {
        for id in 0..20 {
            client.execute(prepared.id, &[WireValue::Int(id)]).unwrap();
        }
    });
    let shown = added(&mut client, |_| {});
    assert_eq!(shown["Phase_commands"], 1);
    assert_eq!(read["Phase_parse_ns"], 0, "{read:?}");
    assert_eq!(read["Phase_index_ns"], 0, "there is no secondary index on the way");
    assert!(read["Phase_row_ns"] > 0);

    // A change takes time in the log, and waiting for another session's row counts as a lock wait.
    let changed = added(&mut client, |client| {
        client.query("UPDATE d.t SET k = k + 1 WHERE id = 1").unwrap();
    });
    assert!(changed["Phase_log_ns"] > 0 && changed["Phase_lock_wait_ns"] == 0, "{changed:?}");
    let mut other = connect(&server);
    other.query("BEGIN").unwrap();
    other.query("UPDATE d.t SET k = 0 WHERE id = 1").unwrap();
    client.query("SET innodb_lock_wait_timeout = 1").unwrap();
    let waited = added(&mut client, |client| {
        let error = client.query("UPDATE d.t SET k = 5 WHERE id = 1").unwrap_err();
        assert_eq!(error.code(), Some(1205));
    });
    assert!(waited["Phase_lock_wait_ns"] > 500_000_000, "the wait took a second: {waited:?}");

    // Switched off, the figures stay. Switched on again, the time in between belongs to no phase.
    client.query("SET GLOBAL query_phases = OFF").unwrap();
    let off = added(&mut client, |client| {
        client.query("SELECT c FROM d.t WHERE k = 7").unwrap();
    });
    assert!(off.values().all(|value| *value == 0), "{off:?}");
    let around = Instant::now();
    client.query("SET GLOBAL query_phases = ON").unwrap();
    let on = added(&mut client, |client| client.ping().unwrap());
    assert!(u128::from(nanoseconds(&on)) <= around.elapsed().as_nanos());
}
