//! Filling an empty table: its trees are built in a new file, the clustered one from rows in key order
//! (sorted first if they come in another), the others by sorting. The table takes the file as its own in the
//! end, with all rows or not at all.
//!
//! The rows carry the stamp of the statement's transaction, so that a snapshot that is older than its end
//! sees an empty table in the new file as well. Until the end writers of the table wait, readers do not.

use super::ddl::{CLUSTERED_TREE, record};
use super::{Database, SORT_BYTES};
use crate::definition::KeyList;
use crate::format::file_header::TableNumbers;
use crate::format::row::{ROW_HEADER_BYTES, RowHeader};
use crate::names::TABLES_DIR;
use crate::session::statement::Writer;
use crate::sort::Sorter;
use crate::space::tablespace::Tablespace;
use crate::table::state::TableState;
use crate::table::{Entry, Index, Table};
use crate::tree::build::TreeBuilder;
use crate::tree::{Chunk, Remainder, Tree};
use crate::write::log;
use crate::{Error, Result};
use base::Stamp;
use base::sync::Arc;
use transactions::{DEFINITIONS, LockMode, Patience};

/// Each sorter gets this at least.
const SORTER_BYTES_MIN: usize = 8 << 20;
const NUMBER_BYTES: usize = 8;

/// What became of the rows of a load.
#[derive(Debug)]
pub enum Loaded<'d> {
    /// They are the table's.
    Done,
    /// Some of them collide. None is in the table; here they are again, to be inserted one by one.
    Collided(LoadedRows<'d>),
}

/// Rows on their way into an empty table. Dropped, it leaves the table empty.
#[derive(Debug)]
pub struct Load<'d> {
    rows: LoadedRows<'d>,
    table: &'d Table,
    header: RowHeader,
    /// Of the secondary indexes: key, and how long the part is that no two entries may share.
    entries: Vec<Sorter>,
    /// Scratch.
    entry: Entry,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// The rows of a load that was given up.
#[derive(Debug)]
pub struct LoadedRows<'d> {
    database: &'d Database,
    /// The new file, until it is the table's.
    space: Option<Arc<Tablespace>>,
    clustered: Clustered,
    /// How many rows there are.
    count: u64,
}

/// The rows so far.
#[derive(Debug)]
enum Clustered {
    /// In key order, which is the order in which they came.
    Building {
        builder: TreeBuilder,
        last: Vec<u8>,
    },
    Built(Tree),
    /// The value is the row's number and then what its cell holds.
    Sorting(Sorter),
    /// Gone: an error has ended the load.
    Lost,
}

impl Writer<'_> {
    /// Begins to fill a table by building its trees from all rows at once, in a statement outside of a
    /// transaction that does nothing else. `None` if the table is not empty, or another transaction is at
    /// work in it. Others who want to change it wait from now on.
    ///
    /// # Errors
    /// [`Error::LockWaitTimeout`], [`Error::Interrupted`], [`Error::ReadOnly`], [`Error::Closed`] and
    /// [`Error::Io`].
    pub fn begin_load<'d>(&mut self, database: &'d Database, table: &'d Table) -> Result<Option<Load<'d>>> {
        self.core.touch()?;
        let transaction = &mut self.active.transaction;
        let before = transaction.lock_mark();
        let key = table.id().0.to_be_bytes();
        if transaction.lock(DEFINITIONS, &key, LockMode::Exclusive, Patience::None).is_err() {
            return Ok(None);
        }
        let load = database.begin_load(table, transaction.id());
        if !matches!(load, Ok(Some(_))) {
            self.active.transaction.give_back_locks(before);
        }
        load
    }
}

impl Database {
    /// See [`crate::Writer::begin_load`], which holds the table's definition and whose transaction has
    /// `stamp`.
    fn begin_load<'d>(&'d self, table: &'d Table, stamp: Stamp) -> Result<Option<Load<'d>>> {
        let Some((space, builder)) = self.empty_file(table, stamp)? else { return Ok(None) };
        let clustered = Clustered::Building { builder, last: Vec::new() };
        let rows = LoadedRows { database: self, space: Some(space), clustered, count: 0 };
        let secondary = table.state().indexes.len() - 1;
        let entries = (0..secondary).map(|position| rows.sorter(&position.to_string(), secondary + 1));
        let entries = entries.collect::<Result<Vec<_>>>()?;
        Ok(Some(Load {
            rows,
            table,
            header: RowHeader::new(stamp, true),
            entries,
            entry: Entry::default(),
            key: Vec::new(),
            value: Vec::new(),
        }))
    }

    /// A file for the rows of a table that has none, not even deleted ones.
    fn empty_file(&self, table: &Table, stamp: Stamp) -> Result<Option<(Arc<Tablespace>, TreeBuilder)>> {
        let state = table.live_state()?;
        let mut rest = Remainder::new(Vec::new(), None);
        let mut chunk = Chunk::default();
        while !rest.done {
            state.indexes[0].tree.read_forward(&mut rest, &mut chunk, 1)?;
            if chunk.len() > 0 {
                return Ok(None);
            }
        }
        let space = self.create_space(&state.def, &state.space.file().cache())?;
        let whole_keys = !state.def.packs_keys(0);
        match TreeBuilder::new(space.clone(), CLUSTERED_TREE, None, whole_keys, stamp) {
            Ok(builder) => Ok(Some((space, builder))),
            Err(error) => {
                self.remove_space(&space);
                Err(error)
            }
        }
    }
}

