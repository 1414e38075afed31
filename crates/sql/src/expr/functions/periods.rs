//! Months as numbers, and dates by months.

use super::arguments::int;
use super::time::complete_moment;
use super::typing::int_of;
use crate::expr::result_type::Typed;
use types::ValueRef;

functions! {
    "Months and Formats";

    PERIOD_ADD {
        name: "period_add",
        arguments: "period, months",
        arity: 2..=2,
        typing: int_of::<6>,
        evaluate: |a| {
            let (period, months) = (or_null!(a.int(0)?), or_null!(a.int(1)?));
            if period == 0 {
                return int(0);
            }
            int(to_period((to_months(period) as i32).wrapping_add(months as i32) as u32))
        },
        help: "Adds months to a month that is written as YYMM or YYYYMM.",
        example: "PERIOD_ADD(202311, 3)" => "202402",
    }
    PERIOD_DIFF {
        name: "period_diff",
        arguments: "period, other",
        arity: 2..=2,
        typing: int_of::<6>,
        evaluate: |a| {
            let (first, second) = (or_null!(a.int(0)?), or_null!(a.int(1)?));
            int(to_months(first) - to_months(second))
        },
        help: "Gives the months between two months that are written as YYMM or YYYYMM.",
        example: "PERIOD_DIFF(202402, 202311)" => "3",
    }
    TO_SECONDS {
        name: "to_seconds",
        arguments: "moment",
        arity: 1..=1,
        typing: |_| Ok(Typed::int(8, false, true).with_display(12)),
        evaluate: |a| {
            const SECONDS_PER_DAY: i64 = 86_400;
            let moment = or_null!(complete_moment(a, 0)?);
            let (hours, minutes) = (i64::from(moment.hour), i64::from(moment.minute));
            let seconds = (hours * 60 + minutes) * 60 + i64::from(moment.second);
            int(moment.date.to_days() * SECONDS_PER_DAY + seconds)
        },
        help: "Gives the seconds from the start of the year 0 to a moment.",
        example: "TO_SECONDS('2026-11-21')" => "63962438400",
    }
    ADD_MONTHS {
        name: "add_months",
        arguments: "moment, months",
        arity: 2..=2,
        syntax: MonthSum,
        bound: Bound,
        help: "Adds months to a date: DATE_ADD(moment, INTERVAL months MONTH).",
        example: "ADD_MONTHS('2024-01-31', 1)" => "2024-02-29",
    }
    GET_FORMAT {
        name: "get_format",
        arguments: "kind, place",
        arity: 2..=2,
        syntax: FormatOf,
        collation: Connection,
        typing: |t| Ok(t.plain(17, true)),
        evaluate: |a| {
            let (kind, place) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            Ok(ValueRef::Text(or_null!(format_of(kind, place)).as_bytes()))
        },
        help: "Gives the format for DATE_FORMAT of DATE, TIME or DATETIME that people use in a place: 'EUR', 'USA', \
               'JIS', 'ISO' or 'INTERNAL'.",
        example: "GET_FORMAT(DATE, 'EUR')" => "%d.%m.%Y",
    }
}

/// The months since the year 0. Years of two digits are from 1970 to 2069.
fn to_months(period: i64) -> i64 {
    const PERIOD_MAX: i64 = 999_912;
    if !(1..=PERIOD_MAX).contains(&period) {
        return 0;
    }
    whole_year(period / 100) * 12 + period % 100 - 1
}

fn to_period(months: u32) -> i64 {
    let months = i64::from(months);
    match months {
        0 => 0,
        _ => whole_year(months / 12) * 100 + months % 12 + 1,
    }
}

fn whole_year(year: i64) -> i64 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

fn format_of(kind: &[u8], place: &[u8]) -> Option<&'static str> {
    let formats = match kind.to_ascii_uppercase().as_slice() {
        b"DATE" => ["%m.%d.%Y", "%Y-%m-%d", "%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"],
        b"TIME" => ["%h:%i:%s %p", "%H:%i:%s", "%H:%i:%s", "%H.%i.%s", "%H%i%s"],
        _ => [
            "%Y-%m-%d %H.%i.%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H.%i.%s",
            "%Y%m%d%H%i%s",
        ],
    };
    let places: [&[u8]; 5] = [b"USA", b"JIS", b"ISO", b"EUR", b"INTERNAL"];
    let at = places.iter().position(|known| known.eq_ignore_ascii_case(place))?;
    Some(formats[at])
}
