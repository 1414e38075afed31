//! Words of MySQL that the `sqlparser` crate does not know. They are replaced by words that it knows.

use super::comments::{self, Piece, Pieces};
use crate::text::mode::{LexicalMode, unquote};
use sqlparser::ast::{DateTimeField, ObjectName, ObjectNamePart, Value};
use sqlparser::dialect::MySqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace};
use std::ops::Range;

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

/// Cuts a statement into tokens. Quotes and comments are found as the splitter of statements finds them, and
/// the crate's tokenizer reads only what is between them. So it cannot disagree about where a text ends, and
/// no mode concerns it.
///
/// @@`name` is the word `@@name`. For the parser @@`default`.x becomes @@global.`default`.x: bare, and
/// without a scope, the word is none of a cache.
pub(in crate::text) fn tokenize(
    text: &str,
    mode: LexicalMode,
    for_parser: bool,
) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let mut cutter = Cutter {
        text,
        mode,
        for_parser,
        tokens: Vec::new(),
        run: 0..0,
        word: 0,
        read: 0,
        place: Location::new(1, 1),
    };
    for (piece, from, end) in Pieces::new(text, mode) {
        match piece {
            Piece::Word if matches!(&text[from..end], "@" | "@@") => cutter.at_signs(from, end)?,
            Piece::Word | Piece::Blank => {
                cutter.run.end = end;
                cutter.word = from;
            }
            Piece::Symbol => {
                cutter.run.end = end;
                cutter.word = end;
                // The tokenizer would take some of these for comments that are none here, and others for
                // operators of other dialects.
                let glued = ["--", "!!", "!~", "~", "<@", "^@"];
                if glued.iter().any(|glued| text[from..].starts_with(glued)) {
                    cutter.end_run()?;
                }
            }
            Piece::Quoted => cutter.quoted(from, end)?,
            Piece::Unclosed => return Err(cutter.error(from, "Unterminated string literal")),
            Piece::Comment if comments::is_open(&text[from..end]) => {
                return Err(cutter.error(end, "Unexpected EOF while in a multi-line comment"));
            }
            Piece::Comment | Piece::ExecutableStart | Piece::ExecutableEnd => {
                cutter.end_run()?;
                cutter.push(from, end, Token::Whitespace(Whitespace::Space));
            }
        }
    }
    cutter.end_run()?;
    Ok(cutter.tokens)
}

/// Makes tokens of pieces.
struct Cutter<'a> {
    text: &'a str,
    mode: LexicalMode,
    for_parser: bool,
    tokens: Vec<TokenWithSpan>,
    /// What is between quotes and comments, up to here.
    run: Range<usize>,
    /// Where the last word of the run begins. Its end if it does not end in a word.
    word: usize,
    /// Line and column of the byte `read`.
    place: Location,
    read: usize,
}

