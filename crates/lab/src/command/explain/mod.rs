//! `lab explain`: what a query spends its time on in a Latchwork server, as the server counts it
//! (`query_phases`).

mod breakdown;
mod clients;

use crate::arguments;
use crate::driver::socket::{Client, Login};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::Usage;
use crate::progress::Progress;
use crate::report::text::table_text;
use crate::report::{Format, print};
use crate::scratch::Scratch;
use crate::target::{self, Context, TargetSpec};
use crate::workload::{DATABASE, Sbtest};
use breakdown::{Breakdown, Reading};
use clients::{Clients, Kind};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) const HELP: &str = "\
latchwork lab explain points|updates [options]

Starts a Latchwork server, measures one cell, and shows what a query spends its time on: the network's system calls,
parsing, planning, secondary index, rows, log, waiting for latches, waiting for row locks, and the rest. Shows the
counters too, and says what to change first.

  points                SELECT id, k, c, pad FROM sbtest1 WHERE k IN (...)
  updates               UPDATE sbtest1 SET c = ... WHERE id = ..., each its own transaction

  --target T            latchwork or latchwork:PRESET (default: latchwork)
  --points N            keys in the IN list (default: 10)
  --threads N           clients at once (default: 8); also --sessions
  --rows N              rows of sbtest1: 500k, 2M (default: 100k)
  --text                statements as text instead of prepared
  --server-option=--X   one more option for the server, such as --innodb_flush_log_at_trx_commit=2 (repeatable)
  --warmup S, --time S  before measuring, and while measuring (default: 1 and 3)
  --format table|json   (default: table)
  --scratch FOLDER      where the server keeps its data (default: the temporary folder)

A phase is time by the clock, not processor time: with more sessions than processors, a thread may wait for a processor
in any phase. The server's processor time, as the operating system counts it, is shown below the phases. The server reads
the clock at each change of phase. The number of these readings and their cost are shown too; the phases include them.
";

struct Options {
    kind: Kind,
    target: TargetSpec,
    threads: u32,
    rows: u32,
    warmup: Duration,
    time: Duration,
    format: Format,
    scratch: PathBuf,
    server_options: Vec<String>,
}

const NAMES: [&str; 10] = [
    "--target",
    "--points",
    "--threads",
    "--sessions",
    "--rows",
    "--warmup",
    "--time",
    "--format",
    "--scratch",
    "--server-option",
];

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let (mut points, mut is_text) = (10, false);
        let mut options = Options {
            kind: Kind::Points { points, is_text },
            target: TargetSpec::Latchwork(None),
            threads: 8,
            rows: 100_000,
            warmup: Duration::from_secs(1),
            time: Duration::from_secs(3),
            format: Format::Table,
            scratch: std::env::temp_dir(),
            server_options: Vec::new(),
        };
        let words = arguments::read_with_files(args, &NAMES, &["--text"], |name, value| {
            match name {
                "--target" => options.target = TargetSpec::parse(value)?,
                "--points" => points = arguments::number(value, 1, 65_535)?,
                "--threads" | "--sessions" => options.threads = arguments::number(value, 1, 10_000)?,
                "--rows" => {
                    let rows = arguments::count(value)?;
                    let rows = u32::try_from(rows).ok().filter(|rows| *rows > 0);
                    options.rows = rows.ok_or("from 1 to 4294967295")?;
                }
                "--warmup" => options.warmup = arguments::duration(value)?,
                "--time" => options.time = arguments::duration(value)?,
                "--format" => options.format = arguments::format(value)?,
                "--scratch" => options.scratch = PathBuf::from(value),
                "--server-option" => options.server_options.push(value.to_string()),
                _ => is_text = true,
            }
            Ok(())
        })?;
        if !matches!(options.target, TargetSpec::Latchwork(_)) {
            return Err("only a Latchwork server counts its phases; use --target latchwork".to_string());
        }
        options.kind = match &words[..] {
            [word] if word == "points" => Kind::Points { points, is_text },
            [word] if word == "updates" => Kind::Updates { is_text },
            [other] => return Err(super::closest("workload", other, ["points", "updates"])),
            _ => return Err("`explain` needs one workload: points or updates".to_string()),
        };
        Ok(options)
    }
}

