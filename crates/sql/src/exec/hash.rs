//! A hash table of a table's rows, for joins by equations that no index can answer.
//!
//! The table that is joined is put into the hash table once, whatever the tables before it are. So rows keep
//! the order of the tables before, and outer joins need nothing special. When its rows take more memory than
//! they may, all of them go to the files of partitions (`partitions.rs`). In a nest of several tables, and
//! for a partition that is too large and cannot be split, they go to one file, sorted by their keys, and are
//! looked up there.

use super::Flow;
use super::partitions::{Partition, PartitionWriters, Partitions};
use crate::SqlError;
use crate::expr::{Compiled, Context, Part, Row};
use crate::memory::Charge;
use crate::plan::plan::HashKeys;
use crate::spill::{IndexedRows, Sorter, Workspace, append_row, read_row};
use bumpalo::Bump;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use types::ValueRef;

pub(super) type Hasher = foldhash::fast::RandomState;

/// A row in the hash table.
#[derive(Clone, Copy, Debug)]
pub(super) enum HashedRow<'s> {
    Image(&'s [u8]),
    Values(&'s [ValueRef<'s>]),
}

impl HashedRow<'_> {
    /// The row in `arena`.
    fn keep<'a>(&self, arena: &'a Bump) -> HashedRow<'a> {
        match self {
            HashedRow::Image(image) => HashedRow::Image(arena.alloc_slice_copy(image)),
            HashedRow::Values(values) => {
                let values = values.iter().map(|value| super::sort::keep(value, arena));
                HashedRow::Values(arena.alloc_slice_fill_iter(values))
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            HashedRow::Image(image) => image.len(),
            HashedRow::Values(values) => {
                let texts = values.iter().filter_map(ValueRef::as_bytes).map(<[u8]>::len);
                size_of_val(*values) + texts.sum::<usize>()
            }
        }
    }

    /// What the row takes in the table, with its key.
    pub(super) fn memory_bytes(&self, key: &[u8]) -> usize {
        ENTRY_BYTES + key.len() + self.bytes()
    }

    /// Appends what [`HashedRows::for_each_of`] reads: what kind of row it is, and its bytes.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            HashedRow::Image(image) => {
                out.push(IMAGE);
                out.extend_from_slice(image);
            }
            HashedRow::Values(values) => {
                out.push(VALUES);
                append_row(values, out);
            }
        }
    }
}

impl<'s> HashedRow<'s> {
    /// Reads what [`HashedRow::append_to`] wrote. `values` is empty, and holds the row's values.
    pub(super) fn read(row: &'s [u8], values: &'s mut Vec<ValueRef<'s>>) -> Result<HashedRow<'s>, SqlError> {
        match row.split_first() {
            Some((&IMAGE, image)) => Ok(HashedRow::Image(image)),
            Some((_, row)) => {
                read_row(row, values)?;
                Ok(HashedRow::Values(values))
            }
            None => Err(SqlError::internal("a row without its kind")),
        }
    }
}

/// What a row takes in the table, beside itself and its key.
const ENTRY_BYTES: usize = size_of::<Entry<'_>>() + 2 * size_of::<u32>();

const IMAGE: u8 = 0;
const VALUES: u8 = 1;

/// The end of a list: no further row has the same key.
const END: u32 = u32::MAX;

#[derive(Debug)]
struct Entry<'s> {
    hash: u64,
    key: &'s [u8],
    row: HashedRow<'s>,
    next: u32,
    /// For the first row of a key: the last row of that key.
    last: u32,
}

