//! Logins: finds the account of a client in the book of accounts, and checks what the client answers.
//!
//! A new data directory has one account, `root@localhost`. It has no password, and lets in the users of the
//! operating system that the server trusts ([`TrustedPeers`]), through the unix socket. With a password it
//! may connect over TCP too.
//!
//! Before there were accounts in tables, the passwords were in a text file, `accounts`, with one line for
//! each account: the user, a tab, and `*` and 40 hexadecimal digits, `SHA1(SHA1(password))`, or nothing
//! without a password. [`first_accounts`] reads it for the tables of such a directory.

mod secrets;
mod usage;

pub(crate) use secrets::{CACHING_SHA2, ED25519, NATIVE, PARSEC, UNIX_SOCKET, check_secret, new_secret};
use secrets::{INVALID, asks_for_password};
pub(crate) use usage::Place;

use base::sync::Mutex;
use sql::accounts::{Account, Accounts as Book, Grantee, Rights, Way};
use sql::{ErrorKind, SqlError};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::auth::PasswordHash;
use wire::auth::caching_sha2::Verifier;

const FILE_NAME: &str = "accounts";
const ROOT: &str = "root";
/// So many passwords are remembered.
const VERIFIERS_MAX: usize = 4096;

/// What is known of accounts beside the book.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// By account: wrong passwords since the last right one.
    failures: Mutex<BTreeMap<Grantee, u64>>,
    /// Of the passwords that were right, by their slow hashes. Another password has another hash, so nothing
    /// here grows wrong.
    verifiers: Mutex<BTreeMap<String, Verifier>>,
    usage: Arc<Mutex<usage::Usage>>,
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

/// The answer to whoever may not come in, whatever the reason.
pub(crate) fn denied(user: &str, host: &str, using_password: bool) -> SqlError {
    let using = if using_password { "YES" } else { "NO" };
    let message = format!("Access denied for user '{user}'@'{host}' (using password: {using})");
    SqlError::new(ErrorKind::AccessDenied, message)
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
    account.ways.iter().any(asks_for_password)
}

/// True if the host is this machine.
fn is_here(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1")
}

/// The names of a client's host, as accounts may have them: on this machine, `localhost` too.
fn peers(host: &str) -> Vec<&str> {
    if is_here(host) && host != "localhost" { vec![host, "localhost"] } else { vec![host] }
}

/// The account that a client means, or `None`.
pub(crate) fn find(book: &Book, user: &str, host: &str) -> Option<Arc<Account>> {
    book.find(user, &peers(host))
}

/// As in MariaDB, an account with all rights is never blocked for clients on the server's own machine, so
/// that a stranger cannot lock the administrator out.
fn is_spared(account: &Account, host: &str) -> bool {
    is_here(host) && account.rights.contains(Rights::CONNECTION_ADMIN)
}

/// True if the operating system lets the client in: it is the user of the account's name, or one that is
/// trusted as `root`.
pub(crate) fn is_vouched_for(
    account: &Account,
    uid: Option<u32>,
    trust: Trust,
    using_password: bool,
) -> bool {
    if account.name.user == ROOT {
        let trusted = match trust {
            Trust::No => false,
            Trust::UntilPassword => !has_password(account),
            Trust::Yes => true,
        };
        return trusted && !using_password;
    }
    let user = uid.filter(|uid| *uid != TrustedPeers::NOBODY).and_then(uzers::get_user_by_uid);
    user.is_some_and(|user| user.name() == account.name.user.as_str())
}

impl Accounts {
    /// FLUSH PRIVILEGES: forgets the wrong passwords, and the right ones.
    pub(crate) fn forgive(&self) {
        self.failures.lock().clear();
        self.verifiers.lock().clear();
    }

    /// # Errors
    /// 4150 after `errors_max` wrong passwords.
    pub(crate) fn check_block(&self, account: &Account, host: &str, errors_max: u64) -> Result<(), SqlError> {
        let failures = self.failures.lock().get(&account.name).copied();
        if is_spared(account, host) || failures.is_none_or(|count| count < errors_max) {
            return Ok(());
        }
        Err(SqlError::new(
            ErrorKind::UserIsBlocked,
            "User is blocked because of too many credential errors; unblock with \
             'ALTER USER / FLUSH PRIVILEGES'",
        ))
    }

    /// Notes that a client of this account has given the right password, or a wrong one.
    pub(crate) fn note(&self, account: &Account, host: &str, is_right: bool) {
        if is_spared(account, host) {
            return;
        }
        let mut failures = self.failures.lock();
        match is_right {
            true => drop(failures.remove(&account.name)),
            false => *failures.entry(account.name.clone()).or_default() += 1,
        }
    }

    /// What checks answers for a slow hash quickly, if its password is known.
    pub(crate) fn verifier(&self, text: &str) -> Option<Verifier> {
        self.verifiers.lock().get(text).copied()
    }

    pub(crate) fn remember(&self, text: &str, verifier: Verifier) {
        let mut verifiers = self.verifiers.lock();
        if verifiers.len() >= VERIFIERS_MAX {
            verifiers.clear();
        }
        verifiers.insert(text.to_owned(), verifier);
    }

    /// FLUSH USER_RESOURCES.
    pub(crate) fn forget_usage(&self) {
        self.usage.lock().values().for_each(|of_account| of_account.hourly.forget());
    }

    /// Takes a place among the account's connections.
    ///
    /// # Errors
    /// 1203 and 1226: it has too many.
    pub(crate) fn take_place(&self, account: &Account, each_max: i64) -> Result<Place, SqlError> {
        usage::take_place(&self.usage, account, each_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_password_only_a_trusted_peer_gets_in() {
        let root = administrator("root", "localhost", "");
        assert!(is_vouched_for(&root, Some(1), Trust::Yes, false));
        assert!(is_vouched_for(&root, Some(1), Trust::UntilPassword, false));
        assert!(!is_vouched_for(&root, Some(1), Trust::No, false));
        assert!(!is_vouched_for(&root, Some(1), Trust::Yes, true), "a wrong password is refused");
        let root = administrator("root", "localhost", &PasswordHash::of(b"secret").to_text());
        assert!(is_vouched_for(&root, Some(1), Trust::Yes, false));
        assert!(!is_vouched_for(&root, Some(1), Trust::UntilPassword, false));
        let daemon = Account { name: Grantee::new("daemon", "localhost"), ..root };
        assert!(is_vouched_for(&daemon, Some(1), Trust::No, false), "uid 1 is daemon");
        assert!(!is_vouched_for(&daemon, Some(2), Trust::Yes, false));
        assert!(!is_vouched_for(&daemon, None, Trust::No, false));
    }

    #[test]
    fn wrong_passwords_block_an_account_until_it_is_forgiven() {
        let accounts = Accounts::default();
        let account = Account { name: Grantee::new("a", "%"), ..Account::default() };
        accounts.note(&account, "10.0.0.1", false);
        assert_eq!(accounts.check_block(&account, "10.0.0.1", 2), Ok(()));
        accounts.note(&account, "10.0.0.1", false);
        assert_eq!(accounts.check_block(&account, "10.0.0.1", 2).unwrap_err().code(), 4150);
        accounts.forgive();
        assert_eq!(accounts.check_block(&account, "10.0.0.1", 2), Ok(()));
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
}
