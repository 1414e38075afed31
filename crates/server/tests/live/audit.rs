//! The audit log of a running server.

use crate::support::{Client, Live};
use latchwork_server as server;
use server::{Log, Options, Server};
use std::fs;
use std::path::Path;
use wire::client::ConnectOptions;
use wire::constants::capability;

/// The lines of a log from `field` on.
fn lines_from(path: &Path, field: usize) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.splitn(field + 1, ',').nth(field).unwrap().to_owned()).collect()
}

fn many(live: &Live) -> Client {
    let defaults = ConnectOptions::default();
    let options =
        ConnectOptions { capabilities: defaults.capabilities | capability::MULTI_STATEMENTS, ..defaults };
    live.connect_with(&options).unwrap()
}

fn as_user(user: &str, password: &str) -> ConnectOptions {
    ConnectOptions { user: user.to_owned(), password: password.to_owned(), ..ConnectOptions::default() }
}

#[test]
fn statements_and_tables_are_noted_as_mariadb_notes_them() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--server-audit-logging", "--server_audit_events=QUERY,TABLE"];
    let live = Live::start_on(std::sync::Arc::new(vfs::OsVfs), folder.path(), &options);
    let log = folder.path().join("data/server_audit.log");
    let mut client = many(&live);
    let script = include_str!("audit.txt");
    let mut noted = lines_from(&log, 6).len();
    let mut found = String::new();
    for statement in script.lines().filter_map(|line| line.strip_prefix("> ")) {
        // Some statements are wrong. What they are answered is in the log.
        let _ = client.query_all(statement.replace("\\nline", "\nline").as_bytes());
        let lines = lines_from(&log, 6);
        found.push_str(&format!("> {statement}\n"));
        lines[noted..].iter().for_each(|line| found.push_str(&format!("{line}\n")));
        noted = lines.len();
    }
    let expected: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    // The lines of a statement have its number.
    let numbers = lines_from(&log, 5);
    let number = |line: &&String| line.split_once(',').unwrap().0.parse::<u64>().unwrap();
    assert!(numbers.iter().collect::<Vec<_>>().windows(2).all(|pair| number(&pair[0]) <= number(&pair[1])));
}

#[test]
fn logins_are_noted_with_their_errors() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("--secure-file-priv={}", folder.path().display());
    let live = Live::start_on(std::sync::Arc::new(vfs::OsVfs), folder.path(), &[&place]);
    let log = folder.path().join("audit.log");
    let mut root = live.connect();
    for statement in [
        "CREATE USER ann IDENTIFIED BY 'secret'",
        "CREATE DATABASE d",
        "SET GLOBAL server_audit_events = 'CONNECT'",
        &format!("SET GLOBAL server_audit_file_path = '{}'", log.display()),
        "SET GLOBAL server_audit_logging = ON",
    ] {
        root.query(statement).unwrap();
    }
    assert!(live.connect_with(&as_user("ann", "wrong")).is_err());
    assert!(live.connect_with(&as_user("forged\n20261125 00:00:00,vm,root", "")).is_err());
    let of_other = ConnectOptions { database: Some("d".to_owned()), ..as_user("ann", "secret") };
    assert!(live.connect_with(&of_other).is_err());
    let mut ann = live.connect_with(&as_user("ann", "secret")).unwrap();
    ann.query("SELECT 1").unwrap();
    ann.change_user(&ConnectOptions { database: Some("d".to_owned()), ..ConnectOptions::default() }, true)
        .unwrap();
    assert!(ann.change_user(&as_user("nobody", "x"), true).is_err());
    drop((ann, root));
    assert!(live.stop());
    let lines = lines_from(&log, 2);
    // The numbers of the connections.
    let lines: Vec<String> = lines
        .iter()
        .map(|line| {
            let (who, event) = line.split_once(",localhost,").unwrap();
            format!("{who}: {}", event.split_once(',').unwrap().1)
        })
        .collect();
    let expected = [
        "ann: 0,FAILED_CONNECT,,,1045",
        "ann: 0,DISCONNECT,,,0",
        // A name cannot end its line.
        "forged\\n20261125 00:00:00,vm,root: 0,FAILED_CONNECT,,,1045",
        "forged\\n20261125 00:00:00,vm,root: 0,DISCONNECT,,,0",
        "ann: 0,FAILED_CONNECT,,,1044",
        "ann: 0,DISCONNECT,,,0",
        "ann: 0,CONNECT,,,0",
        "root: 0,CHANGEUSER,d,,0",
        "nobody: 0,CHANGEUSER,,,1045",
        "root: 0,DISCONNECT,d,,0",
        "root: 0,DISCONNECT,,,0",
    ];
    let mut sorted = (lines.clone(), expected.map(str::to_owned).to_vec());
    // A client is told before its connection has ended, and may be back by then.
    sorted.0.sort();
    sorted.1.sort();
    assert_eq!(sorted.0, sorted.1, "{lines:?}");
}

