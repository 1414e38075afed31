//! A server that the lab starts, limited by the kernel's block throttle.

use super::data::TABLE;
use super::series::{
    Asked, Choice, Opened, Pages, READS, RowTier, RowsAndColdPages, Setup, Swept, Variant, device_limit,
    not_compressed,
};
use crate::device::DeviceLimit;
use crate::driver::Window;
use crate::driver::socket::{Client, Login, explained};
use crate::driver::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::measure::{MEMORY, Phases, Process, Recorder, resident_mib};
use crate::results::Sample;
use crate::target::{Context, Engine, Flavour, TargetSpec, scratch_server};
use crate::workload::DATABASE;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::path::Path;
use wire::client::Value;
use wire::value::WireValue;

const ROWS_PER_STATEMENT: u32 = 1_000;
const CONNECTIONS: u32 = 256;

pub(crate) struct Server {
    name: String,
    flavour: Box<dyn Flavour>,
    login: Login,
    limit: Option<DeviceLimit>,
    setup: Setup,
    version: String,
    updates: AtomicU64,
}

/// Options that limit a server's cache, and make it read from the device.
fn server_options(spec: &TargetSpec, variant: Variant, setup: &Setup) -> Vec<String> {
    let page_size = variant.pages.size();
    match spec {
        TargetSpec::Latchwork(_) => vec![
            "--flush_method=O_DIRECT".to_string(),
            "--flush_log_at_trx_commit=2".to_string(),
            format!("--innodb_page_size={page_size}"),
            format!(
                "--row_cache_size={}",
                variant.row_tier.bytes(setup).map_or("-1".to_string(), |bytes| bytes.to_string())
            ),
        ],
        _ => vec![
            "--innodb-flush-method=O_DIRECT".to_string(),
            "--innodb-buffer-pool-dump-at-shutdown=OFF".to_string(),
            "--innodb-buffer-pool-load-at-startup=OFF".to_string(),
            "--innodb-read-only-compressed=OFF".to_string(),
            format!("--innodb-page-size={page_size}"),
        ],
    }
}

pub(crate) fn open(
    spec: &TargetSpec,
    variant: Variant,
    setup: &Setup,
    folder: &Path,
    run: &mut Run<'_>,
) -> Result<Opened> {
    let name = format!("{} {variant}", spec.name());
    if variant.row_tier != RowTier::Off && !spec.is_latchwork() {
        return Ok(Opened::LeftOut("it has no row tier".to_string()));
    }
    let options = server_options(spec, variant, setup);
    let Some(mut flavour) = scratch_server(spec, setup.cache_bytes, CONNECTIONS, options) else {
        return Ok(Opened::LeftOut(
            "only servers that the lab starts can be limited and told their sizes".to_string(),
        ));
    };
    run.progress.stage(format!("{name}: starting"), 0);
    let mut login = start(&mut *flavour, folder, run)?;
    let mut client = login.connect()?;
    let version = client.connection().greeting().server_version.clone();
    client.run(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}").as_bytes())?;
    login.database = Some(DATABASE.to_string());
    let mut client = login.connect()?;
    let row_format = match variant.pages {
        Pages::Compressed => " ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4",
        Pages::Large | Pages::Small => "",
    };
    let engine = match spec {
        TargetSpec::MariaDb(engine) => *engine,
        _ => Engine::InnoDb,
    };
    let create = setup.data.create_sql(&format!("ENGINE={}{row_format}", engine.name()));
    if let Err(error) = client.run(create.as_bytes()) {
        return left_out(flavour, error);
    }
    // The table is checked: a server may accept an option and ignore it.
    let shown = client.rows(&format!("SHOW CREATE TABLE {TABLE}"))?.concat().concat();
    if variant.pages == Pages::Compressed && !shown.contains("ROW_FORMAT=COMPRESSED") {
        flavour.stop()?;
        return Ok(Opened::LeftOut("it made the table without compressing it".to_string()));
    }
    let page_size = client.rows("SELECT @@innodb_page_size")?.concat().concat();
    if page_size != variant.pages.size().to_string() {
        flavour.stop()?;
        return Ok(Opened::LeftOut(format!("its pages have {page_size} bytes whatever it is told")));
    }
    load(&mut client, &name, setup, run)?;
    drop(client);
    // Stopping writes everything to disk and frees the memory of loading.
    run.progress.stage(format!("{name}: starting again"), 0);
    flavour.stop()?;
    if spec.is_latchwork()
        && variant.pages == Pages::Compressed
        && let Some(why) = not_compressed(&folder.join("data"), setup)
    {
        return Ok(Opened::LeftOut(why));
    }
    start(&mut *flavour, folder, run)?;
    let limit = match device_limit(setup, folder, &name.replace([' ', ':'], "-")) {
        Ok(limit) => limit,
        Err(why) => {
            return Err(Error::Usage(format!(
                "{name} cannot be limited to {} operations/s: {why}; run it as root where there is a block throttle, \
                 leave the servers out, or measure with --unlimited",
                setup.operations_per_second.unwrap_or(0)
            )));
        }
    };
    if let (Some(limit), Some(Process::Other(pid))) = (&limit, flavour.process()) {
        limit.add(pid)?;
    }
    let updates = AtomicU64::new(0);
    Ok(Opened::Ready(Box::new(Server { name, flavour, login, limit, setup: *setup, version, updates })))
}

