//! A named session: a connection on a thread of its own, so that a statement may wait while others go on.

use crate::support::target::{Client, Server};
use std::sync::mpsc;
use std::time::Duration;
use wire::client::{ClientError, QueryResult};

#[derive(Debug)]
pub struct Session {
    statements: mpsc::Sender<String>,
    outcomes: mpsc::Receiver<String>,
    /// The server's number of the connection.
    pub id: u32,
}

impl Session {
    pub fn open(server: &Server) -> Session {
        let mut client = server.connect();
        let id = client.greeting().connection_id;
        let (statements, incoming) = mpsc::channel::<String>();
        let (outgoing, outcomes) = mpsc::channel();
        // The thread ends when the session is dropped and its statement has been answered.
        std::thread::spawn(move || {
            for statement in incoming {
                if outgoing.send(run(&mut client, &statement)).is_err() {
                    break;
                }
            }
        });
        Session { statements, outcomes, id }
    }

    pub fn send(&self, statement: &str) {
        self.statements.send(statement.to_string()).unwrap();
    }

    /// The outcome of the statement sent last, if it comes within this time.
    pub fn outcome(&self, within: Duration) -> Option<String> {
        self.outcomes.recv_timeout(within).ok()
    }
}

fn run(client: &mut Client, statement: &str) -> String {
    match client.query(statement) {
        Ok(result) => describe(statement, &result),
        Err(ClientError::Server(error)) => {
            format!("error {} ({})", error.code, error.sqlstate)
        }
        Err(error) => format!("connection lost: {error}"),
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