impl Cutter<'_> {
    /// The line and column of a byte. Bytes are asked for in ascending order.
    fn place(&mut self, at: usize) -> Location {
        for character in self.text[self.read..at].chars() {
            if character == '\n' {
                self.place = Location::new(self.place.line + 1, 1);
            } else {
                self.place.column += 1;
            }
        }
        self.read = at;
        self.place
    }

    fn push(&mut self, from: usize, end: usize, token: Token) {
        let span = Span::new(self.place(from), self.place(end));
        self.tokens.push(TokenWithSpan::new(token, span));
        self.run = end..end;
        self.word = end;
    }

    fn error(&mut self, at: usize, message: &str) -> TokenizerError {
        TokenizerError { message: message.to_owned(), location: self.place(at) }
    }

    /// Gives the run to the tokenizer.
    fn end_run(&mut self) -> Result<(), TokenizerError> {
        let Range { start, end } = self.run.clone();
        (self.run, self.word) = (end..end, end);
        if start == end {
            return Ok(());
        }
        let base = self.place(start);
        let moved = |mut place: Location| {
            if place.line == 1 {
                place.column += base.column - 1;
            }
            place.line += base.line - 1;
            place
        };
        let dialect = MySqlDialect {};
        Tokenizer::new(&dialect, &self.text[start..end])
            .tokenize_with_location_into_buf_with_mapper(&mut self.tokens, |mut token| {
                token.span = Span::new(moved(token.span.start), moved(token.span.end));
                as_number(&mut token.token);
                token
            })
            .map_err(|error| TokenizerError { location: moved(error.location), ..error })
    }

    /// `@` or `@@` with no name directly behind it. The tokenizer would take the next character for one.
    fn at_signs(&mut self, from: usize, end: usize) -> Result<(), TokenizerError> {
        self.end_run()?;
        let next = self.text.as_bytes().get(end).copied().unwrap_or(b' ');
        let is_quoted = matches!(next, b'`' | b'"') && !self.mode.quotes_text(next);
        if is_quoted && end - from == 2 {
            self.run.end = end;
            self.word = from;
        } else {
            self.push(from, end, if end - from == 1 { Token::AtSign } else { Token::AtAt });
        }
        Ok(())
    }

    /// A quoted text or name, with what stands directly before it and belongs to it.
    fn quoted(&mut self, from: usize, end: usize) -> Result<(), TokenizerError> {
        let quote = self.text.as_bytes()[from];
        let inner = &self.text[from + 1..end - 1];
        let is_name = !self.mode.quotes_text(quote);
        // A backslash that escapes never splits a character: what it escapes is copied from its first byte.
        let mut value = Vec::with_capacity(inner.len());
        unquote(inner.as_bytes(), quote, self.mode, &mut value);
        let value = String::from_utf8_lossy(&value).into_owned();
        // Behind a point it is a name by itself.
        let is_member = self.text[..self.word].ends_with('.');
        let before = if is_member { "" } else { &self.text[self.word..self.run.end] };
        let is_digits = |digits: &[u8], most: u8| {
            quote == b'\'' && digits.iter().all(|byte| byte.is_ascii_hexdigit() && *byte <= most)
        };
        let token = match before {
            "@@" if is_name => {
                self.run.end = self.word;
                self.end_run()?;
                let at = self.word;
                self.system_variable(at, end, &value);
                return Ok(());
            }
            "x" | "X" if is_digits(inner.as_bytes(), b'f') => Some(Token::HexStringLiteral(value.clone())),
            "b" | "B" if is_digits(inner.as_bytes(), b'1') => {
                Some(Token::SingleQuotedByteStringLiteral(value.clone()))
            }
            "n" | "N" if quote == b'\'' => Some(Token::NationalStringLiteral(value.clone())),
            _ => None,
        };
        if let Some(token) = token {
            self.run.end = self.word;
            self.end_run()?;
            let at = self.word;
            self.push(at, end, token);
            return Ok(());
        }
        self.end_run()?;
        if !is_name && self.continues_text(&value, end) {
            return Ok(());
        }
        let token = match quote {
            _ if is_name => Token::make_word(&value, Some('`')),
            b'"' => Token::DoubleQuotedString(value),
            _ => Token::SingleQuotedString(value),
        };
        self.push(from, end, token);
        Ok(())
    }

    /// Adds a text to the text before it, if nothing but blanks and comments is between them: they are one.
    fn continues_text(&mut self, value: &str, end: usize) -> bool {
        let mut before =
            self.tokens.iter_mut().rev().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let (last, last_but_one) = (before.next(), before.next());
        // A name is one text.
        let is_alias = matches!(
            last_but_one.map(|token| &token.token),
            Some(Token::Word(word)) if word.keyword == Keyword::AS && word.quote_style.is_none()
        );
        match last.filter(|_| !is_alias).map(|token| &mut token.token) {
            Some(
                Token::SingleQuotedString(text)
                | Token::DoubleQuotedString(text)
                | Token::NationalStringLiteral(text),
            ) if self.for_parser => {
                text.push_str(value);
                (self.run, self.word) = (end..end, end);
                true
            }
            _ => false,
        }
    }

    fn system_variable(&mut self, from: usize, end: usize, name: &str) {
        if self.for_parser && name == engine::DEFAULT_CACHE {
            self.push(from, end, Token::make_word("@@global", None));
            self.push(end, end, Token::Period);
            self.push(end, end, Token::make_word(name, Some('`')));
        } else {
            self.push(from, end, Token::make_word(&format!("@@{name}"), None));
        }
    }
}

