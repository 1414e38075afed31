//! Prints what latches and their statistics cost look-ups by primary key, one thread, everything in memory.
//!
//! ```text
//! cargo run --release -p latchwork-engine --example latch_cost -- [rounds] [rows]
//! ```
//! Each round does the same work in both ways, in the order A B B A, for some milliseconds each; a round
//! gives a ratio. Printed are the median of the ratios and its 95 % confidence interval (by order statistics,
//! so that a round in which something else ran does not count for more than one).

use base::random::Random;
use base::sync::{Mutex, set_metering};
use latchwork_engine::{CacheOptions, Database, HitPath, KeyList, Options, Reader, Table, TableDef};
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use types::{Column, ColumnType, KeyPart, ValueRef};

const SLICE: Duration = Duration::from_millis(10);

base::latch_class!(Sample, "example");

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let rows: i32 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;

    let latch = Mutex::<u64, Sample>::of_class(0);
    compare("a free latch: statistics off / latch without any", rounds, |is_second| {
        if is_second { *black_box(&latch).lock() += 1 } else { *black_box(&latch).lock_quietly().0 += 1 }
    });
    compare("a free latch: statistics on / off", rounds, |is_second| {
        switch(is_second);
        *black_box(&latch).lock() += 1;
    });
    set_metering(false);

    for (hit_path, name) in [(HitPath::Optimistic, "optimistic"), (HitPath::Locked, "locked")] {
        let folder = tempfile::tempdir()?;
        let cache = CacheOptions { hit_path, ..CacheOptions::default() };
        let options = Options { cache, create: true, ..Options::default() };
        let database = Database::open(&folder.path().join("data"), options)?;
        database.create_database("d", b"")?;
        let table = database.create_table(definition())?;
        load(&database, &table, rows)?;
        let (mut random, mut image) = (Random::new(1, 0), Vec::new());
        compare(&format!("get by primary key, {name} hits: statistics on / off"), rounds, |is_second| {
            switch(is_second);
            image.clear();
            let found = table.get(Reader::newest(), &int_key(random.below(rows as u32) as i32), &mut image);
            assert!(found.is_ok_and(|found| found));
        });
        set_metering(false);
        database.close()?;
    }
    Ok(())
}

/// Of no cost where nothing is to be switched.
fn switch(on: bool) {
    if base::sync::metering() != on {
        set_metering(on);
    }
}

/// Times `work` done in the first way (false) and in the second.
fn compare(what: &str, rounds: usize, mut work: impl FnMut(bool)) {
    let mut slice = |is_second| {
        let (start, mut calls) = (Instant::now(), 0);
        while start.elapsed() < SLICE {
            (0..200).for_each(|_| work(is_second));
            calls += 200;
        }
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    let (mut ratios, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(10) {
        let times = [false, true, true, false].map(&mut slice);
        ratios.push((times[1] + times[2]) / (times[0] + times[3]));
        firsts.push((times[0] + times[3]) / 2.0);
    }
    ratios.sort_by(f64::total_cmp);
    firsts.sort_by(f64::total_cmp);
    let middle = ratios.len() / 2;
    let reach = (0.98 * (ratios.len() as f64).sqrt()).ceil() as usize;
    let (low, high) = (ratios[middle - reach], ratios[(middle + reach).min(ratios.len() - 1)]);
    let (first, ratio) = (firsts[middle], ratios[middle]);
    println!("{what:<60} {first:>8.1} ns, ratio {ratio:.4} ({low:.4} to {high:.4})");
}

fn definition() -> TableDef {
    let column = |name: &str| Column {
        name: name.into(),
        column_type: ColumnType::Int { bytes: 4, unsigned: false },
        nullable: false,
    };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![column("id"), column("k")],
        primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
        ..TableDef::default()
    }
}

fn load(database: &Database, table: &Table, rows: i32) -> Result<(), Box<dyn Error>> {
    let (mut images, mut image) = (KeyList::default(), Vec::new());
    for first in (0..rows).step_by(4_000) {
        images.clear();
        for id in first..rows.min(first + 4_000) {
            image.clear();
            table
                .row_codec()
                .encode(&[ValueRef::Int(id.into()), ValueRef::Int((id % 100).into())], &mut image);
            images.push(&image);
        }
        let mut statement = database.begin_write()?;
        statement.insert_many(table, &images).map_err(|(_, error)| error)?;
        statement.commit()?;
    }
    Ok(())
}

fn int_key(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}
