//! Subqueries that are run for each row.

use super::{Context, Result, Row, compare, in_arena};
use crate::SqlError;
use crate::expr::Slots;
use crate::expr::node::{SubqueryNode, SubqueryTest};
use types::ValueRef;

pub(super) fn value<'a>(
    subquery: &'a SubqueryNode,
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<ValueRef<'a>> {
    let Some(subqueries) = context.subqueries else {
        return Err(SqlError::not_supported("a correlated subquery here"));
    };
    let mut outer = Vec::with_capacity(subquery.parameters.len());
    for parameter in &subquery.parameters {
        outer.push(super::value(parameter, row, context)?);
    }
    let slots = Slots { outer: &outer, ..context.slots };
    match &subquery.test {
        SubqueryTest::Value => {
            let mut found = None;
            subqueries.run(&subquery.plan, slots, &mut |row| match found {
                None => {
                    found = Some(in_arena(&row[0], context));
                    Ok(true)
                }
                Some(_) => Err(SqlError::subquery_of_several_rows()),
            })?;
            Ok(found.unwrap_or(ValueRef::Null))
        }
        SubqueryTest::Exists => {
            let mut exists = false;
            subqueries.run(&subquery.plan, slots, &mut |_| {
                exists = true;
                Ok(false)
            })?;
            Ok(ValueRef::Int(i64::from(exists)))
        }
        SubqueryTest::In { operand, collation, negated } => {
            let operand = super::value(operand, row, context)?;
            let mut found = Some(false);
            subqueries.run(&subquery.plan, slots, &mut |row| {
                match compare(&operand, &row[0], *collation, context) {
                    Some(order) if order.is_eq() => found = Some(true),
                    Some(_) => {}
                    None => found = None,
                }
                Ok(found != Some(true))
            })?;
            Ok(found.map_or(ValueRef::Null, |found| ValueRef::Int(i64::from(found != *negated))))
        }
    }
}
