//! The options of `lab run smp`.

use crate::arguments::{self, bytes, count, distinct, duration, number, numbers, split};
use crate::driver::DriverKind;
use crate::experiment::frame::{OUTPUT_OPTIONS, OutputOptions};
use crate::target::{Engine, Preset, TargetSpec, cores};
use crate::workload::oltp::Distribution;
use std::path::PathBuf;
use std::time::Duration;

const NAMES: [&str; 23] = [
    "--workload",
    "--target",
    "--sessions",
    "--cores",
    "--rows",
    "--distribution",
    "--driver",
    "--rows-per-session",
    "--size",
    "--form",
    "--dump",
    "--connections",
    "--memory",
    "--warmup",
    "--time",
    "--samples",
    "--seed",
    "--mariadb-option",
    "--latchwork-option",
    "--format",
    "--out",
    "--scratch",
    "--help",
];

/// How long the quick form measures transactions, all cells together, without loading.
const QUICK_BUDGET: Duration = Duration::from_secs(150);
const QUICK_MAX: Duration = Duration::from_secs(5);
/// The study's time a cell.
const PAPER_TIME: Duration = Duration::from_secs(600);
const PAPER_WARMUP: Duration = Duration::from_secs(60);
const SESSIONS_MAX: u32 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    ReadWrite,
    ReadOnly,
    Points,
    Joins,
    Inserts,
    Reload,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] =
        [Kind::ReadWrite, Kind::ReadOnly, Kind::Points, Kind::Joins, Kind::Inserts, Kind::Reload];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::ReadWrite => "readwrite",
            Kind::ReadOnly => "readonly",
            Kind::Points => "points",
            Kind::Joins => "joins",
            Kind::Inserts => "inserts",
            Kind::Reload => "reload",
        }
    }

    /// True for transactions or queries a second. The others are measured in seconds until they end.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self, Kind::ReadWrite | Kind::ReadOnly | Kind::Points)
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Kind::ReadWrite | Kind::ReadOnly => "transactions/s",
            Kind::Points => "queries/s",
            Kind::Joins | Kind::Inserts | Kind::Reload => "seconds",
        }
    }
}

/// How the rows of a dump are written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// A line a row, for LOAD DATA.
    Load,
    /// INSERT statements of many rows.
    Insert,
}

