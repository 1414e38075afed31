//! `smp`: one server and many processors (Google's patches of MySQL 5.0.37, 2008).

mod embedded;
mod inserts;
mod joins;
mod left_out;
mod options;
mod reload;
mod transactions;

use super::Experiment;
use super::frame::{self, Run};
use super::instance::{Instance, Settings, Variant};
use super::runner::{self, Grid, Outcome, Schedule, Turn};
use crate::doctor::{Plan, machine};
use crate::driver::DriverKind;
use crate::driver::oltp::Oltp;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report;
use crate::report::view::MISSING;
use crate::results::{Cell, Results, Sample, Summary, TargetInfo};
use crate::target::{Engine, TargetSpec, cores};
use crate::workload::Sbtest;
use crate::workload::oltp::Mix;
use base::sync::Arc;
use embedded::{EmbeddedInserts, EmbeddedTransactions, InProcess};
use left_out::LeftOut;
use options::{Form, Kind, Options};
use reload::Dump;
use std::path::Path;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Smp;

/// A workload on one target.
pub(crate) trait Bench {
    fn facts(&self) -> Vec<(String, String)>;
    /// Makes and loads the tables that all samples use.
    fn load(&mut self, run: &mut Run<'_>) -> Result<()>;
    /// Measures, and checks the answers. `progress` takes the share that is done, from 0 to 1, and a detail.
    fn sample(
        &mut self,
        sessions: u32,
        round: u32,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64, &str),
    ) -> Result<Sample>;
    fn stop(&mut self) -> Result<()>;
}

/// The published cache.
const PAPER_CACHE_BYTES: u64 = 8 << 30;
/// Connections in addition to those of the sessions.
const CONNECTIONS_BESIDE: u32 = 32;
const CONNECTIONS_MIN: u32 = 256;
const CACHE_BYTES_MIN: u64 = 64 << 20;
/// Memory of a row of sbtest with its index entry, of an inserted row, and of a byte of a dump, rounded up
/// generously.
const BYTES_PER_ROW: u64 = 400;
const BYTES_PER_INSERTED_ROW: u64 = 120;
const BYTES_PER_DUMPED_BYTE: u64 = 3;
const CPU: &str = "server CPU, seconds";

impl Experiment for Smp {
    fn name(&self) -> &'static str {
        "smp"
    }

    fn title(&self) -> &'static str {
        "One server, many processors"
    }

    fn question(&self) -> &'static str {
        "Sessions that work side by side meet at latches, in the engine's heap and in malloc. How much is gained \
         by latches on atomic instructions, by a heap without a mutex, by a malloc that scales, and by a limit on the \
         threads inside? Measured with sysbench's transactions, concurrent joins, concurrent inserts and the reload of \
         a dump, on servers with each of the five presets and on others."
    }

    fn options(&self) -> String {
        options::help()
    }

    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
        let mut options = Options::parse(args).map_err(Error::Usage)?;
        let left_out = left_out::leave_out(&mut options, left_out::missing_here).map_err(Error::Usage)?;
        if options.driver == DriverKind::Sysbench {
            crate::driver::sysbench::find()?;
        }
        let malloc = embedded::settle_memory(&options.targets)?;
        let everything = options.kinds.len() > 1;
        let mut reports = options.output.out.clone();
        if everything && reports.is_none() {
            reports = Some(frame::own_folder(Path::new("lab-results"), self.name(), frame::unix_now())?);
        }
        for &kind in &options.kinds {
            interrupt.check()?;
            let mut output = options.output.clone();
            if everything {
                output.out = reports.as_ref().map(|folder| folder.join(kind.name()));
            }
            let cache_bytes = cache_bytes(&options, kind, progress);
            let mut results = blank(self, args, &options, kind, cache_bytes);
            for LeftOut { target, missing } in &left_out {
                results.settings.push((format!("left out: {target}"), missing.to_string()));
            }
            let summarise = |results: &Results| {
                over_base(results).into_iter().chain(left_out::summary(&left_out)).collect()
            };
            let measure = |run: &mut Run<'_>| measure(&options, kind, cache_bytes, &malloc, run);
            frame::conduct(results, &output, interrupt, progress, summarise, measure)?;
        }
        for sentence in left_out::sentences(&left_out) {
            progress.note(&format!("left out: {sentence}"));
        }
        Ok(())
    }
}

