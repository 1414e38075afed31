//! Several caches in one database: tables move between them, and caches come, go and change their size, under
//! load.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::IndexId;
use base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use base::sync::{Arc, thread};
use latchwork_engine::{
    Batch, CacheChange, CacheOptions, Database, Direction, Error, HitPath, IndexDef, KeyList, KeyRange,
    Options, Reader, Table, TableDef, check,
};
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{MemVfs, Vfs};

const PAGE_SIZE: usize = 1024;
const DIR: &str = "data";

fn open(vfs: &Arc<dyn Vfs>, hit_path: HitPath, cache_bytes: usize) -> Arc<Database> {
    let options = Options {
        create: true,
        vfs: vfs.clone(),
        page_size: PAGE_SIZE,
        cache: CacheOptions {
            size_bytes: common::cache_bytes(cache_bytes),
            hit_path,
            segments: 4,
            ..CacheOptions::default()
        },
        ..Options::default()
    };
    Database::open(Path::new(DIR), options).unwrap()
}

/// `(id INT PRIMARY KEY, v INT NOT NULL, KEY v (v))`.
fn table(database: &Database, name: &str) -> Arc<Table> {
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    let column = |name: &str| Column { name: name.into(), column_type: int(), nullable: false };
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    if database.databases().is_empty() {
        database.create_database("d", b"").unwrap();
    }
    database
        .create_table(TableDef {
            database: "d".into(),
            name: name.into(),
            columns: vec![column("id"), column("v")],
            primary: Some(vec![part(0)]),
            indexes: vec![IndexDef { name: "v".into(), unique: false, parts: vec![part(1)] }],
            auto_increment: None,
            sql_metadata: Vec::new(),
            ..TableDef::default()
        })
        .unwrap()
}

fn image(table: &Table, id: u32, value: u32) -> Vec<u8> {
    let mut image = Vec::new();
    table.row_codec().encode(&[ValueRef::Int(id.into()), ValueRef::Int(value.into())], &mut image);
    image
}

fn key(value: u32) -> [u8; 4] {
    (value ^ 1 << 31).to_be_bytes()
}

fn insert(database: &Database, table: &Table, ids: impl Iterator<Item = u32>) {
    let mut rows = KeyList::default();
    ids.for_each(|id| rows.push(&image(table, id, id)));
    let mut statement = database.begin_write().unwrap();
    statement.insert_many(table, &rows).unwrap();
    statement.commit().unwrap();
}

fn count(table: &Table, index: IndexId) -> usize {
    let mut scan = table.scan(Reader::newest(), index, KeyRange::all(), Direction::Forward);
    let mut rows = 0;
    while scan.next_key().unwrap().is_some() {
        rows += 1;
    }
    rows
}

fn names(database: &Database) -> Vec<(String, usize)> {
    let caches = database.caches().list();
    caches.iter().map(|cache| (cache.name().to_owned(), cache.settings().size_bytes)).collect()
}

#[test]
fn a_cache_is_made_by_setting_it_up_and_dropped_by_size_0_and_keeps_its_settings() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = open(&vfs, HitPath::Optimistic, 1 << 20);
    let t = table(&database, "t");
    insert(&database, &t, 0..500);
    // None of these is there; to drop what is not there is nothing.
    assert!(matches!(database.assign(&t, "hot"), Err(Error::NoSuchCache)));
    database.set_cache("hot", CacheChange::size(0)).unwrap();
    assert_eq!(names(&database), [("default".to_owned(), common::cache_bytes(1 << 20))]);
    // A setting but no size: there, like the default one, and disabled.
    let block = CacheChange { block_size: Some(2048), ..CacheChange::default() };
    database.set_cache("hot", block).unwrap();
    let hot = database.caches().get("hot").unwrap();
    assert!(!hot.is_enabled());
    assert_eq!((hot.settings().segments, hot.settings().block_size), (4, 2048));
    assert!(matches!(database.assign(&t, "hot"), Err(Error::NoSuchCache)));
    // To the byte.
    assert!(database.caches().get("Hot").is_none());
    database.set_cache("hot", CacheChange::size(300_000)).unwrap();
    database.set_cache("other", CacheChange::size(1)).unwrap();
    assert_eq!(database.cache_of(&t), "default");
    database.assign(&t, "hot").unwrap();
    assert_eq!(database.cache_of(&t), "hot");
    // A file of its own again, and the same cache.
    database.truncate(&t).unwrap();
    assert_eq!(database.cache_of(&t), "hot");
    insert(&database, &t, 0..500);
    assert!(hot.status().blocks.used > 10 && hot.status().blocks.not_flushed > 10, "{:?}", hot.status());
    let others = [
        ("default".to_owned(), common::cache_bytes(1 << 20)),
        ("hot".to_owned(), 0),
        ("other".to_owned(), 1),
    ];
    database.set_cache("hot", CacheChange::size(0)).unwrap();
    assert_eq!(names(&database), others);
    assert_eq!(database.cache_of(&t), "default");
    assert_eq!((hot.status().blocks.used, hot.settings().block_size), (0, 2048));
    assert_eq!(count(&t, IndexId(1)), 500);
    assert!(matches!(database.set_cache("default", CacheChange::size(0)), Err(Error::DefaultCache)));
    database.close().unwrap();
    drop((t, database));
    // Not for the next start.
    let database = open(&vfs, HitPath::Optimistic, 1 << 20);
    assert_eq!(names(&database).len(), 1);
    assert_eq!(count(&database.table("d", "t").unwrap(), IndexId(0)), 500);
}

