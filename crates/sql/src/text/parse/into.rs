//! `SELECT ... INTO @a, @b`. The `sqlparser` crate knows an INTO of other dialects, with the name of a table
//! behind it. So the clause is taken out of the tokens before the statement is parsed, and put into the tree
//! in the place of that INTO.

use super::errors;
use crate::SqlError;
use sqlparser::ast::{Expr, Ident, Query, Select, SelectInto, SetExpr, Statement};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Where the row of a query goes.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// Names of user variables, without `@`.
    pub variables: Vec<String>,
    /// The clause stands behind FROM, or there is no FROM: MariaDB warns of this form.
    pub is_last: bool,
}

fn is_word(token: &Token, name: &str) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
        _ => false,
    }
}

/// The places of the tokens that are no blanks.
fn words(tokens: &[TokenWithSpan]) -> Vec<usize> {
    (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect()
}

/// The variable at the beginning of these tokens, and how many tokens it has.
fn variable(tokens: &[TokenWithSpan], words: &[usize]) -> Option<(String, usize)> {
    match &tokens[*words.first()?].token {
        Token::Word(word) if word.quote_style.is_none() && word.value.starts_with("@@") => None,
        Token::Word(word) if word.quote_style.is_none() && word.value.len() > 1 => {
            Some((word.value.strip_prefix('@')?.to_owned(), 1))
        }
        Token::AtSign => match &tokens[*words.get(1)?].token {
            Token::Word(word) if word.quote_style.is_some() => Some((word.value.clone(), 2)),
            Token::SingleQuotedString(name) | Token::DoubleQuotedString(name) => Some((name.clone(), 2)),
            _ => None,
        },
        _ => None,
    }
}

/// Takes the INTO of a query out of its tokens. `None` if it has none, or one inside of parentheses.
///
/// # Errors
/// 1064, 1235 for files, 1327 for a name that is no user variable's.
pub(super) fn take(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<Option<Destination>, SqlError> {
    let words = words(tokens);
    let is_query = |at: &usize| {
        tokens[*at].token == Token::LParen
            || ["SELECT", "WITH", "VALUES"].iter().any(|name| is_word(&tokens[*at].token, name))
    };
    if !words.first().is_some_and(is_query) {
        return Ok(None);
    }
    let mut depth = 0_u32;
    let into = words.iter().position(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_word(&tokens[*at].token, "INTO")
    });
    let Some(into) = into else { return Ok(None) };
    let error = |word: usize| match words.get(word) {
        Some(at) => errors::error_at_token(text, &tokens[*at]),
        None => errors::error_at(text, text.len()),
    };
    let mut variables = Vec::new();
    let mut next = into + 1;
    loop {
        let rest = words.get(next..).unwrap_or_default();
        let Some((name, count)) = variable(tokens, rest) else {
            return Err(match rest.first().map(|at| &tokens[*at].token) {
                Some(token) if is_word(token, "OUTFILE") || is_word(token, "DUMPFILE") => {
                    SqlError::not_supported("SELECT ... INTO a file")
                }
                Some(Token::Word(word)) if !word.value.starts_with('@') => {
                    SqlError::undeclared_variable(&word.value)
                }
                _ => error(next),
            });
        };
        variables.push(name);
        next += count;
        if words.get(next).map(|at| &tokens[*at].token) != Some(&Token::Comma) {
            break;
        }
        next += 1;
    }
    // Behind it comes FROM, or a locking clause, or nothing.
    let behind = words.get(next).map(|at| &tokens[*at].token);
    let may_follow = ["FROM", "FOR", "LOCK"];
    let ends = matches!(behind, None | Some(Token::EOF | Token::SemiColon));
    if !ends && !may_follow.iter().any(|name| behind.is_some_and(|token| is_word(token, name))) {
        return Err(error(next));
    }
    let is_last = !behind.is_some_and(|token| is_word(token, "FROM"));
    let end = words.get(next).copied().unwrap_or(tokens.len());
    tokens.drain(words[into]..end);
    Ok(Some(Destination { variables, is_last }))
}

/// The first SELECT of a query.
fn first_select(query: &mut Query) -> Option<&mut Select> {
    let mut body = &mut *query.body;
    loop {
        match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::Query(query) => body = &mut query.body,
            SetExpr::SetOperation { left, .. } => body = left,
            _ => return None,
        }
    }
}

/// Puts a destination into the tree.
///
/// # Errors
/// 1235 for a query without a SELECT.
pub(super) fn put(statement: &mut Statement, destination: Destination) -> Result<(), SqlError> {
    let select = match statement {
        Statement::Query(query) => first_select(query),
        _ => None,
    };
    let Some(select) = select else { return Err(SqlError::not_supported("INTO of this kind of query")) };
    let variables = destination.variables.into_iter();
    let targets = variables.map(|name| Expr::Identifier(Ident::new(name))).collect();
    select.into = Some(SelectInto { temporary: false, unlogged: destination.is_last, table: true, targets });
    Ok(())
}

/// A query's destination, and the query without it. `None` if it has none.
pub(crate) fn take_destination(query: &Query) -> Option<(Query, Destination)> {
    let mut body = &*query.body;
    let select = loop {
        match body {
            SetExpr::Select(select) => break select,
            SetExpr::Query(query) => body = &query.body,
            SetExpr::SetOperation { left, .. } => body = left,
            _ => return None,
        }
    };
    // Others were written inside of parentheses.
    let into = select.into.as_ref().filter(|into| into.table)?;
    let name = |target: &Expr| match target {
        Expr::Identifier(name) => Some(name.value.clone()),
        _ => None,
    };
    let variables = into.targets.iter().filter_map(name).collect();
    let destination = Destination { variables, is_last: into.unlogged };
    let mut query = query.clone();
    first_select(&mut query)?.into = None;
    Some((query, destination))
}
