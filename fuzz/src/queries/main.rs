//! Sends random statements of SQL to Latchwork, and to MariaDB beside it.
//!
//! `cargo run --release -p latchwork-fuzz --bin queries -- differential --minutes 60 --seed 1`

use latchwork_fuzz::queries::differences::Known;
use latchwork_fuzz::queries::differential::{self, Report};
use latchwork_fuzz::queries::partitions;
use latchwork_fuzz::queries::servers::{SERVE, Server};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: heap::Allocator = heap::Allocator;

const HELP: &str = "\
Random statements against Latchwork.

  queries differential   the same statements on MariaDB
  queries partitions     one query, and others that give its rows together

  --minutes N   how long (1)
  --cases N     how many cases instead
  --seed N      the first case's seed (1)
  --case N      the first case (0)
  --types 1     compare the types of columns, too
  --mixed 1     put values of one kind where another one is wanted
";

struct Options {
    command: String,
    minutes: f64,
    cases: u64,
    seed: u64,
    case: u64,
    types: bool,
    mixed: bool,
}

fn options(arguments: &[String]) -> Option<Options> {
    let mut options = Options {
        command: arguments.first()?.clone(),
        minutes: 1.0,
        cases: u64::MAX,
        seed: 1,
        case: 0,
        types: false,
        mixed: false,
    };
    for pair in arguments[1..].chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--minutes" => options.minutes = value.parse().ok()?,
            "--cases" => (options.cases, options.minutes) = (value.parse().ok()?, f64::INFINITY),
            "--seed" => options.seed = value.parse().ok()?,
            "--types" => options.types = value == "1",
            "--mixed" => options.mixed = value == "1",
            "--case" => options.case = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == SERVE) {
        return server::serve(&arguments[1..]);
    }
    let Some(options) = options(&arguments) else {
        eprint!("{HELP}");
        return ExitCode::from(2);
    };
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => {
            eprintln!("a scratch folder: {error}");
            return ExitCode::from(2);
        }
    };
    let ended = match options.command.as_str() {
        "differential" => run_differential(&options, scratch.path()),
        "partitions" => run_partitions(&options, scratch.path()),
        _ => Err(HELP.to_owned()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Runs cases until the time is over. `run` runs one. True if nothing was found that is not listed.
fn run_cases(
    options: &Options,
    scratch: &Path,
    mut run: impl FnMut(&Server, u64, &mut Report) -> Result<(), String>,
) -> Result<bool, String> {
    let mut server = Server::latchwork(scratch, &program()?)?;
    let mut report = Report::default();
    report.types = options.types;
    report.mixes_kinds = options.mixed;
    let begin = Instant::now();
    let mut last = begin;
    for case in options.case..options.case.saturating_add(options.cases) {
        if begin.elapsed().as_secs_f64() > options.minutes * 60.0 {
            break;
        }
        let before = report.found.len();
        report.lost = false;
        if let Err(problem) = run(&server, case, &mut report) {
            println!("-- seed {}, case {case}: {problem}", options.seed);
        }
        for script in &report.found[before..] {
            last = Instant::now();
            println!("{script}");
        }
        if !server.is_running() {
            println!("-- the server ended:\n{}\n", server.log());
            server = Server::latchwork(scratch, &program()?)?;
        }
    }
    for (excuse, times) in &report.excused {
        println!("{times} differences are gone with MariaDB's {excuse}");
    }
    println!(
        "{} statements in {:.1?}, {} new differences; {:.1?} without a new one",
        report.statements,
        begin.elapsed(),
        report.found.len(),
        last.elapsed()
    );
    Ok(report.found.is_empty())
}

fn program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

fn run_differential(options: &Options, scratch: &Path) -> Result<bool, String> {
    let mut judges = 0;
    let mut new_judge = || {
        judges += 1;
        Server::mariadb(&scratch.join(format!("judge-{judges}")))
    };
    let mut judge = new_judge()?;
    let mut known = Known::read();
    let ended = run_cases(options, scratch, |server, case, report| {
        // Some statements end MariaDB.
        if !judge.is_running() {
            judge = new_judge()?;
        }
        let clients = (judge.connect()?, server.connect()?);
        differential::case(clients, options.seed, case, &mut known, report)
    });
    println!("{} differences as listed", known.times_met());
    ended
}

fn run_partitions(options: &Options, scratch: &Path) -> Result<bool, String> {
    run_cases(options, scratch, |server, case, report| {
        partitions::case(server.connect()?, options.seed, case, report)
    })
}
