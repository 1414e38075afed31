//! A load fills an empty table with all its rows or with none, also if the machine stops in its middle.
#![cfg(not(feature = "shuttle"))]

use base::sync::Arc;
use latchwork_engine::{
    CacheOptions, Database, IndexDef, Isolation, KeyList, Loaded, LogOptions, Options, Reader, Result,
    Session, Table, TableDef, WriteBack,
};
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::sim::{Points, every_cut};
use vfs::{Fault, FaultyVfs, MemVfs, Operation, SimVfs, Vfs};

const DIR: &str = "data";
const PAGE_SIZE: usize = 1 << 10;

/// A row: its key, and what the unique second index has.
type Row = (i32, i32);

fn options(vfs: Arc<dyn Vfs>) -> Options {
    Options {
        cache: CacheOptions {
            size_bytes: 1,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheOptions::default()
        },
        log: LogOptions {
            file_size: 64 << 10,
            buffer_size: 16 << 10,
            capacity: 128 << 10,
            ..LogOptions::default()
        },
        row_tier_bytes: Some(0),
        page_size: PAGE_SIZE,
        create: true,
        vfs,
        ..Options::default()
    }
}

fn make_table(database: &Database) -> Result<Arc<Table>> {
    let int = |name: &str| Column {
        name: name.into(),
        column_type: ColumnType::Int { bytes: 4, unsigned: false },
        nullable: false,
    };
    let part = |column| vec![KeyPart { column, prefix_chars: None, descending: false }];
    database.create_database("d", b"")?;
    database.create_table(TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![int("id"), int("u")],
        primary: Some(part(0)),
        indexes: vec![IndexDef { name: "u".into(), unique: true, parts: part(1) }],
        ..TableDef::default()
    })
}

fn images(table: &Table, rows: &[Row]) -> KeyList {
    let mut list = KeyList::default();
    for (id, u) in rows {
        let mut image = Vec::new();
        let values = [ValueRef::Int(i64::from(*id)), ValueRef::Int(i64::from(*u))];
        table.row_codec().encode(&values, &mut image);
        list.push(&image);
    }
    list
}

fn row_of(table: &Table, image: &[u8]) -> Row {
    let row = table.row_codec().view(image);
    let int = |column| match row.get(column) {
        ValueRef::Int(value) => value as i32,
        other => panic!("{other:?}"),
    };
    (int(0), int(1))
}

fn key(number: i32) -> [u8; 4] {
    (number as u32 ^ 1 << 31).to_be_bytes()
}

/// What became of a load.
#[derive(PartialEq, Eq, Debug)]
enum Fate {
    Filled,
    /// The rows in the order in which they came.
    HandedBack(Vec<Row>),
}

/// Loads the rows in batches of a hundred.
fn load(database: &Database, session: &mut Session, table: &Table, rows: &[Row]) -> Result<Fate> {
    let mut statement = session.write()?;
    let mut handed_back = None;
    {
        let (_, mut writer) = statement.split();
        let mut load = writer.begin_load(database, table)?.expect("the table is empty");
        let mut fits = true;
        for batch in rows.chunks(100) {
            fits &= load.push(&images(table, batch))?;
        }
        if !fits {
            handed_back = Some(load.give_up());
        } else if let Loaded::Collided(rows) = load.finish()? {
            handed_back = Some(rows);
        }
    }
    let fate = match handed_back {
        None => Fate::Filled,
        Some(mut again) => {
            let mut rows = Vec::new();
            again.each(|image| {
                rows.push(row_of(table, image));
                Ok::<_, latchwork_engine::Error>(())
            })?;
            Fate::HandedBack(rows)
        }
    };
    statement.commit()?;
    Ok(fate)
}

