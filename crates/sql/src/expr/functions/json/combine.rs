//! Functions of several texts: whether one is in another, and what they are together.

use super::common::{checked, give, single_path};
use super::path::{Path, Search, plain, same_key};
use super::scanner::{Event, Kind, Scanned, Scanner, Value};
use super::writing::{Layout, format};
use crate::expr::Patience;
use crate::expr::functions::arguments::{Arguments, Result, int};
use crate::expr::functions::text::too_long;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use types::ValueRef;

/// Bytes that the entry of a table of keys takes, about.
const ENTRY_BYTES: usize = 96;

/// A text that is one value, and nothing else.
fn only_value(text: &[u8]) -> Scanned<Value<'_>> {
    let mut scanner = Scanner::new(text);
    let value = scanner.whole()?;
    scanner.finish()?;
    Ok(value)
}

pub(super) fn contains<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (text, candidate) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
    let path = if a.len() > 2 { or_null!(single_path(a, 2)?) } else { Path { steps: Vec::new() } };
    let find = || -> Scanned<Option<Value<'a>>> {
        let mut search = Search::new(text, &path.steps);
        if search.next()? { search.scanner.whole().map(Some) } else { Ok(None) }
    };
    let Some(value) = or_null!(checked(a, 0, find())) else { return int(0) };
    let may_hold = |kind| kind == value.kind || value.kind == Kind::Array;
    let candidate = || -> Scanned<Option<Value<'a>>> {
        match Scanner::new(candidate).next()? {
            Event::Scalar(kind, _) | Event::Start(kind) if may_hold(kind) => {
                Scanner::new(candidate).whole().map(Some)
            }
            // As in MariaDB, the rest is not looked at.
            Event::Scalar(..) | Event::Start(_) => Ok(None),
            Event::Key(_) | Event::Item | Event::End | Event::Done => Ok(None),
        }
    };
    let Some(candidate) = or_null!(checked(a, 1, candidate())) else { return int(0) };
    let mut patience = Patience::new(a.context.environment);
    int(i64::from(holds(value, candidate, &mut patience)?))
}

