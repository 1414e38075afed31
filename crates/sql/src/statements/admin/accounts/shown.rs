//! SHOW GRANTS and SHOW CREATE USER.

use super::{names, no_such_grant};
use crate::accounts::book::Book;
use crate::accounts::{Account, Grantee, Lifetime, Rights, TlsNeed};
use crate::names::MYSQL;
use crate::statements::show::{Listing, characters};
use crate::text::parse::Words;
use crate::{ErrorKind, ResultSink, Session, SqlError};
use std::sync::Arc;
use types::Value;

fn backticks(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn shown(name: &Grantee) -> String {
    match name.host.as_str() {
        "" => backticks(&name.user),
        host => format!("{}@{}", backticks(&name.user), backticks(host)),
    }
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// ` IDENTIFIED ...`, or nothing for an account without a password.
fn identified(account: &Account) -> String {
    match account.ways.as_slice() {
        [] => String::new(),
        [way] if way.plugin == "mysql_native_password" && way.text.is_empty() => String::new(),
        [way] if way.plugin == "mysql_native_password" => {
            format!(" IDENTIFIED BY PASSWORD {}", text(&way.text))
        }
        ways => {
            let one = |way: &crate::accounts::Way| match way.text.as_str() {
                "" => way.plugin.clone(),
                secret => format!("{} USING {}", way.plugin, text(secret)),
            };
            format!(" IDENTIFIED VIA {}", ways.iter().map(one).collect::<Vec<_>>().join(" OR "))
        }
    }
}

fn required(account: &Account) -> String {
    match &account.tls {
        TlsNeed::None => String::new(),
        TlsNeed::Any => " REQUIRE SSL".to_owned(),
        TlsNeed::X509 => " REQUIRE X509".to_owned(),
        TlsNeed::Specified { issuer, subject, cipher } => {
            let parts = [("ISSUER", issuer), ("SUBJECT", subject), ("CIPHER", cipher)];
            let named = parts.iter().filter(|(_, value)| !value.is_empty());
            let all: Vec<String> = named.map(|(name, value)| format!("{name} {}", text(value))).collect();
            format!(" REQUIRE {}", all.join(" "))
        }
    }
}

fn limits(account: &Account) -> Vec<String> {
    let limits = account.limits;
    let counts = [
        ("MAX_QUERIES_PER_HOUR", limits.queries_per_hour as i64),
        ("MAX_UPDATES_PER_HOUR", limits.updates_per_hour as i64),
        ("MAX_CONNECTIONS_PER_HOUR", limits.connections_per_hour as i64),
        ("MAX_USER_CONNECTIONS", limits.user_connections),
    ];
    let mut all: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count != 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if limits.statement_micros > 0 {
        all.push(format!("MAX_STATEMENT_TIME {:.6}", limits.statement_micros as f64 / 1e6));
    }
    all
}

fn list(rights: Rights, all: Rights) -> String {
    let rights = rights.without(Rights::GRANT);
    if rights.is_empty() {
        return "USAGE".to_owned();
    }
    if rights.contains(all.without(Rights::GRANT)) {
        return "ALL PRIVILEGES".to_owned();
    }
    rights.names().collect::<Vec<_>>().join(", ")
}

/// The statements that give somebody what they have.
fn grants(book: &Book, name: &Grantee) -> Vec<String> {
    let Some(account) = book.account(name) else { return vec![] };
    let who = shown(name);
    let mut lines = Vec::new();
    for ((_, role), passes) in book.roles.iter().filter(|((grantee, _), _)| grantee == name) {
        let admin = if *passes { " WITH ADMIN OPTION" } else { "" };
        lines.push(format!("GRANT {} TO {who}{admin}", backticks(role)));
    }
    let mut with = limits(account);
    if account.rights.contains(Rights::GRANT) {
        with.insert(0, "GRANT OPTION".to_owned());
    }
    let with = if with.is_empty() { String::new() } else { format!(" WITH {}", with.join(" ")) };
    let is_plain = account.name.host.is_empty()
        && account.rights.is_empty()
        && name.user == crate::accounts::book::PUBLIC;
    if !is_plain {
        lines.push(format!(
            "GRANT {} ON *.* TO {who}{}{}{with}",
            list(account.rights, Rights::ALL),
            identified(account),
            required(account)
        ));
    }
    let option = |rights: Rights| if rights.contains(Rights::GRANT) { " WITH GRANT OPTION" } else { "" };
    for (pattern, rights) in book.databases_of(name) {
        let all = list(rights, Rights::OF_DATABASES);
        lines.push(format!("GRANT {all} ON {}.* TO {who}{}", backticks(pattern), option(rights)));
    }
    for (database, table, grant) in book.tables_of(name) {
        lines.push(format!(
            "GRANT {} ON {}.{} TO {who}{}",
            table_list(grant),
            backticks(database),
            backticks(table),
            option(grant.rights)
        ));
    }
    lines
}

/// The rights on a table, those on columns with the names of these.
fn table_list(grant: &crate::accounts::book::TableGrant) -> String {
    let rights = grant.rights.without(Rights::GRANT);
    if grant.columns.is_empty() {
        return list(rights, Rights::OF_TABLES);
    }
    let mut all = Vec::new();
    for (right, name, _) in Rights::NAMED.iter().filter(|(right, ..)| *right != Rights::GRANT) {
        let with = grant.columns.iter().filter(|(_, rights)| rights.contains(*right));
        let columns: Vec<String> = with.map(|(column, _)| backticks(column)).collect();
        if !columns.is_empty() {
            all.push(format!("{name} ({})", columns.join(", ")));
        }
        if rights.contains(*right) {
            all.push((*name).to_owned());
        }
    }
    all.join(", ")
}

/// The book; a server without accounts refuses.
fn book(session: &Session) -> Result<Arc<Book>, SqlError> {
    let book = session.instance.accounts.book();
    book.map(|(book, _)| book).ok_or_else(super::stored::without_accounts)
}

/// SHOW GRANTS [FOR account], behind those words.
pub(crate) fn show_grants(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let own = session.access.account.clone();
    let is_for = words.accept("FOR");
    let name = if is_for { names::account_or_role(session, words)? } else { own.clone() };
    words.end()?;
    let book = book(session)?;
    let is_own_role = name.host.is_empty() && book.has_role(&own, &name.user);
    if name != own && !is_own_role {
        session.access.check_database(MYSQL, Rights::SELECT)?;
    }
    if book.account(&name).is_none() {
        return Err(no_such_grant(&name));
    }
    let heading = match name.host.as_str() {
        "" => format!("Grants for {}", name.user),
        host => format!("Grants for {}@{host}", name.user),
    };
    let mut names = vec![name.clone()];
    if !is_for {
        names = book.grantees(&own, session.access.role.as_deref());
    } else if name.host.is_empty() {
        names.extend(book.granted(&name).iter().map(|role| Grantee::new(role, "")));
    }
    let mut listing = Listing::new([(heading, characters(1024))]);
    for one in &names {
        for line in grants(&book, one) {
            listing.push(vec![Value::text(line)]);
        }
    }
    if let Some(account) = book.account(&name).filter(|account| !account.default_role.is_empty()) {
        let role = backticks(&account.default_role);
        listing.push(vec![Value::text(format!("SET DEFAULT ROLE {role} FOR {}", shown(&name)))]);
    }
    listing.send(session, sink)
}

/// SHOW CREATE USER [account], behind those words.
pub(crate) fn show_create_user(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let own = session.access.account.clone();
    let at_end = *words.peek() == crate::text::parse::Word::End;
    let name = if at_end { own.clone() } else { names::account(session, words)? };
    words.end()?;
    let book = book(session)?;
    if name != own {
        session.access.check_database(MYSQL, Rights::SELECT)?;
    }
    let Some(account) = book.account(&name) else {
        let text = format!("Operation SHOW CREATE USER failed for {}", super::quoted(&name));
        return Err(SqlError::new(ErrorKind::OperationOnUserFailed, text));
    };
    let limits = limits(account);
    let with = if limits.is_empty() { String::new() } else { format!(" WITH {}", limits.join(" ")) };
    let lock = if account.locked { " ACCOUNT LOCK" } else { "" };
    let expiry = match (account.password_changed, account.lifetime) {
        (Some(0), _) => " PASSWORD EXPIRE".to_owned(),
        (_, Lifetime::Default) => String::new(),
        (_, Lifetime::Never) => " PASSWORD EXPIRE NEVER".to_owned(),
        (_, Lifetime::Days(days)) => format!(" PASSWORD EXPIRE INTERVAL {days} DAY"),
    };
    let heading = format!("CREATE USER for {}@{}", name.user, name.host);
    let mut listing = Listing::new([(heading, characters(1024))]);
    listing.push(vec![Value::text(format!(
        "CREATE USER {}{}{}{with}{lock}{expiry}",
        shown(&name),
        identified(account),
        required(account)
    ))]);
    listing.send(session, sink)
}
