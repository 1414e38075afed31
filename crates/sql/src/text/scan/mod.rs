//! The literal-normalising scanner.

use super::literal::{Literal, LiteralPosition};
use super::mode::{LexicalMode, is_line_comment, push_escaped, quote_end};
use crate::text::SlotKind;
mod words;

use words::{After, Keyword, keyword};

/// Stands for a slot in a key. The byte after it gives the kind. Outside of quotes no useful statement has
/// this byte, and a text that has it is not scanned.
pub(crate) const SLOT: u8 = 1;
/// Stands for a slot that holds a list.
pub(crate) const LIST: u8 = 2;
/// The kind of a slot that holds a decimal number, plus the number's digits after the point.
const SCALED: u8 = 0x80;
/// The kind of a slot that holds a parameter, until the slot is filled.
const UNBOUND: u8 = b'?';

/// A slot of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotShape {
    /// `None` if it holds a parameter.
    pub kind: Option<SlotKind>,
    /// It is the list of an IN.
    pub list: bool,
    /// Where the literal stands in the text: what names of result columns show.
    pub from: u32,
    pub end: u32,
    /// The digits behind the point of a decimal belong to its kind.
    pub keeps_scale: bool,
    /// Where its kind stands in the key.
    key_at: u32,
}

/// How a scan ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScanEnd {
    /// At the end of the text.
    Whole,
    /// At a `;` with more behind it.
    Semicolon,
    /// The text cannot be scanned: executable comments must be opened first, a quote is open, or a byte does
    /// not belong there. The parser decides.
    Unscannable,
}

/// A scanned statement. It is reused from statement to statement for its buffers.
#[derive(Clone, Default, Debug)]
pub(crate) struct Scan {
    /// What was there before the text (the default database), then the text without literals and comments.
    pub key: Vec<u8>,
    /// The text starts here in `key`.
    pub key_start: usize,
    pub slots: Vec<SlotShape>,
    pub literals: Vec<Literal>,
    /// As in [`crate::expr::Slots`].
    pub starts: Vec<u32>,
    pub unescaped: Vec<u8>,
    /// The number of `?`.
    pub parameters: u16,
}

impl Scan {
    /// Scans a statement, read as `mode` says. `prefix` is put before the key.
    pub(crate) fn scan(&mut self, prefix: &[u8], text: &[u8], mode: LexicalMode) -> ScanEnd {
        self.key.clear();
        self.key.extend_from_slice(prefix);
        self.key_start = self.key.len();
        self.slots.clear();
        self.literals.clear();
        self.starts.clear();
        self.starts.push(0);
        self.unescaped.clear();
        self.parameters = 0;
        if text.len() > u32::MAX as usize / 2 {
            return ScanEnd::Unscannable;
        }
        let mut scanner = Scanner {
            text,
            mode,
            at: 0,
            copied: 0,
            out: self,
            previous: Previous::Operator,
            in_pending: false,
            depth: 0,
            by_depth: None,
            verbatim_depth: None,
            type_word: false,
            text_end: 0,
        };
        let end = scanner.run();
        while self.key.len() > self.key_start && self.key.last().is_some_and(u8::is_ascii_whitespace) {
            self.key.pop();
        }
        end
    }

    /// Writes the kinds of the values that fill slots into the key, so that it is the key that the same text
    /// with literals of these kinds would have.
    pub(crate) fn fill_kinds(&mut self, kinds: &[SlotKind]) {
        for (slot, kind) in self.slots.iter().zip(kinds) {
            if slot.kind.is_none() {
                self.key[slot.key_at as usize] = kind_byte(Some(*kind));
            }
        }
    }

