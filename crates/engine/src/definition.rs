//! What a caller tells the engine: how to open a directory, what a table looks like, what to scan.

use base::IndexId;
use base::sync::Arc;
use pagecache::{CacheConfig, WriteBack};
use std::ops::Bound;
use types::{Column, ColumnType, KeyCodec, KeyPart};
use vfs::{OsVfs, Vfs};

pub use base::sync::Implementation as LatchImplementation;
pub use pagecache::{HitPath, IoConfig as IoOptions};

/// How a data directory is opened.
#[derive(Clone, Debug)]
pub struct Options {
    pub cache: CacheOptions,
    pub log: LogOptions,
    pub io: IoOptions,
    pub flush_method: FlushMethod,
    /// Of the default cache's memory, how much is for rows whose pages are not in it (see crate `rowtier`),
    /// in bytes: 0 = none, `None` = as much as is of more use there than elsewhere.
    pub row_tier_bytes: Option<usize>,
    /// Ask the row tier before pages in memory, and keep every row that is looked up. For tests, which find
    /// faults of coherence this way.
    pub row_tier_first: bool,
    /// Bytes a page of tables that do not say: a power of two, 1 to 64 KiB. Fixed when the data directory is
    /// made.
    pub page_size: usize,
    /// How latches are made, in the whole process and from this opening on. `None`: as the process has
    /// chosen. Latches of another database that are made later follow it, too.
    pub latches: Option<LatchImplementation>,
    /// How many statements may run at a time, of those that sessions begin with `try_read` and `write`; 0 =
    /// any number.
    pub thread_concurrency: u32,
    /// How many files of pages may be open at a time. A table's file beyond that is opened again when a page
    /// is read or written. `None`: three quarters of the descriptors that the process may have now.
    pub open_files: Option<usize>,
    /// A start takes back transactions of up to so many changes that it finds unfinished. Larger ones it
    /// takes back behind the opening, while their rows are locked.
    pub taken_back_at_start_max: usize,
    /// Create the data directory if it is missing or empty.
    pub create: bool,
    /// Where the files are: the operating system's, memory, or one that fails on demand.
    pub vfs: Arc<dyn Vfs>,
}

impl Default for Options {
    /// 16 KiB pages, the cache's defaults with 128 MiB, the operating system's files; creates nothing.
    fn default() -> Options {
        Options {
            cache: CacheOptions::default(),
            log: LogOptions::default(),
            io: IoOptions::default(),
            flush_method: FlushMethod::Fsync,
            row_tier_bytes: None,
            row_tier_first: false,
            page_size: 16 << 10,
            latches: None,
            thread_concurrency: 0,
            open_files: None,
            taken_back_at_start_max: 10_000,
            create: false,
            vfs: Arc::new(OsVfs),
        }
    }
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
    /// Which threads write dirty pages, purge and take checkpoints; anything but `Background` is for tests.
    pub write_back: WriteBack,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        let config = CacheConfig::new(128 << 20, 16 << 10);
        CacheOptions {
            size_bytes: config.size_bytes,
            segments: config.segments,
            hit_path: config.hit_path,
            division_limit: config.division_limit,
            age_threshold: config.age_threshold,
            write_back: config.write_back,
        }
    }
}

/// The write-ahead log's settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogOptions {
    /// `flush_log_at_trx_commit`.
    pub flush: FlushLog,
    /// Bytes of one log file: a multiple of 4096.
    pub file_size: u64,
    /// Bytes of the log's buffer in memory: a power of two.
    pub buffer_size: usize,
    /// Bytes of log that recovery may have to read. Dirty pages are written out so that it stays below;
    /// statements wait only when that does not help.
    pub capacity: u64,
}

impl Default for LogOptions {
    /// Durable at commit; files of 16 MiB, a buffer of 4 MiB, 256 MiB in all.
    fn default() -> LogOptions {
        LogOptions {
            flush: FlushLog::AtCommit,
            file_size: 16 << 20,
            buffer_size: 4 << 20,
            capacity: 256 << 20,
        }
    }
}

/// How pages and log get to the device: the values of `flush_method`.
///
/// Whatever it is, the log goes through the operating system's cache, a write at a time, and so do the
/// scratch files of sorts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushMethod {
    /// Files of pages are written through the operating system's cache and synced. A page that this cache
    /// gave up may still be in that one, so that memory which the key cache does not have is of use; what the
    /// key cache has may be there twice.
    Fsync,
    /// Files of pages, and the doublewrite file, are read and written past the operating system's cache
    /// (`O_DIRECT`), and synced: the device may have a cache of its own, and the file's length is not in what
    /// is written. Where the file system cannot do it, [`FlushMethod::Fsync`] takes its place;
    /// [`Database::flush_method`](crate::Database::flush_method) tells.
    ODirect,
    /// Nothing is ever synced, neither pages nor log. A process that is killed loses nothing; a machine that
    /// stops may leave a directory that cannot be opened again, however long ago its last change was. For
    /// data that can be made again.
    NoSync,
}

/// When a statement's log is made durable: the values of `flush_log_at_trx_commit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FlushLog {
    /// 0: written and synced once a second; a stopped process loses up to that much.
    Lazily = 0,
    /// 1: synced before the statement is acknowledged; nothing acknowledged is lost.
    AtCommit = 1,
    /// 2: handed to the operating system before the statement is acknowledged, synced once a second; a
    /// stopped machine loses up to that much, a stopped process nothing.
    WriteAtCommit = 2,
}

impl FlushLog {
    pub(crate) fn from_u8(value: u8) -> FlushLog {
        match value {
            0 => FlushLog::Lazily,
            2 => FlushLog::WriteAtCommit,
            _ => FlushLog::AtCommit,
        }
    }
}

