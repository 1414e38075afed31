//! How the text of a statement is read.

/// The part of `sql_mode` that lexers and the parser look at. The default is no such mode.
///
/// A statement is read by the mode of the time when it is read. What is kept of it for later (a prepared
/// statement, the text of a statement that another parser reads) keeps the mode beside it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LexicalMode {
    bits: u8,
}

impl LexicalMode {
    /// No mode at all.
    pub const NONE: LexicalMode = LexicalMode { bits: 0 };
    /// A backslash in a text is a character like any other. LIKE has it for its escape all the same.
    pub const NO_BACKSLASH_ESCAPES: LexicalMode = LexicalMode { bits: 1 };
    /// `"` quotes names and not texts.
    pub const ANSI_QUOTES: LexicalMode = LexicalMode { bits: 2 };
    /// `||` joins texts and does not mean OR.
    pub const PIPES_AS_CONCAT: LexicalMode = LexicalMode { bits: 4 };
    /// NOT binds like `!`, more strongly than comparisons and arithmetic.
    pub const HIGH_NOT_PRECEDENCE: LexicalMode = LexicalMode { bits: 8 };

    #[inline]
    pub const fn has(self, mode: LexicalMode) -> bool {
        self.bits & mode.bits == mode.bits
    }

    /// Both modes, where each is on or off.
    pub const fn with(self, mode: LexicalMode, on: bool) -> LexicalMode {
        if on { LexicalMode { bits: self.bits | mode.bits } } else { self }
    }

    /// True if backslashes escape characters in texts.
    #[inline]
    pub(crate) const fn escapes(self) -> bool {
        !self.has(LexicalMode::NO_BACKSLASH_ESCAPES)
    }

    /// True for the quotes of texts, false for those of names and for all other bytes.
    #[inline]
    pub(crate) const fn quotes_text(self, byte: u8) -> bool {
        byte == b'\'' || byte == b'"' && !self.has(LexicalMode::ANSI_QUOTES)
    }

    /// A number below 16. Plans are made for one mode, so it is part of their key.
    pub(crate) const fn key(self) -> u8 {
        self.bits
    }
}

/// The end of a quoted text or name whose quote is at `from`. A doubled quote does not end it, and neither
/// does one behind a backslash in a text, if backslashes escape. `None` if it has no end.
pub(crate) fn quote_end(text: &[u8], from: usize, mode: LexicalMode) -> Option<usize> {
    let quote = text[from];
    let escapes = mode.escapes() && mode.quotes_text(quote);
    let mut at = from + 1;
    loop {
        let rest = text.get(at..)?;
        let found = if escapes { memchr::memchr2(quote, b'\\', rest)? } else { memchr::memchr(quote, rest)? };
        at += found;
        if text[at] == quote && text.get(at + 1) != Some(&quote) {
            return Some(at + 1);
        }
        // A backslash and what it escapes, or a doubled quote.
        at += 2;
    }
}

/// What the bytes between the quotes of a text or a name stand for, appended to `out`.
pub(crate) fn unquote(inner: &[u8], quote: u8, mode: LexicalMode, out: &mut Vec<u8>) {
    let escapes = mode.escapes() && mode.quotes_text(quote);
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte == quote {
            // The second one of two.
            at += 1;
        } else if byte == b'\\' && escapes && at < inner.len() {
            push_escaped(inner[at], out);
            at += 1;
            continue;
        }
        out.push(byte);
    }
}

/// What a backslash and this byte stand for. `\%` and `\_` keep their backslash for LIKE.
pub(crate) fn push_escaped(byte: u8, out: &mut Vec<u8>) {
    out.push(match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        b'%' | b'_' => return out.extend([b'\\', byte]),
        other => other,
    });
}

/// True if a comment up to the end of the line begins with the `-` at `at`: it needs a second one, and behind
/// it a blank, a control character or the end of the text.
pub(crate) fn is_line_comment(text: &[u8], at: usize) -> bool {
    text.get(at + 1) == Some(&b'-') && text.get(at + 2).is_none_or(|&byte| byte <= b' ' || byte == 0x7f)
}
