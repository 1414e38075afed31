//! Logins: finds the account of a client in the book of accounts, and checks what the client answers.
//!
//! A new data directory has one account, `root@localhost`. It has no password, and lets in the users of the
//! operating system that the server trusts ([`TrustedPeers`]), through the unix socket. With a password it
//! may connect over TCP too.
//!
//! Before there were accounts in tables, the passwords were in a text file, `accounts`, with one line for
//! each account: the user, a tab, and `*` and 40 hexadecimal digits, `SHA1(SHA1(password))`, or nothing
//! without a password. [`first_accounts`] reads it for the tables of such a directory.

use base::sync::Mutex;
use sql::accounts::{Account, Accounts as Book, Grantee, Rights, Way};
use sql::{ErrorKind, SqlError};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::auth::{PasswordHash, Scramble};

const FILE_NAME: &str = "accounts";
const ROOT: &str = "root";
/// The method whose secret is `*` and 40 hexadecimal digits.
pub(crate) const NATIVE: &str = "mysql_native_password";
/// The method that believes the operating system.
const UNIX_SOCKET: &str = "unix_socket";
/// The secret of an account that has no password and lets nobody in without one. No hash looks like it.
const INVALID: &str = "invalid";

/// Counts wrong passwords.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// By account: since the last right one.
    failures: Mutex<BTreeMap<Grantee, u64>>,
}

/// Why the file of accounts cannot be used.
#[derive(Debug)]
pub(crate) struct AccountError {
    path: PathBuf,
    why: String,
}

impl fmt::Display for AccountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read the accounts in {}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for AccountError {}

/// What a client presents when it connects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credentials<'a> {
    pub user: &'a str,
    /// As messages name it: `localhost` or the address.
    pub host: &'a str,
    pub scramble: &'a Scramble,
    pub answer: &'a [u8],
    /// How far the operating system vouches for the peer of a unix socket.
    pub trust: Trust,
    /// `max_password_errors`.
    pub errors_max: u64,
}

impl Credentials<'_> {
    /// The answer to whoever may not come in, whatever the reason.
    pub(crate) fn denied(&self) -> SqlError {
        let using = if self.answer.is_empty() { "NO" } else { "YES" };
        let message =
            format!("Access denied for user '{}'@'{}' (using password: {using})", self.user, self.host);
        SqlError::new(ErrorKind::AccessDenied, message)
    }
}

/// Whether a client needs to know a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    /// It needs one.
    No,
    /// It needs one as soon as the account has one.
    UntilPassword,
    /// It needs none, but a wrong one is refused.
    Yes,
}

/// The users of the operating system who are `root` over the unix socket, without a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TrustedPeers {
    own_uid: u32,
    /// For the user who runs the server.
    own: Trust,
    /// For uid 0. It wins over `own`: a server that runs as root cannot tell itself from the root of a
    /// container that shares the socket's folder.
    root: Trust,
}

impl TrustedPeers {
    /// The uid that the kernel shows for every user whom a user namespace does not know.
    const NOBODY: u32 = 65534;

    /// The meaning of a value of `trusted_peers`, for a server that runs as `own_uid`.
    pub(crate) fn named(name: &str, own_uid: u32) -> TrustedPeers {
        let (own, root) = match name {
            "none" => (Trust::No, Trust::No),
            "own" if own_uid == 0 => (Trust::Yes, Trust::Yes),
            "own" => (Trust::Yes, Trust::No),
            "root" => (Trust::No, Trust::Yes),
            "own_and_root" => (Trust::Yes, Trust::Yes),
            _ => (Trust::Yes, Trust::UntilPassword),
        };
        TrustedPeers { own_uid, own, root }
    }

    /// `None` is a peer without a uid: one over TCP.
    pub(crate) fn trust(self, uid: Option<u32>) -> Trust {
        match uid {
            Some(TrustedPeers::NOBODY) | None => Trust::No,
            Some(0) => self.root,
            Some(uid) if uid == self.own_uid => self.own,
            Some(_) => Trust::No,
        }
    }
}

/// The accounts of a directory whose tables have none: those of its file, or `root` without a password.
///
/// # Errors
/// The file cannot be read, or has a line that is no account.
pub(crate) fn first_accounts(datadir: &Path) -> Result<Vec<Account>, AccountError> {
    let path = datadir.join(FILE_NAME);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("{ROOT}\t\n"),
        Err(error) => return Err(AccountError { path, why: error.to_string() }),
    };
    let mut accounts = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let wrong =
            || AccountError { path: path.clone(), why: format!("line {} is not an account", number + 1) };
        let (user, hash) = line.split_once('\t').ok_or_else(wrong)?;
        if !hash.is_empty() && PasswordHash::from_text(hash).is_none() {
            return Err(wrong());
        }
        accounts.push(administrator(user, "localhost", hash));
        if !hash.is_empty() {
            // The password let in from everywhere.
            accounts.push(administrator(user, "%", hash));
        }
    }
    Ok(accounts)
}

