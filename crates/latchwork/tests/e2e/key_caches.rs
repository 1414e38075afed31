//! Named key caches: their counters, their return after a restart, and changes to them under load.

use crate::support::latchwork::run;
use crate::support::{Latchwork, client, have, text, wait_until};
use std::process::Stdio;

/// The row of KEY_CACHES for a whole cache: used blocks, read requests, reads, write requests, writes.
fn counters(server: &Latchwork, cache: &str) -> Vec<u64> {
    let row = server.sql(&format!(
        "SELECT used_blocks, read_requests, `reads`, write_requests, `writes` FROM information_schema.key_caches \
         WHERE key_cache_name = '{cache}' AND segment_number IS NULL"
    ));
    row.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// The same four counts of the default cache, from SHOW STATUS.
fn status(server: &Latchwork) -> Vec<u64> {
    let names = ["Key_read_requests", "Key_reads", "Key_write_requests", "Key_writes"];
    let rows = server.sql("SHOW GLOBAL STATUS LIKE 'Key%'");
    let value = |name: &str| {
        let row = rows.lines().find(|row| row.split_whitespace().next() == Some(name)).unwrap();
        row.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    names.iter().map(|name| value(name)).collect()
}

fn insert_rows(server: &Latchwork, table: &str, rows: std::ops::Range<u32>) {
    let values: Vec<String> = rows.map(|n| format!("({n}, REPEAT('x', 100))")).collect();
    server.sql(&format!("INSERT INTO {table} VALUES {}", values.join(",")));
}

#[test]
fn caches_of_the_command_line_and_assignments_of_the_init_file_are_there_after_a_restart() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("my.cnf");
    std::fs::write(&config, "[mysqld]\nsmall.key_buffer_size = 256K\nsmall.key_cache_division_limit=40\n")
        .unwrap();
    let init = scratch.path().join("init.sql");
    let statements = "-- Caches of our own.\nSET GLOBAL hot.key_buffer_size = 2 * 1024 * 1024;\n\
                      CACHE INDEX d.t IN hot; /* a comment; with a semicolon */ LOAD INDEX INTO CACHE d.t;\n";
    std::fs::write(&init, statements).unwrap();
    let (config, init_option) =
        (format!("--config={}", config.display()), format!("--init-file={}", init.display()));
    let options =
        [config.as_str(), &init_option, "--Small.key_buffer_size=64K", "--small.key-buffer-size", "512K"];

    // The table is missing: the second statement reports that in its result set, and the file goes on.
    let server = Latchwork::start(scratch.path(), &options);
    let log = server.log();
    assert_eq!(log.matches("init.sql, line 3: d.t: Table 'd.t' doesn't exist").count(), 2, "{log}");
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(100), KEY (v))");
    insert_rows(&server, "d.t", 0..1000);
    let read = "SELECT @@hot.key_buffer_size, @@small.key_buffer_size, @@small.key_cache_division_limit, \
                @@Small.key_buffer_size, @@init_file";
    let expected = format!("2097152\t524288\t40\t65536\t{}\n", init.display());
    assert_eq!(server.sql(read), expected);
    assert_eq!(counters(&server, "hot")[0], 0);
    assert!(server.stop().success());

    let server = Latchwork::start(scratch.path(), &options);
    assert!(!server.log().contains("init file"), "{}", server.log());
    assert_eq!(server.sql(read), expected);
    let loaded = counters(&server, "hot");
    assert!(loaded[0] > 10, "the table is not in its cache: {loaded:?}");
    server.sql("SELECT COUNT(*) FROM d.t WHERE id BETWEEN 10 AND 900");
    let after = counters(&server, "hot");
    assert!(after[1] > loaded[1] && after[2] == loaded[2], "{loaded:?} {after:?}");
    assert!(server.stop().success());
}

