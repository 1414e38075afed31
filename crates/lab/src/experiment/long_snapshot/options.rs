//! The options of `lab run long-snapshot`.

use super::updates::Keys;
use crate::arguments::{self, bytes, count, distinct, duration, number, split};
use crate::experiment::frame::{OUTPUT_OPTIONS, OutputOptions};
use crate::target::{Engine, TargetSpec};
use crate::workload::Sbtest;
use std::time::Duration;

const NAMES: [&str; 15] = [
    "--target",
    "--keys",
    "--rows",
    "--sessions",
    "--time",
    "--every",
    "--after",
    "--patience",
    "--cache-size",
    "--version-limit",
    "--seed",
    "--format",
    "--out",
    "--scratch",
    "--help",
];
const SECOND: Duration = Duration::from_secs(1);
/// Samples of the time in which the snapshot is held, unless `--every` says otherwise.
const SAMPLES: u32 = 60;
const PATIENCE_MIN: Duration = Duration::from_secs(60);
const ROWS_MAX: u32 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub targets: Vec<TargetSpec>,
    pub keys: Vec<Keys>,
    pub table: Sbtest,
    pub sessions: u32,
    /// How long the snapshot is held beside the updates.
    pub time: Duration,
    /// From one sample to the next: whole seconds.
    pub every: Duration,
    /// How long the updates go on when the snapshot has been closed.
    pub after: Duration,
    /// How long the last read of the snapshot may take.
    pub patience: Duration,
    pub cache_bytes: u64,
    /// Latchwork's memory for old versions.
    pub version_bytes: u64,
    pub output: OutputOptions,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            targets: Vec::new(),
            keys: vec![Keys::Uniform],
            table: Sbtest { rows: 500_000, seed: 303 },
            sessions: 8,
            time: Duration::from_secs(60),
            every: Duration::ZERO,
            after: Duration::ZERO,
            patience: Duration::ZERO,
            cache_bytes: 256 << 20,
            version_bytes: 32 << 20,
            output: OutputOptions::default(),
        };
        let (mut after, mut patience) = (None, None);
        arguments::read(args, &NAMES, &[], |name, value| {
            match name {
                "--after" => after = Some(duration(value)?),
                "--patience" => patience = Some(duration(value)?),
                _ => options.set(name, value)?,
            }
            Ok(())
        })?;
        if options.targets.is_empty() {
            options.targets = vec![TargetSpec::LATCHWORK];
        }
        let keeps_snapshots = |spec: &TargetSpec| {
            matches!(
                spec,
                TargetSpec::Latchwork(_)
                    | TargetSpec::MariaDb(Engine::InnoDb | Engine::RocksDb)
                    | TargetSpec::Remote { .. }
            )
        };
        if let Some(spec) = options.targets.iter().find(|spec| !keeps_snapshots(spec)) {
            return Err(format!(
                "{} has no sessions with snapshots: targets are latchwork, mariadb:innodb and servers that run already",
                spec.name()
            ));
        }
        if options.every.is_zero() {
            options.every = Duration::from_secs((options.time / SAMPLES).as_secs()).max(SECOND);
        }
        if options.time < options.every {
            return Err("--time is shorter than --every: there would be no sample".to_string());
        }
        options.after = after.unwrap_or(options.time / 6);
        options.patience = patience.unwrap_or((options.time / 3).max(PATIENCE_MIN));
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--target" => arguments::targets(value, &mut self.targets)?,
            "--keys" => self.keys = distinct(split(value)?.into_iter().map(keys))?,
            "--rows" => {
                self.table.rows = match count(value)? {
                    rows @ 100..=1_000_000_000 => rows as u32,
                    _ => return Err(format!("from 100 to {ROWS_MAX}")),
                }
            }
            "--sessions" => self.sessions = number(value, 1, 1_000)?,
            "--time" => self.time = duration(value)?,
            "--every" => self.every = whole_seconds(value)?,
            "--cache-size" => self.cache_bytes = bytes(value)?,
            "--version-limit" => self.version_bytes = bytes(value)?,
            "--seed" => self.table.seed = value.parse().map_err(|_| "not a number".to_string())?,
            other => return self.output.set(other, value),
        }
        Ok(())
    }

    /// Samples while the snapshot is held, and after it.
    pub(crate) fn samples(&self) -> (u32, u32) {
        let of = |time: Duration| (time.as_millis() / self.every.as_millis()) as u32;
        (of(self.time), of(self.after))
    }
}

fn keys(name: &str) -> Result<Keys, String> {
    let known = Keys::ALL.into_iter().find(|keys| keys.name() == name);
    known.ok_or_else(|| format!("`{name}` is not one of uniform, zipf"))
}

fn whole_seconds(value: &str) -> Result<Duration, String> {
    let every = duration(value)?;
    if every < SECOND || every.subsec_nanos() > 0 {
        return Err("whole seconds, one at least".to_string());
    }
    Ok(every)
}

pub(crate) fn help() -> String {
    format!(
        "\
What to measure
  --target T[,T]        latchwork, mariadb:innodb, or servers that run already (default: latchwork); they
                        are measured one after the other, each alone on the machine
  --keys K[,K]          which rows are updated: uniform, all alike; zipf, some far more often than others
                        (default: uniform); each is a series, on a server and a table of its own
  --rows N              rows of the table (default: 500k)
  --sessions N          sessions that update (default: 8)
  --time S              how long the snapshot is held (default: 60)
  --every S             from one sample to the next, in whole seconds (default: a sixtieth of the time)
  --after S             how long the updates go on when the snapshot is closed (default: a sixth of the time)
  --patience S          how long the last read of the snapshot, beside no updates, may take (default: a third of
                        the time, a minute at least)
  --seed N              of the data and the keys (default: 303)

The servers
  --cache-size BYTES    Latchwork's page cache and InnoDB's buffer pool (default: 256M)
  --version-limit BYTES Latchwork's memory for old versions; what is more goes to files (default: 32M)

Where it goes
{OUTPUT_OPTIONS}
Examples
  latchwork lab run long-snapshot
  latchwork lab run long-snapshot --target latchwork,mariadb:innodb --time 30min --after 5min
  latchwork lab run long-snapshot --keys uniform,zipf --rows 2M --time 10min
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
    fn samples_follow_the_time_unless_told_otherwise() {
        let long = parse("--time 30min --target latchwork --target mariadb:InnoDB").unwrap();
        assert_eq!((long.every, long.after), (Duration::from_secs(30), Duration::from_secs(300)));
        assert_eq!((long.samples(), long.targets.len()), ((60, 10), 2));
        assert_eq!((long.patience, parse("").unwrap().patience.as_secs()), (Duration::from_secs(600), 60));
        assert_eq!(parse("--time 4 --after 0").unwrap().samples(), (4, 0));
        assert_eq!(parse("--time 10 --every 3 --after 7").unwrap().samples(), (3, 2));
    }

    #[test]
    fn wrong_values_are_told_with_what_would_be_right() {
        for (line, told) in [
            ("--target embedded", "mariadb:innodb"),
            ("--target mariadb:myisam", "no sessions with snapshots"),
            ("--keys special", "uniform, zipf"),
            ("--every 500ms", "whole seconds"),
            ("--time 2 --every 5", "--time is shorter than --every"),
            ("--rows 5", "from 100"),
            ("--evry 5", "did you mean `--every`?"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(told), "{line}: {message}");
        }
    }
}
