//! The options of `lab run segments`, which `lab doctor` takes too.

use crate::arguments::{self, bytes, count, distinct, duration, number, numbers, split};
use crate::doctor::Plan;
use crate::driver::DriverKind;
use crate::experiment::frame::{OUTPUT_OPTIONS, OutputOptions};
use crate::target::{HitPath, SEGMENTS_MAX, Segments, Setting, TargetOptions, TargetSpec};
use std::time::Duration;

/// Every target has to take this many connections; a run asks for no more.
const THREADS_MAX: u32 = 10_000;
const POINTS_MAX: u32 = 10_000;
/// Memory for each row in a cache that holds the whole table and its index, rounded up generously.
const CACHE_BYTES_PER_ROW: u64 = 400;
const CACHE_BYTES_MIN: u64 = 64 << 20;
/// The study's key buffer, which holds the index alone.
const KEY_BUFFER_BYTES: u64 = 512 << 20;
/// How long the quick form measures a target, all cells together.
const QUICK_BUDGET: Duration = Duration::from_secs(45);

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub targets: Vec<TargetSpec>,
    pub threads: Vec<u32>,
    pub points: Vec<u32>,
    pub segments: Vec<Segments>,
    pub hit_paths: Vec<HitPath>,
    pub rows: u32,
    /// The warm-up before each sample.
    pub warmup: Duration,
    /// The measured window of each sample.
    pub time: Duration,
    pub samples: u32,
    pub driver: DriverKind,
    pub seed: u64,
    /// `None`: a cache that holds everything, and the study's key buffer for MyISAM.
    pub cache_bytes: Option<u64>,
    pub output: OutputOptions,
    pub mariadb_options: Vec<String>,
}

/// Options as given, before defaults are filled in.
#[derive(Default)]
struct Given {
    targets: Vec<TargetSpec>,
    threads: Option<Vec<u32>>,
    points: Option<Vec<u32>>,
    segments: Option<Vec<Segments>>,
    hit_paths: Option<Vec<HitPath>>,
    rows: Option<u32>,
    warmup: Option<Duration>,
    time: Option<Duration>,
    samples: Option<u32>,
    driver: Option<DriverKind>,
    seed: Option<u64>,
    cache_bytes: Option<u64>,
    paper: bool,
    output: OutputOptions,
    mariadb_options: Vec<String>,
}

const NAMES: [&str; 17] = [
    "--target",
    "--threads",
    "--points",
    "--segments",
    "--hit-path",
    "--rows",
    "--warmup",
    "--time",
    "--samples",
    "--driver",
    "--seed",
    "--cache-size",
    "--format",
    "--out",
    "--scratch",
    "--mariadb-option",
    "--help",
];

impl Options {
    /// Reads `--name value` and `--name=value`. Errors are sentences for people.
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut given = Given::default();
        arguments::read(args, &NAMES, &["--paper"], |name, value| given.set(name, value))?;
        given.fill()
    }

    /// All combinations of segments and hit path, in the order given.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let pairs = self
            .hit_paths
            .iter()
            .flat_map(|&hit_path| self.segments.iter().map(move |&segments| Setting { segments, hit_path }));
        pairs.collect()
    }

    /// A cache that holds the table and its index.
    pub(crate) fn whole_cache_bytes(&self) -> u64 {
        self.cache_bytes.unwrap_or_else(|| {
            (u64::from(self.rows) * CACHE_BYTES_PER_ROW).max(CACHE_BYTES_MIN).next_multiple_of(1 << 20)
        })
    }

    /// A key buffer for an engine that caches indexes only.
    pub(crate) fn key_buffer_bytes(&self) -> u64 {
        self.cache_bytes.unwrap_or(KEY_BUFFER_BYTES)
    }

    pub(crate) fn threads_max(&self) -> u32 {
        self.threads.iter().copied().max().unwrap_or(1)
    }

    /// The options that a target of this run is started with.
    pub(crate) fn target_options(&self) -> TargetOptions {
        TargetOptions {
            cache_bytes: self.whole_cache_bytes(),
            key_buffer_bytes: self.key_buffer_bytes(),
            clients_max: self.threads_max(),
            driver: self.driver,
            mariadb_options: self.mariadb_options.clone(),
        }
    }

    pub(crate) fn doctor_plan(&self) -> Plan {
        let targets = self.targets.len() as u64;
        // Each target has its own copy of the data in files (in the page cache), and a cache.
        let data = u64::from(self.rows) * 300;
        Plan {
            threads_max: self.threads_max(),
            memory_bytes: targets * (self.whole_cache_bytes() + data) + (256 << 20),
            disk_bytes: targets * data * 2 + (256 << 20),
            scratch: self.output.scratch.clone(),
        }
    }
}

