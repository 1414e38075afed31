//! A data directory: open, close, names.
//!
//! ```text
//! DIR/latchwork.control   what the directory says about itself (see `format::control`)
//! DIR/latchwork.lock      locked while a process has the directory open
//! DIR/catalogue.lwt       what tables there are (see `format::catalogue`)
//! DIR/log                 the write-ahead log (see crate `wal`), with the checkpoint
//! DIR/latchwork.doublewrite  copies of the pages written last (see `pagecache`)
//! DIR/tables/T<file>.lwt  a table with all its indexes; the number is never used again
//! DIR/tables/sort-<n>     scratch of an index build
//! ```

mod caches;
mod catalogue;
pub(crate) mod checkpoint;
mod damage;
mod ddl;
mod load;
mod scratch;
#[cfg(not(feature = "shuttle"))]
mod undoer;

pub use caches::Preloaded;
pub use damage::DamagedTable;
pub use ddl::{BuildStep, Building};
pub use load::{Load, Loaded, LoadedRows};
pub use scratch::ScratchFile;

#[cfg(test)]
mod tests;

use crate::examine;
use crate::format::catalogue::{CATALOGUE_ROOT, CATALOGUE_TREE, Record, TableRecord};
use catalogue::Catalogue;
use damage::Damage;

base::latch_class!(pub CatalogueLatch, "catalogue");

base::latch_class!(pub NamesLatch, "table names");
use crate::definition::{CacheOptions, FlushLog, FlushMethod, Options, TableDef, index_parts};
use crate::format::control::Control;
use crate::format::file_header::newest_lsn;
use crate::journal::Journal;
use crate::latch::Closure;
use crate::names::{
    CATALOGUE_FILE, CATALOGUE_NAME, DOUBLEWRITE_NAME, LOG_DIR, TABLES_DIR, file_of, table_path,
};
use crate::recovery::{self, Recovery, Redone, Start};
use crate::session::Session;
use crate::session::statement::WriteStatement;
use crate::space::files::Files;
use crate::space::row_share::RowShare;
use crate::space::tablespace::{RowCache, Tablespace};
use crate::table::core::Core;
use crate::table::state::TableState;
use crate::table::{Index, SKIP_AFTER_CRASH, Table};
use crate::tree::Tree;
use crate::write::core::WriteCore;
use crate::write::rollbacks::Progress;
use crate::write::scratch::Place;
use crate::{Error, Result};
use base::Lsn;
#[cfg(not(feature = "shuttle"))]
use base::sync::OnceLock;
use base::sync::{Arc, Mutex, MutexGuard, RwLock, thread};
#[cfg(not(feature = "shuttle"))]
use checkpoint::Checkpointer;
#[cfg(not(feature = "shuttle"))]
use pagecache::WriteBack;
use pagecache::page::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use pagecache::{CacheConfig, Caches, DOUBLEWRITE_BLOCK, Detach};
use rowtier::{RowTier, Status as RowTierStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use transactions::{GateCounts, PendingLock, WaitTotals};
use types::{Value, ValueRef};
#[cfg(not(feature = "shuttle"))]
use undoer::Undoer;
use vfs::{Create, Unsynced};

/// Memory that an index build sorts in before it uses a scratch file.
const SORT_BYTES: usize = 64 << 20;

/// An open data directory.
#[derive(Debug)]
pub struct Database {
    core: Arc<WriteCore>,
    files: Files,
    dir: PathBuf,
    /// What the start came to.
    recovery: Recovery,
    definitions: Arc<Definitions>,
    #[cfg(not(feature = "shuttle"))]
    checkpointer: OnceLock<Checkpointer>,
    #[cfg(not(feature = "shuttle"))]
    undoer: OnceLock<Undoer>,
}

/// What is defined. The threads of a database own this and not the database: who drops the last handle of
/// that waits for them, and then nobody has the directory open.
#[derive(Debug)]
struct Definitions {
    #[cfg_attr(feature = "shuttle", allow(dead_code, reason = "models have no threads"))]
    core: Arc<WriteCore>,
    names: RwLock<Names, NamesLatch>,
    /// A change of definitions holds this latch.
    catalogue: Mutex<Catalogue, CatalogueLatch>,
}

impl Definitions {
    /// Every table there is.
    fn all_tables(&self) -> Vec<Arc<Table>> {
        let names = self.names.read();
        names.databases.values().flat_map(|database| database.tables.values().cloned()).collect()
    }
}

/// See [`Database::status`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Memory that old versions of rows take, in bytes.
    pub version_bytes: u64,
    /// About what explicit row locks take.
    pub lock_bytes: u64,
    /// The length of the files of those that are too much for memory, in bytes, and how many they have.
    pub version_file_bytes: u64,
    pub versions_in_files: u64,
    /// How many versions have gone to files since the start.
    pub versions_spilled: u64,
    /// Rows whose old state waits to be purged.
    pub purge_queue: u64,
    /// Waits for rows.
    pub lock_waits: WaitTotals,
    /// Where the log ends, in bytes since the directory was made.
    pub log_end: Lsn,
    /// Durable up to here.
    pub log_flushed: Lsn,
    /// Recovery would read from here on.
    pub log_needed: Lsn,
    /// Since the start: write calls, syncs, appends that found the log's buffer full.
    pub log_writes: u64,
    pub log_syncs: u64,
    pub log_waits: u64,
    /// Statements inside and in the queue of `thread_concurrency`.
    pub gate: GateCounts,
}

