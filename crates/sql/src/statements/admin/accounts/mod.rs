//! CREATE USER, ALTER USER, DROP USER, RENAME USER, roles, SET PASSWORD, GRANT and REVOKE.
//!
//! Each makes a new book of accounts of the old one. [`stored`] writes what is different to the tables.

mod grant;
mod names;
mod passwords;
mod shown;
mod stored;

pub(crate) use grant::{grant, revoke};
pub(crate) use shown::{show_create_user, show_grants};
pub use stored::open_accounts;
pub(crate) use stored::{reload, switch_password_check};

use crate::accounts::book::{Book, PUBLIC};
use crate::accounts::{Account, Grantee, Rights};
use crate::names::MYSQL;
use crate::text::parse::Words;
use crate::{ErrorKind, ResultSink, Session, SqlError};
use names::{Changes, Secret};
use passwords::Refusal;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// `'user'@'host'`, or `'role'`.
fn quoted(name: &Grantee) -> String {
    if name.host.is_empty() { format!("'{}'", name.user) } else { format!("'{}'@'{}'", name.user, name.host) }
}

fn failed(operation: &str, names: &[String]) -> Result<(), SqlError> {
    if names.is_empty() {
        return Ok(());
    }
    let text = format!("Operation {operation} failed for {}", names.join(","));
    Err(SqlError::new(ErrorKind::OperationOnUserFailed, text))
}

/// 1141.
fn no_such_grant(name: &Grantee) -> SqlError {
    let text = format!("There is no such grant defined for user '{}' on host '{}'", name.user, name.host);
    SqlError::new(ErrorKind::NoSuchGrant, text)
}

/// Every change of accounts ends the transaction, and waits for nobody's read lock.
fn begin(session: &mut Session) -> Result<(), SqlError> {
    session.check_not_locked_out()?;
    session.implicit_commit()
}

/// # Errors
/// 1227 without the right to make accounts.
fn check_creator(session: &Session, right: Rights) -> Result<(), SqlError> {
    if session.access.on_database(MYSQL).intersects(right) {
        return Ok(());
    }
    session.access.check_any_global(Rights::CREATE_USER)
}

/// The accounts of CREATE USER and ALTER USER, and what the statement says of each.
fn specifications(session: &Session, words: &mut Words<'_>) -> Result<Vec<(Grantee, Changes)>, SqlError> {
    let mut all = Vec::new();
    loop {
        let name = names::account(session, words)?;
        let identified = names::identified(session, &name.user, words)?;
        all.push((name, Changes::default().with_identified(identified)));
        if !words.accept_symbol(",") {
            break;
        }
    }
    let mut common = Changes::default();
    common.read_options(words)?;
    words.end()?;
    for (_, changes) in &mut all {
        *changes = common.with_ways_of(changes);
    }
    Ok(all)
}

/// CREATE USER, behind those words.
pub(crate) fn create_user(
    session: &mut Session,
    words: &mut Words<'_>,
    or_replace: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_not_exists = words.accept_all(&["IF", "NOT", "EXISTS"]);
    let specifications = specifications(session, words)?;
    check_creator(session, Rights::INSERT)?;
    begin(session)?;
    let mut known = Vec::new();
    let mut refusals = Vec::new();
    let wrong = stored::change(&session.instance, |book| {
        let mut wrong = Vec::new();
        for (name, changes) in &specifications {
            if book.account(name).is_some() {
                if or_replace {
                    book.remove(name);
                } else if if_not_exists {
                    known.push(name.clone());
                    continue;
                } else {
                    wrong.push(quoted(name));
                    continue;
                }
            }
            if name.user.is_empty() && name.host.is_empty() {
                wrong.push(quoted(name));
                continue;
            }
            if let Some(refusal) = changes.refusal_of_new(session, &name.user) {
                refusals.push(refusal);
                continue;
            }
            let mut account = Account {
                name: name.clone(),
                ways: names::without_password(),
                password_changed: Some(now()),
                ..Account::default()
            };
            changes.make(&mut account, now());
            book.accounts.insert(name.clone(), Arc::new(account));
        }
        Ok(wrong)
    })?;
    for name in known {
        let text = format!("Can't create user {}; it already exists", quoted(&name));
        session.state.warnings.note(ErrorKind::UserExists, text);
    }
    report(session, &refusals)?;
    failed("CREATE USER", &wrong)?;
    session.done(0, String::new(), sink)
}

