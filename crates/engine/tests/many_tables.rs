//! Many tables: what is done with one of them does not cost more because the others are there.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::sync::Arc;
use latchwork_engine::{CacheOptions, Database, FlushMethod, Options, Reader, Table, TableDef, WriteBack};
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{MemVfs, Vfs};

const PAGE_SIZE: usize = 1 << 10;

fn options(vfs: Arc<dyn Vfs>, frames: usize) -> Options {
    Options {
        cache: CacheOptions {
            size_bytes: common::cache_bytes(frames * (PAGE_SIZE + 160)),
            write_back: WriteBack::AtEvictionOnly,
            ..CacheOptions::default()
        },
        row_tier_bytes: Some(0),
        page_size: PAGE_SIZE,
        create: true,
        vfs,
        ..Options::default()
    }
}

fn def(number: usize) -> TableDef {
    TableDef {
        database: "d".into(),
        name: format!("t{number}"),
        columns: vec![Column {
            name: "id".into(),
            column_type: ColumnType::Int { bytes: 4, unsigned: false },
            nullable: false,
        }],
        primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
        ..TableDef::default()
    }
}

fn insert(database: &Database, table: &Table, id: i64) {
    let mut image = Vec::new();
    table.row_codec().encode(&[ValueRef::Int(id)], &mut image);
    let mut statement = database.begin_write().unwrap();
    statement.insert(table, &image).unwrap();
    statement.commit().unwrap();
}

fn has(table: &Table, id: i32) -> bool {
    table.get(Reader::newest(), &(id as u32 ^ 1 << 31).to_be_bytes(), &mut Vec::new()).unwrap()
}

fn make_tables(database: &Database, tables: usize) -> Vec<Arc<Table>> {
    database.create_database("d", b"").unwrap();
    let tables: Vec<_> = (0..tables).map(|number| database.create_table(def(number)).unwrap()).collect();
    tables.iter().for_each(|table| insert(database, table, 1));
    tables
}

#[test]
fn a_checkpoint_reads_nothing_of_tables_that_have_not_changed() {
    const TABLES: usize = 300;
    let database = Database::open(Path::new("data"), options(Arc::new(MemVfs::new()), 64)).unwrap();
    let tables = make_tables(&database, TABLES);
    database.checkpoint().unwrap();
    let reads = || database.caches().default_cache().status().counters.reads;
    let before = reads();
    for id in 2..12 {
        insert(&database, &tables[0], id);
        database.checkpoint().unwrap();
    }
    let reads = reads() - before;
    assert!(reads < 100, "{reads} pages were read for ten checkpoints with one of {TABLES} tables in use");
}

#[test]
fn a_shutdown_syncs_nothing_of_tables_that_have_not_changed() {
    const TABLES: usize = 100;
    let vfs = vfs::FaultyVfs::new(Arc::new(MemVfs::new()));
    let database = Database::open(Path::new("data"), options(Arc::new(vfs.clone()), 64)).unwrap();
    drop(make_tables(&database, TABLES));
    database.close().unwrap();
    drop(database);
    let database = Database::open(Path::new("data"), options(Arc::new(vfs.clone()), 64)).unwrap();
    insert(&database, &database.table("d", "t7").unwrap(), 2);
    let before = vfs.faults().count(vfs::Operation::Sync);
    database.close().unwrap();
    let syncs = vfs.faults().count(vfs::Operation::Sync) - before;
    assert!(syncs < 20, "{syncs} syncs with one of {TABLES} tables changed");
}

/// How many files of a folder this process has open.
fn open_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    targets.filter(|target| target.starts_with(folder)).count()
}

#[test]
fn thousands_of_tables_work_with_hundreds_of_open_files() {
    const TABLES: usize = 3_000;
    const OPEN: usize = 300;
    /// The log, the lock, the control file.
    const OTHERS: usize = 10;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let open = || {
        let options = Options {
            open_files: Some(OPEN),
            flush_method: FlushMethod::NoSync,
            ..options(Arc::new(vfs::OsVfs), 1_000)
        };
        Database::open(&dir, options).unwrap()
    };
    let database = open();
    let tables = make_tables(&database, TABLES);
    assert!(open_files(folder.path()) <= OPEN + OTHERS);
    for (number, table) in tables.iter().enumerate().step_by(7) {
        insert(&database, table, number as i64 + 2);
    }
    database.checkpoint().unwrap();
    assert!(open_files(folder.path()) <= OPEN + OTHERS);
    for number in (0..TABLES).step_by(5) {
        database.drop_table("d", &format!("t{number}")).unwrap();
    }
    database.close().unwrap();
    drop((tables, database));
    assert_eq!(open_files(folder.path()), 0);
    let database = open();
    for number in 0..TABLES {
        if number % 5 == 0 {
            assert!(database.table("d", &format!("t{number}")).is_err());
            continue;
        }
        let table = database.table("d", &format!("t{number}")).unwrap();
        assert!(has(&table, 1));
        assert_eq!(has(&table, number as i32 + 2), number % 7 == 0);
    }
    assert!(open_files(folder.path()) <= OPEN + OTHERS);
    database.close().unwrap();
}
