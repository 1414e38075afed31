//! Reads JSON text event by event, and keeps no more than the kinds of the containers that are open.

/// The containers that may lie within each other are one fewer: the text itself counts as one level.
pub(super) const LEVELS_MAX: usize = 32;

/// What is wrong with a text or a path, and the byte that it was noticed at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    pub fault: Fault,
    pub at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Two escapes are no pair of surrogates.
    Broken,
    /// A control character.
    Disallowed,
    End,
    Syntax,
    /// A control character behind a `\`.
    Escape,
    Depth,
}

pub(super) type Scanned<T> = std::result::Result<T, Problem>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Null,
    True,
    False,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    pub(super) fn is_scalar(self) -> bool {
        !matches!(self, Kind::Array | Kind::Object)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event<'t> {
    /// The key of a member, without its quotes and as it is written. The member's value follows.
    Key(&'t [u8]),
    /// The item of an array follows.
    Item,
    /// A scalar with its text, a string with its quotes.
    Scalar(Kind, &'t [u8]),
    /// `[` or `{`.
    Start(Kind),
    /// `]` or `}`.
    End,
    /// The text is over.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A value is next.
    Value,
    /// Behind `[`.
    FirstItem,
    /// Behind `{`.
    FirstKey,
    /// Behind a value.
    After,
}

/// A place in a text. A copy of it goes on from there on its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    /// Where the last value began.
    start: usize,
    state: State,
    /// How many containers are open, and which of them are objects, the innermost one in the lowest bit.
    depth: usize,
    objects: u32,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t [u8]) -> Scanner<'t> {
        Scanner { text, at: 0, start: 0, state: State::Value, depth: 0, objects: 0 }
    }

    /// The next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Where the last value began.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// How many containers are open.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn next(&mut self) -> Scanned<Event<'t>> {
        match self.state {
            State::Value => self.value(),
            State::FirstItem => match self.peek()? {
                b']' => self.close(),
                b',' | b':' | b'}' => Err(self.unexpected()),
                _ => {
                    self.state = State::Value;
                    Ok(Event::Item)
                }
            },
            State::FirstKey => match self.peek()? {
                b'}' => self.close(),
                _ => self.key(),
            },
            State::After if self.depth == 0 => match self.skip_blanks() {
                None => Ok(Event::Done),
                Some(_) => Err(self.unexpected()),
            },
            State::After => match (self.peek()?, self.is_in_object()) {
                (b',', true) => {
                    self.at += 1;
                    self.key()
                }
                (b',', false) => {
                    self.at += 1;
                    self.peek()?;
                    self.state = State::Value;
                    Ok(Event::Item)
                }
                (b'}', true) | (b']', false) => self.close(),
                _ => Err(self.unexpected()),
            },
        }
    }

    /// Goes behind the end of the container that was opened last but for those in it.
    pub(super) fn leave(&mut self, depth: usize) -> Scanned<()> {
        while self.depth >= depth {
            if self.next()? == Event::Done {
                break;
            }
        }
        Ok(())
    }

    /// Reads the value that is next as a whole.
    pub(super) fn whole(&mut self) -> Scanned<Value<'t>> {
        let kind = match self.next()? {
            Event::Scalar(kind, text) => return Ok(Value { kind, text }),
            Event::Start(kind) => kind,
            Event::Key(_) | Event::Item | Event::End | Event::Done => return Err(self.unexpected()),
        };
        let start = self.start;
        self.leave(self.depth)?;
        Ok(Value { kind, text: &self.text[start..self.at] })
    }

    /// Reads to the end of the text.
    pub(super) fn finish(&mut self) -> Scanned<()> {
        while self.next()? != Event::Done {}
        Ok(())
    }

    /// True if the innermost container that is open is an object.
    pub(super) fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    /// The next byte that is no blank; it is not read.
    fn skip_blanks(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                byte => return Some(*byte),
            }
        }
        None
    }

    fn peek(&mut self) -> Scanned<u8> {
        self.skip_blanks().ok_or(Problem { fault: Fault::End, at: self.at })
    }

    /// The next byte does not belong here. As in MariaDB, it counts as read.
    fn unexpected(&mut self) -> Problem {
        let (fault, bytes) = match self.text.get(self.at) {
            None => (Fault::End, 0),
            Some(0..0x20) => (Fault::Disallowed, 1),
            Some(_) => (Fault::Syntax, char_len(&self.text[self.at..])),
        };
        self.at += bytes;
        Problem { fault, at: self.at }
    }

    fn here<T>(&self, fault: Fault) -> Scanned<T> {
        Err(Problem { fault, at: self.at })
    }

    fn close(&mut self) -> Scanned<Event<'t>> {
        self.at += 1;
        self.depth -= 1;
        self.objects >>= 1;
        self.state = State::After;
        Ok(Event::End)
    }

    fn key(&mut self) -> Scanned<Event<'t>> {
        if self.peek()? != b'"' {
            return Err(self.unexpected());
        }
        let start = self.at + 1;
        self.string(Fault::Syntax)?;
        let key = &self.text[start..self.at - 1];
        match self.peek()? {
            b':' => self.at += 1,
            _ => return self.here(Fault::Syntax),
        }
        self.state = State::Value;
        Ok(Event::Key(key))
    }

    fn value(&mut self) -> Scanned<Event<'t>> {
        let byte = self.peek()?;
        self.start = self.at;
        let kind = match byte {
            b'{' => return self.open(Kind::Object),
            b'[' => return self.open(Kind::Array),
            b'"' => {
                self.string(Fault::Disallowed)?;
                Kind::String
            }
            b'-' | b'0'..=b'9' => {
                self.number()?;
                Kind::Number
            }
            b't' => self.word(b"true", Kind::True)?,
            b'f' => self.word(b"false", Kind::False)?,
            b'n' => self.word(b"null", Kind::Null)?,
            _ => return Err(self.unexpected()),
        };
        self.state = State::After;
        Ok(Event::Scalar(kind, &self.text[self.start..self.at]))
    }

    fn open(&mut self, kind: Kind) -> Scanned<Event<'t>> {
        self.at += 1;
        if self.depth + 1 >= LEVELS_MAX {
            return self.here(Fault::Depth);
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u32::from(kind == Kind::Object);
        self.state = if kind == Kind::Object { State::FirstKey } else { State::FirstItem };
        Ok(Event::Start(kind))
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Scanned<Kind> {
        for byte in word {
            match self.text.get(self.at) {
                None => return self.here(Fault::End),
                Some(found) if found == byte => self.at += 1,
                Some(_) => return self.here(Fault::Syntax),
            }
        }
        Ok(kind)
    }

    /// A `"`, and all to the next one. As in MariaDB, a control character is another fault in a key than in
    /// a value, where it counts as read.
    fn string(&mut self, control: Fault) -> Scanned<()> {
        self.at += 1;
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => {
                    escape(self.text, &mut self.at)?;
                }
                0..0x20 => {
                    self.at -= usize::from(control == Fault::Syntax);
                    return self.here(control);
                }
                _ => {}
            }
        }
        self.here(Fault::End)
    }

    /// As in MariaDB, a number ends where no more of it can follow, even if it is not complete: `[-]` is
    /// an array of one. At the end of the text it must be complete.
    fn number(&mut self) -> Scanned<()> {
        let mut state = Digits::Start;
        loop {
            let byte = self.text.get(self.at).copied();
            state = match (state, byte) {
                (Digits::Start, Some(b'-')) => Digits::Sign,
                (Digits::Start | Digits::Sign, Some(b'0')) => Digits::Zero,
                (Digits::Start | Digits::Sign | Digits::Whole, Some(b'0'..=b'9')) => Digits::Whole,
                (Digits::Zero | Digits::Whole, Some(b'.')) => Digits::Fraction,
                (Digits::Fraction, Some(b'0'..=b'9')) => Digits::Fraction,
                (Digits::Zero | Digits::Whole | Digits::Fraction, Some(b'e' | b'E')) => Digits::Exponent,
                (Digits::Exponent, Some(b'+' | b'-')) => Digits::PowerSign,
                (Digits::Exponent | Digits::PowerSign | Digits::Power, Some(b'0'..=b'9')) => Digits::Power,
                (Digits::Start | Digits::Sign | Digits::Exponent | Digits::PowerSign, None) => {
                    return self.here(Fault::Syntax);
                }
                (_, Some(0x80..)) => return self.here(Fault::Broken),
                (
                    Digits::Start
                    | Digits::Sign
                    | Digits::Zero
                    | Digits::Whole
                    | Digits::Fraction
                    | Digits::Exponent
                    | Digits::PowerSign
                    | Digits::Power,
                    _,
                ) => return Ok(()),
            };
            self.at += 1;
        }
    }
}

