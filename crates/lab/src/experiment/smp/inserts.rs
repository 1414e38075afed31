//! `inserts`: sessions that each fill a table of their own, in statements of many rows.

use super::Bench;
use crate::driver::together::{self, Lines};
use crate::error::Result;
use crate::experiment::frame::Run;
use crate::experiment::instance::Instance;
use crate::interrupt::Interrupt;
use crate::measure::Recorder;
use crate::results::Sample;
use base::random::Random;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// As published.
pub(crate) const ROWS_PER_STATEMENT: u32 = 1_000;

pub(crate) struct Inserts {
    pub instance: Instance,
    pub rows: u32,
    pub seed: u64,
}

pub(crate) fn table(number: u32) -> String {
    format!("T{}", number + 1)
}

/// The rows of one session: `i` ascends, `j` is random.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    random: Random,
    next: u32,
    rows: u32,
    /// Of all `j` so far.
    pub sum: u64,
}

impl Rows {
    pub(crate) fn new(seed: u64, session: u32, rows: u32) -> Rows {
        Rows { random: Random::new(seed, 7_000 + u64::from(session)), next: 1, rows, sum: 0 }
    }

    /// The rows of the next statement; none at the end.
    pub(crate) fn statement(&mut self) -> Vec<(u32, u32)> {
        let last = self.rows.min(self.next.saturating_add(ROWS_PER_STATEMENT - 1));
        let rows: Vec<(u32, u32)> =
            (self.next..=last).map(|i| (i, self.random.below(i32::MAX as u32))).collect();
        self.sum += rows.iter().map(|&(_, j)| u64::from(j)).sum::<u64>();
        self.next = last + 1;
        rows
    }
}

impl Bench for Inserts {
    fn facts(&self) -> Vec<(String, String)> {
        self.instance.facts()
    }

    fn load(&mut self, _run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    fn sample(
        &mut self,
        sessions: u32,
        round: u32,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64, &str),
    ) -> Result<Sample> {
        let mut client = self.instance.login.connect()?;
        for number in 0..sessions {
            let sql = format!(
                "CREATE TABLE {} (i INT NOT NULL PRIMARY KEY, j INT, INDEX jx (j)) ENGINE={}",
                table(number),
                self.instance.engine
            );
            self.instance.create(&mut client, &table(number), &sql)?;
        }
        let inserted = AtomicU64::new(0);
        let mut lines = Lines::default();
        let mut workers = Vec::new();
        let seed = self.seed.wrapping_add(round.into());
        for number in 0..sessions {
            let mut client = self.instance.login.connect()?;
            lines.add(&mut client)?;
            let mut rows = Rows::new(seed, number, self.rows);
            let inserted = &inserted;
            workers.push(move || {
                let mut recorder = Recorder::default();
                loop {
                    let statement = rows.statement();
                    if statement.is_empty() {
                        return Ok((recorder, client));
                    }
                    let started = Instant::now();
                    client.run(&insert_sql(&table(number), &statement))?;
                    recorder.query(started.elapsed(), statement.len() as u64);
                    // ORDER: shown to a person, nothing more.
                    inserted.fetch_add(statement.len() as u64, Ordering::Relaxed);
                }
            });
        }
        let total = u64::from(self.rows) * u64::from(sessions);
        let mut watch = || {
            // ORDER: see above.
            let share = inserted.load(Ordering::Relaxed) as f64 / total as f64;
            progress(share, "");
        };
        let sample = self
            .instance
            .observe(|observed| together::run(workers, &lines, round, observed, interrupt, &mut watch))?;
        for number in 0..sessions {
            self.verify(number, seed)?;
        }
        Ok(sample)
    }

    fn stop(&mut self) -> Result<()> {
        self.instance.stop()
    }
}

impl Inserts {
    fn verify(&self, number: u32, seed: u64) -> Result<()> {
        let mut rows = Rows::new(seed, number, self.rows);
        while !rows.statement().is_empty() {}
        let expected = format!("{} {}", self.rows, rows.sum);
        let name = table(number);
        let found = self.instance.login.connect()?.rows(&format!("SELECT COUNT(*), SUM(j) FROM {name}"))?;
        let found = found.concat().join(" ");
        if found == expected {
            return Ok(());
        }
        let why = format!("count of rows and sum of j in {name} are {found}, inserted were {expected}");
        Err(self.instance.wrong_answer(why))
    }
}

fn insert_sql(table: &str, rows: &[(u32, u32)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * 20);
    // Writing into memory cannot fail.
    let _ = write!(out, "INSERT INTO {table} VALUES ");
    for (position, (i, j)) in rows.iter().enumerate() {
        let _ = write!(out, "{}({i},{j})", if position == 0 { "" } else { "," });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_inserts_each_of_its_rows_once() {
        let mut rows = Rows::new(303, 0, 2_500);
        let sizes: Vec<usize> = std::iter::repeat_with(|| rows.statement().len()).take(4).collect();
        assert_eq!(sizes, [1_000, 1_000, 500, 0]);
        assert_eq!(insert_sql("T1", &[(1, 5), (2, 0)]), b"INSERT INTO T1 VALUES (1,5),(2,0)");
    }
}