pub(crate) fn run(args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
    let options = Options::parse(args).map_err(Error::Usage)?;
    let breakdown = measure(&options, interrupt, progress)?;
    progress.finish();
    let title = format!("{}, {} sessions, {}", options.kind.title(), options.threads, options.target.name());
    print(&match options.format {
        Format::Table => {
            let table = table_text(&breakdown.table(&title));
            let counters = table_text(&breakdown.counters());
            format!("{table}\n{counters}\n{}\n", breakdown.sentences().join("\n"))
        }
        Format::Json => breakdown.to_json(&title).to_pretty(),
    })
}

fn measure(options: &Options, interrupt: &Interrupt, progress: &mut Progress) -> Result<Breakdown> {
    let scratch = Scratch::create(&options.scratch)?;
    let folder = scratch.folder("explain")?;
    // The cache holds everything.
    let cache_bytes = (u64::from(options.rows) * 700).max(128 << 20).next_multiple_of(1 << 20);
    let connections_max = (options.threads + 32).max(256);
    let mut server =
        target::scratch_server(&options.target, cache_bytes, connections_max, options.server_options.clone())
            .ok_or_else(|| Error::Usage("the lab does not start such a server".to_string()))?;
    let mut context = Context { interrupt, progress, folder: &folder };
    let mut login = server.start(&folder, &mut context)?;
    let table = Sbtest { rows: options.rows, seed: 303 };
    let mut control = login.connect()?;
    control.run(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}").as_bytes())?;
    login.database = Some(DATABASE.to_string());
    control = login.connect()?;
    control.run(table.create_sql(server.engine()).as_bytes())?;
    target::load_rows(&mut control, "latchwork", &table, interrupt, progress)?;
    control.run(table.index_sql().as_bytes())?;
    for variable in ["query_phases", "latch_statistics"] {
        control.run(format!("SET GLOBAL {variable} = ON").as_bytes())?;
    }
    let breakdown = account(
        options,
        &login,
        &mut control,
        &table,
        &|| server.process().and_then(|process| Usage::of(&process)),
        interrupt,
        progress,
    )?;
    server.stop()?;
    Ok(breakdown)
}

fn account(
    options: &Options,
    login: &Login,
    control: &mut Client,
    table: &Sbtest,
    usage: &dyn Fn() -> Option<Usage>,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<Breakdown> {
    let clients = Clients::start(login, options.kind, options.threads, table)?;
    progress.stage("measuring", 0);
    wait(options.warmup, interrupt)?;
    let before = Reading::take(control, usage())?;
    wait(options.time, interrupt)?;
    let after = Reading::take(control, usage())?;
    clients.stop()?;
    Breakdown::between(&before, &after).ok_or_else(|| Error::Server {
        target: options.target.name(),
        why: "no query was answered in the time measured; give it more with --time".to_string(),
        log: String::new(),
    })
}

fn wait(time: Duration, interrupt: &Interrupt) -> Result<()> {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        interrupt.check()?;
        sleep(left.min(Duration::from_millis(50)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_cell_is_named_as_runs_name_it() {
        let options = parse("points --points 50 --sessions 3 --rows 2k --text --time 0.5").unwrap();
        assert_eq!(options.kind, Kind::Points { points: 50, is_text: true });
        assert_eq!((options.threads, options.rows), (3, 2_000));
        assert_eq!(parse("updates --threads 2").unwrap().kind, Kind::Updates { is_text: false });
    }

    #[test]
    fn what_cannot_be_explained_is_refused() {
        for (line, told) in [
            ("", "points or updates"),
            ("pionts", "did you mean `points`?"),
            ("points updates", "one workload"),
            ("points --target null", "only a Latchwork server"),
            ("points --rows 0", "from 1"),
            ("points --thread 1", "did you mean `--threads`?"),
        ] {
            let message = parse(line).err().unwrap();
            assert!(message.contains(told), "{line}: {message}");
        }
    }
}
