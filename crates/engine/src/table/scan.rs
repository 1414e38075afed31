//! Cursors over an index.

use super::lookup::Rows;
use super::state::TableState;
use super::{Index, Table};
use crate::definition::{Direction, KeyRange};
use crate::format::row::{ROW_HEADER_BYTES, RowHeader, split_cell};
use crate::tree::{Chunk, Remainder, TierUse, Tree};
use crate::visibility::{Reader, Sight};
use crate::{Error, Result, work};
use base::IndexId;
use base::phases::{self, Phase};
use base::sync::Arc;

/// Entries copied at a time: few at first, since many scans stop early, then four times as many each time.
const ENTRIES_FIRST: usize = 16;
/// At most so many rows are fetched ahead through a secondary index.
const ENTRIES_MAX: usize = 256;

/// Bounded on both sides a range is mostly read whole.
const ENTRIES_FIRST_OF_BOUNDED: usize = 128;
/// Memory beyond this is given back.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// The memory that a cursor works in. The next cursor on the same core finds it warm.
#[derive(Default, Debug)]
pub(crate) struct ScanMemory {
    chunk: Chunk,
    rows: Option<Rows>,
    primary_key: Vec<u8>,
    key: Vec<u8>,
    image: Vec<u8>,
    own: Vec<u8>,
}

/// A cursor over the rows that its reader sees. It holds no latch between calls. By a snapshot it gives each
/// row exactly once; a reader of newest states may or may not see rows inserted or deleted meanwhile.
#[derive(Debug)]
pub struct Scan<'t> {
    pub(super) table: &'t Table,
    state: &'t TableState,
    pub(super) reader: Reader<'t>,
    pub(super) index_id: IndexId,
    pub(super) direction: Direction,
    pub(super) rest: Remainder,
    pub(super) limit: usize,
    pub(super) chunk: Chunk,
    /// The next entry of the chunk.
    pub(super) next: usize,
    /// Through a secondary index: the rows of the chunk's entries, once they have been asked for.
    rows: Option<Rows>,
    spare_rows: Option<Rows>,
    primary_key: Vec<u8>,
    key: Vec<u8>,
    image: Vec<u8>,
    own: Vec<u8>,
    /// After a `seek`: only entries that begin with these bytes are delivered.
    within: Vec<u8>,
    /// Of the row delivered last: the other candidate, which comes next.
    pub(super) pending: Option<Arc<[u8]>>,
    /// The chunk's entries need no look at their rows.
    is_trusted: bool,
    /// Rows are not asked for: those of a leaf that all readers see need not be copied.
    keys_only: bool,
    /// Entries that it has come to.
    pub(super) passed: u64,
    /// The row tier keeps nothing of the rows that entries lead to, so that a scan does not push out rows
    /// that others want again.
    pub(super) tier_use: TierUse,
    /// The caller has taken the memory back: the core gets none.
    memory_is_taken: bool,
}

/// Where the image of the row found lies.
enum ImageSource {
    /// In the value of a chunk's entry.
    Chunk(usize),
    /// In a cell that the secondary entry led to.
    Cell(usize),
    /// In `Scan::image`.
    Own,
}

