//! What statements need of the server around them: SHOW PROCESSLIST, KILL, hashes of passwords, SHOW
//! STATUS,
//! FLUSH SSL.
//!
//! The SQL layer has no sockets. A server attaches itself to the [`crate::Instance`]. Without a server, as in
//! a program that embeds the engine, these statements answer that there is none.

use crate::deadline::Deadline;
use crate::progress::Progress;
use crate::{ErrorKind, SqlError};
use base::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use base::sync::{Condvar, Mutex, OnceLock};
use engine::Isolation;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A server, as statements see it.
pub trait Host: Send + Sync {
    /// The open connections, by id.
    fn processes(&self) -> Vec<Process>;

    /// # Errors
    /// 1094 if there is no such connection.
    fn kill(&self, id: u64, what: Kill) -> Result<(), SqlError>;

    /// What the method `plugin` keeps of a password. An empty password gives an empty text, which lets in
    /// whoever knows that there is none.
    ///
    /// # Errors
    /// 1524 if the server does not have the method; 1819 if the password is too simple.
    fn new_secret(&self, plugin: &str, password: &[u8]) -> Result<String, SqlError>;

    /// Whether a text is one that [`Host::new_secret`] can give.
    ///
    /// # Errors
    /// 1372 if it is not; 1524.
    fn check_secret(&self, plugin: &str, text: &str) -> Result<(), SqlError>;

    fn connections(&self) -> ConnectionCounts;

    fn memory(&self) -> Memory;

    /// FLUSH PRIVILEGES: an account that was blocked may connect again.
    fn flush_privileges(&self);

    /// FLUSH USER_RESOURCES: what accounts have used of their limits for an hour is forgotten.
    fn forget_usage(&self);

    /// FLUSH SLOW LOGS.
    fn flush_slow_log(&self);

    /// `None` if the server has no TLS.
    fn tls(&self) -> Option<TlsFigures>;

    /// FLUSH SSL: reads certificates and keys again, for new connections.
    ///
    /// # Errors
    /// 1105 if one cannot be used. Then nothing changes.
    fn reload_tls(&self) -> Result<(), SqlError>;
}

/// What SHOW STATUS says of TLS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TlsFigures {
    /// Connections that asked for TLS, those that got it, and those of them that went on with the secrets
    /// of an earlier one.
    pub begun: u64,
    pub finished: u64,
    pub resumed: u64,
    pub asks_for_certificates: bool,
    /// From when and until when the certificate holds, as OpenSSL writes it.
    pub not_before: String,
    pub not_after: String,
    /// What clients may choose from, with colons.
    pub ciphers: String,
}

/// The process's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// `Memory_resident`: the memory that the process occupies.
    pub resident: u64,
    /// `Memory_heap_used` and `Memory_heap_mapped`: the used part of the shared heap, and its size as taken
    /// from the operating system. Both are 0 with the system's allocator.
    pub heap_used: u64,
    pub heap_mapped: u64,
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
    /// How long it has been in that state.
    pub millis: u64,
    pub state: String,
    /// The statement that it runs.
    pub info: Option<String>,
    pub progress: Progress,
    pub transaction: Option<TransactionUnderWay>,
}

/// A session's transaction as other sessions see it. Its parts may come from different moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransactionUnderWay {
    /// When it first used a table, in microseconds since 1970; `None` for a statement outside of BEGIN and
    /// COMMIT.
    pub begun_micros: Option<u64>,
    pub isolation: Isolation,
    pub read_only: bool,
    /// True if it has changed or locked something.
    pub writes: Option<engine::UnderWay>,
}

/// Which part of a connection KILL ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kill {
    Connection,
    /// KILL QUERY: the statement that runs now, if one does.
    Statement,
}

