//! The command line: `lab list`, `lab doctor`, `lab run EXPERIMENT`, `lab report`,
//! `lab compare`, `lab explain`.

mod compare;
mod explain;
mod help;
mod report;

use crate::arguments::closest;
use crate::doctor::{self, Verdict};
use crate::error::{Error, Result};
use crate::experiment::{self, SegmentsOptions};
use crate::interrupt::{self, Interrupt};
use crate::progress::Progress;
use crate::report::print;
use std::ffi::OsString;
use std::process::ExitCode;

/// The exit status of a wrong command line, as with shells and getopt.
const EXIT_USAGE: u8 = 2;

const COMMANDS: [&str; 7] = ["list", "doctor", "run", "report", "compare", "explain", "help"];

/// Runs the lab with the arguments that follow `latchwork lab`.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    match dispatch(&args) {
        Ok(status) => status,
        Err(Error::Usage(why)) => {
            eprintln!("latchwork lab: {why}");
            ExitCode::from(EXIT_USAGE)
        }
        Err(Error::Interrupted) => ExitCode::from(interrupt::EXIT_STATUS),
        Err(error) => {
            eprintln!("latchwork lab: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<ExitCode> {
    match args.split_first() {
        Some((command, rest)) if command == "compare" && !wants_help(rest) => compare::run(rest),
        _ => obey(args).map(|()| ExitCode::SUCCESS),
    }
}

fn wants_help(args: &[String]) -> bool {
    args.iter().any(|arg| arg == "--help" || arg == "-h")
}

/// The commands that either succeed or fail.
fn obey(args: &[String]) -> Result<()> {
    let (command, rest) = match args.split_first() {
        None => return print(help::OVERVIEW),
        Some((command, rest)) => (command.as_str(), rest),
    };
    let wants_help = wants_help(rest);
    match command {
        "help" | "--help" | "-h" => print(help::OVERVIEW),
        "list" if wants_help => print(help::OVERVIEW),
        "list" => {
            no_more(command, rest)?;
            print(&help::list())
        }
        "doctor" if wants_help => print(help::DOCTOR),
        "doctor" => examine(rest),
        "run" => run(rest, wants_help),
        "report" if wants_help => print(report::HELP),
        "report" => report::run(rest),
        "compare" => print(compare::HELP),
        "explain" if wants_help => print(explain::HELP),
        "explain" => explain::run(rest, &Interrupt::install()?, &mut Progress::stderr()),
        other => Err(Error::Usage(closest("command", other, COMMANDS))),
    }
}

fn no_more(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(arg) => Err(Error::Usage(format!("`{command}` takes no arguments, but there is `{arg}`"))),
        None => Ok(()),
    }
}

fn run(args: &[String], wants_help: bool) -> Result<()> {
    let name = args.first().filter(|arg| !arg.starts_with('-'));
    let Some(name) = name else {
        if wants_help {
            return print(&help::run());
        }
        let names = experiment::names().join(", ");
        return Err(Error::Usage(format!("`run` needs the name of an experiment: {names}")));
    };
    let Some(found) = experiment::find(name) else {
        return Err(Error::Usage(closest("experiment", name, experiment::names())));
    };
    if wants_help {
        return print(&help::of(found));
    }
    let interrupt = Interrupt::install()?;
    found.run(&args[1..], &interrupt, &mut Progress::stderr())
}

fn examine(args: &[String]) -> Result<()> {
    let options = SegmentsOptions::parse(args).map_err(Error::Usage)?;
    let findings = doctor::examine(&options.doctor_plan());
    print(&doctor::to_text(&findings, true))?;
    match findings.iter().map(|finding| finding.verdict).max() {
        Some(Verdict::Problem) => {
            Err(Error::Usage("a run would not work before the problems are mended".to_string()))
        }
        Some(Verdict::Warning) => print("\nThe figures will suffer from the warnings.\n"),
        _ => print("\nThis machine is fit to measure on.\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage_error(args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
        match dispatch(&args) {
            Err(Error::Usage(why)) => why,
            other => panic!("{args:?} gave {other:?}"),
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_closest_known_one() {
        assert!(usage_error(&["run", "segmnets"]).contains("did you mean `segments`?"));
        assert!(usage_error(&["dcotor"]).contains("did you mean `doctor`?"));
        assert!(usage_error(&["run", "segments", "--thread", "1"]).contains("did you mean `--threads`?"));
    }

    #[test]
    fn a_word_like_no_other_is_answered_with_all_of_them() {
        assert!(usage_error(&["run", "xyzzy"]).contains("segments"));
        assert!(usage_error(&["run"]).contains("segments"));
        assert!(usage_error(&["list", "all"]).contains("takes no arguments"));
    }
}
