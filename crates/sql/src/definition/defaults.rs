//! The value of a column that a statement does not mention.

use super::literal;
use super::{ColumnDefault, ColumnExtras};
use crate::expr::{Environment, coerce};
use bumpalo::Bump;
use types::{Column, ColumnType, Date, DateTime, Decimal, Time, Value, ValueRef};

/// The zero value of a type. A NOT NULL column without a default gets it where that is allowed.
pub(crate) fn implicit_default(column: &Column) -> Value {
    if column.nullable {
        return Value::Null;
    }
    let date = Date { year: 0, month: 0, day: 0 };
    match column.column_type {
        ColumnType::Int { unsigned: false, .. } => Value::Int(0),
        ColumnType::Int { .. } | ColumnType::Year => Value::UInt(0),
        ColumnType::Float { .. } => Value::Float(0.0),
        ColumnType::Double { .. } => Value::Double(0.0),
        ColumnType::Decimal { scale, .. } => Value::Decimal(Decimal::new(0.into(), scale)),
        ColumnType::Char { .. } | ColumnType::Varchar { .. } | ColumnType::Text { .. } => {
            Value::Text(Vec::new())
        }
        ColumnType::Binary { bytes } => Value::Binary(vec![0; bytes as usize]),
        ColumnType::Varbinary { .. } | ColumnType::Blob { .. } => Value::Binary(Vec::new()),
        ColumnType::Date => Value::Date(date),
        ColumnType::Time { fsp } => Value::Time(Time { micros: 0, fsp }),
        ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => {
            Value::DateTime(DateTime { date, hour: 0, minute: 0, second: 0, fsp, micros: 0 })
        }
    }
}

/// The session's clock: microseconds since 1970 in UTC, and the offset of the session's time zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub unix_micros: i64,
    pub zone_seconds: i32,
}

impl Clock {
    pub(crate) fn of(environment: &dyn Environment) -> Clock {
        Clock { unix_micros: environment.now_micros(), zone_seconds: environment.time_zone_seconds() }
    }

    /// The current time as a DATETIME column (in the session's zone) or a TIMESTAMP column (in UTC) stores
    /// it.
    pub(crate) fn now_for(&self, column_type: &ColumnType) -> Value {
        let fsp = match *column_type {
            ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => fsp,
            _ => 0,
        };
        let zone = match column_type {
            ColumnType::Timestamp { .. } => 0,
            _ => i64::from(self.zone_seconds) * 1_000_000,
        };
        Value::DateTime(DateTime::from_unix_micros(self.unix_micros + zone, fsp).with_fsp(fsp))
    }

    /// What a column is given in place of a value that needs a clock. A TIMESTAMP that cannot be NULL stores
    /// the present time for it. A time of a day becomes one of today where a date is wanted.
    pub(crate) fn in_place_of(&self, value: &ValueRef<'_>, column: &Column) -> Option<Value> {
        use ColumnType::{Date, DateTime as Moment, Timestamp};
        match (value, &column.column_type) {
            (ValueRef::Null, Timestamp { .. }) if !column.nullable => Some(self.now_for(&column.column_type)),
            (ValueRef::Time(time), Date | Moment { .. } | Timestamp { .. }) => {
                let zone = i64::from(self.zone_seconds) * 1_000_000;
                let today = DateTime::from_unix_micros(self.unix_micros + zone, 0).date;
                let moment = DateTime::from_date(today).add_micros(time.micros)?;
                Some(Value::DateTime(DateTime { fsp: time.fsp, ..moment }))
            }
            _ => None,
        }
    }
}

/// The value of a column that is not mentioned. `None` if it has no default and cannot be NULL.
pub(crate) fn column_default(column: &Column, extras: &ColumnExtras, clock: &Clock) -> Option<Value> {
    match &extras.default {
        ColumnDefault::Unset if column.nullable => Some(Value::Null),
        ColumnDefault::Unset => None,
        ColumnDefault::Null => Some(Value::Null),
        ColumnDefault::Now => Some(clock.now_for(&column.column_type)),
        written => {
            let arena = Bump::new();
            let value = literal(written)?;
            Some(coerce(value, column, &arena).value.to_value())
        }
    }
}
