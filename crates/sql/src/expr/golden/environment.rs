//! A session for tests.

use crate::expr::{Environment, VariableScope};
use crate::variables::time_zones::Zone;
use crate::{ErrorKind, SqlError};
use std::cell::RefCell;
use types::Value;

/// A session that stands still at one moment and notes the numbers of its warnings.
#[derive(Default)]
pub(crate) struct TestEnvironment {
    pub warnings: RefCell<Vec<u16>>,
}

/// 2023-11-14 22:13:20.123456 in UTC.
pub(super) const NOW_MICROS: i64 = 1_700_000_000_123_456;

impl Environment for TestEnvironment {
    fn system_variable(
        &self,
        _scope: VariableScope,
        _cache: Option<&str>,
        name: &str,
    ) -> Result<Value, SqlError> {
        Err(SqlError::new(ErrorKind::UnknownSystemVariable, format!("Unknown system variable '{name}'")))
    }
    fn user_variable(&self, _name: &str) -> Value {
        Value::Null
    }
    fn set_user_variable(&self, _name: &str, _value: Value) {}
    fn database(&self) -> Option<&str> {
        None
    }
    fn user(&self) -> &str {
        "root@localhost"
    }
    fn current_user(&self) -> &str {
        "root@localhost"
    }
    fn current_role(&self) -> Option<&str> {
        None
    }
    fn connection_id(&self) -> u64 {
        1
    }
    fn last_insert_id(&self) -> u64 {
        0
    }
    fn found_rows(&self) -> u64 {
        0
    }
    fn row_count(&self) -> i64 {
        -1
    }
    fn now_micros(&self) -> i64 {
        NOW_MICROS
    }
    fn time_zone(&self) -> &Zone {
        &Zone::UTC
    }
    fn warn(&self, kind: ErrorKind, _message: String) {
        self.warnings.borrow_mut().push(kind.code());
    }
}
