//! Sorts more rows than fit into memory: sorted runs in a scratch file, merged.

use super::Workspace;
use super::files::{RunReader, RunWriter, Stored};
use crate::SqlError;
use crate::memory::Charge;
use crate::status::Counter;
use std::cmp::Ordering;
use std::ops::Range;

/// Rows are sorted in pieces of at most so many bytes, however large the buffer may be: a piece is sorted
/// without looking whether the statement was killed.
const PIECE_BYTES_MAX: usize = 64 << 20;
/// What is read of a run at a time. With a small buffer and many runs it is less.
const READ_BYTES: usize = 256 << 10;
const READ_BYTES_MIN: usize = 4 << 10;
/// So many runs are merged at once, if the buffer has room for what is read of them.
const RUNS_MAX: usize = 256;
const RUNS_MIN: usize = 8;
/// After so many rows the statement looks again whether it was killed.
const ROWS_BETWEEN_CHECKS: usize = 256;

/// Takes rows with their keys in any order and gives them back in the order of the keys. Rows of one key stay
/// in the order in which they came.
#[derive(Debug)]
pub(crate) struct Sorter<'w> {
    workspace: Workspace<'w>,
    memory_bytes: usize,
    /// How many rows are wanted at most.
    wanted: usize,
    /// A row with a key above this one is not wanted.
    cut: Option<Vec<u8>>,
    rows: Rows,
    charge: Charge,
    writer: Option<RunWriter>,
    runs: Vec<Range<u64>>,
}

/// Rows in memory.
#[derive(Default, Debug)]
struct Rows {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    /// The first bytes of the key, as a number. Most comparisons need only this.
    head: u64,
    /// Key and row lie in the order in which they came.
    start: usize,
    key_bytes: u32,
    row_bytes: u32,
}

impl Rows {
    fn used(&self) -> usize {
        self.bytes.len() + self.items.len() * size_of::<Item>()
    }

    fn push(&mut self, key: &[u8], row: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(row);
        let (key_bytes, row_bytes) = (key.len() as u32, row.len() as u32);
        self.items.push(Item { head: head(key), start, key_bytes, row_bytes });
    }

    fn key(&self, item: &Item) -> &[u8] {
        &self.bytes[item.start..][..item.key_bytes as usize]
    }

    fn row(&self, item: &Item) -> &[u8] {
        &self.bytes[item.start + item.key_bytes as usize..][..item.row_bytes as usize]
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |item: &Item| &bytes[item.start..][..item.key_bytes as usize];
        self.items.sort_unstable_by(|left, right| {
            let order = left.head.cmp(&right.head).then_with(|| key(left).cmp(key(right)));
            order.then(left.start.cmp(&right.start))
        });
    }
}

fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let length = key.len().min(8);
    head[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(head)
}

impl<'w> Sorter<'w> {
    /// Sorts in about `memory_bytes`, and beyond them in a scratch file. Of the rows, the first `wanted` are
    /// needed.
    pub(crate) fn new(workspace: Workspace<'w>, memory_bytes: usize, wanted: usize) -> Sorter<'w> {
        Sorter {
            workspace,
            memory_bytes: memory_bytes.min(PIECE_BYTES_MAX),
            wanted,
            cut: None,
            rows: Rows::default(),
            charge: Charge::default(),
            writer: None,
            runs: Vec::new(),
        }
    }

    /// # Errors
    /// 1290 and 1041 for memory, 1021 and 1030 for the file, 1317 after KILL.
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        if self.cut.as_deref().is_some_and(|cut| key > cut) {
            return Ok(());
        }
        let used = self.rows.used() + key.len() + row.len() + size_of::<Item>();
        if used > self.memory_bytes && !self.rows.items.is_empty() {
            self.make_room()?;
        }
        self.rows.push(key, row);
        let allocated = self.rows.bytes.capacity() + self.rows.items.capacity() * size_of::<Item>();
        self.charge.cover(allocated, self.workspace.account)
    }

