//! Subqueries that are run for each row.

use super::{Context, Result, Row, compare, in_arena};
use crate::SqlError;
use crate::expr::node::{RowTest, SubqueryNode, SubqueryTest};
use crate::expr::{Comparison, ListSet, Quantifier, Slots, StoredList};
use crate::spill::Workspace;
use types::{Collation, ValueRef};

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
            subqueries.run(&*subquery.plan, slots, &mut |row| match found {
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
            subqueries.run(&*subquery.plan, slots, &mut |_| {
                exists = true;
                Ok(false)
            })?;
            Ok(ValueRef::Int(i64::from(exists)))
        }
        SubqueryTest::In { operand, collation, negated } => {
            let operand = super::value(operand, row, context)?;
            let mut found = Some(false);
            subqueries.run(&*subquery.plan, slots, &mut |row| {
                match compare(&operand, &row[0], *collation, context) {
                    Some(order) if order.is_eq() => found = Some(true),
                    Some(_) => {}
                    None => found = None,
                }
                Ok(found != Some(true))
            })?;
            Ok(found.map_or(ValueRef::Null, |found| ValueRef::Int(i64::from(found != *negated))))
        }
        SubqueryTest::Quantified(test) => {
            let operands = operands(test, row, context)?;
            let mut outcome = Outcome::new(test.quantifier);
            subqueries.run(&*subquery.plan, slots, &mut |row| {
                outcome.take(test.compare(&operands, row, context))
            })?;
            Ok(outcome.result().map_or(ValueRef::Null, |holds| ValueRef::Int(i64::from(holds))))
        }
    }
}

/// The values of a row of operands.
pub(super) fn operands<'a>(
    test: &'a RowTest,
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<Vec<ValueRef<'a>>> {
    test.operands.iter().map(|(operand, _)| super::value(operand, row, context)).collect()
}

/// The result of an IN of rows, or of its opposite, from the set of the rows in a slot. `None` if the rows
/// must be compared one by one.
pub(super) fn find_in_set(
    test: &RowTest,
    operands: &[ValueRef<'_>],
    slot: usize,
    context: &Context<'_>,
) -> Option<Option<bool>> {
    let is_negated = match (test.op, test.quantifier) {
        (Comparison::Equal, Quantifier::Any) => false,
        (Comparison::NotEqual, Quantifier::All) => true,
        _ => return None,
    };
    let collations = test.operands.iter().map(|(_, collation)| *collation);
    let rows = ListSet::of_rows(&context.slots, slot, collations)?.rows()?;
    if rows.has(operands)? {
        return Some(Some(!is_negated));
    }
    let row = |at: usize| context.slots.list(slot).chunks(operands.len()).nth(at);
    let may_be_equal =
        |at: &usize| row(*at).is_some_and(|row| test.compare(operands, row, context).is_none());
    Some(if rows.with_nulls().iter().any(may_be_equal) { None } else { Some(is_negated) })
}

/// As [`super::in_values`], for a list in a file.
#[cold]
pub(super) fn in_stored(
    list: &StoredList,
    operand: &ValueRef<'_>,
    collation: Collation,
    context: &Context<'_>,
) -> Result<Option<bool>> {
    if operand.is_null() {
        return Ok(None);
    }
    let workspace = workspace(context)?;
    let operands = std::slice::from_ref(operand);
    if let Some(found) = list.find(operands, std::iter::once(collation), workspace)? {
        return Ok(found);
    }
    let mut found = Some(false);
    list.for_each(workspace, |row| {
        match compare(operand, &row[0], collation, context) {
            Some(order) if order.is_eq() => found = Some(true),
            Some(_) => {}
            None => found = None,
        }
        Ok(found != Some(true))
    })?;
    Ok(found)
}

/// The result of a comparison with the rows of a list in a file.
#[cold]
pub(super) fn compare_stored(
    list: &StoredList,
    test: &RowTest,
    operands: &[ValueRef<'_>],
    context: &Context<'_>,
) -> Result<Option<bool>> {
    let workspace = workspace(context)?;
    let is_negated = match (test.op, test.quantifier) {
        (Comparison::Equal, Quantifier::Any) => Some(false),
        (Comparison::NotEqual, Quantifier::All) => Some(true),
        _ => None,
    };
    if let Some(is_negated) = is_negated {
        let collations = test.operands.iter().map(|(_, collation)| *collation);
        if let Some(found) = list.find(operands, collations, workspace)? {
            return Ok(found.map(|found| found != is_negated));
        }
    }
    let mut outcome = Outcome::new(test.quantifier);
    list.for_each(workspace, |row| outcome.take(test.compare(operands, row, context)))?;
    Ok(outcome.result())
}

fn workspace<'a>(context: &Context<'a>) -> Result<Workspace<'a>> {
    let subqueries = context.subqueries.ok_or_else(|| SqlError::internal("a list without its subquery"))?;
    Ok(subqueries.workspace())
}

