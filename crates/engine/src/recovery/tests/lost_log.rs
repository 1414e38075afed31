//! A log that has lost its end, while pages have what it said: nothing is promised on top of that.

use crate::tests::{CacheSize, Row, int_key, options, table_def};
use crate::{Database, Error, HitPath, Reader, Table, TableDef, WriteBack};
use base::sync::Arc;
use std::path::{Path, PathBuf};
use vfs::{Create, MemVfs, Vfs};

const DIR: &str = "data";

fn open(vfs: &MemVfs) -> crate::Result<Arc<Database>> {
    let mut options = options(Arc::new(vfs.clone()), 1024, HitPath::Optimistic, CacheSize::Normal);
    options.cache.write_back = WriteBack::AtEvictionOnly;
    Database::open(Path::new(DIR), options)
}

fn has(table: &Table, id: i32) -> bool {
    table.get(Reader::newest(), &int_key(id), &mut Vec::new()).unwrap()
}

fn insert(database: &Database, table: &Table, id: i32, byte: u8) -> crate::Result<()> {
    let mut statement = database.begin_write()?;
    statement.insert(table, &Row { id, k: 1, u: None, c: vec![byte; 60] }.image(table))?;
    statement.commit()
}

/// A directory after a crash. All pages are on the device, and the record of row 2 is damaged.
fn damaged() -> MemVfs {
    let vfs = MemVfs::new();
    let database = open(&vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let other = database.create_table(TableDef { name: "other".into(), ..table_def() }).unwrap();
    insert(&database, &table, 1, 1).unwrap();
    insert(&database, &other, 1, 1).unwrap();
    database.core().caches.flush_all().unwrap();
    database.checkpoint().unwrap();
    insert(&database, &table, 2, 0xd7).unwrap();
    for id in 3..6 {
        insert(&database, &table, id, 3).unwrap();
    }
    database.core().caches.flush_all().unwrap();
    drop((database, table, other));
    assert_eq!(flip_in_log(&vfs, &[0xd7; 60]), 1);
    vfs
}

/// Changes a byte in what the log has of `needle`. Gives the number of places.
fn flip_in_log(vfs: &MemVfs, needle: &[u8]) -> usize {
    let mut found = 0;
    for path in vfs.list(&Path::new(DIR).join("log")).unwrap() {
        let path: PathBuf = Path::new(DIR).join("log").join(path);
        let file = vfs.open(&path, Create::Never).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            file.write_at(&[!needle[0]], at as u64).unwrap();
            found += 1;
        }
    }
    found
}

#[test]
fn a_log_that_ends_before_a_page_that_was_written_is_refused() {
    let vfs = damaged();
    for _ in 0..2 {
        let error = open(&vfs).map(drop).unwrap_err();
        assert!(matches!(&error, Error::Log { why } if why.contains("checksum")), "{error}");
    }
}

#[test]
fn a_page_that_is_newer_than_the_log_is_corrupt_and_the_rest_goes_on() {
    let vfs = damaged();
    // Its copies have been overwritten since: nothing shows it but the page itself.
    vfs.open(&Path::new(DIR).join("latchwork.doublewrite"), Create::Never).unwrap().set_len(0).unwrap();
    let database = open(&vfs).unwrap();
    // The transaction that is to be taken back meets the page.
    let error = database.table("d", "t").map(drop).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { why, .. } if why.contains("the log ends")), "{error}");
    let other = database.table("d", "other").unwrap();
    insert(&database, &other, 7, 7).unwrap();
    drop((database, other));
    let database = open(&vfs).unwrap();
    assert!(has(&database.table("d", "other").unwrap(), 7));
}

#[test]
fn a_log_that_ends_before_its_checkpoint_is_refused() {
    let vfs = MemVfs::new();
    let database = open(&vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    // The transaction keeps the log before the checkpoint.
    let mut statement = database.begin_write().unwrap();
    statement.insert(&table, &Row { id: 1, k: 1, u: None, c: vec![0xd7; 60] }.image(&table)).unwrap();
    insert(&database, &table, 2, 2).unwrap();
    database.core().caches.flush_all().unwrap();
    database.checkpoint().unwrap();
    // It is never taken back.
    database.core().control.lock().unlock();
    std::mem::forget((statement, database.clone()));
    drop((database, table));
    assert!(flip_in_log(&vfs, &[0xd7; 60]) > 0);
    vfs.open(&Path::new(DIR).join("latchwork.doublewrite"), Create::Never).unwrap().set_len(0).unwrap();
    let error = open(&vfs).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Log { why } if why.contains("checkpoint")), "{error}");
}

#[test]
fn a_file_of_a_table_that_only_the_lost_end_knew_is_kept() {
    let vfs = MemVfs::new();
    let database = open(&vfs).unwrap();
    database.create_database("d", b"").unwrap();
    database.core().caches.flush_all().unwrap();
    database.checkpoint().unwrap();
    let table = database.create_table(TableDef { sql_metadata: vec![0xd7; 60], ..table_def() }).unwrap();
    insert(&database, &table, 1, 1).unwrap();
    table.save_numbers().unwrap();
    let path = table.state().space.path();
    let file = table.state().space.file_id();
    database.core().caches.flush_all().unwrap();
    drop((database, table));
    // In a directory whose log and catalogue know nothing of it.
    let copy = vfs.open(&path, Create::Never).unwrap();
    let mut bytes = vec![0; copy.len().unwrap() as usize];
    copy.read_at(&mut bytes, 0).unwrap();
    drop(copy);
    let other = MemVfs::new();
    let database = open(&other).unwrap();
    database.create_database("d", b"").unwrap();
    database.close().unwrap();
    drop(database);
    let stranger = other.open(&path, Create::New).unwrap();
    stranger.write_at(&bytes, 0).unwrap();
    drop(stranger);
    let database = open(&other).unwrap();
    assert!(other.exists(&path).unwrap(), "the only copy of a table's rows is deleted");
    let table = database.create_table(table_def()).unwrap();
    assert!(table.state().space.file_id() > file, "its name is taken");
    insert(&database, &table, 1, 1).unwrap();
}