/// True if the value has all that the candidate has. The recursion is as deep as both are nested.
fn holds(value: Value<'_>, candidate: Value<'_>, patience: &mut Patience<'_>) -> Result<bool> {
    patience.spend(value.text.len())?;
    match (value.kind, candidate.kind) {
        (Kind::Object, Kind::Object) => {
            for (key, wanted) in candidate.children() {
                patience.spend(value.text.len())?;
                let found = value.children().find(|(own, _)| same_key(own, key));
                match found {
                    Some((_, member)) if holds(member, wanted, patience)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Kind::Array, Kind::Array) => {
            for (_, wanted) in candidate.children() {
                if !holds(value, wanted, patience)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Kind::Array, _) => {
            for (_, item) in value.children() {
                if holds(item, candidate, patience)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Kind::Number, Kind::Number) => Ok(number(value.text) == number(candidate.text)),
        (Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::String | Kind::Object, _) => {
            Ok(value.kind == candidate.kind && value.text == candidate.text)
        }
    }
}

fn number(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

pub(super) fn overlaps<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (text, other) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
    let Some(value) = checked(a, 0, Scanner::new(text).whole()) else { return int(0) };
    let Some(other) = checked(a, 1, Scanner::new(other).whole()) else { return int(0) };
    let normal = |value: &Value<'_>| {
        let mut out = Vec::new();
        push_normal(*value, &mut out);
        out
    };
    let overlap = match (value.kind, other.kind) {
        (Kind::Object, Kind::Object) => {
            let members = index(a, &other)?;
            value.children().any(|(key, own)| {
                members.get(&name(key)).is_some_and(|member| normal(&own) == normal(member))
            })
        }
        (Kind::Array, Kind::Array) => {
            cover(a, other.children().count())?;
            let items: HashSet<Vec<u8>> = other.children().map(|(_, item)| normal(&item)).collect();
            value.children().any(|(_, item)| items.contains(&normal(&item)))
        }
        (Kind::Array, _) => value.children().any(|(_, item)| normal(&item) == normal(&other)),
        (_, Kind::Array) => other.children().any(|(_, item)| normal(&item) == normal(&value)),
        (Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::String | Kind::Object, _) => {
            normal(&value) == normal(&other)
        }
    };
    int(i64::from(overlap))
}

/// A key without escapes.
fn name(key: &[u8]) -> Cow<'_, [u8]> {
    if key.contains(&b'\\') { plain(key).into() } else { key.into() }
}

/// Counts the memory of a table of keys.
fn cover(a: &Arguments<'_, '_>, entries: usize) -> Result<()> {
    const COUNTED_MIN: usize = 1 << 12;
    if entries < COUNTED_MIN {
        return Ok(());
    }
    a.context.environment.cover(a.context.arena.allocated_bytes() + entries * ENTRY_BYTES)
}

/// The first member of each key.
fn index<'t>(a: &Arguments<'_, '_>, object: &Value<'t>) -> Result<HashMap<Cow<'t, [u8]>, Value<'t>>> {
    cover(a, object.children().count())?;
    let mut members = HashMap::new();
    for (key, value) in object.children() {
        members.entry(name(key)).or_insert(value);
    }
    Ok(members)
}

pub(super) fn merge_preserve<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let mut merged = or_null!(a.text(0)?).to_vec();
    let mut patience = Patience::new(a.context.environment);
    for argument in 1..a.len() {
        let more = or_null!(a.text(argument)?);
        let value = or_null!(checked(a, 0, Scanner::new(&merged).whole()));
        let more = or_null!(checked(a, argument, Scanner::new(more).whole()));
        patience.spend(value.text.len() + more.text.len())?;
        let mut out = Vec::with_capacity(value.text.len() + more.text.len());
        merge(a, value, more, &mut out)?;
        if a.is_too_long(out.len()) {
            return Ok(too_long(a));
        }
        merged = out;
    }
    Ok(give(a, &or_null!(checked(a, 0, format(&merged, Layout::Loose)))))
}

/// Puts a comma, but before the first member, and the key.
fn push_key(key: &[u8], is_first: &mut bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if std::mem::replace(is_first, false) { b"\"" } else { b", \"" });
    out.extend_from_slice(key);
    out.extend_from_slice(b"\": ");
}

/// Puts what two values are together. The recursion is as deep as both are nested.
fn merge(a: &Arguments<'_, '_>, value: Value<'_>, more: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    if value.kind != Kind::Object || more.kind != Kind::Object {
        out.push(b'[');
        for (place, part) in [value, more].into_iter().enumerate() {
            let items = match part.kind == Kind::Array {
                true => part.text[1..part.text.len() - 1].trim_ascii(),
                false => part.text,
            };
            if place > 0 && out.len() > 1 && out.last() != Some(&b'[') && !items.is_empty() {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(items);
        }
        out.push(b']');
        return Ok(());
    }
    let members = index(a, &more)?;
    let mut is_first = true;
    out.push(b'{');
    for (key, own) in value.children() {
        push_key(key, &mut is_first, out);
        match members.get(&name(key)) {
            Some(other) => merge(a, own, *other, out)?,
            None => out.extend_from_slice(own.text),
        }
    }
    let known = index(a, &value)?;
    for (key, other) in more.children().filter(|(key, _)| !known.contains_key(&name(key))) {
        push_key(key, &mut is_first, out);
        out.extend_from_slice(other.text);
    }
    out.push(b'}');
    Ok(())
}

