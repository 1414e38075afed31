//! Functions of dates and times.

use super::arguments::{Arguments, Result, int};
use super::moment_text;
use super::typing::{Typing, nullable_date, nullable_int_of};
use super::widths::{SECONDS_CHARS, formatted_chars, seconds_type, unit_chars};
use crate::expr::evaluate::convert::{self, new_text};
use crate::expr::evaluate::date;
use crate::expr::result_type::{Class, Typed};
use crate::expr::{Context, IntervalUnit};
use crate::locales::Locale;
use crate::text::push_text;
use crate::{ErrorKind, SqlError, ToldAs};
use types::temporal::{days_in_month, read_date_time};
use types::{Date, DateTime, Decimal, Time, ValueRef};

/// In microseconds, as all times.
pub(super) const SECOND_MICROS: i64 = 1_000_000;
const DAY_MICROS: i64 = 86_400 * SECOND_MICROS;

functions! {
    "Date and Time Functions";

    DATE {
        name: "date",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_date,
        evaluate: |a| Ok(ValueRef::Date(or_null!(a.allowed_moment(0)?).date)),
        help: "Gives the date of a date and time.",
        example: "DATE('2026-11-21 10:11:12')" => "2026-11-21",
    }
    TIME {
        name: "time",
        arguments: "moment",
        arity: 1..=1,
        typing: |t| Ok(t.time(t.time_fsp(0), true)),
        evaluate: |a| Ok(ValueRef::Time(or_null!(a.time(0)?))),
        help: "Gives the time of a date and time, or a text as a time.",
        example: "TIME('10:11:12')" => "10:11:12",
    }
    TIMESTAMP {
        name: "timestamp",
        arguments: "moment[, time]",
        arity: 1..=2,
        typing: |t| Ok(t.date_time(t.time_fsp(0), true)),
        evaluate: timestamp,
        help: "Gives a value as a date and time, and adds a time to it.",
        example: "TIMESTAMP('2026-11-21', '10:00:00')" => "2026-11-21 10:00:00",
    }
    YEAR {
        name: "year",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<4>,
        evaluate: |a| int(or_null!(a.moment(0)?).date.year as i64),
        help: "Gives the year.",
        example: "YEAR('2026-11-21 10:11:12')" => "2026",
    }
    QUARTER {
        name: "quarter",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<1>,
        evaluate: |a| int((or_null!(a.moment(0)?).date.month as i64 + 2) / 3),
        help: "Gives the quarter of the year, from 1 to 4.",
        example: "QUARTER('2026-11-21 10:11:12')" => "4",
    }
    MONTH {
        name: "month",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<2>,
        evaluate: |a| int(or_null!(a.moment(0)?).date.month as i64),
        help: "Gives the month, from 1 to 12, or 0 of a date without one.",
        example: "MONTH('2026-11-21 10:11:12')" => "11",
    }
    MONTH_NAME {
        name: "monthname",
        arguments: "moment",
        arity: 1..=1,
        typing: |t| Ok(t.plain(9, true).without_decimals()),
        evaluate: |a| {
            let month = or_null!(a.moment(0)?).date.month as usize;
            let months = &a.context.environment.time_locale().months;
            let name = or_null!(month.checked_sub(1).and_then(|month| months.get(month)));
            Ok(ValueRef::Text(name.as_bytes()))
        },
        help: "Gives the name of the month.",
        example: "MONTHNAME('2026-11-21 10:11:12')" => "November",
    }
    WEEK {
        name: "week",
        arguments: "moment[, mode]",
        arity: 1..=2,
        typing: nullable_int_of::<2>,
        evaluate: |a| {
            let (date, mode) = or_null!(date_and_mode(a)?);
            int(date.week(mode, false).1 as i64)
        },
        help: "Gives the week of the year. The mode, from 0 to 7, says on which day a week starts and \
               which week is the first.",
        example: "WEEK('2026-11-21 10:11:12', 3)" => "47",
    }
    WEEK_OF_YEAR {
        name: "weekofyear",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<2>,
        evaluate: |a| int(or_null!(complete_moment(a, 0)?).date.week(3, false).1 as i64),
        help: "Gives the week of the year as ISO 8601 counts it, from 1 to 53.",
        example: "WEEKOFYEAR('2026-11-21 10:11:12')" => "47",
    }
    YEAR_WEEK {
        name: "yearweek",
        arguments: "moment[, mode]",
        arity: 1..=2,
        typing: nullable_int_of::<6>,
        evaluate: |a| {
            let (date, mode) = or_null!(date_and_mode(a)?);
            let (year, week) = date.week(mode | 2, true);
            int(year as i64 * 100 + week as i64)
        },
        help: "Gives the year and the week as one number. The mode is that of WEEK.",
        example: "YEARWEEK('2026-11-21 10:11:12', 3)" => "202647",
    }
    DAY {
        name: "day",
        aliases: ["dayofmonth"],
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<2>,
        evaluate: |a| int(or_null!(a.moment(0)?).date.day as i64),
        help: "Gives the day of the month, or 0 of a date without one.",
        example: "DAY('2026-11-21 10:11:12')" => "21",
    }
    DAY_OF_WEEK {
        name: "dayofweek",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<1>,
        evaluate: |a| int((or_null!(complete_moment(a, 0)?).date.weekday() as i64 + 1) % 7 + 1),
        help: "Gives the day of the week, from 1 for Sunday to 7 for Saturday.",
        example: "DAYOFWEEK('2026-11-21 10:11:12')" => "7",
    }
    DAY_OF_YEAR {
        name: "dayofyear",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<3>,
        evaluate: |a| int(or_null!(complete_moment(a, 0)?).date.day_of_year() as i64),
        help: "Gives the day of the year, from 1 to 366.",
        example: "DAYOFYEAR('2026-11-21 10:11:12')" => "325",
    }
    WEEKDAY {
        name: "weekday",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<1>,
        evaluate: |a| int(or_null!(complete_moment(a, 0)?).date.weekday() as i64),
        help: "Gives the day of the week, from 0 for Monday to 6 for Sunday.",
        example: "WEEKDAY('2026-11-21 10:11:12')" => "5",
    }
    DAY_NAME {
        name: "dayname",
        arguments: "moment",
        arity: 1..=1,
        typing: |t| Ok(t.plain(9, true).without_decimals()),
        evaluate: |a| {
            let weekday = or_null!(complete_moment(a, 0)?).date.weekday();
            let name = a.context.environment.time_locale().days.get(weekday as usize);
            Ok(ValueRef::Text(or_null!(name).as_bytes()))
        },
        help: "Gives the name of the day of the week.",
        example: "DAYNAME('2026-11-21 10:11:12')" => "Saturday",
    }
    LAST_DAY {
        name: "last_day",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_date,
        evaluate: |a| {
            let date = or_null!(a.moment(0)?).date;
            if date.month == 0 {
                return Ok(ValueRef::Null);
            }
            Ok(ValueRef::Date(Date { day: days_in_month(date.year, date.month), ..date }))
        },
        help: "Gives the last day of the month.",
        example: "LAST_DAY('2024-02-05')" => "2024-02-29",
    }
    HOUR {
        name: "hour",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<2>,
        evaluate: |a| int(or_null!(a.time(0)?).parts().0 as i64),
        help: "Gives the hours of a time.",
        example: "HOUR('10:11:12')" => "10",
    }
    MINUTE {
        name: "minute",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<2>,
        evaluate: |a| int(or_null!(a.time(0)?).parts().1 as i64),
        help: "Gives the minutes of a time, from 0 to 59.",
        example: "MINUTE('10:11:12')" => "11",
    }
    SECOND {
        name: "second",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<2>,
        evaluate: |a| int(or_null!(a.time(0)?).parts().2 as i64),
        help: "Gives the seconds of a time, from 0 to 59.",
        example: "SECOND('10:11:12')" => "12",
    }
    MICROSECOND {
        name: "microsecond",
        arguments: "moment",
        arity: 1..=1,
        typing: nullable_int_of::<6>,
        evaluate: |a| int(or_null!(a.time(0)?).parts().3 as i64),
        help: "Gives the microseconds of a time.",
        example: "MICROSECOND('10:11:12')" => "0",
    }
    EXTRACT {
        name: "extract",
        arguments: "unit FROM moment",
        arity: 2..=2,
        syntax: UnitFrom,
        typing: |t| {
            let chars = t.unit.map_or(0, unit_chars);
            Ok(Typed::int_as_wide(chars, false, true))
        },
        evaluate: extract,
        help: "Gives a part of a moment: a unit such as YEAR or HOUR, or two in one number, such as \
               YEAR_MONTH.",
        example: "EXTRACT(YEAR_MONTH FROM '2026-11-21 10:11:12')" => "202611",
    }
    DATE_ADD {
        name: "date_add",
        aliases: ["adddate"],
        arguments: "moment, interval",
        arity: 2..=2,
        node: DateAdd,
        help: "Adds an interval, such as INTERVAL 2 MONTH. ADDDATE(date, n) adds n days.",
        example: "DATE_ADD('2024-01-31', INTERVAL 1 MONTH)" => "2024-02-29",
    }
    DATE_SUB {
        name: "date_sub",
        aliases: ["subdate"],
        arguments: "moment, interval",
        arity: 2..=2,
        node: DateSubtract,
        help: "Subtracts an interval, such as INTERVAL 2 MONTH. SUBDATE(date, n) subtracts n days.",
        example: "DATE_SUB('2024-03-31', INTERVAL 1 MONTH)" => "2024-02-29",
    }
    DATE_DIFF {
        name: "datediff",
        arguments: "moment, other",
        arity: 2..=2,
        typing: nullable_int_of::<8>,
        evaluate: |a| {
            let (moment, other) = (complete_moment(a, 0)?, complete_moment(a, 1)?);
            int(or_null!(moment).date.to_days() - or_null!(other).date.to_days())
        },
        help: "Gives the days from the second date to the first.",
        example: "DATEDIFF('2026-11-21', '2026-11-01')" => "20",
    }
    TIMESTAMP_ADD {
        name: "timestampadd",
        arguments: "unit, count, moment",
        arity: 2..=2,
        syntax: UnitSum,
        node: DateAdd,
        help: "Adds so many of a unit, such as MINUTE or MONTH.",
        example: "TIMESTAMPADD(MONTH, 1, '2024-01-31')" => "2024-02-29",
    }
    TIMESTAMP_DIFF {
        name: "timestampdiff",
        arguments: "unit, from, to",
        arity: 3..=3,
        syntax: UnitDifference,
        typing: |_| Ok(Typed::bigint(false, true)),
        evaluate: timestamp_diff,
        help: "Counts whole units, such as MINUTE or MONTH, from one moment to another.",
        example: "TIMESTAMPDIFF(MONTH, '2026-01-15', '2026-11-14')" => "9",
    }
    TIME_DIFF {
        name: "timediff",
        arguments: "value, other",
        arity: 2..=2,
        typing: |t| Ok(t.time(t.time_fsp(0).max(t.time_fsp(1)), true)),
        evaluate: time_diff,
        help: "Gives the time from the second value to the first. Both are times, or both are dates and \
               times.",
        example: "TIMEDIFF('10:00:00', '08:30:00')" => "01:30:00",
    }
    ADD_TIME {
        name: "addtime",
        arguments: "value, time",
        arity: 2..=2,
        typing: sum_type,
        evaluate: |a| add_time(a, 1),
        help: "Adds a time to a time or to a date and time.",
        example: "ADDTIME('10:00:00', '01:30:00')" => "11:30:00",
    }
    SUB_TIME {
        name: "subtime",
        arguments: "value, time",
        arity: 2..=2,
        typing: sum_type,
        evaluate: |a| add_time(a, -1),
        help: "Subtracts a time from a time or from a date and time.",
        example: "SUBTIME('10:00:00', '01:30:00')" => "08:30:00",
    }
    DATE_FORMAT {
        name: "date_format",
        arguments: "moment, format[, locale]",
        arity: 2..=3,
        typing: |t| Ok(t.plain(formatted_chars(t, 1), true).without_decimals()),
        evaluate: |a| {
            let moment = a.moment(0)?;
            let format = a.text(1)?;
            let locale = if a.len() > 2 { Some(named_locale(a, 2)?) } else { None };
            let locale = || locale.unwrap_or_else(|| a.context.environment.time_locale());
            let (moment, format) = (or_null!(moment), String::from_utf8_lossy(or_null!(format)));
            Ok(new_text(or_null!(moment_text::date_format(moment, None, &format, locale)), a.context))
        },
        help: "Writes a date and time as the format says. %Y is the year, %m the month, %d the day, %H the \
               hour, %i the \
               minute, %s the second.",
        example: "DATE_FORMAT('2026-11-21 10:11:12', '%d.%m.%Y %H:%i')" => "21.11.2026 10:11",
    }
    TIME_FORMAT {
        name: "time_format",
        arguments: "time, format",
        arity: 2..=2,
        typing: |t| Ok(t.plain(formatted_chars(t, 1), true).without_decimals()),
        evaluate: time_format,
        help: "Writes a time as the format says. %H is the hour, %i the minute, %s the second.",
        example: "TIME_FORMAT('10:11:12', '%H-%i')" => "10-11",
    }
    STR_TO_DATE {
        name: "str_to_date",
        arguments: "text, format",
        arity: 2..=2,
        typing: |t| Ok(read_type(t)),
        evaluate: str_to_date,
        help: "Reads a text as the format of DATE_FORMAT says. Gives NULL with warning 1411 for a text \
               that does not match.",
        example: "STR_TO_DATE('21.11.2026', '%d.%m.%Y')" => "2026-11-21",
    }
    TO_DAYS {
        name: "to_days",
        arguments: "date",
        arity: 1..=1,
        typing: nullable_int_of::<6>,
        evaluate: |a| {
            let date = or_null!(complete_moment(a, 0)?).date;
            int(date.to_days())
        },
        help: "Gives the number of a day, counted from the year 0.",
        example: "TO_DAYS('2026-11-21')" => "740306",
    }
    FROM_DAYS {
        name: "from_days",
        arguments: "number",
        arity: 1..=1,
        typing: nullable_date,
        evaluate: from_days,
        help: "Gives the date of a number that TO_DAYS gave.",
        example: "FROM_DAYS(740306)" => "2026-11-21",
    }
    TIME_TO_SEC {
        name: "time_to_sec",
        arguments: "time",
        arity: 1..=1,
        typing: |t| Ok(match t.time_fsp(0) {
            0 => Typed::int(8, false, true).with_display(SECONDS_CHARS),
            fsp => seconds_type(fsp),
        }),
        evaluate: |a| {
            let time = or_null!(a.time(0)?);
            match time.fsp {
                0 => int(time.micros / SECOND_MICROS),
                fsp => Ok(ValueRef::Decimal(Decimal::new(time.micros.into(), 6).truncated(fsp))),
            }
        },
        help: "Gives a time in seconds.",
        example: "TIME_TO_SEC('00:02:05')" => "125",
    }
    SEC_TO_TIME {
        name: "sec_to_time",
        arguments: "seconds",
        arity: 1..=1,
        typing: |t| Ok(t.time(t.time_fsp(0), true)),
        evaluate: sec_to_time,
        help: "Gives seconds as a time.",
        example: "SEC_TO_TIME(125)" => "00:02:05",
    }
    MAKE_DATE {
        name: "makedate",
        arguments: "year, day",
        arity: 2..=2,
        typing: nullable_date,
        evaluate: make_date,
        help: "Gives the date of a day of the year, counted from 1.",
        example: "MAKEDATE(2026, 325)" => "2026-11-21",
    }
    MAKE_TIME {
        name: "maketime",
        arguments: "hour, minute, second",
        arity: 3..=3,
        typing: |t| Ok(t.time(t.time_fsp(2), true)),
        evaluate: make_time,
        help: "Gives the time with these hours, minutes and seconds, or NULL if there is none.",
        example: "MAKETIME(10, 11, 12)" => "10:11:12",
    }
}

