//! `working-set`: how many scattered keys a cache holds (Percona's study of 2014).

mod data;
mod embedded;
mod options;
mod series;
mod server;

use super::Experiment;
use super::frame::{self, Run};
use super::runner::{self, Grid, Outcome, Schedule, Turn};
use crate::doctor::{Plan, machine};
use crate::driver::Window;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::MEMORY;
use crate::progress::Progress;
use crate::report::view::{MISSING, grouped, short_number};
use crate::results::{Cell, Results, Sample, Summary, TargetInfo};
use crate::target::TargetSpec;
use options::Options;
use series::{Asked, Opened, READS, Swept, Variant};
use std::time::{Duration, Instant};

/// Keys count as held if throughput is at least this share of that in memory: what the study calls
/// "acceptable", and nearly unchanged.
const SHARES: [f64; 2] = [0.25, 0.9];
/// Keys also count as held if there are at most so many device reads a lookup, whatever the throughput is.
const READS_MAX: f64 = 0.05;
/// A series has collapsed if its throughput is below this share of that in memory, unless the device is
/// hardly read. After so many collapsed sizes in a row it is not measured any more.
const COLLAPSED: f64 = 0.05;
const COLLAPSES: u32 = 2;
/// A cache has settled when the device reads have not become fewer for this many looks, or when hardly any
/// are left.
const SETTLED_LOOKS: u32 = 4;
const SETTLED_READS: f64 = 0.005;
/// Reads count as fewer if they are below this share of the fewest so far.
const SETTLING: f64 = 0.97;
const LOOK: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkingSet;

impl Experiment for WorkingSet {
    fn name(&self) -> &'static str {
        "working-set"
    }

    fn title(&self) -> &'static str {
        "How many scattered keys a cache really holds"
    }

    fn question(&self) -> &'static str {
        "N random primary keys of a large table are read over and over, through a cache that holds a small part of the \
         table. N grows until the device limits the rate. A page cache keeps a page for each key. How many keys fit \
         with smaller pages, with compressed pages, and with a cache of rows beside that of pages?"
    }

    fn options(&self) -> String {
        options::help()
    }

    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
        let mut options = Options::parse(args).map_err(Error::Usage)?;
        options.setup.data = embedded::compressible(options.setup.data, options.compressible)?;
        let setup = options.setup;
        let compression = embedded::compression(&setup.data)?;
        let series = options.series().len() as u64;
        let data_bytes = u64::from(setup.data.rows) * u64::from(setup.data.row_bytes) * 3 / 2;
        let plan = Plan {
            threads_max: setup.clients,
            memory_bytes: series * (setup.cache_bytes + (64 << 20)),
            disk_bytes: series * (data_bytes + (512 << 20)),
            scratch: options.output.scratch.clone(),
        };
        let limit = match setup.operations_per_second {
            Some(limit) => format!("{limit} operations/s while measuring, none while warming"),
            None => "none".to_string(),
        };
        let settings = [
            ("rows", setup.data.rows.to_string()),
            ("bytes a row, about", setup.data.row_bytes.to_string()),
            (
                "LZ4 of pages",
                format!("{compression:.2} to one, {} own characters a row", setup.data.own_chars),
            ),
            ("cache, rows and pages together", machine::bytes(setup.cache_bytes)),
            ("the row tier's part of it, where it is on", machine::bytes(setup.row_bytes)),
            ("clients", setup.clients.to_string()),
            ("device limit", limit.clone()),
            ("operations", if options.writes { "every second one an update" } else { "reads" }.to_string()),
            ("measured window of a sample", frame::seconds(options.time)),
            ("samples", options.samples.to_string()),
            ("seed", setup.data.seed.to_string()),
        ];
        let results = Results {
            block_name: "clients".to_string(),
            x_name: "keys".to_string(),
            log_scale: true,
            ..frame::blank(self, args, &settings, &plan)
        };
        progress.note(&format!("device limit: {limit}"));
        frame::conduct(results, &options.output, interrupt, progress, summaries, |run| measure(&options, run))
    }
}

/// A series that is being swept.
struct Line {
    target: String,
    variant: Variant,
    label: String,
    swept: Box<dyn Swept>,
    /// Throughput with the fewest keys.
    in_memory: Option<f64>,
    collapses: u32,
    /// How often it was asked so far.
    turns: u64,
}