/// Translates the tokens of a statement for the parser: compound units, the operators MOD, `&&` and `||`,
/// NOT where it binds strongly, lists of tables in parentheses, LOCK IN SHARE MODE, and WAIT n behind FOR
/// UPDATE.
pub(crate) fn translate(tokens: &mut Vec<TokenWithSpan>, mode: LexicalMode) {
    let concatenates = mode.has(LexicalMode::PIPES_AS_CONCAT);
    for token in tokens.iter_mut() {
        match token.token {
            Token::Overlap => token.token = Token::make_keyword("AND"),
            Token::StringConcat if !concatenates => token.token = Token::make_keyword("OR"),
            _ => {}
        }
    }
    if mode.has(LexicalMode::HIGH_NOT_PRECEDENCE) {
        strong_nots(tokens);
    }
    introduced_bits(tokens);
    table_lists(tokens);
    joins_without_condition(tokens);
    locking_clauses(tokens);
    interval_functions(tokens);
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
                    operand_before = true;
                    continue;
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

/// `0x41` and `0b1` are numbers; `X'41'` is not.
fn as_number(token: &mut Token) {
    let is_bits = |word: &str| {
        let digits = word.strip_prefix("0b");
        digits.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| matches!(byte, b'0' | b'1'))
        })
    };
    *token = match token {
        Token::HexStringLiteral(digits) => Token::Number(format!("0x{digits}"), false),
        Token::Word(word) if word.quote_style.is_none() && is_bits(&word.value) => {
            Token::Number(word.value.clone(), false)
        }
        _ => return,
    };
}

/// Behind a character set (`_utf8mb4 0x41`) they are bytes.
fn introduced_bits(tokens: &mut [TokenWithSpan]) {
    let mut is_introduced = false;
    for token in tokens {
        is_introduced = match &token.token {
            Token::Whitespace(_) => continue,
            Token::Word(word) => word.quote_style.is_none() && word.value.starts_with('_'),
            Token::Number(number, _) if is_introduced => {
                if let Some(digits) = number.strip_prefix("0x") {
                    token.token = Token::HexStringLiteral(digits.to_owned());
                }
                false
            }
            _ => false,
        };
    }
}

/// NOT becomes `!` where it negates what follows. It is part of another operator behind IS, and before IN,
/// LIKE, BETWEEN and their like.
fn strong_nots(tokens: &mut [TokenWithSpan]) {
    let keyword = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let words: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    for (position, &at) in words.iter().enumerate() {
        if keyword(&tokens[at].token) != Keyword::NOT {
            continue;
        }
        let before = position.checked_sub(1).map(|before| keyword(&tokens[words[before]].token));
        let behind = words.get(position + 1).map(|behind| keyword(&tokens[*behind].token));
        let is_part = matches!(before, Some(Keyword::IS | Keyword::IF))
            || matches!(
                behind,
                Some(Keyword::IN | Keyword::LIKE | Keyword::BETWEEN | Keyword::REGEXP | Keyword::RLIKE)
            );
        if !is_part {
            tokens[at].token = Token::ExclamationMark;
        }
    }
}

