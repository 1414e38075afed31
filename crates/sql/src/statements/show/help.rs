//! HELP: the functions and their texts, from the entries of [`crate::expr::functions`].
//!
//! As in MySQL, the answer has one of three forms. One function is a row of `name`, `description` and
//! `example`. The members of one category are rows of `source_category_name`, `name` and `is_it_category`. In
//! all other cases (several functions or categories, or nothing found) the rows have `name` and
//! `is_it_category`.

use super::filter::like;
use super::listing::{Listing, characters};
use crate::expr::Function;
use crate::expr::functions::{CATEGORIES, Category};
use crate::text::parse::{Word, Words};
use crate::{ResultSink, Session, SqlError};
use types::Value;

/// The names of the category that contains all categories.
const ALL: [&str; 2] = ["Contents", "Functions"];

/// HELP, behind that word: a name, or a pattern for LIKE.
///
/// # Errors
/// 1064 for anything but one name or text; those of the sink.
pub(crate) fn help(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let wanted = match words.peek() {
        Word::Text(_) => words.string()?,
        _ => words.name()?,
    };
    words.end()?;
    answer(&wanted).send(session, sink)
}

fn answer(wanted: &str) -> Listing {
    let functions: Vec<&Function> =
        Function::all().filter(|function| function.names().any(|name| like(name, wanted))).collect();
    let categories: Vec<&Category> =
        CATEGORIES.into_iter().filter(|category| like(category.title, wanted)).collect();
    match (functions.as_slice(), categories.as_slice()) {
        ([function], _) => description(function),
        ([], [category]) => members(
            category.title,
            category.functions.iter().map(|function| (function.name.to_uppercase(), "N")),
        ),
        (functions, categories) => {
            if let Some(all) = ALL.into_iter().find(|all| all.eq_ignore_ascii_case(wanted)) {
                return members(all, CATEGORIES.map(|category| (category.title.to_owned(), "Y")));
            }
            let mut listing = Listing::new([("name", characters(64)), ("is_it_category", characters(1))]);
            for function in functions {
                listing.push(vec![Value::text(function.name.to_uppercase()), Value::text("N")]);
            }
            for category in categories {
                listing.push(vec![Value::text(category.title), Value::text("Y")]);
            }
            listing
        }
    }
}

fn description(function: &Function) -> Listing {
    let columns =
        [("name", characters(64)), ("description", characters(4096)), ("example", characters(4096))];
    let mut listing = Listing::new(columns);
    let written = |name: &str| format!("{}({})", name.to_uppercase(), function.arguments);
    let forms: Vec<String> = function.names().map(written).collect();
    let example = match function.example {
        Some((call, result)) => format!("SELECT {call};\n        -> {result}\n"),
        None => String::new(),
    };
    listing.push(vec![
        Value::text(function.name.to_uppercase()),
        Value::text(format!("Syntax:\n{}\n\n{}\n", forms.join(", "), function.help)),
        Value::text(example),
    ]);
    listing
}

fn members(category: &str, members: impl IntoIterator<Item = (String, &'static str)>) -> Listing {
    let columns = [
        ("source_category_name", characters(64)),
        ("name", characters(64)),
        ("is_it_category", characters(1)),
    ];
    let mut listing = Listing::new(columns);
    for (name, is_category) in members {
        listing.push(vec![Value::text(category), Value::text(name), Value::text(is_category)]);
    }
    listing
}
