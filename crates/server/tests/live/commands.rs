//! Commands other than statements.

use crate::support::{Client, Live, Raw};
use wire::WireValue;
use wire::client::{ConnectOptions, Value};
use wire::command::com;
use wire::constants::capability;

#[test]
fn statistics_is_a_line_of_text() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (id INT)").unwrap();
    let answer = client.command_raw(com::STATISTICS, b"").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    // The words and their order are MariaDB's, for those who look for them.
    let words: Vec<&str> = answer.split("  ").filter_map(|part| part.split(": ").next()).collect();
    assert_eq!(
        words,
        ["Uptime", "Threads", "Questions", "Slow queries", "Opens", "Open tables", "Queries per second avg"]
    );
    // The tables of accounts are open, too.
    assert!(answer.contains("  Threads: 1  Questions: 2  Slow queries: 0  Opens: 9  "), "{answer}");
}

#[test]
fn a_line_of_figures_goes_to_the_log() {
    let live = Live::start(&[]);
    // Clients read the end of rows here, without rows before it.
    let mut raw = Raw::of(live.connect());
    assert_eq!(raw.answer(&[com::DEBUG]).0[0][0], 0xfe);
    assert!(live.log().contains("status: Uptime: "), "{}", live.log());
}

#[test]
fn the_line_of_figures_wants_super() {
    let live = Live::start(&[]);
    let mut root = live.connect();
    root.query("CREATE USER ann IDENTIFIED BY 'secret'").unwrap();
    root.query("GRANT PROCESS, RELOAD ON *.* TO ann").unwrap();
    let options =
        ConnectOptions { user: "ann".into(), password: "secret".into(), ..ConnectOptions::default() };
    let mut client = live.connect_with(&options).unwrap();
    assert_eq!(client.command(com::DEBUG, b"").unwrap_err().code(), Some(1227));
    client.ping().unwrap();
    assert!(!live.log().contains("status: Uptime: "), "{}", live.log());
    root.query("GRANT SUPER ON *.* TO ann").unwrap();
    let mut raw = Raw::of(live.connect_with(&options).unwrap());
    assert_eq!(raw.answer(&[com::DEBUG]).0[0][0], 0xfe);
}

#[test]
fn refused_commands_say_what_they_are_and_leave_the_connection_open() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    for (command, name) in [(com::REFRESH, "COM_REFRESH"), (com::SHUTDOWN, "COM_SHUTDOWN")] {
        let error = connection.command(command, b"t\0").unwrap_err();
        assert_eq!(error.code(), Some(1235));
        assert!(error.to_string().contains(name), "{error}");
    }
    connection.ping().unwrap();
}

#[test]
fn an_unknown_statement_is_1243() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    assert_eq!(connection.execute(7, &[WireValue::Int(1)]).unwrap_err().code(), Some(1243));
    assert_eq!(connection.command(com::STMT_RESET, &7u32.to_le_bytes()).unwrap_err().code(), Some(1243));
    let fetch = connection.command(com::STMT_FETCH, &[7, 0, 0, 0, 1, 0, 0, 0]).unwrap_err();
    assert_eq!(fetch.code(), Some(1243));
    // These have no answer, even if the statement is unknown.
    connection.long_data(7, 0, b"x").unwrap();
    connection.close_statement(7).unwrap();
    connection.ping().unwrap();
}

