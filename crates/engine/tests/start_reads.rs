//! What a start after a crash reads and writes: what was in flight, however large the files are.
#![cfg(not(feature = "shuttle"))]

use base::sync::Arc;
use latchwork_engine::{
    CacheOptions, Database, IndexDef, Isolation, KeyList, Options, Reader, Session, TableDef, WriteBack,
    check,
};
use std::cell::RefCell;
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{FaultyVfs, Operation, SimVfs, Vfs};

const DIR: &str = "data";
const PAGE_SIZE: usize = 1 << 10;

fn open(vfs: Arc<dyn Vfs>) -> Arc<Database> {
    let options = Options {
        cache: CacheOptions {
            size_bytes: 256 << 10,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheOptions::default()
        },
        row_tier_bytes: Some(0),
        page_size: PAGE_SIZE,
        create: true,
        vfs,
        ..Options::default()
    };
    Database::open(Path::new(DIR), options).unwrap()
}

fn def() -> TableDef {
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", ColumnType::Int { bytes: 4, unsigned: false }),
            column("c", ColumnType::Blob { bytes_max: u32::MAX }),
        ],
        primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
        ..TableDef::default()
    }
}

fn image(table: &latchwork_engine::Table, id: usize, bytes: usize) -> Vec<u8> {
    let mut image = Vec::new();
    table.row_codec().encode(&[ValueRef::Int(id as i64), ValueRef::Binary(&vec![7; bytes])], &mut image);
    image
}

/// Fills a table, takes a checkpoint with everything on the device, changes a little, has the machine stop,
/// and counts what the next start reads and writes, and what has been read once everything is purged.
fn operations_of_a_start(
    fill: impl Fn(&Database, &latchwork_engine::Table),
    change: impl Fn(&Database, &latchwork_engine::Table),
) -> (u64, u64) {
    let vfs = SimVfs::new();
    let database = open(Arc::new(vfs.clone()));
    database.create_database("d", b"").unwrap();
    let table = database.create_table(def()).unwrap();
    fill(&database, &table);
    // As write-back does it in time.
    database.caches().flush_all().unwrap();
    database.checkpoint().unwrap();
    database.caches().flush_all().unwrap();
    database.checkpoint().unwrap();
    change(&database, &table);
    drop((table, database));
    let left = vfs.crash(1);
    let counted = FaultyVfs::new(Arc::new(left.clone()));
    let database = open(Arc::new(counted.clone()));
    let count = |operation| counted.faults().count(operation);
    let at_start = count(Operation::Read) + count(Operation::Write);
    let mut row = Vec::new();
    assert!(database.table("d", "t").unwrap().get(Reader::newest(), &key(1), &mut row).unwrap());
    database.close().unwrap();
    let reads_until_clean = count(Operation::Read);
    drop(database);
    let report = check(Path::new(DIR), Arc::new(left)).unwrap();
    assert!(report.is_clean(), "{report}");
    (at_start, reads_until_clean)
}

fn key(id: u32) -> [u8; 4] {
    (id ^ 1 << 31).to_be_bytes()
}

fn assert_operations_stay(what: &str, fill: impl Fn(&Database, &latchwork_engine::Table, usize)) {
    let (few, _) = operations_of_a_start(|database, table| fill(database, table, 50), |_, _| ());
    let (many, _) = operations_of_a_start(|database, table| fill(database, table, 800), |_, _| ());
    assert!(many <= few + 10, "{what}: {few} operations with 50 rows and {many} with 800");
}

#[test]
fn a_start_after_a_crash_does_not_walk_files_that_had_rows_in_pages_of_their_own() {
    assert_operations_stay("large rows", |database, table, rows| {
        for id in 0..rows {
            let mut statement = database.begin_write().unwrap();
            statement.insert(table, &image(table, id, 5_000)).unwrap();
            statement.commit().unwrap();
        }
        for id in 0..2 {
            let mut statement = database.begin_write().unwrap();
            let changed = statement.update(table, &key(id as u32), &mut |_, out| {
                out.extend_from_slice(&image(table, id, 3_000));
                true
            });
            assert!(changed.unwrap());
            statement.commit().unwrap();
        }
    });
}

