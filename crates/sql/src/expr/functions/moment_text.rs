//! DATE_FORMAT, TIME_FORMAT and STR_TO_DATE.

use crate::locales::Locale;
use std::fmt::Write;
use types::{Date, DateTime, Time};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Monday first.
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn ordinal(day: u8) -> &'static str {
    match (day / 10, day % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// A moment in a format, or with `hours` a time of any length. `None` if the format asks for the name of a
/// month or weekday that the date does not have. `locale` is asked for their names only.
pub(super) fn date_format(
    moment: DateTime,
    hours: Option<u32>,
    format: &str,
    locale: impl Fn() -> &'static Locale,
) -> Option<String> {
    let mut out = String::with_capacity(format.len() * 2);
    let date = moment.date;
    let hour = hours.unwrap_or(moment.hour as u32);
    let hour_12 = (hour % 12 + 11) % 12 + 1;
    let half = if hour % 24 < 12 { "AM" } else { "PM" };
    let (minute, second) = (moment.minute, moment.second);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let Some(specifier) = characters.next() else {
            out.push('%');
            break;
        };
        let month_name = |names: &[&'static str]| names.get((date.month as usize).checked_sub(1)?).copied();
        let weekday =
            |names: &[&'static str]| names.get(date.weekday() as usize).copied().filter(|_| !date.is_zero());
        let week = |mode: u8, year_week: bool| date.week(mode, year_week);
        let _ = match specifier {
            'Y' => write!(out, "{:04}", date.year),
            'y' => write!(out, "{:02}", date.year % 100),
            'm' => write!(out, "{:02}", date.month),
            'c' => write!(out, "{}", date.month),
            'M' => write!(out, "{}", month_name(&locale().months)?),
            'b' => write!(out, "{}", month_name(&locale().short_months)?),
            'd' => write!(out, "{:02}", date.day),
            'e' => write!(out, "{}", date.day),
            'D' => write!(out, "{}{}", date.day, ordinal(date.day)),
            'j' => write!(out, "{:03}", date.day_of_year()),
            'W' => write!(out, "{}", weekday(&locale().days)?),
            'a' => write!(out, "{}", weekday(&locale().short_days)?),
            'w' => write!(out, "{}", (date.weekday() + 1) % 7),
            'H' => write!(out, "{hour:02}"),
            'k' => write!(out, "{hour}"),
            'h' | 'I' => write!(out, "{hour_12:02}"),
            'l' => write!(out, "{hour_12}"),
            'i' => write!(out, "{minute:02}"),
            's' | 'S' => write!(out, "{second:02}"),
            'f' => write!(out, "{:06}", moment.micros),
            'p' => write!(out, "{half}"),
            'r' => write!(out, "{hour_12:02}:{minute:02}:{second:02} {half}"),
            'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
            'U' => write!(out, "{:02}", week(0, false).1),
            'u' => write!(out, "{:02}", week(1, false).1),
            'V' => write!(out, "{:02}", week(2, false).1),
            'v' => write!(out, "{:02}", week(3, false).1),
            'X' => write!(out, "{:04}", week(2, true).0),
            'x' => write!(out, "{:04}", week(3, true).0),
            other => write!(out, "{other}"),
        };
    }
    Some(out)
}

/// What STR_TO_DATE reads.
#[derive(Default)]
struct Parts {
    year: u32,
    month: u32,
    day: u32,
    day_of_year: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    hour_is_12: bool,
    afternoon: bool,
}

/// What a format without a date, without a time, or with both gives.
pub(super) enum Read {
    Date(Date),
    Time(Time),
    DateTime(DateTime),
}

impl Read {
    /// As a date with a time, with so many digits after the point.
    pub(super) fn as_moment(&self, fsp: u8) -> DateTime {
        match *self {
            Read::Date(date) => DateTime::at(date, 0, fsp),
            Read::Time(time) => DateTime::at(Date { year: 0, month: 0, day: 0 }, time.micros, fsp),
            Read::DateTime(moment) => DateTime { fsp, ..moment },
        }
    }
}

/// What a format has specifiers of.
pub(super) struct Kinds {
    pub date: bool,
    pub time: bool,
    pub micros: bool,
}

/// What a format of STR_TO_DATE reads.
pub(super) fn kinds_of(format: &str) -> Kinds {
    let has = |those: &str| specifiers(format).any(|specifier| those.contains(specifier));
    Kinds { date: has("YymcMbdeDj"), time: has("HkhIlisSfprT"), micros: has("f") }
}

impl Parts {
    /// What they give together; `None` if one of them is out of its range.
    fn check(mut self, has_date: bool, has_time: bool, has_micros: bool) -> Option<Read> {
        if self.hour_is_12 {
            if self.hour > 12 || self.hour == 0 {
                return None;
            }
            self.hour = self.hour % 12 + if self.afternoon { 12 } else { 0 };
        }
        if self.minute > 59 || self.second > 59 || self.hour > 23 {
            return None;
        }
        let mut date = Date { year: self.year as u16, month: self.month as u8, day: self.day as u8 };
        if self.day_of_year > 0 {
            date = Date { month: 1, day: 1, ..date }.add_days(self.day_of_year as i64 - 1)?;
        }
        // The month need not have the day: a day that no month has is refused.
        if date.month > 12 || date.day > 31 {
            return None;
        }
        let seconds = self.hour as i64 * 3600 + self.minute as i64 * 60 + self.second as i64;
        let micros = seconds * 1_000_000 + self.micros as i64;
        let fsp = if has_micros { 6 } else { 0 };
        Some(match (has_date, has_time) {
            (false, true) => Read::Time(Time { micros, fsp }),
            (_, false) => Read::Date(date),
            _ => Read::DateTime(DateTime::at(date, micros, fsp)),
        })
    }
}

/// The specifiers of a format.
fn specifiers(format: &str) -> impl Iterator<Item = char> {
    let mut characters = format.chars();
    std::iter::from_fn(move || characters.by_ref().find(|character| *character == '%').and(characters.next()))
}

/// Reads `text` by a format; `None` if it does not fit. A text may end before the format does.
pub(super) fn str_to_date(text: &str, format: &str) -> Option<Read> {
    let mut parts = Parts::default();
    let Kinds { date: has_date, time: has_time, micros: has_micros } = kinds_of(format);
    let mut rest = text.trim_start();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        if character != '%' {
            rest = rest.strip_prefix(character)?;
            continue;
        }
        let specifier = characters.next()?;
        match specifier {
            'Y' => {
                let before = rest.len();
                let year = number(&mut rest, 4)?;
                parts.year = if before - rest.len() <= 2 { with_century(year) } else { year };
            }
            'y' => parts.year = with_century(number(&mut rest, 2)?),
            'm' | 'c' => parts.month = number(&mut rest, 2)?,
            'M' => parts.month = name(&mut rest, &MONTHS, false)?,
            'b' => parts.month = name(&mut rest, &MONTHS, true)?,
            'd' | 'e' => parts.day = number(&mut rest, 2)?,
            'D' => {
                parts.day = number(&mut rest, 2)?;
                rest = rest.get(2..)?;
            }
            'j' => parts.day_of_year = number(&mut rest, 3)?,
            'W' => drop(name(&mut rest, &WEEKDAYS, false)?),
            'a' => drop(name(&mut rest, &WEEKDAYS, true)?),
            'w' => drop(number(&mut rest, 1)?),
            'H' | 'k' => parts.hour = number(&mut rest, 2)?,
            'h' | 'I' | 'l' => {
                parts.hour = number(&mut rest, 2)?;
                parts.hour_is_12 = true;
            }
            'i' => parts.minute = number(&mut rest, 2)?,
            's' | 'S' => parts.second = number(&mut rest, 2)?,
            'f' => {
                let before = rest.len();
                let fraction = number(&mut rest, 6)?;
                parts.micros = fraction * 10u32.pow(6 - (before - rest.len()) as u32);
            }
            'p' => {
                let half = rest.get(..2)?.to_ascii_uppercase();
                parts.afternoon = match half.as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                };
                rest = &rest[2..];
            }
            'r' | 'T' => {
                parts.hour = number(&mut rest, 2)?;
                rest = rest.strip_prefix(':')?;
                parts.minute = number(&mut rest, 2)?;
                rest = rest.strip_prefix(':')?;
                parts.second = number(&mut rest, 2)?;
                if specifier == 'r' {
                    parts.hour_is_12 = true;
                    rest = rest.trim_start();
                    parts.afternoon = rest.get(..2)?.eq_ignore_ascii_case("PM");
                    rest = &rest[2..];
                }
            }
            _ => return None,
        }
    }
    parts.check(has_date, has_time, has_micros)
}

/// The year that one or two digits stand for.
fn with_century(year: u32) -> u32 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

fn number(rest: &mut &str, digits_max: usize) -> Option<u32> {
    let digits = rest.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
    let (number, behind) = rest.split_at(digits);
    *rest = behind;
    number.parse().ok()
}

/// The position of a name, counted from 1.
fn name(rest: &mut &str, names: &[&str], short: bool) -> Option<u32> {
    for (position, name) in names.iter().enumerate() {
        let name = if short { &name[..3] } else { name };
        if rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            *rest = &rest[name.len()..];
            return Some(position as u32 + 1);
        }
    }
    None
}
