//! How wide the results of functions are, in characters, as MariaDB tells it.

use super::typing::{CHARS_MAX, Typing};
use crate::SqlError;
use crate::expr::IntervalUnit;
use crate::expr::result_type::{Class, Typed};
use types::ColumnType;

/// LEFT and RIGHT.
pub(super) fn end_chars(typing: &Typing<'_>) -> u32 {
    typing.constant_count(1).map_or(typing.chars(0), |count| count.min(typing.chars(0)))
}

/// SUBSTRING. As in MariaDB, bytes count as characters unless the length is known.
pub(super) fn part_chars(typing: &Typing<'_>) -> u32 {
    let all = typing.bytes(0);
    let behind = match typing.constant_int(1) {
        Some(0) => 0,
        Some(from) if from > 0 => all.saturating_sub(u32::try_from(from - 1).unwrap_or(u32::MAX)),
        Some(from) => all.min(u32::try_from(from.unsigned_abs()).unwrap_or(u32::MAX)),
        None => all,
    };
    typing.constant_count(2).map_or(behind, |count| count.min(behind))
}

/// REPLACE by a longer text. As in MariaDB, every character may become all of it.
pub(super) fn replaced_chars(typing: &Typing<'_>) -> u32 {
    let (all, from, to) = (typing.chars(0), typing.chars(1), typing.chars(2));
    if to > from { all.saturating_mul(to) } else { all }
}

/// LPAD and RPAD.
pub(super) fn padded_type(typing: &mut Typing<'_>) -> std::result::Result<Typed, SqlError> {
    let chars = typing.constant_count(1).unwrap_or(CHARS_MAX);
    Ok(typing.text(chars, true))
}

/// HEX: two digits for each byte of a text, or those of a BIGINT.
pub(super) fn hexadecimal_chars(typing: &Typing<'_>) -> u32 {
    match typing.types[0].class {
        class if class.is_numeric() => 16,
        _ => typing.bytes(0).saturating_mul(2),
    }
}

/// FORMAT: the digits, a separator for each three of them, a sign, and the digits after the point.
pub(super) fn grouped_chars(typing: &Typing<'_>) -> u32 {
    const WHOLE_DIGITS_OF_DOUBLE: u32 = 310;
    const DECIMALS_MAX: u32 = 38;
    let first = &typing.types[0];
    let whole = match (first.class, &first.result.column_type) {
        (Class::Int | Class::UInt, ColumnType::Int { bytes: 1, .. }) => 3,
        (Class::Int | Class::UInt, ColumnType::Int { bytes: 2, .. }) => 5,
        (Class::Int | Class::UInt, ColumnType::Int { bytes: 3 | 4, .. }) => 10,
        (Class::Int | Class::UInt, _) => 20,
        (Class::Decimal, _) => first.digits().0 + 1,
        _ => WHOLE_DIGITS_OF_DOUBLE,
    };
    let decimals = typing.constant_count(1).map_or(DECIMALS_MAX, |places| places.min(DECIMALS_MAX));
    whole + whole / 3 + u32::from(decimals > 0) + 1 + decimals
}

/// The widest text that a format gives, in characters. The format is an argument; if it is not known, it is
/// taken to be full of long parts.
pub(super) fn formatted_chars(typing: &Typing<'_>, format: usize) -> u32 {
    let Some(text) = typing.constant_text(format) else { return typing.bytes(format).saturating_mul(10) };
    let text = String::from_utf8_lossy(text);
    let mut chars = 0;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        chars += match letter {
            '%' => letters.next().map_or(1, format_chars),
            _ => 1,
        };
    }
    chars
}

/// Names of months and days may be longer in other languages.
fn format_chars(part: char) -> u32 {
    match part {
        'M' | 'W' => 64,
        'a' | 'b' => 32,
        'D' | 'Y' | 'x' | 'X' => 4,
        'k' | 'H' => 7,
        'r' => 11,
        'T' => 8,
        'f' => 6,
        'j' => 3,
        'u' | 'U' | 'v' | 'V' | 'y' | 'm' | 'd' | 'h' | 'i' | 'I' | 'l' | 'p' | 'S' | 's' | 'c' | 'e' => 2,
        _ => 1,
    }
}

/// EXTRACT.
pub(super) fn unit_chars(unit: IntervalUnit) -> u32 {
    match unit {
        IntervalUnit::Quarter => 1,
        IntervalUnit::Month | IntervalUnit::Week => 2,
        IntervalUnit::Day | IntervalUnit::Hour | IntervalUnit::Minute | IntervalUnit::Second => 3,
        IntervalUnit::Year => 4,
        IntervalUnit::DayHour | IntervalUnit::HourMinute | IntervalUnit::MinuteSecond => 5,
        IntervalUnit::YearMonth => 6,
        IntervalUnit::DayMinute | IntervalUnit::HourSecond | IntervalUnit::Microsecond => 7,
        IntervalUnit::DaySecond | IntervalUnit::SecondMicrosecond => 9,
        IntervalUnit::MinuteMicrosecond => 11,
        IntervalUnit::HourMicrosecond => 13,
        IntervalUnit::DayMicrosecond => 15,
    }
}

/// The digits that NOW and its like are asked for.
pub(super) fn digits_of(typing: &Typing<'_>) -> u8 {
    match typing.constant_places(0) {
        Some(digits) => digits.min(6),
        None if typing.types.is_empty() => 0,
        None => 6,
    }
}

/// How wide functions say that a number of seconds is.
pub(super) const SECONDS_CHARS: u32 = 17;

/// Seconds with so many digits after the point.
pub(super) fn seconds_type(fsp: u8) -> Typed {
    Typed::decimal(SECONDS_CHARS - 1 + u32::from(fsp), fsp, true)
}
