//! `insert-contention`: many writers, many tables, indexes in memory (Percona's study of MyISAM, 2008).

mod embedded;
mod options;
mod server;
mod tables;

use super::Experiment;
use super::frame::{self, Run};
use super::runner::{self, Grid, Outcome, Schedule, Turn};
use crate::doctor::{Plan, machine};
use crate::driver::Window;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::view::short_number;
use crate::results::{Cell, Results, Sample, Summary, TargetInfo};
use crate::target::{HitPath, TargetSpec};
use options::{Case, Options};
use tables::{Arrangement, ReadersCase};

#[derive(Clone, Copy, Debug)]
pub(crate) struct InsertContention;

/// The set-up that every target has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// The bytes of all caches together.
    pub cache_bytes: u64,
    pub rows_per_statement: u32,
    pub seed: u64,
    /// The segments of Latchwork's caches; `None` = its own choice.
    pub hit_path: Option<HitPath>,
    pub segments: Option<u32>,
}

/// A target that tables can be made in.
pub(crate) trait Contended {
    fn facts(&self) -> Vec<(String, String)>;
    /// Makes an empty table for each writer, and its cache; or returns a sentence that says what was refused.
    fn set_up(&mut self, arrangement: Arrangement, writers: u32) -> Result<Option<String>>;
    /// Each writer inserts into its own table.
    fn insert(&mut self, writers: u32, window: &Window, run: &Run<'_>) -> Result<Sample>;
    /// Bytes that the indexes of the tables take a row, if the target can tell. For the engine in process
    /// this includes the rows.
    fn bytes_a_row(&mut self) -> Result<Option<f64>>;
    /// Two tables of calls.
    fn load_calls(&mut self, rows: u32, run: &mut Run<'_>) -> Result<()>;
    /// Counts calls of users, with the index alone.
    fn read(&mut self, case: ReadersCase, rows: u32, window: &Window, run: &Run<'_>) -> Result<Sample>;
    fn stop(&mut self) -> Result<()>;
}

pub(crate) const BUSIEST: &str = "latch waits/s, the busiest segment";
const BYTES_A_ROW: &str = "bytes a row, indexes (embedded: indexes and rows)";
const PROCESSORS: &str = "processors busy, server (embedded: the whole process)";

impl Experiment for InsertContention {
    fn name(&self) -> &'static str {
        "insert-contention"
    }

    fn title(&self) -> &'static str {
        "Many writers, many tables, one key cache or several"
    }

    fn question(&self) -> &'static str {
        "Writers that insert into tables of their own still meet in the key cache that all tables share. How much \
         is gained by a cache per table (CACHE INDEX), by keys without prefix compression (PACK_KEYS=0), and by both? \
         Indexes are of CHAR and VARCHAR, everything is in memory. With --case readers: one thread or two, on one \
         table or two."
    }

    fn options(&self) -> String {
        options::help()
    }

    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
        let options = Options::parse(args).map_err(Error::Usage)?;
        let targets = options.targets.len() as u64;
        let plan = Plan {
            threads_max: options.threads_max(),
            memory_bytes: targets * (options.setup.cache_bytes + (256 << 20)),
            disk_bytes: targets * (2 << 30),
            scratch: options.output.scratch.clone(),
        };
        let setup = options.setup;
        let own = "its own choice".to_string();
        let settings = [
            ("rows a statement", setup.rows_per_statement.to_string()),
            ("cache, all caches together", machine::bytes(setup.cache_bytes)),
            ("Latchwork's hit path", setup.hit_path.map_or(own.clone(), |path| path.name().to_string())),
            ("Latchwork's segments", setup.segments.map_or(own, |segments| segments.to_string())),
            ("measured window of a sample", frame::seconds(options.time)),
            ("samples", options.samples.to_string()),
            ("seed", setup.seed.to_string()),
        ];
        let blank = frame::blank(self, args, &settings, &plan);
        let results = match options.case {
            Case::Writers => Results {
                unit: "rows/s".to_string(),
                block_name: "rows a statement".to_string(),
                x_name: "writers".to_string(),
                baseline_name: Arrangement::ALL[0].name().to_string(),
                ..blank
            },
            Case::Readers => {
                Results { block_name: "calls a table".to_string(), x_name: "threads".to_string(), ..blank }
            }
        };
        let summarise = |results: &Results| match options.case {
            Case::Writers => Vec::new(),
            Case::Readers => vec![response_times(results)],
        };
        frame::conduct(results, &options.output, interrupt, progress, summarise, |run| measure(&options, run))
    }
}