impl Table {
    /// The rows that `reader` sees, in the order of `index` inside `range`.
    pub fn scan<'t>(
        &'t self,
        reader: Reader<'t>,
        index: IndexId,
        range: KeyRange,
        direction: Direction,
    ) -> Scan<'t> {
        self.scan_in(self.state(), reader, index, range, direction)
    }

    /// As [`Table::scan`], in a state that the caller has begun to read.
    pub(super) fn scan_in<'t>(
        &'t self,
        state: &'t TableState,
        reader: Reader<'t>,
        index: IndexId,
        range: KeyRange,
        direction: Direction,
    ) -> Scan<'t> {
        let memory = self.core.scan_memory.take().unwrap_or_default();
        self.scan_with(memory, state, reader, index, range, direction)
    }

    /// As [`Table::scan_in`], in memory that the caller has.
    pub(super) fn scan_with<'t>(
        &'t self,
        memory: ScanMemory,
        state: &'t TableState,
        reader: Reader<'t>,
        index: IndexId,
        range: KeyRange,
        direction: Direction,
    ) -> Scan<'t> {
        let rest = match range.to_half_open() {
            Some((start, end)) => Remainder::new(start, end),
            None => Remainder { done: true, ..Remainder::default() },
        };
        if let Some(holder) = reader.range_holder()
            && !rest.done
        {
            self.core.ranges.lock(holder, (self.id(), index), &rest.start, rest.end.as_deref());
        }
        let ScanMemory { chunk, rows, primary_key, key, image, own } = memory;
        let is_bounded = !rest.start.is_empty() && rest.end.is_some();
        if rest.start.is_empty() && rest.end.is_none() && !rest.done {
            work::add_whole_scan();
        }
        Scan {
            table: self,
            state,
            reader,
            index_id: index,
            direction,
            limit: if is_bounded { ENTRIES_FIRST_OF_BOUNDED } else { ENTRIES_FIRST },
            rest,
            chunk,
            next: 0,
            rows: None,
            spare_rows: rows,
            primary_key,
            key,
            image,
            own,
            within: Vec::new(),
            pending: None,
            is_trusted: false,
            keys_only: false,
            passed: 0,
            tier_use: TierUse::Look,
            memory_is_taken: false,
        }
    }

    /// As [`Table::scan`], for [`Scan::next_key`] alone.
    pub fn scan_keys<'t>(
        &'t self,
        reader: Reader<'t>,
        index: IndexId,
        range: KeyRange,
        direction: Direction,
    ) -> Scan<'t> {
        let mut scan = self.scan(reader, index, range, direction);
        scan.keys_only = index.0 == 0;
        scan
    }
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        work::add_rows(self.passed);
        if !self.memory_is_taken
            && let Some(memory) = self.take_memory()
        {
            self.table.core.scan_memory.put(memory);
        }
    }
}

impl ScanMemory {
    /// In bytes, keys left out.
    pub(super) fn capacity(&self) -> usize {
        self.chunk.capacity() + self.rows.as_ref().map_or(0, Rows::capacity) + self.image.capacity()
    }
}

impl Scan<'_> {
    /// Ends the scan and returns its memory to the caller instead of to the core.
    pub(super) fn into_memory(mut self) -> ScanMemory {
        let memory = self.take_memory().unwrap_or_default();
        self.memory_is_taken = true;
        memory
    }

    /// The memory for the next scan; `None` if it has grown too large to be kept.
    fn take_memory(&mut self) -> Option<ScanMemory> {
        use std::mem::take;
        let mut chunk = take(&mut self.chunk);
        let rows = self.rows.take().or_else(|| self.spare_rows.take());
        let rows_bytes = rows.as_ref().map_or(0, Rows::capacity);
        if chunk.capacity() + rows_bytes + self.image.capacity() > KEPT_BYTES_MAX {
            return None;
        }
        chunk.clear();
        Some(ScanMemory {
            chunk,
            rows,
            primary_key: take(&mut self.primary_key),
            key: take(&mut self.key),
            image: take(&mut self.image),
            own: take(&mut self.own),
        })
    }
}

