//! The open connections. SHOW PROCESSLIST lists them, and KILL ends them.

mod times;

pub(crate) use times::CommandTimes;

use crate::stream::{Door, Stream};
use base::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use base::sync::{Arc, CachePadded, Condvar, Mutex, OnceLock};
use sql::audit::{AuditLog, ConnectionEvent, Who};
use sql::host::{Interrupt, Kill, Process};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use wire::CommandKind;

base::latch_class!(pub DetailsLatch, "details of a connection");

base::latch_class!(pub ConnectionsLatch, "connections");

/// The most of a statement's text that SHOW PROCESSLIST can show, in bytes.
const INFO_BYTES_MAX: usize = 1024;

/// The most connections that wait for their login.
const STRANGERS_MAX: usize = 128;

/// The open connections by id.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    open: Mutex<Open, ConnectionsLatch>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    entries: BTreeMap<u64, Arc<Entry>>,
    /// Connections whose client has not shown yet who it is, and those that have. One that was closed to make
    /// room is in neither.
    strangers: BTreeSet<u64>,
    admitted: BTreeSet<u64>,
    /// Those of `admitted` that came in by the extra door.
    extra: usize,
    id_last: u64,
    open_max: usize,
    closing: bool,
}

/// What a connection does, as other threads see it. Only the connection's own thread writes here, on cache
/// lines of its own.
#[derive(Debug)]
pub(crate) struct Entry {
    pub id: u64,
    /// The other end of the socket.
    peer: String,
    /// The client, if the other end is a proxy and has told where its client is.
    proxied: OnceLock<String>,
    pub stream: Stream,
    /// Where it came in.
    pub door: Door,
    /// The moment from which times are counted.
    epoch: Instant,
    activity: CachePadded<Activity>,
    details: Mutex<Details, DetailsLatch>,
}

#[derive(Debug, Default)]
struct Activity {
    /// A [`CommandKind`].
    command: AtomicU8,
    /// Microseconds from `epoch` to the begin of the command.
    since: AtomicU64,
    /// How long its statements took.
    times: CommandTimes,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
}

#[derive(Debug, Default)]
struct Details {
    user: String,
    database: Option<Arc<str>>,
    info: Info,
    interrupt: Option<Arc<Interrupt>>,
    killed: bool,
}

/// The statement under way.
#[derive(Debug, Default)]
struct Info {
    /// The text of a text statement, at most [`INFO_BYTES_MAX`] bytes. The memory is reused.
    text: Vec<u8>,
    /// The text of a prepared statement.
    prepared: Option<Arc<[u8]>>,
}

impl Registry {
    /// Adds a connection whose client has not logged in. If there are too many of them, the oldest one is
    /// closed: honest clients log in at once, so it is most likely one that never will.
    ///
    /// # Errors
    /// The server is stopping. The stream is given back.
    pub(crate) fn add(&self, stream: Stream, host: String, door: Door) -> Result<Arc<Entry>, Stream> {
        let mut open = self.open.lock();
        if open.closing {
            return Err(stream);
        }
        if open.strangers.len() >= STRANGERS_MAX
            && let Some(oldest) = open.strangers.pop_first()
            && let Some(entry) = open.entries.get(&oldest)
        {
            entry.stream.close();
        }
        open.id_last += 1;
        let entry = Arc::new(Entry {
            id: open.id_last,
            peer: host,
            proxied: OnceLock::new(),
            stream,
            door,
            epoch: Instant::now(),
            activity: CachePadded::default(),
            details: Mutex::default(),
        });
        open.entries.insert(entry.id, entry.clone());
        open.strangers.insert(entry.id);
        open.open_max = open.open_max.max(open.entries.len());
        Ok(entry)
    }

    /// Counts a connection among those that have logged in. False if there are `connections_max` of them
    /// already that came in by the same door. One that is among them and logs in again stays.
    pub(crate) fn admit(&self, id: u64, door: Door, connections_max: usize) -> bool {
        let mut open = self.open.lock();
        if open.admitted.contains(&id) {
            return true;
        }
        let others = match door {
            Door::Main => open.admitted.len() - open.extra,
            Door::Extra => open.extra,
        };
        if others >= connections_max {
            return false;
        }
        open.strangers.remove(&id);
        open.admitted.insert(id);
        open.extra += usize::from(door == Door::Extra);
        true
    }

