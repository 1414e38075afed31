//! Compressed tables on a real file system: what they take on the disk, and that they hold what plain ones
//! hold.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::IndexId;
use base::random::Random;
use base::sync::Arc;
use latchwork_engine::{
    CacheOptions, Database, Direction, KeyList, KeyRange, Options, Reader, Table, TableDef, check,
};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};

fn open(dir: &Path, cache_bytes: usize) -> Arc<Database> {
    let cache = CacheOptions { size_bytes: common::cache_bytes(cache_bytes), ..CacheOptions::default() };
    Database::open(dir, Options { create: true, cache, ..Options::default() }).unwrap()
}

/// `(id INT PRIMARY KEY, c VARBINARY(500))`
fn table(database: &Database, name: &str, compressed: bool) -> Arc<Table> {
    let int = ColumnType::Int { bytes: 4, unsigned: false };
    let text = ColumnType::Varbinary { bytes: 500 };
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    database
        .create_table(TableDef {
            database: "d".into(),
            name: name.into(),
            columns: vec![column("id", int), column("c", text)],
            primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
            compressed,
            ..TableDef::default()
        })
        .unwrap()
}

/// Five bytes in six repeat themselves if `repeats`, else none.
fn content(id: i64, repeats: bool) -> Vec<u8> {
    let mut random = Random::new(id as u64, 0);
    (0..300)
        .map(|at| {
            if repeats && at % 6 > 0 {
                b'x'
            } else if repeats && at > 100 {
                b'y'
            } else {
                random.next_u64() as u8
            }
        })
        .collect()
}

fn fill(database: &Database, table: &Table, repeats: bool) {
    for first in (0..ROWS).step_by(1000) {
        let mut rows = KeyList::default();
        for id in first..first + 1000 {
            let mut image = Vec::new();
            let bytes = content(id, repeats);
            table.row_codec().encode(&[ValueRef::Int(id), ValueRef::Binary(&bytes)], &mut image);
            rows.push(&image);
        }
        let mut statement = database.begin_write().unwrap();
        statement.insert_many(table, &rows).unwrap();
        statement.commit().unwrap();
    }
}

const ROWS: i64 = 20_000;

fn check_rows(table: &Table, repeats: bool) {
    let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
    let mut id = 0;
    while let Some(image) = scan.next_row().unwrap() {
        let row = table.row_codec().view(image);
        assert_eq!((row.get(0), row.get(1)), (ValueRef::Int(id), ValueRef::Binary(&content(id, repeats))));
        id += 1;
    }
    assert_eq!(id, ROWS);
}

/// Bytes that the files of the tables take on the disk, in the order in which they were made.
fn disk_bytes(dir: &Path) -> Vec<u64> {
    let mut files: Vec<_> =
        std::fs::read_dir(dir.join("tables")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| std::fs::metadata(path).unwrap().blocks() * 512).collect()
}

#[test]
fn compressible_rows_take_a_fraction_of_the_disk_and_noise_takes_no_more_than_in_a_plain_table() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    {
        let database = open(&dir, 64 << 20);
        database.create_database("d", b"").unwrap();
        for (name, compressed, repeats) in TABLES {
            fill(&database, &table(&database, name, compressed), repeats);
        }
        database.close().unwrap();
    }
    let bytes = disk_bytes(&dir);
    let [plain, packed, noise, packed_noise] = bytes[..] else { panic!("{bytes:?}") };
    assert!(packed < plain * 2 / 5, "{packed} of {plain} bytes");
    assert!(packed_noise <= noise + noise / 20, "{packed_noise} and {noise} bytes");
    assert!(check(&dir, Arc::new(vfs::OsVfs)).unwrap().findings.is_empty());
    // With a cache that holds a small part, most of it as images.
    let database = open(&dir, 2 << 20);
    for (name, _, repeats) in TABLES {
        check_rows(&database.table("d", name).unwrap(), repeats);
    }
    database.close().unwrap();
}

const TABLES: [(&str, bool, bool); 4] =
    [("plain", false, true), ("packed", true, true), ("noise", false, false), ("packed_noise", true, false)];
