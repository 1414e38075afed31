//! Functions of numbers.

use super::arguments::{Arguments, Result, int};
use super::typing::{Typing, int_of, nullable_double};
use crate::expr::Arithmetic;
use crate::expr::compile::arithmetic_type;
use crate::expr::evaluate::arithmetic;
use crate::expr::evaluate::convert::{self, Number, out_of_range};
use crate::expr::node::Node;
use crate::expr::result_type::{Class, Typed};
use crate::{ErrorKind, SqlError};
use types::decimal::SCALE_MAX;
use types::{Decimal, ValueRef};

functions! {
    "Number Functions";

    ABS {
        name: "abs",
        arguments: "number",
        arity: 1..=1,
        typing: |t| Ok(match t.types[0].class {
            Class::Null | Class::Text | Class::Binary | Class::Double => {
                Typed::double_with(t.types[0].digits_as_double(), t.nullable())
            }
            Class::Decimal => t.types[0].clone(),
            Class::Int => Typed::int_as_wide(t.chars(0), false, t.nullable()),
            Class::UInt => Typed::int_as_wide(t.chars(0), true, t.nullable()),
            Class::Date | Class::Time | Class::DateTime => t.int(8),
        }),
        evaluate: |a| Ok(match or_null!(a.number(0)?) {
            Number::Int(number) => match number.checked_abs() {
                Some(number) => ValueRef::Int(number),
                None => return Err(out_of_range("BIGINT", &format!("abs({number})"))),
            },
            Number::Decimal(number) => ValueRef::Decimal(number.abs()),
            Number::Double(number) => ValueRef::Double(number.abs()),
            Number::UInt(number) => ValueRef::UInt(number),
        }),
        help: "Gives a number without its sign.",
        example: "ABS(-32)" => "32",
    }
    CEILING {
        name: "ceiling",
        aliases: ["ceil"],
        arguments: "number",
        arity: 1..=1,
        typing: whole_type,
        evaluate: |a| whole(a, |number| number.ceiling(), f64::ceil),
        help: "Gives the smallest whole number that is not less than the argument.",
        example: "CEILING(1.23)" => "2",
    }
    FLOOR {
        name: "floor",
        arguments: "number",
        arity: 1..=1,
        typing: whole_type,
        evaluate: |a| whole(a, |number| number.floor(), f64::floor),
        help: "Gives the largest whole number that is not more than the argument.",
        example: "FLOOR(-1.23)" => "-2",
    }
    ROUND {
        name: "round",
        arguments: "number[, digits]",
        arity: 1..=2,
        typing: rounded_type,
        evaluate: |a| round(a, Digits::Rounded),
        help: "Rounds to so many digits after the point, or to a whole number. Negative digits round before the point.",
        example: "ROUND(1.298, 1)" => "1.3",
    }
    TRUNCATE {
        name: "truncate",
        arguments: "number, digits",
        arity: 2..=2,
        typing: rounded_type,
        evaluate: |a| round(a, Digits::CutOff),
        help: "Cuts off all but so many digits after the point. Negative digits become 0 before the point.",
        example: "TRUNCATE(1.999, 1)" => "1.9",
    }
    MOD {
        name: "mod",
        arguments: "number, divisor",
        arity: 2..=2,
        typing: |t| Ok(arithmetic_type(Arithmetic::Modulo, &t.types[0], &t.types[1])),
        evaluate: |a| {
            let (left, right) = (a.value(0)?, a.value(1)?);
            arithmetic::apply(Arithmetic::Modulo, &left, &right, a.context, || "mod".to_string())
        },
        help: "Gives the remainder of a division, as the operator % does.",
        example: "MOD(29, 9)" => "2",
    }
    POWER {
        name: "pow",
        aliases: ["power"],
        arguments: "number, exponent",
        arity: 2..=2,
        typing: nullable_double,
        evaluate: |a| {
            let (x, y) = (or_null!(a.double(0)?), or_null!(a.double(1)?));
            finite(a, x, x.powf(y))
        },
        help: "Raises a number to a power.",
        example: "POW(2, 10)" => "1024",
    }
    SQUARE_ROOT {
        name: "sqrt",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| (x >= 0.0).then(|| x.sqrt())),
        help: "Gives the square root, or NULL of a negative number.",
        example: "SQRT(16)" => "4",
    }
    SIGN {
        name: "sign",
        arguments: "number",
        arity: 1..=1,
        typing: int_of::<2>,
        evaluate: |a| int(match or_null!(a.number(0)?) {
            Number::Int(number) => number.signum(),
            Number::UInt(number) => (number > 0) as i64,
            Number::Decimal(number) if number.is_zero() => 0,
            Number::Decimal(number) => 1 - 2 * number.is_negative() as i64,
            Number::Double(0.0) => 0,
            Number::Double(number) => 1 - 2 * (number < 0.0) as i64,
        }),
        help: "Gives -1 of a negative number, 0 of zero, and 1 of a positive number.",
        example: "SIGN(-32)" => "-1",
    }
    RANDOM {
        name: "rand",
        arguments: "[seed]",
        arity: 0..=1,
        constancy: Visible,
        typing: |_| Ok(Typed::double(false)),
        evaluate: |a| Ok(ValueRef::Double(match a.len() {
            0 => super::session::random(),
            _ => seeded_random(a.int(0)?.unwrap_or(0)),
        })),
        help: "Gives a random number from 0 up to 1. With a seed: always the same number.",
    }
    EXP {
        name: "exp",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| Some(x.exp())),
        help: "Raises the base of natural logarithms to a power.",
        example: "EXP(0)" => "1",
    }
    LN {
        name: "ln",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| logarithm(a, f64::ln),
        help: "Gives the natural logarithm, or NULL if the number is not positive.",
        example: "LN(1)" => "0",
    }
    LOG {
        name: "log",
        arguments: "[base, ]number",
        arity: 1..=2,
        typing: nullable_double,
        evaluate: |a| {
            if a.len() == 1 {
                return logarithm(a, f64::ln);
            }
            let (base, x) = (or_null!(a.double(0)?), or_null!(a.double(1)?));
            if base > 0.0 && base != 1.0 && x > 0.0 {
                return finite(a, base, x.ln() / base.ln());
            }
            Ok(undefined(a))
        },
        help: "Gives the logarithm to a base, or the natural logarithm.",
        example: "LOG(1)" => "0",
    }
    LOG2 {
        name: "log2",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| logarithm(a, f64::log2),
        help: "Gives the logarithm to base 2.",
        example: "LOG2(65536)" => "16",
    }
    LOG10 {
        name: "log10",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| logarithm(a, f64::log10),
        help: "Gives the logarithm to base 10.",
        example: "LOG10(100)" => "2",
    }
    PI {
        name: "pi",
        arguments: "",
        arity: 0..=0,
        typing: |_| Ok(Typed::double_with(6, false).with_display(8)),
        evaluate: |_| Ok(ValueRef::Double(std::f64::consts::PI)),
        help: "Gives the number pi.",
        example: "PI()" => "3.141593",
    }
    SIN {
        name: "sin",
        arguments: "angle",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| Some(x.sin())),
        help: "Gives the sine of an angle in radians.",
        example: "SIN(0)" => "0",
    }
    COS {
        name: "cos",
        arguments: "angle",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| Some(x.cos())),
        help: "Gives the cosine of an angle in radians.",
        example: "COS(0)" => "1",
    }
    TAN {
        name: "tan",
        arguments: "angle",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| Some(x.tan())),
        help: "Gives the tangent of an angle in radians.",
        example: "TAN(0)" => "0",
    }
    COT {
        name: "cot",
        arguments: "angle",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| Some(1.0 / x.tan())),
        help: "Gives the cotangent of an angle in radians.",
    }
    ASIN {
        name: "asin",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| (x.abs() <= 1.0).then(|| x.asin())),
        help: "Gives the angle in radians whose sine is the number, or NULL if there is none.",
        example: "ASIN(0)" => "0",
    }
    ACOS {
        name: "acos",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| (x.abs() <= 1.0).then(|| x.acos())),
        help: "Gives the angle in radians whose cosine is the number, or NULL if there is none.",
        example: "ACOS(1)" => "0",
    }
    ATAN {
        name: "atan",
        aliases: ["atan2"],
        arguments: "number[, x]",
        arity: 1..=2,
        typing: nullable_double,
        evaluate: |a| {
            if a.len() == 1 {
                return floating(a, |x| Some(x.atan()));
            }
            let (y, x) = (or_null!(a.double(0)?), or_null!(a.double(1)?));
            finite(a, y, y.atan2(x))
        },
        help: "Gives the angle in radians whose tangent is the number. With two arguments, y and x: the angle of the \
               point (x, y).",
        example: "ATAN(0)" => "0",
    }
    RADIANS {
        name: "radians",
        arguments: "degrees",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| Some(x * (std::f64::consts::PI / 180.0))),
        help: "Converts an angle from degrees to radians.",
        example: "RADIANS(0)" => "0",
    }
    DEGREES {
        name: "degrees",
        arguments: "radians",
        arity: 1..=1,
        typing: nullable_double,
        evaluate: |a| floating(a, |x| Some(x * (180.0 / std::f64::consts::PI))),
        help: "Converts an angle from radians to degrees.",
        example: "DEGREES(PI())" => "180",
    }
    BIT_COUNT {
        name: "bit_count",
        arguments: "number",
        arity: 1..=1,
        typing: int_of::<2>,
        evaluate: |a| {
            let bits = or_null!(convert::to_bits(&a.value(0)?, a.context));
            int(bits.count_ones() as i64)
        },
        help: "Counts the bits that are set in a number.",
        example: "BIT_COUNT(29)" => "4",
    }
}

