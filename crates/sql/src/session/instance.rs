//! What all sessions of a server share.

use engine::Database;
use std::sync::Arc;

/// What all sessions of a server share: the database, the global variables, the statement cache,
/// the list of sessions, the status counters.
#[derive(Debug)]
pub struct Instance {
    pub(crate) database: Arc<Database>,
}

impl Instance {
    pub fn new(database: Arc<Database>) -> Arc<Instance> {
        Arc::new(Instance { database })
    }

    /// The storage engine under this instance.
    pub fn engine(&self) -> &Arc<Database> {
        &self.database
    }

    pub(crate) fn database_exists(&self, name: &str) -> bool {
        self.database.databases().iter().any(|(database, _)| database == name)
    }
}
