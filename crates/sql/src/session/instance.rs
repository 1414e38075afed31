//! What all sessions of a server share.

use crate::host::Host;
use crate::locks::{MetadataLocks, ReadLock};
use crate::status::StatusRegistry;
use crate::variables::{EngineEffects, Globals};
use engine::Database;
use std::sync::{Arc, OnceLock, Weak};

/// What all sessions of a server share: the database, the global variables, the statement cache,
/// the list of sessions, the status counters.
pub struct Instance {
    pub(crate) database: Arc<Database>,
    pub(crate) globals: Globals,
    /// Which session uses which table.
    pub(crate) locks: MetadataLocks,
    pub(crate) read_lock: ReadLock,
    pub(crate) status: StatusRegistry,
    host: OnceLock<Weak<dyn Host>>,
    /// Plans that all sessions share.
    pub(crate) plans: crate::session::plans::SharedPlans,
    /// Statements borrow it while they run.
    pub(crate) working_memory: base::CoreLocal<super::memory::WorkingMemory>,
}

impl Instance {
    pub fn new(database: Arc<Database>) -> Arc<Instance> {
        let globals = Globals::new();
        // That of a data directory is that of new tables.
        globals.describe_number("innodb_page_size", database.page_size() as u64);
        Instance::with_globals(database, globals)
    }

    /// With variables that the command line has set.
    pub fn with_globals(database: Arc<Database>, globals: Globals) -> Arc<Instance> {
        globals.on_change(Box::new(EngineEffects::new(&database)));
        Arc::new(Instance {
            database,
            globals,
            locks: MetadataLocks::default(),
            read_lock: ReadLock::default(),
            plans: crate::session::plans::SharedPlans::default(),
            working_memory: base::CoreLocal::new(),
            status: StatusRegistry::default(),
            host: OnceLock::new(),
        })
    }

    /// The global variables.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// Puts the instance into a server. Once; a second server is ignored.
    pub fn attach(&self, host: Weak<dyn Host>) {
        let _ = self.host.set(host);
    }

    /// The server around this instance, for SHOW PROCESSLIST, KILL and SET PASSWORD. `None` in an embedding
    /// program.
    pub fn host(&self) -> Option<Arc<dyn Host>> {
        self.host.get()?.upgrade()
    }

    /// What all sessions together have counted, by MySQL's names for it.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.status.named_sums()
    }

    /// The storage engine under this instance.
    pub fn engine(&self) -> &Arc<Database> {
        &self.database
    }

    pub(crate) fn database_exists(&self, name: &str) -> bool {
        self.database.databases().iter().any(|(database, _)| database == name)
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("database", &self.database).finish_non_exhaustive()
    }
}
