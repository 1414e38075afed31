//! LOCK TABLES, UNLOCK TABLES, FLUSH TABLES.

use crate::accounts::Rights;
use crate::audit::TableUse;
use crate::locks::Mode;
use crate::session::locked::{Named, only_read};
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, ResultSink, Session, SqlError};

/// LOCK TABLES t [[AS] alias] {READ [LOCAL] | [LOW_PRIORITY] WRITE}, ... [WAIT n | NOWAIT], behind LOCK.
pub(crate) fn lock_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if !words.accept("TABLES") {
        words.expect("TABLE")?;
    }
    let mut names: Vec<Named> = Vec::new();
    loop {
        let (database, name) = words.qualified_name()?;
        let database = session.resolve_database(database)?;
        let mut alias = name.clone();
        if words.accept("AS") || !["READ", "WRITE", "LOW_PRIORITY"].iter().any(|mode| words.is(mode)) {
            alias = words.name()?;
        }
        let mode = if words.accept("READ") {
            words.accept("LOCAL");
            Mode::KeepWritersOut
        } else {
            words.accept("LOW_PRIORITY");
            words.expect("WRITE")?;
            words.accept("CONCURRENT");
            Mode::KeepAllOut
        };
        if names.iter().any(|known| known.alias == alias) {
            return Err(SqlError::new(
                ErrorKind::NotUniqueTable,
                format!("Not unique table/alias: '{alias}'"),
            ));
        }
        names.push(Named { database, name, alias, mode });
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    for named in &names {
        session.access.check_database(&named.database, Rights::LOCK_TABLES)?;
        session.check_some(Rights::SELECT, &named.database, &named.name)?;
    }
    let writes = names.iter().any(|named| named.mode == Mode::KeepAllOut);
    if writes {
        session.check_server_takes_changes()?;
        if session.variables.common.tx_read_only {
            return Err(SqlError::read_only_transaction());
        }
    }
    session.implicit_commit()?;
    session.unlock_tables();
    let instance = session.instance.clone();
    if writes {
        session.check_not_locked_out()?;
    }
    let _writing = match writes {
        true => Some(instance.read_lock.write(&session.writing, &session.request())?),
        false => None,
    };
    for named in &names {
        let what = if named.mode == Mode::KeepAllOut { TableUse::Write } else { TableUse::Read };
        session.note_table(what, &named.database, &named.name);
    }
    session.lock_named_again(&names)?;
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
    if session.locked.has_tables() {
        session.implicit_commit()?;
        session.unlock_tables();
    }
    if std::mem::take(&mut session.locked.everything) {
        session.instance.read_lock.unlock();
    }
    session.done(0, String::new(), sink)
}

/// FLUSH TABLES [t, ...] [WITH READ LOCK | FOR EXPORT], behind TABLES.
pub(crate) fn flush_tables(session: &mut Session, words: &mut Words<'_>) -> Result<(), SqlError> {
    let mut names = Vec::new();
    while !matches!(words.peek(), Word::End) && !words.is("WITH") && !words.is("FOR") {
        let (database, name) = words.qualified_name()?;
        let (database, alias) = (session.resolve_database(database)?, name.clone());
        names.push(Named { database, name, alias, mode: Mode::KeepWritersOut });
        if !words.accept_symbol(",") {
            break;
        }
    }
    let export = words.accept_all(&["FOR", "EXPORT"]);
    let locks = export || words.accept_all(&["WITH", "READ", "LOCK"]);
    words.end()?;
    if !locks {
        let is_only_read = |known: &&Named| known.mode == Mode::KeepWritersOut;
        if let Some(known) = session.locked.named().find(is_only_read) {
            return Err(only_read(&known.alias));
        }
        // Nothing to do: tables are always open, and checkpoints write what has to be written.
        return session.implicit_commit();
    }
    session.check_no_locked_tables()?;
    session.implicit_commit()?;
    if names.is_empty() {
        if !session.locked.everything {
            session.instance.read_lock.lock(&session.request())?;
            session.locked.everything = true;
        }
        return Ok(());
    }
    session.lock_named_again(&names)
}
