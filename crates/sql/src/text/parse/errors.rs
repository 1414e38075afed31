//! Parser errors in MySQL's words: the place in the text, and the line.

use super::secrets;
use crate::{ErrorKind, SqlError};
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::TokenWithSpan;

/// MySQL shows at most this many characters of the rest of the text.
const NEAR_CHARS_MAX: usize = 80;

/// 1064 for the text from byte `offset` on.
pub(crate) fn error_at(text: &str, offset: usize) -> SqlError {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let line = text[..offset].bytes().filter(|&byte| byte == b'\n').count() + 1;
    let secrets = secrets::secrets(text);
    let near = secrets::hidden(text, &secrets, offset).chars().take(NEAR_CHARS_MAX).collect::<String>();
    SqlError::syntax(&near, line)
}

/// 1064 for the text from a token on.
pub(super) fn error_at_token(text: &str, token: &TokenWithSpan) -> SqlError {
    let start = token.span.start;
    error_at(text, offset_of(text, start.line as usize, start.column as usize))
}

/// The offset at which `part`, a slice of `text`, starts.
pub fn offset_in(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len())
}

/// An error of the `sqlparser` crate. Its message ends in ` at Line: l, Column: c`, unless the text simply
/// ended.
pub(super) fn from_parser(text: &str, error: &ParserError) -> SqlError {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return SqlError::new(
                ErrorKind::StackOverrun,
                "Thread stack overrun: the statement nests too deeply",
            );
        }
    };
    match location(message) {
        Some((line, column)) => error_at(text, offset_of(text, line, column)),
        None => error_at(text, text.len()),
    }
}

fn location(message: &str) -> Option<(usize, usize)> {
    let (_, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    let digits = column.bytes().take_while(u8::is_ascii_digit).count();
    Some((line.parse().ok()?, column[..digits].parse().ok()?))
}

/// The byte offset of a line and a column, both counted from 1, the column in characters.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match text[start..].find('\n') {
            Some(at) => start += at + 1,
            None => return text.len(),
        }
    }
    text[start..].char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(at, _)| start + at)
}

#[cfg(test)]
mod tests {
    use crate::text::parse::{LexicalMode, parse};

    #[test]
    fn a_syntax_error_shows_the_text_from_the_offending_word_on() {
        let error = parse("SELECT a\nFROM t WHERE a = ) b", LexicalMode::NONE).unwrap_err();
        assert_eq!(error.code(), 1064);
        assert!(error.message.ends_with("near ') b' at line 2"), "{}", error.message);
        let error = parse("SELECT a FROM", LexicalMode::NONE).unwrap_err();
        assert!(error.message.ends_with("near '' at line 1"), "{}", error.message);
    }
}
