//! `flush_method` reaches the files, and nothing else changes by it.
#![cfg(not(feature = "shuttle"))]

use base::sync::Arc;
use latchwork_engine::{
    CacheOptions, Database, FlushMethod, IndexDef, LogOptions, Options, Reader, Table, TableDef, WriteBack,
    check,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{Fault, FaultyVfs, MemVfs, Operation, OsVfs, Vfs};

const O_DIRECT: u32 = 0o40000;
const ROWS: i64 = 600;

fn options(flush_method: FlushMethod, page_size: usize, vfs: Arc<dyn Vfs>) -> Options {
    Options {
        // The smallest cache: pages come and go.
        cache: CacheOptions {
            size_bytes: 1,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheOptions::default()
        },
        log: LogOptions { file_size: 1 << 20, capacity: 4 << 20, ..LogOptions::default() },
        flush_method,
        page_size,
        create: true,
        vfs,
        ..Options::default()
    }
}

fn table_def() -> TableDef {
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", int()),
            column("k", int()),
            column("c", ColumnType::Blob { bytes_max: u32::MAX }),
        ],
        primary: Some(vec![part(0)]),
        indexes: vec![],
        auto_increment: None,
        sql_metadata: Vec::new(),
        ..TableDef::default()
    }
}

/// Rows of all sizes, overflow pages among them.
fn content(id: i64) -> Vec<u8> {
    let len = if id % 50 == 0 { 70_000 } else { id as usize % 90 };
    vec![id as u8; len]
}

fn key(id: i64) -> [u8; 4] {
    (id as u32 ^ 1 << 31).to_be_bytes()
}

fn insert(database: &Database, table: &Table, ids: impl Iterator<Item = i64>) {
    let mut statement = database.begin_write().unwrap();
    for id in ids {
        let mut image = Vec::new();
        let row = [ValueRef::Int(id), ValueRef::Int(id % 7), ValueRef::Binary(&content(id))];
        table.row_codec().encode(&row, &mut image);
        statement.insert(table, &image).unwrap();
    }
    statement.commit().unwrap();
}

fn assert_has(table: &Table, ids: std::ops::Range<i64>) {
    for id in ids {
        let mut image = Vec::new();
        assert!(table.get(Reader::newest(), &key(id), &mut image).unwrap(), "row {id}");
        assert_eq!(table.row_codec().view(&image).get(2), ValueRef::Binary(&content(id)));
    }
}

/// For each open file below `dir`: whether it is one past the operating system's cache.
fn open_files(dir: &Path) -> BTreeMap<PathBuf, bool> {
    let dir = dir.canonicalize().unwrap();
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let entry = entry.unwrap();
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        let Ok(name) = target.strip_prefix(&dir) else { continue };
        let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(entry.file_name())).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        let is_direct = u32::from_str_radix(flags.trim(), 8).unwrap() & O_DIRECT != 0;
        files.insert(name.to_path_buf(), is_direct);
    }
    files
}

#[test]
fn pages_of_every_size_go_past_the_systems_cache_and_the_log_does_not() {
    for page_size in [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("data");
        let open =
            || Database::open(&dir, options(FlushMethod::ODirect, page_size, Arc::new(OsVfs))).unwrap();
        let database = open();
        assert_eq!(
            database.flush_method(),
            FlushMethod::ODirect,
            "this test needs a temporary folder whose file system takes O_DIRECT in blocks of {page_size}"
        );
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        insert(&database, &table, 0..ROWS / 2);
        let files = open_files(&dir);
        let of =
            |name: &str| files.iter().find(|(path, _)| path.starts_with(name)).map(|(_, direct)| *direct);
        assert_eq!(of("tables"), Some(true), "{files:?}");
        assert_eq!(of("catalogue.lwt"), Some(true), "{files:?}");
        assert_eq!(of("latchwork.doublewrite"), Some(true), "{files:?}");
        assert_eq!(of("log"), Some(false), "{files:?}");
        // Killed: what the cache had is redone from the log.
        drop((database, table));
        let database = open();
        let table = database.table("d", "t").unwrap();
        assert_has(&table, 0..ROWS / 2);
        insert(&database, &table, ROWS / 2..ROWS);
        let parts = vec![KeyPart { column: 1, prefix_chars: None, descending: false }];
        database.create_index(&table, IndexDef { name: "k".into(), unique: false, parts }).unwrap();
        let mut statement = database.begin_write().unwrap();
        for id in (0..ROWS).filter(|id| id % 3 == 0) {
            assert!(statement.delete(&table, &key(id), &mut |_| true).unwrap());
        }
        statement.commit().unwrap();
        database.checkpoint().unwrap();
        insert(&database, &table, (0..ROWS).filter(|id| id % 3 == 0));
        assert_has(&table, 0..ROWS);
        assert!(database.check().unwrap().is_clean());
        database.close().unwrap();
        drop((database, table));
        let report = check(&dir, Arc::new(OsVfs)).unwrap();
        assert!(report.is_clean() && report.rows == ROWS as u64, "{report}");
        // What one method wrote another reads.
        let database = Database::open(&dir, options(FlushMethod::Fsync, page_size, Arc::new(OsVfs))).unwrap();
        assert_has(&database.table("d", "t").unwrap(), 0..ROWS);
        assert!(open_files(&dir).values().all(|direct| !direct));
        database.close().unwrap();
    }
}

#[test]
fn a_page_torn_past_the_systems_cache_is_made_whole() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let faulty = FaultyVfs::new(Arc::new(OsVfs));
    let database =
        Database::open(&dir, options(FlushMethod::ODirect, 16 << 10, Arc::new(faulty.clone()))).unwrap();
    assert_eq!(database.flush_method(), FlushMethod::ODirect);
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    insert(&database, &table, 0..ROWS);
    database.checkpoint().unwrap();
    let name = std::fs::read_dir(dir.join("tables")).unwrap().next().unwrap().unwrap().file_name();
    let torn = Fault::Torn(std::io::ErrorKind::Other);
    faulty.faults().fail_file_from(Path::new(&name), Operation::Write, 1, torn);
    assert!(database.caches().flush_all().is_err());
    drop((database, table));
    let database = Database::open(&dir, options(FlushMethod::ODirect, 16 << 10, Arc::new(OsVfs))).unwrap();
    assert_has(&database.table("d", "t").unwrap(), 0..ROWS);
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
    database.close().unwrap();
}

#[test]
fn without_syncs_there_are_none_and_with_them_there_are() {
    for (flush_method, syncs) in [(FlushMethod::NoSync, false), (FlushMethod::Fsync, true)] {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let open = || {
            Database::open(Path::new("data"), options(flush_method, 4 << 10, Arc::new(vfs.clone()))).unwrap()
        };
        let database = open();
        assert_eq!(database.flush_method(), flush_method);
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        insert(&database, &table, 0..ROWS);
        database.checkpoint().unwrap();
        drop((database, table));
        let database = open();
        assert_has(&database.table("d", "t").unwrap(), 0..ROWS);
        database.close().unwrap();
        assert_eq!(vfs.faults().count(Operation::Sync) > 0, syncs, "{flush_method:?}");
        drop(database);
        assert!(check(Path::new("data"), Arc::new(vfs)).unwrap().is_clean());
    }
}

#[test]
fn a_file_system_that_cannot_go_past_a_cache_is_used_through_it() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = Database::open(Path::new("data"), options(FlushMethod::ODirect, 4 << 10, vfs)).unwrap();
    assert_eq!(database.flush_method(), FlushMethod::Fsync);
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    insert(&database, &table, 0..ROWS);
    assert_has(&table, 0..ROWS);
    database.close().unwrap();
}