/// ADDTIME and SUBTIME.
fn sum_type(typing: &mut Typing<'_>) -> std::result::Result<Typed, SqlError> {
    let fsp = typing.time_fsp(0).max(typing.time_fsp(1));
    Ok(match typing.types[0].class {
        Class::Time => typing.time(fsp, true),
        Class::DateTime | Class::Date => typing.date_time(fsp, true),
        Class::Null
        | Class::Int
        | Class::UInt
        | Class::Double
        | Class::Decimal
        | Class::Text
        | Class::Binary => typing.plain(26, true).told_as(ToldAs::Char),
    })
}

fn timestamp<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    if arguments.len() == 1 {
        return Ok(ValueRef::DateTime(or_null!(arguments.allowed_moment(0)?)));
    }
    let moment = or_null!(arguments.moment(0)?);
    let time = or_null!(span(arguments, 1)?);
    or_null!((!moment.date.is_zero()).then_some(()));
    let sum = or_null!(moment.add_micros(time.micros));
    Ok(ValueRef::DateTime(DateTime { fsp: moment.fsp.max(time.fsp), ..sum }))
}

/// The date and the mode of WEEK and YEARWEEK; `None` for NULL.
fn date_and_mode(arguments: &Arguments<'_, '_>) -> Result<Option<(Date, u8)>> {
    let Some(DateTime { date, .. }) = complete_moment(arguments, 0)? else { return Ok(None) };
    let mode = if arguments.len() == 2 { arguments.int(1)? } else { Some(0) };
    Ok(mode.map(|mode| (date, mode.rem_euclid(8) as u8)))
}

