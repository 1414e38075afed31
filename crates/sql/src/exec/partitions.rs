//! A hash join of more rows than fit into memory.
//!
//! The rows of the table that is joined go to as many files as there are partitions, by the hash of their
//! keys. The rows of the tables before are put off: each goes, with its number, to a file of its key's
//! partition. At the end one partition after the other is joined in memory. A partition that does not fit
//! there is split again, by other bits of the hash; one that cannot be split, since all its rows have one
//! key, is sorted and searched. The joined rows of a partition come in the order of the rows before, so
//! merging those of all partitions by their numbers gives what a join in memory gives, in the same order.

use super::access::Scratch;
use super::hash::{HashedRow, HashedRows, Hasher, encode_key};
use super::join::{Running, passes, with_part};
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::{Part, Row};
use crate::memory::Charge;
use crate::plan::plan::{HashKeys, Source};
use crate::spill::{MergedRuns, RunReader, RunWriter, Stored, Workspace, append_row, read_row};
use bumpalo::Bump;
use std::hash::BuildHasher;
use std::ops::Range;
use types::ValueRef;

/// How many partitions there are at most. Each may take as much memory as all rows that are in memory
/// otherwise.
const PARTITIONS: usize = 1 << PARTITION_BITS;
const PARTITION_BITS: u32 = 5;
/// The bits of a hash from this one on name partitions. Those below are of other use in tables in memory.
const FIRST_BIT: u32 = 32;
/// A partition of this level is not split again: the hash has no more bits.
const LEVEL_MAX: u32 = (u64::BITS - FIRST_BIT) / PARTITION_BITS - 1;
/// What is read or written of a file at a time.
const FILE_BYTES_MAX: usize = 128 << 10;
const FILE_BYTES_MIN: usize = 4 << 10;

/// What is read or written of each file at a time: half of the memory for all of them.
fn file_bytes(workspace: Workspace<'_>) -> usize {
    (workspace.limits.join_bytes / PARTITIONS / 2).clamp(FILE_BYTES_MIN, FILE_BYTES_MAX)
}

/// The rows of one partition.
#[derive(Debug)]
pub(super) struct Partition {
    rows: Stored,
    /// What they would take in memory.
    memory_bytes: usize,
    /// True if not all have the same key.
    is_mixed: bool,
}

/// By number. `None` for a partition without rows.
pub(super) type Partitions = Vec<Option<Partition>>;

#[derive(Debug)]
struct PartitionWriter {
    writer: RunWriter,
    memory_bytes: usize,
    /// Of the first row's key.
    hash: u64,
    is_mixed: bool,
}

/// Writes rows to the files of their partitions.
#[derive(Debug)]
pub(super) struct PartitionWriters<'w> {
    workspace: Workspace<'w>,
    level: u32,
    /// As many as a power of two. A file is made when there is a row for it.
    writers: Vec<Option<PartitionWriter>>,
    write_bytes: usize,
    /// Bytes of the buffers of all files.
    buffers: usize,
    charge: Charge,
}

