//! Examining directories that were not shut down cleanly.
#![cfg(not(feature = "shuttle"))]

use base::sync::Arc;
use latchwork_engine::{
    CacheOptions, Database, Error, Isolation, LogOptions, Options, Recovery, Table, TableDef, WriteBack,
    check,
};
use std::path::{Path, PathBuf};
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{Create, FaultyVfs, MemVfs, Operation, Vfs};

const DIR: &str = "data";
const PAGE_SIZE: usize = 4 << 10;
const ROWS: i64 = 1_000;

fn open(vfs: Arc<dyn Vfs>) -> Arc<Database> {
    let options = Options {
        cache: CacheOptions {
            size_bytes: 1,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheOptions::default()
        },
        log: LogOptions {
            file_size: 64 << 10,
            buffer_size: 64 << 10,
            capacity: 1 << 20,
            ..LogOptions::default()
        },
        page_size: PAGE_SIZE,
        create: true,
        vfs,
        ..Options::default()
    };
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
        indexes: vec![],
        auto_increment: None,
        sql_metadata: Vec::new(),
        ..TableDef::default()
    };
    database.create_table(def).unwrap()
}

fn image(table: &Table, id: i64, fill: u8) -> Vec<u8> {
    let mut image = Vec::new();
    table.row_codec().encode(&[ValueRef::Int(id), ValueRef::Binary(&[fill; 200])], &mut image);
    image
}

fn key(id: i64) -> [u8; 4] {
    (id as u32 ^ 1 << 31).to_be_bytes()
}

/// What a killed process leaves on a device that has everything it wrote: `ROWS` rows, and an open
/// transaction that has changed some of them. Also gives the table's file.
fn killed(changes: i64) -> (FaultyVfs, PathBuf) {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = open(vfs.clone());
    let table = make_table(&database);
    let mut statement = database.begin_write().unwrap();
    (0..ROWS).for_each(|id| statement.insert(&table, &image(&table, id, 1)).unwrap());
    statement.commit().unwrap();
    assert!(matches!(check(Path::new(DIR), vfs.clone()), Err(Error::AlreadyOpen { .. })));
    let mut session = database.session();
    session.begin(Isolation::RepeatableRead).unwrap();
    let mut statement = session.write().unwrap();
    for id in 0..changes {
        let new = image(&table, id, 2);
        let change = &mut |_: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(&new);
            true
        };
        assert!(statement.update(&table, &key(id), change).unwrap());
    }
    statement.commit().unwrap();
    database.caches().flush_all().unwrap();
    let left = MemVfs::new();
    for folder in ["log", "tables"] {
        left.create_dir_all(&Path::new(DIR).join(folder)).unwrap();
    }
    for (path, bytes) in everything(&*vfs) {
        left.open(&path, Create::New).unwrap().write_at(&bytes, 0).unwrap();
    }
    let tables = Path::new(DIR).join("tables");
    let path = tables.join(&left.list(&tables).unwrap()[0]);
    (FaultyVfs::new(Arc::new(left)), path)
}

/// Every file, with its bytes.
fn everything(vfs: &dyn Vfs) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for folder in ["", "log", "tables"].map(|name| Path::new(DIR).join(name)) {
        for name in vfs.list(&folder).unwrap() {
            let path = folder.join(name);
            let Ok(file) = vfs.open(&path, Create::Never) else { continue };
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            files.push((path, bytes));
        }
    }
    files
}

/// Changes a byte in the middle of each page of the file from `first` on.
fn damage(vfs: &dyn Vfs, path: &Path, first: u64) {
    let file = vfs.open(path, Create::Never).unwrap();
    for page in first..file.len().unwrap() / PAGE_SIZE as u64 {
        let at = page * PAGE_SIZE as u64 + PAGE_SIZE as u64 / 2;
        let mut byte = [0];
        file.read_at(&mut byte, at).unwrap();
        file.write_at(&[byte[0] ^ 1], at).unwrap();
    }
}

#[test]
fn what_was_not_shut_down_cleanly_is_recovered_in_memory_and_nothing_is_written() {
    let (faulty, _) = killed(50);
    let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
    let before = everything(&*vfs);
    let calls = || [Operation::Write, Operation::Sync].map(|operation| faulty.faults().count(operation));
    let calls_before = calls();
    let mut last = None;
    for _ in 0..2 {
        let report = check(Path::new(DIR), vfs.clone()).unwrap();
        assert!(report.is_clean() && report.rows == ROWS as u64, "{report}");
        let recovery = report.recovery.unwrap();
        assert!(recovery.records > 50, "{recovery:?}");
        assert_eq!((recovery.rolled_back, recovery.changes_taken_back), (1, 50));
        let text = report.to_string();
        for part in
            ["not shut down cleanly", "rolled back 1 transaction(s) with 50 change(s)", "nothing was written"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(*last.get_or_insert(recovery), recovery);
        assert!(everything(&*vfs) == before && calls() == calls_before);
    }
    // A start does the same, for good.
    let database = open(vfs.clone());
    assert_eq!(Some(database.recovery()), last);
    database.close().unwrap();
    drop(database);
    let report = check(Path::new(DIR), vfs.clone()).unwrap();
    assert!(report.is_clean() && report.recovery.is_none() && report.rows == ROWS as u64, "{report}");
    assert_eq!(open(vfs).recovery(), Recovery::default());
}

#[test]
fn damage_that_recovery_does_not_meet_is_found_in_the_recovered_state() {
    let (vfs, path) = killed(0);
    let vfs: Arc<dyn Vfs> = Arc::new(vfs);
    open(vfs.clone()).close().unwrap();
    // A change of one row only, then killed.
    let database = open(vfs.clone());
    let table = database.table("d", "t").unwrap();
    let mut statement = database.begin_write().unwrap();
    assert!(statement.delete(&table, &key(0), &mut |_| true).unwrap());
    statement.commit().unwrap();
    drop((database, table));
    damage(&*vfs, &path, 20);
    let before = everything(&*vfs);
    let report = check(Path::new(DIR), vfs.clone()).unwrap();
    assert!(report.recovery.is_some(), "{report}");
    assert!(!report.is_clean() && report.findings.iter().all(|finding| finding.path == path), "{report}");
    assert!(report.to_string().contains("checksum"), "{report}");
    assert!(everything(&*vfs) == before);
}

#[test]
fn what_cannot_be_recovered_is_a_finding_and_the_files_are_examined_as_they_are() {
    let (vfs, path) = killed(50);
    let vfs: Arc<dyn Vfs> = Arc::new(vfs);
    open(vfs.clone()).checkpoint().unwrap();
    let database = open(vfs.clone());
    let table = database.table("d", "t").unwrap();
    let mut statement = database.begin_write().unwrap();
    (0..ROWS).for_each(|id| assert!(statement.delete(&table, &key(id), &mut |_| true).unwrap()));
    statement.commit().unwrap();
    drop((database, table));
    // The copies that could repair it are gone as well.
    let doublewrite = vfs.open(&Path::new(DIR).join("latchwork.doublewrite"), Create::Never).unwrap();
    doublewrite.set_len(0).unwrap();
    damage(&*vfs, &path, 2);
    let before = everything(&*vfs);
    let report = check(Path::new(DIR), vfs.clone()).unwrap();
    assert!(report.recovery.is_none() && report.findings.len() > 1, "{report}");
    assert!(report.to_string().contains("cannot be recovered"), "{report}");
    assert!(everything(&*vfs) == before);
    // It can be examined again.
    assert_eq!(check(Path::new(DIR), vfs).unwrap().findings, report.findings);
}
