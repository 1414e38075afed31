//! Row images.

use crate::{Column, Value, ValueRef};

/// Writes and reads the row images of one table. Built once a table, shared by all sessions.
#[derive(Clone, Debug)]
pub struct RowCodec {}

impl RowCodec {
    pub fn new(_columns: &[Column]) -> RowCodec {
        todo!()
    }

    /// Appends the image of `values`, one a column, already coerced to their columns' types.
    pub fn encode(&self, _values: &[ValueRef<'_>], _out: &mut Vec<u8>) {
        todo!()
    }

    /// A view of an image; columns are decoded on demand. Total on corrupt input: errors, no panic.
    pub fn view<'a>(&'a self, _image: &'a [u8]) -> RowView<'a> {
        todo!()
    }
}

/// A row image seen through its codec.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    _image: &'a [u8],
}

impl<'a> RowView<'a> {
    /// The value of a column, in constant time.
    pub fn get(&self, _column: usize) -> ValueRef<'a> {
        todo!()
    }
    pub fn to_values(&self) -> Vec<Value> {
        todo!()
    }
}
