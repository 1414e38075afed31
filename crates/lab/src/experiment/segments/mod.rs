//! `segments`: what is gained by splitting the key cache's mutex (MariaDB 5.2.2's study of MyISAM).

mod options;

pub(crate) use options::Options;

use super::Experiment;
use super::frame::{self, Run, seconds};
use super::runner::{self, Grid, Outcome, Schedule, Turn};
use crate::doctor::machine;
use crate::driver::Load;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::{self, Progress};
use crate::results::{Cell, Results, TargetInfo};
use crate::target::{self, Context, Series, Target};
use crate::workload::{Sbtest, Statement, Workload};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments;

impl Experiment for Segments {
    fn name(&self) -> &'static str {
        "segments"
    }

    fn title(&self) -> &'static str {
        "The segmented key cache"
    }

    fn question(&self) -> &'static str {
        "A key cache with one mutex makes every index read of every connection queue. How much is \
         gained by splitting it into segments with a mutex each, or by taking no latch at all on a hit? One table, one \
         prepared query: SELECT id, k, c, pad FROM sbtest1 WHERE k IN (...), everything in memory."
    }

    fn options(&self) -> String {
        options::help()
    }

    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
        let options = Options::parse(args).map_err(Error::Usage)?;
        let results = blank(self, args, &options);
        frame::conduct(
            results,
            &options.output,
            interrupt,
            progress,
            |_| Vec::new(),
            |run| measure(&options, run),
        )
    }
}

fn blank(experiment: &Segments, args: &[String], options: &Options) -> Results {
    let query = options.points.first().map(|&points| Statement::PointsByK { points }.sql());
    let settings = [
        ("rows", options.rows.to_string()),
        ("seed", options.seed.to_string()),
        ("driver", options.driver.name().to_string()),
        ("warm-up before a sample", seconds(options.warmup)),
        ("measured window of a sample", seconds(options.time)),
        ("samples a cell", options.samples.to_string()),
        ("cache", machine::bytes(options.whole_cache_bytes())),
        ("key buffer of engines that cache indexes only", machine::bytes(options.key_buffer_bytes())),
        ("query", query.unwrap_or_default()),
    ];
    Results {
        block_name: "points".to_string(),
        baseline_name: "segments off".to_string(),
        ..frame::blank(experiment, args, &settings, &options.doctor_plan())
    }
}

/// A target with its part of the scratch folder and its current series.
struct Running {
    target: Box<dyn Target>,
    folder: PathBuf,
    series: Vec<Series>,
    applied: Option<Series>,
}

fn measure(options: &Options, run: &mut Run<'_>) -> Result<()> {
    let table = Sbtest { rows: options.rows, seed: options.seed };
    let mut running = Vec::new();
    for (number, spec) in options.targets.iter().enumerate() {
        run.interrupt.check()?;
        let mut target = target::open(spec, &options.target_options());
        let plan = target.series(&options.settings());
        for why in &plan.left_out {
            run.progress.note(&format!("{}: {why}", target.name()));
        }
        let own_folder = run.scratch.folder(&number.to_string())?;
        let mut context = Context { interrupt: run.interrupt, progress: run.progress, folder: &own_folder };
        target.start(&table, &mut context)?;
        run.results.targets.push(TargetInfo {
            name: target.name().to_string(),
            baseline: plan.baseline,
            facts: target.facts(),
        });
        running.push(Running { target, folder: own_folder, series: plan.series, applied: None });
    }
    let mut grid = Points { options, table, running };
    runner::run(&mut grid, run)?;
    // The targets are stopped in good order here, so that a target that loses data when it stops is noticed.
    run.progress.stage("stopping", 0);
    grid.running.iter_mut().try_for_each(|running| running.target.stop())
}

/// A line is a target under one of its settings, a step a number of threads. A turn measures the queries of
/// every number of points: switching a target to another setting takes longer than a sample.
struct Points<'a> {
    options: &'a Options,
    table: Sbtest,
    running: Vec<Running>,
}

/// The number of a target, and one of its series.
type Line = (usize, Series);

impl Points<'_> {
    fn cell(&self, (target, series): &Line, points: u32, threads: u32) -> Cell {
        let mut parameters = vec![
            ("points", points.to_string()),
            ("threads", threads.to_string()),
            ("rows", self.options.rows.to_string()),
        ];
        if let Some(setting) = series.setting {
            parameters.push(("key_cache_segments", setting.segments.to_string()));
            parameters.push(("key_cache_hit_path", setting.hit_path.name().to_string()));
        }
        let target = self.running[*target].target.name();
        Cell::new(target, &series.label, &points.to_string(), threads, parameters)
    }
}

impl Grid for Points<'_> {
    type Line = Line;
    type Step = u32;

    fn schedule(&self) -> Schedule {
        let Options { seed, samples, warmup, time, .. } = *self.options;
        Schedule { seed, rounds: samples, warmup, time }
    }

    fn stage(&self) -> String {
        let samples = self.cells().len() as u64 * u64::from(self.options.samples);
        let each = self.options.warmup + self.options.time;
        let expected = progress::duration(each.mul_f64(samples as f64));
        format!("measuring {samples} samples of {}, about {expected}", seconds(each))
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for line in &self.lines(0) {
            for &points in &self.options.points {
                let threads = self.options.threads.iter();
                cells.extend(threads.map(|&threads| self.cell(line, points, threads)));
            }
        }
        cells
    }

    fn steps(&self) -> Vec<u32> {
        self.options.threads.clone()
    }

    fn lines(&self, _threads: u32) -> Vec<Line> {
        let lines =
            self.running.iter().enumerate().flat_map(|(number, running)| {
                running.series.iter().map(move |series| (number, series.clone()))
            });
        lines.collect()
    }

    fn stream(&self, round: u32, threads: u32) -> u64 {
        u64::from(round) << 32 | u64::from(threads)
    }

    fn detail(&self, (target, series): &Line, threads: u32) -> String {
        format!("{threads} threads, {} {}", self.running[*target].target.name(), series.label)
    }

    fn measure(&mut self, turn: &Turn<Line, u32>, run: &mut Run<'_>) -> Result<Outcome> {
        let (number, series) = &turn.line;
        let points = &self.options.points;
        let mut cells: Vec<Cell> =
            points.iter().map(|&points| self.cell(&turn.line, points, turn.step)).collect();
        let Running { target, folder, applied, .. } = &mut self.running[*number];
        let mut context = Context { interrupt: run.interrupt, progress: run.progress, folder };
        if applied.as_ref() != Some(series) {
            *applied = None;
            target.apply(series, &mut context)?;
            *applied = Some(series.clone());
        }
        for (position, (cell, &points)) in cells.iter_mut().zip(&self.options.points).enumerate() {
            let share = position as f64 / self.options.points.len() as f64;
            turn.tell(context.progress, share, &format!(", {points} points"));
            let load = Load {
                workload: Workload { table: self.table, statement: Statement::PointsByK { points } },
                clients: turn.step,
                warmup: turn.window.warmup,
                measure: turn.window.measure,
                seed: self.options.seed.wrapping_add(u64::from(turn.round())),
                round: turn.round(),
            };
            cell.samples.push(target.sample(&load, &mut context)?);
        }
        Ok(Outcome::Measured(cells))
    }
}
