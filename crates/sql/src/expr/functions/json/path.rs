//! Paths into JSON texts, and the values that they lead to.

use super::scanner::{Event, Fault, Kind, LEVELS_MAX, Problem, Scanned, Scanner, escape};

/// `$`, and the steps from there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Path {
    pub steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub pick: Pick,
    /// `**` stands before it: the step may be made at any depth.
    pub anywhere: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Pick {
    /// A key as it is written.
    Key(Vec<u8>),
    AnyKey,
    /// Counted from the end if it is negative.
    Index(i64),
    AnyItem,
    Range(i64, i64),
}

impl Step {
    pub(super) fn is_key(&self) -> bool {
        matches!(self.pick, Pick::Key(_) | Pick::AnyKey)
    }

    /// True for `[0]`, to which a value that is no array is its own only item.
    fn is_first(&self) -> bool {
        self.pick == Pick::Index(0)
    }

    /// As [`Step::is_first`], also for a range from there.
    fn wraps(&self) -> bool {
        matches!(self.pick, Pick::Index(0) | Pick::Range(0, _))
    }

    /// True if the step is one to this item of an array of this length.
    fn takes_item(&self, index: i64, length: i64) -> bool {
        let from_start = |given: i64| if given < 0 { given + length } else { given };
        match self.pick {
            Pick::AnyItem => true,
            Pick::Index(given) => from_start(given) == index,
            Pick::Range(first, last) => (from_start(first)..=from_start(last)).contains(&index),
            Pick::Key(_) | Pick::AnyKey => false,
        }
    }

    /// True if it matters how long the array is.
    fn counts_from_end(&self) -> bool {
        match self.pick {
            Pick::Index(index) => index < 0,
            Pick::Range(first, last) => first < 0 || last < 0,
            Pick::Key(_) | Pick::AnyKey | Pick::AnyItem => false,
        }
    }
}

impl Path {
    pub(super) fn parse(text: &[u8]) -> Scanned<Path> {
        let mut parser = Parser { text, at: 0 };
        parser.begin()?;
        let mut steps = Vec::new();
        while parser.at < text.len() {
            // `$` counts as a step.
            let step = parser.step(steps.len() + 1 >= LEVELS_MAX)?;
            steps.push(step);
        }
        Ok(Path { steps })
    }