    /// Throws away the rows that are not wanted. If that is not enough, the others go to the file.
    fn make_room(&mut self) -> Result<(), SqlError> {
        self.workspace.interrupt.check()?;
        self.rows.sort();
        if self.rows.items.len() >= self.wanted {
            self.rows.items.truncate(self.wanted);
            let last = self.rows.items.last();
            self.cut = Some(last.map_or(Vec::new(), |last| self.rows.key(last).to_vec()));
            let kept: usize =
                self.rows.items.iter().map(|item| (item.key_bytes + item.row_bytes) as usize).sum();
            if kept + self.rows.items.len() * size_of::<Item>() <= self.memory_bytes / 2 {
                let all = std::mem::take(&mut self.rows);
                all.items.iter().for_each(|item| self.rows.push(all.key(item), all.row(item)));
                return Ok(());
            }
        }
        self.write_run()
    }

    /// Writes the rows, which are sorted, as a run.
    fn write_run(&mut self) -> Result<(), SqlError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty => empty.insert(RunWriter::new(self.workspace)?),
        };
        let start = writer.position();
        for item in &self.rows.items {
            writer.push(self.rows.key(item), self.rows.row(item))?;
        }
        let end = writer.end_run()?;
        self.runs.push(start..end);
        self.rows.bytes.clear();
        self.rows.items.clear();
        Ok(())
    }

    /// All rows in order.
    ///
    /// # Errors
    /// As [`Sorter::push`].
    pub(crate) fn finish(mut self) -> Result<SortedRows<'w>, SqlError> {
        self.workspace.interrupt.check()?;
        self.rows.sort();
        let source = match self.writer {
            None => Source::Memory { rows: self.rows, next: 0 },
            Some(_) => {
                self.write_run()?;
                self.rows = Rows::default();
                self.charge = Charge::default();
                let Some(writer) = self.writer.take() else { return Err(SqlError::internal("no runs")) };
                let Stored { file, .. } = writer.finish()?;
                let mut runs: Vec<Stored> = (self.runs.drain(..))
                    .map(|range| Stored { file: file.clone(), range })
                    .filter(|run| !run.range.is_empty())
                    .collect();
                drop(file);
                let together = (self.memory_bytes / (16 << 10)).clamp(RUNS_MIN, RUNS_MAX);
                while runs.len() > together {
                    let (workspace, wanted) = (self.workspace, self.wanted);
                    runs = merged(workspace, &runs, together, wanted, |few| self.merge(few))?;
                }
                Source::Runs(self.merge(&runs)?)
            }
        };
        Ok(SortedRows { workspace: self.workspace, source, left: self.wanted, rows: 0, _charge: self.charge })
    }

    fn merge(&mut self, runs: &[Stored]) -> Result<Merge, SqlError> {
        self.workspace.counters.add(Counter::SortMergePasses, 1);
        merge(self.workspace, runs, self.memory_bytes, &mut self.charge)
    }
}

/// Merges in about `memory_bytes`, for which `charge` grows.
fn merge(
    workspace: Workspace<'_>,
    runs: &[Stored],
    memory_bytes: usize,
    charge: &mut Charge,
) -> Result<Merge, SqlError> {
    let read_bytes = (memory_bytes / runs.len().max(1)).clamp(READ_BYTES_MIN, READ_BYTES);
    charge.cover(read_bytes * runs.len(), workspace.account)?;
    Merge::new(runs, read_bytes)
}

/// Merges neighbours, as many runs into one as `merge` takes at once. It keeps `wanted` rows of each.
fn merged<'w>(
    workspace: Workspace<'w>,
    runs: &[Stored],
    together: usize,
    wanted: usize,
    mut merge: impl FnMut(&[Stored]) -> Result<Merge, SqlError>,
) -> Result<Vec<Stored>, SqlError> {
    let mut writer = RunWriter::new(workspace)?;
    let mut ends = Vec::new();
    for few in runs.chunks(together) {
        let start = writer.position();
        let mut merge = merge(few)?;
        let mut left = wanted;
        while left > 0 && merge.advance()? {
            writer.push(merge.current().key(), merge.current().row())?;
            left -= 1;
        }
        ends.push(start..writer.end_run()?);
    }
    let Stored { file, .. } = writer.finish()?;
    Ok(ends.into_iter().map(|range| Stored { file: file.clone(), range }).collect())
}

/// Rows in the order of their keys.
#[derive(Debug)]
pub(crate) struct SortedRows<'w> {
    workspace: Workspace<'w>,
    source: Source,
    left: usize,
    rows: usize,
    _charge: Charge,
}

#[derive(Debug)]
enum Source {
    Memory {
        rows: Rows,
        /// The row behind the current one.
        next: usize,
    },
    Runs(Merge),
}

