//! How statements name accounts and roles, and what they say of an account.

use super::passwords::{self, Refusal};
use crate::accounts::{Account, Grantee, Lifetime, Limits, TlsNeed, Way};
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, Session, SqlError};

/// The longest name of an account or a role, in characters, and the longest host.
const NAME_CHARS_MAX: usize = 128;
const HOST_CHARS_MAX: usize = 255;

/// A name, or a quoted text.
fn part(words: &mut Words<'_>) -> Result<String, SqlError> {
    match words.peek() {
        Word::Text(_) => words.string(),
        _ => words.name(),
    }
}

/// `user` or `'user'@'host'`. The host is `None` if there is none.
fn written(words: &mut Words<'_>) -> Result<(String, Option<String>), SqlError> {
    let quoted = matches!(words.peek(), Word::Text(_) | Word::Name(_));
    let user = part(words)?;
    // The tokenizer makes one token of `root@localhost`, three of `'root'@'localhost'`, two of
    // `'root'@localhost`.
    if !quoted && let Some((user, host)) = user.split_once('@') {
        let host = if host.is_empty() { part(words)? } else { rest_of_host(words, host.to_owned())? };
        return Ok((user.to_owned(), Some(host)));
    }
    if words.accept_symbol("@") {
        let host = match words.peek() {
            Word::Bare(_) => {
                let first = words.name()?;
                rest_of_host(words, first)?
            }
            _ => part(words)?,
        };
        return Ok((user, Some(host)));
    }
    if let Word::Bare(next) = words.peek().clone()
        && let Some(host) = next.strip_prefix('@')
    {
        words.next();
        let host = if host.is_empty() { part(words)? } else { rest_of_host(words, host.to_owned())? };
        return Ok((user, Some(host)));
    }
    Ok((user, None))
}

/// A host without quotes may have points in it.
fn rest_of_host(words: &mut Words<'_>, first: String) -> Result<String, SqlError> {
    let mut host = first;
    while words.accept_symbol(".") {
        host.push('.');
        host.push_str(&part(words)?);
    }
    Ok(host)
}

fn check_lengths(name: &Grantee) -> Result<(), SqlError> {
    let too_long = |text: &str, what: &str, max: usize| {
        let text = format!("String '{text}' is too long for {what} (should be no longer than {max})");
        Err(SqlError::new(ErrorKind::StringTooLong, text))
    };
    if name.user.chars().count() > NAME_CHARS_MAX {
        return too_long(&name.user, "user name", NAME_CHARS_MAX);
    }
    if name.host.chars().count() > HOST_CHARS_MAX || !name.host.is_ascii() {
        return too_long(&name.host, "host name", HOST_CHARS_MAX);
    }
    Ok(())
}

fn current_user(words: &mut Words<'_>) -> Result<bool, SqlError> {
    let is = words.accept("CURRENT_USER");
    if is && words.accept_symbol("(") {
        words.expect_symbol(")")?;
    }
    Ok(is)
}

/// The name of an account. Without a host it is `%`.
///
/// # Errors
/// 1064, 1470.
pub(super) fn account(session: &Session, words: &mut Words<'_>) -> Result<Grantee, SqlError> {
    if current_user(words)? {
        return Ok(session.access.account.clone());
    }
    let (user, host) = written(words)?;
    let name = Grantee { user, host: host.unwrap_or_else(|| "%".to_owned()).to_ascii_lowercase() };
    check_lengths(&name)?;
    Ok(name)
}

/// The name of an account or of a role. A name without a host is a role's if there is such a role.
///
/// # Errors
/// As [`account`].
pub(super) fn account_or_role(session: &Session, words: &mut Words<'_>) -> Result<Grantee, SqlError> {
    if current_user(words)? {
        return Ok(session.access.account.clone());
    }
    if words.accept("CURRENT_ROLE") {
        let role = session.access.role.clone().ok_or_else(|| invalid_role("NONE"))?;
        return Ok(Grantee::new(&role, ""));
    }
    if words.accept("PUBLIC") {
        return Ok(Grantee::new(crate::accounts::book::PUBLIC, ""));
    }
    let (user, host) = written(words)?;
    let is_role = host.is_none()
        && session.instance.accounts.book().is_some_and(|(book, _)| book.role(&user).is_some());
    let host = if is_role { String::new() } else { host.unwrap_or_else(|| "%".to_owned()) };
    let name = Grantee { user, host: host.to_ascii_lowercase() };
    check_lengths(&name)?;
    Ok(name)
}

/// The name of a role.
///
/// # Errors
/// 1064; 1959 for a name that no role can have.
pub(super) fn role(words: &mut Words<'_>) -> Result<String, SqlError> {
    if words.accept("PUBLIC") {
        return Ok(crate::accounts::book::PUBLIC.to_owned());
    }
    let name = part(words)?;
    if name.is_empty() || name.eq_ignore_ascii_case("none") {
        return Err(invalid_role(&name));
    }
    check_lengths(&Grantee::new(&name, ""))?;
    Ok(name)
}

pub(super) fn invalid_role(name: &str) -> SqlError {
    SqlError::new(ErrorKind::InvalidRole, format!("Invalid role specification `{name}`"))
}

