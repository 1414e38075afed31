//! The description of a column that is a literal alone. A plan serves every literal of a kind, so what
//! depends on the literal itself is filled in when the columns are sent: MariaDB's types and lengths.

use crate::ColumnMeta;
use types::ColumnType;

/// Longer texts keep the type that the plan has for them.
const TEXT_CHARS_MAX: usize = 16_383;

/// Describes a column by its literal, as it is written; `negated`: a minus stands before it. A parameter
/// keeps the plan's type, and so does a text with quotes or escapes in it.
pub(super) fn describe(column: &mut ColumnMeta, text: &str, negated: bool) {
    // A sign in front of a number may be a part of the literal.
    let (text, negated) = match text.strip_prefix('-') {
        Some(number) => (number.trim_start(), !negated),
        None => (text, negated),
    };
    let sign = u32::from(negated);
    match column.column_type {
        ColumnType::Int { .. } => {
            let Ok(value) = text.parse::<u64>() else { return };
            // The smallest numbers are one larger than the largest.
            let fits = |largest: u64| value <= largest + u64::from(negated);
            let (bytes, unsigned) = if fits(i32::MAX as u64) {
                (4, false)
            } else if fits(i64::MAX as u64) {
                (8, false)
            } else if negated {
                return;
            } else {
                (8, true)
            };
            column.column_type = ColumnType::Int { bytes, unsigned };
            column.display_chars = text.len() as u32 + sign;
        }
        ColumnType::Decimal { .. } => {
            let Some((whole, fraction)) = text.split_once('.') else { return };
            if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
                return;
            }
            let (Ok(precision), Ok(scale)) =
                (u8::try_from(whole.len() + fraction.len()), u8::try_from(fraction.len()))
            else {
                return;
            };
            column.column_type = ColumnType::Decimal { precision, scale, unsigned: false };
            column.decimals = scale;
            column.display_chars = u32::from(precision) + u32::from(scale > 0) + 1 + sign;
        }
        ColumnType::Double { .. }
            if text.starts_with(|first: char| first.is_ascii_digit() || first == '.') =>
        {
            column.display_chars = text.len() as u32 + sign
        }
        ColumnType::Varchar { collation, .. } => {
            let quote = ['\'', '"'].into_iter().find(|quote| text.len() > 1 && text.starts_with(*quote));
            let Some(quote) = quote else { return };
            let Some(inside) = text[1..].strip_suffix(quote) else { return };
            let chars = inside.chars().count();
            if chars > TEXT_CHARS_MAX || inside.contains(['\\', quote]) {
                return;
            }
            column.column_type = ColumnType::Varchar { chars: chars as u32, collation };
            column.display_chars = chars as u32;
        }
        _ => return,
    }
    column.not_null = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnTraits;
    use types::Collation;

    fn described(column_type: ColumnType, text: &str, negated: bool) -> (ColumnType, u32, bool) {
        let collation = column_type.collation();
        let mut column = ColumnMeta {
            name: String::new(),
            org_name: String::new(),
            table: String::new(),
            org_table: String::new(),
            database: String::new(),
            column_type,
            collation,
            not_null: false,
            traits: ColumnTraits::default(),
            decimals: 0,
            display_chars: 1000,
        };
        describe(&mut column, text, negated);
        (column.column_type, column.display_chars, column.not_null)
    }

    #[test]
    fn numbers_are_as_wide_as_they_are_written() {
        let bigint = ColumnType::Int { bytes: 8, unsigned: false };
        for (text, negated, bytes, unsigned, chars) in [
            ("0", false, 4, false, 1),
            ("2147483647", false, 4, false, 10),
            ("2147483648", false, 8, false, 10),
            ("2147483648", true, 4, false, 11),
            ("-1", false, 4, false, 2),
            ("9223372036854775807", false, 8, false, 19),
            ("9223372036854775808", false, 8, true, 19),
        ] {
            let expected = (ColumnType::Int { bytes, unsigned }, chars, true);
            assert_eq!(described(bigint.clone(), text, negated), expected, "{text}");
        }
        assert_eq!(described(bigint.clone(), "?", false), (bigint, 1000, false));
        let wide = ColumnType::Decimal { precision: 65, scale: 30, unsigned: false };
        let exact = ColumnType::Decimal { precision: 3, scale: 2, unsigned: false };
        assert_eq!(described(wide.clone(), "1.50", true), (exact, 6, true));
        assert_eq!(described(wide.clone(), "?", false), (wide, 1000, false));
    }

    #[test]
    fn texts_are_as_wide_as_they_are_unless_they_have_escapes() {
        let collation = Collation::Utf8mb4GeneralCi;
        let of = |chars| ColumnType::Varchar { chars, collation };
        assert_eq!(described(of(255), "'\u{fc} a'", false), (of(3), 3, true));
        assert_eq!(described(of(255), "\"it's\"", false), (of(4), 4, true));
        for kept in ["'it''s'", "'a\\n'", "'a' 'b'", "?", "'"] {
            assert_eq!(described(of(255), kept, false), (of(255), 1000, false), "{kept}");
        }
    }
}