impl<'w> PartitionWriters<'w> {
    pub(super) fn new(workspace: Workspace<'w>) -> PartitionWriters<'w> {
        PartitionWriters::of_level(workspace, 0, PARTITIONS)
    }

    fn of_level(workspace: Workspace<'w>, level: u32, partitions: usize) -> PartitionWriters<'w> {
        let writers = std::iter::repeat_with(|| None).take(partitions).collect();
        let write_bytes = file_bytes(workspace);
        PartitionWriters { workspace, level, writers, write_bytes, buffers: 0, charge: Charge::default() }
    }

    /// Takes a row whose key has this hash. It would take `memory_bytes` in a table.
    pub(super) fn push(
        &mut self,
        hash: u64,
        key: &[u8],
        row: &[u8],
        memory_bytes: usize,
    ) -> Result<(), SqlError> {
        let partition = partition_of(hash, self.level, self.writers.len());
        let partition = match &mut self.writers[partition] {
            Some(partition) => partition,
            none => {
                self.buffers += self.write_bytes;
                self.charge.cover(self.buffers, self.workspace.account)?;
                let writer = RunWriter::with_buffer(self.workspace, self.write_bytes)?;
                none.insert(PartitionWriter { writer, memory_bytes: 0, hash, is_mixed: false })
            }
        };
        partition.memory_bytes += memory_bytes;
        partition.is_mixed |= partition.hash != hash;
        partition.writer.push(key, row)
    }

    pub(super) fn finish(self) -> Result<Partitions, SqlError> {
        let finish = |partition: PartitionWriter| {
            let PartitionWriter { writer, memory_bytes, is_mixed, .. } = partition;
            Ok(Partition { rows: writer.finish()?, memory_bytes, is_mixed })
        };
        self.writers.into_iter().map(|partition| partition.map(finish).transpose()).collect()
    }
}

/// The partition of a key with this hash.
fn partition_of(hash: u64, level: u32, partitions: usize) -> usize {
    (hash >> (FIRST_BIT + level * PARTITION_BITS)) as usize & (partitions - 1)
}

/// The joined rows of all partitions: a run for each.
struct Joined {
    writer: RunWriter,
    runs: Vec<Range<u64>>,
}

/// The rows of the tables before a step, put off until all of them are known.
#[derive(Debug)]
pub(super) struct PutOff<'w> {
    writers: PartitionWriters<'w>,
    rows: u64,
    key: Vec<u8>,
    row: Vec<u8>,
}

const NULLS: u8 = 0;
const IMAGE: u8 = 1;
const VALUES: u8 = 2;
const LENGTH_BYTES: usize = 4;

fn bad() -> SqlError {
    SqlError::internal("a row of a partition that is not whole")
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&(length as u32).to_le_bytes());
}

/// Takes bytes that come behind their length.
fn take_bytes<'r>(from: &mut &'r [u8]) -> Result<&'r [u8], SqlError> {
    let (length, rest) = from.split_first_chunk::<LENGTH_BYTES>().ok_or_else(bad)?;
    let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(bad)?;
    *from = rest;
    Ok(bytes)
}