macro_rules! connection_counts {
    ($($name:ident = $status:literal, $kind:ident $metric:literal $($phase:literal)?, $help:literal;)*) => {
        /// What only the server can count of its connections. A row of the list has all that is known of a
        /// count. SHOW STATUS and the page of metrics show every row.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ConnectionCount {
            $(#[doc = $help] $name,)*
        }

        impl ConnectionCount {
            /// Counts of one metric follow one another.
            pub const ALL: [ConnectionCount; [$($status),*].len()] = [$(ConnectionCount::$name),*];

            pub(crate) fn status_name(self) -> &'static str {
                match self {
                    $(ConnectionCount::$name => $status,)*
                }
            }

            /// How the page of metrics shows the count.
            pub fn metric(self) -> Metric {
                match self {
                    $(ConnectionCount::$name => Metric {
                        name: $metric,
                        kind: MetricKind::$kind,
                        help: $help,
                        phase: [$($phase)?].first().copied(),
                    },)*
                }
            }
        }
    };
}

// A count, its name in SHOW STATUS, and in the page of metrics the kind, the name, the phase that tells
// counts of one name apart, and the help text.
connection_counts! {
    Connected = "Threads_connected", Gauge "latchwork_connections", "Open connections.";
    Running = "Threads_running", Gauge "latchwork_connections_running", "Connections that run a command.";
    ConnectedMax = "Max_used_connections", Gauge "latchwork_connections_max_used",
        "The most that were open at a time.";
    Attempts = "Connections", Counter "latchwork_connection_attempts_total", "Attempts to connect.";
    AbortedConnects = "Aborted_connects", Counter "latchwork_connections_aborted_total" "connect",
        "Connections that were not let in, or ended without a farewell.";
    AbortedClients = "Aborted_clients", Counter "latchwork_connections_aborted_total" "client",
        "Connections that were not let in, or ended without a farewell.";
    RefusedMaxConnections = "Connection_errors_max_connections",
        Counter "latchwork_connections_aborted_total" "max_connections",
        "Connections that were not let in, or ended without a farewell.";
    BytesReceived = "Bytes_received", Counter "latchwork_network_receive_bytes_total", "From clients.";
    BytesSent = "Bytes_sent", Counter "latchwork_network_transmit_bytes_total", "To clients.";
}

/// A number on the page of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    /// The label `phase`, where several counts share a name.
    pub phase: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Only grows, until the server ends.
    Counter,
    Gauge,
}

/// The value of every [`ConnectionCount`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionCounts([u64; ConnectionCount::ALL.len()]);

impl std::ops::Index<ConnectionCount> for ConnectionCounts {
    type Output = u64;

    fn index(&self, count: ConnectionCount) -> &u64 {
        &self.0[count as usize]
    }
}

impl std::ops::IndexMut<ConnectionCount> for ConnectionCounts {
    fn index_mut(&mut self, count: ConnectionCount) -> &mut u64 {
        &mut self.0[count as usize]
    }
}

/// The part of a session that other sessions use. KILL raises its flag, and long statements check that flag
/// every few rows. A session that waits for others sleeps here.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: AtomicU8,
    /// Ends a wait for a row's lock.
    engine: OnceLock<engine::Interrupter>,
    /// What the session waits for.
    waits_for: AtomicU8,
    /// A packed [`Progress`].
    progress: AtomicU32,
    /// When the transaction first used a table, in microseconds since 1970; 0 outside of one.
    begun_micros: AtomicU64,
    /// The isolation of the transaction, or of the next one.
    isolation: AtomicU8,
    read_only: AtomicBool,
    /// Time asleep, in microseconds. Only the session's own thread writes it.
    waited_micros: AtomicU64,
    /// When the statement's time is over, as [`crate::session`]'s timer counts.
    end: Deadline,
    /// True if the bell was rung since the session last looked.
    rung: Mutex<bool>,
    bell: Condvar,
}

/// What a session waits for, in the words of SHOW PROCESSLIST.
static WAITS: [&str; 6] = [
    "",
    "Waiting for table metadata lock",
    "Waiting for backup lock",
    "User lock",
    "Waiting for row lock",
    "Waiting for thread_concurrency",
];

/// The isolation levels in order of [`Isolation`].
static ISOLATIONS: [Isolation; 4] = [
    Isolation::ReadUncommitted,
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

/// An index into [`WAITS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum WaitsFor {
    Nothing,
    Table,
    ReadLock,
    UserLock,
    /// The engine reports this wait and the next one. They are never stored in the session.
    Row,
    Turn,
}

