//! Devices that fail, and a panic, under a running server, as its clients see them.

use crate::support::{Client, Live, wait_until};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use vfs::{Fault, Faults, FaultyVfs, MemVfs, Operation, SimVfs, Vfs};
use wire::client::ClientError;
use wire::response::ServerError;

/// A device that fails on demand, and a folder for the sockets of the servers on it.
struct Device {
    vfs: Arc<dyn Vfs>,
    faults: Faults,
    folder: TempDir,
}

impl Device {
    fn over(inner: Arc<dyn Vfs>) -> Device {
        let vfs = FaultyVfs::new(inner);
        Device { faults: vfs.faults(), vfs: Arc::new(vfs), folder: tempfile::tempdir().unwrap() }
    }

    fn serve(&self, options: &[&str]) -> Live {
        Live::start_on(self.vfs.clone(), self.folder.path(), options)
    }

    /// No server is running on it.
    fn assert_clean(&self) {
        let report = engine::check(&self.folder.path().join("data"), self.vfs.clone()).unwrap();
        assert!(report.is_clean(), "{report}");
    }
}

fn run(client: &mut Client, sql: &str) {
    client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

fn refused(client: &mut Client, sql: &str) -> ServerError {
    match client.query(sql) {
        Err(ClientError::Server(error)) => error,
        other => panic!("{sql}: {other:?}"),
    }
}

fn number(client: &mut Client, sql: &str) -> i64 {
    client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).to_text()[0][0].parse().unwrap()
}

fn check_table(client: &mut Client) {
    let answer = client.query("CHECK TABLE d.t").unwrap().to_text();
    assert_eq!(answer, [["d.t", "check", "status", "OK"]]);
}

#[test]
fn after_a_failed_sync_of_the_log_changes_are_refused_and_a_start_has_what_was_acknowledged() {
    let sim = SimVfs::new();
    let device = Device::over(Arc::new(sim.clone()));
    let live = device.serve(&[]);
    let (mut client, mut other) = (live.connect(), live.connect());
    run(&mut client, "CREATE DATABASE d");
    run(&mut client, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, KEY (v))");
    run(&mut client, "CREATE TABLE d.o (id INT PRIMARY KEY)");
    (0..30).for_each(|id| run(&mut client, &format!("INSERT INTO d.t VALUES ({id}, {id})")));
    run(&mut other, "BEGIN");
    run(&mut other, "INSERT INTO d.o VALUES (1)");

    device.faults.fail_from(Operation::Sync, 1, Fault::Error(ErrorKind::Other));
    let error = refused(&mut client, "INSERT INTO d.t VALUES (30, 30)");
    assert_eq!(error.code, 1290, "{error:?}");
    assert!(error.message.contains("refuses writes"), "{error:?}");
    // After one failed sync the device is not trusted again.
    device.faults.heal();
    for sql in [
        "INSERT INTO d.t VALUES (31, 31)",
        "UPDATE d.t SET v = 1",
        "DELETE FROM d.t WHERE id = 1",
        "SELECT * FROM d.t FOR UPDATE",
        "CREATE TABLE d.u (id INT)",
        "ALTER TABLE d.t ADD COLUMN w INT",
        "DROP TABLE d.t",
        "CREATE DATABASE e",
    ] {
        let error = refused(&mut client, sql);
        assert_eq!((error.code, error.message.contains("refuses writes")), (1290, true), "{sql}: {error:?}");
    }
    assert_eq!(refused(&mut other, "COMMIT").code, 1290);
    for reader in [&mut client, &mut other, &mut live.connect()] {
        assert_eq!(number(reader, "SELECT COUNT(*) FROM d.t WHERE id < 30"), 30);
        assert_eq!(number(reader, "SELECT SUM(id) FROM d.t FORCE INDEX (v) WHERE v BETWEEN 10 AND 12"), 33);
    }
    wait_until("the reason in the log", || live.log().contains("refuses writes"));
    drop((client, other));
    assert!(!live.stop(), "nothing is called clean that is not on the device");

    for seed in 0..20 {
        let crashed: Arc<dyn Vfs> = Arc::new(sim.crash(seed));
        let live = Live::start_on(crashed.clone(), device.folder.path(), &[]);
        let mut client = live.connect();
        let rows = client.query("SELECT id, v FROM d.t").unwrap().to_text();
        let ids: BTreeSet<i64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
        assert!((0..30).all(|id| ids.contains(&id)), "seed {seed}: {ids:?}");
        // Rows that were refused after the failed sync may be there, because what the device has is unknown.
        assert!(ids.range(30..).all(|id| *id == 30), "seed {seed}: {ids:?}");
        assert!(number(&mut client, "SELECT COUNT(*) FROM d.o") <= 1, "seed {seed}");
        check_table(&mut client);
        run(&mut client, "INSERT INTO d.t VALUES (1000, 0)");
        drop(client);
        assert!(live.stop());
        assert!(
            engine::check(&device.folder.path().join("data"), crashed).unwrap().is_clean(),
            "seed {seed}"
        );
    }
}

