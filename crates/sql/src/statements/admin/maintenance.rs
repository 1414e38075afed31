//! CHECK, ANALYZE, OPTIMIZE, REPAIR and CHECKSUM TABLE.

use crate::accounts::Rights;
use crate::audit::TableUse;
use crate::locks::Mode;
use crate::locks::Used;
use crate::session::transaction::StatementLocks;
use crate::statements::ddl;
use crate::statements::show::{Listing, characters, number};
use crate::text::parse::Words;
use crate::{ErrorKind, ResultSink, Session, SqlError};
use base::IndexId;
use engine::{Direction, KeyRange, Reader, Table};
use std::ops::Bound;
use std::sync::Arc;
use types::Value;

/// The statements whose answers have the same form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Analyze,
    Check,
    Optimize,
    Repair,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Analyze => "analyze",
            Operation::Check => "check",
            Operation::Optimize => "optimize",
            Operation::Repair => "repair",
        }
    }

    /// True if the statement may replace the table by another.
    fn changes(self) -> bool {
        matches!(self, Operation::Optimize | Operation::Repair)
    }

    fn options(self) -> &'static [&'static [&'static str]] {
        match self {
            Operation::Analyze => &[&["PERSISTENT", "FOR", "ALL"]],
            Operation::Check => {
                &[&["QUICK"], &["FAST"], &["MEDIUM"], &["EXTENDED"], &["CHANGED"], &["FOR", "UPGRADE"]]
            }
            Operation::Optimize => &[],
            Operation::Repair => &[&["QUICK"], &["EXTENDED"], &["USE_FRM"], &["FORCE"]],
        }
    }
}

/// A line of the answer: its type and its text.
type Line = (&'static str, String);

fn line(kind: &'static str, text: &str) -> Line {
    (kind, text.to_owned())
}

fn tables(session: &Session, words: &mut Words<'_>) -> Result<Vec<(String, String)>, SqlError> {
    if !words.accept("TABLE") {
        words.expect("TABLES")?;
    }
    let mut names = Vec::new();
    loop {
        let (database, name) = words.qualified_name()?;
        names.push((session.resolve_database(database)?, name));
        if !words.accept_symbol(",") {
            return Ok(names);
        }
    }
}

/// ANALYZE, CHECK, OPTIMIZE or REPAIR TABLE, behind that word.
pub(crate) fn maintain_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    operation: Operation,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let _ = words.accept("NO_WRITE_TO_BINLOG") || words.accept("LOCAL");
    let names = tables(session, words)?;
    let mut persistent = false;
    while let Some(option) = operation.options().iter().find(|option| words.accept_all(option)) {
        persistent |= option[0] == "PERSISTENT";
    }
    words.end()?;
    for (database, name) in &names {
        match operation {
            Operation::Check => session.check_seen("CHECK TABLE", database, name)?,
            _ => session.check_some(Rights::SELECT | Rights::INSERT, database, name)?,
        }
    }
    session.implicit_commit()?;
    let mut listing = Listing::new([
        ("Table", characters(128)),
        ("Op", characters(10)),
        ("Msg_type", characters(10)),
        ("Msg_text", characters(4096)),
    ]);
    for (database, name) in names {
        let lines = session.table_to_use(&database, &name).and_then(|table| {
            if session.locked.has_tables() {
                let mode = if operation.changes() { Mode::Define } else { Mode::Read };
                session.locked.check(Used { table: &table, alias: &name, mode })?;
            }
            let what = if operation.changes() { TableUse::Write } else { TableUse::Read };
            session.note_table(what, &database, &name);
            maintain(session, &table, operation, sink)
        });
        let lines = match lines {
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::QueryInterrupted | ErrorKind::ConnectionKilled | ErrorKind::StatementTimeout
                ) =>
            {
                return Err(error);
            }
            Err(error) => vec![("Error", error.message), line("status", "Operation failed")],
            Ok(lines) => lines,
        };
        let full_name = format!("{database}.{name}");
        let collected = line("status", "Engine-independent statistics collected");
        let is_well = lines.iter().all(|(kind, _)| *kind != "Error");
        for (kind, text) in (persistent && is_well).then_some(collected).into_iter().chain(lines) {
            listing.push(vec![
                Value::text(&full_name),
                Value::text(operation.name()),
                Value::text(kind),
                Value::text(&text),
            ]);
        }
    }
    listing.send(session, sink)
}

fn maintain(
    session: &mut Session,
    table: &Arc<Table>,
    operation: Operation,
    sink: &mut dyn ResultSink,
) -> Result<Vec<Line>, SqlError> {
    let ok = line("status", "OK");
    Ok(match operation {
        Operation::Check => match check(session, table)? {
            None => vec![ok],
            Some(damage) => vec![("error", damage), line("error", "Corrupt")],
        },
        Operation::Analyze => {
            let interrupt = &session.interrupt;
            table.analyze(|| interrupt.check())?;
            session.instance.database.keep_statistics(table)?;
            vec![ok]
        }
        Operation::Optimize => {
            let def = table.def();
            ddl::rebuild_table(session, &def.database, &def.name, sink)?;
            let note = "Table does not support optimize, doing recreate + analyze instead";
            vec![line("note", note), ok]
        }
        // Answers as MyISAM does. Damaged indexes are repaired by building them again from the rows.
        Operation::Repair => match check(session, table)? {
            None => vec![ok],
            Some(damage) => {
                let def = table.def();
                ddl::rebuild_table(session, &def.database, &def.name, sink)?;
                vec![("warning", damage), ok]
            }
        },
    })
}

