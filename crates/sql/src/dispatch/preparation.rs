//! What a preparation tells of a statement that has no plan: the tables, columns and variables that it names
//! and that do not exist. Other errors are told when the statement runs.

use crate::plan::bind::SlotInfo;
use crate::text::parse::{self, OtherStatement, Word, Words};
use crate::text::{Scan, ScanEnd, SlotKind};
use crate::{ErrorKind, Session, SqlError, variables};

/// # Errors
/// 1146, 1054 and their like.
pub(super) fn check_names(session: &Session, statement: &OtherStatement) -> Result<(), SqlError> {
    let mut words = statement.words()?;
    words.next();
    let checked = match statement.word.as_str() {
        "DO" => check_query(session, &format!("SELECT {}", words.rest()), &words),
        "SET" => check_assignments(session, &mut words),
        "EXPLAIN" | "DESCRIBE" | "DESC" => {
            skip_until(&mut words, &["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"]);
            check_query(session, words.rest(), &words)
        }
        "CREATE" => check_created(session, &mut words),
        "SHOW" if words.accept_all(&["CREATE", "TABLE"]) => check_table(session, &mut words),
        _ => Ok(()),
    };
    match checked {
        Err(error) if is_about_names(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_about_names(error: &SqlError) -> bool {
    matches!(
        error.kind,
        ErrorKind::NoSuchTable
            | ErrorKind::UnknownTable
            | ErrorKind::UnknownColumn
            | ErrorKind::UnknownDatabase
            | ErrorKind::UnknownSystemVariable
            | ErrorKind::NoDatabase
    )
}

/// Skips words until one of these comes, or the end.
fn skip_until(words: &mut Words<'_>, wanted: &[&str]) {
    while *words.peek() != Word::End && !wanted.iter().any(|word| words.is(word)) {
        words.next();
    }
}

/// Plans a query or a change of rows, as if its parameters were integers.
fn check_query(session: &Session, text: &str, words: &Words<'_>) -> Result<(), SqlError> {
    let mut scan = Scan::default();
    let mode = words.mode();
    if text.is_empty() || scan.scan(b"", text.as_bytes(), mode) != ScanEnd::Whole {
        return Ok(());
    }
    let shape = scan.parser_text();
    let Ok(shape) = std::str::from_utf8(&shape) else { return Ok(()) };
    let slots: Vec<SlotInfo> = scan
        .slots
        .iter()
        .map(|slot| SlotInfo { kind: slot.kind.unwrap_or(SlotKind::Int), list: slot.list })
        .collect();
    session.plan_parsed(&parse::parse_ast(shape, mode)?, &slots, Vec::new()).map(drop)
}

/// SET: the queries and names in what user variables are given, and the name of the system variable.
fn check_assignments(session: &Session, words: &mut Words<'_>) -> Result<(), SqlError> {
    let all = words.rest();
    let Word::Bare(first) = words.peek().clone() else { return Ok(()) };
    if first.starts_with('@') && !first.starts_with("@@") {
        return if assigns_user_variables_only(words) {
            // As comparisons, they name the same things.
            check_query(session, &format!("SELECT {all}"), words)
        } else {
            Ok(())
        };
    }
    let has_scope = words.accept("GLOBAL") || words.accept("SESSION") || words.accept("LOCAL");
    let (Word::Bare(name), Word::Symbol(equals)) = (words.peek(), words.peek_second()) else { return Ok(()) };
    let name = match name.strip_prefix("@@") {
        Some(name) if !has_scope => name,
        _ => name.as_str(),
    };
    let is_variable =
        !["PASSWORD", "CHARSET", "NAMES", ""].iter().any(|word| word.eq_ignore_ascii_case(name));
    if matches!(equals.as_str(), "=" | ":=") && is_variable && variables::find(name).is_none() {
        return Err(variables::unknown(name));
    }
    Ok(())
}

fn assigns_user_variables_only(words: &Words<'_>) -> bool {
    let mut words = words.clone();
    let mut depth = 0;
    loop {
        match words.next() {
            Word::End => return true,
            Word::Symbol(symbol) if symbol == "(" => depth += 1,
            Word::Symbol(symbol) if symbol == ")" => depth -= 1,
            Word::Symbol(symbol) if symbol == "," && depth == 0 => match words.peek() {
                Word::Bare(word) if word.starts_with('@') && !word.starts_with("@@") => {}
                _ => return false,
            },
            _ => {}
        }
    }
}

/// CREATE TABLE ... LIKE, and CREATE TABLE ... SELECT.
fn check_created(session: &Session, words: &mut Words<'_>) -> Result<(), SqlError> {
    words.accept_all(&["OR", "REPLACE"]);
    words.accept("TEMPORARY");
    if !words.accept("TABLE") {
        return Ok(());
    }
    words.accept_all(&["IF", "NOT", "EXISTS"]);
    words.qualified_name()?;
    if words.accept("LIKE") {
        return check_table(session, words);
    }
    skip_until(words, &["SELECT"]);
    check_query(session, words.rest(), words)
}

fn check_table(session: &Session, words: &mut Words<'_>) -> Result<(), SqlError> {
    let (database, table) = words.qualified_name()?;
    let database = session.resolve_database(database)?;
    if crate::names::virtual_database(&database).is_some() {
        return Ok(());
    }
    session.table(&database, &table).map(drop)
}
