//! Expressions and their results in MariaDB.
//!
//! A script is lines of `expression => result`. A result is the value's text, `ERROR number`, or NULL, and
//! behind it `! numbers` of the warnings if there are any. `#` starts a comment. The results are those of
//! MariaDB 10.11: `mariadb_still_says_the_same` writes them with `MARIADB_RECORD=1`. Where Latchwork differs
//! on purpose, the line ends with `?? result` and what Latchwork gives.

pub(crate) mod environment;
mod nasty;
mod record;

use super::{Compiled, Context, Environment, Row, Slots};
use crate::SqlError;
use crate::plan::bind::Binder;
use crate::plan::scope::Scope;
pub(crate) use environment::TestEnvironment;
use sqlparser::ast;
use std::path::PathBuf;
use types::{Collation, ValueRef};

const SCRIPTS: [&str; 5] = ["numbers", "logic", "texts", "conversions", "times"];

fn path(script: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/expr/golden/{script}.txt"))
}

/// One line of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Line {
    /// A comment or nothing.
    Other(String),
    Case {
        expression: String,
        /// MariaDB's result.
        recorded: Option<String>,
        /// Ours, where it differs.
        ours: Option<String>,
    },
}

fn lines(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        if line.trim().is_empty() || line.starts_with('#') {
            return Line::Other(line.to_string());
        }
        let (expression, results) = match line.split_once(" => ") {
            Some((expression, results)) => (expression, Some(results)),
            None => (line, None),
        };
        let (recorded, ours) = match results.and_then(|results| results.split_once(" ?? ")) {
            Some((recorded, ours)) => (Some(recorded), Some(ours.to_string())),
            None => (results, None),
        };
        Line::Case {
            expression: expression.trim().to_string(),
            recorded: recorded.map(|recorded| recorded.trim_end().to_string()),
            ours,
        }
    };
    text.lines().map(line).collect()
}

/// The value as a client sees it, or the error, and the warnings.
fn result_of(expression: &str) -> String {
    let environment = TestEnvironment::default();
    let value = match evaluate(expression, &environment) {
        Ok(value) => value,
        Err(error) => format!("ERROR {}", error.code()),
    };
    let warnings = environment.warnings.borrow();
    match warnings.as_slice() {
        [] => value,
        warnings => {
            let numbers: Vec<String> = warnings.iter().map(u16::to_string).collect();
            format!("{value} ! {}", numbers.join(" "))
        }
    }
}

pub(crate) fn evaluate(expression: &str, environment: &dyn Environment) -> Result<String, SqlError> {
    let statement =
        crate::text::parse::parse(&format!("SELECT {expression}"), crate::text::LexicalMode::NONE)?;
    let crate::text::parse::Statement::Query(query) = &statement else { panic!("{expression}: no query") };
    let ast::SetExpr::Select(select) = &*query.body else { panic!("{expression}: no select") };
    let (ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) =
        &select.projection[0]
    else {
        panic!("{expression}: no expression")
    };
    let scope = Scope::default();
    let bound = Binder::new(&scope, &[], "field list").bind(expr)?;
    let compiled = Compiled::new(&bound, Collation::Utf8mb4GeneralCi)?;
    let arena = bumpalo::Bump::new();
    let context = Context { slots: Slots::EMPTY, arena: &arena, environment, subqueries: None };
    let value = compiled.evaluate(&Row::EMPTY, &context)?;
    if value.is_null() {
        assert!(compiled.result_type().nullable, "{expression}: NULL of what cannot be");
        return Ok("NULL".into());
    }
    Ok(match value {
        ValueRef::Binary(bytes) | ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Double(number) if compiled.result_type().decimals < 31 => {
            format!("{number:.*}", compiled.result_type().decimals as usize)
        }
        _ => {
            let mut text = String::new();
            super::evaluate::write_text(&value, &mut text);
            text
        }
    })
}

#[test]
fn expressions_give_what_mariadb_gives() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for script in SCRIPTS {
        let text = std::fs::read_to_string(path(script)).unwrap();
        for line in lines(&text) {
            let Line::Case { expression, recorded, ours } = line else { continue };
            let expected = ours.or(recorded).unwrap_or_default();
            let result = result_of(&expression);
            count += 1;
            if result.trim_end() != expected.trim_end() {
                wrong.push(format!("{script}: {expression}\n    expected {expected}\n    got      {result}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