impl Given {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--target" => arguments::targets(value, &mut self.targets)?,
            "--threads" => self.threads = Some(numbers(value, 1, THREADS_MAX)?),
            "--points" => self.points = Some(numbers(value, 1, POINTS_MAX)?),
            "--segments" => self.segments = Some(distinct(split(value)?.into_iter().map(segments))?),
            "--hit-path" => self.hit_paths = Some(distinct(split(value)?.into_iter().map(hit_path))?),
            "--rows" => {
                let rows = count(value)?;
                if !(1..=1 << 31).contains(&rows) {
                    return Err("from 1 to 2147483648".to_string());
                }
                self.rows = Some(rows as u32);
            }
            "--warmup" => self.warmup = Some(duration(value)?),
            "--time" => {
                let time = duration(value)?;
                if time.is_zero() {
                    return Err("a measured window has to last".to_string());
                }
                self.time = Some(time);
            }
            "--samples" => self.samples = Some(number(value, 1, 1_000)?),
            "--driver" => {
                self.driver = Some(match value {
                    "builtin" => DriverKind::Builtin,
                    "sysbench" => DriverKind::Sysbench,
                    _ => return Err("drivers are builtin and sysbench".to_string()),
                });
            }
            "--seed" => self.seed = Some(value.parse().map_err(|_| "not a number".to_string())?),
            "--cache-size" => self.cache_bytes = Some(bytes(value)?),
            "--paper" => self.paper = true,
            "--mariadb-option" => self.mariadb_options.push(value.to_string()),
            other => return self.output.set(other, value),
        }
        Ok(())
    }

    fn fill(self) -> Result<Options, String> {
        let targets = if self.targets.is_empty() { vec![TargetSpec::EMBEDDED] } else { self.targets };
        let driver = self.driver.unwrap_or(DriverKind::Builtin);
        if driver == DriverKind::Sysbench && targets.iter().all(TargetSpec::is_embedded) {
            return Err(
                "sysbench cannot reach the embedded engine; add --target latchwork or another server"
                    .to_string(),
            );
        }
        let published = self.paper;
        let or = |quick: &[u32], paper: &[u32]| if published { paper.to_vec() } else { quick.to_vec() };
        let threads = self.threads.unwrap_or_else(|| or(&[1, 8, 64], &[1, 4, 8, 16, 32, 64, 128]));
        let points = self.points.unwrap_or_else(|| or(&[10, 50, 100], &[10, 50, 100]));
        let count = Segments::Count;
        let segments = self.segments.unwrap_or_else(|| {
            let mut segments = vec![count(0), count(32), count(64)];
            segments.extend((!published).then_some(Segments::Auto));
            segments
        });
        let hit_paths = self.hit_paths.unwrap_or_else(|| vec![HitPath::Locked, HitPath::Optimistic]);
        let samples = self.samples.unwrap_or(3);
        // The study warmed up for 8 minutes and measured for 20, once; here they are split over the samples.
        let paper_share = |minutes: u64| Duration::from_secs(minutes * 60).div_f64(f64::from(samples));
        let cells = (threads.len() * points.len() * segments.len() * hit_paths.len()) as u32 * samples;
        let time =
            self.time.unwrap_or_else(|| if published { paper_share(20) } else { quick_time(cells, driver) });
        let warmup = self.warmup.unwrap_or_else(|| if published { paper_share(8) } else { time / 5 });
        Ok(Options {
            targets,
            threads,
            points,
            segments,
            hit_paths,
            rows: self.rows.unwrap_or(if published { 20_000_000 } else { 500_000 }),
            warmup,
            time,
            samples,
            driver,
            seed: self.seed.unwrap_or(303),
            cache_bytes: self.cache_bytes,
            output: self.output,
            mariadb_options: self.mariadb_options,
        })
    }
}