fn time_diff<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let context = arguments.context;
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
            let a = or_null!(convert::to_date_time(&a, context));
            let b = or_null!(convert::to_date_time(&b, context));
            (a.to_micros() - b.to_micros(), a.fsp.max(b.fsp))
        }
        (false, false) => {
            let a = or_null!(convert::to_time(&a, context));
            let b = or_null!(convert::to_time(&b, context));
            (a.micros - b.micros, a.fsp.max(b.fsp))
        }
        (true, false) | (false, true) => return Ok(ValueRef::Null),
    };
    Ok(ValueRef::Time(clipped(Time { micros, fsp }, context)))
}

fn time_format<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let time = or_null!(arguments.time(0)?);
    let format = String::from_utf8_lossy(or_null!(arguments.text(1)?));
    let (hours, minute, second, micros) = time.parts();
    let moment = DateTime { minute, second, micros, ..DateTime::ZERO };
    let sign = if time.is_negative() { "-" } else { "" };
    let text = or_null!(moment_text::date_format(moment, Some(hours), &format, || Locale::at(0)));
    Ok(new_text(format!("{sign}{text}"), arguments.context))
}

/// A date, a time or both, as the format says. Of a format that may change from row to row, both.
fn read_type(typing: &Typing<'_>) -> Typed {
    let Some(format) = typing.constant_text(1) else { return typing.date_time(6, true) };
    let kinds = moment_text::kinds_of(&String::from_utf8_lossy(format));
    let fsp = if kinds.micros { 6 } else { 0 };
    match (kinds.date, kinds.time) {
        (_, false) => typing.date(true),
        (false, true) => typing.time(fsp, true),
        (true, true) => typing.date_time(fsp, true),
    }
}

