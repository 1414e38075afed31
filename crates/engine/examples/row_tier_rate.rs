//! Prints what the row tier gains where the rows in use are scattered over a table larger than memory, and
//! what it costs where it gains nothing.
//!
//! ```text
//! cargo run --release -p latchwork-engine --example row_tier_rate -- scattered [rows] [folder]
//! cargo run --release -p latchwork-engine --example row_tier_rate -- shifting [rows] [folder]
//! cargo run --release -p latchwork-engine --example row_tier_rate -- clustered [rows] [folder]
//! cargo run --release -p latchwork-engine --example row_tier_rate -- indexes [rows] [folder]
//! cargo run --release -p latchwork-engine --example row_tier_rate -- absent [rows] [folder]
//! cargo run --release -p latchwork-engine --example row_tier_rate -- compressed [rows] [folder]
//! cargo run --release -p latchwork-engine --example row_tier_rate -- scan [rows] [folder]
//! cargo run --release -p latchwork-engine --example row_tier_rate -- memory [rows] [rounds]
//! ```
//! Rows have 200 bytes, an INT as key, and two more with an index each; pages 16 KiB, read past the operating
//! system's cache. The table in `folder` is made if it is not there, and is the same for all but
//! `compressed`. All but `memory` have 128 MiB in all.

use base::IndexId;
use base::random::Random;
use latchwork_engine::{
    Batch, CacheOptions, Database, Direction, FlushLog, FlushMethod, IndexDef, KeyList, KeyRange, LogOptions,
    Options, Reader, Table, TableDef,
};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};
use vfs::{Limits, OsVfs, Throttled};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What pages and rows may take together.
const BYTES: usize = 128 << 20;
/// The share of the memory that rows get when they get most of it. The rest is for inner pages and for the
/// few leaves that are in use.
const ROW_BYTES: usize = 120 << 20;
const GROUP: usize = 32;
/// Of the device, where rows that are wanted change.
const READS_A_SECOND: f64 = 8_000.0;
/// Characters of a row's text.
const TEXT: usize = 185;
/// Rows of one `k`.
const GROUP_ROWS: i32 = 4;
/// A prime number that is no divisor of the number of rows.
const SCATTER: i64 = 7919341;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "memory".into());
    let rows: Option<i32> = arguments.next().map(|text| text.parse()).transpose()?;
    let last = arguments.next();
    let scratch = tempfile::tempdir()?;
    if what == "memory" {
        let rounds = last.map_or(Ok(20), |text| text.parse())?;
        return memory(scratch.path(), rows.unwrap_or(500_000), rounds);
    }
    let folder = last.map_or(scratch.path().join("data"), PathBuf::from);
    let rows = rows.unwrap_or(10_000_000);
    fill(&folder, rows, what == "compressed")?;
    match what.as_str() {
        "indexes" => indexes(&folder, rows),
        "absent" => absent(&folder, rows),
        "compressed" => compressed(&folder, rows),
        "scattered" => {
            [300_000, 450_000, 520_000].into_iter().try_for_each(|wanted| scattered(&folder, rows, wanted))
        }
        "shifting" => shifting(&folder, rows, 200_000),
        "clustered" => clustered(&folder, rows),
        "scan" => scan(&folder, rows),
        other => {
            let known = "scattered, shifting, clustered, indexes, absent, compressed, scan, memory";
            Err(format!("'{other}' is none of {known}").into())
        }
    }
}

/// `row_tier_bytes` are of the cache's.
fn options(cache: usize, row_tier_bytes: usize) -> Options {
    Options {
        cache: CacheOptions { size_bytes: cache, ..CacheOptions::default() },
        log: LogOptions { flush: FlushLog::Lazily, ..LogOptions::default() },
        flush_method: FlushMethod::ODirect,
        row_tier_bytes: Some(row_tier_bytes),
        create: true,
        ..Options::default()
    }
}

fn part(column: usize) -> Vec<KeyPart> {
    vec![KeyPart { column, prefix_chars: None, descending: false }]
}

/// `id` is even. Each `u` is in one row, each `k` in four. Rows with neighbouring ids have values of `u` and
/// `k` that are far apart.
fn definition(compressed: bool) -> TableDef {
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", int()),
            column("u", int()),
            column("k", int()),
            column("c", ColumnType::Char { chars: TEXT as u32, collation: Collation::Utf8mb4Bin }),
        ],
        primary: Some(part(0)),
        compressed,
        ..TableDef::default()
    }
}

