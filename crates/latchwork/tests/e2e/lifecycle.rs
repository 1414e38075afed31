//! Starting, stopping, and being stopped.

use crate::support::latchwork::run;
use crate::support::{Latchwork, client, have, signal, text};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

#[test]
fn sigterm_ends_well_and_the_rows_are_there_after_a_restart() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql("CREATE DATABASE d");
    server.sql("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), KEY (v))");
    let rows: Vec<String> = (0..3000).map(|n| format!("('v{}')", n % 100)).collect();
    server.sql(&format!("INSERT INTO d.t (v) VALUES {}", rows.join(",")));
    server.sql("DELETE FROM d.t WHERE id % 3 = 0; UPDATE d.t SET v = 'changed' WHERE id % 5 = 0");
    let question =
        "SELECT COUNT(*), SUM(id), COUNT(DISTINCT v) FROM d.t; SELECT COUNT(*) FROM d.t WHERE v = 'changed'";
    let before = server.sql(question);
    assert_eq!(server.stop().code(), Some(0));

    let data = scratch.path().join("data");
    let verdict = run(&["check", data.to_str().unwrap()]);
    assert_eq!(verdict.status.code(), Some(0), "{}{}", text(&verdict.stdout), text(&verdict.stderr));

    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(server.sql(question), before);
    server.sql("INSERT INTO d.t (v) VALUES ('after')");
    let id: u64 = server.sql("SELECT id FROM d.t WHERE v = 'after'").trim().parse().unwrap();
    assert!(id > 3000, "AUTO_INCREMENT went back to {id}");
    assert!(server.sql("SHOW CREATE TABLE d.t").contains("PRIMARY KEY"));
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn sigterm_under_load_leaves_a_sound_folder() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--key_buffer_size=8M"]);
    server.sql("CREATE DATABASE d");
    server.sql("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100), KEY (v))");
    let mut writers: Vec<_> = (0..4)
        .map(|writer| {
            let mut script = String::new();
            for n in 0..20_000 {
                script += &format!("INSERT INTO d.t (v) VALUES ('{writer}-{n}'), (REPEAT('z', 90));\n");
                script += &format!("DELETE FROM d.t WHERE v = '{writer}-{}';\n", n / 2);
            }
            let file = scratch.path().join(format!("script-{writer}"));
            std::fs::write(&file, script).unwrap();
            client(&server.socket)
                .stdin(std::fs::File::open(file).unwrap())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let some = crate::support::wait_until(|| server.sql("SELECT COUNT(*) > 500 FROM d.t") == "1\n");
    assert!(some, "the writers do not get on");
    assert_eq!(server.stop().code(), Some(0));
    for writer in &mut writers {
        writer.wait().unwrap();
    }
    let data = scratch.path().join("data");
    let verdict = run(&["check", data.to_str().unwrap()]);
    assert_eq!(verdict.status.code(), Some(0), "{}{}", text(&verdict.stdout), text(&verdict.stderr));
    let server = Latchwork::start(scratch.path(), &[]);
    let by_row = server.sql("SELECT COUNT(*) FROM d.t");
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t WHERE v >= ''"), by_row, "the index lost rows");
}

#[test]
fn after_a_kill_the_server_has_what_it_acknowledged() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2)");
    server.kill();
    let data = scratch.path().join("data");
    let verdict = run(&["check", data.to_str().unwrap()]);
    assert_eq!(verdict.status.code(), Some(0), "{}{}", text(&verdict.stdout), text(&verdict.stderr));
    assert!(text(&verdict.stdout).contains("not shut down cleanly"), "{}", text(&verdict.stdout));
    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(server.sql("SELECT SUM(id) FROM d.t"), "3\n");
    assert!(server.stop().success());
}

#[test]
fn a_kill_before_anything_was_written_costs_nothing() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2)");
    assert!(server.stop().success());
    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(server.sql("SELECT SUM(id) FROM d.t"), "3\n");
    assert!(server.stop().success());
}