/// ALTER USER, behind those words.
pub(crate) fn alter_user(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_exists = words.accept_all(&["IF", "EXISTS"]);
    let specifications = specifications(session, words)?;
    check_creator(session, Rights::UPDATE)?;
    begin(session)?;
    let mut missing = Vec::new();
    let mut refusals = Vec::new();
    stored::change(&session.instance, |book| {
        for (name, changes) in &specifications {
            match book.account(name).filter(|account| !account.is_role) {
                Some(_) if changes.refusal.is_some() => {
                    refusals.extend(changes.refusal.clone());
                    missing.push(quoted(name));
                }
                Some(account) => {
                    let mut account = (**account).clone();
                    changes.make(&mut account, now());
                    book.accounts.insert(name.clone(), Arc::new(account));
                }
                None => missing.push(quoted(name)),
            }
        }
        Ok(())
    })?;
    let own =
        |(name, changes): &(Grantee, Changes)| *name == session.access.account && changes.ways.is_some();
    if refusals.is_empty() && specifications.iter().any(own) {
        session.password_is_changed();
    }
    forgive(session);
    // As in MariaDB, the client gets 1396, and the reason is among the warnings.
    for refusal in &refusals {
        let error = refusal.report(session);
        session.state.warnings.error(&error);
    }
    if if_exists {
        for name in &missing {
            let text = format!("Operation ALTER USER failed for {name}");
            session.state.warnings.note(ErrorKind::OperationOnUserFailed, text);
        }
    } else {
        failed("ALTER USER", &missing)?;
    }
    session.done(0, String::new(), sink)
}