fn str_to_date<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (text, format) = (or_null!(arguments.text(0)?), or_null!(arguments.text(1)?));
    let (text, format) = (String::from_utf8_lossy(text), String::from_utf8_lossy(format));
    let mode = arguments.context.environment.sql_mode();
    let is_allowed = |read: &moment_text::Read| match read {
        moment_text::Read::Date(date) | moment_text::Read::DateTime(DateTime { date, .. }) => {
            date.is_complete() || !if date.is_zero() { mode.no_zero_date } else { mode.no_zero_in_date }
        }
        moment_text::Read::Time(_) => true,
    };
    Ok(match moment_text::str_to_date(&text, &format).filter(is_allowed) {
        Some(read) if arguments.call.class == Class::DateTime => {
            ValueRef::DateTime(read.as_moment(arguments.call.decimals))
        }
        Some(moment_text::Read::Date(date)) => ValueRef::Date(date),
        Some(moment_text::Read::Time(time)) => ValueRef::Time(time),
        Some(moment_text::Read::DateTime(moment)) => ValueRef::DateTime(moment),
        None => {
            let shown = convert::shown(text.as_bytes());
            let message = format!("Incorrect datetime value: '{shown}' for function str_to_date");
            arguments.context.environment.warn(ErrorKind::WrongValueForFunction, message);
            ValueRef::Null
        }
    })
}

