//! Golden scripts: `statements/*.txt`, statements after `> `, each with its answer below.
//!
//! `UPDATE_GOLDEN=1 cargo test -p latchwork-sql --test statements` writes the answers anew; read the
//! difference before committing it.

use engine::{CacheOptions, Database, Options};
use latchwork_sql::{ColumnMeta, Completion, Instance, ResultSink, Session, SqlError};
use std::fmt::Write;
use std::path::Path;
use types::ValueRef;

/// Renders results as the scripts have them.
#[derive(Default)]
struct Rendered(String);

fn render(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Int(value) => value.to_string(),
        ValueRef::UInt(value) => value.to_string(),
        ValueRef::Float(value) => value.to_string(),
        ValueRef::Double(value) => value.to_string(),
        ValueRef::Decimal(value) => value.to_string(),
        ValueRef::Date(value) => value.to_string(),
        ValueRef::Time(value) => value.to_string(),
        ValueRef::DateTime(value) => value.to_string(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).replace('\n', "\n| "),
        ValueRef::Binary(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => format!("0x{}", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
        },
    }
}

impl ResultSink for Rendered {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        writeln!(self.0, "[{}]", names.join(", ")).map_err(|_| SqlError::empty_query())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let values: Vec<String> = row.iter().map(render).collect();
        writeln!(self.0, "| {}", values.join(", ")).map_err(|_| SqlError::empty_query())
    }

    fn end(&mut self, completion: &Completion) -> Result<(), SqlError> {
        let mut line = Vec::new();
        if completion.affected_rows > 0 {
            line.push(format!("affected {}", completion.affected_rows));
        }
        if completion.last_insert_id > 0 {
            line.push(format!("id {}", completion.last_insert_id));
        }
        if !completion.info.is_empty() {
            line.push(completion.info.clone());
        }
        if completion.warnings > 0 {
            line.push(format!("warnings {}", completion.warnings));
        }
        if !self.0.contains('[') || !line.is_empty() {
            writeln!(self.0, "ok {}", line.join("; ")).map_err(|_| SqlError::empty_query())?;
        }
        Ok(())
    }
}

fn run(session: &mut Session, statement: &str) -> String {
    let mut rendered = Rendered::default();
    if let Err(error) = session.query(statement.as_bytes(), &mut rendered) {
        let _ = writeln!(rendered.0, "{error}");
    }
    rendered.0.lines().map(str::trim_end).fold(String::new(), |text, line| text + line + "\n")
}

fn check(path: &Path, update: bool) -> Result<(), String> {
    let script = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let options = Options {
        cache: CacheOptions { size_bytes: 1 << 22, segments: 2, ..CacheOptions::default() },
        create: true,
        ..Options::default()
    };
    let database =
        Database::open(&folder.path().join("data"), options).map_err(|error| format!("{error:?}"))?;
    let instance = Instance::new(database);
    let mut session = Session::new(instance.clone(), 1, "root", "localhost");
    for statement in ["CREATE DATABASE test", "USE test"] {
        run(&mut session, statement);
    }
    let mut written = String::new();
    let mut lines = script.lines().peekable();
    let mut failures = Vec::new();
    while let Some(line) = lines.next() {
        written += line;
        written.push('\n');
        let Some(first) = line.strip_prefix("> ") else { continue };
        let mut statement = first.to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with(">> ")) {
            written += more;
            written.push('\n');
            statement += "\n";
            statement += &more[3..];
        }
        let mut expected = String::new();
        while let Some(line) =
            lines.next_if(|line| !line.starts_with("> ") && !line.is_empty() && !line.starts_with('#'))
        {
            expected += line;
            expected.push('\n');
        }
        let found = run(&mut session, &statement);
        written += &found;
        if found != expected {
            failures.push(format!("{statement}\nexpected:\n{expected}found:\n{found}"));
        }
    }
    drop(session);
    instance.engine().close().map_err(|error| format!("{error:?}"))?;
    if update {
        return std::fs::write(path, written).map_err(|error| error.to_string());
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

#[test]
fn every_script_answers_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failures = String::new();
    let mut scripts: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of scripts")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        if let Err(failure) = check(&script, update) {
            let _ = writeln!(failures, "== {}\n{failure}", script.display());
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
