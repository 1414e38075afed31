//! What all sessions of a server share.

use crate::SqlError;
use crate::accounts::Accounts;
use crate::audit::AuditLog;
use crate::host::Host;
use crate::locks::{MetadataLocks, ReadLock, UserLocks};
use crate::memory::ServerMemory;
use crate::status::StatusRegistry;
use crate::variables::{Effects, EngineEffects, Globals, Values, Variable};
use base::sync::atomic::AtomicU64;
use engine::Database;
use std::sync::{Arc, OnceLock, Weak};

/// What all sessions of a server share: the database, the global variables, the statement cache,
/// the list of sessions, the status counters.
pub struct Instance {
    pub(crate) database: Arc<Database>,
    pub(crate) globals: Globals,
    pub(crate) accounts: Accounts,
    /// Which session uses which table.
    pub(crate) locks: MetadataLocks,
    pub(crate) read_lock: ReadLock,
    /// The names of GET_LOCK.
    pub(crate) user_locks: UserLocks,
    /// Which tables refer to which.
    pub(crate) relations: Arc<super::relations::Relations>,
    pub(crate) status: StatusRegistry,
    pub(crate) audit: Arc<AuditLog>,
    host: OnceLock<Weak<dyn Host>>,
    /// Plans that all sessions share.
    pub(crate) plans: crate::session::plans::SharedPlans,
    /// What the statements of all sessions hold in memory.
    pub(crate) memory: Arc<ServerMemory>,
    /// `max_statement_time`.
    pub(crate) timer: super::timer::StatementTimer,
    /// How many prepared statements all sessions have.
    pub(crate) prepared: Arc<AtomicU64>,
    /// Statements borrow it while they run.
    pub(crate) working_memory: base::CoreLocal<super::memory::WorkingMemory>,
}

impl Instance {
    pub fn new(database: Arc<Database>) -> Arc<Instance> {
        let globals = Globals::new();
        // Note the page size of new tables, which is that of the data directory.
        globals.describe_number("innodb_page_size", database.page_size() as u64);
        Instance::with_globals(database, globals)
    }

    /// An instance with variables that the command line has set.
    pub fn with_globals(database: Arc<Database>, globals: Globals) -> Arc<Instance> {
        let memory = Arc::<ServerMemory>::default();
        let values = globals.values();
        let audit = Arc::new(AuditLog::new(database.dir(), &values));
        let engine = EngineEffects::new(&database, memory.clone(), &values);
        globals.on_change(Box::new(AllEffects { engine, audit: audit.clone() }));
        Arc::new(Instance {
            database,
            globals,
            accounts: Accounts::default(),
            locks: MetadataLocks::default(),
            read_lock: ReadLock::default(),
            user_locks: UserLocks::default(),
            relations: Arc::default(),
            plans: crate::session::plans::SharedPlans::default(),
            memory,
            prepared: Arc::default(),
            timer: super::timer::StatementTimer::default(),
            working_memory: base::CoreLocal::new(),
            status: StatusRegistry::default(),
            audit,
            host: OnceLock::new(),
        })
    }

    /// The global variables.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The accounts, and what they may do.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The audit log, for the events that only the server sees.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Begins the audit log if `server_audit_logging` was set before the start.
    ///
    /// # Errors
    /// 1004 if its file cannot be opened.
    pub fn start_audit(&self) -> Result<(), SqlError> {
        self.audit.start(&self.globals.values())
    }

    /// Attaches the instance to its server. Only the first call has an effect.
    pub fn attach(&self, host: Weak<dyn Host>) {
        let _ = self.host.set(host);
    }

    /// The server around this instance. SHOW PROCESSLIST, KILL and SET PASSWORD need it. `None` in a program
    /// that embeds the engine.
    pub fn host(&self) -> Option<Arc<dyn Host>> {
        self.host.get()?.upgrade()
    }

    /// The status counters of all sessions together, by MySQL's names for them.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.status.named_sums()
    }

    /// The storage engine below this instance.
    pub fn engine(&self) -> &Arc<Database> {
        &self.database
    }

    /// How many tables are open: all that there are.
    pub fn open_tables(&self) -> u64 {
        let count = |name: &str| self.database.tables(name).map_or(0, |tables| tables.len());
        self.database.databases().iter().map(|(name, _)| count(name) as u64).sum()
    }

    pub(crate) fn database_exists(&self, name: &str) -> bool {
        self.database.databases().iter().any(|(database, _)| database == name)
    }
}

/// Passes changes of global variables on to all who go by them.
struct AllEffects {
    engine: EngineEffects,
    audit: Arc<AuditLog>,
}

impl Effects for AllEffects {
    fn apply(&self, changed: Variable, after: &mut Values) -> Result<(), SqlError> {
        self.engine.apply(changed, after)?;
        self.audit.apply(changed.definition().name, after)
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("database", &self.database).finish_non_exhaustive()
    }
}
