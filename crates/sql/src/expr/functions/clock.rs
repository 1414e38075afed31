//! Functions that read the clock, and seconds since 1970.

use super::arguments::{Arguments, Result};
use super::moment_text;
use super::time::SECOND_MICROS;
use super::widths::{SECONDS_CHARS, digits_of, formatted_chars, seconds_type};
use crate::expr::Context;
use crate::expr::evaluate::convert::{new_text, now, to_date_time};
use crate::expr::result_type::{Meaning, Typed};
use crate::variables::time_zones::{self, Zone};
use crate::{ErrorKind, SqlError};
use types::{DateTime, Decimal, ValueRef};

functions! {
    "Clock Functions";

    NOW {
        name: "now",
        aliases: ["current_timestamp", "localtime", "localtimestamp"],
        arguments: "[digits]",
        arity: 0..=1,
        typing: |t| Ok(t.date_time(digits_of(t), false)),
        evaluate: |a| Ok(ValueRef::DateTime(now(a.context, fsp(a)?))),
        help: "Gives the date and time when the statement started, with so many digits of its seconds' fraction.",
        example: "NOW(3)" => "2023-11-14 22:13:20.123",
    }
    SYSDATE {
        name: "sysdate",
        arguments: "[digits]",
        arity: 0..=1,
        constancy: Varies,
        typing: |t| Ok(t.date_time(digits_of(t), false)),
        evaluate: |a| Ok(ValueRef::DateTime(now(a.context, fsp(a)?))),
        help: "Gives the date and time of the statement.",
        example: "SYSDATE()" => "2023-11-14 22:13:20",
    }
    CURRENT_DATE {
        name: "curdate",
        aliases: ["current_date"],
        arguments: "",
        arity: 0..=0,
        typing: |t| Ok(t.date(false)),
        evaluate: |a| Ok(ValueRef::Date(now(a.context, 0).date)),
        help: "Gives the date when the statement started.",
        example: "CURDATE()" => "2023-11-14",
    }
    CURRENT_TIME {
        name: "curtime",
        aliases: ["current_time"],
        arguments: "[digits]",
        arity: 0..=1,
        typing: |t| Ok(t.time(digits_of(t), false)),
        evaluate: |a| Ok(ValueRef::Time(now(a.context, fsp(a)?).time())),
        help: "Gives the time of day when the statement started.",
        example: "CURTIME()" => "22:13:20",
    }
    UTC_TIMESTAMP {
        name: "utc_timestamp",
        arguments: "[digits]",
        arity: 0..=1,
        typing: |t| Ok(t.date_time(digits_of(t), false)),
        evaluate: |a| Ok(ValueRef::DateTime(utc(a.context, fsp(a)?))),
        help: "Gives the date and time when the statement started, in UTC.",
        example: "UTC_TIMESTAMP()" => "2023-11-14 22:13:20",
    }
    UTC_DATE {
        name: "utc_date",
        arguments: "",
        arity: 0..=0,
        typing: |t| Ok(t.date(false)),
        evaluate: |a| Ok(ValueRef::Date(utc(a.context, 0).date)),
        help: "Gives the date when the statement started, in UTC.",
        example: "UTC_DATE()" => "2023-11-14",
    }
    UTC_TIME {
        name: "utc_time",
        arguments: "[digits]",
        arity: 0..=1,
        typing: |t| Ok(t.time(digits_of(t), false)),
        evaluate: |a| Ok(ValueRef::Time(utc(a.context, fsp(a)?).time())),
        help: "Gives the time of day when the statement started, in UTC.",
        example: "UTC_TIME()" => "22:13:20",
    }
    UNIX_TIMESTAMP {
        name: "unix_timestamp",
        arguments: "[moment]",
        arity: 0..=1,
        typing: |t| {
            Ok(match t.time_fsp(0) {
                0 => Typed::int(8, false, true).with_display(SECONDS_CHARS),
                fsp => Typed { scale_is_known: false, ..seconds_type(fsp) },
            })
        },
        evaluate: unix_timestamp,
        help: "Gives the seconds from 1970 in UTC to a moment of the session's time zone, or to the start of the \
               statement.",
        example: "UNIX_TIMESTAMP('1970-01-02')" => "86400",
    }
    FROM_UNIX_TIME {
        name: "from_unixtime",
        arguments: "seconds[, format]",
        arity: 1..=2,
        typing: |t| Ok(match t.types {
            [_] => t.date_time(t.time_fsp(0), true),
            _ => t.plain(formatted_chars(t, 1), true).without_decimals(),
        }),
        evaluate: from_unix_time,
        help: "Gives the moment so many seconds after 1970 in UTC, in the session's time zone. With a format: as a \
               text, as DATE_FORMAT gives it.",
        example: "FROM_UNIXTIME(86400)" => "1970-01-02 00:00:00",
    }
    CONVERT_TZ {
        name: "convert_tz",
        arguments: "moment, from, to",
        arity: 3..=3,
        typing: |t| Ok(t.date_time(t.time_fsp(0), true)),
        evaluate: convert_tz,
        help: "Gives what a clock of one time zone shows when a clock of another zone shows a moment. Zones are \
               names of the tz database, `+hh:mm` or SYSTEM. Unknown ones give NULL.",
        example: "CONVERT_TZ('2024-07-01 12:00:00', 'UTC', 'Europe/Berlin')" => "2024-07-01 14:00:00",
    }
}