fn everything() -> KeyRange {
    KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
}

/// Keeps a table's rows from changing while all of it is read.
fn keep_still<'l>(
    session: &Session,
    locks: &'l crate::locks::MetadataLocks,
    table: &Table,
) -> Result<StatementLocks<'l>, SqlError> {
    let mut held = StatementLocks::new(locks, session.client.id);
    if !session.locked.has_tables() {
        held.lock(session, table.id(), Mode::KeepWritersOut)?;
    }
    Ok(held)
}

/// Reads every row through every index, in both directions: each row must have its entries, and each entry
/// its row. Returns a description of the first damage found.
fn check(session: &Session, table: &Table) -> Result<Option<String>, SqlError> {
    let instance = session.instance.clone();
    let _still = keep_still(session, &instance.locks, table)?;
    let def = table.def();
    let codec = table.row_codec();
    // For each index: the number of keys that the rows should have there, and the sum of the keys' hashes. A
    // sum does not depend on the order.
    let mut expected: Vec<(u64, u64)> = vec![(0, 0); def.indexes.len() + 1];
    let mut key = Vec::new();
    let mut scan = table.scan(Reader::newest(), IndexId(0), everything(), Direction::Forward);
    let mut last: Option<Vec<u8>> = None;
    loop {
        let image = match scan.next_row() {
            Ok(Some(image)) => image,
            Ok(None) => break,
            Err(error) => return Ok(Some(SqlError::from(error).message)),
        };
        session.interrupt.check()?;
        if let Err(corrupt) = codec.validate(image) {
            return Ok(Some(format!("a row is damaged: {corrupt}")));
        }
        let view = codec.view(image);
        for (index, count) in expected.iter_mut().enumerate() {
            key.clear();
            table.key_codec(IndexId(index as u16)).encode_row(&view, &mut key);
            count.0 += 1;
            count.1 = count.1.wrapping_add(hash(&key));
        }
        let primary_key = scan.primary_key();
        if last.as_deref().is_some_and(|last| last >= primary_key) {
            return Ok(Some("rows are not in the order of their keys".to_owned()));
        }
        last = Some(primary_key.to_vec());
    }
    for (at, definition) in def.indexes.iter().enumerate() {
        let index = IndexId(at as u16 + 1);
        let mut found = (0u64, 0u64);
        let mut scan = table.scan(Reader::newest(), index, everything(), Direction::Forward);
        loop {
            let image = match scan.next_row() {
                Ok(Some(image)) => image,
                Ok(None) => break,
                Err(error) => return Ok(Some(SqlError::from(error).message)),
            };
            session.interrupt.check()?;
            key.clear();
            table.key_codec(index).encode_row(&codec.view(image), &mut key);
            found.0 += 1;
            found.1 = found.1.wrapping_add(hash(&key));
        }
        let (rows, hashes) = expected[index.0 as usize];
        if found.0 != rows {
            let text = format!("index '{}' leads to {} rows, the table has {rows}", definition.name, found.0);
            return Ok(Some(text));
        }
        if found.1 != hashes {
            return Ok(Some(format!("index '{}' leads to other rows than there are", definition.name)));
        }
    }
    Ok(None)
}

/// FNV-1a, spread.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ hash >> 29
}

/// CHECKSUM TABLE t, ... [QUICK
/// EXTENDED], behind CHECKSUM. The result is the sum of the rows' checksums, so it does not depend on their
/// order.
pub(crate) fn checksum(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let names = tables(session, words)?;
    let quick = words.accept("QUICK");
    let _ = !quick && words.accept("EXTENDED");
    words.end()?;
    for (database, name) in &names {
        session.check_some(Rights::SELECT, database, name)?;
    }
    session.state.warnings.forget_old();
    let mut listing = Listing::new([("Table", characters(128)), ("Checksum", number())]);
    for (database, name) in names {
        let sum = session.table_to_use(&database, &name).and_then(|table| match quick {
            true => Ok(Value::Null),
            false => sum_of_rows(session, &table).map(Value::UInt),
        });
        let sum = match sum {
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::UnknownDatabase | ErrorKind::TableNotLocked | ErrorKind::NoSuchTable
                ) =>
            {
                session.state.warnings.push(crate::Level::Error, error.kind, error.message);
                Value::Null
            }
            sum => sum?,
        };
        listing.push(vec![Value::text(format!("{database}.{name}")), sum]);
    }
    listing.send(session, sink)
}

fn sum_of_rows(session: &mut Session, table: &Arc<Table>) -> Result<u64, SqlError> {
    let alias = table.def().name.clone();
    let dependency = crate::plan::plan::Dependency { table: table.clone(), alias, version: table.version() };
    session.read_tables(&[dependency], |session, reader| {
        let mut sum = 0u32;
        let mut scan = table.scan(reader, IndexId(0), everything(), Direction::Forward);
        while let Some(image) = scan.next_row()? {
            session.interrupt.check()?;
            sum = sum.wrapping_add(hash(image) as u32);
        }
        Ok(u64::from(sum))
    })
}