/// INTERVAL with several values in parentheses is the function of this name, and no keyword.
fn interval_functions(tokens: &mut [TokenWithSpan]) {
    // An INTERVAL before a parenthesis that may come, and one for each parenthesis that is open.
    let mut last = None;
    let mut open: Vec<Option<usize>> = Vec::new();
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::Whitespace(_) => continue,
            Token::LParen => open.push(last),
            Token::RParen => {
                open.pop();
            }
            Token::Comma => {
                if let Some(place) = open.last_mut().and_then(Option::take)
                    && let Token::Word(word) = &mut tokens[place].token
                {
                    word.keyword = Keyword::NoKeyword;
                }
            }
            Token::Word(word) if word.keyword == Keyword::INTERVAL => {
                last = Some(at);
                continue;
            }
            // The commas of a subquery are its own.
            Token::Word(word) if word.keyword == Keyword::SELECT => {
                if let Some(place) = open.last_mut() {
                    *place = None;
                }
            }
            _ => {}
        }
        last = None;
    }
}

/// An open parenthesis.
#[derive(Default)]
struct Open {
    /// Tables are listed in it.
    is_list: bool,
    /// The last comma of the list, among the places where tokens are put.
    comma: Option<usize>,
    /// There is a join behind it.
    has_join: bool,
}

