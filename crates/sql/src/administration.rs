//! Transactions, locks, FLUSH, KILL, table maintenance.
//!
//! Until there are transactions, BEGIN, COMMIT and ROLLBACK behave as they do over MyISAM tables: accepted, and a
//! ROLLBACK that cannot undo what was changed says so in warning 1196.

use crate::host::Kill;
use crate::parse::{Word, Words};
use crate::show::{Listing, characters};
use crate::{ResultSink, Session, SqlError};
use types::Value;

/// What a session remembers of the transaction that it believes to be in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Transaction {
    /// Between BEGIN and COMMIT, or autocommit is off and rows were changed.
    pub open: bool,
    /// Rows were changed that ROLLBACK would have to bring back.
    pub changed: bool,
    savepoints: Vec<String>,
}

impl Session {
    /// A statement changed rows.
    pub(crate) fn note_change(&mut self) {
        let transaction = &mut self.state.transaction;
        if transaction.open || !self.variables.common.autocommit {
            transaction.open = true;
            transaction.changed = true;
        }
    }

    /// The limits of the warnings follow their variables.
    pub(crate) fn after_set(&mut self) {
        let common = &self.variables.common;
        self.state.warnings.kept_max = common.max_error_count;
        self.state.warnings.notes = common.sql_notes;
    }

    fn end_transaction(&mut self, rolled_back: bool) {
        let transaction = std::mem::take(&mut self.state.transaction);
        if rolled_back && transaction.changed {
            self.warn_not_rolled_back();
        }
    }

    fn warn_not_rolled_back(&mut self) {
        self.state.warnings.warn(1196, "Some non-transactional changed tables couldn't be rolled back");
    }
}

/// BEGIN [WORK] and START TRANSACTION [characteristics].
pub(crate) fn begin(
    session: &mut Session,
    words: &mut Words<'_>,
    start: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if start {
        if words.is("SLAVE") || words.is("REPLICA") || words.is("ALL") {
            return Err(SqlError::not_supported("replication"));
        }
        words.expect("TRANSACTION")?;
        loop {
            let known = words.accept_all(&["WITH", "CONSISTENT", "SNAPSHOT"])
                || words.accept_all(&["READ", "ONLY"])
                || words.accept_all(&["READ", "WRITE"]);
            if !known || !words.accept_symbol(",") {
                break;
            }
        }
    } else {
        words.accept("WORK");
        if words.accept_all(&["NOT", "ATOMIC"]) {
            return Err(SqlError::not_supported("compound statements"));
        }
    }
    words.end()?;
    session.end_transaction(false);
    session.state.transaction.open = true;
    session.done(0, String::new(), sink)
}

/// [WORK] [AND [NO] CHAIN] [[NO] RELEASE]: true if a new transaction begins.
fn completion(words: &mut Words<'_>) -> Result<bool, SqlError> {
    words.accept("WORK");
    let mut chain = false;
    if words.accept("AND") {
        chain = !words.accept("NO");
        words.expect("CHAIN")?;
    }
    words.accept("NO");
    words.accept("RELEASE");
    words.end()?;
    Ok(chain)
}

/// COMMIT, behind that word.
pub(crate) fn commit(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let chain = completion(words)?;
    session.end_transaction(false);
    session.state.transaction.open = chain;
    session.done(0, String::new(), sink)
}

/// ROLLBACK, and ROLLBACK TO [SAVEPOINT] name.
pub(crate) fn rollback(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut ahead = words.clone();
    ahead.accept("WORK");
    if ahead.accept("TO") {
        ahead.accept("SAVEPOINT");
        let name = ahead.name()?;
        ahead.end()?;
        let savepoints = &mut session.state.transaction.savepoints;
        let position = savepoint(savepoints, &name)?;
        savepoints.truncate(position + 1);
        if session.state.transaction.changed {
            session.warn_not_rolled_back();
        }
        return session.done(0, String::new(), sink);
    }
    let chain = completion(words)?;
    session.end_transaction(true);
    session.state.transaction.open = chain;
    session.done(0, String::new(), sink)
}

fn savepoint(savepoints: &[String], name: &str) -> Result<usize, SqlError> {
    savepoints
        .iter()
        .position(|other| other.eq_ignore_ascii_case(name))
        .ok_or_else(|| SqlError::new(1305, b"42000", format!("SAVEPOINT {name} does not exist")))
}

/// SAVEPOINT name, and with `release` RELEASE SAVEPOINT name.
pub(crate) fn set_savepoint(
    session: &mut Session,
    words: &mut Words<'_>,
    release: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if release {
        words.expect("SAVEPOINT")?;
    }
    let name = words.name()?;
    words.end()?;
    let transaction = &mut session.state.transaction;
    if release {
        let position = savepoint(&transaction.savepoints, &name)?;
        transaction.savepoints.truncate(position);
    } else if transaction.open {
        transaction.savepoints.retain(|other| !other.eq_ignore_ascii_case(&name));
        transaction.savepoints.push(name);
    }
    session.done(0, String::new(), sink)
}