/// What rows are looked up by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Id,
    /// One that no row has.
    AbsentId,
    Unique,
    AbsentUnique,
    Group,
}

impl By {
    fn index(self) -> IndexId {
        IndexId(match self {
            By::Id | By::AbsentId => 0,
            By::Unique | By::AbsentUnique => 1,
            By::Group => 2,
        })
    }

    fn rows_found(self) -> usize {
        match self {
            By::AbsentId | By::AbsentUnique => 0,
            By::Id | By::Unique => 1,
            By::Group => GROUP_ROWS as usize,
        }
    }

    /// The key of the row of this number.
    fn key(self, number: i32, rows: i32) -> [u8; 4] {
        int_key(match self {
            By::Id => 2 * number,
            By::AbsentId => 2 * number + 1,
            By::Unique => 2 * scatter(number, rows),
            By::AbsentUnique => 2 * scatter(number, rows) + 1,
            By::Group => scatter(number, rows) / GROUP_ROWS,
        })
    }
}

/// Another number for each: neighbours come far apart.
fn scatter(number: i32, rows: i32) -> i32 {
    (i64::from(number) * SCATTER % i64::from(rows)) as i32
}

/// Makes the table unless it is there.
fn fill(folder: &Path, rows: i32, compressed: bool) -> Outcome<()> {
    let database = Database::open(folder, options(BYTES, 0))?;
    if let Ok(table) = database.table("d", "t") {
        assert_eq!(table.row_count(), rows as u64, "another number of rows is in the folder");
    } else {
        database.create_database("d", b"")?;
        let table = database.create_table(definition(compressed))?;
        load(&database, &table, rows)?;
    }
    Ok(database.close()?)
}

fn load(database: &Database, table: &Table, rows: i32) -> Outcome<()> {
    let (mut images, mut image, mut random) = (KeyList::default(), Vec::new(), Random::new(7, 0));
    for first in (0..rows).step_by(4_000) {
        images.clear();
        for id in first..rows.min(first + 4_000) {
            image.clear();
            let values = [2 * id, 2 * scatter(id, rows), scatter(id, rows) / GROUP_ROWS];
            let [id, u, k] = values.map(|value| ValueRef::Int(value.into()));
            // Half of it is like nothing else.
            let text: [u8; TEXT] =
                std::array::from_fn(|at| if at % 16 < 8 { b'a' + random.below(26) as u8 } else { b'x' });
            table.row_codec().encode(&[id, u, k, ValueRef::Text(&text)], &mut image);
            images.push(&image);
        }
        let mut statement = database.begin_write()?;
        statement.insert_many(table, &images).map_err(|(_, error)| error)?;
        statement.commit()?;
    }
    database.create_index(table, IndexDef { name: "u".into(), unique: true, parts: part(1) })?;
    database.create_index(table, IndexDef { name: "k".into(), unique: false, parts: part(2) })?;
    Ok(())
}

fn int_key(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}

/// A table and what looks into it.
struct Looker {
    database: Arc<Database>,
    table: Arc<Table>,
    by: By,
    rows: i32,
    prefixes: KeyList,
    batch: Batch,
}

impl Looker {
    fn open(folder: &Path, options: Options) -> Outcome<Looker> {
        let database = Database::open(folder, options)?;
        let table = database.table("d", "t")?;
        Ok(Looker::of(database, table))
    }

    fn of(database: Arc<Database>, table: Arc<Table>) -> Looker {
        let rows = table.row_count() as i32;
        Looker { database, table, by: By::Id, rows, prefixes: KeyList::default(), batch: Batch::default() }
    }

    /// Looks up the rows of these numbers.
    fn look(&mut self, numbers: &[i32]) -> Outcome<()> {
        let mut keys: Vec<_> = numbers.iter().map(|number| self.by.key(*number, self.rows)).collect();
        keys.sort_unstable();
        keys.dedup();
        self.prefixes.clear();
        keys.iter().for_each(|key| self.prefixes.push(key));
        let mut found = 0;
        let mut each = |_: usize, _: &[u8], _: &[u8]| {
            found += 1;
            true
        };
        let index = self.by.index();
        self.table.multi_get(Reader::newest(), index, &self.prefixes, &mut self.batch, &mut each)?;
        assert_eq!(found, keys.len() * self.by.rows_found());
        Ok(())
    }

