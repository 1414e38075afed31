//! `trace`: hit ratios and rates of caches on traces. The page cache is one of them.

mod file;
mod generate;
mod options;
mod peers;
mod policy;

use super::Experiment;
use super::frame::{self, Run};
use super::runner::{self, Grid, Outcome, Schedule, Turn};
use crate::doctor::Plan;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::{self, Progress};
use crate::report::view::{MISSING, short_number};
use crate::results::{Cell, Results, Sample, Summary, TargetInfo};
use base::sync::thread;
use options::{Options, Source};
use policy::Policy;
use std::time::{Duration, Instant};

/// The page cache has no fewer frames than this.
const CAPACITY_MIN: usize = pagecache::FRAMES_MIN;
const TARGET: &str = "caches";

/// A trace in memory: keys below the footprint.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Requests {
    name: String,
    /// How many keys there are.
    footprint: u32,
    keys: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace;

impl Experiment for Trace {
    fn name(&self) -> &'static str {
        "trace"
    }

    fn title(&self) -> &'static str {
        "Hit ratios, honestly: cache policies on traces"
    }

    fn question(&self) -> &'static str {
        "How many requests of a trace does a cache answer that holds 0.1, 1 or 10 percent of the keys, and how fast \
         is it? Compares Latchwork's page cache as it is, on both hit paths, with exact LRU and with the caches that \
         Rust programs use. Each request asks for a key and inserts it if it was not there; the cache begins empty \
         and every request counts."
    }

    fn options(&self) -> String {
        options::help()
    }

    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
        let options = Options::parse(args).map_err(Error::Usage)?;
        let plan = Plan {
            threads_max: options.threads_max(),
            memory_bytes: 1 << 30,
            disk_bytes: 1 << 20,
            scratch: options.output.scratch.clone(),
        };
        let settings = [
            ("keys of generated traces", options.keys.to_string()),
            ("requests at most", options.requests.to_string()),
            ("samples", options.samples.to_string()),
            ("seed", options.seed.to_string()),
            ("page of the page cache", "1024 bytes, read from memory on a miss and verified".to_string()),
            ("entry of the other caches", "a number of 8 bytes".to_string()),
        ];
        let results = Results {
            unit: HIT_RATIO.to_string(),
            block_name: "trace".to_string(),
            x_name: "cache, 1/1000 of the keys".to_string(),
            ..frame::blank(self, args, &settings, &plan)
        };
        if cfg!(not(feature = "peers")) && options.policies.len() > 1 {
            progress.note(options::WITHOUT_PEERS);
        }
        frame::conduct(results, &options.output, interrupt, progress, summaries, |run| measure(&options, run))
    }
}

const HIT_RATIO: &str = "hit ratio, %";

/// The name of the extra that has the rate with so many threads.
fn rate_name(threads: u32) -> String {
    format!("million operations/s, threads: {threads}")
}

/// The name of the extra that has the hit ratio, if it is not the cell's own value.
fn ratio_name(threads: u32) -> String {
    format!("{HIT_RATIO}, threads: {threads}")
}

fn measure(options: &Options, run: &mut Run<'_>) -> Result<()> {
    run.results.targets.push(TargetInfo {
        name: TARGET.to_string(),
        baseline: None,
        facts: vec![("caches".to_string(), options.policies.join(", "))],
    });
    run.progress.stage("reading and making traces", 0);
    let mut traces = Vec::new();
    for source in &options.traces {
        run.interrupt.check()?;
        traces.push(match source {
            Source::Generated(name) => {
                generate::generate(name, options.keys, options.requests, options.seed).expect("a known name")
            }
            Source::File(path) => file::read(path, options.csv, options.requests)?,
        });
    }
    for trace in &traces {
        for size in options.sizes.iter().filter(|&&size| capacity(trace, size).is_none()) {
            run.progress.note(&format!(
                "{}: {} of {} keys are fewer than the {CAPACITY_MIN} that a cache has at least: left out",
                trace.name,
                percent(*size),
                trace.footprint
            ));
        }
    }
    let started = Instant::now();
    runner::run(&mut Replays { options, traces }, run)?;
    let took = progress::duration(started.elapsed());
    run.results.settings.push(("replaying took".to_string(), took));
    Ok(())
}

/// A line is a cache, a step a trace (by its number) with a size of the caches, in thousandths of the keys.
struct Replays<'a> {
    options: &'a Options,
    traces: Vec<Requests>,
}

impl Replays<'_> {
    fn cell(&self, policy: &str, (trace, size): (usize, u32)) -> Cell {
        let trace = &self.traces[trace];
        let parameters = vec![
            ("trace", trace.name.clone()),
            ("requests", trace.keys.len().to_string()),
            ("keys", trace.footprint.to_string()),
            ("cache_permille", size.to_string()),
        ];
        Cell::new(TARGET, policy, &trace.name, size, parameters)
    }
}