/// Fills the disk by statements of `sql`. Returns how many of them succeeded.
fn until_full(client: &mut Client, sql: impl Fn(i64) -> String) -> i64 {
    for count in 0..5_000 {
        match client.query(&sql(count)) {
            Ok(_) => {}
            Err(ClientError::Server(error)) => {
                assert_eq!(error.code, 1021, "{error:?}");
                return count;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the disk does not fill up");
}

#[test]
fn a_full_disk_takes_statements_back_whole_and_room_makes_them_work() {
    let device = Device::over(Arc::new(MemVfs::new()));
    let live = device.serve(&["--key_buffer_size=1M", "--log_file_size=8M"]);
    let (mut client, mut other) = (live.connect(), live.connect());
    run(&mut client, "CREATE DATABASE d");
    run(&mut client, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, pad VARCHAR(3000))");
    run(&mut other, "BEGIN");
    run(&mut other, "INSERT INTO d.t VALUES (1, 0, '')");
    device.faults.set_free_bytes(Some(2 << 20));
    let rows = |first: i64| {
        let row = |id: i64| format!("({id}, 0, REPEAT('x', 600))");
        let rows: Vec<String> = (first..first + 20).map(row).collect();
        format!("INSERT INTO d.t VALUES {}", rows.join(", "))
    };
    let stored = 20 * until_full(&mut client, |count| rows(100 + 20 * count));
    let count = "SELECT COUNT(*) FROM d.t WHERE id >= 100 AND pad = REPEAT('x', 600)";
    for reader in [&mut client, &mut other] {
        assert_eq!(number(reader, count), stored, "all rows of a statement or none");
    }
    let grow = "UPDATE d.t SET pad = REPEAT('y', 2900) WHERE id >= 100";
    let error = refused(&mut client, grow);
    assert!([1021, 1290].contains(&error.code), "{error:?}");
    assert!(refused(&mut client, "CREATE TABLE d.u (id INT)").code != 0);
    assert_eq!(number(&mut client, count), stored);
    // The other session's transaction goes on, even if its statements fail.
    let _ = other.query(&rows(1_000_000));
    assert_eq!(number(&mut other, "SELECT COUNT(*) FROM d.t WHERE id < 100"), 1);
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM d.t WHERE id < 100"), 0);

    device.faults.set_free_bytes(None);
    // Pages that could not be written are written again later.
    wait_until("a row that is taken", || client.query("INSERT INTO d.t VALUES (2, 0, '')").is_ok());
    run(&mut client, "CREATE TABLE d.u (id INT)");
    run(&mut client, grow);
    run(&mut other, "COMMIT");
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM d.t WHERE id < 100"), 2);
    check_table(&mut client);
    drop((client, other));
    assert!(live.stop());
    device.assert_clean();
    let live = device.serve(&[]);
    let mut client = live.connect();
    let grown = "SELECT COUNT(*) FROM d.t WHERE id >= 100 AND pad = REPEAT('y', 2900)";
    assert_eq!(number(&mut client, grown), stored);
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM d.t WHERE id < 100"), 2);
}

#[test]
fn without_room_for_the_log_changes_wait_for_nobody_and_come_back_with_the_room() {
    let device = Device::over(Arc::new(MemVfs::new()));
    let live = device.serve(&["--log_file_size=64M"]);
    let mut client = live.connect();
    run(&mut client, "CREATE DATABASE d");
    run(&mut client, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, pad CHAR(250))");
    (0..8).for_each(|id| run(&mut client, &format!("INSERT INTO d.t VALUES ({id}, 0, '')")));
    // Rows keep their size: only the log grows, into files of its own.
    device.faults.set_free_bytes(Some(0));
    let update = |count: i64| format!("UPDATE d.t SET v = v + 1, pad = REPEAT(CHAR(97 + {count} % 26), 250)");
    let mut updates = 0;
    let mut error = None;
    while error.is_none() && updates < 60_000 {
        match client.query(&update(updates)) {
            Ok(_) => updates += 1,
            Err(ClientError::Server(refusal)) => error = Some(refusal),
            Err(other) => panic!("{other:?}"),
        }
    }
    let error = error.expect("the log has an end");
    assert_eq!(error.code, 1021, "{error:?}");
    assert_eq!(number(&mut client, "SELECT MIN(v) FROM d.t"), updates);
    assert_eq!(number(&mut client, "SELECT MAX(v) FROM d.t"), updates);
    device.faults.set_free_bytes(None);
    wait_until("a change that is taken", || client.query(&update(0)).is_ok());
    updates += 1;
    drop(client);
    assert!(live.stop());
    let live = device.serve(&[]);
    let mut client = live.connect();
    assert_eq!(number(&mut client, "SELECT MIN(v) FROM d.t"), updates);
    assert_eq!(number(&mut client, "SELECT MAX(v) FROM d.t"), updates);
    check_table(&mut client);
    drop(client);
    assert!(live.stop());
    device.assert_clean();
}

#[test]
fn a_panic_inside_a_statement_ends_its_session_alone() {
    let device = Device::over(Arc::new(MemVfs::new()));
    let live = device.serve(&[]);
    let mut witness = live.connect();
    run(&mut witness, "CREATE DATABASE d");
    run(&mut witness, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, KEY (v))");
    run(&mut witness, "INSERT INTO d.t VALUES (1, 10), (2, 20)");
    run(&mut witness, "SET lock_wait_timeout = 30");
    let mut panics = 0;
    for sql in [
        "CREATE TABLE d.u (id INT PRIMARY KEY)",
        "CREATE TABLE d.u SELECT * FROM d.t",
        "ALTER TABLE d.t ADD COLUMN w INT",
        "ALTER TABLE d.t ADD UNIQUE KEY (v)",
        "OPTIMIZE TABLE d.t",
        "TRUNCATE TABLE d.t",
    ] {
        for (nth, locks) in [(1, ""), (2, ""), (1, "LOCK TABLES d.t WRITE")] {
            let mut victim = live.connect();
            let id = victim.greeting().connection_id;
            if !locks.is_empty() {
                run(&mut victim, locks);
            }
            device.faults.panic_at(Path::new(""), Operation::Name, nth);
            let result = victim.query(sql);
            device.faults.heal();
            let panicked = match result {
                Err(ClientError::Io(_)) => true,
                // The statement changes fewer names than this, or it is not allowed under LOCK TABLES.
                Ok(_) | Err(ClientError::Server(_)) => false,
                Err(other) => panic!("{sql}: {other:?}"),
            };
            panics += u32::from(panicked);
            drop(victim);
            wait_until("the end of the session", || {
                let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id}");
                number(&mut witness, &sql) == 0
            });
            // Its locks are gone, and its statement was done as a whole or not at all.
            let rows =
                witness.query("SELECT id, v FROM d.t WHERE v > 0 ORDER BY id FOR UPDATE").unwrap().to_text();
            assert!(rows.is_empty() || rows == [["1", "10"], ["2", "20"]], "{sql}, {nth}: {rows:?}");
            assert!(rows.len() == 2 || sql.starts_with("TRUNCATE"), "{sql}, {nth}");
            run(&mut witness, "DROP TABLE IF EXISTS d.u");
            run(&mut witness, "DROP TABLE d.t");
            run(&mut witness, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, KEY (v))");
            run(&mut witness, "INSERT INTO d.t VALUES (1, 10), (2, 20)");
            check_table(&mut witness);
        }
    }
    assert!(panics >= 8, "{panics}");
    assert!(live.log().contains("panicked and was closed"), "{}", live.log());
    drop(witness);
    assert!(live.stop());
    device.assert_clean();
}

#[test]
fn a_panic_while_a_page_is_read_ends_its_session_alone() {
    // Four times the size of the cache.
    const ROWS: i64 = 4_000;
    let device = Device::over(Arc::new(MemVfs::new()));
    let live = device.serve(&["--key_buffer_size=512K"]);
    let mut witness = live.connect();
    run(&mut witness, "CREATE DATABASE d");
    run(&mut witness, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, pad CHAR(250), KEY (v))");
    for first in (0..ROWS).step_by(500) {
        let rows: Vec<String> =
            (first..first + 500).map(|id| format!("({id}, {id}, REPEAT('x', 250))")).collect();
        run(&mut witness, &format!("INSERT INTO d.t VALUES {}", rows.join(", ")));
    }
    let file = {
        let tables = device.vfs.list(&device.folder.path().join("data/tables")).unwrap();
        // Names are numbers, and the last table has the largest.
        let names = tables.iter().map(|path| path.file_name().unwrap().to_owned());
        names.max_by_key(|name| (name.len(), name.clone())).unwrap()
    };
    let file = Path::new(&file);
    let mut panics = 0;
    for (round, sql) in [
        "SELECT SUM(LENGTH(pad)) FROM d.t",
        "SELECT id FROM d.t FORCE INDEX (v) WHERE v > 10 AND pad > '' FOR UPDATE",
        "UPDATE d.t SET v = v + 1",
        "UPDATE d.t SET v = v + 1",
        "UPDATE d.t SET v = v + 1",
        "DELETE FROM d.t WHERE id % 2 = 0",
        "INSERT INTO d.t SELECT id + 100000, v, pad FROM d.t",
    ]
    .iter()
    .enumerate()
    {
        for nth in [1, 40, 150, 400] {
            let mut victim = live.connect();
            run(&mut victim, "BEGIN");
            run(&mut victim, "UPDATE d.t SET v = -1 WHERE id = 7");
            run(&mut victim, "SELECT v FROM d.t WHERE id = 8 FOR UPDATE");
            device.faults.panic_at(file, Operation::Read, nth);
            let result = victim.query(sql);
            device.faults.heal();
            match result {
                Err(ClientError::Io(_)) => panics += 1,
                // The statement needs fewer reads than this.
                Ok(_) => run(&mut victim, "ROLLBACK"),
                Err(other) => panic!("{sql}: {other:?}"),
            }
            // It has left no change, no lock and no session.
            let rows =
                witness.query("SELECT v FROM d.t WHERE id IN (7, 8) FOR UPDATE NOWAIT").unwrap().to_text();
            assert_eq!(rows, [["7"], ["8"]], "{round}: {sql}");
            assert_eq!(number(&mut witness, "SELECT COUNT(*) FROM d.t"), ROWS, "{round}: {sql}");
            assert_eq!(
                number(&mut witness, "SELECT SUM(v) FROM d.t"),
                ROWS * (ROWS - 1) / 2,
                "{round}: {sql}"
            );
            drop(victim);
            wait_until("the end of the session", || {
                let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST";
                number(&mut witness, sql) == 1
            });
        }
    }
    assert!(panics >= 10, "{panics}");
    assert!(live.log().contains("panicked and was closed"), "{}", live.log());
    run(&mut witness, "ALTER TABLE d.t ADD COLUMN w INT");
    check_table(&mut witness);
    drop(witness);
    assert!(live.stop());
    device.assert_clean();
}
