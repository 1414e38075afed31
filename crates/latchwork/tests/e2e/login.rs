//! Which users may connect.

use crate::support::{Latchwork, feed, have, text};
use std::process::{Command, Output};

fn over_tcp(server: &Latchwork, options: &[&str], statement: &str) -> Output {
    Command::new("mariadb")
        .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--batch", "--skip-column-names"])
        .arg(format!("--port={}", server.port()))
        .args(options)
        .args(["--execute", statement])
        .output()
        .unwrap()
}

#[test]
fn root_needs_a_password_over_tcp_and_the_log_says_how_to_set_one() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    for options in [&["--user=root"][..], &["--user=root", "--password=guess"], &["--user=somebody"]] {
        let output = over_tcp(&server, options, "SELECT 1");
        let complaint = text(&output.stderr);
        assert!(!output.status.success() && complaint.contains("1045"), "{options:?}: {complaint}");
    }
    let complaint = text(&over_tcp(&server, &["--user=root"], "SELECT 1").stderr);
    assert!(!complaint.contains("SET PASSWORD"), "{complaint}");
    assert!(server.log().contains("SET PASSWORD"), "{}", server.log());

    server.sql("SET PASSWORD = PASSWORD('secret')");
    let output = over_tcp(&server, &["--user=root", "--password=secret"], "SELECT 1");
    assert_eq!(text(&output.stdout), "1\n", "{}", text(&output.stderr));
    for options in [&["--user=root"][..], &["--user=root", "--password=Secret"]] {
        assert!(text(&over_tcp(&server, options, "SELECT 1").stderr).contains("1045"));
    }
    assert!(server.stop().success());
    let server = Latchwork::start(scratch.path(), &[]);
    let output = over_tcp(&server, &["--user=root", "--password=secret"], "SELECT 1");
    assert_eq!(text(&output.stdout), "1\n", "the password is gone after a restart: {}", text(&output.stderr));
}

#[test]
fn mariadbs_client_encrypts_and_compresses() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--max_allowed_packet=64M"]);
    let certificate = server.sql("SELECT @@ssl_cert");
    server.sql("SET PASSWORD = PASSWORD('secret')");
    let authority = format!("--ssl-ca={}", certificate.trim());
    let state = "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME IN                  ('COMPRESSION', 'SSL_VERSION') ORDER BY 1; SELECT LENGTH(REPEAT('latchwork', 3000000)),                  SUBSTRING(REPEAT('latchwork', 3000000), 26999992); SELECT REPEAT('latchwork', 3000000)";
    for (options, compression, version) in [
        (&["--skip-ssl"][..], "OFF", ""),
        (&["--skip-ssl", "--compress"], "ON", ""),
        (&["--ssl"], "OFF", "TLSv1.3"),
        (&[&authority], "OFF", "TLSv1.3"),
        (&["--ssl", "--tls-version=TLSv1.2", "--compress"], "ON", "TLSv1.2"),
    ] {
        let options =
            [&["--user=root", "--password=secret", "--max-allowed-packet=64M"][..], options].concat();
        let output = over_tcp(&server, &options, state);
        let answer = text(&output.stdout);
        let head = format!(
            "COMPRESSION\t{compression}\nSSL_VERSION\t{version}\n27000000\tlatchwork\nlatchworklatch"
        );
        assert!(answer.starts_with(&head), "{options:?}: {answer:.300}{}", text(&output.stderr));
        assert_eq!(answer.lines().last().map(str::len), Some(27_000_000), "{options:?}");
    }
    let refused = over_tcp(
        &server,
        &["--user=root", "--password=secret", &authority, "--ssl-verify-server-cert"],
        "SELECT 1",
    );
    let complaint = text(&refused.stderr);
    assert!(complaint.contains("2026"), "the certificate names no host: {complaint}");
}

#[test]
fn statements_of_several_packets_go_both_ways_compressed_and_encrypted() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--max_allowed_packet=64M"]);
    server.sql("SET PASSWORD = PASSWORD('secret')");
    // One text compresses to almost nothing, the other one less well.
    let even = "latchwork".repeat(3_000_000);
    let uneven: String =
        (0..20_000_000u64).map(|at| char::from(b'A' + ((at * at) >> 9) as u8 % 26)).collect();
    for text in [even, uneven] {
        for version in ["TLSv1.2", "TLSv1.3"] {
            let mut client = Command::new("mariadb");
            client
                .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--batch", "-N", "--user=root"])
                .args(["--password=secret", "--max-allowed-packet=64M", "--ssl", "--compress"])
                .args([format!("--port={}", server.port()), format!("--tls-version={version}")]);
            let output = feed(&mut client, &format!("SELECT '{text}';"));
            let answer = String::from_utf8_lossy(&output.stdout);
            assert!(answer.trim_end() == text, "{version}: {}", crate::support::text(&output.stderr));
        }
    }
}