/// # Errors
/// The error of the first account whose password was refused. The other accounts are as they shall be.
fn report(session: &mut Session, refusals: &[Refusal]) -> Result<(), SqlError> {
    let errors: Vec<SqlError> = refusals.iter().map(|refusal| refusal.report(session)).collect();
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// Accounts that wrong passwords have blocked may be tried again.
fn forgive(session: &Session) {
    if let Some(host) = session.instance.host() {
        host.flush_privileges();
    }
}

/// DROP USER or DROP ROLE, behind those words.
pub(crate) fn drop_user(
    session: &mut Session,
    words: &mut Words<'_>,
    roles: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_exists = words.accept_all(&["IF", "EXISTS"]);
    let mut named = Vec::new();
    loop {
        named.push(match roles {
            true => Grantee::new(&names::role(words)?, ""),
            false => names::account(session, words)?,
        });
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    check_creator(session, Rights::DELETE)?;
    begin(session)?;
    let mut missing = Vec::new();
    stored::change(&session.instance, |book| {
        for name in &named {
            if book.account(name).is_some_and(|account| account.is_role == roles) && name.user != PUBLIC {
                book.remove(name);
            } else {
                missing.push(quoted(name));
            }
        }
        Ok(())
    })?;
    let (what, operation, kind) = match roles {
        true => ("role", "DROP ROLE", ErrorKind::RoleDoesNotExist),
        false => ("user", "DROP USER", ErrorKind::UserDoesNotExist),
    };
    if if_exists {
        for name in missing {
            session.state.warnings.note(kind, format!("Can't drop {what} {name}; it doesn't exist"));
        }
    } else {
        failed(operation, &missing)?;
    }
    session.done(0, String::new(), sink)
}

/// RENAME USER, behind those words.
pub(crate) fn rename_user(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut pairs = Vec::new();
    loop {
        let from = names::account(session, words)?;
        words.expect("TO")?;
        pairs.push((from, names::account(session, words)?));
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    check_creator(session, Rights::UPDATE)?;
    begin(session)?;
    let wrong = stored::change(&session.instance, |book| {
        let mut wrong = Vec::new();
        for (from, to) in &pairs {
            if book.account(from).is_none() || book.account(to).is_some() {
                wrong.push(quoted(from));
            } else {
                book.rename(from, to);
            }
        }
        Ok(wrong)
    })?;
    failed("RENAME USER", &wrong)?;
    session.done(0, String::new(), sink)
}

/// CREATE ROLE, behind those words.
pub(crate) fn create_role(
    session: &mut Session,
    words: &mut Words<'_>,
    or_replace: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_not_exists = words.accept_all(&["IF", "NOT", "EXISTS"]);
    let mut named = Vec::new();
    loop {
        named.push(names::role(words)?);
        if !words.accept_symbol(",") {
            break;
        }
    }
    let admin = match words.accept_all(&["WITH", "ADMIN"]) {
        true => names::account_or_role(session, words)?,
        false => session.access.account.clone(),
    };
    words.end()?;
    check_creator(session, Rights::INSERT)?;
    begin(session)?;
    let mut known = Vec::new();
    let wrong = stored::change(&session.instance, |book| {
        let mut wrong = Vec::new();
        for role in &named {
            let name = Grantee::new(role, "");
            if book.account(&name).is_some() {
                if or_replace {
                    book.remove(&name);
                } else if if_not_exists {
                    known.push(role.clone());
                    continue;
                } else {
                    wrong.push(format!("'{role}'"));
                    continue;
                }
            }
            let account = Account { name: name.clone(), is_role: true, ..Account::default() };
            book.accounts.insert(name, Arc::new(account));
            book.roles.insert((admin.clone(), role.clone()), true);
        }
        Ok(wrong)
    })?;
    for role in known {
        let text = format!("Can't create role '{role}'; it already exists");
        session.state.warnings.note(ErrorKind::RoleExists, text);
    }
    failed("CREATE ROLE", &wrong)?;
    session.done(0, String::new(), sink)
}

/// SET ROLE, behind those words.
pub(crate) fn set_role(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let role = match words.accept("NONE") {
        true => None,
        false => Some(names::role(words)?),
    };
    words.end()?;
    session.take_up_newest_accounts();
    if let Some(role) = &role
        && !session.access.book().has_role(&session.access.account, role)
    {
        return Err(names::invalid_role(role));
    }
    session.access.set_role(role);
    session.done(0, String::new(), sink)
}

/// SET DEFAULT ROLE, behind those words.
pub(crate) fn set_default_role(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let role = match words.accept("NONE") {
        true => String::new(),
        false => names::role(words)?,
    };
    let name = match words.accept("FOR") {
        true => names::account(session, words)?,
        false => session.access.account.clone(),
    };
    words.end()?;
    if name != session.access.account {
        session.access.check_database(MYSQL, Rights::UPDATE)?;
    }
    begin(session)?;
    stored::change(&session.instance, |book| {
        let Some(account) = book.account(&name) else { return Err(not_in_table()) };
        if !role.is_empty() && !book.has_role(&name, &role) {
            return Err(names::invalid_role(&role));
        }
        let account = Account { default_role: role.clone(), ..(**account).clone() };
        book.accounts.insert(name.clone(), Arc::new(account));
        Ok(())
    })?;
    session.done(0, String::new(), sink)
}

fn not_in_table() -> SqlError {
    SqlError::new(ErrorKind::UserNotFound, "Can't find any matching row in the user table")
}

/// SET PASSWORD [FOR account] = {PASSWORD('text') | 'hash'}, behind the first two words.
pub(crate) fn set_password(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let name = match words.accept("FOR") {
        true => names::account(session, words)?,
        false => session.access.account.clone(),
    };
    if !words.accept_symbol(":=") {
        words.expect_symbol("=")?;
    }
    let is_password = words.accept("PASSWORD");
    if is_password {
        words.expect_symbol("(")?;
    }
    let text = words.string()?;
    if is_password {
        words.expect_symbol(")")?;
    }
    words.end()?;
    if name != session.access.account {
        session.access.check_database(MYSQL, Rights::UPDATE)?;
    }
    begin(session)?;
    let secret = if is_password { Secret::Password(&text) } else { Secret::Stored(&text) };
    let mut refusal = None;
    stored::change(&session.instance, |book| {
        refusal = set_password_of(session, book, &name, secret)?;
        Ok(())
    })?;
    report(session, refusal.as_slice())?;
    if name == session.access.account {
        session.password_is_changed();
    }
    forgive(session);
    session.done(0, String::new(), sink)
}

/// Changes the secret of the first way that has one, unless there is something wrong with it.
fn set_password_of(
    session: &Session,
    book: &mut Book,
    name: &Grantee,
    secret: Secret<'_>,
) -> Result<Option<Refusal>, SqlError> {
    let Some(account) = book.account(name).filter(|account| !account.is_role) else {
        return Err(not_in_table());
    };
    let mut account = (**account).clone();
    match account.ways.iter_mut().find(|way| way.plugin != "unix_socket") {
        Some(way) => {
            *way = names::way(session, &way.plugin, secret)?;
            if let Some(refusal) = passwords::check(session, &name.user, &way.plugin, secret) {
                return Ok(Some(refusal));
            }
        }
        None => {
            let text = "SET PASSWORD is ignored for users authenticating via unix_socket plugin";
            return Err(SqlError::new(ErrorKind::SetPasswordIgnored, text));
        }
    }
    account.password_changed = Some(now());
    book.accounts.insert(name.clone(), Arc::new(account));
    Ok(None)
}
