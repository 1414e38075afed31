//! Tables whose pages differ in size, or in how they keep their keys, side by side.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::IndexId;
use base::sync::Arc;
use latchwork_engine::{
    CacheOptions, Database, Direction, Error, IndexDef, KeyList, KeyRange, Options, PackKeys, Reader, Table,
    TableDef, check,
};
use std::path::Path;
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};
use vfs::{MemVfs, Vfs};

const DIR: &str = "data";
const ROWS: i64 = 4_000;

fn open(vfs: &Arc<dyn Vfs>) -> Arc<Database> {
    let cache = CacheOptions { size_bytes: common::cache_bytes(128 << 20), ..CacheOptions::default() };
    let options = Options { create: true, vfs: vfs.clone(), page_size: 4_096, cache, ..Options::default() };
    Database::open(Path::new(DIR), options).unwrap()
}

fn part(column: usize) -> KeyPart {
    KeyPart { column, prefix_chars: None, descending: false }
}

/// `(id INT PRIMARY KEY, name VARCHAR(40), code CHAR(4), KEY name (name), KEY code (code))`.
fn def(name: &str) -> TableDef {
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let collation = Collation::Latin1Bin;
    let index = |name: &str, column| IndexDef { name: name.into(), unique: false, parts: vec![part(column)] };
    TableDef {
        database: "d".into(),
        name: name.into(),
        columns: vec![
            column("id", ColumnType::Int { bytes: 4, unsigned: false }),
            column("name", ColumnType::Varchar { chars: 40, collation }),
            column("code", ColumnType::Char { chars: 4, collation }),
        ],
        primary: Some(vec![part(0)]),
        indexes: vec![index("name", 1), index("code", 2)],
        ..TableDef::default()
    }
}

fn fill(database: &Database, table: &Table) {
    let mut rows = KeyList::default();
    for id in 0..ROWS {
        let mut image = Vec::new();
        let name = format!("a rather long beginning {id:08}");
        let values =
            [ValueRef::Int(id), ValueRef::Text(name.as_bytes()), ValueRef::Text(&name.as_bytes()[28..])];
        table.row_codec().encode(&values, &mut image);
        rows.push(&image);
    }
    let mut statement = database.begin_write().unwrap();
    statement.insert_many(table, &rows).unwrap();
    statement.commit().unwrap();
}

fn count(table: &Table, index: u16) -> i64 {
    let mut scan = table.scan(Reader::newest(), IndexId(index), KeyRange::all(), Direction::Forward);
    let mut rows = 0;
    while scan.next_row().unwrap().is_some() {
        rows += 1;
    }
    rows
}

#[test]
fn tables_of_every_page_size_live_in_one_database_and_are_recovered_and_checked() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = open(&vfs);
    database.create_database("d", b"").unwrap();
    let sizes: Vec<u32> = (0..7).map(|n| 1_024 << n).collect();
    for size in &sizes {
        let def = TableDef { page_size: Some(*size), ..def(&format!("t{size}")) };
        fill(&database, &database.create_table(def).unwrap());
    }
    for size in [0, 512, 3_000, 131_072] {
        let odd = TableDef { page_size: Some(size), ..def("odd") };
        assert!(matches!(database.create_table(odd), Err(Error::BadOption { .. })));
    }
    // Fewer, larger pages, and one pool for each size.
    let pools: Vec<usize> =
        database.caches().default_cache().pools().map(|pool| pool.status().page_size).collect();
    assert_eq!(pools, sizes.iter().map(|size| *size as usize).collect::<Vec<usize>>());
    let pages = |name: &str| database.preload(&database.table("d", name).unwrap(), false).unwrap().leaves;
    // Preloading stops when the cache is full, so it counts pages only where all fit.
    let all_fit = !common::smallest_cache_is_wanted();
    assert!(!all_fit || (pages("t1024") > 2 * pages("t4096") && pages("t4096") > 4 * pages("t65536")));
    assert!(database.check().unwrap().is_clean());
    // Not closed: what follows reads the log, and finds each file's page size by itself.
    let report = check(Path::new(DIR), vfs.clone());
    assert!(matches!(report, Err(Error::AlreadyOpen { .. })));
    let left: Arc<dyn Vfs> = Arc::new(vfs::Overlay::new(vfs.clone()));
    drop(database);
    let database = open(&left);
    assert!(database.recovery().records > 0);
    for size in &sizes {
        let table = database.table("d", &format!("t{size}")).unwrap();
        assert_eq!(table.def().page_size, Some(*size));
        assert!((0..3).all(|index| count(&table, index) == ROWS), "{size}");
        // A new file has the same pages.
        database.truncate(&table).unwrap();
        fill(&database, &table);
    }
    database.close().unwrap();
    drop(database);
    let report = check(Path::new(DIR), left).unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn pages_keep_whole_keys_or_not_as_the_table_says() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = open(&vfs);
    database.create_database("d", b"").unwrap();
    let mut leaves = Vec::new();
    for (name, pack_keys) in
        [("never", PackKeys::Never), ("default", PackKeys::Default), ("always", PackKeys::Always)]
    {
        let table = database.create_table(TableDef { pack_keys, ..def(name) }).unwrap();
        fill(&database, &table);
        assert!((0..3).all(|index| count(&table, index) == ROWS));
        // Built at once, it is as when it grew.
        database.drop_index(&table, "name").unwrap();
        let index = IndexDef { name: "again".into(), unique: false, parts: vec![part(1)] };
        database.create_index(&table, index).unwrap();
        assert_eq!(count(&table, 2), ROWS);
        leaves.push(database.preload(&table, false).unwrap().leaves);
    }
    // Preloading stops when the cache is full, so it counts pages only where all fit.
    let all_fit = !common::smallest_cache_is_wanted();
    // The long string makes most of the difference, and only `always` packs the rest.
    assert!(!all_fit || (leaves[0] > leaves[1] + 20 && leaves[1] > leaves[2]), "{leaves:?}");
    assert!(database.check().unwrap().is_clean());
    database.close().unwrap();
    drop(database);
    let database = open(&vfs);
    assert_eq!(database.table("d", "never").unwrap().def().pack_keys, PackKeys::Never);
    assert_eq!(database.table("d", "always").unwrap().def().pack_keys, PackKeys::Always);
}
