//! Date arithmetic.

use super::super::node::Node;
use super::super::result_type::Class;
use super::super::{Context, IntervalUnit, Row};
use super::convert::{self, new_text};
use super::{Result, value};
use crate::ErrorKind;
use types::temporal::{TIME_SECONDS_MAX, read_date_time};
use types::{DateTime, Time, ValueRef};

/// A span: months and microseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::expr) struct Interval {
    pub months: i64,
    pub micros: i64,
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The span of a simple unit in microseconds, or in months.
pub(in crate::expr) fn unit_span(unit: IntervalUnit) -> Interval {
    use IntervalUnit as U;
    let (months, micros) = match unit {
        U::Microsecond => (0, 1),
        U::Second => (0, SECOND),
        U::Minute => (0, 60 * SECOND),
        U::Hour => (0, 3600 * SECOND),
        U::Day => (0, DAY),
        U::Week => (0, 7 * DAY),
        U::Month => (1, 0),
        U::Quarter => (3, 0),
        U::Year => (12, 0),
        _ => (0, 0),
    };
    Interval { months, micros }
}

/// Reads `amount` as so many of `unit`; `None` for NULL or more than any date could move.
fn interval(amount: &ValueRef<'_>, unit: IntervalUnit, context: &Context<'_>) -> Option<Interval> {
    use IntervalUnit as U;
    let compound: &[i64] = match unit {
        U::SecondMicrosecond => &[SECOND, 1],
        U::MinuteMicrosecond => &[60 * SECOND, SECOND, 1],
        U::MinuteSecond => &[60 * SECOND, SECOND],
        U::HourMicrosecond => &[3600 * SECOND, 60 * SECOND, SECOND, 1],
        U::HourSecond => &[3600 * SECOND, 60 * SECOND, SECOND],
        U::HourMinute => &[3600 * SECOND, 60 * SECOND],
        U::DayMicrosecond => &[DAY, 3600 * SECOND, 60 * SECOND, SECOND, 1],
        U::DaySecond => &[DAY, 3600 * SECOND, 60 * SECOND, SECOND],
        U::DayMinute => &[DAY, 3600 * SECOND, 60 * SECOND],
        U::DayHour => &[DAY, 3600 * SECOND],
        U::YearMonth => &[12, 1],
        U::Second => {
            // Seconds may have a fraction.
            let number = convert::to_decimal(amount, context)?;
            let micros = number.rounded_at(6, true)?.with_scale(6)?;
            return Some(Interval { months: 0, micros: i64::try_from(micros.unscaled()).ok()? });
        }
        _ => {
            let count = convert::to_i64(amount, context)?;
            let span = unit_span(unit);
            return Some(Interval {
                months: span.months.checked_mul(count)?,
                micros: span.micros.checked_mul(count)?,
            });
        }
    };
    let text = convert::to_text(amount, context)?;
    let negative = text.trim_ascii_start().first() == Some(&b'-');
    let mut parts: Vec<(i64, usize)> = Vec::new();
    for part in text.split(|byte| !byte.is_ascii_digit()).filter(|part| !part.is_empty()) {
        let number =
            part.iter().fold(0i64, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0') as i64));
        parts.push((number, part.len()));
    }
    if parts.len() > compound.len() {
        return None;
    }
    // Fewer parts than the unit has: the leftmost ones are missing.
    let skipped = compound.len() - parts.len();
    let mut total = 0i64;
    for ((number, digits), factor) in parts.into_iter().zip(&compound[skipped..]) {
        let number = if *factor == 1 && unit.has_fraction() && digits < 6 {
            number.checked_mul(10i64.pow(6 - digits as u32))?
        } else {
            number
        };
        total = total.checked_add(number.checked_mul(*factor)?)?;
    }
    let total = if negative { total.saturating_neg() } else { total };
    Some(match unit {
        U::YearMonth => Interval { months: total, micros: 0 },
        _ => Interval { months: 0, micros: total },
    })
}

/// The moment an interval later; `None` outside the years 0 to 9999.
fn add(moment: DateTime, interval: Interval) -> Option<DateTime> {
    if interval.months != 0 {
        let date = moment.date.add_months(interval.months)?;
        return Some(DateTime { date, ..moment });
    }
    moment.add_micros(interval.micros)
}

/// At least as many digits as the sum's fraction needs.
fn fsp_of(micros: i64, fsp: u8) -> u8 {
    let shown = micros % 10i64.pow(6 - fsp as u32) == 0;
    if shown { fsp } else { 6 }
}

/// `operand ± INTERVAL amount unit`.
pub(super) fn date_arithmetic<'a>(
    sides: &'a (Node, Node),
    unit: IntervalUnit,
    subtract: bool,
    class: Class,
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<ValueRef<'a>> {
    let operand = value(&sides.0, row, context)?;
    let amount = value(&sides.1, row, context)?;
    if operand.is_null() || amount.is_null() {
        return Ok(ValueRef::Null);
    }
    let overflow = || {
        context
            .environment
            .warn(ErrorKind::DateTimeOverflow, "Datetime function: datetime field overflow".into());
        Ok(ValueRef::Null)
    };
    let amount_fsp = match amount {
        ValueRef::Decimal(number) if unit == IntervalUnit::Second => number.shown().min(6),
        _ if unit.has_fraction() => 6,
        _ => 0,
    };
    let Some(interval) = interval(&amount, unit, context) else { return overflow() };
    let interval = match subtract {
        // A number that saturates is far beyond any date.
        true => {
            Interval { months: interval.months.saturating_neg(), micros: interval.micros.saturating_neg() }
        }
        false => interval,
    };
    if let (ValueRef::Time(time), Class::Time) = (operand, class) {
        let sum = time.micros.saturating_add(interval.micros);
        if sum.unsigned_abs() > (TIME_SECONDS_MAX * SECOND) as u64 {
            return overflow();
        }
        let fsp = fsp_of(sum, amount_fsp.max(time.fsp));
        return Ok(ValueRef::Time(Time { micros: sum, fsp }));
    }
    let has_time = match operand {
        ValueRef::Date(_) => false,
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            read_date_time(text).is_some_and(|reading| reading.has_time)
        }
        ValueRef::Int(number) => number >= 100_000_000,
        _ => true,
    };
    let Some(moment) = convert::to_date_time(&operand, context) else { return Ok(ValueRef::Null) };
    if !moment.date.is_complete() {
        let shown = match operand {
            ValueRef::Text(text) | ValueRef::Binary(text) => String::from_utf8_lossy(text).into_owned(),
            _ if has_time || class == Class::DateTime => DateTime { fsp: 0, ..moment }.to_string(),
            _ => moment.date.to_string(),
        };
        let message = format!("Incorrect datetime value: '{shown}'");
        context.environment.warn(ErrorKind::TruncatedWrongValue, message);
        return Ok(ValueRef::Null);
    }
    let Some(moved) = add(moment, interval) else { return overflow() };
    let fsp = fsp_of(moved.micros as i64, amount_fsp.max(moment.fsp));
    let moved = DateTime { fsp, ..moved };
    Ok(match class {
        Class::Date => ValueRef::Date(moved.date),
        Class::DateTime => ValueRef::DateTime(moved),
        Class::Double if !has_time && unit.is_of_days() => ValueRef::Double(moved.date.to_number() as f64),
        Class::Double => {
            let micros = f64::from(moved.micros as u32 % SECOND as u32);
            ValueRef::Double(moved.to_number() as f64 + micros / SECOND as f64)
        }
        _ if !has_time && unit.is_of_days() => new_text(moved.date.to_string(), context),
        _ => new_text(moved.to_string(), context),
    })
}
