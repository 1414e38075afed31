//! GRANT and REVOKE.

use super::names::{self, Changes, Identified};
use super::passwords::Refusal;
use super::{begin, no_such_grant, not_in_table, now, quoted, report, stored};
use crate::accounts::access::TableNeed;
use crate::accounts::book::{Book, TableGrant};
use crate::accounts::{Account, Grantee, Rights};
use crate::names::MYSQL;
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, ResultSink, Session, SqlError};
use std::sync::Arc;

/// What a grant is on.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Level {
    Global,
    /// A pattern.
    Database(String),
    Table(String, String),
}

/// Rights as a statement lists them.
#[derive(Clone, Default, Debug)]
struct Listed {
    rights: Rights,
    /// ALL, which means all that there are at the level.
    all: bool,
    columns: Vec<(String, Rights)>,
}

/// How GRANT names rights, when not as SHOW GRANTS does.
const OTHER_NAMES: &[(&[&str], Rights)] = &[
    (&["GRANT", "OPTION"], Rights::GRANT),
    (&["REPLICATION", "CLIENT"], Rights::BINLOG_MONITOR),
    (&["DELETE", "VERSIONING", "ROWS"], Rights::DELETE_HISTORY),
    (&["REPLICATION", "REPLICA", "ADMIN"], Rights::REPLICATION_SLAVE_ADMIN),
    (&["REPLICATION", "REPLICA"], Rights::REPLICATION_SLAVE),
    (&["REPLICA", "MONITOR"], Rights::SLAVE_MONITOR),
];

/// A right by its name.
fn right(words: &mut Words<'_>) -> Option<Rights> {
    if let Some((_, right)) = OTHER_NAMES.iter().find(|(name, _)| words.accept_all(name)) {
        return Some(*right);
    }
    // Of two names that begin alike, the longer one is meant.
    let mut named: Vec<_> = Rights::NAMED.iter().collect();
    named.sort_by_key(|(_, name, _)| std::cmp::Reverse(name.len()));
    named
        .into_iter()
        .find(|(_, name, _)| words.accept_all(&name.split(' ').collect::<Vec<_>>()))
        .map(|(right, ..)| *right)
}

/// The list of rights; `None` if it is a list of roles.
fn listed(words: &mut Words<'_>) -> Result<Option<Listed>, SqlError> {
    let mut listed = Listed::default();
    let start = words.clone();
    loop {
        if words.accept("ALL") {
            words.accept("PRIVILEGES");
            listed.all = true;
        } else if words.accept("USAGE") {
        } else if let Some(right) = right(words) {
            if words.accept_symbol("(") {
                loop {
                    listed.columns.push((words.name()?, right));
                    if !words.accept_symbol(",") {
                        break;
                    }
                }
                words.expect_symbol(")")?;
            } else {
                listed.rights |= right;
            }
        } else {
            *words = start;
            return Ok(None);
        }
        if !words.accept_symbol(",") {
            return Ok(Some(listed));
        }
    }
}

fn level(session: &Session, words: &mut Words<'_>) -> Result<Level, SqlError> {
    for kind in ["FUNCTION", "PROCEDURE", "PACKAGE"] {
        let routine = words.is(kind) && !matches!(words.peek_second(), Word::Symbol(symbol) if symbol == ".");
        if routine && !matches!(words.peek_second(), Word::Bare(to) if to.eq_ignore_ascii_case("TO")) {
            return Err(SqlError::not_supported(&format!("GRANT ON {kind}")));
        }
    }
    if words.is("TABLE") && !matches!(words.peek_second(), Word::Symbol(symbol) if symbol == ".") {
        words.next();
    }
    let default = |session: &Session| session.resolve_database(None);
    if words.accept_symbol("*") {
        if words.accept_symbol(".") {
            words.expect_symbol("*")?;
            return Ok(Level::Global);
        }
        return Ok(Level::Database(default(session)?));
    }
    let first = words.name()?;
    if !words.accept_symbol(".") {
        return Ok(Level::Table(default(session)?, first));
    }
    if words.accept_symbol("*") {
        return Ok(Level::Database(first));
    }
    Ok(Level::Table(first, words.name()?))
}

impl Level {
    /// What there is to give here.
    fn all(&self) -> Rights {
        let rights = match self {
            Level::Global => Rights::ALL,
            Level::Database(_) => Rights::OF_DATABASES,
            Level::Table(..) => Rights::OF_TABLES,
        };
        rights.without(Rights::GRANT)
    }

