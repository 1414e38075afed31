//! Numbers from and to texts, as MySQL reads and prints them.

use std::fmt::Write;

/// Reads the floating-point number that `text` starts with, after blanks. Gives it with the bytes read; 0
/// bytes if there is none. Too large a number becomes the largest double.
pub fn parse_f64_prefix(text: &[u8]) -> (f64, usize) {
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let mut at = blanks + matches!(text.get(blanks), Some(b'-' | b'+')) as usize;
    let digits =
        |at: usize| text[at.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return (0.0, 0);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let signed = matches!(text.get(at + 1), Some(b'+' | b'-')) as usize;
        let exponent = digits(at + 1 + signed);
        if exponent > 0 {
            at += 1 + signed + exponent;
        }
    }
    // What was matched is ASCII and in the form that Rust reads.
    let number: f64 =
        std::str::from_utf8(&text[blanks..at]).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    (number.clamp(-f64::MAX, f64::MAX), at)
}

/// Reads the integer that `text` starts with, after blanks: its magnitude (clipped to 64 bits), its sign, and
/// the bytes read; 0 bytes if there is none.
pub fn parse_integer_prefix(text: &[u8]) -> (u64, bool, usize) {
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let negative = text.get(blanks) == Some(&b'-');
    let start = blanks + matches!(text.get(blanks), Some(b'-' | b'+')) as usize;
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (0, false, 0);
    }
    let magnitude = text[start..start + digits]
        .iter()
        .fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0') as u64));
    (magnitude, negative, start + digits)
}

/// The powers of ten between which a number is printed without exponent.
const FIXED_EXPONENTS: std::ops::RangeInclusive<i32> = -15..=14;

/// Appends a double as MySQL prints it: the shortest digits that read back as the same number.
pub fn write_f64(number: f64, out: &mut String) {
    if number == 0.0 {
        out.push('0');
        return;
    }
    write_scientific(&format!("{number:e}"), out);
}

/// Appends a FLOAT as MySQL prints it: six digits.
pub fn write_f32(number: f32, out: &mut String) {
    if number == 0.0 {
        out.push('0');
        return;
    }
    write_scientific(&format!("{:.5e}", number as f64), out);
}

/// Turns `-1.2500e3` into `-1250`, or leaves it in that form without needless zeros.
fn write_scientific(text: &str, out: &mut String) {
    let Some((mantissa, exponent)) = text.split_once('e') else { return out.push_str(text) };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa = match mantissa.strip_prefix('-') {
        Some(rest) => {
            out.push('-');
            rest
        }
        None => mantissa,
    };
    let digits: String = mantissa.chars().filter(|character| *character != '.').collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    if !FIXED_EXPONENTS.contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let _ = write!(out, "e{exponent}");
    } else if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.push_str(digits);
            out.extend(std::iter::repeat_n('0', whole - digits.len()));
        } else {
            out.push_str(&digits[..whole]);
            out.push('.');
            out.push_str(&digits[whole..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(number: f64) -> String {
        let mut out = String::new();
        write_f64(number, &mut out);
        out
    }

    #[test]
    fn doubles_print_as_mysql_prints_them() {
        for (number, text) in [
            (0.0, "0"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (123456789012345680.0, "1.2345678901234568e17"),
            (-2.5e-20, "-2.5e-20"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            assert_eq!(printed(number), text);
        }
    }

    #[test]
    fn floats_print_with_six_digits() {
        for (number, text) in
            [(1.2345678f32, "1.23457"), (16777216.0, "16777200"), (0.1, "0.1"), (1e20, "1e20")]
        {
            let mut out = String::new();
            write_f32(number, &mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn a_number_is_read_as_far_as_it_goes() {
        assert_eq!(parse_f64_prefix(b" 12.5abc"), (12.5, 5));
        assert_eq!(parse_f64_prefix(b"1e5"), (1e5, 3));
        assert_eq!(parse_f64_prefix(b"1e"), (1.0, 1));
        assert_eq!(parse_f64_prefix(b".5"), (0.5, 2));
        assert_eq!(parse_f64_prefix(b"abc"), (0.0, 0));
        assert_eq!(parse_f64_prefix(b"inf"), (0.0, 0));
        assert_eq!(parse_f64_prefix(b"-1e999"), (-f64::MAX, 6));
        assert_eq!(parse_integer_prefix(b" -12x"), (12, true, 4));
        assert_eq!(parse_integer_prefix(b"99999999999999999999"), (u64::MAX, false, 20));
    }
}
