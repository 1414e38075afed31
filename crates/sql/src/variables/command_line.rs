//! Options of the command line: `--key_buffer_size=64M`, `--skip-networking`, `--loose-whatever=1`.

use super::assign::{self, choice, limit_unsigned, set_bits};
use super::definition::{Definition, Effect, Kind};
use super::table::{self, OptionName};
use super::{Setting, SqlMode, Variable, structured};
use crate::names::charsets;
use std::fmt;

/// An option that was understood.
#[derive(Debug)]
pub(crate) struct OptionSet {
    /// The key cache that the option belongs to. `None` for the default cache and for all other variables.
    pub cache: Option<String>,
    pub variable: Variable,
    pub setting: Setting,
    /// Sentences for the log: about a shortened name, a value that was limited, a variable without effect.
    pub remarks: Vec<String>,
}

/// Why an option cannot be understood. The server then does not start.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionError {
    Unknown { name: String },
    Ambiguous { name: String, matches: Vec<&'static str> },
    NeedsValue { name: String },
    WrongValue { name: String, value: String, expected: String },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown { name } => write!(f, "unknown variable '{name}'"),
            OptionError::Ambiguous { name, matches } => {
                write!(f, "ambiguous option '--{name}' ({})", matches.join(", "))
            }
            OptionError::NeedsValue { name } => write!(f, "option '--{name}' requires an argument"),
            OptionError::WrongValue { name, value, expected } => {
                write!(f, "option '--{name}': wrong value '{value}': expected {expected}")
            }
        }
    }
}

impl std::error::Error for OptionError {}

/// Reads one option: `name` as written after the dashes, `value` as written after `=`. `Ok(None)` means an
/// unknown option marked `loose-`: it has no effect, and the caller makes a remark about it.
pub(super) fn parse(name: &str, value: Option<&str>) -> Result<Option<OptionSet>, OptionError> {
    let canonical = name.to_ascii_lowercase().replace('-', "_");
    let (loose, plain) = match canonical.strip_prefix("loose_") {
        Some(plain) => (true, plain),
        None => (false, canonical.as_str()),
    };
    if let Some((cache, component)) = plain.split_once('.') {
        // The name of a cache keeps its case.
        let cache = &name[name.len() - plain.len()..][..cache.len()];
        if cache.is_empty() || !table::find(component).is_some_and(structured::is_component) {
            return if loose { Ok(None) } else { Err(OptionError::Unknown { name: name.to_owned() }) };
        }
        let option = parse(component, value)?;
        let cache = (!structured::is_default(cache)).then(|| cache.to_owned());
        return Ok(option.map(|option| OptionSet { cache, ..option }));
    }
    let mut remarks = Vec::new();
    let (variable, value) = match resolve(plain, value, &mut remarks) {
        Ok(found) => found,
        Err(OptionError::Unknown { .. }) if loose => return Ok(None),
        Err(error) => return Err(error),
    };
    let definition = variable.definition();
    let setting = setting_of(definition, plain, value.as_deref(), &mut remarks)?;
    if let Some(expected) = assign::unkept_promise(definition, &setting) {
        return Err(OptionError::WrongValue {
            name: plain.to_owned(),
            value: value.unwrap_or_else(|| "ON".to_owned()),
            expected: expected.to_owned(),
        });
    }
    if let Effect::None(reason) = definition.effect {
        remarks.push(format!("option '--{}' is accepted but has no effect: {reason}", definition.name));
    }
    Ok(Some(OptionSet { cache: None, variable, setting, remarks }))
}

/// The variable with this name. A boolean's `skip_`, `disable_` or `enable_` becomes its value.
fn resolve(
    name: &str,
    value: Option<&str>,
    remarks: &mut Vec<String>,
) -> Result<(Variable, Option<String>), OptionError> {
    let value = value.map(str::to_owned);
    let unknown = || OptionError::Unknown { name: name.to_owned() };
    match table::find_option(name) {
        OptionName::Variable(variable) => Ok((variable, value)),
        OptionName::Shortened(variable) => {
            remarks.push(format!(
                "option '--{name}' is taken for '--{}'; please write the full name",
                variable.definition().name
            ));
            Ok((variable, value))
        }
        OptionName::Ambiguous(matches) => Err(OptionError::Ambiguous { name: name.to_owned(), matches }),
        OptionName::Unknown => {
            for (prefix, on) in [("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")] {
                let Some(rest) = name.strip_prefix(prefix) else { continue };
                let variable = table::find(rest).ok_or_else(unknown)?;
                if !matches!(variable.definition().kind, Kind::Boolean { .. }) || value.is_some() {
                    return Err(unknown());
                }
                return Ok((variable, Some(on.to_owned())));
            }
            Err(unknown())
        }
    }
}

