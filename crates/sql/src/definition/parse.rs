//! Reads the parentheses and options of CREATE TABLE. ALTER TABLE uses the same parts.

use super::check::{CheckSpec, check_clause};
use super::column_types::{collation_of_charset, column_type, combine, name_or_string, number};
use super::expression::in_parentheses;
use super::foreign_key::{Reference, ReferentialAction};
use super::options;
use super::*;
use crate::expr::functions::clock;
use crate::expr::{Function, number_of_bits};
use crate::names;
use crate::text::LexicalMode;
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, SqlError};
use types::{Collation, ColumnType, ValueRef};

/// `(column or key, ...)` and the options behind it. `default` is the database's collation.
pub(crate) fn table_body(words: &mut Words<'_>, default: Collation) -> Result<TableSpec, SqlError> {
    // A column's collation depends on the options behind the parentheses, so those are read first.
    let mut ahead = words.clone();
    skip_parentheses(&mut ahead)?;
    let mut ignored = Vec::new();
    let options = table_options(&mut ahead, &mut ignored, default)?;
    let collation = options.collation.unwrap_or(default);
    let mut spec = TableSpec { options, ignored, ..TableSpec::default() };
    words.expect_symbol("(")?;
    loop {
        definition(words, collation, &mut spec)?;
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.expect_symbol(")")?;
    *words = ahead;
    Ok(spec)
}

/// Takes what stands in parentheses. Returns the text from the closing one on.
///
/// # Errors
/// 1064.
pub(super) fn skip_parentheses<'a>(words: &mut Words<'a>) -> Result<&'a str, SqlError> {
    words.expect_symbol("(")?;
    let mut depth = 1;
    let mut end = "";
    while depth > 0 {
        end = words.rest();
        match words.peek() {
            Word::End => return Err(words.error()),
            Word::Symbol(symbol) if symbol == "(" => depth += 1,
            Word::Symbol(symbol) if symbol == ")" => depth -= 1,
            _ => {}
        }
        words.next();
    }
    Ok(end)
}

/// One column or key.
pub(crate) fn definition(
    words: &mut Words<'_>,
    collation: Collation,
    spec: &mut TableSpec,
) -> Result<(), SqlError> {
    if let Some(check) = check_of_table(words)? {
        spec.checks.push(check);
        return Ok(());
    }
    if let Some(key) = key_definition(words)? {
        spec.keys.push(key);
        return Ok(());
    }
    if words.is("PERIOD")
        && matches!(words.peek_second(), Word::Bare(word) if word.eq_ignore_ascii_case("FOR"))
    {
        return Err(SqlError::not_supported("PERIOD FOR"));
    }
    spec.columns.push(column_definition(words, collation)?);
    Ok(())
}

