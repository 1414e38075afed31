//! Isolation from outside: scripts of several sessions, on MariaDB's InnoDB and on Latchwork. The scripts are
//! in `tests/isolation` of the repository; docs/isolation.md says how to read, run and record them, and what
//! differs.

mod runner;
mod script;
mod session;
mod status_flags;

use crate::support::target::{Proof, Server, Target, targets};
use script::{Script, Transcript};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The outcome of a statement that is still waiting for another session.
const WAITS: &str = "waits";
/// The outcome of a step whose session cannot send anything, because it waits.
const NOT_SENT: &str = "not sent, it waits";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Level {
    pub const ALL: [Level; 4] =
        [Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

    /// The level's name in scripts.
    pub fn short(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "RU",
            Level::ReadCommitted => "RC",
            Level::RepeatableRead => "RR",
            Level::Serializable => "SE",
        }
    }

    pub fn sql(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "READ UNCOMMITTED",
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Serializable => "SERIALIZABLE",
        }
    }

    fn parse(word: &str) -> Result<Level, String> {
        let found = Level::ALL.into_iter().find(|level| level.short() == word);
        found.ok_or_else(|| format!("'{word}' is no level; they are RU RC RR SE"))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All scripts and their files; `LATCHWORK_SCRIPT=name` picks one.
fn scripts() -> Vec<(PathBuf, Script)> {
    let wanted = std::env::var("LATCHWORK_SCRIPT").ok();
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/isolation")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "script")
            && wanted.as_ref().is_none_or(|wanted| *wanted == name)
        {
            let script = Script::parse(&name, &std::fs::read_to_string(&path).unwrap());
            scripts.push((path, script.unwrap_or_else(|why| panic!("{why}"))));
        }
    }
    scripts.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert!(!scripts.is_empty(), "there is no such script");
    scripts
}

/// A run beside its expectation, with marks at the lines that differ. `None` if no line differs.
fn difference(script: &Script, level: Level, target: Target, got: &Transcript) -> Option<String> {
    let expected = script.expected(level, target);
    if expected == *got {
        return None;
    }
    let mut text = format!("\n[{}] at {} on {target:?}\n", script.name, level.sql());
    for (position, step) in script.steps().enumerate() {
        text += &format!("    {}: {}\n", step.session, step.sql);
        let (Some(expected), got) = (expected.get(position), got.get(position)) else { continue };
        let Some(got) = got else {
            text += "!       not reached\n";
            continue;
        };
        let sessions: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
        for session in sessions {
            let who = if *session == step.session { String::new() } else { format!("{session} ") };
            match (expected.get(session), got.get(session)) {
                (expected, got) if expected == got => {
                    text += &format!("        {who}-> {}\n", got.unwrap());
                }
                (expected, got) => {
                    let nothing = "(nothing)".to_string();
                    text += &format!("!       {who}expected {}\n", expected.unwrap_or(&nothing));
                    text += &format!("!       {who}got      {}\n", got.unwrap_or(&nothing));
                }
            }
        }
    }
    Some(text)
}

#[test]
fn sessions_see_what_the_isolation_scripts_say() {
    for target in targets(Proof::Isolation) {
        let scratch = tempfile::tempdir().unwrap();
        let server = target.start(scratch.path());
        let (mut runs, mut report) = (0, Vec::new());
        for (_, script) in scripts() {
            for &level in &script.levels {
                let got = runner::run(&server, &script, level, &script.expected(level, target));
                runs += 1;
                report.extend(difference(&script, level, target, &got));
            }
        }
        println!("{target:?}: {runs} runs");
        assert!(report.is_empty(), "{} of {runs} runs differ\n{}", report.len(), report.concat());
    }
}

/// With `LATCHWORK_RECORD` set, this writes what MariaDB does into the scripts. Otherwise it checks that all
/// have been recorded.
#[test]
fn every_step_of_every_script_has_an_expectation() {
    if std::env::var_os("LATCHWORK_RECORD").is_some() {
        let scratch = tempfile::tempdir().unwrap();
        let server = Target::MariaDb.start(scratch.path());
        for (path, script) in scripts() {
            let run = |&level: &Level| {
                let known = script.expected(level, Target::MariaDb);
                (level, runner::run(&server, &script, level, &known))
            };
            let recorded = script.recorded(&script.levels.iter().map(run).collect());
            std::fs::write(path, recorded.to_text()).unwrap();
        }
    }
    for (_, script) in scripts() {
        for &level in &script.levels {
            for (step, seen) in script.steps().zip(script.expected(level, Target::MariaDb)) {
                let outcome = &seen[&step.session];
                assert!(!outcome.is_empty(), "{}: {} at {}", script.name, step.sql, level.short());
            }
        }
    }
}

/// The table of differences in docs/isolation.md: the scripts by reason.
fn documented_differences() -> BTreeMap<String, BTreeSet<String>> {
    let document = std::fs::read_to_string(root().join("docs/isolation.md")).unwrap();
    let mut differences = BTreeMap::new();
    for line in document.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", reason, _, scripts, ""] = cells[..]
            && let Some(reason) = reason.strip_prefix('`')
        {
            let scripts = scripts.split(", ").map(str::to_string).collect();
            differences.insert(reason.trim_end_matches('`').to_string(), scripts);
        }
    }
    differences
}

#[test]
fn the_document_lists_every_difference_that_a_script_expects_and_no_other() {
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, script) in scripts() {
        for reason in script.reasons() {
            expected.entry(reason).or_default().insert(script.name.clone());
        }
    }
    let documented = documented_differences();
    if std::env::var_os("LATCHWORK_SCRIPT").is_none() {
        assert_eq!(documented, expected, "docs/isolation.md (left), the scripts (right)");
    }
}

/// How many of these connections wait for a lock, according to the server.
fn waiting(server: &Server, observer: &mut crate::support::target::Client, ids: &[u32]) -> usize {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    let rows = observer.query("SHOW PROCESSLIST").unwrap().to_text();
    let in_processlist = rows.iter().filter(|row| ids.contains(&row[0]) && row[6].starts_with("Waiting for"));
    let count = in_processlist.count();
    match server {
        Server::Latchwork(_) => count,
        // The process list does not show waits for InnoDB's row locks. INNODB_TRX is a copy that is renewed
        // only if nobody has read it for a tenth of a second. This count is exact, and only the script's
        // sessions can be waiting.
        Server::MariaDb(_) => {
            let sql = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";
            count + observer.query(sql).unwrap().to_text()[0][1].parse::<usize>().unwrap()
        }
    }
}