impl Form {
    pub(crate) const ALL: [Form; 2] = [Form::Load, Form::Insert];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Load => "load",
            Form::Insert => "insert",
        }
    }

    pub(crate) fn statement(self) -> &'static str {
        match self {
            Form::Load => "LOAD DATA",
            Form::Insert => "INSERT",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub kinds: Vec<Kind>,
    pub targets: Vec<TargetSpec>,
    /// The targets that `--target` named. The user wants these, so none of them may be left out.
    pub named: Vec<TargetSpec>,
    sessions: Option<Vec<u32>>,
    /// Processors of each server.
    pub cores: Vec<u32>,
    pub rows: u32,
    pub prepared: bool,
    pub distribution: Distribution,
    pub driver: DriverKind,
    rows_per_session: Option<u32>,
    size_bytes: Option<u64>,
    pub forms: Vec<Form>,
    pub dump: Option<PathBuf>,
    pub connections: u32,
    /// The bytes of each server's cache. `None`: a cache that holds the data, or with `--paper` the published
    /// one, if the machine has the memory.
    pub memory_bytes: Option<u64>,
    warmup: Option<Duration>,
    time: Option<Duration>,
    pub samples: u32,
    pub seed: u64,
    pub paper: bool,
    pub latches: bool,
    pub mariadb_options: Vec<String>,
    pub latchwork_options: Vec<String>,
    pub output: OutputOptions,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            kinds: vec![Kind::ReadWrite],
            targets: Vec::new(),
            named: Vec::new(),
            sessions: None,
            cores: vec![cores::available()],
            rows: 1_000_000,
            prepared: false,
            distribution: Distribution::Special,
            driver: DriverKind::Builtin,
            rows_per_session: None,
            size_bytes: None,
            forms: vec![Form::Load],
            dump: None,
            connections: 8,
            memory_bytes: None,
            warmup: None,
            time: None,
            samples: 3,
            seed: 303,
            paper: false,
            latches: false,
            mariadb_options: Vec::new(),
            latchwork_options: Vec::new(),
            output: OutputOptions::default(),
        };
        let flags = ["--presets", "--prepared", "--paper", "--latches"];
        arguments::read(args, &NAMES, &flags, |name, value| options.set(name, value))?;
        if options.targets.is_empty() {
            let preset = |preset| TargetSpec::Latchwork(Some(preset));
            options.targets = vec![
                TargetSpec::Latchwork(None),
                preset(Preset::Smpfix),
                preset(Preset::Base),
                TargetSpec::MariaDb(Engine::InnoDb),
            ];
        }
        let without_rows = |kind: &Kind| matches!(kind, Kind::ReadOnly | Kind::Points);
        if options.targets.contains(&TargetSpec::Null) && !options.kinds.iter().all(without_rows) {
            return Err("null keeps no rows: of these it has readonly and points".to_string());
        }
        if options.driver == DriverKind::Sysbench && options.targets.iter().all(TargetSpec::is_embedded) {
            return Err("sysbench cannot reach the embedded engine".to_string());
        }
        let embedded: Vec<&TargetSpec> = options.targets.iter().filter(|spec| spec.is_embedded()).collect();
        if let [one, another, ..] = embedded[..] {
            return Err(format!(
                "{} and {}: latches, heap and malloc are chosen for a whole process, which is this one; name one of them",
                one.name(),
                another.name()
            ));
        }
        let is_sql = |kind: &Kind| matches!(kind, Kind::Joins | Kind::Reload);
        if !embedded.is_empty() && options.kinds.iter().any(is_sql) {
            return Err("the engine in process has no joins and no reload: they are SQL".to_string());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--workload" if value == "all" => self.kinds = Kind::ALL.to_vec(),
            "--workload" => self.kinds = distinct(split(value)?.into_iter().map(kind))?,
            "--target" => {
                let before = self.targets.len();
                arguments::targets_with_presets(value, &mut self.targets)?;
                self.named.extend_from_slice(&self.targets[before..]);
            }
            "--presets" => {
                for preset in Preset::ALL {
                    let target = TargetSpec::Latchwork(Some(preset));
                    if !self.targets.contains(&target) {
                        self.targets.push(target);
                    }
                }
            }
            "--sessions" => self.sessions = Some(numbers(value, 1, SESSIONS_MAX)?),
            "--cores" => self.cores = numbers(value, 1, cores::available())?,
            "--rows" => self.rows = rows(value)?,
            "--prepared" => self.prepared = true,
            "--distribution" => {
                let known = [Distribution::Uniform, Distribution::Special];
                let found = known.into_iter().find(|distribution| distribution.name() == value);
                self.distribution = found.ok_or("distributions are uniform and special")?;
            }
            "--driver" => {
                let known = [DriverKind::Builtin, DriverKind::Sysbench];
                let found = known.into_iter().find(|driver| driver.name() == value);
                self.driver = found.ok_or("drivers are builtin and sysbench")?;
            }
            "--rows-per-session" => self.rows_per_session = Some(rows(value)?),
            "--size" => self.size_bytes = Some(bytes(value)?),
            "--form" => self.forms = distinct(split(value)?.into_iter().map(form))?,
            "--dump" => self.dump = Some(PathBuf::from(value)),
            "--connections" => self.connections = number(value, 1, 64)?,
            "--memory" => self.memory_bytes = Some(bytes(value)?),
            "--warmup" => self.warmup = Some(duration(value)?),
            "--time" => self.time = Some(duration(value)?.max(Duration::from_millis(1))),
            "--samples" => self.samples = number(value, 1, 1_000)?,
            "--seed" => self.seed = value.parse().map_err(|_| "not a number".to_string())?,
            "--paper" => self.paper = true,
            "--latches" => self.latches = true,
            "--mariadb-option" => self.mariadb_options.push(value.to_string()),
            "--latchwork-option" => self.latchwork_options.push(value.to_string()),
            other => return self.output.set(other, value),
        }
        Ok(())
    }

    pub(crate) fn sessions(&self, kind: Kind) -> Vec<u32> {
        let published: &[u32] = match (kind, self.paper) {
            // For a reload these are the connections that load at the same time.
            (Kind::Reload, _) => return vec![self.connections],
            (Kind::ReadWrite | Kind::ReadOnly | Kind::Points, true) => &[1, 2, 4, 8, 16, 32, 64],
            (Kind::ReadWrite | Kind::ReadOnly | Kind::Points, false) => &[1, 4, 16, 64],
            (Kind::Joins | Kind::Inserts, true) => &[1, 2, 4, 8, 16],
            (Kind::Joins | Kind::Inserts, false) => &[1, 4, 16],
        };
        self.sessions.clone().unwrap_or_else(|| published.to_vec())
    }

    /// True if the user chose the allocator of the Latchwork servers, whatever their presets say.
    pub(crate) fn servers_have_a_malloc_of_their_own(&self) -> bool {
        let mut names = self.latchwork_options.iter().map(|option| option.replace('_', "-"));
        names.any(|name| name.starts_with("--malloc-lib"))
    }

    /// Rows that each session inserts.
    pub(crate) fn rows_per_session(&self) -> u32 {
        self.rows_per_session.unwrap_or(if self.paper { 1_000_000 } else { 50_000 })
    }

    /// The bytes of the rows of a shard, as text. The study had over 100 GB for a cache of 8 GB; the ratio to
    /// the cache is the same here.
    pub(crate) fn size_bytes(&self, memory_bytes: u64) -> u64 {
        let published = || if self.paper { memory_bytes / 8 * 100 } else { 64 << 20 };
        self.size_bytes.unwrap_or_else(published)
    }

    /// The warm-up before a sample and the measured window, in a run with so many cells.
    pub(crate) fn window(&self, cells: usize) -> (Duration, Duration) {
        // The study measured a cell in one go. As in the other experiments, that time is split over the
        // samples.
        let samples = f64::from(self.samples);
        let time = self.time.unwrap_or_else(|| {
            if self.paper {
                return PAPER_TIME.div_f64(samples);
            }
            let share = QUICK_BUDGET.div_f64(samples * cells.max(1) as f64 * 1.2);
            // Sysbench counts in whole seconds.
            let least = if self.driver == DriverKind::Sysbench { 1.0 } else { 0.1 };
            Duration::from_secs_f64(((share.as_secs_f64() * 10.0).round() / 10.0).max(least)).min(QUICK_MAX)
        });
        let warmup = if self.paper { PAPER_WARMUP.div_f64(samples) } else { time / 5 };
        (self.warmup.unwrap_or(warmup), time)
    }
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        format!("`{name}` is not one of readwrite, readonly, points, joins, inserts, reload, all")
    })
}