pub(super) fn merge_patch<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    // `None` for NULL.
    let mut merged = a.text(0)?.map(<[u8]>::to_vec);
    let mut patience = Patience::new(a.context.environment);
    for argument in 1..a.len() {
        let Some(more) = a.text(argument)? else {
            merged = None;
            continue;
        };
        let value = match &merged {
            Some(merged) => Some(or_null!(checked(a, 0, Scanner::new(merged).whole()))),
            None => None,
        };
        let more = or_null!(checked(a, argument, Scanner::new(more).whole()));
        if value.is_none() && more.kind == Kind::Object {
            continue;
        }
        patience.spend(value.map_or(0, |value| value.text.len()) + more.text.len())?;
        let mut out = Vec::new();
        patch(a, value, more, &mut out)?;
        if a.is_too_long(out.len()) {
            return Ok(too_long(a));
        }
        merged = Some(out);
    }
    let merged = or_null!(merged);
    Ok(give(a, &or_null!(checked(a, 0, format(&merged, Layout::Loose)))))
}

/// Puts what a patch makes of a value: RFC 7396. The recursion is as deep as both are nested.
fn patch(a: &Arguments<'_, '_>, value: Option<Value<'_>>, more: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    if more.kind != Kind::Object {
        out.extend_from_slice(more.text);
        return Ok(());
    }
    let value = value.filter(|value| value.kind == Kind::Object);
    let members = index(a, &more)?;
    let mut is_first = true;
    out.push(b'{');
    for (key, own) in value.iter().flat_map(Value::children) {
        match members.get(&name(key)) {
            Some(other) if other.kind == Kind::Null => {}
            Some(other) => {
                push_key(key, &mut is_first, out);
                patch(a, Some(own), *other, out)?;
            }
            None => {
                push_key(key, &mut is_first, out);
                out.extend_from_slice(own.text);
            }
        }
    }
    let known = value.map(|value| index(a, &value)).transpose()?.unwrap_or_default();
    for (key, other) in more.children().filter(|(key, _)| !known.contains_key(&name(key))) {
        if other.kind != Kind::Null {
            push_key(key, &mut is_first, out);
            patch(a, None, other, out)?;
        }
    }
    out.push(b'}');
    Ok(())
}

pub(super) fn normalize<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(a.text(0)?);
    Ok(give(a, &or_null!(checked(a, 0, normal(text)))))
}

pub(super) fn equals<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (text, other) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
    let text = or_null!(checked(a, 0, normal(text)));
    let other = or_null!(checked(a, 1, normal(other)));
    int(i64::from(text == other))
}

fn normal(text: &[u8]) -> Scanned<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    push_normal(only_value(text)?, &mut out);
    Ok(out)
}

/// Puts a value so that equal values are equal texts: keys sorted, no blanks, numbers in one form. The
/// recursion is as deep as the value is nested.
fn push_normal(value: Value<'_>, out: &mut Vec<u8>) {
    match value.kind {
        Kind::Number => push_normal_number(value.text, out),
        Kind::Array => {
            out.push(b'[');
            for (place, (_, item)) in value.children().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                push_normal(item, out);
            }
            out.push(b']');
        }
        Kind::Object => {
            let mut members: Vec<_> = value.children().collect();
            members.sort_by(|a, b| a.0.cmp(b.0));
            out.push(b'{');
            for (place, (key, member)) in members.into_iter().enumerate() {
                out.extend_from_slice(if place > 0 { b",\"" } else { b"\"" });
                out.extend_from_slice(key);
                out.extend_from_slice(b"\":");
                push_normal(member, out);
            }
            out.push(b'}');
        }
        Kind::Null | Kind::True | Kind::False | Kind::String => out.extend_from_slice(value.text),
    }
}

/// Puts a number as a digit, a point, more digits and an exponent.
fn push_normal_number(text: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(text);
    let (sign, text) = text.strip_prefix('-').map_or(("", &*text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let leading = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    let Some((first, rest)) = significant.split_at_checked(1) else {
        out.extend_from_slice(b"0.0E0");
        return;
    };
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let exponent = exponent.saturating_add(whole.len() as i64 - 1 - leading as i64);
    let rest = if rest.is_empty() { "0" } else { rest };
    out.extend_from_slice(format!("{sign}{first}.{rest}E{exponent}").as_bytes());
}
