//! Literals as the scanner leaves them.

use crate::expr::SlotKind;
use types::ValueRef;

/// Where the bytes of a string are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the statement's own text: nothing to unescape.
    Text { from: u32, end: u32 },
    /// In the scan's buffer of unescaped strings.
    Unescaped { from: u32, end: u32 },
}

/// A literal, or the place of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Literal {
    Int(i64),
    UInt(u64),
    /// Digits and a point in the text, with a sign if `negative`.
    Decimal {
        from: u32,
        end: u32,
        negative: bool,
    },
    Double(f64),
    Text(Place),
    Binary(Place),
    /// The parameter's position among the statement's `?`.
    Parameter(u16),
}

impl Literal {
    /// `None` for a parameter, whose kind is known when it is bound.
    pub fn kind(&self) -> Option<SlotKind> {
        Some(match self {
            Literal::Int(_) => SlotKind::Int,
            Literal::UInt(_) => SlotKind::UInt,
            Literal::Decimal { .. } => SlotKind::Decimal,
            Literal::Double(_) => SlotKind::Double,
            Literal::Text(_) => SlotKind::Text,
            Literal::Binary(_) => SlotKind::Binary,
            Literal::Parameter(_) => return None,
        })
    }

    /// The value, `text` being the statement, `unescaped` the scan's buffer.
    #[inline]
    pub fn value<'a>(
        &self,
        text: &'a [u8],
        unescaped: &'a [u8],
        parameters: &[ValueRef<'a>],
    ) -> ValueRef<'a> {
        match *self {
            Literal::Int(value) => ValueRef::Int(value),
            Literal::UInt(value) => ValueRef::UInt(value),
            Literal::Double(value) => ValueRef::Double(value),
            Literal::Text(place) => ValueRef::Text(place.bytes(text, unescaped)),
            Literal::Binary(place) => ValueRef::Binary(place.bytes(text, unescaped)),
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
        // More digits than a DECIMAL has: MySQL goes on with a double.
        None => {
            let value: f64 = text.parse().unwrap_or(0.0);
            ValueRef::Double(if negative { -value } else { value })
        }
    }
}

/// The decimal number that digits with a point (and no exponent) mean; `None` if it has too many.
pub fn decimal(text: &str) -> Option<types::Decimal> {
    let (value, length) = types::Decimal::parse_prefix(text.as_bytes());
    (length == text.len()).then_some(value)
}

impl Place {
    #[inline]
    pub fn bytes<'a>(&self, text: &'a [u8], unescaped: &'a [u8]) -> &'a [u8] {
        match *self {
            Place::Text { from, end } => &text[from as usize..end as usize],
            Place::Unescaped { from, end } => &unescaped[from as usize..end as usize],
        }
    }
}