impl Interrupt {
    const STATEMENT: u8 = 1;
    const CONNECTION: u8 = 2;
    /// Beside STATEMENT: the time of the statement is over.
    const TIME: u8 = 4;

    /// An interrupt that can also end the waits of the session's engine half.
    pub(crate) fn of(engine: engine::Interrupter) -> Interrupt {
        let interrupt = Interrupt::default();
        // The cell is empty, because no other thread has seen it.
        let _ = interrupt.engine.set(engine);
        interrupt
    }

    pub fn raise(&self, what: Kill) {
        self.raise_bits(match what {
            Kill::Connection => Interrupt::CONNECTION,
            Kill::Statement => Interrupt::STATEMENT,
        });
    }

    fn raise_bits(&self, bits: u8) {
        // ORDER: a flag that carries no data. A thread that polls it sees it soon. A thread that sleeps
        // checks it after it took the bell's latch.
        self.raised.fetch_or(bits, Ordering::Relaxed);
        if let Some(engine) = self.engine.get() {
            engine.interrupt();
        }
        self.ring();
    }

    pub(crate) fn set_end(&self, end: u64) {
        self.end.set(end);
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.end.is_set()
    }

    /// Ends the statement if its time is over at `now`. Otherwise gives the moment when it will be.
    pub(crate) fn end_if_over(&self, now: u64) -> Option<u64> {
        self.end.end_if_over(now, || self.raise_bits(Interrupt::STATEMENT | Interrupt::TIME))
    }

    /// Called before each statement. Forgets a KILL QUERY that came too late for the statement before, and
    /// returns true if there was one. A KILL of the connection stays.
    pub(crate) fn begin_statement(&self) -> bool {
        // ORDER: see `raise`. Nothing is written in the usual case.
        let late = self.raised.load(Ordering::Relaxed) & Interrupt::STATEMENT != 0;
        if late {
            self.raised.fetch_and(!(Interrupt::STATEMENT | Interrupt::TIME), Ordering::Relaxed);
        }
        late
    }

    pub fn connection_is_killed(&self) -> bool {
        // ORDER: see `raise`.
        self.raised.load(Ordering::Relaxed) & Interrupt::CONNECTION != 0
    }

    /// # Errors
    /// 1317 after KILL QUERY, 1927 after KILL, 1969 when the statement's time is over.
    #[inline]
    pub fn check(&self) -> Result<(), SqlError> {
        // ORDER: see `raise`.
        match self.raised.load(Ordering::Relaxed) {
            0 => Ok(()),
            bits => Err(Interrupt::error(bits)),
        }
    }

    #[cold]
    fn error(bits: u8) -> SqlError {
        if bits & Interrupt::CONNECTION != 0 {
            SqlError::new(ErrorKind::ConnectionKilled, "Connection was killed")
        } else if bits & Interrupt::TIME != 0 {
            SqlError::new(
                ErrorKind::StatementTimeout,
                "Query execution was interrupted (max_statement_time exceeded)",
            )
        } else {
            SqlError::new(ErrorKind::QueryInterrupted, "Query execution was interrupted")
        }
    }

    /// Wakes the session if it sleeps in [`Interrupt::sleep`], or keeps it from falling asleep.
    pub(crate) fn ring(&self) {
        *self.rung.lock() = true;
        self.bell.notify_all();
    }

    /// Sleeps until the bell is rung or `until` has come. Called in a loop that looks again at what is waited
    /// for.
    ///
    /// # Errors
    /// 1205 when the time is over, 1317 and 1927 after KILL.
    pub(crate) fn sleep(&self, until: Instant, what: WaitsFor) -> Result<(), SqlError> {
        self.check()?;
        let mut rung = self.rung.lock();
        // ORDER: for display only.
        self.waits_for.store(what as u8, Ordering::Relaxed);
        let begun = Instant::now();
        let mut left = until.saturating_duration_since(begun);
        while !*rung && !left.is_zero() {
            rung = self.bell.wait_timeout(rung, left).0;
            left = until.saturating_duration_since(Instant::now());
        }
        // ORDER: for display only.
        self.waits_for.store(WaitsFor::Nothing as u8, Ordering::Relaxed);
        let woken = std::mem::take(&mut *rung);
        drop(rung);
        let waited = self.waited_micros.load(Ordering::Relaxed) + begun.elapsed().as_micros() as u64;
        self.waited_micros.store_owned(waited, Ordering::Relaxed);
        self.check()?;
        if woken { Ok(()) } else { Err(SqlError::lock_wait_timeout()) }
    }

