//! The door of the SQL layer.

use crate::{ColumnMeta, ResultSink, SqlError};
use engine::Database;
use std::sync::Arc;
use types::ValueRef;

/// What all sessions of a server share: the database, the global variables, the statement cache,
/// the list of sessions, the status counters.
#[derive(Debug)]
pub struct Instance {}

impl Instance {
    pub fn new(_database: Arc<Database>) -> Arc<Instance> {
        todo!()
    }
}

/// A prepared statement, as COM_STMT_PREPARE answers it.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: u32,
    pub params: u16,
    /// Empty if the statement gives no result set.
    pub columns: Arc<[ColumnMeta]>,
}

/// One client's session.
#[derive(Debug)]
pub struct Session {}

impl Session {
    /// `user` and `host` as the authenticated account has them; `id` is the connection id.
    pub fn new(_instance: Arc<Instance>, _id: u64, _user: &str, _host: &str) -> Session {
        todo!()
    }
    /// COM_INIT_DB, and the database of the handshake.
    pub fn use_database(&mut self, _name: &str) -> Result<(), SqlError> {
        todo!()
    }
    /// Runs one text statement. Statements separated by `;` give 1064 unless `set_multi_statements(true)`.
    pub fn query(&mut self, _sql: &[u8], _sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        todo!()
    }
    pub fn set_multi_statements(&mut self, _on: bool) {
        todo!()
    }
    pub fn prepare(&mut self, _sql: &[u8]) -> Result<Prepared, SqlError> {
        todo!()
    }
    /// Runs a prepared statement; `params` are typed as the client sent them.
    pub fn execute(
        &mut self,
        _id: u32,
        _params: &[ValueRef<'_>],
        _sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        todo!()
    }
    /// How many parameters a prepared statement takes; 1243 if there is no such statement.
    pub fn params(&self, _id: u32) -> Result<u16, SqlError> {
        todo!()
    }
    pub fn close_statement(&mut self, _id: u32) {
        todo!()
    }
    /// COM_RESET_CONNECTION: back to a fresh session with the same account.
    pub fn reset(&mut self) {
        todo!()
    }
    /// True between BEGIN and COMMIT, and whether autocommit is on: the status flags of OK packets.
    pub fn status_flags(&self) -> u16 {
        todo!()
    }
}
