//! Changes of definition on a device that fails in their middle: done or not done, also after a restart.

use crate::tests::{CacheSize, Row, int_key, options, table_def};
use crate::{Database, HitPath, Isolation, Reader, Table, TableDef};
use base::sync::Arc;
use std::io::ErrorKind;
use std::path::Path;
use vfs::{Fault, FaultyVfs, MemVfs, Operation};

const CATALOGUE: &str = "catalogue.lwt";

fn open(vfs: &FaultyVfs) -> crate::Result<Arc<Database>> {
    let options = options(Arc::new(vfs.clone()), 1024, HitPath::Optimistic, CacheSize::Smallest);
    Database::open(Path::new("data"), options)
}

fn named(database: &str, name: &str) -> TableDef {
    TableDef { database: database.into(), name: name.into(), ..table_def() }
}

/// A catalogue of many pages, hardly any of which stay in memory.
fn many_tables(vfs: &FaultyVfs) -> Arc<Database> {
    let database = open(vfs).unwrap();
    for name in ["d", "e"] {
        database.create_database(name, b"").unwrap();
        for number in 0..12 {
            database.create_table(named(name, &format!("t{number}"))).unwrap();
        }
    }
    insert(&database, &database.table("d", "t0").unwrap(), 1);
    let large = database.table("e", "t0").unwrap();
    (0..400).for_each(|id| insert(&database, &large, id));
    database
}

/// Has other pages in memory.
fn forget_catalogue(database: &Database) {
    let large = database.table("e", "t0").unwrap();
    assert!((0..400).all(|id| has(&large, id)));
}

fn insert(database: &Database, table: &Table, id: i32) {
    let row = Row { id, k: 1, u: None, c: vec![1; 10] };
    let mut statement = database.begin_write().unwrap();
    statement.insert(table, &row.image(table)).unwrap();
    statement.commit().unwrap();
}

fn has(table: &Table, id: i32) -> bool {
    table.get(Reader::newest(), &int_key(id), &mut Vec::new()).unwrap()
}

fn failing_reads(vfs: &FaultyVfs, nth: u64) {
    let fault = Fault::Error(ErrorKind::Other);
    vfs.faults().fail_file_from(Path::new(CATALOGUE), Operation::Read, nth, fault);
}

#[test]
fn a_table_is_replaced_or_it_is_not_whatever_of_the_catalogue_cannot_be_read() {
    let mut failed = 0;
    for nth in 1..12 {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let database = many_tables(&vfs);
        let old = database.table("d", "t0").unwrap();
        let new = database.create_replacement(named("d", "t0")).unwrap();
        insert(&database, &new, 1);
        forget_catalogue(&database);
        failing_reads(&vfs, nth);
        let replaced = database.replace_table(&old, &new);
        vfs.faults().heal();
        if replaced.is_err() {
            failed += 1;
            assert!(!old.is_dropped(), "{nth}: {replaced:?}");
            database.discard_replacement(&new);
        }
        assert!(has(&database.table("d", "t0").unwrap(), 1), "{nth}: {replaced:?}");
        insert(&database, &database.table("d", "t0").unwrap(), 2);
        if nth % 2 == 0 {
            database.rename_table(("d", "t0"), ("e", "renamed")).unwrap();
        }
        database.close().unwrap();
        drop((database, old, new));
        let database = open(&vfs).unwrap_or_else(|error| panic!("{nth}: {error}, after {replaced:?}"));
        let place = if nth % 2 == 0 { ("e", "renamed") } else { ("d", "t0") };
        let table = database.table(place.0, place.1).unwrap();
        assert!(has(&table, 1) && has(&table, 2), "{nth}");
        assert_eq!(database.table("d", "t0").is_ok(), nth % 2 == 1);
        let report = database.check().unwrap();
        assert!(report.is_clean(), "{report}");
    }
    assert!(failed > 1, "{failed}");
}

#[test]
fn what_could_not_be_purged_because_of_a_failed_read_is_swept() {
    let mut failed = 0;
    for nth in 1..40 {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let database = many_tables(&vfs);
        let table = database.table("d", "t0").unwrap();
        (2..202).for_each(|id| insert(&database, &table, id));
        let mut reader = database.session();
        reader.begin(Isolation::RepeatableRead).unwrap();
        reader.open_snapshot();
        let mut statement = database.begin_write().unwrap();
        for id in (2..202).step_by(2) {
            assert!(statement.delete(&table, &int_key(id), &mut |_| true).unwrap());
        }
        statement.commit().unwrap();
        forget_catalogue(&database);
        vfs.faults().fail_nth(Operation::Read, nth, Fault::Error(ErrorKind::Other));
        let reads = vfs.faults().count(Operation::Read);
        reader.roll_back().unwrap();
        database.core().purge.drain(database.core());
        failed += u32::from(vfs.faults().count(Operation::Read) - reads >= nth);
        assert_eq!(table.garbage(), 0, "{nth}");
        vfs.faults().heal();
        let report = database.check().unwrap();
        assert!(report.is_clean() && report.garbage == 0, "{nth}: {report}");
        assert_eq!(table.row_count(), 101);
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn a_database_is_dropped_or_it_is_not_whatever_of_the_catalogue_cannot_be_read() {
    let mut failed = 0;
    for nth in 1..16 {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let database = many_tables(&vfs);
        forget_catalogue(&database);
        failing_reads(&vfs, nth);
        let dropped = database.drop_database("d");
        vfs.faults().heal();
        failed += u32::from(dropped.is_err());
        assert_eq!(database.tables("d").is_err(), dropped.is_ok(), "{nth}: {dropped:?}");
        if dropped.is_ok() {
            database.create_database("d", b"").unwrap();
        } else {
            assert_eq!(database.tables("d").unwrap().len(), 12, "{nth}: {dropped:?}");
        }
        let table = database.create_table(named("d", "made afterwards")).unwrap();
        insert(&database, &table, 1);
        let tables = database.tables("d").unwrap().len();
        database.close().unwrap();
        drop((database, table));
        let database = open(&vfs).unwrap_or_else(|error| panic!("{nth}: {error}, after {dropped:?}"));
        assert_eq!(database.tables("d").map(|tables| tables.len()).ok(), Some(tables), "{nth}: {dropped:?}");
        assert!(has(&database.table("d", "made afterwards").unwrap(), 1));
        assert_eq!(database.tables("e").unwrap().len(), 12);
    }
    assert!(failed > 1, "{failed}");
}