    /// As many lookups of rows that `draw` names; device reads and time.
    fn run(&mut self, lookups: usize, mut draw: impl FnMut() -> i32) -> Outcome<(u64, Duration)> {
        let (start, reads) = (Instant::now(), self.reads());
        let mut numbers = Vec::with_capacity(GROUP);
        for _ in 0..lookups / GROUP {
            numbers.clear();
            numbers.extend((0..GROUP).map(|_| draw()));
            self.look(&numbers)?;
        }
        Ok((self.reads() - reads, start.elapsed()))
    }

    fn reads(&self) -> u64 {
        self.database.caches().default_cache().status().counters.reads
    }
}

/// The id of row `number` among `wanted` rows that are spread over `rows` as far apart as possible. Each
/// `epoch` has another set.
fn spread(number: i32, wanted: i32, rows: i32, epoch: i32) -> i32 {
    let apart = rows / wanted;
    number * apart + epoch * 7 % apart
}

fn scattered(folder: &Path, rows: i32, wanted: i32) -> Outcome<()> {
    println!("{wanted} rows of {rows}, each as likely as the others:");
    for (name, tier) in [("pages alone", 0), ("pages and rows", ROW_BYTES)] {
        let mut looker = Looker::open(folder, options(BYTES, tier))?;
        compare(&mut looker, name, wanted, tier > 0)?;
    }
    Ok(())
}

/// Scattered keys of other kinds: of rows by other indexes, and of rows that are not there.
fn indexes(folder: &Path, rows: i32) -> Outcome<()> {
    for (by, wanted) in
        [(By::Unique, 300_000), (By::AbsentId, 300_000), (By::AbsentUnique, 300_000), (By::Group, 80_000)]
    {
        println!("{wanted} keys of {rows}, each as likely as the others: {by:?}");
        for (name, tier) in [("pages alone", 0), ("pages and rows", ROW_BYTES)] {
            let mut looker = Looker::open(folder, options(BYTES, tier))?;
            looker.by = by;
            compare(&mut looker, name, wanted, tier > 0)?;
        }
    }
    Ok(())
}

/// Rows that are looked up again and again, mixed with keys that no row has and that hardly ever come twice,
/// in an eighth of the memory.
fn absent(folder: &Path, rows: i32) -> Outcome<()> {
    let wanted = 45_000;
    println!("{wanted} rows of {rows}, and after each lookup one of another key that no row has:");
    for (name, tier) in [("pages alone", 0), ("pages and rows", ROW_BYTES / 8)] {
        let mut looker = Looker::open(folder, options(BYTES / 8, tier))?;
        let (mut random, mut other) = (Random::new(3, 0), Random::new(5, 0));
        let (mut reads, mut time, lookups) = (0, Duration::ZERO, 100_000);
        for round in 0..4 * lookups / GROUP {
            looker.by = By::AbsentId;
            looker.run(GROUP, || other.below(rows as u32) as i32)?;
            looker.by = By::Id;
            let (its_reads, took) =
                looker.run(GROUP, || spread(random.below(wanted as u32) as i32, wanted, rows, 0))?;
            if round >= 3 * lookups / GROUP {
                reads += its_reads;
                time += took;
            }
        }
        println!(
            "  {name:<15} {:.4} device reads a lookup of those, {:>9.0} lookups a second",
            reads as f64 / lookups as f64,
            lookups as f64 / time.as_secs_f64()
        );
    }
    Ok(())
}

/// Rows of a compressed table: how its compressed pages in memory and the tier work together.
fn compressed(folder: &Path, rows: i32) -> Outcome<()> {
    for wanted in [20_000, 100_000, 300_000] {
        println!("{wanted} rows of {rows}, each as likely as the others:");
        for (name, tier) in [("pages alone", Some(0)), ("as it comes", None)] {
            let mut options = options(BYTES, 0);
            options.row_tier_bytes = tier;
            let mut looker = Looker::open(folder, options)?;
            compare(&mut looker, name, wanted, tier.is_none())?;
        }
    }
    Ok(())
}

