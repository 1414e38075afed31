//! A run: versions in a file, sorted by table and key, in blocks. It is written once and never changed.
//!
//! A block is a few records, one after another:
//!
//! ```text
//! table u64, superseded_by u64, origin u64, key length u32, key, 0 (there was no row)
//! table u64, superseded_by u64, origin u64, key length u32, key, 1, cell length u32, cell
//! ```
//!
//! Memory has of each block where it begins, its checksum and the first key: the file's length says nothing,
//! and a block that is not what was written is an error.

use super::chain::{Found, Origin};
use super::row_order;
use crate::files::VersionFile;
use base::bytes::ByteReader;
use base::checksum::crc32;
use base::sync::Arc;
use std::cmp::Ordering;
use std::io;
use std::ops::Range;

/// A block ends with the record that brings it to so many bytes.
const BLOCK_BYTES: usize = 4 << 10;
/// About how many bytes go to the file together.
const WRITE_BYTES: usize = 256 << 10;

/// What memory has of a block, beside its first key.
#[derive(Debug)]
struct Block {
    start: u64,
    checksum: u32,
    /// Where its first key ends among those of all blocks.
    first_key_end: u32,
}

#[derive(Debug, Default)]
struct Index {
    blocks: Vec<Block>,
    /// For each block the table of its first record, 8 bytes, big-endian, and the key.
    first_keys: Vec<u8>,
}

/// Numbers of snapshots: those that may need a version, from the first on and below the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    pub from: u64,
    pub to: u64,
}

#[derive(Debug)]
pub struct Run {
    file: Arc<dyn VersionFile>,
    index: Index,
    /// Its length.
    pub bytes: u64,
    pub versions: u64,
    /// Of all its versions together.
    pub interval: Interval,
    /// How often what is here has been merged, at least.
    pub level: u32,
}

/// Makes a run.
#[derive(Debug)]
pub struct Writer {
    run: Run,
    bytes_max: u64,
    /// What has not been written yet, and where the last block begins in it.
    pending: Vec<u8>,
    block_start: usize,
}

/// A record in a block.
#[derive(Clone, Copy, Debug)]
pub struct Record<'b> {
    pub table: u64,
    pub key: &'b [u8],
    pub superseded_by: u64,
    pub origin: Origin,
    pub old: Option<&'b [u8]>,
}

