//! Values, owned and borrowed.

use crate::{Date, DateTime, Decimal, Time};

/// A value that borrows its bytes from a row image, a packet or a [`Value`].
///
/// YEAR columns give [`ValueRef::UInt`] (0 or 1901 to 2155), and so do ENUM, SET and BIT columns, with their
/// numbers; TIMESTAMP columns give [`ValueRef::DateTime`], and UUID, INET6 and INET4 columns their bytes.
/// Equality here is that of the representation, not SQL's `=`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ValueRef<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(Decimal),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    /// Characters in UTF-8, for every character set of the column.
    Text(&'a [u8]),
    Binary(&'a [u8]),
}

/// A value that owns its bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(Decimal),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    Text(Vec<u8>),
    Binary(Vec<u8>),
}

impl Value {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Int(*value),
            Value::UInt(value) => ValueRef::UInt(*value),
            Value::Float(value) => ValueRef::Float(*value),
            Value::Double(value) => ValueRef::Double(*value),
            Value::Decimal(value) => ValueRef::Decimal(*value),
            Value::Date(value) => ValueRef::Date(*value),
            Value::Time(value) => ValueRef::Time(*value),
            Value::DateTime(value) => ValueRef::DateTime(*value),
            Value::Text(bytes) => ValueRef::Text(bytes),
            Value::Binary(bytes) => ValueRef::Binary(bytes),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// A text value of these characters.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into().into_bytes())
    }
}

impl<'a> ValueRef<'a> {
    pub fn to_value(&self) -> Value {
        match *self {
            ValueRef::Null => Value::Null,
            ValueRef::Int(value) => Value::Int(value),
            ValueRef::UInt(value) => Value::UInt(value),
            ValueRef::Float(value) => Value::Float(value),
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::Decimal(value) => Value::Decimal(value),
            ValueRef::Date(value) => Value::Date(value),
            ValueRef::Time(value) => Value::Time(value),
            ValueRef::DateTime(value) => Value::DateTime(value),
            ValueRef::Text(bytes) => Value::Text(bytes.to_vec()),
            ValueRef::Binary(bytes) => Value::Binary(bytes.to_vec()),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The bytes of a text or binary value.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match *self {
            ValueRef::Text(bytes) | ValueRef::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }
}
