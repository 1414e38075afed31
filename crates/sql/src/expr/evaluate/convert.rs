//! Conversions of values from one kind to another, as MySQL makes them implicitly.

use super::super::{Context, SqlMode};
use crate::{ErrorKind, SqlError};
use std::fmt::Write;
use types::temporal::{date_time_from_number, read_date_time, read_time, time_from_number};
use types::{Date, DateTime, Decimal, Time, ValueRef, number};

/// A number in its own kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Int(i64),
    UInt(u64),
    Decimal(Decimal),
    Double(f64),
}

impl Number {
    pub(crate) fn to_value<'a>(self) -> ValueRef<'a> {
        match self {
            Number::Int(number) => ValueRef::Int(number),
            Number::UInt(number) => ValueRef::UInt(number),
            Number::Decimal(number) => ValueRef::Decimal(number),
            Number::Double(number) => ValueRef::Double(number),
        }
    }

    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::UInt(number) => number as f64,
            Number::Decimal(number) => number.to_f64(),
            Number::Double(number) => number,
        }
    }

    /// Doubles become their shortest decimal form.
    pub(crate) fn to_decimal(self) -> Decimal {
        match self {
            Number::Int(number) => number.into(),
            Number::UInt(number) => number.into(),
            Number::Decimal(number) => number,
            Number::Double(number) => Decimal::from_f64(number),
        }
    }
}

/// The text of a value for a message, shortened.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 128;
    String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]).into_owned()
}

/// Warning 1292: a text is not wholly of the kind that it is converted to.
pub(crate) fn warn_truncated(kind: &str, text: &[u8], context: &Context<'_>) {
    context
        .environment
        .warn(ErrorKind::TruncatedWrongValue, format!("Truncated incorrect {kind} value: '{}'", shown(text)));
}

/// A text as a double; warns if it is not wholly one.
pub(crate) fn text_to_f64(text: &[u8], context: &Context<'_>) -> f64 {
    let (number, length) = number::parse_f64_prefix(text);
    if length == 0 || length < text.len() {
        warn_truncated("DOUBLE", text, context);
    }
    number
}

fn text_to_decimal(text: &[u8], context: &Context<'_>) -> Decimal {
    let (number, length) = Decimal::parse_prefix(text);
    if length == 0 || length < text.len() {
        warn_truncated("DECIMAL", text, context);
    }
    number
}

/// `numerator / 10^6` with as many digits as the fraction has.
fn with_fraction(whole: i64, micros: u32, fsp: u8) -> Decimal {
    let micros = if whole < 0 { -(micros as i64) } else { micros as i64 };
    let value = Decimal::new((whole as i128 * 1_000_000 + micros as i128).into(), 6);
    value.truncated(fsp)
}

/// The number that arithmetic sees; `None` for NULL.
#[inline]
pub(crate) fn to_number(value: &ValueRef<'_>, context: &Context<'_>) -> Option<Number> {
    match *value {
        ValueRef::Text(text) | ValueRef::Binary(text) => Some(Number::Double(text_to_f64(text, context))),
        _ => plain_number(value),
    }
}

/// The number that a value other than a text is; `None` for texts and NULL.
pub(crate) fn plain_number(value: &ValueRef<'_>) -> Option<Number> {
    Some(match *value {
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Binary(_) => return None,
        ValueRef::Int(number) => Number::Int(number),
        ValueRef::UInt(number) => Number::UInt(number),
        ValueRef::Float(number) => Number::Double(number as f64),
        ValueRef::Double(number) => Number::Double(number),
        ValueRef::Decimal(number) => Number::Decimal(number),
        ValueRef::Date(date) => Number::Int(date.to_number() as i64),
        ValueRef::Time(time) if time.fsp == 0 => Number::Int(time.to_number()),
        ValueRef::Time(time) => {
            let (_, _, _, micros) = time.parts();
            let magnitude = with_fraction(time.to_number().abs(), micros, time.fsp);
            Number::Decimal(if time.is_negative() { magnitude.negate() } else { magnitude })
        }
        ValueRef::DateTime(moment) if moment.fsp == 0 => Number::Int(moment.to_number() as i64),
        ValueRef::DateTime(moment) => {
            Number::Decimal(with_fraction(moment.to_number() as i64, moment.micros, moment.fsp))
        }
    })
}

pub(crate) fn to_f64(value: &ValueRef<'_>, context: &Context<'_>) -> Option<f64> {
    to_number(value, context).map(Number::to_f64)
}

pub(crate) fn to_decimal(value: &ValueRef<'_>, context: &Context<'_>) -> Option<Decimal> {
    match *value {
        ValueRef::Text(text) | ValueRef::Binary(text) => Some(text_to_decimal(text, context)),
        _ => to_number(value, context).map(Number::to_decimal),
    }
}

