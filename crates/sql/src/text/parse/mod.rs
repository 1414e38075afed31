//! The parser front: text to [`Statement`].
//!
//! SELECT, INSERT, UPDATE and DELETE are parsed by the `sqlparser` crate. The other statements keep their
//! text and their first word. The module that runs such a statement parses it: with [`OtherStatement::ast`]
//! if `sqlparser` knows the statement, otherwise by hand with a [`Words`] cursor (most SHOW forms, SET of
//! structured variables, CACHE INDEX).

mod comments;
mod depth;
mod errors;
pub mod tokens;
mod words;

pub(crate) use errors::error_at;
pub use errors::offset_in;
pub use words::{Word, Words};

use crate::{ErrorKind, SqlError};
use sqlparser::ast;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};
use std::borrow::Cow;
use types::ValueRef;

/// How deep expressions and subqueries may nest. The parser needs up to 40 KiB of stack a level (measured,
/// release build, nested subqueries and calls); threads that run statements have the stack for it.
const RECURSION_LIMIT: usize = 100;

/// A statement, sorted by the module that runs it.
#[derive(Clone, Debug)]
pub enum Statement {
    /// SELECT, UNION and similar.
    Query(Box<ast::Query>),
    /// INSERT and REPLACE.
    Insert(Box<ast::Statement>),
    Update(Box<ast::Statement>),
    Delete(Box<ast::Statement>),
    /// EXPLAIN (or DESCRIBE) of a statement; DESCRIBE of a table is [`Statement::Other`].
    Explain(Box<Statement>, ExplainForm),
    Use(String),
    Other(OtherStatement),
}

/// A statement that is neither a query nor a change of rows.
#[derive(Clone, Debug)]
pub struct OtherStatement {
    /// The first word in capitals: `SHOW`, `CREATE`, `SET`...
    pub word: String,
    /// The statement's text, executable comments unwrapped, without the final `;`.
    pub text: String,
}

impl OtherStatement {
    /// The statement as `sqlparser` reads it.
    ///
    /// # Errors
    /// 1064.
    pub fn ast(&self) -> Result<ast::Statement, SqlError> {
        parse_ast(&self.text)
    }

    /// A cursor over the statement's words, before the first one.
    ///
    /// # Errors
    /// 1064 for a text that cannot even be cut into words.
    pub fn words(&self) -> Result<Words<'_>, SqlError> {
        Words::new(&self.text)
    }
}

/// The text of a statement as UTF-8, its executable comments unwrapped.
///
/// # Errors
/// 1300 for bytes that are not UTF-8.
pub fn to_text(sql: &[u8]) -> Result<Cow<'_, str>, SqlError> {
    let text = std::str::from_utf8(sql).map_err(|error| {
        let from = error.valid_up_to();
        let bad = &sql[from..sql.len().min(from + 6)];
        let shown: String = bad.iter().map(|byte| format!("\\x{byte:02X}")).collect();
        SqlError::new(
            ErrorKind::InvalidCharacterString,
            format!("Invalid utf8mb4 character string: '{shown}'"),
        )
    })?;
    Ok(comments::unwrap_executable(text))
}

/// Cuts a text at its semicolons. Empty statements are left out.
pub fn split(text: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let mut from = 0;
    for end in comments::statement_ends(text) {
        let statement = text[from..end].trim();
        if comments::has_words(statement) {
            statements.push(statement);
        }
        from = end + 1;
    }
    statements
}

/// The text from its first word on.
pub fn skip_comments(text: &str) -> &str {
    comments::skip(text)
}

/// Where a comment without `*/` begins, which goes on to the end of the text.
pub fn open_comment(text: &str) -> Option<usize> {
    comments::open_comment(text)
}

/// How many `?` parameters a text has.
pub fn count_placeholders(text: &str) -> usize {
    comments::placeholders(text).count()
}

