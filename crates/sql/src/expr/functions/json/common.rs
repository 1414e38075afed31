//! What the JSON functions have in common: their warnings, their paths, and other values as JSON.

use super::path::Path;
use super::scanner::{Fault, Kind, LEVELS_MAX, Problem, Scanned};
use super::writing::push_string;
use crate::ErrorKind;
use crate::expr::evaluate::convert;
use crate::expr::functions::arguments::{Arguments, Result};
use crate::expr::functions::text::too_long;
use crate::expr::result_type::Meaning;
use types::ValueRef;

/// What a problem was found in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Text,
    Path,
}

/// The warning of a problem in an argument.
fn warning(a: &Arguments<'_, '_>, index: usize, problem: Problem, source: Source) -> (ErrorKind, String) {
    let place = format!("in argument {} to function '{}'", index + 1, a.name());
    let (kind, what) = match (problem.fault, source) {
        (Fault::End, Source::Text) => {
            return (ErrorKind::JsonEnd, format!("Unexpected end of JSON text {place}"));
        }
        (Fault::End, Source::Path) => {
            return (ErrorKind::JsonPathEnd, format!("Unexpected end of JSON path {place}"));
        }
        (Fault::Broken, _) => (ErrorKind::JsonBroken, "Broken JSON string"),
        (Fault::Disallowed, _) => (ErrorKind::JsonDisallowed, "Character disallowed in JSON"),
        (Fault::Escape, _) => (ErrorKind::JsonEscape, "Incorrect escaping in JSON text"),
        (Fault::Syntax, Source::Text) => (ErrorKind::JsonSyntax, "Syntax error in JSON text"),
        (Fault::Syntax, Source::Path) => (ErrorKind::JsonPathSyntax, "Syntax error in JSON path"),
        (Fault::Depth, _) => {
            let (kind, what) = match source {
                Source::Text => (ErrorKind::JsonDepth, "nested structures depth"),
                Source::Path => (ErrorKind::JsonPathDepth, "path depth"),
            };
            let at = problem.at;
            return (
                kind,
                format!("Limit of {LEVELS_MAX} on JSON {what} is reached {place} at position {at}"),
            );
        }
    };
    (kind, format!("{what} {place} at position {}", problem.at))
}

/// What was read of an argument; `None`, and a warning, if there is a problem in it.
pub(super) fn checked<T>(a: &Arguments<'_, '_>, index: usize, scanned: Scanned<T>) -> Option<T> {
    scanned
        .map_err(|problem| {
            let (kind, message) = warning(a, index, problem, Source::Text);
            a.context.environment.warn(kind, message);
        })
        .ok()
}

/// As [`checked`], with a note in place of the warning.
pub(super) fn noted<T>(a: &Arguments<'_, '_>, index: usize, scanned: Scanned<T>) -> Option<T> {
    scanned
        .map_err(|problem| {
            let (kind, message) = warning(a, index, problem, Source::Text);
            a.context.environment.note(kind, message);
        })
        .ok()
}

/// An argument that is a path. `None` for NULL and, with a warning, for what is no path.
pub(super) fn path(a: &Arguments<'_, '_>, index: usize) -> Result<Option<Path>> {
    let Some(text) = a.text(index)? else { return Ok(None) };
    let parsed = Path::parse(text).map_err(|problem| {
        let (kind, message) = warning(a, index, problem, Source::Path);
        a.context.environment.warn(kind, message);
    });
    Ok(parsed.ok())
}

/// As [`path`], of a path to one value only.
pub(super) fn single_path(a: &Arguments<'_, '_>, index: usize) -> Result<Option<Path>> {
    let found = path(a, index)?;
    if !found.as_ref().is_some_and(Path::has_wildcard) {
        return Ok(found);
    }
    let message = format!(
        "Wildcards or range in JSON path not allowed in argument {} to function '{}'",
        index + 1,
        a.name()
    );
    a.context.environment.warn(ErrorKind::JsonPathWildcard, message);
    Ok(None)
}

/// The arguments from one on, which are paths.
pub(super) fn paths(a: &Arguments<'_, '_>, from: usize) -> Result<Option<Vec<Path>>> {
    (from..a.len()).map(|index| path(a, index)).collect()
}

/// True for `all`, false for `one`. `None`, and a warning, for another word.
pub(super) fn wants_all(a: &Arguments<'_, '_>, word: &[u8]) -> Option<bool> {
    if word.eq_ignore_ascii_case(b"all") {
        return Some(true);
    }
    if word.eq_ignore_ascii_case(b"one") {
        return Some(false);
    }
    let message = format!("Argument 2 to function '{}' must be \"one\" or \"all\".", a.name());
    a.context.environment.warn(ErrorKind::JsonOneOrAll, message);
    None
}

/// Puts an argument as a JSON value. NULL is `null`.
pub(super) fn push_value(a: &Arguments<'_, '_>, index: usize, out: &mut Vec<u8>) -> Result<()> {
    let value = a.value(index)?;
    let meaning = a.call.meanings.get(index).copied().unwrap_or_default();
    push_as_json(&value, meaning, a.context, out);
    Ok(())
}

/// Puts a value as JSON.
pub(in crate::expr) fn push_as_json<'a>(
    value: &ValueRef<'a>,
    meaning: Meaning,
    context: &crate::expr::Context<'a>,
    out: &mut Vec<u8>,
) {
    let Some(text) = convert::to_text(value, context) else {
        out.extend_from_slice(b"null");
        return;
    };
    let is_number = matches!(
        value,
        ValueRef::Int(_)
            | ValueRef::UInt(_)
            | ValueRef::Float(_)
            | ValueRef::Double(_)
            | ValueRef::Decimal(_)
    );
    match meaning {
        Meaning::Boolean => out.extend_from_slice(if text == b"0" { b"false" } else { b"true" }),
        Meaning::Json => out.extend_from_slice(text),
        Meaning::Plain | Meaning::InUtc if is_number => out.extend_from_slice(text),
        Meaning::Plain | Meaning::InUtc => push_string(text, out),
    }
}

/// A text as the result; NULL and a warning if it is too long.
pub(super) fn give<'a>(a: &Arguments<'a, '_>, bytes: &[u8]) -> ValueRef<'a> {
    if a.is_too_long(bytes.len()) { too_long(a) } else { a.give(bytes) }
}

pub(super) fn kind_name(kind: Kind, text: &[u8]) -> &'static str {
    match kind {
        Kind::Null => "NULL",
        Kind::True | Kind::False => "BOOLEAN",
        Kind::Number if text.contains(&b'.') => "DOUBLE",
        Kind::Number => "INTEGER",
        Kind::String => "STRING",
        Kind::Array => "ARRAY",
        Kind::Object => "OBJECT",
    }
}
