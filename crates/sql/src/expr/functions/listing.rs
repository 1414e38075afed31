//! Whether every entry is complete and true, and whether `docs/functions.md` is the list of them.

use super::{Body, CATEGORIES, Function, MANY, Syntax};
use crate::expr::golden::environment::TestEnvironment;
use crate::expr::golden::evaluate;
use crate::expr::{Compiled, Context, Expr, Row, Slots};
use std::collections::HashSet;
use std::fmt::Write;
use types::{Collation, Value};

/// Calls with more arguments than this are not tried.
const ARGUMENTS_MAX: usize = 5;

/// What is wrong with an entry; nothing for one that is right.
fn complaints(function: &Function) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut check = |holds: bool, complaint: &str| {
        if !holds {
            complaints.push(format!("{}: {complaint}", function.name));
        }
    };
    check(!function.help.trim().is_empty(), "no help");
    check(function.help.ends_with('.'), "the help is not a sentence");
    check(function.names().all(|name| name == name.to_ascii_lowercase()), "a name has capital letters");
    check(function.arity.start() <= function.arity.end(), "the arity is empty");
    if function.syntax == Syntax::Plain {
        check(arity_of(function.arguments) == function.arity, "the arguments in words are not the arity");
    }
    let kept = function.aggregate().is_some() || function.window().is_some();
    let one = function.example.is_some();
    check(!(kept && one), "the example has no rows to run over");
    if let Some((expression, expected)) = function.example {
        match evaluate(expression, &TestEnvironment::default()) {
            Ok(value) => check(value == expected, &format!("{expression} gives {value}, not {expected}")),
            Err(error) => check(false, &format!("{expression} fails: {}", error.message)),
        }
    }
    complaints
}

/// How many arguments words such as `text, from[, length]` and `value, ...` stand for.
fn arity_of(words: &str) -> std::ops::RangeInclusive<usize> {
    let repeats = words.contains("...");
    let count = |words: &str| {
        let words = words.split(',').map(|word| word.trim_matches([' ', '[', ']']));
        words.filter(|word| !word.is_empty() && *word != "...").count()
    };
    let all = count(words);
    let optional: usize =
        words.split('[').skip(1).map(|part| count(part.split(']').next().unwrap_or(""))).sum();
    all - optional..=if repeats { MANY } else { all }
}

#[test]
fn every_entry_is_complete_and_its_example_true() {
    let wrong: Vec<String> = Function::all().flat_map(complaints).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_poor_entry_is_noticed() {
    let poor = Function {
        name: "Left",
        aliases: &[],
        arguments: "text",
        arity: 2..=2,
        syntax: super::text::LEFT.syntax,
        constancy: super::text::LEFT.constancy,
        collation: super::text::LEFT.collation,
        body: super::text::LEFT.body,
        help: "",
        example: Some(("LEFT('abc', 1)", "b")),
    };
    assert_eq!(complaints(&poor).len(), 5, "{:?}", complaints(&poor));
}

#[test]
fn no_two_functions_have_the_same_name() {
    let mut names = HashSet::new();
    let twice: Vec<&str> =
        Function::all().flat_map(Function::names).filter(|name| !names.insert(*name)).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(names.iter().all(|name| Function::lookup(&name.to_uppercase()).is_some()));
}

/// Compiles and runs a call, as a statement would.
fn call(function: &'static Function, arguments: Vec<Expr>) -> Result<(), crate::SqlError> {
    let environment = TestEnvironment::default();
    let arena = bumpalo::Bump::new();
    let context = Context { slots: Slots::EMPTY, arena: &arena, environment: &environment, subqueries: None };
    let call = Expr::Call { function, arguments };
    let compiled = Compiled::new(&call, Collation::Utf8mb4GeneralCi)?;
    compiled.evaluate(&Row::EMPTY, &context).map(|_| ())
}

#[test]
fn every_function_takes_as_few_and_as_many_arguments_as_its_entry_says() {
    for function in Function::all() {
        if !matches!(function.body, Body::Call { .. } | Body::Node(_)) {
            continue;
        }
        // JSON_OBJECT takes pairs.
        let arguments_max = ARGUMENTS_MAX - usize::from(function.arguments.starts_with("[key, value]"));
        let (fewest, most) = (*function.arity.start(), (*function.arity.end()).min(arguments_max));
        for value in [Value::Null, Value::Int(0), Value::Int(3), Value::text("2"), Value::text("äb,c")] {
            for count in [fewest, most] {
                let refuses = |count: usize| {
                    let outcome = call(function, vec![Expr::Constant(value.clone()); count]);
                    outcome.is_err_and(|error| error.code() == 1582)
                };
                // Those that come in pairs are repeated in pairs.
                let repeats = count == ARGUMENTS_MAX && *function.arity.end() == MANY;
                let refused = refuses(count) && (!repeats || refuses(count - 1));
                assert!(!refused, "{function:?} refuses {count} arguments");
            }
        }
        for count in [fewest.checked_sub(1), function.arity.end().checked_add(1)].into_iter().flatten() {
            let error = call(function, vec![Expr::Constant(Value::Null); count]).unwrap_err();
            assert_eq!(error.code(), 1582, "{function:?} takes {count} arguments");
        }
    }
}

/// `docs/functions.md`.
fn document() -> String {
    let mut out = String::from(
        "# Functions\n\nThe built-in functions by category. `[, x]` may be left out, `...` may be repeated. A client \
         gets the\nsame texts from `HELP 'name'` and `HELP functions`. This file is made from the entries in\n\
         `crates/sql/src/expr/functions`.\n",
    );
    for category in CATEGORIES {
        let _ =
            write!(out, "\n## {}\n\n| function | what it gives | example |\n|---|---|---|\n", category.title);
        for function in category.functions {
            let cell = |text: &str| text.replace('|', "\\|");
            let aliases: Vec<String> =
                function.aliases.iter().map(|name| format!("`{}`", name.to_uppercase())).collect();
            let also =
                if aliases.is_empty() { String::new() } else { format!(" Also {}.", aliases.join(", ")) };
            let example =
                function.example.map_or(String::new(), |(call, value)| format!("`{call}` is `{value}`"));
            let _ = writeln!(
                out,
                "| `{}({})` | {}{} | {} |",
                function.name.to_uppercase(),
                cell(function.arguments),
                cell(function.help),
                also,
                cell(&example)
            );
        }
    }
    out
}

#[test]
fn the_document_lists_the_functions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/functions.md");
    let wanted = document();
    if std::env::var_os("LATCHWORK_UPDATE").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == wanted,
        "docs/functions.md is old: run LATCHWORK_UPDATE=1 cargo test -p latchwork-sql --lib \
         the_document_lists_the_functions"
    );
}