fn insert(session: &mut Session, table: &latchwork_engine::Table, id: usize) {
    let mut statement = session.write().unwrap();
    statement.insert(table, &image(table, id, 100)).unwrap();
    statement.commit().unwrap();
}

#[test]
fn a_start_after_a_crash_redoes_no_page_that_was_written_since_an_old_transaction_began() {
    let under_way = RefCell::new(Vec::new());
    let operations = |stays: bool| {
        let fill = |database: &Database, table: &latchwork_engine::Table| {
            let mut old = database.session();
            old.begin(Isolation::RepeatableRead).unwrap();
            insert(&mut old, table, 0);
            if stays {
                under_way.borrow_mut().push(old);
            } else {
                old.commit().unwrap();
            }
            let mut session = database.session();
            (1..800).for_each(|id| insert(&mut session, table, id));
        };
        // The log is not empty in either case.
        operations_of_a_start(fill, |database, table| insert(&mut database.session(), table, 1_000)).0
    };
    let (without, with) = (operations(false), operations(true));
    assert!(with <= without + 10, "{without} operations without the transaction and {with} with it");
}

#[test]
fn a_start_after_a_crash_does_not_walk_files_that_had_an_index_built_or_dropped() {
    assert_operations_stay("an index", |database, table, rows| {
        let mut images = KeyList::default();
        (0..rows).for_each(|id| images.push(&image(table, id, 300)));
        let mut statement = database.begin_write().unwrap();
        statement.insert_many(table, &images).unwrap();
        statement.commit().unwrap();
        for name in ["one", "two"] {
            let parts = vec![KeyPart { column: 1, prefix_chars: Some(20), descending: false }];
            database.create_index(table, IndexDef { name: name.into(), unique: false, parts }).unwrap();
        }
        database.drop_index(table, "one").unwrap();
    });
}

#[test]
fn after_a_crash_what_was_in_flight_is_purged_and_the_rest_of_the_table_is_not_read() {
    let fill = |database: &Database, table: &latchwork_engine::Table, rows: usize| {
        let mut images = KeyList::default();
        (0..rows).for_each(|id| images.push(&image(table, id, 300)));
        let mut statement = database.begin_write().unwrap();
        statement.insert_many(table, &images).unwrap();
        statement.commit().unwrap();
        let parts = vec![KeyPart { column: 1, prefix_chars: Some(20), descending: false }];
        database.create_index(table, IndexDef { name: "one".into(), unique: false, parts }).unwrap();
    };
    // Two rows are deleted, one gets another entry, and one transaction is open.
    let change = |database: &Database, table: &latchwork_engine::Table| {
        let mut open = database.session();
        open.begin(latchwork_engine::Isolation::RepeatableRead).unwrap();
        let mut statement = open.write().unwrap();
        assert!(statement.delete(table, &key(5), &mut |_| true).unwrap());
        statement.commit().unwrap();
        let mut statement = database.begin_write().unwrap();
        for id in 2..4 {
            assert!(statement.delete(table, &key(id), &mut |_| true).unwrap());
        }
        let changed = statement.update(table, &key(4), &mut |_, out| {
            let mut image = Vec::new();
            table.row_codec().encode(&[ValueRef::Int(4), ValueRef::Binary(b"other")], &mut image);
            out.extend_from_slice(&image);
            true
        });
        assert!(changed.unwrap());
        statement.commit().unwrap();
        std::mem::forget(open);
    };
    let (_, few) = operations_of_a_start(|database, table| fill(database, table, 50), change);
    let (_, many) = operations_of_a_start(|database, table| fill(database, table, 800), change);
    assert!(many <= few + 20, "{few} reads with 50 rows and {many} with 800");
}
