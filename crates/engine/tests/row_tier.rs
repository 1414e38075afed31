//! Every answer that the row tier may take part in is compared with the pages, under changes, rollbacks,
//! purge, evictions from the tier and the cache, and changes of the tier's size.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::IndexId;
use base::random::Random;
use base::sync::{Arc, thread};
use latchwork_engine::{
    Batch, CacheOptions, Database, Direction, FlushLog, IndexDef, IoOptions, Isolation, KeyList, KeyRange,
    LogOptions, Options, Reader, Session, Table, TableDef,
};
use std::collections::BTreeMap;
use std::path::Path;
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};
use vfs::MemVfs;

const IDS: usize = 3_000;
const ROUNDS: usize = 400;
/// How many values unique columns have.
const UNIQUE: usize = 20_000;
const TIER_BYTES: usize = 500 << 10;

fn options(is_first: bool) -> Options {
    Options {
        // Far fewer pages than the table has.
        cache: CacheOptions { size_bytes: common::cache_bytes(128 << 10), ..CacheOptions::default() },
        log: LogOptions { flush: FlushLog::Lazily, ..LogOptions::default() },
        row_tier_bytes: Some(TIER_BYTES),
        row_tier_first: is_first,
        // Nor does anybody read ahead, late perhaps.
        io: IoOptions { read_threads: 0, ..IoOptions::default() },
        page_size: 4 << 10,
        create: true,
        vfs: Arc::new(MemVfs::new()),
        ..Options::default()
    }
}

/// The indexes on `k` and `t` are not unique. The one on `u` is, and `u` may be NULL. The one on `v` is
/// unique and descending, and some of its texts begin with others. `t` and `u` also share an index.
fn table_def() -> TableDef {
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    let text = || ColumnType::Varchar { chars: 40, collation: Collation::Utf8mb4GeneralCi };
    let index = |name: &str, unique, parts| IndexDef { name: name.into(), unique, parts };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", int()),
            column("k", int()),
            column("c", ColumnType::Blob { bytes_max: u32::MAX }),
            Column { nullable: true, ..column("u", int()) },
            column("v", text()),
            column("t", text()),
        ],
        primary: Some(vec![part(0)]),
        indexes: vec![
            index("k", false, vec![part(1)]),
            index("u", true, vec![part(3)]),
            index("v", true, vec![KeyPart { descending: true, ..part(4) }]),
            index("tu", false, vec![KeyPart { prefix_chars: Some(3), ..part(5) }, part(3)]),
        ],
        auto_increment: None,
        ..TableDef::default()
    }
}

/// Some ids more often than others.
fn some_id(random: &mut Random) -> i32 {
    (random.index(IDS) * random.index(IDS) / IDS) as i32
}

fn key(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}

/// A row whose bytes say whether it is whole. One in forty lies in overflow pages.
fn image(table: &Table, id: i32, number: usize) -> Vec<u8> {
    let length = if number.is_multiple_of(40) { 3_000 } else { 100 + number % 150 };
    let (mut image, bytes) = (Vec::new(), vec![number as u8; length]);
    let u = if number.is_multiple_of(9) { ValueRef::Null } else { ValueRef::Int((number % UNIQUE) as i64) };
    let [v, t] = [text(number % UNIQUE, number), text(number % 200, id as usize)];
    let int = |value: usize| ValueRef::Int(value as i64);
    let values = [
        int(id as usize),
        int(number % 500),
        ValueRef::Binary(&bytes),
        u,
        ValueRef::Text(v.as_bytes()),
        ValueRef::Text(t.as_bytes()),
    ];
    table.row_codec().encode(&values, &mut image);
    image
}

/// A text for each number; many begin with others. It may be written with letters that count as the same, or
/// with a space behind.
fn text(number: usize, how: usize) -> String {
    let a = ["a", "A", "ä"][how % 3];
    let bits = (number + 1).ilog2();
    let letters = (0..bits).rev().map(|bit| if (number + 1) >> bit & 1 == 0 { a } else { " z" });
    letters.collect::<String>() + ["", " "][how % 2]
}

