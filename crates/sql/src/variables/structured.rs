//! Variables of key caches with a name, such as `@@hot.key_buffer_size`.
//!
//! The variables of the default cache are the global variables without a prefix. For all other caches, the
//! engine's settings are the only record. A cache that does not exist reads as size 0, and giving it a size
//! creates it.

use super::read::to_value;
use super::{Asked, Globals, Setting, Variable, effects, find, unknown};
use crate::{ErrorKind, SqlError};
use engine::{CacheSettings, DEFAULT_CACHE, Database, HitPath};
use types::Value;

/// The variable with this name, which must belong to key caches.
///
/// # Errors
/// 1193 if there is no such variable, 1272 if it does not belong to key caches.
pub fn component(name: &str) -> Result<Variable, SqlError> {
    let variable = find(name).ok_or_else(|| unknown(name))?;
    if is_component(variable) {
        return Ok(variable);
    }
    let name = variable.definition().name;
    Err(SqlError::new(
        ErrorKind::NotAStructuredVariable,
        format!("Variable '{name}' is not a variable component (can't be used as XXXX.variable_name)"),
    ))
}

pub(crate) fn is_component(variable: Variable) -> bool {
    let name = variable.definition().name;
    name == "key_buffer_size" || name.starts_with("key_cache_")
}

/// As [`component`], for SET. An unknown name is taken for a field of a row called `cache` (4081).
pub(crate) fn component_to_set(cache: &str, name: &str) -> Result<Variable, SqlError> {
    match find(name) {
        Some(_) => component(name),
        None => Err(unknown_structure(cache)),
    }
}

pub(crate) fn unknown_structure(name: &str) -> SqlError {
    let text = format!("Unknown structured system variable or ROW routine variable '{name}'");
    SqlError::new(ErrorKind::VariableIgnored, text)
}

/// True for the default cache. Names are compared byte by byte.
pub(crate) fn is_default(cache: &str) -> bool {
    cache == DEFAULT_CACHE
}

/// The value of `@@cache.name` and `@@global.cache.name`.
///
/// # Errors
/// 1193, 1272, and 1238 if the session's value was asked for.
pub(crate) fn value(
    globals: &Globals,
    database: &Database,
    asked: Asked,
    cache: &str,
    name: &str,
) -> Result<Value, SqlError> {
    let variable = component(name)?;
    let name = variable.definition().name;
    if asked == Asked::Session {
        return Err(SqlError::new(
            ErrorKind::WrongScopeOfVariable,
            format!("Variable '{name}' is a GLOBAL variable"),
        ));
    }
    let setting = if is_default(cache) {
        globals.get(variable)
    } else {
        match database.caches().get(cache) {
            Some(cache) => setting_of(&cache.settings(), name),
            None if name == "key_cache_hit_path" => Setting::Null,
            None => Setting::Unsigned(0),
        }
    };
    Ok(to_value(variable, &setting))
}

fn setting_of(settings: &CacheSettings, name: &str) -> Setting {
    Setting::Unsigned(match name {
        "key_buffer_size" => settings.size_bytes as u64,
        "key_cache_segments" => settings.segments.into(),
        "key_cache_division_limit" => settings.limits.division_limit.into(),
        "key_cache_age_threshold" => settings.limits.age_threshold.into(),
        "key_cache_block_size" => settings.block_size.into(),
        "key_cache_file_hash_size" => settings.file_hash_size.into(),
        _ => return Setting::Choice(u8::from(settings.hit_path == HitPath::Optimistic)),
    })
}

/// Sets a checked component of a cache in the engine. Creates the cache if it does not exist.
pub(crate) fn apply(
    database: &Database,
    cache: &str,
    variable: Variable,
    setting: &Setting,
) -> Result<(), SqlError> {
    match effects::cache_change(variable.definition().name, setting) {
        Some(change) => effects::change_cache(database, cache, change),
        None => Ok(()),
    }
}
