//! Checks the value in a SET statement and makes a setting of it, with MariaDB's limits, rounding and
//! messages.

use super::definition::{Definition, Kind};
use super::time_zones::Zone;
use super::{Setting, SqlMode};
use crate::names::charsets::{self, Charset};
use crate::warning::Warnings;
use crate::{ErrorKind, SqlError};
use std::path::Path;
use types::collation::CharacterMap;

/// The right-hand side of an assignment, after evaluation. A bare word such as `ON` is text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Assigned<'a> {
    Default,
    Null,
    Int(i64),
    UInt(u64),
    /// DECIMAL, FLOAT or DOUBLE.
    Real(f64),
    Text(&'a str),
}

impl Assigned<'_> {
    /// The value in the form in which messages quote it.
    fn quoted(&self) -> String {
        match self {
            Assigned::Default => "DEFAULT".to_owned(),
            Assigned::Null => "NULL".to_owned(),
            Assigned::Int(value) => value.to_string(),
            Assigned::UInt(value) => value.to_string(),
            Assigned::Real(value) => value.to_string(),
            Assigned::Text(text) => (*text).to_owned(),
        }
    }
}

pub(crate) fn wrong_value(name: &str, value: &str) -> SqlError {
    SqlError::new(
        ErrorKind::WrongValueForVariable,
        format!("Variable '{name}' can't be set to the value of '{value}'"),
    )
}

/// The error for a value that is well formed but not taken.
pub(super) fn refused_value(name: &str, value: Assigned<'_>) -> SqlError {
    wrong_value(name, &value.quoted())
}

fn wrong_type(name: &str) -> SqlError {
    SqlError::new(ErrorKind::WrongTypeForVariable, format!("Incorrect argument type to variable '{name}'"))
}

/// Checks a value other than DEFAULT against a variable. `name` is the name in the statement, which may be an
/// alias. `mode` is that of the session: under STRICT_ALL_TABLES a value out of range is refused, otherwise
/// it is limited.
///
/// # Errors
/// 1231 and 1232 for a value or type that the variable cannot have, 1292 for one out of range in strict mode,
/// and others that MariaDB has for the variable.
pub fn check(
    definition: &Definition,
    name: &str,
    value: Assigned<'_>,
    mode: SqlMode,
    warnings: &mut Warnings,
) -> Result<Setting, SqlError> {
    let adjusted = |warnings: &mut Warnings| {
        if mode.contains(SqlMode::STRICT_ALL_TABLES) {
            return Err(wrong_value(name, &value.quoted()));
        }
        warnings.warn(
            ErrorKind::TruncatedWrongValue,
            format!("Truncated incorrect {name} value: '{}'", value.quoted()),
        );
        Ok(())
    };
    match definition.kind {
        Kind::Unsigned { min, max, step, .. } => {
            let (wanted, mut changed) = match value {
                Assigned::Int(wanted) => (wanted.max(0) as u64, wanted < 0),
                Assigned::UInt(wanted) => (wanted, false),
                _ => return Err(wrong_type(name)),
            };
            let setting = limit_unsigned(definition.name, wanted, min, max, step);
            changed |= setting != wanted;
            if changed {
                adjusted(warnings)?;
            }
            Ok(Setting::Unsigned(setting))
        }
        Kind::Signed { min, max, .. } => {
            let wanted = match value {
                Assigned::Int(wanted) => wanted,
                Assigned::UInt(wanted) => i64::try_from(wanted).unwrap_or(i64::MAX),
                _ => return Err(wrong_type(name)),
            };
            let setting = wanted.clamp(min, max);
            if setting != wanted || matches!(value, Assigned::UInt(wide) if wide > i64::MAX as u64) {
                adjusted(warnings)?;
            }
            Ok(Setting::Signed(setting))
        }
        Kind::Double { min, max, .. } => {
            let wanted = match value {
                Assigned::Int(wanted) => wanted as f64,
                Assigned::UInt(wanted) => wanted as f64,
                Assigned::Real(wanted) => wanted,
                _ => return Err(wrong_type(name)),
            };
            let setting = wanted.clamp(min, max);
            if setting != wanted {
                adjusted(warnings)?;
            }
            Ok(Setting::Double(setting))
        }
        Kind::Boolean { .. } => match value {
            Assigned::Int(0) | Assigned::UInt(0) => Ok(Setting::Boolean(false)),
            Assigned::Int(1) | Assigned::UInt(1) => Ok(Setting::Boolean(true)),
            Assigned::Text(text) if text.eq_ignore_ascii_case("on") => Ok(Setting::Boolean(true)),
            Assigned::Text(text) if text.eq_ignore_ascii_case("off") => Ok(Setting::Boolean(false)),
            Assigned::Real(_) => Err(wrong_type(name)),
            _ => Err(wrong_value(name, &value.quoted())),
        },
        Kind::Choice { names, .. } => checked_choice(names, name, value),
        Kind::Set { names, .. } => {
            let bits = match value {
                Assigned::Text(text) => set_bits(names, text).map_err(|part| wrong_value(name, part))?,
                Assigned::Int(bits) if bits >= 0 && (bits as u64) >> names.len() == 0 => bits as u64,
                Assigned::UInt(bits) if bits >> names.len() == 0 => bits,
                Assigned::Real(_) => return Err(wrong_type(name)),
                _ => return Err(wrong_value(name, &value.quoted())),
            };
            if definition.name != "sql_mode" {
                return Ok(Setting::Set(bits));
            }
            if SqlMode(bits).is_foreign() {
                return Err(wrong_value(name, &value.quoted()));
            }
            Ok(Setting::Set(SqlMode(bits).expanded().0))
        }
        Kind::Charset { .. } => charset(definition, name, value),
        Kind::Collation { .. } => checked_collation(name, value),
        Kind::Text { .. } => match value {
            Assigned::Text(text) => checked_text(definition, text),
            Assigned::Null if is_nullable(definition.name) => Ok(Setting::Text("".into())),
            Assigned::Null => Err(wrong_value(name, "NULL")),
            _ => Err(wrong_type(name)),
        },
    }
}