#[test]
fn users_and_kinds_can_be_chosen_and_json_is_a_form() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--server-audit-logging=1", "--server-audit-file-path=json", "--server_audit_format=json"];
    let live = Live::start_on(std::sync::Arc::new(vfs::OsVfs), folder.path(), &options);
    let mut root = live.connect();
    root.query("CREATE USER ann").unwrap();
    let mut ann = live.connect_with(&as_user("ann", "")).unwrap();
    let mut set = |name: &str, value: &str| {
        root.query(&format!("SET GLOBAL server_audit_{name} = {value}")).unwrap();
    };
    let mut ask = |number: u64| ann.query(&format!("SELECT {number}")).map(drop).unwrap();
    ask(1);
    set("excl_users", "'bob, ann'");
    ask(2);
    set("incl_users", "'ann,carl'");
    // An included user is no longer excluded.
    ask(3);
    set("incl_users", "''");
    ask(4);
    set("events", "'query_ddl,QUERY_DML_NO_SELECT'");
    ask(5);
    set("events", "'QUERY_DML'");
    ask(6);
    set("query_log_limit", "6");
    ask(7);
    let variables = root.query("SELECT @@server_audit_excl_users, @@server_audit_events").unwrap();
    assert_eq!(variables.to_text(), [["bob", "QUERY_DML"]]);
    drop((ann, root));
    assert!(live.stop());
    let text = fs::read_to_string(folder.path().join("data/json")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let of_ann = lines.filter(|line| line["user"] == "ann" && line["event"] == "QUERY");
    let statements: Vec<String> = of_ann.map(|line| line["statement"].as_str().unwrap().to_owned()).collect();
    assert_eq!(statements, ["SELECT 1", "SELECT 3", "SELECT 4", "SELECT 6", "SELECT"]);
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_and_the_log_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = |path: &str| {
        let arguments = [
            format!("--datadir={}", data.display()),
            format!("--socket={}", folder.path().join("socket").display()),
            "--port=0".to_owned(),
            "--server-audit-logging".to_owned(),
            format!("--server-audit-file-path={path}"),
        ];
        let options = Options::parse(&arguments).unwrap();
        let log = std::sync::Arc::new(Log::to_file(&folder.path().join("log")).unwrap());
        Server::start_on(std::sync::Arc::new(vfs::OsVfs), options, log)
    };
    let error = start("no/such/folder").unwrap_err().to_string();
    assert!(error.starts_with("--server-audit-logging: Can't create file"), "{error}");

    let place = format!("--secure-file-priv={}", folder.path().display());
    let options = [place.as_str(), "--server-audit-logging"];
    let live = Live::start_on(std::sync::Arc::new(vfs::OsVfs), folder.path(), &options);
    let mut root = live.connect();
    let mut refused = |path: &str| {
        let result = root.query(&format!("SET GLOBAL server_audit_file_path = '{path}'"));
        result.unwrap_err().code()
    };
    assert_eq!(refused(&format!("{}.log", "x".repeat(300))), Some(1004));
    // As for other logs: it could be any file of the server's user.
    assert_eq!(refused("/etc/audit"), Some(1231));
    assert_eq!(refused("ibdata1"), Some(1231));
    let status = |root: &mut Client| {
        let rows = root.query("SHOW STATUS LIKE 'server_audit_%'").unwrap().to_text();
        rows.into_iter().map(|row| row[1].clone()).collect::<Vec<_>>()
    };
    let log = data.join("server_audit.log");
    assert_eq!(status(&mut root), ["ON", log.to_str().unwrap(), "", "0"]);
    assert!(fs::read_to_string(&log).unwrap().contains("/etc/audit"));
    let other = folder.path().join("other.log");
    root.query(&format!("SET GLOBAL server_audit_file_path = '{}'", other.display())).unwrap();
    assert_eq!(status(&mut root)[1], other.to_str().unwrap());
    root.query("SET GLOBAL server_audit_logging = OFF").unwrap();
    assert_eq!(status(&mut root)[..2], ["OFF", other.to_str().unwrap()]);
    // Whoever switches it off is noted, and nothing behind that.
    let last = fs::read_to_string(&other).unwrap().lines().last().unwrap().to_owned();
    assert!(last.ends_with("'SET GLOBAL server_audit_logging = OFF',0"), "{last}");
    drop(root);
    assert!(live.stop());

    // A device that is full stops nobody, but is counted.
    let live = Live::start_on(
        std::sync::Arc::new(vfs::OsVfs),
        folder.path(),
        &["--server-audit-logging", "--server-audit-file-path=/dev/full"],
    );
    let counted = status(&mut live.connect());
    assert!(counted[2].contains("space") && counted[3] != "0", "{counted:?}");
}