    /// The kind of a slot in the key, which is the kind of the value that fills the slot.
    pub(crate) fn kind_in_key(&self, slot: &SlotShape) -> SlotKind {
        match self.key.get(slot.key_at as usize) {
            Some(b'i') => SlotKind::Int,
            Some(b'u') => SlotKind::UInt,
            Some(b'd') => SlotKind::Decimal { scale: None },
            Some(byte @ SCALED..) => SlotKind::Decimal { scale: Some(byte - SCALED) },
            Some(b'e') => SlotKind::Double,
            Some(b't') => SlotKind::Text,
            Some(b'b') => SlotKind::Binary,
            Some(b'D') => SlotKind::Date,
            Some(b'T') => SlotKind::Time,
            Some(b'h') => SlotKind::TimeOf(0),
            Some(b'M') => SlotKind::DateTime,
            Some(b'm') => SlotKind::DateTimeOf(0),
            Some(b'x') => SlotKind::Mixed,
            _ => SlotKind::Null,
        }
    }

    /// True for a SELECT, also one in parentheses or behind EXPLAIN.
    fn is_query(&self) -> bool {
        self.begins_with(&[b"SELECT", b"(", b"WITH", b"EXPLAIN", b"VALUES"])
    }

    /// In how many parentheses the values stand that go into columns.
    fn depth_of_values(&self) -> u32 {
        u32::from(self.begins_with(&[b"INSERT", b"REPLACE"]))
    }

    fn begins_with(&self, words: &[&[u8]]) -> bool {
        let text = self.key[self.key_start..].trim_ascii_start();
        words.iter().any(|word| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    }

    /// The text for the parser: slots as numbered placeholders.
    pub(crate) fn parser_text(&self) -> Vec<u8> {
        let key = &self.key[self.key_start..];
        let mut out = Vec::with_capacity(key.len() + self.slots.len() * 4);
        let mut number = 0;
        let mut at = 0;
        while at < key.len() {
            if key[at] == SLOT || key[at] == LIST {
                // Blanks separate it from words. Behind `--` a blank would begin a comment.
                if out.last() != Some(&b'-') {
                    out.push(b' ');
                }
                out.extend_from_slice(format!("?{number} ").as_bytes());
                number += 1;
                at += 2;
            } else {
                out.push(key[at]);
                at += 1;
            }
        }
        out
    }
}

fn kind_byte(kind: Option<SlotKind>) -> u8 {
    match kind {
        None => UNBOUND,
        Some(SlotKind::Null) => b'0',
        Some(SlotKind::Int) => b'i',
        Some(SlotKind::UInt) => b'u',
        Some(SlotKind::Decimal { scale: None }) => b'd',
        Some(SlotKind::Decimal { scale: Some(scale) }) => SCALED + scale.min(types::decimal::SCALE_MAX),
        Some(SlotKind::Double | SlotKind::FloatOf) => b'e',
        Some(SlotKind::Text | SlotKind::TextOf(_)) => b't',
        Some(SlotKind::Binary) => b'b',
        Some(SlotKind::Date) => b'D',
        Some(SlotKind::TimeOf(0)) => b'h',
        Some(SlotKind::Time | SlotKind::TimeOf(_)) => b'T',
        Some(SlotKind::DateTimeOf(0)) => b'm',
        Some(SlotKind::DateTime | SlotKind::DateTimeOf(_)) => b'M',
        Some(SlotKind::Mixed) => b'x',
    }
}

/// The kind of token before. It decides whether `-` is a sign and whether a string is an alias.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Previous {
    /// A value or a name: `-` subtracts, a string is an alias.
    Operand,
    /// An operator, a comma, an opening parenthesis or a keyword that a value follows.
    Operator,
    /// A word after which strings are syntax and not values: AS, COLLATE, DATE, ESCAPE...
    Syntax,
}

struct Scanner<'a, 's> {
    text: &'a [u8],
    mode: LexicalMode,
    at: usize,
    /// The text before this is in the key.
    copied: usize,
    out: &'s mut Scan,
    previous: Previous,
    /// The last word was IN: a parenthesis may open a list.
    in_pending: bool,
    depth: u32,
    /// Behind ORDER BY or GROUP BY at this depth: numbers are positions.
    by_depth: Option<u32>,
    /// Inside of `DECIMAL(...)` and its like, opened at this depth: numbers are syntax.
    verbatim_depth: Option<u32>,
    /// The last word may name a type.
    type_word: bool,
    /// Where the last text ended.
    text_end: usize,
}