fn change(session: &mut Session, table: &Table, random: &mut Random) {
    session.begin(Isolation::ReadCommitted).unwrap();
    for _ in 0..1 + random.below(2) {
        let (id, number) = (some_id(random), random.index(1 << 20));
        let mut statement = session.write().unwrap();
        // A row that exists already, a row that does not exist and a deadlock are all expected, and change
        // nothing.
        let done = match random.below(4) {
            0 => statement.delete(table, &key(id), &mut |_| true).is_ok(),
            1 => statement.insert(table, &image(table, id, number)).is_ok(),
            _ => statement
                .update(table, &key(id), &mut |_, out| {
                    out.extend_from_slice(&image(table, id, number));
                    true
                })
                .is_ok(),
        };
        if done {
            statement.commit().unwrap();
        }
    }
    // A deadlock has ended it.
    let _ = if random.below(3) == 0 { session.roll_back() } else { session.commit() };
}

fn many(
    table: &Table,
    reader: Reader<'_>,
    index: IndexId,
    keys: impl IntoIterator<Item: AsRef<[u8]>>,
) -> Vec<(usize, Vec<u8>)> {
    let (mut prefixes, mut found) = (KeyList::default(), Vec::new());
    keys.into_iter().for_each(|key| prefixes.push(key.as_ref()));
    table
        .multi_get(reader, index, &prefixes, &mut Batch::default(), &mut |position, _, image| {
            found.push((position, image.to_vec()));
            true
        })
        .unwrap();
    found
}

/// What a scan of the clustered index finds, which knows nothing of the tier.
fn by_pages(table: &Table, reader: Reader<'_>, id: i32) -> Option<Vec<u8>> {
    let mut scan = table.scan(reader, IndexId(0), KeyRange::prefix(&key(id)), Direction::Forward);
    scan.next_row().unwrap().map(<[u8]>::to_vec)
}

fn compare(session: &mut Session, table: &Table, random: &mut Random) {
    session.begin(Isolation::RepeatableRead).unwrap();
    let statement = session.read().unwrap();
    let reader = statement.reader();
    let mut ids: Vec<i32> = (0..1 + random.below(40)).map(|_| some_id(random)).collect();
    ids.sort_unstable();
    ids.dedup();
    let keys = ids.iter().map(|id| key(*id));
    let found: BTreeMap<usize, Vec<u8>> = many(table, reader, IndexId(0), keys).into_iter().collect();
    for (position, id) in ids.iter().enumerate() {
        let expected = by_pages(table, reader, *id);
        assert_eq!(found.get(&position), expected.as_ref(), "row {id} by multi_get");
        let mut image = Vec::new();
        let is_there = table.get(reader, &key(*id), &mut image).unwrap();
        assert_eq!(is_there.then_some(image), expected, "row {id} by get");
    }
    if random.below(8) == 0 {
        compare_indexes(table, reader, random);
    }
    drop(statement);
    session.commit().unwrap();
}

