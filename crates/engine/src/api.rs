//! The engine's public shape. A stand-in to build against until the trees are in place.

use base::{IndexId, TableId};
use std::path::PathBuf;
use std::sync::Arc;
use types::{Column, KeyPart};

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

#[derive(Debug)]
pub struct Database {}

impl Database {
    pub fn open(_dir: &std::path::Path, _options: Options) -> Result<Arc<Database>> {
        todo!()
    }
    /// Writes everything back and marks the directory clean. Later calls on the database fail.
    pub fn close(&self) -> Result<()> {
        todo!()
    }
    pub fn create_database(&self, _name: &str, _sql_metadata: &[u8]) -> Result<()> {
        todo!()
    }
    pub fn drop_database(&self, _name: &str) -> Result<()> {
        todo!()
    }
    /// Names and their opaque metadata, sorted.
    pub fn databases(&self) -> Vec<(String, Vec<u8>)> {
        todo!()
    }
    pub fn create_table(&self, _def: TableDef) -> Result<Arc<Table>> {
        todo!()
    }
    pub fn drop_table(&self, _database: &str, _name: &str) -> Result<()> {
        todo!()
    }
    pub fn rename_table(&self, _from: (&str, &str), _to: (&str, &str)) -> Result<()> {
        todo!()
    }
    pub fn table(&self, _database: &str, _name: &str) -> Result<Arc<Table>> {
        todo!()
    }
    /// The tables of a database, sorted by name.
    pub fn tables(&self, _database: &str) -> Result<Vec<Arc<Table>>> {
        todo!()
    }
    /// Builds the index by sorting. Blocks writers of the table, not readers.
    /// The `Arc<Table>`s that sessions hold stay valid; `Table::def` and `Table::version` change.
    pub fn create_index(&self, _table: &Table, _index: IndexDef) -> Result<()> {
        todo!()
    }
    pub fn drop_index(&self, _table: &Table, _name: &str) -> Result<()> {
        todo!()
    }
    pub fn truncate(&self, _table: &Table) -> Result<()> {
        todo!()
    }
    /// Opens a statement that changes rows. Dropped without `commit`, everything it did is undone.
    pub fn begin_write(&self) -> WriteStatement<'_> {
        todo!()
    }
}

#[derive(Debug)]
pub struct Table {}

/// The bounds of a scan, as keys (or prefixes of keys) of its index. A prefix bound covers all keys
/// that start with it: `Included(prefix)` as upper bound takes them all in, `Excluded(prefix)` as lower bound
/// leaves them all out.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lower: std::ops::Bound<Vec<u8>>,
    pub upper: std::ops::Bound<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

impl Table {
    pub fn id(&self) -> TableId {
        todo!()
    }
    /// The definition as of now. Cheap (an `Arc`).
    pub fn def(&self) -> Arc<TableDef> {
        todo!()
    }
    /// Grows with every change of definition, drop included: a cached plan compares it (one relaxed load).
    pub fn version(&self) -> u64 {
        todo!()
    }
    pub fn row_codec(&self) -> &types::RowCodec {
        todo!()
    }
    /// The codec of an index's own parts (without the primary key that a secondary entry ends in).
    pub fn key_codec(&self, _index: IndexId) -> Arc<types::KeyCodec> {
        todo!()
    }
    /// Appends the row image with this whole primary key to `out`; false if there is none.
    pub fn get(&self, _primary_key: &[u8], _out: &mut Vec<u8>) -> Result<bool> {
        todo!()
    }
    /// Every row whose key in `index` starts with one of `prefixes` (sorted, distinct). Descents are
    /// interleaved. `each` gets the position of the prefix and the row image; it returns false to stop early.
    /// `batch` keeps the buffers from call to call.
    pub fn multi_get(
        &self,
        _index: IndexId,
        _prefixes: &KeyList,
        _batch: &mut Batch,
        _each: &mut RowVisitor<'_>,
    ) -> Result<()> {
        todo!()
    }
    /// Rows of `index` in key order inside `range`.
    pub fn scan(&self, _index: IndexId, _range: KeyRange, _direction: Direction) -> Scan<'_> {
        todo!()
    }
    /// How many rows lie in the range, roughly: for the planner. Costs two descents.
    pub fn estimate(&self, _index: IndexId, _range: &KeyRange) -> Result<u64> {
        todo!()
    }
    /// The number of rows; exact when no statement is running.
    pub fn row_count(&self) -> u64 {
        todo!()
    }
    /// Takes `count` consecutive AUTO_INCREMENT numbers and gives the first; never hands one out twice.
    pub fn reserve_auto_increment(&self, _count: u64) -> Result<u64> {
        todo!()
    }
    /// The number that the next insert would get.
    pub fn next_auto_increment(&self) -> u64 {
        todo!()
    }
    /// An explicit value was stored (or ALTER TABLE ... AUTO_INCREMENT = n): the next number is at least `value + 1`.
    pub fn raise_auto_increment(&self, _value: u64) {
        todo!()
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

/// Scratch memory of batched lookups. One a session.
#[derive(Default, Debug)]
pub struct Batch {}

/// A cursor. It holds no latch between calls; rows inserted or deleted meanwhile may or may not be seen,
/// a row that stays put is seen exactly once.
#[derive(Debug)]
pub struct Scan<'t> {
    _table: &'t Table,
}

impl Scan<'_> {
    /// The next row image.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>> {
        todo!()
    }
    /// The primary key of the row that `next_row` last returned: what update and delete take.
    pub fn primary_key(&self) -> &[u8] {
        todo!()
    }
    /// The next key of the index (a secondary entry's own parts, then the primary key), without
    /// fetching the row: for COUNT(*) and covered queries.
    pub fn next_key(&mut self) -> Result<Option<&[u8]>> {
        todo!()
    }
}

/// Changes of one statement: all or nothing.
#[derive(Debug)]
pub struct WriteStatement<'db> {
    _database: &'db Database,
}

impl WriteStatement<'_> {
    /// Inserts a row image; a table without primary key gets its hidden key here.
    pub fn insert(&mut self, _table: &Table, _row: &[u8]) -> Result<()> {
        todo!()
    }
    /// Inserts many rows; on a duplicate, `Err` names the index and the position in `rows`.
    /// Sorted where it pays, so that a thousand rows descend the trees far fewer than a thousand times.
    pub fn insert_many(&mut self, _table: &Table, _rows: &KeyList) -> Result<(), (usize, Error)> {
        todo!()
    }
    /// Updates one row under its row latch: `change` sees the newest image (None = row is gone) and
    /// appends a new one to its second argument, returning true, or leaves the row alone with false.
    /// True if the row was changed.
    pub fn update(
        &mut self,
        _table: &Table,
        _primary_key: &[u8],
        _change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<bool> {
        todo!()
    }
    /// Deletes one row if it is there and `condition` holds for its newest image.
    pub fn delete(
        &mut self,
        _table: &Table,
        _primary_key: &[u8],
        _condition: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        todo!()
    }
    pub fn commit(self) {
        todo!()
    }
}
