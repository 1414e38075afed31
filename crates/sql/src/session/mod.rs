//! What a session keeps, and what all sessions of a server share.
//!
//! How a session runs statements is in the layers above: [`crate::statements`] and [`crate::dispatch`].

pub(crate) mod environment;
mod figures;
mod instance;
pub(crate) mod locked;
mod lookup;
mod memory;
mod phases;
pub(crate) mod plans;
mod target;
pub(crate) mod transaction;

pub use figures::{StatementFigures, with_values};
pub use instance::Instance;
pub(crate) use memory::{StatementCache, WorkingMemory};
pub(crate) use target::Target;

use locked::Locked;

use crate::host::Interrupt;
use crate::locks::WritingFlag;
use crate::names;
use crate::session::plans::{KeyHash, Plan};
use crate::session::transaction::Transaction;
use crate::status::Counter;
use crate::text::Scan;
use crate::text::SlotKind;
use crate::variables::{Live, SessionVariables};
use crate::{ColumnMeta, SqlError, Warnings};
use engine::Database;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use types::Value;

/// How often a statement is tried again that met ALTER TABLE between its planning and its first change.
pub(crate) const DEFINITION_RETRIES: usize = 10;

/// A prepared statement, as COM_STMT_PREPARE answers it.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: u32,
    pub params: u16,
    /// Empty if the statement gives no result set.
    pub columns: Arc<[ColumnMeta]>,
}

/// What a session keeps of a prepared statement.
#[derive(Debug)]
pub(crate) struct PreparedText {
    pub(crate) text: Vec<u8>,
    pub(crate) params: u16,
    /// The default database when it was prepared, in which it runs.
    pub(crate) database: Option<Arc<str>>,
    pub(crate) scan: Scan,
    /// False for statements that have no plan.
    pub(crate) is_scanned: bool,
    /// The kinds of the slots that `plan` was made for.
    pub(crate) kinds: Vec<SlotKind>,
    pub(crate) plan: Option<Arc<Plan>>,
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

    // Every statement reads these, and SET and many others change them.
    pub(crate) state: SessionState,
    pub(crate) variables: SessionVariables,

    // `dispatch` and INSERT: what saves planning a statement again.
    /// `None` while a planned statement runs.
    pub(crate) cache: Option<Box<StatementCache>>,
    /// Tables that INSERT and its like used last.
    pub(crate) targets: target::Targets,
    pub(crate) prepared: PreparedStatements,

    // `transaction` and `locked`: what the session holds of tables and rows, and what others see of that.
    /// The session's half in the engine. A statement takes it out while it reads or changes tables.
    pub(crate) engine: Option<Box<engine::Session>>,
    /// What LOCK TABLES and FLUSH TABLES WITH READ LOCK have locked.
    pub(crate) locked: Locked,
    /// Up while a statement or a commit changes something.
    pub(crate) writing: WritingFlag,
    /// Raised by KILL; executors call [`Interrupt::check`] every few rows.
    pub(crate) interrupt: Arc<Interrupt>,

    // Counting: statements write it, SHOW STATUS and the slow log read it.
    /// What this session did.
    pub(crate) counters: Arc<crate::status::SessionCounters>,
    /// What had been counted when the statement began.
    pub(crate) before: figures::Counted,
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
    /// COMMIT RELEASE: the client is sent away. The only field that a statement changes.
    pub(crate) released: bool,
}

/// A session's prepared statements, those of the protocol and those of PREPARE.
#[derive(Debug, Default)]
pub(crate) struct PreparedStatements {
    /// A statement is taken out while it runs.
    pub(crate) by_id: HashMap<u32, Option<Box<PreparedText>>, KeyHash>,
    pub(crate) last_id: u32,
    /// Those that have a name, by it in small letters.
    pub(crate) by_name: HashMap<String, u32>,
}

/// What COM_RESET_CONNECTION sets back.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// The default database.
    pub(crate) database: Option<Arc<str>>,
    /// Of the last statement that could warn.
    pub(crate) warnings: Warnings,
    pub(crate) transaction: Transaction,
    /// ROW_COUNT().
    pub(crate) row_count: i64,
    /// FOUND_ROWS().
    pub(crate) found_rows: u64,
    /// `@name`, by name in small letters.
    pub(crate) user_variables: HashMap<String, Value>,
}

impl Session {
    /// `user` and `host` as the authenticated account has them; `id` is the connection id.
    pub fn new(instance: Arc<Instance>, id: u64, user: &str, host: &str) -> Session {
        let mut variables = SessionVariables::new(&instance.globals);
        variables.pseudo_thread_id = id;
        let counters = instance.status.register();
        let writing = instance.read_lock.register();
        let mut engine = Box::new(Database::session(&instance.database));
        engine.set_isolation(variables.common.isolation);
        engine.set_lock_wait(Duration::from_secs(variables.common.row_lock_wait_seconds));
        let interrupt = Arc::new(Interrupt::of(engine.interrupter()));
        interrupt.note_characteristics(variables.common.isolation, variables.common.tx_read_only);
        let client = Client {
            id,
            user: user.to_string(),
            host: host.to_string(),
            account: format!("{user}@{host}"),
            counts_found_rows: false,
            multi_statements: false,
            released: false,
        };
        Session {
            instance,
            client,
            state: SessionState::default(),
            variables,
            cache: Some(Box::default()),
            targets: target::Targets::default(),
            prepared: PreparedStatements::default(),
            engine: Some(engine),
            locked: Locked::default(),
            writing,
            interrupt,
            counters,
            before: figures::Counted::default(),
        }
    }

