//! The state of one session, and the state that all sessions of a server share.
//!
//! The layers above run the session's statements: [`crate::statements`] and [`crate::dispatch`].

mod audit;
pub(crate) mod bounds;
pub(crate) mod bulk;
pub(crate) mod environment;
mod figures;
mod instance;
mod kept_rows;
pub(crate) mod locked;
mod lookup;
mod memory;
mod phases;
pub(crate) mod plans;
mod progress_meter;
pub(crate) mod quiet;
pub(crate) mod relations;
pub(crate) mod slots;
mod target;
mod timer;
mod track;
pub(crate) mod transaction;
mod user_locks;
mod user_variables;

use bulk::Bulk;
pub use bulk::{BulkParam, ParameterRows};
pub use figures::{StatementFigures, with_values};
pub use instance::Instance;
pub use kept_rows::{KeptRows, RowKeeper};
pub(crate) use memory::{StatementCache, WorkingMemory};
pub(crate) use progress_meter::ProgressMeter;
pub(crate) use target::Target;
use track::Tracker;

use locked::Locked;
use user_variables::UserVariables;

use crate::accounts::access::Access;
use crate::accounts::{self, Grantee, Hourly};
use crate::audit::Trail;
use crate::host::Interrupt;
use crate::locks::WritingFlag;
use crate::memory::{Account, Charge};
use crate::names;
use crate::session::plans::{KeyHash, Plan};
use crate::session::transaction::Transaction;
use crate::status::Counter;
use crate::text::LexicalMode;
use crate::text::Scan;
use crate::text::SlotKind;
use crate::variables::{Live, SessionVariables};
use crate::{ColumnMeta, SqlError, Warnings};
use engine::Database;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use types::Value;

/// How often a statement is retried because ALTER TABLE came between its planning and its first change.
pub(crate) const DEFINITION_RETRIES: usize = 10;

/// A prepared statement, as COM_STMT_PREPARE answers it.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: u32,
    pub params: u16,
    /// Empty if the statement has no result set.
    pub columns: Arc<[ColumnMeta]>,
}

/// What a session keeps for a prepared statement.
#[derive(Debug)]
pub(crate) struct PreparedText {
    pub(crate) text: Vec<u8>,
    /// How the text is read: as at the time of PREPARE.
    pub(crate) mode: LexicalMode,
    pub(crate) params: u16,
    /// The default database at the time of PREPARE. The statement runs in it.
    pub(crate) database: Option<Arc<str>>,
    pub(crate) scan: Scan,
    /// False for statements that have no plan.
    pub(crate) is_scanned: bool,
    /// The kinds of slots that `plan` was made for.
    pub(crate) kinds: Vec<SlotKind>,
    pub(crate) plan: Option<Arc<Plan>>,
    /// Its place among the statements of all sessions.
    pub(crate) _slot: slots::PreparedSlot,
}

/// One client's session.
///
/// The fields stand in groups, by the code that touches them. A group that is a struct of its own is
/// borrowed, or taken out, without the rest.
#[derive(Debug)]
pub struct Session {
    /// What all sessions share.
    pub(crate) instance: Arc<Instance>,
    pub(crate) client: Client,
    /// What the session may do.
    pub(crate) access: Access,
    /// `None` for most accounts.
    pub(crate) bounds: Option<Box<bounds::Bounds>>,
    /// The statement that runs, if the audit log notes it.
    pub(crate) trail: Option<Box<Trail>>,

    // Every statement reads these, and SET and many others change them.
    pub(crate) state: SessionState,
    pub(crate) variables: SessionVariables,

    // `dispatch` and INSERT: what saves planning a statement again.
    /// `None` while a planned statement runs.
    pub(crate) cache: Option<Box<StatementCache>>,
    /// The tables that INSERT and similar statements used last.
    pub(crate) targets: target::Targets,
    pub(crate) prepared: PreparedStatements,

    /// The totals of a statement that runs with several rows of parameters, while one of its rows runs.
    pub(crate) bulk: Option<Bulk>,
    /// Which changes of the session the client has not been told of.
    pub(crate) tracker: Tracker,

    // `transaction` and `locked`: the locks and changes of the session, and what other sessions see of them.
    /// The session's half in the engine. A statement takes it out while it reads or changes tables.
    pub(crate) engine: Option<Box<engine::Session>>,
    /// What LOCK TABLES and FLUSH TABLES WITH READ LOCK have locked.
    pub(crate) locked: Locked,
    /// Raised while a statement or a commit changes something.
    pub(crate) writing: WritingFlag,
    /// Raised by KILL. Running statements call [`Interrupt::check`] every few rows.
    pub(crate) interrupt: Arc<Interrupt>,
    /// True once a statement had a limit of time.
    pub(crate) is_timed: bool,