#[test]
fn the_published_studys_options_are_taken_as_they_stand() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let log = scratch.path().join("error.log");
    let server = Latchwork::start(
        scratch.path(),
        &[
            "--no-defaults",
            "--key_buffer_size=32M",
            "--max_connections=256",
            "--query_cache_size=0",
            "--query_cache_type=0",
            "--skip-grant-tables",
            "--table_open_cache=512",
            "--thread_cache=512",
            "--thread_cache_size=512",
            "--key_cache_segments=32",
            &format!("--tmpdir={}", scratch.path().display()),
            &format!("--log-error={}", log.display()),
        ],
    );
    assert_eq!(
        server.sql("SELECT @@key_buffer_size, @@key_cache_segments, @@max_connections"),
        "33554432\t32\t256\n"
    );
    assert!(server.stop().success());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("query_cache"), "what has no effect is not said: {log}");
}

#[test]
fn the_last_of_key_buffer_size_and_its_synonym_wins() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("my.cnf");
    std::fs::write(&config, "[mysqld]\nkey_buffer_size = 16M\n# a comment\nkey-cache-segments=4\n").unwrap();
    let config = config.to_str().unwrap();
    let server = Latchwork::start(scratch.path(), &["--config", config]);
    assert_eq!(server.sql("SELECT @@key_buffer_size, @@key_cache_segments"), "16777216\t4\n");
    assert!(server.stop().success());
    let options = ["--config", config, "--key_buffer_size=24M", "--innodb-buffer-pool-size=32M"];
    let server = Latchwork::start(scratch.path(), &options);
    assert_eq!(server.sql("SELECT @@key_buffer_size"), "33554432\n");
    assert_eq!(server.sql("SELECT @@innodb_buffer_pool_size"), "33554432\n");
}

#[test]
fn the_smallest_cache_serves_a_table_many_times_its_size() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    for options in [
        ["--key_buffer_size=4096", "--key_cache_hit_path=locked"],
        ["--key_buffer_size=4096", "--key_cache_hit_path=optimistic"],
    ] {
        let server = Latchwork::start(scratch.path(), &options);
        server.sql("DROP DATABASE IF EXISTS d; CREATE DATABASE d");
        server.sql("CREATE TABLE d.t (id INT PRIMARY KEY, k INT, pad CHAR(100), KEY (k))");
        for chunk in 0..10 {
            let rows: Vec<String> = (0..1000)
                .map(|n| (chunk * 1000 + n) * 7 % 10_000)
                .map(|id| format!("({id}, {}, 'pad')", id % 97))
                .collect();
            server.sql(&format!("INSERT INTO d.t VALUES {}", rows.join(",")));
        }
        assert_eq!(server.sql("SELECT COUNT(*), SUM(id) FROM d.t"), "10000\t49995000\n");
        assert_eq!(server.sql("SELECT COUNT(*) FROM d.t WHERE k IN (1, 2, 3)"), "312\n");
        server.sql("UPDATE d.t SET k = k + 1 WHERE id < 500; DELETE FROM d.t WHERE id >= 9000");
        assert_eq!(server.sql("SELECT COUNT(*), MAX(id) FROM d.t"), "9000\t8999\n");
        assert!(server.stop().success());
    }
}

#[test]
fn a_second_sigterm_does_not_hurt() {
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    signal("TERM", server.pid());
    // The process may have ended by now. Then there is nothing left to signal.
    let _ = std::process::Command::new("kill").arg(server.pid().to_string()).stderr(Stdio::null()).status();
    let mut server = server;
    assert!(crate::support::wait_until(|| !server.is_running()));
    drop(server);
    let again = Latchwork::start(scratch.path(), &[]);
    assert!(again.stop().success());
}