fn sec_to_time<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let seconds = or_null!(arguments.decimal(0)?);
    let fsp = seconds.scale().min(6);
    let micros = or_null!(seconds.truncated(6).with_scale(6)).unscaled();
    let micros = i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN / 2 } else { i64::MAX / 2 });
    Ok(ValueRef::Time(clipped(Time { micros, fsp }, arguments.context)))
}

/// The day nought is no date with NO_ZERO_DATE; the others before the year 1 are the date of nought.
fn from_days<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let days = or_null!(arguments.int(0)?);
    Ok(match days == 0 && arguments.context.environment.sql_mode().no_zero_date {
        true => ValueRef::Null,
        false => ValueRef::Date(Date::from_days(days)),
    })
}

fn make_date<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (year, day) = (or_null!(arguments.int(0)?), or_null!(arguments.int(1)?));
    if !(0..=9999).contains(&year) || day < 1 {
        return Ok(ValueRef::Null);
    }
    let year = match year {
        0..70 => 2000 + year,
        70..100 => 1900 + year,
        _ => year,
    };
    let first = Date { year: year as u16, month: 1, day: 1 };
    Ok(ValueRef::Date(or_null!(first.add_days(day.min(10_000_000) - 1))))
}

fn make_time<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (hour, minute) = (or_null!(arguments.int(0)?), or_null!(arguments.int(1)?));
    let seconds = or_null!(arguments.decimal(2)?);
    let fsp = seconds.scale().min(6);
    let micros =
        seconds.truncated(6).with_scale(6).and_then(|seconds| i64::try_from(seconds.unscaled()).ok());
    let micros = or_null!(micros);
    if !(0..60).contains(&minute) || !(0..60 * SECOND_MICROS).contains(&micros) {
        return Ok(ValueRef::Null);
    }
    let magnitude =
        hour.unsigned_abs().min(1000) as i64 * 3600 * SECOND_MICROS + minute * 60 * SECOND_MICROS + micros;
    let micros = if hour < 0 { -magnitude } else { magnitude };
    Ok(ValueRef::Time(clipped(Time { micros, fsp }, arguments.context)))
}

