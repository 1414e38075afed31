//! A disk that fills up: a small tmpfs. Mounting it requires the machine's root.

use crate::support::{Latchwork, client, feed, have, is_machine_root, sql_error, text};
use std::path::Path;
use std::process::Command;

/// A small file system, unmounted when dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a Path, size: &str) -> Option<SmallDisk<'a>> {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder)
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_fails_statements_with_a_clear_error_and_loses_nothing() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let disk = if is_machine_root() { SmallDisk::mount(&data, "32M") } else { None };
    if disk.is_none() {
        eprintln!("skipped: a tmpfs cannot be mounted here");
        return;
    }
    let options = ["--key_buffer_size=1M", "--log_file_size=8M"];
    let mut server = Latchwork::start(scratch.path(), &options);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, pad CHAR(200))");
    let (mut stored, mut complaint) = (0, String::new());
    for first in (0..200_000).step_by(500) {
        let rows: Vec<String> = (first..first + 500).map(|id| format!("({id}, REPEAT('x', 200))")).collect();
        let output = feed(&mut client(&server.socket), &format!("INSERT INTO d.t VALUES {}", rows.join(",")));
        if !output.status.success() {
            complaint = text(&output.stderr);
            break;
        }
        stored = first + 500;
    }
    assert!(complaint.contains("ERROR"), "40 MB fitted on 32 MB");
    let clear = ["full", "space", "1021", "1114", "read only", "read-only", "ENOSPC", "28"];
    assert!(clear.iter().any(|word| complaint.contains(word)), "{complaint}");
    assert!(server.is_running());
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t WHERE pad = REPEAT('x', 200)"), format!("{stored}\n"));
    assert_eq!(server.sql("SELECT MAX(id) FROM d.t"), format!("{}\n", stored - 1));
    // Once there is room again, a clean shutdown keeps everything.
    let grown = Command::new("mount").args(["-o", "remount,size=64M"]).arg(&data).status().unwrap();
    assert!(grown.success());
    assert_eq!(server.stop().code(), Some(0));
    let server = Latchwork::start(scratch.path(), &options);
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t WHERE pad = REPEAT('x', 200)"), format!("{stored}\n"));
    drop(server);
    drop(disk);
}

/// One statement that needs more than the disk has; gives what the client was told.
fn overfill(server: &Latchwork) -> String {
    let rows: Vec<String> = (0..500).map(|id| format!("({id})")).collect();
    server.sql(&format!(
        "CREATE DATABASE d; CREATE TABLE d.s (id INT PRIMARY KEY); INSERT INTO d.s VALUES {}; \
         CREATE TABLE d.t (id INT PRIMARY KEY, k INT, pad CHAR(200), KEY (k)); \
         INSERT INTO d.t VALUES (1000000, 1, 'before')",
        rows.join(",")
    ));
    sql_error(&server.socket, FILL)
}

const FILL: &str = "INSERT INTO d.t SELECT a.id * 500 + b.id, b.id, REPEAT('x', 200) FROM d.s a, d.s b \
                    LIMIT 200000";

fn grow(data: &Path) {
    let grown = Command::new("mount").args(["-o", "remount,size=400M"]).arg(data).status().unwrap();
    assert!(grown.success());
}

#[test]
fn a_statement_that_fills_the_disk_is_undone_and_all_goes_on_when_there_is_room_without_a_restart() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let disk = if is_machine_root() { SmallDisk::mount(&data, "40M") } else { None };
    if disk.is_none() {
        eprintln!("skipped: a tmpfs cannot be mounted here");
        return;
    }
    let options = ["--key_buffer_size=2M", "--log_file_size=8M"];
    for is_killed in [false, true] {
        let mut server = Latchwork::start(scratch.path(), &options);
        if is_killed {
            server.sql("DROP DATABASE d");
            let shrunk = Command::new("mount").args(["-o", "remount,size=40M"]).arg(&data).status().unwrap();
            assert!(shrunk.success());
        }
        let complaint = overfill(&server);
        assert!(complaint.contains("ERROR 1021") || complaint.contains("ERROR 1114"), "{complaint}");
        assert_eq!(server.sql("SELECT pad FROM d.t"), "before\n");
        if is_killed {
            server.kill();
            server = Latchwork::start(scratch.path(), &options);
            assert_eq!(server.sql("SELECT pad FROM d.t"), "before\n");
        }
        grow(&data);
        server.sql("INSERT INTO d.t VALUES (1000001, 1, 'after')");
        server.sql(FILL);
        assert_eq!(server.sql("SELECT COUNT(*), SUM(id >= 1000000) FROM d.t"), "200002\t2\n");
        assert_eq!(server.stop().code(), Some(0));
    }
    let server = Latchwork::start(scratch.path(), &options);
    assert_eq!(server.sql("SELECT COUNT(*), SUM(id >= 1000000) FROM d.t"), "200002\t2\n");
    drop(server);
    drop(disk);
}
