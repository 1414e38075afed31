//! Columns of numbers.

use super::super::evaluate::{Number, number_to_whole, round_f64, shown, whole_seconds};
use super::{CoerceIssue, Coerced, number_of};
use types::{Decimal, ValueRef, number};

fn incorrect(kind: &'static str, text: &[u8]) -> CoerceIssue {
    CoerceIssue::Incorrect { kind, value: shown(text) }
}

/// What follows the number that a text starts with: nothing, blanks, or something else.
fn issue_of_rest(kind: &'static str, text: &[u8], length: usize) -> Option<CoerceIssue> {
    match &text[length..] {
        _ if length == 0 => Some(incorrect(kind, text)),
        [] => None,
        rest if rest.iter().all(u8::is_ascii_whitespace) => Some(CoerceIssue::TruncatedNote),
        _ => Some(CoerceIssue::Truncated),
    }
}

/// Half away from zero, as texts and decimals round.
fn rounded(number: Decimal) -> i128 {
    number_to_whole(Number::Decimal(number))
}

/// The whole number nearest to a value, and what was wrong with it.
fn whole(value: ValueRef<'_>) -> (i128, Option<CoerceIssue>) {
    match value {
        ValueRef::Int(number) => (number as i128, None),
        ValueRef::UInt(number) => (number as i128, None),
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            let (magnitude, negative, length) = number::parse_integer_prefix(text);
            if length == text.len() && length > 0 && length < 19 {
                let number = magnitude as i128;
                return (if negative { -number } else { number }, None);
            }
            let (number, length) = Decimal::parse_prefix(text);
            (rounded(number), issue_of_rest("integer", text, length))
        }
        _ => match number_of(&whole_seconds(value)) {
            // Far beyond 64 bits the cast saturates, which is out of range too.
            Some(Number::Double(number)) => (round_f64(number) as i128, None),
            Some(number) => (number_to_whole(number), None),
            None => (0, None),
        },
    }
}

/// BIT: a text's bytes are the bits, and a number's are its own.
pub(super) fn bits<'a>(value: ValueRef<'a>, bits: u8) -> Coerced<'a> {
    let largest = u64::MAX >> 64u32.saturating_sub(u32::from(bits));
    let number = match value {
        ValueRef::Text(bytes) | ValueRef::Binary(bytes) => {
            let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            let bytes = &bytes[from..];
            let number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            (bytes.len() <= size_of::<u64>()).then_some(number)
        }
        // A double beyond 64 bits becomes the lowest of them, as in MariaDB.
        ValueRef::Double(number) if number.abs() >= 9.3e18 => Some(1 << 63),
        // A number below zero has the bits of its 64.
        _ => match whole(value).0 {
            number @ ..0 => i64::try_from(number).ok().map(|number| number as u64),
            number => u64::try_from(number).ok(),
        },
    };
    match number.filter(|number| *number <= largest) {
        Some(number) => Coerced::fits(ValueRef::UInt(number)),
        None => Coerced::with(ValueRef::UInt(largest), CoerceIssue::BitsTooLong),
    }
}

pub(super) fn integer<'a>(value: ValueRef<'a>, bytes: u8, unsigned: bool) -> Coerced<'a> {
    let bits = 8 * bytes as u32;
    let (low, high) = match unsigned {
        true => (0, (1i128 << bits) - 1),
        false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
    };
    let (number, issue) = whole(value);
    let clipped = number.clamp(low, high);
    let issue = match issue {
        None | Some(CoerceIssue::TruncatedNote | CoerceIssue::Truncated) if clipped != number => {
            Some(CoerceIssue::OutOfRange)
        }
        issue => issue,
    };
    let value = if unsigned { ValueRef::UInt(clipped as u64) } else { ValueRef::Int(clipped as i64) };
    Coerced::maybe(value, issue)
}

/// A value as a double, and what was wrong with it.
fn floating(value: ValueRef<'_>, unsigned: bool) -> (f64, Option<CoerceIssue>) {
    let (number, issue) = match value {
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            let (number, length) = number::parse_f64_prefix(text);
            let issue = issue_of_rest("double", text, length);
            let overflow = number.abs() == f64::MAX;
            (number, if overflow { Some(CoerceIssue::OutOfRange) } else { issue })
        }
        _ => (number_of(&value).map_or(0.0, Number::to_f64), None),
    };
    // Columns have no negative zero.
    if unsigned && number < 0.0 { (0.0, Some(CoerceIssue::OutOfRange)) } else { (number + 0.0, issue) }
}