/// `FROM (a, b) JOIN c`, `UPDATE (a, b)`: the commas of a list of tables in parentheses become CROSS JOIN. A
/// comma binds less tightly than a join, so joins behind one get parentheses.
fn table_lists(tokens: &mut Vec<TokenWithSpan>) {
    let mut open: Vec<Open> = Vec::new();
    // What is put before which token.
    let mut places: Vec<(usize, Vec<Token>)> = Vec::new();
    let mut is_list_next = false;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => {
                open.push(Open { is_list: is_list_next, ..Open::default() });
                // A list may begin with another one.
                continue;
            }
            Token::RParen => {
                if let Some(Open { comma: Some(comma), has_join: true, .. }) = open.pop() {
                    places[comma].1.push(Token::LParen);
                    places.push((at, vec![Token::RParen]));
                }
            }
            Token::Comma => {
                if let Some(list) = open.last_mut().filter(|list| list.is_list) {
                    let mut put = Vec::new();
                    if let Open { comma: Some(comma), has_join: true, .. } = *list {
                        places[comma].1.push(Token::LParen);
                        put.push(Token::RParen);
                    }
                    put.extend(["CROSS", "JOIN"].map(Token::make_keyword));
                    *list = Open { is_list: true, comma: Some(places.len()), has_join: false };
                    places.push((at, put));
                }
            }
            Token::Word(word) if word.quote_style.is_none() => {
                if let Some(list) = open.last_mut() {
                    list.is_list &=
                        !matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES);
                    list.has_join |= matches!(word.keyword, Keyword::JOIN | Keyword::STRAIGHT_JOIN);
                }
                is_list_next = matches!(word.keyword, Keyword::FROM | Keyword::JOIN | Keyword::UPDATE);
                continue;
            }
            _ => {}
        }
        is_list_next = false;
    }
    for (at, put) in places.into_iter().rev() {
        let span = tokens[at].span;
        // A comma gives way.
        let taken = usize::from(tokens[at].token == Token::Comma);
        tokens.splice(at..at + taken, put.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// A join whose ON or USING may still come.
struct OpenJoin {
    /// Its first and its last token, if it needs no condition and is no CROSS JOIN.
    inner: Option<(usize, usize)>,
    /// There is another join behind it.
    is_followed: bool,
}

/// `a JOIN b LEFT JOIN c ON ...`: the first join has no condition, and the second one joins what comes of
/// it. The parser would join `b` and `c` first. It does not if the first one is a CROSS JOIN.
///
/// ON belongs to the last join that has none: in `a JOIN b LEFT JOIN c ON 1 ON 2`, the first join has the
/// second condition.
fn joins_without_condition(tokens: &mut Vec<TokenWithSpan>) {
    let mut levels: Vec<Vec<OpenJoin>> = vec![vec![]];
    let mut crosses: Vec<(usize, usize)> = Vec::new();
    let mut close = |level: &mut Vec<OpenJoin>| {
        crosses.extend(level.drain(..).filter(|join| join.is_followed).filter_map(|join| join.inner));
    };
    // The words before this token, the nearest first.
    let mut before: [(usize, Keyword); 3] = [(0, Keyword::NoKeyword); 3];
    for (at, token) in tokens.iter().enumerate() {
        let level = levels.last_mut().expect("the statement itself is a level");
        let mut keyword = Keyword::NoKeyword;
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => levels.push(vec![]),
            Token::RParen => {
                close(level);
                if levels.len() > 1 {
                    levels.pop();
                }
            }
            Token::Comma | Token::SemiColon => close(level),
            Token::Word(word) if word.quote_style.is_none() => keyword = word.keyword,
            _ => {}
        }
        match (keyword, before[0].1) {
            // An index hint.
            (Keyword::JOIN, Keyword::FOR) => {}
            (Keyword::JOIN | Keyword::STRAIGHT_JOIN, previous) => {
                let level = levels.last_mut().expect("the statement itself is a level");
                level.iter_mut().for_each(|join| join.is_followed = true);
                let natural = before.iter().any(|(_, word)| *word == Keyword::NATURAL);
                let outer =
                    [Keyword::LEFT, Keyword::RIGHT, Keyword::OUTER, Keyword::FULL].contains(&previous);
                let inner = match previous {
                    Keyword::INNER => Some((before[0].0, at)),
                    Keyword::CROSS => None,
                    _ => (!outer).then_some((at, at)),
                };
                if !natural {
                    level.push(OpenJoin { inner, is_followed: false });
                }
            }
            (Keyword::ON | Keyword::USING, _) => {
                levels.last_mut().and_then(Vec::pop);
            }
            (
                Keyword::SELECT
                | Keyword::FROM
                | Keyword::WHERE
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::SET
                | Keyword::WINDOW,
                _,
            ) => levels.last_mut().into_iter().for_each(&mut close),
            _ => {}
        }
        before = [(at, keyword), before[0], before[1]];
    }
    levels.iter_mut().for_each(close);
    crosses.sort_unstable();
    for (from, until) in crosses.into_iter().rev() {
        let span = tokens[from].span;
        let cross = ["CROSS", "JOIN"].map(|word| TokenWithSpan { token: Token::make_keyword(word), span });
        tokens.splice(from..=until, cross);
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

/// True if an operand can end with this word: it is not one behind which an operand begins.
fn is_operand(keyword: Keyword) -> bool {
    !matches!(
        keyword,
        Keyword::ALL
            | Keyword::AND
            | Keyword::AS
            | Keyword::BETWEEN
            | Keyword::BINARY
            | Keyword::BY
            | Keyword::CASE
            | Keyword::DISTINCT
            | Keyword::DIV
            | Keyword::ELSE
            | Keyword::ESCAPE
            | Keyword::FOR
            | Keyword::FROM
            | Keyword::HAVING
            | Keyword::HIGH_PRIORITY
            | Keyword::IN
            | Keyword::INTERVAL
            | Keyword::LIKE
            | Keyword::NOT
            | Keyword::ON
            | Keyword::OR
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::SELECT
            | Keyword::SET
            | Keyword::STRAIGHT_JOIN
            | Keyword::THEN
            | Keyword::WHEN
            | Keyword::WHERE
            | Keyword::XOR
    ) && !MODIFIERS.contains(&keyword)
}

/// What can stand between SELECT and the first operand.
const MODIFIERS: [Keyword; 6] = [
    Keyword::DISTINCTROW,
    Keyword::SQL_BIG_RESULT,
    Keyword::SQL_BUFFER_RESULT,
    Keyword::SQL_CALC_FOUND_ROWS,
    Keyword::SQL_NO_CACHE,
    Keyword::SQL_SMALL_RESULT,
];