/// How far a number is read.
#[derive(Clone, Copy)]
enum Digits {
    Start,
    Sign,
    /// A nought, behind which no other digit stands.
    Zero,
    Whole,
    Fraction,
    Exponent,
    PowerSign,
    Power,
}

/// Bytes of the first character. A byte that begins none counts as one.
pub(super) fn char_len(text: &[u8]) -> usize {
    types::collation::first_chars(text, 1).len().max(1)
}

/// The character that an escape stands for. `at` is behind the `\`, and comes behind the escape.
pub(super) fn escape(text: &[u8], at: &mut usize) -> Scanned<char> {
    let problem = |fault, at| Err(Problem { fault, at });
    let Some(byte) = text.get(*at) else { return problem(Fault::End, *at) };
    let plain = match byte {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        0..0x20 => return problem(Fault::Escape, *at),
        b'u' => {
            *at += 1;
            let high = digits(text, at)?;
            if !(0xd800..0xe000).contains(&high) {
                return char::from_u32(high).ok_or(Problem { fault: Fault::Broken, at: *at });
            }
            if high >= 0xdc00 {
                return problem(Fault::Broken, *at);
            }
            for byte in b"\\u" {
                match text.get(*at) {
                    None => return problem(Fault::End, *at),
                    Some(found) if found == byte => *at += 1,
                    Some(_) => return problem(Fault::Syntax, *at),
                }
            }
            let low = digits(text, at)?;
            let pair = char::decode_utf16([high as u16, low as u16]).next();
            return pair.and_then(Result::ok).ok_or(Problem { fault: Fault::Broken, at: *at });
        }
        _ => {
            // Any other character stands for itself.
            let bytes = char_len(&text[*at..]);
            let character = String::from_utf8_lossy(&text[*at..*at + bytes]).chars().next();
            *at += bytes;
            return Ok(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    };
    *at += 1;
    Ok(plain)
}

/// Four hexadecimal digits.
fn digits(text: &[u8], at: &mut usize) -> Scanned<u32> {
    let mut number = 0;
    for _ in 0..4 {
        let Some(byte) = text.get(*at) else { return Err(Problem { fault: Fault::End, at: *at }) };
        let digit = (*byte as char).to_digit(16).ok_or(Problem { fault: Fault::Syntax, at: *at })?;
        number = number << 4 | digit;
        *at += 1;
    }
    Ok(number)
}

/// A value that was read as a whole, as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value<'t> {
    pub kind: Kind,
    pub text: &'t [u8],
}

impl<'t> Value<'t> {
    /// The values in it. There are none in a scalar.
    pub(super) fn children(&self) -> Children<'t> {
        let mut scanner = Scanner::new(self.text);
        let is_open = matches!(scanner.next(), Ok(Event::Start(_)));
        Children { scanner: is_open.then_some(scanner) }
    }
}

/// The values in a container with their keys, which are empty for the items of an array.
#[derive(Debug)]
pub(super) struct Children<'t> {
    scanner: Option<Scanner<'t>>,
}

impl<'t> Iterator for Children<'t> {
    type Item = (&'t [u8], Value<'t>);

    fn next(&mut self) -> Option<(&'t [u8], Value<'t>)> {
        let scanner = self.scanner.as_mut()?;
        // The text was read before, so that there is no problem in it.
        let key: &[u8] = match scanner.next().ok()? {
            Event::Key(key) => key,
            Event::Item => b"",
            Event::Scalar(..) | Event::Start(_) | Event::End | Event::Done => return None,
        };
        Some((key, scanner.whole().ok()?))
    }
}
