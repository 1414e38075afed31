//! The command line.

use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str = "\
usage: latchwork-bench point-lookups [options]
  --rows N,N,..       rows loaded, a table of results for each     [2000000]
  --threads N,N,..    threads that look up                         [1,2]
  --stores S,S,..     latchwork, latchwork-locked, lmdb, redb      [latchwork,lmdb,redb]
  --rounds N          rounds in which every store runs once        [7]
  --seconds S         length of one store's turn, may be a fraction [2]
  --batch N           keys a batched lookup                        [32]
  --dir FOLDER        where the stores' files go                   [the system's scratch folder]";

#[derive(Debug)]
pub struct Options {
    pub rows: Vec<u32>,
    pub threads: Vec<usize>,
    pub stores: Vec<String>,
    pub rounds: usize,
    pub turn: Duration,
    pub batch_keys: usize,
    pub folder: Option<PathBuf>,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options {
            rows: vec![2_000_000],
            threads: vec![1, 2],
            stores: ["latchwork", "lmdb", "redb"].map(String::from).to_vec(),
            rounds: 7,
            turn: Duration::from_secs(2),
            batch_keys: 32,
            folder: None,
        };
        let mut words = arguments.iter();
        match words.next().map(String::as_str) {
            Some("point-lookups") => {}
            Some(other) => return Err(format!("there is no benchmark `{other}`")),
            None => return Err("which benchmark?".into()),
        }
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, value.to_string()),
                None => (word.as_str(), words.next().ok_or(format!("{word} needs a value"))?.clone()),
            };
            match name {
                "--rows" => options.rows = list(name, &value)?,
                "--threads" => options.threads = list(name, &value)?,
                "--stores" => options.stores = list(name, &value)?,
                "--rounds" => options.rounds = positive(name, &value)?,
                "--seconds" => {
                    let seconds: f64 = one(name, &value)?;
                    options.turn = Duration::try_from_secs_f64(seconds)
                        .map_err(|why| format!("{name}: `{value}`: {why}"))?;
                }
                "--batch" => options.batch_keys = positive(name, &value)?,
                "--dir" => options.folder = Some(value.into()),
                _ => return Err(format!("unknown option {name}")),
            }
        }
        if options.rows.contains(&0) || options.threads.contains(&0) {
            return Err("--rows and --threads must be at least 1".into());
        }
        Ok(options)
    }
}

fn one<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| format!("{name}: `{value}` is not what it takes"))
}

fn positive(name: &str, value: &str) -> Result<usize, String> {
    match one(name, value)? {
        0 => Err(format!("{name} must be at least 1")),
        number => Ok(number),
    }
}

fn list<T: std::str::FromStr>(name: &str, value: &str) -> Result<Vec<T>, String> {
    value.split(',').map(|item| one(name, item)).collect()
}
