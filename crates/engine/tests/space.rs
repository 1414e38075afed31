//! Under a steady load files stop growing: what deletes, moves and splits leave is used again.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::random::Random;
use base::sync::{Arc, thread};
use latchwork_engine::{
    CacheOptions, Database, FlushLog, IndexDef, LogOptions, Options, Table, TableDef, check,
};
use std::path::Path;
use std::time::{Duration, Instant};
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{Create, MemVfs, Vfs};

const DIR: &str = "data";
const PAGE_SIZE: usize = 4 << 10;
/// Rows that there may be; about half of them are.
const IDS: usize = 4_000;
/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn options(vfs: &MemVfs) -> Options {
    Options {
        cache: CacheOptions { size_bytes: common::cache_bytes(2 << 20), ..CacheOptions::default() },
        log: LogOptions {
            flush: FlushLog::Lazily,
            file_size: 1 << 20,
            buffer_size: 256 << 10,
            capacity: 4 << 20,
        },
        page_size: PAGE_SIZE,
        create: true,
        vfs: Arc::new(vfs.clone()),
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
        indexes: vec![IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] }],
        auto_increment: None,
        sql_metadata: Vec::new(),
        ..TableDef::default()
    }
}

/// Bytes of `c`: mostly short, some that take pages of their own.
fn len(random: &mut Random) -> usize {
    match random.below(200) {
        0 => 5_000 + random.index(10_000),
        _ => random.index(300),
    }
}

/// As many changes as there are ids.
fn change_all(database: &Database, table: &Table, random: &mut Random, rows: &mut [bool]) {
    for _ in 0..IDS / 20 {
        let mut statement = database.begin_write().unwrap();
        for _ in 0..20 {
            let id = random.index(IDS);
            let key = (id as u32 ^ 1 << 31).to_be_bytes();
            let c = vec![id as u8; len(random)];
            let mut image = Vec::new();
            let values =
                [ValueRef::Int(id as i64), ValueRef::Int(random.below(500).into()), ValueRef::Binary(&c)];
            table.row_codec().encode(&values, &mut image);
            match (rows[id], random.below(10)) {
                (false, 0..=2) => {
                    statement.insert(table, &image).unwrap();
                    rows[id] = true;
                }
                (true, 0..=2) => {
                    assert!(statement.delete(table, &key, &mut |_| true).unwrap());
                    rows[id] = false;
                }
                (true, _) => {
                    let change = &mut |_: &[u8], out: &mut Vec<u8>| {
                        out.extend_from_slice(&image);
                        true
                    };
                    assert!(statement.update(table, &key, change).unwrap());
                }
                (false, _) => {}
            }
        }
        statement.commit().unwrap();
    }
    // What nobody sees any more is removed in the background.
    let end = Instant::now() + PATIENCE;
    while database.status().purge_queue > 0 {
        assert!(Instant::now() < end, "{} rows are not purged", database.status().purge_queue);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Pages that the files in a folder come to.
fn pages(vfs: &MemVfs, folder: &str) -> u64 {
    let dir = Path::new(DIR).join(folder);
    let names = vfs.list(&dir).unwrap().into_iter();
    let bytes = names.map(|name| vfs.open(&dir.join(name), Create::Never).unwrap().len().unwrap());
    bytes.sum::<u64>() / PAGE_SIZE as u64
}

#[test]
fn files_stop_growing() {
    let vfs = MemVfs::new();
    let database = Database::open(Path::new(DIR), options(&vfs)).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let (mut random, mut rows) = (Random::new(4711, 0), vec![false; IDS]);
    // Until there are as many rows, and pages as full, as there will be.
    (0..40).for_each(|_| change_all(&database, &table, &mut random, &mut rows));
    let settled = pages(&vfs, "tables");
    let options = options(&vfs);
    let log_max = (options.log.capacity + 4 * options.log.file_size) / PAGE_SIZE as u64;
    for round in 0..160 {
        change_all(&database, &table, &mut random, &mut rows);
        // The limit is twice the step by which a file grows, because the load is not quite steady. Losing one
        // page in each round of four thousand changes would exceed it.
        let (now, log) = (pages(&vfs, "tables"), pages(&vfs, "log"));
        assert!(now <= settled + settled / 4, "round {round}: {now} pages, {settled} once settled");
        assert!(log <= log_max, "round {round}: {log} pages of log, {log_max} at most");
    }
    database.close().unwrap();
    drop((database, table));
    let report = check(Path::new(DIR), Arc::new(vfs.clone())).unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.rows, rows.iter().filter(|is_there| **is_there).count() as u64);
    // Rows and entries come to 200 bytes on average, long rows aside: a quarter of the file at the least.
    let (live, now) = (report.rows * 200 / PAGE_SIZE as u64, pages(&vfs, "tables"));
    assert!(now < 4 * live, "{now} pages for {} rows", report.rows);
}

/// What OPTIMIZE TABLE does: the table is written anew, and the old file goes.
#[test]
fn a_table_that_is_rebuilt_gives_its_free_space_back_to_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let in_memory = MemVfs::new();
    let options = Options { vfs: Arc::new(vfs::OsVfs), ..options(&in_memory) };
    let database = Database::open(&dir, options).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let bytes = || -> u64 {
        let files = std::fs::read_dir(dir.join("tables")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let image = |id: usize| {
        let mut image = Vec::new();
        let values = [ValueRef::Int(id as i64), ValueRef::Int(id as i64 % 500), ValueRef::Binary(&[7; 200])];
        table.row_codec().encode(&values, &mut image);
        image
    };
    let insert = |table: &Table, ids: std::ops::Range<usize>| {
        let mut rows = latchwork_engine::KeyList::default();
        ids.for_each(|id| rows.push(&image(id)));
        let mut statement = database.begin_write().unwrap();
        statement.insert_many(table, &rows).unwrap();
        statement.commit().unwrap();
    };
    insert(&table, 0..IDS);
    let full = bytes();
    let mut statement = database.begin_write().unwrap();
    for id in IDS / 10..IDS {
        assert!(statement.delete(&table, &(id as u32 ^ 1 << 31).to_be_bytes(), &mut |_| true).unwrap());
    }
    statement.commit().unwrap();
    assert_eq!(bytes(), full, "pages that are free stay in the file");
    let new = database.create_replacement((*table.def()).clone()).unwrap();
    insert(&new, 0..IDS / 10);
    database.replace_table(&table, &new).unwrap();
    assert!(bytes() < full / 4, "{} bytes of {full}", bytes());
    assert!(database.check().unwrap().is_clean());
    database.close().unwrap();
}