impl<'d> Load<'d> {
    /// Adds rows. False if one of them has the key of the one before it, or is too large for a leaf: the load
    /// cannot be finished then, and all rows, these among them, are to be had from [`Load::give_up`].
    ///
    /// # Errors
    /// [`Error::KeyTooLong`] and [`Error::RowTooLarge`]; [`Error::Full`] and [`Error::Io`] of the new file
    /// or of scratch files.
    pub fn push(&mut self, rows: &KeyList) -> Result<bool> {
        let table = self.table;
        let state = table.live_state()?;
        let tree = &state.indexes[0].tree;
        let value_max = tree.value_bytes_max(tree.key_bytes_max());
        let mut fits = true;
        for position in 0..rows.len() {
            let image = rows.get(position);
            self.key.clear();
            table.primary_key(state, image, &mut self.key);
            table.check_key(state, &self.key)?;
            self.value.clear();
            self.value.extend_from_slice(&self.header.to_bytes());
            self.value.extend_from_slice(image);
            fits &= self.value.len() <= value_max;
            fits &= self.rows.push(&self.key, &self.value, fits)?;
            let row = table.row_codec().view(image);
            for (index, sorter) in state.indexes[1..].iter().zip(&mut self.entries) {
                index.entry(&row, &self.key, &mut self.entry);
                table.check_key(state, &self.entry.key)?;
                let is_own = index.unique && !index.codec.row_has_null(&row);
                let own = if is_own { self.entry.own as u32 } else { 0 };
                sorter.push(&self.entry.key, &own.to_le_bytes())?;
            }
        }
        Ok(fits)
    }

    /// The rows, which will not be the table's.
    pub fn give_up(self) -> LoadedRows<'d> {
        self.rows
    }

    /// Makes the rows the table's, durably; they are seen when the statement commits, which has nothing else
    /// to do.
    ///
    /// # Errors
    /// [`Error::TableChanged`], [`Error::Interrupted`], [`Error::Full`], [`Error::Io`], [`Error::Corrupt`],
    /// [`Error::ReadOnly`]. A duplicate in a unique index is no error: see [`Loaded::Collided`].
    pub fn finish(mut self) -> Result<Loaded<'d>> {
        let state = self.table.live_state()?;
        let stamp = self.header.stamp();
        let Some(clustered) = self.rows.build(!state.def.packs_keys(0), stamp)? else {
            return Ok(Loaded::Collided(self.give_up()));
        };
        let Some(space) = self.rows.space.clone() else { return Err(Error::TableChanged) };
        let mut indexes = vec![Index { tree: clustered, ..state.indexes[0].clone() }];
        for (position, index) in state.indexes.iter().enumerate().skip(1) {
            let sorter = self.entries.remove(0);
            let id = CLUSTERED_TREE + position as u32;
            let whole_keys = !state.def.packs_keys(position);
            let own = Some(index.codec.clone());
            let mut builder = TreeBuilder::new(space.clone(), id, own, whole_keys, stamp)?;
            let mut last: Vec<u8> = Vec::new();
            let built = sorter.finish(|key, own| {
                let own = own.try_into().map_or(0, u32::from_le_bytes) as usize;
                if own > 0 && last == key[..own] {
                    return Err(Error::DuplicateKey { index: base::IndexId(position as u16) });
                }
                last.clear();
                last.extend_from_slice(&key[..own]);
                builder.push(key, &[])
            });
            match built {
                Ok(()) => indexes.push(Index { tree: builder.finish()?, ..index.clone() }),
                Err(Error::DuplicateKey { .. }) => return Ok(Loaded::Collided(self.give_up())),
                Err(error) => return Err(error),
            }
        }
        let next_tree = CLUSTERED_TREE + indexes.len() as u32;
        let new = TableState { def: state.def.clone(), space, indexes, next_tree, dropped: false };
        self.take_over(state, new)?;
        Ok(Loaded::Done)
    }

    fn take_over(&mut self, old: &TableState, new: TableState) -> Result<()> {
        let (database, table) = (self.rows.database, self.table);
        let core = &database.core;
        new.space.save(&TableNumbers { rows: self.rows.count, ..table.numbers() })?;
        // CRASH: the log's end knows the stamp before the catalogue knows rows that carry it: no later
        // transaction gets it again. By itself the record says nothing, for the transaction has changed no
        // table by the log.
        log::committed(core, self.header.stamp())?;
        let mut catalogue = database.definitions.catalogue.lock();
        core.touch()?;
        let _closure = table.gate.close();
        // CRASH: before this record the table is the empty one, and the new file is removed at the next
        // start; after it the table has all rows.
        catalogue.put(&record(table.id(), &new))?;
        table.set_state(new);
        self.rows.space = None;
        table.add_rows(self.rows.count as i64);
        database.remove_space(&old.space);
        database.make_durable()
    }
}

