//! Which users may connect, how many connections there may be, and how sessions end.

use crate::support::{Live, Raw, wait_until};
use std::io::Read;
use wire::client::ConnectOptions;
use wire::command::com;
use wire::constants::capability;

fn options(user: &str, password: &str) -> ConnectOptions {
    ConnectOptions { user: user.to_string(), password: password.to_string(), ..ConnectOptions::default() }
}

#[test]
fn the_servers_own_user_gets_in_over_the_socket_and_nobody_over_tcp_without_a_password() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    assert!(connection.greeting().server_version.contains("Latchwork"));
    connection.ping().unwrap();
    for (user, password) in [("root", ""), ("root", "guess"), ("somebody", "")] {
        let error = live.connect_tcp(&options(user, password)).unwrap_err();
        assert_eq!(error.code(), Some(1045), "{error}");
    }
    let error = live.connect_tcp(&options("root", "")).unwrap_err().to_string();
    assert!(!error.contains("SET PASSWORD") && live.log().contains("SET PASSWORD"), "{error}");
    assert_eq!(live.connect_with(&options("somebody", "")).unwrap_err().code(), Some(1045));
}

#[test]
fn skip_grant_tables_lets_everyone_in() {
    let live = Live::start(&["--skip-grant-tables"]);
    live.connect_with(&options("somebody", "whatever")).unwrap().ping().unwrap();
}

#[test]
fn clients_without_deprecate_eof_or_plugin_names_are_understood() {
    let live = Live::start(&[]);
    for without in [capability::DEPRECATE_EOF, capability::PLUGIN_AUTH, capability::PLUGIN_AUTH_LENENC] {
        let options =
            ConnectOptions { capabilities: capability::CLIENT & !without, ..ConnectOptions::default() };
        live.connect_with(&options).unwrap().ping().unwrap();
    }
}

#[test]
fn one_client_too_many_gets_1040_until_another_leaves() {
    let live = Live::start(&["--max_connections=10"]);
    // These clients are trusted, and one place more is kept for such.
    let mut inside: Vec<_> = (0..11).map(|_| live.connect()).collect();
    let error = live.connect_with(&ConnectOptions::default()).unwrap_err();
    assert_eq!(error.code(), Some(1040), "{error}");
    inside.pop().unwrap().quit().unwrap();
    wait_until("a free place", || live.connect_with(&ConnectOptions::default()).is_ok());
}

#[test]
fn an_unknown_database_in_the_handshake_is_1049() {
    let live = Live::start(&[]);
    let options = ConnectOptions { database: Some("nowhere".to_string()), ..ConnectOptions::default() };
    assert_eq!(live.connect_with(&options).unwrap_err().code(), Some(1049));
}

#[test]
fn change_user_authenticates_again() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    // user, no password, no database
    connection.command(com::CHANGE_USER, b"root\0\0\0").unwrap();
    connection.ping().unwrap();
    // The same with latin1, a method, and attributes.
    let more = b"root\0\0\0\x08\0mysql_native_password\0\x08\x03_os\x03any";
    connection.command(com::CHANGE_USER, more).unwrap();
    let charset = connection.query("SELECT @@character_set_client, @@collation_connection").unwrap();
    assert_eq!(charset.to_text(), [["latin1", "latin1_swedish_ci"]]);
    let error = connection.command(com::CHANGE_USER, b"somebody\0\0\0").unwrap_err();
    assert_eq!(error.code(), Some(1045), "{error}");
}

#[test]
fn a_stop_ends_idle_sessions_and_removes_the_socket() {
    let live = Live::start(&[]);
    let socket = live.socket.clone();
    let mut idle: Vec<_> = (0..5).map(|_| live.connect()).collect();
    assert!(live.stop(), "the database was closed well");
    assert!(!socket.exists());
    for connection in &mut idle {
        assert!(connection.ping().is_err());
    }
}

#[test]
fn a_client_that_kills_itself_is_told_once() {
    let live = Live::start(&[]);
    let victim = live.connect();
    let kill = format!("KILL {}", victim.greeting().connection_id);
    let (packets, is_open) = Raw::of(victim).answer(&[&[com::QUERY], kill.as_bytes()].concat());
    assert_eq!((packets.len(), is_open), (1, false), "{packets:?}");
    assert_eq!(&packets[0][..3], &[0xff, 0x87, 0x07], "error 1927");
}

#[test]
fn a_kill_closes_an_idle_connection_without_a_word() {
    let live = Live::start(&[]);
    let mut victim = live.connect();
    let id = victim.greeting().connection_id;
    let mut killer = live.connect();
    killer.command(com::PROCESS_KILL, &id.to_le_bytes()).unwrap();
    // An error would answer the next command, and MariaDB's library would not connect again.
    let mut rest = Vec::new();
    (&mut victim.stream()).read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    assert!(victim.ping().is_err());
    let error = killer.command(com::PROCESS_KILL, &4242u32.to_le_bytes()).unwrap_err();
    assert_eq!(error.code(), Some(1094), "{error}");
    killer.ping().unwrap();
}
