//! Values as clients get them: text cells and binary cells.

use sql::ColumnMeta;
use sql::variables::Zone;
use std::io::Write;
use types::collation::CharacterMap;
use types::{ColumnType, Decimal, ValueRef, number};
use wire::constants::kind;
use wire::{put, value};

/// What the writer of a row needs to know about a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    /// One of [`kind`].
    pub kind: u8,
    /// Digits after the point of a floating-point number. 31 means as many as the number needs.
    pub decimals: u8,
    /// Numbers have noughts in front up to so many digits.
    pub zerofill: u8,
}

impl Cell {
    pub(super) fn of(column: &ColumnMeta) -> Cell {
        Cell {
            kind: wire_kind(&column.column_type),
            decimals: column.decimals,
            zerofill: if column.traits.zerofill { column.display_chars.min(255) as u8 } else { 0 },
        }
    }
}

/// The protocol's type of a column.
pub(super) fn wire_kind(column_type: &ColumnType) -> u8 {
    match column_type {
        ColumnType::Int { bytes: 1, .. } => kind::TINY,
        ColumnType::Int { bytes: 2, .. } => kind::SHORT,
        ColumnType::Int { bytes: 3, .. } => kind::INT24,
        ColumnType::Int { bytes: 4, .. } => kind::LONG,
        ColumnType::Int { .. } => kind::LONGLONG,
        ColumnType::Float { .. } => kind::FLOAT,
        ColumnType::Double { .. } => kind::DOUBLE,
        ColumnType::Decimal { .. } => kind::NEWDECIMAL,
        ColumnType::Char { .. }
        | ColumnType::Binary { .. }
        | ColumnType::Enum { .. }
        | ColumnType::Set { .. }
        | ColumnType::Code(_) => kind::STRING,
        ColumnType::Bit { .. } => kind::BIT,
        ColumnType::Varchar { .. } | ColumnType::Varbinary { .. } => kind::VAR_STRING,
        ColumnType::Text { .. } | ColumnType::Blob { .. } => kind::BLOB,
        ColumnType::Date => kind::DATE,
        ColumnType::Time { .. } => kind::TIME,
        ColumnType::DateTime { .. } => kind::DATETIME,
        ColumnType::Timestamp { .. } => kind::TIMESTAMP,
        ColumnType::Year => kind::YEAR,
    }
}

/// The character set that a client wants its results in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResultCharset {
    /// utf8mb4, binary, NULL: texts go out as they are stored.
    AsStored,
    /// Characters of up to three bytes. Here and below, a character that the set does not have becomes `?`.
    Utf8mb3,
    /// One byte for each character.
    OneByte(&'static CharacterMap),
    Ascii,
}

/// Appends a value of a text row. `digits` is memory for floating-point numbers.
pub(super) fn text(
    out: &mut Vec<u8>,
    value: &ValueRef<'_>,
    cell: Cell,
    charset: ResultCharset,
    digits: &mut String,
) {
    match *value {
        ValueRef::Null => put::text_null(out),
        _ if cell.zerofill > 0 => {
            let mut unfilled = Vec::new();
            text(&mut unfilled, value, Cell { zerofill: 0, ..cell }, charset, digits);
            // Behind the byte of its length.
            let shown = String::from_utf8_lossy(unfilled.get(1..).unwrap_or_default());
            let width = cell.zerofill.into();
            put::text_with(out, |out| drop(write!(out, "{shown:0>width$}")));
        }
        ValueRef::Int(value) => put::text_int(out, value),
        ValueRef::UInt(value) if cell.kind == kind::YEAR => {
            put::text_with(out, |out| drop(write!(out, "{value:04}")));
        }
        ValueRef::UInt(value) => put::text_uint(out, value),
        ValueRef::Float(_) | ValueRef::Double(_) => {
            digits.clear();
            let wide = if cell.kind == kind::DOUBLE { &ValueRef::Double(float(value)) } else { value };
            write_float(wide, cell.decimals, digits);
            put::lenenc_bytes(out, digits.as_bytes());
        }
        ValueRef::Text(bytes) => put_text(out, bytes, charset),
        ValueRef::Binary(bytes) => put::lenenc_bytes(out, bytes),
        // Writing to memory does not fail.
        ValueRef::Decimal(value) => put::text_with(out, |out| drop(write!(out, "{value}"))),
        ValueRef::Date(value) => put::text_with(out, |out| drop(write!(out, "{value}"))),
        ValueRef::Time(value) => put::text_with(out, |out| drop(write!(out, "{value}"))),
        ValueRef::DateTime(value) => put::text_with(out, |out| drop(write!(out, "{value}"))),
    }
}

