//! What the evaluation of a call sees.

use crate::SqlError;
use crate::expr::coded;
use crate::expr::evaluate::{self, convert};
use crate::expr::node::{Call, Node};
use crate::expr::result_type::Class;
use crate::expr::{Context, Row};
use types::{Collation, ColumnType, DateTime, Decimal, Time, ValueRef};

pub(in crate::expr) type Result<T> = std::result::Result<T, SqlError>;

/// Evaluates one call over one row. The value lives as long as the row.
pub(in crate::expr) type Evaluate = for<'a, 'r> fn(&Arguments<'a, 'r>) -> Result<ValueRef<'a>>;

/// A call over a row. Each method evaluates an argument, and does so again if it is asked again.
pub(in crate::expr) struct Arguments<'a, 'r> {
    pub call: &'a Call,
    pub row: &'r Row<'a>,
    pub context: &'r Context<'a>,
}

impl<'a> Arguments<'a, '_> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.call.arguments.len()
    }

    /// The name that messages use.
    pub(crate) fn name(&self) -> &'static str {
        self.call.function.name
    }

    /// The most bytes that a function may give: `max_allowed_packet`.
    pub(crate) fn bytes_max(&self) -> usize {
        self.context.environment.packet_bytes_max()
    }

    /// True if the function may not give so many bytes.
    #[inline]
    pub(crate) fn is_too_long(&self, bytes: usize) -> bool {
        // `max_allowed_packet` cannot be lower, so the session is seldom asked.
        const PACKET_BYTES_MIN: usize = 1024;
        bytes > PACKET_BYTES_MIN && bytes > self.bytes_max()
    }

    #[inline]
    pub(crate) fn value(&self, index: usize) -> Result<ValueRef<'a>> {
        evaluate::value(&self.call.arguments[index], self.row, self.context)
    }

    /// The value where a number is wanted: a member and bits are one.
    #[inline]
    fn numeric(&self, index: usize) -> Result<ValueRef<'a>> {
        match &self.call.arguments[index] {
            Node::Coded { operand, of, .. } => {
                Ok(coded::number(evaluate::value(operand, self.row, self.context)?, of))
            }
            _ => self.value(index),
        }
    }

    /// `None` for NULL.
    #[inline]
    pub(crate) fn truth(&self, index: usize) -> Result<Option<bool>> {
        evaluate::truth(&self.call.arguments[index], self.row, self.context)
    }

    /// `None` for NULL.
    #[inline]
    pub(crate) fn text(&self, index: usize) -> Result<Option<&'a [u8]>> {
        let value = match &self.call.arguments[index] {
            Node::Coded { operand, of, .. } if !self.call.function.is_of_numbers() => {
                let stored = evaluate::value(operand, self.row, self.context)?;
                coded::shown(stored, of, self.context.arena)
            }
            _ => self.value(index)?,
        };
        Ok(convert::to_text(&value, self.context))
    }

    /// A text that is not made of another value; `None` for NULL.
    ///
    /// # Errors
    /// 4079 for another value.
    pub(crate) fn expected_text(&self, index: usize) -> Result<Option<&'a [u8]>> {
        let name = match self.value(index)? {
            ValueRef::Null => return Ok(None),
            ValueRef::Text(text) | ValueRef::Binary(text) => return Ok(Some(text)),
            ValueRef::Int(number) if i32::try_from(number).is_ok() => "int",
            ValueRef::Int(_) => "bigint",
            ValueRef::UInt(_) => "bigint unsigned",
            ValueRef::Decimal(_) => "decimal",
            ValueRef::Float(_) => "float",
            ValueRef::Double(_) => "double",
            ValueRef::Date(_) => "date",
            ValueRef::Time(_) => "time",
            ValueRef::DateTime(_) => "datetime",
        };
        Err(super::typing::illegal_type(name, self.name()))
    }

    /// The number of a member of the SET column that is the second argument, or 0 if the row does not have
    /// it. As in MariaDB, this is what FIND_IN_SET gives for a literal. `None` for other arguments.
    pub(super) fn place_in_set(&self, member: &[u8]) -> Result<Option<i64>> {
        let [Node::Constant(_) | Node::Slot(_), Node::Coded { operand, of, .. }] = &self.call.arguments[..]
        else {
            return Ok(None);
        };
        let ColumnType::Set { members, .. } = of else { return Ok(None) };
        let Some(at) = members.find(member) else { return Ok(None) };
        Ok(match evaluate::value(operand, self.row, self.context)? {
            ValueRef::UInt(bits) => Some(if bits >> at & 1 == 1 { at as i64 + 1 } else { 0 }),
            _ => None,
        })
    }

    /// Rounded and clipped; `None` for NULL.
    #[inline]
    pub(crate) fn int(&self, index: usize) -> Result<Option<i64>> {
        Ok(convert::to_i64(&self.numeric(index)?, self.context))
    }

    /// `None` for NULL.
    #[inline]
    pub(crate) fn double(&self, index: usize) -> Result<Option<f64>> {
        Ok(convert::to_f64(&self.numeric(index)?, self.context))
    }

    /// `None` for NULL.
    pub(crate) fn decimal(&self, index: usize) -> Result<Option<Decimal>> {
        Ok(convert::to_decimal(&self.numeric(index)?, self.context))
    }

    /// The number in its own kind; `None` for NULL.
    #[inline]
    pub(crate) fn number(&self, index: usize) -> Result<Option<convert::Number>> {
        Ok(convert::to_number(&self.numeric(index)?, self.context))
    }

    /// A date and time, of which month and day may be zero; `None` for NULL and for what is none.
    #[inline]
    pub(crate) fn moment(&self, index: usize) -> Result<Option<DateTime>> {
        Ok(convert::to_date_time(&self.value(index)?, self.context))
    }

    /// As [`Arguments::moment`], and `None` for a moment that NO_ZERO_DATE or NO_ZERO_IN_DATE forbids.
    pub(crate) fn allowed_moment(&self, index: usize) -> Result<Option<DateTime>> {
        Ok(convert::to_allowed_moment(&self.value(index)?, self.context))
    }

    /// `None` for NULL and for what is no time.
    #[inline]
    pub(crate) fn time(&self, index: usize) -> Result<Option<Time>> {
        Ok(convert::to_time(&self.value(index)?, self.context))
    }

    /// What a choice makes of the argument that it took.
    #[inline]
    pub(crate) fn converted(&self, value: ValueRef<'a>) -> ValueRef<'a> {
        evaluate::convert_to(&value, self.call.to, self.context)
    }

    /// New text in the result's own kind.
    pub(crate) fn give(&self, bytes: &[u8]) -> ValueRef<'a> {
        self.give_borrowed(self.context.arena.alloc_slice_copy(bytes))
    }

    /// Text that lies in a value already.
    #[inline]
    pub(crate) fn give_borrowed(&self, bytes: &'a [u8]) -> ValueRef<'a> {
        match self.call.class {
            Class::Binary => ValueRef::Binary(bytes),
            _ => ValueRef::Text(bytes),
        }
    }

    /// New bytes, whatever the result's kind.
    pub(crate) fn give_binary(&self, bytes: &[u8]) -> ValueRef<'a> {
        ValueRef::Binary(self.context.arena.alloc_slice_copy(bytes))
    }

    /// True if texts in the call are bytes rather than characters.
    #[inline]
    pub(crate) fn is_binary(&self) -> bool {
        self.call.collation == Collation::Binary
    }
}

/// An integer as a result.
#[inline]
pub(super) fn int<'a>(number: i64) -> Result<ValueRef<'a>> {
    Ok(ValueRef::Int(number))
}