#[derive(Default, Debug)]
struct Names {
    databases: BTreeMap<String, DatabaseNames>,
}

#[derive(Default, Debug)]
struct DatabaseNames {
    sql_metadata: Vec<u8>,
    tables: BTreeMap<String, Arc<Table>>,
    /// Tables that could not be opened.
    damaged: BTreeMap<String, Damage>,
}

impl Database {
    /// Opens a data directory, or makes one if `options.create` says so and there is none. After a crash it
    /// is brought to where the log ends first.
    ///
    /// # Errors
    /// [`Error::AlreadyOpen`] if another process has it open; [`Error::WrongFormat`] if it is not a data
    /// directory, or one of another version or page size; [`Error::Corrupt`] if the catalogue or a file
    /// header cannot be read; [`Error::Log`] if the log does not hold what is needed.
    pub fn open(dir: &Path, mut options: Options) -> Result<Arc<Database>> {
        let size = options.page_size;
        if !is_page_size(size) {
            return Err(Error::BadOption { why: bad_page_size(size) });
        }
        if let Some(latches) = options.latches {
            latches.choose();
        }
        if options.flush_method == FlushMethod::NoSync {
            options.vfs = Arc::new(Unsynced::new(options.vfs));
        }
        let (control, is_new) = Control::open(options.vfs.clone(), dir, size, options.create)?;
        let database = Arc::new(if is_new {
            Database::create(dir, &options, control)?
        } else {
            let start = Start::read(&*options.vfs, dir, control.page_size())?;
            Database::recover(dir, &options, control, &start)?
        });
        database.set_thread_concurrency(options.thread_concurrency);
        #[cfg(not(feature = "shuttle"))]
        if options.cache.write_back == WriteBack::Background {
            database.core.purge.start(&database.core);
            let _ = database.checkpointer.set(Checkpointer::start(&database.definitions));
            let _ = database.undoer.set(Undoer::start(&database.definitions));
        }
        Ok(database)
    }

