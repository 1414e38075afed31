//! What OK packets tell of changes to the session.

use crate::support::{Client, Live};
use wire::client::ConnectOptions;
use wire::command::com;
use wire::constants::capability;
use wire::response::{OkFields, StateChange};

fn connect(live: &Live, more: u64) -> Client {
    let capabilities = ConnectOptions::default().capabilities | more;
    live.connect_with(&ConnectOptions { capabilities, ..ConnectOptions::default() }).unwrap()
}

/// The changes that the answer to a statement tells of.
fn changes(client: &mut Client, statement: &str) -> Vec<u8> {
    let packet = client.command_raw(com::QUERY, statement.as_bytes()).unwrap();
    OkFields::parse(&packet).unwrap().changes.to_vec()
}

fn encoded(changes: &[StateChange<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    changes.iter().for_each(|change| change.write(&mut out));
    out
}

fn variable<'a>(name: &'a str, value: &'a str) -> StateChange<'a> {
    StateChange::Variable { name: name.as_bytes(), value: value.as_bytes() }
}

#[test]
fn a_client_that_asks_is_told_of_variables_databases_and_the_rest() {
    let live = Live::start(&[]);
    let mut client = connect(&live, capability::SESSION_TRACK);
    assert_eq!(
        changes(&mut client, "SET time_zone = '+02:00', autocommit = 0, autocommit = 1, sql_mode = ''"),
        encoded(&[variable("time_zone", "+02:00"), variable("autocommit", "ON")])
    );
    assert_eq!(
        changes(&mut client, "USE information_schema"),
        encoded(&[StateChange::Schema(b"information_schema")])
    );
    assert_eq!(changes(&mut client, "SET GLOBAL time_zone = '+01:00'"), b"");
    client.query("SET session_track_state_change = 1, session_track_schema = 0").unwrap();
    assert_eq!(changes(&mut client, "USE information_schema"), encoded(&[StateChange::State]));
    assert_eq!(changes(&mut client, "SET @a = 1"), encoded(&[StateChange::State]));
    assert_eq!(changes(&mut client, "DO 1"), b"");
    let all = "SET session_track_state_change = 0, session_track_system_variables = '*'";
    assert_eq!(
        changes(&mut client, all),
        encoded(&[
            variable("session_track_state_change", "OFF"),
            variable("session_track_system_variables", "*")
        ])
    );
    assert_eq!(changes(&mut client, "SET wait_timeout = 7"), encoded(&[variable("wait_timeout", "7")]));
    // A new session on the same connection is tracked like the first.
    client.command(com::RESET_CONNECTION, b"").unwrap();
    assert_eq!(changes(&mut client, "SET wait_timeout = 7"), b"");
    assert_eq!(changes(&mut client, "SET autocommit = 1"), encoded(&[variable("autocommit", "ON")]));
}

#[test]
fn a_client_that_does_not_ask_is_told_nothing() {
    let live = Live::start(&[]);
    let mut client = connect(&live, 0);
    for statement in ["SET autocommit = 1", "USE information_schema"] {
        let packet = client.command_raw(com::QUERY, statement.as_bytes()).unwrap();
        assert_eq!(packet, [0, 0, 0, 2, 0, 0, 0], "{statement}");
    }
}