/// The table has these rows by both of its indexes and no others, and no file is left over.
fn assert_rows(database: &Database, table: &Table, rows: &[Row]) {
    for row in rows {
        let mut image = Vec::new();
        assert!(table.get(Reader::newest(), &key(row.0), &mut image).unwrap(), "row {row:?}");
        assert_eq!(row_of(table, &image), *row);
    }
    assert_eq!(table.row_count(), rows.len() as u64);
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

fn ascending(count: i32) -> Vec<Row> {
    (0..count).map(|id| (id, -id)).collect()
}

/// The same in an order of its own.
fn shuffled(count: i32) -> Vec<Row> {
    let prime = 7_919;
    (0..count).map(|id| (id * prime % count, -(id * prime % count))).collect()
}

fn with_table(run: impl FnOnce(&Arc<Database>, &mut Session, &Table)) {
    let vfs = Arc::new(MemVfs::new());
    let database = Database::open(Path::new(DIR), options(vfs.clone())).unwrap();
    let table = make_table(&database).unwrap();
    let mut session = database.session();
    run(&database, &mut session, &table);
    drop(session);
    let files = vfs.list(&Path::new(DIR).join("tables")).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn rows_in_order_and_in_any_other_fill_the_table() {
    for rows in [ascending(1_000), shuffled(1_000), vec![(1, 1)], vec![]] {
        with_table(|database, session, table| {
            assert_eq!(load(database, session, table, &rows).unwrap(), Fate::Filled);
            assert_rows(database, table, &rows);
            // It is a table like any other.
            let mut statement = session.write().unwrap();
            statement.insert(table, images(table, &[(5_000, 5_000)]).get(0)).unwrap();
            statement.commit().unwrap();
            let all: Vec<Row> = rows.iter().copied().chain([(5_000, 5_000)]).collect();
            assert_rows(database, table, &all);
        });
    }
}

#[test]
fn rows_that_collide_come_back_in_their_order_and_the_table_stays_empty() {
    let same_key_next = [ascending(150), vec![(149, 7)], ascending(3)].concat();
    let same_key_far = [shuffled(150), vec![(3, 777)]].concat();
    let same_in_the_other_index = [ascending(150), vec![(200, -3)]].concat();
    let same_in_the_other_index_unordered = [shuffled(150), vec![(200, -3)]].concat();
    let all = [same_key_next, same_key_far, same_in_the_other_index, same_in_the_other_index_unordered];
    for (case, rows) in all.into_iter().enumerate() {
        with_table(|database, session, table| {
            let fate = load(database, session, table, &rows).unwrap();
            assert_eq!(fate, Fate::HandedBack(rows.clone()), "case {case}");
            assert_rows(database, table, &[]);
        });
    }
}

#[test]
fn a_snapshot_from_before_a_load_sees_an_empty_table() {
    with_table(|database, session, table| {
        let mut older = database.session();
        older.begin(Isolation::RepeatableRead).unwrap();
        let mut image = Vec::new();
        {
            let read = older.read().unwrap();
            assert!(!table.get(read.reader(), &key(1), &mut image).unwrap());
        }
        load(database, session, table, &ascending(10)).unwrap();
        {
            let read = older.read().unwrap();
            assert!(!table.get(read.reader(), &key(1), &mut image).unwrap(), "a row from the future");
        }
        older.commit().unwrap();
        assert_rows(database, table, &ascending(10));
    });
}

#[test]
fn a_table_with_rows_is_not_filled() {
    with_table(|database, session, table| {
        load(database, session, table, &ascending(3)).unwrap();
        let mut statement = session.write().unwrap();
        {
            let (_, mut writer) = statement.split();
            assert!(writer.begin_load(database, table).unwrap().is_none());
        }
        statement.commit().unwrap();
    });
}

/// Each write and each sync fails once. What fails in write-back is tried again, so the load may succeed.
#[test]
fn a_load_has_all_its_rows_or_none_whatever_call_fails() {
    let rows = shuffled(300);
    let mut failed = 0;
    for operation in [Operation::Write, Operation::Sync] {
        let mut calls = 1;
        let mut call = 0;
        while call <= calls {
            let memory = Arc::new(MemVfs::new());
            let faulty = FaultyVfs::new(memory.clone());
            let faults = faulty.faults();
            let database = Database::open(Path::new(DIR), options(Arc::new(faulty))).unwrap();
            let table = make_table(&database).unwrap();
            let before = faults.count(operation);
            // The first run has no fault, and counts.
            if call > 0 {
                faults.fail_nth(operation, call, Fault::Error(std::io::ErrorKind::Other));
            }
            let loaded = load(&database, &mut database.session(), &table, &rows);
            if call == 0 {
                calls = faults.count(operation) - before;
            }
            faults.heal();
            drop((table, database));
            let database = Database::open(Path::new(DIR), options(memory)).unwrap();
            let table = database.table("d", "t").unwrap();
            // After an error its end may be in the log, though the thread has not heard so.
            let is_filled = loaded.is_ok() || table.row_count() > 0;
            assert_rows(&database, &table, if is_filled { &rows } else { &[] });
            failed += u64::from(loaded.is_err());
            call += 1;
        }
        assert!(calls > 2, "{operation:?}: {calls} calls");
    }
    assert!(failed > 3, "{failed} failed");
}

#[test]
fn after_a_crash_a_table_has_all_rows_of_a_load_or_none() {
    let rows = shuffled(120);
    let workload = |vfs: &SimVfs| -> Result<()> {
        let database = Database::open(Path::new(DIR), options(Arc::new(vfs.clone())))?;
        let table = make_table(&database)?;
        load(&database, &mut database.session(), &table, &rows).map(drop)
    };
    let mut sizes = [0, 0];
    let runs = every_cut(Points::Events, 0..3, workload, |done, left| {
        let database = Database::open(Path::new(DIR), options(Arc::new(left.clone()))).unwrap();
        let Ok(table) = database.table("d", "t") else {
            assert!(done.is_err(), "the table has gone");
            return;
        };
        let is_filled = table.row_count() > 0;
        assert!(is_filled || done.is_err(), "a load that was confirmed has gone");
        assert_rows(&database, &table, if is_filled { &rows } else { &[] });
        sizes[usize::from(is_filled)] += 1;
        drop(table);
        let files = left.list(&Path::new(DIR).join("tables")).unwrap();
        assert_eq!(files.len(), 1, "{files:?}");
    });
    assert!(runs > 20 && sizes[0] > 5 && sizes[1] > 0, "{runs} runs, {sizes:?}");
}
