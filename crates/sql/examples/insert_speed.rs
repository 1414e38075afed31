//! How fast rows of literals get from a statement's bytes into a table, on one thread and without a socket.
//!
//! `cargo run --release -p latchwork-sql --example insert_speed [rows]`

#[path = "support/null_sink.rs"]
mod null_sink;

use engine::{CacheOptions, Database, Options};
use latchwork_sql::{Instance, Session};
use null_sink::NullSink;
use std::fmt::Write;
use std::time::Instant;

const ROWS_A_STATEMENT: usize = 2000;

/// One statement of sysbench's rows: a number, 119 and 59 characters.
fn statement(table: &str, first: usize) -> String {
    let mut sql = format!("INSERT INTO {table} (k, c, pad) VALUES ");
    for row in first..first + ROWS_A_STATEMENT {
        let digits = row.wrapping_mul(2_654_435_761) % 100_000_000_000;
        let group = format!("{digits:011}");
        let _ = write!(
            sql,
            "{}({},'{}','{}')",
            if row == first { "" } else { "," },
            digits % 1_000_000,
            [group.as_str(); 10].join("-"),
            [group.as_str(); 5].join("-")
        );
    }
    sql
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(400_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let options = Options {
        cache: CacheOptions { size_bytes: 1 << 30, ..CacheOptions::default() },
        create: true,
        ..Options::default()
    };
    let instance = Instance::new(Database::open(&folder.path().join("data"), options)?);
    let mut session = Session::new(instance.clone(), 1, "root", "localhost");
    let mut sink = NullSink::default();
    for sql in [
        "CREATE DATABASE test",
        "USE test",
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, \
         pad CHAR(60) NOT NULL)",
        "CREATE TABLE n (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, \
         pad CHAR(60) NOT NULL, x INT NOT NULL)",
    ] {
        session.query(sql.as_bytes(), &mut sink)?;
    }
    let statements: Vec<String> =
        (0..rows / ROWS_A_STATEMENT).map(|number| statement("t", number * ROWS_A_STATEMENT)).collect();
    let started = Instant::now();
    for sql in &statements {
        session.query(sql.as_bytes(), &mut sink)?;
    }
    let whole = started.elapsed().as_secs_f64();

    // The same text into a table with one more column. It is refused after the rows have been built and
    // before the engine sees them.
    let refused: Vec<String> =
        statements.iter().map(|sql| sql.replace("INTO t ", "INTO n ").replace(";", "")).collect();
    session.query(b"SET sql_mode = ''", &mut sink)?;
    let started = Instant::now();
    for sql in &refused {
        // The last row has too few values: everything before it was read, fitted and encoded.
        let sql = format!("{sql},(1)");
        let error = session.query(sql.as_bytes(), &mut sink).err();
        assert_eq!(error.map(|error| error.code()), Some(1136));
    }
    assert_eq!(sink.values, 0, "an INSERT gives no rows");
    let front = started.elapsed().as_secs_f64();
    let done = (statements.len() * ROWS_A_STATEMENT) as f64;
    println!("bytes to images: {:>10.0} rows/s", done / front);
    println!("bytes to table:  {:>10.0} rows/s", done / whole);
    drop(session);
    instance.engine().close()?;
    Ok(())
}
