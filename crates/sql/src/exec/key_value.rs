//! Values as keys: decides whether comparing keys gives the same result as comparing a column with a value.

use crate::expr::Environment;
use crate::variables::time_zones::{MOMENTS, Meant, Zone};
use std::cmp::Ordering;
use types::{ColumnType, Date, DateTime, Decimal, Members, Time, ValueRef};

/// How an index can be searched for a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum KeyValue<'a> {
    /// A column value is equal if, and only if, its key is the key of this value.
    Exact(ValueRef<'a>),
    /// No value of the column is equal.
    Never,
    /// Keys cannot decide this: rows must be compared.
    Unusable,
}

/// A side of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Lower,
    Upper,
}

/// How an index can be searched from or to a bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum KeyBound<'a> {
    At {
        value: ValueRef<'a>,
        inclusive: bool,
    },
    /// Every value of the column lies inside.
    Open,
    /// No value lies inside: the bound is beyond the type's values, or is NULL.
    Empty,
    Unusable,
}

/// True for the common cases in which the value to look for, where `column = value`, is the value itself.
#[inline]
pub(crate) fn is_exact(value: &ValueRef<'_>, column: &ColumnType) -> bool {
    match (column, value) {
        (ColumnType::Int { bytes, unsigned: false }, ValueRef::Int(number)) => {
            let spare = 64 - 8 * u32::from(*bytes);
            *number << spare >> spare == *number
        }
        (column, ValueRef::Text(_)) => column.is_text(),
        _ => false,
    }
}

/// The value to look for where `column = value`.
#[inline]
pub(crate) fn equal<'a>(
    value: ValueRef<'a>,
    column: &ColumnType,
    environment: &dyn Environment,
) -> KeyValue<'a> {
    match (column, value) {
        _ if is_exact(&value, column) => KeyValue::Exact(value),
        (ColumnType::Int { bytes, unsigned }, ValueRef::Int(number)) => {
            int_equal(i128::from(number), *bytes, *unsigned)
        }
        (_, ValueRef::Null) => KeyValue::Never,
        (ColumnType::Enum { members, .. }, value) => member_equal(value, members),
        (ColumnType::Set { members, .. }, value) => set_equal(value, members),
        _ => other_equal(value, column, environment),
    }
}

/// As [`equal`], for an integer beside a column of integers.
#[inline]
pub(crate) fn equal_integer<'a>(number: i64, column: &ColumnType) -> KeyValue<'a> {
    match column {
        ColumnType::Int { bytes, unsigned } => int_equal(i128::from(number), *bytes, *unsigned),
        _ => KeyValue::Unusable,
    }
}

/// The number of the member that a value is, or its number itself.
fn member_equal<'a>(value: ValueRef<'_>, members: &Members) -> KeyValue<'a> {
    let number = match value {
        // The empty text may be a member, or what a text that is no member has become.
        ValueRef::Text(text) if members.find(b"").is_some() && is_blank(text) => return KeyValue::Unusable,
        ValueRef::Text(text) if is_blank(text) => 0,
        ValueRef::Text(text) => match members.find(text) {
            Some(at) => at as u64 + 1,
            None => return KeyValue::Never,
        },
        ValueRef::Int(number) => match u64::try_from(number) {
            Ok(number) => number,
            Err(_) => return KeyValue::Never,
        },
        ValueRef::UInt(number) => number,
        _ => return KeyValue::Unusable,
    };
    match number <= members.names().len() as u64 {
        true => KeyValue::Exact(ValueRef::UInt(number)),
        false => KeyValue::Never,
    }
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| *byte == b' ')
}

/// A text is one of the values only if it has the members in their order.
fn set_equal<'a>(value: ValueRef<'_>, members: &Members) -> KeyValue<'a> {
    let number = match value {
        ValueRef::Text(text) => {
            let (number, is_whole) = members.read_set(text);
            let mut written = Vec::new();
            members.write_set(number, &mut written);
            match is_whole && members.collation().compare(&written, text).is_eq() {
                true => number,
                false => return KeyValue::Unusable,
            }
        }
        ValueRef::Int(number) => match u64::try_from(number) {
            Ok(number) => number,
            Err(_) => return KeyValue::Unusable,
        },
        ValueRef::UInt(number) => number,
        _ => return KeyValue::Unusable,
    };
    match number & !members.all() == 0 {
        true => KeyValue::Exact(ValueRef::UInt(number)),
        false => KeyValue::Never,
    }
}

#[inline]
fn int_equal<'a>(number: i128, bytes: u8, unsigned: bool) -> KeyValue<'a> {
    match int_place(number, bytes, unsigned) {
        Ordering::Equal if unsigned => KeyValue::Exact(ValueRef::UInt(number as u64)),
        Ordering::Equal => KeyValue::Exact(ValueRef::Int(number as i64)),
        _ => KeyValue::Never,
    }
}

