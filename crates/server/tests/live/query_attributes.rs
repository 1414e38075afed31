//! Query attributes, as MySQL's clients send them.

use crate::support::{Live, Raw};
use wire::client::ConnectOptions;
use wire::command::com;
use wire::constants::{capability, kind};
use wire::put;

fn typed(out: &mut Vec<u8>, kind: u8, name: &str) {
    out.extend([kind, 0]);
    put::lenenc_bytes(out, name.as_bytes());
}

/// The first row of the answer, as it was sent.
fn row(raw: &mut Raw, payload: &[u8]) -> Vec<u8> {
    let (packets, _) = raw.answer(payload);
    // The number of columns, their definitions, the rows, the end.
    let columns = usize::from(packets[0][0]);
    packets.get(columns + 1).unwrap_or_else(|| panic!("{packets:?}")).clone()
}

fn raw(live: &Live) -> Raw {
    let defaults = ConnectOptions::default();
    let capabilities = defaults.capabilities | capability::QUERY_ATTRIBUTES;
    let connection = live.connect_with(&ConnectOptions { capabilities, ..defaults }).unwrap();
    assert_ne!(connection.capabilities() & capability::QUERY_ATTRIBUTES, 0);
    Raw::of(connection)
}

const SELECT: &[u8] = b"SELECT MYSQL_QUERY_ATTRIBUTE_STRING('trace'), MYSQL_QUERY_ATTRIBUTE_STRING('n'), 'x'";

#[test]
fn they_hold_for_their_statement() {
    let live = Live::start(&["--slow-query-log", "--long-query-time=0"]);
    let mut raw = raw(&live);
    let mut with = vec![com::QUERY, 2, 1, 0, 1];
    typed(&mut with, kind::VAR_STRING, "trace");
    typed(&mut with, kind::LONGLONG, "n");
    put::lenenc_bytes(&mut with, b"abc");
    with.extend_from_slice(&7u64.to_le_bytes());
    with.extend_from_slice(SELECT);
    assert_eq!(row(&mut raw, &with), b"\x03abc\x017\x01x");
    let without = [&[com::QUERY, 0, 1], SELECT].concat();
    assert_eq!(row(&mut raw, &without), b"\xfb\xfb\x01x");
    // The text goes to the slow log without them.
    let log = std::fs::read_dir(live.instance.engine().dir()).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.to_str().unwrap().ends_with("slow.log")).unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.matches(std::str::from_utf8(SELECT).unwrap()).count(), 2, "{log}");
}

#[test]
fn they_stand_behind_the_parameters_of_an_execution() {
    let live = Live::start(&[]);
    let mut raw = raw(&live);
    let text = b"SELECT ?, MYSQL_QUERY_ATTRIBUTE_STRING('trace')";
    let (prepared, _) = raw.answer(&[&[com::STMT_PREPARE], &text[..]].concat());
    assert_eq!(prepared[0][0], 0);
    let head = [&[com::STMT_EXECUTE], &prepared[0][1..5], &[0, 1, 0, 0, 0]].concat();
    let mut with = [&head[..], &[2, 0, 1]].concat();
    typed(&mut with, kind::LONGLONG, "");
    typed(&mut with, kind::VAR_STRING, "trace");
    with.extend_from_slice(&5u64.to_le_bytes());
    put::lenenc_bytes(&mut with, b"abc");
    let value = [&[0, 0], &5u64.to_le_bytes()[..]].concat();
    assert_eq!(row(&mut raw, &with), [&value[..], b"\x03abc"].concat());
    // The next execution has the types of the parameter, and no attributes.
    let without = [&head[..], &[1, 0, 0], &5u64.to_le_bytes()].concat();
    let mut null = value.clone();
    null[1] = 0b1000;
    assert_eq!(row(&mut raw, &without), null);
}

#[test]
fn those_that_make_no_sense_end_the_connection() {
    let live = Live::start(&[]);
    for payload in [&[com::QUERY][..], &[com::QUERY, 1, 1], &[com::QUERY, 0, 2], &[com::QUERY, 254, 255, 255]]
    {
        let (packets, is_open) = raw(&live).answer(payload);
        assert_eq!((packets[0][0], is_open), (0xFF, false), "{payload:?}");
        assert_eq!(u16::from_le_bytes([packets[0][1], packets[0][2]]), 1835);
    }
    assert_eq!(live.connect().query("SELECT 1").unwrap().to_text(), [["1"]]);
}