fn start(flavour: &mut dyn Flavour, folder: &Path, run: &mut Run<'_>) -> Result<Login> {
    flavour.start(folder, &mut Context { interrupt: run.interrupt, progress: run.progress, folder })
}

fn left_out(mut flavour: Box<dyn Flavour>, error: Error) -> Result<Opened> {
    match error {
        Error::Sql { .. } => {
            flavour.stop()?;
            Ok(Opened::LeftOut(error.to_string()))
        }
        other => Err(other),
    }
}

fn load(client: &mut Client, name: &str, setup: &Setup, run: &mut Run<'_>) -> Result<()> {
    let data = &setup.data;
    run.progress.stage(format!("{name}: loading {} rows", data.rows), data.rows.into());
    let mut sql = Vec::new();
    let mut next = 1;
    while next <= data.rows {
        run.interrupt.check()?;
        run.progress.at(next.into(), "");
        let last = data.rows.min(next + ROWS_PER_STATEMENT - 1);
        sql.clear();
        data.insert_sql(next..=last, &mut sql);
        client.run(&sql)?;
        next = last + 1;
    }
    Ok(())
}

impl Server {
    fn set_limit(&self, limited: bool) -> Result<()> {
        match &self.limit {
            Some(limit) => limit.set(self.setup.operations_per_second.filter(|_| limited)),
            None => Ok(()),
        }
    }

    fn lookup(&self) -> Result<Lookup> {
        Lookup::new(&self.login)
    }

    /// Resident memory of the whole server; from the control group if there is one.
    fn reads(&self) -> Result<Option<u64>> {
        if let Some(limit) = &self.limit {
            return Ok(limit.reads());
        }
        let variable =
            if self.name.starts_with("mariadb") { "Innodb_buffer_pool_reads" } else { "Key_reads" };
        self.status(variable)
    }

    fn status(&self, variable: &str) -> Result<Option<u64>> {
        let rows = self.login.connect()?.rows(&format!("SHOW GLOBAL STATUS LIKE '{variable}'"))?;
        Ok(rows.first().and_then(|row| row.get(1)?.parse().ok()))
    }

    /// Counters that another server does not have are 0.
    fn rows_and_cold_pages(&self) -> Result<RowsAndColdPages> {
        let status = |variable| self.status(variable).map(Option::unwrap_or_default);
        Ok(RowsAndColdPages {
            rows: status("Row_cache_rows")?,
            row_bytes: status("Row_cache_bytes")?,
            cold_page_bytes: status("Compressed_pages_bytes")?,
        })
    }
}

