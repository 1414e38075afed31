//! Walks over expressions.

use super::scope::Scope;
use crate::expr::{ColumnRef, Comparison, Expr, SubqueryTest};
use types::{ColumnType, Date, DateTime, Value};

/// Calls `visit` for each direct operand.
pub(crate) fn for_each_operand<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match expr {
        Expr::Constant(_)
        | Expr::Slot { .. }
        | Expr::Column(_)
        | Expr::Outer(_)
        | Expr::SystemVariable { .. }
        | Expr::UserVariable(_) => {}
        Expr::Negate(operand)
        | Expr::BitNot(operand)
        | Expr::Not(operand)
        | Expr::IsNull { operand, .. }
        | Expr::IsTruth { operand, .. }
        | Expr::InSlot { operand, .. }
        | Expr::Cast { operand, .. }
        | Expr::Collate { operand, .. }
        | Expr::Interval { amount: operand, .. }
        | Expr::AssignUserVariable { value: operand, .. } => visit(operand),
        Expr::Arithmetic { left, right, .. } | Expr::Compare { left, right, .. } | Expr::Xor(left, right) => {
            visit(left);
            visit(right);
        }
        Expr::Like { operand, pattern, .. } | Expr::Regexp { operand, pattern, .. } => {
            visit(operand);
            visit(pattern);
        }
        Expr::Subquery(subquery) => {
            match &subquery.test {
                SubqueryTest::In { operand, .. } => visit(operand),
                SubqueryTest::Quantified { operands, .. } => operands.iter().for_each(&mut *visit),
                SubqueryTest::Value | SubqueryTest::Exists => {}
            }
            subquery.parameters.iter().for_each(visit);
        }
        Expr::And(operands)
        | Expr::Or(operands)
        | Expr::Quantified { operands, .. }
        | Expr::Call { arguments: operands, .. } => {
            operands.iter().for_each(visit);
        }
        Expr::Between { operand, low, high, .. } => {
            visit(operand);
            visit(low);
            visit(high);
        }
        Expr::InList { operand, list, .. } => {
            visit(operand);
            list.iter().for_each(visit);
        }
        Expr::Case { operand, whens, otherwise } => {
            operand.iter().for_each(|operand| visit(operand));
            for (when, then) in whens {
                visit(when);
                visit(then);
            }
            otherwise.iter().for_each(|otherwise| visit(otherwise));
        }
    }
}

/// Calls `visit` for each column in an expression.
pub(crate) fn for_each_column<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e ColumnRef)) {
    if let Expr::Column(column) = expr {
        visit(column);
    }
    for_each_operand(expr, &mut |operand| for_each_column(operand, visit));
}

/// A set of the parts of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Parts(pub u64);

/// The most tables that a statement can join, as in MySQL.
pub(crate) const TABLES_MAX: usize = 61;

impl Parts {
    pub(crate) fn one(part: usize) -> Parts {
        Parts(1 << part.min(63))
    }
    pub(crate) fn with(self, part: usize) -> Parts {
        Parts(self.0 | Parts::one(part).0)
    }
    pub(crate) fn has(self, part: usize) -> bool {
        self.0 & Parts::one(part).0 != 0
    }
    pub(crate) fn is_within(self, other: Parts) -> bool {
        self.0 & !other.0 == 0
    }
    pub(crate) fn is_disjoint(self, other: Parts) -> bool {
        self.0 & other.0 == 0
    }
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |part| self.has(*part))
    }
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The parts that an expression reads.
pub(crate) fn parts_of(expr: &Expr) -> Parts {
    let mut parts = Parts::default();
    for_each_column(expr, &mut |column| parts = parts.with(column.part));
    parts
}

/// True if the value is the same for every row of one execution: no columns, no random values, no side
/// effects.
pub(crate) fn is_fixed(expr: &Expr) -> bool {
    let here = match expr {
        Expr::Column(_) | Expr::UserVariable(_) | Expr::AssignUserVariable { .. } => false,
        Expr::Call { function, .. } => function.is_fixed(),
        _ => true,
    };
    let mut all = here;
    for_each_operand(expr, &mut |operand| all &= is_fixed(operand));
    all
}

/// True if it makes a visible difference how often the expression is evaluated.
pub(crate) fn has_side_effects(expr: &Expr) -> bool {
    let mut any = match expr {
        Expr::AssignUserVariable { .. } => true,
        Expr::Call { function, arguments } => function.has_side_effects(arguments.len()),
        _ => false,
    };
    for_each_operand(expr, &mut |operand| any |= has_side_effects(operand));
    any
}

/// True if a COLLATE changes how a part of the expression compares.
pub(crate) fn has_collate(expr: &Expr) -> bool {
    let mut any = matches!(expr, Expr::Collate { .. });
    for_each_operand(expr, &mut |operand| any |= has_collate(operand));
    any
}

/// Splits a condition at its top-level ANDs.
pub(crate) fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::And(operands) => operands.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// The conditions of WHERE. As in MySQL, `IS NULL` finds the zero date in a DATE or DATETIME that cannot be
/// NULL.
pub(crate) fn conditions(expr: Expr, scope: &Scope) -> Vec<Expr> {
    conjuncts(with_zero_dates(expr, scope))
}

fn with_zero_dates(expr: Expr, scope: &Scope) -> Expr {
    let all = |operands: Vec<Expr>| operands.into_iter().map(|operand| with_zero_dates(operand, scope));
    match expr {
        Expr::And(operands) => Expr::And(all(operands).collect()),
        Expr::Or(operands) => Expr::Or(all(operands).collect()),
        Expr::Not(operand) => match *operand {
            Expr::Not(inner) => with_zero_dates(*inner, scope),
            Expr::IsNull { operand, negated: true } => {
                with_zero_dates(Expr::IsNull { operand, negated: false }, scope)
            }
            other => Expr::Not(Box::new(other)),
        },
        Expr::IsNull { operand, negated: false } => match zero_date(&operand, scope) {
            Some((zero, may_be_missing)) => {
                let right = Box::new(Expr::Constant(zero));
                let is_zero = Expr::Compare { op: Comparison::Equal, left: operand.clone(), right };
                match may_be_missing {
                    true => Expr::Or(vec![Expr::IsNull { operand, negated: false }, is_zero]),
                    false => is_zero,
                }
            }
            None => Expr::IsNull { operand, negated: false },
        },
        other => other,
    }
}

/// The zero of a DATE or DATETIME column that cannot be NULL. True if the column's row can be missing.
fn zero_date(expr: &Expr, scope: &Scope) -> Option<(Value, bool)> {
    let Expr::Column(column) = expr else { return None };
    let table = scope.tables.get(column.part)?;
    let described = table.columns.get(column.column).filter(|column| !column.nullable)?;
    let zero = match described.column_type {
        ColumnType::Date => Value::Date(Date::ZERO),
        ColumnType::DateTime { .. } => Value::DateTime(DateTime::ZERO),
        _ => return None,
    };
    Some((zero, table.nullable))
}

/// The inverse of [`conjuncts`]. `None` for no condition.
pub(crate) fn conjunction(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    }
}
