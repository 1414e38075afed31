//! Functions of dates and times.

use super::super::result_type::Class;
use super::super::{Context, Function, IntervalUnit};
use super::calls::Arguments;
use super::convert::{self, new_text, now};
use super::{Result, date, format};
use crate::ErrorKind;
use types::temporal::{days_in_month, read_date_time};
use types::{Date, DateTime, Decimal, Time, ValueRef};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Unwraps, or makes the result NULL.
macro_rules! some {
    ($option:expr) => {
        match $option {
            Some(value) => value,
            None => return Ok(ValueRef::Null),
        }
    };
}

/// The date and time that an argument is, or NULL as the result. What has a zero month or day passes.
macro_rules! moment {
    ($arguments:expr, $index:expr) => {
        some!(convert::to_date_time(&$arguments.value($index)?, $arguments.context))
    };
}

macro_rules! time {
    ($arguments:expr, $index:expr) => {
        some!(convert::to_time(&$arguments.value($index)?, $arguments.context))
    };
}

pub(super) fn call<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    use Function as F;
    let context = arguments.context;
    let int = |number: i64| ValueRef::Int(number);
    Ok(match arguments.call.function {
        F::Now | F::SysDate => ValueRef::DateTime(now(context, fsp(arguments)?)),
        F::CurrentDate => ValueRef::Date(now(context, 0).date),
        F::CurrentTime => ValueRef::Time(now(context, fsp(arguments)?).time()),
        F::UtcTimestamp => ValueRef::DateTime(utc(context, fsp(arguments)?)),
        F::UtcDate => ValueRef::Date(utc(context, 0).date),
        F::UtcTime => ValueRef::Time(utc(context, fsp(arguments)?).time()),
        F::UnixTimestamp => unix_timestamp(arguments)?,
        F::FromUnixTime => from_unix_time(arguments)?,

        F::Date => ValueRef::Date(moment!(arguments, 0).date),
        F::Time => ValueRef::Time(time!(arguments, 0)),
        F::Timestamp => {
            let moment = moment!(arguments, 0);
            if arguments.len() == 1 {
                return Ok(ValueRef::DateTime(moment));
            }
            let time = time!(arguments, 1);
            let sum = some!(moment.add_micros(time.micros));
            ValueRef::DateTime(DateTime { fsp: moment.fsp.max(time.fsp), ..sum })
        }
        F::Year => int(moment!(arguments, 0).date.year as i64),
        F::Quarter => int((moment!(arguments, 0).date.month as i64 + 2) / 3),
        F::Month => int(moment!(arguments, 0).date.month as i64),
        F::Day => int(moment!(arguments, 0).date.day as i64),
        F::MonthName => {
            let month = moment!(arguments, 0).date.month as usize;
            let name = some!(month.checked_sub(1).and_then(|month| format::MONTHS.get(month)));
            ValueRef::Text(name.as_bytes())
        }
        F::Week | F::YearWeek | F::WeekOfYear => week(arguments)?,
        F::DayOfWeek => int((some!(complete(moment!(arguments, 0))).weekday() as i64 + 1) % 7 + 1),
        F::Weekday => int(some!(complete(moment!(arguments, 0))).weekday() as i64),
        F::DayName => {
            let date = some!(complete(moment!(arguments, 0)));
            ValueRef::Text(format::WEEKDAYS[date.weekday() as usize].as_bytes())
        }
        F::DayOfYear => int(some!(complete(moment!(arguments, 0))).day_of_year() as i64),
        F::LastDay => {
            let date = moment!(arguments, 0).date;
            if date.month == 0 {
                return Ok(ValueRef::Null);
            }
            ValueRef::Date(Date { day: days_in_month(date.year, date.month), ..date })
        }
        F::Hour => int(time!(arguments, 0).parts().0 as i64),
        F::Minute => int(time!(arguments, 0).parts().1 as i64),
        F::Second => int(time!(arguments, 0).parts().2 as i64),
        F::Microsecond => int(time!(arguments, 0).parts().3 as i64),
        F::Extract => extract(arguments)?,

        F::DateDiff => {
            let (a, b) = (moment!(arguments, 0), moment!(arguments, 1));
            int(a.date.to_days() - b.date.to_days())
        }
        F::TimestampDiff => timestamp_diff(arguments)?,
        F::TimeDiff => {
            let (a, b) = (arguments.value(0)?, arguments.value(1)?);
            let is_date = |value: &ValueRef<'_>| match value {
                ValueRef::DateTime(_) | ValueRef::Date(_) => true,
                ValueRef::Text(text) => {
                    text.len() >= 12 && read_date_time(text).is_some_and(|reading| reading.has_time)
                }
                _ => false,
            };
            let (micros, fsp) = match (is_date(&a), is_date(&b)) {
                (true, true) => {
                    let a = some!(convert::to_date_time(&a, context));
                    let b = some!(convert::to_date_time(&b, context));
                    (a.to_micros() - b.to_micros(), a.fsp.max(b.fsp))
                }
                (false, false) => {
                    let a = some!(convert::to_time(&a, context));
                    let b = some!(convert::to_time(&b, context));
                    (a.micros - b.micros, a.fsp.max(b.fsp))
                }
                _ => return Ok(ValueRef::Null),
            };
            ValueRef::Time(clipped(Time { micros, fsp }, context))
        }
        F::AddTime | F::SubTime => add_time(arguments)?,

        F::DateFormat => {
            let moment = moment!(arguments, 0);
            let format = some!(arguments.text(1)?);
            let format = String::from_utf8_lossy(format);
            new_text(some!(format::date_format(moment, None, &format)), context)
        }
        F::TimeFormat => {
            let time = time!(arguments, 0);
            let format = String::from_utf8_lossy(some!(arguments.text(1)?)).into_owned();
            let (hours, minute, second, micros) = time.parts();
            let moment = DateTime { minute, second, micros, ..DateTime::ZERO };
            let sign = if time.is_negative() { "-" } else { "" };
            let text = some!(format::date_format(moment, Some(hours), &format));
            new_text(format!("{sign}{text}"), context)
        }
        F::StrToDate => {
            let (text, format) = (some!(arguments.text(0)?), some!(arguments.text(1)?));
            let (text, format) = (String::from_utf8_lossy(text), String::from_utf8_lossy(format));
            match format::str_to_date(&text, &format) {
                Some(format::Read::Date(date)) => ValueRef::Date(date),
                Some(format::Read::Time(time)) => ValueRef::Time(time),
                Some(format::Read::DateTime(moment)) => ValueRef::DateTime(moment),
                None => {
                    let shown = convert::shown(text.as_bytes());
                    let message = format!("Incorrect datetime value: '{shown}' for function str_to_date");
                    context.environment.warn(ErrorKind::WrongValueForFunction, message);
                    ValueRef::Null
                }
            }
        }

        F::ToDays => {
            let date = moment!(arguments, 0).date;
            if !date.is_complete() && !date.is_zero() {
                return Ok(ValueRef::Null);
            }
            int(date.to_days())
        }
        F::FromDays => ValueRef::Date(Date::from_days(some!(arguments.int(0)?))),
        F::TimeToSec => {
            let time = time!(arguments, 0);
            match time.fsp {
                0 => int(time.micros / SECOND),
                fsp => ValueRef::Decimal(Decimal::new(time.micros.into(), 6).truncated(fsp)),
            }
        }
        F::SecToTime => {
            let seconds = some!(convert::to_decimal(&arguments.value(0)?, context));
            let fsp = seconds.scale().min(6);
            let micros = some!(seconds.truncated(6).with_scale(6)).unscaled();
            let micros =
                i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN / 2 } else { i64::MAX / 2 });
            ValueRef::Time(clipped(Time { micros, fsp }, context))
        }
        F::MakeDate => {
            let (year, day) = (some!(arguments.int(0)?), some!(arguments.int(1)?));
            if !(0..=9999).contains(&year) || day < 1 {
                return Ok(ValueRef::Null);
            }
            let year = match year {
                0..70 => 2000 + year,
                70..100 => 1900 + year,
                _ => year,
            };
            let first = Date { year: year as u16, month: 1, day: 1 };
            ValueRef::Date(some!(first.add_days(day.min(10_000_000) - 1)))
        }
        F::MakeTime => {
            let (hour, minute) = (some!(arguments.int(0)?), some!(arguments.int(1)?));
            let seconds = some!(convert::to_decimal(&arguments.value(2)?, context));
            let fsp = seconds.scale().min(6);
            let micros =
                some!(seconds.truncated(6).with_scale(6).and_then(|s| i64::try_from(s.unscaled()).ok()));
            if !(0..60).contains(&minute) || !(0..60 * SECOND).contains(&micros) {
                return Ok(ValueRef::Null);
            }
            let magnitude =
                hour.unsigned_abs().min(1000) as i64 * 3600 * SECOND + minute * 60 * SECOND + micros;
            let micros = if hour < 0 { -magnitude } else { magnitude };
            ValueRef::Time(clipped(Time { micros, fsp }, context))
        }
        function => {
            return Err(crate::SqlError::not_supported(function.name()));
        }
    })
}