    pub(crate) fn remove(&self, id: u64) {
        let mut open = self.open.lock();
        let entry = open.entries.remove(&id);
        open.strangers.remove(&id);
        if open.admitted.remove(&id) && entry.is_some_and(|entry| entry.door == Door::Extra) {
            open.extra -= 1;
        }
        drop(open);
        self.changed.notify_all();
    }

    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.open.lock().entries.values().cloned().collect()
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Entry>> {
        self.open.lock().entries.get(&id).cloned()
    }

    /// Ids given out so far, connections open now, and the most that were open at a time.
    pub(crate) fn counts(&self) -> (u64, usize, usize) {
        let open = self.open.lock();
        (open.id_last, open.entries.len(), open.open_max)
    }

    /// Refuses connections from now on.
    pub(crate) fn close(&self) {
        self.open.lock().closing = true;
    }

    /// Waits until no connection is left, or `timeout`; true if none is.
    pub(crate) fn wait_until_empty(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut open = self.open.lock();
        while !open.entries.is_empty() {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
            open = self.changed.wait_timeout(open, left).0;
        }
        true
    }
}

impl Entry {
    /// Where the client is: an address, or `localhost`.
    pub(crate) fn host(&self) -> &str {
        self.proxied.get().unwrap_or(&self.peer)
    }

    /// The other end of the socket, which may be a proxy.
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// A proxy has told where its client is.
    pub(crate) fn set_proxied(&self, host: String) {
        // There is one header a connection.
        let _ = self.proxied.set(host);
    }

    /// The name that the client gave; empty before it has.
    pub(crate) fn user(&self) -> String {
        self.details.lock().user.clone()
    }

    /// The user at the other end of a unix socket, unless it speaks for somebody else.
    pub(crate) fn peer_uid(&self) -> Option<u32> {
        if self.proxied.get().is_some() { None } else { self.stream.peer_uid() }
    }

    /// True if nobody can listen. What is between a proxy and its client is not known.
    pub(crate) fn is_secure(&self) -> bool {
        match self.proxied.get() {
            Some(_) => self.stream.encrypted().is_some(),
            None => self.stream.is_secure(),
        }
    }

    /// The handshake is over: notes the user, and the interrupt that KILL raises.
    pub(crate) fn authenticated(&self, user: &str, interrupt: Arc<Interrupt>) {
        let mut details = self.details.lock();
        details.user = user.to_string();
        if details.killed {
            interrupt.raise(Kill::Connection);
        }
        details.interrupt = Some(interrupt);
    }

    /// Tells the audit log what the client did.
    pub(crate) fn note_event(
        &self,
        audit: &AuditLog,
        user: &str,
        database: Option<&str>,
        event: ConnectionEvent,
    ) {
        audit.connection(Who { user, host: self.host(), connection: self.id, database }, event);
    }

    /// Tells the audit log that the client goes, if it was let in.
    pub(crate) fn note_leave(&self, audit: &AuditLog) {
        let details = self.details.lock();
        if details.interrupt.is_none() {
            return;
        }
        let (user, database) = (details.user.clone(), details.database.clone());
        drop(details);
        self.note_event(audit, &user, database.as_deref(), ConnectionEvent::Disconnect);
    }

    /// The same for a client that was not let in.
    pub(crate) fn note_leave_of_stranger(&self, audit: &AuditLog, user: &str) {
        if self.details.lock().interrupt.is_none() {
            self.note_event(audit, user, None, ConnectionEvent::Disconnect);
        }
    }

    /// A command begins; `text` is its statement, if it has one.
    pub(crate) fn begin(&self, command: CommandKind, text: &[u8]) {
        self.set(command);
        let mut details = self.details.lock();
        details.info.prepared = None;
        details.info.text.clear();
        details.info.text.extend_from_slice(&text[..text.len().min(INFO_BYTES_MAX)]);
    }

    /// The execution of a prepared statement begins.
    pub(crate) fn begin_prepared(&self, text: &Arc<[u8]>) {
        self.set(CommandKind::StmtExecute);
        let mut details = self.details.lock();
        details.info.text.clear();
        if !details.info.prepared.as_ref().is_some_and(|now| Arc::ptr_eq(now, text)) {
            details.info.prepared = Some(text.clone());
        }
    }

