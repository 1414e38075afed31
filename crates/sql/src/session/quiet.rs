//! A session that is told nothing.

use crate::expr::{Environment, SqlMode, VariableScope};
use crate::variables::time_zones::Zone;
use crate::{ErrorKind, SqlError};
use types::Value;

/// Another environment, without its warnings.
pub(crate) struct Quiet<'e>(pub &'e dyn Environment);

impl Environment for Quiet<'_> {
    fn system_variable(
        &self,
        scope: VariableScope,
        cache: Option<&str>,
        name: &str,
    ) -> Result<Value, SqlError> {
        self.0.system_variable(scope, cache, name)
    }

    fn user_variable(&self, name: &str) -> Value {
        self.0.user_variable(name)
    }

    fn set_user_variable(&self, name: &str, value: Value) {
        self.0.set_user_variable(name, value);
    }

    fn database(&self) -> Option<&str> {
        self.0.database()
    }

    fn user(&self) -> &str {
        self.0.user()
    }

    fn current_user(&self) -> &str {
        self.0.current_user()
    }

    fn current_role(&self) -> Option<&str> {
        self.0.current_role()
    }

    fn connection_id(&self) -> u64 {
        self.0.connection_id()
    }

    fn last_insert_id(&self) -> u64 {
        self.0.last_insert_id()
    }

    fn found_rows(&self) -> u64 {
        self.0.found_rows()
    }

    fn row_count(&self) -> i64 {
        self.0.row_count()
    }

    fn now_micros(&self) -> i64 {
        self.0.now_micros()
    }

    fn time_zone(&self) -> &Zone {
        self.0.time_zone()
    }

    fn warn(&self, _: ErrorKind, _: String) {}

    fn sql_mode(&self) -> SqlMode {
        self.0.sql_mode()
    }

    fn cover(&self, bytes: usize) -> Result<(), SqlError> {
        self.0.cover(bytes)
    }

    fn packet_bytes_max(&self) -> usize {
        self.0.packet_bytes_max()
    }

    fn check_interrupt(&self) -> Result<(), SqlError> {
        self.0.check_interrupt()
    }
}
