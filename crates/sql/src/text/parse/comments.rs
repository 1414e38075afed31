//! What is found out about a text before it is parsed: comments, quotes, ends of statements, placeholders.

use crate::text::mode::{LexicalMode, is_line_comment, quote_end};
use std::borrow::Cow;

/// The version that executable comments are compared with: MariaDB 10.11's number, whose dialect clients meet
/// here.
const COMMENT_VERSION: u32 = 101_100;
/// Comments for MySQL 5.7 to 9.x carry numbers that MariaDB leaves alone.
const MYSQL_ONLY_VERSIONS: std::ops::RangeInclusive<u32> = 50_700..=99_999;

/// A stretch of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// Blanks.
    Blank,
    /// A comment that the server ignores.
    Comment,
    /// `/*!` or `/*M!` with its version number, if the server has to read what follows.
    ExecutableStart,
    /// The `*/` of an executable comment.
    ExecutableEnd,
    /// A quoted string or name. The first byte is its quote.
    Quoted,
    /// A quote without an end, and all that follows it.
    Unclosed,
    /// A run of letters, digits, `_`, `$`, `@` and all non-ASCII.
    Word,
    /// One byte of anything else.
    Symbol,
}

/// Cuts a text into pieces. The parser's tokens are made of the same pieces, so both agree about quotes and
/// comments.
pub(super) struct Pieces<'a> {
    text: &'a [u8],
    mode: LexicalMode,
    at: usize,
    executable_depth: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(text: &'a str, mode: LexicalMode) -> Pieces<'a> {
        Pieces { text: text.as_bytes(), mode, at: 0, executable_depth: 0 }
    }

    fn until(&self, mut at: usize, matches: impl Fn(u8) -> bool) -> usize {
        while at < self.text.len() && matches(self.text[at]) {
            at += 1;
        }
        at
    }

    fn line_end(&self, at: usize) -> usize {
        self.until(at, |byte| byte != b'\n')
    }

    /// The end of a comment that starts before `at`.
    fn comment_end(&self, at: usize) -> usize {
        let mut at = at;
        while at < self.text.len() {
            if self.text[at..].starts_with(b"*/") {
                return at + 2;
            }
            at += 1;
        }
        at
    }

    /// The end of an executable comment that starts before `at` and is not for this server. As in MariaDB,
    /// it may have other comments in it.
    fn foreign_comment_end(&self, at: usize) -> usize {
        let mut at = at;
        while at < self.text.len() {
            if self.text[at..].starts_with(b"*/") {
                return at + 2;
            }
            at = if self.text[at..].starts_with(b"/*") { self.comment_end(at + 2) } else { at + 1 };
        }
        at
    }

    /// What begins with `/*`, and its end.
    fn block_comment(&mut self, from: usize) -> (Piece, usize) {
        let rest = &self.text[from + 2..];
        let head = if rest.starts_with(b"!") {
            3
        } else if rest.starts_with(b"M!") {
            4
        } else {
            return (Piece::Comment, self.comment_end(from + 2));
        };
        match self.executable_start(from, head) {
            Some(end) => {
                self.executable_depth += 1;
                (Piece::ExecutableStart, end)
            }
            None => (Piece::Comment, self.foreign_comment_end(from + 2)),
        }
    }

    /// The head of `/*!NNNNN`: where its content starts. `None` if the server has to ignore it.
    fn executable_start(&self, at: usize, head: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let mariadb = head == 4;
        let digits = rest[head..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        if digits < 5 {
            return Some(at + head);
        }
        let number = std::str::from_utf8(&rest[head..head + digits]).ok()?.parse::<u32>().ok()?;
        let meant = number <= COMMENT_VERSION && (mariadb || !MYSQL_ONLY_VERSIONS.contains(&number));
        meant.then_some(at + head + digits)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || byte >= 0x80
}

impl Iterator for Pieces<'_> {
    type Item = (Piece, usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.at;
        let byte = *self.text.get(from)?;
        let next = self.text.get(from + 1).copied();
        let (piece, end) = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => {
                (Piece::Blank, self.until(from, |byte| byte.is_ascii_whitespace() || byte == 0x0b))
            }
            b'#' => (Piece::Comment, self.line_end(from)),
            b'-' if is_line_comment(self.text, from) => (Piece::Comment, self.line_end(from)),
            b'/' if next == Some(b'*') => self.block_comment(from),
            b'*' if next == Some(b'/') && self.executable_depth > 0 => {
                self.executable_depth -= 1;
                (Piece::ExecutableEnd, from + 2)
            }
            b'\'' | b'"' | b'`' => match quote_end(self.text, from, self.mode) {
                Some(end) => (Piece::Quoted, end),
                None => (Piece::Unclosed, self.text.len()),
            },
            byte if is_word(byte) => (Piece::Word, self.until(from, is_word)),
            _ => (Piece::Symbol, from + 1),
        };
        self.at = end.min(self.text.len());
        Some((piece, from, self.at))
    }
}