fn convert_tz<'a>(a: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let shown = or_null!(a.allowed_moment(0)?);
    if !shown.date.is_complete() {
        super::time::warn_of(a.value(0)?, "datetime", a);
        return Ok(ValueRef::Null);
    }
    let zone = |position: usize| -> Result<Option<Zone>> {
        let name = a.text(position)?;
        Ok(name.and_then(|name| Zone::of(std::str::from_utf8(name).ok()?)))
    };
    let (from, to) = (or_null!(zone(1)?), or_null!(zone(2)?));
    Ok(time_zones::convert(shown, &from, &to).map_or(ValueRef::Null, ValueRef::DateTime))
}

/// The digits of a moment's seconds that its type has room for: the argument is a constant whose value the
/// evaluation knows.
/// # Errors
/// 1426 for more than six digits.
fn fsp(arguments: &Arguments<'_, '_>) -> Result<u8> {
    if arguments.len() == 0 {
        return Ok(0);
    }
    let digits = arguments.int(0)?;
    if let Some(digits @ 0..=6) = digits {
        return Ok(digits as u8);
    }
    let (digits, name) = (digits.unwrap_or(0), arguments.name());
    let message = format!("Too big precision {digits} specified for '{name}'. Maximum is 6");
    Err(SqlError::new(ErrorKind::PrecisionTooBig, message))
}

fn utc(context: &Context<'_>, fsp: u8) -> DateTime {
    DateTime::from_unix_micros(context.environment.now_micros(), fsp)
}

fn unix_timestamp<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let context = arguments.context;
    if arguments.len() == 0 {
        return Ok(ValueRef::Int(context.environment.now_micros().div_euclid(SECOND_MICROS)));
    }
    let value = arguments.value(0)?;
    let moment = or_null!(to_date_time(&value, context));
    if !moment.date.is_complete() {
        let is_moment = matches!(value, ValueRef::DateTime(_));
        // A TIMESTAMP of nought is 0, and no other date of nought is a moment.
        if is_moment && moment.date.is_zero() {
            return Ok(ValueRef::Int(0));
        }
        if !moment.date.is_zero() && !is_moment && !matches!(value, ValueRef::Date(_)) {
            super::time::warn_of(value, "datetime", arguments);
        }
        return Ok(ValueRef::Null);
    }
    let micros = match arguments.call.meanings.first() {
        Some(Meaning::InUtc) => moment.to_unix_micros(),
        _ => or_null!(context.environment.time_zone().moment(moment)).micros(),
    };
    let in_range = (0..=i32::MAX as i64 * SECOND_MICROS + SECOND_MICROS - 1).contains(&micros);
    Ok(match (in_range, moment.fsp) {
        (false, _) => ValueRef::Null,
        (true, 0) => ValueRef::Int(micros / SECOND_MICROS),
        (true, fsp) => ValueRef::Decimal(Decimal::new(micros.into(), 6).truncated(fsp)),
    })
}

fn from_unix_time<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let context = arguments.context;
    let seconds = or_null!(arguments.decimal(0)?);
    let fsp = seconds.scale().min(6);
    let micros = or_null!(seconds.truncated(6).with_scale(6)).unscaled();
    if seconds.is_negative() || micros > (i32::MAX as i64 * SECOND_MICROS + SECOND_MICROS - 1) as i128 {
        return Ok(ValueRef::Null);
    }
    let moment = context.environment.time_zone().shown(micros.as_i64(), fsp);
    if arguments.len() == 1 {
        return Ok(ValueRef::DateTime(moment));
    }
    let format = or_null!(arguments.text(1)?);
    let format = String::from_utf8_lossy(format);
    Ok(new_text(
        or_null!(moment_text::date_format(moment, None, &format, || context.environment.time_locale())),
        context,
    ))
}