impl SortedRows<'_> {
    /// Moves to the next row. False at the end.
    ///
    /// # Errors
    /// 1030 if the file fails, 1317 after KILL.
    pub(crate) fn advance(&mut self) -> Result<bool, SqlError> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_BETWEEN_CHECKS) {
            self.workspace.interrupt.check()?;
        }
        match &mut self.source {
            Source::Memory { rows, next } => {
                *next += 1;
                Ok(*next <= rows.items.len())
            }
            Source::Runs(merge) => merge.advance(),
        }
    }

    /// The key of the current row.
    pub(crate) fn key(&self) -> &[u8] {
        match &self.source {
            Source::Memory { rows, next } => rows.key(&rows.items[next - 1]),
            Source::Runs(merge) => merge.current().key(),
        }
    }

    /// The current row.
    pub(crate) fn row(&self) -> &[u8] {
        match &self.source {
            Source::Memory { rows, next } => rows.row(&rows.items[next - 1]),
            Source::Runs(merge) => merge.current().row(),
        }
    }
}

/// Runs of other writers, merged: entries in the order of their keys.
#[derive(Debug)]
pub(crate) struct MergedRuns {
    merge: Merge,
    _charge: Charge,
}

impl MergedRuns {
    /// Merges in about `memory_bytes`. If that is not enough for all runs, some are merged in files first.
    ///
    /// # Errors
    /// 1290 and 1041 for memory, 1021 and 1030 for the file, 1317 after KILL.
    pub(crate) fn new(
        workspace: Workspace<'_>,
        mut runs: Vec<Stored>,
        memory_bytes: usize,
    ) -> Result<MergedRuns, SqlError> {
        let mut charge = Charge::default();
        // There are as many runs as partitions. To merge all at once is worth reading less of each at a time.
        let together = (memory_bytes / READ_BYTES_MIN).clamp(RUNS_MIN, RUNS_MAX);
        while runs.len() > together {
            runs = merged(workspace, &runs, together, usize::MAX, |few| {
                merge(workspace, few, memory_bytes, &mut charge)
            })?;
        }
        let merge = merge(workspace, &runs, memory_bytes, &mut charge)?;
        Ok(MergedRuns { merge, _charge: charge })
    }

    /// Moves to the next entry. False at the end.
    ///
    /// # Errors
    /// 1030 if the file fails.
    pub(crate) fn advance(&mut self) -> Result<bool, SqlError> {
        self.merge.advance()
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.merge.current().key()
    }

    pub(crate) fn row(&self) -> &[u8] {
        self.merge.current().row()
    }
}

/// Runs that are read together, in the order of their keys.
#[derive(Debug)]
struct Merge {
    readers: Vec<RunReader>,
    /// The readers that have a row, as a heap: the one with the first row is on top.
    heap: Vec<Top>,
    /// True once the row on top was handed on.
    is_taken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Top {
    head: u64,
    reader: usize,
}

impl Merge {
    fn new(runs: &[Stored], read_bytes: usize) -> Result<Merge, SqlError> {
        let readers = runs.iter().map(|run| RunReader::new(run, read_bytes)).collect();
        let mut merge = Merge { readers, heap: Vec::with_capacity(runs.len()), is_taken: false };
        for reader in 0..merge.readers.len() {
            if merge.readers[reader].advance()? {
                let head = head(merge.readers[reader].key());
                merge.heap.push(Top { head, reader });
            }
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at);
        }
        Ok(merge)
    }

    fn order(&self, left: Top, right: Top) -> Ordering {
        let key = |top: Top| self.readers[top.reader].key();
        let order = left.head.cmp(&right.head).then_with(|| key(left).cmp(key(right)));
        order.then(left.reader.cmp(&right.reader))
    }

    /// Moves an entry of the heap down to its place.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.order(self.heap[child], self.heap[first]).is_lt() {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }

    fn advance(&mut self) -> Result<bool, SqlError> {
        if std::mem::replace(&mut self.is_taken, true)
            && let Some(Top { reader, .. }) = self.heap.first().copied()
        {
            match self.readers[reader].advance()? {
                true => self.heap[0].head = head(self.readers[reader].key()),
                false => {
                    self.heap.swap_remove(0);
                }
            }
            self.sink(0);
        }
        Ok(!self.heap.is_empty())
    }

    /// The reader that has the current row.
    fn current(&self) -> &RunReader {
        &self.readers[self.heap[0].reader]
    }
}