fn administrator(user: &str, host: &str, hash: &str) -> Account {
    let way = |plugin: &str, text: &str| Way { plugin: plugin.to_owned(), text: text.to_owned() };
    let password = way(NATIVE, if hash.is_empty() { INVALID } else { hash });
    let ways = match host {
        "localhost" => vec![password, way(UNIX_SOCKET, "")],
        _ => vec![password],
    };
    Account { name: Grantee::new(user, host), rights: Rights::ALL, ways, ..Account::default() }
}

/// True if the account has a password that can be right.
pub(crate) fn has_password(account: &Account) -> bool {
    account.ways.iter().any(|way| way.plugin == NATIVE && !way.text.is_empty() && way.text != INVALID)
}

/// True if the host is this machine.
fn is_here(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1")
}

/// The names of a client's host, as accounts may have them: on this machine, `localhost` too.
fn peers(host: &str) -> Vec<&str> {
    if is_here(host) && host != "localhost" { vec![host, "localhost"] } else { vec![host] }
}

/// A login that may come in.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub account: Arc<Account>,
    /// Of the password that the client knows.
    pub password: Option<PasswordHash>,
}

impl Accounts {
    /// FLUSH PRIVILEGES: forgets the wrong passwords.
    pub(crate) fn forgive(&self) {
        self.failures.lock().clear();
    }

    /// Finds the client's account, and checks that it may be used. As in MariaDB, an account with all rights
    /// is never blocked for clients on the server's own machine, so that a stranger cannot lock the
    /// administrator out.
    ///
    /// # Errors
    /// 1045: the user, the password or the way in is wrong. 4150 after too many wrong passwords, 4151 for a
    /// locked account.
    pub(crate) fn check(&self, book: &Book, shown: &Credentials<'_>) -> Result<Admitted, SqlError> {
        let Some(account) = book.find(shown.user, &peers(shown.host)) else { return Err(shown.denied()) };
        let spared = is_here(shown.host) && account.rights.contains(Rights::CONNECTION_ADMIN);
        if !spared && self.failures.lock().get(&account.name).is_some_and(|count| *count >= shown.errors_max)
        {
            return Err(SqlError::new(
                ErrorKind::UserIsBlocked,
                "User is blocked because of too many credential errors; unblock with \
                 'ALTER USER / FLUSH PRIVILEGES'",
            ));
        }
        match check_ways(&account, shown) {
            Some(_) if account.locked => {
                Err(SqlError::new(ErrorKind::AccountLocked, "Access denied, this account is locked"))
            }
            Some(password) => {
                if !spared {
                    self.failures.lock().remove(&account.name);
                }
                Ok(Admitted { account, password })
            }
            None => {
                if !spared {
                    *self.failures.lock().entry(account.name.clone()).or_default() += 1;
                }
                Err(shown.denied())
            }
        }
    }
}

/// `None` if no way lets the client in; otherwise the hash of the password that it knows.
fn check_ways(account: &Account, shown: &Credentials<'_>) -> Option<Option<PasswordHash>> {
    account.ways.iter().find_map(|way| match way.plugin.as_str() {
        NATIVE if way.text.is_empty() => shown.answer.is_empty().then_some(None),
        NATIVE => {
            let hash = PasswordHash::from_text(&way.text)?;
            hash.accepts(shown.scramble, shown.answer).then_some(Some(hash))
        }
        UNIX_SOCKET => {
            let trusted = match shown.trust {
                Trust::No => false,
                Trust::UntilPassword => !has_password(account),
                Trust::Yes => true,
            };
            (trusted && account.name.user == ROOT && shown.answer.is_empty()).then_some(None)
        }
        _ => None,
    })
}

/// See [`sql::host::Host::new_secret`].
pub(crate) fn new_secret(plugin: &str, password: &[u8]) -> Result<String, SqlError> {
    match plugin {
        NATIVE if password.is_empty() => Ok(String::new()),
        NATIVE => Ok(PasswordHash::of(password).to_text()),
        UNIX_SOCKET => Ok(String::new()),
        _ => Err(not_loaded(plugin)),
    }
}

/// See [`sql::host::Host::check_secret`].
pub(crate) fn check_secret(plugin: &str, text: &str) -> Result<(), SqlError> {
    match plugin {
        NATIVE if text.is_empty() || text == INVALID || PasswordHash::from_text(text).is_some() => Ok(()),
        NATIVE => {
            let text = "Password hash should be a 41-digit hexadecimal number";
            Err(SqlError::new(ErrorKind::WrongPasswordHash, text))
        }
        UNIX_SOCKET => Ok(()),
        _ => Err(not_loaded(plugin)),
    }
}

