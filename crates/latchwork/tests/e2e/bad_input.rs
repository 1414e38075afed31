//! Bad input of every kind gets a clear error and loses nothing.

use crate::support::PATIENCE;
use crate::support::latchwork::run;
use crate::support::target::connect;
use crate::support::{Latchwork, have, sql_error, text};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `latchwork serve` with these options must refuse to start, and its message must contain each of `words`.
fn refused(options: &[&str], words: &[&str]) {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let socket = scratch.path().join("socket");
    let mut arguments =
        vec!["serve", "--datadir", data.to_str().unwrap(), "--socket", socket.to_str().unwrap()];
    arguments.extend(options);
    if !options.contains(&"--port") {
        arguments.extend(["--port", "0"]);
    }
    refused_with(&arguments, words);
}

fn refused_with(arguments: &[&str], words: &[&str]) {
    let output = run(arguments);
    let complaint = text(&output.stderr);
    assert!(!output.status.success(), "{arguments:?} was not refused");
    assert!(!complaint.contains("panicked"), "{arguments:?}: {complaint}");
    let normal = |text: &str| text.replace('_', "-").to_lowercase();
    for word in words {
        assert!(
            normal(&complaint).contains(&normal(word)),
            "{arguments:?} does not name {word}: {complaint}"
        );
    }
}

#[test]
fn an_unknown_option_is_refused_by_name() {
    refused(&["--no-such-option=1"], &["no-such-option"]);
    refused(&["--nosuchoption"], &["nosuchoption"]);
    refused(&["stray"], &["stray"]);
}

#[test]
fn a_wrong_value_is_refused_with_its_option() {
    refused(&["--key_buffer_size=banana"], &["key_buffer_size", "banana"]);
    refused(&["--key-cache-segments=many"], &["key_cache_segments", "many"]);
    refused(&["--port", "99999999"], &["port"]);
    refused(&["--max_connections=1e3x"], &["max_connections"]);
    refused(&["--key_cache_hit_path=psychic"], &["key_cache_hit_path", "psychic"]);
    refused(&["--key_buffer_size"], &["key_buffer_size"]);
    refused(&["--bind-address=not.an.address.at.all"], &["not.an.address.at.all"]);
}

#[test]
fn a_configuration_file_with_a_mistake_is_refused_by_line() {
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("my.cnf");
    std::fs::write(&config, "[mysqld]\nkey_buffer_size = 16M\nno_such_option = 3\n").unwrap();
    refused(&["--config", config.to_str().unwrap()], &["no_such_option"]);
    refused(&["--config", "/nonexistent/my.cnf"], &["/nonexistent/my.cnf"]);
}

#[test]
fn a_missing_or_impossible_folder_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("plain-file");
    std::fs::write(&file, "not a folder").unwrap();
    let inside = file.join("data");
    let socket = scratch.path().join("socket");
    let socket = socket.to_str().unwrap();
    refused_with(
        &["serve", "--datadir", inside.to_str().unwrap(), "--socket", socket, "--port", "0"],
        &[inside.to_str().unwrap()],
    );
    refused_with(
        &["serve", "--datadir", file.to_str().unwrap(), "--socket", socket, "--port", "0"],
        &["plain-file"],
    );
    refused_with(&["check", "/nonexistent/data"], &["/nonexistent/data"]);
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("ibdata1"), "another server's").unwrap();
    let socket = scratch.path().join("socket");
    refused_with(
        &["serve", "--datadir", data.to_str().unwrap(), "--socket", socket.to_str().unwrap(), "--port", "0"],
        &["data"],
    );
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1, "files were added");
}

#[test]
fn a_used_port_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    refused(&["--port", &port], &[&port]);
}

#[test]
fn a_folder_in_use_is_refused_and_its_server_goes_on() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let first = Latchwork::start(scratch.path(), &[]);
    let data = scratch.path().join("data");
    let other_socket = scratch.path().join("other-socket");
    refused_with(
        &[
            "serve",
            "--datadir",
            data.to_str().unwrap(),
            "--socket",
            other_socket.to_str().unwrap(),
            "--port",
            "0",
        ],
        &["data"],
    );
    refused_with(&["check", data.to_str().unwrap()], &["data"]);
    assert_eq!(first.sql("SELECT 1"), "1\n");
}

