//! `+ - * / DIV %`, the bit operators, and the sign.

use super::super::node::Node;
use super::super::{Arithmetic, Context, DIVISION_INCREMENT, Row};
use super::convert::{self, Number, out_of_range};
use super::{Result, value};
use crate::ErrorKind;
use types::{Decimal, ValueRef};

pub(super) fn arithmetic<'a>(
    op: Arithmetic,
    sides: &'a (Node, Node),
    node: &'a Node,
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<ValueRef<'a>> {
    let (left, right) = (value(&sides.0, row, context)?, value(&sides.1, row, context)?);
    if left.is_null() || right.is_null() {
        return Ok(ValueRef::Null);
    }
    match op {
        Arithmetic::BitAnd
        | Arithmetic::BitOr
        | Arithmetic::BitXor
        | Arithmetic::ShiftLeft
        | Arithmetic::ShiftRight => return Ok(bits(op, &left, &right, context)),
        _ => {}
    }
    apply(op, &left, &right, context, || describe(node, context))
}

/// A calculation with values that are not NULL. `describe` names it if it overflows.
pub(in crate::expr) fn apply<'a>(
    op: Arithmetic,
    left: &ValueRef<'_>,
    right: &ValueRef<'_>,
    context: &Context<'_>,
    describe: impl Fn() -> String,
) -> Result<ValueRef<'a>> {
    let (Some(a), Some(b)) = (convert::to_number(left, context), convert::to_number(right, context)) else {
        return Ok(ValueRef::Null);
    };
    match calculate(op, a, b) {
        Ok(Some(number)) => Ok(number.to_value()),
        Ok(None) => {
            if context.environment.sql_mode().error_for_division_by_zero {
                context.environment.warn(ErrorKind::DivisionByZero, "Division by 0".into());
            }
            Ok(ValueRef::Null)
        }
        Err(kind) => Err(out_of_range(kind, &describe())),
    }
}

/// `Ok(None)` is a division by zero; the error names the kind of number that overflowed.
fn calculate(op: Arithmetic, a: Number, b: Number) -> std::result::Result<Option<Number>, &'static str> {
    match (a, b) {
        (Number::Double(_), _) | (_, Number::Double(_)) if op == Arithmetic::IntegerDivide => {
            decimals(op, a.to_decimal(), b.to_decimal())
        }
        (Number::Double(_), _) | (_, Number::Double(_)) => doubles(op, a, b),
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => decimals(op, a.to_decimal(), b.to_decimal()),
        _ if op == Arithmetic::Divide => decimals(op, a.to_decimal(), b.to_decimal()),
        _ => integers(op, a, b),
    }
}

fn integers(op: Arithmetic, a: Number, b: Number) -> std::result::Result<Option<Number>, &'static str> {
    let unsigned = match op {
        Arithmetic::Modulo => matches!(a, Number::UInt(_)),
        _ => matches!(a, Number::UInt(_)) || matches!(b, Number::UInt(_)),
    };
    let (a, b) = (convert::number_to_int(a), convert::number_to_int(b));
    let result = match op {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        // Two 64-bit numbers: 128 bits hold the product.
        Arithmetic::Multiply => a.checked_mul(b).unwrap_or(i128::MAX),
        _ if b == 0 => return Ok(None),
        Arithmetic::Modulo => a % b,
        _ => a / b,
    };
    if unsigned {
        u64::try_from(result).map(|number| Some(Number::UInt(number))).map_err(|_| "BIGINT UNSIGNED")
    } else {
        i64::try_from(result).map(|number| Some(Number::Int(number))).map_err(|_| "BIGINT")
    }
}

fn decimals(op: Arithmetic, a: Decimal, b: Decimal) -> std::result::Result<Option<Number>, &'static str> {
    let result = match op {
        Arithmetic::Add => a.add(&b),
        Arithmetic::Subtract => a.subtract(&b),
        Arithmetic::Multiply => a.multiply(&b),
        Arithmetic::Divide | Arithmetic::IntegerDivide | Arithmetic::Modulo => {
            let result = match op {
                Arithmetic::Modulo => a.remainder(&b),
                Arithmetic::IntegerDivide => a.divide(&b, 0),
                _ => a.divide(&b, DIVISION_INCREMENT),
            };
            match result {
                Some(None) => return Ok(None),
                Some(Some(quotient)) if op == Arithmetic::IntegerDivide => {
                    let whole = quotient.truncated(0);
                    return match (whole.to_i64(), whole.to_u64()) {
                        (Some(number), _) => Ok(Some(Number::Int(number))),
                        (None, Some(number)) => Ok(Some(Number::UInt(number))),
                        _ => Err("BIGINT"),
                    };
                }
                Some(Some(result)) => Some(result),
                None => None,
            }
        }
        _ => None,
    };
    result.map(|number| Some(Number::Decimal(number))).ok_or("DECIMAL")
}

