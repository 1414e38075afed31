//! The rights of accounts and roles: USER_PRIVILEGES and its like, and `mysql.user`.

use super::Definition;
use crate::accounts::book::Book;
use crate::accounts::{Grantee, Rights, TlsNeed};
use crate::names::MYSQL;
use crate::{Session, SqlError};
use std::sync::{Arc, OnceLock};
use types::Value;

pub(super) static DEFINITIONS: &[Definition] = &[
    (
        "USER_PRIVILEGES",
        "GRANTEE varchar(385) NOT NULL, TABLE_CATALOG varchar(512) NOT NULL, PRIVILEGE_TYPE varchar(64) NOT NULL, \
         IS_GRANTABLE varchar(3) NOT NULL",
        user_privileges,
    ),
    (
        "SCHEMA_PRIVILEGES",
        "GRANTEE varchar(385) NOT NULL, TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, \
         PRIVILEGE_TYPE varchar(64) NOT NULL, IS_GRANTABLE varchar(3) NOT NULL",
        schema_privileges,
    ),
    (
        "TABLE_PRIVILEGES",
        "GRANTEE varchar(385) NOT NULL, TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, \
         TABLE_NAME varchar(64) NOT NULL, PRIVILEGE_TYPE varchar(64) NOT NULL, IS_GRANTABLE varchar(3) NOT NULL",
        table_privileges,
    ),
    (
        "COLUMN_PRIVILEGES",
        "GRANTEE varchar(385) NOT NULL, TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, \
         TABLE_NAME varchar(64) NOT NULL, COLUMN_NAME varchar(64) NOT NULL, PRIVILEGE_TYPE varchar(64) NOT NULL, \
         IS_GRANTABLE varchar(3) NOT NULL",
        column_privileges,
    ),
    (
        "APPLICABLE_ROLES",
        "GRANTEE varchar(385) NOT NULL, ROLE_NAME varchar(128) NOT NULL, IS_GRANTABLE varchar(3) NOT NULL, \
         IS_DEFAULT varchar(3)",
        applicable_roles,
    ),
    ("ENABLED_ROLES", "ROLE_NAME varchar(128)", enabled_roles),
];

/// The book of accounts; an empty one for a server without accounts.
fn book(session: &Session) -> Arc<Book> {
    session.instance.accounts.book().map(|(book, _)| book).unwrap_or_default()
}

/// True if the session may see what this account has: its own, or with a look into `mysql` everybody's.
fn sees(session: &Session, name: &Grantee) -> bool {
    *name == session.access.account || session.access.on_database(MYSQL).contains(Rights::SELECT)
}

fn quoted(name: &Grantee) -> Value {
    Value::text(format!("'{}'@'{}'", name.user, name.host))
}

fn yes_no(yes: bool) -> Value {
    Value::text(if yes { "YES" } else { "NO" })
}

/// The names of rights; of none, USAGE.
fn names(rights: Rights) -> Vec<&'static str> {
    let all: Vec<&str> = rights.without(Rights::GRANT).names().collect();
    if all.is_empty() { vec!["USAGE"] } else { all }
}

fn user_privileges(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let book = book(session);
    let mut rows = Vec::new();
    for account in book.accounts.values().filter(|account| sees(session, &account.name)) {
        let grantable = account.rights.contains(Rights::GRANT);
        for right in names(account.rights) {
            rows.push(vec![quoted(&account.name), Value::text("def"), Value::text(right), yes_no(grantable)]);
        }
    }
    Ok(rows)
}

fn schema_privileges(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let book = book(session);
    let mut rows = Vec::new();
    for ((name, pattern), rights) in book.databases.iter().filter(|((name, _), _)| sees(session, name)) {
        for right in names(*rights) {
            rows.push(vec![
                quoted(name),
                Value::text("def"),
                Value::text(pattern),
                Value::text(right),
                yes_no(rights.contains(Rights::GRANT)),
            ]);
        }
    }
    Ok(rows)
}

fn table_privileges(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let book = book(session);
    let mut rows = Vec::new();
    for ((name, database, table), grant) in
        book.tables.iter().filter(|((name, ..), grant)| sees(session, name) && !grant.rights.is_empty())
    {
        for right in names(grant.rights) {
            rows.push(vec![
                quoted(name),
                Value::text("def"),
                Value::text(database),
                Value::text(table),
                Value::text(right),
                yes_no(grant.rights.contains(Rights::GRANT)),
            ]);
        }
    }
    Ok(rows)
}

