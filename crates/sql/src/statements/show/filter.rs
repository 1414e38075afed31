//! LIKE and WHERE in SHOW statements: comparisons of columns with literals, joined by AND, OR and NOT.

use crate::SqlError;
use crate::text::parse::{Word, Words};
use crate::text::push_text;
use std::cmp::Ordering;
use types::{Collation, Value};

/// A condition over a row of texts and numbers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Filter {
    Like { column: usize, pattern: String, negated: bool },
    Compare { column: usize, operator: String, value: Value },
    In { column: usize, list: Vec<Value>, negated: bool },
    IsNull { column: usize, negated: bool },
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
}

/// A name, or the text of a value.
enum Operand {
    Column(usize),
    Value(Value),
}

impl Filter {
    /// LIKE 'pattern' or WHERE condition, if the next words begin one.
    pub(super) fn parse(words: &mut Words<'_>, columns: &[&str]) -> Result<Option<Filter>, SqlError> {
        if words.accept("LIKE") {
            return Ok(Some(Filter::Like { column: 0, pattern: words.string()?, negated: false }));
        }
        if words.accept("WHERE") {
            return disjunction(words, columns).map(Some);
        }
        Ok(None)
    }

    pub(super) fn keeps(&self, row: &[Value]) -> bool {
        self.truth(row) == Some(true)
    }

    /// The truth of the condition. `None` is SQL's UNKNOWN.
    fn truth(&self, row: &[Value]) -> Option<bool> {
        match self {
            Filter::Like { column, pattern, negated } => {
                if row[*column].is_null() {
                    return None;
                }
                Some(like(&text_of(&row[*column]), pattern) != *negated)
            }
            Filter::Compare { column, operator, value } => {
                let order = compare(&row[*column], value);
                if operator == "<=>" {
                    return Some(match order {
                        Some(order) => order == Ordering::Equal,
                        None => row[*column].is_null() && value.is_null(),
                    });
                }
                let order = order?;
                Some(match operator.as_str() {
                    "=" => order == Ordering::Equal,
                    "<>" | "!=" => order != Ordering::Equal,
                    "<" => order == Ordering::Less,
                    "<=" => order != Ordering::Greater,
                    ">" => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                })
            }
            Filter::In { column, list, negated } => {
                let found = list.iter().any(|value| compare(&row[*column], value) == Some(Ordering::Equal));
                if !found && (row[*column].is_null() || list.iter().any(Value::is_null)) {
                    return None;
                }
                Some(found != *negated)
            }
            Filter::IsNull { column, negated } => Some(row[*column].is_null() != *negated),
            Filter::All(parts) => {
                let truths: Vec<Option<bool>> = parts.iter().map(|part| part.truth(row)).collect();
                if truths.contains(&Some(false)) {
                    return Some(false);
                }
                if truths.contains(&None) { None } else { Some(true) }
            }
            Filter::Any(parts) => {
                let truths: Vec<Option<bool>> = parts.iter().map(|part| part.truth(row)).collect();
                if truths.contains(&Some(true)) {
                    return Some(true);
                }
                if truths.contains(&None) { None } else { Some(false) }
            }
            Filter::Not(inner) => inner.truth(row).map(|truth| !truth),
        }
    }
}

fn text_of(value: &Value) -> String {
    let mut text = String::new();
    push_text(value.as_ref(), &mut text);
    text
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    if left.is_null() || right.is_null() {
        return None;
    }
    let is_number = |value: &Value| {
        matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_))
    };
    let (left_text, right_text) = (text_of(left), text_of(right));
    if is_number(left) || is_number(right) {
        let left = types::number::parse_f64_prefix(left_text.as_bytes()).0;
        let right = types::number::parse_f64_prefix(right_text.as_bytes()).0;
        return left.partial_cmp(&right);
    }
    Some(Collation::Utf8mb4GeneralCi.compare(left_text.as_bytes(), right_text.as_bytes()))
}