fn measure(options: &Options, run: &mut Run<'_>) -> Result<()> {
    let mut lines: Vec<Line> = Vec::new();
    let mut embedded = 0;
    for (number, (spec, variant)) in options.series().into_iter().enumerate() {
        run.interrupt.check()?;
        let folder = run.scratch.folder(&number.to_string())?;
        let opened = open(spec, variant, options, &folder, run)?;
        let swept = match opened {
            Opened::Ready(swept) => swept,
            Opened::LeftOut(why) => {
                run.progress.note(&format!("{} {variant} is left out: {why}", spec.name()));
                run.results.settings.push((format!("left out: {} {variant}", spec.name()), why));
                continue;
            }
        };
        let target = spec.name();
        let facts = swept.facts().into_iter().map(|(name, value)| (format!("{variant}: {name}"), value));
        match run.results.targets.iter_mut().find(|known| known.name == target) {
            Some(known) => known.facts.extend(facts),
            None => run.results.targets.push(TargetInfo {
                name: target.clone(),
                baseline: None,
                facts: facts.collect(),
            }),
        }
        if spec.is_embedded() {
            embedded += 1;
        }
        let label = variant.to_string();
        lines.push(Line { target, variant, label, swept, in_memory: None, collapses: 0, turns: 0 });
    }
    if lines.is_empty() {
        return Err(Error::Usage("every series was left out".to_string()));
    }
    if embedded > 1 {
        run.progress.note(
            "several series share this process: what memory each takes is told by a run with one of them (--pages, --row-tier)",
        );
    }
    let scattered = options.setup.data.scattered();
    let mut sweep = Sweep { options, lines, scattered, embedded_is_alone: embedded == 1 };
    runner::run(&mut sweep, run)?;
    run.progress.stage("stopping", 0);
    sweep.lines.iter_mut().try_for_each(|line| line.swept.stop())
}

fn open(
    spec: &TargetSpec,
    variant: Variant,
    options: &Options,
    folder: &std::path::Path,
    run: &mut Run<'_>,
) -> Result<Opened> {
    match spec {
        TargetSpec::Embedded(_) => embedded::open(variant, &options.setup, folder, run),
        _ => server::open(spec, variant, &options.setup, folder, run),
    }
}

/// A line is a series, a step a number of keys. There is one round: each series takes all its samples of a
/// number of keys in one turn, while the keys are in its cache.
struct Sweep<'a> {
    options: &'a Options,
    lines: Vec<Line>,
    /// The first so many are the keys of a step.
    scattered: Vec<u32>,
    /// True if no other series shares the process with the embedded one.
    embedded_is_alone: bool,
}

impl Grid for Sweep<'_> {
    type Line = usize;
    type Step = u32;

    fn schedule(&self) -> Schedule {
        let Options { time, .. } = *self.options;
        Schedule { seed: self.options.setup.data.seed, rounds: 1, warmup: time / 5, time }
    }

    fn stage(&self) -> String {
        format!("sweeping up to {} sizes", self.steps().len())
    }

    /// No cell is known in advance: the sweep finds out where a series collapses.
    fn cells(&self) -> Vec<Cell> {
        Vec::new()
    }

    fn steps(&self) -> Vec<u32> {
        self.options.steps()
    }

    fn lines(&self, _keys: u32) -> Vec<usize> {
        (0..self.lines.len()).collect()
    }

    fn stream(&self, _round: u32, keys: u32) -> u64 {
        keys.into()
    }

    fn detail(&self, &line: &usize, keys: u32) -> String {
        format!("{keys} keys, {} {}", self.lines[line].target, self.lines[line].label)
    }

    fn is_finished(&self, &line: &usize) -> bool {
        self.lines[line].collapses >= COLLAPSES
    }

    fn measure(&mut self, turn: &Turn<usize, u32>, run: &mut Run<'_>) -> Result<Outcome> {
        let options = self.options;
        let (keys, clients) = (&self.scattered[..turn.step as usize], options.setup.clients.to_string());
        let line = &mut self.lines[turn.line];
        let parameters = vec![
            ("keys", turn.step.to_string()),
            ("clients", clients.clone()),
            ("writes", options.writes.to_string()),
        ];
        let mut cell = Cell::new(&line.target, &line.label, &clients, turn.step, parameters);
        // Twice, because some policies keep a page only at its second use.
        line.swept.touch(keys)?;
        line.swept.touch(keys)?;
        if line.variant.follows_benefit() {
            settle(line, keys, options, run)?;
        }
        for round in 0..options.samples {
            run.interrupt.check()?;
            let mut sample =
                line.sample(keys, options.writes, true, &Window { round, ..turn.window }, run)?;
            if line.target == TargetSpec::EMBEDDED.name() && !self.embedded_is_alone {
                sample.extra.retain(|(name, _)| name != MEMORY);
            }
            cell.samples.push(sample);
        }
        if options.writes {
            line.check(keys)?;
        }
        line.judge(&cell);
        Ok(Outcome::Measured(vec![cell]))
    }
}

impl Line {
    fn sample(
        &mut self,
        keys: &[u32],
        writes: bool,
        limited: bool,
        window: &Window,
        run: &Run<'_>,
    ) -> Result<Sample> {
        self.turns += 1;
        self.swept.sample(Asked { keys, writes, limited, turn: self.turns }, window, run)
    }

    /// Notes whether the series has collapsed at the size of `cell`.
    fn judge(&mut self, cell: &Cell) {
        let median = cell.estimate().map_or(0.0, |estimate| estimate.median);
        let in_memory = *self.in_memory.get_or_insert(median);
        let is_held = cell.median_extra(READS).is_some_and(|reads| reads <= READS_MAX);
        let has_collapsed = median < in_memory * COLLAPSED && !is_held;
        self.collapses = if has_collapsed { self.collapses + 1 } else { 0 };
    }

