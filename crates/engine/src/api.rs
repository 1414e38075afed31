//! The engine's public shape. A stand-in to build against until the trees are in place: rows live in
//! memory maps and are gone when the process ends.

use base::sync::atomic::{AtomicU64, Ordering};
use base::sync::{Arc, Mutex, RwLock};
use base::{IndexId, TableId};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use types::{Column, KeyCodec, KeyPart, RowCodec};

/// How a data directory is opened.
#[derive(Clone, Debug)]
pub struct Options {
    pub cache: CacheOptions,
    /// Bytes a page: a power of two, 1 to 64 KiB. Fixed when the data directory is made.
    pub page_size: usize,
    /// Create the data directory if it is missing or empty.
    pub create: bool,
}

/// The key cache's settings, named after the server variables `key_*`.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    pub size_bytes: usize,
    /// 0 = one mutex; 1 to 64.
    pub segments: u32,
    pub hit_path: HitPath,
    pub division_limit: u32,
    pub age_threshold: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitPath {
    Locked,
    Optimistic,
}

/// What CREATE TABLE asks for. Index 0 is the clustered one; without `primary` the engine
/// adds a hidden 8-byte row id as its key.
#[derive(Clone, PartialEq, Debug)]
pub struct TableDef {
    pub database: String,
    pub name: String,
    pub columns: Vec<Column>,
    pub primary: Option<Vec<KeyPart>>,
    pub indexes: Vec<IndexDef>,
    /// The column that AUTO_INCREMENT fills.
    pub auto_increment: Option<usize>,
    /// Opaque to the engine, kept in the catalogue: defaults, comments, the ENGINE= that was written.
    pub sql_metadata: Vec<u8>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct IndexDef {
    pub name: String,
    pub unique: bool,
    pub parts: Vec<KeyPart>,
}

#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    Io(std::io::Error),
    /// A page that is not what it should be, with where and why.
    Corrupt {
        path: PathBuf,
        page: u32,
        lsn: u64,
        why: String,
    },
    /// A unique index already has the key. The index's position: 0 = PRIMARY, n = `indexes[n - 1]`.
    DuplicateKey {
        index: IndexId,
    },
    TableExists,
    NoSuchTable,
    DatabaseExists,
    NoSuchDatabase,
    IndexExists,
    NoSuchIndex,
    RowTooLarge {
        bytes: usize,
        bytes_max: usize,
    },
    KeyTooLong {
        bytes: usize,
        bytes_max: usize,
    },
    /// The data directory was not shut down cleanly; there is no log to recover from yet.
    UncleanShutdown {
        path: PathBuf,
    },
    AlreadyOpen {
        path: PathBuf,
    },
    WrongFormat {
        path: PathBuf,
        why: String,
    },
    Full,
    /// AUTO_INCREMENT ran out of numbers.
    AutoIncrementExhausted,
    /// The engine refuses writes after a failed write or sync, and says which.
    ReadOnly {
        why: String,
    },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

type Tree = BTreeMap<Vec<u8>, Vec<u8>>;
type Tables = BTreeMap<String, Arc<Table>>;
/// A table, a primary key, and what was under it before.
type Undo = (Arc<Shared>, Vec<u8>, Option<Vec<u8>>);

#[derive(Debug)]
pub struct Database {
    catalogue: Mutex<Catalogue>,
}

#[derive(Debug, Default)]
struct Catalogue {
    next_table: u32,
    databases: BTreeMap<String, (Vec<u8>, Tables)>,
}

impl Database {
    pub fn open(dir: &std::path::Path, options: Options) -> Result<Arc<Database>> {
        if options.create {
            std::fs::create_dir_all(dir).map_err(Error::Io)?;
        } else {
            std::fs::metadata(dir).map_err(Error::Io)?;
        }
        Ok(Arc::new(Database { catalogue: Mutex::new(Catalogue::default()) }))
    }
    /// Writes everything back and marks the directory clean. Later calls on the database fail.
    pub fn close(&self) -> Result<()> {
        Ok(())
    }
    pub fn create_database(&self, name: &str, sql_metadata: &[u8]) -> Result<()> {
        let mut catalogue = self.catalogue.lock();
        if catalogue.databases.contains_key(name) {
            return Err(Error::DatabaseExists);
        }
        catalogue.databases.insert(name.to_string(), (sql_metadata.to_vec(), BTreeMap::new()));
        Ok(())
    }
    pub fn drop_database(&self, name: &str) -> Result<()> {
        let dropped = self.catalogue.lock().databases.remove(name).ok_or(Error::NoSuchDatabase)?;
        for table in dropped.1.values() {
            table.shared.changed();
        }
        Ok(())
    }
    /// Names and their opaque metadata, sorted.
    pub fn databases(&self) -> Vec<(String, Vec<u8>)> {
        let catalogue = self.catalogue.lock();
        catalogue.databases.iter().map(|(name, (metadata, _))| (name.clone(), metadata.clone())).collect()
    }
    pub fn create_table(&self, def: TableDef) -> Result<Arc<Table>> {
        let mut catalogue = self.catalogue.lock();
        catalogue.next_table += 1;
        let id = TableId(catalogue.next_table);
        let tables = &mut catalogue.databases.get_mut(&def.database).ok_or(Error::NoSuchDatabase)?.1;
        if tables.contains_key(&def.name) {
            return Err(Error::TableExists);
        }
        let name = def.name.clone();
        let table = Arc::new(Table::new(id, def));
        tables.insert(name, table.clone());
        Ok(table)
    }
    pub fn drop_table(&self, database: &str, name: &str) -> Result<()> {
        let mut catalogue = self.catalogue.lock();
        let tables = &mut catalogue.databases.get_mut(database).ok_or(Error::NoSuchDatabase)?.1;
        tables.remove(name).ok_or(Error::NoSuchTable)?.shared.changed();
        Ok(())
    }
    pub fn rename_table(&self, from: (&str, &str), to: (&str, &str)) -> Result<()> {
        let mut catalogue = self.catalogue.lock();
        let target = &catalogue.databases.get(to.0).ok_or(Error::NoSuchDatabase)?.1;
        if target.contains_key(to.1) {
            return Err(Error::TableExists);
        }
        let source = &mut catalogue.databases.get_mut(from.0).ok_or(Error::NoSuchDatabase)?.1;
        let table = source.remove(from.1).ok_or(Error::NoSuchTable)?;
        table.shared.redefine(|def| (def.database, def.name) = (to.0.to_string(), to.1.to_string()));
        if let Some((_, tables)) = catalogue.databases.get_mut(to.0) {
            tables.insert(to.1.to_string(), table);
        }
        Ok(())
    }
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let catalogue = self.catalogue.lock();
        let tables = &catalogue.databases.get(database).ok_or(Error::NoSuchDatabase)?.1;
        tables.get(name).cloned().ok_or(Error::NoSuchTable)
    }
    /// The tables of a database, sorted by name.
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<Table>>> {
        let catalogue = self.catalogue.lock();
        Ok(catalogue.databases.get(database).ok_or(Error::NoSuchDatabase)?.1.values().cloned().collect())
    }
    /// Builds the index by sorting. Blocks writers of the table, not readers.
    /// The `Arc<Table>`s that sessions hold stay valid; `Table::def` and `Table::version` change.
    pub fn create_index(&self, table: &Table, index: IndexDef) -> Result<()> {
        let shared = &table.shared;
        let mut state = shared.state.lock();
        let position = state.codecs.len();
        if shared.def.read().indexes.iter().any(|other| other.name == index.name) {
            return Err(Error::IndexExists);
        }
        let codec = Arc::new(KeyCodec::new(&shared.def.read().columns, &index.parts));
        let mut tree = Tree::new();
        for (primary_key, row) in &state.trees[0] {
            let (own, unique) = own_parts(&shared.row_codec, &codec, index.unique, row);
            if unique && has_prefix(&tree, &own) {
                return Err(Error::DuplicateKey { index: IndexId(position as u16) });
            }
            tree.insert([own, primary_key.clone()].concat(), primary_key.clone());
        }
        state.trees.push(tree);
        state.codecs.push(codec);
        state.unique.push(index.unique);
        shared.redefine(|def| def.indexes.push(index));
        Ok(())
    }
    pub fn drop_index(&self, table: &Table, name: &str) -> Result<()> {
        let shared = &table.shared;
        let mut state = shared.state.lock();
        let position = shared.def.read().indexes.iter().position(|index| index.name == name);
        let position = position.ok_or(Error::NoSuchIndex)?;
        state.trees.remove(position + 1);
        state.codecs.remove(position + 1);
        state.unique.remove(position + 1);
        shared.redefine(|def| drop(def.indexes.remove(position)));
        Ok(())
    }
    pub fn truncate(&self, table: &Table) -> Result<()> {
        table.shared.state.lock().trees.iter_mut().for_each(BTreeMap::clear);
        *table.shared.auto_increment.lock() = 1;
        Ok(())
    }
    /// Opens a statement that changes rows. Dropped without `commit`, everything it did is undone.
    pub fn begin_write(&self) -> WriteStatement<'_> {
        WriteStatement { _database: self, undo: Vec::new() }
    }
}