/// LOCK TABLES: the tables must be there; nothing is locked.
pub(crate) fn lock_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if !words.accept("TABLES") {
        words.expect("TABLE")?;
    }
    loop {
        let (database, name) = words.qualified_name()?;
        let database = session.resolve_database(database)?;
        session.table(&database, &name)?;
        if words.accept("AS") || !["READ", "WRITE", "LOW_PRIORITY"].iter().any(|mode| words.is(mode)) {
            words.name()?;
        }
        if words.accept("READ") {
            words.accept("LOCAL");
        } else {
            words.accept("LOW_PRIORITY");
            words.expect("WRITE")?;
            words.accept("CONCURRENT");
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    session.state.warnings.note(1235, "LOCK TABLES is accepted and locks nothing yet");
    session.done(0, String::new(), sink)
}

/// UNLOCK TABLES, behind UNLOCK.
pub(crate) fn unlock_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if !words.accept("TABLES") {
        words.expect("TABLE")?;
    }
    words.end()?;
    session.done(0, String::new(), sink)
}

/// FLUSH of this and that.
pub(crate) fn flush(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let _ = words.accept("NO_WRITE_TO_BINLOG") || words.accept("LOCAL");
    let before = words.error();
    loop {
        let what = words.name()?.to_ascii_uppercase();
        match what.as_str() {
            "STATUS" => {
                session.instance.status.flush();
                crate::status::reset_cache_counters(session);
            }
            "TABLES" | "TABLE" => flush_tables(session, words)?,
            // Nothing of theirs is kept in memory.
            "PRIVILEGES" | "LOGS" | "HOSTS" | "USER_RESOURCES" | "QUERY_CACHE" => {}
            "QUERY" => words.expect("CACHE")?,
            "ERROR" | "GENERAL" | "SLOW" | "BINARY" | "ENGINE" | "RELAY" => words.expect("LOGS")?,
            _ => return Err(before),
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    session.done(0, String::new(), sink)
}

fn flush_tables(session: &mut Session, words: &mut Words<'_>) -> Result<(), SqlError> {
    while !matches!(words.peek(), Word::End) && !words.is("WITH") && !words.is("FOR") {
        let (database, name) = words.qualified_name()?;
        let database = session.resolve_database(database)?;
        session.table(&database, &name)?;
        if !words.accept_symbol(",") {
            break;
        }
    }
    if words.accept_all(&["WITH", "READ", "LOCK"]) || words.accept_all(&["FOR", "EXPORT"]) {
        session.state.warnings.note(1235, "FLUSH TABLES ... WITH READ LOCK locks nothing yet");
    }
    Ok(())
}

/// KILL [HARD | SOFT] [CONNECTION | QUERY] id.
pub(crate) fn kill(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let _ = words.accept("HARD") || words.accept("SOFT");
    let what = if words.accept("QUERY") {
        Kill::Statement
    } else {
        words.accept("CONNECTION");
        Kill::Connection
    };
    let before = words.error();
    let id: u64 = match words.next() {
        Word::Number(text) => text.parse().map_err(|_| unknown_thread(&text))?,
        _ => return Err(before),
    };
    words.end()?;
    let Some(host) = session.instance.host() else { return Err(unknown_thread(&id.to_string())) };
    host.kill(id, what)?;
    // A KILL of oneself takes effect at once.
    session.interrupt.check()?;
    session.done(0, String::new(), sink)
}

fn unknown_thread(id: &str) -> SqlError {
    SqlError::new(1094, b"HY000", format!("Unknown thread id: {id}"))
}

/// ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.
pub(crate) fn maintain(
    session: &mut Session,
    words: &mut Words<'_>,
    operation: &str,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let _ = words.accept("NO_WRITE_TO_BINLOG") || words.accept("LOCAL");
    if !words.accept("TABLE") {
        words.expect("TABLES")?;
    }
    let mut listing = Listing::new([
        ("Table", characters(128)),
        ("Op", characters(10)),
        ("Msg_type", characters(10)),
        ("Msg_text", characters(4096)),
    ]);
    loop {
        let (database, name) = words.qualified_name()?;
        let database = session.resolve_database(database)?;
        let full_name = format!("{database}.{name}");
        let mut push = |kind: &str, text: &str| {
            listing.push(vec![
                Value::text(&full_name),
                Value::text(operation),
                Value::text(kind),
                Value::text(text),
            ]);
        };
        match session.table(&database, &name) {
            Err(error) => {
                push("Error", &error.message);
                push("status", "Operation failed");
            }
            Ok(table) if operation == "check" => match crate::dml::check_table(&table) {
                Ok(()) => push("status", "OK"),
                Err(error) => {
                    push("error", &error.message);
                    push("error", "Corrupt");
                }
            },
            Ok(_) if operation == "repair" => {
                push("note", "The storage engine for the table doesn't support repair");
            }
            Ok(_) => push("status", "OK"),
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    const OPTIONS: &[&str] =
        &["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM", "FORCE", "PERSISTENT"];
    while OPTIONS.iter().any(|option| words.accept(option)) || words.accept_all(&["FOR", "UPGRADE"]) {}
    words.end()?;
    listing.send(session, sink)
}
