//! Which of two values comes first.

use super::super::{Comparison, Context};
use super::convert::{self, Number};
use std::cmp::Ordering;
use types::temporal::DateTime;
use types::{Collation, Decimal, ValueRef};

/// Compares two values as `=` and `<` do; `None` if either is NULL (or no comparison exists, as with NaN).
#[inline]
pub(crate) fn compare(
    left: &ValueRef<'_>,
    right: &ValueRef<'_>,
    collation: Collation,
    context: &Context<'_>,
) -> Option<Ordering> {
    match (*left, *right) {
        (ValueRef::Int(a), ValueRef::Int(b)) => Some(a.cmp(&b)),
        (ValueRef::Text(a), ValueRef::Text(b)) => Some(collation.compare(a, b)),
        _ => compare_others(left, right, collation, context),
    }
}

/// As [`compare`], but quotients compare by all their digits, as BETWEEN, CASE and lists of IN do in MariaDB.
pub(super) fn compare_all_digits(
    left: &ValueRef<'_>,
    right: &ValueRef<'_>,
    collation: Collation,
    context: &Context<'_>,
) -> Option<Ordering> {
    let exact = |value: &ValueRef<'_>| match *value {
        ValueRef::Decimal(number) => Some(number),
        ValueRef::Int(number) => Some(Decimal::from(number)),
        ValueRef::UInt(number) => Some(Decimal::from(number)),
        _ => None,
    };
    match (left, right) {
        (ValueRef::Decimal(_), _) | (_, ValueRef::Decimal(_)) => match (exact(left), exact(right)) {
            (Some(left), Some(right)) => Some(left.compare(&right)),
            _ => compare(left, right, collation, context),
        },
        _ => compare(left, right, collation, context),
    }
}

fn compare_others(
    left: &ValueRef<'_>,
    right: &ValueRef<'_>,
    collation: Collation,
    context: &Context<'_>,
) -> Option<Ordering> {
    use ValueRef::{Binary, Date, DateTime, Decimal, Int, Null, Text, Time, UInt};
    Some(match (*left, *right) {
        (Null, _) | (_, Null) => return None,
        (UInt(a), UInt(b)) => a.cmp(&b),
        (Int(a), UInt(b)) => (a as i128).cmp(&(b as i128)),
        (UInt(a), Int(b)) => (a as i128).cmp(&(b as i128)),
        (Text(a) | Binary(a), Text(b) | Binary(b)) => match (left, right) {
            (Text(_), Text(_)) => collation.compare(a, b),
            _ => a.cmp(b),
        },
        // Quotients compare as they are shown.
        (Decimal(a), Decimal(b)) => a.rounded().compare(&b.rounded()),
        (Date(a), Date(b)) => a.cmp(&b),
        (Time(a), Time(b)) => a.micros.cmp(&b.micros),
        (Time(a), Text(_) | Binary(_)) => a.micros.cmp(&micros(right, context)),
        (Text(_) | Binary(_), Time(b)) => micros(left, context).cmp(&b.micros),
        (Time(a), Int(_) | UInt(_)) => a.micros.cmp(&micros(right, context)),
        (Int(_) | UInt(_), Time(b)) => micros(left, context).cmp(&b.micros),
        (Date(_) | DateTime(_), _) | (_, Date(_) | DateTime(_)) => {
            moment(left, context).cmp(&moment(right, context))
        }
        (Int(_) | UInt(_) | Decimal(_), Text(text) | Binary(text)) => {
            compare_exact_with_text(left, text, context)?
        }
        (Text(text) | Binary(text), Int(_) | UInt(_) | Decimal(_)) => {
            compare_exact_with_text(right, text, context)?.reverse()
        }
        _ => {
            let (a, b) = (convert::to_number(left, context)?, convert::to_number(right, context)?);
            match (a, b) {
                (Number::Double(_), _) | (_, Number::Double(_)) => {
                    return a.to_f64().partial_cmp(&b.to_f64());
                }
                _ => a.to_decimal().rounded().compare(&b.to_decimal().rounded()),
            }
        }
    })
}

/// A value that is no time compares as midnight.
fn micros(value: &ValueRef<'_>, context: &Context<'_>) -> i64 {
    convert::to_time(value, context).unwrap_or_default().micros
}

/// A value that is no date compares as the zero date.
fn moment(value: &ValueRef<'_>, context: &Context<'_>) -> u64 {
    convert::to_date_time(value, context).unwrap_or(DateTime::ZERO).to_packed()
}

/// An exact number with a text: as exact numbers if the text is one, else as doubles.
fn compare_exact_with_text(exact: &ValueRef<'_>, text: &[u8], context: &Context<'_>) -> Option<Ordering> {
    if let ValueRef::Int(_) | ValueRef::UInt(_) = exact {
        let (magnitude, negative, length) = types::number::parse_integer_prefix(text);
        if length == text.len() && length < 19 {
            let number = if negative { -(magnitude as i64) } else { magnitude as i64 };
            return compare(exact, &ValueRef::Int(number), Collation::Binary, context);
        }
    }
    let number = convert::text_to_f64(text, context);
    convert::to_f64(exact, context)?.partial_cmp(&number)
}

impl Comparison {
    /// True if it asks which of two values comes first.
    pub(super) fn is_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NullSafeEqual | Comparison::NotEqual)
    }

    /// True if values in this order pass.
    #[inline]
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal | Comparison::NullSafeEqual => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}
