//! Cuts the file of LOAD DATA into rows and fields.
//!
//! Cutting is a function of the bytes that have been read so far. If these bytes do not contain the whole
//! row, the row is cut again from its beginning when more bytes are there. So no state is kept inside of a
//! row.

/// The marks that end and enclose fields and lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Format {
    pub field_end: Vec<u8>,
    pub line_start: Vec<u8>,
    /// Empty if there are no lines: rows follow one another directly.
    pub line_end: Vec<u8>,
    pub enclosed: Option<u8>,
    pub escape: Option<u8>,
    /// The number of bytes of each field, if neither an end nor quotes separate fields.
    pub widths: Option<Vec<usize>>,
}

/// Where the bytes of a field are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FieldBytes {
    /// In the file's bytes, unchanged.
    File,
    /// In a copy, without escapes and doubled quotes.
    Copied,
}

/// One field of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    bytes_in: FieldBytes,
    start: usize,
    end: usize,
    is_null: bool,
}

/// A row that was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// Where the next row begins.
    pub end: usize,
    /// True if the line has more fields than were asked for.
    pub has_more: bool,
    /// True if the file ended with this row.
    pub is_last: bool,
}

/// What is found at a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    Row(Row),
    /// The end of the file.
    Nothing,
    /// More bytes are needed to decide.
    More,
}

/// Cuts rows. It holds the fields of the last one.
#[derive(Debug)]
pub(crate) struct Cutter {
    format: Format,
    /// The bytes that have a special meaning outside of quotes, and those that have one inside.
    plain: [bool; 256],
    quoted: [bool; 256],
    fields: Vec<Field>,
    copied: Vec<u8>,
}

/// A position in what has been read.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    /// True if these are the last bytes of the file.
    is_whole: bool,
    /// True if a byte behind the end was asked for.
    starved: bool,
}

impl Cursor<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        match byte {
            Some(_) => self.at += 1,
            None => self.starved |= !self.is_whole,
        }
        byte
    }

    /// Consumes the rest of a mark. Its first byte was the last byte consumed.
    fn takes(&mut self, mark: &[u8], first: u8) -> bool {
        let Some((expected, rest)) = mark.split_first() else { return false };
        if *expected != first {
            return false;
        }
        let left = &self.bytes[self.at..];
        if left.len() < rest.len() && !self.is_whole && rest.starts_with(left) {
            self.starved = true;
        }
        let found = left.starts_with(rest);
        if found {
            self.at += rest.len();
        }
        found
    }
}

/// How a field ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Field,
    /// Its line ended with it.
    Line,
    /// The file ended with it.
    File,
}

impl Cutter {
    pub(super) fn new(mut format: Format) -> Cutter {
        if format.line_end == format.field_end {
            format.line_end.clear();
        }
        let marks = |bytes: &[Option<u8>]| {
            let mut table = [false; 256];
            bytes.iter().flatten().for_each(|byte| table[usize::from(*byte)] = true);
            table
        };
        let plain =
            marks(&[format.escape, format.field_end.first().copied(), format.line_end.first().copied()]);
        let quoted = marks(&[format.escape, format.enclosed]);
        Cutter { format, plain, quoted, fields: Vec::new(), copied: Vec::new() }
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.format.widths.is_some()
    }

    /// The number of fields that the last row has, at most those that were asked for.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the last row, which was cut from `bytes`. `None` for NULL.
    pub(super) fn field<'f>(&'f self, bytes: &'f [u8], number: usize) -> Option<&'f [u8]> {
        let Field { bytes_in, start, end, is_null } = self.fields[number];
        if is_null {
            return None;
        }
        Some(match bytes_in {
            FieldBytes::File => &bytes[start..end],
            FieldBytes::Copied => &self.copied[start..end],
        })
    }

    /// Skips a line without looking at its fields.
    pub(super) fn skip_line(&self, bytes: &[u8], from: usize, is_whole: bool) -> Found {
        let mut cursor = Cursor { bytes, at: from, is_whole, starved: false };
        let line = self.rest_of_line(&mut cursor);
        match line {
            _ if cursor.starved => Found::More,
            Line::End { .. } => Found::Row(Row { end: cursor.at, has_more: false, is_last: false }),
            Line::EndOfFile => Found::Nothing,
        }
    }

