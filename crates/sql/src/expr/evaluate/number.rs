//! Functions of numbers.

use super::super::node::Node;
use super::super::result_type::Class;
use super::super::{Arithmetic, Function};
use super::calls::Arguments;
use super::convert::{self, Number, out_of_range};
use super::{Result, session};
use crate::ErrorKind;
use types::decimal::SCALE_MAX;
use types::{Decimal, ValueRef};

pub(super) fn call<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    use Function as F;
    let function = arguments.call.function;
    match function {
        F::Abs | F::Ceiling | F::Floor | F::Sign => exact(arguments),
        F::Round | F::Truncate => round(arguments),
        F::Mod => modulo(arguments),
        F::Pi => Ok(ValueRef::Double(std::f64::consts::PI)),
        F::Random => match arguments.len() {
            0 => Ok(ValueRef::Double(session::random())),
            _ => Ok(ValueRef::Double(seeded_random(arguments.int(0)?.unwrap_or(0)))),
        },
        F::BitCount => Ok(match convert::to_int(&arguments.value(0)?, arguments.context) {
            Some(bits) => ValueRef::Int((bits as u64).count_ones() as i64),
            None => ValueRef::Null,
        }),
        _ => floating(arguments),
    }
}

fn exact<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let Some(number) = convert::to_number(&arguments.value(0)?, arguments.context) else {
        return Ok(ValueRef::Null);
    };
    let whole = |number: Decimal| match arguments.call.class {
        Class::Decimal => ValueRef::Decimal(number),
        _ => number.to_i64().map_or(ValueRef::Decimal(number), ValueRef::Int),
    };
    Ok(match (arguments.call.function, number) {
        (Function::Abs, Number::Int(number)) => match number.checked_abs() {
            Some(number) => ValueRef::Int(number),
            None => return Err(out_of_range("BIGINT", &format!("abs({number})"))),
        },
        (Function::Abs, Number::Decimal(number)) => ValueRef::Decimal(number.abs()),
        (Function::Abs, Number::Double(number)) => ValueRef::Double(number.abs()),
        (Function::Sign, Number::Int(number)) => ValueRef::Int(number.signum()),
        (Function::Sign, Number::UInt(number)) => ValueRef::Int((number > 0) as i64),
        (Function::Sign, Number::Decimal(number)) => {
            ValueRef::Int(if number.is_zero() { 0 } else { 1 - 2 * number.is_negative() as i64 })
        }
        (Function::Sign, Number::Double(number)) => {
            ValueRef::Int(if number == 0.0 { 0 } else { 1 - 2 * (number < 0.0) as i64 })
        }
        (Function::Floor, Number::Decimal(number)) => whole(number.floor()),
        (Function::Ceiling, Number::Decimal(number)) => whole(number.ceiling()),
        (Function::Floor, Number::Double(number)) => ValueRef::Double(number.floor()),
        (Function::Ceiling, Number::Double(number)) => ValueRef::Double(number.ceil()),
        (_, number) => number.to_value(),
    })
}

/// ROUND and TRUNCATE.
fn round<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let truncate = arguments.call.function == Function::Truncate;
    let Some(number) = convert::to_number(&arguments.value(0)?, arguments.context) else {
        return Ok(ValueRef::Null);
    };
    let places = match arguments.len() {
        1 => 0,
        _ => match arguments.int(1)? {
            Some(places) => places.clamp(-400, 400) as i32,
            None => return Ok(ValueRef::Null),
        },
    };
    let overflow = || out_of_range("BIGINT", arguments.call.function.name());
    Ok(match number {
        Number::Double(number) => ValueRef::Double(round_double(number, places, truncate)),
        Number::Decimal(number) => {
            let number = number.rounded_at(places, truncate).ok_or_else(overflow)?;
            // A constant number of digits is what the result shows; else it shows as many as the argument.
            let shown = match arguments.call.arguments.get(1) {
                Some(Node::Constant(_) | Node::Slot(_)) | None => places.clamp(0, SCALE_MAX as i32) as u8,
                Some(_) => arguments.call.decimals,
            };
            ValueRef::Decimal(number.with_scale(shown).unwrap_or(number))
        }
        number if places >= 0 => number.to_value(),
        number => {
            let rounded = number.to_decimal().rounded_at(places, truncate).ok_or_else(overflow)?;
            match number {
                Number::UInt(_) => ValueRef::UInt(rounded.to_u64().ok_or_else(overflow)?),
                _ => ValueRef::Int(rounded.to_i64().ok_or_else(overflow)?),
            }
        }
    })
}

