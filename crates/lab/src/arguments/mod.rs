//! Reads `--name value` and `--name=value`, and values of each kind. Every experiment uses this.

mod suggest;

pub(crate) use suggest::unknown as closest;

use crate::report::Format;
use crate::target::TargetSpec;
use std::time::Duration;

/// Gives each option with its value to `set`; a flag comes with an empty value. Errors are sentences for
/// people.
pub(crate) fn read(
    args: &[String],
    names: &[&'static str],
    flags: &[&str],
    set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    match read_with_files(args, names, flags, set)?.first() {
        Some(file) => Err(format!("`{file}` is not an option; see latchwork lab run --help")),
        None => Ok(()),
    }
}

/// The same for a command that takes files too, which are returned.
pub(crate) fn read_with_files(
    args: &[String],
    names: &[&'static str],
    flags: &[&str],
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    let mut left = args.iter();
    while let Some(arg) = left.next() {
        if !arg.starts_with('-') {
            files.push(arg.clone());
            continue;
        }
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_string())),
            None => (arg.as_str(), None),
        };
        let name = if name == "-T" { "--target" } else { name };
        if flags.contains(&name) {
            if inline.is_some() {
                return Err(format!("`{name}` takes no value"));
            }
            set(name, "")?;
            continue;
        }
        if !names.contains(&name) {
            return Err(closest("option", name, names.iter().chain(flags).copied()));
        }
        let value = match inline {
            Some(value) => value,
            None => left.next().cloned().ok_or_else(|| format!("`{name}` needs a value"))?,
        };
        set(name, &value).map_err(|why| format!("{name} {}: {why}", crate::target::hidden(&value)))?;
    }
    Ok(files)
}

pub(crate) fn split(value: &str) -> Result<Vec<&str>, String> {
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) { Err("an empty entry".to_string()) } else { Ok(parts) }
}

pub(crate) fn distinct<T: PartialEq>(
    items: impl Iterator<Item = Result<T, String>>,
) -> Result<Vec<T>, String> {
    let mut distinct = Vec::new();
    for item in items {
        let item = item?;
        if distinct.contains(&item) {
            return Err("an entry is given twice".to_string());
        }
        distinct.push(item);
    }
    Ok(distinct)
}

pub(crate) fn number(value: &str, min: u32, max: u32) -> Result<u32, String> {
    let number = value.parse::<u32>().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("`{value}` is not a whole number from {min} to {max}"))
}

pub(crate) fn numbers(value: &str, min: u32, max: u32) -> Result<Vec<u32>, String> {
    let mut numbers = distinct(split(value)?.into_iter().map(|part| number(part, min, max)))?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// `500000`, `500k`, `2M`: powers of ten.
pub(crate) fn count(value: &str) -> Result<u64, String> {
    scaled(value, 1_000)
}

/// `512M`, `8G`: powers of two, as in the options of servers.
pub(crate) fn bytes(value: &str) -> Result<u64, String> {
    scaled(value, 1_024)
        .and_then(|bytes| if bytes == 0 { Err("a cache has to have a size".to_string()) } else { Ok(bytes) })
}

fn scaled(value: &str, step: u64) -> Result<u64, String> {
    let wrong = || format!("`{value}` is not a number such as 500k or 2M");
    let (digits, power) = match value.chars().last().map(|last| last.to_ascii_lowercase()) {
        Some('k') => (&value[..value.len() - 1], 1),
        Some('m') => (&value[..value.len() - 1], 2),
        Some('g') => (&value[..value.len() - 1], 3),
        _ => (value, 0),
    };
    let number: u64 = digits.replace('_', "").parse().map_err(|_| wrong())?;
    number.checked_mul(step.pow(power)).ok_or_else(wrong)
}

/// `8`, `0.5`, `500ms`, `8min`: seconds unless a unit says otherwise.
pub(crate) fn duration(value: &str) -> Result<Duration, String> {
    let wrong = || format!("`{value}` is not a duration such as 2, 0.5, 500ms or 8min");
    let (number, unit) = if let Some(number) = value.strip_suffix("ms") {
        (number, 0.001)
    } else if let Some(number) = value.strip_suffix("min") {
        (number, 60.0)
    } else {
        (value.strip_suffix('s').unwrap_or(value), 1.0)
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * unit;
    if !(0.0..=7.0 * 86_400.0).contains(&seconds) {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(crate) fn format(value: &str) -> Result<Format, String> {
    match value {
        "table" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        _ => Err("formats are table and json".to_string()),
    }
}

/// Targets, none twice. The engine in process takes its settings one by one here, not as a preset.
pub(crate) fn targets(value: &str, targets: &mut Vec<TargetSpec>) -> Result<(), String> {
    targets_with_presets(value, targets)?;
    match targets.iter().find(|target| matches!(target, TargetSpec::Embedded(Some(_)))) {
        Some(target) => Err(format!("{} is for `lab run smp`", target.name())),
        None => Ok(()),
    }
}

/// Targets, none twice.
pub(crate) fn targets_with_presets(value: &str, targets: &mut Vec<TargetSpec>) -> Result<(), String> {
    for target in split(value)? {
        let target = TargetSpec::parse(target)?;
        if targets.contains(&target) {
            return Err("this target is given twice".to_string());
        }
        targets.push(target);
    }
    Ok(())
}
