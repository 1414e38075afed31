//! JSON_SET and the other functions that change a text at paths.

use super::common::{checked, give, push_value, single_path};
use super::path::{Path, Pick, Search, count, same_key};
use super::scanner::{Event, Kind, Scanned, Scanner};
use super::writing::{Layout, format};
use crate::ErrorKind;
use crate::expr::functions::arguments::{Arguments, Result};
use crate::expr::functions::text::too_long;
use types::ValueRef;

/// What to do with a value that is there, and with one that is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mode {
    pub replaces: bool,
    pub inserts: bool,
}

/// What a change makes of the text; `None` if nothing.
type Changed = Scanned<Option<Vec<u8>>>;

/// A change at a path: with a new value, or with nothing.
type Change = fn(text: &[u8], path: &Path, value: &[u8]) -> Changed;

/// What a function gives if there is nothing at one of its paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// The change is left out.
    Skip,
    /// NULL.
    Null,
}

pub(super) fn set<'a>(a: &Arguments<'a, '_>, mode: Mode) -> Result<ValueRef<'a>> {
    match mode {
        Mode { replaces: true, inserts: true } => change(a, Missing::Skip, |text, path, value| {
            set_one(text, path, value, Mode { replaces: true, inserts: true })
        }),
        Mode { replaces: true, inserts: false } => change(a, Missing::Skip, |text, path, value| {
            set_one(text, path, value, Mode { replaces: true, inserts: false })
        }),
        _ => change(a, Missing::Skip, |text, path, value| {
            set_one(text, path, value, Mode { replaces: false, inserts: true })
        }),
    }
}

pub(super) fn array_append<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    change(a, Missing::Null, append_one)
}

pub(super) fn array_insert<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    change(a, Missing::Skip, insert_one)
}

/// Makes a change for each pair of a path and a value.
fn change<'a>(a: &Arguments<'a, '_>, missing: Missing, make: Change) -> Result<ValueRef<'a>> {
    let mut text = or_null!(a.text(0)?).to_vec();
    let mut value = Vec::new();
    for index in (1..a.len()).step_by(2) {
        let path = or_null!(single_path(a, index)?);
        let needs_array = std::ptr::fn_addr_eq(make, insert_one as Change);
        if needs_array && !matches!(path.steps.last(), Some(last) if !last.is_key()) {
            return Ok(ValueRef::Null);
        }
        value.clear();
        push_value(a, index + 1, &mut value)?;
        match or_null!(checked(a, 0, make(&text, &path, &value))) {
            Some(changed) => text = changed,
            None if missing == Missing::Null => return Ok(ValueRef::Null),
            None => {}
        }
        if a.is_too_long(text.len()) {
            return Ok(too_long(a));
        }
    }
    Ok(give(a, &or_null!(checked(a, 0, format(&text, Layout::Loose)))))
}

pub(super) fn remove<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let mut text = or_null!(a.text(0)?).to_vec();
    for index in 1..a.len() {
        let path = or_null!(single_path(a, index)?);
        if path.steps.is_empty() {
            let message = format!(
                "Path expression '$' is not allowed in argument {} to function '{}'.",
                index + 1,
                a.name()
            );
            a.context.environment.warn(ErrorKind::JsonPathWhole, message);
            return Ok(ValueRef::Null);
        }
        if let Some(changed) = or_null!(checked(a, 0, remove_one(&text, &path))) {
            text = changed;
        }
    }
    Ok(give(a, &or_null!(checked(a, 0, format(&text, Layout::Loose)))))
}

/// The text with other parts in place of the bytes of a range.
fn splice(text: &[u8], from: usize, to: usize, parts: &[&[u8]]) -> Vec<u8> {
    [&text[..from], &parts.concat(), &text[to..]].concat()
}

/// The value that a path without its last step leads to: a scanner that has just read it or entered it, and
/// its kind.
fn parent<'t>(text: &'t [u8], path: &Path) -> Scanned<Option<(Scanner<'t>, Kind)>> {
    let steps = &path.steps[..path.steps.len().saturating_sub(1)];
    let mut search = Search::new(text, steps);
    if !search.next()? {
        return Ok(None);
    }
    let mut scanner = search.scanner;
    Ok(match scanner.next()? {
        Event::Scalar(kind, _) | Event::Start(kind) => Some((scanner, kind)),
        Event::Key(_) | Event::Item | Event::End | Event::Done => None,
    })
}

/// The value with a new one behind it, in an array.
fn wrap(text: &[u8], scanner: &mut Scanner<'_>, kind: Kind, value: &[u8]) -> Scanned<Vec<u8>> {
    let start = scanner.start();
    if !kind.is_scalar() {
        scanner.leave(scanner.depth())?;
    }
    let end = scanner.at();
    Ok(splice(text, start, end, &[b"[", &text[start..end], b", ", value, b"]"]))
}

