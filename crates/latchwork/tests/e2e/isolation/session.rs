//! A named session: a connection on a thread of its own, so that its statement can wait while other sessions
//! go on.

use crate::support::target::{Client, Server, connect};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wire::client::{ClientError, QueryResult};

/// Closes the connection and makes another.
const RECONNECT: &str = "RECONNECT";

#[derive(Debug)]
pub struct Session {
    statements: mpsc::Sender<String>,
    outcomes: mpsc::Receiver<String>,
    id: Arc<AtomicU32>,
}

impl Session {
    /// `greetings` are the statements that each connection runs first.
    pub fn open(server: &Server, greetings: &[String]) -> Session {
        let (socket, greetings) = (server.socket().to_path_buf(), greetings.to_vec());
        let id = Arc::new(AtomicU32::new(0));
        let place = id.clone();
        let mut client = begin(&socket, &greetings, &place);
        let (statements, incoming) = mpsc::channel::<String>();
        let (outgoing, outcomes) = mpsc::channel();
        // The thread ends when the session is dropped and its statement has been answered.
        std::thread::spawn(move || {
            for statement in incoming {
                let outcome = if statement == RECONNECT {
                    client = begin(&socket, &greetings, &place);
                    "ok".to_string()
                } else {
                    run(&mut client, &statement)
                };
                if outgoing.send(outcome).is_err() {
                    break;
                }
            }
        });
        Session { statements, outcomes, id }
    }

    /// The server's number of the connection.
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::SeqCst)
    }

    pub fn send(&self, statement: &str) {
        self.statements.send(statement.to_string()).unwrap();
    }

    /// The outcome of the statement that was sent last, if it comes within this time.
    pub fn outcome(&self, within: Duration) -> Option<String> {
        self.outcomes.recv_timeout(within).ok()
    }
}

fn begin(socket: &Path, greetings: &[String], id: &AtomicU32) -> Client {
    let mut client = connect(socket, None).unwrap();
    for greeting in greetings {
        client.query(greeting).unwrap_or_else(|error| panic!("{greeting}: {error}"));
    }
    id.store(client.greeting().connection_id, Ordering::SeqCst);
    client
}

fn run(client: &mut Client, statement: &str) -> String {
    match client.query(statement) {
        Ok(result) => describe(statement, &result),
        // ER_CONNECTION_KILLED: a server may have the time to send it.
        Err(ClientError::Server(error)) if error.code != 1927 => {
            format!("error {} ({})", error.code, error.sqlstate)
        }
        Err(_) => "connection lost".to_string(),
    }
}

/// `(1, 10), (2, 20)`, `no rows`, `ok`, or `ok, 2 rows` of a statement that changes rows.
fn describe(statement: &str, result: &QueryResult) -> String {
    if !result.columns.is_empty() {
        let rows: Vec<String> = result.to_text().iter().map(|row| format!("({})", row.join(", "))).collect();
        return if rows.is_empty() { "no rows".to_string() } else { rows.join(", ") };
    }
    let verb = statement.split(' ').next().unwrap_or_default();
    match (verb, result.affected_rows) {
        ("INSERT" | "UPDATE" | "DELETE" | "REPLACE", 1) => "ok, 1 row".to_string(),
        ("INSERT" | "UPDATE" | "DELETE" | "REPLACE", rows) => format!("ok, {rows} rows"),
        _ => "ok".to_string(),
    }
}