#[test]
fn what_is_preloaded_need_not_be_read_again() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = open(&vfs, HitPath::Optimistic, 4 << 20);
    let t = table(&database, "t");
    insert(&database, &t, 0..5_000);
    // Or a checkpoint of an idle log would read pages as well.
    database.checkpoint().unwrap();
    database.set_cache("hot", CacheChange::size(4 << 20)).unwrap();
    // Into the other cache without a page.
    database.assign(&t, "hot").unwrap();
    let hot = database.caches().get("hot").unwrap();
    hot.reset_counters();
    let inner = database.preload(&t, true).unwrap();
    assert!(inner.inner >= 2 && inner.leaves == 0 && inner.loaded == inner.inner, "{inner:?}");
    let all = database.preload(&t, false).unwrap();
    assert_eq!((all.inner, all.loaded), (inner.inner, all.leaves));
    assert!(all.leaves > 100, "{all:?}");
    let counters = hot.status().counters;
    assert_eq!(counters.reads, all.inner + all.leaves);
    assert_eq!((count(&t, IndexId(0)), count(&t, IndexId(1))), (5_000, 5_000));
    assert_eq!(hot.status().counters.reads, counters.reads);
    // No more than there is room for.
    database.set_cache("hot", CacheChange::size(60 << 10)).unwrap();
    let some = database.preload(&t, false).unwrap();
    assert!(some.inner + some.leaves <= hot.status().frames, "{some:?}");
}

#[test]
fn a_replacement_takes_the_cache_of_what_it_replaces() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = open(&vfs, HitPath::Optimistic, 1 << 20);
    let t = table(&database, "t");
    database.set_cache("hot", CacheChange::size(1 << 20)).unwrap();
    database.assign(&t, "hot").unwrap();
    let new = database.create_replacement((*t.def()).clone()).unwrap();
    insert(&database, &new, 0..300);
    database.replace_table(&t, &new).unwrap();
    let t = database.table("d", "t").unwrap();
    assert_eq!((database.cache_of(&t).as_str(), count(&t, IndexId(1))), ("hot", 300));
    database.close().unwrap();
}

