//! The parser's dialect: that of the `sqlparser` crate for MySQL, with MariaDB's operators. Which of two
//! operators binds tighter, and how operators of one kind group, is decided here and nowhere else.

use super::changes;
use sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, Query, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;

/// How tightly operators bind, the loosest first. Operators of one kind group from the left, but BETWEEN,
/// NOT and the signs from the right.
mod binds {
    pub(super) const OR: u8 = 5;
    pub(super) const XOR: u8 = 7;
    pub(super) const AND: u8 = 10;
    pub(super) const NOT: u8 = 15;
    /// IS too.
    pub(super) const COMPARISON: u8 = 20;
    pub(super) const BETWEEN: u8 = 24;
    /// IN and REGEXP too.
    pub(super) const LIKE: u8 = 26;
    /// NOT BETWEEN, NOT LIKE, NOT IN and NOT REGEXP, as seen from the left: `a LIKE b NOT IN (c)` is
    /// `a LIKE (b NOT IN (c))`. Behind them stands what stands behind LIKE.
    pub(super) const NEGATED_TEST: u8 = 28;
    pub(super) const BIT_OR: u8 = 30;
    pub(super) const BIT_AND: u8 = 32;
    pub(super) const SHIFT: u8 = 34;
    pub(super) const SUM: u8 = 36;
    /// DIV and MOD too.
    pub(super) const PRODUCT: u8 = 38;
    pub(super) const BIT_XOR: u8 = 40;
    /// `||` that joins texts.
    pub(super) const CONCATENATION: u8 = 45;
    /// Signs, `~`, `!` and BINARY.
    pub(super) const SIGN: u8 = 50;
    /// The variable before `:=`. What stands behind it reaches as far as it can.
    pub(super) const ASSIGNED: u8 = 90;
    /// `->` and `->>`, behind a column.
    pub(super) const PATH: u8 = 95;
    pub(super) const PERIOD: u8 = 100;
}

/// MySQL. What the crate asks about by the name of a dialect is answered as its own one does.
#[derive(Debug)]
pub(super) struct Mysql(pub(super) MySqlDialect);

/// Answers by the crate's dialect.
macro_rules! as_mysql {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            self.0.$name()
        })*
    };
}