/// LIKE that ignores case. `%` stands for any characters, `_` for one. `\` makes the next character literal.
pub(crate) fn like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
    let mut parts = Vec::new();
    let mut characters = pattern.chars().flat_map(char::to_lowercase);
    while let Some(character) = characters.next() {
        parts.push(match character {
            '%' => None,
            '_' => Some(None),
            '\\' => Some(Some(characters.next().unwrap_or('\\'))),
            other => Some(Some(other)),
        });
    }
    // `reach[i]`: the parts so far match the first `i` characters.
    let mut reach = vec![false; text.len() + 1];
    reach[0] = true;
    for part in parts {
        match part {
            None => {
                let from = reach.iter().position(|reached| *reached).unwrap_or(reach.len());
                reach.iter_mut().skip(from).for_each(|reached| *reached = true);
            }
            Some(wanted) => {
                for at in (0..text.len()).rev() {
                    reach[at + 1] = reach[at] && wanted.is_none_or(|wanted| wanted == text[at]);
                }
                reach[0] = false;
            }
        }
    }
    reach[text.len()]
}

fn disjunction(words: &mut Words<'_>, columns: &[&str]) -> Result<Filter, SqlError> {
    let mut parts = vec![conjunction(words, columns)?];
    while words.accept("OR") || words.accept_symbol("||") {
        parts.push(conjunction(words, columns)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::Any(parts) })
}

fn conjunction(words: &mut Words<'_>, columns: &[&str]) -> Result<Filter, SqlError> {
    let mut parts = vec![condition(words, columns)?];
    while words.accept("AND") || words.accept_symbol("&&") {
        parts.push(condition(words, columns)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::All(parts) })
}

fn condition(words: &mut Words<'_>, columns: &[&str]) -> Result<Filter, SqlError> {
    if words.accept("NOT") || words.accept_symbol("!") {
        return Ok(Filter::Not(Box::new(condition(words, columns)?)));
    }
    if words.accept_symbol("(") {
        let inner = disjunction(words, columns)?;
        words.expect_symbol(")")?;
        return Ok(inner);
    }
    let left = operand(words, columns)?;
    let column = match left {
        Operand::Column(column) => column,
        Operand::Value(value) => {
            // A constant without a comparison (`WHERE 1`), or a constant before a column.
            let Some(operator) = operator(words) else {
                let holds = compare(&value, &Value::Int(0)).is_some_and(|order| order != Ordering::Equal);
                return Ok(if holds { Filter::All(Vec::new()) } else { Filter::Any(Vec::new()) });
            };
            return match operand(words, columns)? {
                Operand::Column(column) => {
                    Ok(Filter::Compare { column, operator: mirrored(&operator), value })
                }
                Operand::Value(other) => {
                    let constant = Filter::Compare { column: 0, operator, value: other };
                    let holds = constant.keeps(&[value]);
                    Ok(if holds { Filter::All(Vec::new()) } else { Filter::Any(Vec::new()) })
                }
            };
        }
    };
    if words.accept("IS") {
        let negated = words.accept("NOT");
        words.expect("NULL")?;
        return Ok(Filter::IsNull { column, negated });
    }
    let negated = words.accept("NOT");
    if words.accept("LIKE") {
        return Ok(Filter::Like { column, pattern: words.string()?, negated });
    }
    if words.accept("IN") {
        words.expect_symbol("(")?;
        let mut list = Vec::new();
        loop {
            list.push(value(words, columns)?);
            if !words.accept_symbol(",") {
                break;
            }
        }
        words.expect_symbol(")")?;
        return Ok(Filter::In { column, list, negated });
    }
    if words.accept("REGEXP") || words.accept("RLIKE") {
        return Err(SqlError::not_supported("REGEXP in SHOW"));
    }
    if negated {
        return Err(words.error());
    }
    let Some(operator) = operator(words) else {
        // A column without a comparison is true if it is not zero.
        return Ok(Filter::Compare { column, operator: "<>".to_owned(), value: Value::Int(0) });
    };
    Ok(Filter::Compare { column, operator, value: value(words, columns)? })
}

fn operator(words: &mut Words<'_>) -> Option<String> {
    const OPERATORS: &[&str] = &["=", "<>", "!=", "<=>", "<=", ">=", "<", ">"];
    let Word::Symbol(symbol) = words.peek() else { return None };
    let symbol = symbol.clone();
    if !OPERATORS.contains(&symbol.as_str()) {
        return None;
    }
    words.next();
    Some(symbol)
}

fn mirrored(operator: &str) -> String {
    match operator {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    }
    .to_owned()
}

