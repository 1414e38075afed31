//! The state that all connections of a server share.

use crate::accounts::{self, Accounts, TrustedPeers};
use crate::key_pair::KeyPair;
use crate::log::Log;
use crate::registry::{CommandTimes, Registry};
use crate::slow_log::SlowLog;
use crate::tls::Tls;
use base::sync::Arc;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sql::host::{ConnectionCount, ConnectionCounts, Host, Kill, Memory, Process, TlsFigures};
use sql::{ErrorKind, Instance, SqlError};
use std::time::Instant;

/// The state that all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub instance: Arc<Instance>,
    pub registry: Registry,
    pub log: Arc<Log>,
    pub accounts: Accounts,
    pub trusted_peers: TrustedPeers,
    pub key_pair: KeyPair,
    /// `None` with `--skip-ssl`.
    pub tls: Option<Tls>,
    pub started: Instant,
    pub counters: Counters,
    /// Memory for answers. A connection borrows a buffer for each command.
    pub buffers: base::CoreLocal<Vec<u8>>,
    pub stopping: AtomicBool,
    pub slow_log: SlowLog,
}

/// Counters of connections that have ended or were refused.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// By [`ConnectionCount`]; 0 for those that the registry knows.
    connections: [AtomicU64; ConnectionCount::ALL.len()],
    pub times: CommandTimes,
}

impl Counters {
    pub(crate) fn add(&self, count: ConnectionCount, by: u64) {
        // ORDER: statistics.
        self.connections[count as usize].fetch_add(by, Ordering::Relaxed);
    }
}

impl Shared {
    pub(crate) fn is_stopping(&self) -> bool {
        // ORDER: no data belongs to the flag. Connections are woken through their sockets after it is set.
        self.stopping.load(Ordering::Relaxed)
    }

    /// How long the statements of all connections took.
    pub(crate) fn command_times(&self) -> CommandTimes {
        let sum = CommandTimes::default();
        sum.add_all(&self.counters.times);
        self.registry.all().iter().for_each(|entry| sum.add_all(entry.times()));
        sum
    }

    /// The line that answers COM_STATISTICS, in MariaDB's words.
    pub(crate) fn statistics(&self) -> String {
        let counters = self.instance.counters();
        let counter = |name| counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        let questions = counter("Questions");
        let uptime = self.started.elapsed();
        // A table stays open once it is, so as many are open as were opened.
        let tables = self.instance.open_tables();
        format!(
            "Uptime: {}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: {tables}  Open tables: \
             {tables}  Queries per second avg: {:.3}",
            uptime.as_secs(),
            self.connections()[ConnectionCount::Connected],
            counter("Slow_queries"),
            questions as f64 / uptime.as_secs_f64().max(0.001)
        )
    }
}

impl Host for Shared {
    fn processes(&self) -> Vec<Process> {
        self.registry.all().iter().map(|entry| entry.process()).collect()
    }

    fn kill(&self, id: u64, what: Kill) -> Result<(), SqlError> {
        match self.registry.get(id) {
            Some(entry) => {
                entry.kill(what);
                Ok(())
            }
            None => Err(SqlError::new(ErrorKind::UnknownThread, format!("Unknown thread id: {id}"))),
        }
    }

    fn new_secret(&self, plugin: &str, password: &[u8]) -> Result<String, SqlError> {
        accounts::new_secret(plugin, password)
    }

    fn check_secret(&self, plugin: &str, text: &str) -> Result<(), SqlError> {
        accounts::check_secret(plugin, text)
    }

    fn flush_privileges(&self) {
        self.accounts.forgive();
    }

    fn forget_usage(&self) {
        self.accounts.forget_usage();
    }

    fn flush_slow_log(&self) {
        self.slow_log.reopen();
    }

    fn tls(&self) -> Option<TlsFigures> {
        self.tls.as_ref().map(Tls::figures)
    }

    fn reload_tls(&self) -> Result<(), SqlError> {
        let Some(tls) = &self.tls else { return Ok(()) };
        tls.reload(&self.log).map_err(|error| {
            SqlError::new(ErrorKind::Unknown, format!("Failed to refresh SSL, error: {error}"))
        })
    }

    fn memory(&self) -> Memory {
        let heap = heap::figures();
        Memory { resident: heap::resident_bytes(), heap_used: heap.used, heap_mapped: heap.mapped }
    }

    fn connections(&self) -> ConnectionCounts {
        let entries = self.registry.all();
        let (attempts, _, connected_max) = self.registry.counts();
        let mut counts = ConnectionCounts::default();
        for count in ConnectionCount::ALL {
            // ORDER: statistics.
            counts[count] = self.counters.connections[count as usize].load(Ordering::Relaxed);
        }
        counts[ConnectionCount::Connected] = entries.len() as u64;
        counts[ConnectionCount::Running] = entries.iter().filter(|entry| entry.is_running()).count() as u64;
        counts[ConnectionCount::ConnectedMax] = connected_max as u64;
        counts[ConnectionCount::Attempts] = attempts;
        for entry in &entries {
            let (received, sent) = entry.bytes();
            counts[ConnectionCount::BytesReceived] += received;
            counts[ConnectionCount::BytesSent] += sent;
        }
        counts
    }
}
