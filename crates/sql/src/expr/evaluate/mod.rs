//! Running compiled expressions.

pub(super) mod arithmetic;
mod cast;
mod compare;
pub(super) mod convert;
pub(super) mod date;

pub(super) mod like;
pub(super) mod regexp;
mod subquery;

pub(crate) use compare::compare;
use compare::compare_all_digits;

pub(super) use arithmetic::{add, divide};
pub(super) use convert::{
    Number, number_to_int, number_to_whole, plain_number, round_f64, shown, to_decimal, to_number, to_text,
    to_truth, whole_seconds, write_text,
};

use super::coded;
use super::functions::Arguments;
use super::node::{Conversion, Node};
use super::{Comparison, Context, ListSet, Patience, Row};
use crate::SqlError;
use types::{Code, Collation, ColumnType, DateTime, Decimal, Time, ValueRef};

type Result<T> = std::result::Result<T, SqlError>;

/// The value of a node over a row.
pub(super) fn value<'a>(node: &'a Node, row: &Row<'a>, context: &Context<'a>) -> Result<ValueRef<'a>> {
    Ok(match node {
        Node::Constant(value) => value.as_ref(),
        Node::Slot(index) => context.slots.value(*index),
        Node::Column { part, column, .. } => row.get(*part, *column),
        Node::Stamp { part, column, .. } => match row.get(*part, *column) {
            ValueRef::DateTime(stored) => {
                ValueRef::DateTime(context.environment.time_zone().from_utc(stored))
            }
            other => other,
        },
        Node::Outer(index) => context.slots.outer[*index],
        Node::Coded { operand, of: ColumnType::Code(code), as_number: true } => {
            coded::bytes_of(value(operand, row, context)?, *code, context.arena)
        }
        Node::Coded { operand, of, as_number: true } => coded::number(value(operand, row, context)?, of),
        Node::Code { operand, code } => coded::read(&value(operand, row, context)?, *code, context),
        Node::Coded { operand, of, as_number: false } => {
            coded::shown(value(operand, row, context)?, of, context.arena)
        }
        Node::Subquery(subquery) => subquery::value(subquery, row, context)?,
        Node::Negate(operand) => arithmetic::negate(operand, row, context)?,
        Node::BitNot(operand) => match convert::to_bits(&value(operand, row, context)?, context) {
            Some(bits) => ValueRef::UInt(!bits),
            None => ValueRef::Null,
        },
        Node::Arithmetic { op, sides } => arithmetic::arithmetic(*op, sides, node, row, context)?,
        Node::Case { operand, whens, otherwise, collation, to } => {
            case(operand.as_deref(), whens, otherwise.as_deref(), *collation, *to, row, context)?
        }
        Node::Cast { operand, to } => cast::cast(&value(operand, row, context)?, to, context),
        Node::DateArithmetic { sides, unit, subtract, class } => {
            date::date_arithmetic(sides, *unit, *subtract, *class, row, context)?
        }
        Node::Call(call) => {
            let value = (call.evaluate)(&Arguments { call, row, context })?;
            check_arena(context)?;
            value
        }
        Node::SystemVariable { scope, cache, name } => {
            let value = context.environment.system_variable(*scope, cache.as_deref(), name)?;
            in_arena(&value.as_ref(), context)
        }
        Node::UserVariable(name) => {
            let value = in_arena(&context.environment.user_variable(name).as_ref(), context);
            check_arena(context)?;
            value
        }
        Node::AssignUserVariable { name, value: assigned } => {
            let assigned = value(assigned, row, context)?;
            context.environment.set_user_variable(name, assigned.to_value());
            context.environment.cover(context.arena.allocated_bytes())?;
            assigned
        }
        Node::Compare { .. }
        | Node::And(_)
        | Node::Or(_)
        | Node::Xor(_)
        | Node::Not(_)
        | Node::IsNull { .. }
        | Node::IsTruth { .. }
        | Node::Between { .. }
        | Node::InList { .. }
        | Node::InInts { .. }
        | Node::InSlot { .. }
        | Node::InCodes { .. }
        | Node::Quantified { .. }
        | Node::Like { .. }
        | Node::Regexp { .. } => {
            truth(node, row, context)?.map_or(ValueRef::Null, |truth| ValueRef::Int(truth as i64))
        }
    })
}