    /// Makes a new data directory, whose lock is held.
    fn create(dir: &Path, options: &Options, control: Control) -> Result<Database> {
        let files = Files::new(dir, options)?;
        let vfs = &files.vfs;
        vfs.create_dir_all(&dir.join(TABLES_DIR))?;
        let log = dir.join(LOG_DIR);
        vfs.create_dir_all(&log)?;
        for name in vfs.list(&log)? {
            // Of a making that was cut short.
            vfs.remove(&log.join(name))?;
        }
        let journal = Arc::new(Journal::create(vfs.clone(), dir, &options.log)?);
        let page_size = control.page_size();
        let caches = open_caches(dir, options, &files, page_size, &journal)?;
        let rows = open_row_tier(options, &caches)?;
        let place = scratch_place(&files, dir);
        let version_files = Arc::new(place.clone());
        let core = Core::new(caches, rows, page_size, journal, control, Vec::new(), version_files);
        let core = Arc::new(WriteCore::new(core, place));
        let path = dir.join(CATALOGUE_NAME);
        let file = files.open_pages(&path, Create::IfMissing, page_size)?;
        file.set_len(0)?;
        let space = Tablespace::create(
            core.home(core.caches.default_cache(), &TableDef::default()),
            CATALOGUE_FILE,
            &path,
            file,
        )?;
        let tree = Tree::create(space, CATALOGUE_TREE, None, false)?;
        debug_assert_eq!(tree.root(), CATALOGUE_ROOT);
        let database = Database::new(core, dir, files.clone(), Recovery::default(), Catalogue::new(tree, 1));
        // CRASH: the control file comes last: until it is there, the directory counts as empty.
        database.write_back()?;
        vfs.sync_dir(dir)?;
        database.core.control.lock().finish_creation()?;
        Ok(database)
    }

    /// Opens a data directory whose lock is held and whose log has been looked at, with no threads of its
    /// own.
    pub(crate) fn recover(
        dir: &Path,
        options: &Options,
        mut control: Control,
        start: &Start,
    ) -> Result<Database> {
        let page_size = control.page_size();
        let files = Files::new(dir, options)?;
        let vfs = &files.vfs;
        let mut recovery = Recovery { records: start.records, ..Recovery::default() };
        let journal = Arc::new(Journal::open(vfs.clone(), dir, &options.log, start.end)?);
        if !start.is_clean() {
            recovery.repaired_pages = recovery::repair_torn_pages(&**vfs, dir, page_size)? as u64;
        }
        let caches = open_caches(dir, options, &files, page_size, &journal)?;
        let redone = recovery::redo(&files, dir, &caches, &journal, start, scratch_place(&files, dir))?;
        control.set_next_ids(redone.next);
        redone.check_whole(dir, CATALOGUE_FILE)?;
        let rows = open_row_tier(options, &caches)?;
        let unfinished = redone.logical.unfinished_stamps();
        let place = scratch_place(&files, dir);
        let version_files = Arc::new(place.clone());
        let core = Core::new(caches, rows, page_size, journal, control, unfinished, version_files);
        let core = Arc::new(WriteCore::new(core, place));
        let path = dir.join(CATALOGUE_NAME);
        let file = files.open_pages(&path, Create::Never, page_size)?;
        let (space, numbers) = Tablespace::open(
            core.home(core.caches.default_cache(), &TableDef::default()),
            CATALOGUE_FILE,
            &path,
            file,
        )?;
        let tree = Tree::new(space, CATALOGUE_ROOT, CATALOGUE_TREE, None);
        let skip = if start.is_clean() { 0 } else { SKIP_AFTER_CRASH };
        (recovery.rolled_back, recovery.changes_taken_back) = redone.logical.unfinished();
        let catalogue = Catalogue::new(tree, numbers.next_chain + skip);
        let database = Database::new(core, dir, files.clone(), recovery, catalogue);
        database.load(&redone)?;
        if !start.is_clean() {
            let (tables, at_once) = (database.all_tables(), options.taken_back_at_start_max);
            for (table, error) in redone.logical.finish(&database.core, tables, at_once)? {
                database.definitions.close_table(&table, error)?;
            }
        }
        if database.core.rollbacks.is_empty() {
            // Otherwise rows as they were may have pages that only the list of changes knows.
            database.free_lost_pages()?;
        }
        if !start.is_clean() {
            match database.checkpoint() {
                // The log goes on where it is, and the next checkpoint comes when there is room.
                Ok(()) | Err(Error::Full) => {}
                Err(error) => return Err(error),
            }
        }
        database.remove_strangers(start.end)?;
        Ok(database)
    }

