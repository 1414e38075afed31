//! Clients in common use: `mariadb`, `mariadb-dump`, Python drivers, an object mapper.

use crate::support::{Latchwork, MariaDb, client, feed, have, mariadb, python, text};
use std::path::Path;
use std::process::Command;

const LIBRARY: &str = "\
CREATE DATABASE library; USE library;
CREATE TABLE books (id INT NOT NULL AUTO_INCREMENT, title VARCHAR(80) NOT NULL, price DECIMAL(8,2) DEFAULT 9.99,
  printed DATE, weight DOUBLE, added DATETIME(3), body TEXT, cover BLOB, flags TINYINT UNSIGNED NOT NULL DEFAULT 0,
  PRIMARY KEY (id), UNIQUE KEY by_title (title), KEY by_date (printed, price));
INSERT INTO books (title, price, printed, weight, added, body, cover, flags) VALUES
  ('Moby-Dick', 12.50, '1851-10-18', 0.5, '2024-01-02 03:04:05.678', 'Call me Ishmael.', x'00ff27225c0a0d1a', 1),
  ('Faust', NULL, NULL, NULL, NULL, NULL, NULL, 255),
  ('It''s \"quoted\" \\\\ and\\ttabbed', 0.01, '2000-02-29', -1.25e-7, '1999-12-31 23:59:59.999', 'two\\nlines', '', 0),
  ('日本語 😀', -3.00, '9999-12-31', 1e300, '2024-06-01 00:00:00.000', REPEAT('ö', 5000), REPEAT(x'00', 300), 7);
CREATE TABLE loans (book INT NOT NULL, reader VARCHAR(30) NOT NULL COLLATE utf8mb4_bin, day TIME, PRIMARY KEY (book, reader));
INSERT INTO loans VALUES (1, 'ann', '10:00:00'), (1, 'Ann', '-838:59:59'), (2, 'bob', NULL);
CREATE TABLE empty_shelf (id BIGINT UNSIGNED NOT NULL PRIMARY KEY);
";

/// Everything in the library, in a fixed order.
const INVENTORY: &str = "\
SELECT id, title, price, printed, weight, added, body, HEX(cover), flags FROM library.books ORDER BY id;
SELECT book, reader, day FROM library.loans ORDER BY book, reader;
SELECT COUNT(*) FROM library.empty_shelf;
SHOW COLUMNS FROM library.books; SHOW COLUMNS FROM library.loans; SHOW COLUMNS FROM library.empty_shelf;";

#[test]
fn the_client_works_as_people_use_it() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(LIBRARY);
    let run = |options: &[&str], input: &str| {
        let output = feed(client(&server.socket).args(options), input);
        assert!(output.status.success(), "{options:?} {input}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let vertical = run(&[], "SELECT id, title FROM library.books WHERE id = 1\\G");
    assert!(vertical.contains("id: 1") && vertical.contains("title: Moby-Dick"), "{vertical}");
    assert_eq!(run(&["library"], "SELECT COUNT(*) FROM books;"), "COUNT(*)\n4\n");
    assert_eq!(run(&[], "use library;\nSELECT DATABASE();"), "DATABASE()\nlibrary\n");
    assert!(
        run(&["library"], "describe books;").contains("by_title")
            || run(&["library"], "describe books;").contains("UNI")
    );
    let boxed = run(&["--table", "library"], "SELECT id FROM books ORDER BY id;");
    assert!(boxed.starts_with("+----+\n| id |\n+----+\n|  1 |\n"), "{boxed}");
    let xml = run(&["--xml"], "SELECT 1 AS one;");
    assert!(xml.contains("<field name=\"one\">1</field>"), "{xml}");
    let html = run(&["--html"], "SELECT 1 AS one;");
    assert!(html.contains("<TH>one</TH>"), "{html}");
    let several = run(&["-e", "SELECT 1; SELECT 2"], "");
    assert_eq!(several, "1\n1\n2\n2\n");
    if have(&["script"]) {
        // Tee and column types are only for terminals.
        let tee = scratch.path().join("tee.txt");
        let (socket, tee_file) = (server.socket.display(), tee.display());
        let options = format!(
            "--no-defaults --user=root --socket={socket} --tee={tee_file} --column-type-info library"
        );
        let input = "SELECT id, title, price, 'to the file' FROM books LIMIT 1;\nquit\n";
        feed(Command::new("script").args(["-qec", &format!("mariadb {options}"), "/dev/null"]), input);
        let seen = std::fs::read_to_string(&tee).unwrap();
        let words = [
            "LONG",
            "VAR_STRING",
            "NEWDECIMAL",
            "PRI_KEY",
            "AUTO_INCREMENT",
            "UNIQUE_KEY",
            "| to the file |",
        ];
        for word in words {
            assert!(seen.contains(word), "no {word} in {seen}");
        }
    }
    // With automatic rehashing the client asks for the fields of every table. The server may refuse that or
    // answer it.
    assert_eq!(run(&["--auto-rehash", "library"], "SELECT 1;"), "1\n1\n");
    let status = run(&["--table"], "status");
    assert!(status.contains("Server version") && status.contains("Connection id"), "{status}");
    let version = text(
        &feed(
            Command::new("mariadb-admin")
                .args(["--no-defaults", "-uroot", "-S"])
                .arg(&server.socket)
                .arg("ping"),
            "",
        )
        .stdout,
    );
    assert!(version.contains("alive"), "{version}");
}

fn dump(socket: &Path) -> String {
    let output = Command::new("mariadb-dump")
        .args(["--no-defaults", "--user=root", "--hex-blob", "--default-character-set=utf8mb4"])
        .arg(format!("--socket={}", socket.display()))
        .args(["--databases", "library"])
        .output()
        .unwrap();
    let complaint = text(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let dump = text(&output.stdout);
    assert!(dump.contains("-- Dump completed"), "{dump}");
    dump
}

fn load(socket: &Path, dump: &str) {
    let output = feed(&mut client(socket), dump);
    assert!(output.status.success(), "{}\n{dump}", text(&output.stderr));
}

#[test]
fn a_dump_travels_to_mariadb_and_back() {
    if !have(mariadb::PROGRAMS) || !have(&["mariadb-dump"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(LIBRARY);
    let inventory = server.sql(INVENTORY);
    load(&judge.socket, &dump(&server.socket));
    assert_eq!(judge.sql(INVENTORY), inventory, "what MariaDB made of our dump");
    server.sql("DROP DATABASE library");
    load(&server.socket, &dump(&judge.socket));
    assert_eq!(server.sql(INVENTORY), inventory, "what we made of MariaDB's dump");
}

fn run_python(python: &Path, script: &str, socket: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/python").join(script);
    let output = feed(Command::new(python).arg(script).arg(socket), "");
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && said.trim_end().ends_with("ok"), "{said}");
}

#[test]
fn pymysql_reads_and_writes_every_type() {
    let Some(python) = python("pymysql") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    run_python(&python, "driver.py", &server.socket);
}

#[test]
fn an_object_mapper_keeps_its_objects() {
    let Some(python) = python("pymysql, sqlalchemy") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    run_python(&python, "object_mapper.py", &server.socket);
}
