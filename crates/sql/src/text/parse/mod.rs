//! The parser front: text to [`Statement`].
//!
//! SELECT, INSERT, UPDATE and DELETE are parsed by the `sqlparser` crate. The other statements keep their
//! text and their first word. The module that runs such a statement parses it: with [`OtherStatement::ast`]
//! if `sqlparser` knows the statement, otherwise by hand with a [`Words`] cursor (most SHOW forms, SET of
//! structured variables, CACHE INDEX).

mod changes;
mod comments;
mod depth;
mod dialect;
mod errors;
mod frames;
mod into;
mod secrets;
pub mod tokens;
mod words;

pub(crate) use changes::ignores;
pub(crate) use errors::error_at;
pub use errors::offset_in;
pub(crate) use into::{Destination, take_destination};
pub use secrets::{bytes_without_secrets, without_secrets};
pub use words::{Word, Words};

pub use super::mode::LexicalMode;

use crate::{ErrorKind, SqlError};
use sqlparser::ast;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};
use sqlparser::tokenizer::TokenWithSpan;
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
    /// How the text is read.
    pub mode: LexicalMode,
}

impl OtherStatement {
    /// The statement as `sqlparser` reads it.
    ///
    /// # Errors
    /// 1064.
    pub fn ast(&self) -> Result<ast::Statement, SqlError> {
        parse_ast(&self.text, self.mode)
    }

    /// A cursor over the statement's words, before the first one.
    ///
    /// # Errors
    /// 1064 for a text that cannot even be cut into words.
    pub fn words(&self) -> Result<Words<'_>, SqlError> {
        Words::new(&self.text, self.mode)
    }
}

/// The text of a client's command as UTF-8.
///
/// # Errors
/// 1300 for bytes that are not UTF-8.
pub fn utf8(sql: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(sql).map_err(|error| {
        let from = error.valid_up_to();
        let bad = &sql[from..sql.len().min(from + 6)];
        let shown: String = bad.iter().map(|byte| format!("\\x{byte:02X}")).collect();
        SqlError::new(
            ErrorKind::InvalidCharacterString,
            format!("Invalid utf8mb4 character string: '{shown}'"),
        )
    })
}

/// The text with its executable comments unwrapped.
pub fn unwrap_comments(text: &str, mode: LexicalMode) -> Cow<'_, str> {
    comments::unwrap_executable(text, mode)
}

/// Takes the first statement off a text of several, which semicolons separate. Empty ones are left out.
/// `None` if there is none left.
pub fn take_statement<'t>(rest: &mut &'t str, mode: LexicalMode) -> Option<&'t str> {
    while !rest.is_empty() {
        let end = comments::statement_end(rest, mode);
        let statement = trim(&rest[..end]);
        *rest = rest.get(end + 1..).unwrap_or("");
        if comments::has_words(statement, mode) {
            return Some(statement);
        }
    }
    None
}

/// The text without the blanks around it. Other spaces than ASCII's are letters of names.
fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_ascii_whitespace() || character == '\u{b}')
}

/// Cuts a text at its semicolons. Empty statements are left out.
pub fn split(text: &str, mode: LexicalMode) -> Vec<&str> {
    let mut rest = text;
    std::iter::from_fn(|| take_statement(&mut rest, mode)).collect()
}

/// The text from its first word on.
pub fn skip_comments(text: &str) -> &str {
    comments::skip(text)
}

/// Where a comment without `*/` begins, which goes on to the end of the text.
pub fn open_comment(text: &str, mode: LexicalMode) -> Option<usize> {
    comments::open_comment(text, mode)
}

/// How many `?` parameters a text has.
pub fn count_placeholders(text: &str, mode: LexicalMode) -> usize {
    comments::placeholders(text, mode).count()
}

/// The text with each `?` replaced by a parameter's value, written as a literal.
pub(crate) fn fill_placeholders<'t>(
    text: &'t str,
    mode: LexicalMode,
    values: &[ValueRef<'_>],
) -> Cow<'t, str> {
    fill_placeholders_but(text, mode, values, |_| None)
}

/// As [`fill_placeholders`], with a name in the place of the parameters for which `name` gives one.
pub(crate) fn fill_placeholders_but<'t>(
    text: &'t str,
    mode: LexicalMode,
    values: &[ValueRef<'_>],
    name: impl Fn(usize) -> Option<&'static str>,
) -> Cow<'t, str> {
    if values.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut filled = String::new();
    let mut from = 0;
    for (parameter, (at, value)) in comments::placeholders(text, mode).zip(values).enumerate() {
        filled.push_str(&text[from..at]);
        match name(parameter) {
            Some(name) => filled.push_str(&format!(" `{name}` ")),
            None => push_literal(*value, mode, &mut filled),
        }
        from = at + 1;
    }
    filled.push_str(&text[from..]);
    Cow::Owned(filled)
}

