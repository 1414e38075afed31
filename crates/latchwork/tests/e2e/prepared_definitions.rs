//! Clients that keep the column definitions of prepared statements (MariaDB's CACHE_METADATA) do not get the
//! same ones again, and always have the right ones.

use crate::support::target::Client;
use crate::support::{Latchwork, MariaDb, feed, have, mariadb, text};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::WireValue;
use wire::client::{ConnectOptions, Connection, QueryResult};
use wire::command::com;
use wire::constants::{capability, charset};
use wire::response::Definitions;

fn connect(socket: &Path, capabilities: u64) -> Client {
    let options = ConnectOptions { capabilities, ..ConnectOptions::default() };
    let client = Connection::connect(UnixStream::connect(socket).unwrap(), &options).unwrap();
    assert_eq!(client.capabilities() & !capability::LONG_PASSWORD, capabilities & !capability::LONG_PASSWORD);
    client
}

/// A server with a table `d.t`, and clients in that database: with EOF packets and without.
fn each_kind_of_client(flags: u64, check: impl Fn(&mut Client)) {
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    for capabilities in [capability::CLIENT | flags, capability::CLIENT & !capability::DEPRECATE_EOF | flags]
    {
        let mut client = connect(&server.socket, capabilities);
        for statement in [
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), big BIGINT NOT NULL)",
            "INSERT INTO t VALUES (1, 'grün', 1), (2, 'blau', 9223372036854775807), (3, NULL, 3)",
        ] {
            client.query(statement).unwrap();
        }
        check(&mut client);
        client.query("DROP DATABASE d").unwrap();
    }
}

fn names(result: &QueryResult) -> Vec<&str> {
    result.columns.iter().map(|column| column.name.as_str()).collect()
}

#[test]
fn definitions_come_with_the_prepare_and_not_again_until_they_change() {
    each_kind_of_client(capability::CACHE_METADATA, |client| {
        let prepared = client.prepare("SELECT * FROM t WHERE id = ?").unwrap();
        for (id, row) in [(1, ["1", "grün", "1"]), (3, ["3", "NULL", "3"])] {
            let result = client.execute(prepared.id, &[WireValue::Int(id)]).unwrap();
            assert_eq!((result.definitions, &result.columns), (Definitions::Omitted, &prepared.columns));
            assert_eq!(result.to_text(), [row]);
        }
        client.command(com::STMT_RESET, &prepared.id.to_le_bytes()).unwrap();
        let result = client.execute(prepared.id, &[WireValue::Int(4)]).unwrap();
        assert_eq!((result.definitions, result.rows.len()), (Definitions::Omitted, 0));

        client.query("ALTER TABLE t ADD COLUMN more INT DEFAULT 7").unwrap();
        for _ in 0..2 {
            let result = client.execute(prepared.id, &[WireValue::Int(2)]).unwrap();
            assert_eq!(result.definitions, Definitions::Follow);
            assert_eq!(names(&result), ["id", "v", "big", "more"]);
            assert_eq!(result.to_text(), [["2", "blau", "9223372036854775807", "7"]]);
        }
        // The definitions are the first ones again. They are sent, because some clients no longer keep those.
        client.query("ALTER TABLE t DROP COLUMN more").unwrap();
        let result = client.execute(prepared.id, &[WireValue::Int(1)]).unwrap();
        assert_eq!((result.definitions, names(&result).len()), (Definitions::Follow, 3));

        // A parameter of another type has another plan with the same columns. A new key changes a column's
        // flags.
        let again = client.prepare("SELECT * FROM t WHERE id = ?").unwrap();
        let result = client.execute(again.id, &[WireValue::Text(b"1")]).unwrap();
        assert_eq!((result.definitions, result.rows.len()), (Definitions::Omitted, 1));
        client.query("ALTER TABLE t ADD KEY (big)").unwrap();
        let result = client.execute(again.id, &[WireValue::Int(1)]).unwrap();
        assert_eq!((result.definitions, result.rows.len()), (Definitions::Follow, 1));
    });
}

#[test]
fn another_character_set_of_results_is_told() {
    each_kind_of_client(capability::CACHE_METADATA, |client| {
        let prepared = client.prepare("SELECT v FROM t WHERE id = ?").unwrap();
        client.query("SET character_set_results = latin1").unwrap();
        for _ in 0..2 {
            let result = client.execute(prepared.id, &[WireValue::Int(1)]).unwrap();
            assert_eq!(result.definitions, Definitions::Follow);
            assert_eq!(result.columns[0].charset, charset::LATIN1_SWEDISH_CI);
            assert_eq!(result.rows, [[wire::client::Value::Bytes(b"gr\xfcn".to_vec())]]);
        }
        let in_latin1 = client.prepare("SELECT v FROM t WHERE id = ?").unwrap();
        let result = client.execute(in_latin1.id, &[WireValue::Int(1)]).unwrap();
        assert_eq!((result.definitions, &result.columns), (Definitions::Omitted, &in_latin1.columns));
    });
}