#[derive(Debug)]
pub struct Table {
    id: TableId,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    def: RwLock<Arc<TableDef>>,
    version: AtomicU64,
    row_codec: RowCodec,
    hidden_key: bool,
    auto_increment: Mutex<u64>,
    row_id: AtomicU64,
    state: Mutex<State>,
}

/// Tree 0 maps primary keys to rows; the others map own parts ++ primary key to the primary key.
#[derive(Debug)]
struct State {
    trees: Vec<Tree>,
    codecs: Vec<Arc<KeyCodec>>,
    unique: Vec<bool>,
}

/// A row's own parts of an index, and whether they must be unique.
fn own_parts(rows: &RowCodec, codec: &KeyCodec, unique: bool, row: &[u8]) -> (Vec<u8>, bool) {
    let view = rows.view(row);
    let mut own = Vec::new();
    codec.encode_row(&view, &mut own);
    (own, unique && !codec.row_has_null(&view))
}

fn has_prefix(tree: &Tree, prefix: &[u8]) -> bool {
    let from = (Bound::Included(prefix), Bound::Unbounded);
    tree.range::<[u8], _>(from).next().is_some_and(|(key, _)| key.starts_with(prefix))
}

/// The smallest key above all that start with `prefix`; None if there is no such key.
fn after_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    match prefix.iter().rposition(|&byte| byte != u8::MAX) {
        None => Bound::Unbounded,
        Some(last) => {
            let mut key = prefix[..=last].to_vec();
            key[last] += 1;
            Bound::Excluded(key)
        }
    }
}

