//! Expressions in definitions: of CHECK, of generated columns, and of DEFAULT.

use super::parse::skip_parentheses;
use super::{ColumnSpec, quoted};
use crate::SqlError;
use crate::text::LexicalMode;
use crate::text::parse::{Word, Words};

/// An expression as a statement wrote it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ExpressionSpec {
    pub text: String,
    /// How the text is to be read.
    pub mode: LexicalMode,
}

/// `(expression)`.
///
/// # Errors
/// 1064.
pub(crate) fn in_parentheses(words: &mut Words<'_>) -> Result<ExpressionSpec, SqlError> {
    let mut inside = words.clone();
    inside.expect_symbol("(")?;
    if matches!(inside.peek(), Word::Symbol(symbol) if symbol == ")") {
        return Err(inside.error());
    }
    let end = skip_parentheses(words)?;
    let text = inside.rest();
    let text = text[..text.len() - end.len()].trim().to_owned();
    Ok(ExpressionSpec { text, mode: words.mode() })
}

/// `function(...)`.
///
/// # Errors
/// 1064.
pub(crate) fn call(words: &mut Words<'_>) -> Result<ExpressionSpec, SqlError> {
    let whole = words.rest();
    words.name()?;
    skip_parentheses(words)?;
    let text = whole[..whole.len() - words.rest().len()].trim().to_owned();
    Ok(ExpressionSpec { text, mode: words.mode() })
}

/// True for a text that is one word, or one call of a function: DEFAULT shows it without parentheses.
pub(crate) fn is_simple(text: &str) -> bool {
    let Ok(mut words) = Words::new(text, LexicalMode::NONE) else { return false };
    let first = words.next();
    if let (Word::Bare(_), Word::Symbol(symbol)) = (&first, words.peek())
        && symbol == "("
        && skip_parentheses(&mut words).is_err()
    {
        return false;
    }
    matches!(words.peek(), Word::End)
}

/// A bare word in the spelling that MariaDB shows.
fn shown_word(word: String, calls: bool) -> String {
    let shown = match (word.as_str(), calls) {
        ("div", _) => "DIV",
        ("mod", false) => "MOD",
        ("length", true) => "octet_length",
        ("lower", true) => "lcase",
        ("upper", true) => "ucase",
        ("substring" | "mid", true) => "substr",
        ("character_length", true) => "char_length",
        ("now" | "localtime" | "localtimestamp", true) => "current_timestamp",
        ("ceil", true) => "ceiling",
        ("power", true) => "pow",
        ("current_timestamp" | "localtime" | "localtimestamp", false) => "current_timestamp()",
        ("current_date", false) => "curdate()",
        ("current_time", false) => "curtime()",
        _ => return word,
    };
    shown.to_owned()
}

fn shown_symbol(symbol: &str) -> &str {
    match symbol {
        "!=" => "<>",
        "%" => "MOD",
        "&&" => "and",
        other => other,
    }
}

/// Words in front of a parenthesis that is not the one of a function.
const OPERATORS: &[&str] = &[
    "and", "or", "xor", "not", "in", "like", "between", "is", "case", "when", "then", "else", "div", "regexp",
];

/// The text of an expression as it is kept and shown: names are quoted, as the table has them, and other
/// words are small.
///
/// # Errors
/// 1064.
pub(crate) fn normal_text(spec: &ExpressionSpec, columns: &[ColumnSpec]) -> Result<String, SqlError> {
    let mut words = Words::new(&spec.text, spec.mode)?;
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
                    shown_word(bare, calls)
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
                shown_symbol(symbol).to_owned()
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
    fn expressions_are_kept_in_one_spelling() {
        let mut words = Words::new("(Aa INT, b INT)", LexicalMode::NONE).expect("words");
        let spec = crate::definition::parse::table_body(&mut words, types::Collation::Utf8mb4GeneralCi);
        let columns = spec.expect("columns").columns;
        for (written, kept) in [
            ("aa>0", "`Aa` > 0"),
            (
                "AA  >= -1 AND (`b` IN (1, 2) OR b IS NOT NULL)",
                "`Aa` >= -1 and (`b` in (1,2) or `b` is not null)",
            ),
            ("LENGTH(aa) - 1 < b", "octet_length(`Aa`) - 1 < `b`"),
            ("aa div 2 != aa % 3", "`Aa` DIV 2 <> `Aa` MOD 3"),
            ("1 + -aa", "1 + -`Aa`"),
            ("aa LIKE 'it''s %' /* note */", "`Aa` like 'it\\'s %'"),
            ("NOT (aa = 1)", "not (`Aa` = 1)"),
            ("aa BETWEEN 1 AND 5", "`Aa` between 1 and 5"),
        ] {
            let text = format!("({written})");
            let mut words = Words::new(&text, LexicalMode::NONE).expect("words");
            let spec = in_parentheses(&mut words).expect("an expression");
            assert_eq!(normal_text(&spec, &columns), Ok(kept.to_owned()));
        }
    }
}
