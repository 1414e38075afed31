//! `readwrite`, `readonly` and `points` on a server.

use super::Bench;
use crate::driver::DriverKind;
use crate::driver::oltp::{self, Oltp};
use crate::driver::{Window, sysbench};
use crate::error::Result;
use crate::experiment::frame::Run;
use crate::experiment::instance::Instance;
use crate::interrupt::Interrupt;
use crate::results::Sample;
use crate::target::load_rows;
use crate::workload::TABLE;
use std::time::Duration;

pub(crate) struct TransactionsBench {
    pub instance: Instance,
    pub oltp: Oltp,
    pub driver: DriverKind,
    pub warmup: Duration,
    pub time: Duration,
    pub seed: u64,
}

impl Bench for TransactionsBench {
    fn facts(&self) -> Vec<(String, String)> {
        self.instance.facts()
    }

    fn load(&mut self, run: &mut Run<'_>) -> Result<()> {
        if !self.instance.keeps_rows() {
            return Ok(());
        }
        let mut client = self.instance.login.connect()?;
        let table = &self.oltp.table;
        self.instance.create(&mut client, TABLE, &table.create_sql(&self.instance.engine))?;
        load_rows(&mut client, &self.instance.name, table, run.interrupt, run.progress)?;
        client.run(table.index_sql().as_bytes())?;
        client.rows(&format!("ANALYZE TABLE {TABLE}"))?;
        self.verify()
    }

    fn sample(
        &mut self,
        sessions: u32,
        round: u32,
        interrupt: &Interrupt,
        _progress: &mut dyn FnMut(f64, &str),
    ) -> Result<Sample> {
        let window = Window { warmup: self.warmup, measure: self.time, round };
        let seed = self.seed.wrapping_add(round.into());
        let login = &self.instance.login;
        let sample = self.instance.observe(|observed| match self.driver {
            DriverKind::Builtin => oltp::run(login, &self.oltp, sessions, seed, &window, observed, interrupt),
            DriverKind::Sysbench => {
                let script = sysbench::Script::oltp(&self.oltp, sessions, seed);
                sysbench::run(login, &script, &window, observed, interrupt)
            }
        })?;
        self.verify()?;
        Ok(sample)
    }

    fn stop(&mut self) -> Result<()> {
        self.instance.stop()
    }
}

impl TransactionsBench {
    /// Every transaction inserts the row again that it deleted: between samples all rows are there.
    fn verify(&self) -> Result<()> {
        if !self.instance.keeps_rows() {
            return Ok(());
        }
        let rows = self.instance.login.connect()?.rows(&format!("SELECT COUNT(*) FROM {TABLE}"))?;
        let count = rows.concat().concat();
        if count == self.oltp.table.rows.to_string() {
            return Ok(());
        }
        let why = format!("{TABLE} has {count} rows where there are {}", self.oltp.table.rows);
        Err(self.instance.wrong_answer(why))
    }
}
