//! Functions that read a text.

use super::common::{checked, give, kind_name, noted, path, paths, push_value, single_path, wants_all};
use super::path::{Path, Place, Search, Walk, plain};
use super::scanner::{Event, Kind, Scanned, Scanner};
use super::writing::{Layout, format, push_escaped, push_string};
use crate::expr::Patience;
use crate::expr::evaluate::like;
use crate::expr::functions::arguments::{Arguments, Result, int};
use crate::expr::functions::text::too_long;
use crate::{ErrorKind, SqlError};
use std::collections::HashSet;
use types::ValueRef;

pub(super) fn valid<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    int(i64::from(noted(a, 0, Scanner::new(text).finish()).is_some()))
}

pub(super) fn formatted<'a>(a: &Arguments<'a, '_>, layout: Layout) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let indented = match layout {
        Layout::Detailed(indent) => text.len().saturating_mul(indent.max(1)),
        Layout::Compact | Layout::Loose => 0,
    };
    if a.is_too_long(indented) {
        let lines = text.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b']' | b'}')).count();
        // Indented text is many times longer.
        if a.is_too_long(text.len() + lines) {
            return Ok(too_long(a));
        }
    }
    Ok(give(a, &or_null!(checked(a, 0, format(text, layout)))))
}

/// The blanks of a level as JSON_DETAILED takes them.
pub(super) fn detailed<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    const INDENT: i64 = 4;
    const INDENT_MAX: i64 = 8;
    let indent = if a.len() == 2 { or_null!(a.int(1)?).clamp(0, INDENT_MAX) } else { INDENT };
    formatted(a, Layout::Detailed(indent as usize))
}

pub(super) fn extract<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let paths = or_null!(paths(a, 1)?);
    let as_array = paths.len() > 1 || paths.iter().any(Path::has_wildcard);
    let mut out = Vec::new();
    let mut found = |walk: &Walk<'_>, kind| -> Scanned<bool> {
        for _ in paths.iter().filter(|path| walk.is_at(path, kind)) {
            if !as_array && !out.is_empty() {
                break;
            }
            if !out.is_empty() {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(walk.value()?);
        }
        Ok(!a.is_too_long(out.len()))
    };
    let mut walk = Walk::new(text, paths.iter());
    while let Some((kind, _)) = or_null!(checked(a, 0, walk.next())) {
        if !or_null!(checked(a, 0, found(&walk, kind))) {
            return Ok(too_long(a));
        }
    }
    if out.is_empty() {
        return Ok(ValueRef::Null);
    }
    if as_array {
        out.insert(0, b'[');
        out.push(b']');
    }
    Ok(give(a, &or_null!(checked(a, 0, format(&out, Layout::Loose)))))
}

pub(super) fn unquote<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let mut scanner = Scanner::new(text);
    match scanner.next() {
        Ok(Event::Scalar(Kind::String, string)) => Ok(a.give(&plain(&string[1..string.len() - 1]))),
        Err(problem) if text.trim_ascii_start().starts_with(b"\"") => {
            checked::<()>(a, 0, Err(problem));
            Ok(a.give_borrowed(text))
        }
        Ok(_) | Err(_) => Ok(a.give_borrowed(text)),
    }
}

pub(super) fn quote<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let mut quoted = Vec::new();
    match a.value(0)? {
        ValueRef::Null
        | ValueRef::Int(_)
        | ValueRef::UInt(_)
        | ValueRef::Float(_)
        | ValueRef::Double(_)
        | ValueRef::Decimal(_) => return Ok(ValueRef::Null),
        _ => push_string(or_null!(a.text(0)?), &mut quoted),
    }
    Ok(give(a, &quoted))
}

