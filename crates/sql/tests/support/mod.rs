//! A session over a scratch database, and results as text.

// Each test file uses a part of this.
#![allow(dead_code)]

use engine::{CacheOptions, Database, Options};
use latchwork_sql::{ColumnMeta, Completion, Instance, ResultSink, Session, SqlError};
use std::sync::Arc;
use types::ValueRef;

/// A fresh database `test` and a session in it.
pub struct World {
    pub session: Session,
    _folder: tempfile::TempDir,
}

pub fn world() -> World {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let options = Options {
        cache: CacheOptions { size_bytes: 8 << 20, ..CacheOptions::default() },
        create: true,
        ..Options::default()
    };
    let database = Database::open(folder.path(), options).expect("a new database");
    database.create_database("test", &[]).expect("a database");
    let instance: Arc<Instance> = Instance::new(database);
    let mut session = Session::new(instance, 1, "root", "localhost");
    session.use_database("test").expect("the database");
    World { session, _folder: folder }
}

/// Gathers results as lines.
#[derive(Default)]
pub struct Lines {
    pub lines: Vec<String>,
    pub metas: Vec<ColumnMeta>,
    is_result: bool,
}

impl ResultSink for Lines {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.is_result = true;
        self.metas = columns.to_vec();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        self.lines.push(names.join(" | "));
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let values: Vec<String> = row.iter().map(text).collect();
        self.lines.push(values.join(" | "));
        Ok(())
    }

    fn end(&mut self, completion: &Completion) -> Result<(), SqlError> {
        if !self.is_result {
            self.lines.push(format!("ok, {} rows", completion.affected_rows));
        }
        if completion.warnings > 0 {
            self.lines.push(format!("{} warnings", completion.warnings));
        }
        self.is_result = false;
        Ok(())
    }
}

/// A value as a client prints it.
pub fn text(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_string(),
        ValueRef::Int(number) => number.to_string(),
        ValueRef::UInt(number) => number.to_string(),
        ValueRef::Float(number) => {
            let mut out = String::new();
            types::number::write_f32(*number, &mut out);
            out
        }
        ValueRef::Double(number) => {
            let mut out = String::new();
            types::number::write_f64(*number, &mut out);
            out
        }
        ValueRef::Decimal(number) => number.to_string(),
        ValueRef::Date(date) => date.to_string(),
        ValueRef::Time(time) => time.to_string(),
        ValueRef::DateTime(moment) => moment.to_string(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Binary(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(|c: char| c.is_control()) => text.to_string(),
            _ => format!("0x{}", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
        },
    }
}

impl World {
    /// Runs a statement; its result, or its error, as lines.
    pub fn run(&mut self, sql: &str) -> Vec<String> {
        let mut lines = Lines::default();
        match self.session.query(sql.as_bytes(), &mut lines) {
            Ok(()) => lines.lines,
            Err(error) => vec![error.to_string()],
        }
    }

    /// The rows of a query, without the header.
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        let mut lines = Lines::default();
        self.session.query(sql.as_bytes(), &mut lines).unwrap_or_else(|error| panic!("{sql}: {error}"));
        lines.lines.remove(0);
        lines.lines.retain(|line| !line.ends_with(" warnings"));
        lines.lines
    }
}
