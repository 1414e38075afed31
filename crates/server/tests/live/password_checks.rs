//! What passwords must be like. The expected answers are those of MariaDB 10.11 with its plugin
//! `simple_password_check`.

use crate::support::{Client, Live};
use std::path::Path;
use std::sync::Arc;

/// The number of the error; 0 without one.
fn outcome(client: &mut Client, sql: &str) -> u16 {
    client.query(sql).map_or_else(|error| error.code().unwrap(), |_| 0)
}

fn check(client: &mut Client, expected: &[(&str, u16)]) {
    for (sql, code) in expected {
        assert_eq!(outcome(client, sql), *code, "{sql}");
    }
}

/// What SHOW WARNINGS says, without the levels.
fn warnings(client: &mut Client) -> Vec<String> {
    let rows = client.query("SHOW WARNINGS").unwrap().to_text();
    rows.into_iter().map(|mut row| row.remove(2)).collect()
}

const HASH: &str = "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4";

#[test]
fn weak_passwords_and_hashes_are_refused_by_every_statement_that_gives_one() {
    let live = Live::start(&[]);
    let mut root = live.connect();
    check(&mut root, &[("CREATE USER weak IDENTIFIED BY 'x'", 0)]);
    check(&mut root, &[("INSTALL SONAME 'simple_password_check'", 0)]);
    assert_eq!(outcome(&mut root, "CREATE USER a IDENTIFIED BY 'short'"), 1819);
    let refused = "Your password does not satisfy the current policy requirements (simple_password_check)";
    assert_eq!(
        warnings(&mut root),
        [
            "simple_password_check: Too short password (< 8)",
            "simple_password_check: Not enough upper case letters (< 1)",
            "simple_password_check: Not enough digits (< 1)",
            "simple_password_check: Not enough special characters (< 1)",
            refused
        ]
    );
    check(
        &mut root,
        &[
            ("CREATE USER a", 1819),
            ("CREATE USER a IDENTIFIED BY ''", 1819),
            ("CREATE USER `Longer1!` IDENTIFIED BY 'Longer1!'", 1819),
            ("CREATE USER a IDENTIFIED BY 'Longer1!'", 0),
            (&format!("CREATE USER b IDENTIFIED BY PASSWORD '{HASH}'"), 1290),
            (&format!("CREATE USER b IDENTIFIED VIA mysql_native_password USING '{HASH}'"), 1290),
            ("CREATE USER b IDENTIFIED VIA mysql_native_password", 1819),
            ("CREATE USER b IDENTIFIED VIA unix_socket OR ed25519 USING PASSWORD('x')", 1819),
            ("CREATE USER b IDENTIFIED VIA unix_socket", 0),
            ("CREATE USER IF NOT EXISTS a IDENTIFIED BY 'x'", 0),
            ("CREATE ROLE r", 0),
            ("ALTER USER a IDENTIFIED BY 'x'", 1396),
            ("ALTER USER IF EXISTS a IDENTIFIED BY 'x'", 0),
            ("ALTER USER nobody IDENTIFIED BY 'x'", 1396),
            ("ALTER USER a PASSWORD EXPIRE NEVER", 0),
            ("SET PASSWORD FOR a = PASSWORD('x')", 1819),
            ("SET PASSWORD FOR a = PASSWORD('')", 1819),
            ("SET PASSWORD FOR a = ''", 1819),
            (&format!("SET PASSWORD FOR a = '{HASH}'"), 1290),
            ("SET PASSWORD FOR a = PASSWORD('Longer1!x')", 0),
            ("GRANT USAGE ON *.* TO a IDENTIFIED BY 'x'", 1819),
            ("GRANT USAGE ON *.* TO a", 0),
            ("GRANT USAGE ON *.* TO c IDENTIFIED BY 'x'", 1819),
            ("SET SESSION sql_mode = ''", 0),
            ("GRANT USAGE ON *.* TO c", 1819),
            ("GRANT USAGE ON *.* TO c IDENTIFIED BY 'Longer1!'", 0),
            ("CREATE USER d1 IDENTIFIED BY 'Longer1!', d2 IDENTIFIED BY 'x'", 1819),
            ("CREATE OR REPLACE USER c IDENTIFIED BY 'x'", 1819),
            ("SET GLOBAL strict_password_validation = OFF", 0),
            (&format!("CREATE USER f IDENTIFIED BY PASSWORD '{HASH}'"), 0),
        ],
    );
    let users = root.query("SELECT User FROM mysql.global_priv ORDER BY User").unwrap().to_text();
    assert_eq!(users.concat(), ["a", "b", "d1", "f", "r", "root", "weak"]);
}

