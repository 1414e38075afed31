//! The options of `lab run working-set`.

use super::data::{Data, ROW_BYTES_MAX, ROW_BYTES_MIN};
use super::series::{Pages, RowTier, Setup, Variant};
use crate::arguments::{self, bytes, count, distinct, duration, number, split};
use crate::experiment::frame::{OUTPUT_OPTIONS, OutputOptions};
use crate::target::TargetSpec;
use std::time::Duration;

const NAMES: [&str; 21] = [
    "--target",
    "--pages",
    "--rows",
    "--row-bytes",
    "--compressible",
    "--cache-size",
    "--row-cache-size",
    "--clients",
    "--iops",
    "--from",
    "--to",
    "--step",
    "--time",
    "--samples",
    "--settle",
    "--seed",
    "--row-tier",
    "--format",
    "--out",
    "--scratch",
    "--help",
];

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub targets: Vec<TargetSpec>,
    pub pages: Vec<Pages>,
    pub row_tier: Vec<RowTier>,
    /// Pages of the data compress about this many to one.
    pub compressible: f64,
    pub setup: Setup,
    from: u32,
    to: u32,
    step_percent: u32,
    pub writes: bool,
    pub time: Duration,
    /// The longest time, at each size, that a cache gets to settle.
    pub settle: Duration,
    pub samples: u32,
    pub output: OutputOptions,
}

