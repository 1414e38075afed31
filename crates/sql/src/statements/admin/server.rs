//! FLUSH and KILL.

use crate::accounts::Rights;
use crate::host::Kill;
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, ResultSink, Session, SqlError};

/// FLUSH, for everything that it can flush.
pub(crate) fn flush(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let _ = words.accept("NO_WRITE_TO_BINLOG") || words.accept("LOCAL");
    let before = words.error();
    session.access.check_any_global(Rights::RELOAD)?;
    loop {
        let what = words.name()?.to_ascii_uppercase();
        match what.as_str() {
            "STATUS" => {
                session.instance.status.flush(&mut session.counters);
                session.instance.database.caches().reset_counters();
            }
            // These words must be the only ones in the statement.
            "TABLES" | "TABLE" => {
                crate::statements::locks::flush_tables(session, words)?;
                return session.done(0, String::new(), sink);
            }
            // Nothing of these is held in memory.
            "LOGS" => flush_slow_log(session),
            "SLOW" => {
                words.expect("LOGS")?;
                flush_slow_log(session);
            }
            "PRIVILEGES" => {
                if session.instance.accounts.are_on() {
                    super::accounts::reload(&session.instance)?;
                }
                if let Some(host) = session.instance.host() {
                    host.flush_privileges();
                }
            }
            "SSL" => {
                if let Some(host) = session.instance.host() {
                    host.reload_tls()?;
                }
            }
            "USER_RESOURCES" => {
                if let Some(host) = session.instance.host() {
                    host.forget_usage();
                }
            }
            "HOSTS" | "QUERY_CACHE" => {}
            "QUERY" => words.expect("CACHE")?,
            "ERROR" | "GENERAL" | "BINARY" | "ENGINE" | "RELAY" => words.expect("LOGS")?,
            _ => return Err(before),
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    session.done(0, String::new(), sink)
}

fn flush_slow_log(session: &Session) {
    if let Some(host) = session.instance.host() {
        host.flush_slow_log();
    }
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
    if !session.access.global.intersects(Rights::CONNECTION_ADMIN | Rights::SUPER) {
        // A session is not told of a connection that it may not see.
        let processes = host.processes();
        let Some(process) = processes.iter().find(|process| process.id == id) else {
            return Err(unknown_thread(&id.to_string()));
        };
        if process.user != session.client.user {
            let text = format!("You are not owner of thread {id}");
            return Err(SqlError::new(ErrorKind::KillDenied, text));
        }
    }
    host.kill(id, what)?;
    // If the session kills itself, that takes effect at once.
    session.interrupt.check()?;
    session.done(0, String::new(), sink)
}

fn unknown_thread(id: &str) -> SqlError {
    SqlError::new(ErrorKind::UnknownThread, format!("Unknown thread id: {id}"))
}