/// The values of a row may take so many bytes before the session's account is asked.
const ARENA_BYTES: usize = 1 << 20;

/// Counts what the values of the row take, if it is much.
#[inline]
fn check_arena(context: &Context<'_>) -> Result<()> {
    let bytes = context.arena.allocated_bytes();
    if bytes <= ARENA_BYTES { Ok(()) } else { context.environment.cover(bytes) }
}

/// A value that lives as long as the row.
fn in_arena<'a>(value: &ValueRef<'_>, context: &Context<'a>) -> ValueRef<'a> {
    match *value {
        ValueRef::Text(bytes) => ValueRef::Text(context.arena.alloc_slice_copy(bytes)),
        ValueRef::Binary(bytes) => ValueRef::Binary(context.arena.alloc_slice_copy(bytes)),
        ValueRef::Null => ValueRef::Null,
        ValueRef::Int(number) => ValueRef::Int(number),
        ValueRef::UInt(number) => ValueRef::UInt(number),
        ValueRef::Float(number) => ValueRef::Float(number),
        ValueRef::Double(number) => ValueRef::Double(number),
        ValueRef::Decimal(number) => ValueRef::Decimal(number),
        ValueRef::Date(date) => ValueRef::Date(date),
        ValueRef::Time(time) => ValueRef::Time(time),
        ValueRef::DateTime(moment) => ValueRef::DateTime(moment),
    }
}

/// The truth of a comparison; `None` for NULL. As in MariaDB, nothing is evaluated beside a NULL on the left.
#[inline]
fn comparison<'a>(
    op: Comparison,
    collation: Collation,
    sides: &'a (Node, Node),
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<Option<bool>> {
    let left = value(&sides.0, row, context)?;
    if left.is_null() && op != Comparison::NullSafeEqual {
        return Ok(None);
    }
    let right = value(&sides.1, row, context)?;
    if op == Comparison::NullSafeEqual {
        return Ok(Some(null_safe_equal(&left, &right, collation, context)));
    }
    Ok(compare(&left, &right, collation, context).map(|order| op.holds(order)))
}

/// The truth of a node over a row; `None` for NULL.
pub(super) fn truth<'a>(node: &'a Node, row: &Row<'a>, context: &Context<'a>) -> Result<Option<bool>> {
    Ok(match node {
        Node::Compare { op, collation, sides } => comparison(*op, *collation, sides, row, context)?,
        Node::And(nodes) => {
            let mut result = Some(true);
            for node in nodes {
                match truth(node, row, context)? {
                    Some(false) => return Ok(Some(false)),
                    Some(true) => {}
                    None => result = None,
                }
            }
            result
        }
        Node::Or(nodes) => {
            let mut result = Some(false);
            for node in nodes {
                match truth(node, row, context)? {
                    Some(true) => return Ok(Some(true)),
                    Some(false) => {}
                    None => result = None,
                }
            }
            result
        }
        Node::Xor(sides) => match (truth(&sides.0, row, context)?, truth(&sides.1, row, context)?) {
            (Some(a), Some(b)) => Some(a != b),
            _ => None,
        },
        Node::Not(operand) => truth(operand, row, context)?.map(|truth| !truth),
        Node::IsNull { operand, negated } => Some(value(operand, row, context)?.is_null() != *negated),
        Node::IsTruth { operand, truth: wanted, negated } => {
            Some((truth(operand, row, context)? == Some(*wanted)) != *negated)
        }
        Node::Between { operands, collation, negated } => {
            let [operand, low, high] = &**operands;
            let operand = value(operand, row, context)?;
            if operand.is_null() {
                return Ok(None);
            }
            let low = compare_all_digits(&operand, &value(low, row, context)?, *collation, context);
            let high = compare_all_digits(&operand, &value(high, row, context)?, *collation, context);
            let within = match (low.map(|order| order.is_ge()), high.map(|order| order.is_le())) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            within.map(|within| within != *negated)
        }
        Node::InList { operand, list, collation, negated } => {
            in_list(operand, list, *collation, row, context)?.map(|found| found != *negated)
        }
        Node::InInts { operand, sorted, has_null, negated } => {
            in_integers(&value(operand, row, context)?, sorted, *has_null).map(|found| found != *negated)
        }
        Node::InCodes { operand, index, code, negated } => {
            let operand = value(operand, row, context)?;
            in_codes(&operand, *index, *code, context)?.map(|found| found != *negated)
        }
        Node::InSlot { operand, index, collation, negated } => {
            let operand = value(operand, row, context)?;
            in_slot(&operand, *index, *collation, context)?.map(|found| found != *negated)
        }
        Node::Quantified { row: test, index } => {
            let operands = subquery::operands(test, row, context)?;
            if let Some(found) = subquery::find_in_set(test, &operands, *index, context) {
                return Ok(found);
            }
            if let Some(list) = ListSet::stored_of_slot(&context.slots, *index) {
                return subquery::compare_stored(list, test, &operands, context);
            }
            let mut outcome = subquery::Outcome::new(test.quantifier);
            for values in context.slots.list(*index).chunks(operands.len()) {
                if !outcome.take(test.compare(&operands, values, context))? {
                    break;
                }
            }
            outcome.result()
        }
        Node::Like { sides, escape, collation, negated } => {
            is_like(sides, *escape, *collation, row, context)?.map(|fits| fits != *negated)
        }
        Node::Regexp { sides, ignore_case, negated } => {
            let (left, right) = (value(&sides.0, row, context)?, value(&sides.1, row, context)?);
            match (to_text(&left, context), to_text(&right, context)) {
                (Some(text), Some(pattern)) => {
                    Some(regexp::is_found(text, pattern, *ignore_case, context.environment)? != *negated)
                }
                _ => None,
            }
        }
        // A member is true by its number.
        Node::Coded { operand, of, .. } => {
            to_truth(&coded::number(value(operand, row, context)?, of), context)
        }
        _ => to_truth(&value(node, row, context)?, context),
    })
}

