//! Writes and reads the entries of scratch files.

use super::Workspace;
use crate::SqlError;
use crate::host::Interrupt;
use base::sync::Arc;
use engine::ScratchFile;
use std::ops::Range;
use std::rc::Rc;

/// Bytes that are written at a time.
const WRITE_BYTES: usize = 256 << 10;
pub(super) const HEADER_BYTES: usize = 8;

/// Appends entries to a new file.
#[derive(Debug)]
pub(crate) struct RunWriter {
    interrupt: Arc<Interrupt>,
    file: ScratchFile,
    buffer: Vec<u8>,
    write_bytes: usize,
}

/// Entries in a file, in the order in which they were written.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) file: Rc<ScratchFile>,
    pub(crate) range: Range<u64>,
}

impl RunWriter {
    /// # Errors
    /// Those of making a file.
    pub(crate) fn new(workspace: Workspace<'_>) -> Result<RunWriter, SqlError> {
        RunWriter::with_buffer(workspace, WRITE_BYTES)
    }

    /// One that writes about `write_bytes` at a time.
    ///
    /// # Errors
    /// As [`RunWriter::new`].
    pub(crate) fn with_buffer(workspace: Workspace<'_>, write_bytes: usize) -> Result<RunWriter, SqlError> {
        let interrupt = workspace.interrupt.clone();
        Ok(RunWriter { interrupt, file: workspace.file()?, buffer: Vec::new(), write_bytes })
    }

    /// Where the next entry begins.
    pub(crate) fn position(&self) -> u64 {
        self.file.len() + self.buffer.len() as u64
    }

    /// # Errors
    /// 1317 after KILL, 1021 if the disk is full, 1030 if it fails.
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        self.buffer.extend_from_slice(&header(key, row)?);
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(row);
        if self.buffer.len() >= self.write_bytes { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), SqlError> {
        self.interrupt.check()?;
        self.file.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// All entries.
    ///
    /// # Errors
    /// As [`RunWriter::push`].
    pub(crate) fn finish(mut self) -> Result<Stored, SqlError> {
        self.flush()?;
        let range = 0..self.file.len();
        Ok(Stored { file: Rc::new(self.file), range })
    }

    /// As [`RunWriter::finish`], and more entries can be added behind them. Returns where they end.
    pub(super) fn end_run(&mut self) -> Result<u64, SqlError> {
        self.flush()?;
        Ok(self.file.len())
    }
}

/// What an entry begins with: the lengths of its key and of its row.
pub(super) fn header(key: &[u8], row: &[u8]) -> Result<[u8; HEADER_BYTES], SqlError> {
    let length =
        |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| SqlError::internal("a row of more than 4 GiB"));
    let both = u64::from(length(key)?) | u64::from(length(row)?) << 32;
    Ok(both.to_le_bytes())
}

/// The lengths that [`header`] wrote.
pub(super) fn lengths(header: &[u8; HEADER_BYTES]) -> (usize, usize) {
    let both = u64::from_le_bytes(*header);
    (both as u32 as usize, (both >> 32) as usize)
}

/// Reads entries in the order in which they lie in the file.
#[derive(Debug)]
pub(crate) struct RunReader {
    file: Rc<ScratchFile>,
    /// Up to where the file was read.
    at: u64,
    end: u64,
    read_bytes: usize,
    /// The bytes of the file before `at`.
    buffer: Vec<u8>,
    key: Range<usize>,
    row: Range<usize>,
}

impl RunReader {
    /// Reads `stored`, `read_bytes` at a time.
    pub(crate) fn new(stored: &Stored, read_bytes: usize) -> RunReader {
        let Range { start, end } = stored.range;
        let file = stored.file.clone();
        RunReader { file, at: start, end, read_bytes, buffer: Vec::new(), key: 0..0, row: 0..0 }
    }

    /// Moves to the entry that begins at `offset`: the next one that [`RunReader::advance`] finds.
    pub(crate) fn seek(&mut self, offset: u64) {
        let start = self.at - self.buffer.len() as u64;
        let next = match usize::try_from(offset.wrapping_sub(start)) {
            Ok(next) if offset >= start && offset <= self.at => next,
            _ => {
                self.buffer.clear();
                self.at = offset;
                0
            }
        };
        (self.key, self.row) = (next..next, next..next);
    }

    /// Makes `len` bytes from `next` on be in the buffer. Returns where they begin, or `None` at the end.
    fn fill(&mut self, next: usize, len: usize) -> Result<Option<usize>, SqlError> {
        if self.buffer.len() - next >= len {
            return Ok(Some(next));
        }
        let have = self.buffer.len() - next;
        let more = (self.end - self.at).min(self.read_bytes.max(len) as u64) as usize;
        if have + more < len {
            return Ok(None);
        }
        self.buffer.drain(..next);
        self.buffer.resize(have + more, 0);
        if let Err(error) = self.file.read_at(&mut self.buffer[have..], self.at) {
            self.buffer.truncate(have);
            return Err(error.into());
        }
        self.at += more as u64;
        Ok(Some(0))
    }

    /// Moves to the next entry. False at the end.
    ///
    /// # Errors
    /// 1030.
    pub(crate) fn advance(&mut self) -> Result<bool, SqlError> {
        let Some(start) = self.fill(self.row.end, HEADER_BYTES)? else { return Ok(false) };
        let (key_bytes, row_bytes) = match self.buffer[start..].first_chunk() {
            Some(header) => lengths(header),
            None => return Err(SqlError::internal("an entry without a header")),
        };
        let Some(start) = self.fill(start, HEADER_BYTES + key_bytes + row_bytes)? else {
            return Err(SqlError::internal("a scratch file is shorter than what was written"));
        };
        let key = start + HEADER_BYTES;
        self.key = key..key + key_bytes;
        self.row = self.key.end..self.key.end + row_bytes;
        Ok(true)
    }

    /// The key of the entry.
    pub(crate) fn key(&self) -> &[u8] {
        &self.buffer[self.key.clone()]
    }

    /// The row of the entry.
    pub(crate) fn row(&self) -> &[u8] {
        &self.buffer[self.row.clone()]
    }
}