#[test]
fn without_grant_tables_everyone_gets_in() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--skip-grant-tables"]);
    let output =
        crate::support::client(&server.socket).args(["--user=somebody", "-Ne", "SELECT 1"]).output().unwrap();
    assert_eq!(text(&output.stdout), "1\n", "{}", text(&output.stderr));
    assert!(!server.ready.contains("TCP"), "{}", server.ready);
}

#[test]
fn more_clients_than_max_connections_get_1040() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--max_connections=10"]);
    let options = wire::client::ConnectOptions::default();
    let join = || {
        let stream = std::os::unix::net::UnixStream::connect(&server.socket).unwrap();
        wire::client::Connection::connect(stream, &options).unwrap()
    };
    // One place more is kept for trusted peers, as these are.
    let sleepers: Vec<_> = (0..11).map(|_| join()).collect();
    let output = crate::support::client(&server.socket).args(["-e", "SELECT 1"]).output().unwrap();
    let complaint = text(&output.stderr);
    assert!(complaint.contains("1040"), "{complaint}");
    drop(sleepers);
    assert!(crate::support::wait_until(|| {
        crate::support::client(&server.socket).args(["-e", "SELECT 1"]).output().unwrap().status.success()
    }));
}

/// Accounts for each method, with the password `secret`.
const ACCOUNTS: &str = "\
CREATE USER native@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('secret');
CREATE USER sha2@'%' IDENTIFIED VIA caching_sha2_password USING PASSWORD('secret');
CREATE USER cold@'%' IDENTIFIED VIA caching_sha2_password USING PASSWORD('secret');
CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret');
CREATE USER two@'%' IDENTIFIED VIA unix_socket OR ed25519 USING PASSWORD('secret');";

#[test]
fn mariadbs_library_logs_in_by_each_method() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(ACCOUNTS);
    for user in ["native", "sha2", "cold", "ed", "two"] {
        let name = format!("--user={user}");
        // The first time without TLS, the password of `cold` is encrypted with the server's key.
        let order = if user == "cold" { ["--skip-ssl", "--ssl"] } else { ["--ssl", "--skip-ssl"] };
        for encryption in [order, order].concat() {
            let right = over_tcp(&server, &[&name, "--password=secret", encryption], "SELECT CURRENT_USER()");
            let complaint = text(&right.stderr);
            assert_eq!(text(&right.stdout), format!("{user}@%\n"), "{user} {encryption}: {complaint}");
            for wrong in ["--password=Secret", "--password="] {
                let complaint = text(&over_tcp(&server, &[&name, wrong, encryption], "SELECT 1").stderr);
                assert!(complaint.contains("1045"), "{user} {encryption} {wrong}: {complaint}");
            }
        }
        let mut socket = crate::support::client(&server.socket);
        let output = socket.args([&name, "--password=secret", "-Ne", "SELECT 1"]).output().unwrap();
        assert_eq!(text(&output.stdout), "1\n", "{user}: {}", text(&output.stderr));
    }
}

#[test]
fn pymysql_logs_in_by_each_method() {
    let Some(python) = crate::support::python("pymysql, cryptography") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(ACCOUNTS);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/python/logins.py");
    let output = Command::new(python)
        .arg(script)
        .arg(&server.socket)
        .arg(server.port().to_string())
        .args(["native", "sha2", "cold"])
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "ok\n", "{}", text(&output.stderr));
}

#[test]
fn accounts_are_refused_for_what_they_lack() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(
        "CREATE USER locked@'%' IDENTIFIED BY 'secret' ACCOUNT LOCK;
         CREATE USER tls@'%' IDENTIFIED BY 'secret' REQUIRE SSL;
         CREATE USER x509@'%' IDENTIFIED BY 'secret' REQUIRE X509;
         CREATE USER expired@'%' IDENTIFIED BY 'secret' PASSWORD EXPIRE;
         CREATE USER often@'%' IDENTIFIED BY 'secret' WITH MAX_CONNECTIONS_PER_HOUR 2;",
    );
    let complaint = |user: &str, option: &str| {
        let name = format!("--user={user}");
        text(&over_tcp(&server, &[&name, "--password=secret", option], "SELECT 1").stderr)
    };
    assert!(complaint("locked", "--ssl").contains("4151"), "{}", complaint("locked", "--ssl"));
    assert!(complaint("tls", "--skip-ssl").contains("1045"));
    assert_eq!(complaint("tls", "--ssl"), "");
    assert!(complaint("x509", "--ssl").contains("1045"));
    assert!(complaint("expired", "--ssl").contains("1862"));
    assert_eq!((complaint("often", "--ssl"), complaint("often", "--ssl")), (String::new(), String::new()));
    assert!(complaint("often", "--ssl").contains("1226"));
}