#[test]
fn a_socket_in_use_is_refused_and_a_stale_one_replaced() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let first = Latchwork::start(scratch.path(), &[]);
    let elsewhere = scratch.path().join("elsewhere");
    refused_with(
        &[
            "serve",
            "--datadir",
            elsewhere.to_str().unwrap(),
            "--socket",
            first.socket.to_str().unwrap(),
            "--port",
            "0",
        ],
        &["socket"],
    );
    assert_eq!(first.sql("SELECT 1"), "1\n");
    assert!(first.stop().success());
    std::fs::write(scratch.path().join("kept"), "").unwrap();
    let stale = std::os::unix::net::UnixListener::bind(scratch.path().join("stale")).unwrap();
    drop(stale);
    std::fs::rename(scratch.path().join("stale"), scratch.path().join("socket")).unwrap();
    assert_eq!(Latchwork::start(scratch.path(), &[]).sql("SELECT 1"), "1\n");
}

/// The largest file under a folder: the pages of the table that was filled.
fn largest_file(folder: &Path) -> PathBuf {
    let mut folders = vec![folder.to_path_buf()];
    let mut largest = (0, PathBuf::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.len() > largest.0 {
                largest = (metadata.len(), entry.path());
            }
        }
    }
    largest.1
}

#[test]
fn a_corrupt_page_is_named_by_check_and_survived_by_the_server() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.healthy (id INT PRIMARY KEY); INSERT INTO d.healthy VALUES (1)",
    );
    server.sql("CREATE TABLE d.hurt (id INT PRIMARY KEY, pad CHAR(200))");
    let rows: Vec<String> = (0..5000).map(|id| format!("({id}, REPEAT('x', 200))")).collect();
    server.sql(&format!("INSERT INTO d.hurt VALUES {}", rows.join(",")));
    assert!(server.stop().success());
    let sound = run(&["check", data.to_str().unwrap()]);
    assert!(sound.status.success(), "{}{}", text(&sound.stdout), text(&sound.stderr));

    let victim = largest_file(&data.join("tables"));
    let mut bytes = std::fs::read(&victim).unwrap();
    // Past the header and the root pages, in the middle of the leaves.
    let position = bytes.len() / 2 / 16384 * 16384 + 9000;
    bytes[position] ^= 0x40;
    std::fs::write(&victim, &bytes).unwrap();

    let verdict = run(&["check", data.to_str().unwrap()]);
    let complaint = text(&verdict.stdout) + &text(&verdict.stderr);
    assert_eq!(verdict.status.code(), Some(1), "{complaint}");
    let page = format!("page {}", position / 16384);
    assert!(complaint.contains(&page), "check does not name {page}: {complaint}");

    let mut server = Latchwork::start(scratch.path(), &[]);
    let error = sql_error(&server.socket, "SELECT SUM(LENGTH(pad)) FROM d.hurt");
    assert!(error.to_lowercase().contains(&page), "the error does not name {page}: {error}");
    assert_eq!(server.sql("SELECT * FROM d.healthy"), "1\n");
    assert_eq!(server.sql("SELECT LENGTH(pad) FROM d.hurt WHERE id = 0"), "200\n");
    assert!(server.is_running());
}

/// Reads the greeting that a server opens with.
fn greeting(stream: &mut impl Read) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).unwrap();
    let mut body = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut body).unwrap();
    body
}

#[test]
fn clients_that_vanish_at_any_byte_leave_nothing_behind() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--max_connections=20"]);
    // The header promises 60 bytes, and fewer come. This happens more often than connections are allowed.
    let packet = [&[60, 0, 0, 1][..], &[0x85, 0xa6, 0x3f, 0x20], &[0; 56]].concat();
    for length in 0..packet.len() {
        let mut stream = UnixStream::connect(&server.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        if length % 3 > 0 {
            greeting(&mut stream);
        }
        let _ = stream.write_all(&packet[..length]);
    }
    let alone = crate::support::wait_until(|| {
        let output = crate::support::client(&server.socket)
            .args(["-N", "-e", "SELECT COUNT(*) FROM information_schema.processlist"])
            .output()
            .unwrap();
        text(&output.stdout).trim() == "1"
    });
    assert!(alone, "connections remain: {}", server.sql("SHOW PROCESSLIST"));
}