pub(super) fn float<'a>(value: ValueRef<'a>, unsigned: bool) -> Coerced<'a> {
    let (number, issue) = floating(value, unsigned);
    if number.abs() > f32::MAX as f64 {
        let largest = if number < 0.0 { f32::MIN } else { f32::MAX };
        return Coerced::with(ValueRef::Float(largest), CoerceIssue::OutOfRange);
    }
    Coerced::maybe(ValueRef::Float(number as f32 + 0.0), issue)
}

pub(super) fn double<'a>(value: ValueRef<'a>, unsigned: bool) -> Coerced<'a> {
    let (number, issue) = floating(value, unsigned);
    Coerced::maybe(ValueRef::Double(number), issue)
}

/// Rounds to so many decimals, and limits to what has so many digits with them. The fraction is rounded by
/// itself, as MariaDB does: 5.255 becomes 5.25, because its fraction as a double is less than 0.255.
pub(super) fn in_digits(coerced: Coerced<'_>, digits: u8, decimals: u8) -> Coerced<'_> {
    let (number, is_double) = match coerced.value {
        ValueRef::Double(number) => (number, true),
        ValueRef::Float(number) => (f64::from(number), false),
        _ => return coerced,
    };
    let unit = 10f64.powi(decimals.into());
    let whole = number.floor();
    let rounded = whole + ((number - whole) * unit).round_ties_even() / unit;
    let largest = 10f64.powi(i32::from(digits) - i32::from(decimals)) - 1.0 / unit;
    let limited = if number.is_finite() { rounded.clamp(-largest, largest) } else { number };
    let issue = if limited == rounded { coerced.issue } else { Some(CoerceIssue::OutOfRange) };
    let value = if is_double { ValueRef::Double(limited) } else { ValueRef::Float(limited as f32) };
    Coerced::maybe(value, issue)
}

pub(super) fn decimal<'a>(value: ValueRef<'a>, precision: u8, scale: u8, unsigned: bool) -> Coerced<'a> {
    let (number, issue) = match value {
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            let (number, length) = Decimal::parse_prefix(text);
            (number, issue_of_rest("decimal", text, length))
        }
        _ => (number_of(&value).map_or(Decimal::ZERO, Number::to_decimal), None),
    };
    if unsigned && number.is_negative() {
        let zero = Decimal::new(0i64.into(), scale);
        return Coerced::with(ValueRef::Decimal(zero), CoerceIssue::OutOfRange);
    }
    let fitting = number.with_scale(scale).filter(|rounded| rounded.digits() <= precision);
    let Some(rounded) = fitting else {
        let largest = Decimal::largest(precision, scale);
        let clipped = if number.is_negative() { largest.negate() } else { largest };
        return Coerced::with(ValueRef::Decimal(clipped), CoerceIssue::OutOfRange);
    };
    let cut = number.scale() > scale && rounded.compare(&number).is_ne();
    let issue = issue.or_else(|| cut.then_some(CoerceIssue::TruncatedNote));
    Coerced::maybe(ValueRef::Decimal(rounded), issue)
}

/// YEAR: 0, 1901 to 2155; 1 to 99 mean 1970 to 2069, and a text of nought means 2000 unless it has four
/// characters.
pub(super) fn year<'a>(value: ValueRef<'a>) -> Coerced<'a> {
    let (number, issue) = match value {
        ValueRef::Date(date) => (date.year as i128, Some(super::times::incorrect("date", &value))),
        ValueRef::Time(_) => (0, Some(super::times::incorrect("time", &value))),
        ValueRef::DateTime(moment) => {
            (moment.date.year as i128, Some(super::times::incorrect("datetime", &value)))
        }
        value => whole(value),
    };
    let is_text = value.as_bytes().is_some_and(|text| text.len() != 4);
    let is_number = !matches!(issue, Some(CoerceIssue::Incorrect { .. }));
    let year = match number {
        0 if is_text && is_number => 2000,
        1..=69 => number + 2000,
        70..=99 => number + 1900,
        _ => number,
    };
    match u64::try_from(year) {
        Ok(year @ (0 | 1901..=2155)) => Coerced::maybe(ValueRef::UInt(year), issue),
        _ => Coerced::with(ValueRef::UInt(0), CoerceIssue::OutOfRange),
    }
}