    /// Checks that each update is in its row exactly once. So far all updates were among `keys`.
    fn check(&mut self, keys: &[u32]) -> Result<()> {
        let (found, made) = (self.swept.touch(keys)?, self.swept.updates());
        if found == made {
            return Ok(());
        }
        let why = format!("{}: {made} updates were made, the rows have {found}", self.label);
        Err(Error::WrongAnswer { target: self.target.clone(), why })
    }
}

/// Runs the samples' queries, with the device unlimited, until the parts of the cache have their final sizes.
fn settle(line: &mut Line, keys: &[u32], options: &Options, run: &Run<'_>) -> Result<()> {
    let deadline = Instant::now() + options.settle;
    let window = Window { warmup: Duration::ZERO, measure: LOOK, round: 0 };
    let (mut fewest, mut looks) = (f64::INFINITY, 0);
    while looks < SETTLED_LOOKS && Instant::now() < deadline {
        run.interrupt.check()?;
        let sample = line.sample(keys, options.writes, false, &window, run)?;
        let reads = sample.extra.iter().find(|(name, _)| name == READS).map_or(0.0, |(_, reads)| *reads);
        if reads <= SETTLED_READS {
            break;
        }
        looks = if reads < fewest * SETTLING { 0 } else { looks + 1 };
        fewest = fewest.min(reads);
    }
    Ok(())
}

/// The published table: keys held at a quarter of the throughput in memory, and at nine tenths.
fn summaries(results: &Results) -> Vec<Summary> {
    let mut rows = Vec::new();
    for (target, series) in crate::report::view::lines(results) {
        let cells: Vec<(&Cell, f64)> = results
            .cells
            .iter()
            .filter(|cell| cell.target == target && cell.series == series)
            .filter_map(|cell| Some((cell, cell.estimate()?.median)))
            .collect();
        let Some(&(_, in_memory)) = cells.first() else { continue };
        let mut row = vec![target, series, grouped(in_memory)];
        let last = cells.last().map(|(cell, _)| cell.x);
        // The last size that meets the condition counts, so that a short disturbance before it does no harm.
        let held = |holds: &dyn Fn(&Cell, f64) -> bool| {
            let cell = cells.iter().rev().find(|(cell, median)| holds(cell, *median)).map(|(cell, _)| *cell);
            let more = if cell.map(|cell| cell.x) == last { ">= " } else { "" };
            let text = cell.map_or(MISSING.to_string(), |cell| format!("{more}{}", grouped(cell.x.into())));
            (cell, text)
        };
        for share in SHARES {
            row.push(held(&|_, median| median >= in_memory * share).1);
        }
        let (cell, text) = held(&|cell, _| cell.median_extra(READS).is_some_and(|reads| reads <= READS_MAX));
        row.push(text);
        let memory = cell.and_then(|cell| cell.median_extra(MEMORY));
        row.push(memory.map_or(MISSING.to_string(), short_number));
        rows.push(row);
    }
    let columns = [
        "target",
        "series",
        "in memory, queries/s",
        "keys held at >= 25 %",
        "keys held at >= 90 %",
        "keys at <= 0.05 device reads",
        "resident MiB there",
    ];
    vec![Summary {
        title: "keys held".to_string(),
        note: "the published study: 16k 9,216, 4k 27,518, compressed 11,516 keys at >= 25 % (Percona, 2014, 128 MB)"
            .to_string(),
        columns: columns.iter().map(|column| column.to_string()).collect(),
        names: 2,
        rows,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_held_up_to_the_last_size_that_is_fast_enough() {
        let plan = Plan { threads_max: 1, memory_bytes: 0, disk_bytes: 0, scratch: std::env::temp_dir() };
        let mut results = frame::blank(&WorkingSet, &[], &[], &plan);
        let speeds = [(1_000, 100.0), (2_000, 50.0), (4_000, 95.0), (8_000, 26.0), (16_000, 20.0)];
        for (series, speeds) in [("16k", &speeds[..]), ("4k", &speeds[..3])] {
            for &(x, value) in speeds {
                results.cells.push(Cell {
                    target: "embedded".to_string(),
                    series: series.to_string(),
                    block: "4".to_string(),
                    x,
                    parameters: Vec::new(),
                    samples: vec![Sample {
                        value,
                        extra: vec![
                            (READS.to_string(), f64::from(x) / 100_000.0),
                            (MEMORY.to_string(), 130.0),
                        ],
                        ..Sample::default()
                    }],
                });
            }
        }
        let rows = &summaries(&results)[0].rows;
        assert_eq!(rows[0], ["embedded", "16k", "100", "8,000", "4,000", "4,000", "130"]);
        assert_eq!(rows[1], ["embedded", "4k", "100", ">= 4,000", ">= 4,000", ">= 4,000", "130"]);
    }
}
