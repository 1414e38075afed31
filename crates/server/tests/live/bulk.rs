//! COM_STMT_BULK_EXECUTE: statements with many rows of parameters.

use crate::support::{Client, Live, Raw};
use wire::client::ConnectOptions;
use wire::command::{BULK_HAS_TYPES, com};
use wire::constants::{capability, kind};
use wire::response::{OkFields, ServerError};

/// A client that has table `d.t (id INT PRIMARY KEY, v VARCHAR(20))`, and asks for rows of parameters.
fn connect(live: &Live, also: &str) -> Client {
    let mut options = ConnectOptions::default();
    options.capabilities &= !capability::LONG_PASSWORD;
    options.capabilities |= capability::STMT_BULK_OPERATIONS;
    let mut client = live.connect_with(&options).unwrap();
    for statement in
        ["CREATE DATABASE IF NOT EXISTS d", "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))", also]
    {
        client.query(statement).unwrap();
    }
    client
}

/// The packet for statement 1 with an INT and a text in each row.
fn packet(flags: u16, rows: impl Iterator<Item = (i32, &'static [u8])>) -> Vec<u8> {
    let mut payload = vec![com::STMT_BULK_EXECUTE, 1, 0, 0, 0];
    payload.extend_from_slice(&flags.to_le_bytes());
    if flags & BULK_HAS_TYPES != 0 {
        payload.extend_from_slice(&[kind::LONG, 0, kind::VAR_STRING, 0]);
    }
    for (id, text) in rows {
        payload.push(0);
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(&[0, text.len() as u8]);
        payload.extend_from_slice(text);
    }
    payload
}

fn rows_of(live: &Live) -> Vec<Vec<String>> {
    live.connect().query("SELECT COUNT(*), MIN(v), MAX(id) FROM d.t").unwrap().to_text()
}

fn error(packets: &[Vec<u8>]) -> u16 {
    ServerError::parse(&packets[0]).unwrap().code
}

#[test]
fn all_rows_of_an_insert_are_kept_or_none() {
    // The second form is no plain INSERT.
    for insert in ["INSERT INTO d.t VALUES (?, ?)", "INSERT INTO d.t VALUES (? + 0, CONCAT(?, ''))"] {
        for in_transaction in [false, true] {
            let live = Live::start(&[]);
            let mut client = connect(&live, "INSERT INTO d.t VALUES (50000, 'there')");
            assert_eq!(client.prepare(insert).unwrap().id, 1);
            if in_transaction {
                client.query("BEGIN").unwrap();
                client.query("INSERT INTO d.t VALUES (60000, 'before')").unwrap();
            }
            let mut raw = Raw::of(client);
            let many = || (0..40_000).map(|id| (id, &b"twelve bytes"[..]));
            let colliding = many().chain([(50_000, &b"again"[..])]);
            assert_eq!(error(&raw.answer(&packet(BULK_HAS_TYPES, colliding)).0), 1062);
            raw.answer(b"\x03COMMIT");
            let before = if in_transaction { 2 } else { 1 };
            assert_eq!(rows_of(&live)[0][0], before.to_string(), "{insert}");

            // The types are those of the last execution.
            let (packets, _) = raw.answer(&packet(0, many()));
            assert_eq!(OkFields::parse(&packets[0]).unwrap().affected_rows, 40_000);
            assert_eq!(rows_of(&live)[0][0], (40_000 + before).to_string());
        }
    }
}

#[test]
fn texts_of_the_client_are_converted() {
    let live = Live::start(&[]);
    let mut client = connect(&live, "SET NAMES latin1");
    client.prepare("INSERT INTO d.t VALUES (?, ?)").unwrap();
    Raw::of(client).answer(&packet(BULK_HAS_TYPES, [(1, &b"gr\xfcn"[..]), (2, b"rot")].into_iter()));
    assert_eq!(rows_of(&live), [["2", "grün", "2"]]);
}

#[test]
fn what_is_no_row_of_parameters_is_refused() {
    let live = Live::start(&[]);
    let with_statement = || {
        let mut client = connect(&live, "DROP TABLE d.t");
        client.query("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))").unwrap();
        client.prepare("INSERT INTO d.t VALUES (?, ?)").unwrap();
        client.query("DROP TABLE d.t").unwrap();
        Raw::of(client)
    };
    let one = || [(1, &b"one"[..])].into_iter();
    for flags in [64, 64 | BULK_HAS_TYPES, 1, 0x8000] {
        assert_eq!(error(&with_statement().answer(&packet(flags, one())).0), 1295, "{flags}");
    }
    // Before any execution there are no types.
    let mut bad_indicator = packet(BULK_HAS_TYPES, one());
    bad_indicator[11] = 4;
    for malformed in [packet(0, one()), packet(BULK_HAS_TYPES, std::iter::empty()), bad_indicator] {
        let (packets, is_open) = with_statement().answer(&malformed);
        assert!(error(&packets) == 1835 && !is_open, "{malformed:x?}");
    }
    let mut unknown = packet(BULK_HAS_TYPES, one());
    unknown[1] = 9;
    assert_eq!(error(&with_statement().answer(&unknown).0), 1243);
    let mut client = live.connect();
    client.query("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))").unwrap();
    client.prepare("INSERT INTO d.t VALUES (?, ?)").unwrap();
    let (packets, _) = Raw::of(client).answer(&packet(BULK_HAS_TYPES, one()));
    assert_eq!(error(&packets), 1295, "the client did not ask for rows of parameters");
}

#[test]
fn the_audit_log_has_it_as_one_statement() {
    let live = Live::start(&["--server-audit-logging", "--server-audit-events=QUERY,TABLE"]);
    let mut client = connect(&live, "DO 1");
    assert_eq!(client.prepare("INSERT INTO d.t VALUES (?, ?)").unwrap().id, 1);
    let (packets, _) = Raw::of(client).answer(&packet(BULK_HAS_TYPES, (0..3).map(|id| (id, &b"a"[..]))));
    assert_eq!(OkFields::parse(&packets[0]).unwrap().affected_rows, 3);
    let log = std::fs::read_to_string(live.instance.engine().dir().join("server_audit.log")).unwrap();
    let lines: Vec<&str> =
        log.lines().rev().take(2).map(|line| line.splitn(7, ',').nth(6).unwrap()).collect();
    assert_eq!(lines, ["QUERY,,'INSERT INTO d.t VALUES (?, ?)',0", "WRITE,d,t,"]);
}
