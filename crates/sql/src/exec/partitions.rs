//! A hash join of more rows than fit into memory.
//!
//! The rows of the table that is joined go to as many files as there are partitions, by the hash of their
//! keys. The rows of the tables before are put off: each goes, with its number, to a file of its key's
//! partition. At the end one partition after the other is joined in memory. The joined rows of a partition
//! come in the order of the rows before, so merging those of all partitions by their numbers gives what a
//! join in memory gives, in the same order.

use super::access::Scratch;
use super::hash::{HashedRow, HashedRows, encode_key};
use super::join::{Running, passes, with_part};
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::{Part, Row};
use crate::memory::Charge;
use crate::plan::plan::{HashKeys, Source};
use crate::spill::{MergedRuns, RunReader, RunWriter, Stored, Workspace, append_row, read_row};
use bumpalo::Bump;
use std::hash::BuildHasher;
use types::ValueRef;

/// How many partitions there are. Each may take as much memory as all rows that are in memory otherwise; one
/// that takes more is sorted and searched.
pub(super) const PARTITIONS: usize = 32;
/// What is read or written of a file at a time.
const FILE_BYTES_MAX: usize = 128 << 10;
const FILE_BYTES_MIN: usize = 4 << 10;

/// What is read or written of each file at a time: half of the memory for all of them.
fn file_bytes(workspace: Workspace<'_>) -> usize {
    (workspace.limits.join_bytes / PARTITIONS / 2).clamp(FILE_BYTES_MIN, FILE_BYTES_MAX)
}

/// Writes rows to the files of their partitions.
#[derive(Debug)]
pub(super) struct PartitionWriters<'w> {
    workspace: Workspace<'w>,
    /// A file is made when there is a row for it.
    writers: Vec<Option<RunWriter<'w>>>,
    write_bytes: usize,
    /// Bytes of the buffers of all files.
    buffers: usize,
    charge: Charge,
}

impl<'w> PartitionWriters<'w> {
    pub(super) fn new(workspace: Workspace<'w>) -> PartitionWriters<'w> {
        let writers = std::iter::repeat_with(|| None).take(PARTITIONS).collect();
        let write_bytes = file_bytes(workspace);
        PartitionWriters { workspace, writers, write_bytes, buffers: 0, charge: Charge::default() }
    }

    pub(super) fn push(&mut self, partition: usize, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        let writer = match &mut self.writers[partition] {
            Some(writer) => writer,
            none => {
                self.buffers += self.write_bytes;
                self.charge.cover(self.buffers, self.workspace.account)?;
                none.insert(RunWriter::with_buffer(self.workspace, self.write_bytes)?)
            }
        };
        writer.push(key, row)
    }

    pub(super) fn finish(self) -> Result<Vec<Option<Stored>>, SqlError> {
        self.writers.into_iter().map(|writer| writer.map(RunWriter::finish).transpose()).collect()
    }
}

/// The partition of a key.
pub(super) fn partition_of(hasher: &foldhash::fast::RandomState, key: &[u8]) -> usize {
    (hasher.hash_one(key) >> 32) as usize % PARTITIONS
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
        let partition = hashed.partition(&put_off.key);
        put_off.writers.push(partition, &put_off.rows.to_be_bytes(), &put_off.row)?;
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
        let mut joined: Vec<Stored> = Vec::new();
        for (partition, outer) in writers.finish()?.into_iter().enumerate() {
            let Some(outer) = outer else { continue };
            let mut writer = RunWriter::with_buffer(workspace, FILE_BYTES_MAX)?;
            self.join_partition(at, hashed.partition_rows(partition), &outer, keys, &mut writer)?;
            joined.push(writer.finish()?);
        }
        self.go_on(at, joined, scratch, consumer)
    }

    /// Writes the joined rows of one partition, and a row alone for each row of the tables before.
    fn join_partition(
        &self,
        at: usize,
        inner: Option<&Stored>,
        outer: &Stored,
        keys: &HashKeys,
        writer: &mut RunWriter<'_>,
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
        let mut merged = MergedRuns::new(workspace, &joined, file_bytes(workspace))?;
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
