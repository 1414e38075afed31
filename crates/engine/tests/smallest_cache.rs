//! The smallest cache that can be configured: what it is, that the whole suite can be run with it, and that a
//! fault would show. `LATCHWORK_TEST_CACHE=smallest cargo test -p latchwork-engine` is that run.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::sync::Arc;
use latchwork_engine::{CacheOptions, CacheStatus, Database, Options, Reader, TableDef};
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::MemVfs;

const PAGE_SIZE: usize = 1 << 10;
const ROWS: i64 = 2_000;
/// Room for every page of [`fill`].
const AMPLE: usize = 8 << 20;

fn open(cache_bytes: usize) -> Arc<Database> {
    let options = Options {
        cache: CacheOptions { size_bytes: cache_bytes, ..CacheOptions::default() },
        row_tier_bytes: Some(0),
        page_size: PAGE_SIZE,
        create: true,
        vfs: Arc::new(MemVfs::new()),
        ..Options::default()
    };
    Database::open(Path::new("data"), options).unwrap()
}

/// Writes a table that is far larger than the smallest cache, reads every row, and tells what the cache did.
fn fill(database: &Database) -> CacheStatus {
    database.create_database("d", b"").unwrap();
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let def = TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", ColumnType::Int { bytes: 4, unsigned: false }),
            column("c", ColumnType::Varbinary { bytes: 100 }),
        ],
        primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
        ..TableDef::default()
    };
    let table = database.create_table(def).unwrap();
    let image = |id: i64| {
        let mut image = Vec::new();
        table.row_codec().encode(&[ValueRef::Int(id), ValueRef::Binary(&[id as u8; 100])], &mut image);
        image
    };
    let mut statement = database.begin_write().unwrap();
    (0..ROWS).for_each(|id| statement.insert(&table, &image(id)).unwrap());
    statement.commit().unwrap();
    for id in 0..ROWS {
        let mut found = Vec::new();
        let key = (id as u32 ^ 1 << 31).to_be_bytes();
        assert!(table.get(Reader::newest(), &key, &mut found).unwrap());
        assert_eq!(found, image(id));
    }
    database.caches().default_cache().status()
}

/// What a test may rely on when the variable asks for the smallest cache.
fn assert_is_smallest(status: &CacheStatus) {
    let frames = open(1).caches().default_cache().status().frames;
    assert_eq!(status.frames, frames, "the cache is larger than the smallest");
    assert!(status.counters.reads > 0, "every page stayed in memory");
}

#[test]
fn the_variable_reaches_the_integration_tests() {
    let status = fill(&open(common::cache_bytes(AMPLE)));
    if common::smallest_cache_is_wanted() {
        assert_is_smallest(&status);
    } else {
        assert_eq!(status.counters.reads, 0);
    }
}

/// The canary: a suite that ignored the variable would run with an ample cache, and the check must see that.
#[test]
#[should_panic(expected = "the cache is larger than the smallest")]
fn an_ample_cache_is_not_taken_for_the_smallest() {
    assert_is_smallest(&fill(&open(AMPLE)));
}