/// `name type attributes`.
pub(crate) fn column_definition(words: &mut Words<'_>, collation: Collation) -> Result<ColumnSpec, SqlError> {
    let name = words.name()?;
    names::check_column(&name)?;
    let mut column = column_type(words, name, collation)?;
    // The expression comes right behind the type.
    // SERIAL has a value of its own.
    if !column.auto_increment && (words.accept_all(&["GENERATED", "ALWAYS", "AS"]) || words.accept("AS")) {
        generated(words, &mut column)?;
        return Ok(column);
    }
    loop {
        if words.accept_all(&["NOT", "NULL"]) {
            column.nullable = Some(false);
        } else if words.accept("NULL") {
            column.nullable = Some(true);
        } else if words.accept("DEFAULT") {
            (column.extras.default, column.default) = match default_value(words, &column)? {
                DefaultSpec::Value(value) => (value, None),
                DefaultSpec::Expression(spec) => (ColumnDefault::Unset, Some(spec)),
            };
        } else if words.accept_all(&["ON", "UPDATE"]) {
            let now = is_now(words, &column)?;
            let temporal =
                matches!(column.column_type, ColumnType::DateTime { .. } | ColumnType::Timestamp { .. });
            if !now || !temporal {
                return Err(SqlError::new(
                    ErrorKind::InvalidOnUpdate,
                    format!("Invalid ON UPDATE clause for '{}' column", column.name),
                ));
            }
            column.extras.on_update_now = true;
        } else if words.accept("AUTO_INCREMENT") {
            column.auto_increment = true;
        } else if words.accept_all(&["SERIAL", "DEFAULT", "VALUE"]) {
            column.auto_increment = true;
            column.unique = true;
            column.nullable = Some(false);
        } else if words.accept("UNIQUE") {
            words.accept("KEY");
            column.unique = true;
        } else if words.accept("PRIMARY") {
            words.accept("KEY");
            column.primary = true;
        } else if words.accept("KEY") {
            column.primary = true;
        } else if words.accept("COMMENT") {
            column.extras.comment = words.string()?;
        } else if words.accept("COLLATE") {
            let name = name_or_string(words)?;
            let own = if column.own_collation { column.column_type.collation() } else { collation };
            let charset = column.own_collation.then(|| own.character_set());
            let chosen = combine(charset, Some(&name), false, own)?.unwrap_or(collation);
            set_collation(&mut column, chosen);
        } else if words.accept("REFERENCES") {
            column.reference = Some(reference(words, None)?);
        } else if words.accept("CHECK") {
            column.check = Some(check_clause(words, None)?);
        } else if words.accept("COLUMN_FORMAT") || words.accept("STORAGE") {
            words.name()?;
        } else if words.accept("INVISIBLE") {
            column.extras.invisible = true;
        } else {
            return Ok(column);
        }
    }
}

/// What stands behind `AS` in a generated column.
fn generated(words: &mut Words<'_>, column: &mut ColumnSpec) -> Result<(), SqlError> {
    let expression = in_parentheses(words)?;
    let stored = words.accept("PERSISTENT") || words.accept("STORED");
    if !stored {
        words.accept("VIRTUAL");
    }
    column.generated = Some((expression, stored));
    loop {
        if words.accept("UNIQUE") {
            words.accept("KEY");
            column.unique = true;
        } else if words.accept("COMMENT") {
            column.extras.comment = words.string()?;
        } else if words.accept("INVISIBLE") {
            column.extras.invisible = true;
        } else if words.accept("CHECK") {
            column.check = Some(check_clause(words, None)?);
        } else if words.accept("REFERENCES") {
            column.reference = Some(reference(words, None)?);
        } else {
            return Ok(());
        }
    }
}

fn set_collation(column: &mut ColumnSpec, chosen: Collation) {
    match &mut column.column_type {
        ColumnType::Char { collation, .. }
        | ColumnType::Varchar { collation, .. }
        | ColumnType::Text { collation, .. } => {
            *collation = chosen;
            column.own_collation = true;
        }
        // On other types the clause has no effect, as in MySQL.
        _ => {}
    }
}

/// Reads CURRENT_TIMESTAMP, NOW and similar, with the column's number of digits of a second.
fn is_now(words: &mut Words<'_>, column: &ColumnSpec) -> Result<bool, SqlError> {
    let name = match words.peek() {
        Word::Bare(name) => name.to_ascii_lowercase(),
        _ => return Ok(false),
    };
    if Function::lookup(&name) != Some(&clock::NOW) {
        return Ok(false);
    }
    words.next();
    if words.accept_symbol("(") {
        if !words.accept_symbol(")") {
            number(words)?;
            words.expect_symbol(")")?;
        }
    } else if name == clock::NOW.name {
        return Err(words.error());
    }
    if !matches!(column.column_type, ColumnType::DateTime { .. } | ColumnType::Timestamp { .. }) {
        return Err(invalid_default(&column.name));
    }
    Ok(true)
}

