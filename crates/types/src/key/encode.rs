//! Values to key bytes.

use super::Part;
use crate::collation::{self, Ascii, after_spaces, uca};
use crate::row::Kind;
use crate::{Collation, ValueRef};
use ethnum::I256;

impl Part {
    #[inline]
    pub(super) fn encode(&self, value: &ValueRef<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        match (self.kind, *value) {
            (Kind::Int { bytes: 4, unsigned }, ValueRef::Int(number)) if !self.nullable => {
                let flip = if unsigned { 0 } else { 1 << 31 };
                out.extend_from_slice(&(number as u32 ^ flip).to_be_bytes());
            }
            _ => self.encode_any(value, out),
        }
        if self.descending {
            invert(&mut out[start..]);
        }
    }

    fn encode_any(&self, value: &ValueRef<'_>, out: &mut Vec<u8>) {
        if self.nullable {
            out.push(!value.is_null() as u8);
            if value.is_null() {
                return;
            }
        }
        match (self.kind, *value) {
            (Kind::Int { bytes, unsigned }, ValueRef::Int(number)) => {
                push_int(number as u64, bytes, !unsigned, out)
            }
            (Kind::Int { bytes, unsigned }, ValueRef::UInt(number)) => {
                push_int(number, bytes, !unsigned, out)
            }
            (Kind::Int { bytes, unsigned }, _) => push_int(0, bytes, !unsigned, out),
            (Kind::Char | Kind::Text, value) => {
                encode_text(self.collation, self.cut(value.as_bytes().unwrap_or(&[])), out);
            }
            (Kind::Binary, value) => {
                encode_binary(self.cut(value.as_bytes().unwrap_or(&[])), out);
            }
            (Kind::FixedBinary { bytes }, value) => {
                let value = value.as_bytes().unwrap_or(&[]);
                let start = out.len();
                out.extend_from_slice(&value[..value.len().min(bytes as usize)]);
                out.resize(start + bytes as usize, 0);
            }
            (kind, value) => encode_other(kind, &value, out),
        }
    }

    /// As much of a text or binary as the index keeps.
    fn cut<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        match self.prefix {
            Some(prefix) if self.kind == Kind::Binary => &value[..value.len().min(prefix as usize)],
            Some(prefix) => crate::collation::first_chars(value, prefix as usize),
            None => value,
        }
    }

    pub(super) fn encode_start(&self, text: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        if !matches!(self.kind, Kind::Char | Kind::Text | Kind::Binary) {
            return;
        }
        if self.nullable {
            out.push(1);
        }
        match self.kind {
            Kind::Binary => write_binary(self.cut(text), out),
            _ => encode_text_start(self.collation, self.cut(text), out),
        }
        if self.descending {
            invert(&mut out[start..]);
        }
    }
}

/// Appends a text as a key part has it: texts that the collation makes equal give the same bytes, and no
/// text's bytes are the start of another's.
pub fn encode_text(collation: Collation, text: &[u8], out: &mut Vec<u8>) {
    match collation {
        Collation::Listed(_) => match collation.kind() {
            collation::Kind::Uca(uca) => uca::write_key(uca, text, out),
            collation::Kind::Single(own, true) => {
                write_weights(own, text, out);
                out.extend([Collation::SPACE as u8, after_spaces::END]);
            }
            collation::Kind::Single(own, false) => {
                write_all_weights(own, text, out);
                out.extend([0, 0]);
            }
        },
        _ => {
            write_weights(collation, text, out);
            out.extend([Collation::SPACE as u8, after_spaces::END]);
        }
    }
}

/// Appends what the keys of all texts begin with that begin as `text` does.
fn encode_text_start(collation: Collation, text: &[u8], out: &mut Vec<u8>) {
    match collation {
        Collation::Listed(_) => match collation.kind() {
            collation::Kind::Uca(uca) => uca::write_start(uca, text, out),
            collation::Kind::Single(own, true) => write_weights(own, text, out),
            collation::Kind::Single(own, false) => write_all_weights(own, text, out),
        },
        _ => write_weights(collation, text, out),
    }
}

/// Appends bytes as a key part has them.
pub fn encode_binary(bytes: &[u8], out: &mut Vec<u8>) {
    write_binary(bytes, out);
    out.extend([0, 0]);
}

/// How many bytes come before the first space or byte beyond ASCII.
fn plain_run(text: &[u8]) -> usize {
    let is_plain = |byte: &u8| *byte != b' ' && byte.is_ascii();
    // Whole chunks without an early exit: the compiler makes a few vector instructions of each.
    let (chunks, _) = text.as_chunks::<32>();
    let whole = chunks.iter().take_while(|chunk| chunk.iter().fold(true, |all, byte| all & is_plain(byte)));
    let done = whole.count() * 32;
    done + text[done..].iter().position(|byte| !is_plain(byte)).unwrap_or(text.len() - done)
}

