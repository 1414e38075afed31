//! The status flags of each answer. Drivers and proxies learn from them whether a transaction is open.

use crate::support::target::{Proof, targets};
use wire::constants::status;

/// A statement, and after it: whether a transaction is open, and whether autocommit is on.
const STATEMENTS: &[(&str, bool, bool)] = &[
    ("CREATE DATABASE flags", false, true),
    ("CREATE TABLE flags.t (id INT PRIMARY KEY)", false, true),
    ("INSERT INTO flags.t VALUES (1)", false, true),
    ("SELECT * FROM flags.t", false, true),
    ("BEGIN", true, true),
    ("SELECT * FROM flags.t", true, true),
    ("INSERT INTO flags.t VALUES (2)", true, true),
    ("COMMIT", false, true),
    ("START TRANSACTION READ ONLY", true, true),
    ("ROLLBACK", false, true),
    ("BEGIN", true, true),
    ("CREATE TABLE flags.u (id INT PRIMARY KEY)", false, true),
    ("SET autocommit = 0", false, false),
    ("SELECT 1", false, false),
    ("SELECT * FROM flags.t", true, false),
    ("COMMIT", false, false),
    ("INSERT INTO flags.t VALUES (3)", true, false),
    ("COMMIT AND CHAIN", true, false),
    ("ROLLBACK", false, false),
    ("DELETE FROM flags.t", true, false),
    ("SET autocommit = 1", false, true),
    ("DROP DATABASE flags", false, true),
];

#[test]
fn the_status_flags_say_whether_a_transaction_is_open() {
    for target in targets(Proof::Isolation) {
        let scratch = tempfile::tempdir().unwrap();
        let server = target.start(scratch.path());
        let mut client = server.connect();
        for (position, (sql, open, autocommit)) in STATEMENTS.iter().enumerate() {
            let flags = client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).status;
            let got = (flags & status::IN_TRANSACTION != 0, flags & status::AUTOCOMMIT != 0);
            assert_eq!(got, (*open, *autocommit), "{target:?}, statement {}: {sql}", position + 1);
        }
    }
}