    /// What the session's statements hold in memory.
    pub(crate) memory: Arc<Account>,
    /// Counts the values of the row that a statement is at, and those that it has assigned.
    values: RefCell<Charge>,
    /// The names that the session has locked with GET_LOCK.
    user_locks: RefCell<user_locks::Owned>,

    // Counting: statements write it, SHOW STATUS and the slow log read it.
    /// What this session did.
    pub(crate) counters: Arc<crate::status::SessionCounters>,
    /// The counters at the beginning of the current statement.
    pub(crate) before: figures::Counted,
}

/// How a connection is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compression {
    pub algorithm: &'static str,
    pub level: u8,
}

/// The client of a session. The server sets it when the client connects; statements read it.
#[derive(Debug)]
pub(crate) struct Client {
    /// The connection id.
    pub(crate) id: u64,
    pub(crate) user: String,
    pub(crate) host: String,
    /// `user@host`.
    account: String,
    /// UPDATE counts the rows that it found, not those that it changed.
    pub(crate) counts_found_rows: bool,
    pub(crate) multi_statements: bool,
    /// Version and cipher of TLS, if the connection is encrypted.
    pub(crate) encryption: Option<(&'static str, &'static str)>,
    /// `None` if the protocol is not compressed.
    pub(crate) compression: Option<Compression>,
    /// False for sessions of the server's own.
    pub(crate) is_audited: bool,
    /// COMMIT RELEASE: the client is sent away. The only field that a statement changes.
    pub(crate) released: bool,
}

/// A session's prepared statements, those of the protocol and those of PREPARE.
#[derive(Debug, Default)]
pub(crate) struct PreparedStatements {
    /// A statement is taken out while it runs.
    pub(crate) by_id: HashMap<u32, Option<Box<PreparedText>>, KeyHash>,
    pub(crate) last_id: u32,
    /// Prepared statements with a name, by the name in lower case.
    pub(crate) by_name: HashMap<String, u32>,
    /// What the statements take, about.
    bytes: usize,
    charge: Charge,
}

impl PreparedText {
    /// What the statement takes, about: it is kept as text and as a scan.
    fn bytes(&self) -> usize {
        size_of::<PreparedText>() + 2 * self.text.len()
    }
}

/// The state that COM_RESET_CONNECTION resets.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// The default database.
    pub(crate) database: Option<Arc<str>>,
    /// The warnings of the last statement that could produce any.
    pub(crate) warnings: Warnings,
    pub(crate) transaction: Transaction,
    /// ROW_COUNT().
    pub(crate) row_count: i64,
    /// What the present statement has given to LAST_INSERT_ID(n).
    pub(crate) given_insert_id: Option<u64>,
    /// FOUND_ROWS().
    pub(crate) found_rows: u64,
    /// The values of `@name`.
    pub(crate) user_variables: UserVariables,
    /// What the client has sent beside the present statement.
    pub(crate) query_attributes: Vec<(String, Value)>,
    /// See [`Session::set_parameter_warnings`].
    pub(crate) parameter_warnings: Vec<String>,
}

impl Session {
    /// `user` and `host` are those of the authenticated account; `id` is the connection id.
    pub fn new(instance: Arc<Instance>, id: u64, user: &str, host: &str) -> Session {
        let mut variables = SessionVariables::new(&instance.globals);
        variables.pseudo_thread_id = id;
        let counters = instance.status.register();
        let writing = instance.read_lock.register();
        let mut engine = Box::new(Database::session(&instance.database));
        engine.set_isolation(variables.common.isolation);
        engine.set_lock_wait(Duration::from_secs(variables.common.row_lock_wait_seconds));
        engine.set_first_committer_wins(variables.common.first_committer_wins);
        let interrupt = Arc::new(Interrupt::of(engine.interrupter()));
        interrupt.note_characteristics(variables.common.isolation, variables.common.tx_read_only);
        let client = Client {
            id,
            user: user.to_string(),
            host: host.to_string(),
            account: format!("{user}@{host}"),
            counts_found_rows: false,
            multi_statements: false,
            encryption: None,
            compression: None,
            is_audited: false,
            released: false,
        };
        let memory = Arc::new(Account::new(instance.memory.clone()));
        memory.set_max(variables.common.memory.session_bytes);
        Session {
            memory,
            values: RefCell::default(),
            user_locks: RefCell::default(),
            access: Access::everything(user, host),
            bounds: None,
            trail: None,
            instance,
            client,
            state: SessionState::default(),
            variables,
            cache: Some(Box::default()),
            targets: target::Targets::default(),
            prepared: PreparedStatements::default(),
            bulk: None,
            tracker: Tracker::default(),
            engine: Some(engine),
            locked: Locked::default(),
            writing,
            interrupt,
            is_timed: false,
            counters,
            before: figures::Counted::default(),
        }
    }

