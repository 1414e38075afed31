//! Numbers as texts in other forms.

use super::super::Result;
use super::super::calls::Arguments;
use super::super::convert::{self, Number};
use crate::expr::Function;
use types::ValueRef;

/// CONV, BIN and OCT.
pub(super) fn conv<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let (from, to) = match arguments.call.function {
        Function::Bin => (10, 2),
        Function::Oct => (10, 8),
        _ => match (arguments.int(1)?, arguments.int(2)?) {
            (Some(from), Some(to)) => (from, to),
            _ => return Ok(ValueRef::Null),
        },
    };
    let valid = |base: i64| (2..=36).contains(&base.unsigned_abs());
    let Some(text) = arguments.text(0)? else { return Ok(ValueRef::Null) };
    if !valid(from) || !valid(to) {
        return Ok(ValueRef::Null);
    }
    let text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let base = from.unsigned_abs() as u32;
    let magnitude = digits
        .iter()
        .map_while(|byte| (*byte as char).to_digit(base))
        .fold(0u64, |sum, digit| sum.saturating_mul(base as u64).saturating_add(digit as u64));
    let number = if negative { magnitude.wrapping_neg() } else { magnitude };
    let (sign, mut rest) = match to < 0 && (number as i64) < 0 {
        true => ("-", (number as i64).unsigned_abs()),
        false => ("", number),
    };
    let base = to.unsigned_abs();
    let mut reversed = Vec::new();
    loop {
        let digit = char::from_digit((rest % base) as u32, base as u32).unwrap_or('0');
        reversed.push(digit.to_ascii_uppercase());
        rest /= base;
        if rest == 0 {
            break;
        }
    }
    let digits: String = reversed.into_iter().rev().collect();
    Ok(arguments.give(format!("{sign}{digits}").as_bytes()))
}

/// FORMAT(x, digits): thousands apart.
pub(super) fn format<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let Some(number) = convert::to_number(&arguments.value(0)?, arguments.context) else {
        return Ok(ValueRef::Null);
    };
    let Some(digits) = arguments.int(1)? else { return Ok(ValueRef::Null) };
    let digits = digits.clamp(0, 30) as u8;
    let text = match number {
        Number::Double(number) => format!("{number:.*}", digits as usize),
        number => {
            let number = number.to_decimal();
            number.with_scale(digits).unwrap_or(number).to_string()
        }
    };
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped.push_str(fraction);
    Ok(arguments.give(grouped.as_bytes()))
}