    /// True if it may lead to several values.
    pub(super) fn has_wildcard(&self) -> bool {
        self.steps
            .iter()
            .any(|step| step.anywhere || matches!(step.pick, Pick::AnyKey | Pick::AnyItem | Pick::Range(..)))
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Scanned<u8> {
        self.text.get(self.at).copied().map_or_else(|| self.fail(Fault::End), Ok)
    }

    /// As in MariaDB, the character at which the fault is noticed counts as read.
    fn fail<T>(&self, fault: Fault) -> Scanned<T> {
        Err(Problem { fault, at: self.at + 1 })
    }

    fn blank(&mut self) -> bool {
        let is_blank = matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n'));
        self.at += usize::from(is_blank);
        is_blank
    }

    fn expect(&mut self, word: &[u8]) -> Scanned<()> {
        for byte in word {
            if self.peek()? != *byte {
                return self.fail(Fault::Syntax);
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `$`, before which `lax` may stand.
    fn begin(&mut self) -> Scanned<()> {
        while self.blank() {}
        if matches!(self.peek()?, b'l' | b'L') {
            self.at += 1;
            self.expect(b"ax")?;
            self.peek()?;
            if !self.blank() {
                return self.fail(Fault::Syntax);
            }
            while self.blank() {}
        }
        self.expect(b"$")
    }

    fn step(&mut self, is_too_deep: bool) -> Scanned<Step> {
        let mut anywhere = false;
        if self.peek()? == b'*' {
            self.at += 1;
            if self.text.get(self.at) != Some(&b'*') {
                return self.fail(Fault::Syntax);
            }
            self.at += 1;
            anywhere = true;
        }
        let byte = self.text.get(self.at).copied();
        if !matches!(byte, Some(b'.' | b'[')) {
            self.at += usize::from(byte == Some(b'*'));
            return self.fail(Fault::Syntax);
        }
        self.at += 1;
        if is_too_deep {
            return self.fail(Fault::Depth);
        }
        let pick = if byte == Some(b'.') { self.key()? } else { self.item()? };
        Ok(Step { pick, anywhere })
    }

    /// An escape in a key.
    fn escape(&mut self) -> Scanned<()> {
        self.at += 1;
        match escape(self.text, &mut self.at) {
            Ok(_) => Ok(()),
            Err(problem) => Err(Problem { at: problem.at + 1, ..problem }),
        }
    }

    fn key(&mut self) -> Scanned<Pick> {
        let start = self.at;
        match self.peek()? {
            b'*' => {
                self.at += 1;
                return match self.text.get(self.at) {
                    Some(b'*') => self.fail(Fault::Syntax),
                    _ => Ok(Pick::AnyKey),
                };
            }
            b'"' => {
                self.at += 1;
                loop {
                    match self.peek()? {
                        b'"' => break,
                        b'\\' => self.escape()?,
                        _ => self.at += 1,
                    }
                }
                self.at += 1;
                return Ok(Pick::Key(self.text[start + 1..self.at - 1].to_vec()));
            }
            b'.' | b'[' | b'\\' | b'-' => return self.fail(Fault::Syntax),
            _ => {}
        }
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'.' | b'[' | b'*' => break,
                b'\\' => self.escape()?,
                _ => self.at += 1,
            }
        }
        Ok(Pick::Key(self.text[start..self.at].to_vec()))
    }

    /// All behind a `[`. As in MariaDB, no more than one blank stands behind a number.
    fn item(&mut self) -> Scanned<Pick> {
        let start = self.at;
        while self.blank() {}
        let first = if self.peek()? == b'-' && self.at > start {
            return self.fail(Fault::Syntax);
        } else if self.peek()? == b'*' {
            self.at += 1;
            None
        } else {
            Some(self.index()?)
        };
        let mut last = None;
        if self.blank() && matches!(self.text.get(self.at), Some(b't' | b'T')) {
            self.at += 1;
            self.expect(b"o")?;
            if !self.blank() {
                return self.fail(Fault::Syntax);
            }
            last = Some(self.index()?);
            self.blank();
        }
        self.expect(b"]")?;
        Ok(match (first, last) {
            (None, _) => Pick::AnyItem,
            (Some(index), None) => Pick::Index(index),
            (Some(first), Some(last)) => Pick::Range(first, last),
        })
    }

    /// A number, or `last` less a number.
    fn index(&mut self) -> Scanned<i64> {
        match self.peek()? {
            b'l' | b'L' => {
                self.at += 1;
                self.expect(b"ast")?;
                let behind = self.at;
                self.blank();
                if self.text.get(self.at) == Some(&b'-') {
                    self.at += 1;
                    return Ok(-1 - self.number()?);
                }
                self.at = behind;
                Ok(-1)
            }
            b'-' => {
                self.at += 1;
                Ok(-self.number()?)
            }
            _ => self.number(),
        }
    }

    /// As in MariaDB, digits beyond 32 bits are lost.
    fn number(&mut self) -> Scanned<i64> {
        let start = self.at;
        let mut number = 0u32;
        while let digit @ b'0'..=b'9' = self.peek()? {
            if self.at > start && self.text[start] == b'0' {
                return self.fail(Fault::Syntax);
            }
            number = number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start { self.fail(Fault::Syntax) } else { Ok(i64::from(number as i32)) }
    }
}

/// Where a value lies in its text: the keys and indexes that lead to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place<'t> {
    Key(&'t [u8]),
    Index(i64),
}

/// Reads a text value by value, and knows where each one lies.
#[derive(Debug)]
pub(super) struct Walk<'t> {
    pub scanner: Scanner<'t>,
    text: &'t [u8],
    pub places: Vec<Place<'t>>,
    /// The lengths of the arrays that are open, where they matter; 0 for objects.
    lengths: Vec<i64>,
    /// Some path counts from the end of arrays.
    counts: bool,
    /// A container has begun, which is not in `lengths` yet.
    opened: Option<Kind>,
}

impl<'t> Walk<'t> {
    pub(super) fn new<'p>(text: &'t [u8], mut paths: impl Iterator<Item = &'p Path>) -> Walk<'t> {
        let counts = paths.any(|path| path.steps.iter().any(Step::counts_from_end));
        Walk {
            scanner: Scanner::new(text),
            text,
            places: Vec::new(),
            lengths: Vec::new(),
            counts,
            opened: None,
        }
    }

    /// The next value: its kind and its start. `None` at the end of the text.
    pub(super) fn next(&mut self) -> Scanned<Option<(Kind, usize)>> {
        if let Some(kind) = self.opened.take() {
            let length = if self.counts && kind == Kind::Array { count(&self.scanner)? } else { 0 };
            self.lengths.push(length);
            self.places.push(Place::Index(-1));
        }
        loop {
            match self.scanner.next()? {
                Event::Key(key) => self.set(Place::Key(key)),
                Event::Item => {
                    if let Some(Place::Index(index)) = self.places.last_mut() {
                        *index += 1;
                    }
                }
                Event::Scalar(kind, _) => return Ok(Some((kind, self.scanner.start()))),
                Event::Start(kind) => {
                    self.opened = Some(kind);
                    return Ok(Some((kind, self.scanner.start())));
                }
                Event::End => {
                    self.places.pop();
                    self.lengths.pop();
                }
                Event::Done => return Ok(None),
            }
        }
    }

    fn set(&mut self, place: Place<'t>) {
        if let Some(last) = self.places.last_mut() {
            *last = place;
        }
    }

    /// The text of the value that [`Walk::next`] gave last.
    pub(super) fn value(&self) -> Scanned<&'t [u8]> {
        let mut scanner = self.scanner;
        if self.opened.is_some() {
            scanner.leave(scanner.depth())?;
        }
        Ok(&self.text[self.scanner.start()..scanner.at()])
    }

    /// True if a path leads to the value that [`Walk::next`] gave last.
    pub(super) fn is_at(&self, path: &Path, kind: Kind) -> bool {
        compare(&path.steps, &self.places, &self.lengths, kind) == Fit::Exact
    }

    /// True if a path leads to the value, or to one that it lies in.
    pub(super) fn is_within(&self, path: &Path, kind: Kind) -> bool {
        compare(&path.steps, &self.places, &self.lengths, kind) != Fit::None
    }
}

/// How the place of a value fits a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    None,
    Exact,
    /// The path leads to a container around it.
    Within,
}