impl Grid for Replays<'_> {
    type Line = &'static str;
    type Step = (usize, u32);

    fn schedule(&self) -> Schedule {
        let Options { seed, samples, .. } = *self.options;
        // A sample is a whole trace, and begins with an empty cache.
        Schedule { seed, rounds: samples, warmup: Duration::ZERO, time: Duration::ZERO }
    }

    fn stage(&self) -> String {
        format!("replaying {} traces", self.traces.len())
    }

    fn cells(&self) -> Vec<Cell> {
        let steps = self.steps().into_iter();
        steps
            .flat_map(|step| self.lines(step).into_iter().map(move |policy| self.cell(policy, step)))
            .collect()
    }

    fn steps(&self) -> Vec<(usize, u32)> {
        let steps = self.traces.iter().enumerate().flat_map(|(number, trace)| {
            let sizes = self.options.sizes.iter().filter(|&&size| capacity(trace, size).is_some());
            sizes.map(move |&size| (number, size))
        });
        steps.collect()
    }

    fn lines(&self, _step: (usize, u32)) -> Vec<&'static str> {
        self.options.policies.clone()
    }

    fn stream(&self, round: u32, (_, size): (usize, u32)) -> u64 {
        u64::from(round) << 32 | u64::from(size)
    }

    fn detail(&self, policy: &&'static str, (trace, size): (usize, u32)) -> String {
        format!("{}, {}, {policy}", self.traces[trace].name, percent(size))
    }

    fn measure(&mut self, turn: &Turn<&'static str, (usize, u32)>, run: &mut Run<'_>) -> Result<Outcome> {
        let (trace, size) = (&self.traces[turn.step.0], turn.step.1);
        let capacity = capacity(trace, size).expect("sizes below the minimum are left out");
        let sample = sample(turn.line, trace, capacity, &self.options.threads, turn.round(), run.interrupt)?;
        Ok(Outcome::Measured(vec![self.cell(turn.line, turn.step).with(sample)]))
    }
}

/// The number of keys that a cache of `size` thousandths of the keys holds. `None` if it is below
/// [`CAPACITY_MIN`].
fn capacity(trace: &Requests, size: u32) -> Option<usize> {
    let capacity = (u64::from(trace.footprint) * u64::from(size) / 1_000) as usize;
    (capacity >= CAPACITY_MIN).then_some(capacity)
}

fn percent(size: u32) -> String {
    format!("{} %", f64::from(size) / 10.0)
}

/// Replays the trace with each number of threads, each time with an empty cache.
fn sample(
    policy: &str,
    trace: &Requests,
    capacity: usize,
    threads: &[u32],
    round: u32,
    interrupt: &Interrupt,
) -> Result<Sample> {
    let mut sample = Sample { round, ..Sample::default() };
    for (position, &threads) in threads.iter().enumerate() {
        interrupt.check()?;
        let cache = policy::make(policy, capacity, trace.footprint)?;
        let started = Instant::now();
        let hits = replay(cache.as_ref(), &trace.keys, threads);
        let seconds = started.elapsed().as_secs_f64();
        let ratio = hits as f64 * 100.0 / trace.keys.len() as f64;
        if position == 0 {
            sample.value = ratio;
            sample.seconds = seconds;
            sample.queries = trace.keys.len() as u64;
            sample.rows = hits;
        } else {
            sample.extra.push((ratio_name(threads), ratio));
        }
        sample.extra.push((rate_name(threads), trace.keys.len() as f64 / seconds / 1e6));
    }
    Ok(sample)
}

/// The hits of all threads. Each thread has every n-th request, so that together they nearly keep the trace's
/// order.
fn replay(cache: &dyn Policy, keys: &[u32], threads: u32) -> u64 {
    let share = |thread: u32| {
        let keys = keys.iter().skip(thread as usize).step_by(threads as usize);
        keys.filter(|&&key| cache.get(key)).count() as u64
    };
    if threads == 1 {
        return share(0);
    }
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || share(thread))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a replaying thread panicked")).sum()
    })
}

/// Hit ratios that differ by less than this, in percentage points, count as the same.
const POINTS_MIN: f64 = 0.05;
/// A rate counts as lower if it is less than this share of the other rate.
const RATE_SHARE: f64 = 0.95;