fn write_float(value: &ValueRef<'_>, decimals: u8, digits: &mut String) {
    use std::fmt::Write;
    let fixed = usize::from(decimals);
    match *value {
        ValueRef::Float(value) if decimals < 31 => drop(write!(digits, "{value:.fixed$}")),
        ValueRef::Double(value) if decimals < 31 => write_fixed(value, fixed, digits),
        ValueRef::Float(value) => number::write_f32(value, digits),
        ValueRef::Double(value) => number::write_f64(value, digits),
        _ => {}
    }
}

/// So many digits after the point. As in MariaDB, the digits that tell the number from all others are
/// followed by noughts, and not by those that its binary form has beyond them.
fn write_fixed(value: f64, fixed: usize, digits: &mut String) {
    use std::fmt::Write;
    // Writing into memory does not fail.
    let _ = write!(digits, "{value}");
    let behind = digits.find('.').map(|point| digits.len() - point - 1);
    match behind {
        Some(behind) if behind > fixed => {
            digits.clear();
            let _ = write!(digits, "{value:.fixed$}");
        }
        _ if fixed == 0 || !value.is_finite() => {}
        behind => {
            if behind.is_none() {
                digits.push('.');
            }
            digits.extend(std::iter::repeat_n('0', fixed - behind.unwrap_or(0)));
        }
    }
}

fn put_text(out: &mut Vec<u8>, bytes: &[u8], charset: ResultCharset) {
    // The first byte of a character of four bytes is the only one of this kind.
    let is_in_utf8mb3 = || bytes.iter().all(|byte| *byte < 0xF0);
    let stays = match charset {
        ResultCharset::AsStored => true,
        ResultCharset::Utf8mb3 => is_in_utf8mb3(),
        ResultCharset::OneByte(_) | ResultCharset::Ascii => bytes.is_ascii(),
    };
    if stays {
        return put::lenenc_bytes(out, bytes);
    }
    if charset == ResultCharset::Utf8mb3 {
        let letter = |letter: char| if letter.len_utf8() > 3 { '?' } else { letter };
        let text: String = String::from_utf8_lossy(bytes).chars().map(letter).collect();
        return put::lenenc_bytes(out, text.as_bytes());
    }
    put::text_with(out, |out| {
        out.extend(String::from_utf8_lossy(bytes).chars().map(|character| match charset {
            ResultCharset::OneByte(map) => map.to_byte(character).unwrap_or(b'?'),
            _ if character.is_ascii() => character as u8,
            _ => b'?',
        }));
    });
}

/// Appends a value of a binary row that is not NULL, in the type of its column, whatever type the value has.
pub(super) fn binary(
    out: &mut Vec<u8>,
    value: &ValueRef<'_>,
    cell: Cell,
    charset: ResultCharset,
    digits: &mut String,
) {
    match cell.kind {
        kind::TINY => out.push(integer(value) as u8),
        kind::SHORT | kind::YEAR => out.extend_from_slice(&(integer(value) as u16).to_le_bytes()),
        kind::LONG | kind::INT24 => out.extend_from_slice(&(integer(value) as u32).to_le_bytes()),
        kind::LONGLONG => out.extend_from_slice(&integer(value).to_le_bytes()),
        kind::FLOAT => match *value {
            ValueRef::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            _ => out.extend_from_slice(&(float(value) as f32).to_le_bytes()),
        },
        kind::DOUBLE => out.extend_from_slice(&float(value).to_le_bytes()),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => datetime(value).write(out),
        kind::TIME => time(value).write(out),
        _ => text(out, value, cell, charset, digits),
    }
}

/// The bits of the integer, in two's complement.
fn integer(value: &ValueRef<'_>) -> u64 {
    match *value {
        ValueRef::Int(value) => value as u64,
        ValueRef::UInt(value) => value,
        ValueRef::Text(bytes) | ValueRef::Binary(bytes) => {
            let (magnitude, negative, _) = number::parse_integer_prefix(bytes);
            if negative { magnitude.wrapping_neg() } else { magnitude }
        }
        ValueRef::Null => 0,
        _ => {
            let value = float(value).round();
            if value < 0.0 { value as i64 as u64 } else { value as u64 }
        }
    }
}