#[test]
fn columns_that_go_by_the_parameters_are_told() {
    each_kind_of_client(capability::CACHE_METADATA, |client| {
        let prepared = client.prepare("SELECT ?, id + ? FROM t WHERE id = 1").unwrap();
        for (values, row) in [
            ([WireValue::Int(5), WireValue::Int(6)], ["5", "7"]),
            ([WireValue::Text(b"five"), WireValue::Double(0.5)], ["five", "1.5"]),
            ([WireValue::Null, WireValue::Int(6)], ["NULL", "7"]),
            ([WireValue::Double(2.5), WireValue::Decimal(b"0.25")], ["2.5", "1.25"]),
        ] {
            assert_eq!(client.execute(prepared.id, &values).unwrap().to_text(), [row]);
        }
    });
}

#[test]
fn what_is_no_result_set_of_a_prepared_query_is_as_ever() {
    each_kind_of_client(capability::CACHE_METADATA, |client| {
        let text = client.query("SELECT id, v FROM t WHERE id = 1").unwrap();
        assert_eq!(
            (text.definitions, text.to_text()),
            (Definitions::Follow, vec![vec!["1".into(), "grün".into()]])
        );

        let update = client.prepare("UPDATE t SET v = ? WHERE id = ?").unwrap();
        let done = client.execute(update.id, &[WireValue::Text(b"rot"), WireValue::Int(3)]).unwrap();
        assert_eq!((done.definitions, done.affected_rows), (Definitions::Implied, 1));

        // The answer to this prepare has no definitions that could be kept.
        let show = client.prepare("SHOW TABLES").unwrap();
        for _ in 0..2 {
            let result = client.execute(show.id, &[]).unwrap();
            assert_eq!((result.definitions, result.to_text()), (Definitions::Follow, vec![vec!["t".into()]]));
        }

        // The second row's value is out of range: the error comes in place of a row.
        let overflow = client.prepare("SELECT big + big FROM t").unwrap();
        for _ in 0..2 {
            assert_eq!(client.execute(overflow.id, &[]).unwrap_err().code(), Some(1690));
        }
        let result = client.execute(update.id, &[WireValue::Text(b"gelb"), WireValue::Int(3)]).unwrap();
        assert_eq!(result.affected_rows, 1);
    });
}

#[test]
fn clients_that_do_not_keep_definitions_get_them_each_time() {
    each_kind_of_client(0, |client| {
        let prepared = client.prepare("SELECT * FROM t WHERE id = ?").unwrap();
        for _ in 0..2 {
            let result = client.execute(prepared.id, &[WireValue::Int(1)]).unwrap();
            assert_eq!((result.definitions, &result.columns), (Definitions::Implied, &prepared.columns));
            assert_eq!(result.to_text(), [["1", "grün", "1"]]);
        }
        assert_eq!(client.query("SELECT 1").unwrap().definitions, Definitions::Implied);
    });
}

/// Compiles a program of `tests/e2e/c` against MariaDB's client library.
pub fn compiled(name: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/c").join(name).with_extension("c");
    let program = folder.join(name);
    let config = text(&Command::new("mariadb_config").args(["--cflags", "--libs"]).output().unwrap().stdout);
    let output = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source])
        .args(config.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    program
}

/// What a program of `tests/e2e/c` prints on MariaDB and on Latchwork. `None` where it cannot be built.
pub fn seen_through_the_client_library(program: &str) -> Option<[String; 2]> {
    if !have(mariadb::PROGRAMS) || !have(&["cc", "mariadb_config"]) {
        return None;
    }
    let scratch = tempfile::tempdir().unwrap();
    let program = compiled(program, scratch.path());
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    Some([&judge.socket, &server.socket].map(|socket| {
        let output = feed(Command::new(&program).arg(socket), "");
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }))
}

#[test]
fn mariadbs_client_library_reads_what_it_reads_from_mariadb() {
    let Some([judged, seen]) = seen_through_the_client_library("prepared") else { return };
    assert_eq!(seen, judged);
    assert!(seen.starts_with("keeps definitions: 1\n"), "{seen}");
}

#[test]
fn cursors_give_mariadbs_client_library_what_they_give_on_mariadb() {
    let Some([judged, seen]) = seen_through_the_client_library("cursors") else { return };
    assert_eq!(seen, judged);
    assert!(seen.contains("cursor 1, last row sent 0"), "{seen}");
}

#[test]
fn columns_are_listed_for_mariadbs_client_library_as_on_mariadb() {
    let Some([judged, seen]) = seen_through_the_client_library("fields") else { return };
    assert_eq!(seen, judged);
    assert!(seen.contains("t.name type 253"), "{seen}");
}

#[test]
fn arrays_of_parameters_do_through_mariadbs_client_library_what_they_do_on_mariadb() {
    let Some([judged, seen]) = seen_through_the_client_library("bulk") else { return };
    assert_eq!(seen, judged);
    assert!(seen.starts_with("offers arrays: 1\n"), "{seen}");
}
