//! SHOW, DESCRIBE, HELP.

mod create;
mod filter;
mod help;
pub(crate) mod infoschema;
mod listing;
mod objects;
mod tables;

pub(crate) use create::default_text;
pub(crate) use filter::like;
pub(crate) use help::help;
pub(crate) use listing::{Listing, characters, number};
pub(crate) use tables::{describe, extra_text, index_rows, rights_text};

use crate::text::parse::{Word, Words};
use crate::{ResultSink, Session, SqlError};

/// SHOW, behind that word.
pub(crate) fn show(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if !keeps_warnings(words) {
        session.state.warnings.forget_old();
    }
    if words.accept("CREATE") {
        return create::show_create(session, words, sink);
    }
    let full = words.accept("FULL");
    if words.accept("TABLES") {
        return tables::show_tables(session, words, full, sink);
    }
    if words.accept("COLUMNS") || words.accept("FIELDS") {
        return tables::show_columns(session, words, full, sink);
    }
    if words.accept("PROCESSLIST") {
        return objects::show_processlist(session, words, full, sink);
    }
    if full {
        return Err(words.error());
    }
    if words.accept_all(&["TABLE", "STATUS"]) {
        return tables::show_table_status(session, words, sink);
    }
    if words.accept("INDEX") || words.accept("INDEXES") || words.accept("KEYS") {
        return tables::show_index(session, words, sink);
    }
    if words.accept_all(&["OPEN", "TABLES"]) {
        return tables::show_open_tables(session, words, sink);
    }
    if words.accept("DATABASES") || words.accept("SCHEMAS") {
        return objects::show_databases(session, words, sink);
    }
    let global = words.accept("GLOBAL");
    if !global {
        let _ = words.accept("SESSION") || words.accept("LOCAL");
    }
    if words.accept("VARIABLES") {
        return objects::show_variables(session, words, global, sink);
    }
    if words.accept("STATUS") {
        return objects::show_status(session, words, global, sink);
    }
    if global {
        return Err(words.error());
    }
    let count = words.is("COUNT") && matches!(words.peek_second(), Word::Symbol(symbol) if symbol == "(");
    if count || words.is("WARNINGS") || words.is("ERRORS") {
        return objects::show_diagnostics(session, words, sink);
    }
    objects::show_other(session, words, sink)
}

/// True if the statement reads no table in MariaDB: the warnings of the statement before it stay.
fn keeps_warnings(words: &Words<'_>) -> bool {
    let mut words = words.clone();
    if words.accept("CREATE") {
        return words.is("DATABASE") || words.is("SCHEMA") || words.is("USER");
    }
    words.accept("FULL");
    ["WARNINGS", "ERRORS", "COUNT", "PROCESSLIST", "PRIVILEGES"].iter().any(|word| words.is(word))
}