/// The difference to LRU, and every row in which our cache is not the best.
fn summaries(results: &Results) -> Vec<Summary> {
    let mut against_lru = Vec::new();
    let mut fewer_hits = Vec::new();
    let mut slower = Vec::new();
    let value = |cell: &Cell| cell.estimate().map(|estimate| estimate.median);
    let ours = results.cells.iter().filter(|cell| cell.series == policy::OPTIMISTIC);
    for our in ours {
        let others: Vec<&Cell> = results
            .cells
            .iter()
            .filter(|cell| cell.block == our.block && cell.x == our.x && cell.series != our.series)
            .collect();
        let trace_and_size = [our.block.clone(), percent(our.x)];
        let Some(our_ratio) = value(our) else { continue };
        if let Some(lru) = others.iter().find(|cell| cell.series == "LRU").and_then(|cell| value(cell)) {
            let mut row = trace_and_size.to_vec();
            row.extend([format!("{lru:.1}"), format!("{our_ratio:.1}"), format!("{:+.1}", our_ratio - lru)]);
            against_lru.push(row);
        }
        let best = |of: &dyn Fn(&Cell) -> Option<f64>| {
            let values = others.iter().filter_map(|cell| Some((of(cell)?, cell.series.as_str())));
            values.max_by(|left, right| left.0.total_cmp(&right.0))
        };
        if let Some((ratio, name)) = best(&value)
            && ratio - our_ratio >= POINTS_MIN
        {
            let mut row = trace_and_size.to_vec();
            row.extend([format!("{our_ratio:.1}"), format!("{ratio:.1}"), name.to_string()]);
            fewer_hits.push(row);
        }
        let rates = our.samples.first().into_iter().flat_map(|sample| &sample.extra);
        for name in rates.map(|(name, _)| name).filter(|name| name.starts_with("million")) {
            let (Some(rate), Some((other, who))) =
                (our.median_extra(name), best(&|cell| cell.median_extra(name)))
            else {
                continue;
            };
            if rate < other * RATE_SHARE {
                let threads = name.rsplit(' ').next().unwrap_or(MISSING);
                let mut row = trace_and_size.to_vec();
                row.extend([threads, &short_number(rate), &short_number(other), who].map(str::to_string));
                slower.push(row);
            }
        }
    }
    let table = |title: &str, columns: &[&str], names: usize, mut rows: Vec<Vec<String>>| {
        if rows.is_empty() {
            let mut nowhere = vec![MISSING.to_string(); columns.len()];
            nowhere[0] = "nowhere".to_string();
            rows.push(nowhere);
        }
        let columns = columns.iter().map(|column| column.to_string()).collect();
        Summary { title: title.to_string(), note: String::new(), columns, names, rows }
    };
    vec![
        table(
            "latchwork against LRU: hit ratio in percent, difference in points",
            &["trace", "cache", "LRU", "latchwork", "difference"],
            2,
            against_lru,
        ),
        table(
            "where latchwork loses: hit ratio in percent, and the best of the others",
            &["trace", "cache", "latchwork", "best other", "which"],
            2,
            fewer_hits,
        ),
        table(
            "where latchwork loses: million operations/s, and the fastest of the others",
            &["trace", "cache", "threads", "latchwork", "fastest other", "which"],
            3,
            slower,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_replay_every_request_once() {
        struct Counting(base::sync::Mutex<Vec<u32>>);
        impl Policy for Counting {
            fn get(&self, key: u32) -> bool {
                self.0.lock()[key as usize] += 1;
                key.is_multiple_of(2)
            }
        }
        for threads in [1, 2, 7] {
            let counting = Counting(base::sync::Mutex::new(vec![0; 100]));
            let keys: Vec<u32> = (0..100).collect();
            assert_eq!(replay(&counting, &keys, threads), 50);
            assert!(counting.0.lock().iter().all(|&count| count == 1));
        }
    }

    #[test]
    fn rows_that_are_lost_are_told_with_the_winner() {
        let options = Options::parse(&[]).unwrap();
        let trace = generate::generate("zipf-0.8", 20_000, 5_000, 1).unwrap();
        let plan = Plan { threads_max: 1, memory_bytes: 0, disk_bytes: 0, scratch: std::env::temp_dir() };
        let mut results = frame::blank(&Trace, &[], &[], &plan);
        let mut cell = |series: &str, ratio: f64, rate: f64| {
            results.cells.push(Cell {
                target: TARGET.to_string(),
                series: series.to_string(),
                block: trace.name.clone(),
                x: options.sizes[0],
                parameters: Vec::new(),
                samples: vec![Sample {
                    value: ratio,
                    extra: vec![(rate_name(2), rate)],
                    ..Sample::default()
                }],
            });
        };
        cell("LRU", 20.0, 9.0);
        cell("latchwork", 25.0, 3.0);
        cell("other", 25.5, 2.0);
        let [lru, hits, rates] = summaries(&results).try_into().unwrap();
        assert_eq!(lru.rows, [["zipf-0.8", "0.1 %", "20.0", "25.0", "+5.0"]]);
        assert_eq!(hits.rows, [["zipf-0.8", "0.1 %", "25.0", "25.5", "other"]]);
        assert_eq!(rates.rows, [["zipf-0.8", "0.1 %", "2", "3.00", "9.00", "LRU"]]);
    }
}