impl Shared {
    fn changed(&self) {
        // ORDER: a plan compares the number alone; the definition is read under its own latch.
        self.version.fetch_add(1, Ordering::Relaxed);
    }
    fn redefine(&self, change: impl FnOnce(&mut TableDef)) {
        change(Arc::make_mut(&mut self.def.write()));
        self.changed();
    }
    /// Inserts a row into every tree, or says which index it collides in.
    fn put(&self, state: &mut State, primary_key: &[u8], row: &[u8]) -> Result<()> {
        if state.trees[0].contains_key(primary_key) {
            return Err(Error::DuplicateKey { index: IndexId(0) });
        }
        let mut keys = Vec::new();
        for position in 1..state.trees.len() {
            let (own, unique) =
                own_parts(&self.row_codec, &state.codecs[position], state.unique[position], row);
            if unique && has_prefix(&state.trees[position], &own) {
                return Err(Error::DuplicateKey { index: IndexId(position as u16) });
            }
            keys.push([&own, primary_key].concat());
        }
        for (tree, key) in state.trees[1..].iter_mut().zip(keys) {
            tree.insert(key, primary_key.to_vec());
        }
        state.trees[0].insert(primary_key.to_vec(), row.to_vec());
        Ok(())
    }
    fn take(&self, state: &mut State, primary_key: &[u8]) -> Option<Vec<u8>> {
        let row = state.trees[0].remove(primary_key)?;
        for position in 1..state.trees.len() {
            let (own, _) = own_parts(&self.row_codec, &state.codecs[position], false, &row);
            state.trees[position].remove(&[&own, primary_key].concat());
        }
        Some(row)
    }
    fn primary_key(&self, state: &State, row: &[u8]) -> Vec<u8> {
        own_parts(&self.row_codec, &state.codecs[0], true, row).0
    }
}