/// The servers of a run: each target on each number of processors, MariaDB with the paper's binary log and
/// without.
fn variants(options: &Options) -> Vec<(&TargetSpec, Variant)> {
    let mut variants = Vec::new();
    for spec in &options.targets {
        let logs: &[bool] = match spec {
            TargetSpec::MariaDb(Engine::InnoDb | Engine::RocksDb) if options.paper => &[false, true],
            _ => &[false],
        };
        for &cores in &options.cores {
            variants.extend(logs.iter().map(|&binary_log| (spec, Variant { cores, binary_log })));
        }
    }
    variants
}

/// The cache of each server: enough for what the workload touches. With `--paper` it is the published cache,
/// or each server's share of this machine's memory.
fn cache_bytes(options: &Options, kind: Kind, progress: &mut Progress) -> u64 {
    if let Some(bytes) = options.memory_bytes {
        return bytes;
    }
    if options.paper {
        let servers = servers(options, kind);
        // Half of the memory is for the data files in the system's page cache.
        let share = machine::memory_available_bytes() / 2 / servers.max(1);
        let bytes = PAPER_CACHE_BYTES.min(share) >> 20 << 20;
        if bytes < PAPER_CACHE_BYTES {
            progress.note(&format!(
                "{}: caches of {}; the study had 8 GiB. {servers} servers share this machine's memory (see --memory)",
                kind.name(),
                machine::bytes(bytes)
            ));
        }
        return bytes.max(CACHE_BYTES_MIN);
    }
    let sessions = u64::from(options.sessions(kind).into_iter().max().unwrap_or(1));
    let rows = u64::from(options.rows);
    let bytes = match kind {
        Kind::ReadWrite | Kind::ReadOnly | Kind::Points => rows * BYTES_PER_ROW,
        Kind::Joins => 2 * rows * BYTES_PER_ROW,
        Kind::Inserts => sessions * u64::from(options.rows_per_session()) * BYTES_PER_INSERTED_ROW,
        Kind::Reload => options.size_bytes(0) * BYTES_PER_DUMPED_BYTE,
    };
    bytes.max(CACHE_BYTES_MIN).next_multiple_of(1 << 20)
}

fn blank(experiment: &Smp, args: &[String], options: &Options, kind: Kind, cache_bytes: u64) -> Results {
    let servers = servers(options, kind);
    let sessions = options.sessions(kind);
    let sessions_max = sessions.iter().copied().max().unwrap_or(1);
    let plan = Plan {
        threads_max: sessions_max,
        memory_bytes: servers * (cache_bytes + (256 << 20)),
        disk_bytes: servers * (2 * cache_bytes + (1 << 30)),
        scratch: options.output.scratch.clone(),
    };
    let all = cores::available();
    let mut settings = vec![
        ("workload", kind.name().to_string()),
        ("cache of each server", machine::bytes(cache_bytes)),
        (
            "settings",
            if options.paper { "the study's" } else { "log written at each commit, synced once a second" }
                .to_string(),
        ),
        (
            "processors",
            format!(
                "each server bound to the first {:?} of {all} when it starts; the driver runs on all",
                options.cores
            ),
        ),
        ("samples", options.samples.to_string()),
        ("seed", options.seed.to_string()),
    ];
    if options.paper {
        let binary_log = "MariaDB ran with it and without; Latchwork has none";
        settings.push(("binary log", binary_log.to_string()));
    }
    match kind {
        Kind::ReadWrite | Kind::ReadOnly | Kind::Points => {
            let (warmup, time) = options.window(cells(options, kind));
            settings.extend([
                ("rows", options.rows.to_string()),
                ("driver", options.driver.name().to_string()),
                ("statements", statements(options.prepared).to_string()),
                ("distribution", options.distribution.name().to_string()),
                ("warm-up before a sample", frame::seconds(warmup)),
                ("measured window of a sample", frame::seconds(time)),
            ]);
        }
        Kind::Joins => settings.push(("rows a side", options.rows.to_string())),
        Kind::Inserts => settings.extend([
            ("rows a session", options.rows_per_session().to_string()),
            ("rows a statement", inserts::ROWS_PER_STATEMENT.to_string()),
        ]),
        Kind::Reload => {
            settings.push(("dump, before compression", machine::bytes(options.size_bytes(cache_bytes))))
        }
    }
    let blank = frame::blank(experiment, args, &settings, &plan);
    Results {
        title: format!("{}: {}", blank.title, kind.name()),
        unit: kind.unit().to_string(),
        lower_is_better: !kind.is_rate(),
        block_name: "processors".to_string(),
        x_name: if kind == Kind::Reload { "connections" } else { "sessions" }.to_string(),
        ..blank
    }
}

