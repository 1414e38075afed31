//! sysbench's table, with rows.

use base::random::Random;
use latchwork_sql::{ResultSink, Session, SqlError};
use std::fmt::Write;

/// The number of a row out of `rows`, drawn at random.
pub fn row(random: &mut Random, rows: u32) -> i64 {
    i64::from(random.below(rows)) + 1
}

/// Creates `sbtest1` with so many rows, a thousand a statement.
///
/// # Errors
/// What the statements give.
pub fn load(session: &mut Session, rows: u32, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    session.query(
        b"CREATE TABLE sbtest1 (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL \
          DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k))",
        sink,
    )?;
    let mut random = Random::new(1, 1);
    let (c, pad) = ("0123456789-".repeat(10), "abcdefghij-".repeat(5));
    for first in (0..rows).step_by(1000) {
        let mut insert = String::from("INSERT INTO sbtest1 (k, c, pad) VALUES ");
        for nth in 0..1000.min(rows - first) {
            let comma = if nth == 0 { "" } else { "," };
            let _ = write!(insert, "{comma}({},'{c}','{pad}')", row(&mut random, rows));
        }
        session.query(insert.as_bytes(), sink)?;
    }
    Ok(())
}