/// The keyword at a place from the next token on.
fn keyword(parser: &Parser<'_>, ahead: usize) -> Keyword {
    match &parser.peek_nth_token_ref(ahead).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// How tightly the next token binds as an operator between two operands; 0 if it is none.
fn precedence(parser: &Parser<'_>) -> u8 {
    match &parser.peek_nth_token_ref(0).token {
        Token::Word(word) => match word.keyword {
            Keyword::OR => binds::OR,
            Keyword::XOR => binds::XOR,
            Keyword::AND => binds::AND,
            Keyword::IS => binds::COMPARISON,
            Keyword::BETWEEN => binds::BETWEEN,
            Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP | Keyword::IN => binds::LIKE,
            Keyword::DIV => binds::PRODUCT,
            Keyword::NOT => match keyword(parser, 1) {
                Keyword::BETWEEN | Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP | Keyword::IN => {
                    binds::NEGATED_TEST
                }
                _ => 0,
            },
            _ => 0,
        },
        Token::Eq | Token::Lt | Token::LtEq | Token::Neq | Token::Gt | Token::GtEq | Token::Spaceship => {
            binds::COMPARISON
        }
        Token::Pipe => binds::BIT_OR,
        Token::Ampersand => binds::BIT_AND,
        Token::ShiftLeft | Token::ShiftRight => binds::SHIFT,
        Token::Plus | Token::Minus => binds::SUM,
        Token::Mul | Token::Div | Token::Mod => binds::PRODUCT,
        Token::Caret => binds::BIT_XOR,
        Token::StringConcat => binds::CONCATENATION,
        Token::Assignment => binds::ASSIGNED,
        Token::Arrow | Token::LongArrow => binds::PATH,
        Token::Period => binds::PERIOD,
        _ => 0,
    }
}

/// The operand of an operator that binds tighter than NOT, which cannot begin with NOT.
fn operand(parser: &mut Parser<'_>, precedence: u8) -> Result<Box<Expr>, ParserError> {
    if keyword(parser, 0) == Keyword::NOT {
        return parser.expected_ref("an operand", parser.peek_nth_token_ref(0));
    }
    parser.parse_subexpr(precedence).map(Box::new)
}

fn prefix(parser: &mut Parser<'_>, op: UnaryOperator) -> Result<Expr, ParserError> {
    parser.next_token();
    Ok(Expr::UnaryOp { op, expr: operand(parser, binds::SIGN)? })
}

/// `BINARY operand`.
fn as_binary(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.next_token();
    let expr = operand(parser, binds::SIGN)?;
    Ok(Expr::Cast { kind: CastKind::Cast, expr, data_type: DataType::Binary(None), format: None })
}

/// `operand [NOT] BETWEEN low AND high`. A BETWEEN in `low` or `high` belongs to that. A chain is read in a
/// loop, because recursion is limited.
fn between(parser: &mut Parser<'_>, expr: Expr) -> Result<Expr, ParserError> {
    let mut chain = Vec::new();
    let mut expr = expr;
    loop {
        let negated = parser.parse_keyword(Keyword::NOT);
        parser.expect_keyword_is(Keyword::BETWEEN)?;
        let low = operand(parser, binds::BETWEEN - 1)?;
        parser.expect_keyword_is(Keyword::AND)?;
        let high = operand(parser, binds::BETWEEN)?;
        chain.push((expr, negated, low));
        expr = *high;
        if keyword(parser, 0) != Keyword::BETWEEN {
            break;
        }
    }
    let nested = |high, (expr, negated, low)| Expr::Between {
        expr: Box::new(expr),
        negated,
        low,
        high: Box::new(high),
    };
    Ok(chain.into_iter().rev().fold(expr, nested))
}

/// `operand [NOT] REGEXP pattern`, where the pattern may be NULL.
fn regexp(parser: &mut Parser<'_>, expr: Expr) -> Result<Expr, ParserError> {
    let negated = parser.parse_keyword(Keyword::NOT);
    let regexp = parser.parse_keyword(Keyword::REGEXP);
    if !regexp {
        parser.expect_keyword_is(Keyword::RLIKE)?;
    }
    let pattern = operand(parser, binds::LIKE)?;
    Ok(Expr::RLike { negated, expr: Box::new(expr), pattern, regexp })
}

/// `moment + INTERVAL n unit`, where nothing binds to the interval. `None` if no interval stands behind the
/// sign.
fn plus_interval(parser: &mut Parser<'_>, moment: &Expr) -> Option<Expr> {
    let op = match parser.peek_nth_token_ref(0).token {
        Token::Plus => BinaryOperator::Plus,
        Token::Minus => BinaryOperator::Minus,
        _ => return None,
    };
    if keyword(parser, 1) != Keyword::INTERVAL {
        return None;
    }
    let interval = parser.maybe_parse(|parser| {
        parser.next_token();
        match parser.parse_prefix()? {
            interval @ Expr::Interval(_) => Ok(interval),
            // The function INTERVAL().
            _ => parser.expected_ref("an interval", parser.peek_nth_token_ref(0)),
        }
    });
    let right = Box::new(interval.ok()??);
    Some(Expr::BinaryOp { left: Box::new(moment.clone()), op, right })
}

/// True in front of `IN ((SELECT ...), ...)`: a list whose first value is a subquery. The parser itself takes
/// what stands behind `IN ((SELECT` for the subquery alone.
fn begins_list_with_subquery(parser: &Parser<'_>, ahead: usize) -> bool {
    let is = |ahead, token: &Token| parser.peek_nth_token_ref(ahead).token == *token;
    if !is(ahead + 1, &Token::LParen) || !is(ahead + 2, &Token::LParen) {
        return false;
    }
    let mut depth = 0;
    let mut words = 0;
    for index in parser.get_current_index() + 1.. {
        match &parser.token_at(index).token {
            Token::EOF => return false,
            Token::Whitespace(_) => continue,
            // The first parenthesis belongs to IN.
            Token::LParen if words > ahead + 1 => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => return true,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
        words += 1;
    }
    false
}

/// `operand [NOT] IN (value, ...)`.
fn in_list(parser: &mut Parser<'_>, expr: Expr) -> Result<Expr, ParserError> {
    let negated = parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword_is(Keyword::IN)?;
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::InList { expr: Box::new(expr), list, negated })
}

/// True in front of `(VALUES (`, but not of `(VALUES(column))`, which is the new value of a column.
fn begins_values(parser: &Parser<'_>, ahead: usize) -> bool {
    let is = |behind: usize, token: &Token| parser.peek_nth_token_ref(ahead + behind).token == *token;
    let is_column = matches!(parser.peek_nth_token_ref(ahead + 3).token, Token::Word(_))
        && is(4, &Token::RParen)
        && is(5, &Token::RParen);
    is(0, &Token::LParen)
        && keyword(parser, ahead + 1) == Keyword::VALUES
        && is(2, &Token::LParen)
        && !is_column
}

/// `(VALUES ...)`: a query of rows that are written out.
fn values(parser: &mut Parser<'_>) -> Result<Box<Query>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(query)
}

/// `operand [NOT] IN (VALUES ...)`.
fn in_values(parser: &mut Parser<'_>, expr: Expr) -> Result<Expr, ParserError> {
    let negated = parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword_is(Keyword::IN)?;
    Ok(Expr::InSubquery { expr: Box::new(expr), subquery: values(parser)?, negated })
}

/// The operator in front of ANY, SOME or ALL and `(VALUES (`. The parser itself knows ANY of SELECT only.
fn compares_with_values(parser: &Parser<'_>) -> Option<BinaryOperator> {
    let operator = match parser.peek_nth_token_ref(0).token {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    };
    let is_quantified = matches!(keyword(parser, 1), Keyword::ANY | Keyword::SOME | Keyword::ALL);
    (is_quantified && begins_values(parser, 2)).then_some(operator)
}

/// `operand > ANY (VALUES ...)`.
fn quantified_values(
    parser: &mut Parser<'_>,
    left: Expr,
    compare_op: BinaryOperator,
) -> Result<Expr, ParserError> {
    parser.next_token();
    let quantifier = keyword(parser, 0);
    parser.next_token();
    let (left, right) = (Box::new(left), Box::new(Expr::Subquery(values(parser)?)));
    Ok(match quantifier {
        Keyword::ALL => Expr::AllOp { left, compare_op, right },
        _ => Expr::AnyOp { left, compare_op, right, is_some: quantifier == Keyword::SOME },
    })
}

/// How loosely an expression binds that ends in a test: an operator that binds tighter cannot follow it.
fn loosest_end(expr: &Expr) -> u8 {
    match expr {
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_) => binds::COMPARISON,
        Expr::InList { .. } | Expr::InSubquery { .. } => binds::NEGATED_TEST,
        _ => u8::MAX,
    }
}

