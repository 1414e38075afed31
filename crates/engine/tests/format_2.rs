//! What a crash of a build of format 2 leaves behind is repaired by the start that takes the directory over.
#![cfg(not(feature = "shuttle"))]

use base::checksum::checksum;
use base::sync::Arc;
use latchwork_engine::{
    CacheOptions, Database, LogOptions, Options, Reader, Table, TableDef, WriteBack, check,
};
use std::io::ErrorKind;
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{Create, Fault, FaultyVfs, MemVfs, Operation, Vfs};

const DIR: &str = "data";
/// Not the doublewrite file's block, so that its two layouts differ.
const PAGE_SIZE: usize = 8 << 10;
const ROWS: i64 = 2_000;

fn open(vfs: Arc<dyn Vfs>) -> Arc<Database> {
    let cache =
        CacheOptions { size_bytes: 1, write_back: WriteBack::AtEvictionOnly, ..CacheOptions::default() };
    let log = LogOptions { file_size: 1 << 20, capacity: 4 << 20, ..LogOptions::default() };
    let options = Options { cache, log, page_size: PAGE_SIZE, create: true, vfs, ..Options::default() };
    Database::open(Path::new(DIR), options).unwrap()
}

fn make_table(database: &Database) -> Arc<Table> {
    database.create_database("d", b"").unwrap();
    let int = ColumnType::Int { bytes: 4, unsigned: false };
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let def = TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![column("id", int), column("c", ColumnType::Blob { bytes_max: u32::MAX })],
        primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
        ..TableDef::default()
    };
    database.create_table(def).unwrap()
}

fn insert(database: &Database, table: &Table, ids: std::ops::Range<i64>) {
    let mut statement = database.begin_write().unwrap();
    for id in ids {
        let mut image = Vec::new();
        table.row_codec().encode(&[ValueRef::Int(id), ValueRef::Binary(&[id as u8; 100])], &mut image);
        statement.insert(table, &image).unwrap();
    }
    statement.commit().unwrap();
}

fn assert_whole(database: &Database) {
    let table = database.table("d", "t").unwrap();
    for id in 0..ROWS {
        let mut image = Vec::new();
        let key = (id as u32 ^ 1 << 31).to_be_bytes();
        assert!(table.get(Reader::newest(), &key, &mut image).unwrap(), "row {id}");
        assert_eq!(table.row_codec().view(&image).get(1), ValueRef::Binary(&[id as u8; 100]));
    }
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

/// A directory whose process died while it wrote pages in their places: each is half new.
fn torn() -> Arc<MemVfs> {
    let vfs = Arc::new(MemVfs::new());
    let faulty = FaultyVfs::new(vfs.clone());
    let database = open(Arc::new(faulty.clone()));
    let table = make_table(&database);
    insert(&database, &table, 0..ROWS / 2);
    database.checkpoint().unwrap();
    insert(&database, &table, ROWS / 2..ROWS);
    let name = vfs.list(&Path::new(DIR).join("tables")).unwrap().remove(0);
    faulty.faults().fail_file_from(Path::new(&name), Operation::Write, 1, Fault::Torn(ErrorKind::Other));
    assert!(database.caches().flush_all().is_err());
    drop((database, table));
    vfs
}

fn rewrite(vfs: &dyn Vfs, name: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let file = vfs.open(&Path::new(DIR).join(name), Create::Never).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let bytes = change(bytes);
    file.set_len(bytes.len() as u64).unwrap();
    file.write_at(&bytes, 0).unwrap();
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The batches of the doublewrite file in format 2: a header as long as a page, which does not hold the page
/// size, and then pages.
fn doublewrite_of_format_2(bytes: Vec<u8>) -> Vec<u8> {
    const BLOCK: usize = 4096;
    let (mut old, mut at) = (Vec::new(), 0);
    while at + BLOCK <= bytes.len() && u32_at(&bytes, at + 24) == checksum(0, &bytes[at..at + 24]) {
        if u32_at(&bytes, at + 20) == 0 {
            break;
        }
        assert_eq!(u32_at(&bytes, at + 20) as usize, PAGE_SIZE);
        let mut head = bytes[at..at + BLOCK].to_vec();
        put_u32(&mut head, 20, 0);
        let sum = checksum(0, &head[..24]);
        put_u32(&mut head, 24, sum);
        head.resize(PAGE_SIZE, 0);
        let pages = u32_at(&bytes, at + 16) as usize * PAGE_SIZE;
        old.extend_from_slice(&head);
        old.extend_from_slice(&bytes[at + BLOCK..at + BLOCK + pages]);
        at += BLOCK + pages;
    }
    assert!(old.len() > PAGE_SIZE, "there is no batch in the doublewrite file");
    old.resize(bytes.len().max(old.len()), 0);
    old
}

fn control_of_format_2(mut bytes: Vec<u8>) -> Vec<u8> {
    put_u32(&mut bytes, 8, 2);
    let sum = checksum(0, &bytes[..60]);
    put_u32(&mut bytes, 60, sum);
    bytes
}

#[test]
fn torn_pages_of_a_directory_of_format_2_are_repaired_from_its_doublewrite_file() {
    // The second: the start was cut when it had noted the new format, and no more.
    for is_noted in [false, true] {
        let vfs = torn();
        rewrite(&*vfs, "latchwork.doublewrite", doublewrite_of_format_2);
        if !is_noted {
            rewrite(&*vfs, "latchwork.control", control_of_format_2);
        }
        let database = open(vfs.clone());
        let recovery = database.recovery();
        assert!(recovery.repaired_pages > 0, "{recovery:?}");
        assert_whole(&database);
        rewrite(&*vfs, "latchwork.control", |bytes| {
            assert_eq!(u32_at(&bytes, 8), 6);
            bytes
        });
        // From here on batches are of the new layout; the next crash is as good.
        insert(&database, &database.table("d", "t").unwrap(), ROWS..ROWS + 500);
        database.caches().flush_all().unwrap();
        drop(database);
        let database = open(vfs.clone());
        assert_whole(&database);
        database.close().unwrap();
        drop(database);
        assert!(check(Path::new(DIR), vfs).unwrap().is_clean());
    }
}

#[test]
fn without_the_copies_of_format_2_the_torn_pages_are_not_taken_for_whole() {
    let vfs = torn();
    rewrite(&*vfs, "latchwork.control", control_of_format_2);
    rewrite(&*vfs, "latchwork.doublewrite", |bytes| vec![0; bytes.len()]);
    let report = check(Path::new(DIR), vfs).unwrap();
    assert!(!report.is_clean(), "{report}");
}
