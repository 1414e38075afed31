//! GROUP BY ... WITH ROLLUP.
//!
//! A row belongs to several groups: one for each number of keys that are told apart. The result reads keys in
//! a part of the row behind that of the aggregates. There a key is NULL if it is not told apart.

use super::rewrite::replace;
use super::select::{Item, Order};
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

/// Lets the result read the keys in `part`.
///
/// # Errors
/// 1235 for too many keys, and those of [`Compiled::stored`].
pub(super) fn read_keys(
    keys: &[Expr],
    part: usize,
    connection: Collation,
    items: &mut [Item],
    having: &mut Option<Expr>,
    order: &mut [Order],
) -> Result<(), SqlError> {
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
    let key_of = |expr: &Expr| {
        let found = |(key, column): (&Expr, &Expr)| read_instead(expr, key, column);
        keys.iter().zip(&columns).find_map(found)
    };
    for item in items {
        replace(&mut item.expr, &key_of);
        if let Some(meta) = &mut item.meta {
            meta.not_null = false;
        }
    }
    having.iter_mut().for_each(|having| replace(having, &key_of));
    order.iter_mut().for_each(|order| replace(&mut order.expr, &key_of));
    Ok(())
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