type Given = std::result::Result<Typed, SqlError>;

/// CEILING and FLOOR.
fn whole_type(typing: &mut Typing<'_>) -> Given {
    let (nullable, first) = (typing.nullable(), &typing.types[0]);
    Ok(match first.class {
        Class::Null | Class::Text | Class::Binary | Class::Double => Typed::double_with(0, nullable),
        Class::Decimal if first.digits().0 >= 18 => Typed::decimal(first.digits().0 + 1, 0, nullable),
        Class::Decimal => {
            let (whole, scale) = first.digits();
            let unsigned = first.is_unsigned();
            // Downwards, a number without sign gets no further digit.
            let carries = scale > 0 && !(unsigned && typing.name == "floor");
            Typed::int_of_digits(whole + u32::from(carries), unsigned, nullable)
        }
        Class::Int | Class::UInt => (*first).clone(),
        Class::Date => Typed::int_of_digits(first.digits().0, true, nullable),
        Class::Time | Class::DateTime => typing.int(8),
    })
}

fn whole<'a>(
    arguments: &Arguments<'a, '_>,
    of_decimal: impl Fn(Decimal) -> Decimal,
    of_double: impl Fn(f64) -> f64,
) -> Result<ValueRef<'a>> {
    Ok(match or_null!(arguments.number(0)?) {
        Number::Decimal(number) => {
            let number = of_decimal(number);
            match arguments.call.class {
                Class::Decimal => ValueRef::Decimal(number),
                _ => number.to_i64().map_or(ValueRef::Decimal(number), ValueRef::Int),
            }
        }
        Number::Double(number) => ValueRef::Double(of_double(number)),
        number @ (Number::Int(_) | Number::UInt(_)) => number.to_value(),
    })
}