fn statements(prepared: bool) -> &'static str {
    if prepared { "prepared" } else { "unprepared" }
}

/// One line of the charts.
struct Line {
    target: String,
    series: String,
    block: String,
    bench: Box<dyn Bench>,
}

fn measure(options: &Options, kind: Kind, cache_bytes: u64, malloc: &str, run: &mut Run<'_>) -> Result<()> {
    let mut lines = open(options, kind, cache_bytes, malloc, run)?;
    for line in &mut lines {
        run.interrupt.check()?;
        line.bench.load(run)?;
        if !run.results.targets.iter().any(|target| target.name == line.target) {
            let facts = line.bench.facts();
            run.results.targets.push(TargetInfo { name: line.target.clone(), baseline: None, facts });
        }
    }
    let mut grid = Sessions { options, kind, x_name: run.results.x_name.clone(), lines };
    runner::run(&mut grid, run)?;
    // Everything is measured, so an error from here on does not make the figures incomplete.
    run.results.complete = true;
    run.progress.stage("stopping", 0);
    grid.lines.iter_mut().try_for_each(|line| line.bench.stop())
}

/// A workload on all servers: a line is a server, a step a number of sessions.
struct Sessions<'a> {
    options: &'a Options,
    kind: Kind,
    x_name: String,
    lines: Vec<Line>,
}

impl Sessions<'_> {
    fn cell(&self, line: usize, sessions: u32) -> Cell {
        let Line { target, series, block, .. } = &self.lines[line];
        let parameters = vec![
            ("workload", self.kind.name().to_string()),
            ("sessions", sessions.to_string()),
            ("processors", block.clone()),
            ("rows", self.options.rows.to_string()),
        ];
        Cell::new(target, series, block, sessions, parameters)
    }
}

impl Grid for Sessions<'_> {
    type Line = usize;
    type Step = u32;

    fn schedule(&self) -> Schedule {
        let (warmup, time) = self.options.window(cells(self.options, self.kind));
        Schedule { seed: self.options.seed, rounds: self.options.samples, warmup, time }
    }

    fn stage(&self) -> String {
        let samples = (self.lines.len() * self.steps().len()) as u64 * u64::from(self.options.samples);
        format!("{}: measuring {samples} samples", self.kind.name())
    }

    fn cells(&self) -> Vec<Cell> {
        let steps = self.steps();
        let lines = 0..self.lines.len();
        lines.flat_map(|line| steps.iter().map(move |&sessions| self.cell(line, sessions))).collect()
    }

    fn steps(&self) -> Vec<u32> {
        self.options.sessions(self.kind)
    }

    fn lines(&self, _sessions: u32) -> Vec<usize> {
        (0..self.lines.len()).collect()
    }

    fn stream(&self, round: u32, sessions: u32) -> u64 {
        u64::from(round) << 32 | u64::from(sessions)
    }

    fn detail(&self, &line: &usize, sessions: u32) -> String {
        let Line { target, series, block, .. } = &self.lines[line];
        format!("{sessions} {}, {target} {series}, {block} processors", self.x_name)
    }

    fn measure(&mut self, turn: &Turn<usize, u32>, run: &mut Run<'_>) -> Result<Outcome> {
        let Run { interrupt, progress, .. } = run;
        let mut tell = |share: f64, more: &str| turn.tell(progress, share, more);
        let bench = &mut self.lines[turn.line].bench;
        let mut sample = bench.sample(turn.step, turn.round(), interrupt, &mut tell)?;
        if !self.kind.is_rate() {
            let cpu = sample.server_cpus.map(|cpus| cpus * sample.seconds);
            sample.extra.extend(cpu.map(|cpu| (CPU.to_string(), cpu)));
        }
        Ok(Outcome::Measured(vec![self.cell(turn.line, turn.step).with(sample)]))
    }
}

