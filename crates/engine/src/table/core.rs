//! What the tables of a database share.

use super::scan::ScanMemory;
use crate::absent::AbsentLockers;
use crate::definition::TableDef;
use crate::format::control::{Control, NextIds};
use crate::journal::Journal;
use crate::latch::{Gate, RowLatches};
use crate::ranges::RangeLocks;
use crate::space::tablespace::{Home, RowCache};
use crate::{Error, Result};
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Arc, CachePadded, Mutex};
use base::{CoreLocal, Stamp};
use pagecache::{Caches, FileFormat, NamedCache};
use transactions::{Config, Transactions, VersionFiles};

base::latch_class!(pub CheckpointLatch, "checkpoint");

base::latch_class!(pub ControlLatch, "control file");

/// The engine below a database's tables.
#[derive(Debug)]
pub(crate) struct Core {
    pub caches: Arc<Caches>,
    /// Rows whose pages are not in memory.
    pub rows_kept: RowCache,
    /// Of files that do not say.
    pub page_size: usize,
    pub journal: Arc<Journal>,
    pub rows: RowLatches,
    pub transactions: Arc<Transactions>,
    /// What transactions at SERIALIZABLE have read.
    pub ranges: RangeLocks,
    /// What scans work in.
    pub scan_memory: CoreLocal<ScanMemory>,
    /// Transactions that have locked keys of rows that are not there: while there are none, inserting many
    /// rows asks for no locks.
    absent_lockers: CachePadded<AbsentLockers>,
    /// Passed by statements that change rows; closed by `Database::close`.
    pub statements: Gate,
    closed: AtomicBool,
    refusing: AtomicBool,
    why_refusing: Mutex<String>,
    pub control: Mutex<Control, ControlLatch>,
    /// Held while a checkpoint is taken.
    pub checkpointing: Mutex<(), CheckpointLatch>,
}

impl Core {
    /// `unfinished`: transactions that the log tells of and that have not ended. `version_files`: where old
    /// versions of rows go that are too much for memory.
    pub(crate) fn new(
        caches: Arc<Caches>,
        rows_kept: RowCache,
        page_size: usize,
        journal: Arc<Journal>,
        control: Control,
        unfinished: Vec<Stamp>,
        version_files: Arc<dyn VersionFiles>,
    ) -> Core {
        let next_id = Stamp(control.next_ids().stamp);
        let version_files = Some(version_files);
        let config = Config { next_id, unfinished, version_files, ..Config::default() };
        Core {
            caches,
            rows_kept,
            page_size,
            journal,
            rows: RowLatches::new(),
            transactions: Transactions::new(&config),
            ranges: RangeLocks::default(),
            scan_memory: CoreLocal::new(),
            absent_lockers: CachePadded::default(),
            statements: Gate::default(),
            checkpointing: Mutex::of_class(()),
            closed: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            why_refusing: Mutex::new(String::new()),
            control: Mutex::of_class(control),
        }
    }

    /// Where a table's file is to be kept.
    pub(crate) fn home<'h>(&'h self, cache: &'h Arc<NamedCache>, def: &TableDef) -> Home<'h> {
        let page_size = def.page_size.map_or(self.page_size, |bytes| bytes as usize);
        let format = FileFormat { page_size, is_compressed: def.compressed };
        Home { caches: &self.caches, cache, journal: &self.journal, format }
    }

    /// A transaction is about to lock the key of a row that is not there, and to look again whether it is.
    pub(crate) fn begin_absent_locks(&self) {
        self.absent_lockers.begin();
    }

    pub(crate) fn end_absent_locks(&self) {
        self.absent_lockers.end();
    }

    /// True if a row that is inserted may have been locked while it was not there. Asked under its leaf's
    /// latch.
    pub(crate) fn has_absent_locks(&self) -> bool {
        self.absent_lockers.is_any()
    }

    /// The ids that nothing has had.
    pub(crate) fn next_ids(&self) -> NextIds {
        NextIds { stamp: self.transactions.next_id().0, ..self.control.lock().next_ids() }
    }

    /// Refuses what would change the database, if it is closed or has given up writing.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        // ORDER: flags that are seen soon enough; `close` waits for statements by the gate.
        if self.closed.load(Ordering::Relaxed) || self.refusing.load(Ordering::Relaxed) {
            return self.why_not();
        }
        match self.caches.write_failure().or_else(|| self.journal.failure()) {
            Some(why) => Err(Error::ReadOnly { why }),
            None => Ok(()),
        }
    }

    #[cold]
    fn why_not(&self) -> Result<()> {
        // ORDER: as in `check_open`.
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        Err(Error::ReadOnly { why: self.why_refusing.lock().clone() })
    }

    /// A file that is not open because the database is closed.
    pub(crate) fn explain(&self, error: Error) -> Error {
        if matches!(error, Error::NoSuchTable) && self.is_closed() { Error::Closed } else { error }
    }

    /// Stops all writing: what is in memory can no longer be trusted to be whole statements.
    pub(crate) fn refuse_writes(&self, why: String) {
        *self.why_refusing.lock() = why;
        // ORDER: as in `check_open`.
        self.refusing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        // ORDER: as in `check_open`.
        self.closed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_closed(&self) {
        // ORDER: as in `check_open`.
        self.closed.store(true, Ordering::Relaxed);
    }
}