#[test]
fn the_shortest_length_grows_with_what_a_password_must_have() {
    let live = Live::start(&["--plugin-load-add=simple_password_check"]);
    let mut root = live.connect();
    let length = "SELECT @@simple_password_check_minimal_length";
    let adjusted = |from: u32, to: u32| {
        format!("Adjusted the value of simple_password_check_minimal_length from {from} to {to}")
    };
    root.query("SET GLOBAL simple_password_check_minimal_length = 0").unwrap();
    assert_eq!(warnings(&mut root), [adjusted(0, 4)]);
    root.query(
        "SET GLOBAL simple_password_check_digits = 5, simple_password_check_letters_same_case = 3, \
         simple_password_check_other_characters = 2",
    )
    .unwrap();
    assert_eq!(warnings(&mut root), [adjusted(4, 8), adjusted(8, 12), adjusted(12, 13)]);
    assert_eq!(root.query(length).unwrap().to_text(), [["13"]]);
    check(
        &mut root,
        &[
            ("CREATE USER a IDENTIFIED BY 'Longer1!'", 1819),
            ("CREATE USER a IDENTIFIED BY 'ABCabc12345!?'", 0),
            ("SET SESSION simple_password_check_digits = 1", 1229),
        ],
    );
}

#[test]
fn the_check_is_installed_and_uninstalled_and_stays_so_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = |folder: &Path| Live::start_on(Arc::new(vfs::OsVfs), folder, &[]);
    let live = start(folder.path());
    let mut root = live.connect();
    check(
        &mut root,
        &[
            ("INSTALL SONAME 'nothing_here'", 1126),
            ("INSTALL SONAME 'a/b'", 1124),
            ("INSTALL PLUGIN nothing SONAME 'simple_password_check'", 1127),
            ("UNINSTALL PLUGIN simple_password_check", 1305),
            ("UNINSTALL PLUGIN mysql_native_password", 1619),
            ("INSTALL SONAME 'auth_ed25519'", 0),
            ("INSTALL PLUGIN simple_password_check SONAME 'simple_password_check.so'", 0),
            ("INSTALL PLUGIN simple_password_check SONAME 'simple_password_check'", 1968),
            ("INSTALL PLUGIN IF NOT EXISTS simple_password_check SONAME 'simple_password_check'", 0),
            ("INSTALL SONAME 'simple_password_check'", 0),
            ("INSTALL PLUGIN x", 1064),
        ],
    );
    assert!(
        root.query("SHOW PLUGINS").unwrap().to_text().iter().any(|row| row[0] == "simple_password_check")
    );
    drop((root, live));
    let live = start(folder.path());
    let mut root = live.connect();
    check(
        &mut root,
        &[
            ("CREATE USER a IDENTIFIED BY 'x'", 1819),
            ("CREATE USER a IDENTIFIED BY 'Longer1!'", 0),
            ("UNINSTALL SONAME 'simple_password_check'", 0),
            ("UNINSTALL SONAME 'simple_password_check'", 1305),
            ("UNINSTALL SONAME IF EXISTS 'simple_password_check'", 0),
            ("UNINSTALL PLUGIN IF EXISTS nothing", 0),
            ("ALTER USER a IDENTIFIED BY 'x'", 0),
        ],
    );
    let options = wire::client::ConnectOptions {
        user: "a".into(),
        password: "x".into(),
        ..wire::client::ConnectOptions::default()
    };
    let mut client = live.connect_with(&options).unwrap();
    check(
        &mut client,
        &[("INSTALL SONAME 'simple_password_check'", 1142), ("UNINSTALL PLUGIN simple_password_check", 1142)],
    );
    drop((client, root, live));
    assert_eq!(outcome(&mut start(folder.path()).connect(), "CREATE USER b IDENTIFIED BY 'x'"), 0);
}
