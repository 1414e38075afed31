//! SHOW of databases, variables, status, warnings and connections, and of kinds of objects that do not exist
//! here.

use super::listing::{Listing, characters, number};
use crate::accounts::Rights;
use crate::statements::show::infoschema::{self, status};
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, Level, ResultSink, Session, SqlError};
use types::{ColumnType, Value};

fn signed() -> ColumnType {
    ColumnType::Int { bytes: 8, unsigned: false }
}

fn finish(
    session: &mut Session,
    words: &mut Words<'_>,
    mut listing: Listing,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    listing.filter(words)?;
    words.end()?;
    listing.send(session, sink)
}

pub(super) fn show_databases(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut ahead = words.clone();
    let pattern = if ahead.accept("LIKE") { ahead.string().ok() } else { None };
    let heading = pattern.map_or("Database".to_owned(), |pattern| format!("Database ({pattern})"));
    let mut listing = Listing::new([(heading, characters(64))]);
    for name in infoschema::database_names(session) {
        listing.push(vec![Value::text(name)]);
    }
    finish(session, words, listing, sink)
}

fn pairs(rows: Vec<(String, String)>) -> Listing {
    let mut listing = Listing::new([("Variable_name", characters(64)), ("Value", characters(4096))]);
    for (name, value) in rows {
        listing.push(vec![Value::text(name), Value::text(value)]);
    }
    listing
}

pub(super) fn show_variables(
    session: &mut Session,
    words: &mut Words<'_>,
    global: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let listing = pairs(infoschema::show_variables(session, global));
    finish(session, words, listing, sink)
}

pub(super) fn show_status(
    session: &mut Session,
    words: &mut Words<'_>,
    global: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let listing = pairs(status::rows(session, global));
    finish(session, words, listing, sink)
}

pub(super) fn show_processlist(
    session: &mut Session,
    words: &mut Words<'_>,
    full: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut listing = Listing::new([
        ("Id", number()),
        ("User", characters(128)),
        ("Host", characters(64)),
        ("db", characters(64)),
        ("Command", characters(16)),
        ("Time", signed()),
        ("State", characters(64)),
        ("Info", characters(4096)),
        ("Progress", ColumnType::Decimal { precision: 7, scale: 3, unsigned: false }),
    ]);
    for row in infoschema::process_rows(session, full) {
        listing.push(row);
    }
    words.end()?;
    listing.send(session, sink)
}

/// SHOW WARNINGS, SHOW ERRORS, SHOW COUNT(*) WARNINGS: about the statement before. Its warnings are kept.
pub(super) fn show_diagnostics(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if words.accept("COUNT") {
        words.expect_symbol("(")?;
        words.expect_symbol("*")?;
        words.expect_symbol(")")?;
        let errors = words.accept("ERRORS");
        if !errors {
            words.expect("WARNINGS")?;
        }
        words.end()?;
        let (heading, count) = if errors {
            ("@@session.error_count", session.state.warnings.error_count())
        } else {
            ("@@session.warning_count", session.state.warnings.count())
        };
        let mut listing = Listing::new([(heading, number())]);
        listing.push(vec![Value::UInt(count)]);
        return listing.send(session, sink);
    }
    let errors_only = words.accept("ERRORS");
    if !errors_only {
        words.expect("WARNINGS")?;
    }
    let (skip, take) = limit(words)?;
    words.end()?;
    let mut listing =
        Listing::new([("Level", characters(7)), ("Code", number()), ("Message", characters(512))]);
    let wanted = session
        .state
        .warnings
        .list()
        .iter()
        .filter(|warning| !errors_only || warning.level == Level::Error)
        .skip(skip)
        .take(take);
    for warning in wanted {
        listing.push(vec![
            Value::text(warning.level.name()),
            Value::UInt(warning.kind.code().into()),
            Value::text(&warning.message),
        ]);
    }
    listing.send(session, sink)
}

/// LIMIT [skip,] count or LIMIT count OFFSET skip.
fn limit(words: &mut Words<'_>) -> Result<(usize, usize), SqlError> {
    if !words.accept("LIMIT") {
        return Ok((0, usize::MAX));
    }
    let number = |words: &mut Words<'_>| match words.next() {
        Word::Number(text) => text.parse().map_err(|_| words.error()),
        _ => Err(words.error()),
    };
    let first = number(words)?;
    if words.accept_symbol(",") {
        return Ok((first, number(words)?));
    }
    if words.accept("OFFSET") {
        return Ok((number(words)?, first));
    }
    Ok((0, first))
}

