//! CHECK: conditions that the rows of a table meet.

use super::parse::skip_parentheses;
use super::{ColumnSpec, quoted};
use crate::SqlError;
use crate::text::LexicalMode;
use crate::text::parse::{Word, Words};

/// A condition of a table, besides those of its columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Check {
    pub name: String,
    /// As [`normal_text`] gives it.
    pub condition: String,
}

/// Where a CHECK is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckLevel {
    Column,
    Table,
}

/// A CHECK as a statement wrote it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CheckSpec {
    pub name: Option<String>,
    /// What stands between the parentheses, and how it is to be read.
    pub condition: String,
    pub mode: LexicalMode,
}

impl CheckSpec {
    /// The condition of a JSON column.
    pub(crate) fn of_json(column: &str) -> CheckSpec {
        let condition = format!("json_valid({})", quoted(column, LexicalMode::NONE));
        CheckSpec { name: None, condition, mode: LexicalMode::NONE }
    }
}

/// `(condition)`, behind CHECK.
///
/// # Errors
/// 1064.
pub(crate) fn check_clause(words: &mut Words<'_>, name: Option<String>) -> Result<CheckSpec, SqlError> {
    let mut inside = words.clone();
    inside.expect_symbol("(")?;
    if matches!(inside.peek(), Word::Symbol(symbol) if symbol == ")") {
        return Err(inside.error());
    }
    let end = skip_parentheses(words)?;
    let condition = inside.rest();
    let condition = condition[..condition.len() - end.len()].trim().to_owned();
    Ok(CheckSpec { name, condition, mode: words.mode() })
}

/// Words in front of a parenthesis that is not the one of a function.
const OPERATORS: &[&str] = &[
    "and", "or", "xor", "not", "in", "like", "between", "is", "case", "when", "then", "else", "div", "regexp",
];

/// The text of a condition as it is kept and shown: names are quoted, as the table has them, and other words
/// are small.
///
/// # Errors
/// 1064.
pub(crate) fn normal_text(spec: &CheckSpec, columns: &[ColumnSpec]) -> Result<String, SqlError> {
    let mut words = Words::new(&spec.condition, spec.mode)?;
    let mut out = String::new();
    // True where the next word follows without a space.
    let mut joined = true;
    // True where a sign belongs to the number behind it.
    let mut wants_value = true;
    let name = |name: &str| {
        let column = columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        column.map(|column| quoted(&column.name, LexicalMode::NONE))
    };
    loop {
        let word = words.next();
        let calls = matches!(words.peek(), Word::Symbol(symbol) if symbol == "(");
        let mut joins_next = false;
        let text = match &word {
            Word::End => return Ok(out),
            Word::Bare(bare) => match name(bare).filter(|_| !calls) {
                Some(column) => {
                    wants_value = false;
                    column
                }
                None => {
                    let bare = bare.to_lowercase();
                    wants_value = OPERATORS.contains(&bare.as_str());
                    joins_next = calls && !wants_value;
                    bare
                }
            },
            Word::Name(quoted_name) => {
                wants_value = false;
                name(quoted_name).unwrap_or_else(|| quoted(quoted_name, LexicalMode::NONE))
            }
            Word::Text(text) => {
                wants_value = false;
                format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
            }
            Word::Number(number) => {
                wants_value = false;
                number.clone()
            }
            Word::Symbol(symbol) => {
                joined |= matches!(symbol.as_str(), ")" | "," | ".");
                joins_next = matches!(symbol.as_str(), "(" | "," | ".") || wants_value && symbol == "-";
                wants_value = symbol != ")";
                symbol.clone()
            }
        };
        if !joined {
            out.push(' ');
        }
        out.push_str(&text);
        joined = joins_next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_kept_in_one_spelling() {
        let mut words = Words::new("(Aa INT, b INT)", LexicalMode::NONE).expect("words");
        let spec = crate::definition::parse::table_body(&mut words, types::Collation::Utf8mb4GeneralCi);
        let columns = spec.expect("columns").columns;
        for (written, kept) in [
            ("aa>0", "`Aa` > 0"),
            (
                "AA  >= -1 AND (`b` IN (1, 2) OR b IS NOT NULL)",
                "`Aa` >= -1 and (`b` in (1,2) or `b` is not null)",
            ),
            ("LENGTH(aa) - 1 < b", "length(`Aa`) - 1 < `b`"),
            ("aa LIKE 'it''s %' /* note */", "`Aa` like 'it\\'s %'"),
            ("NOT (aa = 1)", "not (`Aa` = 1)"),
            ("aa BETWEEN 1 AND 5", "`Aa` between 1 and 5"),
        ] {
            let text = format!("({written})");
            let mut words = Words::new(&text, LexicalMode::NONE).expect("words");
            let spec = check_clause(&mut words, None).expect("a condition");
            assert_eq!(normal_text(&spec, &columns), Ok(kept.to_owned()));
        }
    }
}
