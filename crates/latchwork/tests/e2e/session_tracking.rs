//! OK packets tell of changes to the session in the bytes in which MariaDB tells of them.

use crate::support::target::Client;
use crate::support::{Latchwork, MariaDb, have, mariadb};
use std::os::unix::net::UnixStream;
use std::path::Path;
use wire::client::{ConnectOptions, Connection};
use wire::command::com;
use wire::constants::capability;
use wire::cursor::Cursor;
use wire::put;
use wire::response::OkFields;

/// Statements that are answered by one packet. The first ones have MariaDB's default list of variables.
const STATEMENTS: &[&str] = &[
    "SET autocommit = 0",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET NAMES latin1",
    "SET NAMES utf8mb4",
    "SET character_set_client = latin1",
    "SET character_set_results = NULL",
    "SET CHARACTER SET utf8mb4",
    "SET collation_connection = 'latin1_bin'",
    "SET NAMES utf8mb4",
    "SET autocommit = 1, time_zone = '+01:00', character_set_results = latin1, character_set_client = latin1, \
     character_set_connection = latin1",
    "SET NAMES utf8mb4, autocommit = 1, time_zone = SYSTEM",
    "SET SESSION wait_timeout = 100, time_zone = '+03:00', autocommit = 0, autocommit = 1",
    "SET GLOBAL time_zone = '+01:00'",
    "SET GLOBAL time_zone = SYSTEM",
    "SET time_zone = 'nowhere'",
    "SET @x = 1",
    "CREATE DATABASE d",
    "USE d",
    "USE d",
    "USE nowhere",
    "CREATE TABLE t (a INT)",
    "INSERT INTO t VALUES (1), (2)",
    "DROP DATABASE d",
    "CREATE DATABASE d",
    "USE d",
    "SET session_track_state_change = 1",
    "USE d",
    "SET @x = 2",
    "SET NAMES utf8mb4",
    "PREPARE s FROM 'DO 1'",
    "EXECUTE s",
    "DEALLOCATE PREPARE s",
    "DO 1",
    "BEGIN",
    "COMMIT",
    "SET session_track_state_change = 0",
    "SET session_track_schema = 0",
    "USE d",
    "SET session_track_schema = 1",
    "SET session_track_system_variables = 'wait_timeout , Sql_mode,wait_timeout'",
    "SET sql_mode = 'PIPES_AS_CONCAT,IGNORE_SPACE'",
    "SET sql_mode = DEFAULT",
    "SET wait_timeout = 7",
    "SET time_zone = '+01:00'",
    "SET session_track_system_variables = 'nowhere,time_zone'",
    "SET session_track_system_variables = NULL",
    "SET session_track_system_variables = '*'",
    "SET foreign_key_checks = 0",
    "SET last_insert_id = 5",
    "SET session_track_system_variables = ''",
    "SET autocommit = 1",
    "SET session_track_system_variables = DEFAULT",
    "SET autocommit = 1",
    "DROP DATABASE d",
];