/// JSON_VALUE: the first scalar at a path.
pub(super) fn scalar<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    // As in MariaDB, the path is looked at first.
    let path = or_null!(single_path(a, 1)?);
    let text = or_null!(a.text(0)?);
    let found = first(text, &path, |kind| kind.is_scalar());
    Ok(match found.ok().flatten() {
        None | Some((Kind::Null, _)) => ValueRef::Null,
        Some((Kind::True, _)) => a.give(b"1"),
        Some((Kind::False, _)) => a.give(b"0"),
        Some((Kind::String, string)) => a.give(&plain(&string[1..string.len() - 1])),
        Some((_, text)) => a.give_borrowed(text),
    })
}

/// JSON_QUERY: the first array or object at a path.
pub(super) fn container<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let path = or_null!(path(a, 1)?);
    let text = or_null!(a.text(0)?);
    let found = first(text, &path, |kind| !kind.is_scalar());
    Ok(found.ok().flatten().map_or(ValueRef::Null, |(_, text)| a.give_borrowed(text)))
}

fn first<'t>(text: &'t [u8], path: &Path, wanted: fn(Kind) -> bool) -> Scanned<Option<(Kind, &'t [u8])>> {
    let mut search = Search::new(text, &path.steps);
    while search.next()? {
        let value = search.scanner.whole()?;
        if wanted(value.kind) {
            return Ok(Some((value.kind, value.text)));
        }
    }
    Ok(None)
}

pub(super) fn exists<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let path = or_null!(Path::parse(or_null!(a.text(1)?)).ok());
    int(i64::from(or_null!(checked(a, 0, Search::new(text, &path.steps).next()))))
}

pub(super) fn contains_path<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let all = or_null!(wants_all(a, or_null!(a.text(1)?)));
    let paths = or_null!(paths(a, 2)?);
    let mut found = vec![false; paths.len()];
    let mut walk = Walk::new(text, paths.iter());
    while let Some((kind, _)) = or_null!(checked(a, 0, walk.next())) {
        for (path, found) in paths.iter().zip(&mut found) {
            *found = *found || walk.is_at(path, kind);
        }
    }
    let result = if all { found.iter().all(|found| *found) } else { found.contains(&true) };
    int(i64::from(result))
}

pub(super) fn length<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let path = if a.len() > 1 { or_null!(single_path(a, 1)?) } else { Path { steps: Vec::new() } };
    let length = || -> Scanned<Option<i64>> {
        let mut search = Search::new(text, &path.steps);
        if !search.next()? {
            return Ok(None);
        }
        let mut scanner = search.scanner;
        let Event::Start(_) = scanner.next()? else { return Ok(Some(1)) };
        let depth = scanner.depth();
        let mut length = 0;
        while scanner.depth() >= depth {
            let event = scanner.next()?;
            length += i64::from(scanner.depth() == depth && matches!(event, Event::Item | Event::Key(_)));
        }
        scanner.finish()?;
        Ok(Some(length))
    };
    int(or_null!(or_null!(checked(a, 0, length()))))
}

pub(super) fn depth<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let depth = || -> Scanned<i64> {
        let mut scanner = Scanner::new(text);
        let mut deepest = 1;
        loop {
            match scanner.next()? {
                Event::Item | Event::Key(_) => deepest = deepest.max(scanner.depth() + 1),
                Event::Done => return Ok(deepest as i64),
                Event::Scalar(..) | Event::Start(_) | Event::End => {}
            }
        }
    };
    int(or_null!(checked(a, 0, depth())))
}

pub(super) fn kind<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let kind = || {
        let mut scanner = Scanner::new(text);
        let value = scanner.whole()?;
        scanner.finish()?;
        Ok(kind_name(value.kind, value.text))
    };
    Ok(a.give(or_null!(checked(a, 0, kind())).as_bytes()))
}