    /// Cuts the next row into at most `count` fields.
    pub(super) fn row(&mut self, bytes: &[u8], from: usize, is_whole: bool, count: usize) -> Found {
        self.fields.clear();
        self.copied.clear();
        let mut cursor = Cursor { bytes, at: from, is_whole, starved: false };
        if !self.line_start(&mut cursor) {
            return if cursor.starved { Found::More } else { Found::Nothing };
        }
        let fixed = self.format.widths.is_some();
        let ended = if fixed { self.fixed(&mut cursor) } else { self.fields(&mut cursor, count) };
        if cursor.starved {
            return Found::More;
        }
        if self.fields.is_empty() && ended == Ended::File {
            return Found::Nothing;
        }
        let mut row = Row { end: cursor.at, has_more: false, is_last: ended == Ended::File };
        if ended == Ended::Field {
            match self.rest_of_line(&mut cursor) {
                _ if cursor.starved => return Found::More,
                Line::End { had_more } => row.has_more = had_more,
                Line::EndOfFile => row.is_last = true,
            }
            row.end = cursor.at;
        }
        Found::Row(row)
    }

    /// Moves behind the next LINES STARTING BY. False if there is none.
    fn line_start(&self, cursor: &mut Cursor<'_>) -> bool {
        let mark = &self.format.line_start;
        if mark.is_empty() {
            return true;
        }
        while let Some(byte) = cursor.next() {
            if cursor.takes(mark, byte) {
                return true;
            }
        }
        false
    }

    fn rest_of_line(&self, cursor: &mut Cursor<'_>) -> Line {
        let end = &self.format.line_end;
        let mut had_more = false;
        if end.is_empty() {
            return Line::End { had_more };
        }
        loop {
            let Some(byte) = cursor.next() else { return Line::EndOfFile };
            if Some(byte) == self.format.escape {
                had_more = true;
                if cursor.next().is_none() {
                    return Line::EndOfFile;
                }
            } else if cursor.takes(end, byte) {
                return Line::End { had_more };
            } else {
                had_more = true;
            }
        }
    }

    fn fields(&mut self, cursor: &mut Cursor<'_>, count: usize) -> Ended {
        let mut ended = Ended::Field;
        while self.fields.len() < count && ended == Ended::Field {
            match self.one_field(cursor) {
                Some((field, how)) => {
                    self.fields.push(field);
                    ended = how;
                }
                None => ended = Ended::File,
            }
        }
        ended
    }

    /// Cuts the next field; `None` at the end of the file.
    fn one_field(&mut self, cursor: &mut Cursor<'_>) -> Option<(Field, Ended)> {
        let first = cursor.next()?;
        let quote = self.format.enclosed.filter(|enclosed| *enclosed == first);
        let start = cursor.at - 1;
        if quote.is_none() {
            cursor.at = start;
        }
        let mut value = Value { start, copied: None, holds_null: false };
        let special = if quote.is_some() { &self.quoted } else { &self.plain };
        let format = &self.format;
        let copied = &mut self.copied;
        loop {
            let run = cursor.bytes[cursor.at..].iter().position(|byte| special[usize::from(*byte)]);
            let run_end = run.map_or(cursor.bytes.len(), |run| cursor.at + run);
            value.take(cursor, run_end, copied);
            let at = cursor.at;
            let Some(byte) = cursor.next() else {
                return Some((value.field(cursor.bytes, at, copied, Quotes::Unclosed, format), Ended::File));
            };
            if Some(byte) == format.escape {
                let Some(after) = cursor.next() else {
                    value.copy(cursor.bytes, at, copied);
                    copied.push(byte);
                    return Some((
                        value.field(cursor.bytes, at, copied, Quotes::Unclosed, format),
                        Ended::File,
                    ));
                };
                // If quotes are escaped by doubling them, no other escapes exist.
                if format.escape != format.enclosed || after == byte {
                    value.copy(cursor.bytes, at, copied);
                    value.holds_null |= after == b'N';
                    copied.push(unescaped(after));
                    continue;
                }
                cursor.at -= 1;
            }
            if quote.is_none() && cursor.takes(&format.line_end, byte) {
                return Some((value.field(cursor.bytes, at, copied, Quotes::None, format), Ended::Line));
            }
            if quote == Some(byte) {
                let close = cursor.at;
                let Some(after) = cursor.next() else {
                    return Some((
                        value.field(cursor.bytes, at, copied, Quotes::Closed, format),
                        Ended::File,
                    ));
                };
                if after == byte {
                    value.copy(cursor.bytes, at, copied);
                    copied.push(byte);
                    continue;
                }
                if cursor.takes(&format.line_end, after) {
                    return Some((
                        value.field(cursor.bytes, at, copied, Quotes::Closed, format),
                        Ended::Line,
                    ));
                }
                if cursor.takes(&format.field_end, after) {
                    return Some((
                        value.field(cursor.bytes, at, copied, Quotes::Closed, format),
                        Ended::Field,
                    ));
                }
                // The quote is part of the value.
                cursor.at = close;
            } else if quote.is_none() && cursor.takes(&format.field_end, byte) {
                return Some((value.field(cursor.bytes, at, copied, Quotes::None, format), Ended::Field));
            }
            value.push(byte, copied);
        }
    }

