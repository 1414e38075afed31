//! The names of result columns that have no alias: the text of their expression.
//!
//! The text comes from the statement's shape, which has slots instead of the literals. The literals are
//! filled in when the statement runs.

use crate::text::LexicalMode;
use crate::text::mode::quote_end;
use crate::text::scan::{LIST, SLOT};
use sqlparser::ast;

/// A name with slots in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Fixed(String),
    Template(Vec<Piece>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Text(String),
    /// The text of the literal in a slot.
    Slot(usize),
}

impl Name {
    /// The name of an expression that was parsed from a shape with this many slots.
    pub(crate) fn of_parsed(expr: &ast::Expr, slots: usize) -> Name {
        let text = expr.to_string();
        let mut pieces = Vec::new();
        let mut written = 0;
        for (at, _) in text.match_indices('?') {
            let digits: &str = &text[at + 1..];
            let digits = &digits[..digits.bytes().take_while(u8::is_ascii_digit).count()];
            let Some(slot) = digits.parse().ok().filter(|slot| *slot < slots) else { continue };
            if written < at {
                pieces.push(Piece::Text(text[written..at].to_owned()));
            }
            pieces.push(Piece::Slot(slot));
            written = at + 1 + digits.len();
        }
        if pieces.is_empty() {
            return Name::Fixed(text);
        }
        if written < text.len() {
            pieces.push(Piece::Text(text[written..].to_owned()));
        }
        Name::Template(pieces)
    }

    /// The name with the numbers of its slots.
    pub(crate) fn shape(&self) -> String {
        self.filled(&|slot, _| format!("?{slot}"))
    }

    /// The name with the slots' texts.
    pub(crate) fn filled(&self, literal_text: &LiteralText<'_>) -> String {
        match self {
            Name::Fixed(name) => name.clone(),
            Name::Template(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.clone(),
                    Piece::Slot(slot) => literal_text(*slot, pieces.len() == 1),
                })
                .collect(),
        }
    }
}

/// The text of the literal in a slot. The second argument is true if the name of a column is this literal
/// alone. Then a text literal is returned without quotes.
pub(crate) type LiteralText<'r> = dyn Fn(usize, bool) -> String + 'r;

/// The longest name of a result's column, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A name as a result shows it.
pub(crate) fn shown(mut name: String) -> String {
    let ends = |at: &usize| name.is_char_boundary(*at);
    let end = (0..=NAME_BYTES_MAX.min(name.len())).rev().find(ends).unwrap_or_default();
    name.truncate(end);
    name
}

/// Words that may stand between SELECT and the first column.
const MODIFIERS: [&str; 11] = [
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_CACHE",
    "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
];
/// The statements that may have RETURNING.
const CHANGES: [&str; 3] = ["INSERT", "REPLACE", "DELETE"];
/// Words that end the select list.
const ENDS: [&str; 14] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "FOR",
    "INTO",
    "LOCK",
    "PROCEDURE",
    "OFFSET",
];

/// The texts of the items of the first select list in a shape, or of its RETURNING. Empty if there is none.
pub(crate) fn select_list(shape: &[u8], mode: LexicalMode) -> Vec<Name> {
    let mut items = Items { shape, mode, at: 0, slot: 0, list: vec![], from: 0, from_slot: 0 };
    items.run();
    items.list
}

struct Items<'a> {
    shape: &'a [u8],
    mode: LexicalMode,
    at: usize,
    slot: usize,
    list: Vec<Name>,
    /// Where the current item starts, and the number of its first slot.
    from: usize,
    from_slot: usize,
}