#[test]
fn several_statements_at_once_run_only_if_they_were_asked_for() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    assert_eq!(connection.query_all(b"SELECT 1; SELECT 2").unwrap_err().code(), Some(1064));
    connection.command(com::SET_OPTION, &[0, 0]).unwrap();
    let results = connection.query_all(b"SELECT 1; SET @a = 1; SELECT 2, 3").unwrap();
    let rows: Vec<_> = results.iter().map(|result| result.to_text()).collect();
    assert_eq!(rows, [vec![vec!["1"]], vec![], vec![vec!["2", "3"]]]);
    connection.command(com::SET_OPTION, &[1, 0]).unwrap();
    assert_eq!(connection.query_all(b"SELECT 1; SELECT 2").unwrap_err().code(), Some(1064));

    let options = ConnectOptions {
        capabilities: (capability::CLIENT | capability::MULTI_STATEMENTS) & !capability::DEPRECATE_EOF,
        ..ConnectOptions::default()
    };
    let mut connection = live.connect_with(&options).unwrap();
    assert_eq!(connection.query_all(b"SELECT 1; SELECT 2").unwrap().len(), 2);
    // A setting that comes before a result in one packet holds from the next command on.
    connection.query_all(b"SET NAMES latin1; SELECT 1").unwrap();
    let umlaut = "SELECT CONVERT(X'C3A4' USING utf8mb4)";
    let bytes = |byte: &[u8]| [vec![Value::Bytes(byte.to_vec())]];
    assert_eq!(connection.query(umlaut).unwrap().rows, bytes(b"\xe4"));
    connection.query_all(b"SET NAMES utf8mb4; SELECT 1").unwrap();
    assert_eq!(connection.query(umlaut).unwrap().rows, bytes("ä".as_bytes()));
    // A mode holds for the statements behind it, and the status says so from its own answer on.
    let (mode, back) = ("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = ''");
    let several = format!(r"{mode}; SELECT '\'; {back}; SELECT '\\'");
    let results = connection.query_all(several.as_bytes()).unwrap();
    let values: Vec<String> = [1, 3].map(|at: usize| results[at].to_text().concat().concat()).to_vec();
    assert_eq!(values, ["\\", "\\"]);
    let flags: Vec<u16> = results.iter().map(|result| result.status & 512).collect();
    assert_eq!(flags, [512, 512, 0, 0]);
    // The first result arrives, then the error.
    let error = connection.query_all(b"SELECT 1; SELECT nothing").unwrap_err();
    assert_eq!(error.code(), Some(1054), "{error}");
    connection.ping().unwrap();
}

#[test]
fn the_status_tells_whether_backslashes_escape() {
    let live = Live::start(&[]);
    for capabilities in [capability::CLIENT, capability::CLIENT & !capability::DEPRECATE_EOF] {
        let options = ConnectOptions { capabilities, ..ConnectOptions::default() };
        let mut connection = live.connect_with(&options).unwrap();
        assert_eq!(connection.query("SELECT 1").unwrap().status & 512, 0);
        let prepared = connection.prepare(r"SELECT '\\', ?").unwrap();
        assert_eq!(connection.query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'").unwrap().status & 512, 512);
        assert_eq!(connection.query("SELECT 1").unwrap().status & 512, 512);
        assert_eq!(connection.query("SET @a = 1").unwrap().status & 512, 512);
        // A prepared statement is read as at its PREPARE.
        let result = connection.execute(prepared.id, &[WireValue::Int(1)]).unwrap();
        assert_eq!(result.status & 512, 512);
        assert_eq!(result.rows[0][0], Value::Bytes(b"\\".to_vec()));
        connection.command(com::RESET_CONNECTION, b"").unwrap();
        assert_eq!(connection.query("SELECT 1").unwrap().status & 512, 0);
    }
}

#[test]
fn reset_connection_forgets_variables_and_statements() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    connection.query("SET @a = 5").unwrap();
    let statement = connection.prepare("SELECT ?").unwrap();
    connection.command(com::RESET_CONNECTION, b"").unwrap();
    assert_eq!(connection.query("SELECT @a").unwrap().to_text(), [["NULL"]]);
    assert_eq!(connection.execute(statement.id, &[WireValue::Int(1)]).unwrap_err().code(), Some(1243));
}

#[test]
fn init_db_changes_the_database_or_says_1049() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    connection.query("CREATE DATABASE d").unwrap();
    connection.command(com::INIT_DB, b"d").unwrap();
    assert_eq!(connection.query("SELECT DATABASE()").unwrap().to_text(), [["d"]]);
    assert_eq!(connection.command(com::INIT_DB, b"nowhere").unwrap_err().code(), Some(1049));
}

#[test]
fn init_db_is_counted_as_use_is() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    let names = "SHOW SESSION STATUS WHERE Variable_name IN ('Com_change_db', 'Questions')";
    let mut counts = |send: &dyn Fn(&mut Client)| -> [u64; 2] {
        send(&mut connection);
        let rows = connection.query(names).unwrap().to_text();
        [&rows[0][1], &rows[1][1]].map(|count| count.parse().unwrap())
    };
    // Each question about the counters is one of the `Questions`.
    assert_eq!(counts(&|_| ()), [0, 1]);
    assert_eq!(counts(&|client| drop(client.command(com::INIT_DB, b"information_schema").unwrap())), [1, 3]);
    assert_eq!(counts(&|client| drop(client.command(com::INIT_DB, b"nowhere").unwrap_err())), [2, 5]);
    assert_eq!(counts(&|client| drop(client.query("USE information_schema").unwrap())), [3, 7]);
    // The database of the handshake is not counted.
    let database = Some("information_schema".to_string());
    let mut other = live.connect_with(&ConnectOptions { database, ..ConnectOptions::default() }).unwrap();
    assert_eq!(other.query(names).unwrap().to_text(), [["Com_change_db", "0"], ["Questions", "1"]]);
}

