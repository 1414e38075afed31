//! The value of a column that a statement does not mention.

use super::literal;
use super::{ColumnDefault, ColumnExtras};
use crate::expr::{Environment, coerce};
use crate::variables::time_zones::Zone;
use bumpalo::Bump;
use types::temporal::read_date_time;
use types::{Column, ColumnType, Date, DateTime, Decimal, Time, Value, ValueRef};

/// The zero value of a type. A NOT NULL column without a default gets it where that is allowed.
pub(crate) fn implicit_default(column: &Column) -> Value {
    if column.nullable {
        return Value::Null;
    }
    let date = Date { year: 0, month: 0, day: 0 };
    match column.column_type {
        ColumnType::Int { unsigned: false, .. } => Value::Int(0),
        // The first member.
        ColumnType::Enum { .. } => Value::UInt(1),
        ColumnType::Int { .. } | ColumnType::Year | ColumnType::Set { .. } | ColumnType::Bit { .. } => {
            Value::UInt(0)
        }
        ColumnType::Code(code) => Value::Binary(vec![0; code.bytes()]),
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

/// The session's clock: microseconds since 1970 in UTC, and the offset of the session's time zone
/// at that moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub unix_micros: i64,
    pub zone_seconds: i32,
}

impl Clock {
    pub(crate) fn of(environment: &dyn Environment) -> Clock {
        let unix_micros = environment.now_micros();
        Clock { unix_micros, zone_seconds: environment.time_zone().seconds_at(unix_micros) }
    }

    /// The current time as a DATETIME column (in the session's zone) or a TIMESTAMP column (in UTC) stores
    /// it.
    pub(crate) fn now_for(&self, column_type: &ColumnType) -> Value {
        Value::DateTime(self.moment_for(column_type))
    }

    fn moment_for(&self, column_type: &ColumnType) -> DateTime {
        let fsp = match *column_type {
            ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => fsp,
            _ => 0,
        };
        let zone = match column_type {
            ColumnType::Timestamp { .. } => 0,
            _ => i64::from(self.zone_seconds) * 1_000_000,
        };
        DateTime::from_unix_micros(self.unix_micros + zone, fsp).with_fsp(fsp)
    }

    /// What a column stores for NULL: a TIMESTAMP that cannot be NULL has the present time.
    pub(crate) fn in_place_of_null(&self, column: &Column) -> Option<ValueRef<'static>> {
        let takes_now = !column.nullable && column.column_type.is_timestamp();
        takes_now.then(|| ValueRef::DateTime(self.moment_for(&column.column_type)))
    }

    /// What a column is given in place of a value that needs a clock: a time of a day becomes one of today
    /// where a date is wanted.
    pub(crate) fn in_place_of(&self, value: &ValueRef<'_>, column: &Column) -> Option<Value> {
        use ColumnType::{Date, DateTime as Moment, Timestamp};
        match (value, &column.column_type) {
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

/// Makes the default of a TIMESTAMP column, which is kept in UTC, what a clock of `zone` shows then.
pub(super) fn show_in_zone(extras: &mut ColumnExtras, column_type: &ColumnType, zone: &Zone) {
    if let (ColumnDefault::Text(text), ColumnType::Timestamp { .. }) = (&mut extras.default, column_type)
        && let Some(stored) = read_date_time(text.as_bytes())
    {
        *text = zone.from_utc(stored.value).to_string();
    }
}

/// The value of a column that is not mentioned. `None` if it has no default and cannot be NULL.
pub(crate) fn column_default(column: &Column, extras: &ColumnExtras, clock: &Clock) -> Option<Value> {
    match &extras.default {
        // These are computed with the row.
        _ if extras.generated.is_some() => Some(Value::Null),
        ColumnDefault::Expression(_) => Some(Value::Null),
        ColumnDefault::Unset if column.nullable => Some(Value::Null),
        // As in MariaDB, an ENUM that cannot be NULL begins with its first member.
        ColumnDefault::Unset if matches!(column.column_type, ColumnType::Enum { .. }) => {
            Some(implicit_default(column))
        }
        ColumnDefault::Unset => None,
        ColumnDefault::Null => Some(Value::Null),
        ColumnDefault::Now => Some(clock.now_for(&column.column_type)),
        written => {
            let arena = Bump::new();
            let value = literal(written)?;
            Some(coerce(value, column, None, &arena).value.to_value())
        }
    }
}
