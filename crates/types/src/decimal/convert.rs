//! Decimals from and to texts and other numbers.

use super::{Decimal, PRECISION_MAX, SCALE_MAX, power_of_ten};
use ethnum::I256;
use std::fmt;

impl Decimal {
    /// Reads the number that `text` starts with, after blanks: sign, digits, point, exponent. Gives it with
    /// the bytes read; 0 bytes if there is none. Too many digits after the point are rounded; too large a
    /// number becomes the largest.
    pub fn parse_prefix(text: &[u8]) -> (Decimal, usize) {
        let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let mut at = blanks;
        let negative = text.get(at) == Some(&b'-');
        if matches!(text.get(at), Some(b'-' | b'+')) {
            at += 1;
        }
        let (mut unscaled, mut scale, mut digits, mut any) = (I256::ZERO, 0i32, 0u8, false);
        let mut round_up = false;
        let mut first_dropped = true;
        let mut seen_point = false;
        loop {
            match text.get(at) {
                Some(b'.') if !seen_point => seen_point = true,
                Some(digit @ b'0'..=b'9') => {
                    any = true;
                    let digit = digit - b'0';
                    if digits < 75 {
                        unscaled = unscaled * 10 + I256::from(digit);
                        digits += (unscaled != 0) as u8;
                        scale += seen_point as i32;
                    } else {
                        if first_dropped {
                            round_up = digit >= 5;
                            first_dropped = false;
                        }
                        scale -= !seen_point as i32;
                    }
                }
                _ => break,
            }
            at += 1;
        }
        if !any {
            return (Decimal::ZERO, 0);
        }
        if round_up {
            unscaled += 1;
        }
        if let Some((exponent, length)) = parse_exponent(&text[at..]) {
            scale = scale.saturating_sub(exponent);
            at += length;
        }
        let unscaled = if negative { -unscaled } else { unscaled };
        (Decimal::from_parts(unscaled, scale, negative), at)
    }

    /// `unscaled / 10^scale` for any scale, rounded or clipped to what a DECIMAL holds.
    fn from_parts(unscaled: I256, scale: i32, negative: bool) -> Decimal {
        let largest = || {
            let largest = Decimal::largest(PRECISION_MAX, 0);
            if negative { largest.negate() } else { largest }
        };
        if unscaled == 0 {
            return Decimal::new(I256::ZERO, scale.clamp(0, SCALE_MAX as i32) as u8);
        }
        if scale < 0 {
            let power = u8::try_from(-scale).ok().and_then(power_of_ten);
            let value =
                power.and_then(|power| unscaled.checked_mul(power)).map(|value| Decimal::new(value, 0));
            return value.filter(|value| value.digits() <= PRECISION_MAX).unwrap_or_else(largest);
        }
        let Ok(small) = u8::try_from(scale) else { return Decimal::new(I256::ZERO, SCALE_MAX) };
        let value = Decimal::new(unscaled, small);
        let value =
            if small > SCALE_MAX { value.with_scale(SCALE_MAX).unwrap_or(Decimal::ZERO) } else { value };
        if value.digits().saturating_sub(value.scale) > PRECISION_MAX {
            return largest();
        }
        match value.digits().max(value.scale) {
            digits if digits > PRECISION_MAX => {
                value.with_scale(value.scale.saturating_sub(digits - PRECISION_MAX)).unwrap_or(value)
            }
            _ => value,
        }
    }

    /// The nearest decimal to a double's shortest decimal form; the largest for infinities, zero for NaN.
    pub fn from_f64(number: f64) -> Decimal {
        if number.is_infinite() {
            let largest = Decimal::largest(PRECISION_MAX, 0);
            return if number < 0.0 { largest.negate() } else { largest };
        }
        Decimal::parse_prefix(format!("{number:e}").as_bytes()).0
    }

    pub fn to_f64(&self) -> f64 {
        let unscaled = self.unscaled();
        // Both exact in a double: one correctly rounded division.
        if self.scale <= 22 && unscaled.unsigned_abs() < (1u128 << 53) {
            return unscaled.as_i64() as f64 / 10f64.powi(self.scale as i32);
        }
        self.exact_text().parse().unwrap_or(0.0)
    }

    /// Rounded to an integer; `None` if 64 bits do not hold it.
    pub fn to_i64(&self) -> Option<i64> {
        i64::try_from(self.with_scale(0)?.unscaled()).ok()
    }

    /// Rounded to an integer; `None` if it is negative or 64 bits do not hold it.
    pub fn to_u64(&self) -> Option<u64> {
        u64::try_from(self.with_scale(0)?.unscaled()).ok()
    }

    /// All digits that are there, not only those shown.
    fn exact_text(&self) -> String {
        Decimal { shown: self.scale, ..*self }.to_string()
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Decimal {
        Decimal::new(I256::from(number), 0)
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Decimal {
        Decimal::new(I256::from(number), 0)
    }
}

impl From<i128> for Decimal {
    fn from(number: i128) -> Decimal {
        Decimal::new(I256::from(number), 0)
    }
}

/// An exponent at the start of `text` and its length; `e` without digits is none.
fn parse_exponent(text: &[u8]) -> Option<(i32, usize)> {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return None;
    }
    let signed = matches!(text.get(1), Some(b'+' | b'-')) as usize;
    let digits = text[1 + signed..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let end = 1 + signed + digits;
    let magnitude = text[1 + signed..end]
        .iter()
        .fold(0i32, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0') as i32));
    let magnitude = magnitude.min(100_000);
    Some((if text[1] == b'-' { -magnitude } else { magnitude }, end))
}

impl fmt::Display for Decimal {
    /// With [`Decimal::shown`] digits after the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.rounded();
        let scale = value.scale as usize;
        let unscaled = value.unscaled();
        let sign = if unscaled < 0 { "-" } else { "" };
        let magnitude = unscaled.unsigned_abs();
        // Most numbers are short: 128-bit division is much cheaper.
        let digits = match u128::try_from(magnitude) {
            Ok(short) => short.to_string(),
            Err(_) => magnitude.to_string(),
        };
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            write!(f, "{sign}{whole}.{fraction}")
        } else {
            write!(f, "{sign}0.{digits:0>scale$}")
        }
    }
}
