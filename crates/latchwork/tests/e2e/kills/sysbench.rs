//! sysbench's oltp_read_write. Each of its transactions updates rows, deletes a row and inserts it again.

use super::{Restarts, Round, random, rounds, stop_and_check};
use crate::support::have;
use crate::support::target::{Client, Proof, Server, targets};
use crate::sysbench::{TABLE_ROWS, command, sysbench};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

const WORKLOAD: &str = "oltp_read_write";

fn verify(server: &Server) {
    let mut client = server.connect();
    let mut ask = |sql: &str| client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).to_text();
    let all = [TABLE_ROWS.to_string(), (TABLE_ROWS * (TABLE_ROWS + 1) / 2).to_string()];
    // Half a transaction would leave one row too few or too many.
    assert_eq!(ask("SELECT COUNT(*), SUM(id) FROM sbtest.sbtest1"), [all]);
    let by_index = ask("SELECT id, k FROM sbtest.sbtest1 WHERE k >= 0 ORDER BY id");
    let by_key = ask("SELECT id, k FROM sbtest.sbtest1 ORDER BY id");
    assert!(by_index == by_key, "the index of k and the rows differ");
}

/// The number of COMMITs that the server has seen. `None` if the server is gone.
fn commits(client: &mut Client) -> Option<u64> {
    let result = client.query("SHOW GLOBAL STATUS LIKE 'Com_commit'").ok()?;
    Some(result.to_text()[0][1].parse().unwrap())
}

#[test]
fn sysbench_finds_its_rows_after_kills() {
    if !have(&["sysbench"]) {
        return;
    }
    for target in targets(Proof::KilledTransactions) {
        let scratch = tempfile::tempdir().unwrap();
        let mut random = random();
        let mut server = target.start(scratch.path());
        server.connect().query("CREATE DATABASE sbtest").unwrap();
        sysbench(server.socket(), WORKLOAD, &[], "prepare");
        let mut restarts = Restarts::default();
        for _ in 0..rounds() {
            let round = Round::default();
            let mut load = command(server.socket(), WORKLOAD, &["--threads=6", "--events=0"], "run")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut observer = server.connect();
            let before = commits(&mut observer).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while let Some(commits) = commits(&mut observer) {
                        round.done.store(commits - before, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(5));
                    }
                });
                round.kill(server, &mut random);
            });
            // sysbench ends with an error when its server is gone.
            load.wait().unwrap();
            server = restarts.restart(target, scratch.path(), &mut random);
            verify(&server);
        }
        let server = stop_and_check(target, server, scratch.path());
        verify(&server);
    }
}
