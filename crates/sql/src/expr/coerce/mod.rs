//! Converts values to the type of a column.

mod codes;
mod members;
mod numbers;
mod texts;
mod times;

use super::SqlMode;
use super::evaluate::Number;
use crate::variables::time_zones::Zone;
use crate::{ErrorKind, SqlError};
use bumpalo::Bump;
use types::{Column, ColumnType, Date, DateTime, Decimal, Time, ValueRef};

/// A value as its column stores it, and the issue if the value did not fit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Coerced<'a> {
    /// What is stored if the issue is no error: clipped, cut, or zero.
    pub value: ValueRef<'a>,
    pub issue: Option<CoerceIssue>,
}

impl<'a> Coerced<'a> {
    fn fits(value: ValueRef<'a>) -> Coerced<'a> {
        Coerced { value, issue: None }
    }

    fn with(value: ValueRef<'a>, issue: CoerceIssue) -> Coerced<'a> {
        Coerced { value, issue: Some(issue) }
    }

    fn maybe(value: ValueRef<'a>, issue: Option<CoerceIssue>) -> Coerced<'a> {
        Coerced { value, issue }
    }

    /// What becomes of it in a FLOAT(m, d) or DOUBLE(m, d). `digits` are m and d, and `None` for all others.
    #[inline]
    pub(crate) fn in_digits(self, digits: Option<(u8, u8)>) -> Coerced<'a> {
        match digits {
            Some((digits, decimals)) => numbers::in_digits(self, digits, decimals),
            None => self,
        }
    }

    /// What becomes of `given` in a column, where NO_ZERO_DATE and NO_ZERO_IN_DATE may refuse it.
    pub(crate) fn in_mode(self, given: &ValueRef<'_>, column: &Column, mode: SqlMode) -> Coerced<'a> {
        let is_date = matches!(self.value, ValueRef::Date(_) | ValueRef::DateTime(_));
        match is_date && (mode.no_zero_date || mode.no_zero_in_date) {
            true => times::in_mode(self, given, column, mode),
            false => self,
        }
    }
}

/// Why a value did not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CoerceIssue {
    /// 1048. The value is then the type's zero, which non-strict multi-row inserts store.
    Null,
    /// 1264.
    OutOfRange,
    /// 1406.
    DataTooLong,
    /// 1406 for a BIT; as a warning 1264.
    BitsTooLong,
    /// 1265: digits of a fraction or blanks were cut. Only a note, in strict mode too.
    TruncatedNote,
    /// 1265.
    Truncated,
    /// 1366: no number, or characters that the character set lacks. What kind of value, and the value.
    Incorrect { kind: &'static str, value: String },
    /// 1292. What kind of value, and the value.
    IncorrectTime { kind: &'static str, value: String },
    /// 1292: no UUID or address. Which of them, and the value.
    IncorrectCode { kind: &'static str, value: String },
    /// 4078: a value of this type is never a UUID or address.
    NoCode { from: &'static str, to: &'static str },
    /// 1292 for a time that the column cannot hold; as a warning 1264.
    TimeOutOfRange { kind: &'static str, value: String },
    /// The same, for a time that the clocks leave out; as a warning 1299.
    TimeLeftOut { kind: &'static str, value: String },
}

impl CoerceIssue {
    /// True if strict mode refuses the statement.
    pub(crate) fn is_error_when_strict(&self) -> bool {
        !matches!(self, CoerceIssue::TruncatedNote)
    }

    /// What the warning says where the issue is no error.
    pub(crate) fn as_warning(&self) -> &CoerceIssue {
        match self {
            CoerceIssue::DataTooLong | CoerceIssue::IncorrectTime { .. } => &CoerceIssue::Truncated,
            CoerceIssue::TimeOutOfRange { .. } | CoerceIssue::BitsTooLong => &CoerceIssue::OutOfRange,
            other => other,
        }
    }

    /// The error, or the warning's number and text. `row` counts from 1.
    pub(crate) fn to_error(&self, column: &str, row: u64) -> SqlError {
        self.to_error_at(&format!("`{column}`"), column, row)
    }

    /// As [`CoerceIssue::to_error`], with the table for the messages that name it, as MariaDB does.
    pub(crate) fn to_error_in(&self, database: &str, table: &str, column: &str, row: u64) -> SqlError {
        self.to_error_at(&format!("`{database}`.`{table}`.`{column}`"), column, row)
    }

    fn to_error_at(&self, place: &str, column: &str, row: u64) -> SqlError {
        match self {
            CoerceIssue::Null => {
                SqlError::new(ErrorKind::ColumnCannotBeNull, format!("Column '{column}' cannot be null"))
            }
            CoerceIssue::OutOfRange => SqlError::new(
                ErrorKind::OutOfRange,
                format!("Out of range value for column '{column}' at row {row}"),
            ),
            CoerceIssue::DataTooLong | CoerceIssue::BitsTooLong => SqlError::new(
                ErrorKind::DataTooLong,
                format!("Data too long for column '{column}' at row {row}"),
            ),
            CoerceIssue::Truncated | CoerceIssue::TruncatedNote => SqlError::new(
                ErrorKind::DataTruncated,
                format!("Data truncated for column '{column}' at row {row}"),
            ),
            CoerceIssue::Incorrect { kind, value } => SqlError::new(
                ErrorKind::IncorrectValue,
                format!("Incorrect {kind} value: '{value}' for column {place} at row {row}"),
            ),
            CoerceIssue::NoCode { from, to } => SqlError::new(
                ErrorKind::IllegalParameterTypes,
                format!("Cannot cast '{from}' as '{to}' in assignment of {place}"),
            ),
            CoerceIssue::IncorrectCode { kind, value }
            | CoerceIssue::IncorrectTime { kind, value }
            | CoerceIssue::TimeOutOfRange { kind, value }
            | CoerceIssue::TimeLeftOut { kind, value } => SqlError::new(
                ErrorKind::TruncatedWrongValue,
                format!("Incorrect {kind} value: '{value}' for column {place} at row {row}"),
            ),
        }
    }
}

/// Makes `value` fit `column`. New bytes go to `arena`. A TIMESTAMP column gets the moment at which a clock
/// of `zone` shows the value. Without a zone the column only shows values, and stores none.
#[inline]
pub(crate) fn coerce<'a>(
    value: ValueRef<'a>,
    column: &Column,
    zone: Option<&Zone>,
    arena: &'a Bump,
) -> Coerced<'a> {
    match (&column.column_type, value) {
        // Almost all statements have such values, and nothing has to be done to them.
        (ColumnType::Int { bytes: 4, unsigned: false }, ValueRef::Int(number))
            if i32::try_from(number).is_ok() =>
        {
            Coerced::fits(value)
        }
        (
            ColumnType::Char { chars, collation } | ColumnType::Varchar { chars, collation },
            ValueRef::Text(text),
        ) if text.len() <= *chars as usize
            && text.last() != Some(&b' ')
            && (text.is_ascii()
                || collation.character_bytes_max() == 4 && std::str::from_utf8(text).is_ok()) =>
        {
            Coerced::fits(value)
        }
        _ => coerce_any(value, column, zone, arena),
    }
}

fn coerce_any<'a>(value: ValueRef<'a>, column: &Column, zone: Option<&Zone>, arena: &'a Bump) -> Coerced<'a> {
    let column_type = &column.column_type;
    if value.is_null() {
        return match column.nullable {
            true => Coerced::fits(ValueRef::Null),
            false => Coerced::with(zero_of(column_type), CoerceIssue::Null),
        };
    }
    match *column_type {
        ColumnType::Int { bytes, unsigned } => numbers::integer(value, bytes, unsigned),
        ColumnType::Float { unsigned } => numbers::float(value, unsigned),
        ColumnType::Double { unsigned } => numbers::double(value, unsigned),
        ColumnType::Decimal { precision, scale, unsigned } => {
            numbers::decimal(value, precision, scale, unsigned)
        }
        ColumnType::Year => numbers::year(value),
        ColumnType::Char { chars, collation } => texts::characters(value, chars, true, collation, arena),
        ColumnType::Varchar { chars, collation } => texts::characters(value, chars, false, collation, arena),
        ColumnType::Text { bytes_max, collation } => texts::text(value, bytes_max, collation, arena),
        ColumnType::Binary { bytes } => texts::fixed_binary(value, bytes, arena),
        ColumnType::Varbinary { bytes } | ColumnType::Blob { bytes_max: bytes } => {
            texts::binary(value, bytes, arena)
        }
        ColumnType::Date => times::date(value),
        ColumnType::Time { fsp } => times::time(value, fsp),
        ColumnType::DateTime { fsp } => times::date_time(value, fsp, None),
        ColumnType::Timestamp { fsp } => times::date_time(value, fsp, zone),
        ColumnType::Enum { ref members, .. } => members::member(value, members),
        ColumnType::Set { ref members, .. } => members::set(value, members),
        ColumnType::Bit { bits } => numbers::bits(value, bits),
        ColumnType::Code(code) => codes::code(value, code, column.nullable, arena),
    }
}

/// The zero of a type: 0, the empty text, the zero date.
pub(crate) fn zero_of(column_type: &ColumnType) -> ValueRef<'static> {
    match *column_type {
        ColumnType::Int { unsigned: false, .. } => ValueRef::Int(0),
        ColumnType::Int { unsigned: true, .. }
        | ColumnType::Year
        | ColumnType::Enum { .. }
        | ColumnType::Set { .. }
        | ColumnType::Bit { .. } => ValueRef::UInt(0),
        ColumnType::Code(code) => ValueRef::Binary(&[0; 16][..code.bytes()]),
        ColumnType::Float { .. } => ValueRef::Float(0.0),
        ColumnType::Double { .. } => ValueRef::Double(0.0),
        ColumnType::Decimal { scale, .. } => ValueRef::Decimal(Decimal::new(0i64.into(), scale)),
        ColumnType::Char { .. } | ColumnType::Varchar { .. } | ColumnType::Text { .. } => ValueRef::Text(b""),
        ColumnType::Binary { .. } | ColumnType::Varbinary { .. } | ColumnType::Blob { .. } => {
            ValueRef::Binary(b"")
        }
        ColumnType::Date => ValueRef::Date(Date::ZERO),
        ColumnType::Time { fsp } => ValueRef::Time(Time { micros: 0, fsp }),
        ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => {
            ValueRef::DateTime(DateTime { fsp, ..DateTime::ZERO })
        }
    }
}

/// A value's text, for messages and for columns of characters.
fn text_of(value: &ValueRef<'_>) -> String {
    let mut text = String::new();
    super::evaluate::write_text(value, &mut text);
    text
}

/// The number that a value other than a text is.
fn number_of(value: &ValueRef<'_>) -> Option<Number> {
    super::evaluate::plain_number(value)
}

#[cfg(test)]
mod tests;
