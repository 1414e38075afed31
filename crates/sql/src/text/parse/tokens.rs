//! Words of MySQL that the `sqlparser` crate does not know. They are replaced by words that it knows.

use super::comments;
use sqlparser::ast::{DateTimeField, ObjectName, ObjectNamePart, Value};
use sqlparser::dialect::MySqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace};

/// MySQL's units of two parts, and the units of other dialects that stand for them between here and the
/// binder.
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
pub(crate) fn unit_name(field: &DateTimeField) -> String {
    match COMPOUND_UNITS.iter().find(|(_, _, stand_in)| stand_in == field) {
        Some((name, _, _)) => (*name).to_string(),
        None => field.to_string().to_ascii_uppercase(),
    }
}

/// Cuts a statement into tokens. The crate's tokenizer loses its way in @@`name`: here that is the word
/// `@@name`.
///
/// For the parser @@`default`.x becomes @@global.`default`.x: bare, and without a scope, the word is none of
/// a cache.
pub(super) fn tokenize(text: &str, for_parser: bool) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let dialect = MySqlDialect {};
    let cut = |text: &str| Tokenizer::new(&dialect, text).with_unescape(true).tokenize_with_location();
    let names = if text.contains("@@`") { comments::quoted_variables(text) } else { Vec::new() };
    if names.is_empty() {
        return cut(text);
    }
    let mut spaced = String::with_capacity(text.len() + names.len());
    let mut from = 0;
    // Line and column, from 0, of each blank that is put in.
    let mut blanks = Vec::new();
    for name in names {
        spaced.push_str(&text[from..name]);
        let line = spaced.rfind('\n').map_or(0, |end| end + 1);
        blanks.push((spaced.matches('\n').count() as u64, spaced[line..].chars().count() as u64));
        spaced.push(' ');
        from = name;
    }
    spaced.push_str(&text[from..]);
    let mut tokens: Vec<TokenWithSpan> = Vec::new();
    let mut rest = cut(&spaced)?.into_iter();
    while let Some(mut token) = rest.next() {
        for place in [&mut token.span.start, &mut token.span.end] {
            let before = |blank: &&(u64, u64)| blank.0 + 1 == place.line && blank.1 + 1 < place.column;
            place.column -= blanks.iter().filter(before).count() as u64;
        }
        if token.token != Token::AtAt {
            tokens.push(token);
            continue;
        }
        // The blank, then the name.
        rest.next();
        let Some(TokenWithSpan { token: Token::Word(name), span }) = rest.next() else { break };
        let span = Span::new(token.span.start, span.end);
        if for_parser && name.value == engine::DEFAULT_CACHE {
            tokens.push(TokenWithSpan::new(Token::make_word("@@global", None), span));
            tokens.push(TokenWithSpan::new(Token::Period, span));
            tokens.push(TokenWithSpan::new(Token::make_word(&name.value, Some('`')), span));
        } else {
            let name = format!("@@{}", name.value);
            tokens.push(TokenWithSpan::new(Token::make_word(&name, None), span));
        }
    }
    Ok(tokens)
}

/// Translates the tokens of a statement for the parser: compound units, the operators MOD, `&&` and `||`,
/// LOCK IN SHARE MODE, and WAIT n behind FOR UPDATE.
pub(crate) fn translate(tokens: &mut [TokenWithSpan]) {
    for token in tokens.iter_mut() {
        match token.token {
            Token::Overlap => token.token = Token::make_keyword("AND"),
            // Without PIPES_AS_CONCAT.
            Token::StringConcat => token.token = Token::make_keyword("OR"),
            _ => {}
        }
    }
    locking_clauses(tokens);
    modifiers(tokens);
    // The last token that is not a blank, and whether an operand ends there.
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
                    // In MySQL, the word that replaces a unit here is a name like any other.
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

/// LOCK IN SHARE MODE becomes FOR SHARE, WAIT n a table called n, or by the name of a slot, behind OF
/// ([`wait_seconds`]).
fn locking_clauses(tokens: &mut [TokenWithSpan]) {
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
            tokens[places[0]].token = Token::make_keyword("FOR");
            tokens[places[1]].token = Token::make_keyword("SHARE");
            places[2..].iter().for_each(|at| tokens[*at].token = Token::Whitespace(Whitespace::Space));
        }
    }
    let words: Vec<usize> =
        words.into_iter().filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    for places in words.windows(4) {
        let [first, kind, wait, count] = [0, 1, 2, 3].map(|at| &tokens[places[at]].token);
        let is_locking = is(first, "FOR") && (is(kind, "UPDATE") || is(kind, "SHARE")) && is(wait, "WAIT");
        if is_locking && let Token::Number(seconds, _) | Token::Placeholder(seconds) = count {
            let name = Token::make_word(seconds, Some('`'));
            tokens[places[2]].token = Token::make_keyword("OF");
            tokens[places[3]].token = name;
        }
    }
}

/// UPDATE IGNORE becomes UPDATE OR IGNORE. The other modifiers of UPDATE and DELETE have no effect here:
/// there are no priorities, and a DELETE has no errors that IGNORE would suppress.
fn modifiers(tokens: &mut [TokenWithSpan]) {
    let mut words = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
    let Some(first) = words.next() else { return };
    let words: Vec<usize> = words.take(3).collect();
    let is = |token: &Token, name: &str| match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
        _ => false,
    };
    let updates = is(&tokens[first].token, "UPDATE");
    if !updates && !is(&tokens[first].token, "DELETE") {
        return;
    }
    for at in words {
        let token = &tokens[at].token;
        if is(token, "LOW_PRIORITY") || !updates && (is(token, "QUICK") || is(token, "IGNORE")) {
            tokens[at].token = Token::Whitespace(Whitespace::Space);
        } else {
            // The space between the two words is used for it.
            if updates && is(token, "IGNORE") && at > first + 1 {
                tokens[first + 1].token = Token::make_keyword("OR");
            }
            return;
        }
    }
}

/// The n of WAIT n in a locking clause, as it would stand in an expression; `None` for a table's name, which
/// only other dialects have there.
pub(crate) fn wait_seconds(of: &ObjectName) -> Option<Value> {
    let [ObjectNamePart::Identifier(name)] = of.0.as_slice() else { return None };
    name.quote_style?;
    Some(match name.value.starts_with('?') {
        true => Value::Placeholder(name.value.clone()),
        false => Value::Number(name.value.clone(), false),
    })
}

/// A word without quotes that is a name or a value, and not a part of the grammar.
fn is_operand(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::END)
}
