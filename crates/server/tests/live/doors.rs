//! Ways in that the operating system guards: permissions of files and of the socket, and peers that it
//! vouches for.

use crate::support::{Live, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::WireValue;
use wire::client::ConnectOptions;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// The folder and everything below it.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_path_buf()];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(below(&path)) } else { found.push(path) }
    }
    found
}

fn options(password: &str) -> ConnectOptions {
    ConnectOptions { user: "root".to_string(), password: password.to_string(), ..ConnectOptions::default() }
}

#[test]
fn no_other_user_can_read_the_data_the_logs_or_the_slow_statements() {
    let scratch = tempfile::tempdir().unwrap();
    let slow = ["--slow_query_log", "--long_query_time=0", "--slow_query_log_file=slow.log"];
    let live = Live::start_on(std::sync::Arc::new(vfs::OsVfs), scratch.path(), &slow);
    let mut client = live.connect();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1)",
        "FLUSH TABLES",
    ] {
        client.query(statement).unwrap();
    }
    drop(client);
    let data = scratch.path().join("data");
    assert!(live.stop());
    let mut files = below(&data);
    assert!(files.contains(&data.join("slow.log")), "{files:?}");
    files.push(scratch.path().join("log"));
    let open: Vec<_> = files.iter().filter(|path| mode(path) & 0o077 != 0).collect();
    assert!(open.is_empty(), "others may look into {open:?}");
}

#[test]
fn a_data_folder_that_is_open_to_others_is_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    let live = Live::start_on(std::sync::Arc::new(vfs::OsVfs), scratch.path(), &[]);
    assert!(live.log().contains("open to other users"), "{}", live.log());
}

#[test]
fn every_user_of_the_machine_reaches_the_login_unless_the_socket_has_another_mode() {
    let live = Live::start(&[]);
    assert_eq!(mode(&live.socket), 0o777);
    drop(live);
    let live = Live::start(&["--socket_mode=0750"]);
    assert_eq!(mode(&live.socket), 0o750);
    live.connect().ping().unwrap();
}

#[test]
fn a_password_ends_the_trust_in_uid_0() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let live = Live::start(&[]);
    live.connect().query("SET PASSWORD = PASSWORD('secret')").unwrap();
    let refused = live.connect_with(&options("")).map(drop).unwrap_err();
    assert_eq!(refused.code(), Some(1045), "{refused}");
    live.connect_with(&options("secret")).unwrap().ping().unwrap();
}

#[test]
fn an_option_says_which_peers_are_trusted() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for trusting in ["own", "root", "own_and_root"] {
        let live = Live::start(&[&format!("--trusted_peers={trusting}")]);
        live.connect().query("SET PASSWORD = PASSWORD('secret')").unwrap();
        live.connect_with(&options("")).unwrap().ping().unwrap();
    }
    let live = Live::start(&["--trusted_peers=none"]);
    assert_eq!(live.connect_with(&options("")).map(drop).unwrap_err().code(), Some(1045));
}

#[test]
fn without_accounts_there_is_no_tcp() {
    let live = Live::start(&["--skip-grant-tables"]);
    assert_eq!(live.tcp, None);
    let stranger = ConnectOptions { user: "somebody".to_string(), ..ConnectOptions::default() };
    live.connect_with(&stranger).unwrap().ping().unwrap();
}

#[test]
fn a_switch_of_safety_that_cannot_be_kept_is_refused() {
    let live = Live::start(&[]);
    let mut client = live.connect();
    let error = client.query("SET GLOBAL general_log = 1").map(drop).unwrap_err();
    assert_eq!(error.code(), Some(1231), "{error}");
    assert!(latchwork_server::Options::parse(&["--general_log=1".to_owned()]).is_err());
    for setting in ["require_secure_transport = OFF", "general_log = 0", "max_statement_time = 0.5"] {
        client.query(&format!("SET GLOBAL {setting}")).unwrap();
    }
}

#[test]
fn passwords_are_in_no_list_and_no_log() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let slow = ["--slow_query_log", "--long_query_time=0", "--slow_query_log_file=slow.log"];
    let live = Live::start_on(std::sync::Arc::new(vfs::OsVfs), scratch.path(), &slow);
    let mut client = live.connect();
    let slow = "SELECT SLEEP(0.7) FROM (SELECT 1 AS password) AS d WHERE password <> 'hunter2'";
    let prepared = client.prepare(&format!("{slow} AND 1 = ?")).unwrap();
    for is_prepared in [false, true] {
        let shown = std::thread::scope(|scope| {
            let running = scope.spawn(|| match is_prepared {
                true => client.execute(prepared.id, &[WireValue::Int(1)]).map(drop).unwrap(),
                false => client.query(slow).map(drop).unwrap(),
            });
            let mut observer = live.connect();
            let mut shown = String::new();
            while !shown.contains("SLEEP(0.7)") {
                let listed = observer.query("SHOW FULL PROCESSLIST").unwrap().to_text();
                let table = "SELECT info FROM information_schema.processlist";
                let table = observer.query(table).unwrap().to_text();
                shown = format!("{listed:?}{table:?}");
            }
            running.join().unwrap();
            shown
        });
        assert!(!shown.contains("hunter2") && shown.contains("password <> *****"), "{shown}");
    }
    client.query("SET PASSWORD = PASSWORD('hunter2')").unwrap();
    let error = client.query("SET PASSWORD = PASSWORD('hunter2' oops)").unwrap_err().to_string();
    assert!(!error.contains("hunter2"), "{error}");
    client.query("SET PASSWORD = ''").unwrap();
    client.query("SELECT 'the end'").unwrap();
    // The statement is logged behind its answer.
    client.ping().unwrap();
    let log = std::fs::read_to_string(data.join("slow.log")).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
    assert!(log.contains("SET PASSWORD = PASSWORD(*****);") && log.contains("SELECT 'the end';"), "{log}");
}

