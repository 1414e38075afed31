//! What statements hold in memory, counted and bounded.
//!
//! Whatever grows with the rows of a statement has a [`Charge`]: the rows of a sort, the groups, the keys of
//! DISTINCT, the table of a hash join, the rows of a derived table. A charge is compared with one number a
//! row. It tells the session's [`Account`] only when it has grown by [`CHUNK`] bytes. The first chunk of each
//! charge is not counted, so that a statement of few rows writes no memory that other sessions read.

use crate::error::PRODUCT;
use crate::{ErrorKind, SqlError};
use base::sync::Arc;
use base::sync::atomic::{AtomicU64, Ordering};

/// Charges grow by this many bytes at a time.
pub(crate) const CHUNK: usize = 64 << 10;

/// What the sessions of a server hold together.
#[derive(Debug)]
pub(crate) struct ServerMemory {
    used: AtomicU64,
    /// `max_server_mem_used`.
    max: AtomicU64,
}

impl Default for ServerMemory {
    fn default() -> ServerMemory {
        ServerMemory { used: AtomicU64::new(0), max: AtomicU64::new(u64::MAX) }
    }
}

impl ServerMemory {
    /// Bytes.
    pub(crate) fn used(&self) -> u64 {
        // ORDER: a sum. Nothing else is read because of it.
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn set_max(&self, bytes: u64) {
        // ORDER: a bound. A charge that is made at the same moment may still go by the old one.
        self.max.store(bytes, Ordering::Relaxed);
    }
}

/// What one session holds.
#[derive(Debug)]
pub(crate) struct Account {
    server: Arc<ServerMemory>,
    used: AtomicU64,
    peak: AtomicU64,
    /// `max_session_mem_used`.
    max: AtomicU64,
}

impl Account {
    pub(crate) fn new(server: Arc<ServerMemory>) -> Account {
        Account { server, used: AtomicU64::new(0), peak: AtomicU64::new(0), max: AtomicU64::new(u64::MAX) }
    }

    /// Bytes.
    pub(crate) fn used(&self) -> u64 {
        // ORDER: only the session's thread writes. Others need a recent number for display.
        self.used.load(Ordering::Relaxed)
    }

    /// The most bytes that it ever held.
    pub(crate) fn peak(&self) -> u64 {
        // ORDER: as in `used`.
        self.peak.load(Ordering::Relaxed)
    }

    pub(crate) fn set_max(&self, bytes: u64) {
        // ORDER: only the session's thread reads and writes it.
        self.max.store_owned(bytes, Ordering::Relaxed);
    }

    /// # Errors
    /// 1290 if the session would hold more than `max_session_mem_used`, 1041 if all sessions together would
    /// hold more than the server allows.
    fn add(&self, bytes: u64) -> Result<(), SqlError> {
        let used = self.used() + bytes;
        // ORDER: as in `set_max`.
        let max = self.max.load(Ordering::Relaxed);
        if used > max {
            return Err(SqlError::new(
                ErrorKind::OptionPreventsStatement,
                format!(
                    "The {PRODUCT} server is running with the --max-session-mem-used={max} option so it cannot \
                     execute this statement"
                ),
            ));
        }
        // ORDER: a sum, as in `ServerMemory::used`, and a bound, as in `ServerMemory::set_max`.
        let all = self.server.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if all > self.server.max.load(Ordering::Relaxed) {
            self.server.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(SqlError::new(ErrorKind::OutOfResources, "Out of memory."));
        }
        // ORDER: as in `used`.
        self.used.store_owned(used, Ordering::Relaxed);
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.store_owned(used, Ordering::Relaxed);
        }
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        // ORDER: as in `add`.
        self.server.used.fetch_sub(bytes, Ordering::Relaxed);
        self.used.store_owned(self.used() - bytes, Ordering::Relaxed);
    }
}

/// The part of an account that one buffer holds. It is given back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    /// What is counted.
    bytes: usize,
    /// Present once something is counted.
    account: Option<Arc<Account>>,
}

impl Charge {
    /// The buffer holds `bytes` now.
    ///
    /// # Errors
    /// Those of [`Account::add`].
    #[inline]
    pub(crate) fn cover(&mut self, bytes: usize, account: &Arc<Account>) -> Result<(), SqlError> {
        if bytes <= self.covered() { Ok(()) } else { self.grow(bytes, account) }
    }

    /// A buffer of this size needs nothing more counted.
    #[inline]
    pub(crate) fn covered(&self) -> usize {
        self.bytes + CHUNK
    }

    /// As [`Charge::cover`], and gives back what a smaller buffer does not need.
    ///
    /// # Errors
    /// Those of [`Account::add`], if the buffer has grown.
    pub(crate) fn follow(&mut self, bytes: usize, account: &Arc<Account>) -> Result<(), SqlError> {
        self.cover(bytes, account)?;
        let needed = bytes.saturating_sub(CHUNK).next_multiple_of(CHUNK);
        if let Some(account) = &self.account {
            account.give_back((self.bytes - needed) as u64);
            self.bytes = needed;
        }
        Ok(())
    }

    /// The buffer is empty.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.account.is_some() {
            *self = Charge::default();
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize, account: &Arc<Account>) -> Result<(), SqlError> {
        let bytes = bytes.saturating_sub(CHUNK).next_multiple_of(CHUNK);
        account.add((bytes - self.bytes) as u64)?;
        self.bytes = bytes;
        self.account.get_or_insert_with(|| account.clone());
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.give_back(self.bytes as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_counts_in_chunks_and_gives_everything_back() {
        let server = Arc::new(ServerMemory::default());
        let (account, other) =
            (Arc::new(Account::new(server.clone())), Arc::new(Account::new(server.clone())));
        let mut charge = Charge::default();
        charge.cover(CHUNK, &account).unwrap();
        assert_eq!((account.used(), server.used()), (0, 0), "few bytes are not counted");
        charge.cover(CHUNK + 1, &account).unwrap();
        assert_eq!((account.used(), server.used()), (CHUNK as u64, CHUNK as u64));
        charge.cover(10 * CHUNK, &account).unwrap();
        let mut second = Charge::default();
        second.cover(3 * CHUNK, &other).unwrap();
        assert_eq!((account.used(), other.used(), server.used()), (9 << 16, 2 << 16, 11 << 16));
        charge.follow(5 * CHUNK, &account).unwrap();
        assert_eq!((account.used(), server.used()), (4 << 16, 6 << 16));
        drop(charge);
        assert_eq!((account.used(), account.peak(), server.used()), (0, 9 << 16, 2 << 16));
    }

    #[test]
    fn what_goes_beyond_a_bound_is_refused_and_not_counted() {
        let server = Arc::new(ServerMemory::default());
        let (account, other) =
            (Arc::new(Account::new(server.clone())), Arc::new(Account::new(server.clone())));
        account.set_max(4 << 16);
        server.set_max(6 << 16);
        let mut charge = Charge::default();
        charge.cover(5 << 16, &account).unwrap();
        let error = charge.cover(6 << 16, &account).unwrap_err();
        assert_eq!(error.code(), 1290);
        assert!(error.message.contains("--max-session-mem-used=262144 "), "{}", error.message);
        let mut second = Charge::default();
        assert_eq!(second.cover(4 << 16, &other).unwrap_err().code(), 1041);
        second.cover(3 << 16, &other).unwrap();
        assert_eq!((account.used(), other.used(), server.used()), (4 << 16, 2 << 16, 6 << 16));
    }
}