/// ROUND and TRUNCATE.
fn rounded_type(typing: &mut Typing<'_>) -> Given {
    let (nullable, first) = (typing.nullable(), &typing.types[0]);
    let has_places = typing.types.len() > 1;
    // A constant number of digits is what the result shows.
    let constant = typing.constant_places(1);
    Ok(match first.class {
        Class::Null | Class::Text | Class::Binary | Class::Double => match constant {
            Some(places) => Typed::double_with(places as u32, nullable),
            None if has_places => Typed::double(nullable),
            None => Typed::double_with(0, nullable),
        },
        Class::Decimal => {
            let (whole, scale) = first.digits();
            let places = constant.unwrap_or(if has_places { scale } else { 0 });
            // A value that is rounded to fewer digits may get one more before the point.
            let may_carry = places < scale && typing.name != "truncate";
            let carries = may_carry || (has_places && constant.is_none());
            let precision = whole + u32::from(carries) + u32::from(places);
            let typed = Typed::decimal(precision, places, nullable);
            let typed = if first.is_unsigned() { typed.without_sign() } else { typed };
            // If the number of digits is not constant, there are no more of them than before.
            Typed { scale_is_known: constant.is_some() || !has_places, ..typed }
        }
        Class::Int | Class::UInt => {
            let stays =
                !has_places || typing.name == "truncate" || typing.constant_int(1).is_some_and(|at| at >= 0);
            let mut typed = (*first).clone();
            typed.result.nullable = nullable;
            if stays {
                return Ok(typed);
            }
            let (unsigned, chars) = (first.class == Class::UInt, first.chars() + 1);
            match chars {
                0..=20 => Typed::int_as_wide(chars, unsigned, nullable),
                _ => Typed::int(8, unsigned, nullable).with_display(chars),
            }
        }
        Class::Date => Typed::int_of_digits(first.digits().0, true, nullable),
        Class::Time | Class::DateTime => typing.int(8),
    })
}

