//! The help texts of the commands.

use crate::experiment::{self, Experiment};

pub(crate) const OVERVIEW: &str = "\
The performance lab: measures what a cache's latches cost, on Latchwork and on any MySQL-protocol server.

  latchwork lab list                   the experiments, the targets and the drivers
  latchwork lab doctor [options]       what would spoil the figures on this machine, and what to change
  latchwork lab run EXPERIMENT [...]   measure; --help explains the options
  latchwork lab report FILE [...]      one page of any number of results
  latchwork lab compare OLD NEW        what changed between two results, cell by cell
  latchwork lab explain points|updates what a query spends its time on, on a Latchwork server

Start with
  latchwork lab run segments
which takes under two minutes, needs nothing installed, and ends with a table and the path of a report.
";

pub(crate) const DOCTOR: &str = "\
latchwork lab doctor [options of `lab run`]

Checks whether figures from this machine can be trusted: open-file limit against the number of threads, free
memory and disk for the planned sizes, I/O scheduler, CPU governor, transparent huge pages, swap, clock source,
other load, stolen time, control group limits. Says what to change. Takes the options of `lab run`, so that
`latchwork lab doctor --paper` checks for the published sizes. Exit status 2 if a run could not work.
";

pub(crate) fn list() -> String {
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
        (
            "...?ssl-mode=REQUIRED, ...?ssl-mode=VERIFY_CA&ssl-ca=FILE, or VERIFY_IDENTITY",
            "the same with TLS: any certificate, one that FILE vouches for, or one that also names the host",
        ),
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

/// All experiments, and the options of `segments` as an example: those of the others are alike.
pub(crate) fn run() -> String {
    let mut text = "latchwork lab run EXPERIMENT [options]\n\n".to_string();
    for experiment in experiment::all() {
        text.push_str(&format!("{}: {}\n", experiment.name(), experiment.title()));
        text.push_str(&wrapped(experiment.question(), 2));
    }
    text.push_str("\nThe options of each: latchwork lab run EXPERIMENT --help. Those of `segments`:\n\n");
    text.push_str(&experiment::Segments.options());
    text
}

/// An experiment and its options.
pub(crate) fn of(experiment: &dyn Experiment) -> String {
    format!(
        "latchwork lab run {} [options]\n\n{}\n{}\n{}",
        experiment.name(),
        experiment.title(),
        wrapped(experiment.question(), 2),
        experiment.options()
    )
}

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