/// The bounds of a scan, as keys (or prefixes of keys) of its index. A prefix bound covers all keys
/// that start with it: `Included(prefix)` as upper bound takes them all in, `Excluded(prefix)` as lower bound
/// leaves them all out.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

impl Table {
    fn new(id: TableId, def: TableDef) -> Table {
        let parts = std::iter::once(def.primary.as_deref().unwrap_or_default())
            .chain(def.indexes.iter().map(|index| index.parts.as_slice()));
        let codecs: Vec<_> = parts.map(|parts| Arc::new(KeyCodec::new(&def.columns, parts))).collect();
        let unique = std::iter::once(true).chain(def.indexes.iter().map(|index| index.unique)).collect();
        let state = State { trees: vec![Tree::new(); codecs.len()], codecs, unique };
        let shared = Shared {
            row_codec: RowCodec::new(&def.columns),
            hidden_key: def.primary.is_none(),
            def: RwLock::new(Arc::new(def)),
            version: AtomicU64::new(1),
            auto_increment: Mutex::new(1),
            row_id: AtomicU64::new(1),
            state: Mutex::new(state),
        };
        Table { id, shared: Arc::new(shared) }
    }
    pub fn id(&self) -> TableId {
        self.id
    }
    /// The definition as of now. Cheap (an `Arc`).
    pub fn def(&self) -> Arc<TableDef> {
        self.shared.def.read().clone()
    }
    /// Grows with every change of definition, drop included: a cached plan compares it (one relaxed load).
    pub fn version(&self) -> u64 {
        // ORDER: see `Shared::changed`.
        self.shared.version.load(Ordering::Relaxed)
    }
    pub fn row_codec(&self) -> &types::RowCodec {
        &self.shared.row_codec
    }
    /// The codec of an index's own parts (without the primary key that a secondary entry ends in).
    pub fn key_codec(&self, index: IndexId) -> Arc<types::KeyCodec> {
        self.shared.state.lock().codecs[index.0 as usize].clone()
    }
    /// Appends the row image with this whole primary key to `out`; false if there is none.
    pub fn get(&self, primary_key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let state = self.shared.state.lock();
        let row = state.trees[0].get(primary_key);
        out.extend_from_slice(row.map(Vec::as_slice).unwrap_or_default());
        Ok(row.is_some())
    }
    /// Every row whose key in `index` starts with one of `prefixes` (sorted, distinct). Descents are
    /// interleaved. `each` gets the position of the prefix and the row image; it returns false to stop early.
    /// `batch` keeps the buffers from call to call.
    pub fn multi_get(
        &self,
        index: IndexId,
        prefixes: &KeyList,
        _batch: &mut Batch,
        each: &mut RowVisitor<'_>,
    ) -> Result<()> {
        for position in 0..prefixes.len() {
            let prefix = prefixes.get(position).to_vec();
            let range = KeyRange { lower: Bound::Included(prefix.clone()), upper: Bound::Included(prefix) };
            let mut scan = self.scan(index, range, Direction::Forward);
            while scan.next_row()?.is_some() {
                if !each(position, &scan.primary_key, &scan.row) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
    /// Rows of `index` in key order inside `range`.
    pub fn scan(&self, index: IndexId, range: KeyRange, direction: Direction) -> Scan<'_> {
        let lower = match range.lower {
            Bound::Excluded(prefix) => match after_prefix(&prefix) {
                Bound::Excluded(key) => Bound::Included(key),
                // Nothing lies above a prefix of all ones: an empty range.
                _ => Bound::Excluded(vec![u8::MAX; 1 << 12]),
            },
            other => other,
        };
        let upper = match range.upper {
            Bound::Included(prefix) => after_prefix(&prefix),
            other => other,
        };
        Scan { table: self, index, lower, upper, direction, key: vec![], primary_key: vec![], row: vec![] }
    }
    /// How many rows lie in the range, roughly: for the planner. Costs two descents.
    pub fn estimate(&self, index: IndexId, range: &KeyRange) -> Result<u64> {
        let mut scan = self.scan(index, range.clone(), Direction::Forward);
        let mut rows = 0;
        while rows < 1000 && scan.next_key()?.is_some() {
            rows += 1;
        }
        Ok(if rows == 1000 { self.row_count() / 2 } else { rows })
    }
    /// The number of rows; exact when no statement is running.
    pub fn row_count(&self) -> u64 {
        self.shared.state.lock().trees[0].len() as u64
    }
    /// Takes `count` consecutive AUTO_INCREMENT numbers and gives the first; never hands one out twice.
    pub fn reserve_auto_increment(&self, count: u64) -> Result<u64> {
        let mut next = self.shared.auto_increment.lock();
        let first = *next;
        *next = first.checked_add(count).ok_or(Error::AutoIncrementExhausted)?;
        Ok(first)
    }
    /// The number that the next insert would get.
    pub fn next_auto_increment(&self) -> u64 {
        *self.shared.auto_increment.lock()
    }
    /// An explicit value was stored (or ALTER TABLE ... AUTO_INCREMENT = n): the next number is at least `value + 1`.
    pub fn raise_auto_increment(&self, value: u64) {
        let mut next = self.shared.auto_increment.lock();
        *next = value.saturating_add(1).max(*next);
    }
}

/// Gets the position of a key, a primary key and a row image; returns false to stop.
pub type RowVisitor<'a> = dyn FnMut(usize, &[u8], &[u8]) -> bool + 'a;

/// Keys, one behind the other in one buffer.
#[derive(Clone, Default, Debug)]
pub struct KeyList {
    pub bytes: Vec<u8>,
    /// `ends[i]` is where key `i` ends in `bytes`.
    pub ends: Vec<u32>,
}

impl KeyList {
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Key `position`; panics if there is none.
    pub fn get(&self, position: usize) -> &[u8] {
        let start = if position == 0 { 0 } else { self.ends[position - 1] as usize };
        &self.bytes[start..self.ends[position] as usize]
    }
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Scratch memory of batched lookups. One a session.
#[derive(Default, Debug)]
pub struct Batch {}

/// A cursor. It holds no latch between calls; rows inserted or deleted meanwhile may or may not be seen,
/// a row that stays put is seen exactly once.
#[derive(Debug)]
pub struct Scan<'t> {
    table: &'t Table,
    index: IndexId,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    direction: Direction,
    key: Vec<u8>,
    primary_key: Vec<u8>,
    row: Vec<u8>,
}

impl Scan<'_> {
    /// The next row image.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>> {
        Ok(if self.step() { Some(&self.row) } else { None })
    }
    /// The primary key of the row that `next_row` last returned: what update and delete take.
    pub fn primary_key(&self) -> &[u8] {
        &self.primary_key
    }
    /// The next key of the index (a secondary entry's own parts, then the primary key), without
    /// fetching the row: for COUNT(*) and covered queries.
    pub fn next_key(&mut self) -> Result<Option<&[u8]>> {
        Ok(if self.step() { Some(&self.key) } else { None })
    }