/// What CREATE TABLE asks for. Index 0 is the clustered one; without `primary` the engine
/// adds a hidden 8-byte row id as its key.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TableDef {
    pub database: String,
    pub name: String,
    pub columns: Vec<Column>,
    pub primary: Option<Vec<KeyPart>>,
    pub indexes: Vec<IndexDef>,
    /// The column that AUTO_INCREMENT fills.
    pub auto_increment: Option<usize>,
    /// Bytes a page: a power of two, 1 to 64 KiB. `None` = what the data directory was made with.
    pub page_size: Option<u32>,
    pub pack_keys: PackKeys,
    /// Pages are compressed on the device, and in memory while they are cold.
    pub compressed: bool,
    /// Opaque to the engine, kept in the catalogue: defaults, comments, the ENGINE= that was written.
    pub sql_metadata: Vec<u8>,
}

/// Strings of so many characters are packed by default.
const PACKED_STRING_MIN: u32 = 8;
/// The bytes of a key that its slot has.
const HEAD_BYTES: u8 = 4;

/// Whether pages keep what all their keys begin with only once: the values of `PACK_KEYS`. It counts for the
/// trees that are made from then on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum PackKeys {
    /// Where it saves much or makes searches faster: in indexes that begin with a string of eight characters
    /// or more, or with anything else of more than four bytes, whose slots would otherwise tell keys apart by
    /// bytes that are all the same.
    #[default]
    Default = 0,
    /// 0: nowhere.
    Never = 1,
    /// 1: everywhere.
    Always = 2,
}

impl TableDef {
    /// Whether the pages of an index (0 = clustered, n = `indexes[n - 1]`) leave out of their keys what all
    /// of them begin with.
    pub(crate) fn packs_keys(&self, index: usize) -> bool {
        let parts = match index.checked_sub(1) {
            None => self.primary.as_deref().unwrap_or(&[]),
            Some(secondary) => self.indexes[secondary].parts.as_slice(),
        };
        let first = parts.first().and_then(|part| self.columns.get(part.column));
        match self.pack_keys {
            PackKeys::Never => false,
            PackKeys::Always => true,
            PackKeys::Default => match first.map(|column| &column.column_type) {
                Some(
                    ColumnType::Char { chars: bytes, .. }
                    | ColumnType::Varchar { chars: bytes, .. }
                    | ColumnType::Text { bytes_max: bytes, .. }
                    | ColumnType::Binary { bytes }
                    | ColumnType::Varbinary { bytes }
                    | ColumnType::Blob { bytes_max: bytes },
                ) => *bytes >= PACKED_STRING_MIN,
                Some(
                    ColumnType::Int { bytes, .. }
                    | ColumnType::Enum { bytes, .. }
                    | ColumnType::Set { bytes, .. },
                ) => *bytes > HEAD_BYTES,
                Some(ColumnType::Float { .. } | ColumnType::Date | ColumnType::Year) => false,
                Some(_) | None => true,
            },
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct IndexDef {
    pub name: String,
    pub unique: bool,
    pub parts: Vec<KeyPart>,
}

/// The bounds of a scan, as keys (or prefixes of keys) of its index. A prefix bound covers all keys
/// that start with it: `Included(prefix)` as upper bound takes them all in, `Excluded(prefix)` as lower bound
/// leaves them all out.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// The keys that start with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { lower: Bound::Included(prefix.to_vec()), upper: Bound::Included(prefix.to_vec()) }
    }

    /// The range as a first key and the first key behind it (`None` = no bound). `None` if nothing can lie in
    /// it.
    pub(crate) fn to_half_open(&self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let start = match &self.lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(prefix) => prefix.clone(),
            Bound::Excluded(prefix) => key_behind_prefix(prefix)?,
        };
        let end = match &self.upper {
            Bound::Unbounded => None,
            Bound::Included(prefix) => key_behind_prefix(prefix),
            Bound::Excluded(prefix) => Some(prefix.clone()),
        };
        Some((start, end))
    }
}

/// The smallest key above all that start with `prefix`; `None` if there is no such key.
pub(crate) fn key_behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

/// Gets the position of a key, a primary key and a row image; returns false to stop.
pub type RowVisitor<'a> = dyn FnMut(usize, &[u8], &[u8]) -> bool + 'a;

/// Byte strings (keys, rows), one behind the other in one buffer.
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

/// How many rows and distinct keys a table had.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    pub rows: u64,
    /// By index: of its first part, of its first two, and so on, how many distinct values there were.
    pub distinct: Vec<Vec<u64>>,
}

impl Statistics {
    /// How many rows have the same values in the first `parts` parts of an index, on the average; `None` if
    /// there were no rows.
    pub fn rows_of_prefix(&self, index: IndexId, parts: usize) -> Option<f64> {
        let distinct = *self.distinct.get(usize::from(index.0))?.get(parts.checked_sub(1)?)?;
        (distinct > 0).then(|| self.rows as f64 / distinct as f64)
    }
}

/// The codec of each index, and whether it is unique, the clustered one first.
pub(crate) fn index_parts(def: &TableDef) -> impl Iterator<Item = (Arc<KeyCodec>, bool)> + '_ {
    let clustered = std::iter::once((def.primary.as_deref().unwrap_or(&[]), true));
    let secondary = def.indexes.iter().map(|index| (index.parts.as_slice(), index.unique));
    clustered.chain(secondary).map(|(parts, unique)| (Arc::new(KeyCodec::new(&def.columns, parts)), unique))
}