    /// Gives the session the rights of the account that its client has logged in to, and the account's
    /// default role and limits. If the password has expired, the session can do nothing but change it.
    pub fn log_in(&mut self, account: &accounts::Account, hourly: &Arc<Hourly>, password_expired: bool) {
        let Some((book, version)) = self.instance.accounts.book() else { return };
        let shown = Grantee::new(&self.client.user, &self.client.host);
        let role = Some(account.default_role.clone()).filter(|role| book.has_role(&account.name, role));
        self.access = Access::new(&account.name, shown, role, book, version);
        self.set_bounds(account, hourly, password_expired);
    }

    /// Goes by the newest book of accounts. For a session whose global rights cover everything, it does not
    /// matter which one that is.
    #[inline]
    pub(crate) fn take_up_accounts(&mut self) {
        if !self.access.is_global() && self.access.version() != self.instance.accounts.version() {
            self.take_up_newest_accounts();
        }
    }

    /// The same, whatever the session's rights are.
    #[cold]
    pub(crate) fn take_up_newest_accounts(&mut self) {
        if let Some((book, version)) = self.instance.accounts.book() {
            self.access.take_up(book, version);
        }
    }

    /// The connection id.
    pub fn id(&self) -> u64 {
        self.client.id
    }

    /// The default database. The `Arc` stays the same until another database is chosen.
    pub fn database(&self) -> Option<&Arc<str>> {
        self.state.database.as_ref()
    }

    /// The flag that KILL raises.
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// Sets CLIENT_FOUND_ROWS, a flag of the client: then the affected rows of UPDATE are those that matched.
    pub fn set_counts_found_rows(&mut self, on: bool) {
        self.client.counts_found_rows = on;
    }

    /// Notes how the connection is encrypted, for SHOW STATUS.
    pub fn set_encryption(&mut self, version: &'static str, cipher: &'static str) {
        self.client.encryption = Some((version, cipher));
    }

    /// Sets the named values that come with the next statement, for MYSQL_QUERY_ATTRIBUTE_STRING().
    pub fn set_query_attributes(&mut self, attributes: Vec<(String, Value)>) {
        self.state.query_attributes = attributes;
    }

    /// What is wrong with the parameters of the next statement: texts of its first warnings, all of number
    /// 1292.
    pub fn set_parameter_warnings(&mut self, texts: Vec<String>) {
        self.state.parameter_warnings = texts;
    }

    /// Notes how the protocol is compressed, for SHOW STATUS.
    pub fn set_compression(&mut self, compression: Compression) {
        self.client.compression = Some(compression);
    }

    /// Applies what the client said in the handshake: the number of its collation, and whether it is
    /// interactive (then its `wait_timeout` is `interactive_timeout`). An unknown collation leaves the
    /// default.
    pub fn set_handshake(&mut self, collation_id: u16, interactive: bool) {
        if let Some(collation) = crate::names::charsets::collation_by_id(collation_id) {
            // Both names come from the same row of the table, so this cannot fail.
            let _ = self.variables.set_names(Some(collation.charset), Some(collation.name));
        }
        if interactive
            && let (Some(wait), Some(interactive)) =
                (crate::variables::find("wait_timeout"), crate::variables::find("interactive_timeout"))
        {
            let seconds = self.variables.values().get(interactive).clone();
            self.variables.store(wait, seconds);
        }
    }

    /// How the session's statements are read.
    #[inline]
    pub fn lexical(&self) -> LexicalMode {
        self.variables.common.lexical
    }

    /// The global and session variables as this session sees them.
    pub fn variables(&self) -> &SessionVariables {
        &self.variables
    }

    /// COM_INIT_DB. As in MariaDB, it is counted like the statement USE, even if it fails.
    ///
    /// # Errors
    /// As [`Session::use_database`].
    pub fn change_database(&mut self, name: &str) -> Result<(), SqlError> {
        self.counters.add(Counter::Questions, 1);
        self.counters.add(Counter::ComChangeDb, 1);
        self.check_password()?;
        self.use_database(name)
    }