fn form(name: &str) -> Result<Form, String> {
    let found = Form::ALL.into_iter().find(|form| form.name() == name);
    found.ok_or_else(|| format!("`{name}` is not one of load, insert"))
}

fn rows(value: &str) -> Result<u32, String> {
    match count(value)? {
        rows @ 1..=0x4000_0000 => Ok(rows as u32),
        _ => Err("from 1 to 1073741824".to_string()),
    }
}

pub(crate) fn help() -> String {
    let presets = Preset::ALL.map(Preset::name).join(", ");
    format!(
        "\
What to measure
  --workload W[,W]      readwrite, readonly: sysbench's OLTP transactions; points: its point selects; joins: the
                        published query; inserts: a table a session; reload: a dump of many tables; all, a
                        report each
                        (default: readwrite)
  --target T[,T]        latchwork:PRESET, embedded:PRESET, mariadb:innodb|myisam|aria|rocksdb, or a running
                        server: mysql://user[:password]@host[:port]/db, a socket's path. embedded has no joins
                        and no reload; the whole lab has the heap and the malloc of its preset. null answers
                        at once, without rows: the most that any server could do in readonly and points
                        (default: latchwork, latchwork:smpfix, latchwork:base, mariadb:innodb)
                        presets: {presets}
                        smpfix needs tcmalloc (Debian: libtcmalloc-minimal4), mariadb needs MariaDB's server
                        (Debian: mariadb-server). If one of these is not installed, a run that names such a
                        target here is refused. A target of the default or of --presets is left out, and the
                        report says so
  --presets             latchwork with each of the presets, besides what --target says
  --sessions N[,N]      sessions at once (default: 1,4,16,64; of joins and inserts 1,4,16)
  --cores N[,N]         processors of the server, which is started bound to the first N of the machine's; the
                        driver runs on all of them (default: all)
  --rows N              rows of sbtest1, and of each side of the join (default: 1M)
  --rows-per-session N  rows that each session of inserts writes, 1000 a statement (default: 50k)
  --prepared            readwrite, readonly, points: prepared statements (default: text, as published)
  --distribution D      readwrite, readonly, points: special, sysbench's own, or uniform (default: special)
  --size BYTES          reload: size of the dump before compression (default: 64M)
  --form F[,F]          reload: load (LOAD DATA LOCAL INFILE), insert (default: load)
  --connections N       reload: connections that load at the same time (default: 8)
  --dump FOLDER         reload: where the dump is kept; a dump that is there already is used
  --latches             also shows waits for latches, from information_schema.LATCHES (Latchwork; this costs a
                        little)

How to measure
  --driver D            readwrite, readonly, points: builtin or sysbench (default: builtin)
  --warmup S, --time S  readwrite, readonly, points: warm-up before a sample, and its measured window
                        (default: so that a workload takes less than five minutes)
  --samples N           samples a cell, each in a round of its own (default: 3)
  --memory BYTES        size of each server's cache (default: holds everything)
  --paper               the published sessions, times and settings: a cache of 8 GB (less where the machine
                        has less, or what --memory says), a log of 1300 MB, log buffer 200 MB, 4 + 4 I/O
                        threads; MariaDB with its binary log, and once more without
  --mariadb-option=--X, --latchwork-option=--X   one more option for those servers (repeatable)
  --seed N              of rows, queries and the order of turns (default: 303)

Where it goes
{OUTPUT_OPTIONS}
Servers take turns: every round measures each of them once at each number of sessions, in an order drawn anew. Rows
that were loaded, inserted or joined are counted; a wrong count ends the run.

Examples
  latchwork lab run smp
  latchwork lab run smp --workload readonly --presets --target mariadb:innodb --cores 1,2
  latchwork lab run smp --workload points --prepared --distribution uniform --target latchwork,mariadb:innodb,null
  latchwork lab run smp --workload joins --sessions 1,2,4,8,16 --target latchwork,mariadb:innodb,mariadb:aria
  latchwork lab run smp --workload reload --size 1G --form load,insert --dump /data/dump
  latchwork lab run smp --workload all --paper
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn the_quick_form_leaves_time_to_load() {
        let options = parse("").unwrap();
        let names: Vec<String> = options.targets.iter().map(TargetSpec::name).collect();
        assert_eq!(names, ["latchwork", "latchwork:smpfix", "latchwork:base", "mariadb:innodb"]);
        let cells = options.targets.len() * options.sessions(Kind::ReadWrite).len();
        let (warmup, time) = options.window(cells);
        let total = (warmup + time) * cells as u32 * options.samples;
        assert!(total > QUICK_BUDGET / 2 && total < QUICK_BUDGET * 11 / 10, "{total:?}");
    }

    #[test]
    fn the_paper_form_has_the_published_sessions_and_times() {
        let options = parse("--paper --workload all").unwrap();
        assert_eq!(options.kinds, Kind::ALL);
        assert_eq!(options.sessions(Kind::ReadOnly), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(options.sessions(Kind::Inserts), [1, 2, 4, 8, 16]);
        assert_eq!(options.sessions(Kind::Reload), [8]);
        let (_, time) = options.window(21);
        assert_eq!(time * options.samples, Duration::from_secs(600));
        assert_eq!(options.size_bytes(8 << 30), 100 << 30);
    }

    #[test]
    fn presets_come_besides_what_is_named() {
        let options = parse("--target latchwork:tc4,mariadb:rocksdb --presets").unwrap();
        assert_eq!(options.targets.len(), 6);
        let embedded = parse("--target embedded:base").unwrap().targets;
        assert_eq!(embedded, [TargetSpec::Embedded(Some(Preset::Base))]);
    }

    #[test]
    fn wrong_values_are_told_with_what_would_be_right() {
        for (line, told) in [
            ("--workload writes", "readwrite, readonly, points, joins, inserts, reload, all"),
            ("--target latchwork:fast", "base, tc4, smpfix"),
            ("--target null", "keeps no rows"),
            ("--target embedded --driver sysbench", "cannot reach the embedded engine"),
            ("--target embedded:base,embedded:tc4", "chosen for a whole process"),
            ("--target embedded --workload all", "they are SQL"),
            ("--form csv", "load, insert"),
            ("--cores 0", "from 1 to"),
            ("--distribution zipf", "uniform and special"),
            ("--preset", "did you mean `--presets`?"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(told), "{line}: {message}");
        }
    }
}