    /// Runs `wait`, which waits for the client while a statement runs: others may run meanwhile, where
    /// `thread_concurrency` is a limit. For the session's own thread.
    ///
    /// # Errors
    /// 1317 and 1927 after KILL, once `wait` has been run.
    pub fn outside<T>(&self, wait: impl FnOnce() -> T) -> Result<T, SqlError> {
        match self.engine.get() {
            Some(engine) => match engine.outside(engine::Patience::Endless, wait) {
                Ok(done) => Ok(done),
                Err(_) => Err(self.check().err().unwrap_or_else(|| Interrupt::error(Interrupt::STATEMENT))),
            },
            None => Ok(wait()),
        }
    }

    /// What the session waits for; empty while it runs.
    pub fn waits_for(&self) -> &'static str {
        if let Some(engine) = self.engine.get().filter(|engine| engine.is_waiting()) {
            let what = if engine.is_queued() { WaitsFor::Turn } else { WaitsFor::Row };
            return WAITS[what as usize];
        }
        // ORDER: for display only.
        WAITS[usize::from(self.waits_for.load(Ordering::Relaxed))]
    }

    /// Notes how far the statement is.
    pub(crate) fn note_progress(&self, progress: Progress) {
        // ORDER: for display only; the session's own.
        self.progress.store_owned(progress.packed(), Ordering::Relaxed);
    }

    /// How far the statement is.
    pub fn progress(&self) -> Progress {
        // ORDER: for display only.
        Progress::unpacked(self.progress.load(Ordering::Relaxed))
    }

    /// How long the session has waited for tables and rows, in all its statements.
    pub(crate) fn waited_micros(&self) -> u64 {
        // ORDER: the session's own.
        let own = self.waited_micros.load(Ordering::Relaxed);
        own + self.engine.get().map_or(0, engine::Interrupter::waited_micros)
    }

    /// The transaction has used its first table.
    pub(crate) fn note_begin(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
        // ORDER: for display only, here and below; the session's own.
        self.begun_micros.store_owned(now, Ordering::Relaxed);
    }

    /// The transaction has ended.
    pub(crate) fn note_end(&self) {
        self.begun_micros.store_owned(0, Ordering::Relaxed);
    }

    /// Notes the characteristics of the transaction, or of the next one.
    pub(crate) fn note_characteristics(&self, isolation: Isolation, read_only: bool) {
        self.isolation.store_owned(isolation as u8, Ordering::Relaxed);
        self.read_only.store(read_only, Ordering::Relaxed);
    }

    /// The session's transaction. `None` if it has used no table.
    pub fn transaction(&self) -> Option<TransactionUnderWay> {
        let begun = self.begun_micros.load(Ordering::Relaxed);
        let begun_micros = (begun != 0).then_some(begun);
        let writes = self.engine.get().and_then(engine::Interrupter::transaction);
        if begun_micros.is_none() && writes.is_none() {
            return None;
        }
        let isolation = ISOLATIONS[usize::from(self.isolation.load(Ordering::Relaxed))];
        let read_only = self.read_only.load(Ordering::Relaxed);
        Some(TransactionUnderWay { begun_micros, isolation, read_only, writes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_kill_of_a_statement_spares_the_next_one_and_a_kill_of_the_connection_does_not() {
        let interrupt = Interrupt::default();
        interrupt.raise(Kill::Statement);
        assert_eq!(interrupt.check().unwrap_err().code(), 1317);
        interrupt.begin_statement();
        assert_eq!(interrupt.check(), Ok(()));
        interrupt.raise(Kill::Connection);
        interrupt.begin_statement();
        assert_eq!(interrupt.check().unwrap_err().code(), 1927);
        assert!(interrupt.connection_is_killed());
    }
}
