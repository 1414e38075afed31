//! The audit log: who connected, which statements they ran and which tables those used. Variables, events and
//! lines are those of MariaDB's plugin `server_audit`; docs/security.md says what differs.
//!
//! An event is written before what it tells of goes on: a table's before the statement uses the table, a
//! statement's before its answer is sent. Without `server_audit_sync_log_file` that survives `kill -9` of
//! the server, and with it a power failure. A log that cannot be written stops nobody: failures are counted
//! in `Server_audit_writes_failed`.

mod file;
mod kinds;
mod line;

use crate::text::LexicalMode;
use crate::variables::{self, Values};
use crate::{ErrorKind, SqlError};
use base::sync::RwLock;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use file::{AuditFigures, LogFile};
use kinds::Kinds;
use line::{Event, Format};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The log of all sessions.
#[derive(Debug)]
pub struct AuditLog {
    is_on: AtomicBool,
    settings: RwLock<Arc<Settings>>,
    file: LogFile,
    /// Relative paths begin here.
    dir: PathBuf,
    /// The number of the last statement that was noted.
    query: AtomicU64,
}

/// The variables `server_audit_...`.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    kinds: Kinds,
    included: Vec<String>,
    excluded: Vec<String>,
    format: Format,
    /// A statement's text is cut behind so many bytes.
    text_bytes_max: usize,
    syncs: bool,
    rotate_bytes: u64,
    rotations: u64,
    /// The name of the machine, which each line has.
    machine: String,
}

/// Whose event it is.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    pub user: &'a str,
    pub host: &'a str,
    pub connection: u64,
    pub database: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    Connect,
    /// With the code of the error.
    FailedConnect(u16),
    /// COM_CHANGE_USER, with the code of an error or 0.
    ChangeUser(u16),
    Disconnect,
}

/// What a statement does with a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TableUse {
    Read,
    Write,
    Create,
    Alter,
    Drop,
    Rename,
}

/// A statement that is noted, while it runs.
#[derive(Debug)]
pub(crate) struct Trail {
    settings: Arc<Settings>,
    /// The number that its lines have.
    query: u64,
    /// The tables that have been noted, and where renamed ones go.
    tables: Vec<(TableUse, String, String)>,
    /// Its line is written.
    pub(crate) is_told: bool,
}

impl Settings {
    fn of(values: &Values) -> Settings {
        let users = |name| {
            let text = values.text(name);
            let names = text.split(',').map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        };
        Settings {
            kinds: Kinds::parse(&values.text("server_audit_events")),
            included: users("server_audit_incl_users"),
            excluded: users("server_audit_excl_users"),
            format: match values.text("server_audit_format").as_str() {
                "json" => Format::Json,
                _ => Format::Text,
            },
            text_bytes_max: values.unsigned("server_audit_query_log_limit") as usize,
            syncs: values.boolean("server_audit_sync_log_file"),
            rotate_bytes: values.unsigned("server_audit_file_rotate_size"),
            rotations: values.unsigned("server_audit_file_rotations"),
            machine: values.text("hostname"),
        }
    }

    /// Whether the statements of a user are noted. An account that is included is not asked for the other
    /// list.
    fn cover(&self, user: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|name| name == user);
        if self.included.is_empty() { !is_in(&self.excluded) } else { is_in(&self.included) }
    }
}

impl AuditLog {
    /// A log that is off. `dir` is the data directory.
    pub(crate) fn new(dir: &Path, values: &Values) -> AuditLog {
        AuditLog {
            is_on: AtomicBool::new(false),
            settings: RwLock::of_class(Arc::new(Settings::of(values))),
            file: LogFile::default(),
            dir: dir.to_owned(),
            query: AtomicU64::new(0),
        }
    }

