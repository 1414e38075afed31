//! The log as the engine uses it: what may be appended when, and when it is durable.
//!
//! One log for all files. A record has a kind, one byte: [`kind::PAGES`] describes changes of pages (see
//! `format::redo`), all from [`kind::LOGICAL`] on belong to the transactions.
//!
//! How to log a change: hold what makes the order of changes (page latches, a row's latch),
//! [`Journal::append`], then change. If the append fails nothing has been changed, and nothing may be: the
//! log takes nothing more, and `WriteCore::touch` refuses every statement from then on. Records are redone in
//! the order of their LSNs, and the order in which appends return under one latch is the order of their LSNs.
//!
//! How to make it durable: [`Journal::commit`] with the end of the statement's last record, with no latch
//! held.
//!
//! A checkpoint may forget every record below the [`Journal::position`] that it read, unless a page that such
//! a record changed is still dirty, or `WriteCore::oldest_needed` keeps it. A transaction that wants its
//! records kept registers `position()` *before* its first append.
//!
//! After a crash: pages first, then `recovery::Logical::record` gets each record of the other kinds in order,
//! then, with the tables open and the log accepting appends again, `recovery::Logical::finish`.

use crate::definition::{FlushLog, LogOptions};
use crate::names::LOG_DIR;
use crate::{Error, Result};
use base::Lsn;
use base::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use base::sync::{Arc, Condvar, Mutex};
use pagecache::WriteAhead;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use vfs::Vfs;
use wal::{Durability, Log, LogConfig};

/// What records are about.
pub(crate) mod kind {
    /// Changes of pages of one file that belong together: see `format::redo`.
    pub(crate) const PAGES: u8 = 1;
    /// From here on the transactions' own.
    pub(crate) const LOGICAL: u8 = 16;
}

/// The next file of the log is made ahead when less than this share of the last one is left. If a statement
/// logs more than is left, the thread that writes the log makes the file.
const MARGIN_DIVISOR: u64 = 4;

/// The reserve is made when the first file of a log is nearly full, and not before the first statement, if
/// the file has room for what is logged between two looks.
const EASY_BYTES: u64 = 1 << 20;

/// A transaction whose undo takes less has its room in the log's last file. One that takes more sets room
/// aside in pieces of this size: rarely enough for a latch that all share.
const UNDO_PIECE: u64 = 64 << 10;

/// How long the thread that writes the log waits on a full disk for the log's next file. All commits wait
/// with it; after that only a restart helps.
const FULL_WAIT: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(60) };

/// How the log of a directory is kept.
fn log_config(dir: &Path, options: &LogOptions) -> LogConfig {
    LogConfig {
        file_size: options.file_size,
        buffer_size: options.buffer_size,
        full_wait: FULL_WAIT,
        ..LogConfig::new(dir.join(LOG_DIR))
    }
}

/// The log of an open database.
#[derive(Debug)]
pub(crate) struct Journal {
    log: Log,
    flush_log: AtomicU8,
    /// While pages are redone: the record that is. Else the largest number.
    redoing: AtomicU64,
    margin: u64,
    capacity: u64,
    /// Where recovery would begin to read for the sake of pages, as of the last checkpoint.
    needed: AtomicU64,
    /// Statements begin below without asking further.
    admitted: AtomicU64,
    file_size: u64,
    /// What taking back the transactions under way may take, in bytes, in round numbers.
    undo: AtomicU64,
    /// The reserve has been asked for. While it is not whole statements change nothing.
    has_reserve: AtomicBool,
    call: Arc<Call>,
}

impl Journal {
    /// Makes a new log, in a folder that has none.
    pub(crate) fn create(vfs: Arc<dyn Vfs>, dir: &Path, options: &LogOptions) -> Result<Journal> {
        let log = Log::create(vfs, log_config(dir, options))?;
        Ok(Journal::new(log, options))
    }

    /// Opens a log whose records end at `end`.
    pub(crate) fn open(vfs: Arc<dyn Vfs>, dir: &Path, options: &LogOptions, end: Lsn) -> Result<Journal> {
        let log = Log::open_at(vfs, log_config(dir, options), end)?;
        Ok(Journal::new(log, options))
    }

    fn new(log: Log, options: &LogOptions) -> Journal {
        let needed = log.checkpoint().map_or(wal::FIRST_LSN, |checkpoint| checkpoint.needed);
        let journal = Journal {
            log,
            flush_log: AtomicU8::new(options.flush as u8),
            redoing: AtomicU64::new(u64::MAX),
            margin: options.file_size / MARGIN_DIVISOR,
            capacity: options.capacity,
            needed: AtomicU64::new(needed.0),
            admitted: AtomicU64::new(0),
            file_size: options.file_size,
            undo: AtomicU64::new(0),
            has_reserve: AtomicBool::new(false),
            call: Arc::default(),
        };
        if options.file_size >= EASY_BYTES {
            journal.set_needed(needed);
        }
        journal
    }

