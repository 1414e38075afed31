//! The numbers that a table gives out, after a crash: none of them twice.

use super::crashes::{def, image, open, seeds};
use crate::tests::int_key;
use crate::{Database, Table, TableDef};
use base::sync::Arc;
use vfs::SimVfs;

fn world(vfs: &SimVfs, numbered: TableDef) -> (Arc<Database>, Arc<Table>, Arc<Table>) {
    let database = open(vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let numbered = database.create_table(numbered).unwrap();
    let other = database.create_table(def("other")).unwrap();
    (database, numbered, other)
}

fn insert(database: &Database, table: &Table, id: i32, len: usize) {
    let mut statement = database.begin_write().unwrap();
    statement.insert(table, &image(table, id, &vec![7; len])).unwrap();
    statement.commit().unwrap();
}

/// Changes a row until the log has given up what was in it before.
fn fill_log(database: &Database, table: &Table) {
    insert(database, table, 1, 100);
    let begin = database.status().log_end;
    while database.status().log_needed <= begin {
        let mut statement = database.begin_write().unwrap();
        let new = image(table, 1, &[8; 100]);
        let write = &mut |_: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(&new);
            true
        };
        assert!(statement.update(table, &int_key(1), write).unwrap());
        statement.commit().unwrap();
        // Without threads nobody writes pages ahead.
        database.core().caches.flush_all().unwrap();
        database.core().purge.drain(database.core());
    }
}

#[test]
fn no_number_is_given_out_twice_after_checkpoints_of_statements_and_a_crash() {
    for seed in seeds(0..4) {
        let vfs = SimVfs::new();
        let def = TableDef { primary: None, auto_increment: Some(0), ..def("t") };
        let (database, table, other) = world(&vfs, def.clone());
        let mut last = 0;
        for _ in 0..5 {
            last = table.reserve_auto_increment(1).unwrap();
            insert(&database, &table, last as i32, 10);
        }
        fill_log(&database, &other);
        let left = vfs.crash(seed);
        let database = open(&left).unwrap();
        let table = database.table("d", "t").unwrap();
        assert!(table.next_auto_increment() > last, "{} is given out again", table.next_auto_increment());
        // Another row id, or this is a duplicate.
        insert(&database, &table, 9, 10);
    }
}

#[test]
fn a_chain_of_pages_after_a_crash_has_a_number_that_none_had_before() {
    for seed in seeds(0..4) {
        let vfs = SimVfs::new();
        let (database, table, _) = world(&vfs, def("t"));
        insert(&database, &table, 1, 3_000);
        let next = table.take_chain();
        let left = vfs.crash(seed);
        let database = open(&left).unwrap();
        let table = database.table("d", "t").unwrap();
        // The row's own is the one before.
        let given = table.take_chain();
        assert!(given >= next, "{given} is given out again, {next} would be the next");
    }
}
