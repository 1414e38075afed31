//! A run: versions in a file, sorted by table and key, in blocks. It is written once and never changed.
//!
//! A block is a few records, one after another:
//!
//! ```text
//! table u64, superseded_by u64, origin u64, change u64, key length u32, key, 0 (there was no row)
//! table u64, superseded_by u64, origin u64, change u64, key length u32, key, 1, cell length u32, cell
//! ```
//!
//! Memory has of each block where it begins, its checksum and the first key: the file's length says nothing,
//! and a block that is not what was written is an error.

use super::chain::{Found, Origin};
use super::row_order;
use crate::files::VersionFile;
use base::bytes::ByteReader;
use base::checksum::crc32;
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use base::sync::{Arc, Weak};
use std::cell::Cell;
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
    /// The same of the last record of all.
    last_key: Vec<u8>,
}

/// A transaction that had not ended when its versions went to files, and which of them still hold.
///
/// Its changes are numbered. When it takes back those from a number on, `kept` falls to that number, change
/// by change, after the page has been restored (transactions R16). Versions that it leaves afterwards belong
/// to another one of these.
#[derive(Debug)]
pub struct Undecided {
    pub writer: u64,
    kept: AtomicU64,
}

impl Undecided {
    pub fn new(writer: u64) -> Undecided {
        Undecided { writer, kept: AtomicU64::new(u64::MAX) }
    }

    /// Changes from this one on have been taken back.
    pub fn kept(&self) -> u64 {
        // ORDER: Acquire pairs with the Release below: a reader that passes over a version finds the page
        // restored.
        self.kept.load(Acquire)
    }

    /// For the transaction alone.
    pub fn keep_until(&self, change: u64) {
        // ORDER: Relaxed: its own; Release: see above.
        if change < self.kept.load(Relaxed) {
            self.kept.store_owned(change, Release);
        }
    }
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
    /// Of all its versions together, as it was when they were written.
    interval: Interval,
    /// If the transaction that they are of had not ended then.
    pub undecided: Option<Arc<Undecided>>,
    /// The first of its changes that left one of them.
    first_change: u64,
    /// How often what is here has been merged, at least.
    pub level: u32,
}

/// The block that a thread has read last: a scan looks up one row of it after another.
#[derive(Debug, Default)]
struct LastBlock {
    /// It does not keep the file.
    file: Option<Weak<dyn VersionFile>>,
    block: usize,
    bytes: Vec<u8>,
}

thread_local! {
    static LAST_BLOCK: Cell<LastBlock> = Cell::default();
}

/// A larger block is not kept.
const LAST_BLOCK_MAX: usize = 64 << 10;

impl LastBlock {
    fn take() -> LastBlock {
        // A thread that is ending has none.
        LAST_BLOCK.try_with(Cell::take).unwrap_or_default()
    }

    fn keep(self) {
        if self.bytes.capacity() <= LAST_BLOCK_MAX {
            let _ = LAST_BLOCK.try_with(|last| last.set(self));
        }
    }

    fn is_of(&self, file: &Arc<dyn VersionFile>, block: usize) -> bool {
        let is_same = |of: &Weak<dyn VersionFile>| std::ptr::addr_eq(of.as_ptr(), Arc::as_ptr(file));
        self.block == block && self.file.as_ref().is_some_and(is_same)
    }
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
    /// Which change of a transaction under way left it; 0 in the runs of those that have committed.
    pub change: u64,
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

    /// The last record is of this row.
    fn end_with(&mut self, table: u64, key: &[u8]) {
        self.last_key.clear();
        self.last_key.extend_from_slice(&table.to_be_bytes());
        self.last_key.extend_from_slice(key);
    }

    /// How the first record of a block compares with a row.
    fn compare(&self, block: usize, row: (u64, &[u8])) -> Ordering {
        let begin = block.checked_sub(1).map_or(0, |before| self.blocks[before].first_key_end as usize);
        compare(&self.first_keys[begin..self.blocks[block].first_key_end as usize], row)
    }