    /// Appends a record and gives its place. See above for what is held meanwhile.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] after a failure of the log's device. Nothing was logged then.
    #[inline]
    pub(crate) fn append(&self, kind: u8, parts: &[&[u8]]) -> Result<Range<Lsn>> {
        Ok(self.log.append(kind, parts)?)
    }

    /// Returns when everything below `up_to` is as safe as asked. Waits for the device.
    pub(crate) fn flush(&self, up_to: Lsn, durability: Durability) -> Result<()> {
        Ok(self.log.flush(up_to, durability)?)
    }

    /// Makes what was logged below `up_to` as safe as `flush_log_at_trx_commit` asks. For the end of a
    /// statement.
    pub(crate) fn commit(&self, up_to: Lsn) -> Result<()> {
        match self.flush_log() {
            FlushLog::Lazily => Ok(()),
            FlushLog::AtCommit => self.flush(up_to, Durability::Synced),
            FlushLog::WriteAtCommit => self.flush(up_to, Durability::Written),
        }
    }

    /// At or below the place of every record to come.
    #[inline]
    pub(crate) fn position(&self) -> Lsn {
        // ORDER: changed by recovery only, before other threads know the journal.
        Lsn(self.log.next_lsn().0.min(self.redoing.load(Ordering::Relaxed)))
    }

    pub(crate) fn flush_log(&self) -> FlushLog {
        // ORDER: a setting that is seen soon enough.
        FlushLog::from_u8(self.flush_log.load(Ordering::Relaxed))
    }

    pub(crate) fn set_flush_log(&self, flush_log: FlushLog) {
        // ORDER: as above.
        self.flush_log.store(flush_log as u8, Ordering::Relaxed);
    }

    /// Why nothing can be logged any more.
    pub(crate) fn failure(&self) -> Option<String> {
        self.log.poisoned().map(str::to_string)
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Says which record is being redone, for pages that become dirty by it.
    pub(crate) fn set_redoing(&self, lsn: Option<Lsn>) {
        // ORDER: as in `position`.
        self.redoing.store(lsn.map_or(u64::MAX, |lsn| lsn.0), Ordering::Relaxed);
    }

    /// True if a statement may begin without [`Journal::make_admissible`].
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        // ORDER: a threshold: a thread that reads an old one asks once too often, or begins a little too far.
        self.log.next_lsn().0 < self.admitted.load(Ordering::Relaxed)
    }

    /// Has the log make files ahead, and if it is full of what pages need, waits for a round of the
    /// checkpointer, or does its work by `make_room`. With no latch held.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room for the log's next file: nothing has been lost yet.
    pub(crate) fn make_admissible(&self, make_room: impl FnOnce() -> Result<()>) -> Result<()> {
        self.keep_reserve()?;
        self.prepare()?;
        if !self.admits() && !self.call.ask() {
            make_room()?;
        }
        Ok(())
    }

    /// Has the log make files ahead, for a thread that logs much and cannot wait.
    #[inline]
    pub(crate) fn prepare_if_due(&self) -> Result<()> {
        if self.admits() { Ok(()) } else { self.prepare() }
    }

    /// Makes the log's next file if the last is nearly full.
    pub(crate) fn prepare(&self) -> Result<()> {
        if self.log.prepared_lsn().0 < self.log.next_lsn().0 + self.margin {
            self.log.prepare_file()?;
        }
        self.set_needed(self.needed());
        Ok(())
    }