fn not_loaded(plugin: &str) -> SqlError {
    SqlError::new(ErrorKind::PluginNotLoaded, format!("Plugin '{plugin}' is not loaded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAMBLE: Scramble = [7; 20];

    fn enters_from(
        host: &str,
        account: &Account,
        password: &str,
        trust: Trust,
    ) -> Option<Option<PasswordHash>> {
        let answer = wire::auth::answer(password.as_bytes(), &SCRAMBLE);
        let user = &account.name.user;
        let shown = Credentials { user, host, scramble: &SCRAMBLE, answer: &answer, trust, errors_max: 3 };
        check_ways(account, &shown)
    }

    #[test]
    fn without_a_password_only_a_trusted_peer_gets_in() {
        let root = administrator("root", "localhost", "");
        assert!(enters_from("localhost", &root, "", Trust::Yes).is_some());
        assert!(enters_from("localhost", &root, "", Trust::UntilPassword).is_some());
        assert!(enters_from("127.0.0.1", &root, "", Trust::No).is_none());
        assert!(enters_from("localhost", &root, "invalid", Trust::Yes).is_none());
        let other = Account { name: Grantee::new("other", "localhost"), ..root };
        assert!(enters_from("localhost", &other, "", Trust::Yes).is_none());
    }

    #[test]
    fn a_password_lets_in_whoever_knows_it_and_ends_some_trust() {
        let hash = PasswordHash::of(b"secret");
        let root = administrator("root", "localhost", &hash.to_text());
        for trust in [Trust::No, Trust::UntilPassword, Trust::Yes] {
            assert_eq!(enters_from("localhost", &root, "secret", trust), Some(Some(hash)));
            assert_eq!(enters_from("localhost", &root, "Secret", trust), None);
        }
        assert_eq!(enters_from("localhost", &root, "", Trust::Yes), Some(None));
        assert_eq!(enters_from("localhost", &root, "", Trust::UntilPassword), None);
    }

    #[test]
    fn uid_0_is_trusted_until_there_is_a_password_and_nobody_never() {
        let peers = TrustedPeers::named("auto", 1000);
        assert_eq!(peers.trust(Some(1000)), Trust::Yes);
        assert_eq!(peers.trust(Some(0)), Trust::UntilPassword);
        assert_eq!(peers.trust(Some(1001)), Trust::No);
        assert_eq!(peers.trust(None), Trust::No);
        assert_eq!(TrustedPeers::named("auto", 0).trust(Some(0)), Trust::UntilPassword);
        for name in ["auto", "own", "own_and_root"] {
            assert_eq!(TrustedPeers::named(name, 65534).trust(Some(65534)), Trust::No, "{name}");
        }
        assert_eq!(TrustedPeers::named("own", 1000).trust(Some(0)), Trust::No);
        assert_eq!(TrustedPeers::named("own", 0).trust(Some(0)), Trust::Yes);
        assert_eq!(TrustedPeers::named("root", 1000).trust(Some(1000)), Trust::No);
        assert_eq!(TrustedPeers::named("root", 1000).trust(Some(0)), Trust::Yes);
        assert_eq!(TrustedPeers::named("none", 1000).trust(Some(1000)), Trust::No);
    }

    #[test]
    fn the_file_of_an_older_version_gives_the_first_accounts() {
        let folder = tempfile::tempdir().unwrap();
        let first = |text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
            }
            first_accounts(folder.path()).map_err(|error| error.to_string())
        };
        assert_eq!(first(None), Ok(vec![administrator("root", "localhost", "")]));
        let hash = PasswordHash::of(b"secret").to_text();
        let both = ["localhost", "%"].map(|host| administrator("root", host, &hash));
        assert_eq!(first(Some(&format!("root\t{hash}\n"))), Ok(both.to_vec()));
        assert!(both.iter().all(has_password));
        assert!(first(Some("root\t*12\n")).unwrap_err().contains("line 1"));
    }

    #[test]
    fn secrets_are_hashes() {
        assert_eq!(new_secret(NATIVE, b"").unwrap(), "");
        let hash = new_secret(NATIVE, b"secret").unwrap();
        assert_eq!(check_secret(NATIVE, &hash), Ok(()));
        assert_eq!(check_secret(NATIVE, "*12").unwrap_err().code(), 1372);
        assert_eq!(check_secret("none", "").unwrap_err().code(), 1524);
        assert_eq!(new_secret("none", b"x").unwrap_err().code(), 1524);
    }
}
