//! UPDATE and DELETE, of one table and of several, in MySQL's forms. The `sqlparser` crate knows the trees,
//! but not all of the words.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Delete, Expr, FromTable, Ident, ObjectName, OptimizerHint, OptimizerHintStyle, OrderByExpr,
    SqliteOnConflict, Statement, TableWithJoins, Update, UpdateTableFromKind,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// True if the next token is this word; then it is taken.
fn take_word(parser: &mut Parser<'_>, name: &str) -> bool {
    let is_next = match &parser.peek_nth_token_ref(0).token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
        _ => false,
    };
    if is_next {
        parser.next_token();
    }
    is_next
}

/// LOW_PRIORITY, QUICK and IGNORE. There are no priorities here and no blocks of an index to merge, so only
/// the last one is of use: true if it is there.
fn modifiers(parser: &mut Parser<'_>, has_quick: bool) -> bool {
    let mut ignore = false;
    loop {
        if take_word(parser, "IGNORE") {
            ignore = true;
            continue;
        }
        if !take_word(parser, "LOW_PRIORITY") && (!has_quick || !take_word(parser, "QUICK")) {
            return ignore;
        }
    }
}

fn order(parser: &mut Parser<'_>) -> Result<Vec<OrderByExpr>, ParserError> {
    if parser.parse_keywords(&[Keyword::ORDER, Keyword::BY]) {
        return parser.parse_comma_separated(Parser::parse_order_by_expr);
    }
    Ok(vec![])
}

/// The expression behind a keyword, if that is there.
fn behind(parser: &mut Parser<'_>, keyword: Keyword) -> Result<Option<Expr>, ParserError> {
    parser.parse_keyword(keyword).then(|| parser.parse_expr()).transpose()
}

/// UPDATE. The tables behind the first comma are in `from`.
pub(super) fn update(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let update_token = AttachedToken::from(parser.next_token());
    let or = modifiers(parser, false).then_some(SqliteOnConflict::Ignore);
    let table = parser.parse_table_and_joins()?;
    let mut others = Vec::new();
    while parser.consume_token(&Token::Comma) {
        others.push(parser.parse_table_and_joins()?);
    }
    parser.expect_keyword_is(Keyword::SET)?;
    Ok(Statement::Update(Update {
        update_token,
        optimizer_hints: vec![],
        table,
        assignments: parser.parse_comma_separated(Parser::parse_assignment)?,
        from: (!others.is_empty()).then_some(UpdateTableFromKind::BeforeSet(others)),
        selection: behind(parser, Keyword::WHERE)?,
        returning: None,
        output: None,
        or,
        order_by: order(parser)?,
        limit: behind(parser, Keyword::LIMIT)?,
    }))
}

/// A table whose rows a DELETE of several tables deletes: its name, with `.*` or without.
fn deleted_table(parser: &mut Parser<'_>) -> Result<ObjectName, ParserError> {
    let mut path: Vec<Ident> = vec![parser.parse_identifier()?];
    while parser.consume_token(&Token::Period) && !parser.consume_token(&Token::Mul) {
        path.push(parser.parse_identifier()?);
    }
    Ok(ObjectName::from(path))
}

/// The tables of `DELETE FROM a, b USING ...`. `None` if this is a DELETE of one table.
fn deleted_tables_before_using(parser: &mut Parser<'_>) -> Result<Option<Vec<ObjectName>>, ParserError> {
    parser.maybe_parse(|parser| {
        let tables = parser.parse_comma_separated(deleted_table)?;
        parser.expect_keyword_is(Keyword::USING)?;
        Ok(tables)
    })
}

/// DELETE. Of the two forms for several tables only one goes further: the tables to delete from are in
/// `tables`, and those that are joined in `from`. [`ignores`] tells IGNORE.
pub(super) fn delete(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let delete_token = AttachedToken::from(parser.next_token());
    let ignore = modifiers(parser, true);
    let tables = if parser.parse_keyword(Keyword::FROM) {
        deleted_tables_before_using(parser)?.unwrap_or_default()
    } else {
        let tables = parser.parse_comma_separated(deleted_table)?;
        parser.expect_keyword_is(Keyword::FROM)?;
        tables
    };
    let is_joined = !tables.is_empty();
    let from = if is_joined {
        parser.parse_comma_separated(Parser::parse_table_and_joins)?
    } else {
        vec![TableWithJoins { relation: parser.parse_table_factor()?, joins: vec![] }]
    };
    let hint = OptimizerHint {
        prefix: String::new(),
        text: IGNORE.to_owned(),
        style: OptimizerHintStyle::MultiLine,
    };
    let mut delete = Delete {
        delete_token,
        optimizer_hints: if ignore { vec![hint] } else { vec![] },
        tables,
        from: FromTable::WithFromKeyword(from),
        using: None,
        selection: behind(parser, Keyword::WHERE)?,
        returning: None,
        output: None,
        order_by: vec![],
        limit: None,
    };
    if !is_joined {
        delete.order_by = order(parser)?;
        delete.limit = behind(parser, Keyword::LIMIT)?;
        if parser.parse_keyword(Keyword::RETURNING) {
            delete.returning = Some(parser.parse_comma_separated(Parser::parse_select_item)?);
        }
    }
    Ok(Statement::Delete(delete))
}

const IGNORE: &str = "IGNORE";

/// True for DELETE IGNORE. The crate's tree has no place for the word, so it travels as a hint; hints that
/// are written in a statement are comments here.
pub(crate) fn ignores(delete: &Delete) -> bool {
    delete.optimizer_hints.iter().any(|hint| hint.text == IGNORE)
}