/// A window that lets `cells` samples fit into the budget, warm-up included.
fn quick_time(cells: u32, driver: DriverKind) -> Duration {
    let share = QUICK_BUDGET.as_secs_f64() / f64::from(cells.max(1)) / 1.2;
    match driver {
        DriverKind::Builtin => Duration::from_secs_f64((share * 100.0).round().clamp(10.0, 300.0) / 100.0),
        // Sysbench counts in whole seconds.
        DriverKind::Sysbench => Duration::from_secs_f64(share.round().clamp(1.0, 3.0)),
    }
}

fn segments(value: &str) -> Result<Segments, String> {
    match value {
        "auto" => Ok(Segments::Auto),
        "off" => Ok(Segments::Count(0)),
        _ => number(value, 0, SEGMENTS_MAX)
            .map(Segments::Count)
            .map_err(|why| format!("{why}, nor off, nor auto")),
    }
}

fn hit_path(value: &str) -> Result<HitPath, String> {
    [HitPath::Locked, HitPath::Optimistic]
        .into_iter()
        .find(|path| path.name() == value)
        .ok_or_else(|| format!("`{value}` is not a hit path: locked, optimistic"))
}

pub(crate) fn help() -> String {
    format!(
        "\
What to measure
  --target T[,T]        {}
                        (default: embedded; repeatable)
  --segments N[,N]      key_cache_segments: 0 or off (one mutex, the baseline), 1 to 64, auto
                        (default: 0,32,64,auto)
  --hit-path P[,P]      key_cache_hit_path: locked (mutex taken, page pinned, as MyISAM does),
                        optimistic (nothing shared is written) (default: both)
  --threads N[,N]       clients at once, the columns of the tables (default: 1,8,64)
  --points N[,N]        keys in the IN list, the blocks of the tables (default: 10,50,100)
  --rows N              rows of sbtest1: 500k, 2M (default: 500k)
  --cache-size BYTES    cache of every target: 512M, 8G (default: holds all; MyISAM's key buffer 512M)

How to measure
  --driver D            builtin or sysbench; the embedded target is always driven in process
  --warmup S, --time S  before a sample, and its measured window: 2, 0.5, 500ms, 8min
                        (default: so that a target takes about a minute)
  --samples N           samples a cell, each in a round of its own (default: 3)
  --seed N              of rows, queries and the order of turns (default: 303, as in the study)
  --paper               the published sizes and durations: 20 million rows, 1 to 128 threads,
                        8 minutes of warm-up and 20 measured a cell (split over the samples)
  --mariadb-option=--X  one more option for the MariaDB servers (repeatable)

Where it goes
{OUTPUT_OPTIONS}
Cells take turns: every round measures each of them once, in an order drawn anew, so that a disturbance
meets all of them alike. Gains compare samples of the same round. Ctrl-C keeps the cells measured so far.

Examples
  latchwork lab run segments
  latchwork lab run segments --target latchwork,mariadb:myisam,null --rows 2M --threads 8,64,128
  latchwork lab run segments --target mariadb:myisam --driver sysbench --segments 0,32,64
  latchwork lab run segments --hit-path optimistic --segments 0,auto --threads 1,2 --samples 9
",
        TargetSpec::SYNTAX.replace(", mysql", ",\n                        mysql")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::frame;
    use crate::report::Format;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn the_quick_form_fits_into_two_minutes() {
        let options = parse("").unwrap();
        assert_eq!(options.targets, [TargetSpec::EMBEDDED]);
        assert_eq!(options.settings().len(), 8);
        let cells = options.threads.len()
            * options.points.len()
            * options.settings().len()
            * options.samples as usize;
        let total = (options.time + options.warmup) * cells as u32;
        assert!(total <= Duration::from_secs(70), "{total:?}");
        assert!(options.samples >= 3);
        assert_eq!(options.seed, 303);
    }

    #[test]
    fn the_paper_form_has_the_published_sizes() {
        let options = parse("--paper --target mariadb:myisam").unwrap();
        assert_eq!(options.rows, 20_000_000);
        assert_eq!(options.threads, [1, 4, 8, 16, 32, 64, 128]);
        assert_eq!(options.points, [10, 50, 100]);
        assert_eq!(options.segments, [0, 32, 64].map(Segments::Count));
        assert_eq!(options.time * options.samples, Duration::from_secs(20 * 60));
        assert_eq!(options.warmup * options.samples, Duration::from_secs(8 * 60));
        assert_eq!(options.key_buffer_bytes(), 512 << 20);
        assert_eq!(parse("--paper --samples 1").unwrap().time, Duration::from_secs(1_200));
    }

    #[test]
    fn every_option_is_read_in_both_forms() {
        let options = parse(
            "--target latchwork,null -T mariadb:aria --threads 128,1 --points=5 --segments 0,auto --hit-path optimistic \
             --rows 2M --warmup 500ms --time 2 --samples 5 --driver sysbench --seed 7 --cache-size 1G --format json \
             --out /tmp/x --scratch /data --mariadb-option=--aria-x=1",
        )
        .unwrap();
        assert_eq!(options.targets.len(), 3);
        assert_eq!(options.threads, [1, 128]);
        assert_eq!(options.segments, [Segments::Count(0), Segments::Auto]);
        assert_eq!(options.hit_paths, [HitPath::Optimistic]);
        assert_eq!((options.rows, options.samples, options.seed), (2_000_000, 5, 7));
        assert_eq!((options.warmup, options.time), (Duration::from_millis(500), Duration::from_secs(2)));
        assert_eq!(options.cache_bytes, Some(1 << 30));
        assert_eq!(options.output.format, Format::Json);
        assert_eq!(options.mariadb_options, ["--aria-x=1"]);
    }

    #[test]
    fn wrong_values_are_told_with_what_would_be_right() {
        for (line, told) in [
            ("--threads 0", "from 1 to 10000"),
            ("--threads 1,,2", "empty entry"),
            ("--threads 4,4", "given twice"),
            ("--threads", "needs a value"),
            ("--segments 65", "from 0 to 64"),
            ("--segments some", "nor auto"),
            ("--hit-path fast", "locked, optimistic"),
            ("--rows many", "such as 500k"),
            ("--rows 0", "from 1"),
            ("--rows 90000000000G", "such as 500k"),
            ("--time 0", "has to last"),
            ("--time -1", "such as 2, 0.5"),
            ("--time NaN", "such as 2, 0.5"),
            ("--driver jmeter", "builtin and sysbench"),
            ("--driver sysbench", "cannot reach the embedded engine"),
            ("--format xml", "table and json"),
            ("--cache-size 0", "has to have a size"),
            ("--target embedded,embedded", "given twice"),
            ("--target mysql://u:secret@h", "no database"),
            ("--target embedded:base", "is for `lab run smp`"),
            ("--paper=yes", "takes no value"),
            ("extra", "not an option"),
            ("--sample 3", "did you mean `--samples`?"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(told), "{line}: {message}");
        }
    }

    #[test]
    fn passwords_do_not_reach_the_result() {
        let args = ["--target", "mysql://u:secret@h/d"].map(str::to_string);
        let plan = Options::parse(&args).unwrap().doctor_plan();
        let command = frame::blank(&super::super::Segments, &args, &[], &plan).command.concat();
        assert!(command.contains("mysql://u:***@h/d") && !command.contains("secret"), "{command}");
        assert!(!parse("--target mysql://u:secret@h").unwrap_err().contains("secret"));
        assert!(!parse("--target=mysql://u:secret@h").unwrap_err().contains("secret"));
    }
}