#[test]
fn parameters_of_every_type_come_back_as_they_went() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    connection.query("CREATE DATABASE d").unwrap();
    connection.query("USE d").unwrap();
    connection
        .query(
            "CREATE TABLE t (id INT PRIMARY KEY, i BIGINT, u BIGINT UNSIGNED, f FLOAT, d DOUBLE, \
             n DECIMAL(20,5), s VARCHAR(50), b VARBINARY(50), day DATE, moment DATETIME(6), span TIME(6))",
        )
        .unwrap();
    let moment = wire::DateTime {
        year: 2026,
        month: 11,
        day: 21,
        hour: 23,
        minute: 59,
        second: 58,
        microsecond: 123456,
    };
    let day = wire::DateTime { hour: 0, minute: 0, second: 0, microsecond: 0, ..moment };
    let span = wire::Time { negative: true, days: 1, hour: 2, minute: 3, second: 4, microsecond: 5 };
    let values = [
        WireValue::Int(1),
        WireValue::Int(i64::MIN),
        WireValue::UInt(u64::MAX),
        WireValue::Float(1.5),
        WireValue::Double(-0.25),
        WireValue::Decimal(b"-123456789012345.67890"),
        WireValue::Text("grüße".as_bytes()),
        WireValue::Binary(&[0, 255, 1]),
        WireValue::Date(day),
        WireValue::DateTime(moment),
        WireValue::Time(span),
    ];
    let insert = connection.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").unwrap();
    assert_eq!(insert.params, 11);
    connection.execute(insert.id, &values).unwrap();
    let mut nulls = [WireValue::Null; 11];
    nulls[0] = WireValue::Int(2);
    connection.execute(insert.id, &nulls).unwrap();

    let select = connection.prepare("SELECT * FROM t WHERE id = ?").unwrap();
    let row = connection.execute(select.id, &[WireValue::Int(1)]).unwrap().rows.swap_remove(0);
    let wanted: Vec<wire::client::Value> = values.iter().map(|value| (*value).into()).collect();
    assert_eq!(row, wanted);
    let row = connection.execute(select.id, &[WireValue::Int(2)]).unwrap().rows.swap_remove(0);
    assert!(row[1..].iter().all(|value| *value == wire::client::Value::Null), "{row:?}");
    let text = connection.query("SELECT * FROM t WHERE id = 1").unwrap().to_text();
    let wanted = [
        "1",
        "-9223372036854775808",
        "18446744073709551615",
        "1.5",
        "-0.25",
        "-123456789012345.67890",
        "grüße",
        "\0\u{fffd}\u{1}",
        "2026-11-21",
        "2026-11-21 23:59:58.123456",
        "-26:03:04.000005",
    ];
    assert_eq!(text, [wanted]);
}

#[test]
fn prepared_statements_are_counted_as_they_come_run_and_go() {
    let live = Live::start(&[]);
    let (mut client, mut observer) = (live.connect(), live.connect());
    let mut status = |name: &str| -> u64 {
        let row = observer.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap().to_text();
        row[0][1].parse().unwrap()
    };
    let first = client.prepare("SELECT ?").unwrap();
    let second = client.prepare("SELECT 2").unwrap();
    client.query("PREPARE named FROM 'SELECT 3'").unwrap();
    client.execute(second.id, &[]).unwrap();
    assert_eq!(status("Prepared_stmt_count"), 3);
    assert_eq!((status("Com_stmt_prepare"), status("Com_stmt_execute")), (2, 1));
    client.close_statement(first.id).unwrap();
    client.query("DEALLOCATE PREPARE named").unwrap();
    assert_eq!((status("Prepared_stmt_count"), status("Com_stmt_close")), (1, 1));
    drop(client);
    crate::support::wait_until("the end", || status("Prepared_stmt_count") == 0);
}

#[test]
fn a_text_of_comments_is_done_and_one_of_nothing_is_an_error() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    for text in ["--", "-- nothing", "# nothing", "/* nothing */", "/* nothing */;"] {
        assert!(client.query(text).unwrap().columns.is_empty(), "{text}");
    }
    for text in ["", " ", ";", " ; "] {
        assert_eq!(client.query(text).unwrap_err().code(), Some(1065), "{text:?}");
    }
}