/// NOW(fsp).
fn fsp(arguments: &Arguments<'_, '_>) -> Result<u8> {
    match arguments.len() {
        0 => Ok(0),
        _ => match arguments.int(0)? {
            Some(fsp @ 0..=6) => Ok(fsp as u8),
            fsp => Err(crate::SqlError::new(
                ErrorKind::PrecisionTooBig,
                format!(
                    "Too big precision {} specified for '{}'. Maximum is 6",
                    fsp.unwrap_or(0),
                    arguments.call.function.name()
                ),
            )),
        },
    }
}

fn utc(context: &Context<'_>, fsp: u8) -> DateTime {
    DateTime::from_unix_micros(context.environment.now_micros(), fsp)
}

/// A date that lies on a day of the week.
fn complete(moment: DateTime) -> Option<Date> {
    moment.date.is_complete().then_some(moment.date)
}

fn clipped(time: Time, context: &Context<'_>) -> Time {
    let clipped = time.clipped();
    if clipped != time {
        convert::warn_truncated("time", time.to_string().as_bytes(), context);
    }
    clipped
}

fn unix_timestamp<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let context = arguments.context;
    if arguments.len() == 0 {
        return Ok(ValueRef::Int(context.environment.now_micros().div_euclid(SECOND)));
    }
    let moment = moment!(arguments, 0);
    let zone = context.environment.time_zone_seconds() as i64 * SECOND;
    if !moment.date.is_complete() {
        return Ok(ValueRef::Int(0));
    }
    let micros = moment.to_unix_micros() - zone;
    let in_range = (0..=i32::MAX as i64 * SECOND + SECOND - 1).contains(&micros);
    Ok(match (in_range, moment.fsp) {
        (false, _) => ValueRef::Null,
        (true, 0) => ValueRef::Int(micros / SECOND),
        (true, fsp) => ValueRef::Decimal(Decimal::new(micros.into(), 6).truncated(fsp)),
    })
}

