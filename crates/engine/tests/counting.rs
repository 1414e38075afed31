//! What a cached lookup costs, counted: `cargo test -p latchwork-engine --features counting --test counting`.
#![cfg(all(feature = "counting", not(feature = "shuttle")))]

use base::IndexId;
use base::sync::{Arc, Counts, counts};
use latchwork_engine::{
    Batch, CacheOptions, Database, Direction, HitPath, IndexDef, KeyList, KeyRange, Options, Reader, Table,
    TableDef,
};
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::MemVfs;

const ROWS: i64 = 20_000;

/// A filled table, with every page of it in a cache of this hit path.
fn table(hit_path: HitPath) -> (Arc<Database>, Arc<Table>) {
    let options = Options {
        create: true,
        vfs: Arc::new(MemVfs::new()),
        cache: CacheOptions { size_bytes: 64 << 20, hit_path, ..CacheOptions::default() },
        ..Options::default()
    };
    let database = Database::open(Path::new("data"), options).unwrap();
    database.create_database("d", b"").unwrap();
    let column = |name: &str| Column {
        name: name.into(),
        column_type: ColumnType::Int { bytes: 4, unsigned: false },
        nullable: false,
    };
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    let table = database
        .create_table(TableDef {
            database: "d".into(),
            name: "t".into(),
            columns: vec![column("id"), column("k")],
            primary: Some(vec![part(0)]),
            indexes: vec![IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] }],
            auto_increment: None,
            sql_metadata: Vec::new(),
            ..TableDef::default()
        })
        .unwrap();
    let mut rows = KeyList::default();
    for id in 0..ROWS {
        let mut image = Vec::new();
        table.row_codec().encode(&[ValueRef::Int(id), ValueRef::Int(id % 100)], &mut image);
        rows.push(&image);
    }
    let mut statement = database.begin_write().unwrap();
    statement.insert_many(&table, &rows).unwrap();
    statement.commit().unwrap();
    // If a page is being written at the first look at it, it is looked at again later.
    database.caches().flush_all().unwrap();
    (database, table)
}

fn key(value: i64) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}

fn cost(run: impl Fn()) -> Counts {
    // The first visit may set a page's heat bit.
    run();
    run();
    let before = counts();
    run();
    let after = counts();
    Counts {
        shared_writes: after.shared_writes - before.shared_writes,
        latches: after.latches - before.latches,
    }
}

#[test]
fn a_cached_point_get_writes_nothing_shared_and_takes_no_latch() {
    let (_database, table) = table(HitPath::Optimistic);
    let spent = cost(|| {
        let mut image = Vec::new();
        for id in 0..ROWS {
            image.clear();
            assert!(table.get(Reader::newest(), &key(id), &mut image).unwrap());
        }
    });
    assert_eq!(spent, Counts::default());
}

#[test]
fn a_cached_batch_writes_nothing_shared_either() {
    let (_database, table) = table(HitPath::Optimistic);
    let mut prefixes = KeyList::default();
    (0..50).for_each(|k| prefixes.push(&key(k)));
    let spent = cost(|| {
        let mut found = 0;
        table
            .multi_get(Reader::newest(), IndexId(1), &prefixes, &mut Batch::default(), &mut |_, _, _| {
                found += 1;
                true
            })
            .unwrap();
        assert_eq!(found, ROWS / 2);
    });
    assert_eq!(spent, Counts::default());
}

#[test]
fn a_cached_scan_takes_its_cores_memory_and_gives_it_back_and_that_is_all() {
    let (_database, table) = table(HitPath::Optimistic);
    for range in [KeyRange::prefix(&key(7)), KeyRange::all()] {
        let spent = cost(|| {
            let mut scan = table.scan(Reader::newest(), IndexId(1), range.clone(), Direction::Backward);
            while scan.next_row().unwrap().is_some() {}
        });
        // Latches that only this core takes, so that no other thread waits for them. Their number does not
        // grow with the scan.
        assert_eq!(spent, Counts { latches: 2, shared_writes: 0 });
    }
}

/// The canary: the `locked` hit path takes a latch a page, and the counts must tell. Without it a build that
/// counts nothing would pass every test above.
#[test]
fn a_locked_point_get_is_seen_to_take_latches_and_to_write() {
    let (_database, table) = table(HitPath::Locked);
    let spent = cost(|| {
        let mut image = Vec::new();
        assert!(table.get(Reader::newest(), &key(1), &mut image).unwrap());
    });
    assert!(spent.latches > 0 && spent.shared_writes > 0, "{spent:?}");
}