    /// # Errors
    /// 1221 or 1144 for a right that nobody can have here.
    fn check(&self, listed: &Listed) -> Result<(), SqlError> {
        let beyond = listed.rights.without(self.all() | Rights::GRANT);
        if !beyond.is_empty() || !listed.columns.is_empty() && !matches!(self, Level::Table(..)) {
            return Err(match self {
                Level::Table(..) => SqlError::new(
                    ErrorKind::IllegalGrantForTable,
                    "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used",
                ),
                _ => {
                    SqlError::new(ErrorKind::WrongUsage, "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES")
                }
            });
        }
        let beyond = listed.columns.iter().any(|(_, right)| !Rights::OF_COLUMNS.contains(*right));
        if beyond {
            return Err(SqlError::new(
                ErrorKind::WrongUsage,
                "Incorrect usage of COLUMN GRANT and NON-COLUMN PRIVILEGES",
            ));
        }
        Ok(())
    }
}

/// Somebody who gets rights, and how the account logs in, if the statement says so.
struct Receiver {
    name: Grantee,
    identified: Option<Identified>,
}

fn receivers(session: &Session, words: &mut Words<'_>) -> Result<Vec<Receiver>, SqlError> {
    let mut all = Vec::new();
    loop {
        let name = names::account_or_role(session, words)?;
        let identified = names::identified(session, &name.user, words)?;
        all.push(Receiver { name, identified });
        if !words.accept_symbol(",") {
            return Ok(all);
        }
    }
}

/// # Errors
/// The errors of somebody who gives away what is not theirs: 1044, 1045, 1142.
fn check_giver(session: &Session, level: &Level, listed: &Listed, rights: Rights) -> Result<(), SqlError> {
    let access = &session.access;
    let wanted = rights | Rights::GRANT;
    match level {
        Level::Global if access.global.contains(wanted) => Ok(()),
        Level::Global => Err(access.denied()),
        Level::Database(database) => access.check_database(database, wanted),
        Level::Table(database, table) => {
            // Rights on columns are enough to pass over this, and fail below.
            let mut need = TableNeed::new(database, table);
            (need.whole, need.any) = (Rights::GRANT, rights);
            for (column, right) in &listed.columns {
                need.any |= *right;
                need.column(column, *right);
            }
            access.check_table(&need)?;
            access.check_table(&TableNeed::whole(database, table, rights))
        }
    }
}

/// # Errors
/// 1146 and 1054: rights on a table are given if it is there, or may be made.
fn check_table(session: &Session, level: &Level, listed: &Listed, rights: Rights) -> Result<(), SqlError> {
    let Level::Table(database, name) = level else { return Ok(()) };
    let table = match session.table(database, name) {
        Ok(table) => table,
        Err(_) if rights.contains(Rights::CREATE) && listed.columns.is_empty() => return Ok(()),
        Err(error) if error.kind == ErrorKind::UnknownDatabase => {
            return Err(SqlError::no_such_table(database, name));
        }
        Err(error) => return Err(error),
    };
    let def = table.def();
    for (column, _) in &listed.columns {
        if !def.columns.iter().any(|known| known.name.eq_ignore_ascii_case(column)) {
            return Err(SqlError::unknown_column(column, name));
        }
    }
    Ok(())
}

/// GRANT, behind that word.
pub(crate) fn grant(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if words.is("PROXY") {
        return Err(SqlError::not_supported("GRANT PROXY"));
    }
    let Some(listed) = listed(words)? else { return grant_roles(session, words, sink) };
    words.expect("ON")?;
    let level = level(session, words)?;
    if matches!(level, Level::Table(..)) {
        session.state.warnings.forget_old();
    }
    words.expect("TO")?;
    let receivers = receivers(session, words)?;
    let mut changes = Changes::default();
    let mut passes = false;
    if words.is("REQUIRE") {
        changes.read_tls(words)?;
    }
    if words.accept("WITH") {
        passes = changes.read_limits(words)?;
    }
    words.end()?;
    level.check(&listed)?;
    let mut rights = if listed.all { level.all() } else { listed.rights };
    check_giver(session, &level, &listed, rights)?;
    check_table(session, &level, &listed, rights)?;
    if passes {
        rights |= Rights::GRANT;
    }
    begin(session)?;
    let grantor = format!("{}@{}", session.access.account.user, session.access.account.host);
    let mut refusals = Vec::new();
    stored::change(&session.instance, |book| {
        for Receiver { name, identified } in &receivers {
            let changes = changes.with_identified(identified.clone());
            if let Some(refusal) = account_to_give(session, book, name, &changes)? {
                refusals.push(refusal);
                continue;
            }
            give(book, name, &level, rights, &listed.columns, &grantor);
        }
        Ok(())
    })?;
    report(session, &refusals)?;
    session.done(0, String::new(), sink)
}

