//! A server that the lab starts.

use super::tables::{
    Arrangement, CALLS_PER_USER, CALLS_QUERY, ReadersCase, Rows, cache, calls, create_calls_sql, create_sql,
    table, user_of, users,
};
use super::{Contended, Setup};
use crate::driver::Window;
use crate::driver::socket::{Client, Login, explained};
use crate::driver::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::measure::{Phases, Process, Recorder};
use crate::results::Sample;
use crate::target::{Context, Flavour, TargetSpec, scratch_server};
use crate::workload::DATABASE;
use base::random::Random;
use std::path::Path;
use wire::value::WireValue;

const CONNECTIONS: u32 = 256;
const ROWS_PER_STATEMENT: u32 = 5_000;

pub(crate) struct Server {
    name: String,
    engine: String,
    flavour: Box<dyn Flavour>,
    login: Login,
    setup: Setup,
    version: String,
}

pub(crate) fn open(
    spec: &TargetSpec,
    setup: &Setup,
    folder: &Path,
    run: &mut Run<'_>,
) -> Result<Box<dyn Contended>> {
    let ours = spec.is_latchwork();
    let mut options = Vec::new();
    if ours {
        options.push("--flush_log_at_trx_commit=2".to_string());
        options.extend(setup.hit_path.map(|path| format!("--key_cache_hit_path={}", path.name())));
        options.extend(setup.segments.map(|segments| format!("--key_cache_segments={segments}")));
    }
    let Some(mut flavour) = scratch_server(spec, setup.cache_bytes, CONNECTIONS, options) else {
        let why = "needs a server that the lab starts: targets are embedded, latchwork and mariadb:myisam";
        return Err(Error::Usage(format!("{} {why}", spec.name())));
    };
    run.progress.stage(format!("{}: starting", spec.name()), 0);
    let mut context = Context { interrupt: run.interrupt, progress: run.progress, folder };
    let mut login = flavour.start(folder, &mut context)?;
    let mut client = login.connect()?;
    let version = client.connection().greeting().server_version.clone();
    client.run(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}").as_bytes())?;
    login.database = Some(DATABASE.to_string());
    let engine = if ours { "MyISAM".to_string() } else { flavour.engine().to_string() };
    Ok(Box::new(Server { name: spec.name(), engine, flavour, login, setup: *setup, version }))
}