/// Whether a number lies below, within or above the range of an integer type.
#[inline]
fn int_place(number: i128, bytes: u8, unsigned: bool) -> Ordering {
    let bits = 8 * u32::from(bytes);
    let (low, high) =
        if unsigned { (0, (1i128 << bits) - 1) } else { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) };
    if number < low {
        Ordering::Less
    } else if number > high {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

fn other_equal<'a>(value: ValueRef<'a>, column: &ColumnType, environment: &dyn Environment) -> KeyValue<'a> {
    match bound(value, column, true, Side::Lower, environment) {
        KeyBound::Unusable => KeyValue::Unusable,
        // A value that lies between two values of the column was moved, or is no longer inclusive. Then no
        // column value is equal.
        KeyBound::At { value: lower, inclusive: true } => {
            match bound(value, column, true, Side::Upper, environment) {
                KeyBound::At { value: upper, inclusive: true } if upper == lower => KeyValue::Exact(lower),
                _ => KeyValue::Never,
            }
        }
        _ => KeyValue::Never,
    }
}

/// A bound of a range on a column, moved to a value that the column can hold.
pub(crate) fn bound<'a>(
    value: ValueRef<'a>,
    column: &ColumnType,
    inclusive: bool,
    side: Side,
    environment: &dyn Environment,
) -> KeyBound<'a> {
    match column {
        _ if value.is_null() => KeyBound::Empty,
        ColumnType::Int { bytes, unsigned } => match number(value) {
            Some(Number::Whole(number)) => whole(number, *bytes, *unsigned, inclusive, side),
            // A bound between two whole numbers becomes the next whole number inside the range, which is
            // included.
            Some(Number::Between(below)) => {
                let inside = if side == Side::Lower { below + 1 } else { below };
                whole(inside, *bytes, *unsigned, true, side)
            }
            Some(Number::Above) => beyond(side == Side::Upper),
            Some(Number::Below) => beyond(side == Side::Lower),
            None => KeyBound::Unusable,
        },
        ColumnType::Bit { .. } => match number(value) {
            Some(Number::Whole(number)) => {
                whole(number, column.image_bytes_max() as u8, true, inclusive, side)
            }
            _ => KeyBound::Unusable,
        },
        ColumnType::Year => match value {
            ValueRef::Int(year @ 1901..=2155) => at(ValueRef::UInt(year as u64), inclusive),
            ValueRef::UInt(year @ 1901..=2155) => at(ValueRef::UInt(year), inclusive),
            _ => KeyBound::Unusable,
        },
        ColumnType::Double { .. } => match as_double(value) {
            Some(number) => at(ValueRef::Double(number), inclusive),
            None => KeyBound::Unusable,
        },
        ColumnType::Float { .. } => match as_double(value) {
            Some(number) if f64::from(number as f32) == number => {
                at(ValueRef::Float(number as f32), inclusive)
            }
            // The nearest float lies on one side of the bound. Its position decides whether it is included.
            Some(number) if number.is_finite() => {
                let inside = match side {
                    Side::Lower => f64::from(number as f32) > number,
                    Side::Upper => f64::from(number as f32) < number,
                };
                at(ValueRef::Float(number as f32), inside)
            }
            _ => KeyBound::Unusable,
        },
        ColumnType::Decimal { precision, scale, .. } => decimal(value, *precision, *scale, inclusive, side),
        text if text.is_text() => match value {
            ValueRef::Text(_) => at(value, inclusive),
            _ => KeyBound::Unusable,
        },
        binary if binary.is_binary() => match value {
            ValueRef::Text(bytes) | ValueRef::Binary(bytes) => {
                if matches!(binary, ColumnType::Binary { .. }) {
                    return KeyBound::Unusable;
                }
                at(ValueRef::Binary(bytes), inclusive)
            }
            _ => KeyBound::Unusable,
        },
        ColumnType::Date => match date_time(value) {
            Some(moment) if moment.time().micros == 0 => at(ValueRef::Date(moment.date), inclusive),
            // The bound is later than the start of its day. So that day is outside if this is a lower bound,
            // and inside if it is an upper bound.
            Some(moment) => at(ValueRef::Date(moment.date), side == Side::Upper),
            None => KeyBound::Unusable,
        },
        ColumnType::DateTime { fsp } => match date_time(value) {
            Some(moment) if moment.with_fsp(*fsp).micros == moment.micros => {
                at(ValueRef::DateTime(DateTime { fsp: *fsp, ..moment }), inclusive)
            }
            _ => KeyBound::Unusable,
        },
        ColumnType::Timestamp { fsp } => match date_time(value) {
            Some(moment) if moment.with_fsp(*fsp).micros == moment.micros => {
                timestamp(DateTime { fsp: *fsp, ..moment }, inclusive, side, environment.time_zone())
            }
            _ => KeyBound::Unusable,
        },
        ColumnType::Time { fsp } => match time(value) {
            Some(span) if span.with_fsp(*fsp).micros == span.micros => {
                at(ValueRef::Time(Time { fsp: *fsp, ..span }), inclusive)
            }
            _ => KeyBound::Unusable,
        },
        _ => KeyBound::Unusable,
    }
}

