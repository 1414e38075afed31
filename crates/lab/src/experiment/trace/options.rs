//! The options of `lab run trace`.

use super::file::Csv;
use super::{generate, policy};
use crate::arguments::{self, closest, count, distinct, number, numbers, split};
use crate::experiment::frame::{OUTPUT_OPTIONS, OutputOptions};
use std::path::PathBuf;

/// The note of a build without the caches of other projects.
pub(crate) const WITHOUT_PEERS: &str = "\
this build has no caches of other projects; with quick_cache, moka and foyer:
  cargo run --release --features peers -- lab run trace";

const NAMES: [&str; 13] = [
    "--trace",
    "--cache",
    "--size",
    "--threads",
    "--requests",
    "--keys",
    "--samples",
    "--seed",
    "--column",
    "--format",
    "--out",
    "--scratch",
    "--help",
];

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Generated(&'static str),
    File(PathBuf),
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub traces: Vec<Source>,
    pub policies: Vec<&'static str>,
    /// Capacities of the caches, in thousandths of the keys.
    pub sizes: Vec<u32>,
    pub threads: Vec<u32>,
    pub requests: usize,
    pub keys: u32,
    pub samples: u32,
    pub seed: u64,
    pub csv: Csv,
    pub output: OutputOptions,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            traces: Vec::new(),
            policies: policy::names(),
            sizes: vec![1, 10, 100],
            threads: vec![1, 2, 16],
            requests: 1_000_000,
            keys: 100_000,
            samples: 1,
            seed: 303,
            csv: Csv { column: 1, headline: false },
            output: OutputOptions::default(),
        };
        arguments::read(args, &NAMES, &["--headline"], |name, value| options.set(name, value))?;
        if options.traces.is_empty() {
            options.traces = generate::NAMES.into_iter().map(Source::Generated).collect();
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--trace" => {
                for part in split(value)? {
                    let trace = source(part)?;
                    if self.traces.contains(&trace) {
                        return Err("this trace is given twice".to_string());
                    }
                    self.traces.push(trace);
                }
            }
            "--cache" => self.policies = distinct(split(value)?.into_iter().map(cache))?,
            "--size" => self.sizes = distinct(split(value)?.into_iter().map(size))?,
            "--threads" => self.threads = numbers(value, 1, 1_000)?,
            "--requests" => self.requests = count(value)?.max(1) as usize,
            "--keys" => {
                let keys = count(value)?;
                if !(1_000..=1 << 30).contains(&keys) {
                    return Err("from 1000 to 1073741824".to_string());
                }
                self.keys = keys as u32;
            }
            "--samples" => self.samples = number(value, 1, 1_000)?,
            "--seed" => self.seed = value.parse().map_err(|_| "not a number".to_string())?,
            "--column" => self.csv.column = number(value, 1, 1_000)? as usize,
            "--headline" => self.csv.headline = true,
            other => return self.output.set(other, value),
        }
        Ok(())
    }

    pub(crate) fn threads_max(&self) -> u32 {
        self.threads.iter().copied().max().unwrap_or(1)
    }
}

/// The name of a generated trace, or the path of a file.
fn source(text: &str) -> Result<Source, String> {
    if let Some(name) = generate::NAMES.into_iter().find(|name| *name == text) {
        return Ok(Source::Generated(name));
    }
    let path = PathBuf::from(text);
    if path.is_file() {
        return Ok(Source::File(path));
    }
    Err(format!("neither a file nor a trace made here: {}", closest("trace", text, generate::NAMES)))
}

fn cache(name: &str) -> Result<&'static str, String> {
    let known = policy::names();
    known
        .iter()
        .copied()
        .find(|cache| cache.eq_ignore_ascii_case(name))
        .ok_or_else(|| closest("cache", name, known.iter().copied()))
}

/// Percent, with one decimal.
fn size(value: &str) -> Result<u32, String> {
    let permille = value.trim_end_matches('%').parse::<f64>().map(|percent| percent * 10.0).unwrap_or(0.0);
    let whole = permille.round();
    if (1.0..=1_000.0).contains(&whole) && (permille - whole).abs() < 1e-6 {
        return Ok(whole as u32);
    }
    Err(format!("`{value}` is not a share of the keys in percent, 0.1 to 100"))
}

pub(crate) fn help() -> String {
    format!(
        "\
What to replay
  --trace T[,T]         names of generated traces, or files (repeatable)
                        ({names}; default: all)
                        Files: one key a line; .csv, with the key in one of the fields; libCacheSim's
                        .oracleGeneral (.bin) and .lcs, as its Python package writes them
  --column N            the field of a .csv that is the key, from 1 (default: 1)
  --headline            skip the first line of a .csv
  --cache C[,C]         {caches}
                        (default: all)
  --size P[,P]          the cache's capacity, in percent of the keys (default: 0.1,1,10)
  --threads N[,N]       the first gives the hit ratio, all of them a rate (default: 1,2,16)
  --requests N          requests of a generated trace, or at most so many of a file (default: 1M)
  --keys N              keys of a generated trace (default: 100k)
  --samples N           how often everything is replayed (default: 1)
  --seed N              of the generated traces (default: 303)

Where it goes
{OUTPUT_OPTIONS}
{WITHOUT}

Examples
  latchwork lab run trace
  latchwork lab run trace --trace zipf-1.0,loop --size 1 --threads 1,2 --samples 9
  latchwork lab run trace --trace requests.csv --column 2 --headline
",
        names = generate::NAMES.join(", "),
        caches = policy::names().join(", "),
        WITHOUT = if cfg!(feature = "peers") {
            "This build has the caches of other projects.".to_string()
        } else {
            format!("By default {WITHOUT_PEERS}")
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn the_default_is_every_trace_and_every_cache_of_this_build() {
        let options = parse("").unwrap();
        assert_eq!(options.traces.len(), generate::NAMES.len());
        assert_eq!(options.policies, policy::names());
        assert_eq!((options.sizes, options.threads), (vec![1, 10, 100], vec![1, 2, 16]));
    }

    #[test]
    fn what_is_given_takes_the_defaults_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = format!(
            "--trace loop,{} --cache lru --size 0.5,20% --threads 3 --keys 2k --requests 5k --column 2 --headline",
            file.path().display()
        );
        let options = parse(&line).unwrap();
        assert_eq!(options.traces, [Source::Generated("loop"), Source::File(file.path().to_path_buf())]);
        assert_eq!((options.policies, options.sizes), (vec!["LRU"], vec![5, 200]));
        assert_eq!((options.keys, options.requests), (2_000, 5_000));
        assert_eq!(options.csv, Csv { column: 2, headline: true });
    }

    #[test]
    fn wrong_values_are_told_with_what_would_be_right() {
        for (line, told) in [
            ("--trace zipf-1.1", "did you mean `zipf-1.0`"),
            ("--trace loop,loop", "given twice"),
            ("--cache lur", "there is LRU, latchwork"),
            ("--size 0.01", "0.1 to 100"),
            ("--size some", "0.1 to 100"),
            ("--keys 10", "from 1000"),
            ("--headline=1", "takes no value"),
            ("--treads 1", "did you mean `--threads`?"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(told), "{line}: {message}");
        }
    }
}