/// The account of somebody who gets rights. GRANT makes it if it says how it logs in. Gives what is wrong
/// with the account's password; the account is then left as it was.
fn account_to_give(
    session: &Session,
    book: &mut Book,
    name: &Grantee,
    changes: &Changes,
) -> Result<Option<Refusal>, SqlError> {
    let mut refusal = changes.refusal.clone();
    let mut account = match book.account(name) {
        Some(account) => (**account).clone(),
        None if name.host.is_empty() && name.user == crate::accounts::book::PUBLIC => {
            Account { name: name.clone(), is_role: true, ..Account::default() }
        }
        None => {
            let creates = session.variables.common.sql_mode.auto_creates_users();
            if changes.ways.is_none() && !creates {
                return Err(not_in_table());
            }
            super::check_creator(session, Rights::INSERT)?;
            refusal = changes.refusal_of_new(session, &name.user);
            Account {
                name: name.clone(),
                ways: names::without_password(),
                password_changed: Some(now()),
                ..Account::default()
            }
        }
    };
    if changes.ways.is_some() && book.account(name).is_some() && *name != session.access.account {
        super::check_creator(session, Rights::UPDATE)?;
    }
    if refusal.is_some() {
        return Ok(refusal);
    }
    changes.make(&mut account, now());
    book.accounts.insert(name.clone(), Arc::new(account));
    Ok(None)
}

fn give(
    book: &mut Book,
    name: &Grantee,
    level: &Level,
    rights: Rights,
    columns: &[(String, Rights)],
    grantor: &str,
) {
    match level {
        Level::Global => set_global(book, name, |old| old | rights),
        Level::Database(pattern) if !rights.is_empty() => {
            *book.databases.entry((name.clone(), pattern.clone())).or_default() |= rights;
        }
        Level::Database(_) => {}
        Level::Table(database, table) if !rights.is_empty() || !columns.is_empty() => {
            let key = (name.clone(), database.clone(), table.clone());
            let grant = book
                .tables
                .entry(key)
                .or_insert_with(|| TableGrant { grantor: grantor.to_owned(), ..TableGrant::default() });
            grant.rights |= rights;
            for (column, right) in columns {
                let known = grant.columns.keys().find(|known| known.eq_ignore_ascii_case(column)).cloned();
                *grant.columns.entry(known.unwrap_or_else(|| column.clone())).or_default() |= *right;
            }
        }
        Level::Table(..) => {}
    }
}

fn set_global(book: &mut Book, name: &Grantee, change: impl FnOnce(Rights) -> Rights) {
    if let Some(account) = book.account(name) {
        let account = Account { rights: change(account.rights), ..(**account).clone() };
        book.accounts.insert(name.clone(), Arc::new(account));
    }
}

/// GRANT role TO account. The session must be allowed to pass the role on.
fn grant_roles(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let roles = role_list(words)?;
    words.expect("TO")?;
    let receivers = receivers(session, words)?;
    let passes = words.accept_all(&["WITH", "ADMIN", "OPTION"]);
    words.end()?;
    begin(session)?;
    let mut refusals = Vec::new();
    stored::change(&session.instance, |book| {
        for role in &roles {
            check_admin(session, book, role)?;
            for Receiver { name, identified } in &receivers {
                if book.account(name).is_none() && identified.is_none() {
                    return Err(not_in_table());
                }
                let changes = Changes::default().with_identified(identified.clone());
                if let Some(refusal) = account_to_give(session, book, name, &changes)? {
                    refusals.push(refusal);
                    continue;
                }
                // A role that has itself, by whatever way, would never end.
                let circles = name.host.is_empty()
                    && (name.user == *role || book.has_role(&Grantee::new(role, ""), &name.user));
                if circles {
                    let text = format!("Cannot grant role '{role}' to: {}", quoted(name));
                    return Err(SqlError::new(ErrorKind::CannotGrantRole, text));
                }
                let entry = book.roles.entry((name.clone(), role.clone())).or_default();
                *entry |= passes;
            }
        }
        Ok(())
    })?;
    report(session, &refusals)?;
    session.done(0, String::new(), sink)
}

fn role_list(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    let mut roles = vec![names::role(words)?];
    while words.accept_symbol(",") {
        roles.push(names::role(words)?);
    }
    Ok(roles)
}

/// # Errors
/// 1959 for no role, 1698 for a role that the session may not pass on.
fn check_admin(session: &Session, book: &Book, role: &str) -> Result<(), SqlError> {
    if book.role(role).is_none() {
        return Err(names::invalid_role(role));
    }
    let access = &session.access;
    let is_admin = book
        .grantees(&access.account, access.role.as_deref())
        .iter()
        .any(|name| book.roles.get(&(name.clone(), role.to_owned())) == Some(&true));
    if is_admin || access.on_database(MYSQL).contains(Rights::UPDATE) {
        return Ok(());
    }
    Err(access.denied_shortly())
}