#[test]
fn a_statement_that_fails_ends_the_init_file_and_not_the_start() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let init = scratch.path().join("init.sql");
    std::fs::write(
        &init,
        "CREATE DATABASE before_it;\n\n# Now the mistake.\nSELECT nosuch;\nCREATE DATABASE after_it;\n",
    )
    .unwrap();
    let option = format!("--init-file={}", init.display());
    let server = Latchwork::start(scratch.path(), &[&option]);
    let log = server.log();
    assert!(log.contains("init.sql, line 4: ERROR 1054 (42S22): Unknown column 'nosuch'"), "{log}");
    assert_eq!(server.sql("SHOW DATABASES LIKE '%_it'"), "before_it\n");
    assert!(server.stop().success());

    let data = scratch.path().join("data");
    let refused = run(&["serve", "--datadir", data.to_str().unwrap(), "--init-file=/nonexistent/init.sql"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("--init-file: cannot read /nonexistent/init.sql"),
        "{}",
        text(&refused.stderr)
    );
}

/// Runs a statement. Returns by how much it changed the cache's read requests, reads and write requests.
fn counted(server: &Latchwork, cache: &str, statement: &str) -> [u64; 3] {
    let before = counters(server, cache);
    server.sql(statement);
    let after = counters(server, cache);
    [1, 2, 3].map(|at| after[at] - before[at])
}

/// Waits until the tables have everything that is in the log. From then on no checkpoint reads or writes
/// pages.
fn settle(server: &Latchwork) {
    let age = "SHOW GLOBAL STATUS LIKE 'Innodb_checkpoint_age'";
    assert!(wait_until(|| server.sql(age) == "Innodb_checkpoint_age\t0\n"));
}

#[test]
fn every_access_of_a_page_counts_once() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    // The row tier is off, because rows in it would not be read from their pages again.
    let server = Latchwork::start(scratch.path(), &["--row_cache_size=0"]);
    server.sql("CREATE DATABASE d; SET GLOBAL hot.key_buffer_size = 8388608, hot.key_cache_segments = 4");
    // Table one has a single page, a leaf. Table two has a root and 16 leaves.
    server.sql("CREATE TABLE d.one (id INT PRIMARY KEY, v VARCHAR(100)); CREATE TABLE d.two LIKE d.one");
    insert_rows(&server, "d.one", 0..10);
    insert_rows(&server, "d.two", 0..2000);
    settle(&server);
    assert_eq!(counters(&server, "hot"), [0; 5]);
    server.sql("CACHE INDEX d.one, d.two IN hot");
    assert_eq!(counters(&server, "hot"), [0; 5], "a table comes without its pages");

    let hot = |statement: &str| counted(&server, "hot", statement);
    assert_eq!(hot("SELECT v FROM d.one WHERE id = 3"), [1, 1, 0]);
    assert_eq!(hot("SELECT v FROM d.one WHERE id = 4"), [1, 0, 0]);
    assert_eq!(hot("SELECT v FROM d.two WHERE id = 3"), [2, 2, 0]);
    assert_eq!(hot("SELECT v FROM d.two WHERE id = 4"), [2, 0, 0]);
    // The same again, because FLUSH STATUS does not empty the cache.
    assert_eq!(counters(&server, "hot"), [3, 6, 3, 0, 0]);
    server.sql("FLUSH STATUS");
    assert_eq!(counters(&server, "hot"), [3, 0, 0, 0, 0]);

    assert_eq!(hot("LOAD INDEX INTO CACHE d.two IGNORE LEAVES"), [1, 0, 0]);
    assert_eq!(hot("LOAD INDEX INTO CACHE d.two"), [17, 15, 0]);
    assert_eq!(hot("LOAD INDEX INTO CACHE d.two"), [17, 0, 0]);
    assert_eq!(counters(&server, "hot")[0], 18);
    let [requests, reads, _] = hot("SELECT COUNT(*) FROM d.two");
    assert!(requests >= 17 && reads == 0, "{requests} requests, {reads} reads");

    // Each statement reads the page and then changes it: nine statements, nine write requests.
    let inserts: String = (100..109).map(|id| format!("INSERT INTO d.one VALUES ({id}, 'new');")).collect();
    assert_eq!(hot(&inserts)[1..], [0, 9]);
    settle(&server);
    assert_eq!(hot("UPDATE d.one SET v = 'newer' WHERE id = 3")[1..], [0, 1]);
    settle(&server);

    // The counters of the default cache have not changed.
    server.sql("CACHE INDEX d.two IN DEFAULT");
    assert_eq!(hot("SELECT v FROM d.two WHERE id = 3"), [0, 0, 0]);
    // After a change of size the pages are still in the cache, and the counters start at zero.
    server
        .sql("CACHE INDEX d.two IN hot; CACHE INDEX d.two IN DEFAULT; SET GLOBAL key_buffer_size = 16777216");
    assert_eq!(status(&server)[..3], [0; 3]);
    server.sql("SELECT v FROM d.two WHERE id = 3");
    // The writes are not compared, because dirty pages are written in the background.
    assert_eq!(status(&server)[..3], [2, 2, 0]);
    server.sql("SET GLOBAL key_buffer_size = 33554432");
    assert_eq!(status(&server)[..3], [0; 3]);
    server.sql("SELECT v FROM d.two WHERE id = 3");
    assert_eq!(status(&server)[..3], [2, 0, 0]);
    server.sql("SELECT v FROM d.two WHERE id = 5; SELECT v FROM d.two WHERE id = 1999");
    assert_eq!(status(&server)[..3], [6, 1, 0]);
    assert_eq!(counters(&server, "default")[1..4], [6, 1, 0]);
    let session = server.sql("SHOW SESSION STATUS LIKE 'Key%'");
    assert_eq!(session, server.sql("SHOW GLOBAL STATUS LIKE 'Key%'"));

    // The rows of the segments add up to those of the whole cache.
    let sums = "SELECT SUM(used_blocks), SUM(read_requests), SUM(`reads`), SUM(write_requests), COUNT(*) \
                FROM information_schema.key_caches WHERE key_cache_name = 'hot' GROUP BY segment_number IS NULL";
    let rows = server.sql(sums);
    let (segments, whole) = rows.trim().split_once('\n').unwrap();
    assert_eq!(segments.rsplit_once('\t').unwrap().0, whole.rsplit_once('\t').unwrap().0, "{rows}");
    assert!(segments.ends_with("\t4") && whole.ends_with("\t1"), "{rows}");
}