#[test]
fn the_pid_file_is_there_while_the_server_runs() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("data/server.pid");
    let server = Latchwork::start(scratch.path(), &["--pid-file=server.pid"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", server.pid()));
    assert_eq!(server.sql("SELECT @@pid_file"), format!("{}\n", path.display()));
    server.kill();
    assert!(path.exists());
    let absolute = format!("--pid-file={}", path.display());
    let server = Latchwork::start(scratch.path(), &[&absolute]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", server.pid()));
    assert!(server.stop().success());
    assert!(!path.exists());
}

/// Starts a server on `folder/data` in a shell that has set a limit. Gives it and its socket, once it serves.
/// Its log is `folder/log`.
fn start_limited(limit: &str, folder: &Path) -> (Child, PathBuf) {
    let (socket, log) = (folder.join("socket"), folder.join("log"));
    // A server that was killed has left it.
    let _ = std::fs::remove_file(&socket);
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    let mut server = std::process::Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_latchwork"), "serve", "--skip-networking"])
        .args(["--datadir", folder.join("data").to_str().unwrap(), "--socket", socket.to_str().unwrap()])
        .args(["--flush_method=nosync"])
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    crate::support::wait_until(|| socket.exists() || server.try_wait().unwrap().is_some());
    assert!(server.try_wait().unwrap().is_none(), "{}", text(&std::fs::read(&log).unwrap()));
    (server, socket)
}

#[test]
fn more_tables_than_descriptors_are_served() {
    const TABLES: usize = 2_000;
    if !have(&["mariadb", "sh"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (mut server, socket) = start_limited("ulimit -n 300", scratch.path());
    let mut script = String::from("CREATE DATABASE d; USE d;\n");
    for table in 0..TABLES {
        script +=
            &format!("CREATE TABLE t{table} (id INT PRIMARY KEY); INSERT INTO t{table} VALUES ({table});\n");
    }
    crate::support::sql(&socket, &script);
    // Not more than it may have, and enough left for connections.
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
    assert!(open < 200, "{open} descriptors");
    signal("KILL", server.id());
    server.wait().unwrap();
    let (mut server, socket) = start_limited("ulimit -n 300", scratch.path());
    let mut script = String::from("USE d;\n");
    for table in 0..TABLES {
        script += &format!("UPDATE t{table} SET id = id + 1; SELECT id FROM t{table};\n");
    }
    let expected: String = (1..=TABLES).map(|id| format!("{id}\n")).collect();
    assert_eq!(crate::support::sql(&socket, &script), expected);
    assert_eq!(crate::support::sql(&socket, "SELECT @@open_files_limit"), "300\n");
    let log = std::fs::read_to_string(scratch.path().join("log")).unwrap();
    assert!(log.contains("descriptors: 300 at most"), "{log}");
    signal("TERM", server.id());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    // A soft limit is raised.
    let (mut server, socket) = start_limited("ulimit -n 400 && ulimit -S -n 100", scratch.path());
    assert_eq!(crate::support::sql(&socket, "SELECT @@open_files_limit"), "400\n");
    signal("TERM", server.id());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn a_limit_of_address_space_is_no_reason_not_to_start() {
    if !have(&["mariadb", "sh"]) {
        return;
    }
    // What batch systems and some services set: less than this machine may have as memory.
    for limit in ["ulimit -v 8388608", "ulimit -d 1048576"] {
        let scratch = tempfile::tempdir().unwrap();
        let (mut server, socket) = start_limited(limit, scratch.path());
        // A pool for pages of another size, and another cache, are there as well.
        let answer = crate::support::sql(
            &socket,
            "SET GLOBAL other.key_buffer_size = 8388608; CREATE DATABASE d; \
             CREATE TABLE d.t (id INT PRIMARY KEY) PAGE_SIZE=4096; INSERT INTO d.t VALUES (1); \
             SELECT id FROM d.t",
        );
        assert_eq!(answer, "1\n", "{limit}");
        signal("TERM", server.id());
        assert_eq!(server.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_core_is_written_only_if_it_is_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let soft_limit = |server: &Latchwork| {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap().to_owned();
        line.split_whitespace().nth(4).unwrap().to_owned()
    };
    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(soft_limit(&server), "0");
    assert_eq!(server.stop().code(), Some(0));
    let server = Latchwork::start(scratch.path(), &["--core-file"]);
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let own = own.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(soft_limit(&server), own.split_whitespace().nth(4).unwrap(), "as the server was started");
}
