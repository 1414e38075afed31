//! Many tables: what is done with one of them does not cost more because the others are there.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::sync::Arc;
use latchwork_engine::{CacheOptions, Database, Options, Table, TableDef, WriteBack};
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
