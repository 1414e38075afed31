//! Values as the binary protocol carries them: parameters of `COM_STMT_EXECUTE`, cells of binary rows.

use crate::constants::kind;
use crate::cursor::Cursor;
use crate::{Malformed, put};

/// A date, with a time of day if the type has one. All zero is MySQL's zero date.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DateTime {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

/// A signed time interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Time {
    pub negative: bool,
    pub days: u32,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

impl DateTime {
    /// Appends it in the form of binary rows and parameters: without a time of day if that is zero.
    pub fn write(&self, out: &mut Vec<u8>) {
        let time_set = self.hour | self.minute | self.second != 0;
        let date_set = self.year != 0 || self.month != 0 || self.day != 0;
        let length = match (self.microsecond != 0, time_set, date_set) {
            (true, _, _) => 11,
            (_, true, _) => 7,
            (_, _, true) => 4,
            _ => 0,
        };
        out.push(length);
        self.write_parts(out, length);
    }

    fn write_parts(&self, out: &mut Vec<u8>, length: u8) {
        if length >= 4 {
            out.extend_from_slice(&self.year.to_le_bytes());
            out.extend_from_slice(&[self.month, self.day]);
        }
        if length >= 7 {
            out.extend_from_slice(&[self.hour, self.minute, self.second]);
        }
        if length >= 11 {
            out.extend_from_slice(&self.microsecond.to_le_bytes());
        }
    }
}

impl Time {
    /// Appends it in the form of binary rows and parameters.
    pub fn write(&self, out: &mut Vec<u8>) {
        let set = self.days != 0 || self.hour | self.minute | self.second != 0;
        let length = match (self.microsecond != 0, set) {
            (true, _) => 12,
            (_, true) => 8,
            _ => 0,
        };
        out.push(length);
        if length >= 8 {
            out.push(self.negative.into());
            out.extend_from_slice(&self.days.to_le_bytes());
            out.extend_from_slice(&[self.hour, self.minute, self.second]);
        }
        if length == 12 {
            out.extend_from_slice(&self.microsecond.to_le_bytes());
        }
    }
}

