//! The distribution's sysbench as the client, unmodified: `select_random_points` and the OLTP transactions.

use super::oltp::{FAILED, Oltp, TRY_AGAIN};
use super::socket::{Address, Login};
use super::workers::{self, Observed, Reading};
use super::{Load, Window};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::{Process, Recorder};
use crate::results::Sample;
use crate::workload::Statement;
use crate::workload::oltp::Mix;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use wire::client::Encryption;

const DRIVER: &str = "sysbench";
/// The processes are observed this long before the end, while all connections still exist.
const LOOK_BEFORE_END: Duration = Duration::from_millis(100);
/// If a run takes this much longer than its time, something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fails with advice if sysbench is not there.
pub(crate) fn find() -> Result<String> {
    let output =
        Command::new(DRIVER).arg("--version").stdin(Stdio::null()).output().map_err(|_| Error::Missing {
            program: DRIVER.to_string(),
            advice: "apt-get install sysbench, or --driver builtin".to_string(),
        })?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// One of sysbench's workloads, with everything that depends on the workload.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    name: &'static str,
    options: Vec<String>,
    rows: u32,
    threads: u32,
    seed: u64,
    /// True if transactions are counted, some of which may be given up and tried again. False if queries are.
    transactions: bool,
}

impl Script {
    pub(crate) fn points(load: &Load) -> Script {
        let Statement::PointsByK { points } = load.workload.statement;
        let options =
            [format!("--random-points={points}"), "--rand-type=uniform".into(), "--db-ps-mode=auto".into()];
        Script {
            name: "select_random_points",
            options: options.to_vec(),
            rows: load.workload.table.rows,
            threads: load.clients,
            seed: load.seed,
            transactions: false,
        }
    }

    pub(crate) fn oltp(oltp: &Oltp, threads: u32, seed: u64) -> Script {
        let options = [
            format!("--rand-type={}", oltp.distribution.name()),
            format!("--db-ps-mode={}", if oltp.prepared { "auto" } else { "disable" }),
            format!("--mysql-ignore-errors={}", TRY_AGAIN.map(|code| code.to_string()).join(",")),
        ];
        Script {
            name: oltp.mix.sysbench_name(),
            options: options.to_vec(),
            rows: oltp.table.rows,
            threads,
            seed,
            transactions: oltp.mix != Mix::Points,
        }
    }
}

/// Runs sysbench for one sample. Sysbench counts in whole seconds, so windows are rounded up to them.
pub(crate) fn run(
    login: &Login,
    script: &Script,
    window: &Window,
    observed: &Observed<'_>,
    interrupt: &Interrupt,
) -> Result<Sample> {
    let warmup_s = window.warmup.as_secs_f64().ceil() as u64;
    let measure_s = (window.measure.as_secs_f64().ceil() as u64).max(1);
    if matches!(&login.address, Address::Tcp { encryption, .. } if *encryption != Encryption::None) {
        let why = "it wants a client's certificate for TLS; leave ssl-mode out, or use --driver builtin";
        return Err(Error::Driver { driver: DRIVER, why: why.to_string() });
    }
    let mut command = Command::new(DRIVER);
    command.args(arguments(login, script, warmup_s, measure_s));
    let mut running = Running::start(command)?;
    running.wait_for_line("Threads started!", interrupt)?;
    let started = Instant::now();
    let observed = Observed {
        server: observed.server.clone(),
        client: Some(Process::Other(running.child.id())),
        latch_waits: observed.latch_waits,
    };
    let warm = started + Duration::from_secs(warmup_s);
    running.sleep_until(warm, interrupt)?;
    let before = observed.read();
    running.sleep_until(warm + Duration::from_secs(measure_s) - LOOK_BEFORE_END, interrupt)?;
    let after = observed.read();
    let output = running.finish(interrupt)?;
    let report = parse(&output).map_err(|why| Error::Driver { driver: DRIVER, why })?;
    if report.failed > 0 && !script.transactions {
        return Err(Error::Driver { driver: DRIVER, why: format!("{} statements failed", report.failed) });
    }
    Ok(to_sample(&report, script.transactions, window.round, &before, &after))
}

