//! JSON text as it is written.

use super::scanner::{Event, Kind, Scanned, Scanner};

/// The blanks between values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    Compact,
    /// One behind each comma and colon.
    Loose,
    /// A line for each value, indented by so many blanks for each level.
    Detailed(usize),
}

/// The text in another layout.
pub(super) fn format(text: &[u8], layout: Layout) -> Scanned<Vec<u8>> {
    let mut scanner = Scanner::new(text);
    let mut out = Vec::with_capacity(text.len());
    let mut is_first = true;
    // Behind a key, and in an array that is written in one line.
    let (mut behind_key, mut in_line) = (false, false);
    let separator: &[u8] = if layout == Layout::Loose { b", " } else { b"," };
    loop {
        let before = scanner;
        let event = scanner.next()?;
        match event {
            Event::Key(_) | Event::Item => {
                if !std::mem::replace(&mut is_first, false) {
                    out.extend_from_slice(separator);
                }
                if !in_line {
                    new_line(&mut out, layout, scanner.depth());
                }
                if let Event::Key(key) = event {
                    out.push(b'"');
                    out.extend_from_slice(key);
                    out.extend_from_slice(if layout == Layout::Compact { b"\":" } else { b"\": " });
                }
                behind_key = matches!(event, Event::Key(_));
            }
            Event::Scalar(_, text) => out.extend_from_slice(text),
            Event::Start(kind) => {
                if std::mem::replace(&mut behind_key, false) {
                    new_line(&mut out, layout, before.depth());
                }
                in_line = kind == Kind::Array && has_at_most_one_scalar(scanner)?;
                out.push(if kind == Kind::Array { b'[' } else { b'{' });
                is_first = true;
            }
            Event::End => {
                if !std::mem::replace(&mut in_line, false) {
                    new_line(&mut out, layout, scanner.depth());
                }
                out.push(if before.is_in_object() { b'}' } else { b']' });
                is_first = false;
            }
            Event::Done => return Ok(out),
        }
    }
}

fn new_line(out: &mut Vec<u8>, layout: Layout, depth: usize) {
    if let Layout::Detailed(indent) = layout {
        if !out.is_empty() {
            out.push(b'\n');
        }
        out.resize(out.len() + indent * depth, b' ');
    }
}

/// As MariaDB, which writes such an array in one line. It was just opened.
fn has_at_most_one_scalar(mut scanner: Scanner<'_>) -> Scanned<bool> {
    let first = scanner.next()?;
    if first != Event::Item {
        return Ok(first == Event::End);
    }
    Ok(matches!(scanner.next()?, Event::Scalar(..)) && scanner.next()? == Event::End)
}

/// Puts the characters of a text as a JSON string has them, without quotes.
pub(super) fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            8 => out.extend(b"\\b"),
            12 => out.extend(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(*byte),
        }
    }
}

/// Puts a text as a JSON string.
pub(in crate::expr) fn push_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    push_escaped(text, out);
    out.push(b'"');
}