#[test]
fn caches_are_resized_dropped_and_reassigned_under_load() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--key_buffer_size=4M"]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(100), KEY (v))");
    insert_rows(&server, "d.t", 0..2000);
    let mut clients: Vec<_> = (0..3)
        .map(|number| {
            let mut script = String::new();
            for n in 0..1500 {
                let id = 10_000 + number * 10_000 + n;
                script += &format!("INSERT INTO d.t VALUES ({id}, '{id}');\n");
                script += &format!("UPDATE d.t SET v = 'changed' WHERE id = {id};\n");
                script += &format!(
                    "SELECT COUNT(*) FROM d.t WHERE id BETWEEN {} AND {};\n",
                    n % 1900,
                    n % 1900 + 50
                );
            }
            let file = scratch.path().join(format!("script-{number}"));
            std::fs::write(&file, script).unwrap();
            let mut command = client(&server.socket);
            command.stdin(std::fs::File::open(file).unwrap()).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let mut rounds = 0;
    while rounds < 3 || clients.iter_mut().any(|client| client.try_wait().unwrap().is_none()) {
        for statement in [
            "SET GLOBAL hot.key_buffer_size = 1048576",
            "CACHE INDEX d.t IN hot",
            "SET GLOBAL hot.key_buffer_size = 4194304",
            "SET GLOBAL hot.key_cache_segments = 8",
            "SET GLOBAL hot.key_buffer_size = 524288, hot.key_cache_segments = 0",
            "SET GLOBAL key_buffer_size = 2097152",
            "CACHE INDEX d.t IN DEFAULT",
            "CACHE INDEX d.t IN hot",
            "SET GLOBAL hot.key_buffer_size = 0",
            "SET GLOBAL key_buffer_size = 4194304",
        ] {
            server.sql(statement);
        }
        rounds += 1;
    }
    for client in &mut clients {
        assert!(client.wait().unwrap().success());
    }
    let question = "SELECT COUNT(*), SUM(v = 'changed') FROM d.t; CHECK TABLE d.t";
    let answer = "6500\t4500\nd.t\tcheck\tstatus\tOK\n";
    assert_eq!(server.sql(question), answer);
    assert!(server.stop().success());
    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(server.sql(question), answer);
}

#[test]
fn an_init_file_holds_statements_that_end_with_semicolons() {
    if !have(&["mariadb"]) {
        return;
    }
    for (content, databases, logged) in [
        ("CREATE DATABASE a_it; CREATE DATABASE b_it;", "a_it\nb_it\n", ""),
        (
            "CREATE DATABASE a_it;\nCREATE DATABASE b_it",
            "a_it\n",
            "line 2: the last statement does not end with",
        ),
        ("DELIMITER ;\n/* c */ CREATE DATABASE a_it; -- done\n", "a_it\n", ""),
        (
            "delimiter //\nCREATE DATABASE a_it//\nCREATE DATABASE b_it;",
            "",
            "line 1: DELIMITER is not supported",
        ),
        (
            "CREATE DATABASE a_it;\n-- ours\n/* theirs\nCREATE DATABASE b_it;\n",
            "a_it\n",
            "line 3: a comment begins that does not end",
        ),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let init = scratch.path().join("init.sql");
        std::fs::write(&init, content).unwrap();
        let server = Latchwork::start(scratch.path(), &[&format!("--init-file={}", init.display())]);
        assert_eq!(server.sql("SHOW DATABASES LIKE '%_it'"), databases, "{content}");
        let log = server.log();
        assert_eq!(log.contains("init file"), !logged.is_empty(), "{content}: {log}");
        assert!(log.contains(logged), "{content}: {log}");
        assert!(server.stop().success());
    }
}

#[test]
fn the_row_cache_has_a_view_and_sorts_of_indexes_their_memory() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let options = ["--row_cache_size=2M", "--key_buffer_size=1M", "--innodb_page_size=16K"];
    let server = Latchwork::start(scratch.path(), &options);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(100))");
    for from in (0..24_000).step_by(2_000) {
        insert_rows(&server, "d.t", from..from + 2_000);
    }
    // Scattered lookups, whose pages are not in memory.
    let lookups: Vec<String> =
        (0..2_000_u32).map(|n| format!("SELECT v FROM d.t WHERE id = {};", n * 7919 % 24_000)).collect();
    let script = lookups.concat();
    server.sql(&script);
    let view = "SELECT key_cache_name, size, row_count, hits, misses, fills, evictions, invalidations, \
                bytes BETWEEN row_count * 100 AND size, row_overhead BETWEEN 20 AND 500 \
                FROM information_schema.row_cache";
    let numbers = |row: &str| -> Vec<String> { row.trim().split('\t').map(str::to_owned).collect() };
    let first = numbers(&server.sql(view));
    assert_eq!((first[0].as_str(), first[1].as_str()), ("default", "2097152"));
    let count = |at: usize, row: &[String]| row[at].parse::<u64>().unwrap();
    assert!(count(2, &first) > 500 && count(5, &first) > 500, "{first:?}");
    assert_eq!(&first[8..], ["1", "1"], "{first:?}");
    server.sql(&script);
    let second = numbers(&server.sql(view));
    assert!(count(3, &second) > count(3, &first), "{first:?} {second:?}");
    server.sql("UPDATE d.t SET v = 'changed'");
    let third = numbers(&server.sql(view));
    assert!(count(7, &third) > count(7, &second), "{second:?} {third:?}");
    let status = server.sql("SHOW STATUS LIKE 'Row_cache_fills'");
    assert_eq!(status.trim().split('\t').nth(1), Some(third[5].as_str()));

    // A folder has the name of its scratch file, so only a sort in memory succeeds.
    server.sql("UPDATE d.t SET v = REPEAT('x', 100)");
    for number in 0..20 {
        std::fs::create_dir(scratch.path().join(format!("data/tables/sort-{number}"))).unwrap();
    }
    let sort = |bytes: u32| {
        let script = format!("SET myisam_sort_buffer_size = {bytes}; CREATE INDEX k ON d.t (v, id)");
        client(&server.socket).args(["-e", &script]).output().unwrap().status.success()
    };
    assert!(!sort(4096));
    assert!(sort(64 << 20));
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t FORCE INDEX (k) WHERE v > 'a'"), "24000\n");
}
