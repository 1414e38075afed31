//! A server with the settings of a run: one line of the charts.

use crate::driver::socket::{Client, Login};
use crate::driver::workers::Observed;
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::measure::{MEMORY, Process, resident_mib};
use crate::results::Sample;
use crate::target::cores::{self, Bound};
use crate::target::{
    Context, Engine, Flavour, OWN_SERVER_THREADS, TargetSpec, null_server, remote_server, scratch_server,
};
use crate::workload::DATABASE;
use std::path::Path;

/// Settings of all servers of a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub cache_bytes: u64,
    pub connections: u32,
    /// The published log and I/O threads.
    pub paper: bool,
    /// Nothing is made durable: the study's reload.
    pub nosync: bool,
    pub latches: bool,
    pub mariadb_options: Vec<String>,
    pub latchwork_options: Vec<String>,
}

/// What differs between servers of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Variant {
    pub cores: u32,
    pub binary_log: bool,
}

/// The published settings, by names that both kinds of servers take.
const PUBLISHED: [&str; 5] = [
    "--innodb_log_file_size=1300M",
    "--innodb_log_buffer_size=200M",
    "--innodb_read_io_threads=4",
    "--innodb_write_io_threads=4",
    "--innodb_file_per_table=1",
];

impl Settings {
    fn options(&self, spec: &TargetSpec, variant: Variant) -> Vec<String> {
        let mut options =
            ["--innodb_flush_log_at_trx_commit=2", "--local_infile=1"].map(str::to_string).to_vec();
        if self.paper {
            options.extend(PUBLISHED.map(str::to_string));
        }
        if self.nosync {
            options.push("--innodb_flush_method=nosync".to_string());
        }
        match spec {
            TargetSpec::MariaDb(_) => {
                // Its data is removed with it, so nothing need be written for a next start.
                options.push("--innodb-fast-shutdown=2".to_string());
                if variant.binary_log {
                    options.extend(["--log-bin=binlog", "--server-id=1"].map(str::to_string));
                }
                options.extend(self.mariadb_options.iter().cloned());
            }
            _ => {
                if self.latches {
                    options.push("--latch_statistics=ON".to_string());
                }
                options.extend(self.latchwork_options.iter().cloned());
            }
        }
        options
    }
}

pub(crate) struct Instance {
    pub name: String,
    pub login: Login,
    /// For `ENGINE=`.
    pub engine: String,
    /// A transaction's reads and writes belong together.
    pub transactional: bool,
    flavour: Box<dyn Flavour>,
    version: String,
    latches: bool,
    /// Tables that the lab made in the database of a server that ran already; they are dropped at the end.
    foreign_tables: Vec<String>,
}

