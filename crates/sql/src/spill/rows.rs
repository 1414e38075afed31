//! Rows of values as bytes.
//!
//! ```text
//! row:   value | value | ...
//! value: tag u8 | bytes, as many as the tag says; those of texts come behind their length, a u32
//! ```

use crate::SqlError;
use types::decimal::BYTES as DECIMAL_BYTES;
use types::{Date, DateTime, Decimal, Time, ValueRef};

const NULL: u8 = 0;
const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const DOUBLE: u8 = 4;
const DECIMAL: u8 = 5;
const DATE: u8 = 6;
const TIME: u8 = 7;
const DATE_TIME: u8 = 8;
const TEXT: u8 = 9;
const BINARY: u8 = 10;

/// Appends one value.
pub(crate) fn append_value(value: &ValueRef<'_>, out: &mut Vec<u8>) {
    let mut fixed = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => fixed(NULL, &[]),
        ValueRef::Int(number) => fixed(INT, &number.to_le_bytes()),
        ValueRef::UInt(number) => fixed(UINT, &number.to_le_bytes()),
        ValueRef::Float(number) => fixed(FLOAT, &number.to_le_bytes()),
        ValueRef::Double(number) => fixed(DOUBLE, &number.to_le_bytes()),
        ValueRef::Decimal(number) => fixed(DECIMAL, &number.to_bytes()),
        ValueRef::Date(date) => fixed(DATE, &date.to_packed().to_le_bytes()),
        ValueRef::Time(time) => {
            fixed(TIME, &time.micros.to_le_bytes());
            out.push(time.fsp);
        }
        ValueRef::DateTime(moment) => {
            fixed(DATE_TIME, &moment.to_packed().to_le_bytes());
            out.push(moment.fsp);
        }
        ValueRef::Text(bytes) => append_bytes(TEXT, bytes, out),
        ValueRef::Binary(bytes) => append_bytes(BINARY, bytes, out),
    }
}

fn append_bytes(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    // A value is no longer than a packet, 1 GiB at most.
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends the values of a row.
pub(crate) fn append_row(values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    values.iter().for_each(|value| append_value(value, out));
}

/// Reads the values of a row, all that there are.
///
/// # Errors
/// 1105 if the bytes are not those of a row.
pub(crate) fn read_row<'r>(mut row: &'r [u8], values: &mut Vec<ValueRef<'r>>) -> Result<(), SqlError> {
    while !row.is_empty() {
        let value = read_value(&mut row);
        values.push(value.ok_or_else(|| SqlError::internal("a row of a scratch file is not well formed"))?);
    }
    Ok(())
}

/// Reads one value of a row: the one at this place, counted from 0.
///
/// # Errors
/// 1105 if there is no such value.
pub(crate) fn read_nth(mut row: &[u8], nth: usize) -> Result<ValueRef<'_>, SqlError> {
    let mut value = read_value(&mut row);
    for _ in 0..nth {
        value = read_value(&mut row);
    }
    value.ok_or_else(|| SqlError::internal("a row of a scratch file has fewer values"))
}

fn read_value<'r>(row: &mut &'r [u8]) -> Option<ValueRef<'r>> {
    let [tag] = take(row)?;
    Some(match tag {
        NULL => ValueRef::Null,
        INT => ValueRef::Int(i64::from_le_bytes(take(row)?)),
        UINT => ValueRef::UInt(u64::from_le_bytes(take(row)?)),
        FLOAT => ValueRef::Float(f32::from_le_bytes(take(row)?)),
        DOUBLE => ValueRef::Double(f64::from_le_bytes(take(row)?)),
        DECIMAL => ValueRef::Decimal(Decimal::from_bytes(&take::<DECIMAL_BYTES>(row)?)),
        DATE => ValueRef::Date(Date::from_packed(u32::from_le_bytes(take(row)?))),
        TIME => {
            let micros = i64::from_le_bytes(take(row)?);
            let [fsp] = take(row)?;
            ValueRef::Time(Time { micros, fsp })
        }
        DATE_TIME => {
            let packed = u64::from_le_bytes(take(row)?);
            let [fsp] = take(row)?;
            ValueRef::DateTime(DateTime::from_packed(packed, fsp))
        }
        TEXT => ValueRef::Text(take_bytes(row)?),
        BINARY => ValueRef::Binary(take_bytes(row)?),
        _ => return None,
    })
}

fn take<const N: usize>(row: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = row.split_first_chunk::<N>()?;
    *row = rest;
    Some(*bytes)
}

fn take_bytes<'r>(row: &mut &'r [u8]) -> Option<&'r [u8]> {
    let length = u32::from_le_bytes(take(row)?) as usize;
    let (bytes, rest) = row.split_at_checked(length)?;
    *row = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_as_it_was() {
        let third = Decimal::from(1i64).divide(&Decimal::from(3i64), 4).flatten().expect("a third");
        let date = Date { year: 2026, month: 0, day: 31 };
        let moment = DateTime { date, hour: 23, minute: 59, second: 58, fsp: 3, micros: 123_000 };
        let values = [
            ValueRef::Null,
            ValueRef::Int(i64::MIN),
            ValueRef::UInt(u64::MAX),
            ValueRef::Float(-0.5),
            ValueRef::Double(1e300),
            ValueRef::Decimal(third),
            ValueRef::Decimal(Decimal::from(-12i64)),
            ValueRef::Date(date),
            ValueRef::Time(Time { micros: -5, fsp: 6 }),
            ValueRef::DateTime(moment),
            ValueRef::Text(b""),
            ValueRef::Text("äö".as_bytes()),
            ValueRef::Binary(&[0, 1, 255]),
        ];
        let mut bytes = Vec::new();
        append_row(&values, &mut bytes);
        let mut read = Vec::new();
        read_row(&bytes, &mut read).unwrap();
        assert_eq!(read, values);
        for cut in 0..bytes.len() {
            let mut read = Vec::new();
            match read_row(&bytes[..cut], &mut read) {
                Ok(()) => assert!(values.starts_with(&read)),
                Err(error) => assert_eq!(error.code(), 1105),
            }
        }
    }
}
