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
