//! Reports of how far a long statement is.

use crate::support::{Live, wait_until};
use std::os::unix::net::UnixStream;
use wire::client::{ConnectOptions, Connection, Report};
use wire::constants::capability;

fn connect(live: &Live, wants: bool) -> Connection<UnixStream> {
    let mut options = ConnectOptions::default();
    options.capabilities &= !capability::LONG_PASSWORD;
    options.capabilities |= capability::MULTI_STATEMENTS;
    if wants {
        options.capabilities |= capability::PROGRESS;
    }
    Connection::connect(live.raw(), &options).unwrap()
}

fn fill(client: &mut Connection<UnixStream>, doubled: u32) {
    client.query("CREATE DATABASE d").unwrap();
    client.query("USE d").unwrap();
    client.query("CREATE TABLE t (a INT PRIMARY KEY, b INT, c CHAR(100))").unwrap();
    client.query("INSERT INTO t VALUES (1, 1, 'x')").unwrap();
    for times in 0..doubled {
        let double = format!("INSERT INTO t SELECT a + {0}, (a + {0}) * 7 % 1000, c FROM t", 1 << times);
        client.query(&double).unwrap();
    }
}

/// Takes the reports of one statement. They come in the order of its stages, and each stage goes on.
fn take(client: &mut Connection<UnixStream>) -> Vec<Report> {
    let reports = client.take_reports();
    for report in &reports {
        assert!(report.stage >= 1 && report.stage <= report.stages, "{reports:?}");
        assert!(report.done <= 100_000 && !report.what.is_empty(), "{reports:?}");
    }
    assert!(reports.is_sorted_by_key(|report| (report.stage, report.done)), "{reports:?}");
    reports
}

#[test]
fn a_client_that_wants_to_know_is_told_how_far_its_statement_is() {
    let live = Live::start(&[]);
    let mut client = connect(&live, true);
    fill(&mut client, 13);
    for (statement, stages, first) in [
        ("ALTER TABLE t ADD d INT", 1, "copy to tmp table"),
        ("CREATE INDEX k ON t (c, b)", 2, "reading rows"),
        ("ALTER TABLE t ADD KEY k2 (b), ADD KEY k3 (c)", 4, "reading rows"),
        ("OPTIMIZE TABLE t", 1, "copy to tmp table"),
    ] {
        client.query(statement).unwrap();
        let reports = take(&mut client);
        let report = reports.first().unwrap_or_else(|| panic!("no report of {statement}"));
        assert_eq!((report.stages, report.what.as_str()), (stages, first), "{statement}");
    }
    let results = client.query_all(b"SELECT 1; ALTER TABLE t FORCE; SELECT 2").unwrap();
    assert_eq!([results[0].to_text(), results[2].to_text()], [[["1"]], [["2"]]]);
    assert!(!take(&mut client).is_empty());
    let prepared = client.prepare("ALTER TABLE t FORCE").unwrap();
    client.execute(prepared.id, &[]).unwrap();
    assert!(!take(&mut client).is_empty());
    let error = client.query("ALTER TABLE t ADD UNIQUE KEY (c)").unwrap_err();
    assert_eq!(error.code(), Some(1062), "{error}");
}

#[test]
fn a_file_of_the_server_is_reported_on() {
    let live = Live::start(&[]);
    let mut client = connect(&live, true);
    fill(&mut client, 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    std::fs::write(&path, "7\t8\tx\n".repeat(1000)).unwrap();
    client.query(&format!("LOAD DATA INFILE '{}' IGNORE INTO TABLE t", path.display())).unwrap();
    assert_eq!(take(&mut client)[0].what, "Reading file");
}

#[test]
fn nobody_is_told_who_does_not_want_to_know() {
    let live = Live::start(&[]);
    let mut client = connect(&live, false);
    fill(&mut client, 12);
    client.query("ALTER TABLE t FORCE").unwrap();
    assert_eq!(client.take_reports(), []);
    let mut client = connect(&live, true);
    for scope in ["SESSION", "GLOBAL"] {
        client.query(&format!("SET {scope} progress_report_time = 0")).unwrap();
        client.query("ALTER TABLE d.t FORCE").unwrap();
        assert_eq!(client.take_reports(), []);
        client.query("SET SESSION progress_report_time = 1").unwrap();
    }
}

#[test]
fn the_process_list_knows_the_stage_and_kill_ends_it() {
    let live = Live::start(&[]);
    let mut client = connect(&live, false);
    fill(&mut client, 16);
    let mut observer = live.connect();
    let id = client.greeting().connection_id;
    std::thread::scope(|scope| {
        let altered = scope.spawn(move || {
            let error = loop {
                if let Err(error) = client.query("CREATE INDEX k ON t (c, b)") {
                    break error;
                }
                client.query("DROP INDEX k ON t").unwrap();
            };
            (client, error)
        });
        let list = "SELECT MAX_STAGE FROM information_schema.PROCESSLIST";
        wait_until("its stage", || {
            let rows = observer.query(&format!("{list} WHERE ID = {id} AND STAGE > 0")).unwrap().to_text();
            rows == [["2"]]
        });
        observer.query(&format!("KILL QUERY {id}")).unwrap();
        let (mut client, error) = altered.join().unwrap();
        assert_eq!(error.code(), Some(1317), "{error}");
        // Nothing of the index is left, and its name is free.
        client.query("DROP INDEX IF EXISTS k ON t").unwrap();
        client.query("CREATE INDEX k ON t (c, b)").unwrap();
        assert_eq!(client.query("CHECK TABLE t EXTENDED").unwrap().to_text()[0][3], "OK");
    });
}