/// Whether one of a slot's texts is this code; `None` for NULL.
fn in_codes<'a>(
    operand: &ValueRef<'a>,
    index: usize,
    code: Code,
    context: &Context<'a>,
) -> Result<Option<bool>> {
    if ListSet::stored_of_slot(&context.slots, index).is_some() {
        let shown = coded::shown_code(*operand, code, context.arena);
        return in_slot(&shown, index, Collation::Utf8mb4GeneralCi, context);
    }
    let mut outcome = Some(false);
    for value in context.slots.list(index) {
        match coded::read(value, code, context) {
            ValueRef::Null => outcome = None,
            value if value == *operand => return Ok(Some(true)),
            _ => {}
        }
    }
    Ok(if operand.is_null() { None } else { outcome })
}

/// The truth of `operand IN (list)`; `None` for NULL.
#[inline]
fn in_list<'a>(
    operand: &'a Node,
    list: &'a [Node],
    collation: Collation,
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<Option<bool>> {
    let operand = value(operand, row, context)?;
    if operand.is_null() {
        return Ok(None);
    }
    let mut found = Some(false);
    for node in list {
        let value = value(node, row, context)?;
        // A single value is compared as by `=`.
        let order = match list.len() {
            1 => compare(&operand, &value, collation, context),
            _ => compare_all_digits(&operand, &value, collation, context),
        };
        match order {
            Some(order) if order.is_eq() => return Ok(Some(true)),
            Some(_) => {}
            None => found = None,
        }
    }
    Ok(found)
}

/// The truth of `operand IN (integers)`, which are sorted; `None` for NULL. With `has_null` the list
/// has a NULL, too.
#[inline]
fn in_integers(operand: &ValueRef<'_>, sorted: &[i64], has_null: bool) -> Option<bool> {
    let operand = match *operand {
        ValueRef::Int(number) => Some(number),
        ValueRef::UInt(number) => i64::try_from(number).ok(),
        ValueRef::Null => return None,
        _ => None,
    };
    match operand.is_some_and(|number| sorted.binary_search(&number).is_ok()) {
        true => Some(true),
        false if has_null => None,
        false => Some(false),
    }
}