/// What a variable's value has to be instead, if somebody would rely on this one for safety and the server
/// does not act on it.
pub(super) fn unkept_promise(definition: &Definition, setting: &Setting) -> Option<&'static str> {
    match (definition.name, setting) {
        ("general_log", Setting::Boolean(true)) => Some("OFF, since there is no general log"),
        _ => None,
    }
}

/// True if the server may write a log of this name: a name in the data folder, or a path of a file in the
/// folder of `secure_file_priv`. It ends in `.log`, so that no file of the data folder is appended to.
pub(super) fn is_place_for_a_log(name: &str, secure_file_priv: &str) -> bool {
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "log") || name.contains(char::is_control) {
        return false;
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => return true,
    };
    // Links are followed, so that neither they nor `..` lead out.
    match (folder.canonicalize(), Path::new(secure_file_priv).canonicalize()) {
        (Ok(folder), Ok(allowed)) => folder.starts_with(allowed) && !path.is_symlink(),
        _ => false,
    }
}

/// A number, limited to the range of variable `name` and then rounded down to the step, but not below the
/// minimum. No cache is larger than the machine's memory.
pub(super) fn limit_unsigned(name: &str, wanted: u64, min: u64, max: u64, step: u64) -> u64 {
    let max = if name == "key_buffer_size" { max.min(engine::cache_bytes_max() as u64) } else { max };
    let limited = wanted.min(max);
    (limited - limited % step.max(1)).max(min)
}

pub(super) fn choice(names: &[&str], text: &str) -> Option<usize> {
    names.iter().position(|name| name.eq_ignore_ascii_case(text))
}

/// The bits of a comma-separated list. `Err` is an element that is not in `names`.
pub(super) fn set_bits<'t>(names: &[&str], text: &'t str) -> Result<u64, &'t str> {
    let mut bits = 0;
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        bits |= 1 << choice(names, part).ok_or(part)?;
    }
    Ok(bits)
}

fn is_nullable(name: &str) -> bool {
    matches!(name, "init_connect" | "init_file" | "default_tmp_storage_engine" | "enforce_storage_engine")
}

pub(crate) fn unknown_charset(name: &str) -> SqlError {
    SqlError::new(ErrorKind::UnknownCharacterSet, format!("Unknown character set: '{name}'"))
}

pub(crate) fn unknown_collation(name: &str) -> SqlError {
    SqlError::new(ErrorKind::UnknownCollation, format!("Unknown collation: '{name}'"))
}

fn charset(definition: &Definition, name: &str, value: Assigned<'_>) -> Result<Setting, SqlError> {
    let found = match value {
        Assigned::Text(text) => charsets::charset(text).ok_or_else(|| unknown_charset(text))?,
        Assigned::Int(id) => u16::try_from(id)
            .ok()
            .and_then(charsets::collation_by_id)
            .and_then(|collation| charsets::charset(collation.charset))
            .ok_or_else(|| unknown_charset(&id.to_string()))?,
        Assigned::Null if definition.name == "character_set_results" => return Ok(Setting::Null),
        Assigned::Null => return Err(wrong_value(name, "NULL")),
        _ => return Err(wrong_type(name)),
    };
    usable(found, definition.name)?;
    Ok(Setting::Text(found.name.into()))
}

/// # Errors
/// 1231 for a character set in which no client can speak, 1235 for one that texts are not converted to here.
pub(crate) fn usable(charset: &Charset, variable: &str) -> Result<(), SqlError> {
    match charset.name {
        "utf8mb4" | "utf8mb3" | "latin1" | "ascii" | "binary" => Ok(()),
        name @ ("ucs2" | "utf16" | "utf16le" | "utf32") if variable == "character_set_client" => {
            Err(wrong_value(variable, name))
        }
        name if CharacterMap::named(name).is_some() => Ok(()),
        name => Err(SqlError::not_supported(&format!("the character set {name} of clients"))),
    }
}

/// The engines that ENGINE= and `default_storage_engine` name, in their own spelling.
pub(crate) const ENGINES: &[&str] = &["Latchwork", "MyISAM", "Aria", "InnoDB", "MEMORY"];

