//! Plays random conversations with a Latchwork server, most of them with bytes changed on their way.
//!
//! `cargo run --release -p latchwork-fuzz --bin conversations -- --minutes 60 --seed 1`

use latchwork_fuzz::conversations::{OPTIONS, Place, play};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: heap::Allocator = heap::Allocator;

/// The first argument with which this program is Latchwork's server.
const SERVE: &str = "serve";
/// After so many conversations, what they have left behind is looked for.
const BATCH: u64 = 200;
/// After so many the server's log is read.
const LOG_READ_EVERY: u64 = 20;
/// The server may need so much more memory than after the first batch.
const GROWTH_KIB_MAX: u64 = 256 << 10;

const HELP: &str = "\
Random conversations with a Latchwork server, most of them with bytes changed on their way.

  --minutes N   how long (1)
  --cases N     how many conversations instead
  --seed N      the seed (1)
  --case N      the first conversation (0): one that was reported is played again by its seed and number
";

struct Options {
    minutes: f64,
    cases: u64,
    seed: u64,
    case: u64,
}

fn options(arguments: &[String]) -> Option<Options> {
    let mut options = Options { minutes: 1.0, cases: u64::MAX, seed: 1, case: 0 };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--minutes" => options.minutes = value.parse().ok()?,
            "--cases" => (options.cases, options.minutes) = (value.parse().ok()?, f64::INFINITY),
            "--seed" => options.seed = value.parse().ok()?,
            "--case" => options.case = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

/// The server, in a process of its own. It is killed when this is dropped.
struct Running {
    child: Child,
    place: Place,
    log: std::path::PathBuf,
}

impl Running {
    fn start(folder: &Path) -> Result<Running, String> {
        let problem = |error: std::io::Error| error.to_string();
        let program = std::env::current_exe().map_err(problem)?;
        let (socket, log) = (folder.join("socket"), folder.join("log"));
        let mut child = Command::new(program)
            .args([SERVE, "--no-defaults", "--port=0", "--flush_log_at_trx_commit=2"])
            .args(OPTIONS)
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--log-error={}", log.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(problem)?;
        let mut ready = String::new();
        let stdout = child.stdout.take().ok_or("no output")?;
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut ready).map_err(problem)?;
        let tcp = ready.trim().rsplit("TCP ").next().and_then(|address| address.parse().ok());
        let tcp = tcp.ok_or_else(|| format!("the server is not ready: {ready}"))?;
        Ok(Running { child, place: Place { socket, tcp }, log })
    }

    fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
    }

    /// What the log says that it should not, or that the process has ended. The log is read now and then.
    fn complaint_after(&mut self, played: u64) -> Option<String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(format!("the server ended: {status}"));
        }
        if !played.is_multiple_of(LOG_READ_EVERY) {
            return None;
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().find(|line| line.contains("panicked")).map(str::to_owned)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    match run(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Gives the number of findings.
fn run(options: &Options) -> Result<u64, String> {
    let mut scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut running = Running::start(scratch.path())?;
    running.place.prepare()?;
    let begin = Instant::now();
    let (mut findings, mut played, mut first_memory) = (0, 0_u64, 0);
    for case in options.case..options.case.saturating_add(options.cases) {
        if begin.elapsed() > Duration::from_secs_f64(options.minutes.min(1e6) * 60.0) {
            break;
        }
        played += 1;
        let ended = play(&running.place, options.seed, case).and_then(|()| running.place.serves());
        let ended = match ended {
            Ok(()) if played.is_multiple_of(BATCH) => running.place.is_alone(),
            ended => ended,
        };
        let memory = running.memory_kib();
        if played == BATCH {
            first_memory = memory;
        }
        let grown = first_memory > 0 && memory > first_memory + GROWTH_KIB_MAX;
        let complaint = running.complaint_after(played);
        let finding = match (ended, complaint) {
            (Err(why), _) => Some(why),
            (_, Some(line)) => Some(line),
            _ if grown => Some(format!("the server has {memory} KiB, and had {first_memory}")),
            _ => None,
        };
        if let Some(finding) = finding {
            findings += 1;
            println!("-- seed {}, case {case}: {finding}", options.seed);
            scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
            running = Running::start(scratch.path())?;
            running.place.prepare()?;
            first_memory = 0;
        }
    }
    println!("{played} conversations in {:.1?}, {findings} findings", begin.elapsed());
    Ok(findings)
}
