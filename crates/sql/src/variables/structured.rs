//! Variables of named key caches: `@@hot.key_buffer_size`.
//!
//! There is one key cache so far, called `default`. Every other name reads as a cache of size 0, as a cache that
//! was never made reads in MariaDB; making one is refused.

use super::{Asked, Globals, Setting, Variable, find};
use crate::SqlError;

/// The key cache variable that `component` names; 1193 if there is no such variable, 1272 if it belongs to no cache.
pub fn component(component: &str) -> Result<Variable, SqlError> {
    let variable = find(component)
        .ok_or_else(|| SqlError::new(1193, b"HY000", format!("Unknown system variable '{component}'")))?;
    let name = variable.definition().name;
    if name == "key_buffer_size" || name.starts_with("key_cache_") {
        return Ok(variable);
    }
    Err(SqlError::new(
        1272,
        b"HY000",
        format!("Variable '{name}' is not a variable component (can't be used as XXXX.variable_name)"),
    ))
}

/// True for the default cache. Names are compared byte by byte.
pub fn is_default(cache: &str) -> bool {
    cache == "default"
}

/// Reads a component of a cache; `asked` may not be the session.
pub fn read(globals: &Globals, asked: Asked, cache: &str, variable: Variable) -> Result<Setting, SqlError> {
    let name = variable.definition().name;
    if asked == Asked::Session {
        return Err(SqlError::new(1238, b"HY000", format!("Variable '{name}' is a GLOBAL variable")));
    }
    Ok(if is_default(cache) { globals.get(variable) } else { Setting::Unsigned(0) })
}

/// Sets a component, already checked, of a cache that is not the default one.
pub fn apply(cache: &str, variable: Variable, setting: &Setting) -> Result<(), SqlError> {
    // Dropping a cache that does not exist is no error.
    if variable.definition().name == "key_buffer_size" && *setting == Setting::Unsigned(0) {
        return Ok(());
    }
    Err(SqlError::new(
        1235,
        b"42000",
        format!("This version of Latchwork doesn't yet support 'named key caches: {cache}'"),
    ))
}