/// The truth of LIKE; `None` for NULL.
#[inline]
fn is_like<'a>(
    (text, pattern): &'a (Node, Node),
    escape: Option<char>,
    collation: Collation,
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<Option<bool>> {
    let (text, pattern) = (value(text, row, context)?, value(pattern, row, context)?);
    let is_binary = like::is_binary(&text) || like::is_binary(&pattern);
    let collation = if is_binary { Collation::Binary } else { collation };
    Ok(match (to_text(&text, context), to_text(&pattern, context)) {
        (Some(text), Some(pattern)) => {
            let mut patience = Patience::new(context.environment);
            Some(like::like(text, pattern, escape, collation, &mut patience)?)
        }
        _ => None,
    })
}

/// IN with values that are known already. `None` is SQL's unknown.
#[inline(always)]
fn in_slot(
    operand: &ValueRef<'_>,
    slot: usize,
    collation: Collation,
    context: &Context<'_>,
) -> Result<Option<bool>> {
    let list = context.slots.list(slot);
    if list.is_empty()
        && let Some(stored) = ListSet::stored_of_slot(&context.slots, slot)
    {
        return subquery::in_stored(stored, operand, collation, context);
    }
    let set = ListSet::of_slot(&context.slots, slot, collation);
    let found = set.and_then(|set| set.find(operand, collation));
    Ok(found.unwrap_or_else(|| in_values(operand, list, collation, context)))
}

fn in_values(
    operand: &ValueRef<'_>,
    list: &[ValueRef<'_>],
    collation: Collation,
    context: &Context<'_>,
) -> Option<bool> {
    let mut found = Some(false);
    for value in list {
        match compare(operand, value, collation, context) {
            Some(order) if order.is_eq() => return Some(true),
            Some(_) => {}
            None => found = None,
        }
    }
    found
}

fn null_safe_equal(
    left: &ValueRef<'_>,
    right: &ValueRef<'_>,
    collation: Collation,
    context: &Context<'_>,
) -> bool {
    match (left.is_null(), right.is_null()) {
        (true, true) => true,
        (false, false) => compare(left, right, collation, context).is_some_and(|order| order.is_eq()),
        _ => false,
    }
}

fn case<'a>(
    operand: Option<&'a Node>,
    whens: &'a [(Node, Node)],
    otherwise: Option<&'a Node>,
    collation: Collation,
    to: Conversion,
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<ValueRef<'a>> {
    let operand = operand.map(|operand| value(operand, row, context)).transpose()?;
    // Nothing equals NULL.
    let whens = if operand.is_some_and(|operand| operand.is_null()) { &[] } else { whens };
    for (when, then) in whens {
        let holds = match &operand {
            Some(operand) => {
                let when = value(when, row, context)?;
                compare_all_digits(operand, &when, collation, context).is_some_and(|order| order.is_eq())
            }
            None => truth(when, row, context)? == Some(true),
        };
        if holds {
            return Ok(convert_to(&value(then, row, context)?, to, context));
        }
    }
    match otherwise {
        Some(otherwise) => Ok(convert_to(&value(otherwise, row, context)?, to, context)),
        None => Ok(ValueRef::Null),
    }
}

/// The result of a choice: the value of its branch, converted.
pub(super) fn convert_to<'a>(value: &ValueRef<'a>, to: Conversion, context: &Context<'a>) -> ValueRef<'a> {
    let converted = match to {
        Conversion::None => Some(*value),
        Conversion::Double => convert::to_f64(value, context).map(ValueRef::Double),
        Conversion::Decimal(scale) => to_decimal(value, context).map(|number| {
            let scaled: Option<Decimal> = scale.and_then(|scale| number.showing(scale));
            ValueRef::Decimal(scaled.unwrap_or(number))
        }),
        Conversion::Text => to_text(value, context).map(ValueRef::Text),
        Conversion::Binary => to_text(value, context).map(ValueRef::Binary),
        Conversion::Date => convert::to_date(value, context).map(ValueRef::Date),
        Conversion::Time(fsp) => convert::to_time(value, context)
            .map(|time| ValueRef::Time(Time { fsp: time.fsp.max(fsp), ..time })),
        Conversion::DateTime(fsp) => convert::to_date_time(value, context)
            .map(|moment| ValueRef::DateTime(DateTime { fsp: moment.fsp.max(fsp), ..moment })),
    };
    converted.unwrap_or(ValueRef::Null)
}