impl Items<'_> {
    fn run(&mut self) {
        self.skip(|byte| byte.is_ascii_whitespace() || byte == b'(');
        self.skip_with();
        let first = self.word();
        if first.eq_ignore_ascii_case("SELECT") {
            self.skip_modifiers();
        } else if first.eq_ignore_ascii_case("VALUES") {
            // Its first row is in parentheses.
            self.skip(|byte| byte.is_ascii_whitespace());
            self.at += usize::from(self.shape.get(self.at) == Some(&b'('));
        } else if !CHANGES.iter().any(|change| change.eq_ignore_ascii_case(first)) || !self.find_returning() {
            return;
        }
        self.start_item();
        let mut depth = 0;
        let mut is_within = false;
        while let Some(&byte) = self.shape.get(self.at) {
            match byte {
                SLOT | LIST => {
                    self.slot += 1;
                    self.at += 2;
                }
                b'\'' | b'"' | b'`' => {
                    self.at = quote_end(self.shape, self.at, self.mode).unwrap_or(self.shape.len());
                }
                b'(' => {
                    depth += 1;
                    self.at += 1;
                }
                b')' if depth == 0 => break,
                b')' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' if depth == 0 => {
                    self.end_item(self.at);
                    self.at += 1;
                    self.start_item();
                }
                _ if is_word(byte) => {
                    let from = self.at;
                    let after_point = from > 0 && self.shape[from - 1] == b'.';
                    let word = self.word();
                    // WITHIN GROUP is part of an item.
                    let goes_on =
                        depth != 0 || after_point || is_within && word.eq_ignore_ascii_case("GROUP");
                    is_within = word.eq_ignore_ascii_case("WITHIN");
                    if !goes_on && ENDS.iter().any(|end| end.eq_ignore_ascii_case(word)) {
                        self.end_item(from);
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
        self.end_item(self.at);
    }

    fn skip_modifiers(&mut self) {
        loop {
            self.skip(|byte| byte.is_ascii_whitespace());
            let before = self.at;
            let word = self.word();
            if !MODIFIERS.iter().any(|modifier| modifier.eq_ignore_ascii_case(word)) {
                self.at = before;
                break;
            }
        }
    }

    /// Goes behind the RETURNING of a statement. False if it has none.
    fn find_returning(&mut self) -> bool {
        while let Some(&byte) = self.shape.get(self.at) {
            match byte {
                SLOT | LIST => {
                    self.slot += 1;
                    self.at += 2;
                }
                b'\'' | b'"' | b'`' => {
                    self.at = quote_end(self.shape, self.at, self.mode).unwrap_or(self.shape.len());
                }
                _ if is_word(byte) => {
                    let after_point = self.shape[self.at - 1] == b'.';
                    if self.word().eq_ignore_ascii_case("RETURNING") && !after_point {
                        return true;
                    }
                }
                _ => self.at += 1,
            }
        }
        false
    }

    /// Skips WITH and its definitions: all up to the first word behind a closing parenthesis, unless that is
    /// AS, or a comma follows.
    fn skip_with(&mut self) {
        let start = self.at;
        if !self.word().eq_ignore_ascii_case("WITH") {
            self.at = start;
            return;
        }
        let mut depth = 0;
        let mut closed = false;
        while let Some(&byte) = self.shape.get(self.at) {
            match byte {
                SLOT | LIST => {
                    self.slot += 1;
                    self.at += 2;
                    continue;
                }
                b'\'' | b'"' | b'`' => {
                    self.at = quote_end(self.shape, self.at, self.mode).unwrap_or(self.shape.len());
                    continue;
                }
                b'(' if closed => {
                    self.skip(|byte| byte.is_ascii_whitespace() || byte == b'(');
                    return;
                }
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    closed = depth == 0;
                }
                b',' => closed = false,
                _ if is_word(byte) => {
                    let before = self.at;
                    let is_as = self.word().eq_ignore_ascii_case("AS");
                    if closed && !is_as {
                        self.at = before;
                        return;
                    }
                    closed = false;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn skip(&mut self, matches: impl Fn(u8) -> bool) {
        while self.shape.get(self.at).is_some_and(|&byte| matches(byte)) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> &str {
        let from = self.at;
        self.skip(is_word);
        std::str::from_utf8(&self.shape[from..self.at]).unwrap_or_default()
    }

    fn start_item(&mut self) {
        self.from = self.at;
        self.from_slot = self.slot;
    }

    fn end_item(&mut self, end: usize) {
        self.list.push(name(self.shape[self.from..end.max(self.from)].trim_ascii(), self.from_slot));
    }
}

/// Makes a name of a piece of a shape. `slot` is the number of the piece's first slot.
fn name(text: &[u8], mut slot: usize) -> Name {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut at = 0;
    let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    while at < text.len() {
        if text[at] == SLOT || text[at] == LIST {
            if from < at {
                pieces.push(Piece::Text(text_of(&text[from..at])));
            }
            pieces.push(Piece::Slot(slot));
            slot += 1;
            at += 2;
            from = at;
        } else {
            at += 1;
        }
    }
    if pieces.is_empty() {
        return Name::Fixed(text_of(text));
    }
    if from < text.len() {
        pieces.push(Piece::Text(text_of(&text[from..])));
    }
    Name::Template(pieces)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Scan;

    fn names(text: &str) -> Vec<String> {
        let mut scan = Scan::default();
        scan.scan(b"", text.as_bytes(), LexicalMode::NONE);
        select_list(&scan.key, LexicalMode::NONE)
            .into_iter()
            .map(|name| name.filled(&|slot, _| format!("<{slot}>")))
            .collect()
    }

    #[test]
    fn names_are_the_texts_of_the_items_with_slots_for_literals() {
        assert_eq!(names("SELECT 1 +  1"), ["<0> +  <1>"]);
        assert_eq!(
            names("SELECT DISTINCT a, IF(b, ',', 2) , t.from FROM t WHERE 5"),
            ["a", "IF(b, <0>, <1>)", "t.from"]
        );
        assert_eq!(
            names("WITH c AS (SELECT 1), d (x) AS (SELECT 'AS', (2)) SELECT x+1, 'a' FROM c, d"),
            ["x+<3>", "<4>"]
        );
        assert_eq!(names("VALUES ((SELECT 1), x+ 2), (3, 4)"), ["(SELECT <0>)", "x+ <1>"]);
        assert_eq!(
            names("SELECT f(1) within GROUP (ORDER BY a) OVER (), within FROM t GROUP BY a"),
            ["f(<0>) within GROUP (ORDER BY a) OVER ()", "within"]
        );
        assert_eq!(names("(SELECT x'41', `a,b`) UNION SELECT 2"), ["x'41'", "`a,b`"]);
    }
}
