//! Literals, in the form in which the scanner stores them.

use std::fmt::Write;
use types::{Collation, ValueRef};

/// Where the bytes of a string are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LiteralPosition {
    /// In the statement's own text: nothing to unescape.
    Text { from: u32, end: u32 },
    /// In the scan's buffer of unescaped strings.
    Unescaped { from: u32, end: u32 },
}

/// A literal, or the number of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Literal {
    Int(i64),
    UInt(u64),
    /// Digits and a point in the text, with a sign if `negative`.
    Decimal {
        from: u32,
        end: u32,
        negative: bool,
    },
    Double(f64),
    Text(LiteralPosition),
    Binary(LiteralPosition),
    /// The parameter's position among the statement's `?`.
    Parameter(u16),
}

impl Literal {
    /// `None` for a parameter, whose kind is known when it is bound.
    pub(crate) fn kind(&self) -> Option<SlotKind> {
        Some(match self {
            Literal::Int(_) => SlotKind::Int,
            Literal::UInt(_) => SlotKind::UInt,
            Literal::Decimal { .. } => SlotKind::Decimal { scale: None },
            Literal::Double(_) => SlotKind::Double,
            Literal::Text(_) => SlotKind::Text,
            Literal::Binary(_) => SlotKind::Binary,
            Literal::Parameter(_) => return None,
        })
    }

    /// The value. `text` is the statement, `unescaped` the scan's buffer.
    #[inline]
    pub(crate) fn value<'a>(
        &self,
        text: &'a [u8],
        unescaped: &'a [u8],
        parameters: &[ValueRef<'a>],
    ) -> ValueRef<'a> {
        match *self {
            Literal::Int(value) => ValueRef::Int(value),
            Literal::UInt(value) => ValueRef::UInt(value),
            Literal::Double(value) => ValueRef::Double(value),
            Literal::Text(position) => ValueRef::Text(position.bytes(text, unescaped)),
            Literal::Binary(position) => ValueRef::Binary(position.bytes(text, unescaped)),
            Literal::Parameter(index) => {
                parameters.get(usize::from(index)).copied().unwrap_or(ValueRef::Null)
            }
            Literal::Decimal { from, end, negative } => {
                decimal_value(&text[from as usize..end as usize], negative)
            }
        }
    }
}

fn decimal_value<'a>(digits: &[u8], negative: bool) -> ValueRef<'a> {
    let text = std::str::from_utf8(digits).unwrap_or("0");
    match decimal(text) {
        Some(value) => {
            let unscaled = value.unscaled();
            ValueRef::Decimal(types::Decimal::new(if negative { -unscaled } else { unscaled }, value.scale()))
        }
        // A DECIMAL cannot have this many digits. MySQL uses a double then.
        None => {
            let value: f64 = text.parse().unwrap_or(0.0);
            ValueRef::Double(if negative { -value } else { value })
        }
    }
}

/// The decimal number that digits with a point (and no exponent) stand for. `None` if there are too many
/// digits.
pub(crate) fn decimal(text: &str) -> Option<types::Decimal> {
    let (value, length) = types::Decimal::parse_prefix(text.as_bytes());
    (length == text.len()).then_some(value)
}

impl LiteralPosition {
    #[inline]
    pub(crate) fn bytes<'a>(&self, text: &'a [u8], unescaped: &'a [u8]) -> &'a [u8] {
        match *self {
            LiteralPosition::Text { from, end } => &text[from as usize..end as usize],
            LiteralPosition::Unescaped { from, end } => &unescaped[from as usize..end as usize],
        }
    }
}

/// The kind of value in a slot. It is part of the identity of a statement's shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum SlotKind {
    Null,
    Int,
    UInt,
    /// With so many digits after the point, if that is known.
    Decimal {
        scale: Option<u8>,
    },
    Double,
    Text,
    /// A text from a subquery's column. It compares as the values of columns do.
    TextOf(Collation),
    Binary,
    Date,
    Time,
    DateTime,
    /// A FLOAT of a subquery's column.
    FloatOf,
    /// From a subquery's column, or a parameter, that has so many digits of seconds.
    TimeOf(u8),
    DateTimeOf(u8),
    /// A list of values of several kinds.
    Mixed,
}

impl SlotKind {
    pub(crate) fn of(value: &ValueRef<'_>) -> SlotKind {
        match value {
            ValueRef::Null => SlotKind::Null,
            ValueRef::Int(_) => SlotKind::Int,
            ValueRef::UInt(_) => SlotKind::UInt,
            ValueRef::Float(_) | ValueRef::Double(_) => SlotKind::Double,
            ValueRef::Decimal(_) => SlotKind::Decimal { scale: None },
            ValueRef::Date(_) => SlotKind::Date,
            // As in MariaDB, a parameter has either no digits of seconds or six.
            ValueRef::Time(time) if time.fsp == 0 => SlotKind::TimeOf(0),
            ValueRef::Time(_) => SlotKind::Time,
            ValueRef::DateTime(moment) if moment.fsp == 0 => SlotKind::DateTimeOf(0),
            ValueRef::DateTime(_) => SlotKind::DateTime,
            ValueRef::Text(_) => SlotKind::Text,
            ValueRef::Binary(_) => SlotKind::Binary,
        }
    }
}

/// Appends a value in the form in which SELECT would print it.
pub(crate) fn push_text(value: ValueRef<'_>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match value {
        ValueRef::Null => write!(out, "NULL"),
        ValueRef::Int(value) => write!(out, "{value}"),
        ValueRef::UInt(value) => write!(out, "{value}"),
        ValueRef::Float(value) => {
            types::number::write_f32(value, out);
            Ok(())
        }
        ValueRef::Double(value) => {
            types::number::write_f64(value, out);
            Ok(())
        }
        ValueRef::Decimal(value) => write!(out, "{value}"),
        ValueRef::Date(value) => write!(out, "{value}"),
        ValueRef::Time(value) => write!(out, "{value}"),
        ValueRef::DateTime(value) => write!(out, "{value}"),
        ValueRef::Text(bytes) | ValueRef::Binary(bytes) => write!(out, "{}", String::from_utf8_lossy(bytes)),
    };
}
