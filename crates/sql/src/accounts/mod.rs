//! Accounts and what they may do.
//!
//! The rows of `mysql.global_priv`, `db`, `tables_priv`, `columns_priv` and `roles_mapping` are where
//! accounts are kept. [`Accounts`] has them as a [`book::Book`] in memory. A login finds its [`Account`]
//! there. A session's [`access::Access`] says what it may do. A statement whose needs the global rights of
//! the session cover costs one comparison.

pub(crate) mod access;
mod account;
pub(crate) mod book;
mod hourly;
mod pattern;
mod rights;

pub use account::{Account, Grantee, Lifetime, Limits, TlsNeed, Way};
pub use hourly::{Hourly, limit_reached};
pub use rights::Rights;

use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use base::sync::{Mutex, RwLock};
use book::Book;
use std::sync::Arc;

base::latch_class!(pub BookLatch, "accounts");

/// The accounts of a server. Without any, as in a program that embeds the engine, everybody may do
/// everything.
#[derive(Debug, Default)]
pub struct Accounts {
    book: RwLock<Option<Arc<Book>>, BookLatch>,
    /// Grows with every new book.
    version: AtomicU64,
    /// Held by a statement that changes accounts, from reading the book to putting the new one in its place.
    changing: Mutex<()>,
    /// Whether passwords must be as `simple_password_check` wants them.
    checks_passwords: AtomicBool,
}

impl Accounts {
    /// False if everybody may do everything: `--skip-grant-tables`.
    pub fn are_on(&self) -> bool {
        self.book.read().is_some()
    }

    /// Whether new passwords must be as the variables `simple_password_check_...` say.
    pub fn checks_passwords(&self) -> bool {
        // ORDER: a flag by itself. A statement that runs beside the change may see either value.
        self.checks_passwords.load(Ordering::Relaxed)
    }

    /// Switches the check of new passwords on or off, until the server stops.
    pub fn set_checks_passwords(&self, on: bool) {
        // ORDER: as in `checks_passwords`.
        self.checks_passwords.store(on, Ordering::Relaxed);
    }

    /// The account of a client that gives this name and is known as `peers`: its address, and `localhost` if
    /// it is on this machine. `None` if it has none.
    pub fn find(&self, user: &str, peers: &[&str]) -> Option<Arc<Account>> {
        self.book.read().as_ref()?.find(user, peers)
    }

    /// The book, and its version. The version may be older, and the book is then looked at once more.
    pub(crate) fn book(&self) -> Option<(Arc<Book>, u64)> {
        let version = self.version();
        self.book.read().clone().map(|book| (book, version))
    }

    pub(crate) fn version(&self) -> u64 {
        // ORDER: pairs with the increment in `put`: who sees the version finds its book or a later one.
        self.version.load(Ordering::Acquire)
    }

    /// Puts a new book in the place of the old one.
    pub(crate) fn put(&self, book: Book) {
        *self.book.write() = Some(Arc::new(book));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Keeps other statements from changing accounts.
    pub(crate) fn begin_change(&self) -> base::sync::MutexGuard<'_, ()> {
        self.changing.lock()
    }
}
