//! Help that teaches.

use crate::experiment;
use crate::target::TargetSpec;

pub const OVERVIEW: &str = "\
The performance lab: measures what a cache's latches cost, on Latchwork and on any MySQL-protocol server.

  latchwork lab list                   the experiments, the targets and the drivers
  latchwork lab doctor [options]       what on this machine would spoil the figures, and what to change
  latchwork lab run EXPERIMENT [...]   measure; --help explains the options
  latchwork lab report FILE [...]      one page of any number of results
  latchwork lab compare OLD NEW        what changed between two results, cell by cell
  latchwork lab explain points|updates what a query's time goes to on a Latchwork server

Start with
  latchwork lab run segments
which takes under two minutes, needs nothing installed, and ends with a table and the path of a report.
";

pub const DOCTOR: &str = "\
latchwork lab doctor [options of `lab run`]

Checks what decides whether figures can be trusted: open-file limit against the number of threads, free
memory and disk for the planned sizes, I/O scheduler, CPU governor, transparent huge pages, swap, clock source,
other load, stolen time, control group limits. Says what to change. Takes the options of `lab run`, so that
`latchwork lab doctor --paper` checks for the published sizes. Exit status 2 if a run could not work.
";

pub fn list() -> String {
    let mut text = "experiments\n".to_string();
    for experiment in experiment::all() {
        text.push_str(&format!("  {:<18} {}\n", experiment.name(), experiment.title()));
    }
    text.push_str("\ntargets (--target, several separated by commas)\n");
    for (name, what) in [
        ("embedded", "the engine in this process: no sockets, no SQL (the default)"),
        ("latchwork", "a Latchwork server, started on a scratch folder and a unix socket"),
        (
            "latchwork:PRESET, embedded:PRESET",
            "the same as the published servers were, for `lab run smp`: base, tc4, smpfix, notcmalloc, onlymalloc",
        ),
        ("mariadb:myisam", "the distribution's MariaDB, started likewise, with its own key_cache_segments"),
        (
            "mariadb:aria, mariadb:innodb, mariadb:rocksdb",
            "its other engines, which have no segments to sweep",
        ),
        ("null", "answers with constant rows and does no work: the ceiling of any server"),
        ("mysql://user[:password]@host[:port]/db", "a server that runs already, by TCP"),
        ("/path/to/socket", "a server that runs already, by unix socket (user root, database sbtest)"),
    ] {
        text.push_str(&format!("  {name}\n        {what}\n"));
    }
    text.push_str("\ndrivers (--driver)\n");
    text.push_str(
        "  builtin      the lab's own clients; cost less CPU a query than sysbench (the default)\n",
    );
    text.push_str("  sysbench     the distribution's sysbench, select_random_points; servers only\n");
    text
}

/// What there is to run, and the options of the first experiment, which the others take after.
pub fn run() -> String {
    let mut text = "latchwork lab run EXPERIMENT [options]\n\n".to_string();
    for experiment in experiment::all() {
        text.push_str(&format!("{}: {}\n", experiment.name(), experiment.title()));
        text.push_str(&wrapped(experiment.question(), 2));
    }
    text.push_str("\nThe options of each: latchwork lab run EXPERIMENT --help. Those of `segments`:\n\n");
    text.push_str(&segments_options());
    text
}

/// An experiment and its options.
pub fn of(experiment: &dyn experiment::Experiment) -> String {
    format!(
        "latchwork lab run {} [options]\n\n{}\n{}\n{}",
        experiment.name(),
        experiment.title(),
        wrapped(experiment.question(), 2),
        experiment.options()
    )
}

/// The options of `segments`.
pub fn segments_options() -> String {
    format!(
        "\
What to measure
  --target T[,T]        {}
                        (default: embedded; repeatable)
  --segments N[,N]      key_cache_segments: 0 or off (one mutex, the baseline), 1 to 64, auto
                        (default: 0,32,64,auto)
  --hit-path P[,P]      key_cache_hit_path: locked (mutex taken, page pinned, as MyISAM does),
                        optimistic (nothing shared is written) (default: both)
  --threads N[,N]       clients at once, the columns of the tables (default: 1,8,64)
  --points N[,N]        keys in the IN list, the blocks of the tables (default: 10,50,100)
  --rows N              rows of sbtest1: 500k, 2M (default: 500k)
  --cache-size BYTES    cache of every target: 512M, 8G (default: holds all; MyISAM's key buffer 512M)

How to measure
  --driver D            builtin or sysbench; the embedded target is always driven in process
  --warmup S, --time S  before a sample, and its measured window: 2, 0.5, 500ms, 8min
                        (default: so that a target takes about a minute)
  --samples N           samples a cell, each in a round of its own (default: 3)
  --seed N              of rows, queries and the order of turns (default: 303, as in the study)
  --paper               the published sizes and durations: 20 million rows, 1 to 128 threads,
                        8 minutes of warm-up and 20 measured a cell (split over the samples)
  --mariadb-option=--X  one more option for the MariaDB servers (repeatable)

Where it goes
{PLACES}
Cells take turns: every round measures each of them once, the series in an order drawn anew, so that a
noisy moment meets all alike. Gains compare samples of the same round. Ctrl-C keeps the cells measured so far.

Examples
  latchwork lab run segments
  latchwork lab run segments --target latchwork,mariadb:myisam,null --rows 2M --threads 8,64,128
  latchwork lab run segments --target mariadb:myisam --driver sysbench --segments 0,32,64
  latchwork lab run segments --hit-path optimistic --segments 0,auto --threads 1,2 --samples 9
",
        TargetSpec::SYNTAX.replace(", mysql", ",\n                        mysql")
    )
}

/// The options that say where things go.
pub const PLACES: &str = "\
  --format table|json   on standard output (default: table); progress goes to standard error
  --out FOLDER          result.json and report.html (default: lab-results/NAME-TIME)
  --scratch FOLDER      where servers keep their data while running (default: the temporary folder)
";

/// Breaks lines at 100 characters.
fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut line = " ".repeat(indent);
    for word in text.split_whitespace() {
        if line.len() + word.len() >= 100 {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}
