//! BEGIN, COMMIT, ROLLBACK, SAVEPOINT, and the clauses of SET TRANSACTION.

use crate::session::transaction::{Beginning, Characteristics};
use crate::text::parse::Words;
use crate::variables::Completes;
use crate::{ErrorKind, ResultSink, Session, SqlError};
use engine::Isolation;

/// Reads READ ONLY or READ WRITE into `known`. False if neither comes next, or if one was read before.
fn read_only(words: &mut Words<'_>, known: &mut Option<bool>) -> bool {
    if known.is_some() {
        return false;
    }
    *known = match () {
        () if words.accept_all(&["READ", "ONLY"]) => Some(true),
        () if words.accept_all(&["READ", "WRITE"]) => Some(false),
        () => return false,
    };
    true
}

/// The clauses of SET TRANSACTION.
pub(crate) fn characteristics(words: &mut Words<'_>) -> Result<Characteristics, SqlError> {
    let mut found = Characteristics::default();
    loop {
        if found.isolation.is_none() && words.accept_all(&["ISOLATION", "LEVEL"]) {
            let levels = [
                (&["READ", "UNCOMMITTED"][..], Isolation::ReadUncommitted),
                (&["READ", "COMMITTED"], Isolation::ReadCommitted),
                (&["REPEATABLE", "READ"], Isolation::RepeatableRead),
                (&["SERIALIZABLE"], Isolation::Serializable),
            ];
            let level = levels.iter().find(|(keywords, _)| words.accept_all(keywords));
            found.isolation = Some(level.ok_or_else(|| words.error())?.1);
        } else if !read_only(words, &mut found.read_only) {
            return Err(words.error());
        }
        if !words.accept_symbol(",") {
            return Ok(found);
        }
    }
}

/// BEGIN [WORK].
pub(crate) fn begin(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    words.accept("WORK");
    if words.accept_all(&["NOT", "ATOMIC"]) {
        return Err(SqlError::not_supported("compound statements"));
    }
    words.end()?;
    start_with(session, None, false, sink)
}

/// START TRANSACTION [READ ONLY | READ WRITE | WITH CONSISTENT SNAPSHOT], ...
pub(crate) fn start(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if words.is("SLAVE") || words.is("REPLICA") || words.is("ALL") {
        return Err(SqlError::not_supported("replication"));
    }
    words.expect("TRANSACTION")?;
    let mut only = None;
    let mut snapshot = false;
    if words.is("READ") || words.is("WITH") {
        loop {
            if !snapshot && words.accept_all(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
                snapshot = true;
            } else if !read_only(words, &mut only) {
                return Err(words.error());
            }
            if !words.accept_symbol(",") {
                break;
            }
        }
    }
    words.end()?;
    start_with(session, only, snapshot, sink)
}

fn start_with(
    session: &mut Session,
    read_only: Option<bool>,
    snapshot: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let next = session.state.transaction.next;
    session.implicit_commit()?;
    session.unlock_tables();
    session.state.transaction.next = next;
    session.begin_transaction(read_only)?;
    let asked = Characteristics { read_only: read_only.or(next.read_only), ..next };
    session.state.transaction.begun_with = Some(Beginning { asked, snapshot });
    if snapshot {
        session.state.transaction.did.read = true;
        session.engine()?.open_snapshot();
        session.note_use();
    }
    session.done(0, String::new(), sink)
}

/// What happens after the end of a transaction.
struct Completion {
    chain: bool,
    release: bool,
}

/// [WORK] [AND [NO] CHAIN] [[NO] RELEASE]. `completion_type` decides what is not written.
fn completion(session: &Session, words: &mut Words<'_>) -> Result<Completion, SqlError> {
    words.accept("WORK");
    let mut chain = None;
    let mut release = None;
    if words.accept("AND") {
        chain = Some(!words.accept("NO"));
        words.expect("CHAIN")?;
    }
    if chain != Some(true) && words.accept("RELEASE") {
        release = Some(true);
    } else if words.accept_all(&["NO", "RELEASE"]) {
        release = Some(false);
    }
    words.end()?;
    let default = session.variables.common.completion;
    Ok(Completion {
        chain: chain.unwrap_or(default == Completes::Chain && release != Some(true)),
        release: release.unwrap_or(default == Completes::Release && chain != Some(true)),
    })
}

fn end(
    session: &mut Session,
    completion: &Completion,
    keep: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    // A chained transaction has the characteristics of the one before, if there was one.
    let characteristics = match session.state.transaction.open {
        false => Characteristics::default(),
        true => {
            Characteristics { isolation: Some(session.isolation()), read_only: Some(session.is_read_only()) }
        }
    };
    let begun_with = session.state.transaction.begun_with.unwrap_or_default();
    session.end_transaction(keep)?;
    if completion.chain {
        session.state.transaction.next = characteristics;
        session.begin_transaction(None)?;
        session.state.transaction.begun_with = Some(begun_with);
    }
    session.client.released |= completion.release;
    session.done(0, String::new(), sink)
}

/// COMMIT, behind that word.
pub(crate) fn commit(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let completion = completion(session, words)?;
    end(session, &completion, true, sink)
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
        let position = savepoint(session, &name)?;
        let savepoint = session.state.transaction.savepoints[position].1;
        session.engine()?.roll_back_to(savepoint)?;
        session.state.transaction.savepoints.truncate(position + 1);
        return session.done(0, String::new(), sink);
    }
    let completion = completion(session, words)?;
    end(session, &completion, false, sink)
}

fn savepoint(session: &Session, name: &str) -> Result<usize, SqlError> {
    let savepoints = &session.state.transaction.savepoints;
    savepoints
        .iter()
        .position(|(other, _)| other.eq_ignore_ascii_case(name))
        .ok_or_else(|| SqlError::new(ErrorKind::DoesNotExist, format!("SAVEPOINT {name} does not exist")))
}

/// SAVEPOINT name. Outside of a transaction it has no effect. With autocommit off it begins a transaction.
pub(crate) fn set_savepoint(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let name = words.name()?;
    words.end()?;
    if session.state.transaction.open || !session.variables.common.autocommit {
        let savepoint = session.engine()?.savepoint();
        let savepoints = &mut session.state.transaction.savepoints;
        savepoints.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
        savepoints.push((name, savepoint));
    }
    session.done(0, String::new(), sink)
}

/// RELEASE SAVEPOINT name, behind RELEASE.
pub(crate) fn release_savepoint(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    words.expect("SAVEPOINT")?;
    let name = words.name()?;
    words.end()?;
    let position = savepoint(session, &name)?;
    session.state.transaction.savepoints.truncate(position);
    session.done(0, String::new(), sink)
}
