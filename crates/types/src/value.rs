//! Values, owned and borrowed.

/// A value that borrows its bytes from a row image, a packet or a [`Value`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ValueRef<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    // Decimal, Date, Time and DateTime variants follow with their types.
    /// Characters in UTF-8, whatever the column's character set.
    Text(&'a [u8]),
    Binary(&'a [u8]),
}

/// A value that owns its bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Text(Vec<u8>),
    Binary(Vec<u8>),
}