#[test]
fn a_parameter_of_whole_seconds_has_no_digits_behind_them() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    let moment = |microsecond| {
        let date = wire::value::DateTime { year: 1990, month: 8, day: 8, ..wire::value::DateTime::default() };
        WireValue::DateTime(wire::value::DateTime { microsecond, ..date })
    };
    client.query("SET time_zone = '+00:00'").unwrap();
    let prepared = client.prepare("SELECT UNIX_TIMESTAMP(?), ? + 0").unwrap();
    for (microsecond, shown) in [
        (0, ["650073600", "19900808000000"]),
        (4, ["650073600.000004", "19900808000000.000004"]),
        (0, ["650073600", "19900808000000"]),
    ] {
        let result = client.execute(prepared.id, &[moment(microsecond), moment(microsecond)]).unwrap();
        assert_eq!(result.to_text(), [shown]);
    }
}

#[test]
fn the_end_of_the_columns_says_whether_another_result_follows() {
    let live = Live::start(&[]);
    let defaults = ConnectOptions::default();
    let capabilities = defaults.capabilities & !capability::DEPRECATE_EOF | capability::MULTI_STATEMENTS;
    let options = ConnectOptions { capabilities, ..defaults };
    const MORE_RESULTS: u8 = 8;
    let marks = |text: &[u8]| {
        let mut raw = Raw::of(live.connect_with(&options).unwrap());
        let (packets, _) = raw.answer(&[&[com::QUERY], text].concat());
        let ends = packets.iter().filter(|packet| packet[0] == 0xFE && packet.len() == 5);
        ends.map(|packet| packet[3] & MORE_RESULTS != 0).collect::<Vec<_>>()
    };
    assert_eq!(marks(b"SELECT 1"), [false, false]);
    assert_eq!(marks(b"SELECT 1; SELECT 2 ;"), [true, true, false, false]);
    assert_eq!(marks(b"BEGIN; SELECT 1; SELECT * FROM nowhere.t"), [true, true]);
}

#[test]
fn a_parameter_with_a_zone_is_moved_to_the_sessions() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    let date =
        wire::value::DateTime { year: 2024, month: 2, day: 29, hour: 23, ..wire::value::DateTime::default() };
    for (zone, minutes, shown) in [
        ("+00:00", 0, "2024-02-29 23:00:00"),
        ("+02:00", 0, "2024-03-01 01:00:00"),
        ("+02:00", 120, "2024-02-29 23:00:00"),
        ("-03:30", 330, "2024-02-29 14:00:00"),
    ] {
        client.query(&format!("SET time_zone = '{zone}'")).unwrap();
        let prepared = client.prepare("SELECT CAST(? AS DATETIME)").unwrap();
        let result = client.execute(prepared.id, &[WireValue::ZonedDateTime(date, minutes)]).unwrap();
        assert_eq!(result.to_text(), [[shown]], "{zone} {minutes}");
    }
}

#[test]
fn a_parameter_that_is_no_date_warns_and_is_the_zero_date() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    client.query("SET sql_mode = ''").unwrap();
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (a DATETIME, b DATE)").unwrap();
    let wrong =
        wire::value::DateTime { year: 2024, month: 13, day: 2, hour: 24, ..wire::value::DateTime::default() };
    let both = [WireValue::DateTime(wrong), WireValue::Date(wrong)];
    for sql in ["INSERT INTO d.t VALUES (?, ?)", "INSERT INTO d.t SELECT ?, ?"] {
        let prepared = client.prepare(sql).unwrap();
        assert_eq!(client.execute(prepared.id, &both).unwrap().warnings, 2, "{sql}");
        let texts = ["Incorrect datetime value: '2024-13-02 24:00:00'", "Incorrect date value: '2024-13-02'"];
        let expected = texts.map(|text| ["Warning", "1292", text].map(str::to_owned));
        assert_eq!(client.query("SHOW WARNINGS").unwrap().to_text(), expected, "{sql}");
    }
    let rows = client.query("SELECT DISTINCT * FROM d.t").unwrap().to_text();
    assert_eq!(rows, [["0000-00-00 00:00:00", "0000-00-00"]]);
}

#[test]
fn a_stored_program_is_refused_by_name() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    for text in [
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
        "/* it */ create definer = root@localhost trigger t before insert on d.t for each row begin set @a = 1; end",
    ] {
        assert_eq!(client.query(text).unwrap_err().code(), Some(1235), "{text}");
    }
    assert_eq!(client.query("CREATE DATABASE d; SELECT 1").unwrap_err().code(), Some(1064));
}