fn arguments(login: &Login, script: &Script, warmup_s: u64, measure_s: u64) -> Vec<String> {
    let mut arguments = vec![
        script.name.to_string(),
        format!("--table-size={}", script.rows),
        "--tables=1".to_string(),
        format!("--rand-seed={}", script.seed.max(1)),
        format!("--threads={}", script.threads),
        format!("--time={}", warmup_s + measure_s),
        "--events=0".to_string(),
        "--report-interval=0".to_string(),
        "--histogram=on".to_string(),
        "--percentile=99".to_string(),
        "--db-driver=mysql".to_string(),
        format!("--mysql-user={}", login.user),
        format!("--mysql-password={}", login.password),
        format!("--mysql-db={}", login.database.as_deref().unwrap_or("sbtest")),
    ];
    arguments.extend(script.options.iter().cloned());
    if warmup_s > 0 {
        // Its counters start over when the warm-up ends.
        arguments.push(format!("--report-checkpoints={warmup_s}"));
    }
    match &login.address {
        Address::Unix(path) => arguments.push(format!("--mysql-socket={}", path.display())),
        Address::Tcp { host, port, .. } => {
            arguments.push(format!("--mysql-host={host}"));
            arguments.push(format!("--mysql-port={port}"));
        }
    }
    arguments.push("run".to_string());
    arguments
}

fn to_sample(report: &Report, transactions: bool, round: u32, before: &Reading, after: &Reading) -> Sample {
    let mut recorder = Recorder::default();
    for (milliseconds, count) in &report.histogram {
        recorder.bucket(Duration::from_secs_f64(milliseconds / 1_000.0), *count);
    }
    recorder.queries = if transactions { report.transactions } else { report.queries };
    let mut sample =
        workers::sample(&recorder, round, Duration::from_secs_f64(report.seconds), before, after);
    if report.failed > 0 {
        sample.extra.push((FAILED.to_string(), report.failed as f64 / report.seconds));
    }
    sample
}

/// A running sysbench. Killed when dropped.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    text: String,
}