impl Server {
    /// Runs statements; returns a sentence if the server refuses one.
    fn try_all(&self, client: &mut Client, statements: &[String]) -> Result<Option<String>> {
        for sql in statements {
            match client.rows(sql) {
                Ok(rows) => {
                    // CACHE INDEX reports failures in the rows of its result.
                    let refused = rows
                        .iter()
                        .find(|row| row.get(2).is_some_and(|kind| kind.eq_ignore_ascii_case("error")));
                    if let Some(row) = refused {
                        return Ok(Some(format!("`{sql}`: {}", row.join(" "))));
                    }
                }
                Err(error @ Error::Sql { .. }) => return Ok(Some(error.to_string())),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn observe(&self) -> Option<Process> {
        self.flavour.process()
    }

    fn latch_waits(&self) -> Option<u64> {
        let variable = self.flavour.latch_waits_variable()?;
        let rows = self.login.connect().ok()?.rows(&format!("SHOW GLOBAL STATUS LIKE '{variable}'")).ok()?;
        rows.first()?.get(1)?.parse().ok()
    }
}

impl Contended for Server {
    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![("version".to_string(), self.version.clone())];
        facts.extend(self.flavour.facts());
        facts
    }

    fn set_up(&mut self, arrangement: Arrangement, writers: u32) -> Result<Option<String>> {
        let mut client = self.login.connect()?;
        for number in 0..writers {
            client.run(format!("DROP TABLE IF EXISTS {}", table(number)).as_bytes())?;
            let mut statements = vec![create_sql(number, arrangement, &self.engine)];
            if arrangement.cache_per_table {
                let bytes = self.setup.cache_bytes / u64::from(writers);
                statements.push(format!("SET GLOBAL {}.key_buffer_size = {bytes}", cache(number)));
                statements.push(format!("CACHE INDEX {} IN {}", table(number), cache(number)));
            }
            if let Some(why) = self.try_all(&mut client, &statements)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn insert(&mut self, writers: u32, window: &Window, run: &Run<'_>) -> Result<Sample> {
        let rows_each = self.setup.rows_per_statement;
        let mut workers = Vec::new();
        for number in 0..writers {
            let mut client = self.login.connect()?;
            let mut rows = Rows::new(self.setup.seed, number);
            let (name, mut sql) = (table(number), Vec::new());
            workers.push(move |phases: &Phases| -> Result<Recorder> {
                workers::repeat(phases, || {
                    rows.insert_sql(&name, rows_each, &mut sql);
                    client.run(&sql)?;
                    Ok(rows_each.into())
                })
            });
        }
        let latch_waits = || self.latch_waits();
        let observed =
            Observed { server: self.observe(), client: Some(Process::Own), latch_waits: &latch_waits };
        workers::run(workers, window, &observed, run.interrupt)
    }

    fn bytes_a_row(&mut self) -> Result<Option<f64>> {
        let sql = format!(
            "SELECT SUM(INDEX_LENGTH) / SUM(TABLE_ROWS) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' \
             AND ENGINE IN ('MyISAM', 'Aria')"
        );
        let rows = self.login.connect()?.rows(&sql)?;
        Ok(rows.first().and_then(|row| row.first()?.parse().ok()))
    }

    fn load_calls(&mut self, rows: u32, run: &mut Run<'_>) -> Result<()> {
        let mut client = self.login.connect()?;
        for number in 0..2 {
            run.progress.stage(format!("{}: loading {rows} calls", self.name), rows.into());
            client.run(create_calls_sql(number, &self.engine).as_bytes())?;
            let mut next = 1;
            while next <= rows {
                run.interrupt.check()?;
                run.progress.at(next.into(), "");
                let last = rows.min(next + ROWS_PER_STATEMENT - 1);
                let values: Vec<String> =
                    (next..=last).map(|id| format!("({},{id})", user_of(id, users(rows)))).collect();
                let sql =
                    format!("INSERT INTO {} (user_id, call_id) VALUES {}", calls(number), values.join(","));
                client.run(sql.as_bytes())?;
                next = last + 1;
            }
        }
        Ok(())
    }

    fn read(&mut self, case: ReadersCase, rows: u32, window: &Window, run: &Run<'_>) -> Result<Sample> {
        let mut workers = Vec::new();
        for thread in 0..case.threads {
            let mut client = self.login.connect()?;
            let mut prepared = Vec::new();
            for number in 0..case.tables {
                let sql = CALLS_QUERY.replace("{table}", &calls(number));
                let statement = client.connection().prepare(&sql);
                prepared.push(statement.map_err(|error| explained(&self.name, &sql, error))?.id);
            }
            let name = self.name.clone();
            let mut random = Random::new(self.setup.seed, thread.into());
            let mut query = 0;
            workers.push(move |phases: &Phases| -> Result<Recorder> {
                workers::repeat(phases, || {
                    query += 1;
                    let statement = prepared[case.table_of(thread, query) as usize];
                    let user = random.below(users(rows));
                    let result = client.connection().execute(statement, &[WireValue::UInt(user.into())]);
                    let result = result.map_err(|error| explained(&name, CALLS_QUERY, error))?;
                    let count = result.to_text().concat().concat();
                    match count.parse::<u32>() {
                        Ok(count) if count.abs_diff(CALLS_PER_USER) <= 1 || rows < CALLS_PER_USER => {
                            Ok(count.into())
                        }
                        _ => Err(Error::WrongAnswer {
                            target: name.clone(),
                            why: format!("{count} calls of a user who made about {CALLS_PER_USER}"),
                        }),
                    }
                })
            });
        }
        let latch_waits = || self.latch_waits();
        let observed =
            Observed { server: self.observe(), client: Some(Process::Own), latch_waits: &latch_waits };
        workers::run(workers, window, &observed, run.interrupt)
    }

    fn stop(&mut self) -> Result<()> {
        self.flavour.stop()
    }
}
