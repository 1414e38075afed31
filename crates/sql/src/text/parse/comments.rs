//! What is found out about a text before it is parsed: comments, quotes, ends of statements, placeholders.

use std::borrow::Cow;

/// The version that executable comments are compared with: MariaDB 10.11's number, whose dialect clients meet
/// here.
const COMMENT_VERSION: u32 = 101_100;
/// Comments for MySQL 5.7 to 9.x carry numbers that MariaDB leaves alone.
const MYSQL_ONLY_VERSIONS: std::ops::RangeInclusive<u32> = 50_700..=99_999;

/// A stretch of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece {
    /// Blanks.
    Blank,
    /// A comment that the server ignores.
    Comment,
    /// `/*!` or `/*M!` with its version number, if the server has to read what follows.
    ExecutableStart,
    /// The `*/` of an executable comment.
    ExecutableEnd,
    /// A quoted string or name.
    Quoted,
    /// A run of letters, digits, `_`, `$`, `@` and all non-ASCII.
    Word,
    /// One byte of anything else.
    Symbol,
}

/// Cuts a text into pieces.
struct Pieces<'a> {
    text: &'a [u8],
    at: usize,
    executable_depth: usize,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str) -> Pieces<'a> {
        Pieces { text: text.as_bytes(), at: 0, executable_depth: 0 }
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

    fn quote_end(&self, at: usize, quote: u8) -> usize {
        let mut at = at + 1;
        while at < self.text.len() {
            match self.text[at] {
                b'\\' if quote != b'`' => at += 2,
                byte if byte == quote => {
                    if self.text.get(at + 1) == Some(&quote) {
                        at += 2;
                    } else {
                        return at + 1;
                    }
                }
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// The head of `/*!NNNNN`: where its content starts. `None` if the server has to ignore it.
    fn executable_start(&self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let (head, mariadb) = if rest.starts_with(b"/*!") {
            (3, false)
        } else if rest.starts_with(b"/*M!") {
            (4, true)
        } else {
            return None;
        };
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
            b'-' if next == Some(b'-')
                && self.text.get(from + 2).is_none_or(|byte| byte.is_ascii_whitespace()) =>
            {
                (Piece::Comment, self.line_end(from))
            }
            b'/' if next == Some(b'*') => match self.executable_start(from) {
                Some(end) => {
                    self.executable_depth += 1;
                    (Piece::ExecutableStart, end)
                }
                None => (Piece::Comment, self.comment_end(from + 2)),
            },
            b'*' if next == Some(b'/') && self.executable_depth > 0 => {
                self.executable_depth -= 1;
                (Piece::ExecutableEnd, from + 2)
            }
            b'\'' | b'"' | b'`' => (Piece::Quoted, self.quote_end(from, byte)),
            byte if is_word(byte) => (Piece::Word, self.until(from, is_word)),
            _ => (Piece::Symbol, from + 1),
        };
        self.at = end.min(self.text.len());
        Some((piece, from, self.at))
    }
}

/// The text without the comments that the server ignores. Executable comments for this server are replaced by
/// their content.
pub(super) fn unwrap_executable(text: &str) -> Cow<'_, str> {
    if !text.contains("/*!") && !text.contains("/*M!") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (piece, from, end) in Pieces::new(text) {
        match piece {
            Piece::ExecutableStart | Piece::ExecutableEnd | Piece::Comment => out.push(' '),
            _ => out.push_str(&text[from..end]),
        }
    }
    Cow::Owned(out)
}

/// Where the statements of a text end: at each `;`, and at the end of the text.
pub(super) fn statement_ends(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut ends: Vec<usize> = Pieces::new(text)
        .filter(|&(piece, from, _)| piece == Piece::Symbol && bytes[from] == b';')
        .map(|(_, from, _)| from)
        .collect();
    ends.push(text.len());
    ends
}

/// False for a text of blanks and comments.
pub(super) fn has_words(text: &str) -> bool {
    Pieces::new(text).any(|(piece, _, _)| !matches!(piece, Piece::Blank | Piece::Comment))
}

/// The text without the blanks and comments before its first word.
pub(super) fn skip(text: &str) -> &str {
    for (piece, from, _) in Pieces::new(text) {
        if !matches!(piece, Piece::Blank | Piece::Comment) {
            return &text[from..];
        }
    }
    ""
}

/// The first word, or an empty text if something else (a parenthesis) comes first.
pub(super) fn first_word(text: &str) -> &str {
    for (piece, from, end) in Pieces::new(text) {
        match piece {
            Piece::Blank | Piece::Comment => {}
            Piece::Word => return &text[from..end],
            _ => return "",
        }
    }
    ""
}

/// Where a comment without `*/` begins, which goes on to the end of the text.
pub(super) fn open_comment(text: &str) -> Option<usize> {
    let (piece, from, end) = Pieces::new(text).last()?;
    let comment = &text[from..end];
    let is_closed = comment.len() >= 4 && comment.ends_with("*/");
    (piece == Piece::Comment && comment.starts_with("/*") && !is_closed).then_some(from)
}

/// Where the `?` of parameters are.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = usize> + '_ {
    let is_one =
        |&(piece, from, _): &(Piece, usize, usize)| piece == Piece::Symbol && text.as_bytes()[from] == b'?';
    Pieces::new(text).filter(is_one).map(|(_, from, _)| from)
}

/// The positions of names in backticks directly behind `@@`.
pub(super) fn quoted_variables(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_behind = false;
    for (piece, from, end) in Pieces::new(text) {
        if is_behind && text[from..].starts_with('`') {
            found.push(from);
        }
        is_behind = piece == Piece::Word && &text[from..end] == "@@";
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(open_comment(text), open, "{text}");
        }
    }

    #[test]
    fn executable_comments_are_opened_by_version() {
        assert_eq!(unwrap_executable("SELECT /*! 1 */ + /*!40101 2 */").trim_end(), "SELECT   1   +   2");
        assert_eq!(unwrap_executable("SELECT 1 /*!50708 + 2 */").trim_end(), "SELECT 1");
        assert_eq!(unwrap_executable("SELECT 1 /*M!100100 + 2 */").trim_end(), "SELECT 1   + 2");
        assert_eq!(unwrap_executable("SELECT 1 /*M!999999 + 2 */").trim_end(), "SELECT 1");
        assert_eq!(unwrap_executable("SELECT '/*! 1 */'"), "SELECT '/*! 1 */'");
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        let text = "SELECT ';' ; /* ; */ SELECT `;` -- ;\n; # x";
        let parts = crate::text::parse::split(text);
        assert_eq!(parts, ["SELECT ';'", "/* ; */ SELECT `;` -- ;"]);
    }

    #[test]
    fn placeholders_in_strings_do_not_count() {
        let text = "SELECT ?, '?', `?`, \"?\" /* ? */ WHERE a = ?";
        assert_eq!(placeholders(text).collect::<Vec<usize>>(), [7, text.len() - 1]);
    }
}
