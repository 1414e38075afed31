//! Keys that compare with `memcmp`.
//!
//! A key is its parts one behind the other; each part tells where it ends, so no part's bytes are the start
//! of another value's. A part is
//!
//! - for a nullable column one byte first: 0 = NULL (and nothing follows), 1 = not;
//! - integers, DECIMAL, dates and times: big-endian with the sign bit flipped, as many bytes as in the row
//!   image;
//! - FLOAT and DOUBLE: big-endian bits, the sign bit flipped, all bits if negative; -0 is 0;
//! - BINARY(n): its n bytes; other binaries: their bytes with 0 written as `00 ff`, then `00 00`;
//! - characters: the weights in the form of UTF-8, with every space followed by a byte that tells how what
//!   comes after the run of spaces compares with a space: 1 less, 2 the text ends here, 3 greater. So texts
//!   compare as if padded with spaces without end, and trailing spaces are not in the key;
//! - for a descending part all of that inverted.

use crate::row::Kind;
use crate::{Collation, Column, RowView, ValueRef};

mod decode;
mod encode;

pub use encode::{encode_binary, encode_text};

/// One column of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// Position of the column in the table.
    pub column: usize,
    /// `KEY (c(10))`: only the first so many characters (bytes of a binary column).
    pub prefix_chars: Option<u32>,
    pub descending: bool,
}

/// Makes the keys of one index.
#[derive(Clone, Debug)]
pub struct KeyCodec {
    parts: Box<[Part]>,
}

/// A key part with the properties of its column.
#[derive(Clone, Copy, Debug)]
struct Part {
    column: usize,
    kind: Kind,
    nullable: bool,
    descending: bool,
    collation: Collation,
    prefix: Option<u32>,
}

impl KeyCodec {
    /// `parts` name columns of `columns`; a part that names none stands for a column that is always NULL.
    pub fn new(columns: &[Column], parts: &[KeyPart]) -> KeyCodec {
        let part = |part: &KeyPart| {
            let column = columns.get(part.column);
            let kind = column.map_or(Kind::Year, |column| Kind::of(&column.column_type));
            // A prefix makes a column of fixed length one of variable length.
            let kind = match (kind, part.prefix_chars) {
                (Kind::FixedBinary { bytes }, Some(prefix)) => Kind::FixedBinary { bytes: bytes.min(prefix) },
                _ => kind,
            };
            Part {
                column: part.column,
                kind,
                nullable: column.is_none_or(|column| column.nullable),
                descending: part.descending,
                collation: column.map_or(Collation::Binary, |column| column.column_type.collation()),
                prefix: part.prefix_chars,
            }
        };
        KeyCodec { parts: parts.iter().map(part).collect() }
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Appends the key of a row.
    #[inline]
    pub fn encode_row(&self, row: &RowView<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            part.encode(&row.get(part.column), out);
        }
    }

    /// Appends the key of the first `values.len()` parts, each coerced to its column's type. Values beyond
    /// the parts are left out.
    #[inline]
    pub fn encode_prefix(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        for (part, value) in self.parts.iter().zip(values) {
            part.encode(value, out);
        }
    }

    /// Appends the key of the first `values.len()` parts and then the beginning of the next part: every row
    /// whose text there starts with `start` has a key that starts with these bytes. For `LIKE 'abc%'`; other
    /// rows may have such a key too. The next part is a character or variable binary column; for others
    /// nothing is added.
    pub fn encode_text_start(&self, values: &[ValueRef<'_>], start: &[u8], out: &mut Vec<u8>) {
        self.encode_prefix(values, out);
        if let Some(part) = self.parts.get(values.len()) {
            part.encode_start(start, out);
        }
    }

    /// True if a part of the row is NULL (such a row never collides in a UNIQUE index).
    pub fn row_has_null(&self, row: &RowView<'_>) -> bool {
        self.parts.iter().any(|part| part.nullable && row.is_null(part.column))
    }

    /// The length of this index's own part at the start of `key`, what follows being another key. None if
    /// `key` is not one of this index.
    pub fn len_in(&self, key: &[u8]) -> Option<usize> {
        self.parts.iter().try_fold(0, |at, part| Some(at + part.len_in(key.get(at..)?)?))
    }

    /// Where each part ends at the start of `key`. None if `key` is not one of this index.
    pub fn ends_in(&self, key: &[u8], ends: &mut Vec<usize>) -> Option<()> {
        ends.clear();
        for part in &self.parts {
            let at = ends.last().copied().unwrap_or(0);
            ends.push(at + part.len_in(key.get(at..)?)?);
        }
        Some(())
    }

    /// True if every part's value can be read back from a key: no collation weights, no cut prefix, nothing
    /// that keys make equal (trailing spaces of VARCHAR, the sign of zero).
    pub fn is_covering(&self) -> bool {
        self.parts.iter().all(Part::is_covering)
    }

    /// Reads the parts back; only if [`KeyCodec::is_covering`], else None. `scratch` holds texts and
    /// binaries.
    pub fn decode<'a>(&self, key: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<Vec<ValueRef<'a>>> {
        decode::decode(&self.parts, key, scratch)
    }
}

#[cfg(test)]
mod tests;
