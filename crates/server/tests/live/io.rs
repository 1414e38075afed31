//! Options of the device reach the engine.

use crate::support::Live;

/// The only value that the statement selects, as text.
fn value(live: &Live, statement: &str) -> String {
    live.connect().query(statement).unwrap().rows[0][0].to_text()
}

#[test]
fn the_flush_method_in_effect_is_shown_and_the_log_says_what_became_of_the_one_asked_for() {
    let said = [
        ("", "fsync", None),
        ("--flush_method=O_DIRECT", "O_DIRECT", None),
        (
            "--innodb_flush_method=O_DIRECT_NO_FSYNC",
            "O_DIRECT",
            Some("O_DIRECT_NO_FSYNC is taken for O_DIRECT"),
        ),
        ("--innodb-flush-method=O_DSYNC", "fsync", Some("O_DSYNC is taken for fsync")),
        ("--flush-method=nosync", "nosync", Some("nothing is made durable")),
    ];
    for (option, method, remark) in said {
        let live = Live::start(if option.is_empty() { &[] } else { std::slice::from_ref(&option) });
        assert_eq!(value(&live, "SELECT @@flush_method"), method, "{option}");
        assert_eq!(value(&live, "SELECT @@innodb_flush_method"), method, "{option}");
        let error = live.connect().query("SET GLOBAL flush_method = 'nosync'").unwrap_err();
        assert_eq!(error.code(), Some(1238));
        let log = live.log();
        match remark {
            Some(remark) => assert!(log.contains(remark), "{option}: {log}"),
            None => assert!(!log.contains("flush_method"), "{option}: {log}"),
        }
        assert!(live.stop());
    }
}

#[test]
fn the_load_of_the_device_is_as_the_options_say_and_its_capacity_can_be_set() {
    let live = Live::start(&["--io_capacity=500", "--innodb_write_io_threads=2", "--read-io-threads=7"]);
    let io = || live.instance.engine().caches().io();
    let expected =
        engine::IoOptions { capacity: 500, capacity_max: u32::MAX, write_threads: 2, read_threads: 7 };
    assert_eq!(io(), expected);
    assert_eq!(value(&live, "SELECT @@io_capacity + @@innodb_write_io_threads"), "502");
    let mut connection = live.connect();
    connection.query("SET GLOBAL innodb_io_capacity = 700").unwrap();
    connection.query("SET GLOBAL io_capacity_max = 1500").unwrap();
    assert_eq!(io(), engine::IoOptions { capacity: 700, capacity_max: 1_500, ..expected });
    for name in ["write_io_threads", "innodb_read_io_threads"] {
        let error = connection.query(&format!("SET GLOBAL {name} = 3")).unwrap_err();
        assert_eq!(error.code(), Some(1238), "{error}");
    }
    assert!(live.stop());
}
