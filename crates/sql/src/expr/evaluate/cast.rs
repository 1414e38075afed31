//! CAST and CONVERT.

use super::super::Context;
use super::convert::{self, Number};
use crate::ErrorKind;
use types::{Collation, ColumnType, Decimal, ValueRef};

/// The value as that type; what does not fit is clipped or cut, with a warning.
pub(super) fn cast<'a>(value: &ValueRef<'a>, to: &ColumnType, context: &Context<'a>) -> ValueRef<'a> {
    try_cast(value, to, context).unwrap_or(ValueRef::Null)
}

fn try_cast<'a>(value: &ValueRef<'a>, to: &ColumnType, context: &Context<'a>) -> Option<ValueRef<'a>> {
    if value.is_null() {
        return None;
    }
    Some(match *to {
        ColumnType::Int { unsigned, .. } => to_integer(value, unsigned, context)?,
        ColumnType::Float { .. } => ValueRef::Float(convert::to_f64(value, context)? as f32),
        ColumnType::Double { .. } => ValueRef::Double(convert::to_f64(value, context)?),
        ColumnType::Decimal { precision, scale, unsigned } => {
            let number = convert::to_decimal(value, context)?;
            let largest = Decimal::largest(precision, scale);
            let rounded = number.with_scale(scale).unwrap_or(largest);
            let clipped = if unsigned && rounded.is_negative() {
                Decimal::ZERO.with_scale(scale)?
            } else if rounded.digits() > precision {
                if number.is_negative() { largest.negate() } else { largest }
            } else {
                rounded
            };
            if clipped != rounded {
                let message =
                    format!("Out of range value for column 'CAST' at row 1 (DECIMAL({precision},{scale}))");
                context.environment.warn(ErrorKind::OutOfRange, message);
            }
            ValueRef::Decimal(clipped)
        }
        ColumnType::Char { chars, .. } | ColumnType::Varchar { chars, .. } => {
            let text = text_of(value, context)?;
            let cut = types::collation::first_chars(text, chars as usize);
            if cut.len() < text.len() {
                let shown = convert::shown(text);
                context.environment.warn(
                    ErrorKind::TruncatedWrongValue,
                    format!("Truncated incorrect CHAR({chars}) value: '{shown}'"),
                );
            }
            match to.collation() {
                Collation::Binary => ValueRef::Binary(cut),
                _ => ValueRef::Text(cut),
            }
        }
        ColumnType::Text { .. } => ValueRef::Text(text_of(value, context)?),
        ColumnType::Binary { bytes } => {
            let text = convert::to_text(value, context)?;
            let bytes = bytes as usize;
            if text.len() >= bytes {
                if text.len() > bytes {
                    let shown = convert::shown(text);
                    context.environment.warn(
                        ErrorKind::TruncatedWrongValue,
                        format!("Truncated incorrect BINARY({bytes}) value: '{shown}'"),
                    );
                }
                ValueRef::Binary(&text[..bytes])
            } else {
                let padded = context.arena.alloc_slice_fill_copy(bytes, 0);
                padded[..text.len()].copy_from_slice(text);
                ValueRef::Binary(padded)
            }
        }
        ColumnType::Varbinary { bytes } | ColumnType::Blob { bytes_max: bytes } => {
            let text = convert::to_text(value, context)?;
            ValueRef::Binary(&text[..text.len().min(bytes as usize)])
        }
        ColumnType::Date => ValueRef::Date(convert::to_allowed_moment(value, context)?.date),
        ColumnType::Code(code) => {
            let read = match value {
                ValueRef::Binary(bytes) if bytes.len() == code.bytes() => code.of_bytes(bytes),
                value => code.read(text_of(value, context)?),
            };
            let Some(bytes) = read else {
                let text = convert::shown(text_of(value, context)?);
                let message = format!("Incorrect {} value: '{text}'", code.name());
                context.environment.warn(ErrorKind::TruncatedWrongValue, message);
                return None;
            };
            let mut text = String::new();
            code.write(&bytes[..code.bytes()], &mut text);
            ValueRef::Text(context.arena.alloc_slice_copy(text.as_bytes()))
        }
        // No CAST has such a type.
        ColumnType::Enum { .. } | ColumnType::Set { .. } | ColumnType::Bit { .. } => *value,
        ColumnType::Time { fsp } => ValueRef::Time(convert::to_time(value, context)?.with_fsp(fsp)),
        ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => {
            ValueRef::DateTime(convert::to_allowed_moment(value, context)?.with_fsp(fsp))
        }
        ColumnType::Year => ValueRef::UInt(convert::to_int(value, context)?.clamp(0, 2155) as u64),
    })
}

/// The text of a value; bytes that are no UTF-8 end it.
fn text_of<'a>(value: &ValueRef<'a>, context: &Context<'a>) -> Option<&'a [u8]> {
    let text = convert::to_text(value, context)?;
    match value {
        ValueRef::Binary(bytes) => match std::str::from_utf8(bytes) {
            Ok(_) => Some(text),
            Err(error) => Some(&text[..error.valid_up_to()]),
        },
        _ => Some(text),
    }
}

fn to_integer<'a>(value: &ValueRef<'_>, unsigned: bool, context: &Context<'_>) -> Option<ValueRef<'a>> {
    let (low, high) = match unsigned {
        true => (0, u64::MAX as i128),
        false => (i64::MIN as i128, i64::MAX as i128),
    };
    let type_name = if unsigned { "UNSIGNED" } else { "SIGNED" };
    let clip = |whole: i128, kind: ErrorKind, to: &str, shown: &ValueRef<'_>| {
        let clipped = whole.clamp(low, high);
        if clipped != whole {
            let mut text = String::new();
            convert::write_text(shown, &mut text);
            let message = format!("Got overflow when converting '{text}' to {to}. Value truncated");
            context.environment.warn(kind, message);
        }
        clipped
    };
    let number = match *value {
        ValueRef::Text(_) | ValueRef::Binary(_) => convert::to_int(value, context)?,
        _ => match convert::to_number(&convert::whole_seconds(*value), context)? {
            Number::Double(number) => {
                let whole = convert::round_f64(number) as i128;
                // A FLOAT is shown with all digits.
                let shown = ValueRef::Double(number);
                clip(whole, ErrorKind::DataOverflowNoted, &format!("{type_name} BIGINT"), &shown)
            }
            number @ Number::Decimal(_) => {
                let to = if unsigned { "UNSIGNED INT" } else { "INT" };
                clip(convert::decimal_to_int(&number.to_decimal()), ErrorKind::DataOverflow, to, value)
            }
            number => match value {
                ValueRef::Time(time) => {
                    let fsp = if time.micros % 1_000_000 == 0 { 0 } else { 6 };
                    let shown = ValueRef::Time(time.with_fsp(fsp));
                    let whole = convert::number_to_int(number);
                    clip(whole, ErrorKind::DataOverflowNoted, &format!("{type_name} BIGINT"), &shown)
                }
                _ => convert::number_to_int(number),
            },
        },
    };
    // A number of the other sign keeps its bits, as `CAST(-1 AS UNSIGNED)` shows.
    let message = match (unsigned, number) {
        (true, ..0) => Some("Cast to unsigned converted negative integer to it's positive complement"),
        (false, number) if number > high && value.as_bytes().is_some() => {
            Some("Cast to signed converted positive out-of-range integer to it's negative complement")
        }
        _ => None,
    };
    if let Some(message) = message {
        context.environment.warn(ErrorKind::Unknown, message.into());
    }
    Some(if unsigned { ValueRef::UInt(number as u64) } else { ValueRef::Int(number as i64) })
}