/// The spelling of an engine's name. 1286 if there is no such engine.
pub(crate) fn engine_named(name: &str) -> Result<&'static str, SqlError> {
    let name = if name.eq_ignore_ascii_case("heap") { "MEMORY" } else { name };
    ENGINES.iter().find(|engine| engine.eq_ignore_ascii_case(name)).copied().ok_or_else(|| {
        SqlError::new(ErrorKind::UnknownStorageEngine, format!("Unknown storage engine '{name}'"))
    })
}

fn checked_choice(names: &[&str], name: &str, value: Assigned<'_>) -> Result<Setting, SqlError> {
    let position = match value {
        Assigned::Int(position) => usize::try_from(position).ok().filter(|at| *at < names.len()),
        Assigned::UInt(position) => usize::try_from(position).ok().filter(|at| *at < names.len()),
        Assigned::Text(text) => choice(names, text),
        Assigned::Real(_) => return Err(wrong_type(name)),
        Assigned::Null | Assigned::Default => None,
    };
    let position = position.ok_or_else(|| match name {
        "lc_time_names" => {
            SqlError::new(ErrorKind::UnknownLocale, format!("Unknown locale: '{}'", value.quoted()))
        }
        _ => wrong_value(name, &value.quoted()),
    })?;
    Ok(Setting::Choice(position as u8))
}

fn checked_collation(name: &str, value: Assigned<'_>) -> Result<Setting, SqlError> {
    let found = match value {
        Assigned::Text(text) => charsets::collation_named(text).ok_or_else(|| unknown_collation(text))?,
        Assigned::Int(id) => u16::try_from(id)
            .ok()
            .and_then(charsets::collation_by_id)
            .ok_or_else(|| unknown_collation(&id.to_string()))?,
        Assigned::Null => return Err(wrong_value(name, "NULL")),
        _ => return Err(wrong_type(name)),
    };
    if let Some(charset) = charsets::charset(found.charset) {
        usable(charset, name)?;
    }
    Ok(Setting::Text(found.name.into()))
}

fn checked_text(definition: &Definition, text: &str) -> Result<Setting, SqlError> {
    match definition.name {
        "default_storage_engine" => Ok(Setting::Text(engine_named(text)?.into())),
        "default_tmp_storage_engine" | "enforce_storage_engine" if !text.is_empty() => {
            Ok(Setting::Text(engine_named(text)?.into()))
        }
        "time_zone" => match time_zone(text) {
            Some(zone) => Ok(Setting::Text(zone.into())),
            None => Err(SqlError::new(
                ErrorKind::UnknownTimeZone,
                format!("Unknown or incorrect time zone: '{text}'"),
            )),
        },
        "session_track_system_variables" => Ok(Setting::Text(tracked_list(text)?.into())),
        "proxy_protocol_networks" => match super::Networks::parse(text) {
            Ok(_) => Ok(Setting::Text(text.into())),
            Err(near) => Err(SqlError::new(
                ErrorKind::Syntax,
                format!("Error parsing proxy_protocol_networks parameter, near '{near}'"),
            )),
        },
        "lc_messages" | "lc_time_names" => {
            if text.eq_ignore_ascii_case("en_US") {
                Ok(Setting::Text("en_US".into()))
            } else {
                Err(SqlError::new(ErrorKind::UnknownLocale, format!("Unknown locale: '{text}'")))
            }
        }
        _ => Ok(Setting::Text(text.into())),
    }
}

/// The canonical form of a list of variables: `*`, or each name once, in their order.
fn tracked_list(text: &str) -> Result<String, SqlError> {
    if text.trim().is_empty() || text.trim() == "*" {
        return Ok(text.trim().to_owned());
    }
    let mut names = Vec::new();
    for name in text.split(',').map(str::trim) {
        let variable = super::find(name).ok_or_else(|| {
            SqlError::new(ErrorKind::UnknownSystemVariable, format!("Unknown system variable '{name}'"))
        })?;
        names.push(variable.definition().name);
    }
    names.sort_unstable();
    names.dedup();
    Ok(names.join(","))
}

/// The canonical form of a time zone: SYSTEM, UTC, a name of the tz database, or `+hh:mm` from -12:59 to
/// +14:00.
fn time_zone(text: &str) -> Option<String> {
    for name in ["SYSTEM", "UTC"] {
        if text.eq_ignore_ascii_case(name) {
            return Some(name.to_owned());
        }
    }
    if let Some(name) = Zone::of(text).as_ref().and_then(Zone::name) {
        return Some(name.to_owned());
    }
    let seconds = zone_offset(text)?;
    let minutes = seconds.unsigned_abs() / 60;
    let sign = if text.starts_with('-') { '-' } else { '+' };
    Some(format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60))
}

/// Seconds east of UTC of a zone written `+hh:mm`.
pub(crate) fn zone_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let digits = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || minutes.len() != 2 || !digits(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let total = hours * 60 + minutes;
    let in_range = if sign > 0 { total <= 14 * 60 } else { total < 13 * 60 };
    (minutes < 60 && in_range).then_some(sign * total * 60)
}