fn at(value: ValueRef<'_>, inclusive: bool) -> KeyBound<'_> {
    KeyBound::At { value, inclusive }
}

fn beyond<'a>(open: bool) -> KeyBound<'a> {
    if open { KeyBound::Open } else { KeyBound::Empty }
}

fn whole<'a>(number: i128, bytes: u8, unsigned: bool, inclusive: bool, side: Side) -> KeyBound<'a> {
    match int_place(number, bytes, unsigned) {
        Ordering::Less => beyond(side == Side::Lower),
        Ordering::Greater => beyond(side == Side::Upper),
        Ordering::Equal if unsigned => at(ValueRef::UInt(number as u64), inclusive),
        Ordering::Equal => at(ValueRef::Int(number as i64), inclusive),
    }
}

/// The position of a number among the whole numbers.
enum Number {
    Whole(i128),
    /// Between this whole number and the next.
    Between(i128),
    Above,
    Below,
}

/// From this size on, not every whole number is a double.
const EXACT_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;

fn number(value: ValueRef<'_>) -> Option<Number> {
    match value {
        ValueRef::Int(number) => Some(Number::Whole(i128::from(number))),
        ValueRef::UInt(number) => Some(Number::Whole(i128::from(number))),
        ValueRef::Double(number) => double(number),
        ValueRef::Float(number) => double(f64::from(number)),
        ValueRef::Decimal(number) => decimal_number(&number),
        ValueRef::Text(text) => {
            // Texts are compared with whole numbers as doubles.
            let text = text.trim_ascii();
            let (number, used) = types::number::parse_f64_prefix(text);
            if used != text.len() || text.is_empty() {
                return None;
            }
            double(number)
        }
        _ => None,
    }
}

fn double(number: f64) -> Option<Number> {
    if number.is_nan() {
        return None;
    }
    if number.abs() >= EXACT_DOUBLE_MAX {
        return match number {
            number if number >= 2e19 => Some(Number::Above),
            number if number <= -1e19 => Some(Number::Below),
            _ => None,
        };
    }
    let below = number.floor();
    Some(if below == number { Number::Whole(below as i128) } else { Number::Between(below as i128) })
}

fn decimal_number(number: &Decimal) -> Option<Number> {
    let floor = number.floor();
    let below = match (floor.to_i64(), floor.to_u64()) {
        (Some(below), _) => i128::from(below),
        (None, Some(below)) => i128::from(below),
        (None, None) if number.is_negative() => return Some(Number::Below),
        (None, None) => return Some(Number::Above),
    };
    Some(if floor.compare(number) == Ordering::Equal { Number::Whole(below) } else { Number::Between(below) })
}

fn as_double(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Int(number) if (number as f64).abs() < EXACT_DOUBLE_MAX => Some(number as f64),
        ValueRef::UInt(number) if (number as f64) < EXACT_DOUBLE_MAX => Some(number as f64),
        ValueRef::Double(number) => Some(number),
        ValueRef::Float(number) => Some(f64::from(number)),
        ValueRef::Decimal(number) => Some(number.to_f64()),
        ValueRef::Text(text) => {
            let text = text.trim_ascii();
            let (number, used) = types::number::parse_f64_prefix(text);
            (used == text.len() && !text.is_empty()).then_some(number)
        }
        _ => None,
    }
}

fn decimal<'a>(value: ValueRef<'a>, precision: u8, scale: u8, inclusive: bool, side: Side) -> KeyBound<'a> {
    let number = match value {
        ValueRef::Int(number) => Decimal::from(number),
        ValueRef::UInt(number) => Decimal::from(number),
        ValueRef::Decimal(number) => number,
        ValueRef::Text(text) => {
            let text = text.trim_ascii();
            let (number, used) = Decimal::parse_prefix(text);
            if used != text.len() || text.is_empty() {
                return KeyBound::Unusable;
            }
            number
        }
        _ => return KeyBound::Unusable,
    };
    let largest = Decimal::largest(precision, scale);
    if number.abs().compare(&largest) == Ordering::Greater {
        return beyond((side == Side::Upper) != number.is_negative());
    }
    match number.with_scale(scale) {
        Some(fitted) if fitted.compare(&number) == Ordering::Equal => {
            at(ValueRef::Decimal(fitted), inclusive)
        }
        // The bound was rounded. Check whether the rounded value is inside the range.
        Some(fitted) => {
            let inside = match side {
                Side::Lower => fitted.compare(&number) == Ordering::Greater,
                Side::Upper => fitted.compare(&number) == Ordering::Less,
            };
            at(ValueRef::Decimal(fitted), inside)
        }
        None => KeyBound::Unusable,
    }
}