/// Blanks around the value separate it from the text around it.
fn push_literal(value: ValueRef<'_>, mode: LexicalMode, out: &mut String) {
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
            if mode.escapes() {
                text = text.replace('\\', "\\\\");
            }
            out.push_str(&text.replace('\'', "''"));
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
pub fn parse(text: &str, mode: LexicalMode) -> Result<Statement, SqlError> {
    let text = trim(trim(text).trim_end_matches(';'));
    let word = comments::first_word(text).to_ascii_uppercase();
    match word.as_str() {
        "" if !text.contains('(') => Err(SqlError::empty_query()),
        "SELECT" | "WITH" | "VALUES" | "TABLE" | "" => match parse_ast(text, mode)? {
            ast::Statement::Query(query) => Ok(Statement::Query(query)),
            _ => Err(SqlError::syntax(text, 1)),
        },
        "INSERT" | "REPLACE" => Ok(Statement::Insert(Box::new(parse_ast(text, mode)?))),
        "UPDATE" => Ok(Statement::Update(Box::new(parse_ast(text, mode)?))),
        "DELETE" => Ok(Statement::Delete(Box::new(parse_ast(text, mode)?))),
        "USE" => {
            let mut words = Words::new(text, mode)?;
            words.next();
            let name = words.name()?;
            words.end()?;
            Ok(Statement::Use(name))
        }
        "EXPLAIN" | "DESCRIBE" | "DESC" => parse_explain(text, word, mode),
        _ => Ok(Statement::Other(OtherStatement { word, text: text.to_string(), mode })),
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
fn parse_explain(text: &str, word: String, mode: LexicalMode) -> Result<Statement, SqlError> {
    let mut words = Words::new(text, mode)?;
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
            Ok(Statement::Explain(Box::new(parse(rest, mode)?), form))
        }
        _ if rest.starts_with('(') => Ok(Statement::Explain(Box::new(parse(rest, mode)?), form)),
        _ => Ok(Statement::Other(OtherStatement { word, text: text.to_string(), mode })),
    }
}

/// One statement by the `sqlparser` crate.
///
/// # Errors
/// 1064 with the text from the offending word on.
pub(crate) fn parse_ast(text: &str, mode: LexicalMode) -> Result<ast::Statement, SqlError> {
    let mut destination = None;
    let mut statement = parse_tokens(text, mode, |parser| parser.parse_statement(), &mut |tokens| {
        destination = into::take(text, tokens)?;
        Ok(())
    })?;
    if let Some(destination) = destination {
        into::put(&mut statement, destination)?;
    }
    Ok(statement)
}

/// `column = expression, ...`: the SET of LOAD DATA.
///
/// # Errors
/// As [`parse_ast`].
pub(crate) fn parse_assignments(text: &str, mode: LexicalMode) -> Result<Vec<ast::Assignment>, SqlError> {
    parse_whole(text, mode, |parser| parser.parse_comma_separated(Parser::parse_assignment))
}

/// An expression.
///
/// # Errors
/// As [`parse_ast`].
pub(crate) fn parse_expression(text: &str, mode: LexicalMode) -> Result<ast::Expr, SqlError> {
    parse_whole(text, mode, |parser| parser.parse_expr())
}

/// A part that a whole text consists of.
fn parse_whole<T>(
    text: &str,
    mode: LexicalMode,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    parse_tokens(text, mode, parse, &mut |_| Ok(()))
}

/// As [`parse_whole`]. `prepare` may take tokens out beforehand.
fn parse_tokens<T>(
    text: &str,
    mode: LexicalMode,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
    prepare: &mut dyn FnMut(&mut Vec<TokenWithSpan>) -> Result<(), SqlError>,
) -> Result<T, SqlError> {
    let dialect = dialect::Mysql(MySqlDialect {});
    let options = ParserOptions::new().with_unescape(true);
    let mut tokens = tokens::tokenize(text, mode, true)
        .map_err(|error| errors::from_parser(text, &ParserError::TokenizerError(error.to_string())))?;
    prepare(&mut tokens)?;
    tokens::translate(&mut tokens, mode);
    frames::exclusions(&mut tokens)?;
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
