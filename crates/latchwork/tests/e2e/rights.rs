//! What an account may do: thousands of pairs of a statement and a grant, on MariaDB and on Latchwork.

use crate::support::{Latchwork, MariaDb, have, mariadb, python, text};
use std::path::Path;
use std::process::Command;

#[test]
fn each_statement_wants_the_rights_that_mariadb_wants() {
    let Some(python) = python("pymysql") else { return };
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/python/rights.py");
    // All grants take some minutes: LATCHWORK_RIGHTS_EVERY=1.
    let every = std::env::var("LATCHWORK_RIGHTS_EVERY").unwrap_or_else(|_| "4".to_owned());
    let mut command = Command::new(python);
    command.arg(script).args([&judge.socket, &server.socket]).arg(every);
    let output = command.output().unwrap();
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    println!("{told}");
}

#[test]
fn a_dump_of_everything_brings_the_accounts_along() {
    if !have(&["mariadb", "mariadb-dump"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| {
        let folder = scratch.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        Latchwork::start(&folder, &[])
    });
    from.sql(
        "CREATE DATABASE zoo; CREATE TABLE zoo.t (a INT, b INT); INSERT INTO zoo.t VALUES (1, 2);
         CREATE USER ann IDENTIFIED BY 'secret'; GRANT SELECT (a), INSERT ON zoo.t TO ann;
         CREATE ROLE keeper; GRANT ALL ON zoo.* TO keeper; GRANT keeper TO ann",
    );
    let dump = Command::new("mariadb-dump")
        .args(["--no-defaults", "--user=root", "--all-databases", "--socket"])
        .arg(&from.socket)
        .output()
        .unwrap();
    assert!(dump.status.success(), "{}", text(&dump.stderr));
    to.sql(&text(&dump.stdout));
    let shown = "FLUSH PRIVILEGES; SHOW GRANTS FOR ann; SHOW GRANTS FOR keeper; SELECT * FROM zoo.t";
    assert_eq!(to.sql(shown), from.sql(shown));
}

#[test]
fn what_binds_accounts_beside_their_rights_is_what_mariadb_has() {
    let Some(python) = python("pymysql") else { return };
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/python/bounds.py");
    let told = [&judge.socket, &server.socket].map(|socket| {
        let output = Command::new(&python).arg(&script).arg(socket).output().unwrap();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    });
    assert_eq!(told[0].lines().collect::<Vec<_>>(), told[1].lines().collect::<Vec<_>>());
}
