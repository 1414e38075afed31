//! `latchwork check DIR`: checks every page of a data directory.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
latchwork check DIR: check a data directory

Reads every page of every table. Checks checksums, the order of keys and references, and that each row has its entry
in every index and each entry has its row. Writes nothing. No server may have the directory open.

A directory that was not shut down cleanly is first recovered in memory, and then checked as the next start would
leave it.

Standard output has a line for each finding, and then the result.
Exit status: 0 if nothing is wrong; 1 if something is wrong, or the directory cannot be read; 2 for wrong use.
";

pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    match &arguments[..] {
        [option] if ["--help", "-h"].iter().any(|help| option == help) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        [directory] if !directory.to_string_lossy().starts_with("--") => check(Path::new(directory)),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}

fn check(directory: &Path) -> ExitCode {
    match engine::check(directory, engine::Options::default().vfs) {
        Ok(report) => {
            println!("{report}");
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("latchwork check: cannot read the data directory {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
