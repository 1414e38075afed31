//! The accounts: who may connect, and with which password. They are a small file in the data directory.
//!
//! There is one account for now, `root`. While it has no password, it may connect only through the unix
//! socket, and only as a user of the operating system that the server trusts ([`TrustedPeers`]). With a
//! password it may connect over TCP too.
//!
//! The file is text, with one line for each account. It has no version: a line that is not of this form ends
//! the start with an error, so this form must stay readable. Empty lines are skipped.
//!
//! | part of a line | what |
//! |---|---|
//! | up to the tab | the user |
//! | after the tab | `*` and 40 hexadecimal digits, `SHA1(SHA1(password))`; empty without a password |

use base::sync::Mutex;
use base::sync::atomic::{AtomicU64, Ordering};
use sql::host::NewPassword;
use sql::{ErrorKind, SqlError};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wire::auth::{PasswordHash, Scramble};

const FILE_NAME: &str = "accounts";
const ROOT: &str = "root";

/// The accounts of one data directory.
#[derive(Debug)]
pub(crate) struct Accounts {
    path: PathBuf,
    passwords: Mutex<BTreeMap<String, Option<PasswordHash>>>,
    /// Wrong passwords of clients on other machines, since the last right one of theirs.
    failures: AtomicU64,
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

impl Accounts {
    /// Reads the accounts; a directory without the file has `root` without a password.
    pub(crate) fn open(datadir: &Path) -> Result<Accounts, AccountError> {
        let path = datadir.join(FILE_NAME);
        let mut passwords = BTreeMap::from([(ROOT.to_string(), None)]);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
                    let wrong = || AccountError {
                        path: path.clone(),
                        why: format!("line {} is not an account", number + 1),
                    };
                    let (user, hash) = line.split_once('\t').ok_or_else(wrong)?;
                    let hash = match hash {
                        "" => None,
                        hash => Some(PasswordHash::from_text(hash).ok_or_else(wrong)?),
                    };
                    passwords.insert(user.to_string(), hash);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(AccountError { path, why: error.to_string() }),
        }
        Ok(Accounts { path, passwords: Mutex::new(passwords), failures: AtomicU64::new(0) })
    }

    /// Sets or takes away a password, in the file first.
    pub(crate) fn set_password(&self, user: &str, password: NewPassword<'_>) -> Result<(), SqlError> {
        let hash = match password {
            NewPassword::Plain(b"") | NewPassword::Hash("") => None,
            NewPassword::Plain(text) => Some(PasswordHash::of(text)),
            NewPassword::Hash(text) => Some(PasswordHash::from_text(text).ok_or_else(|| {
                let message = "Password hash should be a 41-digit hexadecimal number";
                SqlError::new(ErrorKind::WrongPasswordHash, message)
            })?),
        };
        let mut passwords = self.passwords.lock();
        if !passwords.contains_key(user) {
            return Err(SqlError::new(
                ErrorKind::UserNotFound,
                "Can't find any matching row in the user table",
            ));
        }
        let mut changed = passwords.clone();
        changed.insert(user.to_string(), hash);
        self.store(&changed).map_err(|error| {
            let message = format!("Error writing file '{}' ({error})", self.path.display());
            SqlError::new(ErrorKind::CannotWriteFile, message)
        })?;
        *passwords = changed;
        self.forgive();
        Ok(())
    }

