//! A hash table of a table's rows, for joins by equations that no index can answer.
//!
//! The table that is joined is put into the hash table once, whatever the tables before it are. So rows keep
//! the order of the tables before, and outer joins need nothing special. When its rows take more memory than
//! they may, the remaining rows are kept as primary keys only and looked up when needed.

use crate::SqlError;
use crate::expr::{Compiled, Context, Part, Row};
use crate::plan::plan::HashKeys;
use bumpalo::Bump;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use types::ValueRef;

/// A row in the hash table.
#[derive(Clone, Copy, Debug)]
pub(super) enum HashedRow<'s> {
    Image(&'s [u8]),
    Values(&'s [ValueRef<'s>]),
    /// The primary key of a row that did not fit into the memory allowed.
    Key(&'s [u8]),
}

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
    arena: &'s Bump,
    bytes_max: usize,
    bytes: usize,
    /// The first entry of each key.
    firsts: HashTable<u32>,
    entries: Vec<Entry<'s>>,
    hasher: foldhash::fast::RandomState,
    key: Vec<u8>,
}

impl<'s> HashedRows<'s> {
    pub(super) fn new(keys: &'s HashKeys, arena: &'s Bump, bytes_max: usize) -> HashedRows<'s> {
        HashedRows {
            keys,
            arena,
            bytes_max,
            bytes: 0,
            firsts: HashTable::new(),
            entries: Vec::new(),
            hasher: foldhash::fast::RandomState::default(),
            key: Vec::new(),
        }
    }

    /// Inserts the row of `part`. A row with a NULL in its key is left out, because it equals no other.
    pub(super) fn insert(
        &mut self,
        row: &Row<'_>,
        context: &Context<'_>,
        part: usize,
        primary_key: &[u8],
    ) -> Result<(), SqlError> {
        if !encode_key(&self.keys.inner, self.keys, row, context, &mut self.key)? {
            return Ok(());
        }
        let arena = self.arena;
        let kept = match row.0[part] {
            Part::Image(view) if self.bytes < self.bytes_max => {
                HashedRow::Image(arena.alloc_slice_copy(view.image()))
            }
            Part::Image(_) => HashedRow::Key(arena.alloc_slice_copy(primary_key)),
            Part::Values(values) => {
                let values = values.iter().map(|value| super::sort::keep(value, arena));
                HashedRow::Values(arena.alloc_slice_fill_iter(values))
            }
            Part::Nulls => return Err(SqlError::internal("a row of NULLs to be kept")),
        };
        if let HashedRow::Image(image) = kept {
            self.bytes += image.len();
        }
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
        Ok(())
    }

    /// The rows of a key.
    pub(super) fn of_key<'k>(&'k self, key: &[u8]) -> impl Iterator<Item = HashedRow<'s>> + 'k {
        let hash = self.hasher.hash_one(key);
        let is_same = |first: &u32| {
            let entry = &self.entries[*first as usize];
            entry.hash == hash && entry.key == key
        };
        let first = self.firsts.find(hash, is_same).copied();
        let next = |at: &u32| Some(self.entries[*at as usize].next).filter(|next| *next != END);
        std::iter::successors(first, next).map(|at| self.entries[at as usize].row)
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
                name,
            })
        };
        let compile = |part| Compiled::new(&column(part), Collation::Utf8mb4GeneralCi).unwrap();
        let key = Column { name: String::new(), column_type: column_type.clone(), nullable: true };
        let keys = HashKeys { inner: vec![compile(0)], outer: vec![compile(1)], keys: ValueKeys::new([key]) };
        let (arena, environment) = (Bump::new(), TestEnvironment::default());
        let context =
            Context { slots: Slots::EMPTY, arena: &arena, environment: &environment, subqueries: None };
        let mut hashed = HashedRows::new(&keys, &arena, usize::MAX);
        for nth in 0..3000 {
            let value = if nth % 7 == 0 { ValueRef::Null } else { ValueRef::Int(nth % 100) };
            let row = [Part::Values(&[value, ValueRef::Int(nth)]), Part::Nulls];
            hashed.insert(&Row(&row), &context, 0, &[]).unwrap();
        }
        let mut key = Vec::new();
        for wanted in 0..110 {
            let row = [Part::Nulls, Part::Values(&[ValueRef::Int(wanted)])];
            assert!(encode_key(&keys.outer, &keys, &Row(&row), &context, &mut key).unwrap());
            let found: Vec<i64> = hashed
                .of_key(&key)
                .map(|row| match row {
                    HashedRow::Values([_, ValueRef::Int(nth)]) => *nth,
                    other => panic!("{other:?}"),
                })
                .collect();
            let expected: Vec<i64> = (0..3000).filter(|nth| nth % 7 != 0 && nth % 100 == wanted).collect();
            assert_eq!(found, expected);
        }
        let row = [Part::Nulls, Part::Values(&[ValueRef::Null])];
        assert!(!encode_key(&keys.outer, &keys, &Row(&row), &context, &mut key).unwrap());
    }
}