/// Rounded to an integer and clipped to what both kinds of 64-bit integers hold together.
pub(crate) fn to_int(value: &ValueRef<'_>, context: &Context<'_>) -> Option<i128> {
    Some(match *value {
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            let (magnitude, negative, length) = number::parse_integer_prefix(text);
            if length == 0 || length < text.len() {
                warn_truncated("INTEGER", text, context);
            }
            if negative { -(magnitude as i128) } else { magnitude as i128 }
        }
        _ => number_to_int(to_number(&whole_seconds(*value), context)?),
    })
}

/// A time becomes a whole number without its fraction, which is not rounded.
pub(crate) fn whole_seconds(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        ValueRef::Time(time) => {
            ValueRef::Time(Time { micros: time.micros - time.micros % 1_000_000, fsp: 0 })
        }
        ValueRef::DateTime(moment) => ValueRef::DateTime(DateTime { micros: 0, fsp: 0, ..moment }),
        value => value,
    }
}

/// The bits of a whole number, for `&`, `~` and their like. A text is rounded, unlike where it becomes an
/// integer.
pub(crate) fn to_bits(value: &ValueRef<'_>, context: &Context<'_>) -> Option<u64> {
    let number = match *value {
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            number_to_int(Number::Decimal(text_to_decimal(text, context)))
        }
        // Half away from zero, as decimals are rounded.
        ValueRef::Float(_) | ValueRef::Double(_) => {
            number_to_int(Number::Double(to_f64(value, context)?.round()))
        }
        // A time is rounded here.
        _ => number_to_int(to_number(value, context)?),
    };
    Some(number as u64)
}

pub(crate) fn number_to_int(number: Number) -> i128 {
    number_to_whole(number).clamp(i64::MIN as i128, u64::MAX as i128)
}

/// The nearest whole number. It may be far beyond 64 bits, so that a column notices that it does not fit.
pub(crate) fn number_to_whole(number: Number) -> i128 {
    match number {
        Number::Int(number) => number as i128,
        Number::UInt(number) => number as i128,
        Number::Double(number) => round_f64(number) as i128,
        Number::Decimal(number) => match number.with_scale(0).map(|whole| whole.unscaled()) {
            Some(whole) => i128::try_from(whole).unwrap_or(if whole < 0 { i128::MIN } else { i128::MAX }),
            None => i128::MAX,
        },
    }
}

/// Half away from zero, and clipped to 128 bits.
pub(crate) fn decimal_to_int(number: &Decimal) -> i128 {
    let limit = if number.is_negative() { i128::MIN } else { i128::MAX };
    number.with_scale(0).and_then(|whole| i128::try_from(whole.unscaled()).ok()).unwrap_or(limit)
}

/// Half to even, as the C library's `rint` does for MySQL.
pub(crate) fn round_f64(number: f64) -> f64 {
    number.round_ties_even()
}

/// An argument that counts or places characters; `None` for NULL.
pub(crate) fn to_i64(value: &ValueRef<'_>, context: &Context<'_>) -> Option<i64> {
    to_int(value, context).map(|number| number.clamp(i64::MIN as i128, i64::MAX as i128) as i64)
}

/// Truth; `None` for NULL.
#[inline]
pub(crate) fn to_truth(value: &ValueRef<'_>, context: &Context<'_>) -> Option<bool> {
    Some(match *value {
        ValueRef::Null => return None,
        ValueRef::Int(number) => number != 0,
        ValueRef::UInt(number) => number != 0,
        _ => match to_number(value, context)? {
            Number::Int(number) => number != 0,
            Number::UInt(number) => number != 0,
            Number::Decimal(number) => !number.is_zero(),
            Number::Double(number) => number != 0.0,
        },
    })
}

/// Appends a value's text; nothing for NULL.
pub(crate) fn write_text(value: &ValueRef<'_>, out: &mut String) {
    let _ = match *value {
        ValueRef::Null => Ok(()),
        ValueRef::Int(number) => write!(out, "{number}"),
        ValueRef::UInt(number) => write!(out, "{number}"),
        ValueRef::Float(number) => {
            number::write_f32(number, out);
            Ok(())
        }
        ValueRef::Double(number) => {
            number::write_f64(number, out);
            Ok(())
        }
        ValueRef::Decimal(number) => write!(out, "{number}"),
        ValueRef::Date(date) => write!(out, "{date}"),
        ValueRef::Time(time) => write!(out, "{time}"),
        ValueRef::DateTime(moment) => write!(out, "{moment}"),
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            out.push_str(&String::from_utf8_lossy(text));
            Ok(())
        }
    };
}

/// A value's text; `None` for NULL.
pub(crate) fn to_text<'a>(value: &ValueRef<'a>, context: &Context<'a>) -> Option<&'a [u8]> {
    match *value {
        ValueRef::Null => None,
        ValueRef::Text(text) | ValueRef::Binary(text) => Some(text),
        _ => {
            let mut text = String::new();
            write_text(value, &mut text);
            Some(context.arena.alloc_slice_copy(text.as_bytes()))
        }
    }
}

