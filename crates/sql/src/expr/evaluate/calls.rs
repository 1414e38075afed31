//! Calls of functions.

use super::super::node::Call;
use super::super::result_type::Class;
use super::super::{Context, Function, Row};
use super::{Result, compare, convert, convert_to, number, session, text, time, truth, value};
use std::cmp::Ordering;
use types::ValueRef;

/// A call over a row.
pub(super) struct Arguments<'a, 'r> {
    pub call: &'a Call,
    pub row: &'r Row<'a>,
    pub context: &'r Context<'a>,
}

impl<'a> Arguments<'a, '_> {
    pub fn len(&self) -> usize {
        self.call.arguments.len()
    }

    pub fn value(&self, index: usize) -> Result<ValueRef<'a>> {
        value(&self.call.arguments[index], self.row, self.context)
    }

    /// `None` for NULL.
    pub fn text(&self, index: usize) -> Result<Option<&'a [u8]>> {
        Ok(convert::to_text(&self.value(index)?, self.context))
    }

    /// Rounded and clipped; `None` for NULL.
    pub fn int(&self, index: usize) -> Result<Option<i64>> {
        Ok(convert::to_i64(&self.value(index)?, self.context))
    }

    pub fn double(&self, index: usize) -> Result<Option<f64>> {
        Ok(convert::to_f64(&self.value(index)?, self.context))
    }

    /// New text in the result's own kind.
    pub fn give(&self, bytes: &[u8]) -> ValueRef<'a> {
        self.give_borrowed(self.context.arena.alloc_slice_copy(bytes))
    }

    /// Text that lies in a value already.
    pub fn give_borrowed(&self, bytes: &'a [u8]) -> ValueRef<'a> {
        match self.call.class {
            Class::Binary => ValueRef::Binary(bytes),
            _ => ValueRef::Text(bytes),
        }
    }

    /// True if texts in the call are bytes rather than characters.
    pub fn is_binary(&self) -> bool {
        self.call.collation == types::Collation::Binary
    }
}

pub(super) fn call<'a>(call: &'a Call, row: &Row<'a>, context: &Context<'a>) -> Result<ValueRef<'a>> {
    use Function as F;
    let arguments = Arguments { call, row, context };
    match call.function {
        F::If
        | F::IfNull
        | F::NullIf
        | F::Coalesce
        | F::IsNull
        | F::Greatest
        | F::Least
        | F::Interval
        | F::Elt
        | F::Field
        | F::StrCmp => choice(&arguments),
        F::Version
        | F::Database
        | F::User
        | F::CurrentUser
        | F::ConnectionId
        | F::LastInsertId
        | F::FoundRows
        | F::RowCount
        | F::Uuid
        | F::Sleep
        | F::Benchmark
        | F::Charset
        | F::CollationOf
        | F::Coercibility => session::call(&arguments),
        F::Concat
        | F::ConcatWs
        | F::Substring
        | F::SubstringIndex
        | F::Left
        | F::Right
        | F::Length
        | F::CharLength
        | F::BitLength
        | F::Upper
        | F::Lower
        | F::Trim
        | F::LeftTrim
        | F::RightTrim
        | F::Replace
        | F::Insert
        | F::LeftPad
        | F::RightPad
        | F::Repeat
        | F::Space
        | F::Reverse
        | F::Instr
        | F::Locate
        | F::FindInSet
        | F::Hex
        | F::Unhex
        | F::Ascii
        | F::Ord
        | F::Char
        | F::Bin
        | F::Oct
        | F::Conv
        | F::Quote
        | F::Format
        | F::Md5
        | F::Sha1
        | F::Crc32 => text::call(&arguments),
        F::Abs
        | F::Ceiling
        | F::Floor
        | F::Round
        | F::Truncate
        | F::Mod
        | F::Power
        | F::SquareRoot
        | F::Sign
        | F::Random
        | F::Exp
        | F::Ln
        | F::Log
        | F::Log2
        | F::Log10
        | F::Pi
        | F::Sin
        | F::Cos
        | F::Tan
        | F::Cot
        | F::Asin
        | F::Acos
        | F::Atan
        | F::Radians
        | F::Degrees
        | F::BitCount => number::call(&arguments),
        _ => time::call(&arguments),
    }
}

fn choice<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (call, context) = (arguments.call, arguments.context);
    let converted = |value: ValueRef<'a>| convert_to(&value, call.to, context);
    Ok(match call.function {
        Function::If => {
            let condition = truth(&call.arguments[0], arguments.row, context)? == Some(true);
            converted(arguments.value(if condition { 1 } else { 2 })?)
        }
        Function::IfNull | Function::Coalesce => {
            for index in 0..arguments.len() {
                let value = arguments.value(index)?;
                if !value.is_null() {
                    return Ok(converted(value));
                }
            }
            ValueRef::Null
        }
        Function::NullIf => {
            let (left, right) = (arguments.value(0)?, arguments.value(1)?);
            match compare(&left, &right, call.collation, context) {
                Some(Ordering::Equal) => ValueRef::Null,
                _ => left,
            }
        }
        Function::IsNull => ValueRef::Int(arguments.value(0)?.is_null() as i64),
        Function::Greatest | Function::Least => {
            let wanted = if call.function == Function::Greatest { Ordering::Greater } else { Ordering::Less };
            let mut best = converted(arguments.value(0)?);
            for index in 1..arguments.len() {
                let value = converted(arguments.value(index)?);
                match compare(&value, &best, call.collation, context) {
                    None => return Ok(ValueRef::Null),
                    Some(order) if order == wanted => best = value,
                    Some(_) => {}
                }
            }
            best
        }
        Function::Interval => {
            let Some(number) = arguments.double(0)? else { return Ok(ValueRef::Int(-1)) };
            let mut passed = 0;
            for index in 1..arguments.len() {
                match arguments.double(index)? {
                    Some(bound) if bound > number => break,
                    _ => passed = index as i64,
                }
            }
            ValueRef::Int(passed)
        }
        Function::Elt => match arguments.int(0)? {
            Some(index) if index >= 1 && (index as usize) < arguments.len() => {
                match arguments.text(index as usize)? {
                    Some(text) => arguments.give_borrowed(text),
                    None => ValueRef::Null,
                }
            }
            _ => ValueRef::Null,
        },
        Function::Field => {
            let wanted = arguments.value(0)?;
            for index in 1..arguments.len() {
                let value = arguments.value(index)?;
                if compare(&wanted, &value, call.collation, context) == Some(Ordering::Equal) {
                    return Ok(ValueRef::Int(index as i64));
                }
            }
            ValueRef::Int(0)
        }
        _ => match (arguments.text(0)?, arguments.text(1)?) {
            (Some(a), Some(b)) => ValueRef::Int(call.collation.compare(a, b) as i64),
            _ => ValueRef::Null,
        },
    })
}