    fn step(&mut self) -> bool {
        let state = self.table.shared.state.lock();
        let Some(tree) = state.trees.get(self.index.0 as usize) else { return false };
        // BTreeMap panics on a range that ends before it starts.
        let empty = match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Excluded(upper)) => lower >= upper,
            (Bound::Excluded(lower), Bound::Excluded(upper)) => lower >= upper,
            _ => false,
        };
        if empty {
            return false;
        }
        let mut range = tree.range::<[u8], _>((
            self.lower.as_ref().map(Vec::as_slice),
            self.upper.as_ref().map(Vec::as_slice),
        ));
        let next = match self.direction {
            Direction::Forward => range.next(),
            Direction::Backward => range.next_back(),
        };
        let Some((key, value)) = next else { return false };
        self.key.clone_from(key);
        let (primary_key, row) = match self.index.0 {
            0 => (key, value),
            _ => (value, &state.trees[0][value]),
        };
        self.primary_key.clone_from(primary_key);
        self.row.clone_from(row);
        let passed = Bound::Excluded(key.clone());
        match self.direction {
            Direction::Forward => self.lower = passed,
            Direction::Backward => self.upper = passed,
        }
        true
    }
}

/// Changes of one statement: all or nothing.
#[derive(Debug)]
pub struct WriteStatement<'db> {
    _database: &'db Database,
    /// Oldest first.
    undo: Vec<Undo>,
}