/// What a statement says of an account; the rest of it stays as it is.
#[derive(Clone, Default, Debug)]
pub(super) struct Changes {
    pub(super) ways: Option<Vec<Way>>,
    /// What is wrong with the password of these ways.
    pub(super) refusal: Option<Refusal>,
    tls: Option<TlsNeed>,
    queries: Option<u64>,
    updates: Option<u64>,
    connections: Option<u64>,
    user_connections: Option<i64>,
    statement_micros: Option<u64>,
    locked: Option<bool>,
    lifetime: Option<Lifetime>,
    expires_now: bool,
}

impl Changes {
    /// The same, but for how the account logs in: that is as `other` says.
    pub(super) fn with_ways_of(&self, other: &Changes) -> Changes {
        Changes { ways: other.ways.clone(), refusal: other.refusal.clone(), ..self.clone() }
    }

    /// The same, but for how the account logs in.
    pub(super) fn with_identified(&self, identified: Option<Identified>) -> Changes {
        let (ways, refusal) = match identified {
            Some(Identified { ways, refusal }) => (Some(ways), refusal),
            None => (None, None),
        };
        Changes { ways, refusal, ..self.clone() }
    }

    /// Why an account that the statement makes does not get its password, or goes without one.
    pub(super) fn refusal_of_new(&self, session: &Session, user: &str) -> Option<Refusal> {
        match &self.ways {
            Some(_) => self.refusal.clone(),
            None => passwords::check(session, user, NATIVE, Secret::Stored("")),
        }
    }

    /// Makes the changes; `now` are seconds since 1970.
    pub(super) fn make(&self, account: &mut Account, now: u64) {
        if let Some(ways) = &self.ways {
            account.ways.clone_from(ways);
            account.password_changed = Some(now);
        }
        if let Some(tls) = &self.tls {
            account.tls = tls.clone();
        }
        let limits = account.limits;
        account.limits = Limits {
            queries_per_hour: self.queries.unwrap_or(limits.queries_per_hour),
            updates_per_hour: self.updates.unwrap_or(limits.updates_per_hour),
            connections_per_hour: self.connections.unwrap_or(limits.connections_per_hour),
            user_connections: self.user_connections.unwrap_or(limits.user_connections),
            statement_micros: self.statement_micros.unwrap_or(limits.statement_micros),
        };
        if let Some(locked) = self.locked {
            account.locked = locked;
        }
        if let Some(lifetime) = self.lifetime {
            account.lifetime = lifetime;
        }
        if self.expires_now {
            account.password_changed = Some(0);
        }
    }

    /// REQUIRE, WITH and the options of passwords, which hold for all accounts of a statement.
    ///
    /// # Errors
    /// 1064.
    pub(super) fn read_options(&mut self, words: &mut Words<'_>) -> Result<(), SqlError> {
        self.read_tls(words)?;
        if words.accept("WITH") {
            self.read_limits(words)?;
        }
        loop {
            if words.accept_all(&["ACCOUNT", "LOCK"]) {
                self.locked = Some(true);
            } else if words.accept_all(&["ACCOUNT", "UNLOCK"]) {
                self.locked = Some(false);
            } else if words.accept_all(&["PASSWORD", "EXPIRE"]) {
                self.read_expiry(words)?;
            } else {
                return Ok(());
            }
        }
    }

    /// REQUIRE, if it stands here.
    ///
    /// # Errors
    /// 1064.
    pub(super) fn read_tls(&mut self, words: &mut Words<'_>) -> Result<(), SqlError> {
        if words.accept("REQUIRE") {
            self.tls = Some(tls_need(words)?);
        }
        Ok(())
    }

    fn read_expiry(&mut self, words: &mut Words<'_>) -> Result<(), SqlError> {
        if words.accept("DEFAULT") {
            self.lifetime = Some(Lifetime::Default);
        } else if words.accept("NEVER") {
            self.lifetime = Some(Lifetime::Never);
        } else if words.accept("INTERVAL") {
            let days = number(words)?;
            words.expect("DAY")?;
            if !(1..=u64::from(u16::MAX)).contains(&days) {
                let text = format!("Incorrect DAY value: '{days}'");
                return Err(SqlError::new(ErrorKind::WrongValue, text));
            }
            self.lifetime = Some(Lifetime::Days(days as u32));
        } else {
            self.expires_now = true;
        }
        Ok(())
    }

    /// The limits behind WITH. GRANT OPTION may stand among them: true if it does.
    ///
    /// # Errors
    /// 1064.
    pub(super) fn read_limits(&mut self, words: &mut Words<'_>) -> Result<bool, SqlError> {
        let mut any = false;
        let mut grants = false;
        loop {
            if words.accept("MAX_QUERIES_PER_HOUR") {
                self.queries = Some(number(words)?);
            } else if words.accept("MAX_UPDATES_PER_HOUR") {
                self.updates = Some(number(words)?);
            } else if words.accept("MAX_CONNECTIONS_PER_HOUR") {
                self.connections = Some(number(words)?);
            } else if words.accept("MAX_USER_CONNECTIONS") {
                let below = words.accept_symbol("-");
                let count = number(words)?.min(i32::MAX as u64) as i64;
                self.user_connections = Some(if below { -count } else { count });
            } else if words.accept("MAX_STATEMENT_TIME") {
                self.statement_micros = Some((decimal(words)? * 1e6) as u64);
            } else if words.accept_all(&["GRANT", "OPTION"]) {
                grants = true;
            } else if any {
                return Ok(grants);
            } else {
                return Err(words.error());
            }
            any = true;
        }
    }
}

