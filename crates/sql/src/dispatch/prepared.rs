//! PREPARE, EXECUTE and DEALLOCATE PREPARE: prepared statements that have a name, beside those that clients
//! know by a number.

use crate::Session;
use crate::statements::set;
use crate::text::parse::{OtherStatement, Word, Words};
use crate::{ErrorKind, ResultSink, SqlError};
use types::{Value, ValueRef};

/// 1295 for statements that work on prepared statements themselves.
pub(crate) fn check_preparable(statement: &OtherStatement) -> Result<(), SqlError> {
    let is_one_of_these = match statement.word.as_str() {
        "PREPARE" | "EXECUTE" | "DEALLOCATE" => true,
        "DROP" => {
            let mut words = statement.words()?;
            words.next();
            words.is("PREPARE")
        }
        _ => false,
    };
    if is_one_of_these {
        let text = "This command is not supported in the prepared statement protocol yet";
        return Err(SqlError::new(ErrorKind::NotPreparable, text));
    }
    Ok(())
}

fn unknown(name: &str, command: &str) -> SqlError {
    SqlError::new(
        ErrorKind::UnknownStatementHandler,
        format!("Unknown prepared statement handler ({name}) given to {command}"),
    )
}

/// PREPARE name FROM 'statement', behind the first word. What had the name before goes even if the new
/// statement is none.
pub(crate) fn prepare(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let name = words.name()?.to_lowercase();
    words.expect("FROM")?;
    let text = statement_text(session, words)?;
    words.end()?;
    if let Some(id) = session.prepared.by_name.remove(&name) {
        session.forget_prepared(id);
    }
    let id = session.prepare_text(text.as_bytes())?.id;
    session.prepared.by_name.insert(name, id);
    session.note_state();
    session.done(0, "Statement prepared".to_owned(), sink)
}

/// EXECUTE {name | IMMEDIATE 'statement'} [USING value, ...], behind the first word.
pub(crate) fn execute(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let is_name = match words.peek_second() {
        Word::End => true,
        Word::Symbol(symbol) => symbol == ";",
        Word::Bare(word) => word.eq_ignore_ascii_case("USING"),
        _ => false,
    };
    if is_name || !words.accept("IMMEDIATE") {
        let name = words.name()?;
        let values = values(session, words)?;
        let Some(id) = session.prepared.by_name.get(&name.to_lowercase()).copied() else {
            return Err(unknown(&name, "EXECUTE"));
        };
        return execute_with(session, id, &values, sink);
    }
    let text = statement_text(session, words)?;
    let values = values(session, words)?;
    let id = session.prepare_text(text.as_bytes())?.id;
    let result = execute_with(session, id, &values, sink);
    // The audit log is told of both.
    if let Some(trail) = &mut session.trail {
        trail.is_told = false;
    }
    session.forget_prepared(id);
    result
}

/// {DEALLOCATE | DROP} PREPARE name, behind the first word.
pub(crate) fn deallocate(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    words.expect("PREPARE")?;
    let name = words.name()?;
    words.end()?;
    let id = session
        .prepared
        .by_name
        .remove(&name.to_lowercase())
        .ok_or_else(|| unknown(&name, "DEALLOCATE PREPARE"))?;
    session.forget_prepared(id);
    session.note_state();
    session.done(0, String::new(), sink)
}

/// 1970 for an expression that reads tables.
fn check_subqueries(words: &Words<'_>, clause: &str) -> Result<(), SqlError> {
    let mut words = words.clone();
    while *words.peek() != Word::End {
        if words.accept("SELECT") {
            let text = format!("{clause} does not support subqueries or stored functions");
            return Err(SqlError::new(ErrorKind::TooManyPreparedParameters, text));
        }
        words.next();
    }
    Ok(())
}

/// The text of the statement, which is the value of an expression.
fn statement_text(session: &mut Session, words: &mut Words<'_>) -> Result<String, SqlError> {
    check_subqueries(words, "PREPARE..FROM")?;
    let mut text = String::new();
    crate::text::push_text(set::value(session, words)?.as_ref(), &mut text);
    Ok(text)
}

/// The values behind USING.
fn values(session: &mut Session, words: &mut Words<'_>) -> Result<Vec<Value>, SqlError> {
    let mut values = Vec::new();
    if words.accept("USING") {
        check_subqueries(words, "EXECUTE..USING")?;
        values.push(set::value(session, words)?);
        while words.accept_symbol(",") {
            values.push(set::value(session, words)?);
        }
    }
    words.end()?;
    Ok(values)
}

fn execute_with(
    session: &mut Session,
    id: u32,
    values: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    session.execute_by_id(id, &values, "EXECUTE", sink)
}