#[test]
fn malformed_packets_end_their_connection_only() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut server = Latchwork::start(scratch.path(), &[]);
    let rubbish: &[&[u8]] = &[
        // First no bytes, then wrong sequence numbers, then wrong lengths.
        &[0, 0, 0, 1],
        &[1, 0, 0, 9, 0],
        &[4, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
        &[
            32, 0, 0, 1, 0x85, 0xa6, 0x3f, 0x20, 0, 0, 0, 1, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0xfe,
        ],
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &[0xff; 64],
    ];
    for bytes in rubbish {
        for tcp in [true, false] {
            let mut answer = Vec::new();
            let read = if tcp {
                let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                greeting(&mut stream);
                stream.write_all(bytes).unwrap();
                let _ = stream.shutdown(std::net::Shutdown::Write);
                stream.read_to_end(&mut answer)
            } else {
                let mut stream = UnixStream::connect(&server.socket).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                greeting(&mut stream);
                stream.write_all(bytes).unwrap();
                let _ = stream.shutdown(std::net::Shutdown::Write);
                stream.read_to_end(&mut answer)
            };
            let timed_out = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            assert!(!timed_out, "the connection stays open after {bytes:?}");
        }
    }
    assert_eq!(server.sql("SELECT 1"), "1\n");
    assert!(server.is_running());
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn statements_of_many_megabytes_pass_and_too_large_ones_are_refused() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--max_allowed_packet=40M"]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, b LONGTEXT)");
    let run = |bytes: usize| {
        let script = format!("INSERT INTO d.t VALUES (1, '{}');", "y".repeat(bytes));
        crate::support::feed(crate::support::client(&server.socket).arg("--max-allowed-packet=1G"), &script)
    };
    let fits = run(18 << 20);
    assert!(fits.status.success(), "{}", text(&fits.stderr));
    assert_eq!(server.sql("SELECT LENGTH(b) FROM d.t"), format!("{}\n", 18 << 20));
    let output = crate::support::client(&server.socket)
        .args(["--max-allowed-packet=1G", "-N", "-e", "SELECT b FROM d.t"])
        .output()
        .unwrap();
    assert_eq!(output.stdout.len(), (18 << 20) + 1, "{}", text(&output.stderr));
    let large = run(41 << 20);
    let complaint = text(&large.stderr);
    assert!(complaint.contains("1153") || complaint.contains("2006"), "{complaint}");
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t"), "1\n");
}

/// Trees that are as deep as the parser lets them be, and deeper ones: each is answered, by a result or an
/// error, as text and prepared, and the server goes on.
#[test]
fn no_statement_is_too_deep_for_the_server() {
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    let mut client = connect(&server.socket, Some(PATIENCE)).unwrap();
    client.query("CREATE DATABASE deep").unwrap();
    client.query("CREATE TABLE deep.t (a INT)").unwrap();
    let chain = |first: &str, each: &str, length: usize| format!("{first}{}", each.repeat(length));
    for length in [400, 1_990, 20_000] {
        let mut statements = vec![
            chain("SELECT a FROM deep.t WHERE a = 1", " OR a = 1", length * 8),
            chain("DELETE FROM deep.t WHERE a = 1", " AND a = 1", length * 8),
            chain("SELECT 1", " UNION ALL SELECT 1", length),
            format!("SELECT * FROM (SELECT 1{}) AS d", " OR 1".repeat(length * 8)),
        ];
        let operators = [
            "+1", "-1", "*1", "/1", " DIV 1", " % 1", "|1", "&1", "^1", "<<1", " = 1", " < 1", " XOR 1",
            " IS NULL",
        ];
        let more = [" LIKE 1", " IN (1)", " COLLATE utf8mb4_bin", " BETWEEN 1 AND 1", " REGEXP 1", " || 1"];
        statements.extend(operators.iter().chain(&more).map(|each| chain("SELECT 1", each, length)));
        statements.push(chain("SELECT NOW()", " + INTERVAL 1 DAY", length));
        statements.push(chain("SELECT 1", "+CASE WHEN 1 THEN 1 END", length));
        statements.push(chain("INSERT INTO deep.t VALUES (1", "+1", length) + ")");
        statements.push(chain("UPDATE deep.t SET a = 1", "+a", length));
        for sql in statements {
            if let Err(error) = client.query(&sql) {
                assert!(error.code().is_some(), "the connection is lost: {}... {error}", &sql[..60]);
            }
            if let Err(error) = client.prepare(&sql) {
                assert!(error.code().is_some(), "the connection is lost: {}... {error}", &sql[..60]);
            }
        }
        for open in ["(", "-", "NOT ", "ABS(", "(SELECT ", "CASE WHEN ", "~", "!", "BINARY "] {
            let sql = format!("SELECT {}1", open.repeat(length));
            let error = client.query(&sql).err().and_then(|error| error.code());
            assert!(error.is_some() || client.query("SELECT 1").is_ok(), "{open}");
        }
    }
    client.query("SELECT 1").unwrap();
}
