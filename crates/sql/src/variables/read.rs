//! `@@x` as a value of an expression.

use super::{Asked, Globals, Kind, Live, SessionVariables, Setting, Variable, find};
use crate::{ErrorKind, SqlError};
use types::Value;

impl SessionVariables {
    /// The value of `@@name` and `@@global.name`.
    ///
    /// # Errors
    /// 1193 for an unknown name, 1238 for a scope that the variable does not have.
    pub fn value(&self, globals: &Globals, asked: Asked, name: &str, live: Live) -> Result<Value, SqlError> {
        let variable = find(name).ok_or_else(|| unknown(name))?;
        Ok(to_value(variable, &self.read(globals, asked, variable, name, live)?))
    }
}

/// 1193.
pub(crate) fn unknown(name: &str) -> SqlError {
    SqlError::new(ErrorKind::UnknownSystemVariable, format!("Unknown system variable '{name}'"))
}

/// A setting in the form in which SELECT returns it: switches as 0 and 1, choices and sets by name.
pub(super) fn to_value(variable: Variable, setting: &Setting) -> Value {
    match setting {
        Setting::Unsigned(value) => Value::UInt(*value),
        Setting::Signed(value) => Value::Int(*value),
        Setting::Double(value) => Value::Double(*value),
        Setting::Boolean(on) => Value::Int(i64::from(*on)),
        Setting::Null => Value::Null,
        // A log file or a text without a value is empty.
        Setting::Text(text) if text.is_empty() && is_null_when_empty(variable) => Value::Null,
        other => Value::text(other.text(variable.definition())),
    }
}

fn is_null_when_empty(variable: Variable) -> bool {
    let definition = variable.definition();
    matches!(definition.kind, Kind::Text { .. })
        && matches!(
            definition.name,
            "default_tmp_storage_engine" | "enforce_storage_engine" | "init_file" | "secure_file_priv"
        )
}
