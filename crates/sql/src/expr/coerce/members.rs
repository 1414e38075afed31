//! Columns of members: ENUM and SET.

use super::{CoerceIssue, Coerced, number_of, text_of};
use crate::expr::evaluate::Number;
use types::row::trim_trailing_spaces;
use types::{Members, ValueRef};

/// The whole number that a text is, written alone. A sign and blanks may stand before it.
fn written_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    match digits.first() {
        Some(b'0'..=b'9') => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

/// A number without its fraction.
fn whole(number: Number) -> i128 {
    match number {
        Number::Int(number) => number.into(),
        Number::UInt(number) => number.into(),
        Number::Double(number) => number as i128,
        Number::Decimal(number) => number.truncated(0).to_f64() as i128,
    }
}

fn truncated<'a>(number: u64) -> Coerced<'a> {
    Coerced::with(ValueRef::UInt(number), CoerceIssue::Truncated)
}

/// The bytes of a text, and of a date or time as it is shown; `None` for a number.
fn with_text<T>(value: &ValueRef<'_>, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
    match value {
        ValueRef::Text(text) | ValueRef::Binary(text) => Some(read(text)),
        ValueRef::Date(_) | ValueRef::Time(_) | ValueRef::DateTime(_) => {
            Some(read(text_of(value).as_bytes()))
        }
        _ => None,
    }
}

/// The number of a member. A text that is no member may be its number. Everything else becomes 0, which is
/// shown as an empty text.
pub(super) fn member<'a>(value: ValueRef<'a>, members: &Members) -> Coerced<'a> {
    /// Longer texts are no numbers.
    const DIGITS_MAX: usize = 5;
    let count = members.names().len() as u64;
    let of_text = |text: &[u8]| {
        let text = trim_trailing_spaces(text);
        if let Some(at) = members.find(text) {
            return Some(at as u64 + 1);
        }
        written_number(text).filter(|_| text.len() <= DIGITS_MAX)
    };
    let number = match with_text(&value, of_text) {
        Some(number) => number,
        None => number_of(&value).and_then(|number| u64::try_from(whole(number)).ok()),
    };
    match number {
        Some(number) if (1..=count).contains(&number) => Coerced::fits(ValueRef::UInt(number)),
        _ => truncated(0),
    }
}

/// The members of a SET. Those that it does not have are left out.
pub(super) fn set<'a>(value: ValueRef<'a>, members: &Members) -> Coerced<'a> {
    /// Longer texts are no numbers.
    const DIGITS_MAX: usize = 21;
    let all = members.all();
    let in_range = |number: i128| {
        let bits = number as u64 & all;
        match number {
            0.. if number == i128::from(bits) => Coerced::fits(ValueRef::UInt(bits)),
            _ => truncated(bits),
        }
    };
    let of_text = |text: &[u8]| {
        if text.is_empty() {
            return Coerced::fits(ValueRef::UInt(0));
        }
        match members.read_set(trim_trailing_spaces(text)) {
            (0, _) => match written_number(text).filter(|_| text.len() <= DIGITS_MAX) {
                Some(number) => in_range(number.into()),
                None => truncated(0),
            },
            (bits, true) => Coerced::fits(ValueRef::UInt(bits)),
            (bits, false) => truncated(bits),
        }
    };
    match with_text(&value, of_text) {
        Some(coerced) => coerced,
        None => in_range(number_of(&value).map_or(0, whole)),
    }
}