fn set_one(text: &[u8], path: &Path, value: &[u8], mode: Mode) -> Changed {
    let Some(last) = path.steps.last() else {
        let mut scanner = Scanner::new(text);
        let whole = scanner.whole()?;
        let (from, to) = (scanner.at() - whole.text.len(), scanner.at());
        return Ok(mode.replaces.then(|| splice(text, from, to, &[value])));
    };
    let Some((mut scanner, kind)) = parent(text, path)? else { return Ok(None) };
    match (&last.pick, kind) {
        (Pick::Index(index), Kind::Array) => {
            let index = if *index < 0 { count(&scanner)? + index } else { *index };
            let mut items = 0;
            while scanner.next()? == Event::Item {
                let item = scanner.whole()?;
                if items == index {
                    let (from, to) = (scanner.at() - item.text.len(), scanner.at());
                    return Ok(mode.replaces.then(|| splice(text, from, to, &[value])));
                }
                items += 1;
            }
            let separator: &[u8] = if items > 0 { b", " } else { b"" };
            let at = scanner.at() - 1;
            Ok(mode.inserts.then(|| splice(text, at, at, &[separator, value])))
        }
        (Pick::Index(index), _) if *index == 0 || *index < 0 && mode.replaces && mode.inserts => {
            let start = scanner.start();
            if !kind.is_scalar() {
                scanner.leave(scanner.depth())?;
            }
            Ok(mode.replaces.then(|| splice(text, start, scanner.at(), &[value])))
        }
        (Pick::Index(_), _) if mode.inserts => wrap(text, &mut scanner, kind, value).map(Some),
        (Pick::Key(wanted), Kind::Object) => {
            let mut is_empty = true;
            while let Event::Key(key) = scanner.next()? {
                let member = scanner.whole()?;
                if same_key(key, wanted) {
                    let (from, to) = (scanner.at() - member.text.len(), scanner.at());
                    return Ok(mode.replaces.then(|| splice(text, from, to, &[value])));
                }
                is_empty = false;
            }
            let separator: &[u8] = if is_empty { b"\"" } else { b", \"" };
            let at = scanner.at() - 1;
            Ok(mode.inserts.then(|| splice(text, at, at, &[separator, wanted, b"\": ", value])))
        }
        (Pick::Index(_) | Pick::Key(_) | Pick::AnyKey | Pick::AnyItem | Pick::Range(..), _) => Ok(None),
    }
}

fn append_one(text: &[u8], path: &Path, value: &[u8]) -> Changed {
    let mut search = Search::new(text, &path.steps);
    if !search.next()? {
        return Ok(None);
    }
    let mut scanner = search.scanner;
    let kind = match scanner.next()? {
        Event::Start(Kind::Array) => {
            let mut items = 0;
            while scanner.next()? == Event::Item {
                scanner.whole()?;
                items += 1;
            }
            let separator: &[u8] = if items > 0 { b", " } else { b"" };
            let at = scanner.at() - 1;
            return Ok(Some(splice(text, at, at, &[separator, value])));
        }
        Event::Scalar(kind, _) | Event::Start(kind) => kind,
        Event::Key(_) | Event::Item | Event::End | Event::Done => return Ok(None),
    };
    wrap(text, &mut scanner, kind, value).map(Some)
}

fn insert_one(text: &[u8], path: &Path, value: &[u8]) -> Changed {
    let Some((mut scanner, Kind::Array)) = parent(text, path)? else { return Ok(None) };
    let Some(Pick::Index(index)) = path.steps.last().map(|last| &last.pick) else { return Ok(None) };
    // Behind the last item for -1.
    let index = if *index < 0 { count(&scanner)? + index + 1 } else { *index };
    let mut items = 0;
    while scanner.next()? == Event::Item {
        let item = scanner.whole()?;
        if items == index {
            let at = scanner.at() - item.text.len();
            return Ok(Some(splice(text, at, at, &[value, b", "])));
        }
        items += 1;
    }
    let separator: &[u8] = if items > 0 { b", " } else { b"" };
    let at = scanner.at() - 1;
    Ok(Some(splice(text, at, at, &[separator, value])))
}

fn remove_one(text: &[u8], path: &Path) -> Changed {
    let (Some((mut scanner, kind)), Some(last)) = (parent(text, path)?, path.steps.last()) else {
        return Ok(None);
    };
    let wanted = match (&last.pick, kind) {
        (Pick::Index(index), Kind::Array) if *index < 0 => count(&scanner)? + index,
        (Pick::Index(index), Kind::Array) => *index,
        (Pick::Key(_), Kind::Object) => -1,
        (Pick::Index(_) | Pick::Key(_) | Pick::AnyKey | Pick::AnyItem | Pick::Range(..), _) => {
            return Ok(None);
        }
    };
    let mut index = 0;
    loop {
        // The place behind the item before, or behind the bracket.
        let before = scanner.at();
        let fits = match (scanner.next()?, &last.pick) {
            (Event::Key(key), Pick::Key(wanted)) => same_key(key, wanted),
            (Event::Item, _) => index == wanted,
            (Event::Key(_) | Event::Scalar(..) | Event::Start(_) | Event::End | Event::Done, _) => {
                return Ok(None);
            }
        };
        scanner.whole()?;
        if !fits {
            index += 1;
            continue;
        }
        let end = scanner.at();
        if index > 0 {
            return Ok(Some(splice(text, before, end, &[])));
        }
        // The comma behind the first one goes with it.
        let blanks = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let from = before + blanks(before);
        let to = end + blanks(end);
        let comma = usize::from(text.get(to) == Some(&b','));
        return Ok(Some(splice(text, from, to + comma, &[])));
    }
}