/// The work on each server.
#[derive(Clone)]
enum Task {
    Transactions(Mix),
    Joins,
    Inserts,
    Reload(Form, Arc<Dump>),
}

fn tasks(options: &Options, kind: Kind, cache_bytes: u64, run: &mut Run<'_>) -> Result<Vec<Task>> {
    Ok(match kind {
        Kind::ReadWrite => vec![Task::Transactions(Mix::ReadWrite)],
        Kind::ReadOnly => vec![Task::Transactions(Mix::ReadOnly)],
        Kind::Points => vec![Task::Transactions(Mix::Points)],
        Kind::Joins => vec![Task::Joins],
        Kind::Inserts => vec![Task::Inserts],
        Kind::Reload => {
            let folder = match &options.dump {
                Some(folder) => folder.clone(),
                None => run.scratch.folder("dump")?,
            };
            let (bytes, forms) = (options.size_bytes(cache_bytes), &options.forms);
            let dump = Dump::at(&folder, bytes, forms, options.seed, run.interrupt, run.progress)?;
            let dump = Arc::new(dump);
            run.results.settings.push(("tables of the dump".to_string(), dump.describe()));
            forms.iter().map(|&form| Task::Reload(form, dump.clone())).collect()
        }
    })
}

fn open(
    options: &Options,
    kind: Kind,
    cache_bytes: u64,
    malloc: &str,
    run: &mut Run<'_>,
) -> Result<Vec<Line>> {
    let sessions = options.sessions(kind);
    let settings = Settings {
        cache_bytes,
        connections: (sessions.iter().copied().max().unwrap_or(1) + CONNECTIONS_BESIDE).max(CONNECTIONS_MIN),
        paper: options.paper,
        nosync: kind == Kind::Reload,
        latches: options.latches,
        mariadb_options: options.mariadb_options.clone(),
        latchwork_options: options.latchwork_options.clone(),
    };
    let tasks = tasks(options, kind, cache_bytes, run)?;
    let mut lines = Vec::new();
    for (spec, variant) in variants(options) {
        for task in &tasks {
            run.interrupt.check()?;
            let folder = run.scratch.folder(&lines.len().to_string())?;
            let (series, bench) = if spec.is_embedded() {
                let engine = InProcess::open(spec, variant, cache_bytes, malloc, folder)?;
                in_process(options, kind, task, engine)?
            } else {
                bench(options, kind, task, Instance::open(spec, variant, &settings, &folder, run)?)
            };
            let target = spec.name();
            let series =
                if variant.binary_log { format!("{series}, binary log") } else { series.to_string() };
            lines.push(Line { target, series, block: variant.cores.to_string(), bench });
        }
    }
    Ok(lines)
}