fn value(words: &mut Words<'_>, columns: &[&str]) -> Result<Value, SqlError> {
    let error = words.error();
    match operand(words, columns)? {
        Operand::Value(value) => Ok(value),
        Operand::Column(_) => Err(error),
    }
}

fn operand(words: &mut Words<'_>, columns: &[&str]) -> Result<Operand, SqlError> {
    let negative = words.accept_symbol("-");
    match words.peek().clone() {
        Word::Number(text) => {
            words.next();
            let text = if negative { format!("-{text}") } else { text };
            Ok(Operand::Value(match text.parse() {
                Ok(number) => Value::Int(number),
                Err(_) => Value::Double(types::number::parse_f64_prefix(text.as_bytes()).0),
            }))
        }
        Word::Text(text) if !negative => {
            words.next();
            Ok(Operand::Value(Value::text(text)))
        }
        Word::Bare(_) | Word::Name(_) if !negative => {
            if words.accept("NULL") {
                return Ok(Operand::Value(Value::Null));
            }
            if words.accept("TRUE") {
                return Ok(Operand::Value(Value::Int(1)));
            }
            if words.accept("FALSE") {
                return Ok(Operand::Value(Value::Int(0)));
            }
            // LOWER and UPPER change nothing, because comparisons ignore case.
            let folds = words.is("LOWER") || words.is("UPPER") || words.is("LCASE") || words.is("UCASE");
            if folds && matches!(words.peek_second(), Word::Symbol(symbol) if symbol == "(") {
                words.next();
                words.next();
                let inner = operand(words, columns)?;
                words.expect_symbol(")")?;
                return Ok(inner);
            }
            let mut name = words.name()?;
            while words.accept_symbol(".") {
                name = words.name()?;
            }
            let position = columns.iter().position(|column| column.eq_ignore_ascii_case(&name));
            position.map(Operand::Column).ok_or_else(|| SqlError::unknown_column(&name, "WHERE"))
        }
        _ => Err(words.error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(condition: &str, row: &[Value]) -> Result<bool, u16> {
        let mut words =
            Words::new(condition, crate::text::LexicalMode::NONE).map_err(|error| error.code())?;
        let filter = Filter::parse(&mut words, &["Name", "Size"]).map_err(|error| error.code())?;
        words.end().map_err(|error| error.code())?;
        Ok(filter.is_none_or(|filter| filter.keeps(row)))
    }

    #[test]
    fn like_knows_both_wildcards_and_the_escape() {
        for (text, pattern, expected) in [
            ("key_buffer_size", "Key%", true),
            ("key_buffer_size", "%size", true),
            ("key_buffer_size", "key\\_b%", true),
            ("keyXbuffer", "key\\_b%", false),
            ("keyXbuffer", "key_b%", true),
            ("a", "_", true),
            ("", "%", true),
            ("", "_", false),
            ("abc", "a%c%", true),
            ("abc", "ab", false),
            ("100%", "100\\%", true),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn conditions_of_clients_are_understood() {
        let row = [Value::text("socket"), Value::UInt(5)];
        for (condition, expected) in [
            ("WHERE Name = 'SOCKET'", Ok(true)),
            ("WHERE `name` IN ('a', 'socket') AND Size >= 5", Ok(true)),
            ("WHERE name = 'a' OR name LIKE 's%'", Ok(true)),
            ("WHERE NOT (name = 'socket')", Ok(false)),
            ("WHERE name <> 'socket'", Ok(false)),
            ("WHERE size BETWEEN 1 AND 2", Err(1064)),
            ("WHERE nonsense = 1", Err(1054)),
            ("WHERE 1", Ok(true)),
            ("WHERE 1 = 0", Ok(false)),
            ("WHERE 5 < size", Ok(false)),
            ("WHERE name IS NOT NULL", Ok(true)),
            ("WHERE lower(name) = 'socket'", Ok(true)),
            ("LIKE 'so%'", Ok(true)),
            ("", Ok(true)),
        ] {
            assert_eq!(keeps(condition, &row), expected, "{condition}");
        }
        assert_eq!(keeps("WHERE name = 'x'", &[Value::Null, Value::Null]), Ok(false));
        assert_eq!(keeps("WHERE NOT name = 'x'", &[Value::Null, Value::Null]), Ok(false));
    }
}