impl Instance {
    pub(crate) fn open(
        spec: &TargetSpec,
        variant: Variant,
        settings: &Settings,
        folder: &Path,
        run: &mut Run<'_>,
    ) -> Result<Instance> {
        let name = spec.name();
        run.progress.stage(format!("{name}: starting"), 0);
        let options = settings.options(spec, variant);
        let flavour = remote_server(spec)
            .or_else(|| null_server(spec))
            .or_else(|| scratch_server(spec, settings.cache_bytes, settings.connections, options));
        let Some(mut flavour) = flavour else {
            return Err(Error::Usage(format!("{name} is no server that the lab could start or reach")));
        };
        let mut context = Context { interrupt: run.interrupt, progress: run.progress, folder };
        let bound = Bound::to_first(variant.cores)?;
        let mut login = flavour.start(folder, &mut context)?;
        drop(bound);
        let mut client = login.connect()?;
        let version = client.connection().greeting().server_version.clone();
        if !flavour.is_foreign() && flavour.keeps_rows() {
            client.run(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}").as_bytes())?;
            login.database = Some(DATABASE.to_string());
        }
        let (engine, transactional) = match spec {
            TargetSpec::MariaDb(engine) => {
                (engine.name().to_string(), matches!(engine, Engine::InnoDb | Engine::RocksDb))
            }
            TargetSpec::Remote { .. } => {
                (client.rows("SELECT @@default_storage_engine")?.concat().concat(), false)
            }
            TargetSpec::Null => (flavour.engine().to_string(), true),
            _ => ("InnoDB".to_string(), true),
        };
        let latches = settings.latches && spec.is_latchwork();
        Ok(Instance {
            name,
            login,
            engine,
            transactional,
            flavour,
            version,
            latches,
            foreign_tables: Vec::new(),
        })
    }

    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![("version".to_string(), self.version.clone())];
        facts.extend(self.flavour.facts());
        facts.push(("engine".to_string(), self.engine.clone()));
        if let Some(Process::Other(pid)) = self.flavour.process() {
            let processors = cores::allowed(pid);
            facts.extend(processors.map(|processors| ("bound to processors".to_string(), processors)));
        }
        facts
    }

    /// The server's process, if the lab started it.
    pub(crate) fn process(&self) -> Option<Process> {
        self.flavour.process()
    }

    /// False for the null server: nothing is loaded into it, and no rows are counted.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.flavour.keeps_rows()
    }

    /// Makes a table, and replaces one that the lab made. A table of this name that the lab did not make is
    /// not touched.
    pub(crate) fn create(&mut self, client: &mut Client, table: &str, sql: &str) -> Result<()> {
        if self.flavour.is_foreign() && !self.foreign_tables.iter().any(|made| made == table) {
            if !client.rows(&format!("SHOW TABLES LIKE '{table}'"))?.is_empty() {
                let why = format!("there is a table {table} already; drop it, or name another database");
                return Err(Error::Server { target: self.name.clone(), why, log: String::new() });
            }
            self.foreign_tables.push(table.to_string());
        }
        client.run(format!("DROP TABLE IF EXISTS {table}").as_bytes())?;
        client.run(sql.as_bytes())
    }

    /// Measures with the server's resources observed, and adds what they come to.
    pub(crate) fn observe(&self, measure: impl FnOnce(&Observed<'_>) -> Result<Sample>) -> Result<Sample> {
        let mut counters = self.login.connect()?;
        let before = self.latches(&mut counters)?;
        let counters = base::sync::Mutex::new(counters);
        let latch_waits = || self.latch_waits(&mut counters.lock());
        let process = self.flavour.process();
        // The null server's threads are the lab's.
        let client = Process::OwnExcept(OWN_SERVER_THREADS);
        let observed = Observed { server: process.clone(), client: Some(client), latch_waits: &latch_waits };
        let mut sample = measure(&observed)?;
        let memory = process.as_ref().and_then(resident_mib);
        sample.extra.extend(memory.map(|memory| (MEMORY.to_string(), memory)));
        let after = self.latches(&mut counters.lock())?;
        sample.extra.extend(spent_waiting(&before, &after, sample.queries));
        Ok(sample)
    }

    fn latch_waits(&self, client: &mut Client) -> Option<u64> {
        let variable = self.flavour.latch_waits_variable()?;
        let rows = client.rows(&format!("SHOW GLOBAL STATUS LIKE '{variable}'")).ok()?;
        rows.first()?.get(1)?.parse().ok()
    }

    fn latches(&self, client: &mut Client) -> Result<Vec<Latches>> {
        if !self.latches {
            return Ok(Vec::new());
        }
        let rows = client.rows("SELECT NAME, WAITS, WAIT_TIME_US FROM information_schema.LATCHES")?;
        let mut classes: Vec<Latches> = Vec::new();
        for row in rows {
            let number = |column: usize| row.get(column)?.parse::<f64>().ok();
            let (Some(name), Some(waits), Some(us)) = (row.first(), number(1), number(2)) else {
                let why = format!("a row of information_schema.LATCHES that cannot be read: {row:?}");
                return Err(Error::Protocol { target: self.name.clone(), why });
            };
            match classes.iter_mut().find(|class| class.name == *name) {
                // The segments of a cache have a row each.
                Some(class) => (class.waits, class.us) = (class.waits + waits, class.us + us),
                None => classes.push(Latches { name: name.clone(), waits, us }),
            }
        }
        Ok(classes)
    }

    pub(crate) fn wrong_answer(&self, why: String) -> Error {
        Error::WrongAnswer { target: self.name.clone(), why }
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        self.drop_tables()?;
        self.flavour.stop()
    }

    fn drop_tables(&mut self) -> Result<()> {
        for table in std::mem::take(&mut self.foreign_tables) {
            self.login.connect()?.run(format!("DROP TABLE IF EXISTS {table}").as_bytes())?;
        }
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // This runs in every case, also after an error. If `stop` was called, it has reported failures
        // already.
        let _ = self.drop_tables();
    }
}

