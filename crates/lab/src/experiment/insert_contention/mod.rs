//! `insert-contention`: many writers, many tables, indexes in memory (Percona's study of MyISAM, 2008).

mod embedded;
mod options;
mod server;
mod tables;

use super::Experiment;
use super::frame::{self, Run};
use crate::doctor::{Plan, machine};
use crate::driver::Window;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::view::short_number;
use crate::results::{Cell, Results, Sample, Summary, TargetInfo};
use crate::target::{HitPath, TargetSpec};
use crate::workload::Random;
use options::{Case, Options};
use tables::{Arrangement, ReadersCase};

#[derive(Clone, Copy, Debug)]
pub struct InsertContention;

/// What every target is set up with.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// All caches together.
    pub cache_bytes: u64,
    pub rows_per_statement: u32,
    pub seed: u64,
    /// Of Latchwork's caches; `None` = its own choice.
    pub hit_path: Option<HitPath>,
    pub segments: Option<u32>,
}

/// A target that tables can be made in.
pub trait Contended {
    fn facts(&self) -> Vec<(String, String)>;
    /// Makes an empty table for each writer, and its cache; or says what was refused.
    fn set_up(&mut self, arrangement: Arrangement, writers: u32) -> Result<Option<String>>;
    /// Each writer inserts into its own table.
    fn insert(&mut self, writers: u32, window: &Window, run: &Run<'_>) -> Result<Sample>;
    /// Bytes that the indexes of the tables take a row, where that can be told; of the engine in process, rows are among them.
    fn bytes_a_row(&mut self) -> Result<Option<f64>>;
    /// Two tables of calls.
    fn load_calls(&mut self, rows: u32, run: &mut Run<'_>) -> Result<()>;
    /// Counts calls of users, out of the index alone.
    fn read(&mut self, case: ReadersCase, rows: u32, window: &Window, run: &Run<'_>) -> Result<Sample>;
    fn stop(&mut self) -> Result<()>;
}

pub const BUSIEST: &str = "latch waits/s, the busiest segment";
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
        "Writers that insert into tables of their own still meet in the key cache that all tables share. What is a cache per \
         table worth (CACHE INDEX), what keys without prefix compression (PACK_KEYS=0), and both, on indexes of CHAR \
         and VARCHAR, everything in memory? With --case readers: one thread or two, on one table or two."
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
            scratch: options.place.scratch.clone(),
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
        frame::conduct(results, &options.place, interrupt, progress, summarise, |run| measure(&options, run))
    }
}

fn measure(options: &Options, run: &mut Run<'_>) -> Result<()> {
    let mut targets: Vec<(String, Box<dyn Contended>)> = Vec::new();
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
        Case::Writers => writers(options, &mut targets, run)?,
        Case::Readers => readers(options, &mut targets, run)?,
    }
    run.progress.stage("stopping", 0);
    targets.iter_mut().try_for_each(|(_, target)| target.stop())
}

fn writers(options: &Options, targets: &mut [(String, Box<dyn Contended>)], run: &mut Run<'_>) -> Result<()> {
    let block = options.setup.rows_per_statement.to_string();
    for (name, _) in targets.iter() {
        for arrangement in Arrangement::ALL {
            for &writers in &options.writers {
                let parameters = vec![
                    ("writers".to_string(), writers.to_string()),
                    ("rows_a_statement".to_string(), block.clone()),
                ];
                run.results.cells.push(cell(name, arrangement.name(), &block, writers, parameters));
            }
        }
    }
    let total = run.results.cells.len() as u64 * u64::from(options.samples);
    run.progress.stage("measuring", total);
    let mut refused: Vec<(String, Arrangement)> = Vec::new();
    let mut done = 0;
    for round in 0..options.samples {
        for &writers in &options.writers {
            let mut turns: Vec<(usize, Arrangement)> = (0..targets.len())
                .flat_map(|target| Arrangement::ALL.map(move |arrangement| (target, arrangement)))
                .collect();
            Random::new(options.setup.seed, u64::from(round) << 32 | u64::from(writers)).shuffle(&mut turns);
            for (target, arrangement) in turns {
                run.interrupt.check()?;
                done += 1;
                let (name, target) = &mut targets[target];
                if refused.contains(&(name.clone(), arrangement)) {
                    continue;
                }
                run.progress.at(done, &format!("{name}, {}, {writers} writers", arrangement.name()));
                if let Some(why) = target.set_up(arrangement, writers)? {
                    run.progress.note(&format!("{name} refuses {}: {why}", arrangement.name()));
                    run.results.settings.push((format!("refused by {name}: {}", arrangement.name()), why));
                    refused.push((name.clone(), arrangement));
                    continue;
                }
                let window = Window { warmup: options.time / 5, measure: options.time, round };
                let mut sample = target.insert(writers, &window, run)?;
                sample.value = sample.rows as f64 / sample.seconds;
                sample.extra.extend(target.bytes_a_row()?.map(|bytes| (BYTES_A_ROW.to_string(), bytes)));
                sample.extra.extend(sample.server_cpus.map(|cpus| (PROCESSORS.to_string(), cpus)));
                let cell = run.results.cell_mut(name, arrangement.name(), &block, writers);
                cell.expect("the grid has every cell").samples.push(sample);
                run.save()?;
            }
        }
    }
    Ok(())
}

fn readers(options: &Options, targets: &mut [(String, Box<dyn Contended>)], run: &mut Run<'_>) -> Result<()> {
    let block = options.rows.to_string();
    for (name, target) in targets.iter_mut() {
        target.load_calls(options.rows, run)?;
        for case in ReadersCase::ALL {
            let parameters = vec![("rows".to_string(), block.clone())];
            run.results.cells.push(cell(name, case.name, &block, case.threads, parameters));
        }
    }
    run.progress.stage("measuring", run.results.cells.len() as u64 * u64::from(options.samples));
    let mut done = 0;
    for round in 0..options.samples {
        let mut turns: Vec<(usize, ReadersCase)> =
            (0..targets.len()).flat_map(|target| ReadersCase::ALL.map(move |case| (target, case))).collect();
        Random::new(options.setup.seed, round.into()).shuffle(&mut turns);
        for (target, case) in turns {
            run.interrupt.check()?;
            let (name, target) = &mut targets[target];
            run.progress.at(done, &format!("{name}, {}", case.name));
            let window = Window { warmup: options.time / 5, measure: options.time, round };
            let sample = target.read(case, options.rows, &window, run)?;
            let cell = run.results.cell_mut(name, case.name, &block, case.threads);
            cell.expect("the grid has every cell").samples.push(sample);
            done += 1;
            run.save()?;
        }
    }
    Ok(())
}

fn cell(target: &str, series: &str, block: &str, x: u32, parameters: Vec<(String, String)>) -> Cell {
    Cell {
        target: target.to_string(),
        series: series.to_string(),
        block: block.to_string(),
        x,
        parameters,
        samples: Vec::new(),
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
