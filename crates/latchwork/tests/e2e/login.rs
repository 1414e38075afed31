//! Which users may connect.

use crate::support::{Latchwork, MariaDb, feed, have, mariadb, text};
use std::path::Path;
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
    assert!(complaint("expired", "--ssl").contains("1820"));
    assert_eq!((complaint("often", "--ssl"), complaint("often", "--ssl")), (String::new(), String::new()));
    assert!(complaint("often", "--ssl").contains("1226"));
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").current_dir(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
}

/// A certificate `NAME.pem` and its key `NAME-key.pem`, of the authority in the same folder.
fn issue(folder: &Path, name: &str, subject: &str) {
    let [key, request, certificate] = ["-key.pem", ".csr", ".pem"].map(|end| format!("{name}{end}"));
    let new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-utf8"];
    let named = ["-subj", subject, "-keyout", &key, "-out"];
    if name == "authority" {
        let own = ["req", "-x509", "-days", "2"];
        return openssl(folder, &[&own[..], &new_key, &named, &[&certificate]].concat());
    }
    openssl(folder, &[&["req"][..], &new_key, &named, &[&request]].concat());
    std::fs::write(folder.join("extensions"), "basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost\n")
        .unwrap();
    let authority = ["-CA", "authority.pem", "-CAkey", "authority-key.pem", "-CAcreateserial", "-days", "2"];
    let files = ["x509", "-req", "-in", &request, "-extfile", "extensions", "-out", &certificate];
    openssl(folder, &[&files[..], &authority].concat());
}

/// How the client fares with an account and these options: the account's name, or an error's number.
fn fate(socket: &Path, account: &str, options: &[String]) -> String {
    let output = Command::new("mariadb")
        .args(["--no-defaults", "--batch", "--skip-column-names", "--password=secret", "--ssl"])
        .args([format!("--user={account}"), format!("--socket={}", socket.display())])
        .args(options)
        .args(["--execute", "SELECT CURRENT_USER()"])
        .output()
        .unwrap();
    let complaint = text(&output.stderr);
    let number = complaint.split_whitespace().nth(1).unwrap_or_default();
    format!("{}{number}", text(&output.stdout).trim_end())
}

#[test]
fn require_lets_in_the_certificates_and_ciphers_that_mariadb_lets_in() {
    if !have(&["openssl"]) || !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    issue(folder, "authority", "/O=Zoo/CN=authority");
    issue(folder, "server", "/O=Zoo/CN=localhost");
    let long = "/C=DE/ST=Here/L=There/O=Zoo/OU=Apes/CN=ann/emailAddress=ann@zoo.example";
    issue(folder, "ann", long);
    issue(folder, "juergen", "/O=Zoo/CN=J\u{fc}rgen");
    let other = "/DC=org/DC=zoo/UID=k1/GN=Kay/SN=Keeper/serialNumber=7/title=Dr/CN=keeper";
    issue(folder, "keeper", other);
    let file = |name: &str| folder.join(name).display().to_string();
    let tls = [("ca", "authority.pem"), ("cert", "server.pem"), ("key", "server-key.pem")]
        .map(|(option, name)| format!("--ssl-{option}={}", file(name)));
    let tls: Vec<&str> = tls.iter().map(String::as_str).collect();
    MariaDb::start(folder).stop();
    let judge = MariaDb::start_again(folder, &tls);
    let server = Latchwork::start(folder, &tls);

    let cipher = "ECDHE-ECDSA-AES256-GCM-SHA384";
    let needs = [
        ("free", "NONE".to_owned()),
        ("any", "SSL".to_owned()),
        ("certified", "X509".to_owned()),
        ("ann", format!("SUBJECT '{long}'")),
        ("ann_reversed", "SUBJECT 'CN=ann,O=Zoo'".to_owned()),
        ("juergen", "SUBJECT '/O=Zoo/CN=J\\\\xC3\\\\xBCrgen'".to_owned()),
        ("keeper", format!("SUBJECT '{other}'")),
        ("zoo", "ISSUER '/O=Zoo/CN=authority'".to_owned()),
        ("elsewhere", "ISSUER '/O=Zoo/CN=other'".to_owned()),
        ("both", format!("SUBJECT '{long}' AND ISSUER '/O=Zoo/CN=authority'")),
        ("half", format!("SUBJECT '{long}' AND ISSUER '/O=Zoo/CN=other'")),
        ("cipher", format!("CIPHER '{cipher}'")),
        ("all", format!("SUBJECT '{long}' AND ISSUER '/O=Zoo/CN=authority' AND CIPHER '{cipher}'")),
    ];
    for (name, need) in &needs {
        let sql = format!("CREATE USER '{name}' IDENTIFIED BY 'secret' REQUIRE {need}");
        judge.sql(&sql);
        server.sql(&sql);
    }
    let shows = |name: &str| {
        vec![
            format!("--ssl-cert={}", file(&format!("{name}.pem"))),
            format!("--ssl-key={}", file(&format!("{name}-key.pem"))),
        ]
    };
    let old = vec!["--tls-version=TLSv1.2".to_owned(), format!("--ssl-cipher={cipher}")];
    let clients = [
        vec!["--skip-ssl".to_owned()],
        vec![],
        shows("ann"),
        shows("juergen"),
        shows("keeper"),
        old.clone(),
        [shows("ann"), old].concat(),
    ];
    let fares = |name: &str, need: &str| -> Vec<String> {
        let pairs = clients.iter().map(|options| {
            let expected = fate(&judge.socket, name, options);
            assert_eq!(fate(&server.socket, name, options), expected, "{name} {need} {options:?}");
            expected
        });
        pairs.collect()
    };
    // Side by side, because the server lets strangers wait.
    let fates: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
        let fares = &fares;
        let tried: Vec<_> = needs.iter().map(|(name, need)| scope.spawn(move || fares(name, need))).collect();
        tried.into_iter().flat_map(|tried| tried.join().unwrap()).collect()
    });
    // Every account but the three that no certificate fits has let in somebody.
    assert!(fates.contains("1045") && fates.len() == 11, "{fates:?}");
}

#[test]
fn users_are_changed_as_on_mariadb() {
    let seen = crate::prepared_definitions::seen_through_the_client_library("change_user");
    let Some([judged, seen]) = seen else { return };
    assert_eq!(seen, judged);
    assert!(seen.starts_with("ann: 0 ann@% d\n"), "{seen}");
}