    /// As [`Journal::prepare_if_due`], for a thread that takes changes back, which must go on: on a full disk
    /// the file is made from the reserve.
    ///
    /// # Errors
    /// [`Error::Full`] if that is used up.
    pub(crate) fn prepare_to_undo(&self) -> Result<()> {
        while self.log.prepared_lsn().0 < self.log.next_lsn().0 + self.margin {
            match self.log.prepare_file() {
                Ok(()) => break,
                Err(error) => match Error::from(error) {
                    Error::Full if self.give_reserve() => {}
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Gives a part of the reserve up, for a thread that takes changes back and has met a full disk. False if
    /// nothing is left. No statement changes anything until the reserve is whole again.
    pub(crate) fn give_reserve(&self) -> bool {
        // ORDER: as in `admits`.
        self.admitted.store(0, Ordering::Relaxed);
        self.log.give_reserve(self.file_size)
    }

    /// The size of the pieces in which a transaction asks for [`Journal::reserve`].
    pub(crate) fn undo_piece(&self) -> u64 {
        UNDO_PIECE.min(self.margin / 4)
    }

    /// Sets room on the disk aside, so that a transaction can be taken back when the disk is full. To be
    /// called before the changes.
    ///
    /// # Errors
    /// [`Error::Full`].
    pub(crate) fn reserve(&self, bytes: u64) -> Result<()> {
        // ORDER: a sum; the reserve has its own latch.
        self.undo.fetch_add(bytes, Ordering::Relaxed);
        self.keep_reserve().inspect_err(|_| self.unreserve(bytes))
    }

    /// Gives back what [`Journal::reserve`] has set aside. A checkpoint gives it back to the disk.
    pub(crate) fn unreserve(&self, bytes: u64) {
        // ORDER: as in `reserve`.
        self.undo.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What is to be set aside: for the undo of large transactions, and a file of the log more, for all
    /// others, for pages that taking back takes, and for a start.
    fn reserve_wanted(&self) -> u64 {
        // ORDER: as in `reserve`.
        self.file_size + self.undo.load(Ordering::Relaxed)
    }

    fn keep_reserve(&self) -> Result<()> {
        // ORDER: as in `admits`.
        self.has_reserve.store(true, Ordering::Relaxed);
        let wanted = self.reserve_wanted();
        if wanted <= self.log.reserve() {
            return Ok(());
        }
        // In large steps if they fit.
        let step = wanted.next_multiple_of(self.file_size);
        if step > wanted && self.log.keep_reserve(step).is_ok() {
            return Ok(());
        }
        Ok(self.log.keep_reserve(wanted)?)
    }

    /// Gives back to the disk what nothing needs to be set aside for any more.
    pub(crate) fn trim_reserve(&self) -> Result<()> {
        Ok(self.log.trim_reserve(self.reserve_wanted().next_multiple_of(self.file_size))?)
    }

    /// Where what pages need begins, as of the last checkpoint.
    pub(crate) fn needed(&self) -> Lsn {
        // ORDER: as in `admits`.
        Lsn(self.needed.load(Ordering::Relaxed))
    }

    pub(crate) fn set_needed(&self, needed: Lsn) {
        let prepared = self.log.prepared_lsn().0.saturating_sub(self.margin);
        // ORDER: as in `admits`.
        let is_short = self.has_reserve.load(Ordering::Relaxed) && self.log.reserve() < self.reserve_wanted();
        let admitted = if is_short { 0 } else { prepared.min(needed.0 + self.capacity) };
        // ORDER: as in `admits`.
        self.needed.store(needed.0, Ordering::Relaxed);
        self.admitted.store(admitted, Ordering::Relaxed);
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn call(&self) -> &Arc<Call> {
        &self.call
    }
}

impl WriteAhead for Journal {
    fn position(&self) -> Lsn {
        Journal::position(self)
    }

    fn end(&self) -> Lsn {
        self.log.next_lsn()
    }

    fn make_durable(&self, lsn: Lsn) -> Result<(), String> {
        self.log.flush(lsn, Durability::Synced).map_err(|error| error.to_string())
    }
}

/// How statements talk to the thread that takes checkpoints.
#[derive(Default, Debug)]
pub(crate) struct Call {
    state: Mutex<Calls>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct Calls {
    /// There is a thread.
    is_served: bool,
    #[cfg(not(feature = "shuttle"))]
    stop: bool,
    asked: bool,
    /// Rounds that have ended.
    rounds: u64,
}

impl Call {
    /// Calls the thread and waits until it has gone round; false if there is none.
    fn ask(&self) -> bool {
        let mut state = self.state.lock();
        // One that is under way may have looked already.
        let wanted = state.rounds + 2;
        while state.is_served && state.rounds < wanted {
            state.asked = true;
            self.changed.notify_all();
            state = self.changed.wait(state);
        }
        state.is_served
    }
}

/// What the thread does, which models go without.
#[cfg(not(feature = "shuttle"))]
impl Call {
    pub(crate) fn set_served(&self, is_served: bool) {
        self.state.lock().is_served = is_served;
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Sleeps until called; false when it is time to end.
    pub(crate) fn wait(&self, tick: std::time::Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.asked {
            state = self.changed.wait_timeout(state, tick).0;
        }
        state.asked = false;
        !state.stop
    }

    /// A round has ended.
    pub(crate) fn served(&self) {
        self.state.lock().rounds += 1;
        self.changed.notify_all();
    }
}