fn setting_of(
    definition: &Definition,
    name: &str,
    value: Option<&str>,
    remarks: &mut Vec<String>,
) -> Result<Setting, OptionError> {
    let Some(value) = value else {
        return match definition.kind {
            Kind::Boolean { .. } => Ok(Setting::Boolean(definition.name != "log_bin")),
            // `--log-error` without a value means the default file.
            Kind::Text { .. } if definition.name == "log_error" => Ok(Setting::Text("".into())),
            _ => Err(OptionError::NeedsValue { name: name.to_owned() }),
        };
    };
    let wrong = |expected: &str| OptionError::WrongValue {
        name: name.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    };
    match definition.kind {
        Kind::Unsigned { min, max, step, .. } => {
            let (negative, wanted) = number(value).ok_or_else(|| {
                wrong("a whole number, perhaps with one of the suffixes K, M, G, T, P or E")
            })?;
            let setting = limit_unsigned(definition.name, if negative { 0 } else { wanted }, min, max, step);
            if negative && wanted != 0 || setting != wanted {
                remarks.push(format!("option '--{name}': value {value} adjusted to {setting}"));
            }
            Ok(Setting::Unsigned(setting))
        }
        Kind::Signed { min, max, .. } => {
            let (negative, wanted) = number(value).ok_or_else(|| wrong("a whole number"))?;
            let magnitude = i64::try_from(wanted).unwrap_or(i64::MAX);
            let wanted = if negative { -magnitude } else { magnitude };
            let setting = wanted.clamp(min, max);
            if setting != wanted {
                remarks.push(format!("option '--{name}': value {value} adjusted to {setting}"));
            }
            Ok(Setting::Signed(setting))
        }
        Kind::Double { min, max, .. } => {
            let wanted: f64 = value
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .ok_or_else(|| wrong("a number"))?;
            let setting = wanted.clamp(min, max);
            if setting != wanted {
                remarks.push(format!("option '--{name}': value {value} adjusted to {setting}"));
            }
            Ok(Setting::Double(setting))
        }
        // The value of log_bin is usually the name of a file.
        Kind::Boolean { .. } if definition.name == "log_bin" => Ok(Setting::Boolean(false)),
        Kind::Boolean { .. } => {
            let on = ["1", "on", "true", "yes"].iter().any(|word| value.eq_ignore_ascii_case(word));
            let off = ["0", "off", "false", "no"].iter().any(|word| value.eq_ignore_ascii_case(word));
            if on == off { Err(wrong("ON or OFF")) } else { Ok(Setting::Boolean(on)) }
        }
        Kind::Choice { names, .. } => {
            let by_number = value.parse().ok().filter(|position: &usize| *position < names.len());
            let position = choice(names, value)
                .or(by_number)
                .ok_or_else(|| wrong(&format!("one of {}", names.join(", "))))?;
            Ok(Setting::Choice(position as u8))
        }
        Kind::Set { names, .. } => {
            let bits = set_bits(names, value)
                .ok()
                .or_else(|| value.parse().ok().filter(|bits: &u64| bits >> names.len() == 0))
                .ok_or_else(|| wrong(&format!("any of {}", names.join(","))))?;
            if definition.name != "sql_mode" {
                return Ok(Setting::Set(bits));
            }
            if SqlMode(bits).is_foreign() {
                return Err(wrong("no mode that changes how the text of statements is read"));
            }
            Ok(Setting::Set(SqlMode(bits).expanded().0))
        }
        Kind::Charset { .. } => match charsets::charset(value) {
            Some(charset) if assign::usable(charset, definition.name).is_ok() => {
                Ok(Setting::Text(charset.name.into()))
            }
            _ => Err(wrong("a character set that clients can have")),
        },
        Kind::Collation { .. } => match charsets::collation_named(value) {
            Some(collation) => Ok(Setting::Text(collation.name.into())),
            None => Err(wrong("a collation that SHOW COLLATION lists")),
        },
        Kind::Text { .. } if definition.name == "default_storage_engine" => match assign::engine_named(value)
        {
            Ok(engine) => Ok(Setting::Text(engine.into())),
            Err(_) => Err(wrong(&format!("one of {}", assign::ENGINES.join(", ")))),
        },
        Kind::Text { .. } => Ok(Setting::Text(value.into())),
    }
}

/// A whole number with an optional sign and suffix: its sign and its magnitude. A magnitude that is too large
/// becomes the largest one.
fn number(text: &str) -> Option<(bool, u64)> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, suffix) = text.split_at(digits);
    if digits.is_empty() {
        return None;
    }
    let shift = match suffix.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        "P" => 50,
        "E" => 60,
        _ => return None,
    };
    // Only digits are left, so a failure to parse is an overflow.
    let magnitude: u64 = digits.parse().unwrap_or(u64::MAX);
    Some((negative, magnitude.saturating_mul(1 << shift)))
}
