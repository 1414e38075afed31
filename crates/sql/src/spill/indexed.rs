//! Rows in a scratch file that are looked up by their keys.
//!
//! The rows lie in the order of their keys. In memory is only the first key of each block of the file.

use super::Workspace;
use super::files::{RunReader, RunWriter, Stored};
use super::sorter::Sorter;
use crate::SqlError;
use crate::memory::Charge;
use engine::KeyList;
use std::cell::RefCell;

/// A key of the file is known for each so many bytes.
const BLOCK_BYTES: u64 = 4 << 10;
/// After so many rows the statement looks again whether it was killed.
const ROWS_BETWEEN_CHECKS: usize = 256;

/// Rows by key, in a file. Rows of one key stay in the order in which they came.
#[derive(Debug)]
pub(crate) struct IndexedRows {
    stored: Stored,
    /// The first key of each block, and where the block begins.
    firsts: KeyList,
    starts: Vec<u64>,
    /// Taken out while it is used.
    reader: RefCell<Option<RunReader>>,
    _charge: Charge,
}

impl IndexedRows {
    /// The rows of a sorter.
    ///
    /// # Errors
    /// Those of the sorter, and of the file.
    pub(crate) fn new(workspace: Workspace<'_>, sorter: Sorter<'_>) -> Result<IndexedRows, SqlError> {
        IndexedRows::of(workspace, sorter, false)
    }

    /// One row of a sorter for each key.
    ///
    /// # Errors
    /// As [`IndexedRows::new`].
    pub(crate) fn distinct(workspace: Workspace<'_>, sorter: Sorter<'_>) -> Result<IndexedRows, SqlError> {
        IndexedRows::of(workspace, sorter, true)
    }

    fn of(workspace: Workspace<'_>, sorter: Sorter<'_>, is_distinct: bool) -> Result<IndexedRows, SqlError> {
        let mut rows = sorter.finish()?;
        let mut writer = RunWriter::new(workspace)?;
        let (mut firsts, mut starts) = (KeyList::default(), Vec::new());
        let mut charge = Charge::default();
        let mut last: Option<Vec<u8>> = None;
        while rows.advance()? {
            if is_distinct {
                if last.as_deref() == Some(rows.key()) {
                    continue;
                }
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(rows.key());
            }
            let position = writer.position();
            if starts.last().is_none_or(|start| position - start >= BLOCK_BYTES) {
                firsts.push(rows.key());
                starts.push(position);
                charge.cover(firsts.bytes.capacity() + starts.capacity() * 16, workspace.account)?;
            }
            writer.push(rows.key(), rows.row())?;
        }
        Ok(IndexedRows {
            stored: writer.finish()?,
            firsts,
            starts,
            reader: RefCell::new(None),
            _charge: charge,
        })
    }

    /// Calls `each` with the rows of a key until it returns false.
    ///
    /// # Errors
    /// 1030 if the file fails, 1317 after KILL, and those of `each`.
    pub(crate) fn for_each_of(
        &self,
        workspace: Workspace<'_>,
        key: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        workspace.interrupt.check()?;
        // The block before the first one that begins with this key or a later one may have rows of it.
        let block = first_not_before(&self.firsts, key).saturating_sub(1);
        let Some(start) = self.starts.get(block) else { return Ok(()) };
        let new = || RunReader::new(&self.stored, BLOCK_BYTES as usize);
        let mut reader = self.reader.borrow_mut().take().unwrap_or_else(new);
        reader.seek(*start);
        let mut rows = 0;
        while reader.advance()? && reader.key() <= key {
            rows += 1;
            if rows % ROWS_BETWEEN_CHECKS == 0 {
                workspace.interrupt.check()?;
            }
            if reader.key() == key && !each(reader.row())? {
                break;
            }
        }
        *self.reader.borrow_mut() = Some(reader);
        Ok(())
    }
}

/// The position of the first key that is not below `key`.
fn first_not_before(keys: &KeyList, key: &[u8]) -> usize {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match keys.get(middle) < key {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}
