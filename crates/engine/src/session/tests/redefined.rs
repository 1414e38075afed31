//! Snapshots beside changes of definition: what is older than a table's trees cannot be read in them.

use crate::tests::{CacheSize, Row, options, table_def};
use crate::{
    Database, Direction, Error, HitPath, IndexDef, Isolation, KeyList, KeyRange, Reader, Session, Table,
};
use base::IndexId;
use base::sync::Arc;
use std::path::Path;
use vfs::MemVfs;

fn database() -> (Arc<Database>, Arc<Table>) {
    let options = options(Arc::new(MemVfs::new()), 4_096, HitPath::Optimistic, CacheSize::from_environment());
    let database = Database::open(Path::new("data"), options).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    (database, table)
}

fn row(id: i32) -> Row {
    Row { id, k: id, u: None, c: vec![7; 20] }
}

fn insert(database: &Database, table: &Table, ids: std::ops::Range<i32>) {
    let mut rows = KeyList::default();
    ids.for_each(|id| rows.push(&row(id).image(table)));
    let mut statement = database.begin_write().unwrap();
    statement.insert_many(table, &rows).unwrap();
    statement.commit().unwrap();
}

fn snapshot(database: &Database) -> Session {
    let mut session = database.session();
    session.begin(Isolation::RepeatableRead).unwrap();
    session.open_snapshot();
    session
}

fn count(reader: Reader<'_>, table: &Table, index: IndexId) -> crate::Result<usize> {
    let mut scan = table.scan(reader, index, KeyRange::all(), Direction::Forward);
    let mut rows = 0;
    while scan.next_row()?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

/// What the session's snapshot sees in the table that has the name `t` now.
fn seen(database: &Database, session: &mut Session) -> crate::Result<usize> {
    let table = database.table("d", "t").unwrap();
    let rows = count(session.read().unwrap().reader(), &table, IndexId(0))?;
    assert_eq!(count(session.read().unwrap().reader(), &table, IndexId(1))?, rows);
    let mut image = Vec::new();
    let key = crate::tests::int_key(1);
    table.get(session.read().unwrap().reader(), &key, &mut image)?;
    Ok(rows)
}

#[test]
fn a_snapshot_taken_while_a_table_is_copied_does_not_see_part_of_the_copy() {
    let (database, old) = database();
    insert(&database, &old, 0..1_000);
    let new = database.create_replacement(table_def()).unwrap();
    insert(&database, &new, 0..500);
    let mut amid = snapshot(&database);
    insert(&database, &new, 500..1_000);
    let mut behind = snapshot(&database);
    database.replace_table(&old, &new).unwrap();
    for session in [&mut amid, &mut behind] {
        let seen = seen(&database, session);
        assert!(matches!(seen, Err(Error::TableChanged)), "{seen:?}");
        session.commit().unwrap();
    }
    assert_eq!(seen(&database, &mut snapshot(&database)).unwrap(), 1_000);
}

#[test]
fn a_snapshot_that_is_older_than_a_truncation_does_not_see_the_table_empty() {
    let (database, table) = database();
    insert(&database, &table, 0..1_000);
    let mut older = snapshot(&database);
    database.truncate(&table).unwrap();
    let seen_then = seen(&database, &mut older);
    assert!(matches!(seen_then, Err(Error::TableChanged)), "{seen_then:?}");
    assert_eq!(seen(&database, &mut snapshot(&database)).unwrap(), 0);
}

#[test]
fn a_snapshot_that_is_older_than_a_table_does_not_see_it_empty() {
    let (database, table) = database();
    let mut older = snapshot(&database);
    database.rename_table(("d", "t"), ("d", "other")).unwrap();
    database.create_table(table_def()).unwrap();
    let seen_then = seen(&database, &mut older);
    assert!(matches!(seen_then, Err(Error::TableChanged)), "{seen_then:?}");
    assert_eq!(count(older.read().unwrap().reader(), &table, IndexId(0)).unwrap(), 0, "it was there");
    assert_eq!(seen(&database, &mut snapshot(&database)).unwrap(), 0);
}

/// An index holds what a snapshot as old as its building sees, since the table's transactions had ended.
#[test]
fn a_snapshot_just_before_the_end_of_an_index_sees_all_rows_by_it() {
    let (database, table) = database();
    insert(&database, &table, 0..1_000);
    let mut older = snapshot(&database);
    insert(&database, &table, 1_000..1_010);
    let mut just_before = snapshot(&database);
    let parts = vec![crate::tests::part(1)];
    database.create_index(&table, IndexDef { name: "k2".into(), unique: false, parts }).unwrap();
    let by = IndexId(3);
    let seen = count(older.read().unwrap().reader(), &table, by);
    assert!(matches!(seen, Err(Error::TableChanged)), "{seen:?}");
    assert_eq!(count(just_before.read().unwrap().reader(), &table, by).unwrap(), 1_010);
    assert_eq!(count(older.read().unwrap().reader(), &table, IndexId(0)).unwrap(), 1_000);
}
