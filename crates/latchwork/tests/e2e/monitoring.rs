//! Monitoring: Prometheus's page, and the slow query log.

use crate::support::{Latchwork, client, feed, have, python, text, wait_until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// The address that the server's log gives for the metrics.
fn metrics_address(server: &Latchwork) -> String {
    let log = server.log();
    let address = log.split("metrics: http://").nth(1).and_then(|rest| rest.split("/metrics").next());
    address.unwrap_or_else(|| panic!("no address in {log}")).to_owned()
}

#[test]
fn prometheus_reads_the_page_and_its_figures_follow_what_was_done() {
    let Some(python) = python("prometheus_client.parser") else { return };
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let options = ["--metrics-address=127.0.0.1:0", "--key_cache_segments=4", "--latch_statistics=ON"];
    let server = Latchwork::start(scratch.path(), &options);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, k INT, KEY (k))");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/python/metrics.py");
    let mut reader = Command::new(python)
        .arg(script)
        .arg(format!("http://{}/metrics", metrics_address(&server)))
        .arg("4")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut says = BufReader::new(reader.stdout.take().unwrap()).lines();
    assert_eq!(says.next().unwrap().unwrap(), "scraped");
    for number in 0..3 {
        server.sql(&format!("INSERT INTO d.t VALUES ({number}, 1), ({}, 2)", number + 10));
    }
    // What was counted of statements stays counted.
    server.sql("FLUSH STATUS");
    server.sql(&"SELECT COUNT(*) FROM d.t WHERE k = 1;\n".repeat(10));
    reader.stdin.take().unwrap().write_all(b"ran\n").unwrap();
    assert_eq!(says.next().unwrap().unwrap(), "right");
    assert!(reader.wait().unwrap().success());

    // Other requests are refused, and the next good one is answered.
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("nonsense\r\n\r\n", "400"),
        ("HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
    ] {
        let mut stream = TcpStream::connect(metrics_address(&server)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    // Clients that connect and send nothing delay no others. If there are too many, the first one is cut off.
    let address = metrics_address(&server);
    let mut silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // Idle clients do not keep the server from stopping either.
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn slow_statements_are_logged_in_a_form_that_mysqldumpslow_reads() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("slow.log");
    let options =
        ["--slow_query_log", &format!("--slow_query_log_file={}", file.display()), "--long_query_time=1000"];
    let server = Latchwork::start(scratch.path(), &options);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, k INT)");
    let values: Vec<String> = (0..100).map(|id| format!("({id}, {id})")).collect();
    server.sql(&format!("INSERT INTO d.t VALUES {}", values.join(",")));
    assert!(!file.exists(), "nothing was slow yet");

    // Every statement takes longer than 0 seconds.
    server.sql(
        "SET long_query_time = 0; USE d; SELECT COUNT(*) FROM t WHERE k > 49; SELECT k FROM t WHERE id = 5;
         PREPARE p FROM 'SELECT k FROM t WHERE id = ?'; SET @five = 5; EXECUTE p USING @five;
         SET min_examined_row_limit = 50; SELECT k FROM t WHERE id = 6; SELECT COUNT(*) FROM t WHERE k > 98",
    );
    // An entry is written once the statement has been answered.
    let read = || {
        assert!(wait_until(|| server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST") == "1\n"));
        std::fs::read_to_string(&file).unwrap()
    };
    let log = read();
    let port = server.sql("SELECT @@port");
    let addresses = format!("Tcp port: {}  Unix socket: {}", port.trim(), server.socket.display());
    assert_eq!(log.lines().nth(1), Some(addresses.as_str()));
    let entry = |statement: &str| -> Vec<String> {
        let entry = log.split("# Time: ").find(|entry| entry.contains(&format!("\n{statement};\n")));
        entry.unwrap_or_else(|| panic!("no {statement} in {log}")).lines().map(str::to_owned).collect()
    };
    let counted = entry("SELECT COUNT(*) FROM t WHERE k > 49");
    assert_eq!(counted[1], "# User@Host: root[root] @ localhost []");
    assert!(
        counted[2].starts_with("# Thread_id: ") && counted[2].ends_with("  Schema: d  QC_hit: No"),
        "{counted:?}"
    );
    assert!(
        counted[3].starts_with("# Query_time: ") && counted[3].contains("  Lock_time: 0.000000  "),
        "{counted:?}"
    );
    assert!(counted[3].ends_with("Rows_sent: 1  Rows_examined: 100"), "{counted:?}");
    assert_eq!(counted[4], "use d;");
    assert!(counted[5].starts_with("SET timestamp="), "{counted:?}");
    assert!(entry("SELECT k FROM t WHERE id = 5")[3].ends_with("Rows_sent: 1  Rows_examined: 1"));
    entry("EXECUTE p USING @five");
    assert!(!log.contains("WHERE id = 6"), "it looked at too few rows");
    entry("SELECT COUNT(*) FROM t WHERE k > 98");
    let slow: u64 = server
        .sql("SHOW GLOBAL STATUS LIKE 'Slow_queries'")
        .trim()
        .rsplit('\t')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(slow as usize, log.matches("# Query_time: ").count());

    // Fast statements that read a whole table are logged, into a new file after the old one was renamed.
    std::fs::rename(&file, scratch.path().join("slow.log.1")).unwrap();
    server.sql(
        "FLUSH SLOW LOGS; SET GLOBAL log_queries_not_using_indexes = 1; SET log_queries_not_using_indexes = 1;
         SELECT k FROM d.t WHERE id = 7; SELECT MAX(k + 1) FROM d.t",
    );
    let log = read();
    assert!(log.contains("SELECT MAX(k + 1) FROM d.t;\n") && !log.contains("id = 7"), "{log}");
    server.sql("SET GLOBAL slow_query_log = OFF; SET long_query_time = 0; SELECT 'not logged'");
    assert_eq!(read(), log);

    if have(&["mysqldumpslow"]) {
        let old = scratch.path().join("slow.log.1");
        let output = Command::new("mysqldumpslow").args(["-s", "r"]).arg(old).output().unwrap();
        let summary = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(
            summary.contains("Count: 2 ") && summary.contains("SELECT COUNT(*) FROM t WHERE k > N"),
            "{summary}"
        );
        assert!(summary.contains("root[root]@localhost"), "{summary}");
    }
}

#[test]
fn a_statement_that_waited_for_a_row_says_so_in_the_slow_query_log() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--slow_query_log", "--slow_query_log_file=waits.log"]);
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, k INT); INSERT INTO d.t VALUES (1, 1)",
    );
    std::thread::scope(|scope| {
        // Holds the row until it is killed.
        scope.spawn(|| feed(&mut client(&server.socket), "BEGIN; UPDATE d.t SET k = 2; SELECT SLEEP(600)"));
        let holder =
            "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_rows_modified = 1";
        assert!(wait_until(|| !server.sql(holder).is_empty()));
        scope.spawn(|| server.sql("SET long_query_time = 0.001; UPDATE d.t SET k = 3"));
        let waiting =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for row lock'";
        assert!(wait_until(|| server.sql(waiting) == "1\n"));
        std::thread::sleep(std::time::Duration::from_millis(10));
        server.sql(&format!("KILL {}", server.sql(holder)));
    });
    let gone = "SELECT COUNT(*) = 1 FROM information_schema.processlist";
    assert!(wait_until(|| server.sql(gone) == "1\n"));
    let log = std::fs::read_to_string(scratch.path().join("data/waits.log")).unwrap();
    // On a busy machine other statements may have been slow too, SET for example.
    let (entries, _) = log.split_once("\nUPDATE d.t SET k = 3;\n").unwrap_or_else(|| panic!("{log}"));
    let line = entries.lines().rfind(|line| line.starts_with("# Query_time: ")).unwrap();
    let seconds = |name: &str| -> f64 {
        line.split(name).nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!(seconds("Lock_time: ") > 0.0 && seconds("Query_time: ") >= seconds("Lock_time: "), "{log}");
}