    /// Begins to log if the variables say so, at the server's start.
    ///
    /// # Errors
    /// 1004 if the file cannot be opened.
    pub(crate) fn start(&self, values: &Values) -> Result<(), SqlError> {
        *self.settings.write() = Arc::new(Settings::of(values));
        self.switch(values)
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        // ORDER: nothing is published with it. A statement that runs beside the change may see either.
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn figures(&self) -> AuditFigures {
        AuditFigures { is_on: self.is_on(), ..self.file.figures() }
    }

    /// Takes up the change of a variable.
    ///
    /// # Errors
    /// 1004 if the file cannot be opened. Then the log goes on as before.
    pub(crate) fn apply(&self, changed: &str, after: &mut Values) -> Result<(), SqlError> {
        if !changed.starts_with("server_audit_") {
            return Ok(());
        }
        match changed {
            "server_audit_logging" => self.switch(after)?,
            "server_audit_file_path" if self.is_on() => self.switch(after)?,
            "server_audit_file_rotate_now" => {
                if after.boolean("server_audit_file_rotate_now") && self.is_on() {
                    self.file.rotate(&self.settings.read().clone());
                }
                set(after, "server_audit_file_rotate_now", variables::Setting::Boolean(false));
            }
            // As in MariaDB, a user is in one of the lists.
            "server_audit_incl_users" | "server_audit_excl_users" => {
                let Settings { included, mut excluded, .. } = Settings::of(after);
                excluded.retain(|name| !included.contains(name));
                let text = excluded.join(",");
                set(after, "server_audit_excl_users", variables::Setting::Text(text.as_str().into()));
            }
            _ => {}
        }
        *self.settings.write() = Arc::new(Settings::of(after));
        Ok(())
    }

    fn switch(&self, values: &Values) -> Result<(), SqlError> {
        let is_on = values.boolean("server_audit_logging");
        if is_on {
            let path = self.path(&values.text("server_audit_file_path"));
            self.file.open(&path).map_err(|error| {
                let text = format!("Can't create file '{}' of the audit log: {error}", path.display());
                SqlError::new(ErrorKind::CannotCreateFile, text)
            })?;
        }
        // ORDER: see `is_on`. The file stays open: the statement that switches the log off is its last line,
        // and others may be under way.
        self.is_on.store(is_on, Ordering::Relaxed);
        Ok(())
    }

    fn path(&self, written: &str) -> PathBuf {
        let path = self.dir.join(written);
        if path.is_dir() { path.join("server_audit.log") } else { path }
    }

    /// Notes that somebody came or went. As in MariaDB, the lists of users do not hold here.
    pub fn connection(&self, who: Who<'_>, event: ConnectionEvent) {
        if !self.is_on() {
            return;
        }
        let settings = self.settings.read().clone();
        if settings.kinds.have_connections() {
            self.write(&settings, who, 0, &[Event::Connection(event)]);
        }
    }

    /// Begins a statement of a user. `None` if it is not noted.
    pub(crate) fn begin(&self, user: &str) -> Option<Box<Trail>> {
        let settings = self.settings.read().clone();
        if !self.is_on() || !settings.kinds.have_statements() || !settings.cover(user) {
            return None;
        }
        Some(Box::new(Trail { settings, query: self.next_query(), tables: Vec::new(), is_told: false }))
    }

    fn next_query(&self) -> u64 {
        // ORDER: only that no number comes twice.
        self.query.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The next statement of the same text.
    pub(crate) fn go_on(&self, trail: &mut Trail) {
        trail.query = self.next_query();
        trail.tables.clear();
        trail.is_told = false;
    }

    /// Notes the use of tables, each once a statement. A name is `table`, or `table|database.table` of one
    /// that is renamed.
    pub(crate) fn tables<'t>(
        &self,
        who: Who<'_>,
        trail: &mut Trail,
        uses: impl Iterator<Item = (TableUse, &'t str, &'t str)>,
    ) {
        if !trail.settings.kinds.have_tables() {
            return;
        }
        let known = trail.tables.len();
        for (what, database, table) in uses {
            let noted = (what, database.to_owned(), table.to_owned());
            if !trail.tables.contains(&noted) {
                trail.tables.push(noted);
            }
        }
        // As in MariaDB, the tables that are changed come first.
        trail.tables[known..].sort_by_key(|(what, ..)| *what == TableUse::Read);
        let events: Vec<Event<'_>> = trail.tables[known..]
            .iter()
            .map(|(what, database, table)| Event::Table { what: *what, database, table })
            .collect();
        if !events.is_empty() {
            self.write(&trail.settings, who, trail.query, &events);
        }
    }

    /// Notes a statement that has ended, with the code of its error or 0.
    pub(crate) fn statement(
        &self,
        who: Who<'_>,
        trail: &mut Trail,
        text: &[u8],
        mode: LexicalMode,
        code: u16,
    ) {
        if std::mem::replace(&mut trail.is_told, true) || !trail.settings.kinds.have(text, mode) {
            return;
        }
        self.write(&trail.settings, who, trail.query, &[Event::Statement { text, code }]);
    }

    fn write(&self, settings: &Settings, who: Who<'_>, query: u64, events: &[Event<'_>]) {
        let mut lines = Vec::new();
        let head = line::Head { settings, now: line::now(), who, query };
        events.iter().for_each(|event| line::push(&mut lines, head, event));
        self.file.write(&lines, settings);
    }
}

fn set(values: &mut Values, name: &str, setting: variables::Setting) {
    if let Some(variable) = variables::find(name) {
        values.set(variable, setting);
    }
}