/// Options whose default depends on whether servers are among the targets. With servers the sweep is shorter,
/// because each of their series loads a server of its own.
#[derive(Default)]
struct Open {
    rows: Option<u32>,
    from: Option<u32>,
    to: Option<u32>,
    step_percent: Option<u32>,
    settle: Option<Duration>,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let data = Data { rows: 2_000_000, seed: 303, row_bytes: 200, own_chars: 1 };
        let mut options = Options {
            targets: Vec::new(),
            pages: Pages::ALL.to_vec(),
            row_tier: vec![RowTier::Off, RowTier::Fixed],
            compressible: 3.0,
            setup: Setup {
                data,
                cache_bytes: 128 << 20,
                row_bytes: 0,
                clients: 4,
                operations_per_second: Some(2_000),
            },
            from: 0,
            to: 0,
            step_percent: 0,
            writes: false,
            time: Duration::from_millis(700),
            settle: Duration::ZERO,
            samples: 1,
            output: OutputOptions::default(),
        };
        let flags = ["--fine", "--writes", "--unlimited"];
        let mut open = Open::default();
        arguments::read(args, &NAMES, &flags, |name, value| options.set(&mut open, name, value))?;
        if options.targets.is_empty() {
            options.targets = vec![TargetSpec::EMBEDDED];
        }
        let quick = options.targets.iter().any(|spec| !spec.is_embedded());
        options.setup.data.rows = open.rows.unwrap_or(if quick { 1_000_000 } else { 2_000_000 });
        options.from = open.from.unwrap_or(if quick { 4_000 } else { 2_000 });
        options.to = open.to.unwrap_or(if quick { 400_000 } else { 600_000 });
        options.step_percent = open.step_percent.unwrap_or(if quick { 50 } else { 20 });
        options.settle = open.settle.unwrap_or(Duration::from_secs(if quick { 3 } else { 20 }));
        let servers = [TargetSpec::Null];
        if let Some(spec) = options
            .targets
            .iter()
            .find(|spec| servers.contains(spec) || matches!(spec, TargetSpec::Remote { .. }))
        {
            return Err(format!(
                "{} has no cache that the lab can set up: targets are embedded, latchwork and mariadb:innodb",
                spec.name()
            ));
        }
        if options.setup.row_bytes == 0 {
            // This leaves room for the inner pages.
            options.setup.row_bytes = options.setup.cache_bytes / 16 * 15;
        }
        if options.setup.row_bytes >= options.setup.cache_bytes {
            return Err("--row-cache-size is a part of --cache-size".to_string());
        }
        let rows = options.setup.data.rows;
        options.to = options.to.min(rows / 2);
        if options.from > options.to {
            return Err(format!("--from {} is more than half of the rows or than --to", options.from));
        }
        Ok(options)
    }

    fn set(&mut self, open: &mut Open, name: &str, value: &str) -> Result<(), String> {
        let keys = |value: &str| match count(value)? {
            keys @ 1..=0x8000_0000 => Ok(keys as u32),
            _ => Err("from 1 to 2147483648".to_string()),
        };
        match name {
            "--target" => arguments::targets(value, &mut self.targets)?,
            "--pages" => self.pages = distinct(split(value)?.into_iter().map(pages))?,
            "--row-tier" => self.row_tier = distinct(split(value)?.into_iter().map(row_tier))?,
            "--rows" => open.rows = Some(keys(value)?),
            "--row-bytes" => self.setup.data.row_bytes = number(value, ROW_BYTES_MIN, ROW_BYTES_MAX)?,
            "--compressible" => self.compressible = ratio(value)?,
            "--cache-size" => self.setup.cache_bytes = bytes(value)?,
            "--row-cache-size" => self.setup.row_bytes = bytes(value)?,
            "--clients" => self.setup.clients = number(value, 1, 200)?,
            "--iops" => self.setup.operations_per_second = Some(number(value, 1, 10_000_000)?),
            "--unlimited" => self.setup.operations_per_second = None,
            "--from" => open.from = Some(keys(value)?),
            "--to" => open.to = Some(keys(value)?),
            "--fine" => open.step_percent = Some(5),
            "--step" => open.step_percent = Some(number(value, 1, 1_000)?),
            "--writes" => self.writes = true,
            "--time" => self.time = duration(value)?.max(Duration::from_millis(1)),
            "--settle" => open.settle = Some(duration(value)?),
            "--samples" => self.samples = number(value, 1, 1_000)?,
            "--seed" => self.setup.data.seed = value.parse().map_err(|_| "not a number".to_string())?,
            other => return self.output.set(other, value),
        }
        Ok(())
    }

    pub(crate) fn series(&self) -> Vec<(&TargetSpec, Variant)> {
        let mut series = Vec::new();
        for spec in &self.targets {
            for &pages in &self.pages {
                // Only Latchwork has a row tier: the other targets have no series for it.
                let ours = spec.is_embedded() || spec.is_latchwork();
                for &row_tier in self.row_tier.iter().filter(|row_tier| ours || **row_tier == RowTier::Off) {
                    series.push((spec, Variant { pages, row_tier }));
                }
            }
        }
        series
    }

    pub(crate) fn steps(&self) -> Vec<u32> {
        let factor = 1.0 + f64::from(self.step_percent) / 100.0;
        let mut steps = Vec::new();
        let mut next = f64::from(self.from);
        while next <= f64::from(self.to) {
            if steps.last() != Some(&(next as u32)) {
                steps.push(next as u32);
            }
            next *= factor;
        }
        steps
    }
}

fn pages(name: &str) -> Result<Pages, String> {
    Pages::ALL
        .into_iter()
        .find(|pages| pages.name() == name)
        .ok_or_else(|| format!("`{name}` is not one of 16k, 4k, compressed"))
}

fn row_tier(name: &str) -> Result<RowTier, String> {
    let known = RowTier::ALL.into_iter().find(|row_tier| row_tier.name() == name);
    known.ok_or_else(|| format!("`{name}` is not one of off, on, auto"))
}

fn ratio(value: &str) -> Result<f64, String> {
    let ratio = value.parse().ok().filter(|ratio| (1.0..=20.0).contains(ratio));
    ratio.ok_or_else(|| format!("`{value}` is not a number from 1 to 20"))
}