    /// The command is done. Its text stays in memory, and the state hides it. Returns how long the command
    /// took, in microseconds, if it was a statement.
    pub(crate) fn sleep(&self) -> Option<u64> {
        // ORDER: only this thread writes them; see `set`.
        let command = self.activity.command.load(Ordering::Relaxed);
        let begun = self.activity.since.load(Ordering::Relaxed);
        let now = self.set(CommandKind::Sleep);
        let is_statement = command == CommandKind::Query as u8 || command == CommandKind::StmtExecute as u8;
        is_statement.then(|| {
            let took = now.saturating_sub(begun);
            self.activity.times.add(took);
            took
        })
    }

    /// Notes the command. Returns the time, in microseconds since the epoch.
    fn set(&self, command: CommandKind) -> u64 {
        let since = self.epoch.elapsed().as_micros() as u64;
        // ORDER: other threads only display them. A reader may see the begin of one command with the name of
        // another.
        self.activity.since.store_owned(since, Ordering::Relaxed);
        self.activity.command.store_owned(command as u8, Ordering::Relaxed);
        since
    }

    /// How long its statements took.
    pub(crate) fn times(&self) -> &CommandTimes {
        &self.activity.times
    }

    pub(crate) fn set_database(&self, database: Option<&Arc<str>>) {
        self.details.lock().database = database.cloned();
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        add_owned(&self.activity.bytes_received, bytes);
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        add_owned(&self.activity.bytes_sent, bytes);
    }

    /// Bytes received and bytes sent.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        // ORDER: statistics.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.activity.bytes_received), load(&self.activity.bytes_sent))
    }

    /// False while it waits for the client's next command.
    pub(crate) fn is_running(&self) -> bool {
        // ORDER: statistics.
        self.activity.command.load(Ordering::Relaxed) != CommandKind::Sleep as u8
    }

    pub(crate) fn process(&self) -> Process {
        // ORDER: see `set`.
        let command = CommandKind::of(self.activity.command.load(Ordering::Relaxed));
        let since = self.activity.since.load(Ordering::Relaxed);
        let details = self.details.lock();
        let running = command != Some(CommandKind::Sleep);
        let text = match &details.info.prepared {
            Some(text) => &text[..],
            None => &details.info.text[..],
        };
        let text = &text[..text.len().min(INFO_BYTES_MAX)];
        let mut process = Process {
            id: self.id,
            user: if details.user.is_empty() {
                "unauthenticated user".to_string()
            } else {
                details.user.clone()
            },
            host: self.host().to_owned(),
            database: details.database.as_deref().map(str::to_string),
            command: match command {
                _ if details.killed => "Killed",
                Some(command) => command.process_list_name(),
                None => "Error",
            },
            millis: (self.epoch.elapsed().as_micros() as u64).saturating_sub(since) / 1_000,
            state: match &details.interrupt {
                Some(interrupt) if running => interrupt.waits_for().to_owned(),
                _ => String::new(),
            },
            progress: details.interrupt.as_ref().map(|interrupt| interrupt.progress()).unwrap_or_default(),
            transaction: details.interrupt.as_ref().and_then(|interrupt| interrupt.transaction()),
            info: (running && !text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned()),
        };
        drop(details);
        // The connection's own thread copies its statement as it is: only readers of the list pay for this.
        if let Some(info) = &mut process.info
            && let Cow::Owned(shown) = sql::parse::without_secrets(info)
        {
            *info = shown;
        }
        process
    }

    /// KILL: raises the flag that long statements look at. If the whole connection is to end, its reading is
    /// shut down too, so that a thread which waits for its client wakes up.
    pub(crate) fn kill(&self, what: Kill) {
        let mut details = self.details.lock();
        if let Some(interrupt) = &details.interrupt {
            interrupt.raise(what);
        }
        if what == Kill::Connection {
            details.killed = true;
            self.stream.shut_down_reading();
        }
    }
}

/// Adds to a counter that only this thread writes.
fn add_owned(counter: &AtomicU64, bytes: usize) {
    // ORDER: statistics; no other thread writes.
    counter.store_owned(counter.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
}