/// Reads rows that are as far apart as can be, each once, and then at random.
fn compare(looker: &mut Looker, name: &str, wanted: i32, has_tier: bool) -> Outcome<()> {
    let rows = looker.rows;
    // Each once, in an order that leads from leaf to leaf.
    let mut next = 0_i64;
    looker.run(wanted as usize, || {
        next += 1;
        spread((next * 99_991 % i64::from(wanted)) as i32, wanted, rows, 0)
    })?;
    let mut random = Random::new(3, 0);
    let mut draw = || spread(random.below(wanted as u32) as i32, wanted, rows, 0);
    let lookups = if has_tier { 1_000_000 } else { 100_000 };
    looker.run(lookups, &mut draw)?;
    let (reads, took) = looker.run(lookups, &mut draw)?;
    println!(
        "  {name:<15} {:.4} device reads a lookup, {:>9.0} lookups a second",
        reads as f64 / lookups as f64,
        lookups as f64 / took.as_secs_f64()
    );
    if has_tier {
        println!("  {:?}", looker.database.row_tier_status());
    }
    Ok(())
}

fn shifting(folder: &Path, rows: i32, wanted: i32) -> Outcome<()> {
    // The device has a constant speed, so the result can be given as a part of the time that it needs to read
    // the rows.
    let limits = Limits { operations_per_second: Some(READS_A_SECOND), ..Limits::default() };
    let vfs = Arc::new(Throttled::new(Arc::new(OsVfs), limits));
    let mut looker = Looker::open(folder, Options { vfs, ..options(BYTES, ROW_BYTES) })?;
    let mut random = Random::new(3, 0);
    println!("{wanted} rows of {rows}, each as likely as the others; then as many others:");
    for epoch in 0..4 {
        // The time to read each row once, of rows that are not read again. They are read in random order: in
        // key order the operating system would read ahead.
        let sample = 20_000;
        let (_, once) = looker.run(sample, || {
            spread(random.below(wanted as u32) as i32, wanted, rows, 1_000 + epoch) / 2 * 2 + 1
        })?;
        let once = once.as_secs_f64() * f64::from(wanted) / sample as f64;
        // Time, reads and rate after each window.
        let (start, before, mut windows) = (Instant::now(), looker.reads(), Vec::new());
        while start.elapsed().as_secs_f64() < 2.5 * once {
            let draw = || spread(random.below(wanted as u32) as i32, wanted, rows, epoch) / 2 * 2;
            let (_, took) = looker.run(GROUP * 200, draw)?;
            windows.push((start.elapsed().as_secs_f64(), looker.reads() - before, 1.0 / took.as_secs_f64()));
        }
        let median = |windows: &[(f64, u64, f64)]| {
            let mut rates: Vec<f64> = windows.iter().map(|(_, _, rate)| *rate).collect();
            rates.sort_unstable_by(f64::total_cmp);
            rates[rates.len() / 2]
        };
        let steady = median(&windows[windows.len() * 9 / 10..]);
        // Back when the median of a few windows is.
        let back = windows.windows(9).find(|few| median(few) >= 0.9 * steady);
        let (time, reads, _) = back.map_or((f64::INFINITY, u64::MAX, 0.0), |few| few[0]);
        println!(
            "  epoch {epoch}: {:>8.0} lookups a second in the end; 90 % of that after {:.2} reads a row, and {:.2} of the time in which each is read once ({once:.1} s)",
            steady * (GROUP * 200) as f64,
            reads as f64 / f64::from(wanted),
            time / once
        );
    }
    Ok(())
}

/// Rows of whole pages: eight tenths of what memory holds, and scans.
fn clustered(folder: &Path, rows: i32) -> Outcome<()> {
    let wanted = rows.min((BYTES / 10 * 6 / 220) as i32);
    println!("{wanted} rows of {rows}, one behind the other, each as likely as the others:");
    for tier in [0, BYTES / 8] {
        let mut looker = Looker::open(folder, options(BYTES, tier))?;
        let mut random = Random::new(3, 0);
        let mut draw = || random.below(wanted as u32) as i32;
        looker.run(2_000_000, &mut draw)?;
        let mut rates: Vec<f64> = Vec::new();
        for _ in 0..9 {
            let (_, took) = looker.run(300_000, &mut draw)?;
            rates.push(300_000.0 / took.as_secs_f64());
        }
        rates.sort_unstable_by(f64::total_cmp);
        println!(
            "  {:>3} MiB of rows: {:.0} lookups a second ({:.0} to {:.0})",
            tier >> 20,
            rates[4],
            rates[1],
            rates[7]
        );
    }
    Ok(())
}

