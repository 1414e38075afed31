//! Runs a grid of settings, queries and threads: targets, interleaved rounds, results after every step.

use super::Experiment;
use super::frame::{self, Place, Run, seconds};
use crate::command::RunOptions;
use crate::doctor::machine;
use crate::driver::Load;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::progress::{self, Progress};
use crate::results::{Cell, Results, TargetInfo};
use crate::target::{self, Context, Series, Target};
use crate::workload::{Random, Sbtest, Statement, Workload};
use std::path::PathBuf;

/// An experiment whose cells are queries under every setting at every number of threads.
pub trait Grid: Experiment {
    /// What a block of the tables stands for: `points`.
    fn block_name(&self) -> &'static str;
    /// The blocks of the grid; the columns are always threads, the rows the targets' series.
    fn blocks(&self, options: &RunOptions) -> Vec<Block>;
    /// What the gains are relative to, in words.
    fn baseline_name(&self) -> &'static str;
}

/// A workload with the number that names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub value: u32,
    pub statement: Statement,
}

/// A target with its part of the scratch folder and the series it is set to.
struct Running {
    target: Box<dyn Target>,
    folder: PathBuf,
    series: Vec<Series>,
    applied: Option<Series>,
}

/// Runs `experiment` and reports.
pub fn run(
    experiment: &dyn Grid,
    args: &[String],
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<()> {
    let place = Place { format: options.format, out: options.out.clone(), scratch: options.scratch.clone() };
    let results = blank(experiment, args, options);
    frame::conduct(
        results,
        &place,
        interrupt,
        progress,
        |_| Vec::new(),
        |run| measure(experiment, options, run),
    )
}

fn measure(experiment: &dyn Grid, options: &RunOptions, run: &mut Run<'_>) -> Result<()> {
    let table = Sbtest { rows: options.rows, seed: options.seed };
    let mut running = Vec::new();
    for (number, spec) in options.targets.iter().enumerate() {
        run.interrupt.check()?;
        let mut target = target::open(spec, options)?;
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
    let blocks = experiment.blocks(options);
    run.results.cells = empty_cells(options, &blocks, &running);
    rounds(options, &blocks, &table, &mut running, run)?;
    // Stopped in good order, so that a target that loses data on its way out is noticed.
    run.progress.stage("stopping", 0);
    running.iter_mut().try_for_each(|running| running.target.stop())
}

/// Every cell once a round. Within a round and a thread count the series of all targets take turns in an order
/// drawn anew, so that whatever changes on the machine meanwhile meets all of them alike.
fn rounds(
    options: &RunOptions,
    blocks: &[Block],
    table: &Sbtest,
    running: &mut [Running],
    run: &mut Run<'_>,
) -> Result<()> {
    let total = run.results.cells.len() as u64 * u64::from(options.samples);
    let each = options.warmup + options.time;
    let expected = progress::duration(each.mul_f64(total as f64));
    run.progress.stage(format!("measuring {total} samples of {}, about {expected}", seconds(each)), total);
    let mut done = 0;
    for round in 0..options.samples {
        for &threads in &options.threads {
            let mut turns: Vec<(usize, Series)> = running
                .iter()
                .enumerate()
                .flat_map(|(number, running)| {
                    running.series.iter().map(move |series| (number, series.clone()))
                })
                .collect();
            Random::new(options.seed, u64::from(round) << 32 | u64::from(threads)).shuffle(&mut turns);
            for (number, series) in turns {
                let Running { target, folder: own_folder, applied, .. } = &mut running[number];
                let detail =
                    format!("round {}, {threads} threads, {} {}", round + 1, target.name(), series.label);
                run.progress.at(done, &detail);
                let mut context =
                    Context { interrupt: run.interrupt, progress: run.progress, folder: own_folder };
                if applied.as_ref() != Some(&series) {
                    *applied = None;
                    target.apply(&series, &mut context)?;
                    *applied = Some(series.clone());
                }
                for block in blocks {
                    let load = Load {
                        workload: Workload { table: *table, statement: block.statement },
                        clients: threads,
                        warmup: options.warmup,
                        measure: options.time,
                        seed: options.seed.wrapping_add(u64::from(round)),
                        round,
                    };
                    let sample = target.sample(&load, &mut context)?;
                    let cell =
                        run.results.cell_mut(target.name(), &series.label, &block.value.to_string(), threads);
                    cell.expect("the grid has every cell").samples.push(sample);
                    done += 1;
                }
                run.save()?;
                run.progress.at(done, &detail);
            }
        }
    }
    Ok(())
}

fn empty_cells(options: &RunOptions, blocks: &[Block], running: &[Running]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for running in running {
        for series in &running.series {
            for block in blocks {
                for &threads in &options.threads {
                    cells.push(Cell {
                        target: running.target.name().to_string(),
                        series: series.label.clone(),
                        block: block.value.to_string(),
                        x: threads,
                        parameters: parameters(options, series, block, threads),
                        samples: Vec::new(),
                    });
                }
            }
        }
    }
    cells
}

fn parameters(options: &RunOptions, series: &Series, block: &Block, threads: u32) -> Vec<(String, String)> {
    let mut parameters = vec![
        ("points".to_string(), block.value.to_string()),
        ("threads".to_string(), threads.to_string()),
        ("rows".to_string(), options.rows.to_string()),
    ];
    if let Some(setting) = series.setting {
        parameters.push(("key_cache_segments".to_string(), setting.segments.to_string()));
        parameters.push(("key_cache_hit_path".to_string(), setting.hit_path.name().to_string()));
    }
    parameters
}

fn blank(experiment: &dyn Grid, args: &[String], options: &RunOptions) -> Results {
    let settings = [
        ("rows", options.rows.to_string()),
        ("seed", options.seed.to_string()),
        ("driver", options.driver.name().to_string()),
        ("warm-up before a sample", seconds(options.warmup)),
        ("measured window of a sample", seconds(options.time)),
        ("samples a cell", options.samples.to_string()),
        ("cache", machine::bytes(options.whole_cache_bytes())),
        ("key buffer of engines that cache indexes only", machine::bytes(options.key_buffer_bytes())),
        ("query", experiment.blocks(options).first().map(|block| block.statement.sql()).unwrap_or_default()),
    ];
    Results {
        block_name: experiment.block_name().to_string(),
        baseline_name: experiment.baseline_name().to_string(),
        ..frame::blank(experiment, args, &settings, &options.doctor_plan())
    }
}