/// The text with each `?` replaced by a parameter's value, written as a literal.
pub(crate) fn fill_placeholders<'t>(text: &'t str, values: &[ValueRef<'_>]) -> Cow<'t, str> {
    if values.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut filled = String::new();
    let mut from = 0;
    for (at, value) in comments::placeholders(text).zip(values) {
        filled.push_str(&text[from..at]);
        push_literal(*value, &mut filled);
        from = at + 1;
    }
    filled.push_str(&text[from..]);
    Cow::Owned(filled)
}

/// Blanks around the value separate it from the text around it.
fn push_literal(value: ValueRef<'_>, out: &mut String) {
    out.push(' ');
    match value {
        ValueRef::Binary(bytes) => {
            out.push_str("x'");
            bytes.iter().for_each(|byte| out.push_str(&format!("{byte:02x}")));
            out.push('\'');
        }
        ValueRef::Text(_) | ValueRef::Date(_) | ValueRef::Time(_) | ValueRef::DateTime(_) => {
            let mut text = String::new();
            crate::text::push_text(value, &mut text);
            out.push('\'');
            out.push_str(&text.replace('\\', "\\\\").replace('\'', "''"));
            out.push('\'');
        }
        _ => crate::text::push_text(value, out),
    }
    out.push(' ');
}

/// Parses one statement (no `;` in it but a final one).
///
/// # Errors
/// 1064, 1065.
pub fn parse(text: &str) -> Result<Statement, SqlError> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let word = comments::first_word(text).to_ascii_uppercase();
    match word.as_str() {
        "" if !text.contains('(') => Err(SqlError::empty_query()),
        "SELECT" | "WITH" | "VALUES" | "TABLE" | "" => match parse_ast(text)? {
            ast::Statement::Query(query) => Ok(Statement::Query(query)),
            _ => Err(SqlError::syntax(text, 1)),
        },
        "INSERT" | "REPLACE" => Ok(Statement::Insert(Box::new(parse_ast(text)?))),
        "UPDATE" => Ok(Statement::Update(Box::new(parse_ast(text)?))),
        "DELETE" => Ok(Statement::Delete(Box::new(parse_ast(text)?))),
        "USE" => {
            let mut words = Words::new(text)?;
            words.next();
            let name = words.name()?;
            words.end()?;
            Ok(Statement::Use(name))
        }
        "EXPLAIN" | "DESCRIBE" | "DESC" => parse_explain(text, word),
        _ => Ok(Statement::Other(OtherStatement { word, text: text.to_string() })),
    }
}

/// The form in which EXPLAIN shows a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExplainForm {
    Table,
    /// Also shows the share of rows that meet the conditions.
    Extended,
    Json,
}

/// EXPLAIN [EXTENDED | PARTITIONS] [FORMAT = name] statement, or DESCRIBE table.
fn parse_explain(text: &str, word: String) -> Result<Statement, SqlError> {
    let mut words = Words::new(text)?;
    words.next();
    let mut form = ExplainForm::Table;
    loop {
        if words.accept("EXTENDED") {
            form = ExplainForm::Extended;
            continue;
        }
        if words.accept("PARTITIONS") {
            continue;
        }
        if words.accept("FORMAT") {
            words.expect_symbol("=")?;
            let format = words.name()?;
            if format.eq_ignore_ascii_case("json") {
                form = ExplainForm::Json;
            } else if !format.eq_ignore_ascii_case("traditional") && !format.eq_ignore_ascii_case("default") {
                return Err(SqlError::new(
                    ErrorKind::UnknownExplainFormat,
                    format!("Unknown EXPLAIN format name: '{format}'"),
                ));
            }
            continue;
        }
        break;
    }
    let rest = words.rest();
    match comments::first_word(rest).to_ascii_uppercase().as_str() {
        "SELECT" | "WITH" | "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "VALUES" => {
            Ok(Statement::Explain(Box::new(parse(rest)?), form))
        }
        _ if rest.starts_with('(') => Ok(Statement::Explain(Box::new(parse(rest)?), form)),
        _ => Ok(Statement::Other(OtherStatement { word, text: text.to_string() })),
    }
}

/// One statement by the `sqlparser` crate.
///
/// # Errors
/// 1064 with the text from the offending word on.
pub(crate) fn parse_ast(text: &str) -> Result<ast::Statement, SqlError> {
    parse_whole(text, |parser| parser.parse_statement())
}

/// `column = expression, ...`: the SET of LOAD DATA.
///
/// # Errors
/// As [`parse_ast`].
pub(crate) fn parse_assignments(text: &str) -> Result<Vec<ast::Assignment>, SqlError> {
    parse_whole(text, |parser| parser.parse_comma_separated(Parser::parse_assignment))
}

/// A part that a whole text consists of.
fn parse_whole<T>(
    text: &str,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    let dialect = MySqlDialect {};
    let options = ParserOptions::new().with_unescape(true);
    let mut tokens = tokens::tokenize(text, true)
        .map_err(|error| errors::from_parser(text, &ParserError::TokenizerError(error.to_string())))?;
    tokens::translate(&mut tokens);
    if !depth::is_bounded(&tokens) {
        return Err(SqlError::new(
            ErrorKind::StackOverrun,
            "Thread stack overrun: the statement has too many operators in one expression",
        ));
    }
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(RECURSION_LIMIT)
        .with_options(options)
        .with_tokens_with_locations(tokens);
    let parsed = parse(&mut parser).map_err(|error| errors::from_parser(text, &error))?;
    parser
        .expect_token(&sqlparser::tokenizer::Token::EOF)
        .map_err(|error| errors::from_parser(text, &error))?;
    Ok(parsed)
}