/// Full scans, first of a table that does not fit, then of one that is in memory. Rounds with a full tier and
/// rounds without one alternate, with the same number of bytes in all.
fn scan(folder: &Path, rows: i32) -> Outcome<()> {
    let mut looker = Looker::open(folder, options(BYTES, 0))?;
    compare_scans("from the device", &mut looker, rows, 7)?;
    drop(looker);
    let (small, cache) = (tempfile::tempdir()?, BYTES);
    let rows = (cache / 2 / 260) as i32;
    fill(&small.path().join("data"), rows, false)?;
    let mut looker = Looker::open(&small.path().join("data"), options(cache, 0))?;
    compare_scans("in memory", &mut looker, rows, 31)
}

fn compare_scans(what: &str, looker: &mut Looker, rows: i32, rounds: usize) -> Outcome<()> {
    const TIER: usize = BYTES / 4;
    let mut random = Random::new(3, 0);
    let mut times = [Vec::new(), Vec::new()];
    let mut kept = 0;
    for round in 0..2 * rounds {
        let on = round % 2;
        looker.database.resize_row_tier(Some(on * TIER))?;
        // The tier is filled by lookups. Rounds without a tier do as many lookups, so that the pages are in
        // the same state in both.
        looker.run(30_000, || random.below(rows as u32) as i32)?;
        let before = looker.database.row_tier_status();
        let start = Instant::now();
        let mut scan = looker.table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
        let mut found = 0;
        while scan.next_row()?.is_some() {
            found += 1;
        }
        times[on].push(f64::from(rows) / start.elapsed().as_secs_f64());
        assert_eq!(found, rows);
        let after = looker.database.row_tier_status();
        assert_eq!(
            (before.fills, before.entries),
            (after.fills, after.entries),
            "a scan keeps no row and drops none"
        );
        kept = kept.max(after.entries);
    }
    let mut ratios: Vec<f64> = times[0].iter().zip(&times[1]).map(|(off, on)| on / off).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    times.iter_mut().for_each(|times| times.sort_unstable_by(f64::total_cmp));
    println!(
        "{what}, {rows} rows: {:.0} rows a second off, {:.0} on with {kept} rows kept (medians); on/off of neighbours {:.3}, half of them from \
         {:.3} to {:.3}",
        times[0][rounds / 2],
        times[1][rounds / 2],
        ratios[rounds / 2],
        ratios[rounds / 4],
        ratios[rounds * 3 / 4]
    );
    Ok(())
}

/// Everything is in memory. Rounds with and without a tier alternate, so that other load on the machine meets
/// both.
fn memory(folder: &Path, rows: i32, rounds: usize) -> Outcome<()> {
    let folder = folder.join("data");
    let cache = (64 << 20) + rows as usize * 320;
    let database = Database::open(&folder, options(cache, 0))?;
    database.create_database("d", b"")?;
    let table = database.create_table(definition(false))?;
    load(&database, &table, rows)?;
    let mut looker = Looker::of(database, table);
    let mut random = Random::new(3, 0);
    looker.run(rows as usize, || random.below(rows as u32) as i32)?;
    let lookups = 200_000;
    let mut image = Vec::new();
    for (by, single) in [(By::Id, true), (By::Id, false), (By::Unique, false)] {
        looker.by = by;
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..2 * rounds {
            let on = round % 2;
            looker.database.resize_row_tier(Some(on * (16 << 20))).unwrap();
            let took = if single {
                let start = Instant::now();
                for _ in 0..lookups {
                    image.clear();
                    assert!(looker.table.get(
                        Reader::newest(),
                        &By::Id.key(random.below(rows as u32) as i32, rows),
                        &mut image
                    )?);
                }
                start.elapsed()
            } else {
                looker.run(lookups, || random.below(rows as u32) as i32)?.1
            };
            times[on].push(took.as_secs_f64() * 1e9 / lookups as f64);
        }
        let mut ratios: Vec<f64> = times[0].iter().zip(&times[1]).map(|(off, on)| on / off).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        times.iter_mut().for_each(|times| times.sort_unstable_by(f64::total_cmp));
        println!(
            "{}: {:.0} ns off, {:.0} ns on (medians); on/off of neighbours {:.3}, half of them from {:.3} to {:.3}",
            if single { "get".to_owned() } else { format!("multi_get of 32 by {by:?}") },
            times[0][rounds / 2],
            times[1][rounds / 2],
            ratios[rounds / 2],
            ratios[rounds / 4],
            ratios[rounds * 3 / 4]
        );
        println!("  {:?}", looker.database.row_tier_status());
    }
    Ok(())
}