    /// True if a row is not before the first one or behind the last.
    fn spans(&self, row: (u64, &[u8])) -> bool {
        !self.blocks.is_empty() && self.compare(0, row).is_le() && compare(&self.last_key, row).is_ge()
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

/// How a table, 8 bytes, and a key compare with a row.
fn compare(stored: &[u8], row: (u64, &[u8])) -> Ordering {
    let (table, key) = stored.split_at(8);
    row_order((u64::from_be_bytes(table.try_into().expect("eight bytes")), key), row)
}

impl Run {
    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> u64 {
        let Index { blocks, first_keys, last_key } = &self.index;
        (blocks.len() * size_of::<Block>() + first_keys.len() + last_key.len()) as u64
    }

    /// The snapshots that may need one of its versions. `end_of` says when a transaction committed (an active
    /// one: `u64::MAX`).
    pub fn interval(&self, end_of: impl Fn(u64) -> u64) -> Interval {
        match &self.undecided {
            // All that a transaction has left has its end, or an earlier one.
            Some(undecided) => Interval { from: self.interval.from, to: end_of(undecided.writer) },
            None => self.interval,
        }
    }

    /// True if all that it has belongs to changes that have been taken back.
    pub fn is_taken_back(&self) -> bool {
        self.undecided.as_ref().is_some_and(|undecided| undecided.kept() <= self.first_change)
    }

    /// True if it may have what a snapshot needs of a row. `sees` says which transactions it sees.
    pub fn may_have(&self, (number, row): (u64, (u64, &[u8])), sees: impl Fn(u64) -> bool) -> bool {
        let Interval { from, to } = self.interval;
        let is_seen = || self.undecided.as_ref().is_some_and(|undecided| sees(undecided.writer));
        (from..to).contains(&number) && !is_seen() && self.index.spans(row)
    }

    /// True if snapshots with this number or a later one may need it.
    pub fn reaches(&self, number: u64) -> bool {
        number < self.interval.to
    }

    /// True if a version still holds: see [`Undecided`].
    pub fn holds(&self, record: &Record<'_>) -> bool {
        self.undecided.as_ref().is_none_or(|undecided| record.change < undecided.kept())
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
        let mut last = LastBlock::take();
        let mut found = None;
        'blocks: for block in self.index.blocks_of(row) {
            if !last.is_of(&self.file, block) {
                last.file = None;
                self.read(block, &mut last.bytes)?;
                (last.file, last.block) = (Some(Arc::downgrade(&self.file)), block);
            }
            let mut at = 0;
            while let Some(record) = Record::decode(&last.bytes, &mut at)? {
                if (record.table, record.key) == row && self.holds(&record) {
                    found = each(record);
                    if found.is_some() {
                        break 'blocks;
                    }
                }
            }
        }
        last.keep();
        Ok(found)
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
    pub fn new(
        file: Arc<dyn VersionFile>,
        bytes_max: u64,
        level: u32,
        undecided: Option<Arc<Undecided>>,
    ) -> Writer {
        let run = Run {
            file,
            index: Index::default(),
            bytes: 0,
            versions: 0,
            interval: Interval { from: u64::MAX, to: 0 },
            undecided,
            first_change: u64::MAX,
            level,
        };
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
        self.run.first_change = self.run.first_change.min(record.change);
        self.run.versions += 1;
        self.run.index.end_with(record.table, record.key);
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
        let (origin, change) = (Origin::from_bits(origin), bytes.u64()?);
        let key = bytes.bytes()?;
        let old = if bytes.u8()? == 0 { None } else { Some(bytes.bytes()?) };
        Some(Record { table, key, superseded_by, origin, change, old })
    }

    fn bytes(&self) -> usize {
        4 * 8 + 4 + self.key.len() + 1 + self.old.map_or(0, |old| 4 + old.len())
    }

    fn write(&self, out: &mut Vec<u8>) {
        for word in [self.table, self.superseded_by, self.origin.bits(), self.change] {
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