fn clipped(time: Time, context: &Context<'_>) -> Time {
    let clipped = time.clipped();
    if clipped != time {
        convert::warn_truncated("time", time.to_string().as_bytes(), context);
    }
    clipped
}

fn extract<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    use IntervalUnit as U;
    let unit = arguments.call.unit.unwrap_or(U::Day);
    let value = arguments.value(0)?;
    let context = arguments.context;
    if matches!(unit, U::Year | U::YearMonth | U::Quarter | U::Month | U::Week | U::Day) {
        let date = or_null!(convert::to_date_time(&value, context)).date;
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
    let (day, time) = or_null!(day_and_time(&value, context));
    let (hours, minutes, seconds, micros) = time.parts();
    let (hours, minutes, seconds, micros) = (hours as i64, minutes as i64, seconds as i64, micros as i64);
    let day = if with_day { day } else { 0 };
    let whole = ((day * 100 + hours) * 100 + minutes) * 100 + seconds;
    let number = match unit {
        U::Hour => hours,
        U::Minute => minutes,
        U::Second => seconds,
        U::Microsecond => micros,
        U::SecondMicrosecond => seconds * SECOND_MICROS + micros,
        U::MinuteMicrosecond => (minutes * 100 + seconds) * SECOND_MICROS + micros,
        U::MinuteSecond => minutes * 100 + seconds,
        U::HourMicrosecond | U::DayMicrosecond => whole * SECOND_MICROS + micros,
        U::HourSecond | U::DaySecond => whole,
        U::HourMinute | U::DayMinute => whole / 100,
        _ => whole / 10_000,
    };
    Ok(ValueRef::Int(if time.is_negative() { -number } else { number }))
}

/// The day, and the time of day, that EXTRACT sees: of a date, or of a span of time.
fn day_and_time(value: &ValueRef<'_>, context: &Context<'_>) -> Option<(i64, Time)> {
    let span = |time: Time| {
        let days = time.micros.abs() / DAY_MICROS;
        (days, Time { micros: time.micros % DAY_MICROS, ..time })
    };
    match *value {
        ValueRef::Time(time) => Some(span(time)),
        ValueRef::Text(text) => {
            let is_date = text.iter().skip(1).any(|byte| *byte == b'-');
            if is_date || read_date_time(text).is_some_and(|reading| reading.has_time) {
                return convert::to_date_time(value, context)
                    .map(|moment| (moment.date.day as i64, moment.time()));
            }
            convert::to_time(value, context).map(span)
        }
        ValueRef::Date(_) | ValueRef::DateTime(_) => {
            convert::to_date_time(value, context).map(|moment| (moment.date.day as i64, moment.time()))
        }
        _ => {
            let number = convert::to_f64(value, context)?;
            match number.abs() >= MOMENTS_FROM {
                true => convert::to_date_time(value, context)
                    .map(|moment| (moment.date.day as i64, moment.time())),
                false => convert::to_time(value, context).map(span),
            }
        }
    }
}

/// A number from here on is a date and a time of day; a smaller one a time.
const MOMENTS_FROM: f64 = 1e13;