impl Running {
    fn start(mut command: Command) -> Result<Running> {
        // It runs in a process group of its own: Ctrl-C reaches the lab alone, and the lab ends sysbench.
        let mut child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::io("cannot start sysbench"))?;
        let output = child.stdout.take().map(BufReader::new);
        let Some(output) = output else {
            return Err(Error::Driver { driver: DRIVER, why: "it has no output".to_string() });
        };
        Ok(Running { child, output, text: String::new() })
    }

    /// Reads up to a line that begins so. Sysbench writes without delay when it starts its threads.
    fn wait_for_line(&mut self, start: &str, interrupt: &Interrupt) -> Result<()> {
        loop {
            interrupt.check()?;
            let mut line = String::new();
            let read = self.output.read_line(&mut line).map_err(Error::io("cannot read from sysbench"))?;
            self.text.push_str(&line);
            if line.starts_with(start) {
                return Ok(());
            }
            if read == 0 {
                return Err(self.failure());
            }
        }
    }

    fn sleep_until(&mut self, deadline: Instant, interrupt: &Interrupt) -> Result<()> {
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return Err(self.failure());
            }
            interrupt.sleep_until(deadline.min(Instant::now() + Duration::from_millis(50)))?;
        }
        Ok(())
    }

    fn finish(&mut self, interrupt: &Interrupt) -> Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().map_err(Error::io("cannot wait for sysbench"))? {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    return Err(Error::Driver { driver: DRIVER, why: "it does not end".to_string() });
                }
                None => interrupt.sleep_until(Instant::now() + Duration::from_millis(20))?,
            }
        };
        if !status.success() {
            return Err(self.failure());
        }
        self.output.read_to_string(&mut self.text).map_err(Error::io("cannot read from sysbench"))?;
        Ok(std::mem::take(&mut self.text))
    }

    /// What sysbench printed when it gave up. The output before that is short and never fills the pipe.
    fn failure(&mut self) -> Error {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.output.read_to_string(&mut self.text);
        if let Some(errors) = self.child.stderr.as_mut() {
            let _ = errors.read_to_string(&mut self.text);
        }
        let lines: Vec<&str> =
            self.text.lines().filter(|line| line.contains("FATAL") || line.contains("error")).collect();
        let why = if lines.is_empty() {
            self.text.trim().to_string()
        } else {
            lines[..lines.len().min(4)].join("; ")
        };
        Error::Driver { driver: DRIVER, why: format!("it gave up: {why}") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last report of sysbench 1.0.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Report {
    pub queries: u64,
    pub transactions: u64,
    /// Statements that failed with an error that sysbench was told to ignore.
    pub failed: u64,
    pub seconds: f64,
    /// Milliseconds and counts.
    pub histogram: Vec<(f64, u32)>,
}

/// Reads the report behind the last `SQL statistics:`: earlier ones belong to checkpoints.
pub(crate) fn parse(output: &str) -> Result<Report, String> {
    let tail =
        output.rfind("SQL statistics:").map(|at| &output[at..]).ok_or("no statistics in its output")?;
    let mut report = Report::default();
    let mut rate = None;
    for line in tail.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("queries:") {
            // `queries:    31210  (31204.11 per sec.)`
            report.queries = first_number(rest).ok_or("no number of queries")?;
            rate = rest
                .split_whitespace()
                .nth(1)
                .and_then(|word| word.strip_prefix('('))
                .and_then(|word| word.parse::<f64>().ok());
        } else if let Some(rest) = line.strip_prefix("transactions:") {
            report.transactions = first_number(rest).ok_or("no number of transactions")?;
        } else if let Some(rest) = line.strip_prefix("ignored errors:") {
            report.failed = first_number(rest).ok_or("no number of errors")?;
        }
    }
    let rate = rate.ok_or("no rate of queries")?;
    if report.queries == 0 || rate <= 0.0 {
        return Err("it ran no queries".to_string());
    }
    // The total time spans the warm-up as well; the rate is over the time since the checkpoint.
    report.seconds = report.queries as f64 / rate;
    report.histogram = last_histogram(output);
    Ok(report)
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// `       0.258 |****                                     1234`, behind the last `Latency histogram`.
fn last_histogram(output: &str) -> Vec<(f64, u32)> {
    let Some(at) = output.rfind("Latency histogram") else {
        return Vec::new();
    };
    output[at..]
        .lines()
        .filter_map(|line| {
            let (value, rest) = line.split_once('|')?;
            Some((value.trim().parse().ok()?, rest.split_whitespace().last()?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Sbtest, Workload};

    /// What sysbench 1.0.20 prints with a checkpoint and a histogram, shortened.
    const OUTPUT: &str = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Threads started!

[ 1s ] Checkpoint report:
SQL statistics:
    queries:                             21533  (21287.35 per sec.)
    ignored errors:                      0      (0.00 per sec.)

General statistics:
    total time:                          1.0103s

Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.074 |**************************************** 38000
       0.104 |                                         800
      20.366 |                                         7
 
SQL statistics:
    queries performed:
        read:                            38807
    transactions:                        38807  (19460.55 per sec.)
    queries:                             38807  (19460.55 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          3.0047s
";

    #[test]
    fn the_report_behind_the_last_checkpoint_counts() {
        let report = parse(OUTPUT).unwrap();
        assert_eq!(report.queries, 38_807);
        // 38,807 queries at 19,460.55 a second: the two seconds behind the warm-up.
        assert!((report.seconds - 1.994).abs() < 0.001);
        assert_eq!(report.histogram, [(0.074, 38_000), (0.104, 800), (20.366, 7)]);
    }

    #[test]
    fn latencies_come_from_the_histogram_and_counts_from_the_statistics() {
        let observed = Observed { server: None, client: None, latch_waits: &|| None };
        let (before, after) = (observed.read(), observed.read());
        let sample = to_sample(&parse(OUTPUT).unwrap(), false, 2, &before, &after);
        assert_eq!((sample.round, sample.queries), (2, 38_807));
        assert!((sample.value - 19_460.55).abs() < 0.01);
        let latency = sample.latency.unwrap();
        assert!((latency.p50 / 74.0 - 1.0).abs() < 0.01 && (latency.max / 20_366.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn output_that_is_no_report_is_refused() {
        for (output, told) in [
            ("", "no statistics"),
            ("FATAL: unable to connect", "no statistics"),
            ("SQL statistics:\n    queries: x", "no number"),
            ("SQL statistics:\n    queries: 0 (0.00 per sec.)", "no queries"),
            ("SQL statistics:\n    queries: 10", "no rate"),
        ] {
            assert!(parse(output).unwrap_err().contains(told), "{output}");
        }
        let failing = OUTPUT.replace("ignored errors:                      0  ", "ignored errors: 5");
        assert_eq!(parse(&failing).unwrap().failed, 5);
    }

    #[test]
    fn the_command_line_is_the_studys_workload() {
        let login = Login {
            target: "test".to_string(),
            address: Address::Unix("/tmp/s".into()),
            user: "root".to_string(),
            password: String::new(),
            database: Some("sbtest".to_string()),
        };
        let workload = Workload {
            table: Sbtest { rows: 2_000_000, seed: 303 },
            statement: Statement::PointsByK { points: 50 },
        };
        let (warmup, measure) = (Duration::from_millis(500), Duration::from_secs(4));
        let load = Load { workload, clients: 64, warmup, measure, seed: 303, round: 0 };
        let arguments = arguments(&login, &Script::points(&load), 1, 4);
        for expected in [
            "select_random_points",
            "--random-points=50",
            "--rand-type=uniform",
            "--table-size=2000000",
            "--threads=64",
            "--time=5",
            "--report-checkpoints=1",
            "--report-interval=0",
            "--mysql-socket=/tmp/s",
        ] {
            assert!(arguments.iter().any(|argument| argument == expected), "{expected}");
        }
        assert_eq!(arguments.last().unwrap(), "run");
    }
}
