//! Words of MySQL's that the `sqlparser` crate does not know, put in its terms before it sees them.

use sqlparser::ast::DateTimeField;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

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

/// Puts the tokens of a statement in the parser's terms: compound units, the operators MOD, `&&` and `||`, and
/// LOCK IN SHARE MODE, which means nothing here.
pub fn translate(tokens: &mut [TokenWithSpan]) {
    for token in tokens.iter_mut() {
        match token.token {
            Token::Overlap => token.token = Token::make_keyword("AND"),
            // Without PIPES_AS_CONCAT.
            Token::StringConcat => token.token = Token::make_keyword("OR"),
            _ => {}
        }
    }
    leave_out_share_mode(tokens);
    // The last token that is no blank, and whether an operand ends there.
    let mut operand_before = false;
    for token in tokens.iter_mut() {
        let follows_operand = operand_before;
        match &mut token.token {
            Token::Whitespace(_) => continue,
            Token::Word(word) if word.quote_style.is_none() => {
                let unit = COMPOUND_UNITS.iter().find(|(name, _, _)| word.value.eq_ignore_ascii_case(name));
                if let Some((_, keyword, _)) = unit {
                    word.keyword = *keyword;
                } else if follows_operand && word.value.eq_ignore_ascii_case("MOD") {
                    token.token = Token::Mod;
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

fn leave_out_share_mode(tokens: &mut [TokenWithSpan]) {
    let words: Vec<usize> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
        .map(|(at, _)| at)
        .collect();
    let is = |token: &Token, name: &str| match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
        _ => false,
    };
    for places in words.windows(4) {
        let phrase = ["LOCK", "IN", "SHARE", "MODE"];
        if places.iter().zip(phrase).all(|(at, name)| is(&tokens[*at].token, name)) {
            places.iter().for_each(|at| tokens[*at].token = Token::Whitespace(Whitespace::Space));
        }
    }
}

/// A bare word that is a name or a value rather than a part of the grammar.
fn is_operand(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::END)
}
