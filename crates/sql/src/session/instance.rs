//! What all sessions of a server share.

use crate::variables::Globals;
use engine::Database;
use std::sync::Arc;

/// What all sessions of a server share: the database, the global variables, the statement cache,
/// the list of sessions, the status counters.
#[derive(Debug)]
pub struct Instance {
    pub(crate) database: Arc<Database>,
    pub(crate) globals: Globals,
}

impl Instance {
    pub fn new(database: Arc<Database>) -> Arc<Instance> {
        Instance::with_globals(database, Globals::new())
    }

    /// With variables that the command line has set.
    pub fn with_globals(database: Arc<Database>, globals: Globals) -> Arc<Instance> {
        Arc::new(Instance { database, globals })
    }

    /// The global variables.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The storage engine under this instance.
    pub fn engine(&self) -> &Arc<Database> {
        &self.database
    }

    pub(crate) fn database_exists(&self, name: &str) -> bool {
        self.database.databases().iter().any(|(database, _)| database == name)
    }
}