impl Scanner<'_, '_> {
    fn run(&mut self) -> ScanEnd {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.at += 1;
                    if self.copied + 1 == self.at && self.out.key.len() == self.out.key_start {
                        // Blanks before the first word.
                        self.copied = self.at;
                    }
                    continue;
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80..=0xff => {
                    if !self.word() {
                        return ScanEnd::Unscannable;
                    }
                    continue;
                }
                b'0'..=b'9' => self.number(self.at),
                b'.' if self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit)
                    && self.previous != Previous::Operand =>
                {
                    self.number(self.at);
                }
                b'\'' | b'"' | b'`' => {
                    if !self.quoted(byte) {
                        return ScanEnd::Unscannable;
                    }
                }
                b'@' => self.variable(),
                b'?' => {
                    if !self.parameter() {
                        return ScanEnd::Unscannable;
                    }
                }
                b'(' => {
                    if self.open() {
                        self.list();
                        continue;
                    }
                }
                b')' => self.close(),
                b'-' => {
                    if is_line_comment(self.text, self.at) {
                        self.skip_comment_to(self.line_end(self.at));
                        continue;
                    }
                    self.sign();
                }
                b'#' => {
                    self.skip_comment_to(self.line_end(self.at));
                    continue;
                }
                b'/' if self.text.get(self.at + 1) == Some(&b'*') => {
                    if !self.block_comment() {
                        return ScanEnd::Unscannable;
                    }
                    continue;
                }
                b';' => {
                    let end = self.at;
                    self.copy_to(end);
                    self.at += 1;
                    self.skip_blanks();
                    self.copied = self.text.len();
                    return if self.at < self.text.len() { ScanEnd::Semicolon } else { ScanEnd::Whole };
                }
                SLOT | LIST => return ScanEnd::Unscannable,
                b'.' => {
                    // The word behind a point is a name, even if it looks like a keyword.
                    self.at += 1;
                    self.previous = Previous::Operand;
                    while self.text.get(self.at).is_some_and(|&byte| is_word(byte)) {
                        self.at += 1;
                    }
                }
                b'*' => {
                    // This is an operator, or it means all columns. For a sign or an alias that makes no
                    // difference.
                    self.at += 1;
                    self.previous = Previous::Operator;
                }
                _ => {
                    self.at += 1;
                    self.previous = Previous::Operator;
                }
            }
            self.in_pending = false;
            self.type_word = false;
        }
        self.copy_to(self.text.len());
        ScanEnd::Whole
    }

    /// `?`. False if there are too many.
    #[inline]
    fn parameter(&mut self) -> bool {
        let index = self.out.parameters;
        if index == u16::MAX {
            return false;
        }
        self.out.parameters += 1;
        self.literal(self.at, self.at + 1, Literal::Parameter(index));
        true
    }

    /// `(`. True if the list of an IN begins behind it.
    #[inline]
    fn open(&mut self) -> bool {
        if self.type_word && self.verbatim_depth.is_none() {
            self.verbatim_depth = Some(self.depth);
        }
        self.depth += 1;
        self.at += 1;
        self.previous = Previous::Operator;
        let is_list = self.in_pending;
        if is_list {
            self.in_pending = false;
            self.type_word = false;
        }
        is_list
    }

    /// `)`.
    #[inline]
    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.by_depth.is_some_and(|depth| self.depth < depth) {
            self.by_depth = None;
        }
        if self.verbatim_depth == Some(self.depth) {
            self.verbatim_depth = None;
        }
        self.at += 1;
        self.previous = Previous::Operand;
    }

    /// A comment from `/*` to `*/`. False if it has no end, or if it is one that is executed.
    fn block_comment(&mut self) -> bool {
        let is_executed = match self.text.get(self.at + 2) {
            Some(b'!') => true,
            Some(b'M') => self.text.get(self.at + 3) == Some(&b'!'),
            _ => false,
        };
        if is_executed {
            return false;
        }
        match self.block_comment_end(self.at) {
            Some(end) => self.skip_comment_to(end),
            None => return false,
        }
        true
    }

    /// Copies what has been read up to `end` into the key.
    fn copy_to(&mut self, end: usize) {
        if self.copied < end {
            self.out.key.extend_from_slice(&self.text[self.copied..end]);
        }
        self.copied = end;
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].iter().position(|&byte| byte == b'\n').map_or(self.text.len(), |at| from + at)
    }

    fn block_comment_end(&self, from: usize) -> Option<usize> {
        let rest = &self.text[from + 2..];
        rest.windows(2).position(|pair| pair == b"*/").map(|at| from + at + 4)
    }

    fn skip_comment_to(&mut self, end: usize) {
        self.copy_to(self.at);
        // A comment separates words. Behind `--` a blank would begin another one.
        let blank: &[u8] = if self.out.key.last() == Some(&b'-') { b"/**/" } else { b" " };
        self.out.key.extend_from_slice(blank);
        self.at = end;
        self.copied = end;
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(|&byte| byte.is_ascii_whitespace() || byte == b';') {
            self.at += 1;
        }
    }

    /// A quoted text or name. False if it is not closed.
    #[inline]
    fn quoted(&mut self, quote: u8) -> bool {
        if self.mode.quotes_text(quote) {
            return self.string_from(self.at, self.at, false);
        }
        match quote_end(self.text, self.at, self.mode) {
            Some(end) => {
                self.at = end;
                self.previous = Previous::Operand;
                true
            }
            None => false,
        }
    }

    /// True for the quote of a text.
    #[inline]
    fn is_text_quote(&self, byte: Option<&u8>) -> bool {
        byte.is_some_and(|&byte| self.mode.quotes_text(byte))
    }

    /// Reads a word. False if what follows cannot be scanned.
    #[inline]
    fn word(&mut self) -> bool {
        let from = self.at;
        let mut end = from + 1;
        while self.text.get(end).is_some_and(|&byte| is_word(byte)) {
            end += 1;
        }
        let word = &self.text[from..end];
        self.at = end;
        self.in_pending = false;
        self.type_word = false;
        let is_member = self.previous == Previous::Operand && from > 0 && self.text[from - 1] == b'.';
        // A string right behind: N'...', X'...', b'...', _utf8mb4'...'.
        if self.text.get(end) == Some(&b'\'') && !is_member {
            match word {
                b"x" | b"X" | b"b" | b"B" => {
                    // Hexadecimal and bit literals stay in the text.
                    let Some(string_end) = self.digits_end(end, word) else { return false };
                    self.at = string_end;
                    self.previous = Previous::Operand;
                    return true;
                }
                b"n" | b"N" => {
                    self.at = end;
                    return self.string_from(from, end, false);
                }
                _ => {}
            }
        }
        if word[0] == b'_'
            && self.previous != Previous::Operand
            && let Some(binary) = introducer(word)
        {
            let mut quote = end;
            while self.text.get(quote).is_some_and(u8::is_ascii_whitespace) {
                quote += 1;
            }
            if self.is_text_quote(self.text.get(quote)) {
                return self.string_from(from, quote, binary);
            }
        }
        if is_member {
            return true;
        }
        match keyword(word) {
            Some(Keyword { after, starts_list, by, ends_by, is_type }) => {
                self.previous = match after {
                    After::Value => Previous::Operator,
                    After::Syntax => Previous::Syntax,
                    After::Name => Previous::Operand,
                };
                self.in_pending = starts_list;
                self.type_word = is_type;
                if by {
                    self.by_depth = Some(self.depth);
                }
                if ends_by && self.by_depth == Some(self.depth) {
                    self.by_depth = None;
                }
            }
            None => self.previous = Previous::Operand,
        }
        true
    }

    /// `@name`, `@@name`, `@'name'`: stays in the text.
    fn variable(&mut self) {
        while self.text.get(self.at) == Some(&b'@') {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'`' | b'\'' | b'"') => {
                // What follows a quote without an end is not a statement. The parser says so.
                self.at = quote_end(self.text, self.at, self.mode).unwrap_or(self.text.len());
            }
            _ => {
                while self.text.get(self.at).is_some_and(|&byte| is_word(byte) || byte == b'.') {
                    self.at += 1;
                }
            }
        }
        self.previous = Previous::Operand;
    }

    /// A minus. It is the sign of a number if no operand stands before it.
    fn sign(&mut self) {
        let number = self.at + 1;
        let starts_number = match self.text.get(number) {
            Some(byte) if byte.is_ascii_digit() => true,
            Some(b'.') => self.text.get(number + 1).is_some_and(u8::is_ascii_digit),
            _ => false,
        };
        if starts_number && self.previous == Previous::Operator {
            self.number(self.at);
        } else {
            self.at += 1;
            self.previous = Previous::Operator;
        }
    }

    /// The text from `from` to `end` is a literal. A slot replaces it in the key, unless the literal is part
    /// of the syntax here.
    #[inline]
    fn literal(&mut self, from: usize, end: usize, literal: Literal) {
        self.at = end;
        let is_string = matches!(literal, Literal::Text(_));
        let verbatim = match literal {
            Literal::Parameter(_) => false,
            _ if self.verbatim_depth.is_some() => true,
            _ if is_string => self.previous != Previous::Operator,
            _ => self.by_depth.is_some() || self.previous == Previous::Syntax,
        };
        self.previous = Previous::Operand;
        if verbatim {
            return;
        }
        self.copy_to(from);
        self.copied = end;
        let may_be_decimal = matches!(literal, Literal::Decimal { .. } | Literal::Parameter(_));
        let keeps_scale = may_be_decimal && self.keeps_scale();
        let kind = match literal {
            Literal::Decimal { from, end, .. } if keeps_scale => {
                Some(self.scaled_kind(from as usize, end as usize))
            }
            _ => literal.kind(),
        };
        self.out.key.extend_from_slice(&[SLOT, kind_byte(kind)]);
        let key_at = self.out.key.len() as u32 - 1;
        let (from, end) = (from as u32, end as u32);
        self.out.slots.push(SlotShape { kind, list: false, from, end, keeps_scale, key_at });
        self.out.literals.push(literal);
        self.out.starts.push(self.out.literals.len() as u32);
    }

    /// Results depend on the digits behind the point of decimals: `COALESCE(1.5, 2.25)` is 1.50. Where a
    /// value goes straight into a column, the column decides, and all numbers share a plan.
    fn keeps_scale(&self) -> bool {
        let is_part = self.depth > self.out.depth_of_values();
        is_part || self.out.is_query()
    }

    fn scaled_kind(&self, from: usize, end: usize) -> SlotKind {
        let digits = &self.text[from..end];
        let scale = digits.iter().rev().position(|byte| *byte == b'.').unwrap_or(0);
        let is_decimal = digits.len() <= usize::from(types::decimal::PRECISION_MAX);
        let scale = u8::try_from(scale).ok();
        SlotKind::Decimal { scale: scale.filter(|scale| is_decimal && *scale <= types::decimal::SCALE_MAX) }
    }

    fn number(&mut self, from: usize) {
        match read_number(self.text, from) {
            Some((literal, end)) => self.literal(from, end, literal),
            None => {
                // A name that starts with digits, or 0x...: stays in the text.
                self.at = from + 1;
                while self.text.get(self.at).is_some_and(|&byte| is_word(byte)) {
                    self.at += 1;
                }
                self.previous = Previous::Operand;
            }
        }
    }

    /// A string. Its quote is at `quote`, and what introduces it begins at `from`. False if it is not closed,
    /// or if only a comment separates it from the string before, whose continuation it is then.
    fn string_from(&mut self, from: usize, quote: usize, binary: bool) -> bool {
        if self.previous == Previous::Operand && self.text_end > 0 && self.is_behind_comment(from) {
            return false;
        }
        let Some((position, end)) = self.read_string(quote) else { return false };
        self.text_end = end;
        let literal = if binary { Literal::Binary(position) } else { Literal::Text(position) };
        self.literal(from, end, literal);
        true
    }

    /// True if nothing but blanks and comments is between the last text and this place.
    fn is_behind_comment(&self, place: usize) -> bool {
        let mut at = self.text_end;
        while at < place {
            at = match self.text[at] {
                byte if byte.is_ascii_whitespace() => at + 1,
                b'#' => self.line_end(at),
                b'-' if is_line_comment(self.text, at) => self.line_end(at),
                b'/' if self.text[at + 1] == b'*' => match self.block_comment_end(at) {
                    Some(end) => end,
                    None => return false,
                },
                _ => return false,
            };
        }
        at == place
    }

    /// The end of the digits behind `x` or `b`. `None` if other characters are among them.
    fn digits_end(&self, quote: usize, word: &[u8]) -> Option<usize> {
        let rest = &self.text[quote + 1..];
        let length = rest.iter().position(|&byte| byte == b'\'')?;
        let most = if matches!(word, b"b" | b"B") { b'1' } else { b'f' };
        let is_good = rest[..length].iter().all(|byte| byte.is_ascii_hexdigit() && *byte <= most);
        is_good.then_some(quote + length + 2)
    }

    /// Reads a string, and those that follow it with nothing but blanks between (they are one).
    fn read_string(&mut self, quote: usize) -> Option<(LiteralPosition, usize)> {
        let close = self.text[quote];
        // Without escapes, a quote ends the search and nothing else does.
        let special = if self.mode.escapes() { b'\\' } else { close };
        let from = quote + 1;
        let mut at = from;
        loop {
            let byte = *self.text.get(at)?;
            if byte == close || byte == special {
                break;
            }
            at += 1;
        }
        let mut next = at + 1;
        while self.text.get(next).is_some_and(u8::is_ascii_whitespace) {
            next += 1;
        }
        if self.text[at] == close && !self.is_text_quote(self.text.get(next)) {
            return Some((LiteralPosition::Text { from: from as u32, end: at as u32 }, at + 1));
        }
        self.unescape(quote)
    }

    fn unescape(&mut self, quote: usize) -> Option<(LiteralPosition, usize)> {
        let start = self.out.unescaped.len();
        let mut close = self.text[quote];
        let mut at = quote + 1;
        loop {
            let byte = *self.text.get(at)?;
            if byte == b'\\' && self.mode.escapes() {
                push_escaped(*self.text.get(at + 1)?, &mut self.out.unescaped);
                at += 2;
            } else if byte != close {
                self.out.unescaped.push(byte);
                at += 1;
            } else if self.text.get(at + 1) == Some(&close) {
                self.out.unescaped.push(close);
                at += 2;
            } else {
                at += 1;
                let mut next = at;
                while self.text.get(next).is_some_and(u8::is_ascii_whitespace) {
                    next += 1;
                }
                match self.text.get(next) {
                    Some(&quote) if self.mode.quotes_text(quote) => {
                        close = quote;
                        at = next + 1;
                    }
                    _ => break,
                }
            }
        }
        let end = self.out.unescaped.len();
        Some((LiteralPosition::Unescaped { from: start as u32, end: end as u32 }, at))
    }

    /// After `IN (`: if only literals or only parameters follow, they become one slot.
    fn list(&mut self) {
        let from = self.at;
        let mark = (self.out.literals.len(), self.out.unescaped.len(), self.out.parameters);
        match self.list_literals() {
            Some((kind, end)) => {
                self.copy_to(from);
                self.copied = end;
                self.at = end;
                self.out.key.extend_from_slice(&[LIST, kind_byte(kind)]);
                let key_at = self.out.key.len() as u32 - 1;
                let (from, end) = (from as u32, end as u32);
                let slot = SlotShape { kind, list: true, from, end, keeps_scale: false, key_at };
                self.out.slots.push(slot);
                self.out.starts.push(self.out.literals.len() as u32);
                self.previous = Previous::Operand;
            }
            None => {
                self.out.literals.truncate(mark.0);
                self.out.unescaped.truncate(mark.1);
                self.out.parameters = mark.2;
                self.at = from;
            }
        }
    }

    fn list_literals(&mut self) -> Option<(Option<SlotKind>, usize)> {
        let mut at = self.at;
        let mut kind: Option<Option<SlotKind>> = None;
        loop {
            while self.text.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            let literal;
            match *self.text.get(at)? {
                b'0'..=b'9' | b'-' | b'.' => {
                    let (number, end) = read_number(self.text, at)?;
                    (literal, at) = (number, end);
                }
                quote if self.mode.quotes_text(quote) => {
                    let (position, end) = self.read_string(at)?;
                    (literal, at) = (Literal::Text(position), end);
                }
                b'?' => {
                    literal = Literal::Parameter(self.out.parameters);
                    self.out.parameters = self.out.parameters.checked_add(1)?;
                    at += 1;
                }
                _ => return None,
            }
            self.out.literals.push(literal);
            kind = Some(match (kind, literal.kind()) {
                (None, kind) => kind,
                (Some(before), now) if before == now => before,
                // A list with both parameters and literals has no common kind until its slots are filled.
                (Some(None), _) | (_, None) => return None,
                _ => Some(SlotKind::Mixed),
            });
            while self.text.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            match *self.text.get(at)? {
                b',' => at += 1,
                b')' => return kind.map(|kind| (kind, at)),
                _ => return None,
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Whether `_name` introduces a string, and if so whether a binary one.
fn introducer(word: &[u8]) -> Option<bool> {
    // The parser reads the others, whose texts have a collation of their own.
    let names: [&[u8]; 2] = [b"_binary", b"_utf8mb4"];
    names.iter().position(|name| name.eq_ignore_ascii_case(word)).map(|position| position == 0)
}

/// Reads a number with an optional sign. `None` if it is no number (0x41, 1st).
fn read_number(text: &[u8], from: usize) -> Option<(Literal, usize)> {
    let negative = text.get(from) == Some(&b'-');
    let digits_from = from + usize::from(negative);
    let mut at = digits_from;
    let mut value: u64 = 0;
    let mut overflow = false;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        match value.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit - b'0'))) {
            Some(next) => value = next,
            None => overflow = true,
        }
        at += 1;
    }
    let mut digits = at - digits_from;
    let mut fraction = false;
    if text.get(at) == Some(&b'.') {
        fraction = true;
        at += 1;
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
            digits += 1;
        }
    }
    if digits == 0 {
        return None;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let mut exponent = at + 1;
        if let Some(b'+' | b'-') = text.get(exponent) {
            exponent += 1;
        }
        if text.get(exponent).is_some_and(u8::is_ascii_digit) {
            while text.get(exponent).is_some_and(u8::is_ascii_digit) {
                exponent += 1;
            }
            if text.get(exponent).is_some_and(|&byte| is_word(byte)) {
                return None;
            }
            let number = std::str::from_utf8(&text[from..exponent]).ok()?;
            return Some((Literal::Double(number.parse().ok()?), exponent));
        }
    }
    if text.get(at).is_some_and(|&byte| is_word(byte)) {
        return None;
    }
    let decimal = Literal::Decimal { from: digits_from as u32, end: at as u32, negative };
    let literal = match (fraction || overflow, negative) {
        (true, _) => decimal,
        (false, false) => match i64::try_from(value) {
            Ok(value) => Literal::Int(value),
            Err(_) => Literal::UInt(value),
        },
        (false, true) if value <= i64::MIN.unsigned_abs() => Literal::Int((value as i64).wrapping_neg()),
        (false, true) => decimal,
    };
    Some((literal, at))
}

#[cfg(test)]
mod tests;