/// Follows all ways at once in which the steps may lead to the place: bit `n` of a set says that `n` of them
/// are made.
fn compare(steps: &[Step], places: &[Place<'_>], lengths: &[i64], kind: Kind) -> Fit {
    let all = 1u64 << steps.len();
    let (mut ways, mut within) = (1u64, false);
    for (place, length) in places.iter().zip(lengths) {
        let mut next = 0;
        for (made, step) in steps.iter().enumerate() {
            if ways >> made & 1 == 0 {
                continue;
            }
            let fits = match (place, &step.pick) {
                (Place::Index(index), _) => step.takes_item(*index, *length),
                (Place::Key(_), Pick::AnyKey) => true,
                (Place::Key(key), Pick::Key(wanted)) => key == wanted,
                // A value that is no array is its own first item.
                (Place::Key(_), _) if step.wraps() && !step.anywhere => {
                    ways |= 1 << (made + 1);
                    false
                }
                (Place::Key(_), _) => step.wraps(),
            };
            next |= u64::from(fits) << (made + 1) | u64::from(step.anywhere) << made;
        }
        within |= ways & all != 0;
        ways = next;
    }
    let ends = |made: usize| {
        ways >> made & 1 == 1
            && (made == steps.len() || kind != Kind::Array && steps[made..].iter().all(Step::wraps))
    };
    match ((0..=steps.len()).any(ends), within) {
        (true, _) => Fit::Exact,
        (false, true) => Fit::Within,
        (false, false) => Fit::None,
    }
}

/// How many items follow in the array that was just opened.
pub(super) fn count(scanner: &Scanner<'_>) -> Scanned<i64> {
    // As in MariaDB, what is wrong in the array is noticed at its start.
    count_from(*scanner).map_err(|problem| Problem { at: scanner.at(), ..problem })
}

fn count_from(mut scanner: Scanner<'_>) -> Scanned<i64> {
    let depth = scanner.depth();
    let mut items = 0;
    while scanner.depth() >= depth {
        items += i64::from(scanner.next()? == Event::Item && scanner.depth() == depth);
    }
    Ok(items)
}

/// A container that a [`Search`] has entered.
#[derive(Debug)]
struct Level {
    /// The step that leads to values in it.
    step: usize,
    /// Of its next item.
    index: i64,
    /// How many items it has, if that matters.
    length: i64,
}

/// Looks for the values that one path leads to, and reads no further than it must.
#[derive(Debug)]
pub(super) struct Search<'t, 'p> {
    pub scanner: Scanner<'t>,
    steps: &'p [Step],
    /// One for each container that is open.
    levels: Vec<Level>,
    begun: bool,
}

impl<'t, 'p> Search<'t, 'p> {
    pub(super) fn new(text: &'t [u8], steps: &'p [Step]) -> Search<'t, 'p> {
        Search { scanner: Scanner::new(text), steps, levels: Vec::new(), begun: false }
    }

    /// Goes to the next value. True if there is one: the scanner stands before it.
    pub(super) fn next(&mut self) -> Scanned<bool> {
        if !std::mem::replace(&mut self.begun, true) && self.enter(0)? {
            return Ok(true);
        }
        while let Some(level) = self.levels.last_mut() {
            let step = &self.steps[level.step];
            let fits = match self.scanner.next()? {
                Event::Key(key) => match &step.pick {
                    Pick::Key(wanted) => same_key(key, wanted),
                    Pick::AnyKey => true,
                    Pick::Index(_) | Pick::AnyItem | Pick::Range(..) => false,
                },
                Event::Item => {
                    level.index += 1;
                    match step.pick {
                        // As in MariaDB, both ends are counted from where one is.
                        Pick::Range(first, last) => {
                            (first..=last).contains(&(level.index - 1 - level.length))
                        }
                        Pick::Key(_) | Pick::AnyKey | Pick::Index(_) | Pick::AnyItem => {
                            step.takes_item(level.index - 1, level.length)
                        }
                    }
                }
                Event::Scalar(..) | Event::Start(_) | Event::End | Event::Done => {
                    self.levels.pop();
                    continue;
                }
            };
            let next = level.step + 1;
            if !fits {
                self.scanner.whole()?;
            } else if self.enter(next)? {
                return Ok(true);
            }
        }
        self.scanner.finish()?;
        Ok(false)
    }

    /// Looks at the value that is next, from which a step is still to be made. True if the path ends there.
    fn enter(&mut self, mut step: usize) -> Scanned<bool> {
        if step == self.steps.len() {
            return Ok(true);
        }
        let before = self.scanner;
        let kind = match self.scanner.next()? {
            Event::Scalar(kind, _) | Event::Start(kind) => kind,
            Event::Key(_) | Event::Item | Event::End | Event::Done => return Ok(false),
        };
        if kind != Kind::Array {
            while self.steps.get(step).is_some_and(Step::is_first) {
                step += 1;
            }
            if step == self.steps.len() {
                self.scanner = before;
                return Ok(true);
            }
            if kind.is_scalar() {
                return Ok(false);
            }
        }
        let wanted = &self.steps[step];
        if wanted.is_key() != (kind == Kind::Object) {
            self.scanner.leave(self.scanner.depth())?;
            return Ok(false);
        }
        let length = if wanted.counts_from_end() { count(&self.scanner)? } else { 0 };
        self.levels.push(Level { step, index: 0, length });
        Ok(false)
    }
}

/// True if two keys are the same, escapes read.
pub(super) fn same_key(a: &[u8], b: &[u8]) -> bool {
    if !a.contains(&b'\\') && !b.contains(&b'\\') {
        return a == b;
    }
    plain(a) == plain(b)
}

/// A string without its quotes, escapes read.
pub(super) fn plain(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        // The text was read before, so that there is no problem in it.
        let Ok(character) = escape(text, &mut at) else { break };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out
}