    fn new(
        core: Arc<WriteCore>,
        dir: &Path,
        files: Files,
        recovery: Recovery,
        catalogue: Catalogue,
    ) -> Database {
        let definitions = Definitions {
            core: core.clone(),
            names: RwLock::of_class(Names::default()),
            catalogue: Mutex::of_class(catalogue),
        };
        Database {
            core,
            files,
            dir: dir.to_path_buf(),
            recovery,
            definitions: Arc::new(definitions),
            #[cfg(not(feature = "shuttle"))]
            checkpointer: OnceLock::new(),
            #[cfg(not(feature = "shuttle"))]
            undoer: OnceLock::new(),
        }
    }

    /// Opens what the catalogue names.
    fn load(&self, redone: &Redone) -> Result<()> {
        let records = self.definitions.catalogue.lock().load()?;
        let mut names = self.definitions.names.write();
        let mut tables: BTreeMap<(String, String), Box<TableRecord>> = BTreeMap::new();
        // Tables that a crash has left: of a database that was being dropped, or one that another was to
        // replace.
        let mut leftover = Vec::new();
        let mut statistics = BTreeMap::new();
        for record in records {
            match record {
                // Databases come before tables: 'd' < 't'.
                Record::Database { name, sql_metadata } => {
                    let new = DatabaseNames { sql_metadata, ..DatabaseNames::default() };
                    names.databases.insert(name, new);
                }
                Record::Table(record) if names.databases.contains_key(&record.def.database) => {
                    // Tables come by their ids: the newer one last.
                    let older = tables.insert((record.def.database.clone(), record.def.name.clone()), record);
                    leftover.extend(older.map(|older| older.id));
                }
                Record::Table(record) => leftover.push(record.id),
                Record::Statistics(record) => drop(statistics.insert(record.table, record)),
            }
        }
        for ((database, name), record) in tables {
            let opened = redone.check_whole(&self.dir, record.file).and_then(|()| self.open_table(&record));
            let table = match opened {
                Ok(table) => table,
                Err(error) => {
                    let damage = Damage::of(record.id, record.file, error)?;
                    if let Some(database) = names.databases.get_mut(&database) {
                        database.damaged.insert(name, damage);
                    }
                    continue;
                }
            };
            if let Some(found) = statistics.remove(&record.id)
                && found.file == record.file
                && found.trees.iter().eq(record.roots.iter().map(|(_, tree)| tree))
            {
                table.remember(found.statistics);
            }
            if table.garbage() > 0 {
                self.core.purge.sweep(table.clone());
            }
            if let Some(database) = names.databases.get_mut(&database) {
                database.tables.insert(name, table);
            }
        }
        drop(names);
        leftover.into_iter().try_for_each(|id| self.definitions.catalogue.lock().remove_table(id))
    }

