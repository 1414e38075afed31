//! Columns of dates and times.

use super::super::evaluate::{Number, shown};
use super::{CoerceIssue, Coerced, SqlMode, number_of, text_of};
use crate::variables::time_zones::{Meant, Zone, is_storable};
use types::temporal::{Reading, date_time_from_number, read_date_time, read_time, time_from_number};
use types::{Column, ColumnType, Date, DateTime, Decimal, Time, ValueRef};

pub(super) fn incorrect(kind: &'static str, value: &ValueRef<'_>) -> CoerceIssue {
    CoerceIssue::IncorrectTime { kind, value: shown(text_of(value).as_bytes()) }
}

fn out_of_range(kind: &'static str, value: &ValueRef<'_>) -> CoerceIssue {
    CoerceIssue::TimeOutOfRange { kind, value: shown(text_of(value).as_bytes()) }
}

/// Whole part, microseconds, and digits of fraction of a number.
fn split(number: Number) -> (Decimal, u32, u8) {
    let number = number.to_decimal();
    let micros = number
        .remainder(&1i64.into())
        .flatten()
        .and_then(|fraction| fraction.truncated(6).with_scale(6))
        .map_or(0, |fraction| fraction.unscaled().unsigned_abs().as_u32());
    (number.truncated(0), micros, number.scale().min(6))
}

fn moment(value: &ValueRef<'_>) -> Option<Reading<DateTime>> {
    let exact = |value, has_time| Some(Reading { value, truncated: false, has_time });
    match *value {
        ValueRef::DateTime(moment) => exact(moment, true),
        ValueRef::Date(date) => exact(DateTime::from_date(date), false),
        // Only the session knows which day it is.
        ValueRef::Time(_) => None,
        ValueRef::Text(text) | ValueRef::Binary(text) => read_date_time(text),
        _ => {
            let (whole, micros, fsp) = split(number_of(value)?);
            date_time_from_number(whole.to_u64()?, micros, fsp)
        }
    }
}

pub(super) fn date<'a>(value: ValueRef<'a>) -> Coerced<'a> {
    match moment(&value) {
        Some(reading) if !reading.truncated => {
            let midnight = reading.value.time().micros == 0;
            let issue = (!midnight).then_some(CoerceIssue::TruncatedNote);
            Coerced::maybe(ValueRef::Date(reading.value.date), issue)
        }
        Some(reading) => Coerced::with(ValueRef::Date(reading.value.date), incorrect("date", &value)),
        None => Coerced::with(ValueRef::Date(Date::ZERO), incorrect("date", &value)),
    }
}

/// What a DATETIME column stores, or with `zone` a TIMESTAMP column: the moment at which a clock of the zone
/// shows the value, as UTC shows it.
pub(super) fn date_time<'a>(value: ValueRef<'a>, fsp: u8, zone: Option<&Zone>) -> Coerced<'a> {
    let zero = ValueRef::DateTime(DateTime { fsp, ..DateTime::ZERO });
    let Some(reading) = moment(&value) else { return Coerced::with(zero, incorrect("datetime", &value)) };
    let mut moment = reading.value.with_fsp(fsp);
    let mut issue = reading.truncated.then(|| incorrect("datetime", &value));
    if let Some(zone) = zone
        && moment != (DateTime { fsp, ..DateTime::ZERO })
    {
        if !moment.date.is_complete() {
            return Coerced::with(zero, incorrect("datetime", &value));
        }
        let Some(meant) = zone.moment(moment).filter(|meant| is_storable(meant.micros())) else {
            return Coerced::with(zero, out_of_range("datetime", &value));
        };
        if let Meant::Skipped(_) = meant {
            let (kind, value) = ("datetime", shown(text_of(&value).as_bytes()));
            issue = issue.or(Some(CoerceIssue::TimeLeftOut { kind, value }));
        }
        moment = DateTime::from_unix_micros(meant.micros(), fsp);
    }
    Coerced::maybe(ValueRef::DateTime(moment), issue)
}

/// A date of nought stays one, and is out of range for a DATE or DATETIME. One without month or day becomes a
/// date of nought.
pub(super) fn in_mode<'a>(
    coerced: Coerced<'a>,
    given: &ValueRef<'_>,
    column: &Column,
    mode: SqlMode,
) -> Coerced<'a> {
    // A time of day that a DATE leaves out counts: such a date is not of nought.
    let Some(Reading { value: moment, .. }) = moment(given).filter(|reading| mode.forbids(reading.value))
    else {
        return coerced;
    };
    let (kind, zero) = match coerced.value {
        ValueRef::DateTime(DateTime { fsp, .. }) => {
            ("datetime", ValueRef::DateTime(DateTime { fsp, ..DateTime::ZERO }))
        }
        _ => ("date", ValueRef::Date(Date::ZERO)),
    };
    let is_timestamp = matches!(column.column_type, ColumnType::Timestamp { .. });
    let issue = match coerced.issue {
        Some(issue) if issue.is_error_when_strict() => issue,
        _ if is_timestamp || moment != (DateTime { fsp: moment.fsp, ..DateTime::ZERO }) => {
            incorrect(kind, given)
        }
        _ => out_of_range(kind, given),
    };
    Coerced::with(zero, issue)
}

pub(super) fn time<'a>(value: ValueRef<'a>, fsp: u8) -> Coerced<'a> {
    let exact = |time: Time, note: bool| {
        Coerced::maybe(ValueRef::Time(time.with_fsp(fsp)), note.then_some(CoerceIssue::TruncatedNote))
    };
    let reading = match value {
        ValueRef::Time(time) => return exact(time, false),
        ValueRef::DateTime(moment) => return exact(moment.time(), true),
        ValueRef::Date(_) => return exact(Time::default(), true),
        ValueRef::Text(text) | ValueRef::Binary(text) => read_time(text),
        _ => number_of(&value).and_then(|number| {
            let (whole, micros, digits) = split(number);
            let magnitude = whole.abs().to_u64().unwrap_or(u64::MAX);
            time_from_number(magnitude, whole.is_negative(), micros, digits)
        }),
    };
    match reading {
        Some(reading) => {
            if reading.truncated && reading.value.is_longest() {
                let longest = Time::longest(reading.value.micros < 0, fsp);
                return Coerced::with(ValueRef::Time(longest), out_of_range("time", &value));
            }
            let issue = if reading.truncated {
                Some(incorrect("time", &value))
            } else {
                // The date of a date and time is left out.
                reading.has_time.then_some(CoerceIssue::TruncatedNote)
            };
            Coerced::maybe(ValueRef::Time(reading.value.with_fsp(fsp)), issue)
        }
        None => Coerced::with(ValueRef::Time(Time { micros: 0, fsp }), incorrect("time", &value)),
    }
}
