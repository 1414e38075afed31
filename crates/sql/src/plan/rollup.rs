//! GROUP BY ... WITH ROLLUP.
//!
//! A row belongs to several groups: one for each number of keys that are told apart. The result reads keys in
//! a part of the row behind that of the aggregates. There a key is NULL if it is not told apart.

use super::rewrite::replace;
use super::select::Item;
use super::walk::for_each_operand;
use crate::expr::value_keys::ValueKeys;
use crate::expr::{ColumnRef, Comparison, Compiled, Expr};
use crate::{ErrorKind, SqlError};
use sqlparser::ast;
use types::{Collation, Value};

/// True for WITH ROLLUP.
///
/// # Errors
/// 1235 for what MariaDB does not have either, 1221 beside ORDER BY.
pub(super) fn is_wanted(group_by: &ast::GroupByExpr, is_ordered: bool) -> Result<bool, SqlError> {
    let ast::GroupByExpr::Expressions(_, modifiers) = group_by else { return Ok(false) };
    match modifiers.as_slice() {
        [] => Ok(false),
        [ast::GroupByWithModifier::Rollup] if is_ordered => {
            let text = "Incorrect usage of CUBE/ROLLUP and ORDER BY";
            Err(SqlError::new(ErrorKind::WrongUsage, text))
        }
        [ast::GroupByWithModifier::Rollup] => Ok(true),
        [ast::GroupByWithModifier::Cube] => Err(SqlError::not_supported("CUBE")),
        other => Err(SqlError::syntax(&other[other.len() - 1].to_string(), 1)),
    }
}

/// The most keys that WITH ROLLUP takes. Each row belongs to as many groups.
const KEYS_MAX: usize = 64;

/// The keys, and the columns in which a result reads them.
pub(super) struct ReadKeys<'k> {
    keys: &'k [Expr],
    columns: Vec<Expr>,
}

impl ReadKeys<'_> {
    /// Lets an expression read the keys.
    pub(super) fn in_expr(&self, expr: &mut Expr) {
        replace(expr, &|expr| {
            let found = |(key, column): (&Expr, &Expr)| read_instead(expr, key, column);
            self.keys.iter().zip(&self.columns).find_map(found)
        });
    }

    /// Lets an item of the select list read the keys, of which each may be NULL.
    pub(super) fn in_item(&self, item: &mut Item) {
        self.in_expr(&mut item.expr);
        if let Some(meta) = &mut item.meta {
            meta.not_null = false;
        }
    }
}

/// The keys as a result reads them, in `part`.
///
/// # Errors
/// 1235 for too many keys, and those of [`Compiled::stored`].
pub(super) fn keys_of(keys: &[Expr], part: usize, connection: Collation) -> Result<ReadKeys<'_>, SqlError> {
    if keys.len() > KEYS_MAX {
        return Err(SqlError::not_supported("ROLLUP of so many columns"));
    }
    let mut columns = Vec::new();
    for (position, key) in keys.iter().enumerate() {
        let compiled = Compiled::stored(key, connection)?;
        let result = compiled.result_type();
        let (digits, is_json, name) = match key {
            Expr::Column(column) => (column.digits, column.is_json, column.name.clone()),
            _ => (None, false, String::new()),
        };
        let column_type = result.column_type.clone();
        let (in_utc, nullable) = (false, true);
        let column =
            ColumnRef { part, column: position, column_type, nullable, digits, is_json, in_utc, name };
        columns.push(Expr::Column(column));
    }
    Ok(ReadKeys { keys, columns })
}

/// What an expression reads that is equal to a key: the key's column. Where literals of one are slots, only
/// the run knows whether they are those of the other.
fn read_instead(expr: &Expr, key: &Expr, column: &Expr) -> Option<Expr> {
    if expr == key {
        return Some(column.clone());
    }
    let without_literals = |expr: &Expr| {
        let mut expr = expr.clone();
        replace(&mut expr, &|part| is_literal(part).then_some(Expr::Constant(Value::Null)));
        expr
    };
    let (mut own, mut of_key) = (Vec::new(), Vec::new());
    literals(expr, &mut own);
    literals(key, &mut of_key);
    let has_slot = own.iter().chain(&of_key).any(|literal| matches!(literal, Expr::Slot { .. }));
    if !has_slot || is_literal(expr) || without_literals(expr) != without_literals(key) {
        return None;
    }
    let pairs = own.into_iter().zip(of_key).map(|(left, right)| Expr::Compare {
        op: Comparison::NullSafeEqual,
        left: Box::new(left),
        right: Box::new(right),
    });
    let whens = vec![(Expr::And(pairs.collect()), column.clone())];
    Some(Expr::Case { operand: None, whens, otherwise: Some(Box::new(expr.clone())) })
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Slot { .. } | Expr::Constant(_))
}

/// The literals in an expression.
fn literals(expr: &Expr, found: &mut Vec<Expr>) {
    if is_literal(expr) {
        found.push(expr.clone());
    }
    for_each_operand(expr, &mut |operand| literals(operand, found));
}

/// Encodes the values of the keys one by one.
pub(super) fn encoders(keys: &[Compiled]) -> Vec<ValueKeys> {
    keys.iter().map(|key| ValueKeys::new(std::iter::once(super::select::pseudo_column(key)))).collect()
}
