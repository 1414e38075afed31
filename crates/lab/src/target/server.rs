//! Any server that speaks the MySQL protocol, driven over a socket. What differs between servers is a
//! [`Flavour`].

use super::{Context, Series, SeriesPlan, Setting, Target};
use crate::driver::socket::{Client, Login, explained};
use crate::driver::workers::Observed;
use crate::driver::{DriverKind, Load, builtin, sysbench};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::Process;
use crate::progress::Progress;
use crate::results::Sample;
use crate::workload::{DATABASE, Row, Sbtest, Statement, TABLE};
use base::sync::Mutex;
use std::path::Path;
use wire::client::Value;
use wire::value::WireValue;

/// Rows of an INSERT of the load.
const ROWS_PER_STATEMENT: u32 = 1_000;
/// Random points whose rows are compared with the data's definition before anything is measured.
const VERIFIED_POINTS: usize = 100;
/// The name of threads of servers inside the lab. Their processor time does not count as that of clients.
pub(crate) const OWN_SERVER_THREADS: &str = "null-server";

/// One kind of server.
pub(crate) trait Flavour {
    /// See [`Target::series`].
    fn series(&self, asked: &[Setting]) -> SeriesPlan;

    /// Starts the server with its data in `folder`. Returns how to connect to it. It may be started again
    /// after it was stopped.
    fn start(&mut self, folder: &Path, context: &mut Context<'_>) -> Result<Login>;

    /// The server's process, if it runs on this machine and is ours.
    fn process(&self) -> Option<Process>;

    /// For `ENGINE=`.
    fn engine(&self) -> &str;

    /// Statements that switch to a setting.
    fn setting_sql(&self, setting: Setting) -> Vec<String>;

    /// Statements that bring the table and its index into the cache.
    fn warming_sql(&self) -> Vec<String>;

    /// The status variable that counts waits for latches of the cache, if there is one.
    fn latch_waits_variable(&self) -> Option<&str> {
        None
    }

    /// False if the server does not keep the rows it is given: nothing is loaded or compared.
    fn keeps_rows(&self) -> bool {
        true
    }

    /// True if a table of this name may belong to somebody else.
    fn is_foreign(&self) -> bool {
        false
    }

    fn facts(&self) -> Vec<(String, String)>;

    fn stop(&mut self) -> Result<()>;
}

pub(crate) struct Server {
    name: String,
    driver: DriverKind,
    driver_version: Option<String>,
    flavour: Box<dyn Flavour>,
    started: Option<Started>,
}

struct Started {
    login: Login,
    version: String,
    /// True once the lab made the table.
    made_table: bool,
    /// A connection for counters, read while a sample runs.
    counters: Mutex<Client>,
}

impl Server {
    pub(crate) fn new(name: String, driver: DriverKind, flavour: Box<dyn Flavour>) -> Server {
        Server { name, driver, driver_version: None, flavour, started: None }
    }

    fn started(&self) -> Result<&Started> {
        let why = || Error::Server {
            target: self.name.clone(),
            why: "not started".to_string(),
            log: String::new(),
        };
        self.started.as_ref().ok_or_else(why)
    }

    fn load(&self, login: &Login, table: &Sbtest, context: &mut Context<'_>) -> Result<()> {
        let name = &self.name;
        let mut client = login.connect()?;
        let present = client.rows(&format!("SHOW TABLES LIKE '{TABLE}'"))?;
        if !present.is_empty() {
            let why = format!("there is a table {TABLE} already; drop it, or name another database");
            return Err(Error::Server { target: name.clone(), why, log: String::new() });
        }
        client.run(table.create_sql(self.flavour.engine()).as_bytes())?;
        load_rows(&mut client, name, table, context.interrupt, context.progress)?;
        context.progress.stage(format!("{name}: building index k"), 0);
        client.run(table.index_sql().as_bytes())
    }

    /// Compares the rows of random points with those that the data's definition gives.
    fn verify(&self, login: &Login, table: &Sbtest) -> Result<()> {
        let points = table.verification_points(VERIFIED_POINTS);
        let expected = table.rows_with(&points);
        let sql = Statement::PointsByK { points: points.len() as u32 }.sql();
        let mut client = login.connect()?;
        let connection = client.connection();
        let prepared = connection.prepare(&sql).map_err(|error| explained(&self.name, &sql, error))?;
        let parameters: Vec<WireValue<'_>> =
            points.iter().map(|&point| WireValue::UInt(point.into())).collect();
        let result = connection
            .execute(prepared.id, &parameters)
            .map_err(|error| explained(&self.name, &sql, error))?;
        let mut rows = result.rows;
        rows.sort_by_key(|row| row.first().and_then(number));
        let right = rows.len() == expected.len()
            && rows.iter().zip(&expected).all(|(row, expected)| is_row(row, expected));
        if right {
            return Ok(());
        }
        let why = format!(
            "{} rows for {} points where there are {}, or other values than were loaded",
            rows.len(),
            points.len(),
            expected.len()
        );
        Err(Error::WrongAnswer { target: self.name.clone(), why })
    }