fn measure(options: &Options, run: &mut Run<'_>) -> Result<()> {
    let mut targets: Targets = Vec::new();
    for (number, spec) in options.targets.iter().enumerate() {
        run.interrupt.check()?;
        let folder = run.scratch.folder(&number.to_string())?;
        let target = match spec {
            TargetSpec::Embedded(_) => embedded::open(&options.setup, &folder)?,
            _ => server::open(spec, &options.setup, &folder, run)?,
        };
        let baseline = match options.case {
            Case::Writers => Some(Arrangement::ALL[0].name().to_string()),
            Case::Readers => None,
        };
        run.results.targets.push(TargetInfo { name: spec.name(), baseline, facts: target.facts() });
        targets.push((spec.name(), target));
    }
    match options.case {
        Case::Writers => runner::run(&mut Writers { options, targets: &mut targets }, run)?,
        Case::Readers => {
            targets.iter_mut().try_for_each(|(_, target)| target.load_calls(options.rows, run))?;
            runner::run(&mut Readers { options, targets: &mut targets }, run)?;
        }
    }
    run.progress.stage("stopping", 0);
    targets.iter_mut().try_for_each(|(_, target)| target.stop())
}

/// The targets by their names.
type Targets = Vec<(String, Box<dyn Contended>)>;

fn schedule(options: &Options) -> Schedule {
    let Options { samples, time, .. } = *options;
    Schedule { seed: options.setup.seed, rounds: samples, warmup: time / 5, time }
}

/// Writers with a table each: a line is a target with its tables arranged in one way, a step a number of
/// writers.
struct Writers<'a> {
    options: &'a Options,
    targets: &'a mut Targets,
}

impl Writers<'_> {
    fn cell(&self, target: usize, arrangement: Arrangement, writers: u32) -> Cell {
        let block = self.options.setup.rows_per_statement.to_string();
        let parameters = vec![("writers", writers.to_string()), ("rows_a_statement", block.clone())];
        Cell::new(&self.targets[target].0, arrangement.name(), &block, writers, parameters)
    }
}

impl Grid for Writers<'_> {
    type Line = (usize, Arrangement);
    type Step = u32;

    fn schedule(&self) -> Schedule {
        schedule(self.options)
    }

    fn stage(&self) -> String {
        "measuring".to_string()
    }

    fn cells(&self) -> Vec<Cell> {
        let steps = self.steps();
        let cells = self.lines(0).into_iter().flat_map(|(target, arrangement)| {
            steps.iter().map(move |&writers| self.cell(target, arrangement, writers))
        });
        cells.collect()
    }

    fn steps(&self) -> Vec<u32> {
        self.options.writers.clone()
    }

    fn lines(&self, _writers: u32) -> Vec<(usize, Arrangement)> {
        let targets = 0..self.targets.len();
        targets.flat_map(|target| Arrangement::ALL.map(move |arrangement| (target, arrangement))).collect()
    }

    fn stream(&self, round: u32, writers: u32) -> u64 {
        u64::from(round) << 32 | u64::from(writers)
    }

    fn detail(&self, &(target, arrangement): &(usize, Arrangement), writers: u32) -> String {
        format!("{}, {}, {writers} writers", self.targets[target].0, arrangement.name())
    }

    fn measure(&mut self, turn: &Turn<(usize, Arrangement), u32>, run: &mut Run<'_>) -> Result<Outcome> {
        let ((number, arrangement), writers) = (turn.line, turn.step);
        let cell = self.cell(number, arrangement, writers);
        let target = &mut self.targets[number].1;
        if let Some(why) = target.set_up(arrangement, writers)? {
            return Ok(Outcome::Refused { target: cell.target, series: cell.series, why });
        }
        let mut sample = target.insert(writers, &turn.window, run)?;
        sample.value = sample.rows as f64 / sample.seconds;
        sample.extra.extend(target.bytes_a_row()?.map(|bytes| (BYTES_A_ROW.to_string(), bytes)));
        sample.extra.extend(sample.server_cpus.map(|cpus| (PROCESSORS.to_string(), cpus)));
        Ok(Outcome::Measured(vec![cell.with(sample)]))
    }
}