/// Rows by key. Rows of one key stay in the order in which they came.
#[derive(Debug)]
pub(super) struct HashedRows<'s> {
    pub(super) keys: &'s HashKeys,
    workspace: Workspace<'s>,
    arena: &'s Bump,
    /// Bytes of the rows and of the table.
    bytes: usize,
    /// When they reach this many, more memory is asked for.
    bytes_next: usize,
    charge: Charge,
    /// The first entry of each key.
    firsts: HashTable<u32>,
    entries: Vec<Entry<'s>>,
    hasher: Hasher,
    key: Vec<u8>,
    /// True if rows that do not fit into memory may go to partitions. Otherwise they are sorted.
    may_partition: bool,
    /// Takes all rows once they do not fit into memory.
    writers: Option<Box<PartitionWriters<'s>>>,
    partitions: Option<Partitions>,
    /// Takes all rows once they do not fit into memory.
    sorter: Option<Box<Sorter<'s>>>,
    /// The sorter's rows.
    stored: Option<Box<IndexedRows>>,
    row: Vec<u8>,
}

impl<'s> HashedRows<'s> {
    /// `may_partition` says whether rows that do not fit into memory may go to the files of partitions. They
    /// are not looked up there.
    pub(super) fn new(
        keys: &'s HashKeys,
        arena: &'s Bump,
        workspace: Workspace<'s>,
        may_partition: bool,
    ) -> HashedRows<'s> {
        let charge = Charge::default();
        HashedRows {
            keys,
            workspace,
            arena,
            bytes: 0,
            bytes_next: charge.covered().min(workspace.limits.join_bytes),
            charge,
            firsts: HashTable::new(),
            entries: Vec::new(),
            hasher: Hasher::default(),
            key: Vec::new(),
            may_partition,
            writers: None,
            partitions: None,
            sorter: None,
            stored: None,
            row: Vec::new(),
        }
    }

    /// All rows are in the files of partitions.
    #[inline]
    pub(super) fn is_partitioned(&self) -> bool {
        self.partitions.is_some()
    }

    /// The rows of a partition, with their keys.
    pub(super) fn partition(&self, partition: usize) -> Option<&Partition> {
        self.partitions.as_ref()?[partition].as_ref()
    }

    /// What names the partition of a key.
    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Inserts a row of a partition.
    pub(super) fn insert_stored(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        let mut values = Vec::new();
        let row = HashedRow::read(row, &mut values)?;
        self.key.clear();
        self.key.extend_from_slice(key);
        if self.sorter.is_some() {
            return self.insert_in_file(row);
        }
        let kept = row.keep(self.arena);
        self.insert_kept(kept)
    }

    /// Takes the row whose key is in `key`, once the rows do not fit into memory.
    fn insert_in_file(&mut self, row: HashedRow<'_>) -> Result<(), SqlError> {
        self.row.clear();
        row.append_to(&mut self.row);
        if let Some(writers) = &mut self.writers {
            let hash = self.hasher.hash_one(self.key.as_slice());
            return writers.push(hash, &self.key, &self.row, row.memory_bytes(&self.key));
        }
        match &mut self.sorter {
            Some(sorter) => sorter.push(&self.key, &self.row),
            None => Err(SqlError::internal("a row for a file that there is not")),
        }
    }

    /// Inserts the row of `part`. A row with a NULL in its key is left out, because it equals no other.
    pub(super) fn insert(
        &mut self,
        row: &Row<'_>,
        context: &Context<'_>,
        part: usize,
    ) -> Result<(), SqlError> {
        if !encode_key(&self.keys.inner, self.keys, row, context, &mut self.key)? {
            return Ok(());
        }
        let row = match row.0[part] {
            Part::Image(view) => HashedRow::Image(view.image()),
            Part::Values(values) => HashedRow::Values(values),
            Part::Nulls => return Err(SqlError::internal("a row of NULLs to be kept")),
        };
        if self.sorter.is_some() || self.writers.is_some() {
            return self.insert_in_file(row);
        }
        let kept = row.keep(self.arena);
        self.insert_kept(kept)
    }

    /// Inserts the row whose key is in `key` into the table in memory.
    fn insert_kept(&mut self, kept: HashedRow<'s>) -> Result<(), SqlError> {
        let arena = self.arena;
        self.bytes += kept.memory_bytes(&self.key);
        let new = u32::try_from(self.entries.len()).ok().filter(|new| *new != END);
        let new = new.ok_or_else(|| SqlError::internal("more rows than a hash table takes"))?;
        let hash = self.hasher.hash_one(self.key.as_slice());
        let entries = &self.entries;
        let is_same = |first: &u32| {
            let entry = &entries[*first as usize];
            entry.hash == hash && entry.key == self.key
        };
        match self.firsts.find(hash, is_same).copied() {
            Some(first) => {
                let last = std::mem::replace(&mut self.entries[first as usize].last, new);
                self.entries[last as usize].next = new;
                let key = self.entries[first as usize].key;
                self.entries.push(Entry { hash, key, row: kept, next: END, last: new });
            }
            None => {
                let key = arena.alloc_slice_copy(&self.key);
                self.entries.push(Entry { hash, key, row: kept, next: END, last: new });
                let entries = &self.entries;
                self.firsts.insert_unique(hash, new, |first| entries[*first as usize].hash);
            }
        }
        if self.bytes < self.bytes_next { Ok(()) } else { self.grow() }
    }

    /// Asks for more memory. If there is no more, the rows go to a sorter.
    #[cold]
    fn grow(&mut self) -> Result<(), SqlError> {
        let join_bytes = self.workspace.limits.join_bytes;
        if self.bytes < join_bytes {
            self.charge.cover(self.bytes + 1, self.workspace.account)?;
            self.bytes_next = self.charge.covered().min(join_bytes);
            return Ok(());
        }
        self.firsts = HashTable::new();
        if self.may_partition {
            self.workspace.note_disk_table();
            let mut writers = Box::new(PartitionWriters::new(self.workspace));
            for entry in std::mem::take(&mut self.entries) {
                self.row.clear();
                entry.row.append_to(&mut self.row);
                writers.push(entry.hash, entry.key, &self.row, entry.row.memory_bytes(entry.key))?;
            }
            self.writers = Some(writers);
            return Ok(());
        }
        let memory_bytes = join_bytes.max(self.workspace.limits.sort_bytes);
        let mut sorter = Box::new(Sorter::new(self.workspace, memory_bytes, usize::MAX));
        for entry in std::mem::take(&mut self.entries) {
            self.row.clear();
            entry.row.append_to(&mut self.row);
            sorter.push(entry.key, &self.row)?;
        }
        self.sorter = Some(sorter);
        Ok(())
    }

    /// All rows were inserted.
    pub(super) fn finish(&mut self) -> Result<(), SqlError> {
        if let Some(writers) = self.writers.take() {
            self.partitions = Some(writers.finish()?);
        }
        if let Some(sorter) = self.sorter.take() {
            self.stored = Some(Box::new(IndexedRows::new(self.workspace, *sorter)?));
        }
        Ok(())
    }

    /// Hands on the rows of a key.
    pub(super) fn for_each_of(
        &self,
        key: &[u8],
        mut each: impl FnMut(HashedRow<'_>) -> Result<Flow, SqlError>,
    ) -> Result<Flow, SqlError> {
        if let Some(stored) = &self.stored {
            return self.for_each_stored(stored, key, &mut each);
        }
        let hash = self.hasher.hash_one(key);
        let is_same = |first: &u32| {
            let entry = &self.entries[*first as usize];
            entry.hash == hash && entry.key == key
        };
        let mut next = self.firsts.find(hash, is_same).copied().unwrap_or(END);
        while next != END {
            let entry = &self.entries[next as usize];
            if each(entry.row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            next = entry.next;
        }
        Ok(Flow::Continue)
    }

    fn for_each_stored(
        &self,
        stored: &IndexedRows,
        key: &[u8],
        each: &mut dyn FnMut(HashedRow<'_>) -> Result<Flow, SqlError>,
    ) -> Result<Flow, SqlError> {
        let mut flow = Flow::Continue;
        stored.for_each_of(self.workspace, key, |row| {
            flow = each(HashedRow::read(row, &mut Vec::new())?)?;
            Ok(flow == Flow::Continue)
        })?;
        Ok(flow)
    }
}

/// Writes the key of one side of the equations. False if a value is NULL.
pub(super) fn encode_key(
    side: &[Compiled],
    keys: &HashKeys,
    row: &Row<'_>,
    context: &Context<'_>,
    key: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    key.clear();
    let encode = |values: &[ValueRef<'_>], key: &mut Vec<u8>| {
        let is_whole = values.iter().all(|value| !value.is_null());
        if is_whole {
            keys.keys.encode(values, key);
        }
        is_whole
    };
    if let [value] = side {
        return Ok(encode(&[value.evaluate(row, context)?], key));
    }
    let values = side.iter().map(|value| value.evaluate(row, context)).collect::<Result<Vec<_>, _>>()?;
    Ok(encode(&values, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::golden::environment::TestEnvironment;
    use crate::expr::value_keys::ValueKeys;
    use crate::expr::{ColumnRef, Expr, Slots};
    use crate::spill::tests::Workplace;
    use types::{Collation, Column, ColumnType};

    #[test]
    fn rows_of_a_key_come_in_their_order_and_nulls_never() {
        let column_type = ColumnType::Int { bytes: 8, unsigned: false };
        let column = |part| {
            let name = String::new();
            Expr::Column(ColumnRef {
                part,
                column: 0,
                column_type: column_type.clone(),
                nullable: true,
                digits: None,
                is_json: false,
                in_utc: false,
                name,
            })
        };
        let compile = |part| Compiled::new(&column(part), Collation::Utf8mb4GeneralCi).unwrap();
        let of_key = Column { name: String::new(), column_type: column_type.clone(), nullable: true };
        let keys =
            HashKeys { inner: vec![compile(0)], outer: vec![compile(1)], keys: ValueKeys::new([of_key]) };
        let (arena, environment) = (Bump::new(), TestEnvironment::default());
        let context =
            Context { slots: Slots::EMPTY, arena: &arena, environment: &environment, subqueries: None };
        for buffer in [1 << 30, 20_000, 0] {
            let workplace = Workplace::with_buffers(buffer);
            let mut hashed = HashedRows::new(&keys, &arena, workplace.workspace(), false);
            for nth in 0..3000 {
                let value = if nth % 7 == 0 { ValueRef::Null } else { ValueRef::Int(nth % 100) };
                let row = [Part::Values(&[value, ValueRef::Int(nth)]), Part::Nulls];
                hashed.insert(&Row(&row), &context, 0).unwrap();
            }
            hashed.finish().unwrap();
            assert_eq!(hashed.stored.is_none(), buffer > 1 << 20);
            let mut key = Vec::new();
            for wanted in 0..110 {
                let row = [Part::Nulls, Part::Values(&[ValueRef::Int(wanted)])];
                assert!(encode_key(&keys.outer, &keys, &Row(&row), &context, &mut key).unwrap());
                let mut found: Vec<i64> = Vec::new();
                let flow = hashed.for_each_of(&key, |row| {
                    match row {
                        HashedRow::Values([_, ValueRef::Int(nth)]) => found.push(*nth),
                        other => panic!("{other:?}"),
                    }
                    Ok(Flow::Continue)
                });
                assert_eq!(flow, Ok(Flow::Continue));
                let expected: Vec<i64> =
                    (0..3000).filter(|nth| nth % 7 != 0 && nth % 100 == wanted).collect();
                assert_eq!(found, expected);
            }
        }
        let mut key = Vec::new();
        let row = [Part::Nulls, Part::Values(&[ValueRef::Null])];
        assert!(!encode_key(&keys.outer, &keys, &Row(&row), &context, &mut key).unwrap());
    }
}