/// The text without the comments that the server ignores. Executable comments for this server are replaced by
/// their content.
pub(super) fn unwrap_executable(text: &str, mode: LexicalMode) -> Cow<'_, str> {
    if !text.contains("/*!") && !text.contains("/*M!") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (piece, from, end) in Pieces::new(text, mode) {
        match piece {
            // The parser finds fault with it.
            Piece::Comment if is_open(&text[from..end]) => out.push_str(&text[from..end]),
            // Behind `--` a blank would begin a comment.
            Piece::ExecutableStart | Piece::ExecutableEnd | Piece::Comment => {
                out.push_str(if out.ends_with('-') { "/**/" } else { " " });
            }
            _ => out.push_str(&text[from..end]),
        }
    }
    Cow::Owned(out)
}

/// Where the first statement of a text ends: at a `;`, or at the end of the text.
pub(super) fn statement_end(text: &str, mode: LexicalMode) -> usize {
    let bytes = text.as_bytes();
    Pieces::new(text, mode)
        .find(|&(piece, from, _)| piece == Piece::Symbol && bytes[from] == b';')
        .map_or(text.len(), |(_, from, _)| from)
}

/// False for a text of blanks and comments.
pub(super) fn has_words(text: &str, mode: LexicalMode) -> bool {
    Pieces::new(text, mode).any(|(piece, _, _)| !is_nothing(piece))
}

/// True for what is no part of a statement.
fn is_nothing(piece: Piece) -> bool {
    matches!(piece, Piece::Blank | Piece::Comment | Piece::ExecutableStart | Piece::ExecutableEnd)
}

/// The text without the blanks and comments before its first word. Which mode it is read in makes no
/// difference there.
pub(super) fn skip(text: &str) -> &str {
    for (piece, from, _) in Pieces::new(text, LexicalMode::default()) {
        if !matches!(piece, Piece::Blank | Piece::Comment) {
            return &text[from..];
        }
    }
    ""
}

/// The first word, or an empty text if something else (a parenthesis) comes first.
pub(super) fn first_word(text: &str) -> &str {
    for (piece, from, end) in Pieces::new(text, LexicalMode::default()) {
        match piece {
            Piece::Blank | Piece::Comment => {}
            Piece::Word => return &text[from..end],
            _ => return "",
        }
    }
    ""
}

/// Where a comment without `*/` begins, which goes on to the end of the text.
pub(super) fn open_comment(text: &str, mode: LexicalMode) -> Option<usize> {
    let (piece, from, end) = Pieces::new(text, mode).last()?;
    (piece == Piece::Comment && is_open(&text[from..end])).then_some(from)
}

/// True for a comment that has `/*` and no `*/`.
pub(super) fn is_open(comment: &str) -> bool {
    comment.starts_with("/*") && !(comment.len() >= 4 && comment.ends_with("*/"))
}

/// Where the `?` of parameters are.
pub(super) fn placeholders(text: &str, mode: LexicalMode) -> impl Iterator<Item = usize> + '_ {
    let is_one =
        |&(piece, from, _): &(Piece, usize, usize)| piece == Piece::Symbol && text.as_bytes()[from] == b'?';
    Pieces::new(text, mode).filter(is_one).map(|(_, from, _)| from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: LexicalMode = LexicalMode::NONE;

    fn unwrapped(text: &str) -> Cow<'_, str> {
        unwrap_executable(text, PLAIN)
    }

    #[test]
    fn a_comment_is_open_if_the_text_ends_in_it() {
        for (text, open) in [
            ("a; /* b; c", Some(3)),
            ("/*/", Some(0)),
            ("/* */ /*", Some(6)),
            ("a /* b */", None),
            ("a; -- /* b", None),
            ("'/* b'", None),
            ("", None),
        ] {
            assert_eq!(open_comment(text, PLAIN), open, "{text}");
        }
    }

    #[test]
    fn executable_comments_are_opened_by_version() {
        assert_eq!(unwrapped("SELECT /*! 1 */ + /*!40101 2 */").trim_end(), "SELECT   1   +   2");
        assert_eq!(unwrapped("SELECT 1 /*!50708 + 2 */").trim_end(), "SELECT 1");
        assert_eq!(unwrapped("SELECT 1 /*M!100100 + 2 */").trim_end(), "SELECT 1   + 2");
        assert_eq!(unwrapped("SELECT 1 /*M!999999 + 2 */").trim_end(), "SELECT 1");
        assert_eq!(unwrapped("SELECT '/*! 1 */'"), "SELECT '/*! 1 */'");
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        let text = "SELECT ';' ; /* ; */ SELECT `;` -- ;\n; # x";
        let parts = crate::text::parse::split(text, PLAIN);
        assert_eq!(parts, ["SELECT ';'", "/* ; */ SELECT `;` -- ;"]);
    }

    #[test]
    fn placeholders_in_strings_do_not_count() {
        let text = "SELECT ?, '?', `?`, \"?\" /* ? */ WHERE a = ?";
        assert_eq!(placeholders(text, PLAIN).collect::<Vec<usize>>(), [7, text.len() - 1]);
    }
}
