//! Cursors over an index.

use super::lookup::Rows;
use super::row::{ROW_HEADER_BYTES, split_cell};
use super::state::TableState;
use super::{Index, Table};
use crate::definition::{Direction, KeyRange};
use crate::tree::{Chunk, Remainder};
use crate::{Error, Result};
use base::IndexId;

/// Entries copied at a time: few at first, since many scans stop early, then four times as many each time.
const ENTRIES_FIRST: usize = 16;
/// At most so many rows are fetched ahead through a secondary index.
const ENTRIES_MAX: usize = 256;

/// A cursor. It holds no latch between calls; rows inserted or deleted meanwhile may or may not be seen,
/// a row that stays put is seen exactly once.
#[derive(Debug)]
pub struct Scan<'t> {
    table: &'t Table,
    state: &'t TableState,
    index_id: IndexId,
    direction: Direction,
    rest: Remainder,
    limit: usize,
    chunk: Chunk,
    /// The next entry of the chunk.
    next: usize,
    /// Through a secondary index: the rows of the chunk's entries, once they have been asked for.
    rows: Option<Rows>,
    spare_rows: Option<Rows>,
    primary_key: Vec<u8>,
    key: Vec<u8>,
    image: Vec<u8>,
    own: Vec<u8>,
}

/// Where the image of the row found lies.
enum Image {
    /// In the value of a chunk's entry.
    Chunk(usize),
    /// In a cell that the secondary entry led to.
    Cell(usize),
    /// In `Scan::image`.
    Own,
}

impl Table {
    /// Rows of `index` in key order inside `range`.
    pub fn scan(&self, index: IndexId, range: KeyRange, direction: Direction) -> Scan<'_> {
        let rest = match range.to_half_open() {
            Some((start, end)) => Remainder::new(start, end),
            None => Remainder { done: true, ..Remainder::default() },
        };
        Scan {
            table: self,
            state: self.state(),
            index_id: index,
            direction,
            rest,
            limit: ENTRIES_FIRST,
            chunk: Chunk::default(),
            next: 0,
            rows: None,
            spare_rows: None,
            primary_key: Vec::new(),
            key: Vec::new(),
            image: Vec::new(),
            own: Vec::new(),
        }
    }
}

impl<'t> Scan<'t> {
    fn index(&self) -> Result<&'t Index> {
        if self.state.dropped {
            return Err(Error::NoSuchTable);
        }
        self.table.index(self.state, self.index_id)
    }

    /// Makes `next` point to an entry; false at the end.
    fn advance(&mut self) -> Result<bool> {
        while self.next == self.chunk.len() {
            if self.rest.done {
                return Ok(false);
            }
            self.next = 0;
            if let Some(rows) = self.rows.take() {
                self.spare_rows = Some(rows);
            }
            let tree = &self.index()?.tree;
            let read = match self.direction {
                Direction::Forward => tree.read_forward(&mut self.rest, &mut self.chunk, self.limit),
                Direction::Backward => tree.read_backward(&mut self.rest, &mut self.chunk, self.limit),
            };
            read.map_err(|error| self.explain(error))?;
            let now = self.table.state();
            if !std::ptr::eq(self.state, now) && !now.has_tree_of(self.state, self.index_id) {
                // The pages just read may have been free, and hold anything that they once held.
                return Err(if now.dropped { Error::NoSuchTable } else { Error::TableChanged });
            }
            self.limit = (self.limit * 4).min(ENTRIES_MAX);
        }
        Ok(true)
    }

    /// An error that comes of the table's having been redefined says so.
    fn explain(&self, error: Error) -> Error {
        if error.may_be_stale() && !std::ptr::eq(self.state, self.table.state()) {
            return Error::TableChanged;
        }
        self.table.core.explain(error)
    }

    /// The next row image.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>> {
        let place = loop {
            if !self.advance()? {
                return Ok(None);
            }
            let place = if self.index_id.0 == 0 { self.clustered_row()? } else { self.row_of_entry()? };
            self.next += 1;
            if let Some(place) = place {
                break place;
            }
        };
        Ok(Some(match place {
            Image::Chunk(entry) => &self.chunk.entry(entry).1[ROW_HEADER_BYTES..],
            Image::Cell(entry) => match &self.rows {
                Some(rows) => &rows.cell(entry)[ROW_HEADER_BYTES..],
                None => &[],
            },
            Image::Own => &self.image,
        }))
    }

    fn clustered_row(&mut self) -> Result<Option<Image>> {
        let (key, cell) = self.chunk.entry(self.next);
        self.primary_key.clear();
        self.primary_key.extend_from_slice(key);
        match split_cell(cell) {
            Some((header, _)) if header.is_overflow() => self.fetch_large(),
            Some(_) => Ok(Some(Image::Chunk(self.next))),
            None => Err(self.state.space.corrupt(0, "a row without a header")),
        }
    }

    fn fetch_large(&mut self) -> Result<Option<Image>> {
        self.image.clear();
        let found = self.table.fetch(self.state, &self.primary_key, &mut self.image);
        Ok(found.map_err(|error| self.explain(error))?.map(|_| Image::Own))
    }

    fn row_of_entry(&mut self) -> Result<Option<Image>> {
        let index = self.index()?;
        if self.rows.is_none() {
            self.fetch_rows(index)?;
        }
        let Some(rows) = &self.rows else { return Ok(None) };
        let (key, value) = self.chunk.entry(self.next);
        let Some((own, primary_key)) = index.split_entry(key, value) else {
            return Err(self.state.space.corrupt(0, "an index entry without the index's parts"));
        };
        self.primary_key.clear();
        self.primary_key.extend_from_slice(primary_key);
        let Some((header, image)) = split_cell(rows.cell(self.next)) else {
            // The row is gone by now.
            return Ok(None);
        };
        if header.is_overflow() {
            self.key.clear();
            self.key.extend_from_slice(own);
            if self.fetch_large()?.is_none() {
                return Ok(None);
            }
            let still = self.table.row_has_key(index, &self.image, &self.key, &mut self.own);
            return Ok(still.then_some(Image::Own));
        }
        let still = self.table.row_has_key(index, image, own, &mut self.own);
        Ok(still.then_some(Image::Cell(self.next)))
    }

    /// Looks up the rows of all of the chunk's entries in one batch.
    fn fetch_rows(&mut self, index: &Index) -> Result<()> {
        let mut rows = self.spare_rows.take().unwrap_or_default();
        rows.clear();
        let chunk = &self.chunk;
        let primary_key = |entry: usize| -> &[u8] {
            let (key, value) = chunk.entry(entry);
            // An entry that is none of the index leads to no row here and is reported when it is reached.
            index.split_entry(key, value).map_or(&[], |(_, primary_key)| primary_key)
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

    /// The next key of the index (a secondary entry's own parts, then the primary key), without
    /// fetching the row: for COUNT(*) and covered queries.
    pub fn next_key(&mut self) -> Result<Option<&[u8]>> {
        if !self.advance()? {
            return Ok(None);
        }
        let index = self.index()?;
        let (key, value) = self.chunk.entry(self.next);
        self.primary_key.clear();
        self.key.clear();
        self.key.extend_from_slice(key);
        if self.index_id.0 == 0 {
            self.primary_key.extend_from_slice(key);
        } else {
            let Some((own, primary_key)) = index.split_entry(key, value) else {
                return Err(self.state.space.corrupt(0, "an index entry without the index's parts"));
            };
            self.primary_key.extend_from_slice(primary_key);
            self.key.truncate(own.len());
            self.key.extend_from_slice(primary_key);
        }
        self.next += 1;
        Ok(Some(&self.key))
    }
}