impl Index {
    fn push(&mut self, start: u64, table: u64, key: &[u8]) -> io::Result<()> {
        self.first_keys.extend_from_slice(&table.to_be_bytes());
        self.first_keys.extend_from_slice(key);
        let first_key_end = u32::try_from(self.first_keys.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.blocks.push(Block { start, checksum: 0, first_key_end });
        Ok(())
    }

    /// How the first record of a block compares with a row.
    fn compare(&self, block: usize, row: (u64, &[u8])) -> Ordering {
        let begin = block.checked_sub(1).map_or(0, |before| self.blocks[before].first_key_end as usize);
        let first = &self.first_keys[begin..self.blocks[block].first_key_end as usize];
        let (table, key) = first.split_at(8);
        row_order((u64::from_be_bytes(table.try_into().expect("eight bytes")), key), row)
    }

    /// The blocks that may have versions of a row.
    fn blocks_of(&self, row: (u64, &[u8])) -> Range<usize> {
        let position = |is_before: fn(Ordering) -> bool| {
            let (mut low, mut high) = (0, self.blocks.len());
            while low < high {
                let middle = low.midpoint(high);
                match is_before(self.compare(middle, row)) {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        // Versions of the row that begins a block may lie in the block before, too.
        position(Ordering::is_lt).saturating_sub(1)..position(Ordering::is_le)
    }
}

impl Run {
    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> u64 {
        (self.index.blocks.len() * size_of::<Block>() + self.index.first_keys.len()) as u64
    }

    fn block_end(&self, block: usize) -> u64 {
        self.index.blocks.get(block + 1).map_or(self.bytes, |next| next.start)
    }

    fn read(&self, block: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        let Block { start, checksum, .. } = self.index.blocks[block];
        buffer.resize((self.block_end(block) - start) as usize, 0);
        self.file.read_at(buffer, start)?;
        if crc32(buffer) != checksum {
            return Err(changed());
        }
        Ok(())
    }

    /// Calls `each` with the versions of a row until it gives something.
    ///
    /// # Errors
    /// Those of the file, also if it does not give back what was written.
    pub fn versions_of<T>(
        &self,
        row: (u64, &[u8]),
        mut each: impl FnMut(Record<'_>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let mut buffer = Vec::new();
        for block in self.index.blocks_of(row) {
            self.read(block, &mut buffer)?;
            let mut at = 0;
            while let Some(record) = Record::decode(&buffer, &mut at)? {
                if (record.table, record.key) == row
                    && let Some(found) = each(record)
                {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// What a row was for a snapshot, if this run can tell.
    ///
    /// # Errors
    /// As [`Run::versions_of`].
    pub fn find(&self, row: (u64, &[u8]), sees: impl Fn(u64) -> bool) -> io::Result<Option<Found>> {
        self.versions_of(row, |record| {
            if sees(record.superseded_by) {
                return None;
            }
            match (sees(record.origin.stamp()), record.old) {
                (true, Some(old)) => Some(Found::Row(old.into())),
                (true, None) => Some(Found::NoRow),
                (false, _) => record.origin.is_first().then_some(Found::NoRow),
            }
        })
    }
}

impl Writer {
    /// Begins a run that may have so many bytes.
    pub fn new(file: Arc<dyn VersionFile>, bytes_max: u64, level: u32) -> Writer {
        let interval = Interval { from: u64::MAX, to: 0 };
        let run = Run { file, index: Index::default(), bytes: 0, versions: 0, interval, level };
        Writer { run, bytes_max, pending: Vec::new(), block_start: 0 }
    }

    /// Adds a version. Rows come in the order of their tables and keys; versions of one row in any order.
    ///
    /// # Errors
    /// Those of the file, and `StorageFull` if it may not become longer.
    pub fn push(&mut self, record: &Record<'_>, interval: Interval) -> io::Result<()> {
        if self.pending.len() == self.block_start {
            let start = self.run.bytes + self.block_start as u64;
            self.run.index.push(start, record.table, record.key)?;
        }
        record.write(&mut self.pending);
        let all = &mut self.run.interval;
        *all = Interval { from: all.from.min(interval.from), to: all.to.max(interval.to) };
        self.run.versions += 1;
        if self.pending.len() - self.block_start >= BLOCK_BYTES {
            self.end_block();
            if self.pending.len() >= WRITE_BYTES {
                self.write()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) {
        if let Some(block) = self.run.index.blocks.last_mut() {
            block.checksum = crc32(&self.pending[self.block_start..]);
        }
        self.block_start = self.pending.len();
    }

    fn write(&mut self) -> io::Result<()> {
        let end = self.run.bytes + self.pending.len() as u64;
        if end > self.bytes_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.run.file.write_at(&self.pending, self.run.bytes)?;
        self.run.bytes = end;
        self.pending.clear();
        self.block_start = 0;
        Ok(())
    }

    /// The run, if there is anything in it.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn finish(mut self) -> io::Result<Option<Run>> {
        if self.pending.len() > self.block_start {
            self.end_block();
        }
        if !self.pending.is_empty() {
            self.write()?;
        }
        self.run.index.blocks.shrink_to_fit();
        self.run.index.first_keys.shrink_to_fit();
        Ok((self.run.versions > 0).then_some(self.run))
    }
}

impl<'b> Record<'b> {
    /// The record that begins at `at`, which goes behind it. `None` at the block's end.
    fn decode(block: &'b [u8], at: &mut usize) -> io::Result<Option<Record<'b>>> {
        let mut rest = ByteReader::new(&block[*at..]);
        if rest.is_empty() {
            return Ok(None);
        }
        let record = Record::read(&mut rest).ok_or_else(changed)?;
        *at += record.bytes();
        Ok(Some(record))
    }

    fn read(bytes: &mut ByteReader<'b>) -> Option<Record<'b>> {
        let [table, superseded_by, origin] = [bytes.u64()?, bytes.u64()?, bytes.u64()?];
        let key = bytes.bytes()?;
        let old = if bytes.u8()? == 0 { None } else { Some(bytes.bytes()?) };
        Some(Record { table, key, superseded_by, origin: Origin::from_bits(origin), old })
    }

    fn bytes(&self) -> usize {
        3 * 8 + 4 + self.key.len() + 1 + self.old.map_or(0, |old| 4 + old.len())
    }

    fn write(&self, out: &mut Vec<u8>) {
        for word in [self.table, self.superseded_by, self.origin.bits()] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        out.extend_from_slice(self.key);
        out.push(u8::from(self.old.is_some()));
        if let Some(old) = self.old {
            out.extend_from_slice(&(old.len() as u32).to_le_bytes());
            out.extend_from_slice(old);
        }
    }
}

/// Reads a run from its beginning to its end.
#[derive(Debug)]
pub struct Cursor {
    run: Arc<Run>,
    next_block: usize,
    buffer: Vec<u8>,
    at: usize,
}

impl Cursor {
    /// # Errors
    /// As [`Cursor::advance`].
    pub fn new(run: Arc<Run>) -> io::Result<Cursor> {
        let mut cursor = Cursor { run, next_block: 0, buffer: Vec::new(), at: 0 };
        cursor.fill()?;
        Ok(cursor)
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            if self.next_block < self.run.index.blocks.len() {
                self.run.read(self.next_block, &mut self.buffer)?;
                self.next_block += 1;
            }
        }
        Ok(())
    }

    /// The record that it stands before.
    ///
    /// # Errors
    /// If the file does not give back what was written.
    pub fn record(&self) -> io::Result<Option<Record<'_>>> {
        Record::decode(&self.buffer, &mut self.at.clone())
    }

    /// Goes behind that record.
    ///
    /// # Errors
    /// Those of the file.
    pub fn advance(&mut self) -> io::Result<()> {
        let mut at = self.at;
        Record::decode(&self.buffer, &mut at)?;
        self.at = at;
        self.fill()
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a file of old versions has changed")
}
