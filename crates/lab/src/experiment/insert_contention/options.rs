//! The options of `lab run insert-contention`.

use super::Setup;
use crate::arguments::{self, bytes, count, duration, number, numbers};
use crate::experiment::frame::{OUTPUT_OPTIONS, OutputOptions};
use crate::target::{Engine, HitPath, SEGMENTS_MAX, TargetSpec};
use std::time::Duration;

const NAMES: [&str; 15] = [
    "--target",
    "--case",
    "--writers",
    "--rows-per-statement",
    "--rows",
    "--cache-size",
    "--hit-path",
    "--segments",
    "--time",
    "--samples",
    "--seed",
    "--format",
    "--out",
    "--scratch",
    "--help",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Case {
    Writers,
    Readers,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub targets: Vec<TargetSpec>,
    pub case: Case,
    pub writers: Vec<u32>,
    /// The rows of a table of calls.
    pub rows: u32,
    pub setup: Setup,
    pub time: Duration,
    pub samples: u32,
    pub output: OutputOptions,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            targets: Vec::new(),
            case: Case::Writers,
            writers: vec![1, 2, 4, 8, 16],
            rows: 200_000,
            setup: Setup {
                cache_bytes: 512 << 20,
                rows_per_statement: 100,
                seed: 303,
                hit_path: None,
                segments: None,
            },
            time: Duration::from_secs(1),
            samples: 3,
            output: OutputOptions::default(),
        };
        arguments::read(args, &NAMES, &[], |name, value| options.set(name, value))?;
        if options.targets.is_empty() {
            options.targets = vec![TargetSpec::EMBEDDED];
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--target" => {
                arguments::targets(value, &mut self.targets)?;
                let known = |spec: &TargetSpec| {
                    matches!(
                        spec,
                        TargetSpec::Embedded(_)
                            | TargetSpec::Latchwork(_)
                            | TargetSpec::MariaDb(Engine::MyIsam | Engine::Aria | Engine::InnoDb)
                    )
                };
                if !self.targets.iter().all(known) {
                    return Err(
                        "targets are embedded, latchwork, mariadb:myisam, aria and innodb".to_string()
                    );
                }
            }
            "--case" => {
                self.case = match value {
                    "writers" => Case::Writers,
                    "readers" => Case::Readers,
                    _ => return Err("cases are writers and readers".to_string()),
                };
            }
            "--writers" => self.writers = numbers(value, 1, 128)?,
            "--rows-per-statement" => self.setup.rows_per_statement = number(value, 1, 10_000)?,
            "--rows" => match count(value)? {
                rows @ 1..=0x8000_0000 => self.rows = rows as u32,
                _ => return Err("from 1 to 2147483648".to_string()),
            },
            "--cache-size" => self.setup.cache_bytes = bytes(value)?,
            "--hit-path" => {
                let known = [HitPath::Locked, HitPath::Optimistic];
                let path = known.into_iter().find(|path| path.name() == value);
                self.setup.hit_path = Some(path.ok_or("hit paths are locked and optimistic")?);
            }
            "--segments" => self.setup.segments = Some(number(value, 0, SEGMENTS_MAX)?),
            "--time" => self.time = duration(value)?.max(Duration::from_millis(1)),
            "--samples" => self.samples = number(value, 1, 1_000)?,
            "--seed" => self.setup.seed = value.parse().map_err(|_| "not a number".to_string())?,
            other => return self.output.set(other, value),
        }
        Ok(())
    }

    pub(crate) fn threads_max(&self) -> u32 {
        self.writers.iter().copied().max().unwrap_or(1)
    }
}

pub(crate) fn help() -> String {
    format!(
        "\
What to measure
  --target T[,T]        embedded, latchwork, mariadb:myisam (default: embedded); mariadb:innodb and
                        mariadb:aria have no key caches to choose: they refuse or ignore the series
  --case C              writers: the four series of the study; readers: the four cases from a
                        reader's comment on the study (default: writers)
  --writers N[,N]       each with a table of its own (default: 1,2,4,8,16)
  --rows-per-statement N   (default: 100)
  --rows N              of each of the readers' two tables (default: 200k; published: 2M)
  --cache-size BYTES    of all key caches together (default: 512M)
  --hit-path P          of Latchwork's caches: locked or optimistic (default: optimistic)
  --segments N          of each of Latchwork's caches, 0 to {SEGMENTS_MAX} (default: its own choice)
                        --hit-path locked --segments 0 is the published cache: one mutex
  --time S, --samples N measured window, and how many a cell (default: 1, 3)
  --seed N              of the rows (default: 303)

Where it goes
{OUTPUT_OPTIONS}
Examples
  latchwork lab run insert-contention
  latchwork lab run insert-contention --target embedded --hit-path locked --segments 0
  latchwork lab run insert-contention --target latchwork,mariadb:myisam --writers 1,4,16
  latchwork lab run insert-contention --case readers --rows 2M
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
    fn the_published_cache_can_be_asked_for() {
        let options = parse("--hit-path locked --segments 0 --target mariadb:myisam,embedded").unwrap();
        assert_eq!((options.setup.hit_path, options.setup.segments), (Some(HitPath::Locked), Some(0)));
        assert_eq!((options.case, options.targets.len()), (Case::Writers, 2));
        assert_eq!(parse("--case readers --rows 2M").unwrap().rows, 2_000_000);
    }

    #[test]
    fn wrong_values_are_told_with_what_would_be_right() {
        for (line, told) in [
            ("--case both", "writers and readers"),
            ("--target null", "targets are embedded"),
            ("--hit-path fast", "locked and optimistic"),
            ("--writers 0", "from 1 to 128"),
            ("--writer 1", "did you mean `--writers`?"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(told), "{line}: {message}");
        }
    }
}
