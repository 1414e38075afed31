//! Words of MySQL's that the `sqlparser` crate does not know, put in its terms before it sees them.

use sqlparser::ast::DateTimeField;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// MySQL's units of two parts, and the units of other dialects that stand for them between here and the binder.
const COMPOUND_UNITS: [(&str, Keyword, DateTimeField); 11] = [
    ("SECOND_MICROSECOND", Keyword::MICROSECONDS, DateTimeField::Microseconds),
    ("MINUTE_MICROSECOND", Keyword::MILLISECOND, DateTimeField::Millisecond),
    ("MINUTE_SECOND", Keyword::SECONDS, DateTimeField::Seconds),
    ("HOUR_MICROSECOND", Keyword::MILLISECONDS, DateTimeField::Milliseconds),
    ("HOUR_SECOND", Keyword::EPOCH, DateTimeField::Epoch),
    ("HOUR_MINUTE", Keyword::MINUTES, DateTimeField::Minutes),
    ("DAY_MICROSECOND", Keyword::NANOSECOND, DateTimeField::Nanosecond),
    ("DAY_SECOND", Keyword::NANOSECONDS, DateTimeField::Nanoseconds),
    ("DAY_MINUTE", Keyword::JULIAN, DateTimeField::Julian),
    ("DAY_HOUR", Keyword::HOURS, DateTimeField::Hours),
    ("YEAR_MONTH", Keyword::MONTHS, DateTimeField::Months),
];

/// The name of a unit in MySQL's words.
pub fn unit_name(field: &DateTimeField) -> String {
    match COMPOUND_UNITS.iter().find(|(_, _, stand_in)| stand_in == field) {
        Some((name, _, _)) => (*name).to_string(),
        None => field.to_string().to_ascii_uppercase(),
    }
}

/// Puts the tokens of a statement in the parser's terms: compound units, and the operator MOD.
pub fn translate(tokens: &mut [TokenWithSpan]) {
    // The last token that is no blank, and whether an operand ends there.
    let mut operand_before = false;
    for index in 0..tokens.len() {
        let follows_operand = operand_before;
        match &mut tokens[index].token {
            Token::Whitespace(_) => continue,
            Token::Word(word) if word.quote_style.is_none() => {
                let unit = COMPOUND_UNITS.iter().find(|(name, _, _)| word.value.eq_ignore_ascii_case(name));
                if let Some((_, keyword, _)) = unit {
                    word.keyword = *keyword;
                } else if follows_operand && word.value.eq_ignore_ascii_case("MOD") {
                    tokens[index].token = Token::Mod;
                    operand_before = false;
                    continue;
                } else {
                    // What stands in for a unit is to MySQL a name like any other.
                    if COMPOUND_UNITS.iter().any(|(_, stand_in, _)| *stand_in == word.keyword) {
                        word.keyword = Keyword::NoKeyword;
                    }
                    operand_before = is_operand(word.keyword);
                    continue;
                }
                operand_before = false;
            }
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
            | Token::RParen => operand_before = true,
            _ => operand_before = false,
        }
    }
}

/// A bare word that is a name or a value rather than a part of the grammar.
fn is_operand(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::END)
}