/// The headings of results that are always empty.
static EMPTY: &[(&[&str], &[&str])] = &[
    (
        &["TRIGGERS"],
        &[
            "Trigger",
            "Event",
            "Table",
            "Statement",
            "Timing",
            "Created",
            "sql_mode",
            "Definer",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
    ),
    (
        &["EVENTS"],
        &[
            "Db",
            "Name",
            "Definer",
            "Time zone",
            "Type",
            "Execute at",
            "Interval value",
            "Interval field",
            "Starts",
            "Ends",
            "Status",
            "Originator",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
    ),
    (&["PROCEDURE", "STATUS"], ROUTINE),
    (&["FUNCTION", "STATUS"], ROUTINE),
    (&["PACKAGE", "STATUS"], ROUTINE),
    (&["PACKAGE", "BODY", "STATUS"], ROUTINE),
    (&["MASTER", "STATUS"], &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]),
    (&["BINLOG", "STATUS"], &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]),
    (&["SLAVE", "STATUS"], &["Slave_IO_State", "Master_Host", "Master_User", "Master_Port"]),
    (&["REPLICA", "STATUS"], &["Slave_IO_State", "Master_Host", "Master_User", "Master_Port"]),
    (&["ALL", "SLAVES", "STATUS"], &["Connection_name", "Slave_SQL_State", "Slave_IO_State", "Master_Host"]),
    (&["SLAVE", "HOSTS"], &["Server_id", "Host", "Port", "Master_id"]),
    (&["PROFILES"], &["Query_ID", "Duration", "Query"]),
    (&["PROFILE"], &["Status", "Duration"]),
];

const ROUTINE: &[&str] = &[
    "Db",
    "Name",
    "Type",
    "Definer",
    "Modified",
    "Created",
    "Security_type",
    "Comment",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];

pub(super) fn show_other(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    for (keywords, headings) in EMPTY {
        if words.accept_all(keywords) {
            if words.accept("FROM") || words.accept("IN") {
                words.name()?;
            }
            return finish(session, words, Listing::of_texts(headings), sink);
        }
    }
    words.accept("STORAGE");
    if words.accept("ENGINES") {
        let headings = ["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"];
        let mut listing = Listing::new(headings.map(|heading| (heading, characters(160))));
        listing.rows = infoschema::engine_rows(session);
        words.end()?;
        return listing.send(session, sink);
    }
    if words.accept("ENGINE") {
        session.access.check_any_global(Rights::PROCESS)?;
        let engine = crate::variables::assign::engine_named(&words.name()?)?;
        let mut listing =
            Listing::new([("Type", characters(10)), ("Name", characters(512)), ("Status", characters(1024))]);
        if words.accept("MUTEX") {
            // Other engines exist only by name. Scripts ask for InnoDB's status.
            if matches!(engine, "Latchwork" | "InnoDB") {
                listing.rows = infoschema::latch_rows();
            }
        } else {
            let _ = words.accept("STATUS") || words.accept("LOGS");
        }
        words.end()?;
        return listing.send(session, sink);
    }
    if words.accept_all(&["CHARACTER", "SET"]) || words.accept("CHARSET") {
        let mut listing = Listing::new([
            ("Charset", characters(32)),
            ("Description", characters(60)),
            ("Default collation", characters(64)),
            ("Maxlen", signed()),
        ]);
        listing.rows = infoschema::charset_rows(true);
        return finish(session, words, listing, sink);
    }
    if words.accept("COLLATION") {
        let mut listing = Listing::new([
            ("Collation", characters(64)),
            ("Charset", characters(32)),
            ("Id", signed()),
            ("Default", characters(3)),
            ("Compiled", characters(3)),
            ("Sortlen", signed()),
        ]);
        listing.rows = infoschema::collation_rows();
        return finish(session, words, listing, sink);
    }
    if words.accept("PLUGINS") {
        let mut listing = Listing::of_texts(&["Name", "Status", "Type", "Library", "License"]);
        listing.rows = infoschema::plugin_rows(session);
        words.end()?;
        return listing.send(session, sink);
    }
    if words.accept("PRIVILEGES") {
        let mut listing = Listing::of_texts(&["Privilege", "Context", "Comment"]);
        listing.push(vec![
            Value::text("All"),
            Value::text("Server Admin"),
            Value::text("There are no single privileges yet: every account has all of them"),
        ]);
        words.end()?;
        return listing.send(session, sink);
    }
    if words.accept_all(&["BINARY", "LOGS"]) || words.accept_all(&["MASTER", "LOGS"]) {
        return Err(SqlError::new(ErrorKind::BinaryLogOff, "You are not using binary logging"));
    }
    Err(words.error())
}