/// Writes the weights of ASCII from the start of a text, as far as they are had without a table. Returns the
/// rest of the text.
fn write_ascii<'a>(text: &'a [u8], folds: bool, out: &mut Vec<u8>) -> &'a [u8] {
    let mut text = text;
    // Long runs of ASCII letters and digits are copied as a whole.
    loop {
        let run = plain_run(text);
        let start = out.len();
        out.extend_from_slice(&text[..run]);
        if folds {
            out[start..].make_ascii_uppercase();
        }
        text = &text[run..];
        // A single space inside a text is common. All else takes the slow path.
        match text {
            [b' ', next, ..] if next.is_ascii() && *next != b' ' => {
                let marker = if *next < b' ' { after_spaces::LESS } else { after_spaces::GREATER };
                out.extend([b' ', marker]);
                text = &text[1..];
            }
            _ => return text,
        }
    }
}

/// Weights without the trailing spaces and without an end.
fn write_weights(collation: Collation, text: &[u8], out: &mut Vec<u8>) {
    let text = match collation.ascii() {
        Ascii::Own => text,
        ascii => write_ascii(text, ascii == Ascii::Capitals, out),
    };
    let mut spaces = 0;
    for weight in collation.weights(text) {
        if weight == Collation::SPACE {
            spaces += 1;
            continue;
        }
        if spaces > 0 {
            let marker = if weight < Collation::SPACE { after_spaces::LESS } else { after_spaces::GREATER };
            for _ in 0..spaces {
                out.extend([Collation::SPACE as u8, marker]);
            }
            spaces = 0;
        }
        push_weight(weight, out);
    }
}

/// Weights with the trailing spaces, for NO PAD, without an end. A weight of zero is escaped as zero bytes
/// are.
fn write_all_weights(collation: Collation, text: &[u8], out: &mut Vec<u8>) {
    for weight in collation.weights(text) {
        push_weight(weight, out);
        if weight == 0 {
            out.push(0xff);
        }
    }
}

pub(super) fn invert(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

#[inline]
fn push_int(number: u64, bytes: u8, signed: bool, out: &mut Vec<u8>) {
    let sign = 1u64 << (8 * bytes as u32 - 1);
    let number = if signed { number ^ sign } else { number };
    out.extend_from_slice(&number.to_be_bytes()[8 - bytes as usize..]);
}

/// A weight (or a code point) as UTF-8 would write it, which keeps the order.
#[inline]
fn push_weight(weight: u32, out: &mut Vec<u8>) {
    let low = |shift: u32| 0x80 | (weight >> shift & 0x3f) as u8;
    match weight {
        0..0x80 => out.push(weight as u8),
        0x80..0x800 => out.extend([0xc0 | (weight >> 6) as u8, low(0)]),
        0x800..0x1_0000 => out.extend([0xe0 | (weight >> 12) as u8, low(6), low(0)]),
        _ => out.extend([0xf0 | (weight >> 18) as u8, low(12), low(6), low(0)]),
    }
}

fn write_binary(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
}

/// The numbers and times; a value of another type counts as zero.
fn encode_other(kind: Kind, value: &ValueRef<'_>, out: &mut Vec<u8>) {
    match (kind, *value) {
        (Kind::Float, value) => {
            let number = match value {
                ValueRef::Float(number) => number,
                ValueRef::Double(number) => number as f32,
                _ => 0.0,
            };
            // Adding zero turns -0 into 0.
            let bits = (number + 0.0).to_bits();
            let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        (Kind::Double, value) => {
            let number = match value {
                ValueRef::Float(number) => number as f64,
                ValueRef::Double(number) => number,
                _ => 0.0,
            };
            let bits = (number + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        (Kind::Decimal { bytes, .. }, value) => {
            let number = match value {
                ValueRef::Decimal(number) => number.unscaled(),
                _ => I256::ZERO,
            };
            let start = out.len();
            out.extend_from_slice(&number.to_be_bytes()[32 - bytes as usize..]);
            out[start] ^= 0x80;
        }
        (Kind::Date, ValueRef::Date(date)) => push_int(date.to_packed() as u64, 3, false, out),
        (Kind::Date, _) => push_int(0, 3, false, out),
        (Kind::Time { fsp }, value) => {
            let micros = match value {
                ValueRef::Time(time) => time.micros,
                _ => 0,
            };
            match fsp {
                0 => push_int((micros / 1_000_000) as u64, 3, true, out),
                _ => push_int(micros as u64, 8, true, out),
            }
        }
        (Kind::DateTime { fsp }, value) => {
            let packed = match value {
                ValueRef::DateTime(datetime) => datetime.to_packed(),
                _ => 0,
            };
            match fsp {
                0 => push_int(packed >> 20, 5, false, out),
                _ => push_int(packed, 8, false, out),
            }
        }
        (Kind::Year, ValueRef::UInt(year)) => out.push(year.saturating_sub(1900) as u8),
        (Kind::Year, ValueRef::Int(year)) => out.push(year.saturating_sub(1900).max(0) as u8),
        (Kind::Year, _) => out.push(0),
        (Kind::Int { .. } | Kind::Char | Kind::Text | Kind::Binary | Kind::FixedBinary { .. }, _) => {}
    }
}
