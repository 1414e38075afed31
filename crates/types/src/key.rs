//! Keys that compare with `memcmp`.

use crate::{Column, RowView, ValueRef};

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
pub struct KeyCodec {}

impl KeyCodec {
    pub fn new(_columns: &[Column], _parts: &[KeyPart]) -> KeyCodec {
        todo!()
    }
    /// Appends the key of a row.
    pub fn encode_row(&self, _row: &RowView<'_>, _out: &mut Vec<u8>) {
        todo!()
    }
    /// Appends the key of the first `values.len()` parts, each coerced to its column's type.
    pub fn encode_prefix(&self, _values: &[ValueRef<'_>], _out: &mut Vec<u8>) {
        todo!()
    }
    /// True if a part of the row is NULL (such a row never collides in a UNIQUE index).
    pub fn row_has_null(&self, _row: &RowView<'_>) -> bool {
        todo!()
    }
    /// The length of this index's own part at the start of `key`, what follows being another key.
    pub fn len_in(&self, _key: &[u8]) -> Option<usize> {
        todo!()
    }
    /// True if every part's value can be read back from a key (no collation weights, no cut prefix).
    pub fn is_covering(&self) -> bool {
        todo!()
    }
    /// Reads the parts back; only if [`KeyCodec::is_covering`].
    pub fn decode<'a>(&self, _key: &'a [u8], _scratch: &'a mut Vec<u8>) -> Option<Vec<ValueRef<'a>>> {
        todo!()
    }
}