pub(crate) fn invalid_default(column: &str) -> SqlError {
    SqlError::new(ErrorKind::InvalidDefault, format!("Invalid default value for '{column}'"))
}

/// What follows DEFAULT.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum DefaultSpec {
    Value(ColumnDefault),
    Expression(ExpressionSpec),
}

/// Reads what follows DEFAULT: a literal, NULL, the current time, or an expression.
///
/// # Errors
/// 1064, 1067.
pub(crate) fn default_value(words: &mut Words<'_>, column: &ColumnSpec) -> Result<DefaultSpec, SqlError> {
    let mut ahead = words.clone();
    if ahead.accept_symbol("(") {
        // What is a literal in parentheses is one.
        let literal = default_value(&mut ahead, column);
        if let Ok(value @ DefaultSpec::Value(_)) = literal
            && ahead.accept_symbol(")")
        {
            *words = ahead;
            return Ok(value);
        }
        return in_parentheses(words).map(DefaultSpec::Expression);
    }
    if is_call(words) && !is_of_moment(column) {
        return expression::call(words).map(DefaultSpec::Expression);
    }
    if is_call(&ahead) && is_now(&mut ahead, column).is_ok_and(|is_now| !is_now) {
        return expression::call(words).map(DefaultSpec::Expression);
    }
    literal_default(words, column).map(DefaultSpec::Value)
}

fn is_of_moment(column: &ColumnSpec) -> bool {
    matches!(column.column_type, ColumnType::DateTime { .. } | ColumnType::Timestamp { .. })
}

fn is_call(words: &Words<'_>) -> bool {
    matches!(words.peek(), Word::Bare(_))
        && matches!(words.peek_second(), Word::Symbol(symbol) if symbol == "(")
}

fn literal_default(words: &mut Words<'_>, column: &ColumnSpec) -> Result<ColumnDefault, SqlError> {
    if is_now(words, column)? {
        return Ok(ColumnDefault::Now);
    }
    for (word, value) in [("TRUE", "1"), ("FALSE", "0")] {
        if words.accept(word) {
            return Ok(ColumnDefault::Number(value.to_owned()));
        }
    }
    if words.accept("NULL") {
        return Ok(ColumnDefault::Null);
    }
    let negative = words.accept_symbol("-");
    if !negative {
        words.accept_symbol("+");
    }
    match words.peek().clone() {
        Word::Number(text) => {
            words.next();
            Ok(ColumnDefault::Number(if negative { format!("-{text}") } else { text }))
        }
        Word::Text(text) if !negative => {
            words.next();
            Ok(ColumnDefault::Text(text))
        }
        Word::Symbol(symbol) if !negative => match binary_literal(&symbol) {
            Some(bytes) => {
                words.next();
                // Bits are a number where the column has numbers.
                Ok(match number_of_bits(&bytes, &column.column_type) {
                    ValueRef::UInt(number) => ColumnDefault::Number(number.to_string()),
                    _ => ColumnDefault::Binary(bytes),
                })
            }
            None => Err(words.error()),
        },
        // `_utf8mb4'text'`.
        Word::Bare(name) if name.starts_with('_') && matches!(words.peek_second(), Word::Text(_)) => {
            words.next();
            Ok(ColumnDefault::Text(words.string()?))
        }
        _ => Err(words.error()),
    }
}