/// A typed value, which borrows its bytes from a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WireValue<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    /// Characters, in the character set of the connection.
    Text(&'a [u8]),
    /// BLOB types.
    Binary(&'a [u8]),
    /// A decimal number as text.
    Decimal(&'a [u8]),
    Date(DateTime),
    DateTime(DateTime),
    /// A date and a time of day in a zone that is so many minutes east of UTC, as MySQL's Connector/J sends
    /// them.
    ZonedDateTime(DateTime, i16),
    Time(Time),
}

/// The type that comes with a parameter or a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireType {
    /// One of [`kind`].
    pub kind: u8,
    pub unsigned: bool,
}

impl<'a> WireValue<'a> {
    /// Takes one value of type `of` from a binary row or a parameter list. NULLs are in a bitmap, not here.
    ///
    /// # Errors
    /// If the bytes end too soon or are no value of this type.
    pub fn read(cursor: &mut Cursor<'a>, of: WireType) -> Result<WireValue<'a>, Malformed> {
        let integer = |signed: i64, unsigned: u64| {
            if of.unsigned { WireValue::UInt(unsigned) } else { WireValue::Int(signed) }
        };
        Ok(match of.kind {
            kind::NULL => WireValue::Null,
            kind::TINY => {
                let byte = cursor.u8("tinyint")?;
                integer((byte as i8).into(), byte.into())
            }
            kind::SHORT | kind::YEAR => {
                let word = cursor.u16("smallint")?;
                integer((word as i16).into(), word.into())
            }
            kind::LONG | kind::INT24 => {
                let word = cursor.u32("int")?;
                integer((word as i32).into(), word.into())
            }
            kind::LONGLONG => {
                let word = cursor.u64("bigint")?;
                integer(word as i64, word)
            }
            kind::FLOAT => WireValue::Float(f32::from_bits(cursor.u32("float")?)),
            kind::DOUBLE => WireValue::Double(f64::from_bits(cursor.u64("double")?)),
            kind::DATE | kind::NEWDATE => WireValue::Date(read_datetime(cursor)?.0),
            kind::DATETIME | kind::TIMESTAMP => match read_datetime(cursor)? {
                (value, None) => WireValue::DateTime(value),
                (value, Some(minutes)) => WireValue::ZonedDateTime(value, minutes),
            },
            kind::TIME => WireValue::Time(read_time(cursor)?),
            kind::DECIMAL | kind::NEWDECIMAL => WireValue::Decimal(cursor.lenenc_bytes("decimal")?),
            kind::VARCHAR | kind::VAR_STRING | kind::STRING | kind::ENUM | kind::SET | kind::JSON => {
                WireValue::Text(cursor.lenenc_bytes("string")?)
            }
            kind::TINY_BLOB
            | kind::MEDIUM_BLOB
            | kind::LONG_BLOB
            | kind::BLOB
            | kind::BIT
            | kind::GEOMETRY => WireValue::Binary(cursor.lenenc_bytes("blob")?),
            _ => return Err(Malformed::new("type of a value")),
        })
    }

    /// The type under which [`WireValue::write`] writes the value.
    pub fn wire_type(&self) -> WireType {
        let (kind, unsigned) = match self {
            WireValue::Null => (kind::NULL, false),
            WireValue::Int(_) => (kind::LONGLONG, false),
            WireValue::UInt(_) => (kind::LONGLONG, true),
            WireValue::Float(_) => (kind::FLOAT, false),
            WireValue::Double(_) => (kind::DOUBLE, false),
            WireValue::Text(_) => (kind::VAR_STRING, false),
            WireValue::Binary(_) => (kind::BLOB, false),
            WireValue::Decimal(_) => (kind::NEWDECIMAL, false),
            WireValue::Date(_) => (kind::DATE, false),
            WireValue::DateTime(_) | WireValue::ZonedDateTime(..) => (kind::DATETIME, false),
            WireValue::Time(_) => (kind::TIME, false),
        };
        WireType { kind, unsigned }
    }

    /// Appends the value as its [`WireValue::wire_type`]. NULL appends nothing.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            WireValue::Null => {}
            WireValue::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
            WireValue::UInt(value) => out.extend_from_slice(&value.to_le_bytes()),
            WireValue::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            WireValue::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            WireValue::Text(bytes) | WireValue::Binary(bytes) | WireValue::Decimal(bytes) => {
                put::lenenc_bytes(out, bytes);
            }
            WireValue::Date(date) | WireValue::DateTime(date) => date.write(out),
            WireValue::ZonedDateTime(date, minutes) => {
                out.push(ZONED_BYTES);
                date.write_parts(out, ZONED_BYTES);
                out.extend_from_slice(&minutes.to_le_bytes());
            }
            WireValue::Time(time) => time.write(out),
        }
    }
}

/// A date and a time of day with their zone.
const ZONED_BYTES: u8 = 13;

/// A date, and the minutes by which its zone is east of UTC, if it has one.
fn read_datetime(cursor: &mut Cursor<'_>) -> Result<(DateTime, Option<i16>), Malformed> {
    let length = cursor.u8("length of a date")?;
    let mut value = DateTime::default();
    if !matches!(length, 0 | 4 | 7 | 11 | ZONED_BYTES) {
        return Err(Malformed::new("length of a date"));
    }
    if length >= 4 {
        value.year = cursor.u16("year")?;
        value.month = cursor.u8("month")?;
        value.day = cursor.u8("day")?;
    }
    if length >= 7 {
        value.hour = cursor.u8("hour")?;
        value.minute = cursor.u8("minute")?;
        value.second = cursor.u8("second")?;
    }
    if length >= 11 {
        value.microsecond = cursor.u32("microsecond")?;
    }
    let minutes = match length {
        ZONED_BYTES => Some(cursor.u16("time zone")? as i16),
        _ => None,
    };
    Ok((value, minutes))
}

fn read_time(cursor: &mut Cursor<'_>) -> Result<Time, Malformed> {
    let length = cursor.u8("length of a time")?;
    let mut value = Time::default();
    if !matches!(length, 0 | 8 | 12) {
        return Err(Malformed::new("length of a time"));
    }
    if length >= 8 {
        value.negative = cursor.u8("sign of a time")? != 0;
        value.days = cursor.u32("days of a time")?;
        value.hour = cursor.u8("hour")?;
        value.minute = cursor.u8("minute")?;
        value.second = cursor.u8("second")?;
    }
    if length == 12 {
        value.microsecond = cursor.u32("microsecond")?;
    }
    Ok(value)
}
