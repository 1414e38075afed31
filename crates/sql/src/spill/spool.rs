//! Entries that are read again in the order in which they came: in memory, and beyond some bytes in a file.

use super::Workspace;
use super::files::{HEADER_BYTES, RunReader, RunWriter, Stored, header, lengths};
use crate::SqlError;
use crate::memory::Charge;

/// Bytes of the file that are read at a time.
const READ_BYTES: usize = 128 << 10;

/// Takes entries of a key and a row.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    entries: usize,
    /// The first entries, as they would lie in the file.
    bytes: Vec<u8>,
    /// When they reach this many, more memory is asked for.
    bytes_next: usize,
    charge: Charge,
    rest: Option<RunWriter>,
}

impl Spool {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// # Errors
    /// 1290 and 1041 for memory, 1021 and 1030 for the file, 1317 after KILL.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8], workspace: Workspace<'_>) -> Result<(), SqlError> {
        if let Some(rest) = &mut self.rest {
            self.entries += 1;
            return rest.push(key, row);
        }
        self.keep(key, row)?;
        if self.bytes.len() < self.bytes_next { Ok(()) } else { self.grow(workspace) }
    }

    /// Adds an entry that stays in memory and counts nowhere, because whoever adds it holds as much for it.
    ///
    /// # Errors
    /// 1105 for an entry of more than 4 GiB.
    pub(crate) fn keep(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        self.entries += 1;
        self.bytes.extend_from_slice(&header(key, row)?);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(row);
        Ok(())
    }

    /// Asks for more memory. If there is no more, the entries to come go to a file.
    #[cold]
    fn grow(&mut self, workspace: Workspace<'_>) -> Result<(), SqlError> {
        let bytes_max = workspace.limits.table_bytes;
        if self.bytes.len() < bytes_max {
            self.charge.cover(self.bytes.len() + 1, workspace.account)?;
            self.bytes_next = self.charge.covered().min(bytes_max);
        } else {
            workspace.note_disk_table();
            self.rest = Some(RunWriter::new(workspace)?);
        }
        Ok(())
    }

    /// The entries, to be read.
    ///
    /// # Errors
    /// As [`Spool::push`].
    pub(crate) fn finish(self) -> Result<Spooled, SqlError> {
        let rest = self.rest.map(RunWriter::finish).transpose()?;
        Ok(Spooled { bytes: self.bytes, rest, _charge: self.charge })
    }
}

/// The entries of a [`Spool`].
#[derive(Debug)]
pub(crate) struct Spooled {
    bytes: Vec<u8>,
    rest: Option<Stored>,
    _charge: Charge,
}

impl Spooled {
    /// Calls `each` with keys and rows until it returns false.
    ///
    /// # Errors
    /// 1030 if the file fails, and those of `each`.
    pub(crate) fn for_each(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let mut left = self.bytes.as_slice();
        while let Some((header, rest)) = left.split_first_chunk::<HEADER_BYTES>() {
            let (key_bytes, row_bytes) = lengths(header);
            let (key, rest) = rest.split_at(key_bytes);
            let (row, rest) = rest.split_at(row_bytes);
            if !each(key, row)? {
                return Ok(());
            }
            left = rest;
        }
        let Some(rest) = &self.rest else { return Ok(()) };
        let mut reader = RunReader::new(rest, READ_BYTES);
        while reader.advance()? {
            if !each(reader.key(), reader.row())? {
                break;
            }
        }
        Ok(())
    }
}

/// Gives the entries of a [`Spool`] one by one.
#[derive(Debug)]
pub(crate) struct SpoolReader {
    spooled: Spooled,
    /// The next entry in memory.
    at: usize,
    /// Present once those in memory have been read.
    rest: Option<RunReader>,
}

impl SpoolReader {
    pub(crate) fn new(spooled: Spooled) -> SpoolReader {
        SpoolReader { spooled, at: 0, rest: None }
    }

    /// The row of the next entry. `None` at the end.
    ///
    /// # Errors
    /// 1030 if the file fails.
    pub(crate) fn next_row(&mut self) -> Result<Option<&[u8]>, SqlError> {
        if let Some(header) = self.spooled.bytes[self.at..].first_chunk::<HEADER_BYTES>() {
            let (key_bytes, row_bytes) = lengths(header);
            let row = self.at + HEADER_BYTES + key_bytes;
            self.at = row + row_bytes;
            return Ok(Some(&self.spooled.bytes[row..self.at]));
        }
        let Some(stored) = &self.spooled.rest else { return Ok(None) };
        let rest = self.rest.get_or_insert_with(|| RunReader::new(stored, READ_BYTES));
        Ok(rest.advance()?.then(|| rest.row()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::tests::Workplace;

    #[test]
    fn entries_come_back_in_their_order_wherever_they_were() {
        for buffer in [1 << 30, 100_000, 5_000, 0] {
            let workplace = Workplace::with_buffers(buffer);
            let mut spool = Spool::default();
            let entry = |nth: u32| (nth.to_be_bytes(), vec![nth as u8; (nth % 300) as usize]);
            for nth in 0..2_000 {
                let (key, row) = entry(nth);
                spool.push(&key, &row, workplace.workspace()).unwrap();
            }
            assert_eq!((spool.len(), spool.rest.is_some()), (2_000, buffer < 1 << 20));
            assert!(spool.bytes.len() <= buffer + 320, "{} in a buffer of {buffer}", spool.bytes.len());
            let spooled = spool.finish().unwrap();
            for wanted in [2_000, 1_500, 1] {
                let mut read = 0;
                spooled
                    .for_each(|key, row| {
                        let expected = entry(read);
                        assert_eq!((key, row), (expected.0.as_slice(), expected.1.as_slice()));
                        read += 1;
                        Ok(read < wanted)
                    })
                    .unwrap();
                assert_eq!(read, wanted);
            }
            let mut reader = SpoolReader::new(spooled);
            for nth in 0..2_000 {
                assert_eq!(reader.next_row().unwrap(), Some(entry(nth).1.as_slice()));
            }
            assert_eq!(reader.next_row().unwrap(), None);
            assert_eq!(reader.next_row().unwrap(), None);
        }
    }
}