/// Rows by all parts of each index, and by the first of two: what a scan of all rows says.
fn compare_indexes(table: &Table, reader: Reader<'_>, random: &mut Random) {
    let mut rows = Vec::new();
    let mut scan = table.scan(reader, IndexId(0), KeyRange::all(), Direction::Forward);
    while let Some(image) = scan.next_row().unwrap() {
        rows.push(image.to_vec());
    }
    for index in 1..=table.def().indexes.len() {
        let codec = table.key_codec(IndexId(index as u16));
        let key_of = |image: &[u8]| {
            let mut key = Vec::new();
            codec.encode_row(&table.row_codec().view(image), &mut key);
            key
        };
        let mut by_key: BTreeMap<Vec<u8>, Vec<&[u8]>> = BTreeMap::new();
        rows.iter().for_each(|image| by_key.entry(key_of(image)).or_default().push(image));
        let mut keys: Vec<Vec<u8>> = (0..1 + random.below(20))
            .map(|_| match random.below(3) {
                // Perhaps there is such a row, and perhaps not.
                0 => key_of(&image(table, some_id(random), random.index(1 << 20))),
                _ => key_of(&rows[random.index(rows.len())]),
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let mut found = vec![Vec::new(); keys.len()];
        for (position, image) in many(table, reader, IndexId(index as u16), &keys) {
            found[position].push(image);
        }
        for (key, found) in keys.iter().zip(&mut found) {
            found.sort_unstable();
            let mut expected = by_key.get(key).cloned().unwrap_or_default();
            expected.sort_unstable();
            assert_eq!(*found, expected, "rows with {key:?} in index {index}");
        }
    }
}

#[test]
fn every_answer_is_what_the_pages_say() {
    for is_first in [true, false] {
        let database = Database::open(Path::new("data"), options(is_first)).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let mut statement = database.begin_write().unwrap();
        for id in 0..IDS as i32 {
            statement.insert(&table, &image(&table, id, id as usize)).unwrap();
        }
        statement.commit().unwrap();
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (database, table) = (database.clone(), table.clone());
                thread::spawn(move || {
                    let mut random = Random::new(number, 0);
                    let mut session = database.session();
                    for round in 0..ROUNDS {
                        if number < 2 {
                            (0..8).for_each(|_| change(&mut session, &table, &mut random));
                        } else {
                            compare(&mut session, &table, &mut random);
                        }
                        if number == 0 && round % 50 == 49 {
                            let sizes = [0, TIER_BYTES / 5 * 3, 2 * TIER_BYTES, TIER_BYTES];
                            database.resize_row_tier(Some(sizes[round / 50 % 4])).unwrap();
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut session = database.session();
        (0..50).for_each(|seed| compare(&mut session, &table, &mut Random::new(seed, 1)));
        let status = database.row_tier_status();
        assert!(status.hits > 1_000 && status.fills > 1_000 && status.invalidations > 100, "{status:?}");
        assert!(status.evictions > 1_000, "{status:?}");
        assert!(status.bytes <= status.size, "{status:?}");
        drop(session);
        database.close().unwrap();
    }
}

#[test]
fn scattered_rows_are_read_from_the_device_once_and_scans_leave_them_there() {
    let database = Database::open(Path::new("data"), options(false)).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let mut statement = database.begin_write().unwrap();
    for id in 0..IDS as i32 {
        statement.insert(&table, &image(&table, id, 9 * id as usize + 1)).unwrap();
    }
    statement.commit().unwrap();
    let look = || {
        // One row in each of more pages than memory has.
        let mut found = Vec::new();
        for id in (0..IDS as i32).step_by(30) {
            found.clear();
            assert!(table.get(Reader::newest(), &key(id), &mut found).unwrap());
            assert_eq!(found, image(&table, id, 9 * id as usize + 1));
        }
    };
    let reads = || database.caches().default_cache().status().counters.reads;
    look();
    look();
    let fills = database.row_tier_status().fills;
    assert!(fills > 80, "{fills}");
    let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
    while scan.next_row().unwrap().is_some() {}
    drop(scan);
    look();
    let before = reads();
    look();
    // Those whose leaf was in memory at first, which is no longer.
    assert!(reads() - before <= 20, "{}", reads() - before);
    // A change is seen, and takes the old row's place: nothing has to be read once more.
    let mut statement = database.begin_write().unwrap();
    let changed = statement.update(&table, &key(30), &mut |_, out| {
        out.extend_from_slice(&image(&table, 30, 9_998));
        true
    });
    assert!(changed.unwrap());
    statement.commit().unwrap();
    // Once it is written, the scan drives the leaf out.
    database.caches().flush_all().unwrap();
    let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
    while scan.next_row().unwrap().is_some() {}
    drop(scan);
    let (before, hits) = (reads(), database.row_tier_status().hits);
    let mut found = Vec::new();
    assert!(table.get(Reader::newest(), &key(30), &mut found).unwrap());
    assert_eq!(found, image(&table, 30, 9_998));
    assert_eq!(database.row_tier_status().hits, hits + 1);
    // Its inner pages may have gone.
    assert!(reads() - before <= 2, "{}", reads() - before);
    database.close().unwrap();
}

#[test]
fn keys_of_every_index_are_read_from_the_device_once() {
    let options = Options { page_size: 2 << 10, ..options(false) };
    let cache = CacheOptions { size_bytes: common::cache_bytes(64 << 10), ..CacheOptions::default() };
    let database = Database::open(Path::new("data"), Options { cache, ..options }).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let row = |id: i32| image(&table, id, 9 * id as usize + 1);
    let mut statement = database.begin_write().unwrap();
    (0..IDS as i32).for_each(|id| statement.insert(&table, &row(id)).unwrap());
    statement.commit().unwrap();
    let scan = || {
        let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
        while scan.next_row().unwrap().is_some() {}
    };
    let reads = || database.caches().default_cache().status().counters.reads;
    for index in [0, 2, 3].map(IndexId) {
        let look = || {
            for id in (0..IDS as i32).step_by(30) {
                let mut key = Vec::new();
                table.key_codec(index).encode_row(&table.row_codec().view(&row(id)), &mut key);
                assert_eq!(many(&table, Reader::newest(), index, [key]), [(0, row(id))]);
            }
        };
        // Whose leaf was in memory for the one before is kept the next time.
        for _ in 0..3 {
            look();
            scan();
        }
        let before = reads();
        look();
        assert!(reads() - before <= 20, "{} in index {index:?}", reads() - before);
    }
    database.close().unwrap();
}
