//! Tables: rows in a clustered index, secondary indexes that lead to them.

pub(crate) mod core;
mod garbage;
pub(crate) mod integers;
pub(crate) mod lookup;
pub(crate) mod scan;
pub(crate) mod state;
pub(crate) mod statistics;

#[cfg(test)]
mod tests;

use self::core::Core;
use crate::counter::SpreadCounter;
use crate::definition::{KeyRange, Statistics, TableDef, key_behind_prefix};
use crate::format::file_header::{Counters, TableNumbers};
use crate::format::overflow::Reference;
use crate::format::row::{ROW_HEADER_BYTES, split_cell};
use crate::latch::Gate;
use crate::space::overflow;
use crate::tree::Tree;
use crate::visibility::{Reader, Sight};
use crate::{Error, Result, work};
use base::phases;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use base::sync::{Arc, Mutex, RwLock, Weak};
use base::{IndexId, TableId};
use garbage::GarbageCount;
use lookup::OneCell;
use state::{States, TableState};
use types::{KeyCodec, RowCodec, RowView};

/// How far a guess from the shape of an index may be off.
const ROWS_FACTOR: u64 = 3;

base::latch_class!(pub SavingLatch, "numbers of a table");

/// After a crash numbers that need only differ go on so far behind those that the last checkpoint knew of.
pub(crate) const SKIP_AFTER_CRASH: u64 = 1 << 32;

/// A table. Sessions share it; it stays valid while its definition changes.
#[derive(Debug)]
pub struct Table {
    id: TableId,
    pub(crate) core: Arc<Core>,
    this: Weak<Table>,
    row_codec: RowCodec,
    version: AtomicU64,
    states: States,
    /// A change of rows passes it. A change of the definition closes it.
    pub(crate) gate: Gate,
    rows: SpreadCounter,
    /// Deleted rows and old index entries that purge has not removed yet, and one for each sweep that is to
    /// come.
    garbage: GarbageCount,
    /// Held while the header gets the numbers.
    saving: Mutex<(), SavingLatch>,
    /// See [`Table::is_changed`].
    is_changed: AtomicBool,
    /// What ANALYZE TABLE has found; `None` before that, and once the definition has changed.
    statistics: RwLock<Option<Arc<Statistics>>>,
    next_auto_increment: AtomicU64,
    next_row_id: AtomicU64,
    next_chain: AtomicU64,
}

/// One index of a table.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub tree: Tree,
    /// The clock when the tree was finished and given to the table: older snapshots do not find their
    /// versions through it.
    pub since: u64,
    /// Of the index's own parts.
    pub codec: Arc<KeyCodec>,
    pub unique: bool,
}

/// An entry of a secondary index, made from a row: the row's parts, then its primary key. No value.
///
/// Also in a unique index: the entries of deleted rows, and the old ones of changed rows, stay for a while,
/// and a row with the same parts may come meanwhile.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub key: Vec<u8>,
    /// How many bytes of the key are the parts'.
    pub own: usize,
}

/// Makes the entry of a row in an index with these parts.
pub(crate) fn entry_of(codec: &KeyCodec, row: &RowView<'_>, primary_key: &[u8], entry: &mut Entry) {
    entry.key.clear();
    codec.encode_row(row, &mut entry.key);
    entry.own = entry.key.len();
    entry.key.extend_from_slice(primary_key);
}

impl Index {
    /// Makes the entry of a row, reusing the memory of `entry`.
    pub(crate) fn entry(&self, row: &RowView<'_>, primary_key: &[u8], entry: &mut Entry) {
        entry_of(&self.codec, row, primary_key, entry);
    }

    /// Splits an entry into the index's own parts and the primary key; `None` if it is none of this index.
    #[inline]
    pub(crate) fn split_entry<'e>(&self, key: &'e [u8]) -> Option<(&'e [u8], &'e [u8])> {
        Some(key.split_at(self.codec.len_in(key)?))
    }
}

