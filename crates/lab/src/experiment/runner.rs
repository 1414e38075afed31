//! Runs an experiment: preflight, targets, interleaved rounds, results after every step.

use super::{Block, Experiment};
use crate::command::{Format, RunOptions, print};
use crate::doctor::{self, Verdict, machine};
use crate::driver::Load;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::{self, Progress};
use crate::report;
use crate::results::{Cell, Results, TargetInfo};
use crate::scratch::Scratch;
use crate::target::{self, Context, Series, Target};
use crate::workload::{Random, Sbtest, Workload};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A target with its part of the scratch folder and the series it is set to.
struct Running {
    target: Box<dyn Target>,
    folder: PathBuf,
    series: Vec<Series>,
    applied: Option<Series>,
}

/// Runs `experiment` and reports. What was measured before an interrupt or an error is kept and shown.
pub fn run(
    experiment: &dyn Experiment,
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<()> {
    let started = unix_now();
    let folder = match &options.out {
        Some(folder) => folder.clone(),
        None => {
            PathBuf::from("lab-results").join(format!("{}-{}", experiment.name(), report::timestamp(started)))
        }
    };
    fs::create_dir_all(&folder).map_err(Error::path("create", &folder))?;
    let mut results = blank(experiment, options, started);
    let problems = results.doctor.iter().filter(|finding| finding.verdict == Verdict::Problem).count();
    let findings = doctor::to_text(&results.doctor, false);
    if !findings.is_empty() {
        progress.note(&format!("preflight (more: latchwork lab doctor):\n{}", findings.trim_end()));
    }
    if problems > 0 {
        return Err(Error::Usage("the preflight found a problem that the run cannot work with".to_string()));
    }
    let outcome = {
        // Dropped before the reports are written: servers and folders go first.
        let scratch = Scratch::create(&options.scratch)?;
        let measured = measure(experiment, options, interrupt, progress, &scratch, &folder, &mut results);
        // Whatever an interrupt made fail on its way, it was the interrupt.
        measured.and_then(|()| interrupt.check()).map_err(|error| interrupt.check().err().unwrap_or(error))
    };
    results.finished = Some(unix_now());
    results.complete = outcome.is_ok();
    progress.finish();
    publish(&results, options, &folder, progress)?;
    if matches!(outcome, Err(Error::Interrupted)) {
        let measured = results.cells.iter().filter(|cell| !cell.samples.is_empty()).count();
        progress.note(&format!(
            "interrupted: {measured} of {} cells measured so far are kept",
            results.cells.len()
        ));
    }
    outcome
}

fn publish(results: &Results, options: &RunOptions, folder: &Path, progress: &mut Progress) -> Result<()> {
    let json = report::save_json(results, folder)?;
    let html = report::save_html(results, folder)?;
    let places = format!("result: {}\nreport: {}", json.display(), html.display());
    match options.format {
        Format::Table => print(&format!("{}{places}\n", report::text::render(results))),
        Format::Json => {
            progress.note(&places);
            print(&results.to_json().to_pretty())
        }
    }
}

fn measure(
    experiment: &dyn Experiment,
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &mut Progress,
    scratch: &Scratch,
    folder: &Path,
    results: &mut Results,
) -> Result<()> {
    let table = Sbtest { rows: options.rows, seed: options.seed };
    let mut running = Vec::new();
    for (number, spec) in options.targets.iter().enumerate() {
        interrupt.check()?;
        let mut target = target::open(spec, options)?;
        let plan = target.series(&options.settings());
        for why in &plan.left_out {
            progress.note(&format!("{}: {why}", target.name()));
        }
        let own_folder = scratch.folder(&number.to_string())?;
        target.start(&table, &mut Context { interrupt, progress, folder: &own_folder })?;
        results.targets.push(TargetInfo {
            name: target.name().to_string(),
            baseline: plan.baseline,
            facts: target.facts(),
        });
        running.push(Running { target, folder: own_folder, series: plan.series, applied: None });
    }
    let blocks = experiment.blocks(options);
    results.cells = empty_cells(options, &blocks, &running);
    rounds(options, &blocks, &table, interrupt, progress, folder, &mut running, results)?;
    // Stopped in good order, so that a target that loses data on its way out is noticed.
    progress.stage("stopping", 0);
    running.iter_mut().try_for_each(|running| running.target.stop())
}

/// Every cell once a round. Within a round and a thread count the series of all targets take turns in an order
/// drawn anew, so that whatever changes on the machine meanwhile meets all of them alike.
#[allow(clippy::too_many_arguments)]
fn rounds(
    options: &RunOptions,
    blocks: &[Block],
    table: &Sbtest,
    interrupt: &Interrupt,
    progress: &mut Progress,
    folder: &Path,
    running: &mut [Running],
    results: &mut Results,
) -> Result<()> {
    let total = results.cells.len() as u64 * u64::from(options.samples);
    let each = options.warmup + options.time;
    let expected = progress::duration(each.mul_f64(total as f64));
    progress.stage(format!("measuring {total} samples of {}, about {expected}", seconds(each)), total);
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
                progress.at(done, &detail);
                let mut context = Context { interrupt, progress, folder: own_folder };
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
                    let cell = results.cell_mut(target.name(), &series.label, block.value, threads);
                    cell.expect("the grid has every cell").samples.push(sample);
                    done += 1;
                }
                report::save_json(results, folder)?;
                progress.at(done, &detail);
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
                        block: block.value,
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

fn blank(experiment: &dyn Experiment, options: &RunOptions, started: u64) -> Results {
    let mut command = vec!["latchwork", "lab", "run", experiment.name()];
    command.extend(options.command.iter().map(String::as_str));
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
        experiment: experiment.name().to_string(),
        title: experiment.title().to_string(),
        question: experiment.question().to_string(),
        started,
        finished: None,
        complete: false,
        command: command.into_iter().map(str::to_string).collect(),
        machine: machine::describe(),
        settings: settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        doctor: doctor::examine(&options.doctor_plan()),
        targets: Vec::new(),
        unit: "queries/s".to_string(),
        block_name: experiment.block_name().to_string(),
        x_name: "threads".to_string(),
        baseline_name: experiment.baseline_name().to_string(),
        cells: Vec::new(),
    }
}

fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        format!("{} s", (duration.as_secs_f64() * 1_000.0).round() / 1_000.0)
    } else {
        progress::duration(duration)
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
