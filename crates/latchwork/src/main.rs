//! The `latchwork` binary: `serve`, `lab`, `check`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_ref().and_then(|command| command.to_str()) {
        Some("lab") => lab::main(args),
        _ => {
            eprintln!("usage: latchwork lab --help");
            ExitCode::from(2)
        }
    }
}