fn column_privileges(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let book = book(session);
    let mut rows = Vec::new();
    for ((name, database, table), grant) in book.tables.iter().filter(|((name, ..), _)| sees(session, name)) {
        for (column, rights) in &grant.columns {
            for right in rights.names() {
                rows.push(vec![
                    quoted(name),
                    Value::text("def"),
                    Value::text(database),
                    Value::text(table),
                    Value::text(column),
                    Value::text(right),
                    yes_no(grant.rights.contains(Rights::GRANT)),
                ]);
            }
        }
    }
    Ok(rows)
}

fn applicable_roles(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let book = book(session);
    let own = &session.access.account;
    let granted = book.granted(own);
    let default = book.account(own).map(|account| account.default_role.clone()).unwrap_or_default();
    let mut rows = Vec::new();
    for ((name, role), passes) in &book.roles {
        let is_own = name == own;
        if !(is_own || name.host.is_empty() && granted.contains(&name.user)) {
            continue;
        }
        let shown = if is_own { format!("{}@{}", name.user, name.host) } else { name.user.clone() };
        let is_default = if is_own { yes_no(*role == default) } else { Value::Null };
        rows.push(vec![Value::text(shown), Value::text(role), yes_no(*passes), is_default]);
    }
    Ok(rows)
}

fn enabled_roles(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let Some(role) = &session.access.role else { return Ok(vec![vec![Value::Null]]) };
    let mut roles = book(session).granted(&Grantee::new(role, ""));
    roles.insert(role.clone());
    Ok(roles.into_iter().map(|role| vec![Value::text(role)]).collect())
}

/// The columns of `mysql.user` behind its rights, up to the last one that MariaDB has there.
const LAST_RIGHT: Rights = Rights::DELETE_HISTORY;

/// The name and the columns of `mysql.user`, which shows `mysql.global_priv` as older servers kept accounts.
pub(super) fn user_table() -> Definition {
    static COLUMNS: OnceLock<String> = OnceLock::new();
    let columns = || {
        let rights = shown_rights().map(|(_, column)| format!("{column}_priv varchar(1) NOT NULL"));
        format!(
            "Host char(255) NOT NULL, User char(128) NOT NULL, Password longtext, {}, ssl_type varchar(9), \
             ssl_cipher longtext NOT NULL, x509_issuer longtext NOT NULL, x509_subject longtext NOT NULL, \
             max_questions bigint(20) unsigned NOT NULL, max_updates bigint(20) unsigned NOT NULL, \
             max_connections bigint(20) unsigned NOT NULL, max_user_connections bigint(21) NOT NULL, \
             plugin longtext NOT NULL, authentication_string longtext NOT NULL, \
             password_expired varchar(1) NOT NULL, is_role varchar(1), default_role longtext NOT NULL, \
             max_statement_time decimal(12,6) NOT NULL",
            rights.collect::<Vec<_>>().join(", ")
        )
    };
    ("user", COLUMNS.get_or_init(columns), users)
}

fn shown_rights() -> impl Iterator<Item = (Rights, &'static str)> {
    let all = Rights::NAMED.iter().filter(|(right, ..)| right.bits() <= LAST_RIGHT.bits());
    all.map(|(right, _, column)| (*right, *column))
}

/// The rows of `mysql.user`.
fn users(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let short = |yes: bool| Value::text(if yes { "Y" } else { "N" });
    let book = book(session);
    let mut rows = Vec::new();
    for account in book.accounts.values() {
        let first = account.ways.first().cloned().unwrap_or_default();
        let is_native = first.plugin == "mysql_native_password";
        let mut row = vec![
            Value::text(&account.name.host),
            Value::text(&account.name.user),
            Value::text(if is_native { first.text.as_str() } else { "" }),
        ];
        row.extend(shown_rights().map(|(right, _)| short(account.rights.contains(right))));
        let (kind, issuer, subject, cipher) = match &account.tls {
            TlsNeed::None => ("", "", "", ""),
            TlsNeed::Any => ("ANY", "", "", ""),
            TlsNeed::X509 => ("X509", "", "", ""),
            TlsNeed::Specified { issuer, subject, cipher } => {
                ("SPECIFIED", issuer.as_str(), subject.as_str(), cipher.as_str())
            }
        };
        let limits = account.limits;
        row.extend([
            Value::text(kind),
            Value::text(cipher),
            Value::text(issuer),
            Value::text(subject),
            Value::UInt(limits.queries_per_hour),
            Value::UInt(limits.updates_per_hour),
            Value::UInt(limits.connections_per_hour),
            Value::Int(limits.user_connections),
            Value::text(first.plugin),
            Value::text(first.text),
            short(account.password_changed == Some(0)),
            short(account.is_role),
            Value::text(&account.default_role),
            Value::Decimal(types::Decimal::new(limits.statement_micros.into(), 6)),
        ]);
        rows.push(row);
    }
    Ok(rows)
}