/// The bytes of `X'..'` and `B'..'`, from the form in which the tokenizer prints them.
fn binary_literal(symbol: &str) -> Option<Vec<u8>> {
    let (kind, digits) = symbol.strip_suffix('\'')?.split_once('\'')?;
    match kind {
        "X" | "x" if digits.len() % 2 == 0 => (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
            .collect(),
        "B" | "b" => {
            let number = u64::from_str_radix(digits, 2).ok()?;
            let bytes = number.to_be_bytes();
            let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(7);
            Some(bytes[from..].to_vec())
        }
        _ => None,
    }
}

/// `t (c, ...) [MATCH ...] [ON DELETE ...] [ON UPDATE ...]`, behind REFERENCES.
fn reference(words: &mut Words<'_>, constraint: Option<String>) -> Result<Reference, SqlError> {
    let (database, table) = words.qualified_name()?;
    let mut columns = Vec::new();
    if words.accept_symbol("(") {
        loop {
            columns.push(words.name()?);
            if !words.accept_symbol(",") {
                break;
            }
        }
        words.expect_symbol(")")?;
    }
    if words.accept("MATCH") && !(words.accept("FULL") || words.accept("PARTIAL")) {
        words.expect("SIMPLE")?;
    }
    let (mut on_delete, mut on_update) = (None, None);
    while words.is("ON") {
        let before = words.error();
        words.next();
        let action = if words.accept("DELETE") {
            &mut on_delete
        } else {
            words.expect("UPDATE")?;
            &mut on_update
        };
        if action.is_some() {
            return Err(before);
        }
        *action = Some(referential_action(words)?);
    }
    let (on_delete, on_update) = (on_delete.unwrap_or_default(), on_update.unwrap_or_default());
    Ok(Reference { constraint, database, table, columns, on_delete, on_update })
}

fn referential_action(words: &mut Words<'_>) -> Result<ReferentialAction, SqlError> {
    for action in ReferentialAction::ALL {
        let name: Vec<&str> = action.name().split(' ').collect();
        if words.accept_all(&name) {
            return Ok(action);
        }
    }
    if words.accept_all(&["SET", "DEFAULT"]) {
        return Ok(ReferentialAction::Restrict);
    }
    Err(words.error())
}

/// `[CONSTRAINT [name]] CHECK (condition)`, if the next words begin one.
pub(crate) fn check_of_table(words: &mut Words<'_>) -> Result<Option<CheckSpec>, SqlError> {
    let mut ahead = words.clone();
    let mut name = None;
    if ahead.accept("CONSTRAINT") && !ahead.is("CHECK") {
        ahead.accept_all(&["IF", "NOT", "EXISTS"]);
        let Ok(given) = ahead.name() else { return Ok(None) };
        name = Some(given);
    }
    if !ahead.accept("CHECK") || !matches!(ahead.peek(), Word::Symbol(symbol) if symbol == "(") {
        return Ok(None);
    }
    *words = ahead;
    check_clause(words, name).map(Some)
}

/// A key, if the next words begin one.
pub(crate) fn key_definition(words: &mut Words<'_>) -> Result<Option<KeySpec>, SqlError> {
    let mut constraint = None;
    let constrained = words.accept("CONSTRAINT");
    if constrained {
        words.accept_all(&["IF", "NOT", "EXISTS"]);
    }
    if constrained && !["PRIMARY", "UNIQUE", "FOREIGN"].iter().any(|keyword| words.is(keyword)) {
        constraint = Some(words.name()?);
    }
    let kind = if words.accept_all(&["PRIMARY", "KEY"]) {
        KeyKind::Primary
    } else if words.accept("UNIQUE") {
        let _ = words.accept("KEY") || words.accept("INDEX");
        KeyKind::Unique
    } else if words.accept_all(&["FOREIGN", "KEY"]) {
        KeyKind::Foreign
    } else if words.is("FULLTEXT") || words.is("SPATIAL") {
        let kind = words.name()?.to_ascii_uppercase();
        return Err(SqlError::not_supported(&format!("{kind} indexes")));
    } else if constrained {
        return Err(words.error());
    } else if words.accept("KEY") || words.accept("INDEX") {
        KeyKind::Plain
    } else {
        return Ok(None);
    };
    words.accept_all(&["IF", "NOT", "EXISTS"]);
    let mut name = match words.peek() {
        Word::Symbol(symbol) if symbol == "(" => None,
        _ if words.is("USING") => None,
        _ => Some(words.name()?),
    };
    if kind == KeyKind::Primary {
        // The name of a primary key is always PRIMARY, whatever was written.
        name = None;
    }
    index_type(words)?;
    let parts = key_parts(words)?;
    if kind == KeyKind::Foreign {
        words.expect("REFERENCES")?;
        let reference = Some(reference(words, constraint.clone())?);
        let options = IndexOptions::default();
        return Ok(Some(KeySpec { kind, name: constraint.or(name), parts, options, reference }));
    }
    let options = index_options(words)?;
    Ok(Some(KeySpec { kind, name: name.or(constraint), parts, options, reference: None }))
}

fn index_type(words: &mut Words<'_>) -> Result<(), SqlError> {
    if words.accept("USING") || words.accept("TYPE") {
        let kind = words.name()?;
        if !["BTREE", "HASH", "RTREE"].iter().any(|known| known.eq_ignore_ascii_case(&kind)) {
            return Err(words.error());
        }
    }
    Ok(())
}

/// Reads what may follow an index's columns.
pub(crate) fn index_options(words: &mut Words<'_>) -> Result<IndexOptions, SqlError> {
    let mut options = IndexOptions::default();
    loop {
        if words.is("USING") {
            index_type(words)?;
        } else if words.accept("COMMENT") {
            options.comment = words.string()?;
        } else if words.accept("KEY_BLOCK_SIZE") {
            words.accept_symbol("=");
            number(words)?;
        } else if let Some(ignored) = index_is_ignored(words) {
            options.ignored = ignored;
        } else {
            return Ok(options);
        }
    }
}

/// `[NOT] IGNORED`, or as MySQL writes it VISIBLE or INVISIBLE.
pub(crate) fn index_is_ignored(words: &mut Words<'_>) -> Option<bool> {
    if words.accept("IGNORED") || words.accept("INVISIBLE") {
        return Some(true);
    }
    (words.accept_all(&["NOT", "IGNORED"]) || words.accept("VISIBLE")).then_some(false)
}

/// `(column [(prefix)] [ASC | DESC], ...)`.
pub(crate) fn key_parts(words: &mut Words<'_>) -> Result<Vec<KeyPartSpec>, SqlError> {
    words.expect_symbol("(")?;
    let mut parts = Vec::new();
    loop {
        if matches!(words.peek(), Word::Symbol(symbol) if symbol == "(") {
            return Err(SqlError::not_supported("indexes of expressions"));
        }
        let column = words.name()?;
        let mut prefix = None;
        if words.accept_symbol("(") {
            let length = number(words)?;
            words.expect_symbol(")")?;
            if length == 0 {
                return Err(SqlError::new(
                    ErrorKind::KeyPartIsZero,
                    format!("Key part '{column}' length cannot be 0"),
                ));
            }
            prefix = Some(u32::try_from(length).unwrap_or(u32::MAX));
        }
        let descending = words.accept("DESC");
        if !descending {
            words.accept("ASC");
        }
        parts.push(KeyPartSpec { column, prefix, descending });
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.expect_symbol(")")?;
    Ok(parts)
}

/// Reads the options behind the parentheses of CREATE TABLE, up to the first word that is not an option.
/// `around` is the collation that holds without them.
pub(crate) fn table_options(
    words: &mut Words<'_>,
    ignored: &mut Vec<String>,
    around: Collation,
) -> Result<TableOptions, SqlError> {
    let mut table = TableOptions::default();
    let mut charset: Option<String> = None;
    let mut collation: Option<String> = None;
    loop {
        words.accept_symbol(",");
        if words.accept("ENGINE") || words.accept("TYPE") {
            words.accept_symbol("=");
            table.engine = Some(name_or_string(words)?);
        } else if words.accept("AUTO_INCREMENT") {
            words.accept_symbol("=");
            table.auto_increment = Some(number(words)?);
        } else if words.accept("COMMENT") {
            words.accept_symbol("=");
            table.comment = Some(words.string()?);
        } else if charset_option(words) {
            words.accept_symbol("=");
            charset = Some(name_or_string(words)?);
        } else if words.accept_all(&["DEFAULT", "COLLATE"]) || words.accept("COLLATE") {
            words.accept_symbol("=");
            collation = Some(name_or_string(words)?);
        } else if let Some(shown) = options::option(words)? {
            table.shown.retain(|(name, _)| *name != shown.0);
            table.shown.push(shown);
        } else if words.is("DATA") || words.is("INDEX") {
            let which = words.name()?.to_ascii_uppercase();
            words.expect("DIRECTORY")?;
            words.accept_symbol("=");
            words.string()?;
            ignored.push(format!("{which} DIRECTORY"));
        } else if words.accept("TABLESPACE") {
            words.name()?;
            ignored.push("TABLESPACE".to_owned());
        } else if words.is("PARTITION") {
            return Err(SqlError::not_supported("PARTITION BY"));
        } else if words.accept("UNION") {
            // Only MERGE tables, which there are not, heed it.
            words.accept_symbol("=");
            skip_parentheses(words)?;
        } else if words.accept("INSERT_METHOD") {
            words.accept_symbol("=");
            words.name()?;
        } else if words.is("CONNECTION") {
            let name = words.name()?;
            return Err(SqlError::not_supported(&format!("the table option {name}")));
        } else if words.accept_all(&["WITH", "SYSTEM", "VERSIONING"]) {
            return Err(SqlError::not_supported("WITH SYSTEM VERSIONING"));
        } else if let Some(error) = options::unknown(words) {
            return Err(error);
        } else {
            break;
        }
    }
    table.collation = combine(charset.as_deref(), collation.as_deref(), false, around)?;
    Ok(table)
}

/// Reads the words of a CHARSET option in any of their spellings.
pub(crate) fn charset_option(words: &mut Words<'_>) -> bool {
    words.accept_all(&["DEFAULT", "CHARACTER", "SET"])
        || words.accept_all(&["DEFAULT", "CHARSET"])
        || words.accept_all(&["DEFAULT", "CHAR", "SET"])
        || words.accept_all(&["CHARACTER", "SET"])
        || words.accept_all(&["CHAR", "SET"])
        || words.accept("CHARSET")
}

/// Reads the options of CREATE DATABASE. Returns the collation, if one is chosen.
pub(crate) fn database_options(
    words: &mut Words<'_>,
    around: Collation,
) -> Result<Option<Collation>, SqlError> {
    let mut chosen = None;
    let mut charset: Option<String> = None;
    let mut collation: Option<String> = None;
    loop {
        if charset_option(words) {
            words.accept_symbol("=");
            let name = name_or_string(words)?;
            collation_of_charset(&name)?;
            charset = Some(name);
        } else if words.accept_all(&["DEFAULT", "COLLATE"]) || words.accept("COLLATE") {
            words.accept_symbol("=");
            collation = Some(name_or_string(words)?);
        } else if words.accept("COMMENT") {
            words.accept_symbol("=");
            words.string()?;
        } else {
            break;
        }
        chosen = combine(charset.as_deref(), collation.as_deref(), false, around)?;
    }
    Ok(chosen)
}

/// The columns of a computed table, from the text that CREATE TABLE would have between its parentheses. A
/// definition that does not parse gives no columns; a test checks for that.
pub(crate) fn virtual_columns(definition: &str) -> Vec<types::Column> {
    let text = format!("({definition})");
    let Ok(mut words) = Words::new(&text, LexicalMode::NONE) else { return Vec::new() };
    let Ok(spec) = table_body(&mut words, Collation::Utf8mb4GeneralCi) else { return Vec::new() };
    spec.columns
        .into_iter()
        .map(|column| types::Column {
            name: column.name,
            column_type: column.column_type,
            nullable: column.nullable.unwrap_or(true),
        })
        .collect()
}
