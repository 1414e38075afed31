//! Reads `INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')` straight from the bytes of the statement.
//!
//! It understands only what bulk loads send: a plain head, rows of literals or `?`, and nothing behind them.
//! Everything else gives `None`, and then the parser reads the statement. So this scanner need not tell
//! errors apart.

use super::mode::{LexicalMode, quote_end, unquote};
use std::borrow::Cow;

/// The part before the rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Head<'a> {
    pub replace: bool,
    pub ignore: bool,
    pub database: Option<Cow<'a, str>>,
    pub table: Cow<'a, str>,
    /// `None` means that there is no list: all columns.
    pub columns: Option<Vec<Cow<'a, str>>>,
}

/// One value of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Literal<'a> {
    Null,
    Default,
    Int(i64),
    UInt(u64),
    /// A number with a point: DECIMAL.
    Decimal(&'a [u8]),
    /// A number with an exponent: DOUBLE.
    Float(&'a [u8]),
    /// The bytes between the quotes, without any escape in them.
    Text(&'a [u8]),
    /// The bytes between the quotes, with escapes or doubled quotes, and the quote.
    Escaped(&'a [u8], u8),
    /// `X'0aff'`: the digits.
    Hex(&'a [u8]),
    /// `0x0aff`: the digits.
    Bits(&'a [u8]),
    /// The next `?`, counted from 0.
    Parameter(usize),
}

/// A cursor over the bytes of a statement.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    parameters: usize,
    mode: LexicalMode,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8], mode: LexicalMode) -> Scanner<'a> {
        Scanner { bytes, at: 0, parameters: 0, mode }
    }

    #[inline]
    fn peek(&self) -> u8 {
        // No statement has a zero byte outside of quotes that this scanner would accept.
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    #[inline]
    fn accept(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let end = self.at + word.len();
        let Some(found) = self.bytes.get(self.at..end) else { return false };
        let ends_here = !self.bytes.get(end).copied().is_some_and(is_name_byte);
        let accepted = found.eq_ignore_ascii_case(word.as_bytes()) && ends_here;
        if accepted {
            self.at = end;
        }
        accepted
    }

    fn name(&mut self) -> Option<Cow<'a, str>> {
        self.skip_blanks();
        let quote = self.peek();
        if quote == b'`' || quote == b'"' && !self.mode.quotes_text(quote) {
            let start = self.at + 1;
            let length = memchr::memchr(quote, self.bytes.get(start..)?)?;
            self.at = start + length + 1;
            // A doubled quote is rare, so it is left to the parser.
            if self.peek() == quote || length == 0 {
                return None;
            }
            return std::str::from_utf8(&self.bytes[start..start + length]).ok().map(Cow::Borrowed);
        }
        let start = self.at;
        while is_name_byte(self.peek()) {
            self.at += 1;
        }
        let name = std::str::from_utf8(&self.bytes[start..self.at]).ok()?;
        let starts_well = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        (starts_well && !is_reserved(name)).then_some(Cow::Borrowed(name))
    }

    /// Everything before the first row.
    pub(crate) fn head(&mut self) -> Option<Head<'a>> {
        let replace = self.accept_word("REPLACE");
        if !replace && !self.accept_word("INSERT") {
            return None;
        }
        let _ = self.accept_word("LOW_PRIORITY") || self.accept_word("HIGH_PRIORITY");
        let ignore = !replace && self.accept_word("IGNORE");
        self.accept_word("INTO");
        let mut database = None;
        let mut table = self.name()?;
        if self.peek() == b'.' {
            self.at += 1;
            database = Some(std::mem::replace(&mut table, self.name()?));
        }
        let columns = if self.accept(b'(') { Some(self.columns()?) } else { None };
        if !self.accept_word("VALUES") && !self.accept_word("VALUE") {
            return None;
        }
        Some(Head { replace, ignore, database, table, columns })
    }

    fn columns(&mut self) -> Option<Vec<Cow<'a, str>>> {
        let mut columns = Vec::new();
        if self.accept(b')') {
            return Some(columns);
        }
        loop {
            columns.push(self.name()?);
            if self.accept(b')') {
                return Some(columns);
            }
            if !self.accept(b',') {
                return None;
            }
        }
    }

    /// Replaces `row` by the values of the next row.
    #[inline]
    pub(crate) fn row(&mut self, row: &mut Vec<Literal<'a>>) -> Option<()> {
        row.clear();
        if !self.accept(b'(') {
            return None;
        }
        if self.accept(b')') {
            return Some(());
        }
        loop {
            self.skip_blanks();
            row.push(self.literal()?);
            self.skip_blanks();
            match self.peek() {
                b',' => self.at += 1,
                b')' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// After a row: true if another row follows, false at the end of the statement. `None` for anything else.
    #[inline]
    pub(crate) fn another_row(&mut self) -> Option<bool> {
        if self.accept(b',') {
            return Some(true);
        }
        self.accept(b';');
        self.skip_blanks();
        (self.at == self.bytes.len()).then_some(false)
    }

    #[inline]
    fn literal(&mut self) -> Option<Literal<'a>> {
        match self.peek() {
            b'\'' => self.text(b'\''),
            b'0'..=b'9' | b'-' | b'+' | b'.' => self.number(),
            b'?' => {
                self.at += 1;
                self.parameters += 1;
                Some(Literal::Parameter(self.parameters - 1))
            }
            b'"' if self.mode.quotes_text(b'"') => self.text(b'"'),
            _ => self.word_literal(),
        }
    }

    #[inline]
    fn text(&mut self, quote: u8) -> Option<Literal<'a>> {
        let start = self.at + 1;
        let rest = self.bytes.get(start..)?;
        let special = if self.mode.escapes() { b'\\' } else { quote };
        let at = start + memchr::memchr2(quote, special, rest)?;
        let escaped = self.bytes[at] != quote || self.bytes.get(at + 1) == Some(&quote);
        self.at = if escaped { quote_end(self.bytes, start - 1, self.mode)? } else { at + 1 };
        let inner = &self.bytes[start..self.at - 1];
        // 'a' 'b' is one text. This is left to the parser.
        self.skip_blanks();
        if matches!(self.peek(), b'\'' | b'"') {
            return None;
        }
        Some(if escaped { Literal::Escaped(inner, quote) } else { Literal::Text(inner) })
    }

    #[inline]
    fn number(&mut self) -> Option<Literal<'a>> {
        let start = self.at;
        let negative = self.peek() == b'-';
        if negative || self.peek() == b'+' {
            self.at += 1;
        }
        let digits_start = self.at;
        let mut value: u64 = 0;
        let mut overflow = false;
        while let digit @ b'0'..=b'9' = self.peek() {
            let (shifted, first) = value.overflowing_mul(10);
            let (sum, second) = shifted.overflowing_add(u64::from(digit - b'0'));
            overflow |= first | second;
            value = sum;
            self.at += 1;
        }
        match self.peek() {
            b'.' | b'e' | b'E' => return self.fraction(start),
            b'x' | b'X' if self.at == digits_start + 1 && value == 0 && start == digits_start => {
                return self.hexadecimal();
            }
            byte if is_name_byte(byte) => return None,
            _ => {}
        }
        if self.at == digits_start {
            return None;
        }
        if overflow {
            return Some(Literal::Decimal(&self.bytes[start..self.at]));
        }
        if !negative {
            return Some(match i64::try_from(value) {
                Ok(value) => Literal::Int(value),
                Err(_) => Literal::UInt(value),
            });
        }
        Some(match 0i64.checked_sub_unsigned(value) {
            Some(value) => Literal::Int(value),
            None => Literal::Decimal(&self.bytes[start..self.at]),
        })
    }

    fn fraction(&mut self, start: usize) -> Option<Literal<'a>> {
        let mut digits = self.at - start;
        if self.peek() == b'.' {
            self.at += 1;
            while self.peek().is_ascii_digit() {
                self.at += 1;
                digits += 1;
            }
        }
        if digits == 0 {
            return None;
        }
        if !matches!(self.peek(), b'e' | b'E') {
            return (!is_name_byte(self.peek())).then(|| Literal::Decimal(&self.bytes[start..self.at]));
        }
        self.at += 1;
        if matches!(self.peek(), b'+' | b'-') {
            self.at += 1;
        }
        let exponent = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        (self.at > exponent && !is_name_byte(self.peek()))
            .then(|| Literal::Float(&self.bytes[start..self.at]))
    }

    /// `0x0aff`, from the `x` on.
    fn hexadecimal(&mut self) -> Option<Literal<'a>> {
        self.at += 1;
        let start = self.at;
        while self.peek().is_ascii_hexdigit() {
            self.at += 1;
        }
        let digits = &self.bytes[start..self.at];
        (!digits.is_empty() && !is_name_byte(self.peek())).then_some(Literal::Bits(digits))
    }

    fn word_literal(&mut self) -> Option<Literal<'a>> {
        let words = [
            ("NULL", Literal::Null),
            ("DEFAULT", Literal::Default),
            ("TRUE", Literal::Int(1)),
            ("FALSE", Literal::Int(0)),
        ];
        for (word, literal) in words {
            if self.accept_word(word) {
                // DEFAULT(c) and the like.
                self.skip_blanks();
                return (self.peek() != b'(').then_some(literal);
            }
        }
        if matches!(self.peek(), b'x' | b'X') && self.bytes.get(self.at + 1) == Some(&b'\'') {
            self.at += 1;
            let Literal::Text(digits) = self.text(b'\'')? else { return None };
            let good = digits.len() % 2 == 0 && digits.iter().all(u8::is_ascii_hexdigit);
            return good.then_some(Literal::Hex(digits));
        }
        // What dumps put before the bytes of a BLOB.
        if self.accept_word("_binary") {
            self.skip_blanks();
            return if self.peek() == b'\'' { self.text(b'\'') } else { None };
        }
        None
    }

    /// The bytes that an escaped text stands for.
    pub(crate) fn unescape(&self, inner: &[u8], quote: u8, out: &mut Vec<u8>) {
        unquote(inner, quote, self.mode, out);
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Words that can stand in the place of a name and mean something else.
fn is_reserved(name: &str) -> bool {
    ["VALUES", "VALUE", "SELECT", "SET", "WITH", "PARTITION", "TABLE", "DELAYED", "INTO", "IGNORE"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(sql: &str) -> Option<(Head<'_>, Vec<Vec<Literal<'_>>>)> {
        let mut scanner = Scanner::new(sql.as_bytes(), LexicalMode::NONE);
        let head = scanner.head()?;
        let mut rows = Vec::new();
        loop {
            let mut row = Vec::new();
            scanner.row(&mut row)?;
            rows.push(row);
            if !scanner.another_row()? {
                return Some((head, rows));
            }
        }
    }

    #[test]
    fn rows_of_literals_are_read_without_a_parser() {
        let (head, rows) = scan(
            "insert into `d`.`t` (a, `b c`) VALUES (1, 'x'),(-2,\"y\") ,\n (NULL , DEFAULT),(1.50,1e3),(0x0F,X'ff'),(?,?);",
        )
        .expect("a plain insert");
        assert_eq!(head.database.as_deref(), Some("d"));
        assert_eq!(head.table, "t");
        assert_eq!(head.columns, Some(vec!["a".into(), "b c".into()]));
        assert_eq!(
            rows,
            [
                [Literal::Int(1), Literal::Text(b"x")],
                [Literal::Int(-2), Literal::Text(b"y")],
                [Literal::Null, Literal::Default],
                [Literal::Decimal(b"1.50"), Literal::Float(b"1e3")],
                [Literal::Bits(b"0F"), Literal::Hex(b"ff")],
                [Literal::Parameter(0), Literal::Parameter(1)],
            ]
        );
    }

    #[test]
    fn whatever_is_not_plain_is_left_to_the_parser() {
        for sql in [
            "INSERT INTO t VALUES (1+1)",
            "INSERT INTO t VALUES (NOW())",
            "INSERT INTO t VALUES ('a' 'b')",
            "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a=1",
            "INSERT INTO t VALUES (1), ",
            "INSERT INTO t VALUES (1",
            "INSERT INTO t VALUES ('a",
            "INSERT INTO t VALUES ('a\\",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t SET a=1",
            "INSERT INTO t VALUES (1); SELECT 1",
            "INSERT INTO t VALUES (-)",
            "INSERT INTO t VALUES (.)",
            "INSERT INTO t VALUES (1e)",
            "INSERT INTO t VALUES (0x)",
            "INSERT INTO t VALUES (DEFAULT(a))",
            "INSERT INTO t VALUES (a)",
            "INSERT INTO t VALUES (1) -- x",
            "INSERT /* x */ INTO t VALUES (1)",
            "INSERT DELAYED INTO t VALUES (1)",
            "SELECT 1",
            "",
        ] {
            assert_eq!(scan(sql), None, "{sql}");
        }
    }

    #[test]
    fn escapes_and_doubled_quotes_stand_for_one_byte() {
        let value = |sql: &str, mode: LexicalMode| {
            let mut scanner = Scanner::new(sql.as_bytes(), mode);
            scanner.head().expect("a plain insert");
            let mut row = Vec::new();
            scanner.row(&mut row).expect("a row");
            let Literal::Escaped(inner, quote) = row[0] else { panic!("{row:?}") };
            let mut out = Vec::new();
            scanner.unescape(inner, quote, &mut out);
            String::from_utf8(out).unwrap()
        };
        let plain = LexicalMode::NONE;
        assert_eq!(value(r"INSERT INTO t VALUES ('it''s \n \' \% \q')", plain), "it's \n ' \\% q");
        assert_eq!(value(r"INSERT INTO t VALUES ('a\n''b')", LexicalMode::NO_BACKSLASH_ESCAPES), r"a\n'b");
        // Only the quotes around a text are doubled in it.
        assert_eq!(
            value(r#"INSERT INTO t VALUES ('{"a":"","b":"it''s"}')"#, plain),
            r#"{"a":"","b":"it's"}"#
        );
        assert_eq!(value(r#"INSERT INTO t VALUES ("''\"""")"#, plain), r#"''"""#);
    }

    #[test]
    fn whole_numbers_keep_their_sign_and_spill_into_decimals() {
        let (_, rows) =
            scan("INSERT t VALUES (9223372036854775807,9223372036854775808,-9223372036854775808,18446744073709551616,-9223372036854775809)")
                .expect("a plain insert");
        assert_eq!(
            rows[0],
            [
                Literal::Int(i64::MAX),
                Literal::UInt(1 << 63),
                Literal::Int(i64::MIN),
                Literal::Decimal(b"18446744073709551616"),
                Literal::Decimal(b"-9223372036854775809"),
            ]
        );
    }
}