/// A bound that a clock of `zone` shows. The column's values are stored in UTC, and compared as the clock
/// shows them.
fn timestamp<'a>(shown: DateTime, inclusive: bool, side: Side, zone: &Zone) -> KeyBound<'a> {
    // Dates of nought are the same in every zone, and come before all moments.
    if shown.date.is_zero() {
        return at(ValueRef::DateTime(shown), inclusive);
    }
    // Beyond the moments that the column has, one bound is as good as another.
    let stored = |moment: i64| {
        let moment = moment.clamp(MOMENTS.start - 1, MOMENTS.end);
        ValueRef::DateTime(DateTime::from_unix_micros(moment, shown.fsp))
    };
    match zone.moment(shown) {
        Some(Meant::One(moment)) => at(stored(moment), inclusive),
        // The clock goes from before the bound to behind it at this moment.
        Some(Meant::Skipped(moment)) => at(stored(moment), side == Side::Lower),
        // The order of the moments is not that of what the clock shows.
        Some(Meant::Two(_)) | None => KeyBound::Unusable,
    }
}

fn date_time(value: ValueRef<'_>) -> Option<DateTime> {
    match value {
        ValueRef::Date(date) => Some(DateTime::from_date(date)),
        ValueRef::DateTime(moment) => Some(moment),
        ValueRef::Text(text) => {
            let reading = types::temporal::read_date_time(text)?;
            reading_is_clean(&reading)
                .then_some(reading.value)
                .filter(|moment| moment.date == Date::default() || moment.date.is_in_calendar())
        }
        _ => None,
    }
}

fn time(value: ValueRef<'_>) -> Option<Time> {
    match value {
        ValueRef::Time(span) => Some(span),
        ValueRef::Text(text) => {
            let reading = types::temporal::read_time(text)?;
            reading_is_clean(&reading).then_some(reading.value)
        }
        _ => None,
    }
}

fn reading_is_clean<T>(reading: &types::temporal::Reading<T>) -> bool {
    !reading.truncated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::golden::TestEnvironment;

    fn environment() -> TestEnvironment {
        TestEnvironment::default()
    }

    const TINY: ColumnType = ColumnType::Int { bytes: 1, unsigned: false };
    const UNSIGNED: ColumnType = ColumnType::Int { bytes: 4, unsigned: true };

    #[test]
    fn values_beyond_a_type_are_never_equal() {
        assert_eq!(equal(ValueRef::Int(127), &TINY, &environment()), KeyValue::Exact(ValueRef::Int(127)));
        assert_eq!(equal(ValueRef::Int(128), &TINY, &environment()), KeyValue::Never);
        assert_eq!(equal(ValueRef::Int(-1), &UNSIGNED, &environment()), KeyValue::Never);
        assert_eq!(
            equal(ValueRef::Text(b"7"), &UNSIGNED, &environment()),
            KeyValue::Exact(ValueRef::UInt(7))
        );
        assert_eq!(equal(ValueRef::Text(b"7x"), &UNSIGNED, &environment()), KeyValue::Unusable);
        assert_eq!(equal(ValueRef::Double(7.5), &UNSIGNED, &environment()), KeyValue::Never);
        assert_eq!(equal(ValueRef::Null, &UNSIGNED, &environment()), KeyValue::Never);
    }

    #[test]
    fn bounds_move_to_the_next_value_inside() {
        let half = ValueRef::Double(7.5);
        assert_eq!(bound(half, &TINY, false, Side::Lower, &environment()), at(ValueRef::Int(8), true));
        assert_eq!(bound(half, &TINY, true, Side::Upper, &environment()), at(ValueRef::Int(7), true));
        assert_eq!(bound(ValueRef::Int(1000), &TINY, true, Side::Upper, &environment()), KeyBound::Open);
        assert_eq!(bound(ValueRef::Int(1000), &TINY, true, Side::Lower, &environment()), KeyBound::Empty);
        assert_eq!(bound(ValueRef::Int(-1000), &TINY, true, Side::Lower, &environment()), KeyBound::Open);
    }
}
