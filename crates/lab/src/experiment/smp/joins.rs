//! `joins`: sessions that each join two tables like sbtest once.

use super::Bench;
use crate::driver::together::{self, Lines};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::experiment::instance::Instance;
use crate::interrupt::Interrupt;
use crate::measure::Recorder;
use crate::results::Sample;
use crate::workload::Sbtest;
use base::random::Random;
use std::io::Write;
use std::time::Instant;

/// The published query.
const QUERY: &str = "SELECT COUNT(*) FROM T1, T2 WHERE T1.j > 0 AND T1.i = T2.i";
const ROWS_PER_STATEMENT: u32 = 1_000;
/// One row in this many has a `j` of 0, so that the condition excludes some rows.
const ZEROS: u32 = 1_000;

pub(crate) struct Joins {
    pub instance: Instance,
    pub table: Sbtest,
}

/// A table like sbtest under other names, and without an index on `j`: so T1 is scanned, as published.
fn create_sql(table: &str, engine: &str) -> String {
    format!(
        "CREATE TABLE {table} (i INT UNSIGNED NOT NULL, j INT UNSIGNED NOT NULL DEFAULT '0', \
         c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (i)) ENGINE={engine}"
    )
}

impl Joins {
    fn j(&self, id: u32) -> u32 {
        match Random::new(self.table.seed, u64::from(id) << 32).below(ZEROS) {
            0 => 0,
            _ => self.table.k(id),
        }
    }

    /// The right answer to the query.
    fn expected(&self) -> u64 {
        (1..=self.table.rows).filter(|&id| self.j(id) > 0).count() as u64
    }

    fn insert_sql(&self, table: &str, ids: std::ops::RangeInclusive<u32>) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing into memory cannot fail.
        let _ = write!(out, "INSERT INTO {table} (i, j, c, pad) VALUES ");
        for (position, id) in ids.enumerate() {
            let row = self.table.row(id);
            let _ = write!(out, "{}({id},{},'", if position == 0 { "" } else { "," }, self.j(id));
            out.extend_from_slice(&row.c);
            out.extend_from_slice(b"','");
            out.extend_from_slice(&row.pad);
            out.extend_from_slice(b"')");
        }
        out
    }
}

impl Bench for Joins {
    fn facts(&self) -> Vec<(String, String)> {
        self.instance.facts()
    }

    fn load(&mut self, run: &mut Run<'_>) -> Result<()> {
        let mut client = self.instance.login.connect()?;
        for table in ["T1", "T2"] {
            self.instance.create(&mut client, table, &create_sql(table, &self.instance.engine))?;
            let rows = self.table.rows;
            run.progress
                .stage(format!("{}: loading {rows} rows of {table}", self.instance.name), rows.into());
            let mut next = 1;
            while next <= rows {
                run.interrupt.check()?;
                run.progress.at(next.into(), "");
                let last = rows.min(next + ROWS_PER_STATEMENT - 1);
                client.run(&self.insert_sql(table, next..=last))?;
                next = last + 1;
            }
            // Plans depend on statistics, so every server gets them.
            client.rows(&format!("ANALYZE TABLE {table}"))?;
        }
        let plan = client.rows(&format!("EXPLAIN {QUERY}"))?;
        let plan: Vec<String> = plan.iter().map(|row| row.join(" | ")).collect();
        run.results.settings.push((format!("plan of {}", self.instance.name), plan.join("; ")));
        Ok(())
    }

    fn sample(
        &mut self,
        sessions: u32,
        round: u32,
        interrupt: &Interrupt,
        _progress: &mut dyn FnMut(f64, &str),
    ) -> Result<Sample> {
        let expected = self.expected();
        let mut lines = Lines::default();
        let mut workers = Vec::new();
        for _ in 0..sessions {
            let mut client = self.instance.login.connect()?;
            lines.add(&mut client)?;
            let target = &self.instance.name;
            workers.push(move || {
                let mut recorder = Recorder::default();
                let started = Instant::now();
                let count = client.rows(QUERY)?.concat().concat();
                recorder.query(started.elapsed(), 1);
                if count != expected.to_string() {
                    let why = format!("{QUERY} gives {count} where {expected} is right");
                    return Err(Error::WrongAnswer { target: target.clone(), why });
                }
                Ok((recorder, client))
            });
        }
        self.instance
            .observe(|observed| together::run(workers, &lines, round, observed, interrupt, &mut || ()))
    }

    fn stop(&mut self) -> Result<()> {
        self.instance.stop()
    }
}