/// TIMESTAMPDIFF(unit, from, to).
fn timestamp_diff<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let unit = arguments.call.unit.unwrap_or(IntervalUnit::Second);
    let from = or_null!(complete_moment(arguments, 1)?);
    let to = or_null!(complete_moment(arguments, 2)?);
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
    let rest = |moment: DateTime| moment.date.day as i64 * DAY_MICROS + moment.time().micros;
    let months = months_of(to) - months_of(from) - (rest(to) < rest(from)) as i64;
    let count = months / span.months;
    Ok(ValueRef::Int(if negative { -count } else { count }))
}

/// The time that is added to another; `None` for a moment of a day, which is no span.
fn span(arguments: &Arguments<'_, '_>, index: usize) -> Result<Option<Time>> {
    let value = arguments.value(index)?;
    let is_moment = match value {
        ValueRef::Date(_) | ValueRef::DateTime(_) => true,
        ValueRef::Text(text) => reads_as_moment(text),
        _ => false,
    };
    if is_moment {
        warn_of(value, "INTERVAL DAY TO SECOND", arguments);
        return Ok(None);
    }
    arguments.time(index)
}

/// A date with month and day, and its time. `None` for another one, with a warning if it is a text or a
/// number.
pub(super) fn complete_moment(arguments: &Arguments<'_, '_>, index: usize) -> Result<Option<DateTime>> {
    let value = arguments.value(index)?;
    let Some(moment) = convert::to_date_time(&value, arguments.context) else { return Ok(None) };
    if moment.date.is_complete() {
        return Ok(Some(moment));
    }
    if !matches!(value, ValueRef::Date(_) | ValueRef::DateTime(_)) {
        warn_of(value, "datetime", arguments);
    }
    Ok(None)
}

/// The locale that an argument names; American English with a warning if it names none.
pub(super) fn named_locale(arguments: &Arguments<'_, '_>, index: usize) -> Result<&'static Locale> {
    let name = arguments.text(index)?;
    let locale = name.and_then(Locale::of_name);
    Ok(locale.unwrap_or_else(|| {
        let name = name.map_or("NULL".to_string(), convert::shown);
        arguments.context.environment.warn(ErrorKind::UnknownLocale, format!("Unknown locale: '{name}'"));
        Locale::at(0)
    }))
}

/// Warning 1292: the value is none of its kind.
pub(super) fn warn_of(value: ValueRef<'_>, kind: &str, arguments: &Arguments<'_, '_>) {
    let mut shown = String::new();
    push_text(value, &mut shown);
    let message = format!("Incorrect {kind} value: '{shown}'");
    arguments.context.environment.warn(ErrorKind::TruncatedWrongValue, message);
}

/// True if the text is a date with a time of day.
fn reads_as_moment(text: &[u8]) -> bool {
    read_date_time(text).is_some_and(|reading| reading.has_time) && text.len() >= 12
}

/// ADDTIME and SUBTIME: `sign` is 1 or -1.
fn add_time<'a>(arguments: &Arguments<'a, '_>, sign: i64) -> Result<ValueRef<'a>> {
    let context = arguments.context;
    let (value, span) = (arguments.value(0)?, or_null!(span(arguments, 1)?));
    let micros = sign * span.micros;
    let is_date = match value {
        ValueRef::Date(_) | ValueRef::DateTime(_) => true,
        ValueRef::Text(text) => reads_as_moment(text),
        _ => false,
    };
    let text_wanted = arguments.call.class == Class::Text;
    if is_date {
        let moment = or_null!(convert::to_date_time(&value, context));
        if moment.date.is_zero() {
            return Ok(ValueRef::Null);
        }
        let sum = or_null!(moment.add_micros(micros));
        let sum = DateTime {
            fsp: if text_wanted && sum.micros != 0 { 6 } else { moment.fsp.max(span.fsp) },
            ..sum
        };
        return Ok(if text_wanted { new_text(sum.to_string(), context) } else { ValueRef::DateTime(sum) });
    }
    let time = or_null!(convert::to_time(&value, context));
    let sum = clipped(Time { micros: time.micros + micros, fsp: time.fsp.max(span.fsp) }, context);
    let sum = Time { fsp: if text_wanted && sum.micros % SECOND_MICROS != 0 { 6 } else { sum.fsp }, ..sum };
    Ok(if text_wanted { new_text(sum.to_string(), context) } else { ValueRef::Time(sum) })
}