/// Readers without locks, writers, scans, checkpoints and purge run while tables move between caches and the
/// caches change.
fn move_under_load(hit_path: HitPath, cache_bytes: usize, rounds: u32) {
    const ROWS: u32 = 400;
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let database = open(&vfs, hit_path, cache_bytes);
    let tables: Vec<Arc<Table>> = ["t", "u"].iter().map(|name| table(&database, name)).collect();
    for t in &tables {
        insert(&database, t, 0..ROWS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    // What each row is known to have at least, by table.
    let known: Arc<Vec<Vec<AtomicU32>>> =
        Arc::new((0..2).map(|_| (0..ROWS).map(AtomicU32::new).collect()).collect());
    let mut threads = Vec::new();
    for (number, t) in tables.iter().enumerate() {
        let (database, t, stop, known) = (database.clone(), t.clone(), stop.clone(), known.clone());
        // One writer a table: rows only grow.
        threads.push(thread::spawn(move || {
            let mut next = ROWS;
            for turn in 0..u32::MAX {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let id = turn.wrapping_mul(7919) % ROWS;
                let value = known[number][id as usize].load(Ordering::SeqCst) + ROWS;
                let mut statement = database.begin_write().unwrap();
                let mut change = |_: &[u8], new: &mut Vec<u8>| {
                    new.extend_from_slice(&image(&t, id, value));
                    true
                };
                assert!(statement.update(&t, &key(id), &mut change).unwrap());
                // Comes and goes: splits, merges, purge.
                if turn % 3 == 0 {
                    statement.insert(&t, &image(&t, next, next)).unwrap();
                    next += 1;
                }
                statement.commit().unwrap();
                known[number][id as usize].store(value, Ordering::SeqCst);
            }
        }));
    }
    for reader in 0..2 {
        let (tables, stop, known) = (tables.clone(), stop.clone(), known.clone());
        threads.push(thread::spawn(move || {
            let mut found = Vec::new();
            for turn in reader..u32::MAX {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let number = turn as usize % 2;
                let t = &tables[number];
                let id = turn.wrapping_mul(104_729) % ROWS;
                let least = known[number][id as usize].load(Ordering::SeqCst);
                found.clear();
                assert!(t.get(Reader::newest(), &key(id), &mut found).unwrap(), "row {id} is lost");
                let ValueRef::Int(value) = t.row_codec().view(&found).get(1) else { panic!("no number") };
                assert!(value >= i64::from(least), "row {id} is old: {value}, not {least}");
                if turn % 16 == 0 {
                    let mut keys = KeyList::default();
                    (0..ROWS).step_by(3).for_each(|id| keys.push(&key(id)));
                    let mut rows = 0;
                    let mut batch = Batch::default();
                    t.multi_get(Reader::newest(), IndexId(0), &keys, &mut batch, &mut |_, _, _| {
                        rows += 1;
                        true
                    })
                    .unwrap();
                    assert_eq!(rows, keys.len());
                }
                if turn % 64 == 0 {
                    assert!(count(t, IndexId(0)) >= ROWS as usize);
                }
            }
        }));
    }
    let (checkpoints, stopped) = (database.clone(), stop.clone());
    threads.push(thread::spawn(move || {
        while !stopped.load(Ordering::SeqCst) {
            checkpoints.checkpoint().unwrap();
        }
    }));
    let changes = |number: usize| known[number].iter().any(|value| value.load(Ordering::SeqCst) > 4 * ROWS);
    for round in (0_u32..).take_while(|round| *round < rounds || !changes(0) || !changes(1)) {
        let cache = ["hot", "cold", "default"][round as usize % 3];
        let size = cache_bytes << (round % 2);
        database.set_cache(["hot", "cold"][round as usize % 2], CacheChange::size(size)).unwrap();
        let t = &tables[round as usize % 2];
        match database.assign(t, cache) {
            Ok(()) => assert_eq!(database.cache_of(t), cache),
            Err(Error::NoSuchCache) => assert_ne!(cache, "default"),
            Err(error) => panic!("{error}"),
        }
        match round % 8 {
            3 => drop(database.preload(t, false).unwrap()),
            5 => {
                database.set_cache("hot", CacheChange::size(0)).unwrap();
                assert!(tables.iter().all(|t| database.cache_of(t) != "hot"));
            }
            7 => {
                let change = CacheChange { segments: Some(round % 5), ..CacheChange::default() };
                database.set_cache("default", change).unwrap();
            }
            _ => {}
        }
    }
    stop.store(true, Ordering::SeqCst);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for (t, known) in tables.iter().zip(&*known) {
        let mut found = Vec::new();
        for (id, value) in known.iter().enumerate() {
            found.clear();
            assert!(t.get(Reader::newest(), &key(id as u32), &mut found).unwrap());
            let value = i64::from(value.load(Ordering::SeqCst));
            assert_eq!(t.row_codec().view(&found).get(1), ValueRef::Int(value));
        }
        assert_eq!(count(t, IndexId(0)), count(t, IndexId(1)));
    }
    let report = database.check().unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    database.close().unwrap();
    drop((tables, database));
    let report = check(Path::new(DIR), vfs).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

#[test]
fn tables_move_between_roomy_caches_under_load() {
    for hit_path in [HitPath::Optimistic, HitPath::Locked] {
        move_under_load(hit_path, 1 << 20, 600);
    }
}

#[test]
fn tables_move_between_the_smallest_caches_under_load() {
    for hit_path in [HitPath::Optimistic, HitPath::Locked] {
        move_under_load(hit_path, 1, 600);
    }
}