/// The pages of a table's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableSize {
    /// Bytes a page.
    pub page_size: u64,
    /// Pages of the clustered index, with those of long values.
    pub row_pages: u64,
    /// Pages of the secondary indexes.
    pub index_pages: u64,
    /// Pages that nothing uses.
    pub free_pages: u64,
}

impl Table {
    pub(crate) fn new(id: TableId, core: Arc<Core>, state: TableState, numbers: TableNumbers) -> Arc<Table> {
        Arc::new_cyclic(|this| {
            let table = Table {
                id,
                core,
                this: this.clone(),
                row_codec: RowCodec::new(&state.def.columns),
                version: AtomicU64::new(1),
                states: States::new(state),
                gate: Gate::default(),
                rows: SpreadCounter::default(),
                garbage: GarbageCount::default(),
                saving: Mutex::default(),
                is_changed: AtomicBool::new(false),
                statistics: RwLock::default(),
                next_auto_increment: AtomicU64::new(1),
                next_row_id: AtomicU64::new(1),
                next_chain: AtomicU64::new(1),
            };
            table.set_numbers(&numbers);
            table
        })
    }

    #[inline]
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The definition as of now. Cheap (an `Arc`).
    pub fn def(&self) -> Arc<TableDef> {
        self.state().def.clone()
    }

    /// Grows with every change of definition, drop included: a cached plan compares it (one relaxed load).
    #[inline]
    pub fn version(&self) -> u64 {
        // ORDER: a plan compares the number alone; what follows takes the state with acquire.
        self.version.load(Ordering::Relaxed)
    }

    /// True once the table has been dropped, or replaced by another.
    pub fn is_dropped(&self) -> bool {
        self.state().dropped
    }

    #[inline]
    pub fn row_codec(&self) -> &RowCodec {
        &self.row_codec
    }

    /// The codec of an index's own parts (without the primary key that a secondary entry ends in).
    /// An index that does not exist has the clustered one's.
    pub fn key_codec(&self, index: IndexId) -> Arc<KeyCodec> {
        let indexes = &self.state().indexes;
        indexes.get(usize::from(index.0)).unwrap_or(&indexes[0]).codec.clone()
    }

    /// The longest key of an index, in bytes, the primary key that a secondary entry ends in included.
    pub fn key_bytes_max(&self) -> usize {
        crate::format::layout::key_bytes_max(self.state().space.page_size())
    }

    #[inline]
    pub(crate) fn state(&self) -> &TableState {
        self.states.current()
    }

    /// The state, unless the table has been dropped.
    pub(crate) fn live_state(&self) -> Result<&TableState> {
        let state = self.state();
        if state.dropped { Err(Error::NoSuchTable) } else { Ok(state) }
    }

    /// Replaces the state. The caller holds the definition latch and, if trees change, the gate.
    pub(crate) fn set_state(&self, state: TableState) {
        self.states.push(state);
        // ORDER: see `version`; the state was published with release.
        self.version.fetch_add(1, Ordering::Release);
        // Last: `analyze` looks at the version with this latch held.
        *self.statistics.write() = None;
    }

    pub(crate) fn arc(&self) -> Result<Arc<Table>> {
        self.this.upgrade().ok_or(Error::NoSuchTable)
    }