    /// Cuts a row of fields of fixed width.
    fn fixed(&mut self, cursor: &mut Cursor<'_>) -> Ended {
        let widths = self.format.widths.as_deref().unwrap_or_default();
        let mut ended = Ended::Field;
        let whole: usize = widths.iter().sum();
        while self.copied.len() < whole {
            let Some(byte) = cursor.next() else {
                ended = Ended::File;
                break;
            };
            if Some(byte) == self.format.escape {
                match cursor.next() {
                    Some(after) => self.copied.push(unescaped(after)),
                    None => {
                        self.copied.push(byte);
                        ended = Ended::File;
                        break;
                    }
                }
                continue;
            }
            if cursor.takes(&self.format.line_end, byte) {
                ended = Ended::Line;
                break;
            }
            self.copied.push(byte);
        }
        let mut start = 0;
        for width in widths {
            let end = (start + width).min(self.copied.len());
            if start == end {
                break;
            }
            self.fields.push(Field { bytes_in: FieldBytes::Copied, start, end, is_null: false });
            start = end;
        }
        ended
    }
}

/// What follows the fields of a row.
enum Line {
    End { had_more: bool },
    EndOfFile,
}

/// The meaning of an escaped byte.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'0' => 0,
        b'Z' => 26,
        other => other,
    }
}

/// Whether a value has quotes, and whether they belong to the value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Closed,
    /// The closing quote is missing. Then the opening quote, if there is one, belongs to the value.
    Unclosed,
}

/// A value that is being cut. It is a range of the file's bytes up to the first byte that does not stand for
/// itself, and a copy from then on. The opening quote is included in either.
struct Value {
    start: usize,
    copied: Option<usize>,
    /// True if \N was seen.
    holds_null: bool,
}

impl Value {
    /// Adds bytes that stand for themselves.
    fn take(&self, cursor: &mut Cursor<'_>, end: usize, copied: &mut Vec<u8>) {
        if self.copied.is_some() {
            copied.extend_from_slice(&cursor.bytes[cursor.at..end]);
        }
        cursor.at = end;
    }

    /// Adds a byte that was read already and stands for itself.
    fn push(&self, byte: u8, copied: &mut Vec<u8>) {
        if self.copied.is_some() {
            copied.push(byte);
        }
    }

    /// Changes to a copy: from `at` on the value differs from the file's bytes.
    fn copy(&mut self, bytes: &[u8], at: usize, copied: &mut Vec<u8>) {
        if self.copied.is_none() {
            self.copied = Some(copied.len());
            copied.extend_from_slice(&bytes[self.start..at]);
        }
    }

    /// The field that ends before `at`.
    fn field(&self, bytes: &[u8], at: usize, copied: &[u8], quotes: Quotes, format: &Format) -> Field {
        let skipped = usize::from(quotes == Quotes::Closed);
        let (bytes_in, start, end, text) = match self.copied {
            None => (FieldBytes::File, self.start + skipped, at, &bytes[self.start..at]),
            Some(start) => (FieldBytes::Copied, start + skipped, copied.len(), &copied[start..]),
        };
        let is_escaped_null = self.holds_null && end - start == 1;
        // Where values can have quotes, an unquoted NULL means NULL and not the word.
        let is_word = format.enclosed.is_some() && quotes != Quotes::Closed && text == b"NULL";
        Field { bytes_in, start, end, is_null: is_escaped_null || is_word }
    }
}
