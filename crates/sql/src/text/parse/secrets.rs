//! Passwords in the text of statements. Lists and logs show them as `*****`, as MariaDB's audit
//! log does.

use super::comments::{Piece, Pieces};
use crate::text::mode::LexicalMode;
use std::borrow::Cow;
use std::ops::Range;

/// The words behind which a password stands.
const WORDS: [&str; 4] = ["PASSWORD", "OLD_PASSWORD", "MASTER_PASSWORD", "IDENTIFIED"];
const SECRET: &str = "*****";

/// A statement's text for lists and logs: without the passwords of SET PASSWORD, of IDENTIFIED BY and of
/// PASSWORD('...'), in whatever mode it was read. It may be cut off.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let secrets = secrets(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(hidden(text, &secrets, 0))
}

/// As [`without_secrets`]. Bytes that are no text are kept if there is nothing to hide.
pub fn bytes_without_secrets(text: &[u8]) -> Cow<'_, [u8]> {
    match without_secrets(&String::from_utf8_lossy(text)) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(shown) => Cow::Owned(shown.into_bytes()),
    }
}

/// The text from `from` on with its secrets hidden.
pub(super) fn hidden(text: &str, secrets: &[Range<usize>], from: usize) -> String {
    let mut out = String::new();
    let mut at = from;
    for secret in secrets.iter().filter(|secret| secret.end > from) {
        out.push_str(&text[at..secret.start.max(at)]);
        out.push_str(SECRET);
        at = secret.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Where the secrets are, in ascending order.
pub(super) fn secrets(text: &str) -> Vec<Range<usize>> {
    let Some(first) = first_word(text) else { return Vec::new() };
    if text.contains('\\') {
        // Where texts end depends on the mode. Whatever is behind the word may be the password.
        return std::iter::once(first..text.len()).collect();
    }
    let mut found = Vec::new();
    let mut state = State::default();
    // The text of another statement.
    let is_nested = ["PREPARE", "EXECUTE"].iter().any(|word| is(super::comments::first_word(text), word));
    for (piece, from, end) in Pieces::new(text, LexicalMode::NONE) {
        let part = &text[from..end];
        let is_secret = match piece {
            Piece::Quoted | Piece::Unclosed => {
                !part.starts_with('`') && (state.is_near || is_nested && first_word(part).is_some())
            }
            Piece::Comment => first_word(part).is_some(),
            // PASSWORD(123).
            Piece::Word if part.starts_with(|first: char| first.is_ascii_digit()) => {
                state.is_near && state.depth > state.near_depth
            }
            Piece::Word => {
                state.word(part);
                false
            }
            Piece::Symbol => {
                state.symbol(part);
                false
            }
            Piece::Blank | Piece::ExecutableStart | Piece::ExecutableEnd => false,
        };
        if is_secret {
            found.push(from..end);
        }
    }
    found
}

/// What has been read of a statement.
#[derive(Default)]
struct State {
    depth: usize,
    /// A text is a password.
    is_near: bool,
    /// The depth at which the word before a password stood.
    near_depth: usize,
    /// The last word was PASSWORD.
    is_behind: bool,
    /// Behind PASSWORD FOR, the password comes after `=`.
    awaits_equals: bool,
}

impl State {
    fn word(&mut self, word: &str) {
        if self.is_behind && is(word, "FOR") {
            (self.is_near, self.awaits_equals) = (false, true);
        }
        self.is_behind = WORDS.iter().any(|known| is(word, known));
        if self.is_behind {
            self.is_near = true;
            self.near_depth = self.depth;
        }
    }

    fn symbol(&mut self, symbol: &str) {
        self.is_behind = false;
        match symbol {
            "(" => self.depth += 1,
            ")" => {
                self.depth = self.depth.saturating_sub(1);
                self.is_near &= self.depth >= self.near_depth;
            }
            "=" if self.awaits_equals => (self.is_near, self.awaits_equals) = (true, false),
            "," if self.depth <= self.near_depth => self.is_near = false,
            ";" => *self = State::default(),
            _ => {}
        }
    }
}

fn is(word: &str, known: &str) -> bool {
    word.eq_ignore_ascii_case(known)
}

/// Where the first of the words begins, also within others.
fn first_word(text: &str) -> Option<usize> {
    let found = |word: &str| {
        let mut windows = text.as_bytes().windows(word.len());
        windows.position(|window| window.eq_ignore_ascii_case(word.as_bytes()))
    };
    ["PASSWORD", "IDENTIFIED"].into_iter().filter_map(found).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_and_nothing_else() {
        for (text, shown) in [
            ("SET PASSWORD = PASSWORD('s3')", "SET PASSWORD = PASSWORD(*****)"),
            ("set password = '*0123'", "set password = *****"),
            (
                "SET PASSWORD FOR 'root'@'localhost' = PASSWORD('s3')",
                "SET PASSWORD FOR 'root'@'localhost' = PASSWORD(*****)",
            ),
            (
                "CREATE USER 'a'@'%' IDENTIFIED BY 's3', b IDENTIFIED BY PASSWORD '*12'",
                "CREATE USER 'a'@'%' IDENTIFIED BY *****, b IDENTIFIED BY PASSWORD *****",
            ),
            (
                "ALTER USER a IDENTIFIED VIA ed25519 USING PASSWORD(\"s3\")",
                "ALTER USER a IDENTIFIED VIA ed25519 USING PASSWORD(*****)",
            ),
            (
                "GRANT ALL ON *.* TO a /*!40000 IDENTIFIED BY 's3' */",
                "GRANT ALL ON *.* TO a /*!40000 IDENTIFIED BY ***** */",
            ),
            ("SELECT PASSWORD(CONCAT('s3', 's4')), 'b'", "SELECT PASSWORD(CONCAT(*****, *****)), 'b'"),
            ("SELECT PASSWORD (0x733), 5", "SELECT PASSWORD (*****), 5"),
            ("SELECT PASSWORD(X'7333')", "SELECT PASSWORD(X*****)"),
            ("SET PASSWORD = PASSWORD('s3", "SET PASSWORD = PASSWORD(*****"),
            ("SET PASSWORD /* IDENTIFIED BY 's3' */ = 's4'", "SET PASSWORD ***** = *****"),
            (r"SELECT 'a\', PASSWORD('s3')", r"SELECT 'a\', *****"),
            ("PREPARE s FROM 'SET PASSWORD = PASSWORD(''s3'')'", "PREPARE s FROM *****"),
            (
                "CHANGE MASTER TO MASTER_PASSWORD='s3', MASTER_HOST='h'",
                "CHANGE MASTER TO MASTER_PASSWORD=*****, MASTER_HOST='h'",
            ),
            ("SELECT `password` FROM u WHERE a = 'b'", "SELECT `password` FROM u WHERE a = 'b'"),
            ("SELECT 'b' FROM users", "SELECT 'b' FROM users"),
            ("SET PASSWORD = 's3'; SELECT 'b'", "SET PASSWORD = *****; SELECT 'b'"),
            ("INSERT INTO t VALUES ('my password', 'b')", "INSERT INTO t VALUES ('my password', 'b')"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    #[test]
    fn a_syntax_error_shows_no_password() {
        for text in ["SET PASSWORD = PASSWORD('s3' 5", "SET PASSWORD 's3'", "CREATE USER a IDENTIFIED 's3'"] {
            let statement = super::super::parse(text, LexicalMode::NONE).unwrap();
            let super::super::Statement::Other(other) = statement else { panic!("{text}") };
            let mut words = other.words().unwrap();
            while *words.peek() != super::super::Word::End {
                assert!(!words.error().message.contains("s3"), "{}", words.error().message);
                words.next();
            }
        }
        let error = super::super::parse("SELECT PASSWORD('s3' 5", LexicalMode::NONE).unwrap_err();
        assert!(!error.message.contains("s3"), "{}", error.message);
    }
}
