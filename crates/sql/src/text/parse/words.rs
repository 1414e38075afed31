//! A cursor for statements that are parsed by hand.

use super::errors::{error_at, from_parser};
use crate::SqlError;
use crate::text::mode::LexicalMode;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Whitespace};

/// One token, in the form that a hand-written parser needs.
#[derive(Clone, PartialEq, Debug)]
pub enum Word {
    /// A bare word or variable: `SHOW`, `t1`, `@@global`.
    Bare(String),
    /// A name in backticks.
    Name(String),
    /// A quoted string, unescaped.
    Text(String),
    /// A number as it was written.
    Number(String),
    /// Everything else: `.`, `=`, `:=`, `(`...
    Symbol(String),
    End,
}

/// A cursor over the words of one statement.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    text: &'a str,
    mode: LexicalMode,
    words: Vec<(Word, usize)>,
    at: usize,
}

impl<'a> Words<'a> {
    /// # Errors
    /// 1064 for an unclosed quote and the like.
    pub fn new(text: &'a str, mode: LexicalMode) -> Result<Words<'a>, SqlError> {
        let tokens = super::tokens::tokenize(text, mode, false)
            .map_err(|error| from_parser(text, &ParserError::TokenizerError(error.to_string())))?;
        let offsets = Offsets::new(text);
        let mut words: Vec<(Word, usize)> = tokens
            .into_iter()
            .filter_map(|token| {
                let at = offsets.of(token.span.start);
                word(token).map(|word| (word, at))
            })
            .collect();
        words.push((Word::End, text.len()));
        Ok(Words { text, mode, words, at: 0 })
    }

    /// How [`Words::rest`] is to be read.
    pub(crate) fn mode(&self) -> LexicalMode {
        self.mode
    }

    pub fn peek(&self) -> &Word {
        &self.words[self.at].0
    }

    /// The word after the next one.
    pub(crate) fn peek_second(&self) -> &Word {
        &self.words[(self.at + 1).min(self.words.len() - 1)].0
    }

    /// Takes a word. At the end it returns [`Word::End`], however often it is called.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Word {
        let word = self.words[self.at].0.clone();
        if self.at + 1 < self.words.len() {
            self.at += 1;
        }
        word
    }

    /// True if the next word is this word without quotes, in any case.
    pub fn is(&self, keyword: &str) -> bool {
        matches!(self.peek(), Word::Bare(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// Takes the next word if it is this bare word.
    pub fn accept(&mut self, keyword: &str) -> bool {
        let found = self.is(keyword);
        if found {
            self.next();
        }
        found
    }

    /// Takes the next words if all of them are these, otherwise none.
    pub(crate) fn accept_all(&mut self, keywords: &[&str]) -> bool {
        let from = self.at;
        let found = keywords.iter().all(|keyword| self.accept(keyword));
        if !found {
            self.at = from;
        }
        found
    }

    /// # Errors
    /// 1064 if the next word is another one.
    pub fn expect(&mut self, keyword: &str) -> Result<(), SqlError> {
        if self.accept(keyword) { Ok(()) } else { Err(self.error()) }
    }

    pub(crate) fn accept_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Word::Symbol(found) if found == symbol);
        if found {
            self.next();
        }
        found
    }

    /// # Errors
    /// 1064 if something else follows.
    pub(crate) fn expect_symbol(&mut self, symbol: &str) -> Result<(), SqlError> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.error()) }
    }

    /// A name, bare or in backticks.
    ///
    /// # Errors
    /// 1064.
    pub fn name(&mut self) -> Result<String, SqlError> {
        match self.peek() {
            Word::Bare(name) | Word::Name(name) => {
                let name = name.clone();
                self.next();
                Ok(name)
            }
            _ => Err(self.error()),
        }
    }

    /// A quoted string.
    ///
    /// # Errors
    /// 1064.
    pub fn string(&mut self) -> Result<String, SqlError> {
        match self.peek() {
            Word::Text(text) => {
                let text = text.clone();
                self.next();
                Ok(text)
            }
            _ => Err(self.error()),
        }
    }

    /// `name` or `database.name`.
    ///
    /// # Errors
    /// 1064.
    pub(crate) fn qualified_name(&mut self) -> Result<(Option<String>, String), SqlError> {
        let first = self.name()?;
        if self.accept_symbol(".") { Ok((Some(first), self.name()?)) } else { Ok((None, first)) }
    }

    /// # Errors
    /// 1064 if words are left.
    pub fn end(&mut self) -> Result<(), SqlError> {
        self.accept_symbol(";");
        if *self.peek() == Word::End { Ok(()) } else { Err(self.error()) }
    }

    /// The words that were not taken yet, as text.
    pub fn rest(&self) -> &'a str {
        &self.text[self.words[self.at].1..]
    }

    /// Takes all remaining words, because another parser reads [`Words::rest`].
    pub(crate) fn skip_rest(&mut self) {
        self.at = self.words.len() - 1;
    }

    /// 1064 at the next word.
    pub fn error(&self) -> SqlError {
        error_at(self.text, self.words[self.at].1)
    }
}