    /// Makes this the default database without counting a statement. The handshake uses it.
    ///
    /// # Errors
    /// 1044 if the session may do nothing there, 1049 if there is no such database.
    pub fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        let computed = names::virtual_database(name);
        let name = if computed == Some(names::INFORMATION_SCHEMA) {
            names::INFORMATION_SCHEMA
        } else if !self.access.sees_database(name) {
            return Err(self.access.database_denied(name));
        } else if let Some(name) = computed {
            name
        } else if self.instance.database_exists(name) {
            name
        } else {
            return Err(SqlError::unknown_database(name));
        };
        self.state.database = Some(Arc::from(name));
        self.note_schema();
        Ok(())
    }

    pub fn set_multi_statements(&mut self, on: bool) {
        self.client.multi_statements = on;
    }

    /// Adds the time that the thread spent on the last command, by phase, to the session's counters, if
    /// `query_phases` is on.
    #[inline]
    pub fn settle_phases(&self) {
        if phases::is_on() {
            phases::settle(&self.counters);
        }
    }

    /// The session's state as system variables show it.
    pub(crate) fn live(&self) -> Live {
        Live {
            warning_count: self.state.warnings.count(),
            error_count: self.state.warnings.error_count(),
            in_transaction: self.state.transaction.open,
        }
    }

    /// The number of parameters of a prepared statement.
    ///
    /// # Errors
    /// 1243.
    pub fn params(&self, id: u32) -> Result<u16, SqlError> {
        match self.prepared.by_id.get(&id) {
            Some(Some(statement)) => Ok(statement.params),
            _ => Err(SqlError::unknown_statement(id, "mysqld_stmt_execute")),
        }
    }

    pub fn close_statement(&mut self, id: u32) {
        self.counters.add(Counter::ComStmtClose, 1);
        self.forget_prepared(id);
    }

    /// Keeps a prepared statement and returns its id.
    ///
    /// # Errors
    /// 1290 and 1041 if the session has no memory for it.
    pub(crate) fn keep_prepared(&mut self, statement: PreparedText) -> Result<u32, SqlError> {
        let prepared = &mut self.prepared;
        let bytes = prepared.bytes + statement.bytes();
        prepared.charge.follow(bytes, &self.memory)?;
        prepared.bytes = bytes;
        prepared.last_id = prepared.last_id.wrapping_add(1);
        prepared.by_id.insert(prepared.last_id, Some(Box::new(statement)));
        self.counters.set_prepared(prepared.by_id.len());
        Ok(prepared.last_id)
    }

    pub(crate) fn forget_prepared(&mut self, id: u32) {
        if let Some(Some(statement)) = self.prepared.by_id.remove(&id) {
            self.prepared.bytes = self.prepared.bytes.saturating_sub(statement.bytes());
            // Fewer bytes than before are never refused.
            let _ = self.prepared.charge.follow(self.prepared.bytes, &self.memory);
        }
        self.counters.set_prepared(self.prepared.by_id.len());
    }

    /// COM_RESET_CONNECTION: resets everything but the account.
    pub fn reset(&mut self) {
        self.give_up();
        let database = self.state.database.take();
        self.state = SessionState { database, ..SessionState::default() };
        self.variables = SessionVariables::new(&self.instance.globals);
        self.variables.pseudo_thread_id = self.client.id;
        self.set_tracks_changes(self.tracker.is_on);
        let last_id = self.prepared.last_id;
        self.prepared = PreparedStatements { last_id, ..PreparedStatements::default() };
        self.counters.set_prepared(0);
        self.after_set();
    }

    /// True after COMMIT RELEASE or ROLLBACK RELEASE: the connection is to be closed.
    pub fn is_released(&self) -> bool {
        self.client.released
    }

    /// The number of plans that the session keeps.
    pub fn cached_plans(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.plans.len())
    }

    /// # Errors
    /// 1227 without SUPER.
    pub fn check_super(&self) -> Result<(), SqlError> {
        self.access.check_any_global(accounts::Rights::SUPER)
    }

    /// The status flags of OK packets: whether a transaction is open, whether it is read-only, whether
    /// autocommit is on, and whether backslashes in texts escape nothing.
    pub fn status_flags(&self) -> u16 {
        const SERVER_STATUS_IN_TRANS: u16 = 1;
        const SERVER_STATUS_AUTOCOMMIT: u16 = 2;
        const SERVER_STATUS_NO_BACKSLASH_ESCAPES: u16 = 512;
        const SERVER_STATUS_IN_TRANS_READONLY: u16 = 1 << 13;
        let transaction = &self.state.transaction;
        let flag = |on: bool, bit: u16| if on { bit } else { 0 };
        flag(self.variables.common.autocommit, SERVER_STATUS_AUTOCOMMIT)
            | flag(transaction.open, SERVER_STATUS_IN_TRANS)
            | flag(transaction.open && transaction.read_only, SERVER_STATUS_IN_TRANS_READONLY)
            | flag(!self.variables.common.lexical.escapes(), SERVER_STATUS_NO_BACKSLASH_ESCAPES)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.give_up();
        self.instance.read_lock.retire(&self.writing);
        self.instance.status.retire(&self.counters);
    }
}