    /// Writes a new file beside the old one and renames it.
    /// CRASH: afterwards the file is the old one or the new one, and never a part of one, because the new one
    /// is synced before it is renamed.
    fn store(&self, passwords: &BTreeMap<String, Option<PasswordHash>>) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        for (user, hash) in passwords {
            writeln!(file, "{user}\t{}", hash.map_or(String::new(), PasswordHash::to_text))?;
        }
        file.sync_all()?;
        std::fs::rename(&beside, &self.path)?;
        if let Some(folder) = self.path.parent() {
            std::fs::File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// True if no account has a password.
    pub(crate) fn lack_passwords(&self) -> bool {
        self.passwords.lock().values().all(Option::is_none)
    }

    /// FLUSH PRIVILEGES: forgets the wrong passwords.
    pub(crate) fn forgive(&self) {
        // ORDER: a counter.
        self.failures.store(0, Ordering::Relaxed);
    }

    /// Accepts a connection, and gives the hash of the password that it knows. As in MariaDB, an account
    /// with all rights is never blocked for clients on the server's own machine, so that a stranger cannot
    /// lock the administrator out.
    ///
    /// # Errors
    /// 1045: the user, the password or the way in is wrong. 4150 after too many wrong passwords.
    pub(crate) fn check(&self, shown: &Credentials<'_>) -> Result<Option<PasswordHash>, SqlError> {
        if matches!(shown.host, "localhost" | "127.0.0.1" | "::1") {
            return self.check_password(shown);
        }
        // ORDER: a counter. Logins at the same moment may pass it together.
        if self.failures.load(Ordering::Relaxed) >= shown.errors_max {
            return Err(SqlError::new(
                ErrorKind::UserIsBlocked,
                "User is blocked because of too many credential errors; unblock with \
                 'ALTER USER / FLUSH PRIVILEGES'",
            ));
        }
        let result = self.check_password(shown);
        match result {
            Ok(_) => self.forgive(),
            Err(_) if shown.user == ROOT => {
                // ORDER: as above.
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        result
    }

    fn check_password(&self, shown: &Credentials<'_>) -> Result<Option<PasswordHash>, SqlError> {
        let known = self.passwords.lock().get(shown.user).copied();
        match known {
            None => Err(shown.denied()),
            Some(_) if shown.trust == Trust::Yes && shown.answer.is_empty() => Ok(None),
            Some(None) if shown.trust != Trust::No => Ok(None),
            // The answer is the same as for a wrong password: strangers learn nothing.
            Some(None) => Err(shown.denied()),
            Some(Some(hash)) if hash.accepts(shown.scramble, shown.answer) => Ok(Some(hash)),
            Some(Some(_)) => Err(shown.denied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAMBLE: Scramble = [7; 20];

    type Entered = Result<Option<PasswordHash>, SqlError>;

    fn enters(accounts: &Accounts, user: &str, password: &str, trusted_peer: bool) -> Entered {
        let trust = if trusted_peer { Trust::Yes } else { Trust::No };
        enters_from(accounts, "localhost", user, password, trust)
    }

    fn enters_from(accounts: &Accounts, host: &str, user: &str, password: &str, trust: Trust) -> Entered {
        let answer = wire::auth::answer(password.as_bytes(), &SCRAMBLE);
        let shown = Credentials { user, host, scramble: &SCRAMBLE, answer: &answer, trust, errors_max: 3 };
        accounts.check(&shown)
    }

    #[test]
    fn too_many_wrong_passwords_block_other_machines_and_not_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = Accounts::open(folder.path()).unwrap();
        accounts.set_password("root", NewPassword::Plain(b"secret")).unwrap();
        let code = |host: &str, user: &str, password: &str| {
            enters_from(&accounts, host, user, password, Trust::No).map_or_else(|error| error.code(), |_| 0)
        };
        let afar = |password: &str| code("10.0.0.1", "root", password);
        let wrong = |times: usize| (0..times).for_each(|_| assert_eq!(afar("x"), 1045));
        wrong(2);
        assert_eq!(afar("secret"), 0, "a right password begins the count anew");
        wrong(2);
        for _ in 0..9 {
            assert_eq!(code("10.0.0.1", "somebody", "x"), 1045, "of no account");
            assert_eq!(code("127.0.0.1", "root", "x"), 1045, "on this machine");
        }
        wrong(1);
        assert_eq!((afar("x"), afar("secret")), (4150, 4150));
        assert_eq!(code("127.0.0.1", "root", "secret"), 0);
        assert_eq!(code("localhost", "root", "secret"), 0);
        assert_eq!(afar("secret"), 4150, "a login on this machine unblocks nobody");
        accounts.forgive();
        assert_eq!(afar("secret"), 0);
        wrong(3);
        assert_eq!(afar("secret"), 4150);
        accounts.set_password("root", NewPassword::Plain(b"new")).unwrap();
        assert_eq!(afar("new"), 0);
    }

    #[test]
    fn without_a_password_only_a_trusted_peer_gets_in_and_others_are_told_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = Accounts::open(folder.path()).unwrap();
        assert!(enters(&accounts, "root", "", true).is_ok());
        let refused = enters(&accounts, "root", "", false).unwrap_err();
        assert_eq!(refused.code(), 1045);
        assert_eq!(refused.message, "Access denied for user 'root'@'localhost' (using password: NO)");
        assert_eq!(enters(&accounts, "somebody", "", true).unwrap_err().code(), 1045);
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
    fn a_password_lets_in_whoever_knows_it_and_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = Accounts::open(folder.path()).unwrap();
        accounts.set_password("root", NewPassword::Plain(b"secret")).unwrap();
        for accounts in [accounts, Accounts::open(folder.path()).unwrap()] {
            assert!(enters(&accounts, "root", "secret", false).is_ok());
            assert!(enters(&accounts, "root", "", true).is_ok(), "the socket's owner needs no password");
            for trusted_peer in [false, true] {
                assert_eq!(enters(&accounts, "root", "Secret", trusted_peer).unwrap_err().code(), 1045);
            }
            assert_eq!(enters(&accounts, "root", "", false).unwrap_err().code(), 1045);
        }
    }

    #[test]
    fn a_password_can_be_given_as_a_hash_and_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = Accounts::open(folder.path()).unwrap();
        let hash = PasswordHash::of(b"secret").to_text();
        accounts.set_password("root", NewPassword::Hash(&hash)).unwrap();
        assert!(enters(&accounts, "root", "secret", false).is_ok());
        assert_eq!(accounts.set_password("root", NewPassword::Hash("*12")).unwrap_err().code(), 1372);
        assert_eq!(accounts.set_password("nobody", NewPassword::Plain(b"x")).unwrap_err().code(), 1133);
        accounts.set_password("root", NewPassword::Plain(b"")).unwrap();
        assert_eq!(enters(&accounts, "root", "secret", false).unwrap_err().code(), 1045);
    }

    #[test]
    fn a_damaged_file_of_accounts_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "root\t*12\n").unwrap();
        let error = Accounts::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