/// The cases of the readers: a line is a target with one case, and there is one step.
struct Readers<'a> {
    options: &'a Options,
    targets: &'a mut Targets,
}

impl Readers<'_> {
    fn cell(&self, target: usize, case: ReadersCase) -> Cell {
        let block = self.options.rows.to_string();
        let parameters = vec![("rows", block.clone())];
        Cell::new(&self.targets[target].0, case.name, &block, case.threads, parameters)
    }
}

impl Grid for Readers<'_> {
    type Line = (usize, ReadersCase);
    type Step = ();

    fn schedule(&self) -> Schedule {
        schedule(self.options)
    }

    fn stage(&self) -> String {
        "measuring".to_string()
    }

    fn cells(&self) -> Vec<Cell> {
        self.lines(()).into_iter().map(|(target, case)| self.cell(target, case)).collect()
    }

    fn steps(&self) -> Vec<()> {
        vec![()]
    }

    fn lines(&self, (): ()) -> Vec<(usize, ReadersCase)> {
        let targets = 0..self.targets.len();
        targets.flat_map(|target| ReadersCase::ALL.map(move |case| (target, case))).collect()
    }

    fn stream(&self, round: u32, (): ()) -> u64 {
        round.into()
    }

    fn detail(&self, &(target, case): &(usize, ReadersCase), (): ()) -> String {
        format!("{}, {}", self.targets[target].0, case.name)
    }

    fn measure(&mut self, turn: &Turn<(usize, ReadersCase), ()>, run: &mut Run<'_>) -> Result<Outcome> {
        let (number, case) = turn.line;
        let cell = self.cell(number, case);
        let sample = self.targets[number].1.read(case, self.options.rows, &turn.window, run)?;
        Ok(Outcome::Measured(vec![cell.with(sample)]))
    }
}

/// The reader's table: mean response times, and how they compare with one thread on one table.
fn response_times(results: &Results) -> Summary {
    let mean = |cell: &Cell| cell.median_of(|sample| sample.latency.map(|latency| latency.mean / 1_000.0));
    let alone = ReadersCase::ALL[3];
    let mut rows = Vec::new();
    for target in &results.targets {
        let of = |case: ReadersCase| {
            let mut cells = results.cells.iter();
            mean(cells.find(|cell| cell.target == target.name && cell.series == case.name)?)
        };
        for case in ReadersCase::ALL {
            let (Some(here), Some(base)) = (of(case), of(alone)) else { continue };
            let published = f64::from(case.published_ms) / f64::from(alone.published_ms);
            rows.push(vec![
                target.name.clone(),
                case.name.to_string(),
                format!("{here:.3}"),
                format!("{:.2}", here / base),
                short_number(case.published_ms.into()),
                format!("{published:.2}"),
            ]);
        }
    }
    let columns =
        ["target", "case", "ms a query", "of one thread on one table", "published, ms", "published, share"];
    Summary {
        title: "response times".to_string(),
        note: "the published ones are a reader's, of an I/O-bound machine with tables of 2 million rows"
            .to_string(),
        columns: columns.map(str::to_string).to_vec(),
        names: 2,
        rows,
    }
}
