//! The distribution's sysbench, unmodified. All runs are limited by events, and none by time.

use crate::support::{Latchwork, MariaDb, feed, have, mariadb, text};
use std::path::Path;
use std::process::Command;

/// A workload and the options it needs here.
const WORKLOADS: &[(&str, &[&str])] = &[
    ("select_random_points", &["--random-points=10"]),
    ("select_random_ranges", &["--number-of-ranges=10"]),
    ("oltp_point_select", &[]),
    ("oltp_read_only", &["--skip-trx=on"]),
    ("oltp_insert", &[]),
    ("oltp_delete", &[]),
    ("oltp_update_index", &[]),
    ("oltp_update_non_index", &[]),
    ("bulk_insert", &[]),
];

pub const TABLE_ROWS: u64 = 2000;

/// One sysbench command, on a table of [`TABLE_ROWS`].
pub fn command(socket: &Path, workload: &str, options: &[&str], command: &str) -> Command {
    let mut program = Command::new("sysbench");
    program.arg(workload).args(["--db-driver=mysql", "--mysql-user=root", "--mysql-db=sbtest", "--time=0"]);
    program.arg(format!("--mysql-socket={}", socket.display()));
    if workload != "bulk_insert" {
        program.arg(format!("--table-size={TABLE_ROWS}"));
    }
    program.args(options).arg(command);
    program
}

/// Runs a command to its end. Returns its report.
pub fn sysbench(socket: &Path, workload: &str, options: &[&str], command: &str) -> String {
    let output = feed(&mut self::command(socket, workload, options, command), "");
    let report = text(&output.stdout) + &text(&output.stderr);
    assert!(
        output.status.success() && !report.contains("FATAL") && !report.contains("error 1"),
        "sysbench {workload} {options:?} {command}:\n{report}"
    );
    report
}

/// The figure after a label of sysbench's report, such as `total number of events:`.
fn figure(report: &str, label: &str) -> u64 {
    let line =
        report.lines().find(|line| line.contains(label)).unwrap_or_else(|| panic!("{label}: {report}"));
    let after = line.split(label).nth(1).unwrap_or_default();
    let digits: String = after.trim().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{line}"))
}

fn count(server: &Latchwork, table: &str) -> u64 {
    server.sql(&format!("SELECT COUNT(*) FROM sbtest.{table}")).trim().parse().unwrap()
}

fn every_workload(ps_mode: &str) {
    if !have(&["sysbench", "mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--max_connections=200"]);
    server.sql("CREATE DATABASE sbtest");
    for (workload, options) in WORKLOADS {
        for threads in [1, 8, 128] {
            let events = 40 * threads.max(5);
            let threads_option = format!("--threads={threads}");
            let events_option = format!("--events={events}");
            let mut options = options.to_vec();
            let mode = format!("--db-ps-mode={ps_mode}");
            options.extend([threads_option.as_str(), &mode, "--rand-type=uniform"]);
            sysbench(&server.socket, workload, &options, "prepare");
            let before = if *workload == "bulk_insert" { 0 } else { count(&server, "sbtest1") };
            options.push(&events_option);
            let report = sysbench(&server.socket, workload, &options, "run");
            assert_eq!(figure(&report, "total number of events:"), events, "{workload}: {report}");
            assert_eq!(figure(&report, "ignored errors:"), 0, "{workload}: {report}");
            match *workload {
                "oltp_insert" => assert_eq!(count(&server, "sbtest1"), before + events),
                "oltp_delete" => assert!(count(&server, "sbtest1") < before),
                "bulk_insert" => {
                    let rows: u64 = (1..=threads).map(|n| count(&server, &format!("sbtest{n}"))).sum();
                    assert!(rows > 0, "bulk_insert left no rows");
                }
                _ => assert_eq!(count(&server, "sbtest1"), before),
            }
            sysbench(&server.socket, workload, &options, "cleanup");
            assert_eq!(server.sql("SHOW TABLES FROM sbtest"), "", "{workload}: cleanup");
        }
    }
    assert!(server.stop().success());
}