#[test]
fn the_slow_log_stays_in_the_data_folder_and_in_the_folder_for_files() {
    let shared = tempfile::tempdir().unwrap();
    let live = Live::start(&[&format!("--secure_file_priv={}", shared.path().display())]);
    let mut client = live.connect();
    for name in
        ["/etc/cron.d/x.log", "../x.log", "accounts", "latchwork.control", "", "..", "log/x.log", "a\nb.log"]
    {
        let error =
            client.query(&format!("SET GLOBAL slow_query_log_file = '{name}'")).map(drop).unwrap_err();
        assert_eq!(error.code(), Some(1231), "{name}: {error}");
    }
    let inside = shared.path().join("slow.log");
    for name in ["mine.log", inside.to_str().unwrap()] {
        client.query(&format!("SET GLOBAL slow_query_log_file = '{name}'")).unwrap();
    }
    client.query("SET GLOBAL slow_query_log_file = @@slow_query_log_file").unwrap();
}

#[test]
fn read_only_and_init_connect_do_not_bind_root_as_in_mariadb() {
    let live = Live::start(&[]);
    live.connect().query("SET GLOBAL read_only = ON, init_connect = 'SET @a = 1'").unwrap();
    let mut client = live.connect();
    client.query("CREATE DATABASE d").unwrap();
    assert_eq!(client.query("SELECT @a IS NULL").unwrap().to_text(), [["1"]]);
}

#[test]
fn a_client_that_sends_its_login_byte_by_byte_is_ended() {
    let live = Live::start(&["--connect_timeout=2"]);
    let mut stream = live.raw();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    stream.write_all(&[0, 0xf0, 0, 1]).unwrap();
    wait_until("the end of the connection", || {
        let mut space = [0; 1024];
        let ended = matches!(stream.read(&mut space), Ok(0));
        ended || stream.write_all(&[0]).is_err()
    });
}

#[test]
fn clients_without_a_login_use_up_no_connections() {
    let live = Live::start(&["--max_connections=10"]);
    let _silent: Vec<_> = (0..300).map(|_| live.raw()).collect();
    let mut inside: Vec<_> = (0..10).map(|_| live.connect()).collect();
    // One more is kept for a trusted peer.
    inside.push(live.connect());
    let error = live.connect_with(&ConnectOptions::default()).map(drop).unwrap_err();
    assert_eq!(error.code(), Some(1040), "{error}");
    inside.iter_mut().for_each(|client| client.ping().unwrap());
}

#[test]
fn refused_logins_cannot_fill_or_forge_the_log_and_learn_nothing() {
    let live = Live::start(&[]);
    let forged = format!("x\r\n2026-01-01 [Note] \u{1b}[2J{}", "y".repeat(20_000));
    for _ in 0..100 {
        let stranger = ConnectOptions { user: forged.clone(), ..ConnectOptions::default() };
        let error = live.connect_with(&stranger).map(drop).unwrap_err();
        assert_eq!(error.code(), Some(1045), "{error}");
    }
    let log = live.log();
    assert!(log.len() < 40_000, "{} bytes", log.len());
    assert!(!log.contains(['\r', '\u{1b}']), "{log:?}");
    let error = live.connect_tcp(&options("")).map(drop).unwrap_err();
    assert!(!error.to_string().contains("SET PASSWORD"), "{error}");
}

#[test]
fn the_extra_port_has_connections_of_its_own() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let extra = format!("--extra_port={free}");
    let live = Live::start(&["--max_connections=10", &extra, "--extra_max_connections=2"]);
    live.connect().query("CREATE USER ann IDENTIFIED BY 'secret'").unwrap();
    let shown =
        live.connect().query("SELECT @@extra_port, @@extra_max_connections, @@port").unwrap().to_text();
    assert_eq!(shown[0][..2], [free.to_string(), "2".to_owned()]);
    assert_eq!(shown[0][2], live.tcp.unwrap().port().to_string());
    let ann = ConnectOptions { user: "ann".to_owned(), ..options("secret") };
    let by_extra = || {
        let stream = std::net::TcpStream::connect(("127.0.0.1", free)).unwrap();
        wire::client::Connection::connect(stream, &ann)
    };
    let main: Vec<_> = (0..10).map(|_| live.connect_tcp(&ann).unwrap()).collect();
    assert_eq!(live.connect_tcp(&ann).unwrap_err().code(), Some(1040));
    let mut first = by_extra().unwrap();
    let second = by_extra().unwrap();
    assert_eq!(by_extra().unwrap_err().code(), Some(1040));
    assert_eq!(first.query("SELECT 1").unwrap().to_text(), [["1"]]);
    drop(second);
    let mut third = None;
    wait_until("a place at the extra port", || {
        third = by_extra().ok();
        third.is_some()
    });
    assert_eq!(live.connect_tcp(&ann).unwrap_err().code(), Some(1040), "the places are apart");
    drop(main);
    wait_until("a place at the main port", || live.connect_tcp(&ann).is_ok());
}