fn from_unix_time<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let context = arguments.context;
    let seconds = some!(convert::to_decimal(&arguments.value(0)?, context));
    let fsp = seconds.scale().min(6);
    let micros = some!(seconds.truncated(6).with_scale(6)).unscaled();
    if seconds.is_negative() || micros > (i32::MAX as i64 * SECOND + SECOND - 1) as i128 {
        return Ok(ValueRef::Null);
    }
    let zone = context.environment.time_zone_seconds() as i64 * SECOND;
    let moment = DateTime::from_unix_micros(micros.as_i64() + zone, fsp);
    if arguments.len() == 1 {
        return Ok(ValueRef::DateTime(moment));
    }
    let format = some!(arguments.text(1)?);
    let format = String::from_utf8_lossy(format);
    Ok(new_text(some!(format::date_format(moment, None, &format)), context))
}

fn week<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let date = some!(complete(moment!(arguments, 0)));
    let mode = match (arguments.call.function, arguments.len()) {
        (Function::WeekOfYear, _) => 3,
        (_, 2) => some!(arguments.int(1)?).rem_euclid(8) as u8,
        _ => 0,
    };
    Ok(match arguments.call.function {
        Function::YearWeek => {
            let (year, week) = date.week(mode | 2, true);
            ValueRef::Int(year as i64 * 100 + week as i64)
        }
        _ => ValueRef::Int(date.week(mode, false).1 as i64),
    })
}

