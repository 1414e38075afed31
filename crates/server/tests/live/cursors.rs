//! Cursors: rows that are kept until the client fetches them.

use crate::support::{Live, Raw, wait_until};
use wire::command::{LAST_PREPARED, com};
use wire::constants::status;
use wire::response::{OkFields, ServerError};

/// A client that has prepared statement number 1, `SELECT id, pad FROM d.t WHERE id < ?` over 3,000 rows of
/// more than a kilobyte.
fn with_rows(live: &Live) -> Raw {
    let mut client = live.connect();
    client.query("CREATE DATABASE IF NOT EXISTS d").unwrap();
    client.query("CREATE TABLE IF NOT EXISTS d.t (id INT PRIMARY KEY, pad VARCHAR(2000))").unwrap();
    let rows: Vec<String> = (0..3000).map(|id| format!("({id}, '{}')", "x".repeat(1000 + id % 7))).collect();
    client.query(&format!("REPLACE INTO d.t VALUES {}", rows.join(","))).unwrap();
    assert_eq!(client.prepare("SELECT id, pad FROM d.t WHERE id < ?").unwrap().id, 1);
    Raw::of(client)
}

/// COM_STMT_EXECUTE with a whole number as the only parameter.
fn execute(statement: u32, cursor: bool, param: i64) -> Vec<u8> {
    let mut payload = vec![com::STMT_EXECUTE];
    payload.extend_from_slice(&statement.to_le_bytes());
    payload.push(cursor.into());
    payload.extend_from_slice(&[1, 0, 0, 0, 0, 1, 8, 0]);
    payload.extend_from_slice(&param.to_le_bytes());
    payload
}

fn fetch(statement: u32, rows: u32) -> Vec<u8> {
    let mut payload = vec![com::STMT_FETCH];
    payload.extend_from_slice(&statement.to_le_bytes());
    payload.extend_from_slice(&rows.to_le_bytes());
    payload
}

fn status_of(packet: &[u8]) -> u16 {
    OkFields::parse(packet).unwrap().status & (status::CURSOR_EXISTS | status::LAST_ROW_SENT)
}

fn code(packets: &[Vec<u8>]) -> u16 {
    ServerError::parse(packets.last().unwrap()).unwrap().code
}

/// The numbers of the rows, which begin with a byte of nought, one of nulls, and the number.
fn ids(rows: &[Vec<u8>]) -> Vec<u32> {
    rows.iter().map(|row| u32::from_le_bytes(row[2..6].try_into().unwrap())).collect()
}

fn memory_used(live: &Live) -> u64 {
    let row = live.connect().query("SHOW GLOBAL STATUS LIKE 'Memory_used'").unwrap().to_text();
    row[0][1].parse().unwrap()
}

#[test]
fn rows_are_kept_in_a_file_and_given_back_in_their_order() {
    for options in [&["--tmp_memory_table_size=16384"][..], &[]] {
        let live = Live::start(options);
        let mut raw = with_rows(&live);
        let before = memory_used(&live);
        let (packets, _) = raw.answer(&execute(1, true, 3000));
        assert_eq!(packets.len(), 4, "the number of columns, two definitions, and the end");
        assert_eq!(status_of(&packets[3]), status::CURSOR_EXISTS);
        assert!(options.is_empty() == (memory_used(&live) > before + 2_000_000));
        let mut seen = Vec::new();
        // Some fetches have an answer of several writes.
        for (rows, expected) in [(1, 1), (0, 0), (999, 999), (2000, 2000)] {
            let (packets, _) = raw.answer(&fetch(1, rows));
            let (end, rows) = packets.split_last().unwrap();
            assert_eq!((rows.len(), status_of(end)), (expected, status::CURSOR_EXISTS));
            seen.extend(ids(rows));
        }
        assert_eq!(seen, (0..3000).collect::<Vec<u32>>());
        let (packets, _) = raw.answer(&fetch(1, u32::MAX));
        assert_eq!((packets.len(), status_of(&packets[0])), (1, status::LAST_ROW_SENT));
        assert_eq!(code(&raw.answer(&fetch(1, 1)).0), 1421);
        assert_eq!(memory_used(&live), before);
    }
}

#[test]
fn a_cursor_ends_with_its_statement_and_with_the_next_execution() {
    let live = Live::start(&[]);
    let mut raw = with_rows(&live);
    let before = memory_used(&live);
    let closers: [Vec<u8>; 4] = [
        execute(LAST_PREPARED, false, 1),
        [&[com::STMT_RESET][..], &LAST_PREPARED.to_le_bytes()].concat(),
        vec![com::RESET_CONNECTION],
        b"\x11root\0\0\0".to_vec(),
    ];
    for closer in closers {
        raw.answer(&[&[com::STMT_PREPARE][..], b"SELECT id, pad FROM d.t WHERE id < ?"].concat());
        raw.answer(&execute(LAST_PREPARED, true, 3000));
        let (packets, _) = raw.answer(&fetch(LAST_PREPARED, 2));
        assert_eq!(ids(&packets[..2]), [0, 1]);
        raw.answer(&closer);
        let code = code(&raw.answer(&fetch(LAST_PREPARED, 1)).0);
        assert!(matches!(code, 1421 | 1243), "{code}");
        wait_until("the memory is given back", || memory_used(&live) <= before);
    }
    raw.answer(&[&[com::STMT_PREPARE][..], b"SELECT id, pad FROM d.t WHERE id < ?"].concat());
    raw.answer(&execute(LAST_PREPARED, true, 3000));
    drop(raw);
    wait_until("the memory is given back", || memory_used(&live) <= before);
}

#[test]
fn a_client_may_use_a_statement_before_it_knows_its_number() {
    let live = Live::start(&[]);
    let mut raw = Raw::of(live.connect());
    assert_eq!(code(&raw.answer(&execute(LAST_PREPARED, false, 1)).0), 1243);
    let prepare = |text: &[u8]| [&[com::STMT_PREPARE][..], text].concat();
    raw.answer(&prepare(b"SELECT ? + 1"));
    let row = |packets: Vec<Vec<u8>>| packets[2][2];
    assert_eq!(row(raw.answer(&execute(LAST_PREPARED, false, 4)).0), 5);
    raw.answer(&prepare(b"SELECT ? + 2"));
    assert_eq!(row(raw.answer(&execute(LAST_PREPARED, false, 4)).0), 6);
    // A statement that cannot be prepared is the last one all the same.
    raw.answer(&prepare(b"SELECT oops oops oops"));
    assert_eq!(code(&raw.answer(&execute(LAST_PREPARED, false, 4)).0), 1243);
    assert_eq!(row(raw.answer(&execute(1, false, 4)).0), 5);
    raw.answer(&prepare(b"SELECT ? + 3"));
    raw.answer(&[&[com::STMT_CLOSE][..], &LAST_PREPARED.to_le_bytes()].concat());
    assert_eq!(code(&raw.answer(&execute(LAST_PREPARED, false, 4)).0), 1243);
    assert_eq!(row(raw.answer(&execute(2, false, 4)).0), 6);
}

#[test]
fn a_limit_of_memory_ends_the_statement_that_opens_the_cursor() {
    let live = Live::start(&["--max_session_mem_used=1000000"]);
    let mut raw = with_rows(&live);
    let (packets, _) = raw.answer(&execute(1, true, 3000));
    assert_eq!((packets.len(), code(&packets)), (1, 1290));
    assert_eq!(code(&raw.answer(&fetch(1, 1)).0), 1421);
    assert_eq!(raw.answer(&execute(1, true, 10)).0.len(), 4);
}
