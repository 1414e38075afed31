//! The same statements on MariaDB and on Latchwork, with the same outcome: rows, headers, counts, warnings,
//! error numbers, SQLSTATEs and messages. `sql/differences.txt` lists what may differ, with the reason.

use crate::support::transcript::{self, SelectWarnings};
use crate::support::{Latchwork, MariaDb, have, mariadb};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A script's name and text.
pub type Script = (String, String);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/sql")
}

/// The scripts of the folder and the generated ones. `LATCHWORK_SCRIPT=name` picks one.
pub fn scripts() -> Vec<Script> {
    let mut scripts: Vec<Script> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    scripts.sort();
    scripts.extend(crate::generated::scripts());
    if let Ok(wanted) = std::env::var("LATCHWORK_SCRIPT") {
        scripts.retain(|(name, _)| *name == wanted);
    }
    scripts
}

/// The allowed differences: the reason by script and statement.
fn allowed() -> BTreeMap<(String, String), String> {
    let text = std::fs::read_to_string(folder().join("differences.txt")).unwrap();
    let mut allowed = BTreeMap::new();
    let mut reason = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match line.strip_prefix("    ") {
            None => reason = line.trim().to_string(),
            Some(entry) => {
                let (script, statement) = entry.split_once(": ").unwrap_or_else(|| panic!("{line}"));
                allowed.insert((script.trim().to_string(), statement.to_string()), reason.clone());
            }
        }
    }
    allowed
}

#[test]
fn statements_give_what_mariadb_gives() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let mut allowed = allowed();
    let mut seen = BTreeSet::new();
    let (mut statements, mut report) = (0, String::new());
    let scripts = scripts();
    for (name, script) in &scripts {
        judge.sql("DROP DATABASE IF EXISTS corpus; CREATE DATABASE corpus");
        server.sql("DROP DATABASE IF EXISTS corpus; CREATE DATABASE corpus");
        let expected = transcript::run(&judge.socket, "corpus", script);
        let got = transcript::run(&server.socket, "corpus", script);
        assert!(!expected.is_empty(), "{name}: no statement ran");
        statements += expected.len();
        for (position, step) in got.iter().enumerate() {
            if expected.get(position).map(|step| &step.statement) != Some(&step.statement) {
                report +=
                    &format!("\n[{name}] the client lost its way: {} {}\n", step.statement, step.outcome);
                break;
            }
        }
        // Generated statements compare values of all types, which gives many warnings.
        let generated = name.starts_with("generated");
        let warnings = if generated { SelectWarnings::Ignored } else { SelectWarnings::Distinct };
        for (step, got) in expected.iter().zip(&got) {
            let (expected, got) = (step.comparable(warnings), got.comparable(warnings));
            if expected == got {
                continue;
            }
            let key = (name.clone(), step.statement.clone());
            if !allowed.contains_key(&key) {
                report += &format!(
                    "\n[{name}] {}\n--- MariaDB\n{expected}\n--- Latchwork\n{got}\n",
                    step.statement
                );
            }
            seen.insert(key);
        }
    }
    println!("{statements} statements compared, {} differ as listed", seen.len());
    let whole_run = std::env::var_os("LATCHWORK_SCRIPT").is_none();
    allowed.retain(|key, _| whole_run && !seen.contains(key));
    for ((script, statement), _) in allowed {
        report += &format!(
            "\n[{script}] {statement}\n    is listed as different and is not: take it off the list\n"
        );
    }
    if !report.is_empty() {
        let count = report.matches("\n[").count();
        panic!("{count} of {statements} statements:\n{report}");
    }
}