impl LoadedRows<'_> {
    fn sorter(&self, name: &str, shares: usize) -> Result<Sorter> {
        let Some(space) = &self.space else { return Err(Error::TableChanged) };
        let database = self.database;
        let path = database.dir.join(TABLES_DIR).join(format!("sort-{}-{name}", space.file_id()));
        let memory_bytes = (SORT_BYTES / shares).max(SORTER_BYTES_MIN);
        Ok(Sorter::new(database.files.vfs.clone(), &path, memory_bytes))
    }

    /// Adds a row. False if it has the last one's key; it is kept all the same, as are those that must not be
    /// in a tree.
    fn push(&mut self, key: &[u8], value: &[u8], goes_on: bool) -> Result<bool> {
        let mut differs = true;
        if let Clustered::Building { builder, last } = &mut self.clustered {
            if goes_on && (self.count == 0 || last.as_slice() < key) {
                builder.push(key, value)?;
                last.clear();
                last.extend_from_slice(key);
                self.count += 1;
                return Ok(true);
            }
            differs = *last != *key || self.count == 0;
            self.begin_to_sort()?;
        }
        let Clustered::Sorting(sorter) = &mut self.clustered else { return Err(Error::TableChanged) };
        let mut numbered = self.count.to_be_bytes().to_vec();
        numbered.extend_from_slice(value);
        sorter.push(key, &numbered)?;
        self.count += 1;
        Ok(differs)
    }

    /// The rows come in another order: those that are in the tree are sorted with the others.
    fn begin_to_sort(&mut self) -> Result<()> {
        let mut sorter = self.sorter("rows", 1)?;
        if let Clustered::Building { builder, .. } = std::mem::replace(&mut self.clustered, Clustered::Lost) {
            let tree = builder.finish()?;
            let mut number = 0u64;
            let mut numbered = Vec::new();
            each_entry(&tree, |key, value| {
                numbered.clear();
                numbered.extend_from_slice(&number.to_be_bytes());
                numbered.extend_from_slice(value);
                number += 1;
                sorter.push(key, &numbered)
            })?;
            tree.free_all()?;
        }
        self.clustered = Clustered::Sorting(sorter);
        Ok(())
    }

    /// The clustered tree; `None` if keys collide.
    fn build(&mut self, whole_keys: bool, stamp: Stamp) -> Result<Option<Tree>> {
        if let Clustered::Building { .. } = self.clustered {
            let Clustered::Building { builder, .. } = std::mem::replace(&mut self.clustered, Clustered::Lost)
            else {
                return Err(Error::TableChanged);
            };
            let tree = builder.finish()?;
            self.clustered = Clustered::Built(tree.clone());
            return Ok(Some(tree));
        }
        let (Clustered::Sorting(sorter), Some(space)) = (&mut self.clustered, &self.space) else {
            return Err(Error::TableChanged);
        };
        let mut builder = TreeBuilder::new(space.clone(), CLUSTERED_TREE, None, whole_keys, stamp)?;
        let mut last: Option<Vec<u8>> = None;
        let built = sorter.read(|key, numbered| {
            if last.as_deref() == Some(key) {
                return Err(Error::DuplicateKey { index: base::IndexId(0) });
            }
            let kept = last.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(key);
            builder.push(key, &numbered[NUMBER_BYTES..])
        });
        match built {
            Ok(()) => Ok(Some(builder.finish()?)),
            Err(Error::DuplicateKey { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands out the rows in the order in which they came, until `each` fails.
    ///
    /// # Errors
    /// What `each` gives, and [`Error::Io`] and [`Error::Corrupt`] of the pages that the rows lie in.
    pub fn each<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if let Clustered::Building { .. } = self.clustered {
            self.build(false, Stamp(0))?;
        }
        if let Clustered::Built(tree) = &self.clustered {
            return each_entry(tree, |_, value| each(&value[ROW_HEADER_BYTES..]));
        }
        let mut by_number = self.sorter("numbers", 1)?;
        let Clustered::Sorting(sorter) = &mut self.clustered else { return Err(Error::TableChanged.into()) };
        sorter.read(|_, numbered| {
            let (number, value) = numbered.split_at(NUMBER_BYTES);
            by_number.push(number, value)
        })?;
        self.clustered = Clustered::Lost;
        by_number.finish(|_, value| each(&value[ROW_HEADER_BYTES..]))
    }
}

impl Drop for LoadedRows<'_> {
    fn drop(&mut self) {
        if let Some(space) = self.space.take() {
            // CRASH: nothing names the file, and a start removes it.
            self.database.remove_space(&space);
        }
    }
}

fn each_entry<E: From<Error>>(
    tree: &Tree,
    mut each: impl FnMut(&[u8], &[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut rest = Remainder::new(Vec::new(), None);
    let mut chunk = Chunk::default();
    while !rest.done {
        tree.read_forward(&mut rest, &mut chunk, usize::MAX)?;
        for position in 0..chunk.len() {
            let (key, value) = chunk.entry(position);
            each(key, value)?;
        }
    }
    Ok(())
}