    /// The connection id.
    pub fn id(&self) -> u64 {
        self.client.id
    }

    /// The default database. The `Arc` is the same as long as the database is.
    pub fn database(&self) -> Option<&Arc<str>> {
        self.state.database.as_ref()
    }

    /// What KILL raises.
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// The client's flag CLIENT_FOUND_ROWS: affected rows of UPDATE are those that matched.
    pub fn set_counts_found_rows(&mut self, on: bool) {
        self.client.counts_found_rows = on;
    }

    /// What the client said in the handshake: its collation's number, and whether a person sits there (then
    /// `interactive_timeout` is its `wait_timeout`). A collation that is not known leaves the default.
    pub fn set_handshake(&mut self, collation_id: u16, interactive: bool) {
        if let Some(collation) = crate::names::charsets::collation_by_id(collation_id) {
            // Both names are from one row of the table.
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

    /// The global and session variables, by the session's eyes.
    pub fn variables(&self) -> &SessionVariables {
        &self.variables
    }

    /// COM_INIT_DB. It is counted like the statement USE, also if it fails, as in MariaDB.
    ///
    /// # Errors
    /// As [`Session::use_database`].
    pub fn change_database(&mut self, name: &str) -> Result<(), SqlError> {
        self.counters.add(Counter::Questions, 1);
        self.counters.add(Counter::ComChangeDb, 1);
        self.use_database(name)
    }

    /// Makes this the default database, without counting that: the database of the handshake.
    ///
    /// # Errors
    /// 1049 if there is no such database.
    pub fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        let name = if name.eq_ignore_ascii_case(names::INFORMATION_SCHEMA) {
            names::INFORMATION_SCHEMA
        } else if self.instance.database_exists(name) {
            name
        } else {
            return Err(SqlError::unknown_database(name));
        };
        self.state.database = Some(Arc::from(name));
        Ok(())
    }

    pub fn set_multi_statements(&mut self, on: bool) {
        self.client.multi_statements = on;
    }

    /// Adds what the thread has spent on the last command, by phase, to the session's counters, while
    /// `query_phases` is on.
    #[inline]
    pub fn settle_phases(&self) {
        if phases::is_on() {
            phases::settle(&self.counters);
        }
    }

    /// What system variables say of the session's state.
    pub(crate) fn live(&self) -> Live {
        Live {
            warning_count: self.state.warnings.count(),
            error_count: self.state.warnings.error_count(),
            in_transaction: self.state.transaction.open,
        }
    }

    /// How many parameters a prepared statement takes; 1243 if there is no such statement.
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

    pub(crate) fn forget_prepared(&mut self, id: u32) {
        self.prepared.by_id.remove(&id);
        self.counters.set_prepared(self.prepared.by_id.len());
    }

    /// COM_RESET_CONNECTION: back to a fresh session with the same account.
    pub fn reset(&mut self) {
        self.give_up();
        let database = self.state.database.take();
        self.state = SessionState { database, ..SessionState::default() };
        self.variables = SessionVariables::new(&self.instance.globals);
        self.variables.pseudo_thread_id = self.client.id;
        self.prepared.by_id.clear();
        self.counters.set_prepared(0);
        self.prepared.by_name.clear();
        self.after_set();
    }

    /// True once COMMIT RELEASE or ROLLBACK RELEASE has sent the client away.
    pub fn is_released(&self) -> bool {
        self.client.released
    }

    /// How many plans the session keeps, by the shapes of their statements.
    pub fn cached_plans(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.plans.len())
    }

    /// Whether a transaction is open, whether it may only read, and whether autocommit is on: the status
    /// flags of OK packets.
    pub fn status_flags(&self) -> u16 {
        const SERVER_STATUS_IN_TRANS: u16 = 1;
        const SERVER_STATUS_AUTOCOMMIT: u16 = 2;
        const SERVER_STATUS_IN_TRANS_READONLY: u16 = 1 << 13;
        let transaction = &self.state.transaction;
        let flag = |on: bool, bit: u16| if on { bit } else { 0 };
        flag(self.variables.common.autocommit, SERVER_STATUS_AUTOCOMMIT)
            | flag(transaction.open, SERVER_STATUS_IN_TRANS)
            | flag(transaction.open && transaction.read_only, SERVER_STATUS_IN_TRANS_READONLY)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.give_up();
        self.instance.read_lock.retire(&self.writing);
        self.instance.status.retire(&self.counters);
    }
}