pub(super) fn keys<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    let path = if a.len() > 1 { or_null!(single_path(a, 1)?) } else { Path { steps: Vec::new() } };
    let keys = || -> Scanned<Option<Vec<u8>>> {
        let mut search = Search::new(text, &path.steps);
        if !search.next()? {
            return Ok(None);
        }
        let mut scanner = search.scanner;
        let Event::Start(Kind::Object) = scanner.next()? else { return Ok(None) };
        let mut seen = HashSet::new();
        let mut out = vec![b'['];
        while let Event::Key(key) = scanner.next()? {
            scanner.whole()?;
            // As in MariaDB, a key with an escape is never found again.
            if !key.contains(&b'\\') && !seen.insert(key) {
                continue;
            }
            out.extend_from_slice(if out.len() > 1 { b", \"" } else { b"\"" });
            out.extend_from_slice(key);
            out.push(b'"');
        }
        out.push(b']');
        Ok(Some(out))
    };
    Ok(give(a, &or_null!(or_null!(checked(a, 0, keys())))))
}

/// The character that JSON_SEARCH takes for its escape.
fn escape(a: &Arguments<'_, '_>) -> Result<Option<char>> {
    let given = if a.len() > 3 { a.text(3)? } else { None };
    let Some(text) = given else { return Ok(Some('\\')) };
    let text = String::from_utf8_lossy(text);
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (escape, None) => Ok(escape),
        _ => Err(SqlError::new(ErrorKind::WrongArguments, "Incorrect arguments to ESCAPE")),
    }
}

pub(super) fn search<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let escape = escape(a)?;
    let (text, pattern) = (or_null!(a.text(0)?), or_null!(a.text(2)?));
    let all = or_null!(wants_all(a, or_null!(a.text(1)?)));
    let paths = or_null!(paths(a, 4)?);
    let mut patience = Patience::new(a.context.environment);
    let mut out = Vec::new();
    let mut found = 0;
    let mut walk = Walk::new(text, paths.iter());
    while let Some((kind, _)) = or_null!(checked(a, 0, walk.next())) {
        if !kind.is_scalar() || !(paths.is_empty() || paths.iter().any(|path| walk.is_within(path, kind))) {
            continue;
        }
        let value = or_null!(checked(a, 0, walk.value()));
        let unescaped;
        let value = if kind == Kind::String {
            unescaped = plain(&value[1..value.len() - 1]);
            &unescaped
        } else {
            value
        };
        patience.spend(value.len())?;
        if !like::like(value, pattern, escape, a.call.collation, &mut patience)? {
            continue;
        }
        if found > 0 {
            out.extend_from_slice(b", ");
        }
        found += 1;
        push_place(&walk.places, &mut out);
        if !all {
            break;
        }
        if a.is_too_long(out.len()) {
            return Ok(too_long(a));
        }
    }
    match found {
        0 => return Ok(ValueRef::Null),
        1 => {}
        _ => {
            out.insert(0, b'[');
            out.push(b']');
        }
    }
    Ok(give(a, &out))
}

/// Puts the path to a value as a JSON string.
fn push_place(places: &[Place<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"$");
    for place in places {
        match place {
            Place::Key(key) => {
                out.push(b'.');
                out.extend_from_slice(key);
            }
            Place::Index(index) => out.extend_from_slice(format!("[{index}]").as_bytes()),
        }
    }
    out.push(b'"');
}

pub(super) fn array<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let mut out = vec![b'['];
    for index in 0..a.len() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        push_value(a, index, &mut out)?;
        if a.is_too_long(out.len()) {
            return Ok(too_long(a));
        }
    }
    out.push(b']');
    Ok(give(a, &out))
}

pub(super) fn object<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let mut out = vec![b'{'];
    for index in (0..a.len()).step_by(2) {
        out.extend_from_slice(if index > 0 { b", \"" } else { b"\"" });
        push_escaped(a.text(index)?.unwrap_or_default(), &mut out);
        out.extend_from_slice(b"\": ");
        push_value(a, index + 1, &mut out)?;
        if a.is_too_long(out.len()) {
            return Ok(too_long(a));
        }
    }
    out.push(b'}');
    Ok(give(a, &out))
}