fn round_double(number: f64, places: i32, truncate: bool) -> f64 {
    let power = 10f64.powi(places.abs());
    if !power.is_finite() {
        return if places > 0 { number } else { 0.0 };
    }
    let scaled = if places < 0 { number / power } else { number * power };
    if !scaled.is_finite() {
        return number;
    }
    let rounded = if truncate { scaled.trunc() } else { convert::round_f64(scaled) };
    if places < 0 { rounded * power } else { rounded / power }
}

fn modulo<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (left, right) = (arguments.value(0)?, arguments.value(1)?);
    super::arithmetic::apply(Arithmetic::Modulo, &left, &right, arguments.context, || "mod".to_string())
}

/// Functions of doubles; what has no result is NULL.
fn floating<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    use Function as F;
    let Some(x) = arguments.double(0)? else { return Ok(ValueRef::Null) };
    let y = match arguments.len() {
        2 => match arguments.double(1)? {
            Some(y) => Some(y),
            None => return Ok(ValueRef::Null),
        },
        _ => None,
    };
    let positive = |x: f64, result: f64| if x > 0.0 { Some(result) } else { None };
    let result = match (arguments.call.function, y) {
        (F::Power, Some(y)) => Some(x.powf(y)),
        (F::Log, Some(y)) if x > 0.0 && x != 1.0 => positive(y, y.ln() / x.ln()),
        (F::Log, Some(_)) => None,
        (F::Atan, Some(y)) => Some(x.atan2(y)),
        (F::SquareRoot, _) => (x >= 0.0).then(|| x.sqrt()),
        (F::Exp, _) => Some(x.exp()),
        (F::Ln | F::Log, _) => positive(x, x.ln()),
        (F::Log2, _) => positive(x, x.log2()),
        (F::Log10, _) => positive(x, x.log10()),
        (F::Sin, _) => Some(x.sin()),
        (F::Cos, _) => Some(x.cos()),
        (F::Tan, _) => Some(x.tan()),
        (F::Cot, _) => Some(1.0 / x.tan()),
        (F::Asin, _) => (x.abs() <= 1.0).then(|| x.asin()),
        (F::Acos, _) => (x.abs() <= 1.0).then(|| x.acos()),
        (F::Atan, _) => Some(x.atan()),
        (F::Radians, _) => Some(x * (std::f64::consts::PI / 180.0)),
        (F::Degrees, _) => Some(x * (180.0 / std::f64::consts::PI)),
        _ => None,
    };
    match result {
        Some(result) if result.is_finite() => Ok(ValueRef::Double(result)),
        Some(_) => Err(out_of_range("DOUBLE", &format!("{}({x})", arguments.call.function.name()))),
        None => {
            if matches!(arguments.call.function, F::Ln | F::Log | F::Log2 | F::Log10) {
                arguments.context.environment.warn(ErrorKind::DivisionByZero, "Division by 0".into());
            }
            Ok(ValueRef::Null)
        }
    }
}

/// RAND(n): the first number of the sequence that MySQL starts with this seed.
fn seeded_random(seed: i64) -> f64 {
    const RANGE: u64 = 0x3fff_ffff;
    let seed = seed as u32;
    let first = (seed.wrapping_mul(0x1_0001).wrapping_add(55_555_555)) as u64 % RANGE;
    let second = (seed.wrapping_mul(0x1000_0001)) as u64 % RANGE;
    let next = (first * 3 + second) % RANGE;
    next as f64 / RANGE as f64
}