impl Swept for Server {
    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![("version".to_string(), self.version.clone())];
        facts.extend(self.flavour.facts());
        let limit = self.limit.as_ref().map_or("none".to_string(), DeviceLimit::describe);
        facts.push(("device limit".to_string(), limit));
        facts
    }

    fn touch(&mut self, keys: &[u32]) -> Result<u64> {
        self.set_limit(false)?;
        let share = keys.len().div_ceil(self.setup.clients as usize);
        base::sync::thread::scope(|scope| {
            let handles: Vec<_> = keys
                .chunks(share)
                .map(|keys| {
                    let mut lookup = self.lookup()?;
                    Ok(scope.spawn(move || keys.iter().try_fold(0, |sum, &id| Ok(sum + lookup.read(id)?))))
                })
                .collect::<Result<_>>()?;
            handles.into_iter().map(|handle| handle.join().expect("a reader panicked")).sum()
        })
    }

    fn updates(&self) -> u64 {
        // ORDER: read after the threads that count have been joined.
        self.updates.load(Relaxed)
    }

    fn sample(&mut self, asked: Asked<'_>, window: &Window, run: &Run<'_>) -> Result<Sample> {
        let mut clients = Vec::new();
        for number in 0..self.setup.clients {
            let mut lookup = self.lookup()?;
            let mut choice = Choice::new(self.setup.data.seed, asked.turn, number, asked.writes);
            let updates = &self.updates;
            clients.push(move |phases: &Phases| -> Result<Recorder> {
                workers::repeat(phases, || {
                    let (id, write) = choice.next(asked.keys);
                    if write {
                        lookup.write(id)?;
                        // ORDER: see `Swept::updates`.
                        updates.fetch_add(1, Relaxed);
                    } else {
                        lookup.read(id)?;
                    }
                    Ok(1)
                })
            });
        }
        self.set_limit(asked.limited)?;
        let observed =
            Observed { server: self.flavour.process(), client: Some(Process::Own), latch_waits: &|| None };
        let before = self.reads()?;
        let started = std::time::Instant::now();
        let sampled = workers::run(clients, window, &observed, run.interrupt);
        let elapsed = started.elapsed().as_secs_f64();
        let after = self.reads()?;
        self.set_limit(false)?;
        let mut sample = sampled?;
        // The warm-up is as fast as the window, and is counted with it.
        let lookups = (sample.value * elapsed).max(1.0);
        if let (Some(before), Some(after)) = (before, after) {
            sample.extra.push((READS.to_string(), after.saturating_sub(before) as f64 / lookups));
        }
        let memory = self.flavour.process().as_ref().and_then(resident_mib);
        sample.extra.extend(memory.map(|memory| (MEMORY.to_string(), memory)));
        sample.extra.extend(self.rows_and_cold_pages()?.extras());
        Ok(sample)
    }

    fn stop(&mut self) -> Result<()> {
        self.set_limit(false)?;
        self.flavour.stop()
    }
}

/// A connection with its two statements.
struct Lookup {
    target: String,
    client: Client,
    read: u32,
    write: u32,
}

const READ: &str = "SELECT id, k, c FROM sbtest1 WHERE id = ?";
const WRITE: &str = "UPDATE sbtest1 SET k = k + 1 WHERE id = ?";

impl Lookup {
    fn new(login: &Login) -> Result<Lookup> {
        let mut client = login.connect()?;
        let target = login.target.clone();
        let mut prepare = |sql: &str| {
            let prepared = client.connection().prepare(sql);
            prepared.map(|prepared| prepared.id).map_err(|error| explained(&target, sql, error))
        };
        let (read, write) = (prepare(READ)?, prepare(WRITE)?);
        Ok(Lookup { target, client, read, write })
    }

    /// Gives the row's `k`.
    fn read(&mut self, id: u32) -> Result<u64> {
        let result = self.client.connection().execute(self.read, &[WireValue::UInt(id.into())]);
        let result = result.map_err(|error| explained(&self.target, READ, error))?;
        let number = |value: &Value| match value {
            Value::UInt(number) => Some(*number),
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        match result.rows.first().map(Vec::as_slice) {
            Some([found, k, _]) if number(found) == Some(id.into()) => number(k),
            _ => None,
        }
        .ok_or_else(|| Error::WrongAnswer {
            target: self.target.clone(),
            why: format!("no row {id}, or another in its place"),
        })
    }

    fn write(&mut self, id: u32) -> Result<()> {
        let result = self.client.connection().execute(self.write, &[WireValue::UInt(id.into())]);
        result.map(drop).map_err(|error| explained(&self.target, WRITE, error))
    }
}