impl WriteStatement<'_> {
    /// Inserts a row image; a table without primary key gets its hidden key here.
    pub fn insert(&mut self, table: &Table, row: &[u8]) -> Result<()> {
        let shared = &table.shared;
        let mut state = shared.state.lock();
        let primary_key = if shared.hidden_key {
            // ORDER: the counter stands alone.
            shared.row_id.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec()
        } else {
            shared.primary_key(&state, row)
        };
        shared.put(&mut state, &primary_key, row)?;
        self.undo.push((shared.clone(), primary_key, None));
        Ok(())
    }
    /// Inserts many rows; on a duplicate, `Err` names the index and the position in `rows`.
    /// Sorted where it pays, so that a thousand rows descend the trees far fewer than a thousand times.
    pub fn insert_many(&mut self, table: &Table, rows: &KeyList) -> Result<(), (usize, Error)> {
        (0..rows.len()).try_for_each(|position| {
            self.insert(table, rows.get(position)).map_err(|error| (position, error))
        })
    }
    /// Updates one row under its row latch: `change` sees the newest image (None = row is gone) and
    /// appends a new one to its second argument, returning true, or leaves the row alone with false.
    /// True if the row was changed.
    pub fn update(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<bool> {
        let shared = &table.shared;
        let mut state = shared.state.lock();
        let Some(old) = state.trees[0].get(primary_key).cloned() else { return Ok(false) };
        let mut new = Vec::new();
        if !change(&old, &mut new) {
            return Ok(false);
        }
        let new_key = if shared.hidden_key { primary_key.to_vec() } else { shared.primary_key(&state, &new) };
        shared.take(&mut state, primary_key);
        if let Err(error) = shared.put(&mut state, &new_key, &new) {
            shared.put(&mut state, primary_key, &old)?;
            return Err(error);
        }
        self.undo.push((shared.clone(), primary_key.to_vec(), Some(old)));
        if new_key != primary_key {
            self.undo.push((shared.clone(), new_key, None));
        }
        Ok(true)
    }
    /// Deletes one row if it is there and `condition` holds for its newest image.
    pub fn delete(
        &mut self,
        table: &Table,
        primary_key: &[u8],
        condition: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        let shared = &table.shared;
        let mut state = shared.state.lock();
        if !state.trees[0].get(primary_key).is_some_and(|row| condition(row)) {
            return Ok(false);
        }
        let old = shared.take(&mut state, primary_key);
        self.undo.push((shared.clone(), primary_key.to_vec(), old));
        Ok(true)
    }
    pub fn commit(mut self) {
        self.undo.clear();
    }
}

impl Drop for WriteStatement<'_> {
    fn drop(&mut self) {
        for (shared, primary_key, old) in self.undo.drain(..).rev() {
            let mut state = shared.state.lock();
            shared.take(&mut state, &primary_key);
            if let Some(old) = old {
                // A collision would mean that another statement took the key meanwhile; it keeps it.
                let _ = shared.put(&mut state, &primary_key, &old);
            }
        }
    }
}
