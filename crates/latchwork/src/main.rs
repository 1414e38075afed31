//! The `latchwork` binary: `serve`, `lab`, `check`, `torture`.

mod check;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: heap::Allocator = heap::Allocator;

const HELP: &str = "\
latchwork: a MySQL-compatible server whose caches do not fight over latches, and a lab that measures it

  latchwork serve --datadir DIR --socket FILE   run the server; stop it with SIGTERM or Ctrl-C
  latchwork lab run segments                    measure the segmented key cache on this machine
  latchwork lab doctor                          check whether this machine is fit for measuring
  latchwork check DIR                           check every page of a data directory; exit status 1 if one is wrong
  latchwork torture --minutes 5                 try to make the engine lose something, on a simulated device

  latchwork COMMAND --help                      the options of a command
  latchwork --version

A first session:
  first=$(mktemp -d)
  latchwork serve --datadir $first/data --socket $first/socket &
  mariadb --user root --socket $first/socket -e 'SELECT VERSION()'
  kill %1
";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next().map(|command| command.to_string_lossy().into_owned());
    match command.as_deref() {
        Some("serve") => {
            let arguments: Vec<String> =
                arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
            server::serve(&arguments)
        }
        Some("lab") => lab::main(arguments),
        Some("check") => check::main(arguments),
        Some("torture") => torture::main(arguments),
        Some("--help" | "-h" | "help") => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Some("--version" | "-V" | "version") => {
            println!("latchwork {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!(
                "latchwork: '{other}' is not a command. Commands are serve, lab, check and torture; see latchwork \
                 --help"
            );
            ExitCode::from(2)
        }
        None => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}