fn number(words: &mut Words<'_>) -> Result<u64, SqlError> {
    let before = words.error();
    match words.next() {
        Word::Number(text) => text.parse().map_err(|_| before),
        _ => Err(before),
    }
}

fn decimal(words: &mut Words<'_>) -> Result<f64, SqlError> {
    let before = words.error();
    match words.next() {
        Word::Number(text) => text.parse().map_err(|_| before),
        _ => Err(before),
    }
}

fn tls_need(words: &mut Words<'_>) -> Result<TlsNeed, SqlError> {
    if words.accept("NONE") {
        return Ok(TlsNeed::None);
    }
    if words.accept("SSL") {
        return Ok(TlsNeed::Any);
    }
    if words.accept("X509") {
        return Ok(TlsNeed::X509);
    }
    let (mut issuer, mut subject, mut cipher) = (String::new(), String::new(), String::new());
    let mut any = false;
    loop {
        let place = if words.accept("ISSUER") {
            &mut issuer
        } else if words.accept("SUBJECT") {
            &mut subject
        } else if words.accept("CIPHER") {
            &mut cipher
        } else if any {
            return Ok(TlsNeed::Specified { issuer, subject, cipher });
        } else {
            return Err(words.error());
        };
        *place = words.string()?;
        any = true;
        words.accept("AND");
    }
}

/// How an account logs in, as a statement says it.
#[derive(Clone, Debug)]
pub(super) struct Identified {
    ways: Vec<Way>,
    refusal: Option<Refusal>,
}

impl Identified {
    fn add(
        &mut self,
        session: &Session,
        user: &str,
        plugin: &str,
        secret: Secret<'_>,
    ) -> Result<(), SqlError> {
        self.ways.push(way(session, plugin, secret)?);
        if self.refusal.is_none() {
            self.refusal = passwords::check(session, user, plugin, secret);
        }
        Ok(())
    }
}

/// IDENTIFIED, if it stands here: how the account of `user` logs in. What is wrong with a password is told
/// when the account is changed.
///
/// # Errors
/// 1064; 1372 for a hash that is none, 1524 for a method that this server does not have.
pub(super) fn identified(
    session: &Session,
    user: &str,
    words: &mut Words<'_>,
) -> Result<Option<Identified>, SqlError> {
    if !words.accept("IDENTIFIED") {
        return Ok(None);
    }
    let mut found = Identified { ways: Vec::new(), refusal: None };
    if words.accept("BY") {
        let is_stored = words.accept("PASSWORD");
        let text = words.string()?;
        let secret = if is_stored { Secret::Stored(&text) } else { Secret::Password(&text) };
        found.add(session, user, NATIVE, secret)?;
        return Ok(Some(found));
    }
    if !words.accept("VIA") {
        words.expect("WITH")?;
    }
    loop {
        let plugin = part(words)?.to_ascii_lowercase();
        if words.accept("USING") || words.accept("AS") {
            if words.accept("PASSWORD") {
                words.expect_symbol("(")?;
                let password = words.string()?;
                words.expect_symbol(")")?;
                found.add(session, user, &plugin, Secret::Password(&password))?;
            } else {
                found.add(session, user, &plugin, Secret::Stored(&words.string()?))?;
            }
        } else if words.accept("BY") {
            found.add(session, user, &plugin, Secret::Password(&words.string()?))?;
        } else {
            found.add(session, user, &plugin, Secret::Stored(""))?;
        }
        if !words.accept("OR") {
            return Ok(Some(found));
        }
    }
}

/// The method of IDENTIFIED BY: nearly every client library has it.
const NATIVE: &str = "mysql_native_password";

/// What an account without IDENTIFIED logs in with: no password.
pub(super) fn without_password() -> Vec<Way> {
    vec![Way { plugin: NATIVE.to_owned(), text: String::new() }]
}

/// What a statement gives of a secret.
#[derive(Clone, Copy)]
pub(super) enum Secret<'a> {
    Password(&'a str),
    /// What the server keeps of a password.
    Stored(&'a str),
}

/// A way to log in, with the text that the server keeps.
///
/// # Errors
/// 1372, 1524.
pub(super) fn way(session: &Session, plugin: &str, secret: Secret<'_>) -> Result<Way, SqlError> {
    let Some(host) = session.instance.host() else {
        return Err(SqlError::not_supported("accounts without a server"));
    };
    let text = match secret {
        Secret::Password(password) => host.new_secret(plugin, password.as_bytes())?,
        Secret::Stored(text) => {
            host.check_secret(plugin, text)?;
            text.to_owned()
        }
    };
    Ok(Way { plugin: plugin.to_owned(), text })
}
