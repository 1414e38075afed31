//! CACHE INDEX and LOAD INDEX INTO CACHE.
//!
//! Both work on a table as a whole. Names of indexes are checked and have no effect, as in MariaDB. Neither
//! statement commits, and both run under FLUSH TABLES WITH READ LOCK. Meanwhile the table keeps its
//! definition, but its rows can be read and changed.

use crate::locks::Mode;
use crate::locks::Used;
use crate::session::transaction::StatementLocks;
use crate::statements::show::{Listing, characters};
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, ResultSink, Session, SqlError};
use engine::{DEFAULT_CACHE, Table};
use std::sync::Arc;
use types::Value;

/// A table that the statement names, with the indexes named for it.
struct Target {
    database: String,
    name: String,
    is_partitioned: bool,
    keys: Vec<String>,
    ignore_leaves: bool,
}

/// CACHE INDEX t [INDEX (..)], ... IN cache, behind the first word.
pub(crate) fn cache_index(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    words.expect("INDEX")?;
    let targets = targets(session, words, false)?;
    words.expect("IN")?;
    let cache = match words.peek().clone() {
        Word::Bare(word) if word.eq_ignore_ascii_case(DEFAULT_CACHE) => {
            words.next();
            DEFAULT_CACHE.to_owned()
        }
        Word::Name(name) if name.is_empty() => {
            words.next();
            DEFAULT_CACHE.to_owned()
        }
        _ => words.name()?,
    };
    words.end()?;
    check(session, &targets, "CACHE INDEX")?;
    let named = session.instance.database.caches().get(&cache);
    // A cache that never had a size is unknown. One that was dropped takes tables and keeps nothing of them:
    // they are in the default cache, as those that it had are.
    if named.is_none_or(|cache| !cache.is_enabled() && cache.pools().next().is_none()) {
        return Err(unknown_cache(&cache));
    }
    work_on_each(session, targets, "assign_to_keycache", sink, |session, table, _| {
        let database = &session.instance.database;
        match database.assign(table, &cache) {
            Err(engine::Error::NoSuchCache) => Ok(database.assign(table, DEFAULT_CACHE)?),
            assigned => Ok(assigned?),
        }
    })
}

/// LOAD INDEX INTO CACHE t [INDEX (..)] [IGNORE LEAVES], ..., behind the first word.
pub(crate) fn load_index(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    for word in ["INDEX", "INTO", "CACHE"] {
        words.expect(word)?;
    }
    let targets = targets(session, words, true)?;
    words.end()?;
    check(session, &targets, "LOAD INDEX INTO CACHE")?;
    work_on_each(session, targets, "preload_keys", sink, |session, table, ignore_leaves| {
        session.instance.database.preload(table, ignore_leaves)?;
        Ok(())
    })
}

fn unknown_cache(name: &str) -> SqlError {
    SqlError::new(ErrorKind::UnknownKeyCache, format!("Unknown key cache '{name}'"))
}

fn targets(session: &Session, words: &mut Words<'_>, leaves: bool) -> Result<Vec<Target>, SqlError> {
    let mut targets: Vec<Target> = Vec::new();
    loop {
        let (database, name) = words.qualified_name()?;
        let database = session.resolve_database(database)?;
        let mut target =
            Target { database, name, is_partitioned: false, keys: Vec::new(), ignore_leaves: false };
        if targets.is_empty() && words.accept("PARTITION") {
            target.is_partitioned = true;
            if names(words)?.is_empty() {
                return Err(words.error());
            }
        }
        if words.accept("INDEX") || words.accept("KEY") {
            target.keys = names(words)?;
        }
        if leaves && words.accept("IGNORE") {
            words.expect("LEAVES")?;
            target.ignore_leaves = true;
        }
        if targets.iter().any(|other| (&other.database, &other.name) == (&target.database, &target.name)) {
            return Err(SqlError::new(
                ErrorKind::NotUniqueTable,
                format!("Not unique table/alias: '{}'", target.name),
            ));
        }
        let is_alone = target.is_partitioned;
        targets.push(target);
        // With PARTITION there can be one table only, so a comma is a syntax error.
        if is_alone || !words.accept_symbol(",") {
            return Ok(targets);
        }
    }
}

/// `([name, ...])`.
fn names(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    words.expect_symbol("(")?;
    let mut names = Vec::new();
    if words.accept_symbol(")") {
        return Ok(names);
    }
    loop {
        names.push(words.name()?);
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.expect_symbol(")")?;
    Ok(names)
}

/// Makes the checks that need no open table.
fn check(session: &Session, targets: &[Target], statement: &str) -> Result<(), SqlError> {
    for Target { database, name, .. } in targets {
        if crate::names::virtual_database(database).is_some() {
            return Err(session.access.database_denied(database));
        }
        session.check_seen(statement, database, name)?;
    }
    Ok(())
}

fn work_on_each(
    session: &mut Session,
    targets: Vec<Target>,
    operation: &str,
    sink: &mut dyn ResultSink,
    mut work: impl FnMut(&Session, &Arc<Table>, bool) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let mut listing = Listing::new([
        ("Table", characters(128)),
        ("Op", characters(20)),
        ("Msg_type", characters(10)),
        ("Msg_text", characters(4096)),
    ]);
    for target in targets {
        let done = open(session, &target).and_then(|table| {
            if target.is_partitioned {
                let text = "Partition management on a not partitioned table is not possible";
                return Err(SqlError::new(ErrorKind::PartitionsOnUnpartitioned, text));
            }
            check_keys(&table, &target.keys)?;
            let instance = session.instance.clone();
            let mut held = StatementLocks::new(&instance.locks, session.client.id);
            if !session.locked.has_tables() {
                held.lock(session, table.id(), Mode::Read)?;
            }
            work(session, &table, target.ignore_leaves)
        });
        let lines = match done {
            Ok(()) => vec![("status", "OK".to_owned())],
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::QueryInterrupted
                        | ErrorKind::StatementTimeout
                        | ErrorKind::PartitionsOnUnpartitioned
                        | ErrorKind::ConnectionKilled
                ) =>
            {
                return Err(error);
            }
            Err(error) => vec![("Error", error.message), ("status", "Operation failed".to_owned())],
        };
        let full_name = format!("{}.{}", target.database, target.name);
        for (kind, text) in lines {
            listing.push([full_name.as_str(), operation, kind, &text].map(Value::text).to_vec());
        }
    }
    listing.send(session, sink)
}

fn open(session: &mut Session, target: &Target) -> Result<Arc<Table>, SqlError> {
    let (database, name) = (&target.database, &target.name);
    let table = session.table_to_use(database, name).map_err(|error| match error.kind {
        ErrorKind::UnknownDatabase => SqlError::no_such_table(database, name),
        _ => error,
    })?;
    if session.locked.has_tables() {
        session.locked.check(Used { table: &table, alias: name, mode: Mode::Read })?;
    }
    Ok(table)
}

/// If several indexes do not exist, MariaDB names the last.
fn check_keys(table: &Table, keys: &[String]) -> Result<(), SqlError> {
    let def = table.def();
    let is_known = |key: &str| {
        def.primary.is_some() && key.eq_ignore_ascii_case("PRIMARY")
            || def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(key))
    };
    match keys.iter().rev().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => {
            let text = format!("Key '{key}' doesn't exist in table '{}'", def.name);
            Err(SqlError::new(ErrorKind::KeyDoesNotExist, text))
        }
    }
}
