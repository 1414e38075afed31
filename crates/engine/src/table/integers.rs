//! Rows by their integers alone, a leaf at a time: what counts, filters and merges of integer columns read.

use super::Table;
use super::scan::Scan;
use crate::Result;
use crate::definition::Direction;
use crate::tree::{Integers, Source};
use types::{ColumnType, RowView, ValueRef};

/// Columns of a table that [`Scan::next_integers`] can read.
#[derive(Clone, Debug)]
pub struct IntegerColumns {
    /// Their positions in the table.
    columns: Vec<usize>,
    sources: Vec<Source>,
}

impl IntegerColumns {
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Empties a batch and gives it these columns.
    pub fn clear(&self, batch: &mut Integers) {
        batch.clear(self.sources.len());
    }

    /// Puts the values of a batch's row into their places in `row`, which is as wide as the table.
    #[inline]
    pub fn read(&self, batch: &Integers, at: usize, row: &mut [ValueRef<'_>]) {
        for ((column, source), values) in self.columns.iter().zip(&self.sources).zip(&batch.columns) {
            row[*column] = match values.get(at) {
                None => ValueRef::Null,
                Some(value) if source.is_unsigned() => ValueRef::UInt(value as u64),
                Some(value) => ValueRef::Int(value),
            };
        }
    }
}

impl Table {
    /// Where these columns lie in the clustered index; `None` if one of them does not hold integers, or some
    /// that an `i64` does not.
    pub fn integer_columns(&self, columns: impl IntoIterator<Item = usize>) -> Option<IntegerColumns> {
        let def = self.def();
        let columns: Vec<usize> = columns.into_iter().collect();
        let key = def.primary.iter().flatten().next();
        let key = key.filter(|part| !part.descending).map(|part| part.column);
        let source = |column: &usize| {
            let place = self.row_codec().integer_place(*column)?;
            match def.columns.get(*column)?.column_type {
                ColumnType::Int { bytes: 8, unsigned: true } => None,
                ColumnType::Int { bytes: bytes @ (4 | 8), unsigned }
                    if key == Some(*column) && place.null_bit.is_none() =>
                {
                    Some(Source::Key { bytes, unsigned })
                }
                _ => Some(Source::Image(place)),
            }
        };
        let sources = columns.iter().map(source).collect::<Option<Vec<Source>>>()?;
        Some(IntegerColumns { columns, sources })
    }
}

impl Integers {
    fn push(&mut self, row: &RowView<'_>, columns: &IntegerColumns) {
        self.rows += 1;
        for (values, column) in self.columns.iter_mut().zip(&columns.columns) {
            let (value, is_null) = match row.get(*column) {
                ValueRef::Int(value) => (value, false),
                ValueRef::UInt(value) => (value as i64, false),
                _ => (0, true),
            };
            values.values.push(value);
            values.nulls.push(is_null);
        }
    }
}

impl Scan<'_> {
    /// The next rows of a scan of the clustered index that goes forward, by some of their columns; false at
    /// the end. Not to be mixed with the ways to get single rows.
    ///
    /// # Errors
    /// [`crate::Error::SnapshotTooOld`] and [`crate::Error::TableChanged`] if the snapshot cannot be read
    /// here; [`crate::Error::Io`] and [`crate::Error::Corrupt`].
    pub fn next_integers(&mut self, columns: &IntegerColumns, out: &mut Integers) -> Result<bool> {
        debug_assert!(self.index_id.0 == 0 && self.direction == Direction::Forward);
        while !self.is_at_end() {
            columns.clear(out);
            if self.has_entries() || !self.read_integers(&columns.sources, out)? {
                self.read_rows(columns, out)?;
            }
            if out.rows > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes on with the first key that is not below this one, if that lies ahead of what has been read.
    pub fn skip_to(&mut self, key: &[u8]) {
        if !self.has_entries() && key > self.rest.start.as_slice() {
            self.rest.start.clear();
            self.rest.start.extend_from_slice(key);
        }
    }

    fn is_at_end(&self) -> bool {
        self.rest.done && !self.has_entries()
    }

    /// Rows have been read that are to be looked at one by one.
    fn has_entries(&self) -> bool {
        self.next < self.chunk.len() || self.pending.is_some()
    }

    /// Reads a leaf's rows; false, and nothing read, if the reader has to look at them one by one.
    fn read_integers(&mut self, sources: &[Source], out: &mut Integers) -> Result<bool> {
        let index = self.index()?;
        self.reader.check_since(index.since)?;
        // Before the rows are read: what becomes garbage later the snapshot still sees.
        if self.table.garbage() > 0 {
            return Ok(false);
        }
        let before = self.rest.clone();
        let read = index.tree.read_integers(&mut self.rest, sources, out, self.limit);
        let is_read = read.map_err(|error| self.explain(error))?;
        self.check_tree()?;
        if !is_read || !self.reader.sees_all_until(out.stamp_max) {
            self.rest = before;
            out.clear(sources.len());
            return Ok(false);
        }
        self.passed += out.rows as u64;
        // A leaf at a time, once it is plain that the scan goes on.
        self.limit = self.limit.saturating_mul(4);
        Ok(true)
    }

    fn read_rows(&mut self, columns: &IntegerColumns, out: &mut Integers) -> Result<()> {
        let table = self.table;
        while let Some(image) = self.next_row()? {
            out.push(&table.row_codec().view(image), columns);
            if !self.has_entries() {
                break;
            }
        }
        Ok(())
    }
}