fn word(token: TokenWithSpan) -> Option<Word> {
    Some(match token.token {
        Token::Whitespace(Whitespace::Space | Whitespace::Newline | Whitespace::Tab) => return None,
        Token::Whitespace(_) | Token::EOF => return None,
        Token::Word(word) if word.quote_style.is_some() => Word::Name(word.value),
        Token::Word(word) => Word::Bare(word.value),
        Token::Number(number, _) => match (number.strip_prefix("0x"), number.strip_prefix("0b")) {
            (Some(digits), _) => {
                let zero = if digits.len() % 2 == 1 { "0" } else { "" };
                Word::Symbol(format!("X'{zero}{digits}'"))
            }
            (None, Some(digits)) => Word::Symbol(format!("B'{digits}'")),
            (None, None) => Word::Number(number),
        },
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Word::Text(text),
        other => Word::Symbol(other.to_string()),
    })
}

/// Finds the byte offsets of lines.
struct Offsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Offsets<'a> {
    fn new(text: &'a str) -> Offsets<'a> {
        let mut lines = vec![0];
        lines.extend(text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1));
        Offsets { text, lines }
    }

    fn of(&self, location: Location) -> usize {
        let line = usize::try_from(location.line).unwrap_or(1).saturating_sub(1);
        let column = usize::try_from(location.column).unwrap_or(1).saturating_sub(1);
        let Some(&start) = self.lines.get(line) else { return self.text.len() };
        let rest = &self.text[start..];
        if rest.len() >= column && rest.as_bytes()[..column].is_ascii() {
            return start + column;
        }
        rest.char_indices().nth(column).map_or(self.text.len(), |(at, _)| start + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_one_by_one_and_errors_point_at_the_next() {
        let mut words = Words::new("SET GLOBAL hot.key_buffer_size = 'é', 1", LexicalMode::NONE).unwrap();
        words.expect("set").unwrap();
        assert!(words.accept_all(&["GLOBAL"]));
        assert!(!words.accept("SESSION"));
        assert_eq!(words.qualified_name().unwrap(), (Some("hot".into()), "key_buffer_size".into()));
        words.expect_symbol("=").unwrap();
        assert_eq!(words.string().unwrap(), "é");
        assert!(words.error().message.contains("near ', 1' at line 1"));
        assert_eq!(words.rest(), ", 1");
    }

    #[test]
    fn a_quoted_name_behind_at_signs_is_part_of_the_word() {
        let mut words =
            Words::new("é @@`a b`.x, '@@`no`',\n @@`y`.`default` @@`default`.z", LexicalMode::NONE).unwrap();
        words.next();
        assert_eq!(words.next(), Word::Bare("@@a b".into()));
        words.expect_symbol(".").unwrap();
        assert_eq!(words.rest(), "x, '@@`no`',\n @@`y`.`default` @@`default`.z");
        assert_eq!((words.name().unwrap().as_str(), words.accept_symbol(",")), ("x", true));
        assert_eq!((words.string().unwrap().as_str(), words.accept_symbol(",")), ("@@`no`", true));
        assert_eq!(words.qualified_name().unwrap(), (Some("@@y".into()), "default".into()));
        assert_eq!(words.rest(), "@@`default`.z");
        assert_eq!(words.qualified_name().unwrap(), (Some("@@default".into()), "z".into()));
    }
}