fn doubles(op: Arithmetic, a: Number, b: Number) -> std::result::Result<Option<Number>, &'static str> {
    let (a, b) = (a.to_f64(), b.to_f64());
    let result = match op {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        _ if b == 0.0 => return Ok(None),
        Arithmetic::Modulo => a % b,
        _ => a / b,
    };
    if result.is_finite() { Ok(Some(Number::Double(result))) } else { Err("DOUBLE") }
}

/// Adds, for SUM: wider kinds win. `None` if it gets too large.
pub(crate) fn add(a: Number, b: Number) -> Option<Number> {
    calculate(Arithmetic::Add, a, b).ok().flatten()
}

/// Divides, for AVG.
pub(crate) fn divide(a: Number, b: Number) -> Option<Number> {
    calculate(Arithmetic::Divide, a, b).ok().flatten()
}

fn bits<'a>(
    op: Arithmetic,
    left: &ValueRef<'_>,
    right: &ValueRef<'_>,
    context: &Context<'_>,
) -> ValueRef<'a> {
    let right = match op {
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
            convert::to_int(right, context).map(|places| places as u64)
        }
        _ => convert::to_bits(right, context),
    };
    let (a, b) = (convert::to_bits(left, context), right);
    let (Some(a), Some(b)) = (a, b) else { return ValueRef::Null };
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    ValueRef::UInt(match op {
        Arithmetic::BitAnd => a & b,
        Arithmetic::BitOr => a | b,
        Arithmetic::BitXor => a ^ b,
        Arithmetic::ShiftLeft => a.checked_shl(shift).unwrap_or(0),
        _ => a.checked_shr(shift).unwrap_or(0),
    })
}

pub(super) fn negate<'a>(operand: &'a Node, row: &Row<'a>, context: &Context<'a>) -> Result<ValueRef<'a>> {
    let number = convert::to_number(&value(operand, row, context)?, context);
    let overflow = || out_of_range("BIGINT", &format!("-{}", describe(operand, context)));
    Ok(match number {
        None => ValueRef::Null,
        Some(Number::Int(number)) => match number.checked_neg() {
            Some(negated) => ValueRef::Int(negated),
            None => return Err(overflow()),
        },
        Some(Number::UInt(number)) => match i64::try_from(-(number as i128)) {
            Ok(negated) => ValueRef::Int(negated),
            Err(_) if matches!(operand, Node::Constant(_) | Node::Slot(_)) => {
                ValueRef::Decimal(Decimal::from(number).negate())
            }
            Err(_) => return Err(overflow()),
        },
        Some(Number::Decimal(number)) => ValueRef::Decimal(number.negate()),
        Some(Number::Double(number)) => ValueRef::Double(-number),
    })
}

/// An expression for a message.
fn describe(node: &Node, context: &Context<'_>) -> String {
    let literal = |value: &ValueRef<'_>| {
        let mut text = String::new();
        convert::write_text(value, &mut text);
        match value {
            ValueRef::Text(_) | ValueRef::Binary(_) => format!("'{text}'"),
            ValueRef::Null => "NULL".into(),
            _ => text,
        }
    };
    match node {
        Node::Constant(value) => literal(&value.as_ref()),
        Node::Slot(index) => literal(&context.slots.value(*index)),
        Node::Column { name, .. } | Node::Stamp { name, .. } => format!("`{name}`"),
        Node::Negate(operand) => format!("-{}", describe(operand, context)),
        Node::BitNot(operand) => format!("~{}", describe(operand, context)),
        Node::Not(operand) => format!("!{}", describe(operand, context)),
        Node::Arithmetic { op, sides } => {
            let sign = op.sign();
            let binds = tightness(*op);
            format!("{} {sign} {}", operand(&sides.0, binds, context), operand(&sides.1, binds + 1, context))
        }
        Node::Call(call) => {
            let arguments: Vec<String> =
                call.arguments.iter().map(|argument| describe(argument, context)).collect();
            format!("{}({})", call.function.name, arguments.join(","))
        }
        _ => "...".into(),
    }
}

/// How tightly an operator binds.
fn tightness(op: Arithmetic) -> u8 {
    match op {
        Arithmetic::BitOr => 1,
        Arithmetic::BitAnd => 2,
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight => 3,
        Arithmetic::Add | Arithmetic::Subtract => 4,
        Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::IntegerDivide | Arithmetic::Modulo => 5,
        Arithmetic::BitXor => 6,
    }
}

/// An operand for a message, in parentheses if it binds less than `binds`.
fn operand(node: &Node, binds: u8, context: &Context<'_>) -> String {
    match node {
        Node::Arithmetic { op, .. } if tightness(*op) < binds => format!("({})", describe(node, context)),
        _ => describe(node, context),
    }
}
