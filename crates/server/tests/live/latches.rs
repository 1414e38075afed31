//! What latches are made of, and what is counted at them.

use crate::support::Live;
use latchwork_server::Options;

/// The one value that the statement selects, as text.
fn value(live: &Live, statement: &str) -> String {
    live.connect().query(statement).unwrap().rows[0][0].to_text()
}

#[test]
fn latches_are_made_of_what_the_option_says() {
    for option in ["--latch_implementation=wait_array", "--latch-implementation=direct"] {
        let live = Live::start(&[option]);
        let name = option.rsplit_once('=').unwrap().1;
        assert_eq!(value(&live, "SELECT @@latch_implementation"), name);
        let error = live.connect().query("SET GLOBAL latch_implementation = 'direct'").unwrap_err();
        assert_eq!(error.code(), Some(1238));
        // All of it works, whatever it is made of.
        let mut connection = live.connect();
        connection.query("CREATE DATABASE d").unwrap();
        connection.query("CREATE TABLE d.t (a INT PRIMARY KEY, b INT, KEY (b))").unwrap();
        connection.query("INSERT INTO d.t VALUES (1, 2), (2, 3), (3, 4)").unwrap();
        connection.query("UPDATE d.t SET b = b + 1 WHERE a > 1").unwrap();
        assert_eq!(value(&live, "SELECT SUM(b) FROM d.t"), "11");
        assert!(live.stop());
    }
    let error = Options::parse(&["--latch_implementation=spin".to_string()]).unwrap_err();
    let expected = "option '--latch_implementation': wrong value 'spin': expected one of direct, wait_array";
    assert_eq!(error.to_string(), expected);
}