    fn latch_waits(&self) -> Option<u64> {
        let variable = self.flavour.latch_waits_variable()?;
        let mut client = self.started.as_ref()?.counters.lock();
        let rows = client.rows(&format!("SHOW GLOBAL STATUS LIKE '{variable}'")).ok()?;
        rows.first()?.get(1)?.parse().ok()
    }
}

/// Inserts the rows of sbtest into its table.
pub(crate) fn load_rows(
    client: &mut Client,
    name: &str,
    table: &Sbtest,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<()> {
    progress.stage(format!("{name}: loading {} rows", table.rows), table.rows.into());
    let mut sql = Vec::new();
    let mut next = 1;
    while next <= table.rows {
        interrupt.check()?;
        progress.at(next.into(), "");
        let last = table.rows.min(next + ROWS_PER_STATEMENT - 1);
        sql.clear();
        table.insert_sql(next..=last, &mut sql);
        client.run(&sql)?;
        next = last + 1;
    }
    Ok(())
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::UInt(value) => Some(*value),
        _ => None,
    }
}

fn is_row(row: &[Value], expected: &Row) -> bool {
    let [id, k, Value::Bytes(c), Value::Bytes(pad)] = row else {
        return false;
    };
    number(id) == Some(expected.id.into())
        && number(k) == Some(expected.k.into())
        && c.as_slice() == expected.c
        && pad.as_slice() == expected.pad
}

impl Target for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn series(&self, asked: &[Setting]) -> SeriesPlan {
        self.flavour.series(asked)
    }

    fn start(&mut self, table: &Sbtest, context: &mut Context<'_>) -> Result<()> {
        if self.driver == DriverKind::Sysbench {
            self.driver_version = Some(sysbench::find()?);
        }
        context.progress.stage(format!("{}: starting", self.name), 0);
        let mut login = self.flavour.start(context.folder, context)?;
        let mut client = login.connect()?;
        let version = client.connection().greeting().server_version.clone();
        if self.flavour.keeps_rows() {
            if !self.flavour.is_foreign() {
                client.run(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}").as_bytes())?;
                login.database = Some(DATABASE.to_string());
            }
            self.load(&login, table, context)?;
            self.verify(&login, table)?;
        }
        let counters = Mutex::new(login.connect()?);
        self.started = Some(Started { made_table: self.flavour.is_foreign(), login, version, counters });
        Ok(())
    }

    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = self.flavour.facts();
        if let Some(started) = &self.started {
            facts.insert(0, ("version".to_string(), started.version.clone()));
        }
        let driver = self.driver_version.clone().unwrap_or_else(|| self.driver.name().to_string());
        facts.push(("driver".to_string(), driver));
        facts
    }

    fn apply(&mut self, series: &Series, context: &mut Context<'_>) -> Result<()> {
        let mut client = self.started()?.login.connect()?;
        let settings = series.setting.map(|setting| self.flavour.setting_sql(setting)).unwrap_or_default();
        for sql in settings.iter().chain(&self.flavour.warming_sql()) {
            context.interrupt.check()?;
            client.run(sql.as_bytes())?;
        }
        Ok(())
    }

    fn sample(&mut self, load: &Load, context: &mut Context<'_>) -> Result<Sample> {
        let started = self.started()?;
        let latch_waits = || self.latch_waits();
        let observed = Observed {
            server: self.flavour.process(),
            client: Some(Process::OwnExcept(OWN_SERVER_THREADS)),
            latch_waits: &latch_waits,
        };
        match self.driver {
            DriverKind::Builtin => {
                builtin::run(&started.login, load, self.flavour.keeps_rows(), &observed, context.interrupt)
            }
            DriverKind::Sysbench => {
                let script = sysbench::Script::points(load);
                sysbench::run(&started.login, &script, &load.window(), &observed, context.interrupt)
            }
        }
    }

    fn stop(&mut self) -> Result<()> {
        if let Some(started) = self.started.take()
            && started.made_table
        {
            started.login.connect()?.run(format!("DROP TABLE {TABLE}").as_bytes())?;
        }
        self.flavour.stop()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // On a server that ran already the table is always dropped, also after an error. Servers of the lab
        // are removed as a whole.
        if let Some(started) = self.started.take()
            && started.made_table
            && let Ok(mut client) = started.login.connect()
        {
            let _ = client.run(format!("DROP TABLE {TABLE}").as_bytes());
        }
    }
}
