//! The cost of a statement, from its bytes to a sink that discards its rows.
//!
//! `cargo run --release -p latchwork-sql --example session_speed -- [rows] [seconds]`

#[path = "support/null_sink.rs"]
mod null_sink;
#[path = "support/sbtest1.rs"]
mod sbtest1;

use base::random::Random;
use engine::{CacheOptions, Database, Options};
use latchwork_sql::{Instance, Session, SqlError};
use null_sink::NullSink;
use sbtest1::row;
use std::time::{Duration, Instant};
use types::ValueRef;

fn measure(
    name: &str,
    span: Duration,
    mut run: impl FnMut() -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    for _ in 0..1000 {
        run()?;
    }
    let start = Instant::now();
    let mut times = 0u64;
    while start.elapsed() < span {
        for _ in 0..100 {
            run()?;
        }
        times += 100;
    }
    println!("{name:<34} {:>9.0} ns", start.elapsed().as_nanos() as f64 / times as f64);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows: u32 = arguments.next().and_then(|rows| rows.parse().ok()).unwrap_or(100_000);
    let seconds: f64 = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(1.0);
    let span = Duration::from_secs_f64(seconds);
    let folder = tempfile::tempdir()?;
    let cache = CacheOptions { size_bytes: 1 << 30, ..CacheOptions::default() };
    let database = Database::open(folder.path(), Options { cache, create: true, ..Options::default() })?;
    database.create_database("sbtest", &[])?;
    let table_of = database.clone();
    let mut session = Session::new(Instance::new(database), 1, "root", "localhost");
    session.use_database("sbtest")?;
    let mut sink = NullSink::default();
    sbtest1::load(&mut session, rows, &mut sink)?;
    let table = table_of.table("sbtest", "sbtest1")?;
    let mut random = Random::new(1, 0);

    let mut image = Vec::new();
    measure("engine: get", span, || {
        image.clear();
        let key = (row(&mut random, rows) as u32 ^ 1 << 31).to_be_bytes();
        table.get(engine::Reader::newest(), &key, &mut image)?;
        Ok(())
    })?;
    let point = session.prepare(b"SELECT c FROM sbtest1 WHERE id = ?")?;
    measure("prepared point select", span, || {
        session.execute(point.id, &[ValueRef::Int(row(&mut random, rows))], &mut sink)
    })?;
    let mut text = String::new();
    measure("text point select", span, || {
        use std::fmt::Write;
        text.clear();
        let _ = write!(text, "SELECT c FROM sbtest1 WHERE id={}", row(&mut random, rows));
        session.query(text.as_bytes(), &mut sink)
    })?;
    let marks = vec!["?"; 100].join(",");
    for (name, column) in [("id", "id"), ("k", "k")] {
        let mut batch = engine::Batch::default();
        let mut keys = engine::KeyList::default();
        let mut words = Vec::new();
        let index = base::IndexId(u16::from(name == "k"));
        measure(&format!("engine: multi_get of 100 by {name}"), span, || {
            keys.clear();
            words.clear();
            words.extend((0..100).map(|_| row(&mut random, rows) as u32 ^ 1 << 31));
            words.sort_unstable();
            words.dedup();
            words.iter().for_each(|word| keys.push(&word.to_be_bytes()));
            table.multi_get(engine::Reader::newest(), index, &keys, &mut batch, &mut |_, _, image| {
                std::hint::black_box(image);
                true
            })?;
            Ok(())
        })?;
        let sql = format!("SELECT id, k, c, pad FROM sbtest1 WHERE {column} IN ({marks})");
        let prepared = session.prepare(sql.as_bytes())?;
        let mut parameters = vec![ValueRef::Null; 100];
        measure(&format!("prepared 100 points by {name}"), span, || {
            parameters.iter_mut().for_each(|value| *value = ValueRef::Int(row(&mut random, rows)));
            session.execute(prepared.id, &parameters, &mut sink)
        })?;
        measure(&format!("text 100 points by {name}"), span, || {
            use std::fmt::Write;
            text.clear();
            let _ = write!(text, "SELECT id, k, c, pad FROM sbtest1 WHERE {column} IN (");
            for nth in 0..100 {
                let _ = write!(text, "{}{}", if nth == 0 { "" } else { "," }, row(&mut random, rows));
            }
            text.push(')');
            session.query(text.as_bytes(), &mut sink)
        })?;
    }
    let ranges = ["k BETWEEN ? AND ?"; 10].join(" OR ");
    let prepared = session.prepare(format!("SELECT COUNT(k) FROM sbtest1 WHERE {ranges}").as_bytes())?;
    measure("prepared 10 ranges of 5", span, || {
        let mut parameters = Vec::with_capacity(20);
        for _ in 0..10 {
            let from = row(&mut random, rows);
            parameters.extend([ValueRef::Int(from), ValueRef::Int(from + 5)]);
        }
        session.execute(prepared.id, &parameters, &mut sink)
    })?;
    let ordered = session.prepare(b"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c")?;
    measure("prepared ordered range of 100", span, || {
        let from = row(&mut random, rows);
        session.execute(ordered.id, &[ValueRef::Int(from), ValueRef::Int(from + 99)], &mut sink)
    })?;
    let sum = session.prepare(b"SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?")?;
    measure("prepared sum of 100", span, || {
        let from = row(&mut random, rows);
        session.execute(sum.id, &[ValueRef::Int(from), ValueRef::Int(from + 99)], &mut sink)
    })?;
    measure("SELECT 1", span, || session.query(b"SELECT 1", &mut sink))?;
    println!("{} values", sink.values);
    Ok(())
}