impl RowTest {
    /// Whether the comparison holds with one row. In the order of rows the first values that differ decide.
    pub(super) fn compare(
        &self,
        operands: &[ValueRef<'_>],
        row: &[ValueRef<'_>],
        context: &Context<'_>,
    ) -> Option<bool> {
        if let ([operand], [value], [(_, collation)]) = (operands, row, &*self.operands)
            && self.op != Comparison::NullSafeEqual
        {
            return compare(operand, value, *collation, context).map(|order| self.op.holds(order));
        }
        if self.op.is_order() {
            return self.compare_in_order(operands, row, context);
        }
        let mut equal = Some(true);
        for ((operand, value), (_, collation)) in operands.iter().zip(row).zip(&self.operands) {
            let is_equal = match self.op {
                Comparison::NullSafeEqual => {
                    Some(super::null_safe_equal(operand, value, *collation, context))
                }
                _ => compare(operand, value, *collation, context).map(|order| order.is_eq()),
            };
            match is_equal {
                Some(true) => {}
                Some(false) => return Some(self.op == Comparison::NotEqual),
                None => equal = None,
            }
        }
        equal.map(|equal| equal != (self.op == Comparison::NotEqual))
    }

    #[cold]
    fn compare_in_order(
        &self,
        operands: &[ValueRef<'_>],
        row: &[ValueRef<'_>],
        context: &Context<'_>,
    ) -> Option<bool> {
        for ((operand, value), (_, collation)) in operands.iter().zip(row).zip(&self.operands) {
            let order = compare(operand, value, *collation, context)?;
            if order.is_ne() {
                return Some(self.op.holds(order));
            }
        }
        Some(self.op.holds(std::cmp::Ordering::Equal))
    }
}

/// The result of a comparison with several rows.
pub(super) struct Outcome {
    quantifier: Quantifier,
    rows: usize,
    result: Option<bool>,
}

impl Outcome {
    pub(super) fn new(quantifier: Quantifier) -> Outcome {
        let result = match quantifier {
            Quantifier::Any => Some(false),
            Quantifier::All => Some(true),
            Quantifier::Only => None,
        };
        Outcome { quantifier, rows: 0, result }
    }

    /// Takes the comparison with one row in; false if no further row changes the result.
    pub(super) fn take(&mut self, holds: Option<bool>) -> Result<bool> {
        self.rows += 1;
        match self.quantifier {
            Quantifier::Only if self.rows > 1 => return Err(SqlError::subquery_of_several_rows()),
            Quantifier::Only => self.result = holds,
            Quantifier::Any if holds != Some(false) => self.result = holds,
            Quantifier::All if holds != Some(true) => self.result = holds,
            _ => {}
        }
        Ok(match self.quantifier {
            Quantifier::Any => holds != Some(true),
            Quantifier::All => holds != Some(false),
            Quantifier::Only => true,
        })
    }

    pub(super) fn result(&self) -> Option<bool> {
        self.result
    }
}
