//! Prints how fast rows are loaded and looked up in this process, one thread, everything in memory.
//!
//! ```text
//! cargo run --release -p latchwork-engine --example lookup_rate -- [rows] [hit path] [seconds a figure]
//! ```
//! The table is sysbench's `sbtest`: `id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60), KEY k (k)`, some
//! 200 bytes a row. To see where the time goes: `perf record -g target/release/examples/lookup_rate`.

use base::IndexId;
use base::random::Random;
use latchwork_engine::{
    Batch, CacheOptions, Database, HitPath, IndexDef, KeyList, Options, Reader, Table, TableDef,
};
use std::error::Error;
use std::time::{Duration, Instant};
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows: i32 = arguments.next().map_or(Ok(2_000_000), |text| text.parse())?;
    let hit_path = match arguments.next().as_deref() {
        Some("locked") => HitPath::Locked,
        _ => HitPath::Optimistic,
    };
    let time = Duration::from_secs_f64(arguments.next().map_or(Ok(2.0), |text| text.parse())?);
    let folder = tempfile::tempdir()?;
    let size_bytes = (64 << 20) + rows as usize * 320;
    let options = Options {
        cache: CacheOptions { size_bytes, hit_path, ..CacheOptions::default() },
        create: true,
        ..Options::default()
    };
    let database = Database::open(&folder.path().join("data"), options)?;
    database.create_database("sbtest", b"")?;
    let table = database.create_table(definition())?;
    load(&database, &table, rows)?;
    let span = Span::begin();
    database.create_index(&table, IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] })?;
    report("rows into CREATE INDEX", u64::try_from(rows)?, span.end());

    let mut random = Random::new(1, 0);
    let mut image = Vec::new();
    measure("get by primary key", time, 1, || {
        image.clear();
        table.get(Reader::newest(), &int_key(random.below(rows as u32) as i32), &mut image)?;
        Ok(())
    })?;
    for (index, name) in [(IndexId(0), "primary key"), (IndexId(1), "key k, then row")] {
        for points in [1, 10, 32, 100] {
            let mut prefixes = KeyList::default();
            let mut batch = Batch::default();
            let mut found = 0u64;
            measure(&format!("multi_get of {points} by {name}"), time, points, || {
                let mut keys: Vec<i32> = (0..points).map(|_| random.below(rows as u32) as i32).collect();
                keys.sort_unstable();
                keys.dedup();
                prefixes.clear();
                keys.iter().for_each(|key| prefixes.push(&int_key(*key)));
                table.multi_get(Reader::newest(), index, &prefixes, &mut batch, &mut |_, _, image| {
                    found += u64::from(image[0] < 255);
                    true
                })
            })?;
        }
    }
    let table = database.create_table(TableDef {
        name: "indexed".into(),
        indexes: vec![IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] }],
        ..definition()
    })?;
    load(&database, &table, rows)?;
    Ok(database.close()?)
}

fn definition() -> TableDef {
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let chars = |chars| ColumnType::Char { chars, collation: Collation::Utf8mb4GeneralCi };
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    TableDef {
        database: "sbtest".into(),
        name: "sbtest1".into(),
        columns: vec![
            column("id", int()),
            column("k", int()),
            column("c", chars(120)),
            column("pad", chars(60)),
        ],
        primary: Some(vec![part(0)]),
        indexes: Vec::new(),
        auto_increment: Some(0),
        sql_metadata: Vec::new(),
        ..TableDef::default()
    }
}

fn part(column: usize) -> KeyPart {
    KeyPart { column, prefix_chars: None, descending: false }
}

/// Inserts `rows` rows in primary key order, as the server's INSERT does.
fn load(database: &Database, table: &Table, rows: i32) -> Result<(), Box<dyn Error>> {
    let mut random = Random::new(2, 0);
    let (mut images, mut image) = (KeyList::default(), Vec::new());
    let mut took = (Duration::ZERO, Duration::ZERO);
    for first in (0..rows).step_by(4_000) {
        images.clear();
        for id in first..rows.min(first + 4_000) {
            image.clear();
            let values = [
                ValueRef::Int(id.into()),
                ValueRef::Int(random.below(rows as u32).into()),
                ValueRef::Text(&[b'0' + (id % 10) as u8; 119]),
                ValueRef::Text(&[b'a' + (id % 10) as u8; 59]),
            ];
            table.row_codec().encode(&values, &mut image);
            images.push(&image);
        }
        let span = Span::begin();
        let mut statement = database.begin_write()?;
        statement.insert_many(table, &images).map_err(|(_, error)| error)?;
        statement.commit()?;
        let (clock, cpu) = span.end();
        took = (took.0 + clock, took.1 + cpu);
    }
    let indexes = table.def().indexes.len();
    report(&format!("rows into insert_many, {indexes} secondary index(es)"), rows as u64, took);
    Ok(())
}

fn int_key(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}

fn measure(
    what: &str,
    time: Duration,
    points: i32,
    mut work: impl FnMut() -> latchwork_engine::Result<()>,
) -> latchwork_engine::Result<()> {
    let span = Span::begin();
    let mut calls = 0;
    while span.start.elapsed() < time {
        for _ in 0..100 {
            work()?;
        }
        calls += 100;
    }
    report(what, calls * points as u64, span.end());
    Ok(())
}

fn report(what: &str, count: u64, took: (Duration, Duration)) {
    let each = |time: Duration| time.as_nanos() as f64 / count as f64;
    let (nanoseconds, cpu) = (each(took.0), each(took.1));
    let rate = 1e9 / nanoseconds;
    println!("{what:<45} {nanoseconds:>8.0} ns each {cpu:>8.0} ns of processor {rate:>12.0} a second");
}

/// How long something took: by the clock, and in processor time of this thread, which other load on the
/// machine does not lengthen.
struct Span {
    start: Instant,
    cpu_start: Duration,
}

impl Span {
    fn begin() -> Span {
        Span { start: Instant::now(), cpu_start: cpu_time() }
    }

    fn end(&self) -> (Duration, Duration) {
        (self.start.elapsed(), cpu_time().saturating_sub(self.cpu_start))
    }
}

/// What Linux says that this thread has run; zero elsewhere.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}