/// Transactions, by their letters and by the statements that would begin them again. A query's rows are read,
/// and its end is not compared: it says whether an index was used.
const TRANSACTIONS: &[&str] = &[
    "CREATE DATABASE d",
    "CREATE TABLE d.t (a INT PRIMARY KEY)",
    "SET session_track_transaction_info = 'STATE'",
    "BEGIN",
    "SELECT 1",
    "SELECT * FROM d.t",
    "INSERT INTO d.t VALUES (1)",
    "COMMIT",
    "START TRANSACTION READ ONLY",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "START TRANSACTION READ WRITE",
    "DO (SELECT MAX(a) FROM d.t)",
    "COMMIT",
    "SET autocommit = 0",
    "SELECT 1",
    "INSERT INTO d.t VALUES (2)",
    "COMMIT",
    "INSERT INTO d.t SELECT a + 10 FROM d.t WHERE a < 2",
    "ROLLBACK",
    "INSERT INTO d.t VALUES (3)",
    "SET autocommit = 1",
    "INSERT INTO d.t VALUES (4)",
    "LOCK TABLES d.t WRITE",
    "INSERT INTO d.t VALUES (5)",
    "UNLOCK TABLES",
    "BEGIN",
    "UPDATE d.t SET a = a WHERE a = 5",
    "SAVEPOINT x",
    "ROLLBACK TO x",
    "COMMIT AND CHAIN",
    "ROLLBACK",
    "SET session_track_transaction_info = 'CHARACTERISTICS'",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "BEGIN",
    "SELECT * FROM d.t",
    "COMMIT",
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "START TRANSACTION",
    "COMMIT",
    "START TRANSACTION READ ONLY",
    "COMMIT AND CHAIN",
    "ROLLBACK",
    "START TRANSACTION READ WRITE, WITH CONSISTENT SNAPSHOT",
    "ROLLBACK",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "BEGIN",
    "ROLLBACK",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET TRANSACTION READ WRITE",
    "BEGIN",
    "CREATE TABLE d.u (a INT)",
    "SET session_track_transaction_info = OFF",
    "BEGIN",
    "COMMIT",
    "SET session_track_transaction_info = 1",
    "SET session_track_transaction_info = DEFAULT",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    // The number that an OK packet has for AUTO_INCREMENT.
    "UPDATE d.t SET a = LAST_INSERT_ID(a + 100) WHERE a = 5",
    "INSERT INTO d.t VALUES (LAST_INSERT_ID(300))",
    "INSERT INTO d.t VALUES (301)",
    "DELETE FROM d.t WHERE a = 300 AND LAST_INSERT_ID(400)",
    "DO LAST_INSERT_ID(7)",
    "CREATE TABLE d.v (a INT AUTO_INCREMENT PRIMARY KEY, b INT)",
    "INSERT INTO d.v VALUES (NULL, LAST_INSERT_ID(500))",
    "INSERT INTO d.v VALUES (9, LAST_INSERT_ID(600))",
    "INSERT INTO d.v VALUES (10, 1)",
    "INSERT INTO d.v SELECT 20, LAST_INSERT_ID(700)",
    "DROP DATABASE d",
];

/// MariaDB sets this flag behind DROP DATABASE of the default database, in the second byte of the status.
const DATABASE_DROPPED: u8 = 1;

/// The same packet with its changes in order. MariaDB tells of several variables in one that is drawn anew at
/// each start.
fn sorted(mut packet: Vec<u8>) -> Vec<u8> {
    let Ok(fields) = OkFields::parse(&packet) else { return packet };
    let mut cursor = Cursor::new(fields.changes);
    let mut changes = Vec::new();
    while !cursor.is_empty() {
        changes.push((cursor.u8("kind").unwrap(), cursor.lenenc_bytes("change").unwrap()));
    }
    changes.sort();
    let mut out = Vec::new();
    for (kind, change) in changes {
        out.push(kind);
        put::lenenc_bytes(&mut out, change);
    }
    let start = packet.len() - out.len();
    packet[start..].copy_from_slice(&out);
    packet
}

/// The packets of the whole conversation.
fn conversation(socket: &Path, capabilities: u64) -> Vec<(&'static str, Vec<u8>)> {
    let options = ConnectOptions { capabilities, ..ConnectOptions::default() };
    let mut client: Client = Connection::connect(UnixStream::connect(socket).unwrap(), &options).unwrap();
    let mut packets: Vec<_> = STATEMENTS
        .iter()
        .chain(TRANSACTIONS)
        .map(|statement| {
            if statement.starts_with("SELECT") {
                client.query(statement).unwrap();
                return (*statement, Vec::new());
            }
            let answer = client.command_raw(com::QUERY, statement.as_bytes());
            let mut packet = answer.unwrap_or_else(|error| error.to_string().into_bytes());
            if *statement == "DROP DATABASE d" {
                packet[4] &= !DATABASE_DROPPED;
            }
            (*statement, sorted(packet))
        })
        .collect();
    client.query("CREATE DATABASE d").unwrap();
    packets.push(("COM_INIT_DB", client.command_raw(com::INIT_DB, b"d").unwrap()));
    packets.push(("COM_RESET_CONNECTION", client.command_raw(com::RESET_CONNECTION, b"").unwrap()));
    packets.push(("COM_PING", client.command_raw(com::PING, b"").unwrap()));
    client.query("DROP DATABASE d").unwrap();
    packets
}

#[test]
fn changes_are_told_as_mariadb_tells_them() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let classic = capability::CLIENT & !capability::DEPRECATE_EOF;
    for capabilities in [capability::CLIENT, classic].map(|flags| flags | capability::SESSION_TRACK) {
        let judged = conversation(&judge.socket, capabilities);
        let seen = conversation(&server.socket, capabilities);
        for (judged, seen) in judged.iter().zip(&seen) {
            assert_eq!(seen, judged);
        }
    }
}