    pub(crate) fn index<'s>(&self, state: &'s TableState, index: IndexId) -> Result<&'s Index> {
        state.indexes.get(usize::from(index.0)).ok_or(Error::NoSuchIndex)
    }

    /// Runs `work`, which reads `index`, on the current state, and again if the table's file was replaced
    /// under it.
    ///
    /// A result that was read from an index that has been dropped meanwhile does not count: the index's pages
    /// are free and may hold anything.
    pub(crate) fn with_state<'t, T>(
        &'t self,
        index: IndexId,
        mut work: impl FnMut(&'t TableState) -> Result<T>,
    ) -> Result<T> {
        loop {
            let state = self.state();
            if state.dropped {
                return Err(Error::NoSuchTable);
            }
            let result = work(state);
            let new = self.state();
            if std::ptr::eq(state, new) {
                return result.map_err(|error| self.core.explain(error));
            }
            match result {
                Ok(result) if new.has_tree_of(state, index) => return Ok(result),
                Err(error) if !error.may_be_stale() => return Err(error),
                // The caller's numbers of indexes may mean others by now.
                _ if !new.dropped && new.def.indexes != state.def.indexes && index.0 > 0 => {
                    return Err(Error::TableChanged);
                }
                _ => {}
            }
        }
    }

    /// Fails if pages of the index that were just read in `state` may have been free, and hold anything that
    /// they once held: for a caller that cannot begin anew, as [`Table::with_state`] does.
    pub(crate) fn check_tree(&self, state: &TableState, index: IndexId) -> Result<()> {
        let now = self.state();
        if !std::ptr::eq(state, now) && !now.has_tree_still(state, index) {
            return Err(if now.dropped { Error::NoSuchTable } else { Error::TableChanged });
        }
        Ok(())
    }

    /// Appends the row image with this whole primary key to `out`; false if there is none.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] and [`Error::TableChanged`] if the snapshot cannot be read here;
    /// [`Error::Io`] and [`Error::Corrupt`].
    pub fn get(&self, reader: Reader<'_>, primary_key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let _reading = phases::enter(phases::Phase::Row);
        if let Some(holder) = reader.range_holder() {
            let end = key_behind_prefix(primary_key);
            self.core.ranges.lock(holder, (self.id(), IndexId(0)), primary_key, end.as_deref());
        }
        self.with_state(IndexId(0), |state| {
            reader.check_since(state.indexes[0].since)?;
            work::add_rows(1);
            self.fetch(reader, state, primary_key, out)
        })
    }

    /// Appends the image of a row as `reader` sees it; false if it sees none. Of two candidates it is the
    /// newest.
    pub(crate) fn fetch(
        &self,
        reader: Reader<'_>,
        state: &TableState,
        primary_key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let start = out.len();
        let file = u64::from(state.space.file_id().0);
        let mut previous = None;
        loop {
            out.truncate(start);
            let mut cell = OneCell { out, start, found: false };
            state.indexes[0].tree.lookup(primary_key, &mut cell)?;
            if !cell.found {
                return Ok(false);
            }
            let Some((mut header, _)) = split_cell(&out[start..]) else {
                out.truncate(start);
                return Err(state.space.corrupt(0, "a row without a header"));
            };
            out.drain(start..start + ROW_HEADER_BYTES);
            match reader.look(header, file, primary_key) {
                Ok(Sight::This | Sight::Both(_)) => {}
                Ok(Sight::Other(cell)) => {
                    out.truncate(start);
                    let Some((older, body)) = split_cell(&cell) else { return Ok(false) };
                    header = older;
                    out.extend_from_slice(body);
                }
                Ok(Sight::Again) => {
                    base::sync::thread::yield_now();
                    continue;
                }
                nothing => {
                    out.truncate(start);
                    return nothing.map(|_| false);
                }
            }
            if !header.is_overflow() {
                return Ok(true);
            }
            let Some(reference) = Reference::from_bytes(&out[start..]) else {
                return Err(state.space.corrupt(0, "a row's reference to its overflow pages is cut short"));
            };
            out.truncate(start);
            match overflow::load(&state.space, reference, out) {
                Ok(true) => return Ok(true),
                // The row still says so: it is not a change under our hands.
                Ok(false) if previous == Some(reference) => {
                    return Err(state.space.corrupt(reference.first.0, "an overflow chain is broken"));
                }
                Err(error) if previous == Some(reference) => return Err(error),
                _ => previous = Some(reference),
            }
        }
    }

    /// How many rows lie in the range, roughly: for the planner. Costs two descents.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::Io`] and [`Error::Corrupt`].
    pub fn estimate(&self, index: IndexId, range: &KeyRange) -> Result<u64> {
        let Some((start, end)) = range.to_half_open() else { return Ok(0) };
        if end.as_ref().is_some_and(|end| *end <= start) {
            return Ok(0);
        }
        let guess =
            self.with_state(index, |state| self.index(state, index)?.tree.estimate(&start, end.as_deref()))?;
        Ok(guess.min(self.row_count()))
    }

    /// How many pages the table's file has, and what for. The number in use is exact; how they are shared
    /// between the rows and the secondary indexes is a guess. Costs two descents for each index.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::Io`] and [`Error::Corrupt`].
    pub fn size(&self) -> Result<TableSize> {
        self.with_state(IndexId(0), |state| {
            let (pages, free) = state.space.occupancy();
            let used = u64::from(pages).saturating_sub(free.len() as u64);
            let mut leaves = Vec::new();
            for index in &state.indexes {
                leaves.push(index.tree.leaves()?);
            }
            let all: u64 = leaves.iter().sum();
            let of_rows = leaves.first().copied().unwrap_or(all);
            let row_pages = used * of_rows / all.max(1);
            Ok(TableSize {
                page_size: state.space.page_size() as u64,
                row_pages,
                index_pages: used - row_pages,
                free_pages: free.len() as u64,
            })
        })
    }

    /// The number of rows, those included that are not committed yet: an estimate.
    pub fn row_count(&self) -> u64 {
        self.rows.sum()
    }

    /// Deleted rows and old index entries that are still there. While there are none, index entries can be
    /// believed without a look at their rows.
    pub(crate) fn garbage(&self) -> u64 {
        self.garbage.left()
    }

    /// To be called before the transaction ends that leaves it.
    pub(crate) fn add_garbage(&self, count: u64) {
        self.garbage.come(count);
    }

    pub(crate) fn remove_garbage(&self, count: u64) {
        self.garbage.go(count);
    }

    /// The log will not list something that counts as garbage. The header must say so before a checkpoint
    /// gives up a part of the log that lists it now ([`Table::save_numbers`]).
    pub(crate) fn set_unlisted(&self) {
        self.garbage.set_unlisted();
    }

    /// Whether the header says, or will with the next checkpoint, that the log does not list all garbage.
    /// Asked behind a fence by whoever knows of some.
    pub(crate) fn is_unlisted(&self) -> bool {
        self.garbage.is_unlisted()
    }

    /// Puts the numbers into the file's header.
    ///
    /// # Errors
    /// Those of changes of pages; [`Error::Corrupt`] of the header: it stays as it is.
    pub(crate) fn save_numbers(&self) -> Result<()> {
        let _saving = self.saving.lock();
        self.garbage.settle();
        self.state().space.save(&self.numbers())
    }

    /// Corrects the number of rows after a crash, if it is far from what the clustered index looks like.
    pub(crate) fn correct_rows(&self) -> Result<()> {
        let guess = self.state().indexes[0].tree.estimate(&[], None)?;
        let known = self.row_count();
        if known < guess / ROWS_FACTOR || known / ROWS_FACTOR > guess {
            self.set_rows(guess);
        }
        Ok(())
    }

    /// Corrects the estimate.
    pub(crate) fn set_rows(&self, rows: u64) {
        self.rows.add(rows as i64 - self.rows.sum() as i64);
    }

    pub(crate) fn add_rows(&self, delta: i64) {
        self.rows.add(delta);
    }

    /// Takes `count` consecutive AUTO_INCREMENT numbers and gives the first; never hands one out twice.
    ///
    /// # Errors
    /// [`Error::AutoIncrementExhausted`]; [`Error::ReadOnly`] and [`Error::Closed`].
    pub fn reserve_auto_increment(&self, count: u64) -> Result<u64> {
        // ORDER: the counter stands alone; the read-modify-write makes the numbers distinct.
        let mut next = self.next_auto_increment.load(Ordering::Relaxed);
        loop {
            let after = next.checked_add(count).ok_or(Error::AutoIncrementExhausted)?;
            // ORDER: as above.
            match self.next_auto_increment.compare_exchange_weak(
                next,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    // Nothing is logged here: the insert that stores the number waits for room in the log.
                    self.core.check_open()?;
                    return Ok(next);
                }
                Err(newer) => next = newer,
            }
        }
    }

    /// The number that the next insert would get.
    pub fn next_auto_increment(&self) -> u64 {
        // ORDER: as in `reserve_auto_increment`.
        self.next_auto_increment.load(Ordering::Relaxed)
    }

    /// An explicit value was stored (or ALTER TABLE ... AUTO_INCREMENT = n): the next number is at least
    /// `value + 1`.
    pub fn raise_auto_increment(&self, value: u64) {
        let next = value.saturating_add(1);
        // Reading first keeps the line shared when there is nothing to raise.
        if self.next_auto_increment() < next {
            // ORDER: as in `reserve_auto_increment`.
            self.next_auto_increment.fetch_max(next, Ordering::Relaxed);
        }
    }

    pub(crate) fn take_row_ids(&self, count: u64) -> u64 {
        // ORDER: as in `reserve_auto_increment`.
        self.next_row_id.fetch_add(count, Ordering::Relaxed)
    }

    pub(crate) fn take_chain(&self) -> u64 {
        // ORDER: as in `reserve_auto_increment`.
        self.next_chain.fetch_add(1, Ordering::Relaxed)
    }

    /// What the file header remembers.
    pub(crate) fn numbers(&self) -> TableNumbers {
        TableNumbers {
            rows: self.row_count(),
            next_auto_increment: self.next_auto_increment(),
            // ORDER: nobody changes the table meanwhile.
            next_row_id: self.next_row_id.load(Ordering::Relaxed),
            next_chain: self.next_chain.load(Ordering::Relaxed),
            garbage: u64::from(self.garbage.is_unlisted()),
        }
    }

    /// The numbers that must not be given out again after a crash.
    pub(crate) fn counters(&self) -> Counters {
        Counters {
            next_auto_increment: self.next_auto_increment(),
            // ORDER: as in `reserve_auto_increment`.
            next_row_id: self.next_row_id.load(Ordering::Relaxed),
            next_chain: self.next_chain.load(Ordering::Relaxed),
        }
    }

    /// Whether it is in the list of changed tables (`WriteCore::note_changed`).
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        // ORDER: Acquire pairs with the store: who sees it has the table in the list.
        self.is_changed.load(Ordering::Acquire)
    }

    /// The table is in the list, which the caller has latched.
    pub(crate) fn set_changed(&self) {
        // ORDER: see `is_changed`.
        self.is_changed.store(true, Ordering::Release);
    }

    pub(crate) fn weak(&self) -> Weak<Table> {
        self.this.clone()
    }

    /// Leaves out many of the numbers that only have to differ, after a crash: the newest may be in no
    /// record. That of a chain is taken after the change that needs it has been logged.
    pub(crate) fn skip_numbers(&self) {
        // ORDER: as in `set_numbers`.
        self.next_row_id.fetch_add(SKIP_AFTER_CRASH, Ordering::Relaxed);
        self.next_chain.fetch_add(SKIP_AFTER_CRASH, Ordering::Relaxed);
    }

    /// Gives out no numbers below these.
    pub(crate) fn raise_counters(&self, counters: Counters) {
        // ORDER: as in `set_numbers`.
        self.next_auto_increment.fetch_max(counters.next_auto_increment, Ordering::Relaxed);
        self.next_row_id.fetch_max(counters.next_row_id, Ordering::Relaxed);
        self.next_chain.fetch_max(counters.next_chain, Ordering::Relaxed);
    }

    /// Begins anew with an empty file. The table's gate is closed.
    pub(crate) fn begin_anew(&self, state: TableState) {
        let _saving = self.saving.lock();
        self.set_state(state);
        self.set_numbers(&TableNumbers::default());
    }

    /// Nobody else uses the table meanwhile.
    fn set_numbers(&self, numbers: &TableNumbers) {
        self.rows.set(numbers.rows);
        self.garbage.set(numbers.garbage.min(1), numbers.garbage > 0);
        // ORDER: nobody else uses the table meanwhile.
        self.next_auto_increment.store(numbers.next_auto_increment, Ordering::Relaxed);
        self.next_row_id.store(numbers.next_row_id, Ordering::Relaxed);
        self.next_chain.store(numbers.next_chain, Ordering::Relaxed);
    }
}