pub(crate) fn help() -> String {
    format!(
        "\
What to measure
  --target T[,T]        embedded, latchwork, mariadb:innodb (default: embedded)
  --pages P[,P]         16k, 4k, compressed (16k to 4k) (default: all)
  --row-tier R[,R]      Latchwork's row tier: off; on, with the part of the cache that --row-cache-size
                        says; auto, as much as is of use (default: off,on)
  --writes              every second operation updates its row; the updates are counted after each size
  --rows N              rows of the table (default: 2M, with servers 1M; the study had about 10M)
  --row-bytes N         bytes of a row, {ROW_BYTES_MIN} to {ROW_BYTES_MAX} (default: 200)
  --compressible N      pages of the data compress about N to one by LZ4 (default: 3); with 5 and
                        --rows 10M the table is larger than the cache even if all of it is compressed
  --cache-size BYTES    cache for pages and rows together (default: 128M)
  --row-cache-size B    part of the cache for rows, if the row tier is on (default: fifteen sixteenths)
  --clients N           clients at once (default: 4)

The sweep
  --from N, --to N      keys (default: 2k, 600k, with servers 4k, 400k; at most half of the rows); a series ends
                        early if its throughput falls below 5 % of that in memory
  --step N              percent more keys a step (default: 20, as published; with servers 50)
  --fine                5 percent a step
  --time S, --samples N measured window, and how many a size (default: 700ms, 1)
  --settle S            the longest time that a cache whose parts grow and shrink with their benefit (compressed,
                        auto) gets to settle before each size (default: 20, with servers 3)
  --seed N              of the data and the keys (default: 303)

The device
  --iops N              reads and writes a second while measuring: for servers the kernel's block
                        throttle through a control group (needs root), in process a throttled file
                        tree (default: 2000)
  --unlimited           the device without a limit; if the machine's disk answers from memory, no series
                        collapses then

Where it goes
{OUTPUT_OPTIONS}
Examples
  latchwork lab run working-set
  latchwork lab run working-set --target latchwork
  latchwork lab run working-set --target latchwork,mariadb:innodb --rows 10M --step 20 --settle 20
  latchwork lab run working-set --pages 16k,compressed --row-tier off --rows 10M --compressible 5
  latchwork lab run working-set --pages 16k --writes --fine
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
    fn the_sweep_grows_by_a_fifth_a_step() {
        let steps = parse("--from 1000 --to 2k").unwrap().steps();
        assert_eq!(steps, [1_000, 1_200, 1_440, 1_728]);
        assert!(parse("--from 1000 --to 2k --fine").unwrap().steps().len() > 10);
        // No more than half of the rows.
        assert_eq!(parse("--rows 8k").unwrap().steps().last(), Some(&3_456));
    }

    #[test]
    fn servers_are_swept_in_fewer_and_larger_steps_unless_told_otherwise() {
        let quick = parse("--target latchwork").unwrap();
        assert_eq!((quick.setup.data.rows, quick.settle), (1_000_000, Duration::from_secs(3)));
        let steps = quick.steps();
        assert!((steps[0], steps.len()) == (4_000, 12) && steps[11] > 300_000, "{steps:?}");
        let published = parse("--target latchwork --rows 10M --from 2k --step 20").unwrap();
        assert!(published.steps().starts_with(&[2_000, 2_400]));
        assert_eq!(parse("").unwrap().settle, Duration::from_secs(20));
    }

    #[test]
    fn only_our_targets_have_a_row_tier() {
        let options = parse("--target latchwork,mariadb:innodb").unwrap();
        let labels: Vec<String> =
            options.series().iter().map(|(spec, variant)| format!("{} {variant}", spec.name())).collect();
        assert_eq!(labels.len(), 6 + 3);
        assert_eq!(labels[1], "latchwork 16k + rows");
        assert_eq!(labels[8], "mariadb:innodb compressed");
        let auto = parse("--row-tier auto --pages 4k").unwrap();
        assert_eq!(auto.series()[0].1.to_string(), "4k + rows by benefit");
    }

    #[test]
    fn wrong_values_are_told_with_what_would_be_right() {
        for (line, told) in [
            ("--pages 8k", "16k, 4k, compressed"),
            ("--row-tier maybe", "off, on, auto"),
            ("--compressible 0.5", "from 1 to 20"),
            ("--target null", "no cache that the lab can set up"),
            ("--from 2M", "--from 2000000"),
            ("--row-cache-size 1G", "a part of --cache-size"),
            ("--row-bytes 10", "from 142 to 1000"),
            ("--unlimitd", "did you mean `--unlimited`?"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(told), "{line}: {message}");
        }
    }
}