fn text_value<'a>(text: &str, context: &Context<'a>) -> ValueRef<'a> {
    ValueRef::Text(context.arena.alloc_slice_copy(text.as_bytes()))
}

/// A new text in the arena.
pub(crate) fn new_text<'a>(text: impl AsRef<str>, context: &Context<'a>) -> ValueRef<'a> {
    text_value(text.as_ref(), context)
}

/// The day on which the statement started, in the session's time zone.
pub(crate) fn now(context: &Context<'_>, fsp: u8) -> DateTime {
    context.environment.time_zone().shown(context.environment.now_micros(), fsp)
}

/// A value as a date and time. `None` for NULL, and with warning 1292 for a value that is none.
pub(crate) fn to_date_time(value: &ValueRef<'_>, context: &Context<'_>) -> Option<DateTime> {
    read_moment(value, SqlMode::default(), context)
}

/// As [`to_date_time`]. A moment that NO_ZERO_DATE or NO_ZERO_IN_DATE forbids is none; one that is a text or
/// a number has the warning, too.
pub(crate) fn to_allowed_moment(value: &ValueRef<'_>, context: &Context<'_>) -> Option<DateTime> {
    read_moment(value, context.environment.sql_mode(), context)
}

fn read_moment(value: &ValueRef<'_>, mode: SqlMode, context: &Context<'_>) -> Option<DateTime> {
    let allowed = |moment: DateTime| (!mode.forbids(moment)).then_some(moment);
    let reading = match *value {
        ValueRef::Null => return None,
        ValueRef::DateTime(moment) => return allowed(moment),
        ValueRef::Date(date) => return allowed(DateTime::from_date(date)),
        ValueRef::Time(time) => {
            return DateTime::from_date(now(context, 0).date)
                .add_micros(time.micros)
                .map(|moment| DateTime { fsp: time.fsp, ..moment });
        }
        ValueRef::Text(text) | ValueRef::Binary(text) => read_date_time(text),
        _ => {
            let number = to_decimal(value, context)?;
            let micros = number.remainder(&1i64.into()).flatten().map_or(0, |rest| micros_of(&rest));
            number
                .truncated(0)
                .to_u64()
                .and_then(|whole| date_time_from_number(whole, micros, number.scale().min(6)))
        }
    };
    match reading {
        Some(reading) => {
            let moment = allowed(reading.value);
            if reading.truncated || moment.is_none() {
                warn_incorrect("datetime", value, context);
            }
            moment
        }
        None => {
            warn_incorrect("datetime", value, context);
            None
        }
    }
}

/// The microseconds of a number's fraction.
fn micros_of(fraction: &Decimal) -> u32 {
    fraction.truncated(6).with_scale(6).map_or(0, |fraction| fraction.unscaled().unsigned_abs().as_u32())
}

fn warn_incorrect(kind: &str, value: &ValueRef<'_>, context: &Context<'_>) {
    let mut text = String::new();
    write_text(value, &mut text);
    context.environment.warn(
        ErrorKind::TruncatedWrongValue,
        format!("Incorrect {kind} value: '{}'", shown(text.as_bytes())),
    );
}

pub(crate) fn to_date(value: &ValueRef<'_>, context: &Context<'_>) -> Option<Date> {
    match *value {
        ValueRef::Date(date) => Some(date),
        _ => to_date_time(value, context).map(|moment| moment.date),
    }
}

/// A value as a time. `None` for NULL, and with warning 1292 for a value that is none.
pub(crate) fn to_time(value: &ValueRef<'_>, context: &Context<'_>) -> Option<Time> {
    let reading = match *value {
        ValueRef::Null => return None,
        ValueRef::Time(time) => return Some(time),
        ValueRef::DateTime(moment) => return Some(moment.time()),
        ValueRef::Date(_) => return Some(Time::default()),
        ValueRef::Text(text) | ValueRef::Binary(text) => read_time(text),
        _ => {
            let number = to_decimal(value, context)?;
            let micros = number.remainder(&1i64.into()).flatten().map_or(0, |rest| micros_of(&rest));
            let fsp = number.scale().min(6);
            let magnitude = number.abs().truncated(0).to_u64().unwrap_or(u64::MAX);
            time_from_number(magnitude, number.is_negative(), micros, fsp)
        }
    };
    match reading {
        Some(reading) => {
            if reading.truncated {
                let mut text = String::new();
                write_text(value, &mut text);
                warn_truncated("time", text.as_bytes(), context);
            }
            Some(reading.value)
        }
        None => {
            warn_incorrect("time", value, context);
            None
        }
    }
}

/// 1690: a number beyond its type.
pub(crate) fn out_of_range(kind: &str, expression: &str) -> SqlError {
    SqlError::new(ErrorKind::DataOutOfRange, format!("{kind} value is out of range in '{expression}'"))
}
