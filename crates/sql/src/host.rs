//! What statements ask of the server around them: SHOW PROCESSLIST, KILL, SET PASSWORD, SHOW STATUS.
//!
//! The SQL layer knows nothing of sockets; a server attaches itself to the [`crate::Instance`]. Without one (an
//! embedding program) these statements answer that there is no server.

use crate::SqlError;
use base::sync::atomic::{AtomicU8, Ordering};

/// A server, as statements see it.
pub trait Host: Send + Sync {
    /// The open connections, by id.
    fn processes(&self) -> Vec<Process>;

    /// # Errors
    /// 1094 if there is no such connection.
    fn kill(&self, id: u64, what: Kill) -> Result<(), SqlError>;

    /// SET PASSWORD. Takes effect for new connections, and survives a restart.
    ///
    /// # Errors
    /// 1133 if there is no such account, 1372 if a hash is not one, 1290 while the server runs without accounts.
    fn set_password(&self, user: &str, host: &str, password: NewPassword<'_>) -> Result<(), SqlError>;

    /// What PASSWORD('...') gives: `*` and 40 hexadecimal digits, empty for an empty password.
    fn password_hash(&self, password: &[u8]) -> String;

    fn connections(&self) -> ConnectionCounts;
}

/// One connection in SHOW PROCESSLIST.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    pub id: u64,
    pub user: String,
    pub host: String,
    pub database: Option<String>,
    /// `Sleep`, `Query`, `Execute`...
    pub command: &'static str,
    /// How long it has been doing that.
    pub millis: u64,
    pub state: String,
    /// The statement that it runs.
    pub info: Option<String>,
}

/// Which part of a connection KILL ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kill {
    Connection,
    /// KILL QUERY: the statement that runs now, if one does.
    Statement,
}

/// The right side of SET PASSWORD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewPassword<'a> {
    /// `PASSWORD('text')`; empty takes the password away.
    Plain(&'a [u8]),
    /// `'*94BDCEBE...'`: what PASSWORD() gives.
    Hash(&'a str),
}

/// Counters of SHOW STATUS that only the server knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionCounts {
    /// `Threads_connected`, `Threads_running`.
    pub connected: u64,
    pub running: u64,
    /// `Connections`: attempts since the start.
    pub attempts: u64,
    /// `Max_used_connections`.
    pub connected_max: u64,
    /// `Aborted_connects`, `Aborted_clients`, `Connection_errors_max_connections`.
    pub aborted_connects: u64,
    pub aborted_clients: u64,
    pub refused_max_connections: u64,
    /// `Bytes_received`, `Bytes_sent`.
    pub bytes_received: u64,
    pub bytes_sent: u64,
    /// `Uptime`.
    pub uptime_seconds: u64,
}

/// Raised by KILL, looked at by long statements every few rows.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicU8);

impl Interrupt {
    const STATEMENT: u8 = 1;
    const CONNECTION: u8 = 2;

    pub fn raise(&self, what: Kill) {
        let bit = match what {
            Kill::Connection => Interrupt::CONNECTION,
            Kill::Statement => Interrupt::STATEMENT,
        };
        // ORDER: a flag that carries no data; whoever polls it sees it soon.
        self.0.fetch_or(bit, Ordering::Relaxed);
    }

    /// Called before each statement: a KILL QUERY that came too late is forgotten, a KILL is not.
    pub fn begin_statement(&self) {
        // ORDER: see `raise`. Nothing is written in the usual case.
        if self.0.load(Ordering::Relaxed) & Interrupt::STATEMENT != 0 {
            self.0.fetch_and(!Interrupt::STATEMENT, Ordering::Relaxed);
        }
    }

    pub fn connection_is_killed(&self) -> bool {
        // ORDER: see `raise`.
        self.0.load(Ordering::Relaxed) & Interrupt::CONNECTION != 0
    }

    /// # Errors
    /// 1317 after KILL QUERY, 1927 after KILL.
    #[inline]
    pub fn check(&self) -> Result<(), SqlError> {
        // ORDER: see `raise`.
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            bits => Err(Interrupt::error(bits)),
        }
    }

    #[cold]
    fn error(bits: u8) -> SqlError {
        if bits & Interrupt::CONNECTION != 0 {
            SqlError::new(1927, b"70100", "Connection was killed")
        } else {
            SqlError::new(1317, b"70100", "Query execution was interrupted")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_kill_of_a_statement_spares_the_next_one_and_a_kill_of_the_connection_does_not() {
        let interrupt = Interrupt::default();
        interrupt.raise(Kill::Statement);
        assert_eq!(interrupt.check().unwrap_err().code, 1317);
        interrupt.begin_statement();
        assert_eq!(interrupt.check(), Ok(()));
        interrupt.raise(Kill::Connection);
        interrupt.begin_statement();
        assert_eq!(interrupt.check().unwrap_err().code, 1927);
        assert!(interrupt.connection_is_killed());
    }
}