fn append_parts(parts: &[Part<'_>], out: &mut Vec<u8>) {
    for part in parts {
        let start = out.len();
        out.extend_from_slice(&[0; 1 + LENGTH_BYTES]);
        out[start] = match part {
            Part::Nulls => NULLS,
            Part::Image(view) => {
                out.extend_from_slice(view.image());
                IMAGE
            }
            Part::Values(values) => {
                append_row(values, out);
                VALUES
            }
        };
        let length = (out.len() - start - 1 - LENGTH_BYTES) as u32;
        out[start + 1..start + 1 + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }
}

impl<'j> Running<'j, '_> {
    /// Puts the row `outer` off, if step `at` joins by files. False if it does not.
    pub(super) fn put_off(
        &self,
        at: usize,
        keys: &'j HashKeys,
        outer: &[Part<'_>],
        scratch: &mut Scratch,
    ) -> Result<bool, SqlError> {
        let hashed = self.hashed(at, keys, scratch)?;
        if !hashed.is_partitioned() {
            return Ok(false);
        }
        let workspace = self.join.runtime.workspace();
        let mut put_off = self.put_off_rows(at).borrow_mut();
        let put_off = put_off.get_or_insert_with(|| PutOff {
            writers: PartitionWriters::new(workspace),
            rows: 0,
            key: Vec::new(),
            row: Vec::new(),
        });
        let arena = Bump::new();
        let context = self.join.context(&arena);
        let has_key = encode_key(&keys.outer, keys, &Row(outer), &context, &mut put_off.key)?;
        if !has_key && self.join.plan.steps[at].begins.is_none() {
            return Ok(true);
        }
        put_off.row.clear();
        put_off.row.push(u8::from(has_key));
        push_length(&mut put_off.row, put_off.key.len());
        put_off.row.extend_from_slice(&put_off.key);
        append_parts(outer, &mut put_off.row);
        put_off.rows += 1;
        let hash = hashed.hasher().hash_one(put_off.key.as_slice());
        put_off.writers.push(hash, &put_off.rows.to_be_bytes(), &put_off.row, 0)?;
        Ok(true)
    }

    /// Joins the rows that were put off at step `at`, and goes on with them.
    pub(super) fn join_put_off(
        &self,
        at: usize,
        keys: &'j HashKeys,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let Some(PutOff { writers, .. }) = self.put_off_rows(at).borrow_mut().take() else {
            return Ok(Flow::Continue);
        };
        let workspace = self.join.runtime.workspace();
        let hashed = self.hashed(at, keys, &mut scratch[0])?;
        let writer = RunWriter::with_buffer(workspace, FILE_BYTES_MAX)?;
        let mut joined = Joined { writer, runs: Vec::new() };
        for (partition, outer) in writers.finish()?.into_iter().enumerate() {
            let Some(outer) = outer else { continue };
            let inner = hashed.partition(partition);
            self.join_partition(at, 0, hashed, (inner, outer.rows), &mut joined)?;
        }
        let Joined { writer, runs } = joined;
        let file = writer.finish()?.file;
        let joined = runs.into_iter().map(|range| Stored { file: file.clone(), range }).collect();
        self.go_on(at, joined, scratch, consumer)
    }

    /// Joins the rows `inner` of a partition of `level` with the rows of the tables before.
    fn join_partition(
        &self,
        at: usize,
        level: u32,
        hashed: &HashedRows<'_>,
        (inner, outer): (Option<&Partition>, Stored),
        joined: &mut Joined,
    ) -> Result<(), SqlError> {
        let join_bytes = self.join.runtime.workspace().limits.join_bytes;
        let Some(large) =
            inner.filter(|inner| inner.memory_bytes >= join_bytes && inner.is_mixed && level < LEVEL_MAX)
        else {
            return self.join_rows(at, inner.map(|inner| &inner.rows), &outer, hashed.keys, joined);
        };
        // Hashes are uneven. With twice as many partitions as could do, few have to be split once more.
        let partitions = large.memory_bytes / join_bytes.max(1) * 2;
        let partitions = partitions.clamp(2, PARTITIONS).next_power_of_two();
        let (inner, outer_parts) = self.split(at, level + 1, partitions, (large, &outer), hashed.hasher())?;
        drop(outer);
        for (inner, outer) in inner.into_iter().zip(outer_parts) {
            let Some(outer) = outer else { continue };
            self.join_partition(at, level + 1, hashed, (inner.as_ref(), outer.rows), joined)?;
        }
        Ok(())
    }

    /// Splits the rows of both sides of a partition.
    fn split(
        &self,
        at: usize,
        level: u32,
        partitions: usize,
        (inner, outer): (&Partition, &Stored),
        hasher: &Hasher,
    ) -> Result<(Partitions, Partitions), SqlError> {
        let workspace = self.join.runtime.workspace();
        let mut writers = PartitionWriters::of_level(workspace, level, partitions);
        let mut reader = RunReader::new(&inner.rows, FILE_BYTES_MAX);
        while reader.advance()? {
            self.check(at)?;
            let (key, row) = (reader.key(), reader.row());
            let mut values = Vec::new();
            let memory_bytes = HashedRow::read(row, &mut values)?.memory_bytes(key);
            writers.push(hasher.hash_one(key), key, row, memory_bytes)?;
        }
        let inner = writers.finish()?;
        let mut writers = PartitionWriters::of_level(workspace, level, partitions);
        let mut reader = RunReader::new(outer, FILE_BYTES_MAX);
        while reader.advance()? {
            self.check(at)?;
            let (_, mut parts) = reader.row().split_first().ok_or_else(bad)?;
            let key = take_bytes(&mut parts)?;
            writers.push(hasher.hash_one(key), reader.key(), reader.row(), 0)?;
        }
        Ok((inner, writers.finish()?))
    }

    /// Writes the joined rows of one partition, and a row alone for each row of the tables before.
    fn join_rows(
        &self,
        at: usize,
        inner: Option<&Stored>,
        outer: &Stored,
        keys: &HashKeys,
        Joined { writer, runs }: &mut Joined,
    ) -> Result<(), SqlError> {
        let arena = Bump::new();
        let mut hashed = HashedRows::new(keys, &arena, self.join.runtime.workspace(), false);
        if let Some(inner) = inner {
            let mut reader = RunReader::new(inner, FILE_BYTES_MAX);
            while reader.advance()? {
                self.check(at)?;
                hashed.insert_stored(reader.key(), reader.row())?;
            }
        }
        hashed.finish()?;
        let start = writer.position();
        let is_outer = self.join.plan.steps[at].begins.is_some();
        let mut reader = RunReader::new(outer, FILE_BYTES_MAX);
        let mut row = Vec::new();
        while reader.advance()? {
            self.check(at)?;
            let (has_key, mut parts) = reader.row().split_first().ok_or_else(bad)?;
            let key = take_bytes(&mut parts)?;
            row.clear();
            push_length(&mut row, parts.len());
            row.extend_from_slice(parts);
            let alone = row.len();
            if is_outer {
                writer.push(reader.key(), &row)?;
            }
            if *has_key == 0 {
                continue;
            }
            hashed.for_each_of(key, |inner| {
                self.check(at)?;
                row.truncate(alone);
                inner.append_to(&mut row);
                writer.push(reader.key(), &row)?;
                Ok(Flow::Continue)
            })?;
        }
        let end = writer.position();
        runs.extend((start < end).then_some(start..end));
        Ok(())
    }

    /// Goes on with the joined rows of all partitions, in the order of the rows before.
    fn go_on(
        &self,
        at: usize,
        joined: Vec<Stored>,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let step = &self.join.plan.steps[at];
        let workspace = self.join.runtime.workspace();
        let mut merged = MergedRuns::new(workspace, joined, workspace.limits.join_bytes / 2)?;
        let (mut number, mut last) = (Vec::new(), Vec::new());
        let mut arena = Bump::new();
        while merged.advance()? {
            workspace.interrupt.check()?;
            let mut row = merged.row();
            let outer = take_bytes(&mut row)?;
            if step.begins.is_some() && number != merged.key() {
                if !number.is_empty() && self.go_on_alone(at, &last, scratch, consumer)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                number.clear();
                number.extend_from_slice(merged.key());
                last.clear();
                last.extend_from_slice(outer);
                if let Some(nest) = step.begins {
                    self.matched[nest].set(false);
                }
            }
            if row.is_empty() {
                continue;
            }
            arena.reset();
            let flow = self.with_parts(outer, |parts| {
                let mut values = Vec::new();
                let inner = HashedRow::read(row, &mut values)?;
                let part = self.part_of(at, inner)?;
                with_part(parts, step.part, part, |parts| {
                    let context = self.join.context(&arena);
                    let row = Row(parts);
                    if !passes(&step.filter, &row, &context)? {
                        return Ok(Flow::Continue);
                    }
                    self.found(at, &step.ends, &row, &context, &mut scratch[1..], consumer)
                })
            })?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if number.is_empty() {
            return Ok(Flow::Continue);
        }
        self.go_on_alone(at, &last, scratch, consumer)
    }

    /// Goes on with a row of the tables before, if no row of the step's nest has matched it.
    fn go_on_alone(
        &self,
        at: usize,
        outer: &[u8],
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        match self.join.plan.steps[at].begins {
            Some(nest) if !self.matched[nest].get() => {
                self.with_parts(outer, |parts| self.nulls(nest, parts, scratch, consumer))
            }
            _ => Ok(Flow::Continue),
        }
    }

    /// Calls `body` with the parts that [`append_parts`] wrote.
    fn with_parts(
        &self,
        mut bytes: &[u8],
        body: impl FnOnce(&[Part<'_>]) -> Result<Flow, SqlError>,
    ) -> Result<Flow, SqlError> {
        let inputs = &self.join.plan.inputs;
        let mut read: Vec<(u8, &[u8], Vec<ValueRef<'_>>)> = Vec::with_capacity(inputs.len());
        for _ in inputs {
            let (kind, mut rest) = bytes.split_first().ok_or_else(bad)?;
            let part = take_bytes(&mut rest)?;
            bytes = rest;
            let mut values = Vec::new();
            if *kind == VALUES {
                read_row(part, &mut values)?;
            }
            read.push((*kind, part, values));
        }
        let mut parts = Vec::with_capacity(inputs.len());
        for ((kind, image, values), input) in read.iter().zip(inputs) {
            parts.push(match (*kind, &input.source) {
                (IMAGE, Source::Table { table, .. }) => Part::Image(table.row_codec().view(image)),
                (VALUES, _) => Part::Values(values),
                _ => Part::Nulls,
            });
        }
        body(&parts)
    }
}
