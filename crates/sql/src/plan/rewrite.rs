//! Replaces parts of expressions.

use crate::expr::{Expr, SubqueryTest};

/// Calls `visit` for each direct operand.
fn for_each_operand_mut(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
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
            match &mut subquery.test {
                SubqueryTest::In { operand, .. } => visit(operand),
                SubqueryTest::Quantified { operands, .. } => operands.iter_mut().for_each(&mut *visit),
                SubqueryTest::Value | SubqueryTest::Exists => {}
            }
            subquery.parameters.iter_mut().for_each(visit);
        }
        Expr::And(operands)
        | Expr::Or(operands)
        | Expr::Quantified { operands, .. }
        | Expr::Call { arguments: operands, .. } => operands.iter_mut().for_each(visit),
        Expr::Between { operand, low, high, .. } => {
            visit(operand);
            visit(low);
            visit(high);
        }
        Expr::InList { operand, list, .. } => {
            visit(operand);
            list.iter_mut().for_each(visit);
        }
        Expr::Case { operand, whens, otherwise } => {
            operand.iter_mut().for_each(|operand| visit(operand));
            for (when, then) in whens {
                visit(when);
                visit(then);
            }
            otherwise.iter_mut().for_each(|otherwise| visit(otherwise));
        }
    }
}

/// Replaces each part of an expression, or all of it, for which `other` gives another one. What replaces it
/// is not looked at again.
pub(super) fn replace(expr: &mut Expr, other: &dyn Fn(&Expr) -> Option<Expr>) {
    match other(expr) {
        Some(found) => *expr = found,
        None => for_each_operand_mut(expr, &mut |operand| replace(operand, other)),
    }
}
