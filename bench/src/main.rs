//! Latchwork beside the embedded stores people would otherwise take.
//!
//! `point-lookups`: random gets of rows of 4 + 190 bytes, in process, everything in memory, the value copied
//! out. Every store runs in every round, in a new order each time, so that other load on the machine meets
//! all of them. The table shows the median of the rounds and their spread, also where another store is
//! faster.

mod options;
mod report;
mod rounds;
mod stores;

use options::Options;
use std::process::ExitCode;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::parse(&arguments) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match point_lookups(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn point_lookups(options: &Options) -> Result<()> {
    report::settings(options);
    for &rows in &options.rows {
        let folder = match &options.folder {
            Some(folder) => tempfile::tempdir_in(folder)?,
            None => tempfile::tempdir()?,
        };
        let stores = stores::load(options, rows, folder.path())?;
        for &threads in &options.threads {
            let samples = rounds::measure(&stores, rows, threads, options)?;
            report::table(rows, threads, &samples);
        }
    }
    Ok(())
}
