//! Helpers of the engine's own tests.
//!
//! `LATCHWORK_TEST_CACHE=smallest` runs the whole suite with the smallest cache that can be configured,
//! `LATCHWORK_TEST_ROW_TIER=first` with a tiny row tier that is asked before any page.

use crate::definition::{CacheOptions, FlushLog, HitPath, IndexDef, LogOptions, Options, TableDef};
use crate::journal::Journal;
use crate::space::tablespace::{Home, Tablespace};
use crate::tree::Tree;
use base::FileId;
use base::sync::Arc;
use pagecache::{CacheConfig, Caches, FileFormat, WriteBack};
use std::path::Path;
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};
use vfs::{Create, MemVfs, Vfs};

/// How many cases a property is tried with: `default`, or what PROPTEST_CASES says.
pub(crate) fn cases(default: u32) -> proptest::test_runner::Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    proptest::test_runner::Config { cases, ..Default::default() }
}

/// How large a test's cache is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CacheSize {
    Smallest,
    Normal,
}

impl CacheSize {
    /// What the environment asks for.
    pub(crate) fn from_environment() -> CacheSize {
        match std::env::var("LATCHWORK_TEST_CACHE").as_deref() {
            Ok("smallest") => CacheSize::Smallest,
            _ => CacheSize::Normal,
        }
    }

    fn bytes(self) -> usize {
        match self {
            // Raised to the fewest frames there can be. In models these hold no split, which would look for
            // frames for ever.
            CacheSize::Smallest => 1,
            CacheSize::Normal => 8 << 20,
        }
    }
}

/// Every combination of hit path and cache size that a test is to hold for.
pub(crate) fn matrix() -> Vec<(HitPath, CacheSize)> {
    let mut all = Vec::new();
    for size in [CacheSize::Normal, CacheSize::Smallest] {
        for path in [HitPath::Optimistic, HitPath::Locked] {
            if CacheSize::from_environment() == CacheSize::Normal || size == CacheSize::Smallest {
                all.push((path, size));
            }
        }
    }
    all
}

/// An empty tree in memory.
pub(crate) fn tree(page_size: usize, hit_path: HitPath, size: CacheSize) -> Tree {
    tree_of(page_size, hit_path, size, false)
}

/// The same, with whole keys in its pages or not.
pub(crate) fn tree_of(page_size: usize, hit_path: HitPath, size: CacheSize, whole_keys: bool) -> Tree {
    let config = CacheConfig {
        hit_path,
        segments: 4,
        write_back: WriteBack::AtEvictionOnly,
        ..CacheConfig::new(size.bytes(), page_size)
    };
    Tree::create(tablespace(config), 3, None, whole_keys).unwrap()
}

/// An empty file in memory, in caches of its own.
pub(crate) fn tablespace(config: CacheConfig) -> Arc<Tablespace> {
    let page_size = config.page_size;
    let caches = Caches::new(config).unwrap();
    let home = Home {
        caches: &caches,
        cache: caches.default_cache(),
        journal: &journal(),
        format: FileFormat::plain(page_size),
    };
    let path = Path::new("T7.lwt");
    let file = MemVfs::new().open(path, Create::New).unwrap();
    Tablespace::create(home, FileId(7), path, file).unwrap()
}

/// Settings of a small log.
pub(crate) const LOG: LogOptions =
    LogOptions { flush: FlushLog::AtCommit, file_size: 64 << 10, buffer_size: 64 << 10, capacity: 512 << 10 };

/// A log in memory.
pub(crate) fn journal() -> Arc<Journal> {
    Arc::new(Journal::create(Arc::new(MemVfs::new()), Path::new("data"), &LOG).unwrap())
}

/// Whether `LATCHWORK_TEST_ROW_TIER=first` asks for a tiny row tier that is asked first, and filled by every
/// lookup.
fn row_tier_from_environment() -> bool {
    std::env::var("LATCHWORK_TEST_ROW_TIER").as_deref() == Ok("first")
}

/// Bytes of a row tier that has to evict.
pub(crate) const TINY_ROW_TIER: usize = 300 << 10;

/// Options for a database on `vfs`, made if it is not there.
pub(crate) fn options(vfs: Arc<dyn Vfs>, page_size: usize, hit_path: HitPath, size: CacheSize) -> Options {
    Options {
        cache: CacheOptions { size_bytes: size.bytes(), hit_path, ..CacheOptions::default() },
        log: LOG,
        row_tier_bytes: Some(if row_tier_from_environment() { TINY_ROW_TIER } else { 0 }),
        row_tier_first: row_tier_from_environment(),
        page_size,
        create: true,
        vfs,
        ..Options::default()
    }
}

pub(crate) fn column(name: &str, column_type: ColumnType, nullable: bool) -> Column {
    Column { name: name.to_string(), column_type, nullable }
}

pub(crate) fn part(column: usize) -> KeyPart {
    KeyPart { column, prefix_chars: None, descending: false }
}

pub(crate) fn int() -> ColumnType {
    ColumnType::Int { bytes: 4, unsigned: false }
}

/// `t (id INT PRIMARY KEY, k INT NOT NULL, u INT NULL, c BLOB, KEY k (k), UNIQUE KEY u (u))` in database `d`.
pub(crate) fn table_def() -> TableDef {
    let index =
        |name: &str, unique, column| IndexDef { name: name.into(), unique, parts: vec![part(column)] };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", int(), false),
            column("k", int(), false),
            column("u", int(), true),
            column("c", ColumnType::Blob { bytes_max: u32::MAX }, false),
        ],
        primary: Some(vec![part(0)]),
        indexes: vec![index("k", false, 1), index("u", true, 2)],
        auto_increment: Some(0),
        sql_metadata: b"opaque".to_vec(),
        ..TableDef::default()
    }
}

/// As [`table_def`], of fixed length throughout: `c CHAR(120)`.
pub(crate) fn fixed_table_def() -> TableDef {
    let mut def = table_def();
    def.columns[3].column_type = ColumnType::Char { chars: 120, collation: Collation::Utf8mb4Bin };
    def
}

/// A row of [`table_def`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub id: i32,
    pub k: i32,
    pub u: Option<i32>,
    pub c: Vec<u8>,
}

impl Row {
    pub(crate) fn image(&self, table: &crate::Table) -> Vec<u8> {
        let mut image = Vec::new();
        let u = self.u.map_or(ValueRef::Null, |u| ValueRef::Int(u.into()));
        let values =
            [ValueRef::Int(self.id.into()), ValueRef::Int(self.k.into()), u, ValueRef::Binary(&self.c)];
        table.row_codec().encode(&values, &mut image);
        image
    }

    pub(crate) fn read(table: &crate::Table, image: &[u8]) -> Row {
        let row = table.row_codec().view(image);
        let int = |column| match row.get(column) {
            ValueRef::Int(value) => Some(value as i32),
            ValueRef::Null => None,
            other => panic!("no integer: {other:?}"),
        };
        let c = match row.get(3) {
            ValueRef::Binary(bytes) | ValueRef::Text(bytes) => bytes.to_vec(),
            other => panic!("no bytes: {other:?}"),
        };
        Row { id: int(0).unwrap(), k: int(1).unwrap(), u: int(2), c }
    }
}

/// The key of an INT NOT NULL part.
pub(crate) fn int_key(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}