fn extract<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    use IntervalUnit as U;
    let unit = arguments.call.unit.unwrap_or(U::Day);
    let value = arguments.value(0)?;
    let context = arguments.context;
    if matches!(unit, U::Year | U::YearMonth | U::Quarter | U::Month | U::Week | U::Day) {
        let date = some!(convert::to_date_time(&value, context)).date;
        return Ok(ValueRef::Int(match unit {
            U::Year => date.year as i64,
            U::YearMonth => date.year as i64 * 100 + date.month as i64,
            U::Quarter => (date.month as i64 + 2) / 3,
            U::Month => date.month as i64,
            U::Week => date.week(0, false).1 as i64,
            _ => date.day as i64,
        }));
    }
    let with_day = matches!(unit, U::DayMicrosecond | U::DaySecond | U::DayMinute | U::DayHour);
    let (day, time) = match value {
        ValueRef::Time(time) => (0, time),
        ValueRef::Text(text) if read_date_time(text).is_none_or(|reading| !reading.has_time) => {
            (0, some!(convert::to_time(&value, context)))
        }
        _ => {
            let moment = some!(convert::to_date_time(&value, context));
            (moment.date.day as i64, moment.time())
        }
    };
    let (hours, minutes, seconds, micros) = time.parts();
    let (hours, minutes, seconds, micros) = (hours as i64, minutes as i64, seconds as i64, micros as i64);
    let day = if with_day { day } else { 0 };
    let whole = ((day * 100 + hours) * 100 + minutes) * 100 + seconds;
    let number = match unit {
        U::Hour => hours,
        U::Minute => minutes,
        U::Second => seconds,
        U::Microsecond => micros,
        U::SecondMicrosecond => seconds * SECOND + micros,
        U::MinuteMicrosecond => (minutes * 100 + seconds) * SECOND + micros,
        U::MinuteSecond => minutes * 100 + seconds,
        U::HourMicrosecond | U::DayMicrosecond => whole * SECOND + micros,
        U::HourSecond | U::DaySecond => whole,
        U::HourMinute | U::DayMinute => whole / 100,
        _ => whole / 10_000,
    };
    Ok(ValueRef::Int(if time.is_negative() { -number } else { number }))
}

/// TIMESTAMPDIFF(unit, from, to).
fn timestamp_diff<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let unit = arguments.call.unit.unwrap_or(IntervalUnit::Second);
    let (from, to) = (moment!(arguments, 1), moment!(arguments, 2));
    let span = date::unit_span(unit);
    if span.months == 0 {
        return Ok(match span.micros {
            0 => ValueRef::Null,
            micros => ValueRef::Int((to.to_micros() - from.to_micros()) / micros),
        });
    }
    let negative = to.to_packed() < from.to_packed();
    let (from, to) = if negative { (to, from) } else { (from, to) };
    let months_of = |moment: DateTime| moment.date.year as i64 * 12 + moment.date.month as i64;
    let rest = |moment: DateTime| moment.date.day as i64 * DAY + moment.time().micros;
    let months = months_of(to) - months_of(from) - (rest(to) < rest(from)) as i64;
    let count = months / span.months;
    Ok(ValueRef::Int(if negative { -count } else { count }))
}

fn add_time<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let context = arguments.context;
    let (value, span) = (arguments.value(0)?, time!(arguments, 1));
    let micros = if arguments.call.function == Function::SubTime { -span.micros } else { span.micros };
    let is_date = match value {
        ValueRef::Date(_) | ValueRef::DateTime(_) => true,
        ValueRef::Text(text) => {
            read_date_time(text).is_some_and(|reading| reading.has_time) && text.len() >= 12
        }
        _ => false,
    };
    let text_wanted = arguments.call.class == Class::Text;
    if is_date {
        let moment = some!(convert::to_date_time(&value, context));
        let sum = some!(moment.add_micros(micros));
        let sum = DateTime {
            fsp: if text_wanted && sum.micros != 0 { 6 } else { moment.fsp.max(span.fsp) },
            ..sum
        };
        return Ok(if text_wanted { new_text(sum.to_string(), context) } else { ValueRef::DateTime(sum) });
    }
    let time = some!(convert::to_time(&value, context));
    let sum = clipped(Time { micros: time.micros + micros, fsp: time.fsp.max(span.fsp) }, context);
    let sum = Time { fsp: if text_wanted && sum.micros % SECOND != 0 { 6 } else { sum.fsp }, ..sum };
    Ok(if text_wanted { new_text(sum.to_string(), context) } else { ValueRef::Time(sum) })
}