/// A class of latches, and the waits for it so far.
#[derive(Clone, PartialEq, Debug)]
struct Latches {
    name: String,
    waits: f64,
    us: f64,
}

/// Waits and time waited a query, of all latches and of each class that was waited for.
fn spent_waiting(before: &[Latches], after: &[Latches], queries: u64) -> Vec<(String, f64)> {
    let queries = queries.max(1) as f64;
    let mut extras = Vec::new();
    let mut total = (0.0, 0.0);
    for class in after {
        let earlier = before.iter().find(|earlier| earlier.name == class.name);
        let waits = class.waits - earlier.map_or(0.0, |earlier| earlier.waits);
        let us = class.us - earlier.map_or(0.0, |earlier| earlier.us);
        total = (total.0 + waits, total.1 + us);
        if waits > 0.0 {
            extras.push((format!("latch wait time a query, us: {}", class.name), us / queries));
        }
    }
    if !after.is_empty() {
        extras.insert(0, ("latch wait time a query, us: all latches".to_string(), total.1 / queries));
        extras.insert(0, ("latch waits a query: all latches".to_string(), total.0 / queries));
    }
    extras
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            cache_bytes: 1 << 30,
            connections: 100,
            paper: true,
            nosync: true,
            latches: true,
            mariadb_options: vec!["--m=1".to_string()],
            latchwork_options: vec!["--l=1".to_string()],
        }
    }

    #[test]
    fn both_kinds_of_servers_get_the_published_settings_and_their_own() {
        let variant = Variant { cores: 1, binary_log: true };
        let ours = settings().options(&TargetSpec::LATCHWORK, variant);
        let theirs = settings().options(&TargetSpec::MariaDb(Engine::InnoDb), variant);
        for option in [
            "--innodb_log_file_size=1300M",
            "--innodb_flush_log_at_trx_commit=2",
            "--innodb_flush_method=nosync",
        ] {
            assert!(ours.iter().any(|given| given == option) && theirs.iter().any(|given| given == option));
        }
        assert!(theirs.contains(&"--log-bin=binlog".to_string()) && !ours.concat().contains("log-bin"));
        assert_eq!((ours.last().unwrap().as_str(), theirs.last().unwrap().as_str()), ("--l=1", "--m=1"));
        let without = settings()
            .options(&TargetSpec::MariaDb(Engine::InnoDb), Variant { binary_log: false, ..variant });
        assert!(!without.concat().contains("log-bin"));
    }

    #[test]
    fn waits_are_told_a_query_and_by_class() {
        let class = |name: &str, waits, us| Latches { name: name.to_string(), waits, us };
        let before = [class("a", 1.0, 10.0), class("b", 5.0, 50.0)];
        let after = [class("a", 11.0, 30.0), class("b", 5.0, 50.0), class("c", 2.0, 2.0)];
        let extras = spent_waiting(&before, &after, 4);
        let value = |name: &str| extras.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        assert_eq!(value("latch waits a query: all latches"), Some(3.0));
        assert_eq!(value("latch wait time a query, us: all latches"), Some(5.5));
        assert_eq!(value("latch wait time a query, us: a"), Some(5.0));
        assert_eq!(value("latch wait time a query, us: b"), None);
        assert!(spent_waiting(&[], &[], 4).is_empty());
    }
}