#[test]
fn every_workload_runs_with_prepared_statements() {
    every_workload("auto");
}

#[test]
fn every_workload_runs_with_text_statements() {
    every_workload("disable");
}

/// The contents of the table, and the results of the statements of the read workloads.
fn contents(sql: &dyn Fn(&str) -> String) -> Vec<(String, String)> {
    let mut statements = vec![
        "SELECT id, k, c, pad FROM sbtest1 ORDER BY id".to_string(),
        "SELECT COUNT(*), SUM(k), MIN(k), MAX(k), AVG(k) FROM sbtest1".into(),
        "SELECT k, COUNT(*) FROM sbtest1 GROUP BY k ORDER BY k".into(),
        "SELECT id FROM sbtest1 ORDER BY k DESC, id DESC LIMIT 50".into(),
    ];
    for start in (1..TABLE_ROWS).step_by(97) {
        let end = start + 20;
        let points: Vec<String> = (0..10).map(|step| (start * 7 + step * 131).to_string()).collect();
        let points = points.join(", ");
        statements.extend([
            format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({points}) ORDER BY id"),
            format!(
                "SELECT count(k) FROM sbtest1 WHERE k BETWEEN {start} AND {end} OR k BETWEEN 900 AND 1000"
            ),
            format!("SELECT c FROM sbtest1 WHERE id={start}"),
            format!("SELECT c FROM sbtest1 WHERE id BETWEEN {start} AND {end}"),
            format!("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN {start} AND {end}"),
            format!("SELECT c FROM sbtest1 WHERE id BETWEEN {start} AND {end} ORDER BY c"),
            format!("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN {start} AND {end} ORDER BY c"),
        ]);
    }
    statements.into_iter().map(|text| (text.clone(), sql(&format!("USE sbtest; {text}")))).collect()
}

#[test]
fn rows_equal_mariadbs_after_the_same_seeded_runs() {
    if !have(mariadb::PROGRAMS) || !have(&["sysbench", "mariadb-dump"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let both = |workload: &str, options: &[&str], command: &str| {
        let mut options = options.to_vec();
        options.extend(["--threads=1", "--rand-seed=20260101", "--rand-type=uniform"]);
        for socket in [&judge.socket, &server.socket] {
            sysbench(socket, workload, &options, command);
        }
    };
    judge.sql("CREATE DATABASE sbtest");
    server.sql("CREATE DATABASE sbtest");
    both("oltp_read_only", &[], "prepare");
    // sysbench seeds its runs but not the rows that it loads, so Latchwork gets a copy of MariaDB's rows.
    let rows = Command::new("mariadb-dump")
        .args(["--no-defaults", "--user=root", "--no-create-info", "--complete-insert", "sbtest"])
        .arg(format!("--socket={}", judge.socket.display()))
        .output()
        .unwrap();
    assert!(rows.status.success(), "{}", text(&rows.stderr));
    server.sql(&format!("USE sbtest; TRUNCATE TABLE sbtest1; {}", text(&rows.stdout)));
    let compare = |after: &str| {
        let expected = contents(&|text| judge.sql(text));
        let got = contents(&|text| server.sql(text));
        for ((statement, expected), (_, got)) in expected.iter().zip(&got) {
            assert!(
                expected == got,
                "after {after}, {statement}:\n--- MariaDB\n{expected}\n--- Latchwork\n{got}"
            );
        }
    };
    compare("prepare");
    // One thread and one seed make the same changes on both servers.
    for workload in ["oltp_update_index", "oltp_update_non_index", "oltp_delete", "oltp_insert"] {
        for ps_mode in ["--db-ps-mode=auto", "--db-ps-mode=disable"] {
            both(workload, &[ps_mode, "--events=300"], "run");
            compare(&format!("{workload} {ps_mode}"));
        }
    }
}