/// What becomes of the digits that are not wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    Rounded,
    CutOff,
}

fn round<'a>(arguments: &Arguments<'a, '_>, digits: Digits) -> Result<ValueRef<'a>> {
    let truncate = digits == Digits::CutOff;
    let number = or_null!(arguments.number(0)?);
    let places = match arguments.len() {
        1 => 0,
        _ => or_null!(arguments.int(1)?).clamp(-400, 400) as i32,
    };
    let overflow = || out_of_range("BIGINT", arguments.name());
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
    // No negative zero.
    (if places < 0 { rounded * power } else { rounded / power }) + 0.0
}

/// A function of a double; `None` is NULL.
fn floating<'a>(
    arguments: &Arguments<'a, '_>,
    calculate: impl Fn(f64) -> Option<f64>,
) -> Result<ValueRef<'a>> {
    let x = or_null!(arguments.double(0)?);
    finite(arguments, x, or_null!(calculate(x)))
}

/// A logarithm of a double, which is defined for positive numbers only.
fn logarithm<'a>(arguments: &Arguments<'a, '_>, calculate: impl Fn(f64) -> f64) -> Result<ValueRef<'a>> {
    let x = or_null!(arguments.double(0)?);
    if x > 0.0 {
        return finite(arguments, x, calculate(x));
    }
    Ok(undefined(arguments))
}

/// NULL with warning 1365.
fn undefined<'a>(arguments: &Arguments<'a, '_>) -> ValueRef<'a> {
    arguments.context.environment.warn(ErrorKind::DivisionByZero, "Division by 0".into());
    ValueRef::Null
}

/// # Errors
/// 1690 for a result that no double holds. The message shows the argument `x`.
fn finite<'a>(arguments: &Arguments<'a, '_>, x: f64, result: f64) -> Result<ValueRef<'a>> {
    if result.is_finite() {
        return Ok(ValueRef::Double(result));
    }
    Err(out_of_range("DOUBLE", &format!("{}({x})", arguments.name())))
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