    /// Frees pages that belong to nothing.
    fn free_lost_pages(&self) -> Result<()> {
        for table in self.all_tables() {
            match examine::free_table_pages(&table) {
                // The file stays in doubt.
                Ok(_) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let catalogue = self.definitions.catalogue.lock();
        examine::free_lost_pages(catalogue.tree().space(), |file| drop(file.catalogue()))?;
        Ok(())
    }

    /// Removes what is left of files that were being made or removed: it is nobody's. A file with a page that
    /// is newer than the log's `end` stays: what named it has been lost. No new file gets the number of one
    /// that is there.
    fn remove_strangers(&self, end: Lsn) -> Result<()> {
        let mut files: BTreeSet<PathBuf> =
            self.all_tables().iter().map(|table| table.state().space.path()).collect();
        for database in self.definitions.names.read().databases.values() {
            files.extend(database.damaged.values().map(|damage| table_path(&self.dir, damage.file())));
        }
        let tables = self.dir.join(TABLES_DIR);
        for name in self.files.vfs.list(&tables)? {
            let path = tables.join(&name);
            if files.contains(&path) {
                continue;
            }
            if newest_lsn(&*self.files.vfs.open(&path, Create::Never)?)? <= end {
                self.files.vfs.remove(&path)?;
            } else if let Some(file) = file_of(&name) {
                self.core.control.lock().skip_file_id(file);
            }
        }
        Ok(())
    }

    fn open_table(&self, record: &TableRecord) -> Result<Arc<Table>> {
        let path = table_path(&self.dir, record.file);
        let home = self.core.home(self.core.caches.default_cache(), &record.def);
        let file = self
            .files
            .open_pages(&path, Create::Never, home.format.page_size)
            .map_err(|error| std::io::Error::new(error.kind(), format!("'{}': {error}", path.display())))?;
        let (space, numbers) = Tablespace::open(home, record.file, &path, file)?;
        space.set_row_tier(&self.core.rows_kept);
        let indexes = record
            .roots
            .iter()
            .zip(index_parts(&record.def))
            .enumerate()
            .map(|(position, ((root, tree), (codec, unique)))| {
                let own = (position > 0).then(|| codec.clone());
                Index { tree: Tree::new(space.clone(), *root, *tree, own), since: 0, codec, unique }
            })
            .collect();
        let def = Arc::new(record.def.clone());
        let state = TableState { def, space, indexes, next_tree: record.next_tree, dropped: false };
        Ok(Table::new(record.id, self.core.tables().clone(), state, numbers))
    }

    /// Writes everything back and marks the directory clean, after waiting for statements under way. Later
    /// changes fail with [`Error::Closed`], and so do reads of what is no longer in memory.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::ReadOnly`]. Changes stay refused, and `close` may be called again.
    pub fn close(&self) -> Result<()> {
        let _closure = self.core.statements.close();
        if self.core.control.lock().is_unlocked() {
            return Ok(());
        }
        // After a failure the database stays closed to changes, and `close` may be tried again.
        self.core.set_closed();
        // A change of definitions that is under way asked before, and is waited for. The next one is refused.
        drop(self.definitions.catalogue.lock());
        self.core.purge.stop();
        self.core.purge.drain_some(&self.core);
        if self.core.purge.len() == 0 && self.core.rollbacks.is_empty() {
            // Otherwise overflow pages wait to be purged, or for changes to be taken back, which the next
            // start does.
            self.end_doubt()?;
        }
        self.write_back()?;
        let names = self.definitions.names.read();
        for table in names.databases.values().flat_map(|database| database.tables.values()) {
            table.state().space.close(Detach::Discard)?;
        }
        self.definitions.catalogue.lock().tree().space().close(Detach::Discard)?;
        self.core.control.lock().unlock();
        Ok(())
    }

    /// Writes all files' headers and pages, and takes a checkpoint behind which there is nothing. Nobody
    /// changes anything meanwhile.
    fn write_back(&self) -> Result<()> {
        self.save_numbers()?;
        self.core.caches.flush_all()?;
        self.files.vfs.sync_dir(&self.dir.join(TABLES_DIR))?;
        self.core.checkpoint()
    }

    /// Takes back what is being taken back behind clients. What a full disk, or damage, keeps from it stays.
    pub(crate) fn finish_rollbacks(&self) {
        while !self.core.rollbacks.is_empty() {
            match self.core.rollbacks.go_on(&self.core) {
                Progress::Some => {}
                // The thread is at it.
                Progress::Nothing => thread::yield_now(),
                Progress::Full | Progress::Damaged(..) | Progress::Failed => return,
            }
        }
    }

    /// No change is under way, and nothing waits for purge.
    fn end_doubt(&self) -> Result<()> {
        for table in self.all_tables().iter().filter(|table| table.state().space.is_in_doubt()) {
            match table.state().space.end_doubt_if_idle() {
                // It stays in doubt.
                Ok(()) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.definitions.catalogue.lock().tree().space().end_doubt_if_idle()
    }

    /// Every table there is.
    pub(crate) fn all_tables(&self) -> Vec<Arc<Table>> {
        self.definitions.all_tables()
    }

    /// A place for a client: transactions, statements. It outlives a closed database, and does nothing then.
    pub fn session(&self) -> Session {
        Session::new(self.core.clone())
    }

    /// Opens a statement that is a transaction of its own. Dropped without `commit`, everything it did is
    /// undone.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Closed`], [`Error::Full`] and [`Error::IdsExhausted`].
    pub fn begin_write(&self) -> Result<WriteStatement<'_>> {
        WriteStatement::alone(&self.core)
    }

    /// Removes what no snapshot sees any more, now and on this thread. The thread that does so behind clients
    /// goes on; where there is none, nothing is removed but by this.
    pub fn purge(&self) {
        self.core.purge.drain(&self.core);
    }

    /// What transactions and the log are about.
    pub fn status(&self) -> Status {
        let (log, usage) = (self.core.journal.log(), self.core.transactions.usage());
        let status = log.status();
        let checkpoint = log.checkpoint().map_or(Lsn(0), |checkpoint| checkpoint.needed);
        Status {
            version_bytes: usage.version_bytes,
            lock_bytes: self.core.transactions.lock_bytes(),
            version_file_bytes: usage.spilled.file_bytes,
            versions_in_files: usage.spilled.versions,
            versions_spilled: usage.spilled.spilled,
            purge_queue: self.core.purge.len() as u64,
            lock_waits: self.core.transactions.wait_totals(),
            log_end: status.next,
            log_flushed: status.synced,
            log_needed: checkpoint,
            log_writes: status.writes,
            log_syncs: status.syncs,
            log_waits: status.waits,
            gate: self.core.transactions.gate_counts(),
        }
    }

    /// The sessions that wait for locks, and which sessions they wait for.
    pub fn lock_waits(&self) -> Vec<PendingLock> {
        self.core.transactions.lock_waits()
    }

    /// The table whose rows the lock table knows by this number, and the values of a primary key in it.
    pub fn describe_row(&self, number: u64, key: &[u8]) -> Option<(Arc<Table>, Vec<Value>)> {
        let table =
            self.all_tables().into_iter().find(|t| u64::from(t.state().space.file_id().0) == number)?;
        let mut scratch = Vec::new();
        let values = table.state().indexes[0].codec.decode(key, &mut scratch).unwrap_or_default();
        let values = values.iter().map(ValueRef::to_value).collect();
        Some((table, values))
    }

    /// How many bytes explicit row locks may take. Beyond that a transaction with very many of them has
    /// locks on large parts of its tables instead; beyond four times that it gets [`Error::TooManyLocks`].
    pub fn set_lock_limit(&self, bytes: u64) {
        self.core.transactions.set_lock_limit(bytes);
    }

    /// Sets how much memory old versions of rows may take, in bytes. What is more goes to files.
    pub fn set_version_limit(&self, bytes: u64) {
        self.core.transactions.set_version_limit(bytes);
    }

    /// Sets how many bytes the files of old versions may have; 16 GiB at first. Beyond that, and if they
    /// cannot be written, the oldest snapshots are given up, and fail with [`Error::SnapshotTooOld`] where
    /// they need what is gone.
    pub fn set_version_file_limit(&self, bytes: u64) {
        self.core.transactions.set_version_file_limit(bytes);
    }

    /// Sets how many statements may run at a time; 0 = any number. Those that run go on; those that began
    /// without a limit do not count. See crate `transactions`, `gate`, for the queue.
    pub fn set_thread_concurrency(&self, statements: u32) {
        self.core.transactions.set_concurrency(statements);
    }

    /// Sets how often a statement that has waited for a row or its client may come back before those that
    /// begin; 500 at first.
    pub fn set_concurrency_tickets(&self, tickets: u32) {
        self.core.transactions.set_concurrency_tickets(tickets);
    }

    /// Sets `flush_log_at_trx_commit`, from the next statement's end on.
    pub fn set_flush_log(&self, flush: FlushLog) {
        self.core.journal.set_flush_log(flush);
    }

    pub fn flush_log(&self) -> FlushLog {
        self.core.journal.flush_log()
    }

    /// What the start had to do.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The flush method in effect: [`FlushMethod::Fsync`] where the file system could not do what the options
    /// asked for.
    pub fn flush_method(&self) -> FlushMethod {
        self.files.flush_method
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Bytes a page of tables that do not say, as the directory was made with.
    pub fn page_size(&self) -> usize {
        self.core.page_size
    }

    /// Gives the row tier so many bytes of the default cache, 0 = none; with `None` its size follows the
    /// benefit. Everything keeps running; what does not fit any more is forgotten.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::ReadOnly`] if a page that makes room cannot be written.
    pub fn resize_row_tier(&self, bytes: Option<usize>) -> Result<()> {
        self.core.rows_kept.share.set(bytes)
    }

    pub fn row_tier_status(&self) -> RowTierStatus {
        self.core.rows_kept.share.tier.status()
    }

    /// Waits for changes under way and keeps others out.
    pub(crate) fn quiesce(&self) -> (MutexGuard<'_, Catalogue>, Closure<'_>) {
        let closure = self.core.statements.close();
        (self.definitions.catalogue.lock(), closure)
    }

    pub(crate) fn core(&self) -> &Arc<WriteCore> {
        &self.core
    }

    /// Names and their opaque metadata, sorted.
    pub fn databases(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.definitions.names.read();
        names.databases.iter().map(|(name, d)| (name.clone(), d.sql_metadata.clone())).collect()
    }

    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`]; [`Error::Corrupt`] if it could not be opened: see
    /// [`Database::damaged_tables`].
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let names = self.definitions.names.read();
        let names = names.databases.get(database).ok_or(Error::NoSuchDatabase)?;
        match (names.tables.get(name), names.damaged.get(name)) {
            (Some(table), _) => Ok(table.clone()),
            (None, Some(damage)) => Err(damage.error(&self.dir)),
            (None, None) => Err(Error::NoSuchTable),
        }
    }

    /// The tables of a database, sorted by name.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`].
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<Table>>> {
        let names = self.definitions.names.read();
        let database = names.databases.get(database).ok_or(Error::NoSuchDatabase)?;
        Ok(database.tables.values().cloned().collect())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        #[cfg(not(feature = "shuttle"))]
        {
            drop(self.checkpointer.take());
            drop(self.undoer.take());
        }
        // A session may outlive the database, and holds the queue. What is queued refers to tables, and would
        // keep their files open.
        self.core.purge.stop();
        self.core.purge.clear();
        self.core.rollbacks.clear();
    }
}

/// Opens the caches, which write pages behind the log and through the doublewrite file.
fn open_caches(
    dir: &Path,
    options: &Options,
    files: &Files,
    page_size: usize,
    journal: &Arc<Journal>,
) -> Result<Arc<Caches>> {
    let doublewrite = files.open_pages(&dir.join(DOUBLEWRITE_NAME), Create::IfMissing, DOUBLEWRITE_BLOCK)?;
    // CRASH: a file whose name was lost would hold the copies of torn pages in vain.
    files.vfs.sync_dir(dir)?;
    let config = CacheConfig {
        log: Some(journal.clone()),
        doublewrite: Some(doublewrite),
        io: options.io,
        ..cache_config(&options.cache, page_size)
    };
    Ok(Caches::new(config)?)
}

fn scratch_place(files: &Files, dir: &Path) -> Place {
    Place::new(files.vfs.clone(), &dir.join(TABLES_DIR))
}

/// Makes the row tier, which may grow to what the process may use.
fn open_row_tier(options: &Options, caches: &Caches) -> Result<RowCache> {
    let tier = RowTier::new(options.row_tier_bytes.unwrap_or(0).max(base::machine::room_bytes()))?;
    let share = RowShare::new(tier, caches.default_cache().budget(), options.row_tier_bytes)?;
    Ok(RowCache { share, is_first: options.row_tier_first })
}

fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&bytes)
}

fn bad_page_size(bytes: usize) -> String {
    format!("a page size of {bytes} bytes; it is a power of two from 1,024 to 65,536")
}

fn cache_config(options: &CacheOptions, page_size: usize) -> CacheConfig {
    CacheConfig {
        segments: options.segments,
        hit_path: options.hit_path,
        division_limit: options.division_limit,
        age_threshold: options.age_threshold,
        write_back: options.write_back,
        ..CacheConfig::new(options.size_bytes, page_size)
    }
}
