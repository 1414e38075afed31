//! What every statement needs of its session: finding tables and databases by name, the clock, and ending a
//! statement that has no rows.

use super::Session;
use crate::accounts::Rights;
use crate::accounts::access::TableNeed;
use crate::definition::defaults::Clock;
use crate::definition::metadata::DatabaseMetadata;
use crate::{Completion, ErrorKind, ResultSink, SqlError};
use engine::{Error, Table};
use std::sync::Arc;
use types::Collation;

impl Session {
    /// A table whose rows are not used.
    ///
    /// # Errors
    /// 1049, 1146.
    pub(crate) fn table(&self, database: &str, name: &str) -> Result<Arc<Table>, SqlError> {
        self.instance.database.table(database, name).map_err(|error| match error {
            Error::NoSuchTable => SqlError::no_such_table(database, name),
            Error::NoSuchDatabase => SqlError::unknown_database(database),
            other => other.into(),
        })
    }

    /// # Errors
    /// 1142 unless the session has these rights on the whole table.
    pub(crate) fn check_rights(&self, rights: Rights, database: &str, table: &str) -> Result<(), SqlError> {
        if self.access.global.contains(rights) {
            return Ok(());
        }
        self.access.check_table(&TableNeed::whole(database, table, rights))
    }

    /// # Errors
    /// 1142, which names the statement, unless the session may do something with the table.
    pub(crate) fn check_seen(&self, statement: &str, database: &str, table: &str) -> Result<(), SqlError> {
        let grant = self.access.on_table(database, table);
        if grant.rights.intersects(Rights::OF_TABLES) || !grant.of_columns().is_empty() {
            return Ok(());
        }
        Err(self.access.command_denied(statement, database, table))
    }

    /// # Errors
    /// 1142 unless the session has these rights on the table, or on some of its columns.
    pub(crate) fn check_some(&self, rights: Rights, database: &str, table: &str) -> Result<(), SqlError> {
        if self.access.global.contains(rights) {
            return Ok(());
        }
        let need = TableNeed { any: rights, ..TableNeed::new(database, table) };
        self.access.check_table(&need)
    }

    /// # Errors
    /// 1142 unless the session may know the table's columns: it may read one, or has a grant on the table.
    pub(crate) fn check_columns_seen(&self, database: &str, table: &str) -> Result<(), SqlError> {
        match self.check_some(Rights::SELECT, database, table) {
            Err(_) if self.access.has_grant(database, table) => Ok(()),
            result => result,
        }
    }

    /// A table to be used. Under LOCK TABLES, a table that does not exist is reported as not locked.
    ///
    /// # Errors
    /// 1049, 1146, 1100.
    pub(crate) fn table_to_use(&self, database: &str, name: &str) -> Result<Arc<Table>, SqlError> {
        self.table(database, name).map_err(|error| match error.kind {
            ErrorKind::UnknownDatabase | ErrorKind::NoSuchTable if self.locked.has_tables() => {
                SqlError::not_locked(name)
            }
            _ => error,
        })
    }

    /// The default collation of a database.
    ///
    /// # Errors
    /// 1049.
    pub(crate) fn database_collation(&self, database: &str) -> Result<Collation, SqlError> {
        let databases = self.instance.database.databases();
        let found = databases.iter().find(|(name, _)| name == database);
        let (_, metadata) = found.ok_or_else(|| SqlError::unknown_database(database))?;
        Ok(DatabaseMetadata::decode(metadata).collation)
    }

    /// The database that is meant by a name written `database.name` or `name`.
    ///
    /// # Errors
    /// 1046.
    pub(crate) fn resolve_database(&self, written: Option<String>) -> Result<String, SqlError> {
        match written {
            Some(database) => Ok(database),
            None => self.state.database.as_deref().map(str::to_owned).ok_or_else(SqlError::no_database),
        }
    }

    /// Ends a statement without a result set.
    pub(crate) fn done(
        &self,
        affected_rows: u64,
        info: String,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let warnings = self.state.warnings.count_u16();
        sink.end(&Completion { affected_rows, last_insert_id: 0, warnings, info })
    }

    /// The clock of the current statement.
    pub(crate) fn clock(&self) -> Clock {
        let unix_micros = (self.variables.timestamp() * 1e6) as i64;
        Clock { unix_micros, zone_seconds: self.variables.zone().seconds_at(unix_micros) }
    }
}