impl<'t> Scan<'t> {
    pub(super) fn index(&self) -> Result<&'t Index> {
        if self.state.dropped {
            return Err(Error::NoSuchTable);
        }
        self.table.index(self.state, self.index_id)
    }

    /// Goes on with the entries that begin with `prefix`, wherever they lie in a forward scan of the whole
    /// index: those that have been read already are found among these, so that prefixes which come in order
    /// cost little more than a scan.
    pub fn seek(&mut self, prefix: &[u8]) {
        debug_assert!(self.direction == Direction::Forward && self.rest.end.is_none());
        self.pending = None;
        self.within.clear();
        self.within.extend_from_slice(prefix);
        let count = self.chunk.len();
        let key = |entry: usize| self.chunk.entry(entry).0;
        if count > 0 && key(0) <= prefix {
            if prefix <= key(count - 1) {
                self.next = self.chunk.lower_bound(prefix, self.next);
                return;
            }
            // Behind what has been read: there is nothing, or it comes next.
            if self.rest.done || prefix <= self.rest.start.as_slice() {
                self.next = count;
                return;
            }
        }
        if self.next * 4 < count {
            // Much was read for little.
            self.limit = ENTRIES_FIRST;
        }
        self.chunk.clear();
        self.next = 0;
        self.rest.start.clear();
        self.rest.start.extend_from_slice(prefix);
        self.rest.done = false;
    }

    /// Makes `next` point to an entry; false at the end.
    fn advance(&mut self) -> Result<bool> {
        if !self.reach_entry()? {
            return Ok(false);
        }
        self.passed += 1;
        Ok(self.within.is_empty() || self.chunk.entry(self.next).0.starts_with(&self.within))
    }

    fn reach_entry(&mut self) -> Result<bool> {
        while self.next == self.chunk.len() {
            if self.rest.done {
                return Ok(false);
            }
            self.next = 0;
            if let Some(rows) = self.rows.take() {
                self.spare_rows = Some(rows);
            }
            let Index { tree, since, .. } = self.index()?;
            self.reader.check_since(*since)?;
            // Before the entries are read: what becomes garbage later the snapshot still sees.
            let has_garbage = self.table.garbage() > 0;
            self.chunk.keys_only = self.keys_only && !has_garbage;
            let before = self.chunk.keys_only.then(|| self.rest.clone());
            self.read(tree)?;
            let mut is_trusted = !has_garbage && self.reader.sees_all_until(self.chunk.stamp_max());
            if let Some(before) = before.filter(|_| !is_trusted) {
                // Some rows must be looked at after all.
                self.rest = before;
                self.chunk.keys_only = false;
                self.read(tree)?;
                is_trusted = self.reader.sees_all_until(self.chunk.stamp_max());
            }
            self.check_tree()?;
            self.is_trusted = is_trusted;
            self.limit = self.limit.saturating_mul(4).min(ENTRIES_MAX);
        }
        Ok(true)
    }

    /// Fails if the pages just read may have been free, and hold anything that they once held.
    pub(super) fn check_tree(&self) -> Result<()> {
        self.table.check_tree(self.state, self.index_id)
    }

    /// Reads the next chunk.
    fn read(&mut self, tree: &Tree) -> Result<()> {
        let _reading = phases::enter(super::lookup::phase_of(self.index_id));
        let read = match self.direction {
            Direction::Forward => tree.read_forward(&mut self.rest, &mut self.chunk, self.limit),
            Direction::Backward => tree.read_backward(&mut self.rest, &mut self.chunk, self.limit),
        };
        read.map_err(|error| self.explain(error))
    }

    /// An error that comes of the table's having been redefined says so.
    pub(super) fn explain(&self, error: Error) -> Error {
        if error.may_be_stale() && !std::ptr::eq(self.state, self.table.state()) {
            return Error::TableChanged;
        }
        self.table.core.explain(error)
    }

    /// The next row image.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] and [`Error::TableChanged`] if the snapshot cannot be read here;
    /// [`Error::Io`] and [`Error::Corrupt`].
    pub fn next_row(&mut self) -> Result<Option<&[u8]>> {
        Ok(self.next_row_with_key()?.map(|(_, image)| image))
    }

    /// The next row: its primary key and its image.
    pub(super) fn next_row_with_key(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        debug_assert!(!self.keys_only);
        let source = loop {
            if let Some(cell) = self.pending.take() {
                if self.take_other(&cell)? {
                    break ImageSource::Own;
                }
                continue;
            }
            if !self.advance()? {
                return Ok(None);
            }
            let source = if self.index_id.0 == 0 { self.clustered_row()? } else { self.row_of_entry()? };
            self.next += 1;
            if let Some(source) = source {
                break source;
            }
        };
        let image = match source {
            ImageSource::Chunk(entry) => &self.chunk.entry(entry).1[ROW_HEADER_BYTES..],
            ImageSource::Cell(entry) => match &self.rows {
                Some(rows) => &rows.cell(entry)[ROW_HEADER_BYTES..],
                None => &[],
            },
            ImageSource::Own => &self.image,
        };
        Ok(Some((&self.primary_key, image)))
    }

    fn clustered_row(&mut self) -> Result<Option<ImageSource>> {
        let (key, cell) = self.chunk.entry(self.next);
        self.primary_key.clear();
        self.primary_key.extend_from_slice(key);
        let Some((header, _)) = split_cell(cell) else {
            return Err(self.state.space.corrupt(0, "a row without a header"));
        };
        self.see(header, ImageSource::Chunk(self.next))
    }

    /// What the reader sees of the row whose cell lies in `source`. The primary key has been set, and through
    /// a secondary index the entry's parts in `key`.
    fn see(&mut self, header: RowHeader, source: ImageSource) -> Result<Option<ImageSource>> {
        let file = u64::from(self.state.space.file_id().0);
        match self.reader.look(header, file, &self.primary_key).map_err(|error| self.explain(error))? {
            Sight::Nothing => Ok(None),
            Sight::Other(cell) => Ok(self.take_other(&cell)?.then_some(ImageSource::Own)),
            Sight::Both(cell) => {
                self.pending = Some(cell);
                self.see_newest(header, source)
            }
            Sight::This => self.see_newest(header, source),
            Sight::Again => self.fetch_row(),
        }
    }

    fn see_newest(&mut self, header: RowHeader, source: ImageSource) -> Result<Option<ImageSource>> {
        if header.is_overflow() {
            return self.fetch_row();
        }
        let image = match (&source, &self.rows) {
            (ImageSource::Cell(entry), Some(rows)) => &rows.cell(*entry)[ROW_HEADER_BYTES..],
            _ => return Ok(Some(source)),
        };
        let index = self.index()?;
        let is_meant = self.table.row_has_key(index, image, &self.key, &mut self.own);
        Ok(is_meant.then_some(source))
    }

    /// Takes an older state of the row into `image`; false if it is not the entry's.
    fn take_other(&mut self, cell: &[u8]) -> Result<bool> {
        self.image = self.table.image_of(&self.state.space, cell).map_err(|error| self.explain(error))?;
        self.has_entrys_key()
    }

    /// Reads the row by its key, into `image`.
    fn fetch_row(&mut self) -> Result<Option<ImageSource>> {
        self.image.clear();
        let found = self.table.fetch(self.reader, self.state, &self.primary_key, &mut self.image);
        let is_there = found.map_err(|error| self.explain(error))?;
        Ok((is_there && self.has_entrys_key()?).then_some(ImageSource::Own))
    }

    /// True if the row in `image` has the parts of the entry that led to it.
    fn has_entrys_key(&mut self) -> Result<bool> {
        let index = self.index()?;
        Ok(self.index_id.0 == 0 || self.table.row_has_key(index, &self.image, &self.key, &mut self.own))
    }

    fn row_of_entry(&mut self) -> Result<Option<ImageSource>> {
        let index = self.index()?;
        if self.rows.is_none() {
            self.fetch_rows(index)?;
        }
        let (key, _) = self.chunk.entry(self.next);
        let Some((own, primary_key)) = index.split_entry(key) else {
            return Err(self.state.space.corrupt(0, "an index entry without the index's parts"));
        };
        self.primary_key.clear();
        self.primary_key.extend_from_slice(primary_key);
        self.key.clear();
        self.key.extend_from_slice(own);
        let Some((header, _)) = self.rows.as_ref().and_then(|rows| split_cell(rows.cell(self.next))) else {
            // The row is gone by now.
            return Ok(None);
        };
        self.see(header, ImageSource::Cell(self.next))
    }

    /// Looks up the rows of all of the chunk's entries in one batch.
    fn fetch_rows(&mut self, index: &Index) -> Result<()> {
        let _reading = phases::enter(Phase::Row);
        let mut rows = self.spare_rows.take().unwrap_or_default();
        rows.clear(self.tier_use);
        let chunk = &self.chunk;
        let primary_key = |entry: usize| -> &[u8] {
            // An entry that is none of the index leads to no row here and is reported when it is reached.
            index.split_entry(chunk.entry(entry).0).map_or(&[], |(_, primary_key)| primary_key)
        };
        let found = self.state.indexes[0].tree.lookup_many(chunk.len(), primary_key, &mut rows);
        found.map_err(|error| self.explain(error))?;
        self.rows = Some(rows);
        Ok(())
    }

    /// The primary key of the row that `next_row` or `next_key` last returned: what update and delete take.
    pub fn primary_key(&self) -> &[u8] {
        &self.primary_key
    }

    /// The next key of the index (a secondary entry's own parts, then the primary key) whose row the reader
    /// sees, without fetching the row if that can be: for COUNT(*) and covered queries.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] and [`Error::TableChanged`] if the snapshot cannot be read here;
    /// [`Error::Io`] and [`Error::Corrupt`].
    pub fn next_key(&mut self) -> Result<Option<&[u8]>> {
        loop {
            self.pending = None;
            if !self.advance()? {
                return Ok(None);
            }
            let is_seen = self.is_trusted
                || match self.index_id.0 {
                    0 => self.clustered_row()?,
                    _ => self.row_of_entry()?,
                }
                .is_some();
            let (key, _) = self.chunk.entry(self.next);
            self.next += 1;
            if is_seen {
                self.key.clear();
                self.key.extend_from_slice(key);
                break;
            }
        }
        let own = match self.index_id.0 {
            0 => 0,
            _ => match self.index()?.split_entry(&self.key) {
                Some((own, _)) => own.len(),
                None => return Err(self.state.space.corrupt(0, "an index entry without the index's parts")),
            },
        };
        self.primary_key.clear();
        self.primary_key.extend_from_slice(&self.key[own..]);
        Ok(Some(&self.key))
    }
}
