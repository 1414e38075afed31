//! Packets over 16 MB, both ways, text and prepared.

use crate::support::Live;
use wire::WireValue;
use wire::client::Value;

const BYTES: usize = 20_000_000;

#[test]
fn twenty_megabytes_go_in_and_come_back() {
    let live = Live::start(&["--max_allowed_packet=64M", "--key_buffer_size=256M"]);
    let mut connection = live.connect();
    connection.query("CREATE DATABASE d").unwrap();
    connection.query("USE d").unwrap();
    connection.query("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB)").unwrap();
    let text: String = (0..BYTES).map(|position| char::from(b'a' + (position % 23) as u8)).collect();
    connection.query(&format!("INSERT INTO t VALUES (1, '{text}')")).unwrap();
    let insert = connection.prepare("INSERT INTO t VALUES (?, ?)").unwrap();
    connection.execute(insert.id, &[WireValue::Int(2), WireValue::Binary(text.as_bytes())]).unwrap();
    // The value is sent in parts. Each part is a packet.
    for part in text.as_bytes().chunks(3_000_000) {
        connection.long_data(insert.id, 1, part).unwrap();
    }
    let values = [WireValue::Int(3), WireValue::Binary(b"")];
    connection.execute_except(insert.id, &values, |param| param == 1).unwrap();

    let select = connection.prepare("SELECT b FROM t WHERE id = ?").unwrap();
    for id in 1..=3 {
        let row = connection.query(&format!("SELECT b FROM t WHERE id = {id}")).unwrap().rows.swap_remove(0);
        assert!(row == [Value::Bytes(text.clone().into_bytes())], "text protocol, row {id}");
        let row = connection.execute(select.id, &[WireValue::Int(id)]).unwrap().rows.swap_remove(0);
        assert!(row == [Value::Bytes(text.clone().into_bytes())], "binary protocol, row {id}");
    }
}

#[test]
fn long_data_over_the_limit_is_told_by_the_execution() {
    let live = Live::start(&["--max_allowed_packet=1M"]);
    let mut connection = live.connect();
    let select = connection.prepare("SELECT LENGTH(?)").unwrap();
    for _ in 0..3 {
        connection.long_data(select.id, 0, &[b'x'; 500_000]).unwrap();
    }
    let error = connection.execute_except(select.id, &[WireValue::Text(b"")], |_| true).unwrap_err();
    assert_eq!(error.code(), Some(1105), "{error}");
    // It is forgotten with that.
    connection.long_data(select.id, 0, &[b'x'; 1000]).unwrap();
    let rows = connection.execute_except(select.id, &[WireValue::Text(b"")], |_| true).unwrap();
    assert_eq!(rows.to_text(), [["1000"]]);
    connection.long_data(select.id, 5, b"x").unwrap();
    let error = connection.execute(select.id, &[WireValue::Text(b"abc")]).unwrap_err();
    assert_eq!(error.code(), Some(1210), "{error}");
}

#[test]
fn a_prepared_statement_with_more_columns_than_its_answer_can_count_is_refused() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    let error = client.prepare(&format!("SELECT 1{}", ",1".repeat(65_536))).map(drop).unwrap_err();
    assert_eq!(error.code(), Some(1117), "{error}");
    client.ping().unwrap();
}
