//! What the tables of a database share.

use crate::control::Control;
use crate::latch::{Gate, RowLatches};
use crate::purge::Purge;
use crate::session::under_way::UnderWay;
use crate::{Error, Result};
use base::Stamp;
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Arc, Mutex};
use pagecache::PageCache;
use transactions::{Config, Transactions};

/// The engine below a database's tables.
#[derive(Debug)]
pub(crate) struct Core {
    pub cache: Arc<PageCache>,
    pub page_size: usize,
    pub rows: RowLatches,
    pub transactions: Arc<Transactions>,
    pub under_way: UnderWay,
    pub purge: Purge,
    /// Passed by statements that change rows; closed by `Database::close`.
    pub statements: Gate,
    /// The directory says that it is not clean, or need not say so yet.
    touched: AtomicBool,
    closed: AtomicBool,
    refusing: AtomicBool,
    why_refusing: Mutex<String>,
    pub control: Mutex<Control>,
}

impl Core {
    pub fn new(cache: Arc<PageCache>, page_size: usize, control: Control) -> Core {
        let config = Config { next_id: Stamp(control.next_stamp()), ..Config::default() };
        Core {
            cache,
            page_size,
            rows: RowLatches::new(),
            transactions: Transactions::new(&config),
            under_way: UnderWay::default(),
            purge: Purge::default(),
            statements: Gate::default(),
            touched: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            why_refusing: Mutex::new(String::new()),
            control: Mutex::new(control),
        }
    }

    /// To be called before anything is changed: refuses if the database is closed or has given up writing, and
    /// marks the directory as in use.
    #[inline]
    pub fn touch(&self) -> Result<()> {
        self.check_open()?;
        // ORDER: whoever sees `true` comes after the mark was made durable, by the release below.
        if self.touched.load(Ordering::Acquire) { Ok(()) } else { self.touch_first() }
    }

    #[cold]
    fn touch_first(&self) -> Result<()> {
        let mut control = self.control.lock();
        // CRASH: before the first changed page can reach the disk, the directory says that it is not clean.
        control.mark_in_use()?;
        // ORDER: pairs with the acquire in `touch`.
        self.touched.store(true, Ordering::Release);
        Ok(())
    }

    /// Refuses what would change the database, if it is closed or has given up writing.
    #[inline]
    fn check_open(&self) -> Result<()> {
        // ORDER: flags that are seen soon enough; `close` waits for statements by the gate.
        if self.closed.load(Ordering::Relaxed) || self.refusing.load(Ordering::Relaxed) {
            return self.why_not();
        }
        if let Some(why) = self.cache.write_failure() {
            return Err(Error::ReadOnly { why });
        }
        Ok(())
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
    pub fn explain(&self, error: Error) -> Error {
        if matches!(error, Error::NoSuchTable) && self.is_closed() { Error::Closed } else { error }
    }

    /// Stops all writing: what is in memory can no longer be trusted to be whole statements.
    pub fn refuse_writes(&self, why: String) {
        *self.why_refusing.lock() = why;
        // ORDER: as in `check_open`.
        self.refusing.store(true, Ordering::Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        // ORDER: as in `check_open`.
        self.closed.load(Ordering::Relaxed)
    }

    pub fn set_closed(&self) {
        // ORDER: as in `check_open`.
        self.closed.store(true, Ordering::Relaxed);
    }
}
