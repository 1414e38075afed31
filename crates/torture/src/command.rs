//! `latchwork torture`: runs histories until it is enough.

use crate::arguments::{Arguments, HELP};
use crate::report::{Progress, Run};
use crate::simulation::{History, Tally};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// Runs the command, and gives its exit status: 0 if nothing was lost, 1 if something was, 2 for wrong use.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match Arguments::parse(arguments) {
        Ok(None) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Some(arguments)) => torture(&arguments),
        Err(why) => {
            eprintln!("latchwork torture: {why}; see latchwork torture --help");
            ExitCode::from(2)
        }
    }
}

fn torture(arguments: &Arguments) -> ExitCode {
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = arguments.seed.unwrap_or_else(|| clock().as_millis() as u64 % 1_000_000_000 * 1_000);
    let begin = Instant::now();
    let mut progress = Progress::new();
    let mut run = Run { seed, time: Duration::ZERO, histories: 0, tally: Tally::default(), faults: 0 };
    while !is_enough(arguments, &run) {
        let seed = seed.wrapping_add(run.histories);
        let (tally, result) = History { seed, steps: arguments.steps, gap: arguments.gap }.run();
        run.histories += 1;
        run.tally += tally;
        if let Err(fault) = result {
            run.faults += 1;
            progress.clear();
            println!("{fault}");
            println!(
                "repeat it: latchwork torture --seed {seed} --histories 1 --steps {} --gap {}\n",
                arguments.steps, arguments.gap
            );
        }
        run.time = begin.elapsed();
        progress.show(&run.to_string());
    }
    progress.clear();
    println!("{run}");
    if let Some(file) = &arguments.append
        && let Err(error) = run.append(file)
    {
        eprintln!("latchwork torture: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    if run.faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_enough(arguments: &Arguments, run: &Run) -> bool {
    arguments.minutes.is_some_and(|minutes| run.time.as_secs_f64() >= minutes * 60.0)
        || arguments.cuts.is_some_and(|cuts| run.tally.cuts + run.tally.cuts_of_recoveries >= cuts)
        || arguments.histories.is_some_and(|histories| run.histories >= histories)
}