/// A task on a server, and what its line is called.
fn bench(options: &Options, kind: Kind, task: &Task, instance: Instance) -> (&'static str, Box<dyn Bench>) {
    let table = Sbtest { rows: options.rows, seed: options.seed };
    match task {
        Task::Transactions(mix) => {
            let is_unchanged = instance.transactional || *mix != Mix::ReadWrite;
            let oltp = oltp(options, *mix, instance.keeps_rows() && is_unchanged);
            let (warmup, time) = options.window(cells(options, kind));
            let (driver, seed) = (options.driver, options.seed);
            let bench = transactions::TransactionsBench { instance, oltp, driver, warmup, time, seed };
            (statements(options.prepared), Box::new(bench))
        }
        Task::Joins => ("COUNT(*)", Box::new(joins::Joins { instance, table })),
        Task::Inserts => {
            let (rows, seed) = (options.rows_per_session(), options.seed);
            ("a table a session", Box::new(inserts::Inserts { instance, rows, seed }))
        }
        Task::Reload(form, dump) => {
            (form.statement(), Box::new(reload::Reload { instance, dump: dump.clone(), form: *form }))
        }
    }
}

/// The tasks that need no SQL, on the engine in this process.
fn in_process(
    options: &Options,
    kind: Kind,
    task: &Task,
    engine: InProcess,
) -> Result<(&'static str, Box<dyn Bench>)> {
    match task {
        Task::Transactions(mix) => {
            let bench = EmbeddedTransactions {
                engine,
                oltp: oltp(options, *mix, true),
                warmup: options.window(cells(options, kind)).0,
                time: options.window(cells(options, kind)).1,
                seed: options.seed,
                table: None,
            };
            Ok(("in process", Box::new(bench)))
        }
        Task::Inserts => {
            let (rows, seed) = (options.rows_per_session(), options.seed);
            Ok(("in process", Box::new(EmbeddedInserts { engine, rows, seed })))
        }
        Task::Joins | Task::Reload(..) => {
            Err(Error::Usage(format!("{} is SQL, which the engine in process knows nothing of", kind.name())))
        }
    }
}

fn oltp(options: &Options, mix: Mix, checked: bool) -> Oltp {
    let table = Sbtest { rows: options.rows, seed: options.seed };
    Oltp { mix, table, distribution: options.distribution, prepared: options.prepared, checked }
}

fn cells(options: &Options, kind: Kind) -> usize {
    variants(options).len() * options.sessions(kind).len()
}

/// Servers that run at the same time: the forms of a reload have one each.
fn servers(options: &Options, kind: Kind) -> u64 {
    let forms = if kind == Kind::Reload { options.forms.len() } else { 1 };
    (variants(options).len() * forms) as u64
}

/// How the presets compare with `base`, which the study's patches started from.
fn over_base(results: &Results) -> Option<Summary> {
    const BASE: &str = "latchwork:base";
    let presets: Vec<&str> = results
        .targets
        .iter()
        .map(|target| target.name.as_str())
        .filter(|name| name.starts_with("latchwork:") && *name != BASE)
        .collect();
    let xs = report::view::xs(results);
    let mut rows = Vec::new();
    for name in presets {
        for cell in results.cells.iter().filter(|cell| cell.target == name && Some(&cell.x) == xs.first()) {
            let mut row = vec![cell.block.clone(), name.to_string(), cell.series.clone()];
            row.extend(xs.iter().map(|&x| {
                let median =
                    |target| Some(results.cell(target, &cell.series, &cell.block, x)?.estimate()?.median);
                let speed = |target| {
                    median(target).map(|median| if results.lower_is_better { 1.0 / median } else { median })
                };
                let multiple = speed(name).zip(speed(BASE)).map(|(preset, base)| preset / base);
                multiple.map_or(MISSING.to_string(), |multiple| format!("{multiple:.2}x"))
            }));
            rows.push(row);
        }
    }
    let figures = |row: &Vec<String>| row[3..].iter().any(|value| value != MISSING);
    if !rows.iter().any(figures) {
        return None;
    }
    let mut columns = ["processors", "target", "series"].map(str::to_string).to_vec();
    columns.extend(xs.iter().map(|x| format!("{x} {}", results.x_name)));
    Some(Summary {
        title: format!("speed as a multiple of {BASE}"),
        note: "medians; more than 1 is faster".to_string(),
        columns,
        names: 3,
        rows,
    })
}
