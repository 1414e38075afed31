//! Limits of time and number that an administrator sets.

use crate::support::Live;
use std::time::Duration;
use wire::WireValue;
use wire::client::Value;

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

#[test]
fn all_sessions_together_keep_so_many_prepared_statements() {
    let live = Live::start(&["--max_prepared_stmt_count=5"]);
    let (mut first, mut second) = (live.connect(), live.connect());
    let kept: Vec<u32> = (0..3).map(|_| first.prepare("SELECT 1").unwrap().id).collect();
    second.prepare("SELECT ?").unwrap();
    second.query("PREPARE s FROM 'SELECT 2'").unwrap();
    let count = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
    assert_eq!(first.query(count).unwrap().to_text(), [["Prepared_stmt_count", "5"]]);
    for client in [&mut first, &mut second] {
        let error = client.prepare("SELECT 3").map(drop).unwrap_err();
        assert_eq!(error.code(), Some(1461), "{error}");
        assert_eq!(client.query("PREPARE t FROM 'SELECT 2'").unwrap_err().code(), Some(1461));
    }
    // A statement that is closed, replaced, wrong or of a session that ends makes room.
    first.close_statement(kept[0]).unwrap();
    assert_eq!(first.prepare("SELECT nothing").map(drop).unwrap_err().code(), Some(1054));
    second.query("PREPARE s FROM 'SELECT 3'").unwrap();
    second.prepare("SELECT 4").unwrap();
    assert_eq!(first.prepare("SELECT 5").map(drop).unwrap_err().code(), Some(1461));
    second.command(wire::command::com::RESET_CONNECTION, b"").unwrap();
    assert_eq!(first.query(count).unwrap().to_text(), [["Prepared_stmt_count", "2"]]);
    drop(first);
    crate::support::wait_until("the end of the first session", || {
        second.query(count).unwrap().to_text()[0][1] == "0"
    });
    (0..5).for_each(|_| drop(second.prepare("SELECT 6").unwrap()));
    assert_eq!(second.prepare("SELECT 7").map(drop).unwrap_err().code(), Some(1461));
    second.query("SET GLOBAL max_prepared_stmt_count = 6").unwrap();
    second.prepare("SELECT 7").unwrap();
}

#[test]
fn parameters_are_in_the_character_set_of_the_client() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20), b VARBINARY(20))").unwrap();
    client.query("SET NAMES latin1").unwrap();
    let insert = client.prepare("INSERT INTO d.t VALUES (?, ?, ?)").unwrap();
    let text = WireValue::Text(b"gr\xfcn");
    client.execute(insert.id, &[WireValue::Int(1), text, WireValue::Binary(b"\xfc")]).unwrap();
    client.execute(insert.id, &[WireValue::Int(2), WireValue::Text(b""), WireValue::Null]).unwrap();
    let find = client.prepare("SELECT id, v FROM d.t WHERE v = ?").unwrap();
    let rows = client.execute(find.id, &[text]).unwrap().rows;
    assert_eq!(rows, [[Value::Int(1), Value::Bytes(b"gr\xfcn".to_vec())]]);
    client.long_data(find.id, 0, b"gr\xfc").unwrap();
    client.long_data(find.id, 0, b"n").unwrap();
    assert_eq!(client.execute_except(find.id, &[text], |param| param == 0).unwrap().rows.len(), 1);
    client.query("SET NAMES utf8mb4").unwrap();
    assert_eq!(
        client.query("SELECT HEX(v), HEX(b) FROM d.t WHERE id = 1").unwrap().to_text(),
        [["6772C3BC6E", "FC"]]
    );
    let rows = client.execute(find.id, &[WireValue::Text("grün".as_bytes())]).unwrap().rows;
    assert_eq!(rows, [[Value::Int(1), Value::Bytes("grün".as_bytes().to_vec())]]);
}

#[test]
fn the_default_name_of_the_slow_log_comes_back() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    let name = |client: &mut crate::support::Client| {
        client.query("SELECT @@slow_query_log_file").unwrap().to_text().concat().concat()
    };
    let before = name(&mut client);
    assert!(before.ends_with("-slow.log"), "{before}");
    client.query("SET GLOBAL slow_query_log_file = 'other.log'").unwrap();
    assert_eq!(name(&mut client), "other.log");
    client.query("SET GLOBAL slow_query_log_file = DEFAULT").unwrap();
    assert_eq!(name(&mut client), before);
}

#[test]
fn functions_give_values_up_to_max_allowed_packet_whatever_it_is() {
    for (option, fits, too_long) in
        [("--max_allowed_packet=64K", 60_000, 70_000), ("--max_allowed_packet=40M", 39_000_000, 45_000_000)]
    {
        let live = Live::start(&[option]);
        let mut client = live.connect();
        for value in [
            "REPEAT('a', {})",
            "SPACE({})",
            "CONCAT(REPEAT('a', {} / 2), REPEAT('b', {} / 2))",
            "CONCAT_WS(',', REPEAT('a', {} / 2), REPEAT('b', {} / 2))",
            "INSERT(REPEAT('a', {} / 2), 5, 0, REPEAT('b', {} / 2))",
            "REPLACE(REPEAT('a', {} / 10), 'a', '0123456789')",
            "LPAD('a', {} / 4, 'b')",
            "RPAD('a', {} / 4, 'b')",
            "QUOTE(REPEAT('''', {} / 2 - 10))",
            "HEX(REPEAT('a', {} / 2))",
        ] {
            let length = |bytes: u64| format!("SELECT LENGTH({})", value.replace("{}", &bytes.to_string()));
            let given = client.query(&length(fits)).unwrap();
            assert!(given.warnings == 0 && given.to_text()[0][0] != "NULL", "{option} {value}");
            let refused = client.query(&length(too_long)).unwrap();
            assert_eq!((refused.warnings, refused.to_text()[0][0].as_str()), (1, "NULL"), "{option} {value}");
            let warning = client.query("SHOW WARNINGS").unwrap().to_text();
            assert_eq!(warning[0][1], "1301", "{option} {value}: {warning:?}");
        }
    }
}
