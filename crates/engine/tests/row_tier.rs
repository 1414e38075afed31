//! Every answer that the row tier may have a part in is compared with what the pages say, under changes, rollbacks, purge,
//! evictions from both, and changes of the tier's size.
#![cfg(not(feature = "shuttle"))]

use base::IndexId;
use base::sync::{Arc, thread};
use latchwork_engine::{
    Batch, CacheOptions, Database, Direction, FlushLog, IndexDef, Isolation, KeyList, KeyRange, LogOptions,
    Options, Reader, Session, Table, TableDef,
};
use std::collections::BTreeMap;
use std::path::Path;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::MemVfs;

const IDS: usize = 3_000;
const ROUNDS: usize = 400;
const TIER_BYTES: usize = 500 << 10;

fn options(is_first: bool) -> Options {
    Options {
        // Far fewer pages than the table has.
        cache: CacheOptions { size_bytes: 128 << 10, ..CacheOptions::default() },
        log: LogOptions { flush: FlushLog::Lazily, ..LogOptions::default() },
        row_tier_bytes: Some(TIER_BYTES),
        row_tier_first: is_first,
        page_size: 4 << 10,
        create: true,
        vfs: Arc::new(MemVfs::new()),
        ..Options::default()
    }
}

fn table_def() -> TableDef {
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", int()),
            column("k", int()),
            column("c", ColumnType::Blob { bytes_max: u32::MAX }),
        ],
        primary: Some(vec![part(0)]),
        indexes: vec![IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] }],
        auto_increment: None,
        ..TableDef::default()
    }
}

/// Numbers that are the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// Some ids more often than others.
    fn id(&mut self) -> i32 {
        (self.below(IDS) * self.below(IDS) / IDS) as i32
    }
}

fn key(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}

/// A row whose bytes say whether it is whole. One in forty lies in overflow pages.
fn image(table: &Table, id: i32, number: usize) -> Vec<u8> {
    let length = if number.is_multiple_of(40) { 3_000 } else { 100 + number % 150 };
    let (mut image, text) = (Vec::new(), vec![number as u8; length]);
    let values = [ValueRef::Int(id.into()), ValueRef::Int((number % 500) as i64), ValueRef::Binary(&text)];
    table.row_codec().encode(&values, &mut image);
    image
}

fn change(session: &mut Session, table: &Table, random: &mut Random) {
    session.begin(Isolation::ReadCommitted).unwrap();
    for _ in 0..1 + random.below(2) {
        let (id, number) = (random.id(), random.below(1 << 20));
        let mut statement = session.write().unwrap();
        // What is there already, or is not there, or waits for one who waits for it, is nothing.
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

fn many(table: &Table, reader: Reader<'_>, index: IndexId, keys: &[i32]) -> Vec<(usize, Vec<u8>)> {
    let (mut prefixes, mut found) = (KeyList::default(), Vec::new());
    keys.iter().for_each(|id| prefixes.push(&key(*id)));
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
    let statement = session.read();
    let reader = statement.reader();
    let mut ids: Vec<i32> = (0..1 + random.below(40)).map(|_| random.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    let found: BTreeMap<usize, Vec<u8>> = many(table, reader, IndexId(0), &ids).into_iter().collect();
    for (position, id) in ids.iter().enumerate() {
        let expected = by_pages(table, reader, *id);
        assert_eq!(found.get(&position), expected.as_ref(), "row {id} by multi_get");
        let mut image = Vec::new();
        let is_there = table.get(reader, &key(*id), &mut image).unwrap();
        assert_eq!(is_there.then_some(image), expected, "row {id} by get");
    }
    // Rows that entries of another index lead to.
    let k = random.below(500) as i32;
    let mut by_index: Vec<Vec<u8>> =
        many(table, reader, IndexId(1), &[k]).into_iter().map(|(_, image)| image).collect();
    for image in &by_index {
        let ValueRef::Int(id) = table.row_codec().view(image).get(0) else { panic!("no id") };
        assert_eq!(by_pages(table, reader, id as i32).as_ref(), Some(image), "row {id} by index");
    }
    let mut again: Vec<Vec<u8>> =
        many(table, reader, IndexId(1), &[k]).into_iter().map(|(_, image)| image).collect();
    by_index.sort_unstable();
    again.sort_unstable();
    assert_eq!(by_index, again);
    drop(statement);
    session.commit().unwrap();
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
                    let mut random = Random(number + 1);
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
        (0..50).for_each(|seed| compare(&mut session, &table, &mut Random(seed + 100)));
        let status = database.row_tier_status();
        assert!(status.hits > 1_000 && status.fills > 1_000 && status.invalidations > 100, "{status:?}");
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
        statement.insert(&table, &image(&table, id, 1)).unwrap();
    }
    statement.commit().unwrap();
    let look = || {
        // One row in each of more pages than memory has.
        let mut found = Vec::new();
        for id in (0..IDS as i32).step_by(30) {
            found.clear();
            assert!(table.get(Reader::newest(), &key(id), &mut found).unwrap());
            assert_eq!(found, image(&table, id, 1));
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
    // A change is seen, and the row is read once more.
    let mut statement = database.begin_write().unwrap();
    let changed = statement.update(&table, &key(30), &mut |_, out| {
        out.extend_from_slice(&image(&table, 30, 2));
        true
    });
    assert!(changed.unwrap());
    statement.commit().unwrap();
    let mut found = Vec::new();
    assert!(table.get(Reader::newest(), &key(30), &mut found).unwrap());
    assert_eq!(found, image(&table, 30, 2));
    database.close().unwrap();
}