/// REVOKE, behind that word.
pub(crate) fn revoke(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let start = words.clone();
    if words.accept("ALL") {
        words.accept("PRIVILEGES");
        if words.accept_symbol(",") && words.accept_all(&["GRANT", "OPTION"]) && words.accept("FROM") {
            return revoke_all(session, words, sink);
        }
        *words = start;
    }
    let only_passing = words.accept_all(&["ADMIN", "OPTION", "FOR"]);
    let listed = if only_passing { None } else { listed(words)? };
    let Some(listed) = listed else { return revoke_roles(session, words, only_passing, sink) };
    words.expect("ON")?;
    let level = level(session, words)?;
    if matches!(level, Level::Table(..)) {
        session.state.warnings.forget_old();
    }
    words.expect("FROM")?;
    let receivers = receivers(session, words)?;
    words.end()?;
    level.check(&listed)?;
    let rights = if listed.all { level.all() } else { listed.rights };
    check_giver(session, &level, &listed, rights.without(Rights::GRANT))?;
    begin(session)?;
    stored::change(&session.instance, |book| {
        for Receiver { name, .. } in &receivers {
            take(book, name, &level, rights, &listed)?;
        }
        Ok(())
    })?;
    session.done(0, String::new(), sink)
}

fn take(
    book: &mut Book,
    name: &Grantee,
    level: &Level,
    rights: Rights,
    listed: &Listed,
) -> Result<(), SqlError> {
    if book.account(name).is_none() {
        return Err(not_in_table());
    }
    match level {
        Level::Global => {
            set_global(book, name, |old| old.without(rights));
            Ok(())
        }
        Level::Database(pattern) => {
            let key = (name.clone(), pattern.clone());
            let Some(old) = book.databases.get_mut(&key) else { return Err(no_such_grant(name)) };
            *old = old.without(rights);
            if old.is_empty() {
                book.databases.remove(&key);
            }
            Ok(())
        }
        Level::Table(database, table) => {
            let key = (name.clone(), database.clone(), table.clone());
            let Some(grant) = book.tables.get_mut(&key) else {
                let text = format!(
                    "There is no such grant defined for user '{}' on host '{}' on table '{table}'",
                    name.user, name.host
                );
                return Err(SqlError::new(ErrorKind::NoSuchTableGrant, text));
            };
            grant.rights = grant.rights.without(rights);
            // A right on the table is taken from the columns, too.
            for of_column in grant.columns.values_mut() {
                *of_column = of_column.without(rights);
            }
            for (column, right) in &listed.columns {
                let known = grant.columns.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(column));
                if let Some((_, of_column)) = known {
                    *of_column = of_column.without(*right);
                }
            }
            grant.columns.retain(|_, of_column| !of_column.is_empty());
            if grant.is_empty() {
                book.tables.remove(&key);
            }
            Ok(())
        }
    }
}

/// REVOKE ALL PRIVILEGES, GRANT OPTION FROM: at all levels, and the roles.
fn revoke_all(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let receivers = receivers(session, words)?;
    words.end()?;
    super::check_creator(session, Rights::UPDATE)?;
    begin(session)?;
    let missing = stored::change(&session.instance, |book| {
        let mut missing = false;
        for Receiver { name, .. } in &receivers {
            if book.account(name).is_none() {
                missing = true;
                continue;
            }
            set_global(book, name, |_| Rights::NONE);
            book.take_all(name);
            book.roles.retain(|(grantee, _), _| grantee != name);
        }
        Ok(missing)
    })?;
    if missing {
        return Err(SqlError::new(
            ErrorKind::CannotRevokeAll,
            "Can't revoke all privileges for one or more of the requested users",
        ));
    }
    session.done(0, String::new(), sink)
}

fn revoke_roles(
    session: &mut Session,
    words: &mut Words<'_>,
    only_passing: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let roles = role_list(words)?;
    words.expect("FROM")?;
    let receivers = receivers(session, words)?;
    words.end()?;
    begin(session)?;
    stored::change(&session.instance, |book| {
        for role in &roles {
            check_admin(session, book, role)?;
            for Receiver { name, .. } in &receivers {
                let key = (name.clone(), role.clone());
                match book.roles.get_mut(&key) {
                    Some(passes) if only_passing => *passes = false,
                    Some(_) => {
                        book.roles.remove(&key);
                    }
                    None => {
                        let text = format!("Cannot revoke role '{role}' from: {}", quoted(name));
                        return Err(SqlError::new(ErrorKind::CannotRevokeRole, text));
                    }
                }
            }
        }
        Ok(())
    })?;
    session.done(0, String::new(), sink)
}
