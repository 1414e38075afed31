//! Entries that are read by their number: in memory, and beyond some bytes in a file.

use super::Workspace;
use super::files::{HEADER_BYTES, RunReader, RunWriter, Stored, header, lengths};
use crate::SqlError;
use crate::memory::Charge;

/// Of the entries in the file it is known for each so many where one begins.
const MARK_ENTRIES: usize = 64;
/// Bytes of the file that are read at a time. There are several cursors.
const READ_BYTES: usize = 32 << 10;

/// Takes entries of a key and a row, and gives them by their number.
#[derive(Debug)]
pub(crate) struct GatheredRows<'w> {
    workspace: Workspace<'w>,
    bytes: Vec<u8>,
    /// Where the entries in memory begin.
    starts: Vec<usize>,
    len: usize,
    charge: Charge,
    writer: Option<RunWriter>,
    stored: Option<Stored>,
    /// Where each [`MARK_ENTRIES`]th entry of the file begins.
    marks: Vec<u64>,
}

/// A place in a [`GatheredRows`]. One that moves on in steps reads the file once.
#[derive(Default, Debug)]
pub(crate) struct RowCursor {
    reader: Option<RunReader>,
    /// The entry that the reader gives next.
    next: usize,
}

impl<'w> GatheredRows<'w> {
    pub(crate) fn new(workspace: Workspace<'w>) -> GatheredRows<'w> {
        GatheredRows {
            workspace,
            bytes: Vec::new(),
            starts: Vec::new(),
            len: 0,
            charge: Charge::default(),
            writer: None,
            stored: None,
            marks: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Throws all entries away. Cursors must not be used on.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.marks.clear();
        self.len = 0;
        (self.writer, self.stored) = (None, None);
    }

    /// # Errors
    /// 1290 and 1041 for memory, 1021 and 1030 for the file, 1317 after KILL.
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        let used = self.bytes.len() + self.starts.len() * size_of::<usize>();
        if self.writer.is_none() && used < self.workspace.limits.table_bytes {
            self.starts.push(self.bytes.len());
            self.bytes.extend_from_slice(&header(key, row)?);
            self.bytes.extend_from_slice(key);
            self.bytes.extend_from_slice(row);
            self.len += 1;
            let allocated = self.bytes.capacity() + self.starts.capacity() * size_of::<usize>();
            return self.charge.cover(allocated, self.workspace.account);
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                self.workspace.note_disk_table();
                none.insert(RunWriter::new(self.workspace)?)
            }
        };
        if (self.len - self.starts.len()).is_multiple_of(MARK_ENTRIES) {
            self.marks.push(writer.position());
        }
        writer.push(key, row)?;
        self.len += 1;
        Ok(())
    }

    /// No more entries come. They can be read from now on.
    ///
    /// # Errors
    /// As [`GatheredRows::push`].
    pub(crate) fn seal(&mut self) -> Result<(), SqlError> {
        self.stored = self.writer.take().map(RunWriter::finish).transpose()?;
        Ok(())
    }

    /// Key and row of an entry.
    ///
    /// # Errors
    /// 1030 if the file fails, 1105 if there is no such entry.
    pub(crate) fn read<'r>(
        &'r self,
        cursor: &'r mut RowCursor,
        at: usize,
    ) -> Result<(&'r [u8], &'r [u8]), SqlError> {
        let bad = || SqlError::internal("an entry that was not gathered");
        if let Some(start) = self.starts.get(at) {
            let (header, rest) = self
                .bytes
                .get(*start..)
                .and_then(<[u8]>::split_first_chunk::<HEADER_BYTES>)
                .ok_or_else(bad)?;
            let (key_bytes, row_bytes) = lengths(header);
            let (key, rest) = rest.split_at_checked(key_bytes).ok_or_else(bad)?;
            return Ok((key, rest.get(..row_bytes).ok_or_else(bad)?));
        }
        let stored = self.stored.as_ref().ok_or_else(bad)?;
        let RowCursor { reader, next } = cursor;
        let is_new = reader.is_none();
        let reader = reader.get_or_insert_with(|| RunReader::new(stored, READ_BYTES));
        // The entry before `next` is still at hand.
        if is_new || *next > at + 1 || at.saturating_sub(*next) >= MARK_ENTRIES {
            let mark = (at - self.starts.len()) / MARK_ENTRIES;
            reader.seek(*self.marks.get(mark).ok_or_else(bad)?);
            *next = self.starts.len() + mark * MARK_ENTRIES;
        }
        while *next <= at {
            if !reader.advance()? {
                return Err(bad());
            }
            *next += 1;
        }
        Ok((reader.key(), reader.row()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::tests::Workplace;

    #[test]
    fn an_entry_is_found_by_its_number_wherever_it_is() {
        for buffer in [1 << 30, 100_000, 5_000, 0] {
            let workplace = Workplace::with_buffers(buffer);
            let mut rows = GatheredRows::new(workplace.workspace());
            let entry = |nth: u32| (nth.to_be_bytes(), vec![nth as u8; (nth % 300) as usize]);
            for count in [2_000, 700] {
                for nth in 0..count {
                    let (key, row) = entry(nth);
                    rows.push(&key, &row).unwrap();
                }
                rows.seal().unwrap();
                assert_eq!(
                    (rows.len(), rows.stored.is_some()),
                    (count as usize, buffer < 200_000 && buffer < count as usize * 150)
                );
                for step in [1, 3, 63, 64, 65, 777, 1_999] {
                    let (mut ahead, mut back) = (RowCursor::default(), RowCursor::default());
                    for nth in (0..count).step_by(step) {
                        let (key, row) = entry(nth);
                        assert_eq!(rows.read(&mut ahead, nth as usize).unwrap(), (&key[..], &row[..]));
                        let (key, row) = entry(count - 1 - nth);
                        let at = (count - 1 - nth) as usize;
                        assert_eq!(rows.read(&mut back, at).unwrap(), (&key[..], &row[..]));
                        assert_eq!(rows.read(&mut back, at).unwrap(), (&key[..], &row[..]));
                    }
                }
                assert!(rows.read(&mut RowCursor::default(), count as usize).is_err());
                rows.clear();
            }
        }
    }
}
