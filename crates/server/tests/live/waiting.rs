//! Long statements, idle clients, and clients that do not take their rows.

use crate::support::{Live, wait_until};
use std::io::{Read, Write};
use wire::client::ConnectOptions;
use wire::command::com;
use wire::constants::capability;

/// The commands that the process list shows with `info`.
fn running(live: &Live, info: &str) -> usize {
    let rows = live.connect().query("SHOW FULL PROCESSLIST").unwrap().to_text();
    rows.iter().filter(|row| row[7].contains(info) && !row[7].contains("SHOW")).count()
}

#[test]
fn a_long_statement_is_seen_by_others_and_can_be_ended_without_its_connection() {
    let live = Live::start(&[]);
    let mut sleeper = live.connect();
    let id = sleeper.greeting().connection_id;
    let thread = std::thread::spawn(move || {
        let _ = sleeper.query("SELECT SLEEP(1000)");
        sleeper.ping().unwrap();
    });
    wait_until("the statement in the process list", || running(&live, "SLEEP") == 1);
    live.connect().query(&format!("KILL QUERY {id}")).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_stop_does_not_wait_for_a_long_statement() {
    let live = Live::start(&[]);
    let mut sleeper = live.connect();
    let thread = std::thread::spawn(move || sleeper.query("SELECT SLEEP(1000)").map(drop));
    wait_until("the statement in the process list", || running(&live, "SLEEP") == 1);
    assert!(live.stop());
    let _ = thread.join().unwrap();
}

#[test]
fn an_idle_client_is_closed_after_wait_timeout() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    connection.query("SET wait_timeout = 1").unwrap();
    let mut rest = Vec::new();
    (&mut connection.stream()).read_to_end(&mut rest).unwrap();
    assert_eq!(&rest[4..7], &[0xff, 0x87, 0x04], "error 1159: {rest:?}");
    assert!(connection.ping().is_err());
}

#[test]
fn a_client_that_does_not_take_its_rows_keeps_nobody_else_waiting() {
    let live = Live::start(&["--net_write_timeout=1"]);
    let mut connection = live.connect();
    connection.query("CREATE DATABASE d").unwrap();
    connection.query("CREATE TABLE d.t (id INT PRIMARY KEY, pad CHAR(200))").unwrap();
    let rows: Vec<String> = (0..20_000).map(|id| format!("({id}, 'pad pad pad pad pad pad pad')")).collect();
    connection.query(&format!("INSERT INTO d.t VALUES {}", rows.join(","))).unwrap();
    // Many more rows than a socket's buffer holds.
    let mut lazy = live.connect().into_stream();
    let text = b"SELECT * FROM d.t";
    lazy.write_all(&[text.len() as u8 + 1, 0, 0, 0, com::QUERY]).unwrap();
    lazy.write_all(text).unwrap();
    assert_eq!(connection.query("SELECT COUNT(*) FROM d.t").unwrap().to_text(), [["20000"]]);
    wait_until("the end of the lazy client", || {
        connection.query("SHOW PROCESSLIST").unwrap().rows.len() == 1
    });
    connection.ping().unwrap();
}

#[test]
fn statements_that_are_none_leave_their_connections_usable() {
    let live = Live::start(&["--max_connections=100"]);
    let mut witness = live.connect();
    for text in [
        "",
        ";",
        "\0",
        "SELECT",
        "SELECT (((((",
        "'",
        "`",
        "/*",
        "--",
        "INSERT INTO",
        "\u{feff}",
        "SELECT 1;;",
    ] {
        let mut connection = live.connect_with(&ConnectOptions::default()).unwrap();
        let _ = connection.query_all(text.as_bytes());
        connection.ping().unwrap();
        let _ = connection.prepare(text);
        connection.ping().unwrap();
        connection.quit().unwrap();
        wait_until("its leave", || witness.query("SHOW PROCESSLIST").unwrap().rows.len() == 1);
    }
    witness.ping().unwrap();
    assert!(!live.log().contains("panicked"), "{}", live.log());
}

#[test]
fn an_interactive_client_has_the_time_of_interactive_timeout() {
    let live = Live::start(&["--interactive_timeout=1", "--wait_timeout=1000"]);
    let times = "SELECT @@wait_timeout, @@interactive_timeout";
    assert_eq!(live.connect().query(times).unwrap().to_text(), [["1000", "1"]]);
    let mut options = ConnectOptions::default();
    options.capabilities |= capability::INTERACTIVE;
    let mut connection = live.connect_with(&options).unwrap();
    assert_eq!(connection.query(times).unwrap().to_text(), [["1", "1"]]);
    let mut rest = Vec::new();
    (&mut connection.stream()).read_to_end(&mut rest).unwrap();
    assert_eq!(&rest[4..7], &[0xff, 0x87, 0x04], "error 1159: {rest:?}");
}

#[test]
fn a_packet_that_does_not_end_is_waited_for_as_long_as_net_read_timeout_says() {
    let live = Live::start(&["--net_read_timeout=1"]);
    let aborted = || {
        let rows = live.connect().query("SHOW STATUS LIKE 'Aborted_clients'").unwrap().to_text();
        rows[0][1].parse::<u64>().unwrap()
    };
    let before = aborted();
    let mut stream = live.connect().into_stream();
    stream.write_all(&[20, 0, 0, 0, com::QUERY, b'S', b'E']).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(&rest[4..7], &[0xff, 0x87, 0x04], "error 1159: {rest:?}");
    wait_until("the count of the client", || aborted() > before);
}