fn float(value: &ValueRef<'_>) -> f64 {
    match *value {
        ValueRef::Int(value) => value as f64,
        ValueRef::UInt(value) => value as f64,
        ValueRef::Float(value) => value.into(),
        ValueRef::Double(value) => value,
        ValueRef::Decimal(value) => number::parse_f64_prefix(value.to_string().as_bytes()).0,
        ValueRef::Text(bytes) | ValueRef::Binary(bytes) => number::parse_f64_prefix(bytes).0,
        _ => 0.0,
    }
}

fn datetime(value: &ValueRef<'_>) -> value::DateTime {
    let (date, rest) = match *value {
        ValueRef::Date(date) => (date, None),
        ValueRef::DateTime(value) => (value.date, Some(value)),
        _ => return value::DateTime::default(),
    };
    let mut result =
        value::DateTime { year: date.year, month: date.month, day: date.day, ..value::DateTime::default() };
    if let Some(rest) = rest {
        result.hour = rest.hour;
        result.minute = rest.minute;
        result.second = rest.second;
        result.microsecond = rest.micros;
    }
    result
}

fn time(value: &ValueRef<'_>) -> value::Time {
    let ValueRef::Time(time) = *value else { return value::Time::default() };
    let (hours, minute, second, microsecond) = time.parts();
    value::Time {
        negative: time.is_negative(),
        days: hours / 24,
        hour: (hours % 24) as u8,
        minute,
        second,
        microsecond,
    }
}

/// A parameter as the SQL layer takes it, in a session whose `time_zone` is `zone`. Invalid dates become the
/// zero date.
#[inline]
pub(super) fn parameter<'a>(value: wire::WireValue<'a>, zone: &Zone) -> ValueRef<'a> {
    use wire::WireValue;
    match value {
        WireValue::Null => ValueRef::Null,
        WireValue::Int(value) => ValueRef::Int(value),
        WireValue::UInt(value) => ValueRef::UInt(value),
        WireValue::Float(value) => ValueRef::Float(value),
        WireValue::Double(value) => ValueRef::Double(value),
        WireValue::Text(bytes) => ValueRef::Text(bytes),
        WireValue::Binary(bytes) => ValueRef::Binary(bytes),
        WireValue::Decimal(text) => ValueRef::Decimal(Decimal::parse_prefix(text).0),
        WireValue::Date(value) => ValueRef::Date(date_time_parameter(value).date),
        WireValue::DateTime(value) => ValueRef::DateTime(date_time_parameter(value)),
        WireValue::ZonedDateTime(value, minutes) => {
            let in_utc = date_time_parameter(value).add_micros(i64::from(minutes) * -60_000_000);
            ValueRef::DateTime(zone.from_utc(in_utc.unwrap_or_default()))
        }
        WireValue::Time(value) => {
            let hours = i64::from(value.days) * 24 + i64::from(value.hour);
            let seconds = (hours * 60 + i64::from(value.minute)) * 60 + i64::from(value.second);
            let micros = seconds * 1_000_000 + i64::from(value.microsecond);
            let micros = if value.negative { -micros } else { micros };
            let fsp = if value.microsecond == 0 { 0 } else { 6 };
            ValueRef::Time(types::Time { micros, fsp }.clipped())
        }
    }
}

/// What is wrong with a parameter that is no date: the text of a warning.
pub(super) fn incorrect(value: &wire::WireValue<'_>) -> Option<String> {
    use wire::WireValue;
    let (kind, value) = match value {
        WireValue::Date(value) => ("date", value),
        WireValue::DateTime(value) | WireValue::ZonedDateTime(value, _) => ("datetime", value),
        _ => return None,
    };
    if as_written(value).is_well_formed() {
        return None;
    }
    let value::DateTime { year, month, day, hour, minute, second, microsecond } = value;
    let date = format!("{year:04}-{month:02}-{day:02}");
    let fraction = if *microsecond == 0 { String::new() } else { format!(".{microsecond:06}") };
    let text = match kind {
        "date" => date,
        _ => format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}"),
    };
    Some(format!("Incorrect {kind} value: '{text}'"))
}

fn date_time_parameter(value: value::DateTime) -> types::DateTime {
    let result = as_written(&value);
    if result.is_well_formed() { result } else { types::DateTime::default() }
}

fn as_written(value: &value::DateTime) -> types::DateTime {
    types::DateTime {
        date: types::Date { year: value.year, month: value.month, day: value.day },
        hour: value.hour,
        minute: value.minute,
        second: value.second,
        fsp: if value.microsecond == 0 { 0 } else { 6 },
        micros: value.microsecond,
    }
}