/// `variable := value`.
fn assignment(parser: &mut Parser<'_>, variable: Expr) -> Result<Expr, ParserError> {
    parser.next_token();
    let right = Box::new(parser.parse_expr()?);
    Ok(Expr::BinaryOp { left: Box::new(variable), op: BinaryOperator::Assignment, right })
}

impl Dialect for Mysql {
    fn dialect(&self) -> TypeId {
        self.0.dialect()
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        Some(Ok(precedence(parser)))
    }

    /// For the places where the parser reads operands by itself.
    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Or => binds::OR,
            Precedence::Xor => binds::XOR,
            Precedence::And => binds::AND,
            Precedence::UnaryNot => binds::NOT,
            Precedence::Eq | Precedence::Is => binds::COMPARISON,
            // Of POSITION(a IN b) too: the operand ends before IN.
            Precedence::Like | Precedence::Between => binds::LIKE,
            Precedence::Pipe => binds::BIT_OR,
            Precedence::Ampersand => binds::BIT_AND,
            Precedence::PlusMinus => binds::SUM,
            Precedence::MulDivModOp => binds::PRODUCT,
            Precedence::Caret => binds::BIT_XOR,
            Precedence::Period => binds::PERIOD,
            other => self.0.prec_value(other),
        }
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        Some(match &parser.peek_nth_token_ref(0).token {
            Token::Minus => prefix(parser, UnaryOperator::Minus),
            Token::Plus => prefix(parser, UnaryOperator::Plus),
            Token::Tilde => prefix(parser, UnaryOperator::BitwiseNot),
            Token::ExclamationMark => prefix(parser, UnaryOperator::BangNot),
            Token::Word(word) if word.keyword == Keyword::BINARY => as_binary(parser),
            Token::LParen if begins_values(parser, 0) => values(parser).map(Expr::Subquery),
            _ => return None,
        })
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        // `1 = NOT 0` is an error, `1 IS NOT NULL` and `@a := NOT 0` are none.
        let takes_not = keyword(parser, 0) == Keyword::IS || precedence == binds::ASSIGNED;
        let behind = 1 + usize::from(keyword(parser, 0) == Keyword::NOT);
        if precedence > binds::NOT && !takes_not && keyword(parser, behind) == Keyword::NOT {
            return Some(parser.expected_ref("an operand", parser.peek_nth_token_ref(behind)));
        }
        if precedence > loosest_end(left) {
            return Some(parser.expected_ref("the end of the operand", parser.peek_nth_token_ref(0)));
        }
        if let Some(moved) = plus_interval(parser, left) {
            return Some(Ok(moved));
        }
        if let Some(operator) = compares_with_values(parser) {
            return Some(quantified_values(parser, left.clone(), operator));
        }
        let ahead = usize::from(keyword(parser, 0) == Keyword::NOT);
        Some(match &parser.peek_nth_token_ref(ahead).token {
            Token::Word(word) if word.keyword == Keyword::BETWEEN => between(parser, left.clone()),
            Token::Word(word) if matches!(word.keyword, Keyword::REGEXP | Keyword::RLIKE) => {
                regexp(parser, left.clone())
            }
            Token::Assignment => assignment(parser, left.clone()),
            Token::Word(word) if word.keyword == Keyword::IN && begins_values(parser, ahead + 1) => {
                in_values(parser, left.clone())
            }
            Token::Word(word) if word.keyword == Keyword::IN && begins_list_with_subquery(parser, ahead) => {
                in_list(parser, left.clone())
            }
            _ => return self.0.parse_infix(parser, left, precedence),
        })
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        match keyword(parser, 0) {
            Keyword::UPDATE => Some(changes::update(parser)),
            Keyword::DELETE => Some(changes::delete(parser)),
            _ => self.0.parse_statement(parser),
        }
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.0.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.0.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.0.is_delimited_identifier_start(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.0.identifier_quote_style(identifier)
    }

    /// `SELECT 1 ON DUPLICATE KEY UPDATE`: ON is no alias.
    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        *keyword != Keyword::ON && self.0.is_column_alias(keyword, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.0.is_table_factor_alias(explicit, keyword, parser)
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    /// `FROM (t)`.
    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    as_mysql!(
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        supports_multiline_comment_hints,
        require_interval_qualifier,
        supports_limit_comma,
        supports_create_table_select,
        supports_insert_set,
        supports_user_host_grantee,
        supports_table_hints,
        requires_single_line_comment_whitespace,
        supports_match_against,
        supports_select_modifiers,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_update_order_by,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_binary_kw_as_cast,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
    );
}
